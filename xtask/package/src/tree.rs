//! Files in memory, sorted by path.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use lzma_rust2::{XzOptions, XzWriter};
use tar::{EntryType, Header};

/// Regular files by path, relative and without `./`.
#[derive(Default, PartialEq)]
pub(crate) struct Tree(BTreeMap<String, File>);

#[derive(PartialEq)]
pub(crate) struct File {
    pub(crate) program: bool,
    pub(crate) octets: Vec<u8>,
}

impl File {
    pub(crate) fn mode(&self) -> u32 {
        if self.program { 0o755 } else { 0o644 }
    }
}

impl Tree {
    pub(crate) fn add(&mut self, path: impl Into<String>, octets: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), File { program: false, octets: octets.into() });
    }

    pub(crate) fn add_program(&mut self, path: impl Into<String>, octets: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), File { program: true, octets: octets.into() });
    }

    /// Adds a folder of the disk as `to`, without what editors and git hide.
    pub(crate) fn add_folder(&mut self, from: &Path, to: &str) -> Result<()> {
        let entries = std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{to}/{name}");
            if name.starts_with('.') {
                continue;
            }
            if entry.file_type()?.is_dir() {
                self.add_folder(&entry.path(), &path)?;
            } else {
                self.add(path, std::fs::read(entry.path())?);
            }
        }
        Ok(())
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    pub(crate) fn octets(&self) -> usize {
        self.0.values().map(|file| file.octets.len()).sum()
    }

    /// Every folder above a file, parents first.
    pub(crate) fn folders(&self) -> BTreeSet<&str> {
        let above = |path: &'_ str| path.match_indices('/').map(|(at, _)| at).collect::<Vec<_>>();
        self.0.keys().flat_map(|path| above(path).into_iter().map(|at| &path[..at])).collect()
    }

    /// As a tar file, all of one time and owned by root; paths begin with `prefix`.
    pub(crate) fn tar(&self, prefix: &str, epoch: u32) -> Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut entry = |path: &str, kind: EntryType, mode: u32, octets: &[u8]| {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(mode);
            header.set_mtime(epoch.into());
            header.set_size(octets.len() as u64);
            header.set_uid(0);
            header.set_gid(0);
            header.set_username("root")?;
            header.set_groupname("root")?;
            // `append_data` would drop the `./` that dpkg's own packages begin with.
            let name = format!("{prefix}{path}");
            let field = &mut header.as_gnu_mut().context("made as GNU's")?.name;
            let field = field.get_mut(..name.len()).with_context(|| format!("{name} is too long for tar"))?;
            field.copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, octets).context("cannot write to memory")
        };
        if !prefix.is_empty() {
            entry("", EntryType::Directory, 0o755, &[])?;
        }
        for folder in self.folders() {
            entry(&format!("{folder}/"), EntryType::Directory, 0o755, &[])?;
        }
        for (path, file) in self.files() {
            entry(path, EntryType::Regular, file.mode(), &file.octets)?;
        }
        Ok(builder.into_inner()?)
    }

    /// Writes the files below a folder of the disk.
    pub(crate) fn unpack(&self, folder: &Path) -> Result<()> {
        for (path, file) in self.files() {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
            std::fs::write(&path, &file.octets)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(file.mode()))?;
        }
        Ok(())
    }
}

/// As `gzip -9n`: neither a name nor a time in the header.
pub(crate) fn gzip(octets: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(octets)?;
    Ok(encoder.finish()?)
}

pub(crate) fn xz(octets: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = XzWriter::new(Vec::new(), XzOptions::with_preset(6))?;
    encoder.write_all(octets)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tar_has_folders_before_files_and_one_owner() {
        let mut tree = Tree::default();
        tree.add("b/c/text", "x");
        tree.add_program("a", "y");
        let octets = tree.tar("./", 1_600_000_000).unwrap();
        let mut archive = tar::Archive::new(&octets[..]);
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 1_600_000_000));
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            seen.push((name, header.mode().unwrap(), entry.size()));
        }
        let expected =
            [("./", 0o755, 0), ("./b/", 0o755, 0), ("./b/c/", 0o755, 0), ("./a", 0o755, 1), ("./b/c/text", 0o644, 1)];
        assert_eq!(seen, expected.map(|(name, mode, size)| (name.to_owned(), mode, size)));
    }
}
