//! The second checker: what agents saw of a key is the history of *one* versioned register, and
//! while a run sent, the register named it.
//!
//! Wing and Gong, *Testing and Verifying Concurrent Objects* (1993), with the memory of visited
//! states that Lowe (2017) added. An operation takes effect at one instant from its call to its
//! return. One without an answer may have taken effect, or not.

use std::collections::HashSet;

use narrows_fleet::lease::KeyState;
use uuid::Uuid;

use super::bus::Value;

/// What was asked of a key, and what came back.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) call: u64,
    pub(super) back: u64,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    Read(Value),
    Write {
        expected: u64,
        run: Option<Uuid>,
        result: Answer,
    },
    /// Somebody wrote over `expected` what names nobody: who was named before may still send.
    Forge {
        expected: u64,
        revision: u64,
    },
    /// A burst of a run: it may be sent only while the register names the run, or named it before
    /// it was forged.
    Burst(Uuid),
}

impl What {
    /// It may have taken effect, or not.
    const fn is_unsure(&self) -> bool {
        matches!(self, Self::Write { result: Answer::Unknown, .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Accepted(u64),
    Refused,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    revision: Revision,
    run: Option<Uuid>,
    forged: bool,
}

/// The revision of a write without an answer shows in a later read only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Revision {
    Is(u64),
    Above(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Node {
    /// All operations before it took effect.
    first_open: usize,
    /// Those after it that did too, sorted.
    ahead: Vec<usize>,
    state: State,
}

/// Whether the operations, sorted by their calls, have an order that explains them from `initial`.
pub(super) fn is_linearizable(operations: &[Operation], initial: &Value) -> bool {
    let (run, forged) = (run(initial), initial.state == KeyState::Unproven);
    let state = State { revision: Revision::Is(initial.revision), run, forged };
    let mut stack = vec![Node { first_open: 0, ahead: Vec::new(), state }];
    let mut visited = HashSet::new();
    while let Some(node) = stack.pop() {
        if node.first_open == operations.len() {
            return true;
        }
        if !visited.insert(node.clone()) {
            continue;
        }
        let (candidates, earliest_return) = node.candidates(operations);
        // The first to be called is tried first: the stack is read from its end.
        for at in candidates.into_iter().rev() {
            let operation = &operations[at];
            // To have had no effect constrains nothing, so it may as well be the last of choices.
            let without = operation.what.is_unsure() && operation.back == earliest_return;
            stack.extend(without.then(|| node.with(at, node.state)));
            stack.extend(node.state.after(&operation.what).map(|state| node.with(at, state)));
        }
    }
    false
}

/// Whom a value names.
fn run(value: &Value) -> Option<Uuid> {
    value.state.holder().map(|holder| holder.run)
}

impl Node {
    /// What may be the next, and when the first of the open ones returned: no operation that was
    /// called later can come before that one.
    fn candidates(&self, operations: &[Operation]) -> (Vec<usize>, u64) {
        let mut candidates = Vec::new();
        let mut earliest_return = u64::MAX;
        for (at, operation) in operations.iter().enumerate().skip(self.first_open) {
            if operation.call > earliest_return {
                break;
            }
            if self.ahead.binary_search(&at).is_err() {
                earliest_return = earliest_return.min(operation.back);
                candidates.push(at);
            }
        }
        (candidates, earliest_return)
    }

    fn with(&self, at: usize, state: State) -> Self {
        let mut node = Self { state, ..self.clone() };
        let place = node.ahead.partition_point(|done| *done < at);
        node.ahead.insert(place, at);
        while node.ahead.first() == Some(&node.first_open) {
            node.ahead.remove(0);
            node.first_open += 1;
        }
        node
    }
}

impl State {
    /// The state that an operation leaves where it takes effect; `None` if it contradicts this one.
    fn after(self, what: &What) -> Option<Self> {
        match what {
            What::Read(value) => {
                let forged = value.state == KeyState::Unproven;
                let same = self.forged == forged && (forged || self.run == run(value));
                self.known(value.revision).filter(|_| same)
            }
            What::Forge { expected, revision } => {
                self.known(*expected).map(|state| Self { revision: Revision::Is(*revision), forged: true, ..state })
            }
            What::Burst(run) => Some(self).filter(|_| self.run == Some(*run)),
            What::Write { result: Answer::Refused, expected, .. } => {
                (self.revision != Revision::Is(*expected)).then_some(self)
            }
            What::Write { result: Answer::Accepted(new), expected, run } => {
                let written = self.known(*expected).filter(|_| new > expected);
                written.map(|_| Self { revision: Revision::Is(*new), run: *run, forged: false })
            }
            What::Write { result: Answer::Unknown, expected, run } => {
                let revision = Revision::Above(*expected);
                self.known(*expected).map(|_| Self { revision, run: *run, forged: false })
            }
        }
    }

    /// This state, if its revision can be the given one.
    fn known(self, revision: u64) -> Option<Self> {
        let fits = match self.revision {
            Revision::Is(known) => known == revision,
            Revision::Above(least) => revision > least,
        };
        fits.then_some(Self { revision: Revision::Is(revision), ..self })
    }
}

#[cfg(test)]
mod tests {
    use narrows_fleet::lease::Holder;

    use super::*;

    fn write(call: u64, back: u64, expected: u64, run: u128, result: Answer) -> Operation {
        Operation { call, back, what: What::Write { expected, run: Some(Uuid::from_u128(run)), result } }
    }

    fn read(call: u64, back: u64, revision: u64, run: u128) -> Operation {
        let state = KeyState::Held(Holder { agent: "a".parse().unwrap(), run: Uuid::from_u128(run) });
        Operation { call, back, what: What::Read(Value { revision, state }) }
    }

    fn burst(at: u64, run: u128) -> Operation {
        Operation { call: at, back: at, what: What::Burst(Uuid::from_u128(run)) }
    }

    #[test]
    fn histories_worked_by_hand() {
        use Answer::{Accepted, Refused, Unknown};
        let good = |operations: &[Operation]| is_linearizable(operations, &Value::default());
        // Of two writers at once one wins, whoever began first.
        assert!(good(&[write(0, 9, 0, 1, Refused), write(1, 5, 0, 2, Accepted(3)), read(6, 7, 3, 2)]));
        assert!(!good(&[write(0, 9, 0, 1, Accepted(4)), write(1, 5, 0, 2, Accepted(3))]));
        // A read after the write returned sees it; one at the same time need not.
        assert!(!good(&[
            write(0, 2, 0, 1, Accepted(1)),
            Operation { call: 3, back: 4, what: What::Read(Value::default()) }
        ]));
        assert!(good(&[
            write(0, 2, 0, 1, Accepted(1)),
            Operation { call: 1, back: 4, what: What::Read(Value::default()) }
        ]));
        // A write without an answer may have been carried out, late too, but only once.
        assert!(good(&[
            write(0, 99, 0, 1, Unknown),
            Operation { call: 1, back: 2, what: What::Read(Value::default()) },
            read(3, 4, 7, 1)
        ]));
        assert!(!good(&[write(0, 99, 0, 1, Unknown), read(1, 2, 7, 1), read(3, 4, 8, 1)]));
        // A burst needs the register, at its own instant.
        assert!(good(&[write(0, 2, 0, 1, Accepted(1)), burst(3, 1), write(4, 6, 1, 2, Accepted(2)), burst(7, 2)]));
        assert!(!good(&[write(0, 2, 0, 1, Accepted(1)), write(3, 4, 1, 2, Accepted(2)), burst(5, 1)]));
        // Who had the register when it was forged may send until another one has it.
        let forge = Operation { call: 3, back: 3, what: What::Forge { expected: 1, revision: 2 } };
        assert!(good(&[write(0, 2, 0, 1, Accepted(1)), forge.clone(), burst(4, 1), write(5, 6, 2, 2, Accepted(3))]));
        assert!(!good(&[write(0, 2, 0, 1, Accepted(1)), forge.clone(), write(5, 6, 2, 2, Accepted(3)), burst(7, 1)]));
        assert!(!good(&[write(0, 2, 0, 1, Accepted(1)), forge, read(5, 6, 2, 1)]));
    }
}
