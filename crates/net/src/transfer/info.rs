//! `TCP_INFO`, by offset: each kernel returns as much of the structure as it knows, and no field
//! beyond that is read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use narrows_probe::probes::{TcpMarks, TcpSample, TcpState};
use narrows_units::{BitRate, Stamp};

use crate::clock;
use crate::sys::option;

/// The structure as the kernel filled it (Linux `include/uapi/linux/tcp.h`).
#[derive(Debug, Clone, Copy)]
pub struct TcpInfo {
    octets: [u8; Self::OCTETS],
    length: usize,
    /// `TCP_CC_INFO` of BBR: its pacing gain.
    bbr_pacing_gain: Option<u32>,
    at_ns: i64,
}

impl TcpInfo {
    const OCTETS: usize = 256;

    /// Reads it from a connection; `congestion` is the name of its congestion control.
    pub fn read(stream: &impl AsFd, congestion: &str) -> io::Result<Self> {
        let fd = stream.as_fd();
        let mut octets = [0; Self::OCTETS];
        let at_ns = clock::now_ns();
        let length = option::get(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut octets)?;
        Ok(Self {
            octets,
            length,
            bbr_pacing_gain: if congestion.starts_with("bbr") { bbr_pacing_gain(fd) } else { None },
            at_ns,
        })
    }

    fn u8(&self, offset: usize) -> Option<u8> {
        self.octets[..self.length].get(offset).copied()
    }

    fn u16(&self, offset: usize) -> Option<u16> {
        Some(u16::from_ne_bytes(self.octets[..self.length].get(offset..offset + 2)?.try_into().ok()?))
    }

    fn u32(&self, offset: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(self.octets[..self.length].get(offset..offset + 4)?.try_into().ok()?))
    }

    fn u64(&self, offset: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(self.octets[..self.length].get(offset..offset + 8)?.try_into().ok()?))
    }

    fn micros(value: Option<u64>) -> Option<Duration> {
        value.map(Duration::from_micros)
    }

    /// Octets acknowledged, the SYN of an active opener included as one.
    pub fn acked_octets(&self) -> u64 {
        self.u64(120).unwrap_or(0)
    }

    /// Octets received in order.
    pub fn received_octets(&self) -> Option<u64> {
        self.u64(128)
    }

    /// Octets written and never yet sent.
    pub fn unsent_octets(&self) -> Option<u32> {
        self.u32(144)
    }

    /// The path MTU that the connection works with, in IP octets.
    pub fn path_mtu(&self) -> Option<u32> {
        self.u32(60)
    }

    /// The smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        Duration::from_micros(self.u32(68).unwrap_or(0).into())
    }

    /// Window scale that the peer announced, and that this side announced.
    pub fn window_scales(&self) -> (u8, u8) {
        let octet = self.u8(6).unwrap_or(0);
        (octet & 15, octet >> 4)
    }

    /// As the estimators want it. `acked_before` octets were acknowledged before the transfer's
    /// first.
    pub fn sample(&self, acked_before: u64) -> TcpSample {
        /// The threshold of a connection that has never left slow start.
        const NEVER: u32 = 0x7fff_ffff;
        let app_limited = self.u8(7).unwrap_or(0) & 1 == 1;
        let octet_rate = |value: u64| value.checked_mul(8).map(BitRate::from_bps);
        let wide = |offset| self.u32(offset).map(u64::from);
        TcpSample {
            at: Stamp::from_nanos(self.at_ns),
            state: match self.u8(1) {
                Some(1) => TcpState::Disorder,
                Some(2) => TcpState::Cwr,
                Some(3) => TcpState::Recovery,
                Some(4) => TcpState::Loss,
                _ => TcpState::Open,
            },
            rtt: self.rtt(),
            rtt_var: Self::micros(wide(72)).unwrap_or_default(),
            // All ones until the first measurement.
            min_rtt: Self::micros(wide(148).filter(|&micros| micros != u64::from(u32::MAX))),
            mss_octets: self.u32(16).unwrap_or(0),
            cwnd_segments: self.u32(80).unwrap_or(0),
            ssthresh_segments: self.u32(76).filter(|&segments| segments < NEVER),
            in_flight_segments: self.in_flight(),
            acked_octets: self.acked_octets().saturating_sub(acked_before),
            sent_octets: self.u64(200),
            retransmitted_octets: self.u64(208),
            retransmitted_segments: self.u32(100).unwrap_or(0),
            timeouts: self.u16(240).map(u32::from),
            delivery_rate: self.u64(160).filter(|&rate| rate > 0).and_then(octet_rate).map(|rate| (rate, app_limited)),
            pacing_rate: self.u64(104).filter(|&rate| rate != u64::MAX).and_then(octet_rate),
            peer_window_octets: self.u32(228),
            unsent_octets: self.unsent_octets(),
            busy: Self::micros(self.u64(168)),
            limited_by_receive_window: Self::micros(self.u64(176)),
            limited_by_send_buffer: Self::micros(self.u64(184)),
            bbr_pacing_gain: self.bbr_pacing_gain,
            marks: self.marks(),
        }
    }

    fn marks(&self) -> TcpMarks {
        /// `TCPI_OPT_WSCALE`: both sides sent the option.
        const SCALED: u8 = 4;
        let (peer, _) = self.window_scales();
        TcpMarks {
            window_scaled: self.u8(5).map(|options| options & SCALED != 0 && peer > 0),
            reordered: self.u32(220),
            needless: self.u32(216),
            path_mtu_octets: self.path_mtu().filter(|&octets| octets > 0),
        }
    }

    /// Segments out, less those that were selectively acknowledged or are deemed lost, plus those
    /// sent again (RFC 6675's pipe).
    fn in_flight(&self) -> u32 {
        let field = |offset| self.u32(offset).unwrap_or(0);
        let (unacked, sacked, lost, resent) = (field(24), field(28), field(32), field(36));
        unacked.saturating_add(resent).saturating_sub(sacked.saturating_add(lost))
    }
}

/// `struct tcp_bbr_info`: rate (two words), smallest round trip, pacing gain, window gain.
fn bbr_pacing_gain(fd: BorrowedFd<'_>) -> Option<u32> {
    let mut octets = [0; 5 * 4];
    let length = option::get(fd, libc::IPPROTO_TCP, libc::TCP_CC_INFO, &mut octets).ok()?;
    Some(u32::from_ne_bytes(octets[..length].get(12..16)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(length: usize, fields: &[(usize, &[u8])]) -> TcpInfo {
        let mut octets = [0; TcpInfo::OCTETS];
        for (offset, value) in fields {
            octets[*offset..offset + value.len()].copy_from_slice(value);
        }
        TcpInfo { octets, length, bbr_pacing_gain: None, at_ns: 7 }
    }

    #[test]
    fn fields_stand_where_the_kernel_puts_them() {
        let sample = info(
            256,
            &[
                (1, &[3]),
                (7, &[1]),
                (16, &1448u32.to_ne_bytes()),
                (24, &100u32.to_ne_bytes()),
                (28, &30u32.to_ne_bytes()),
                (32, &10u32.to_ne_bytes()),
                (36, &5u32.to_ne_bytes()),
                (68, &20_000u32.to_ne_bytes()),
                (76, &0x7fff_ffffu32.to_ne_bytes()),
                (104, &u64::MAX.to_ne_bytes()),
                (120, &1_001u64.to_ne_bytes()),
                (148, &u32::MAX.to_ne_bytes()),
                (160, &1_250_000u64.to_ne_bytes()),
                (240, &2u16.to_ne_bytes()),
            ],
        )
        .sample(1);
        assert_eq!((sample.state, sample.mss_octets, sample.in_flight_segments), (TcpState::Recovery, 1448, 65));
        assert_eq!((sample.rtt, sample.min_rtt), (Duration::from_millis(20), None));
        assert_eq!((sample.ssthresh_segments, sample.pacing_rate), (None, None));
        assert_eq!((sample.acked_octets, sample.timeouts), (1000, Some(2)));
        assert_eq!(sample.delivery_rate, Some((BitRate::from_mbps(10), true)));
    }

    #[test]
    fn an_older_kernel_has_fewer_fields() {
        let sample = info(192, &[(200, &[9; 8]), (228, &[9; 4]), (168, &5u64.to_ne_bytes())]).sample(0);
        assert_eq!((sample.sent_octets, sample.peer_window_octets, sample.timeouts), (None, None, None));
        assert_eq!(sample.busy, Some(Duration::from_micros(5)));
    }
}
