//! What the kernel tells of programs in nodes.

/// Whether somebody listens on a TCP port in the network namespace in which a process lives. A
/// connection to find out would be taken for a client.
pub fn listens(process: u32, port: u16) -> bool {
    /// State of a listening socket.
    const LISTEN: &str = "0A";
    sockets(process, port, LISTEN) > 0
}

/// Open TCP connections of this local port in the network namespace in which a process lives.
pub fn established(process: u32, port: u16) -> usize {
    /// State of an open connection.
    const OPEN: &str = "01";
    sockets(process, port, OPEN)
}

/// Sockets of this local port and state in `/proc/<pid>/net/tcp` and `tcp6`, `proc_pid_net(5)`.
fn sockets(process: u32, port: u16, state: &str) -> usize {
    let wanted = format!(":{port:04X}");
    let of = |file: &str| {
        let table = std::fs::read_to_string(format!("/proc/{process}/net/{file}")).unwrap_or_default();
        let found = table.lines().skip(1).filter(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(1).is_some_and(|local| local.ends_with(&wanted)) && fields.get(3) == Some(&state)
        });
        found.count()
    };
    of("tcp") + of("tcp6")
}
