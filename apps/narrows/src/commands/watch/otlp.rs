//! Sends the numbers of `/metrics` to a collector of OpenTelemetry (OTLP/HTTP), once a minute.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_notify::{Poster, SettingsError};
use narrows_watch::WallTime;
use narrows_web::{Live, Metrics};

use super::clocks;
use crate::exit::Failure;
use crate::interrupt;

/// Who gets them.
pub(super) struct Collector(Poster);

impl Collector {
    /// Refuses what is no address.
    pub(super) fn new(url: &str) -> Result<Self, Failure> {
        Poster::new(&address(url), LIMIT).map(Self).map_err(|error| match error {
            SettingsError::Channel { text, .. } => Failure::usage(format!("--otlp: {text}")),
            SettingsError::WithoutTls { what, .. } => {
                Failure::lacking(&format!("--otlp: {what}, and this build has no TLS"), "tls")
            }
            error => Failure::usage(format!("--otlp: {error}")),
        })
    }

    /// Sends until `stop` is set. What could not be sent is said on the pages; counters go on, so
    /// that nothing of them is lost.
    pub(super) fn start(self, live: Live, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
        let (began, stop) = (clocks::now(), Arc::clone(stop));
        let run = move || {
            let mut next = began.boot.after(EVERY);
            while !stop.load(Ordering::Relaxed) {
                interrupt::nap(LOOK);
                let now = clocks::now();
                if now.boot >= next {
                    next = now.boot.after(EVERY);
                    live.fault(OTLP, self.send(live.metrics(), began.wall, now.wall));
                }
            }
        };
        super::engine::threads::spawn("otlp", run)
    }

    /// What went wrong, if anything.
    fn send(&self, metrics: &Metrics, began: WallTime, now: WallTime) -> Option<String> {
        let sent = self.0.post("application/x-protobuf", &metrics.otlp(began, now));
        let fault = sent.err().map(|error| error.to_string());
        if let Some(fault) = &fault {
            tracing::warn!(fault, "metrics were not taken by the collector");
        }
        fault
    }
}

/// Metrics have a path of their own below a collector's address.
fn address(url: &str) -> String {
    let base = url.trim_end_matches('/');
    if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") }
}

const PATH: &str = "/v1/metrics";
/// The fault that pages show.
const OTLP: &str = "otlp";
const EVERY: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(250);
/// The collector may take as long for an answer.
const LIMIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_collector_gets_the_numbers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = thread::spawn(move || {
            let mut requests = Vec::new();
            for status in ["200 OK", "400 Bad Request"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let head: Vec<String> =
                    reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
                let head = head.join("\n").to_lowercase();
                let length = head.split_once("content-length: ").unwrap().1.lines().next().unwrap().parse().unwrap();
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").unwrap();
                requests.push((head, body));
            }
            requests
        });
        let live = Live::new().0;
        let Ok(collector) = Collector::new(&url) else { panic!("{url}") };
        let [began, now] = [1_000, 61_000].map(WallTime::from_millis);
        live.metrics().store(7, false, now);
        assert_eq!(collector.send(live.metrics(), began, now), None);
        assert!(collector.send(live.metrics(), began, now).is_some_and(|fault| fault.contains("400")));
        let requests = served.join().unwrap();
        let (head, body) = &requests[0];
        assert!(head.starts_with("post /v1/metrics http/1.1"), "{head}");
        assert!(head.contains("content-type: application/x-protobuf"), "{head}");
        assert_eq!(*body, live.metrics().otlp(began, now));
    }

    #[test]
    fn an_address_has_the_path_of_metrics_once() {
        for url in ["http://a:4318", "http://a:4318/", "http://a:4318/v1/metrics"] {
            assert_eq!(address(url), "http://a:4318/v1/metrics");
        }
        let refused = Collector::new("ftp://collector");
        assert!(refused.is_err_and(|failure| failure.text.contains("--otlp: url must begin with https://")));
    }
}
