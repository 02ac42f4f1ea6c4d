//! One connection: a sender's control connection, or the data of one of its TCP flows.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use narrows_net::clock;

use super::state::{Account, Shared, SinkSession, Tables, Traffic, lock, same_host};
use super::{SessionEnd, SessionReport, keep};
use crate::account::{TcpAccount, UdpAccount};
use crate::control::{
    Accepted, Announce, Data, End, Lines, PROTOCOL, REQUEST_OCTETS, Reply, Request, Statistics, Transport, WaitEnd,
    is_passing, say, understood,
};

/// Intervals of one session, over all its flows.
const INTERVALS: usize = 50_000;
/// Intervals of one flow.
const INTERVALS_PER_FLOW: usize = 20_000;

/// Serves a connection to its end.
pub(super) fn serve(shared: &Shared, stream: &TcpStream, client: SocketAddr) {
    let mut lines = Lines::new(REQUEST_OCTETS);
    let deadline = clock::now_ns() + clock::nanos(shared.options.limits.first_line_time);
    let line = match lines.next(stream, deadline, &shared.stop) {
        WaitEnd::Line(line) => line,
        WaitEnd::TooLong => return refuse(stream, "that line is too long"),
        WaitEnd::Closed | WaitEnd::Nothing => return,
    };
    match understood(&line) {
        Ok(Request::Announce(announce)) => match admit(shared, client, &announce) {
            Ok(session) => control(shared, stream, &mut lines, &session),
            Err(why) => refuse(stream, &why),
        },
        Ok(Request::Data(data)) => read(shared, stream, client, &data, lines.rest()),
        Ok(Request::End(_)) => refuse(stream, "nothing was announced"),
        Err(why) => refuse(stream, &format!("this speaks {PROTOCOL}: {why}")),
    }
}

fn refuse(stream: &TcpStream, why: &str) {
    // A peer that is gone need not know.
    let _ = say(stream, &Reply::Refused { why: why.to_owned() });
}

/// A session for what was announced, or why not.
fn admit(shared: &Shared, client: SocketAddr, announce: &Announce) -> Result<Arc<SinkSession>, String> {
    let limits = &shared.options.limits;
    if announce.protocol != PROTOCOL {
        return Err(format!("this speaks {PROTOCOL}"));
    }
    if !shared.options.allow_any && !narrows_net::serve::is_private(client.ip()) {
        return Err("only clients on this host and in private networks are served here".to_owned());
    }
    if announce.flows.is_empty() || announce.flows.len() > limits.flows_per_session {
        return Err(format!("a session has 1 to {} flows", limits.flows_per_session));
    }
    let mut tables = lock(&shared.tables);
    let of_client = |session: &&Arc<SinkSession>| same_host(session.client.ip(), client.ip());
    let flows: usize = tables.sessions.values().map(|session| session.cookies.len()).sum();
    if tables.sessions.len() >= limits.sessions
        || tables.sessions.values().filter(of_client).count() >= limits.sessions_per_address
        || flows + announce.flows.len() > limits.flows
    {
        return Err("busy: too many sessions or flows".to_owned());
    }
    let token = draw_token(&tables).ok_or("this host has no random numbers")?;
    let cookies = draw_cookies(&tables, announce.flows.len()).ok_or("this host has no random numbers")?;
    let most_bins = (INTERVALS / announce.flows.len()).min(INTERVALS_PER_FLOW);
    let flows = announce.flows.iter().map(|transport| match transport {
        Transport::Udp => Account::Udp(Box::new(UdpAccount::new(announce.interval_ns, most_bins))),
        Transport::Tcp => Account::Tcp(TcpAccount::new(announce.interval_ns, most_bins)),
    });
    let session = Arc::new(SinkSession {
        client,
        token,
        cookies,
        same_clock: announce.clock == shared.clock,
        ended: AtomicBool::new(false),
        drops_before: shared.local_drops.load(Ordering::Relaxed),
        traffic: Mutex::new(Traffic { first_ns: None, last_ns: clock::now_ns(), flows: flows.collect() }),
    });
    for (flow, (cookie, transport)) in session.cookies.iter().zip(&announce.flows).enumerate() {
        if *transport == Transport::Udp {
            tables.cookies.insert(*cookie, (Arc::clone(&session), flow));
        }
    }
    tables.sessions.insert(token, Arc::clone(&session));
    Ok(session)
}

fn draw_token(tables: &Tables) -> Option<u64> {
    (0..8).find_map(|_| getrandom::u64().ok().filter(|token| !tables.sessions.contains_key(token)))
}

fn draw_cookies(tables: &Tables, count: usize) -> Option<Vec<u32>> {
    let mut cookies = std::collections::BTreeSet::new();
    // With some thousand cookies among 2^32, one more draw or two is all that a collision costs.
    for _ in 0..2 * count + 16 {
        if cookies.len() == count {
            break;
        }
        let cookie = getrandom::u32().ok()?;
        if !tables.cookies.contains_key(&cookie) {
            cookies.insert(cookie);
        }
    }
    (cookies.len() == count).then(|| cookies.into_iter().collect())
}

/// The control connection of an admitted session.
fn control(shared: &Shared, stream: &TcpStream, lines: &mut Lines, session: &Arc<SinkSession>) {
    let accepted =
        Reply::Accepted(Accepted { token: session.token, clock: shared.clock, cookies: session.cookies.clone() });
    let deadline = clock::now_ns() + clock::nanos(shared.options.limits.session_time);
    let (ended, sent) = if say(stream, &accepted).is_err() {
        (SessionEnd::BrokenOff, None)
    } else {
        match lines.next(stream, deadline, &shared.stop) {
            WaitEnd::Line(line) => match understood(&line) {
                Ok(Request::End(End { sent })) if sent.len() == session.cookies.len() => {
                    await_stragglers(shared, session, &sent);
                    (SessionEnd::Complete, Some(sent))
                }
                _ => (SessionEnd::BrokenOff, None),
            },
            WaitEnd::Closed | WaitEnd::TooLong => (SessionEnd::BrokenOff, None),
            WaitEnd::Nothing if shared.stop.load(Ordering::Relaxed) => (SessionEnd::SinkStopped, None),
            WaitEnd::Nothing => (SessionEnd::TimeLimit, None),
        }
    };
    let report = close(shared, session, ended, sent.as_deref());
    if ended != SessionEnd::BrokenOff {
        let statistics = Reply::Statistics(Statistics { flows: report.flows.clone(), local_drops: report.local_drops });
        // What a sender that is gone does not hear, the report still has.
        let _ = say(stream, &statistics);
    }
    keep(&mut lock(&shared.finished), report);
}

/// Waits for what is still on its way: until all is there, or nothing has come for a while.
fn await_stragglers(shared: &Shared, session: &SinkSession, sent: &[u64]) {
    const QUIET_NS: i64 = 300_000_000;
    const MOST_NS: i64 = 5_000_000_000;
    let began = clock::now_ns();
    loop {
        let now = clock::now_ns();
        let traffic = lock(&session.traffic);
        let complete = traffic.flows.iter().zip(sent).all(|(account, sent)| match account {
            Account::Udp(account) => account.distinct() >= *sent,
            Account::Tcp(account) => account.ended,
        });
        let quiet = now - traffic.last_ns.max(began) > QUIET_NS;
        drop(traffic);
        if complete || quiet || now - began > MOST_NS || shared.stop.load(Ordering::Relaxed) {
            return;
        }
        clock::sleep_until_ns(now + 5_000_000);
    }
}

/// Takes a session out of the tables; what is known of it.
fn close(shared: &Shared, session: &Arc<SinkSession>, ended: SessionEnd, sent: Option<&[u64]>) -> SessionReport {
    {
        let mut tables = lock(&shared.tables);
        tables.sessions.remove(&session.token);
        for cookie in &session.cookies {
            tables.cookies.remove(cookie);
        }
    }
    session.ended.store(true, Ordering::Relaxed);
    let mut traffic = lock(&session.traffic);
    let flows = traffic.flows.iter_mut().enumerate().map(|(flow, account)| match account {
        Account::Udp(account) => account.reported(sent.and_then(|sent| sent.get(flow).copied()), session.same_clock),
        Account::Tcp(account) => account.reported(),
    });
    SessionReport {
        client: session.client,
        ended,
        same_clock: session.same_clock,
        local_drops: shared.local_drops.load(Ordering::Relaxed) - session.drops_before,
        flows: flows.collect(),
    }
}

/// The data of a TCP flow. `early`: octets that came with the first line.
fn read(shared: &Shared, stream: &TcpStream, client: SocketAddr, data: &Data, early: usize) {
    const POLL: Duration = Duration::from_millis(20);
    const BLOCK_OCTETS: usize = 256 << 10;
    let session = lock(&shared.tables).sessions.get(&data.token).cloned();
    let Some(session) = session.filter(|session| same_host(session.client.ip(), client.ip())) else {
        return;
    };
    let Ok(flow) = usize::try_from(data.flow) else { return };
    let enter = |octets: usize, ended: bool| {
        let now = clock::now_ns();
        let mut traffic = lock(&session.traffic);
        let since = if octets > 0 { traffic.since(now) } else { 0 };
        let Some(Account::Tcp(account)) = traffic.flows.get_mut(flow) else {
            return false;
        };
        if octets > 0 {
            account.read(octets as u64, now, since);
        }
        account.ended |= ended;
        true
    };
    if !enter(early, false) || stream.set_read_timeout(Some(POLL)).is_err() {
        return;
    }
    let mut block = vec![0; BLOCK_OCTETS];
    let mut stream = stream;
    while !session.ended.load(Ordering::Relaxed) && !shared.stop.load(Ordering::Relaxed) {
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(octets) => {
                enter(octets, false);
            }
            Err(error) if is_passing(&error) => {}
            Err(_) => break,
        }
    }
    enter(0, true);
}
