//! A build without a feature says which one a command needs, before it does anything.

#![cfg(not(all(feature = "fleet", feature = "parquet", feature = "otlp")))]

#[path = "all/common/mod.rs"]
mod common;

use common::run;

#[cfg(not(feature = "tls"))]
#[test]
fn without_tls_there_is_no_ndt7_and_no_login() {
    const ADD: &[&str] = &["--features tls"];
    run(&["throughput", "--ndt7", "127.0.0.1"]).refused(2, ADD);
    run(&["serve", "-p", "0", "-B", "127.0.0.1", "--ndt7"]).refused(2, ADD);
    let login = ["--username", "x", "--rsa-public-key-path", "none"];
    run(&[&["throughput", "127.0.0.1", "--iperf3"], &login[..]].concat()).refused(2, ADD);
    let gate = ["--rsa-private-key-path", "none", "--authorized-users-path", "none"];
    run(&[&["serve", "-p", "0", "-B", "127.0.0.1", "--iperf3", "0"], &gate[..]].concat()).refused(2, ADD);
}

#[cfg(all(feature = "watch", not(feature = "tls")))]
#[test]
fn without_tls_watch_sends_nothing_in_clear() {
    const ADD: &[&str] = &["no TLS", "cargo install", "--features tls"];
    let folder = common::directory();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the folder is writable");
        common::text(&path).to_owned()
    };
    let hook = file("hook.toml", "[channel.ops]\nkind = \"webhook\"\nurl = \"https://127.0.0.1:1/in\"\n");
    let mail = "kind = \"smtp\"\nserver = \"127.0.0.1:1\"\nfrom = \"a@x.example\"\nto = [\"b@x.example\"]\n";
    let mail = file("mail.toml", &format!("[channel.ops]\n{mail}"));
    let store = common::text(&folder.path().join("watch.db")).to_owned();
    for settings in [&hook, &mail] {
        run(&["watch", "127.0.0.1", "--config", settings, "--store", &store, "--listen", "none"]).refused(2, ADD);
        run(&["watch", "127.0.0.1", "--config", settings, "--check"]).refused(2, ADD);
    }
    let tls = file("web.yml", "tls_server_config:\n  cert_file: a.pem\n  key_file: b.pem\n");
    run(&["watch", "127.0.0.1", "--listen", "127.0.0.1:0", "--web.config.file", &tls]).refused(2, ADD);
    run(&["watch", "127.0.0.1", "--listen", "0.0.0.0:0"]).refused(2, ADD);
    // What needs no TLS works.
    let users = file("users.yml", "basic_auth_users: {}\n");
    let plain = file("plain.toml", "[channel.ops]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:1/in\"\n");
    let served = ["--listen", "127.0.0.1:0", "--web.config.file", &users, "--store", &store, "--duration", "2"];
    let result = run(&[&["watch", "127.0.0.1", "--config", &plain], &served[..]].concat());
    assert!(matches!(result.status.code(), Some(0 | 11)), "{result:?}");
}

#[cfg(not(feature = "fleet"))]
#[test]
fn without_the_fleet_its_commands_say_what_they_need() {
    for words in [&["hub"][..], &["hub", "token"], &["agent", "join", "x", "y"], &["fleet", "status"]] {
        let command = format!("narrows {}", words[0]);
        run(words).refused(2, &[&command, "cargo install --locked --path apps/narrows --features fleet"]);
    }
}

#[cfg(not(feature = "watch"))]
#[test]
fn without_watch_its_commands_say_what_they_need() {
    for command in ["watch", "history", "alerts"] {
        run(&[command, "127.0.0.1"]).refused(2, &["--features watch"]);
    }
}

#[cfg(all(feature = "watch", not(feature = "otlp")))]
#[test]
fn without_otlp_nothing_is_watched_for_a_collector() {
    run(&["watch", "127.0.0.1", "--otlp", "http://127.0.0.1:4318"]).refused(2, &["--features otlp"]);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_parquet_no_file_of_it_is_promised() {
    let folder = common::directory();
    let file = folder.path().join("rows.parquet");
    for flag in ["--parquet", "--runs-parquet"] {
        run(&["evaluate", "plan.toml", flag, common::text(&file)]).refused(2, &["--features parquet"]);
    }
    assert!(!file.exists());
}
