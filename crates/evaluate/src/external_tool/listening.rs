//! Whether somebody listens at a port, without knocking: a server that serves once would take the
//! knock for its client.

/// Whether a table of `/proc/net/tcp` or `tcp6` (`proc_net_tcp.txt`) has a listening socket at this
/// port.
pub(super) fn tcp(table: &str, port: u16) -> bool {
    // TCP_LISTEN is 0x0A.
    any(table, port, |state| state == "0A")
}

/// Whether a table of `/proc/net/udp` or `udp6` has a socket bound to this port.
pub(super) fn udp(table: &str, port: u16) -> bool {
    any(table, port, |_| true)
}

/// Columns: number, local address and port in hexadecimal, remote ones, state.
fn any(table: &str, port: u16, state: impl Fn(&str) -> bool) -> bool {
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next().and_then(|local| local.rsplit_once(':'));
        let here = local.and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        here == Some(port) && words.nth(1).is_some_and(&state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 51853 1 0000 100 0 0 10 0
   1: 0100007F:9C40 0100007F:1451 01 00000000:00000000 00:00000000 00000000     0        0 51854 1 0000 20 4 30 10 -1
garbage
   2: 0100007F
";

    #[test]
    fn a_listener_is_seen_and_a_connection_is_none() {
        assert!(tcp(TABLE, 5201));
        assert!(!tcp(TABLE, 40_000));
        assert!(udp(TABLE, 40_000));
        assert!(!tcp(TABLE, 80));
        assert!(!udp("", 80));
    }
}
