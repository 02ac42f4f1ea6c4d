//! A notice in the words of those who take it. All of this is pure.

use std::time::Duration;

use narrows_watch::WallTime;
use narrows_watch::alert::NoticeKind;
use serde_json::{Map, Value, json};

use crate::body::NoticeBody;

/// Every field by its name: `narrows.notice/1`, for webhooks and for programs.
pub fn json(body: &NoticeBody) -> Value {
    let mut fields = Map::from_iter([
        ("schema".to_owned(), Value::from("narrows.notice/1")),
        ("tool".to_owned(), Value::from("narrows")),
        ("title".to_owned(), Value::from(body.title())),
    ]);
    // What is not known is there all the same, so that readers need not ask.
    for unknown in ["signal", "claim", "value", "low", "high", "unit", "usual"] {
        fields.insert(unknown.to_owned(), Value::Null);
    }
    // A struct of strings and numbers is an object.
    if let Ok(Value::Object(own)) = serde_json::to_value(body) {
        fields.extend(own);
    }
    Value::Object(fields)
}

/// An incoming webhook of Slack: a line for notifications, blocks for the channel.
pub fn slack(body: &NoticeBody) -> Value {
    let sign = match body.state {
        NoticeKind::Firing | NoticeKind::Repeated => ":red_circle:",
        NoticeKind::Resolved => ":large_green_circle:",
        NoticeKind::Flapping => ":large_yellow_circle:",
    };
    let title = slack_text(&body.title(), 200);
    let more = facts(body).into_iter().filter(|(name, _)| *name != "page");
    let mut small: Vec<String> = more.map(|(name, text)| format!("{name}: {}", slack_text(&text, 300))).collect();
    if let Some(page) = &body.page {
        small.push(format!("<{}|page>", slack_text(page, 1000)));
    }
    json!({
        "text": format!("{sign} {}", slack_text(&body.text, 2000)),
        "blocks": [
            {
                "type": "section",
                "text": {"type": "mrkdwn", "text": format!("{sign} *{title}*\n{}", slack_text(&body.text, 2000))},
            },
            {"type": "context", "elements": [{"type": "mrkdwn", "text": small.join(" | ")}]},
        ],
    })
}

/// ntfy's JSON, which is posted to the server's root and names the topic.
pub fn ntfy(body: &NoticeBody, topic: &str) -> Value {
    let (priority, tag) = match body.state {
        NoticeKind::Firing => (4, "rotating_light"),
        NoticeKind::Repeated => (3, "rotating_light"),
        NoticeKind::Resolved => (3, "white_check_mark"),
        NoticeKind::Flapping => (4, "warning"),
    };
    let mut message = json!({
        "topic": topic,
        "title": body.title(),
        // ntfy turns longer messages into attachments.
        "message": cut(&body.text, 3000),
        "priority": priority,
        "tags": [tag, body.state_name()],
    });
    if let Some(page) = &body.page {
        message["click"] = Value::from(page.as_str());
    }
    message
}

/// The body of `POST /api/v2/alerts`. Alertmanager takes an alert as over once `endsAt` has passed,
/// so one that fires is sent again each minute.
///
/// Rule, target and host identify the alert, whatever it says. When the alert began is left
/// out once it is over: Alertmanager remembers that.
pub fn alertmanager(body: &NoticeBody, now: WallTime) -> Value {
    let mut annotations = Map::from_iter([
        ("summary".to_owned(), Value::from(body.title())),
        ("description".to_owned(), Value::from(body.text.as_str())),
        ("state".to_owned(), Value::from(body.state_name())),
    ]);
    if let Some(cause) = &body.cause {
        annotations.insert("cause".to_owned(), Value::from(cause.as_str()));
    }
    if let Some(value) = &body.value {
        annotations.insert("value".to_owned(), Value::from(format!("{} {}", value.value, value.unit)));
    }
    let began = body.since.unwrap_or(body.at);
    let mut alert = json!({
        "labels": {"alertname": body.rule, "target": body.target, "host": body.host, "job": "narrows"},
        "annotations": annotations,
    });
    if body.state == NoticeKind::Resolved {
        alert["endsAt"] = Value::from(rfc_3339(began));
    } else {
        alert["startsAt"] = Value::from(rfc_3339(began));
        alert["endsAt"] = Value::from(rfc_3339(now.after(FIRES_UNTIL)));
    }
    if let Some(page) = &body.page {
        alert["generatorURL"] = Value::from(page.as_str());
    }
    json!([alert])
}

/// Subject and text of a mail.
pub fn mail(body: &NoticeBody) -> (String, String) {
    let facts = facts(body).into_iter().map(|(name, fact)| format!("{:<8}{fact}\n", format!("{name}:")));
    let text = format!("{}\n\n{}", body.text, facts.collect::<String>());
    (format!("[narrows] {}", body.title()), text)
}

/// What is worth a line of its own.
fn facts(body: &NoticeBody) -> Vec<(&'static str, String)> {
    let mut facts = vec![("rule", body.rule.clone()), ("target", format!("{} ({})", body.target, body.host))];
    facts.extend(body.since.map(|since| ("since", rfc_3339(since))));
    facts.extend(body.lasted_ms.map(|lasted| ("lasted", format!("{} s", lasted.div_ceil(1000)))));
    facts.extend(body.cause.clone().map(|cause| ("cause", cause)));
    facts.extend(body.page.clone().map(|page| ("page", page)));
    facts
}

fn rfc_3339(time: WallTime) -> String {
    narrows_units::format_rfc_3339_millis(time.millis())
}

/// Slack's own signs are escaped, as its documentation asks.
fn slack_text(text: &str, most: usize) -> String {
    cut(text, most).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 3).collect();
    kept + "..."
}

/// Alertmanager may miss three of the sendings of each minute.
const FIRES_UNTIL: Duration = Duration::from_secs(240);

#[cfg(test)]
mod tests;
