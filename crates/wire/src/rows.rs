//! Tables of fixed-size rows: plans, departures, arrivals.

use thiserror::Error;

use crate::bytes::Reader;
use crate::frame::{FrameKind, encode_frame};

/// Octets of each row.
pub const ROW_OCTETS: usize = 16;

/// Most rows of one table; the frame's cap would allow four times as many.
pub const MAX_ROWS: usize = 65_536;

const HEADER_OCTETS: usize = 12;

/// Why a body is no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RowsError {
    /// Its length is not what its header announces.
    #[error("table length and row count disagree")]
    Length,
    /// A table that this version does not know.
    #[error("unknown table {0}")]
    Table(u8),
    /// More rows than any table has.
    #[error("too many rows")]
    Count,
}

/// One packet to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanRow {
    /// Planned time since the previous packet's departure; zero: back to back.
    pub gap_ns: u64,
    /// Length of the IP packet.
    pub ip_octets: u16,
    /// Hop limit; 0: the host's default.
    pub hop_limit: u8,
}

/// One packet that left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepartureRow {
    /// Position in the train.
    pub seq: u32,
    /// Length of the IP packet.
    pub ip_octets: u16,
    /// When, on the sender's clock.
    pub stamp_ns: i64,
}

/// One packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivalRow {
    /// Position in the train.
    pub seq: u32,
    /// Length of the IP packet.
    pub ip_octets: u16,
    /// Hop limit on arrival; 0 if unknown.
    pub hop_limit: u8,
    /// When, on the receiver's clock.
    pub stamp_ns: i64,
}

/// The rows of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Table {
    /// Follows `SendTrain`.
    Plan(Vec<PlanRow>),
    /// Follows `TrainLeft`.
    Departures(Vec<DepartureRow>),
    /// Follows `TrainResult`; first arrivals only, in order of arrival.
    Arrivals(Vec<ArrivalRow>),
}

/// A table and the train it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// Which train.
    pub id: u32,
    /// The rows.
    pub table: Table,
}

impl PlanRow {
    fn write(&self, body: &mut Vec<u8>) {
        body.extend(self.gap_ns.to_be_bytes());
        body.extend(self.ip_octets.to_be_bytes());
        body.extend([self.hop_limit, 0, 0, 0, 0, 0]);
    }

    fn read(row: &mut Reader<'_>) -> Option<Self> {
        Some(Self { gap_ns: row.u64()?, ip_octets: row.u16()?, hop_limit: row.u8()? })
    }
}

impl DepartureRow {
    fn write(&self, body: &mut Vec<u8>) {
        body.extend(self.seq.to_be_bytes());
        body.extend(self.ip_octets.to_be_bytes());
        body.extend([0, 0]);
        body.extend(self.stamp_ns.to_be_bytes());
    }

    fn read(row: &mut Reader<'_>) -> Option<Self> {
        let (seq, ip_octets, _) = (row.u32()?, row.u16()?, row.u16()?);
        Some(Self { seq, ip_octets, stamp_ns: row.i64()? })
    }
}

impl ArrivalRow {
    fn write(&self, body: &mut Vec<u8>) {
        body.extend(self.seq.to_be_bytes());
        body.extend(self.ip_octets.to_be_bytes());
        body.extend([self.hop_limit, 0]);
        body.extend(self.stamp_ns.to_be_bytes());
    }

    fn read(row: &mut Reader<'_>) -> Option<Self> {
        let (seq, ip_octets, hop_limit, _) = (row.u32()?, row.u16()?, row.u8()?, row.u8()?);
        Some(Self { seq, ip_octets, hop_limit, stamp_ns: row.i64()? })
    }
}

impl Table {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Plan(rows) => rows.len(),
            Self::Departures(rows) => rows.len(),
            Self::Arrivals(rows) => rows.len(),
        }
    }

    /// Without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Rows {
    /// Reads the body of a frame of rows.
    pub fn parse(body: &[u8]) -> Result<Self, RowsError> {
        let mut reader = Reader::new(body);
        let header = (reader.u32(), reader.take::<4>(), reader.u32());
        let (Some(id), Some([table, ..]), Some(count)) = header else {
            return Err(RowsError::Length);
        };
        let count = count as usize;
        if count > MAX_ROWS {
            return Err(RowsError::Count);
        }
        if reader.rest().len() != count * ROW_OCTETS {
            return Err(RowsError::Length);
        }
        let rows = reader.rest().chunks_exact(ROW_OCTETS).map(Reader::new);
        let table = match table {
            1 => Table::Plan(rows.filter_map(|mut row| PlanRow::read(&mut row)).collect()),
            2 => Table::Departures(rows.filter_map(|mut row| DepartureRow::read(&mut row)).collect()),
            3 => Table::Arrivals(rows.filter_map(|mut row| ArrivalRow::read(&mut row)).collect()),
            other => return Err(RowsError::Table(other)),
        };
        Ok(Self { id, table })
    }

    /// The whole frame; `None` above [`MAX_ROWS`].
    pub fn frame(&self) -> Option<Vec<u8>> {
        let count = u32::try_from(self.table.len()).ok()?;
        if self.table.len() > MAX_ROWS {
            return None;
        }
        let mut body = Vec::with_capacity(HEADER_OCTETS + self.table.len() * ROW_OCTETS);
        let code = match self.table {
            Table::Plan(_) => 1,
            Table::Departures(_) => 2,
            Table::Arrivals(_) => 3,
        };
        body.extend(self.id.to_be_bytes());
        body.extend([code, 0, 0, 0]);
        body.extend(count.to_be_bytes());
        match &self.table {
            Table::Plan(rows) => rows.iter().for_each(|row| row.write(&mut body)),
            Table::Departures(rows) => rows.iter().for_each(|row| row.write(&mut body)),
            Table::Arrivals(rows) => rows.iter().for_each(|row| row.write(&mut body)),
        }
        encode_frame(FrameKind::Rows, &body)
    }
}

#[cfg(test)]
mod tests;
