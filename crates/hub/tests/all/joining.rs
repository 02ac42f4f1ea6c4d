//! How agents join a hub that serves: what they are told where that fails.

use narrows_agent::{Error, HubAddress, Token, join};
use narrows_bus::Key;
use narrows_hub::JoinToken;

use crate::api::Served;
use crate::world::request;

fn token(token: &JoinToken) -> Token {
    token.to_string().parse().unwrap()
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
