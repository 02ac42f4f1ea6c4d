//! How agents join a hub that serves: what they are told where that fails, and where they have
//! joined before.

use narrows_agent::{Error, HubAddress, Membership, Rejoined, Token, join, rejoin};
use narrows_bus::Key;
use narrows_hub::JoinToken;
use serde_json::json;

use crate::api::Served;
use crate::world::request;

fn token(token: &JoinToken) -> Token {
    token.to_string().parse().unwrap()
}

/// A hub, where it is, and a member of it.
async fn member() -> (Served, HubAddress, Membership, Key) {
    let (served, key) = (Served::new().await, Key::new());
    let hub: HubAddress = served.url.parse().unwrap();
    let joined = join(&hub, &token(&served.token), request("a", "", &key, &[]), &key).await.unwrap();
    (served, hub, joined, key)
}

#[tokio::test]
async fn a_refusal_says_why() {
    let served = Served::new().await;
    let (hub, key): (HubAddress, _) = (served.url.parse().unwrap(), Key::new());
    let wish = || request("a", "", &key, &[]);
    let unknown = JoinToken::new(served.token.key_hash).unwrap();
    let Err(Error::Refused(why)) = join(&hub, &token(&unknown), wish(), &key).await else { panic!("it is unknown") };
    assert!(why.starts_with("this token is not valid: it is used up"), "{why}");
    let elsewhere = JoinToken::new([7; 32]).unwrap();
    let error = join(&hub, &token(&elsewhere), wish(), &key).await.unwrap_err();
    assert!(matches!(error, Error::OtherKey(_)), "{error}");
    assert!(error.to_string().contains("another hub answers at this address"), "{error}");
}

#[tokio::test]
async fn a_member_that_joins_again_uses_no_token() {
    let (served, hub, before, key) = member().await;
    let used = token(&JoinToken::new(served.token.key_hash).unwrap());
    let again = |wanted: &str| request(wanted, "", &key, &[("role", "edge")]);
    let still = rejoin(&hub, &used, again("a"), &key, &before).await.unwrap();
    assert!(matches!(still, Rejoined::Still), "{still:?}");
    let (_, agents) = served.ask("GET", "/api/v1/agents", json!({})).await;
    assert_eq!(agents["agents"].as_array().map(Vec::len), Some(1), "{agents}");
    // Who only knows its public key proves nothing.
    let unknown = JoinToken::new(served.token.key_hash).unwrap();
    let mut forged = request("a", &unknown.to_string(), &key, &[]);
    forged.again = Some("00".repeat(64));
    let (status, problem) = served.ask("POST", "/api/v1/join", serde_json::to_value(&forged).unwrap()).await;
    assert_eq!(status, 403, "{problem}");
}

#[tokio::test]
async fn who_was_thrown_out_joins_anew_by_a_token_alone() {
    let (served, hub, before, key) = member().await;
    served.ask("POST", "/api/v1/agents/a/revoke", json!({})).await;
    let used = token(&JoinToken::new(served.token.key_hash).unwrap());
    let wish = || request("a", "", &key, &[]);
    let Err(Error::Refused(why)) = rejoin(&hub, &used, wish(), &key, &before).await else { panic!("it is no member") };
    assert!(why.starts_with("a is no member any more, and cannot join anew: this token"), "{why}");
    let anew = rejoin(&hub, &token(&served.token), wish(), &key, &before).await.unwrap();
    let Rejoined::Anew(anew) = anew else { panic!("{anew:?}") };
    assert_eq!(anew.joined.agent.as_str(), "a-2");
    let still = rejoin(&hub, &used, wish(), &key, &anew).await.unwrap();
    assert!(matches!(still, Rejoined::Still), "{still:?}");
}

#[tokio::test]
async fn a_host_of_another_hub_has_to_leave_it_first() {
    let (served, hub, before, key) = member().await;
    let wish = || request("a", "", &key, &[]);
    let rebuilt = token(&JoinToken::new([7; 32]).unwrap());
    let error = rejoin(&hub, &rebuilt, wish(), &key, &before).await.unwrap_err();
    assert!(matches!(error, Error::OtherHub { .. }) && error.to_string().contains("narrows agent leave"), "{error}");
    let elsewhere: HubAddress = "https://hub.example".parse().unwrap();
    let error = rejoin(&elsewhere, &token(&served.token), wish(), &key, &before).await.unwrap_err();
    assert!(matches!(error, Error::Joined(_)), "{error}");
    // A hub that is away says nothing: the agent goes by its last plan.
    served.stop.send(()).unwrap();
    served.serving.await.unwrap().unwrap();
    let unheard = rejoin(&hub, &token(&served.token), wish(), &key, &before).await.unwrap();
    assert!(matches!(unheard, Rejoined::Unheard(_)), "{unheard:?}");
}
