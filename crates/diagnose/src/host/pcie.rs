//! What a PCI Express slot carries.

use narrows_units::BitRate;

/// Octets around each packet of the transaction layer: framing, sequence number, header of three or
/// four words, CRC (PCI Express Base Specification 3.0 §2.2, §3.5; 20 to 28, so 26 with a 64-bit
/// address).
const AROUND: f64 = 26.0;
/// Payload of one such packet that hosts usually agree on.
const USUAL_PAYLOAD: f64 = 256.0;

/// Payload rate of a slot, from what the system says of it: transfers per second (`8.0 GT/s PCIe`)
/// and lanes (`8`, or `x8`). The line code is told by the transfer rate: 8b/10b up to 5 GT/s,
/// 128b/130b from 8 GT/s on; 64 GT/s come in flits (242 of 256 octets). `None` for anything else.
pub fn payload_rate(transfers: &str, width: &str) -> Option<BitRate> {
    let giga: f64 = transfers.split_whitespace().next()?.parse().ok()?;
    let lanes: u32 = width.trim().trim_start_matches('x').parse().ok()?;
    let sane = transfers.contains("GT/s") && (1.0..=256.0).contains(&giga) && (1..=64).contains(&lanes);
    if !sane {
        return None;
    }
    let code = if giga < 7.9 {
        0.8
    } else if giga < 60.0 {
        128.0 / 130.0
    } else {
        242.0 / 256.0
    };
    let share = USUAL_PAYLOAD / (USUAL_PAYLOAD + AROUND);
    BitRate::from_bps_f64(giga * 1e9 * code * f64::from(lanes) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spec's table: gen2 x8 ~27, gen3 x8 52 to 57, gen3 x16 and gen4 x8 ~110, gen4 x16 ~220,
    /// gen5 x16 ~440 Gbit/s.
    #[test]
    fn slots() {
        for (transfers, width, low, high) in [
            ("5.0 GT/s PCIe", "8", 27.0, 30.0),
            ("8.0 GT/s PCIe", "x8", 52.0, 57.5),
            ("8.0 GT/s PCIe", "16", 110.0, 115.0),
            ("16.0 GT/s PCIe", "8", 110.0, 115.0),
            ("16.0 GT/s PCIe", "16", 220.0, 230.0),
            ("32.0 GT/s PCIe", "16", 440.0, 460.0),
        ] {
            let gbps = payload_rate(transfers, width).unwrap().as_f64() / 1e9;
            assert!(gbps > low && gbps < high, "{transfers} {width}: {gbps}");
        }
    }

    #[test]
    fn what_is_no_slot_has_no_rate() {
        for (transfers, width) in [
            ("Unknown", "8"),
            ("Unknown speed", "0"),
            ("8.0 GT/s PCIe", "0"),
            ("8.0 GT/s PCIe", "255"),
            ("nan GT/s", "8"),
            ("inf GT/s", "8"),
            ("-8 GT/s", "8"),
            ("1e300 GT/s", "8"),
            ("", ""),
            ("8.0", "8"),
            ("8.0 GT/s PCIe", "xx"),
        ] {
            assert_eq!(payload_rate(transfers, width), None, "{transfers} {width}");
        }
    }
}
