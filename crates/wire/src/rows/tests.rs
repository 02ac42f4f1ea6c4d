use proptest::prelude::*;

use super::*;
use crate::frame::{FrameCaps, FrameReader};

fn body(rows: &Rows) -> Vec<u8> {
    let mut reader = FrameReader::new(FrameCaps::SESSION);
    reader.push(&rows.frame().unwrap());
    reader.next_frame().unwrap().unwrap().body
}

#[test]
fn the_layout_of_an_arrival() {
    let rows = Rows {
        id: 7,
        table: Table::Arrivals(vec![ArrivalRow { seq: 1, ip_octets: 1500, hop_limit: 64, stamp_ns: -2 }]),
    };
    let expected = [
        [0, 0, 0, 7, 3, 0, 0, 0, 0, 0, 0, 1].as_slice(),
        &[0, 0, 0, 1, 0x05, 0xDC, 64, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE],
    ]
    .concat();
    assert_eq!(body(&rows), expected);
}

#[test]
fn counts_that_lie() {
    let mut octets = body(&Rows { id: 7, table: Table::Plan(vec![]) });
    for (count, error) in [
        (1u32, RowsError::Length),
        (65_536, RowsError::Length),
        (65_537, RowsError::Count),
        (u32::MAX, RowsError::Count),
    ] {
        octets[8..12].copy_from_slice(&count.to_be_bytes());
        assert_eq!(Rows::parse(&octets), Err(error));
    }
    octets[8..12].fill(0);
    octets[4] = 4;
    assert_eq!(Rows::parse(&octets), Err(RowsError::Table(4)));
    let many = Table::Plan(vec![PlanRow { gap_ns: 0, ip_octets: 0, hop_limit: 0 }; MAX_ROWS + 1]);
    assert_eq!(Rows { id: 0, table: many }.frame(), None);
}

fn tables() -> impl Strategy<Value = Table> {
    let plan =
        any::<(u64, u16, u8)>().prop_map(|(gap_ns, ip_octets, hop_limit)| PlanRow { gap_ns, ip_octets, hop_limit });
    let left =
        any::<(u32, u16, i64)>().prop_map(|(seq, ip_octets, stamp_ns)| DepartureRow { seq, ip_octets, stamp_ns });
    let came = any::<(u32, u16, u8, i64)>().prop_map(|(seq, ip_octets, hop_limit, stamp_ns)| ArrivalRow {
        seq,
        ip_octets,
        hop_limit,
        stamp_ns,
    });
    prop_oneof![
        proptest::collection::vec(plan, 0..20).prop_map(Table::Plan),
        proptest::collection::vec(left, 0..20).prop_map(Table::Departures),
        proptest::collection::vec(came, 0..20).prop_map(Table::Arrivals),
    ]
}

proptest! {
    #[test]
    fn there_and_back_and_truncated(id: u32, table in tables(), cut: prop::sample::Index) {
        let rows = Rows { id, table };
        let octets = body(&rows);
        prop_assert_eq!(Rows::parse(&octets), Ok(rows));
        prop_assert_eq!(Rows::parse(&octets[..cut.index(octets.len())]), Err(RowsError::Length));
    }

    #[test]
    fn any_octets_are_survived(octets: Vec<u8>) {
        if let Ok(rows) = Rows::parse(&octets) {
            prop_assert_eq!(12 + rows.table.len() * ROW_OCTETS, octets.len());
        }
    }
}
