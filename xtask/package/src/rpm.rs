//! The RPM package.

use std::env::consts::ARCH;

use anyhow::Result;
use rpm::{BuildConfig, CompressionWithLevel, Dependency, FileOptions, PackageBuilder};

use crate::contents::{self, Layout, file, packaging};
use crate::linked;
use crate::release::{DESCRIPTION, HOMEPAGE, LICENSE, MAINTAINER, Release, SUMMARY};

const LAYOUT: Layout = Layout { unit: "usr/lib/systemd/system", zsh: "usr/share/zsh/site-functions" };
const LICENSES: &str = "usr/share/licenses/narrows";

pub(crate) fn make(release: &Release, program: &[u8]) -> Result<Vec<u8>> {
    let mut tree = contents::installed(program, &LAYOUT)?;
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree.add(format!("{LICENSES}/{license}"), file(license)?);
    }
    tree.add("usr/share/doc/narrows/CHANGELOG.md", file("CHANGELOG.md")?);

    let mut builder = PackageBuilder::new("narrows", &release.version, LICENSE, ARCH, &capitalised(SUMMARY));
    let config = BuildConfig::v4().source_date(release.epoch).compression(CompressionWithLevel::Gzip(9));
    builder.using_config(config).release("1").url(HOMEPAGE).packager(MAINTAINER).description(DESCRIPTION);
    builder.build_host("localhost").group("Applications/Internet");
    let entry = format!("- Release {}; CHANGELOG.md has its changes", release.version);
    builder.add_changelog_entry(format!("{MAINTAINER} - {}-1", release.version), entry, release.epoch);
    for folder in tree.folders().into_iter().filter(|folder| is_own(folder)) {
        builder.with_dir_entry(FileOptions::dir(format!("/{folder}")).permissions(0o755))?;
    }
    for (path, file) in tree.files() {
        let options = FileOptions::new(format!("/{path}"));
        let options = options.permissions(if file.program { 0o755 } else { 0o644 });
        let options = match path {
            _ if path.starts_with("usr/share/doc/") || path.starts_with("usr/share/man/") => options.doc(),
            _ if path.starts_with(LICENSES) => options.license(),
            _ => options,
        };
        builder.with_file_contents(file.octets.clone(), options)?;
    }
    // As rpmbuild derives them: the library with each version of it that is used.
    let bits = if usize::BITS == 64 { "(64bit)" } else { "" };
    for (library, version) in linked::versions(program)? {
        builder.requires(Dependency::any(format!("{library}({version}){bits}")));
    }
    builder.requires(Dependency::any("/bin/sh"));
    builder.post_install_script(packaging("rpm/post")?);
    builder.pre_uninstall_script(packaging("rpm/preun")?);
    builder.post_uninstall_script(packaging("rpm/postun")?);

    let mut octets = Vec::new();
    builder.build()?.write(&mut octets)?;
    Ok(octets)
}

/// Folders that go with this package. Those of shells and licences are the system's too, where it
/// has them; whoever is last to leave removes them.
fn is_own(folder: &str) -> bool {
    let shared = ["usr/share/bash-completion", "usr/share/fish", "usr/share/zsh", "usr/share/licenses"];
    shared.iter().any(|shared| folder.starts_with(shared)) || folder.split('/').skip(1).any(|part| part == "narrows")
}

/// RPM's summaries are sentences, Debian's are not.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
