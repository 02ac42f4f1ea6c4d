//! One control connection, from its first octet to its end.

mod link;

use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use narrows_diagnose::advice::HostEnvironment;
use narrows_wire::fleet_key::{Lease, NotLeased};
use narrows_wire::{
    ClientMessage, DATA_HELLO_OCTETS, DataHello, Frame, FrameKind, MessageVerdict, RefusalCode, Rows, ServerMessage,
    Side, SlotKind, Table,
};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use link::{End, Link, broke, internal};

use super::conduct;
use super::orders::{Order, Word};
use super::session::{Pending, ServedSession, Server, SessionGuard, lock, same_address};
use super::slots::SlotNews;
use crate::control_socket;
use crate::host::{CounterReading, Interface};

/// How often the session looks after itself.
const TICK: Duration = Duration::from_millis(50);
/// Requests that may wait for the conductor; an honest client has two or three on the way.
const MOST_ORDERS: usize = 64;

/// Attends to a connection until it ends.
pub(super) async fn attend(stream: TcpStream, peer: SocketAddr, server: Arc<Server>) {
    let Some(pending) = Pending::new(&server, peer.ip()) else {
        tracing::info!(%peer, "too many handshakes");
        return;
    };
    let time_limit = server.options.limits.handshake_time;
    let mut first = [0; 4];
    let mut stream = stream;
    match timeout(time_limit, stream.read_exact(&mut first)).await {
        Ok(Ok(_)) => {}
        Ok(Err(_)) | Err(_) => return,
    }
    if DataHello::announces(first) {
        let accepted = timeout(time_limit, data(stream, first, peer, &server)).await;
        if !matches!(accepted, Ok(Ok(()))) {
            tracing::info!(%peer, "data connection refused");
        }
        return;
    }
    // Small messages must not wait for each other.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    control_socket::retry_often(&stream);
    let Ok(local) = stream.local_addr() else { return };
    let (read, write) = stream.into_split();
    let mut link = Link::new(read, write, &first);
    let entered = timeout(time_limit, link.enter(peer, local.ip(), &server)).await.unwrap_or(Err(End::Late));
    drop(pending);
    let ended = match entered {
        Ok(guard) => {
            let session = guard.session.id;
            tracing::info!(%peer, session, sessions = server.sessions(), "session begins");
            let ended = Attendance::new(&mut link, &guard, &server, local.ip()).run().await;
            drop(guard);
            tracing::info!(%peer, session, "session ends");
            ended
        }
        Err(end) => Err(end),
    };
    if let Err(end) = ended {
        link.farewell(peer, end).await;
    }
}

/// Hands a data connection to the transfer that waits for it.
async fn data(mut stream: TcpStream, first: [u8; 4], peer: SocketAddr, server: &Server) -> io::Result<()> {
    let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
    let mut octets = [0; DATA_HELLO_OCTETS];
    octets[..4].copy_from_slice(&first);
    stream.read_exact(&mut octets[4..]).await?;
    let hello = DataHello::parse(&octets).map_err(|_| refused())?;
    let session = server.session_by_token(&hello.token).ok_or_else(refused)?;
    if !same_address(session.peer, peer.ip()) {
        return Err(refused());
    }
    let stream = stream.into_std()?;
    let listen_socket = lock(&session.listen_socket);
    let listen_socket =
        listen_socket.as_ref().filter(|listen_socket| listen_socket.transfer == hello.transfer).ok_or_else(refused)?;
    listen_socket.streams.send((hello.stream, stream)).map_err(|_| refused())
}

/// A session in progress.
struct Attendance<'a> {
    link: &'a mut Link,
    session: &'a Arc<ServedSession>,
    server: &'a Arc<Server>,
    /// The slot that the session waits for, and where news of it come from.
    waiting: Option<UnboundedReceiver<SlotNews>>,
    /// A reverse train whose plan is the next frame.
    plan_for: Option<(u32, u16)>,
    /// Since when the session has done nothing.
    idle_from: Instant,
    began: Instant,
    /// Our interface towards the client.
    local: IpAddr,
    /// What was told of this host, and when.
    reported: Option<HostAnswer>,
}

/// An answer to how this host is set up: settings are read once per session, counts each time.
struct HostAnswer {
    environment: HostEnvironment,
    counts: CounterReading,
    at: Instant,
}

/// Between two such answers.
const TELL_EVERY: Duration = Duration::from_millis(100);

impl<'a> Attendance<'a> {
    fn new(link: &'a mut Link, guard: &'a SessionGuard, server: &'a Arc<Server>, local: IpAddr) -> Self {
        Self {
            link,
            session: &guard.session,
            server,
            waiting: None,
            plan_for: None,
            idle_from: Instant::now(),
            began: Instant::now(),
            local,
            reported: None,
        }
    }

    async fn run(mut self) -> Result<(), End> {
        let (orders, conductor_orders) = mpsc::sync_channel(MOST_ORDERS);
        let (conductor_words, mut words) = unbounded_channel();
        conduct::start(Arc::clone(self.session), conductor_orders, conductor_words)
            .map_err(internal("start a thread"))?;
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let session = Arc::clone(self.session);
        while !self.link.conversation.is_closed() {
            tokio::select! {
                frame = self.link.frame(|| session.hear()) => self.take(frame?, &orders).await?,
                Some(word) = words.recv() => self.pass_on(word).await?,
                news = next_news(&mut self.waiting) => self.tell(news).await?,
                _ = tick.tick() => self.poll_after().await?,
            }
        }
        Ok(())
    }

    async fn pass_on(&mut self, word: Word) -> Result<(), End> {
        self.session.unreported.fetch_sub(word.weight(), Ordering::Relaxed);
        match word {
            Word::Message(message) => self.link.say(&message).await,
            Word::Rows(rows) => self.link.say_rows(&rows).await,
        }
    }

    async fn tell(&mut self, news: SlotNews) -> Result<(), End> {
        let message = match news {
            SlotNews::Queued(kind, place) => ServerMessage::Queued { kind, place },
            SlotNews::GrantedScheduling(kind) => {
                self.waiting = None;
                self.idle_from = Instant::now();
                if kind == SlotKind::Load {
                    self.session.loads.store(true, Ordering::Relaxed);
                }
                ServerMessage::GrantedScheduling { kind }
            }
            SlotNews::Busy(_) => {
                self.waiting = None;
                ServerMessage::refused(RefusalCode::Busy, None, "too many clients wait for the slot already")
            }
        };
        self.link.say(&message).await
    }

    async fn poll_after(&mut self) -> Result<(), End> {
        if self.server.ended.load(Ordering::Relaxed) {
            return Err(End::Refused(RefusalCode::Expired, "the server ends".to_owned()));
        }
        let limits = &self.server.options.limits;
        let conversation = &self.link.conversation;
        let busy = conversation.is_busy();
        if self.session.silence() > narrows_wire::IDLE_LIMIT {
            return Err(End::Late);
        }
        if busy {
            self.idle_from = Instant::now();
            if self.session.must_stop() {
                self.session.halted.store(true, Ordering::Relaxed);
            }
        }
        let holds = conversation.holds(SlotKind::Light) || conversation.holds(SlotKind::Load);
        if holds && self.idle_from.elapsed().min(self.session.unused()) > limits.slot_idle_time {
            let text = format!("a slot held for {:?} without any test", limits.slot_idle_time);
            return Err(End::Refused(RefusalCode::Expired, text));
        }
        if self.server.options.denies(self.session.agent.as_deref()) {
            return Err(End::Refused(RefusalCode::Expired, "this client is denied here from now on".to_owned()));
        }
        if self.began.elapsed() > limits.session_time {
            let text = format!("sessions end after {:?}", limits.session_time);
            return Err(End::Refused(RefusalCode::Expired, text));
        }
        let quiet = if busy { narrows_wire::ALIVE_EVERY } else { narrows_wire::IDLE_LIMIT / 4 };
        // Half a tick early rather than half a tick late.
        let silent = self.link.said.elapsed();
        let left = if silent >= TICK / 2 { self.link.to_follow.checked_sub(1) } else { None };
        if silent + TICK / 2 >= quiet || left.is_some() {
            self.link.say(&ServerMessage::Alive).await?;
            self.link.to_follow = left.unwrap_or(0);
        }
        Ok(())
    }

    async fn take(&mut self, frame: Frame, orders: &mpsc::SyncSender<Order>) -> Result<(), End> {
        match frame.kind {
            FrameKind::Json => {
                let message = ClientMessage::parse(&frame.body).map_err(broke)?;
                match self.link.conversation.client(&message).map_err(broke)? {
                    MessageVerdict::Act => self.act(message, orders).await,
                    MessageVerdict::Stale => Ok(()),
                }
            }
            FrameKind::Rows => {
                let rows = Rows::parse(&frame.body).map_err(broke)?;
                let verdict = self.link.conversation.rows(Side::Client, &rows).map_err(broke)?;
                if let (MessageVerdict::Act, Table::Plan(plan), Some((id, flow))) =
                    (verdict, rows.table, self.plan_for.take())
                {
                    order(orders, Order::SendTrain { id, flow, plan })?;
                }
                Ok(())
            }
        }
    }

    async fn act(&mut self, message: ClientMessage, orders: &mpsc::SyncSender<Order>) -> Result<(), End> {
        let asked = match message {
            ClientMessage::Slot { kind, beside: Some(token), .. } => return self.share(kind, &token).await,
            ClientMessage::Slot { kind, beside: None, lease } => {
                if let Err(not) = self.leased(kind, lease).await {
                    return self.link.say(&ServerMessage::refused(RefusalCode::Limit, None, not.to_string())).await;
                }
                let (reported, news) = unbounded_channel();
                self.waiting = Some(news);
                self.server.slots.ask(kind, self.session.id, reported);
                return Ok(());
            }
            ClientMessage::Release { kind } => {
                self.waiting = None;
                if kind == SlotKind::Load {
                    self.session.loads.store(false, Ordering::Relaxed);
                }
                self.server.slots.leave(kind, self.session.id);
                return self.link.say(&ServerMessage::Released { kind }).await;
            }
            ClientMessage::AskHost => return self.tell_host().await,
            ClientMessage::ExpectTrain(train) if !self.may_test() => return self.no_slot(train.id).await,
            ClientMessage::SendTrain { id, .. } if !self.may_test() => return self.no_slot(id).await,
            ClientMessage::SendTrain { id, flow } => {
                self.plan_for = Some((id, flow));
                return Ok(());
            }
            ClientMessage::ExpectTrain(train) => Order::ExpectTrain(train),
            ClientMessage::TrainSent { packets, .. } => Order::TrainSent { packets },
            ClientMessage::LoadBegin(plan) => Order::LoadBegin(plan),
            ClientMessage::LoadSegment(segment) => Order::LoadSegment(segment),
            ClientMessage::LoadEnd { .. } => Order::LoadEnd,
            ClientMessage::TransferBegin(plan) => Order::TransferBegin(plan),
            ClientMessage::TransferSegment(segment) => Order::TransferSegment(segment),
            ClientMessage::TransferEnd { .. } => Order::TransferEnd,
            // The conversation lets the first two pass only in the handshake, and the last closes
            // it.
            ClientMessage::Hello { .. } | ClientMessage::Prove { .. } | ClientMessage::Alive | ClientMessage::Bye => {
                return Ok(());
            }
        };
        order(orders, asked)
    }

    /// In a fleet only the run that leased this host may load it. The news of its lease may come
    /// later than the run itself.
    async fn leased(&self, kind: SlotKind, lease: Option<Lease>) -> Result<(), NotLeased> {
        let Some(keys) = self.server.options.fleet_keys.as_ref().filter(|_| kind == SlotKind::Load) else {
            return Ok(());
        };
        let began = Instant::now();
        loop {
            match keys.admits(lease) {
                Err(not) if not != NotLeased::Unnamed && began.elapsed() < self.server.options.limits.lease_time => {
                    tokio::time::sleep(TICK).await;
                }
                known => return known,
            }
        }
    }

    /// Two sessions of one client, of which one sends and one receives, need the slot together.
    async fn share(&mut self, kind: SlotKind, token: &narrows_wire::Token) -> Result<(), End> {
        let host = self.server.session_by_token(token);
        let host = host.filter(|host| same_address(host.peer, self.session.peer));
        if host.is_some_and(|host| self.server.slots.share(kind, host.id, self.session.id)) {
            return self.tell(SlotNews::GrantedScheduling(kind)).await;
        }
        let text = "no other session of this client holds the slot, or it is shared already";
        self.link.say(&ServerMessage::refused(RefusalCode::Limit, None, text)).await
    }

    /// How this host is set up towards the client, and what it counted since it was asked before.
    async fn tell_host(&mut self) -> Result<(), End> {
        let before = self.reported.take();
        if let Some(reported) = &before {
            tokio::time::sleep_until(reported.at + TELL_EVERY).await;
        }
        let local = self.local.to_canonical();
        // Reading files and asking a driver takes a few milliseconds, in which nobody else should
        // wait.
        let reported = tokio::task::spawn_blocking(move || {
            let interface = Interface::with_address(local);
            let counts = CounterReading::now(interface.as_ref());
            let environment = match before {
                Some(reported) => {
                    let mut environment = reported.environment;
                    reported.counts.until(&counts, &mut environment);
                    environment
                }
                None => crate::host::environment(interface),
            };
            HostAnswer { environment, counts, at: Instant::now() }
        });
        let reported = reported.await.map_err(|error| internal("read its settings")(error.into()))?;
        let settings = crate::host::reported::settings(&reported.environment);
        self.reported = Some(reported);
        self.link.say(&ServerMessage::HostReported(Box::new(settings))).await
    }

    fn may_test(&self) -> bool {
        let conversation = &self.link.conversation;
        conversation.holds(SlotKind::Light) || conversation.holds(SlotKind::Load)
    }

    async fn no_slot(&mut self, id: u32) -> Result<(), End> {
        let refused = ServerMessage::refused(RefusalCode::Limit, Some(id), "a train needs a slot");
        self.link.say(&refused).await
    }
}

/// Hands an order on without ever waiting for the conductor.
fn order(orders: &mpsc::SyncSender<Order>, order: Order) -> Result<(), End> {
    orders.try_send(order).map_err(|refused| match refused {
        mpsc::TrySendError::Full(_) => broke("more requests than anyone can answer"),
        // The conductor lives as long as the session; one that is gone has panicked.
        mpsc::TrySendError::Disconnected(_) => {
            End::Refused(RefusalCode::Expired, "the server's conductor is gone".to_owned())
        }
    })
}

/// Never, while the session waits for nothing.
async fn next_news(waiting: &mut Option<UnboundedReceiver<SlotNews>>) -> SlotNews {
    match waiting {
        Some(news) => match news.recv().await {
            Some(news) => news,
            None => pending().await,
        },
        None => pending().await,
    }
}
