use std::time::Duration;

use narrows_units::{BitRate, Octets};

use super::*;

params! {
    /// One of each kind.
    #[derive(Debug, Clone, PartialEq)]
    struct Sample {
        /// Whose constants.
        faithful: bool = "ours" is { "ours" => false, "tool" => true } { name: "preset", source: "ours" },
        /// Packets to send.
        packets: u32 = "20" { range: Between("2", "100"), unit: "packets", source: "ours", presets: &[("tool", "50")] },
        /// Time between them.
        spacing: Duration = "10 ms" { range: Between("0 s", "1 s") },
        /// A rate.
        capacity: Option<BitRate> = "measured" { range: AtLeast("1 bit/s") },
        /// A length.
        size: Option<u16> = "path MTU" { range: Between("68", "9000"), unset: Some("0"), presets: &[("tool", "1000")] },
        /// An amount.
        most: u64 = "2 MB" from Octets => (Octets::count) { range: AtLeast("1 B") },
        /// Letters.
        word: usize = "abc" with (|text| Ok(text.len())) { range: Described("letters") },
        /// At least how many.
        least: u32 = "1" { range: Any },
    }
    check Sample::check;
}

impl Sample {
    fn check(&self) -> Result<(), ParamError> {
        if self.least <= self.packets {
            return Ok(());
        }
        Err(ParamError::OutOfRange {
            name: "least",
            value: self.least.to_string(),
            why: "no more than packets".to_owned(),
        })
    }
}

fn sample(pairs: &[(&str, &str)]) -> Result<Sample, String> {
    let raw: RawParams = pairs.iter().copied().collect();
    Sample::try_from(&raw).map_err(|error| error.to_string())
}

#[test]
fn one_declaration_gives_defaults_presets_and_refusals() {
    let usual = Sample {
        faithful: false,
        packets: 20,
        spacing: Duration::from_millis(10),
        capacity: None,
        size: None,
        most: 2_000_000,
        word: 3,
        least: 1,
    };
    assert_eq!(Sample::default(), usual);
    let tool = sample(&[("preset", "tool"), ("capacity", "10 Mbit/s"), ("word", "")]).unwrap();
    let expected = Sample {
        faithful: true,
        packets: 50,
        size: Some(1000),
        capacity: Some(BitRate::from_mbps(10)),
        word: 0,
        ..usual.clone()
    };
    assert_eq!(tool, expected);
    assert_eq!(sample(&[("preset", "tool"), ("packets", "3")]).unwrap().packets, 3);
    assert_eq!(sample(&[("preset", "tool"), ("size", "0")]).unwrap().size, None);
    for (name, value, why) in [
        ("preset", "paper", "preset = \"paper\": write ours or tool"),
        ("packets", "101", "packets = 101 is out of range: 2 to 100 packets"),
        ("packets", "many", "packets = \"many\": invalid digit found in string"),
        ("spacing", "1001 ms", "spacing = 1001 ms is out of range: 0 s to 1 s"),
        ("capacity", "0 bit/s", "capacity = 0 bit/s is out of range: at least 1 bit/s"),
        ("size", "67", "size = 67 is out of range: 68 to 9000"),
        ("most", "0 B", "most = 0 B is out of range: at least 1 B"),
        ("least", "21", "least = 21 is out of range: no more than packets"),
    ] {
        assert_eq!(sample(&[(name, value)]), Err(why.to_owned()));
    }
}

#[test]
fn the_table_has_a_row_for_each() {
    let text = table(Sample::PARAMETERS);
    assert_eq!(text.lines().count(), 2 + Sample::PARAMETERS.len(), "{text}");
    assert!(text.contains("| 20 (tool: 50) "), "{text}");
    assert!(text.contains("| 68 to 9000; 0: path MTU "), "{text}");
    assert!(text.contains("| Packets to send "), "{text}");
}
