//! A build without a feature says which one a command needs, before it does anything.

#![cfg(not(all(feature = "tls", feature = "parquet", feature = "otlp")))]

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

#[cfg(not(feature = "otlp"))]
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
