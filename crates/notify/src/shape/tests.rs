use super::*;
use crate::body::tests::example;

const LATER: i64 = 1_795_547_160_000;

fn resolved() -> NoticeBody {
    let since = Some(WallTime::from_millis(LATER));
    NoticeBody { state: NoticeKind::Resolved, since, cause: None, value: None, page: None, ..example() }
}

/// The stored example of a shape: what a server of that kind was sent.
#[track_caller]
fn is_stored(stored: &str, fresh: &Value) {
    let stored: Value = serde_json::from_str(stored).unwrap();
    assert_eq!(*fresh, stored, "{fresh:#}");
}

#[test]
fn json_has_every_field() {
    is_stored(include_str!("examples/json.json"), &json(&example()));
    let without = json(&resolved());
    assert!(without["value"].is_null() && without["state"] == "resolved", "{without:#}");
}

#[test]
fn slack_has_a_line_and_blocks() {
    is_stored(include_str!("examples/slack.json"), &slack(&example()));
    let text = slack(&resolved()).to_string();
    assert!(text.contains(":large_green_circle:") && !text.contains("|page>"), "{text}");
}

#[test]
fn slacks_own_signs_are_escaped_and_its_limits_kept() {
    let body = NoticeBody { text: format!("<!channel> a & b {}", "x".repeat(9000)), ..example() };
    let blocks = slack(&body);
    let section = blocks["blocks"][0]["text"]["text"].as_str().unwrap();
    assert!(section.contains("&lt;!channel&gt; a &amp; b") && !section.contains("<!"), "{section}");
    assert!(section.len() < 3000 && section.ends_with("..."), "{}", section.len());
}

#[test]
fn ntfy_has_title_priority_and_tags() {
    is_stored(include_str!("examples/ntfy.json"), &ntfy(&example(), "office-alerts"));
    let over = ntfy(&resolved(), "office-alerts");
    assert!(over["tags"][0] == "white_check_mark" && over.get("click").is_none(), "{over:#}");
}

#[test]
fn alertmanager_has_labels_and_times() {
    let now = WallTime::from_millis(LATER);
    is_stored(include_str!("examples/alertmanager.json"), &alertmanager(&example(), now));
    is_stored(include_str!("examples/alertmanager-resolved.json"), &alertmanager(&resolved(), now.after(FIRES_UNTIL)));
}

/// Alertmanager tells alerts apart by their labels: a change of state must not change them.
#[test]
fn all_states_of_an_alert_have_the_same_labels() {
    let labels = |state| {
        let body = NoticeBody { state, ..example() };
        alertmanager(&body, body.at)[0]["labels"].clone()
    };
    for state in [NoticeKind::Repeated, NoticeKind::Flapping, NoticeKind::Resolved] {
        assert_eq!(labels(state), labels(NoticeKind::Firing));
    }
}

#[test]
fn mail_has_a_subject_and_lines() {
    let (subject, text) = mail(&example());
    assert_eq!(subject, "[narrows] FIRING office: uplink-low");
    assert_eq!(text, include_str!("examples/mail.txt"));
}
