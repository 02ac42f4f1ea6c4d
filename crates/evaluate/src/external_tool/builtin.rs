//! The adapters that come with the program.

use super::adapter::Adapter;
use super::error::AdapterError;

/// Name and text of each, in the order of `docs/guide/external-tools.md`.
pub const BUILT_IN: [(&str, &str); 18] = [
    ("iperf3-tcp", include_str!("../../../../external-tools/iperf3-tcp.toml")),
    ("iperf3-udp", include_str!("../../../../external-tools/iperf3-udp.toml")),
    ("iperf2-tcp", include_str!("../../../../external-tools/iperf2-tcp.toml")),
    ("iperf2-udp", include_str!("../../../../external-tools/iperf2-udp.toml")),
    ("nuttcp-tcp", include_str!("../../../../external-tools/nuttcp-tcp.toml")),
    ("nuttcp-udp", include_str!("../../../../external-tools/nuttcp-udp.toml")),
    ("pchar", include_str!("../../../../external-tools/pchar.toml")),
    ("bing", include_str!("../../../../external-tools/bing.toml")),
    ("d-itg-udp", include_str!("../../../../external-tools/d-itg-udp.toml")),
    ("pathrate", include_str!("../../../../external-tools/pathrate.toml")),
    ("pathload", include_str!("../../../../external-tools/pathload.toml")),
    ("igi", include_str!("../../../../external-tools/igi.toml")),
    ("ptr", include_str!("../../../../external-tools/ptr.toml")),
    ("spruce", include_str!("../../../../external-tools/spruce.toml")),
    ("wbest", include_str!("../../../../external-tools/wbest.toml")),
    ("assolo", include_str!("../../../../external-tools/assolo.toml")),
    ("yaz", include_str!("../../../../external-tools/yaz.toml")),
    ("obudpst", include_str!("../../../../external-tools/obudpst.toml")),
];

/// The built-in adapter of this name; `None` if there is none.
pub fn builtin(name: &str) -> Option<Result<Adapter, AdapterError>> {
    let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    Some(Adapter::from_toml(text))
}

/// Their names, in a sentence.
pub(super) fn names() -> String {
    BUILT_IN.map(|(name, _)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_valid_and_called_what_its_file_is() {
        for (name, _) in BUILT_IN {
            let adapter = builtin(name).unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(adapter.name(), name);
            assert!(!adapter.needs().is_empty(), "{name}");
            // No distribution has these: whoever has them puts them on the search path.
            let built_by_hand =
                ["pathrate", "pathload", "igi", "ptr", "spruce", "wbest", "assolo", "yaz", "obudpst"].contains(&name);
            assert_eq!(adapter.package().is_none(), built_by_hand, "{name}");
        }
        assert!(builtin("pipechar").is_none());
    }
}
