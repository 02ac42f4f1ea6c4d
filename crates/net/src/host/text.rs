//! What files of `/proc` and `/sys` say. Pure: each takes the text, and makes nothing of what it
//! does not understand.

use std::net::{IpAddr, SocketAddr};

use narrows_diagnose::host::IdleState;

/// `/proc/net/softnet_stat`: packets, drops and squeezes, summed over processors. One line each,
/// words in hexadecimal.
pub(super) fn softnet(text: &str) -> Option<[u64; 3]> {
    let mut sum = [0u64; 3];
    let mut lines = 0;
    for line in text.lines() {
        let words: Vec<u64> =
            line.split_whitespace().take(3).map_while(|word| u64::from_str_radix(word, 16).ok()).collect();
        let words: [u64; 3] = words.try_into().ok()?;
        for (total, word) in sum.iter_mut().zip(words) {
            *total = total.saturating_add(word);
        }
        lines += 1;
    }
    (lines > 0).then_some(sum)
}

/// `/proc/net/tcp` or `tcp6`: established connections to `peer`, but for those to its port, that
/// have sent what is not acknowledged yet. Addresses are words of hexadecimal in the host's order
/// of octets (`proc_pid_net(5)`).
pub(super) fn sending(text: &str, peer: SocketAddr) -> Option<u64> {
    const ESTABLISHED: &str = "01";
    let mut lines = text.lines();
    lines.next().filter(|head| head.contains("rem_address"))?;
    let is_one = |line: &str| {
        let mut words = line.split_whitespace().skip(2);
        let (address, port) = words.next()?.split_once(':')?;
        let (state, queues) = (words.next()?, words.next()?);
        let unacknowledged = u64::from_str_radix(queues.split_once(':')?.0, 16).ok()?;
        let is_other = u16::from_str_radix(port, 16).ok()? != peer.port();
        let is_there = remote(address)? == peer.ip().to_canonical();
        Some(state == ESTABLISHED && unacknowledged > 0 && is_other && is_there)
    };
    let count = lines.filter(|line| is_one(line) == Some(true)).count();
    u64::try_from(count).ok()
}

/// An address of `/proc/net/tcp` (one word) or `tcp6` (four).
fn remote(hexadecimal: &str) -> Option<IpAddr> {
    let word = |place: usize| {
        let digits = hexadecimal.get(8 * place..8 * place + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match hexadecimal.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let mut octets = [0u8; 16];
            for (place, chunk) in octets.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(place)?);
            }
            Some(IpAddr::from(octets).to_canonical())
        }
        _ => None,
    }
}

/// A counter of `/proc/net/snmp` or `/proc/net/netstat`: a line of names and a line of values
/// behind the same first word.
pub(super) fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines =
        text.lines().filter_map(|line| line.split_once(':')).filter(|(first, _)| *first == group).map(|(_, rest)| rest);
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|word| word == name)?;
    values.split_whitespace().nth(place)?.parse().ok()
}

/// `/proc/pressure/cpu`: share of the last ten seconds in which some task waited, 0..1.
pub(super) fn pressure(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent: f64 = some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// `/proc/loadavg`: over the last minute.
pub(super) fn load(text: &str) -> Option<f64> {
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    (load.is_finite() && load >= 0.0).then_some(load)
}

/// A value of `/proc/cpuinfo`, of the first processor.
pub(super) fn processor<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
        .filter(|value| !value.is_empty())
}

/// Whether the first processor has a feature; `None` where features are not told by name (`flags`:
/// x86).
pub(super) fn has_flag(cpuinfo: &str, flag: &str) -> Option<bool> {
    Some(processor(cpuinfo, "flags")?.split_whitespace().any(|word| word == flag))
}

/// A list of processors or nodes (`0-3,8`): how many there are.
pub(super) fn list_length(text: &str) -> Option<u32> {
    let mut count = 0u32;
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    (count > 0).then_some(count)
}

/// A cache's size (`2048K`, `32M`), octets.
pub(super) fn cache_octets(text: &str) -> Option<u64> {
    let text = text.trim();
    let factor = match text.chars().last()? {
        'K' => 1 << 10,
        'M' => 1 << 20,
        'G' => 1 << 30,
        _ => 1,
    };
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|octets| *octets > 0)
}

/// `cpu.max` of a control group (`200000 100000`): processors; `None` for `max`, too.
pub(super) fn quota(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let (time, period): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (period > 0).then(|| time as f64 / period as f64)
}

/// A value of `cpu.stat`.
pub(super) fn stat(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

/// The path of this process's control group (version 2) from `/proc/self/cgroup`. Nothing that
/// leads out of the hierarchy.
pub(super) fn control_group(text: &str) -> Option<&str> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    (!path.split('/').any(|part| part == "..")).then_some(path)
}

/// Of each `cpuN` of `/proc/stat`: ticks in software interrupts (the seventh column), and of the
/// first eight columns together; those behind are counted in the first ones already.
pub(super) fn softirq_ticks(stat: &str) -> Vec<(u64, u64)> {
    const COLUMNS: usize = 8;
    let lines = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    lines
        .filter_map(|line| {
            let words = line.split_whitespace().skip(1).take(COLUMNS);
            let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            Some((*ticks.get(6)?, ticks.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks))))
        })
        .collect()
}

/// An interface's row of `/proc/net/dev`: dropped on receiving, without buffers on receiving,
/// dropped on sending.
pub(super) fn device_drops(text: &str, interface: &str) -> Option<[u64; 3]> {
    let row = text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == interface)?.1;
    let numbers: Vec<u64> = row.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some([*numbers.get(3)?, *numbers.get(4)?, *numbers.get(11)?])
}

/// An idle state from its files.
pub(super) fn idle_state(name: &str, latency_us: &str, disabled: &str) -> Option<IdleState> {
    let exit_us: u64 = latency_us.trim().parse().ok()?;
    Some(IdleState {
        name: name.trim().chars().filter(|c| !c.is_control()).take(32).collect(),
        exit_ns: exit_us.checked_mul(1000)?,
        disabled: disabled.trim() == "1",
    })
}

/// A PCI address (`0000:03:00.0`), as a driver tells it; it becomes part of a path.
pub(super) fn is_pci_address(text: &str) -> bool {
    let hex = |part: &str, length: usize| part.len() == length && part.chars().all(|c| c.is_ascii_hexdigit());
    let Some((front, function)) = text.split_once('.') else {
        return false;
    };
    let parts: Vec<&str> = front.split(':').collect();
    matches!(parts.as_slice(), [domain, bus, device] if (4..=8).contains(&domain.len()) && hex(domain, domain.len()) && hex(bus, 2) && hex(device, 2))
        && hex(function, 1)
}

/// Free memory by `/proc/meminfo`, octets.
pub(super) fn available_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// One line without what a terminal would act on, of a sensible length.
pub(super) fn clean(text: &str) -> Option<String> {
    let shown: String = text.trim().chars().filter(|c| !c.is_control()).take(120).collect();
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_of_each_processor() {
        let stat = "cpu  1 2 3 4 5 6 7 8\ncpu0 1 0 1 90 0 0 8 0 7 7\ncpu1 1 2\nintr 1\n";
        assert_eq!(softirq_ticks(stat), [(8, 100)]);
        let most = u64::MAX;
        assert_eq!(softirq_ticks(&format!("cpu0 {most} {most} 0 0 0 0 5 0")), [(5, most)]);
    }

    /// As a kernel wrote it (little-endian); three send to 192.0.2.1, one of them to the port of a
    /// server of ours.
    #[test]
    #[cfg(target_endian = "little")]
    fn sending_connections() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let row = |remote: &str, state: &str, queues: &str| {
            format!(
                "   0: 0100007F:9C40 {remote} {state} {queues} 01:00000014 00000000     0        0 1 1 0 20 4 30 10 -1\n"
            )
        };
        let rows = [
            row("010200C0:1389", "01", "0002A300:00000000"),
            row("010200C0:138A", "01", "00000001:00000000"),
            row("010200C0:21AC", "01", "00000001:00000000"),
            row("010200C0:1389", "01", "00000000:00000000"),
            row("010200C0:1389", "06", "00000001:00000000"),
            row("020200C0:1389", "01", "00000001:00000000"),
            "damaged\n".to_owned(),
        ];
        let peer = "192.0.2.1:8620".parse().unwrap();
        assert_eq!(sending(&format!("{head}{}", rows.concat()), peer), Some(2));
        assert_eq!(sending("", peer), None);
        let mapped = row("0000000000000000FFFF0000010200C0:1389", "01", "00000001:00000000");
        assert_eq!(sending(&format!("{head}{mapped}"), peer), Some(1));
        let six = row("B80D0120000000000000000001000000:1389", "01", "00000001:00000000");
        let peer = "[2001:db8::1]:8620".parse().unwrap();
        assert_eq!(sending(&format!("{head}{six}"), peer), Some(1));
    }

    #[test]
    fn softirqs() {
        let text = "01e46ed1 00000022 00000005 00000000 0\n058bc334 00000000 00000019 00000000 0\n";
        assert_eq!(softnet(text), Some([0x01e4_6ed1 + 0x058b_c334, 0x22, 0x1e]));
        for hostile in ["", "xyz", "1 2", "1 2 3\n4 5", "ffffffffffffffffff 0 0", "-1 0 0"] {
            assert_eq!(softnet(hostile), None, "{hostile:?}");
        }
        assert_eq!(softnet("ffffffffffffffff 0 0\nffffffffffffffff 0 1").unwrap(), [u64::MAX, 0, 1]);
    }

    #[test]
    fn counters() {
        let text = "Ip: Forwarding DefaultTTL\nIp: 2 64\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 9 1 7 8 5\n";
        assert_eq!(counter(text, "Udp", "RcvbufErrors"), Some(5));
        assert_eq!(counter(text, "Udp", "InErrors"), Some(7));
        assert_eq!(counter(text, "Udp", "Nothing"), None);
        assert_eq!(counter(text, "UdpLite", "InErrors"), None);
        // More names than values, a value that is none, a name without a line of values.
        assert_eq!(counter("Udp: a b\nUdp: 1\n", "Udp", "b"), None);
        assert_eq!(counter("Udp: a\nUdp: -1\n", "Udp", "a"), None);
        assert_eq!(counter("Udp: a\n", "Udp", "a"), None);
    }

    #[test]
    fn loads() {
        let text =
            "some avg10=2.02 avg60=4.34 avg300=3.88 total=22136082056\nfull avg10=0.00 avg60=0 avg300=0 total=0\n";
        assert_eq!(pressure(text), Some(0.0202));
        for hostile in
            ["", "some", "some avg10=x", "some avg10=nan", "some avg10=1e9", "full avg10=1.0", "some avg10=-1"]
        {
            assert_eq!(pressure(hostile), None, "{hostile:?}");
        }
        assert_eq!(load("0.52 0.40 0.30 1/200 999\n"), Some(0.52));
        for hostile in ["", "inf", "nan 1", "-1"] {
            assert_eq!(load(hostile), None, "{hostile:?}");
        }
    }

    #[test]
    fn processors() {
        let text = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu tsc constant_tsc nonstop_tsc hypervisor\n\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(processor(text, "model name"), Some("Intel(R) Xeon(R)"));
        assert_eq!(has_flag(text, "constant_tsc"), Some(true));
        assert_eq!(has_flag(text, "tsc_known"), Some(false));
        // On other processors features have no such names: unknown, not absent.
        assert_eq!(has_flag("Features : fp asimd\n", "hypervisor"), None);
        assert_eq!(list_length("0-3,8\n"), Some(5));
        assert_eq!(list_length("0"), Some(1));
        for hostile in ["", "3-0", "a", "0-4294967295,0-4294967295", "0,", "-1"] {
            assert_eq!(list_length(hostile), None, "{hostile:?}");
        }
        assert_eq!(cache_octets("2048K\n"), Some(2 << 20));
        assert_eq!(cache_octets("260M"), Some(260 << 20));
        for hostile in ["", "K", "0K", "-1K", "99999999999999999999K", "18446744073709551615G", "1é"] {
            assert_eq!(cache_octets(hostile), None, "{hostile:?}");
        }
    }

    #[test]
    fn control_groups() {
        assert_eq!(quota("150000 100000\n"), Some(1.5));
        for hostile in ["max 100000", "", "1", "1 0", "-1 100"] {
            assert_eq!(quota(hostile), None, "{hostile:?}");
        }
        assert_eq!(stat("usage_usec 1\nnr_throttled 17\n", "nr_throttled"), Some(17));
        assert_eq!(stat("nr_throttled x", "nr_throttled"), None);
        assert_eq!(control_group("12:cpu:/a\n0::/user.slice/x\n"), Some("user.slice/x"));
        assert_eq!(control_group("0::/\n"), Some(""));
        assert_eq!(control_group("0::/../../etc\n"), None);
    }

    #[test]
    fn devices() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n    lo: 1 2\n";
        assert_eq!(device_drops(text, "eth0"), Some([4, 5, 12]));
        assert_eq!(device_drops(text, "lo"), None);
        assert_eq!(device_drops(text, "eth"), None);
        for address in ["0000:03:00.0", "10000:e1:00.1"] {
            assert!(is_pci_address(address), "{address}");
        }
        for hostile in
            ["", "../../etc", "0000:03:00", "0000:03:00.0/..", "usb-1.2", "virtio0", "0000:03:0é.0", "é000:03:00.0"]
        {
            assert!(!is_pci_address(hostile), "{hostile}");
        }
    }

    #[test]
    fn the_rest() {
        let state = idle_state("C6\n", "133\n", "0\n").unwrap();
        assert_eq!((state.name.as_str(), state.exit_ns, state.disabled), ("C6", 133_000, false));
        assert_eq!(idle_state("C6", "18446744073709551615", "0"), None);
        assert_eq!(idle_state("C6", "", "0"), None);
        assert_eq!(available_memory("MemTotal: 1 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(available_memory("MemAvailable: lots"), None);
        assert_eq!(clean(" a\u{1b}[31mb\n"), Some("a[31mb".to_owned()));
        assert_eq!(clean("\u{7}\n"), None);
        assert_eq!(clean(&"x".repeat(1000)).unwrap().len(), 120);
    }

    proptest! {
        #[test]
        fn any_text_ends(text in "\\PC{0,200}|[0-9a-f :=.,\n-]{0,300}") {
            let _ = sending(&text, ([192, 0, 2, 1], 8620).into());
            let _ = (softnet(&text), counter(&text, "Udp", "InErrors"), pressure(&text), load(&text));
            let _ = (has_flag(&text, "tsc"), list_length(&text), cache_octets(&text), quota(&text), stat(&text, "a"));
            let _ = (control_group(&text), device_drops(&text, "eth0"), idle_state(&text, &text, &text));
            let _ = (is_pci_address(&text), available_memory(&text), clean(&text));
        }
    }
}
