//! What is released: version, time and machine.

use std::env::consts::ARCH;

use anyhow::{Context, Result};

use crate::shell::{output, root};

/// The tree's version and the time that every file in a package bears.
pub(crate) struct Release {
    pub(crate) version: String,
    /// Seconds since 1970: the commit's, or `SOURCE_DATE_EPOCH`.
    pub(crate) epoch: u32,
    /// The same as mail writes it, in UTC.
    pub(crate) date: String,
}

/// Who answers for the packages.
pub(crate) const MAINTAINER: &str = "The narrows maintainers <narrows-net@users.noreply.github.com>";
pub(crate) const HOMEPAGE: &str = "https://github.com/narrows-net/narrows";
pub(crate) const LICENSE: &str = "MIT OR Apache-2.0";
pub(crate) const SUMMARY: &str = "measure what a network path carries, and what limits it";
/// Lines of at most 79 columns.
pub(crate) const DESCRIPTION: &str = "\
narrows measures the capacity of a network path, what is free of it now, and
where and why it is limited. Measurements run between two hosts of which one
runs 'narrows serve', or from one host alone.
It also simulates paths, emulates them between network namespaces, and
evaluates published methods of measurement.";

impl Release {
    pub(crate) fn of_the_tree() -> Result<Self> {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).context("no Cargo.toml")?;
        let line = manifest.lines().find_map(|line| line.strip_prefix("version = "));
        let version = line.context("the workspace has no version")?.trim_matches('"').to_owned();
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(given) => given,
            Err(_) => output("git", &["log", "-1", "--format=%ct"])?,
        };
        let epoch: u32 = epoch.trim().parse().context("SOURCE_DATE_EPOCH is no number of seconds")?;
        let date = output("date", &["--utc", "--rfc-email", &format!("--date=@{epoch}")])?.trim().to_owned();
        Ok(Self { version, epoch, date })
    }

    pub(crate) fn deb(&self) -> String {
        format!("narrows_{}-1_{}.deb", self.version, deb_arch())
    }

    pub(crate) fn rpm(&self) -> String {
        format!("narrows-{}-1.{ARCH}.rpm", self.version)
    }

    pub(crate) fn archive(&self) -> String {
        format!("{}.tar.xz", self.archive_folder())
    }

    /// The one folder in the archive.
    pub(crate) fn archive_folder(&self) -> String {
        format!("narrows-{}-{ARCH}-linux", self.version)
    }

    pub(crate) fn oci(&self) -> String {
        format!("narrows-{}-{ARCH}.oci", self.version)
    }
}

/// Debian's name of this machine, which is also that of OCI.
pub(crate) fn deb_arch() -> &'static str {
    match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "i386",
        other => other,
    }
}
