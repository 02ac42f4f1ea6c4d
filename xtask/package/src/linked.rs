//! What a program needs of the system: its shared libraries and their versions.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use elf::ElfBytes;
use elf::endian::AnyEndian;

/// Pairs of library and version, such as `libc.so.6` and `GLIBC_2.34`.
pub(crate) fn versions(program: &[u8]) -> Result<BTreeSet<(String, String)>> {
    let file = ElfBytes::<AnyEndian>::minimal_parse(program).context("not a program")?;
    let mut needed = BTreeSet::new();
    let (Some(table), Some((symbols, _))) = (file.symbol_version_table()?, file.dynamic_symbol_table()?) else {
        return Ok(needed);
    };
    for index in 0..symbols.len() {
        if let Some(need) = table.get_requirement(index)? {
            needed.insert((need.file.to_owned(), need.name.to_owned()));
        }
    }
    Ok(needed)
}

/// The newest version of the C library among them.
pub(crate) fn newest_libc(needed: &BTreeSet<(String, String)>) -> Option<String> {
    let number = |text: &str| text.split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>();
    let versions = needed.iter().filter_map(|(_, version)| version.strip_prefix("GLIBC_"));
    let newest = versions.filter_map(|version| Some((number(version)?, version))).max();
    newest.map(|(_, version)| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        let needed = ["GLIBC_2.4", "GLIBC_2.34", "GLIBC_2.17", "GLIBC_ABI_DT_RELR", "GCC_4.2.0"];
        let needed = needed.map(|version| ("libc.so.6".to_owned(), version.to_owned())).into();
        assert_eq!(newest_libc(&needed).as_deref(), Some("2.34"));
    }

    #[test]
    fn this_test_needs_the_c_library() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(newest_libc(&versions(&own).unwrap()).is_some());
        assert!(versions(b"no program").is_err());
    }
}
