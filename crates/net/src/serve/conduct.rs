//! The thread that carries out one session's trains, loads and transfers, one after the other.
//!
//! Plain blocking code: orders come in by one channel, words for the client go out by another.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread;

use narrows_wire::ServerMessage;
use tokio::sync::mpsc::UnboundedSender;

use super::conductor::Conductor;
use super::orders::{Order, Word};
use super::session::ServedSession;
use super::{bulk, load, train};

/// Starts the thread; it ends with the session, or when the sender of orders is dropped.
pub(super) fn start(
    session: Arc<ServedSession>,
    orders: Receiver<Order>,
    words: UnboundedSender<Word>,
) -> io::Result<()> {
    let conductor = Conductor::new(session, orders, words);
    thread::Builder::new().name("conductor".to_owned()).spawn(move || run(&conductor))?;
    Ok(())
}

fn run(conductor: &Conductor) {
    let session = &conductor.session;
    while let Some(order) = conductor.next() {
        session.halted.store(session.ended.load(Ordering::Relaxed), Ordering::Relaxed);
        let (id, done) = match order {
            Order::ExpectTrain(train) => (train.id, train::receive(conductor, &train)),
            Order::SendTrain { id, flow, plan } => (id, train::send(conductor, id, flow, &plan)),
            Order::LoadBegin(plan) => (plan.id, load::run(conductor, &plan)),
            Order::TransferBegin(plan) => (plan.id, bulk::run(conductor, &plan)),
            // Late words about something that was broken off.
            Order::TrainSent { .. }
            | Order::LoadSegment(_)
            | Order::LoadEnd
            | Order::TransferSegment(_)
            | Order::TransferEnd => continue,
        };
        if let Err(broken) = done {
            tracing::info!(session = session.id, text = broken.text, "broken off");
            conductor.say(ServerMessage::refused(broken.code, Some(id), broken.text));
        }
    }
}
