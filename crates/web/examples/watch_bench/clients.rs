//! Many who ask, and some who follow and do not read.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::served::Served;
use crate::{Failure, clock, nap, percentiles, say};

const PATHS: [&str; 8] = [
    "/",
    "/-/healthy",
    "/metrics",
    "/api/v1/targets",
    "/api/v1/series?target=t3&signal=available&since=24h",
    "/api/v1/series?target=t7&signal=queueing&since=1y&points=900",
    "/api/v1/events?since=7d",
    "/probe?target=t9",
];
/// Each address may ask forty times at once.
const ADDRESSES: u8 = 250;
const EACH: usize = 40;
const READERS: u16 = 200;

/// Connects from one of the host's own addresses, each of which has a rate of its own.
fn from(server: &Served, last: u8) -> Result<TcpStream, Failure> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from(([127, 0, 1, last], 0)).into())?;
    socket.connect(&server.address.into())?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

fn get(server: &Served, last: u8, path: &str) -> Result<u16, Failure> {
    let mut stream = from(server, last)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let head = String::from_utf8_lossy(answer.get(..12).ok_or("a short answer")?).into_owned();
    Ok(head.split(' ').nth(1).ok_or("no status")?.parse()?)
}

/// 10 000 requests of many addresses, four at a time, then as many of one.
pub(crate) fn many_requests(server: &Served) -> Result<(), Failure> {
    let began = clock();
    let asked = |first: u8| {
        let mut times = Vec::new();
        for last in (first..=ADDRESSES).step_by(4) {
            for n in 0..EACH {
                let began = clock();
                let status = get(server, last, PATHS[n % PATHS.len()]).map_err(|error| error.to_string())?;
                if status != 200 {
                    return Err(format!("{}: {status}", PATHS[n % PATHS.len()]));
                }
                times.push(began.elapsed());
            }
        }
        Ok(times)
    };
    let mut times = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=4).map(|first| scope.spawn(move || asked(first))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a client panicked".to_owned())?)
            .collect::<Result<Vec<_>, String>>()
    })?
    .concat();
    let rate = times.len() as f64 / began.elapsed().as_secs_f64();
    let measured = format!(
        "{} answered, {rate:.0} a second, {}; memory then {}",
        times.len(),
        percentiles(&mut times),
        server.memory()?
    );
    say("10 000 requests of 250 addresses, 4 at a time", "memory below 60 MB", &measured);
    let began = clock();
    let mut answered = 0;
    for _ in 0..10_000 {
        answered += u32::from(get(server, 251, "/-/healthy")? == 200);
    }
    let measured = format!(
        "{answered} answered in {:.0} s, the rest refused; memory then {}",
        began.elapsed().as_secs_f64(),
        server.memory()?
    );
    say("10 000 requests of one address", "20 a second and 40 at once", &measured);
    Ok(())
}

/// Readers who do not read while 20 MB of news come; after ten seconds they are left.
pub(crate) fn slow_readers(server: &mut Served) -> Result<(), Failure> {
    let mut all = Vec::new();
    for n in 0..READERS {
        let mut stream = from(server, u8::try_from(n % 200 / 20)?)?;
        write!(stream, "GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\n\r\n", server.address)?;
        all.push(stream);
    }
    nap(Duration::from_secs(1));
    let times = server.tell(20_000)?;
    let then = server.memory()?;
    say("200 readers that do not read, 20 000 messages of 1 kB", "memory below 60 MB", &format!("memory then {then}"));
    say("what a message takes whoever sends it, meanwhile", "below 5 ms (lateness of a pulse, p99)", &times);
    for _ in 0..14 {
        nap(Duration::from_secs(1));
        server.tell(100)?;
    }
    let left = all.iter_mut().map(ended).filter(|ended| *ended).count();
    say("of these, closed after 14 s", "200", &left.to_string());
    Ok(())
}

/// Whether the server closed this connection: what it had sent before is read first.
fn ended(stream: &mut TcpStream) -> bool {
    let mut buffer = vec![0; 1 << 16];
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
