//! `narrows watch HOST...`: follows paths within a send budget, finds changes and names their
//! causes.

mod channels;
mod check;
pub(super) mod clocks;
mod engine;
mod events;
mod evidence;
mod host;
mod influx;
mod jobs;
mod keep;
mod lines;
mod notices;
mod numbers;
#[cfg(feature = "otlp")]
mod otlp;
mod pages;
mod pulses;
mod readings;
mod resolve;
pub(super) mod route;
mod route_changes;
mod settings;
mod stored;
mod subject;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use narrows_store::{Options, Retention, Store};
use narrows_units::Octets;
use narrows_web::{Links, Live, Server};
use uuid::Uuid;

use self::channels::Channels;
use self::engine::{Engine, Reload};
use self::keep::{Keep, Memory};
use self::lines::{Form, Lines};
use self::pages::PagesArgs;
use self::stored::Stored;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output, state};

/// Follow hosts all day within a send budget: what is available, what changed, and why
///
/// A pulse every second, the route every five minutes, a short look at the available rate every
/// minute or less often: all of it stays below 1 % of the path. Hosts that run `narrows serve` give
/// rates; others give round trips, loss, routes and a capacity.
///
/// Each new value is a line; on a terminal, each host has one. A page in the browser shows more:
/// its address is said at the start. Ctrl-C ends it. With --config, SIGHUP reads the settings
/// again.
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Hosts to follow, with the usual settings, beside those of --config
    #[arg(value_name = "HOST", required_unless_present = "settings", add = crate::complete::hosts())]
    hosts: Vec<String>,
    /// Targets, budgets and alerts from this file, and from the folder beside it: watch.toml and
    /// watch.d/*.toml
    #[arg(long = "config", id = "settings", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Keep everything in this file, which `narrows history` reads; --config, --listen ADDRESS and
    /// --otlp without it use /var/lib/narrows/watch.db, for users
    /// ~/.local/state/narrows/watch.db. With hosts alone nothing is kept for longer than the page
    /// is there
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    #[command(flatten)]
    pages: PagesArgs,
    /// Print one JSON object per value, event and alert
    #[arg(long, short = 'J')]
    json: bool,
    /// Print Influx line protocol: one point per value, event and alert
    #[arg(long, conflicts_with = "json")]
    influx: bool,
    /// Say what would be measured and what a day would cost; send nothing
    #[arg(long, conflicts_with_all = ["json", "influx"])]
    check: bool,
    /// Send the numbers of /metrics to this collector once a minute (OTLP/HTTP), such as
    /// `http://127.0.0.1:4318`
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// End after this time, such as "10 min"; until Ctrl-C by default
    #[arg(long, value_parser = narrows_units::parse_duration_or_seconds)]
    duration: Option<Duration>,
}

pub(crate) fn run(args: &WatchArgs) -> Result<Exit, Failure> {
    let settings = settings::read(args.config.as_deref(), &args.hosts)?;
    if args.check {
        channels::check(&settings.channels, args.config.as_deref())?;
        output::write(&check::text(&settings), None)?;
        return Ok(Exit::Valid);
    }
    #[cfg(feature = "otlp")]
    let collector = args.otlp.as_deref().map(otlp::Collector::new).transpose()?;
    #[cfg(not(feature = "otlp"))]
    if args.otlp.is_some() {
        return Err(Failure::without("OTLP", "otlp"));
    }
    let stop = interrupt::flag()?;
    let zone = clocks::local_zone();
    let server = args.pages.bind()?;
    let page_links = server.as_ref().map(Server::links);
    let page = page_links.as_ref().map(Links::overview);
    let place = args.place(server.is_some())?;
    let fleeting = matches!(place, Some(Place::Scratch(_)));
    let printed = Lines::new(Form::wanted(args.json, args.influx), zone.clone()).fleeting(fleeting);
    let retention = Retention { max_size: settings.max_size.map(Octets::count), ..Retention::default() };
    let store = place.as_ref().map(|place| place.open(retention)).transpose()?;
    let writer = store.as_ref().map(Store::writer);
    let (live, posts) = Live::new();
    let channels = Channels::start(&settings.channels, args.config.as_deref(), (writer.as_ref(), &live), page_links)?;
    let (sender, messages) = mpsc::channel();
    let keep: Box<dyn Keep> = match writer {
        Some(writer) => {
            pages::take_posts(posts, writer.clone(), sender.clone())?;
            Box::new(Stored::new(writer, live.clone()))
        }
        None => Box::new(Memory::default()),
    };
    let pages = match (server, &store) {
        (Some(server), Some(store)) => Some(pages::serve(server, store.reader(), live.clone())?),
        _ => None,
    };
    #[cfg(feature = "otlp")]
    if let Some(collector) = collector {
        collector.start(live.clone(), stop)?;
    }
    let mut engine = Engine::start(settings, zone, printed, (keep, Box::new(channels)), (&sender, stop))?;
    let reload = args.reload()?;
    live.ready();
    if let Some(page) = page {
        output::complain(&format!("the page is at {page}"));
    }
    engine.run(&messages, args.duration, reload.as_ref(), stop);
    stop.store(true, Ordering::Relaxed);
    drop(pages);
    engine.end(&messages);
    Ok(if engine.any() { Exit::Valid } else { Exit::Inconclusive })
}

impl WatchArgs {
    /// The file that was asked for; pages that were asked for, a collector and a configuration have
    /// one without being asked, and other pages have one until the end.
    fn place(&self, has_page: bool) -> Result<Option<Place>, Failure> {
        let usual = self.config.is_some() || self.pages.is_asked() || self.otlp.is_some();
        match (&self.store, usual, has_page) {
            (Some(path), ..) => Ok(Some(Place::File(path.clone()))),
            (None, true, _) => Ok(Some(Place::File(state::watch_store()))),
            (None, false, true) => Place::scratch().map(Some),
            (None, false, false) => Ok(None),
        }
    }

    /// SIGHUP reads the settings again, where there is a file; else it ends the program, as usual.
    fn reload(&self) -> Result<Option<Reload>, Failure> {
        let Some(config) = self.config.clone() else { return Ok(None) };
        let hosts = self.hosts.clone();
        let asked = Arc::default();
        signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&asked))
            .map_err(|error| Failure::host(format!("cannot watch for SIGHUP: {error}")))?;
        Ok(Some(Reload { asked, read: Box::new(move || settings::read(Some(&config), &hosts)) }))
    }
}

/// Where the store is.
#[derive(Debug)]
enum Place {
    File(PathBuf),
    /// Pages need a store, and nobody asked for one: it is gone when this is dropped.
    Scratch(PathBuf),
}

impl Place {
    /// A folder that nobody else can read.
    fn scratch() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("narrows-watch-{}", Uuid::now_v7()));
        let made = DirBuilder::new().mode(0o700).create(&folder);
        let why = |error| format!("{}: {error}; the page needs it, --listen none does without", folder.display());
        made.map_err(|error| Failure::host(why(error)))?;
        Ok(Self::Scratch(folder))
    }

    fn open(&self, retention: Retention) -> Result<Store, Failure> {
        let path = match self {
            Self::File(path) => path.clone(),
            Self::Scratch(folder) => folder.join("watch.db"),
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let made = std::fs::create_dir_all(folder);
            made.map_err(|error| Failure::host(format!("{}: {error}", folder.display())))?;
        }
        let opened = Store::open(&path, Options { retention, ..Options::new(clocks::now().wall) });
        opened.map_err(|error| Failure::host(format!("{}: {error}", path.display())))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Self::Scratch(folder) = self {
            // The system clears such folders too.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
