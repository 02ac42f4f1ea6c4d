//! Serves the API, the pages and the embedded bus on one port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use narrows_bus::{Bus, embedded};
use narrows_fleet::keys::Name;
use narrows_fleet::message::BusAddress;
use narrows_record::Record;
use narrows_site::{Feed, OwnTls, wall_clock};
use narrows_watch::Zone;

use crate::api::{App, OPEN};
use crate::assets;
use crate::channels::Channels;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::hub::{Clock, Hub, Parts};
use crate::keys::Keys;
use crate::reach::{connected, reach, without_user};
use crate::tokens::Tokens;

/// How a hub is to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Names under which it is reached, beside its addresses; the first one is the one that agents
    /// are told.
    pub hosts: Vec<String>,
    /// Its state directory.
    pub state: PathBuf,
    /// The servers of NATS; the bus is in this process if there are none. If it was there before,
    /// agents that still come to it learn where it is now.
    pub nats: Vec<String>,
    /// Octets of results that the bus keeps at most.
    pub bus_octets: u64,
    /// Whose fleet.
    pub tenant: Name,
    /// By what people are told.
    pub channels: Channels,
    /// The zone of the times in what they are told.
    pub zone: Zone,
}

/// A bound address, not served yet.
pub struct Server {
    site: narrows_site::Server,
    hub: Arc<Hub>,
    feed: Feed,
    bus: Option<embedded::Server>,
    url: String,
}

impl Server {
    /// Opens the state directory and the bus, and binds the address.
    pub async fn bind(settings: &Settings, record: Arc<dyn Record>) -> Result<Self> {
        let own_host = match settings.listen.ip() {
            any if any.is_unspecified() => own_address(any),
            one => one,
        };
        let mut names = settings.hosts.clone();
        names.extend([own_host.to_string(), "localhost".to_owned()]);
        let keys = Keys::open(&settings.state, &names)?;
        let site = narrows_site::Server::bind(site_settings(settings, &keys))?;
        let address = site.address();
        let host = settings.hosts.first().cloned().unwrap_or_else(|| in_url(own_host));
        let url = format!("https://{host}:{}", address.port());
        keys.write_hub_file(&url)?;
        let (directory, generation) = (Directory::default(), generation(&*record).await?);
        let bucket = format!("lease_{generation}");
        let file = settings.state.join("bus.db");
        let open = |admission| embedded::Server::open(&file, admission, embedded::Limits::default());
        let (bus, embedded, bus_address): (Arc<dyn Bus>, _, _) = if settings.nats.is_empty() {
            let server = open(directory.admission(&bucket))?;
            let url = format!("wss://{host}:{}/bus", address.port());
            (Arc::new(server.local()), Some(server), BusAddress::Embedded { url })
        } else {
            // The bus in the hub had agents: they still come to it, and learn where the new one is.
            let left = file.exists().then(|| open(directory.leaving())).transpose()?;
            let servers = settings.nats.iter().map(|server| without_user(server)).collect();
            (reach(&keys, &settings.nats).await?, left, BusAddress::Nats { servers, jwt: None, authority: None })
        };
        connected(&*bus).await?;
        let left: Option<Arc<dyn Bus>> = match &embedded {
            Some(server) if !settings.nats.is_empty() => Some(Arc::new(server.local())),
            _ => None,
        };
        if let Some(left) = &left {
            connected(&**left).await?;
        }
        let (feed, cutter) = (Feed::default(), embedded.clone());
        let of_fleet = (&settings.tenant, settings.bus_octets);
        let operator = keys.operator.as_ref().filter(|_| !settings.nats.is_empty());
        let tokens = operator.and_then(|own| Tokens::new(own, of_fleet, &bucket, &settings.nats, &directory));
        let (signing, clock) = (tokens.clone(), clock());
        let now = Arc::clone(&clock);
        let news = feed.clone();
        let parts = Parts {
            keys,
            record,
            bus,
            left,
            directory,
            bus_address,
            lease_generation: generation,
            bus_octets: settings.bus_octets,
            tenant: settings.tenant.clone(),
            own_host,
            url: url.clone(),
            channels: settings.channels.clone(),
            zone: settings.zone.clone(),
            clock,
            tokens,
            tell: Arc::new(move |kind, text| news.say(kind, &text)),
            cut: Arc::new(move |key| {
                cutter.as_ref().map(|bus| bus.cut(key));
                if let Some(tokens) = &signing {
                    tokens.tell_revoked(now());
                }
            }),
        };
        Ok(Self { site, hub: Hub::open(parts).await?, feed, bus: embedded, url })
    }

    /// Where others reach it: `https://10.0.0.1:8622`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.site.address()
    }

    /// What it serves.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// What people show who read the pages from another machine.
    pub fn view_token(&self) -> &str {
        &self.hub.keys.view
    }

    /// Works and serves until `stop` is ready.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<()> {
        let (hub, feed, bus) = (Arc::clone(&self.hub), self.feed, self.bus);
        let assets = assets::assets();
        let shell = assets.shell().to_owned();
        let routes = move |site| assets::add(crate::api::router(), assets).with_state(App::new(hub, site, feed, bus));
        let fault = |fault: Option<String>| {
            if let Some(fault) = fault {
                tracing::warn!(fault, "TLS or users");
            }
        };
        self.hub.begin_telling()?;
        let ended = tokio::select! {
            served = self.site.run(shell, routes, fault, stop) => served.map_err(Error::from),
            failed = self.hub.run() => Err(failed),
        };
        // The thread that tells people may wait for the record, and so for the runtime.
        let hub = Arc::clone(&self.hub);
        drop(tokio::task::spawn_blocking(move || hub.end_telling()).await);
        ended
    }
}

fn site_settings(settings: &Settings, keys: &Keys) -> narrows_site::Settings {
    let folder = &keys.folder;
    narrows_site::Settings {
        hosts: settings.hosts.clone(),
        token_file: Some(folder.join("view.token")),
        read_token_file: Some(folder.join("read.token")),
        own_tls: Some(OwnTls { certificate: folder.join("cert.pem"), key: folder.join("key.pem") }),
        trusts_own_machine: true,
        open: &OPEN,
        largest_body: LARGEST_BODY,
        ..narrows_site::Settings::local(settings.listen)
    }
}

/// The number of the bucket of leases: the record says it, once somebody began a new one.
async fn generation(record: &dyn Record) -> Result<u32> {
    Ok(record.setting("lease_generation").await?.parse().unwrap_or(1))
}

fn clock() -> Clock {
    Arc::new(|| i64::try_from(wall_clock().as_millis()).unwrap_or(i64::MAX))
}

/// The address by which this host reaches others: that of its default route, else its first one.
/// No packet is sent for it.
fn own_address(any: IpAddr) -> IpAddr {
    let (from, to) = if any.is_ipv4() { ("0.0.0.0:0", "192.0.2.1:9") } else { ("[::]:0", "[2001:db8::1]:9") };
    let routed = UdpSocket::bind(from).and_then(|socket| socket.connect(to).and_then(|()| socket.local_addr()));
    let routed = routed.ok().map(|address| address.ip()).filter(|address| !address.is_unspecified());
    routed.or_else(first_address).unwrap_or(Ipv4Addr::LOCALHOST.into())
}

fn first_address() -> Option<IpAddr> {
    let mut interfaces = nix::ifaddrs::getifaddrs().ok()?;
    let address = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let four = address.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
        let six = || address.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip()));
        four.or_else(six).filter(|address| !address.is_loopback() && !is_link_local(*address))
    };
    interfaces.find_map(address)
}

const fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

fn in_url(address: IpAddr) -> String {
    match address {
        IpAddr::V4(four) => four.to_string(),
        IpAddr::V6(six) => format!("[{six}]"),
    }
}

/// A configuration of some thousand hosts.
const LARGEST_BODY: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_an_address_that_others_could_use() {
        let own = own_address(Ipv4Addr::UNSPECIFIED.into());
        assert!(!own.is_unspecified());
        assert_eq!(in_url("2001:db8::1".parse().unwrap()), "[2001:db8::1]");
    }
}
