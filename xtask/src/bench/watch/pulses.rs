//! Whether pulses go out on time while pages are asked for more than anybody would.
//!
//! Pulses of twenty targets go to UDP ports of loopback at which this program listens. Each target
//! has one a second; lateness is an arrival's distance from the earliest grid of seconds that its
//! target's pulses fit. It includes what this program takes to wake up.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use narrows_stat::quantile;
use socket2::{Domain, Socket, Type};

use super::process::{SETTLED, TARGETS, address, highest_memory, row, watch};
use crate::bench::program::nap;
use crate::shell::now;

const READERS: u8 = 200;
/// Three times the design's, so that there are more pulses meanwhile.
const REQUESTS: u32 = 30_000;
const CLIENTS: u8 = 4;
/// Traces of routes go to another one.
const PORT: u16 = 34_434;
const QUIET: Duration = Duration::from_secs(30);

/// The rows of the table; `store` is that of a year.
pub(super) fn rows(narrows: &Path, folder: &Path, store: &Path) -> Result<String> {
    let sockets = (1..=TARGETS).map(|number| UdpSocket::bind((address(number).as_str(), PORT)));
    let sockets = sockets.collect::<std::io::Result<Vec<_>>>().context("the ports of the pulses")?;
    let (program, port) = watch(narrows, folder, store, TARGETS, Some(&format!("udp:{PORT}")))?;
    let page = SocketAddr::from(([127, 0, 0, 1], port));
    nap(SETTLED);
    let quiet = while_doing(&sockets, || {
        nap(QUIET);
        Ok(())
    })?;
    let mut answered = 0;
    let busy = while_doing(&sockets, || {
        let readers = (0..READERS).map(|number| reader(page, number)).collect::<Result<Vec<_>>>()?;
        answered = requests(page)?;
        drop(readers);
        Ok(())
    })?;
    let memory = highest_memory(program.pid())?;
    program.stop(Duration::from_secs(20))?;
    let load = format!("{READERS} readers that do not read, {REQUESTS} requests: {answered} answered");
    Ok(row("lateness of a pulse, nobody looks", "", &text(&quiet))
        + &row(&format!("lateness of a pulse, {load}"), "p99 below 5 ms", &text(&busy))
        + &row("memory of that process, most", "below 60 MB", &format!("{:.1} MB", memory as f64 / 1e6)))
}

fn text(lateness_ms: &[f64]) -> String {
    let at = |share| quantile(lateness_ms, share).unwrap_or(f64::NAN);
    format!("median {:.2} ms, p99 {:.2} ms, most {:.1} ms of {}", at(0.5), at(0.99), at(1.0), lateness_ms.len())
}

/// How late pulses come meanwhile, in ms.
fn while_doing(sockets: &[UdpSocket], work: impl FnOnce() -> Result<()>) -> Result<Vec<f64>> {
    let (over, began) = (AtomicBool::new(false), now());
    std::thread::scope(|scope| {
        let heard: Vec<_> = sockets.iter().map(|socket| scope.spawn(|| arrivals(socket, began, &over))).collect();
        let done = work();
        over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for one in heard {
            all.extend(lateness_ms(&one.join().map_err(|_| anyhow!("a listener panicked"))??));
        }
        done.map(|()| all)
    })
}

/// When pulses came, in seconds.
fn arrivals(socket: &UdpSocket, began: Instant, over: &AtomicBool) -> Result<Vec<f64>> {
    let (mut times, mut buffer) = (Vec::new(), [0; 2_048]);
    // What came before anybody listened waits in the socket.
    socket.set_nonblocking(true)?;
    while socket.recv(&mut buffer).is_ok() {}
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    while !over.load(Ordering::Relaxed) {
        if socket.recv(&mut buffer).is_ok() {
            times.push(began.elapsed().as_secs_f64());
        }
    }
    Ok(times)
}

fn lateness_ms(times: &[f64]) -> Vec<f64> {
    let Some(first) = times.first() else { return Vec::new() };
    // Without whole seconds: pulses that were lost or late by more are on the same grid.
    let within: Vec<f64> = times.iter().map(|time| (time - first + 0.5).rem_euclid(1.0)).collect();
    let earliest = within.iter().copied().fold(f64::INFINITY, f64::min);
    within.iter().map(|time| 1e3 * (time - earliest)).collect()
}

/// Connects from one of the host's own addresses, each of which has a rate of its own.
fn from(page: SocketAddr, last: u8) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from(([127, 0, 1, last], 0)).into())?;
    socket.connect(&page.into())?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

fn reader(page: SocketAddr, number: u8) -> Result<TcpStream> {
    let mut stream = from(page, number / 20)?;
    write!(stream, "GET /api/v1/stream HTTP/1.1\r\nHost: {page}\r\n\r\n")?;
    Ok(stream)
}

/// How many were answered.
fn requests(page: SocketAddr) -> Result<u32> {
    let ask = |client: u8| -> Result<u32> {
        let mut answered = 0;
        for number in 0..REQUESTS / u32::from(CLIENTS) {
            // Each address may ask twenty times a second; there are sixty of them for each client.
            let last = 10 + 60 * client + u8::try_from(number % 60)?;
            let mut stream = from(page, last)?;
            let question = ["targets", "events", "series?target=t1&signal=available&since=1y"][number as usize % 3];
            write!(stream, "GET /api/v1/{question} HTTP/1.1\r\nHost: {page}\r\nConnection: close\r\n\r\n")?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            answered += u32::from(answer.starts_with(b"HTTP/1.1 200"));
        }
        Ok(answered)
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || ask(client))).collect();
        clients.into_iter().map(|one| one.join().map_err(|_| anyhow!("a client panicked"))?).sum()
    })
}
