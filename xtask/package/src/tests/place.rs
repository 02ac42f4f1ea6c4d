//! A root folder to install into, which goes when the test is over.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::shell::{output, output_of, root};

pub(super) struct Place(pub(super) PathBuf);

impl Place {
    pub(super) fn new(name: &str) -> Result<Self> {
        let path = root().join("target/packager").join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// A minimal Debian with manual pages and systemd, from a mirror; kept as an archive for later.
    pub(super) fn debian(name: &str) -> Result<Self> {
        let archive = root().join("target/packager/debian.tar");
        if !archive.exists() {
            std::fs::create_dir_all(root().join("target/packager"))?;
            let partly = archive.with_extension("partly.tar");
            let to = partly.to_string_lossy().into_owned();
            let suite = std::fs::read_to_string("/etc/os-release").ok();
            let suite =
                suite.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")));
            let suite = suite.unwrap_or("stable");
            output(
                "mmdebstrap",
                &["--quiet", "--variant=minbase", "--include=man-db,systemd,bash-completion", suite, &to],
            )?;
            std::fs::rename(&partly, &archive)?;
        }
        let place = Self::new(name)?;
        let to = place.0.to_string_lossy().into_owned();
        output("tar", &["-xpf", &archive.to_string_lossy(), "-C", &to])?;
        Ok(place)
    }

    /// Runs a command with this as its root.
    pub(super) fn run(&self, args: &[&str]) -> Result<String> {
        output_of(&mut self.command(args))
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.0).args(args).current_dir("/").env("LC_ALL", "C.UTF-8");
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// The demonstration without sockets: what it prints opens with the answer.
    pub(super) fn demo(&self, program: &str) -> Result<()> {
        let text = self.run(&[program, "demo", "--simulate"])?;
        ensure!(text.contains("Carries"), "the demo has no answer:\n{text}");
        Ok(())
    }

    /// What a package's user finds: program, manual page, completion, unit.
    pub(super) fn is_installed(&self) -> Result<()> {
        self.demo("narrows")?;
        ensure!(self.run(&["man", "narrows"])?.contains("narrows - "), "the manual page is empty");
        if self.0.join("usr/share/man/man1/narrows-serve.1.gz").exists() {
            self.run(&["man", "narrows-serve"])?;
        }
        let completion = ". /usr/share/bash-completion/completions/narrows && complete -p narrows";
        self.run(&["bash", "-c", completion])?;
        self.run(&["narrows", "simulate", "/usr/share/narrows/scenarios/demo.toml", "--method", "rtt"])?;
        self.unit("narrows-serve.service")?;
        for unit in ["narrows-watch.service", "narrows-hub.service", "narrows-agent.service"] {
            self.unit(unit)?;
        }
        self.run(&["getent", "passwd", "narrows"])?;
        let mode = self.run(&["stat", "--format=%a", "/run/narrows"])?;
        ensure!(mode.trim() == "1777", "/run/narrows, for locks, has mode {mode}");
        Ok(())
    }

    /// The unit is well formed, shut in, and off.
    fn unit(&self, unit: &str) -> Result<()> {
        let complaints = self.command(&["systemd-analyze", "verify", "--man=no", unit]).output()?;
        let text = String::from_utf8_lossy(&complaints.stderr).into_owned();
        ensure!(complaints.status.success() && !text.contains("narrows"), "systemd-analyze verify: {text}");
        self.run(&["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit])?;
        let wanted = format!(".wants/{unit}");
        let enabled = self.files()?.into_iter().find(|path| path.ends_with(&wanted));
        ensure!(enabled.is_none(), "the unit is enabled: {enabled:?}");
        Ok(())
    }

    /// Every path below, but for what package managers note of themselves.
    pub(super) fn files(&self) -> Result<BTreeSet<String>> {
        let folder = self.0.to_string_lossy().into_owned();
        let text = output("find", &[&folder, "-mindepth", "1", "-printf", "%P\n"])?;
        let notes =
            ["var/lib/dpkg/", "var/lib/rpm", "root/.rpmdb", "var/cache/", "var/log/", "tmp/", "run/", "proc/", "dev/"];
        let backups = ["etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/.pwd.lock"];
        let ours = |path: &&str| !notes.iter().any(|note| path.starts_with(note)) && !backups.contains(path);
        Ok(text.lines().filter(ours).map(str::to_owned).collect())
    }

    /// Fails if something stayed that was not there before, or went that was.
    pub(super) fn is_as_before(&self, before: &BTreeSet<String>) -> Result<()> {
        let after = self.files()?;
        let differ: Vec<&String> = after.symmetric_difference(before).collect();
        ensure!(differ.is_empty(), "not as before: {differ:?}");
        let users = std::fs::read_to_string(self.0.join("etc/passwd")).context("no list of users")?;
        ensure!(!users.contains("narrows"), "the user narrows is still there");
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A folder that stays behind is cleared by the next run.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
