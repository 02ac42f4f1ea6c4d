//! The Debian package: an `ar` of a version, control files and data.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use md5::{Digest, Md5};

use crate::contents::{self, Layout, file, packaging};
use crate::linked;
use crate::release::{DESCRIPTION, HOMEPAGE, MAINTAINER, Release, SUMMARY, deb_arch};
use crate::tree::{Tree, gzip, xz};

const LAYOUT: Layout = Layout { unit: "lib/systemd/system", zsh: "usr/share/zsh/vendor-completions" };

pub(crate) fn make(release: &Release, program: &[u8]) -> Result<Vec<u8>> {
    let mut data = contents::installed(program, &LAYOUT)?;
    let documents = "usr/share/doc/narrows";
    data.add(format!("{documents}/copyright"), packaging("copyright")?);
    data.add(format!("{documents}/changelog.gz"), gzip(file("CHANGELOG.md")?.as_bytes())?);
    data.add(format!("{documents}/changelog.Debian.gz"), gzip(changelog(release).as_bytes())?);
    data.add("usr/share/lintian/overrides/narrows", packaging("deb/lintian-overrides")?);
    let mut control = Tree::default();
    control.add("control", fields(release, &depends(program)?, data.octets()));
    control.add("md5sums", md5sums(&data));
    for script in ["postinst", "prerm", "postrm"] {
        control.add_program(script, packaging(&format!("deb/{script}"))?);
    }
    ar(
        release.epoch,
        &[
            ("debian-binary", b"2.0\n"),
            ("control.tar.xz", &xz(&control.tar("./", release.epoch)?)?),
            ("data.tar.xz", &xz(&data.tar("./", release.epoch)?)?),
        ],
    )
}

/// What Debian calls the libraries that the program asks for.
fn depends(program: &[u8]) -> Result<String> {
    let needed = linked::versions(program)?;
    let libc = linked::newest_libc(&needed).context("the program does not ask for the C library")?;
    let mut depends = format!("libc6 (>= {libc})");
    for (library, _) in &needed {
        match library.as_str() {
            "libgcc_s.so.1" if !depends.contains("libgcc") => depends.push_str(", libgcc-s1 (>= 4.2)"),
            "libgcc_s.so.1" => {}
            // All of them come with libc6.
            other => ensure!(
                ["libc.so.6", "libm.so.6"].contains(&other) || other.starts_with("ld-linux"),
                "which package has {other}?"
            ),
        }
    }
    Ok(depends)
}

fn fields(release: &Release, depends: &str, octets: usize) -> String {
    let mut description = String::new();
    for line in DESCRIPTION.lines() {
        let _ = writeln!(description, " {line}");
    }
    format!(
        "Package: narrows\nVersion: {}-1\nArchitecture: {}\nMaintainer: {MAINTAINER}\nInstalled-Size: {}\n\
         Depends: {depends}\nSuggests: systemd\nSection: net\nPriority: optional\nHomepage: {HOMEPAGE}\n\
         Description: {SUMMARY}\n{description}",
        release.version,
        deb_arch(),
        octets.div_ceil(1024),
    )
}

fn changelog(release: &Release) -> String {
    format!(
        "narrows ({}-1) unstable; urgency=medium\n\n  * Release {0}; changelog.gz has its changes.\n\n -- {MAINTAINER}  {}\n",
        release.version, release.date
    )
}

fn md5sums(data: &Tree) -> String {
    let mut out = String::new();
    for (path, file) in data.files() {
        for octet in Md5::digest(&file.octets) {
            let _ = write!(out, "{octet:02x}");
        }
        let _ = writeln!(out, "  {path}");
    }
    out
}

/// The oldest archive format: a line of 60 octets before each member, which has an even size.
fn ar(epoch: u32, members: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, octets) in members {
        ensure!(name.len() <= 16, "{name} is too long for ar");
        let head = format!("{name:<16}{epoch:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", octets.len());
        out.extend(head.into_bytes());
        out.extend_from_slice(octets);
        if octets.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release() -> Release {
        Release {
            version: "1.2.3".to_owned(),
            epoch: 1_600_000_000,
            date: "Sun, 13 Sep 2020 12:26:40 +0000".to_owned(),
        }
    }

    #[test]
    fn members_begin_at_even_places() {
        let octets = ar(7, &[("a", b"odd"), ("b", b"even")]).unwrap();
        assert_eq!(octets.len(), 8 + 60 + 4 + 60 + 4);
        assert!(octets[72..].starts_with(b"b               7           0     0     100644  4         `\neven"));
        assert!(ar(7, &[("a-name-of-17-byte", b"")]).is_err());
    }

    #[test]
    fn control_fields_have_no_empty_line() {
        let text = fields(&release(), "libc6 (>= 2.34)", 2049);
        assert!(text.contains("\nVersion: 1.2.3-1\n") && text.contains("\nInstalled-Size: 3\n"), "{text}");
        assert!(text.lines().all(|line| !line.trim().is_empty()), "{text}");
        assert!(changelog(&release()).ends_with("  Sun, 13 Sep 2020 12:26:40 +0000\n"));
    }

    #[test]
    fn sums_are_those_of_md5sum() {
        let mut tree = Tree::default();
        tree.add("usr/x", "abc");
        assert_eq!(md5sums(&tree), "900150983cd24fb0d6963f7d28e17f72  usr/x\n");
    }
}
