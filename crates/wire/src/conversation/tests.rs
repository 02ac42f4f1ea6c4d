use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::limits::SessionLimits;
use crate::message::{
    Direction, HostFacts, LoadPlan, LoadSegment, LoadSent, LoadStatus, StampSource, TrainExpectation, TrainResult,
    TransferPlan, TransferReceived, TransferSegment, TransferSent,
};
use crate::rows::{ArrivalRow, PlanRow};
use crate::secret::{Nonce, Proof, Token};

fn hello() -> ClientMessage {
    ClientMessage::Hello { version: 1, nonce: Nonce::new([0; 16]), key_name: None }
}

fn welcome(auth: Auth) -> ServerMessage {
    ServerMessage::Welcome { version: 1, nonce: Nonce::new([1; 16]), auth }
}

fn session() -> ServerMessage {
    ServerMessage::Session {
        session: 1,
        token: Token::new([2; 16]),
        proof: None,
        limits: SessionLimits::default(),
        host: HostFacts {
            send_cost_ns: 0,
            receive_cost_ns: 0,
            clock_resolution_ns: 0,
            stamp_error_ns: 0,
            stamp_source: StampSource::User,
            min_gap_ns: 0,
            max_send_rate_bps: None,
            interface_rate_bps: None,
            virtual_interface: false,
        },
    }
}

fn open() -> Conversation {
    let mut conversation = Conversation::new();
    conversation.client(&hello()).unwrap();
    conversation.server(&welcome(Auth::None)).unwrap();
    conversation.server(&session()).unwrap();
    assert!(conversation.is_open());
    conversation
}

fn expect(id: u32) -> ClientMessage {
    ClientMessage::ExpectTrain(TrainExpectation {
        id,
        flow: 0,
        packets: 2,
        ip_octets: 3000,
        duration_ns: 0,
        quiet_ns: 0,
    })
}

fn result(id: u32) -> ServerMessage {
    ServerMessage::TrainResult(TrainResult {
        id,
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        stamps: StampSource::Kernel,
    })
}

fn arrivals(id: u32) -> Rows {
    Rows { id, table: Table::Arrivals(Vec::<ArrivalRow>::new()) }
}

fn load(id: u32, direction: Direction) -> ClientMessage {
    ClientMessage::LoadBegin(LoadPlan {
        id,
        direction,
        streams: 1,
        ip_octets: 1500,
        max_rate_bps: None,
        max_duration_ns: 1,
        status_every_ns: 50_000_000,
        quiet_ns: 0,
        tuning: None,
    })
}

fn transfer(id: u32, direction: Direction) -> ClientMessage {
    ClientMessage::TransferBegin(TransferPlan {
        id,
        direction,
        max_streams: 1,
        max_duration_ns: 1,
        congestion: None,
        window_octets: None,
        pacing_bps: None,
        tuning: None,
    })
}

#[test]
fn a_key_is_proved_before_anything_else() {
    let mut conversation = Conversation::new();
    assert!(conversation.client(&ClientMessage::Alive).is_err());
    conversation.client(&hello()).unwrap();
    assert!(conversation.client(&hello()).is_err());
    conversation.server(&welcome(Auth::Psk)).unwrap();
    assert!(conversation.server(&session()).is_err());
    assert!(conversation.client(&expect(1)).is_err());
    let proof = Proof::new([0; 32]);
    conversation.client(&ClientMessage::Prove { proof }).unwrap();
    conversation.server(&session()).unwrap();
    assert!(conversation.client(&ClientMessage::Prove { proof }).is_err());
    conversation.client(&expect(1)).unwrap();
}

#[test]
fn a_train_in_order_and_out_of_order() {
    let mut conversation = open();
    conversation.client(&expect(1)).unwrap();
    assert!(conversation.client(&expect(2)).is_err());
    let sent = ClientMessage::TrainSent { id: 1, packets: 2 };
    assert!(conversation.clone().client(&sent).is_err(), "before Armed");
    conversation.server(&ServerMessage::Armed { id: 1 }).unwrap();
    assert!(conversation.server(&result(1)).is_err());
    conversation.client(&sent).unwrap();
    assert!(conversation.server(&result(2)).is_err());
    conversation.server(&result(1)).unwrap();
    assert!(conversation.rows(Side::Client, &arrivals(1)).is_err());
    assert!(conversation.rows(Side::Server, &arrivals(2)).is_err());
    conversation.rows(Side::Server, &arrivals(1)).unwrap();
    assert!(!conversation.is_busy());
    conversation.client(&expect(2)).unwrap();
}

#[test]
fn what_crosses_a_refusal_is_stale() {
    let mut conversation = open();
    conversation.client(&load(5, Direction::Reverse)).unwrap();
    conversation.server(&ServerMessage::LoadReady { id: 5 }).unwrap();
    let broken = ServerMessage::refused(RefusalCode::Internal, Some(5), "socket");
    conversation.server(&broken).unwrap();
    let end = ClientMessage::LoadEnd { id: 5 };
    assert_eq!(conversation.client(&end), Ok(MessageVerdict::Stale));
    assert!(conversation.client(&ClientMessage::LoadEnd { id: 6 }).is_err());
    let ask = ClientMessage::SendTrain { id: 7, flow: 0 };
    conversation.client(&ask).unwrap();
    conversation.server(&ServerMessage::refused(RefusalCode::Limit, Some(7), "too long")).unwrap();
    let plan = Rows { id: 7, table: Table::Plan(Vec::<PlanRow>::new()) };
    assert_eq!(conversation.rows(Side::Client, &plan), Ok(MessageVerdict::Stale));
}

#[test]
fn final_refusals_end_it() {
    let mut conversation = open();
    conversation.server(&ServerMessage::refused(RefusalCode::Protocol, None, "bad")).unwrap();
    assert!(conversation.is_closed());
    assert!(conversation.client(&ClientMessage::Bye).is_err());
}

#[test]
fn slots() {
    let kind = SlotKind::Load;
    let mut conversation = open();
    assert!(conversation.server(&ServerMessage::GrantedScheduling { kind }).is_err());
    conversation.client(&ClientMessage::slot(kind)).unwrap();
    assert!(conversation.client(&ClientMessage::slot(SlotKind::Light)).is_err());
    conversation.server(&ServerMessage::Queued { kind, place: 2 }).unwrap();
    conversation.server(&ServerMessage::GrantedScheduling { kind }).unwrap();
    assert!(conversation.holds(kind));
    conversation.client(&ClientMessage::Release { kind }).unwrap();
    assert!(!conversation.holds(kind));
    assert!(conversation.client(&ClientMessage::slot(kind)).is_err());
    assert_eq!(conversation.server(&ServerMessage::GrantedScheduling { kind }), Ok(MessageVerdict::Stale));
    conversation.server(&ServerMessage::Released { kind }).unwrap();
    conversation.client(&ClientMessage::slot(kind)).unwrap();
    conversation.server(&ServerMessage::refused(RefusalCode::Busy, None, "queue is full")).unwrap();
    conversation.client(&ClientMessage::slot(kind)).unwrap();
}

const TRIES: usize = 33;

/// What each side of the model may try next.
#[derive(Debug, Clone)]
enum Said {
    Client(ClientMessage),
    Server(ServerMessage),
    Rows(Side, Rows),
}

fn tries() -> Vec<Said> {
    let mut tries = train_tries();
    tries.extend(load_tries());
    tries.extend(transfer_tries());
    tries.push(Said::Server(ServerMessage::refused(RefusalCode::Internal, Some(1), "")));
    tries
}

fn train_tries() -> Vec<Said> {
    let (kind, id) = (SlotKind::Load, 1);
    let plan = Table::Plan(Vec::new());
    let departures = Table::Departures(Vec::new());
    vec![
        Said::Client(ClientMessage::slot(kind)),
        Said::Client(ClientMessage::Release { kind }),
        Said::Client(expect(id)),
        Said::Client(ClientMessage::TrainSent { id, packets: 2 }),
        Said::Client(ClientMessage::SendTrain { id, flow: 0 }),
        Said::Client(ClientMessage::Alive),
        Said::Rows(Side::Client, Rows { id, table: plan }),
        Said::Server(ServerMessage::GrantedScheduling { kind }),
        Said::Server(ServerMessage::Queued { kind, place: 1 }),
        Said::Server(ServerMessage::Released { kind }),
        Said::Server(ServerMessage::Armed { id }),
        Said::Server(result(id)),
        Said::Rows(Side::Server, arrivals(id)),
        Said::Server(ServerMessage::TrainLeft {
            id,
            stamps: StampSource::User,
            pacing: crate::message::Pacing::Unknown,
            send_failures: 0,
        }),
        Said::Rows(Side::Server, Rows { id, table: departures }),
    ]
}

fn load_tries() -> Vec<Said> {
    let id = 1;
    let status = LoadStatus {
        id,
        from_ns: 0,
        to_ns: 0,
        packets: 0,
        ip_octets: 0,
        lost: 0,
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        delay_ns: None,
        receiver_cpu_permille: None,
    };
    let sent = LoadSent {
        id,
        began_ns: 0,
        ended_ns: 0,
        packets: 0,
        ip_octets: 0,
        send_failures: 0,
        sender_cpu_permille: None,
        held_up_ns: 0,
        spent: false,
    };
    let segment = LoadSegment { id, rate_bps: None, burst: 1, duration_ns: 1, continues: true };
    vec![
        Said::Client(load(id, Direction::Forward)),
        Said::Client(load(id, Direction::Reverse)),
        Said::Client(ClientMessage::LoadSegment(segment)),
        Said::Client(ClientMessage::LoadEnd { id }),
        Said::Server(ServerMessage::LoadReady { id }),
        Said::Server(ServerMessage::LoadStatus(status)),
        Said::Server(ServerMessage::LoadSent(sent)),
        Said::Server(ServerMessage::LoadDone { id }),
    ]
}

fn transfer_tries() -> Vec<Said> {
    let id = 1;
    let segment = TransferSegment { id, streams: 1, duration_ns: 1, sample_every_ns: 1_000_000, continues: false };
    let received = TransferReceived { id, octets: 0, span_ns: None, receiver_cpu_permille: None };
    let sent =
        TransferSent { id, began_ns: 0, ended_ns: 0, streams: Vec::new(), sender_cpu_permille: None, spent: false };
    vec![
        Said::Client(transfer(id, Direction::Forward)),
        Said::Client(transfer(id, Direction::Reverse)),
        Said::Client(ClientMessage::TransferSegment(segment)),
        Said::Client(ClientMessage::TransferEnd { id }),
        Said::Server(ServerMessage::TransferReady { id }),
        Said::Server(ServerMessage::TransferReceived(received)),
        Said::Server(ServerMessage::TransferSamples { id, stream: 0, samples: Vec::new() }),
        Said::Server(ServerMessage::TransferSent(sent)),
        Said::Server(ServerMessage::TransferDone { id }),
    ]
}

fn hear(conversation: &mut Conversation, said: &Said) -> Result<MessageVerdict, Violation> {
    match said {
        Said::Client(message) => conversation.client(message),
        Said::Server(message) => conversation.server(message),
        Said::Rows(side, rows) => conversation.rows(*side, rows),
    }
}

fn by(said: &Said) -> Side {
    match said {
        Said::Client(_) => Side::Client,
        Said::Server(_) => Side::Server,
        Said::Rows(side, _) => *side,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Two honest sides, each of which says only what its own copy calls in order, with messages
    /// that cross on the way: neither ever sees a violation, and once all has arrived the copies
    /// agree.
    #[test]
    fn honest_sides_never_violate(choices in proptest::collection::vec((any::<bool>(), 0usize..TRIES), 1..400)) {
        let tries = tries();
        prop_assert_eq!(tries.len(), TRIES);
        let (mut client, mut server) = (open(), open());
        let (mut up, mut down) = (VecDeque::<Said>::new(), VecDeque::<Said>::new());
        for (deliver, which) in choices {
            let said = &tries[which];
            match (deliver, by(said)) {
                (true, Side::Client) => if let Some(said) = up.pop_front() {
                    prop_assert!(hear(&mut server, &said).is_ok(), "server hears {said:?} in {server:?}");
                },
                (true, Side::Server) => if let Some(said) = down.pop_front() {
                    prop_assert!(hear(&mut client, &said).is_ok(), "client hears {said:?} in {client:?}");
                },
                (false, Side::Client) => {
                    let mut tried = client.clone();
                    if hear(&mut tried, said) == Ok(MessageVerdict::Act) {
                        client = tried;
                        up.push_back(said.clone());
                    }
                }
                (false, Side::Server) => {
                    let mut tried = server.clone();
                    if hear(&mut tried, said) == Ok(MessageVerdict::Act) {
                        server = tried;
                        down.push_back(said.clone());
                    }
                }
            }
        }
        for said in up {
            prop_assert!(hear(&mut server, &said).is_ok(), "server hears {said:?} in {server:?}");
        }
        for said in down {
            prop_assert!(hear(&mut client, &said).is_ok(), "client hears {said:?} in {client:?}");
        }
        prop_assert_eq!(client.activity, server.activity);
        prop_assert_eq!(client.load, server.load);
    }

    #[test]
    fn any_order_is_survived(choices in proptest::collection::vec(0usize..TRIES, 0..100)) {
        let tries = tries();
        let mut conversation = open();
        for which in choices {
            let _ = hear(&mut conversation, &tries[which]);
        }
    }
}
