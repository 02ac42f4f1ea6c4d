//! Leave to use the remote host.

use std::time::Duration;

use narrows_probe::Refusal;
use narrows_wire::{ClientMessage, RefusalCode, ServerMessage, SlotKind, Token};

use super::control::{Control, Incoming, refused};
use super::options::ConnectOptions;
use crate::clock::{self, nanos};
use crate::error::{Error, PathError, PeerError};

/// Asks for a slot, and waits in its queue for as long as the caller's timeout lasts. The inner
/// error: the remote host will not.
pub(super) fn acquire(
    control: &mut Control,
    kind: SlotKind,
    options: &ConnectOptions,
) -> Result<Result<(), Refusal>, Error> {
    wait(control, kind, None, options)
}

/// Shares the load slot that the session with this token holds.
pub(super) fn share(
    control: &mut Control,
    beside: Token,
    options: &ConnectOptions,
) -> Result<Result<(), Refusal>, Error> {
    wait(control, SlotKind::Load, Some(beside), options)
}

fn wait(
    control: &mut Control,
    kind: SlotKind,
    beside: Option<Token>,
    options: &ConnectOptions,
) -> Result<Result<(), Refusal>, Error> {
    /// An answer of some kind comes at once.
    const FIRST: Duration = Duration::from_secs(3);
    let timeout = options.queue_timeout;
    let lease = options.lease.filter(|_| kind == SlotKind::Load && beside.is_none());
    control.say(&ClientMessage::Slot { kind, beside, lease })?;
    let began = clock::now_ns();
    let mut deadline = began.saturating_add(nanos(FIRST));
    let mut queued = None;
    loop {
        match control.hear(deadline.min(clock::now_ns() + 100_000_000))? {
            Some(Incoming::Message(ServerMessage::GrantedScheduling { kind: granted })) if granted == kind => {
                return Ok(Ok(()));
            }
            Some(Incoming::Message(ServerMessage::Queued { place, .. })) => {
                options.on_queued.tell(kind, place);
                queued = Some(place);
                deadline = began.saturating_add(nanos(timeout));
            }
            Some(Incoming::Message(ServerMessage::Refused { code, text, .. })) => {
                return match code {
                    RefusalCode::Limit => control.refusal(code, text).map(Err),
                    _ => Err(refused(control.peer(), code, text)),
                };
            }
            Some(_) => {}
            None if clock::now_ns() < deadline && !control.stop_requested() => {}
            None => return give_up(control, kind, queued, timeout),
        }
    }
}

fn give_up(
    control: &mut Control,
    kind: SlotKind,
    queued: Option<u32>,
    timeout: Duration,
) -> Result<Result<(), Refusal>, Error> {
    let peer = control.peer();
    let Some(place) = queued else {
        return Err(PathError::Silent { peer, doing: "asking for a slot", waited: timeout }.into());
    };
    release(control, kind)?;
    Err(PeerError::Refused {
        peer,
        reason: format!("other measurements come first; place {place} in the queue after {timeout:?}"),
    }
    .into())
}

/// Gives a slot back, or leaves its queue.
pub(super) fn release(control: &mut Control, kind: SlotKind) -> Result<(), Error> {
    control.say(&ClientMessage::Release { kind })?;
    // Refused or released: the slot is not ours either way.
    control
        .await_answer("giving a slot back", Duration::from_secs(3), |incoming| {
            matches!(incoming, Incoming::Message(ServerMessage::Released { kind: released }) if released == kind)
                .then_some(())
        })
        .map(|_| ())
}
