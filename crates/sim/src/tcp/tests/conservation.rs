//! Sender and receiver over a network that loses, delays and reorders at random.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{MS, MSS, SECOND, flow as new_flow};
use crate::rng::{Purpose, Stream};
use crate::tcp::flow::Flow;
use crate::tcp::segment::{Ack, Data};
use crate::tcp::{Control, FlowConfig, ReceiveWindow};
use narrows_units::Stamp;

/// A network in which each packet has its own delay.
struct MisbehavingWorld {
    rng: Stream,
    loss: f64,
    spread: u64,
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
}

enum Event {
    Data(Data),
    Ack(Ack),
}

impl MisbehavingWorld {
    fn carry(&mut self, now: u64, event: Event) {
        self.count += 1;
        if !self.rng.chance(self.loss) {
            let at = now + 5 * MS + self.rng.below(self.spread + 1);
            self.events.insert((at, self.count), event);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_data_arrive_once_and_within_the_window(
        seed in 0u64..1 << 40,
        loss in prop_oneof![Just(0.0), 0.0..0.3f64],
        spread in prop_oneof![Just(0u64), 0..20 * MS],
        window in 1u64..200,
        tuned in any::<bool>(),
        cubic in any::<bool>(),
    ) {
        let control = if cubic { Control::Cubic } else { Control::Reno };
        let window = if tuned { ReceiveWindow::Autotuned(window * MSS) } else { ReceiveWindow::Fixed(window * MSS) };
        let most = match window { ReceiveWindow::Fixed(octets) | ReceiveWindow::Autotuned(octets) => octets / MSS };
        let mut flow = Flow::new(&FlowConfig { window, ..new_flow(control) });
        let rng = Stream::new(seed, Purpose::Source(0));
        let mut misbehaving = MisbehavingWorld { rng, loss, spread, events: BTreeMap::new(), count: 0 };
        let (mut now, mut sent, mut finished) = (0, 0u64, false);
        loop {
            while let Some(data) = flow.transmit(now) {
                sent += 1;
                let board = &flow.sender.board;
                prop_assert!(data.seq < flow.receiver.read().0 + most, "beyond the window");
                prop_assert!(data.seq < board.next() && board.in_flight() <= board.outstanding());
                prop_assert!(u64::from(board.outstanding()) <= most);
                misbehaving.carry(now, Event::Data(data));
            }
            if !finished && sent >= 300 {
                finished = true;
                flow.sender.finish();
            }
            if finished && flow.sender.is_done() {
                break;
            }
            let next = misbehaving.events.first_key_value().map_or(u64::MAX, |((at, _), _)| *at).min(flow.next_at());
            prop_assert!(next < 100_000 * SECOND && next >= now, "stuck at {now}");
            now = next;
            while let Some(event) = misbehaving.events.first_entry().filter(|event| event.key().0 <= now) {
                match event.remove() {
                    Event::Data(data) => {
                        if let Some(ack) = flow.on_data(now, &data) {
                            misbehaving.carry(now, Event::Ack(ack));
                        }
                    }
                    Event::Ack(ack) => flow.on_ack(now, &ack),
                }
            }
            if let Some(ack) = flow.on_timers(now) {
                misbehaving.carry(now, Event::Ack(ack));
            }
        }
        let sample = flow.sample(now, Stamp::from_nanos(0));
        prop_assert_eq!(flow.read().0, sample.acked_octets);
        prop_assert!(flow.receiver.read().0 >= 300.min(sent) - u64::from(sample.retransmitted_segments));
        prop_assert_eq!(sample.sent_octets.unwrap() - sample.retransmitted_octets.unwrap(), sample.acked_octets);
        prop_assert_eq!((sample.in_flight_segments, sample.unsent_octets), (0, Some(0)));
        if loss == 0.0 && spread == 0 {
            prop_assert_eq!(sample.retransmitted_segments, 0);
        }
    }
}
