//! Which control message may come when.
//!
//! Each side keeps one [`Conversation`] and tells it what it sends and what it receives, in the
//! order in which it does so. The two copies may differ for as long as messages cross on the way;
//! every message that an honest peer can send in that time is either in order or
//! [`MessageVerdict::Stale`].

mod activity;

use thiserror::Error;

use crate::message::{Auth, ClientMessage, RefusalCode, ServerMessage, SlotKind};
use crate::rows::{Rows, Table};
use activity::Activity;

/// One of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Asks.
    Client,
    /// Answers.
    Server,
}

/// What to do with a message that is in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageVerdict {
    /// Act on it.
    Act,
    /// It crossed with a message that makes it void; ignore it.
    Stale,
}

/// A message out of order. The connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("message out of order: {0}")]
pub struct Violation(pub &'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    AwaitHello,
    AwaitWelcome,
    AwaitProof,
    AwaitSession,
    Open,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Slot {
    #[default]
    None,
    Wanted,
    Held,
    Releasing,
}

/// The state of one control connection.
#[derive(Debug, Clone)]
pub struct Conversation {
    stage: Stage,
    light: Slot,
    load: Slot,
    activity: Activity,
    /// The last train, load or transfer that the server broke off: what the client still says of it
    /// is stale.
    broken_off: Option<u32>,
    /// The client asked how the server's host is set up, and was not told yet.
    asked: bool,
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}

impl Conversation {
    /// Nothing has been said.
    pub fn new() -> Self {
        Self {
            stage: Stage::AwaitHello,
            light: Slot::None,
            load: Slot::None,
            activity: Activity::Idle,
            broken_off: None,
            asked: false,
        }
    }

    /// The handshake is over and nobody has left.
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// No more may be said.
    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// A train, load or transfer is under way.
    pub fn is_busy(&self) -> bool {
        self.activity != Activity::Idle
    }

    /// A load or transfer is under way: traffic that somebody has to stop.
    pub fn is_loading(&self) -> bool {
        self.activity.is_loading()
    }

    /// The session holds this slot.
    pub fn holds(&self, kind: SlotKind) -> bool {
        let slot = match kind {
            SlotKind::Light => self.light,
            SlotKind::Load => self.load,
        };
        slot == Slot::Held
    }

    fn slot(&mut self, kind: SlotKind) -> &mut Slot {
        match kind {
            SlotKind::Light => &mut self.light,
            SlotKind::Load => &mut self.load,
        }
    }

    /// The client says something: checked by the server on receipt, by the client before it sends.
    pub fn client(&mut self, message: &ClientMessage) -> Result<MessageVerdict, Violation> {
        match (self.stage, message) {
            (Stage::AwaitHello, ClientMessage::Hello { .. }) => self.stage = Stage::AwaitWelcome,
            (Stage::AwaitProof, ClientMessage::Prove { .. }) => self.stage = Stage::AwaitSession,
            (Stage::Closed, _) => return Err(Violation("the connection has ended")),
            (_, ClientMessage::Hello { .. } | ClientMessage::Prove { .. }) => {
                return Err(Violation("handshake message at another time"));
            }
            (_, ClientMessage::Bye) => self.stage = Stage::Closed,
            (Stage::Open, ClientMessage::Alive) => {}
            (Stage::Open, ClientMessage::AskHost) => {
                if self.asked {
                    return Err(Violation("asked again before the answer"));
                }
                if self.activity != Activity::Idle {
                    return Err(Violation("asked in the middle of a test"));
                }
                self.asked = true;
            }
            (Stage::Open, ClientMessage::Slot { kind, .. }) => {
                // One at a time, so that a refusal need not name the slot.
                if self.light == Slot::Wanted || self.load == Slot::Wanted {
                    return Err(Violation("slot asked for while waiting for one"));
                }
                let slot = self.slot(*kind);
                if *slot != Slot::None {
                    return Err(Violation("slot asked for twice"));
                }
                *slot = Slot::Wanted;
            }
            (Stage::Open, ClientMessage::Release { kind }) => {
                if self.activity != Activity::Idle {
                    return Err(Violation("slot released in the middle of a test"));
                }
                // A slot that was refused while the release was on its way is still answered.
                let slot = self.slot(*kind);
                if *slot == Slot::Releasing {
                    return Err(Violation("slot released twice"));
                }
                *slot = Slot::Releasing;
            }
            (Stage::Open, message) => return self.client_activity(message),
            (_, _) => return Err(Violation("request before the session is open")),
        }
        Ok(MessageVerdict::Act)
    }

    fn client_activity(&mut self, message: &ClientMessage) -> Result<MessageVerdict, Violation> {
        if self.activity.client(message)? {
            return Ok(MessageVerdict::Act);
        }
        match activity::subject(message) {
            Some(id) if self.broken_off == Some(id) => Ok(MessageVerdict::Stale),
            _ => Err(Violation("about something that is not under way")),
        }
    }

    /// The server says something: checked by the client on receipt, by the server before it sends.
    pub fn server(&mut self, message: &ServerMessage) -> Result<MessageVerdict, Violation> {
        match (self.stage, message) {
            (Stage::Closed, _) => return Err(Violation("the connection has ended")),
            (_, ServerMessage::Refused { code, id, .. }) => return self.refused(*code, *id),
            (Stage::AwaitWelcome, ServerMessage::Welcome { auth, .. }) => {
                self.stage = match auth {
                    Auth::None => Stage::AwaitSession,
                    Auth::Psk => Stage::AwaitProof,
                };
            }
            (Stage::AwaitSession, ServerMessage::Session { .. }) => self.stage = Stage::Open,
            (_, ServerMessage::Welcome { .. } | ServerMessage::Session { .. }) => {
                return Err(Violation("handshake message at another time"));
            }
            (Stage::Open, ServerMessage::Alive) => {}
            (Stage::Open, ServerMessage::HostReported(_)) => {
                if !std::mem::take(&mut self.asked) {
                    return Err(Violation("answer that nobody asked for"));
                }
            }
            (Stage::Open, ServerMessage::GrantedScheduling { kind }) => {
                return match self.slot(*kind) {
                    slot @ Slot::Wanted => {
                        *slot = Slot::Held;
                        Ok(MessageVerdict::Act)
                    }
                    Slot::Releasing => Ok(MessageVerdict::Stale),
                    Slot::None | Slot::Held => Err(Violation("slot granted that nobody asked for")),
                };
            }
            (Stage::Open, ServerMessage::Queued { kind, .. }) => {
                return match self.slot(*kind) {
                    Slot::Wanted => Ok(MessageVerdict::Act),
                    Slot::Releasing => Ok(MessageVerdict::Stale),
                    Slot::None | Slot::Held => Err(Violation("place in a queue that nobody stands in")),
                };
            }
            (Stage::Open, ServerMessage::Released { kind }) => match self.slot(*kind) {
                slot @ Slot::Releasing => *slot = Slot::None,
                _ => return Err(Violation("slot released that nobody gave back")),
            },
            (Stage::Open, message) => self.activity.server(message)?,
            (_, _) => return Err(Violation("answer before the session is open")),
        }
        Ok(MessageVerdict::Act)
    }

    fn refused(&mut self, code: RefusalCode, id: Option<u32>) -> Result<MessageVerdict, Violation> {
        if code.is_final() {
            self.stage = Stage::Closed;
            return Ok(MessageVerdict::Act);
        }
        if self.stage != Stage::Open {
            return Err(Violation("refusal before the session is open"));
        }
        if let Some(id) = id {
            if self.activity.id() != Some(id) {
                return Err(Violation("refusal of something that is not under way"));
            }
            self.activity = Activity::Idle;
            self.broken_off = Some(id);
            return Ok(MessageVerdict::Act);
        }
        let refused = [SlotKind::Load, SlotKind::Light].into_iter().find(|kind| *self.slot(*kind) == Slot::Wanted);
        match refused {
            Some(kind) => {
                *self.slot(kind) = Slot::None;
                Ok(MessageVerdict::Act)
            }
            None => Ok(MessageVerdict::Stale),
        }
    }

    /// A table is said.
    pub fn rows(&mut self, side: Side, rows: &Rows) -> Result<MessageVerdict, Violation> {
        if self.stage != Stage::Open {
            return Err(Violation("table before the session is open"));
        }
        let fits = match (&rows.table, side) {
            (Table::Plan(_), Side::Client) => {
                if !self.activity.plan(rows.id) && self.broken_off == Some(rows.id) {
                    return Ok(MessageVerdict::Stale);
                }
                self.activity.planned(rows.id)
            }
            (Table::Departures(_), Side::Server) => self.activity.departures(rows.id),
            (Table::Arrivals(_), Side::Server) => self.activity.arrivals(rows.id),
            _ => false,
        };
        if fits { Ok(MessageVerdict::Act) } else { Err(Violation("table that does not follow its announcement")) }
    }
}

#[cfg(test)]
mod tests;
