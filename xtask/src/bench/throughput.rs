//! `narrows throughput` against iperf3 as a user runs both: rate and CPU time of TCP and UDP, and
//! how well an asked rate is met.

mod path;
mod run;
mod tcp;
mod udp;

use anyhow::Result;

use super::host_pair::{HostPair, REMOTE};
use super::program::{self, found};
use super::{Comparison, Options};

pub(super) const COMPARISON: Comparison =
    Comparison { name: "throughput", title: "Throughput as users measure it", about: ABOUT, run };

const ABOUT: &str = "\
`narrows throughput HOST` against `iperf3 -c HOST`: the same length, direction and congestion control, nothing else set.

- Rates are of payload, as each program's JSON has them (`end.sum_received`). A ratio of 1.00 is one that rounds to it.
- CPU time is that of client and server together, user and system, as the kernel accounts it to ended processes. It begins with the
  client's start and includes it. What a server used before the client came is left out.
- *veth* limits nothing. *tbf* is the kernel's shaper on the sender's end of the pair. *link* is this project's real-time link between
  two namespaces, with a queue of a bandwidth-delay product (at least 100 packets). Another process on the same machine plays it.

UDP: 1472 octets of payload. *As fast as goes* is `-b 0` for both. narrows lets the kernel cut packets out of one buffer
(`UDP_SEGMENT`), which iperf3 3.12 cannot. The error of an asked rate is that of the payload that left, over the time for which the
program says that it ran. Gaps are the times between two sends as narrows itself reports them.";

fn run(options: &Options) -> Result<String> {
    if let Some(why) = HostPair::obstacle() {
        return Ok(format!("skipped: {why}\n\n"));
    }
    if !found("iperf3") {
        return Ok("skipped: iperf3 is not installed\n\n".to_owned());
    }
    program::build(&["-p", "narrows", "--bin", "narrows"])?;
    let mut text = tcp::run(options)?;
    text += &udp::run(options)?;
    Ok(text)
}

/// Two hosts, and the receiver's address.
struct Hosts {
    host_pair: HostPair,
    address: String,
}

impl Hosts {
    fn on_a_pair() -> Result<Self> {
        Ok(Self { host_pair: HostPair::lay()?, address: REMOTE.to_owned() })
    }
}
