//! An image as an OCI layout: a folder that `skopeo`, `podman` and `crane` read.

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::contents;
use crate::release::{HOMEPAGE, LICENSE, Release, SUMMARY, deb_arch};
use crate::tree::{Tree, gzip};

/// A user that no system gives a name, as images without a shell have it.
const USER: &str = "65532:65532";

pub(crate) fn make(release: &Release, program: &[u8]) -> Result<Tree> {
    let mut files = Tree::default();
    files.add_program("usr/bin/narrows", program);
    contents::paths(&mut files, "usr/share/narrows")?;
    files.add("etc/passwd", format!("narrows:x:{}:/:/usr/sbin/nologin\n", USER.to_owned() + ":narrows server"));
    files.add("usr/share/doc/narrows/LICENSE-MIT", contents::file("LICENSE-MIT")?);
    files.add("usr/share/doc/narrows/LICENSE-APACHE", contents::file("LICENSE-APACHE")?);

    let mut layout = Tree::default();
    let tar = files.tar("", release.epoch)?;
    let layer = blob(&mut layout, "application/vnd.oci.image.layer.v1.tar+gzip", gzip(&tar)?);
    let created = rfc3339(release)?;
    let config = json!({
        "created": created,
        "architecture": deb_arch(),
        "os": "linux",
        "config": {
            "User": USER,
            "Entrypoint": ["/usr/bin/narrows"],
            "Cmd": ["serve"],
            "WorkingDir": "/",
            "ExposedPorts": {"8620/tcp": {}, "8620/udp": {}},
            "Env": ["PATH=/usr/bin"],
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(&tar)]},
        "history": [{"created": created, "comment": format!("narrows {}", release.version)}],
    });
    let config = blob(&mut layout, "application/vnd.oci.image.config.v1+json", serde_json::to_vec(&config)?);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
        "annotations": {
            "org.opencontainers.image.title": "narrows",
            "org.opencontainers.image.description": SUMMARY,
            "org.opencontainers.image.version": release.version,
            "org.opencontainers.image.licenses": LICENSE,
            "org.opencontainers.image.source": HOMEPAGE,
        },
    });
    let mut manifest = blob(&mut layout, "application/vnd.oci.image.manifest.v1+json", serde_json::to_vec(&manifest)?);
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    layout.add("index.json", serde_json::to_vec(&index)?);
    layout.add("oci-layout", serde_json::to_vec(&json!({"imageLayoutVersion": "1.0.0"}))?);
    Ok(layout)
}

/// Adds what is named by its digest; the descriptor that refers to it.
fn blob(layout: &mut Tree, media_type: &str, octets: Vec<u8>) -> Value {
    let digest = digest(&octets);
    let descriptor = json!({"mediaType": media_type, "digest": digest, "size": octets.len()});
    layout.add(format!("blobs/{}", digest.replace(':', "/")), octets);
    descriptor
}

pub(crate) fn digest(octets: &[u8]) -> String {
    let hex: String = Sha256::digest(octets).iter().map(|octet| format!("{octet:02x}")).collect();
    format!("sha256:{hex}")
}

fn rfc3339(release: &Release) -> Result<String> {
    let date = format!("--date=@{}", release.epoch);
    let text = crate::shell::output("date", &["--utc", "+%Y-%m-%dT%H:%M:%SZ", &date])?;
    Ok(text.trim().to_owned())
}
