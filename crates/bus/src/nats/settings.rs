//! Streams, consumers and buckets: made, and read back. What an older version made smaller grows.

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Republish, StorageType};
use async_nats::jetstream::{Context, ErrorCode};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::settings::{Bucket, STREAM, Settings, Sinks, Stream};
use crate::subject;

pub(super) async fn provide(context: &Context, settings: &Settings) -> Result<()> {
    subject::pattern(&settings.stream.subjects)?;
    stream(context, &results(&settings.stream)).await?;
    for name in &settings.sinks.names {
        subject::name(name)?;
        sink(context, &consumer(name, &settings.sinks)).await?;
    }
    for one in &settings.buckets {
        subject::name(&one.name)?;
        stream(context, &bucket(one)).await?;
    }
    Ok(())
}

/// What no stream of ours has: limits that mean "none" are -1 when the server says them.
fn plain(name: String, subjects: String, max_octets: u64) -> Config {
    Config {
        name,
        subjects: vec![subjects],
        max_bytes: i64::try_from(max_octets).unwrap_or(i64::MAX),
        max_messages: -1,
        max_messages_per_subject: -1,
        max_consumers: -1,
        max_message_size: -1,
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas: 1,
        // By a roll-up, a delete or a purge one client could remove what others wrote.
        allow_rollup: false,
        deny_delete: true,
        deny_purge: true,
        ..Config::default()
    }
}

fn results(stream: &Stream) -> Config {
    Config {
        max_age: stream.max_age,
        duplicate_window: stream.duplicate_window,
        ..plain(STREAM.to_owned(), stream.subjects.clone(), stream.max_octets)
    }
}

/// A bucket is a stream with a subject for each key. One replica: several can disagree after a
/// partition, and a lease must have one truth.
fn bucket(bucket: &Bucket) -> Config {
    let subjects = format!("$KV.{}.>", bucket.name);
    let republish = bucket.republish.as_ref().map(|to| Republish {
        source: subjects.clone(),
        destination: format!("{to}.>"),
        headers_only: false,
    });
    Config {
        max_messages_per_subject: i64::from(bucket.history),
        allow_direct: true,
        republish,
        ..plain(format!("KV_{}", bucket.name), subjects, bucket.max_octets)
    }
}

fn consumer(name: &str, sinks: &Sinks) -> pull::Config {
    pull::Config {
        durable_name: Some(name.to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: sinks.ack_wait,
        max_ack_pending: i64::from(sinks.max_pending),
        ..pull::Config::default()
    }
}

async fn stream(context: &Context, wanted: &Config) -> Result<()> {
    let found = match context.get_stream(&wanted.name).await {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), GetStreamErrorKind::JetStream(said) if said.error_code() == ErrorCode::STREAM_NOT_FOUND) =>
        {
            // The server reserves all of it at once, and says only that this is too much.
            let reserved = |error| Error::Storage(format!("{} of {} octets: {error}", wanted.name, wanted.max_bytes));
            context.create_stream(wanted.clone()).await.map_err(reserved)?
        }
        Err(error) => return Err(Error::Storage(error.to_string())),
    };
    let mut found = found.cached_info().config.clone();
    let mut wanted = wanted.clone();
    if let Some(mut grown) = grown_stream(&wanted, &found) {
        let mut updated = context.update_stream(&grown).await;
        if let Err(error) = &updated
            && found.max_bytes < wanted.max_bytes
        {
            // Its server or its account has no more room. So it was before, and the fleet went on.
            let (name, has, wants) = (&wanted.name, found.max_bytes, wanted.max_bytes);
            tracing::warn!(%error, "{name} has room for {has} octets, and not for {wants} as this version wants");
            (wanted.max_bytes, grown.max_bytes) = (has, has);
            updated = context.update_stream(&grown).await;
        }
        found = updated.map_err(|error| Error::Storage(format!("{}: {error}", wanted.name)))?.config;
    }
    compare(&wanted.name, &wanted, &found)
}

/// The same stream with each limit that is smaller than wanted as large as that, and the history
/// that is wanted; `None`: it is so already. What a version before this one made has its limits.
fn grown_stream(wanted: &Config, found: &Config) -> Option<Config> {
    let mut grown = found.clone();
    grown.max_bytes = grown.max_bytes.max(wanted.max_bytes);
    grown.max_age = grown.max_age.max(wanted.max_age);
    grown.duplicate_window = grown.duplicate_window.max(wanted.duplicate_window);
    // Values that were written over are read by nobody: there may be fewer of them too.
    grown.max_messages_per_subject = wanted.max_messages_per_subject;
    (grown != *found).then_some(grown)
}

async fn sink(context: &Context, wanted: &pull::Config) -> Result<()> {
    let storage = |error: &dyn std::fmt::Display| Error::Storage(error.to_string());
    let name = wanted.durable_name.clone().unwrap_or_default();
    let stream = context.get_stream_no_info(STREAM).await.map_err(|error| storage(&error))?;
    let found = stream.get_or_create_consumer(&name, wanted.clone()).await.map_err(|error| storage(&error))?;
    let mut found = found.cached_info().config.clone();
    let smaller = found.ack_wait < wanted.ack_wait || found.max_ack_pending < wanted.max_ack_pending;
    if smaller {
        // One that is there already is changed, and stays where it is.
        let changed = stream.create_consumer(wanted.clone()).await.map_err(|error| storage(&error))?;
        found = changed.cached_info().config.clone();
    }
    compare(&format!("{STREAM}/{name}"), wanted, &found)
}

/// Every setting that we give must come back as it was, and no switch be on that we left off.
fn compare(name: &str, wanted: &impl Serialize, found: &impl Serialize) -> Result<()> {
    let json = |error: serde_json::Error| Error::Protocol(error.to_string());
    let wanted = serde_json::to_value(wanted).map_err(json)?;
    let found = serde_json::to_value(found).map_err(json)?;
    let ours = wanted.as_object().into_iter().flatten();
    // Switches that are off are not written.
    let on = found.as_object().into_iter().flatten().filter(|(_, value)| value.as_bool() == Some(true));
    for (setting, _) in ours.chain(on) {
        let (found, wanted) = (&found[setting], &wanted[setting]);
        if found != wanted {
            return Err(Error::Settings {
                name: name.to_owned(),
                setting: setting.clone(),
                found: found.to_string(),
                wanted: wanted.to_string(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_came_back_changed_is_named() {
        let wanted = bucket(&Bucket::new("lease_1", "lease"));
        assert_eq!(compare("KV_lease_1", &wanted, &wanted), Ok(()));
        assert_eq!(grown_stream(&wanted, &wanted), None);
        for (found, changed) in [
            (Config { allow_rollup: true, ..wanted.clone() }, "allow_rollup_hdrs"),
            (Config { deny_purge: false, ..wanted.clone() }, "deny_purge"),
            (Config { max_messages_per_subject: 2, ..wanted.clone() }, "max_msgs_per_subject"),
            (Config { republish: None, ..wanted.clone() }, "republish"),
        ] {
            let error = compare("KV_lease_1", &wanted, &found).unwrap_err();
            assert!(matches!(&error, Error::Settings { setting, .. } if setting == changed), "{error}");
        }
    }

    #[test]
    fn limits_grow_and_never_shrink() {
        let wanted = bucket(&Bucket { history: 2, max_octets: 4_000, ..Bucket::new("plan", "plan") });
        let smaller = Config { max_bytes: 1_000, max_messages_per_subject: 1, ..wanted.clone() };
        assert_eq!(grown_stream(&wanted, &smaller), Some(wanted.clone()));
        let larger = Config { max_bytes: 9_000, ..wanted.clone() };
        assert_eq!(grown_stream(&wanted, &larger), None);
        let longer = Config { max_messages_per_subject: 3, ..wanted.clone() };
        assert_eq!(grown_stream(&wanted, &longer), Some(wanted.clone()));
        let other = Config { allow_direct: false, max_bytes: 1_000, ..wanted.clone() };
        assert_eq!(grown_stream(&wanted, &other), Some(Config { allow_direct: false, ..wanted }));
    }
}
