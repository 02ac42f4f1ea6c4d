//! How a host that has joined before finds out whether it still belongs to the fleet.
//! Whoever starts a container joins at each start.

use narrows_bus::Key;
use narrows_fleet::message::Join;
use narrows_units::hex;

use crate::error::{Error, Result};
use crate::join::{HubAddress, Token, ask, complaint, membership};
use crate::state::Membership;

/// What became of a membership.
#[derive(Debug)]
pub enum Rejoined {
    /// The hub knows this member. It stays as it is: where the bus is now, plans say.
    Still,
    /// The hub did not know it any more: the host is a new member by the token.
    Anew(Membership),
    /// The hub does not answer now, and why. An agent goes by its last plan meanwhile.
    Unheard(String),
}

/// Asks the hub whether this host is still its member. If not, it joins anew by the token.
pub async fn rejoin(
    hub: &HubAddress,
    token: &Token,
    mut wish: Join,
    key: &Key,
    before: &Membership,
) -> Result<Rejoined> {
    let agent = &before.joined.agent;
    if before.hub != hub.to_string() {
        return Err(Error::Joined(agent.to_string()));
    }
    if before.key_hash()? != token.key_hash {
        return Err(Error::OtherHub { agent: agent.to_string(), hub: before.hub.clone() });
    }
    token.text.clone_into(&mut wish.token);
    wish.public_key = key.public();
    wish.again = Some(hex::to_text(&key.sign(wish.again_text().as_bytes())));
    let answered = match ask(hub, token, &wish).await {
        Err(Error::Unreachable { why, .. }) => return Ok(Rejoined::Unheard(why)),
        other => other?,
    };
    match answered {
        (200, answer) => {
            let now = membership(hub, token, wish.port, &answer)?;
            let who =
                |one: &Membership| (one.joined.agent.clone(), one.joined.tenant.clone(), one.joined.hub_key.clone());
            Ok(if who(&now) == who(before) { Rejoined::Still } else { Rejoined::Anew(now) })
        }
        // It has too much to do, or its record is away: that says nothing of the membership.
        (code @ (429 | 500..), answer) => Ok(Rejoined::Unheard(complaint(code, &answer))),
        (code, answer) => {
            let why = complaint(code, &answer);
            Err(Error::Refused(format!("{agent} is no member any more, and cannot join anew: {why}")))
        }
    }
}
