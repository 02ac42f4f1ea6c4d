//! The OCI layout.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::place::Place;
use super::{Made, Outcome, lacking, not_root};
use crate::oci::digest;
use crate::shell::output;

/// From the index down, as a runtime does; then each layer is unpacked and the program runs there.
pub(super) fn unpacked(made: &Made) -> Result<Outcome> {
    if let Some(skipped) = lacking(&["tar", "chroot"]).or_else(not_root) {
        return Ok(skipped);
    }
    let layout = made.folder.join(made.release.oci());
    let index: Value = serde_json::from_slice(&std::fs::read(layout.join("index.json"))?)?;
    let manifest: Value = serde_json::from_slice(&blob(&layout, &index["manifests"][0])?)?;
    let config: Value = serde_json::from_slice(&blob(&layout, &manifest["config"])?)?;
    let place = Place::new("oci-root")?;
    let layers = manifest["layers"].as_array().context("no layers")?;
    for layer in layers {
        blob(&layout, layer)?;
        let path = layout.join(path_of(layer)?);
        output("tar", &["-xzf", &path.to_string_lossy(), "-C", &place.path().to_string_lossy()])?;
    }
    let entry = config["config"]["Entrypoint"][0].as_str().context("no entry point")?;
    place.demo(entry)?;
    let user = config["config"]["User"].as_str().context("no user")?;
    let said = std::process::Command::new("chroot")
        .arg(format!("--userspec={user}"))
        .arg(place.path())
        .args([entry, "--version"])
        .output()?;
    ensure!(said.status.success(), "it does not run as {user}");
    Ok(Outcome::Passed)
}

pub(super) fn read_by_others(made: &Made) -> Result<Outcome> {
    if let Some(skipped) = lacking(&["skopeo", "umoci"]) {
        return Ok(skipped);
    }
    let image = format!("{}:{}", made.folder.join(made.release.oci()).display(), made.release.version);
    let said: Value = serde_json::from_str(&output("skopeo", &["inspect", &format!("oci:{image}")])?)?;
    ensure!(said["Os"] == "linux", "skopeo inspect: {said}");
    let place = Place::new("oci-bundle")?;
    let bundle = place.path().join("bundle").to_string_lossy().into_owned();
    output("umoci", &["unpack", "--rootless", "--image", &image, &bundle])?;
    output(&format!("{bundle}/rootfs/usr/bin/narrows"), &["--version"])?;
    Ok(Outcome::Passed)
}

fn path_of(descriptor: &Value) -> Result<String> {
    let digest = descriptor["digest"].as_str().context("a descriptor without a digest")?;
    Ok(format!("blobs/{}", digest.replace(':', "/")))
}

/// What a descriptor names, if it is that.
fn blob(layout: &Path, descriptor: &Value) -> Result<Vec<u8>> {
    let octets = std::fs::read(layout.join(path_of(descriptor)?))?;
    ensure!(descriptor["digest"] == digest(&octets), "{} is another", path_of(descriptor)?);
    ensure!(descriptor["size"] == octets.len(), "{} has another size", path_of(descriptor)?);
    Ok(octets)
}
