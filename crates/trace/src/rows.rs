//! A train's rows as differences: small numbers, which compress well.

use narrows_probe::StampSource;
use narrows_probe::probes::{Arrival, Fate, HopReply, HopReplyKind, PacingCheck, TrainId, TrainReport};
use narrows_units::Stamp;
use serde::{Deserialize, Serialize};

/// A [`TrainReport`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TrainForm {
    id: TrainId,
    reordered: u32,
    duplicates: u32,
    local_drops: u32,
    departed_by: StampSource,
    arrived_by: StampSource,
    pacing: PacingCheck,
    rows: Vec<RowForm>,
}

/// An [`Arrival`], as differences to the row before (to zeros for the first): position less one,
/// departure, length.
#[derive(Debug, Serialize, Deserialize)]
struct RowForm {
    seq: i32,
    departed: i64,
    ip_octets: i16,
    fate: FateForm,
}

/// A [`Fate`]. Receive stamps are differences to the receive stamp before, return stamps to the
/// row's own departure.
#[derive(Debug, Serialize, Deserialize)]
enum FateForm {
    Received(i64),
    Echoed { returned: i64, turned: Option<i64> },
    Answered { from: std::net::IpAddr, returned: i64, reply_ip_octets: u16, kind: HopReplyKind },
    Lost,
}

/// What the next row is a difference to. All arithmetic wraps, so that any file gives some report.
#[derive(Default)]
struct Before {
    seq: u32,
    departed: i64,
    ip_octets: u16,
    received: i64,
}

impl From<&TrainReport> for TrainForm {
    fn from(report: &TrainReport) -> Self {
        let mut before = Before { seq: u32::MAX, ..Before::default() };
        Self {
            id: report.id,
            reordered: report.reordered,
            duplicates: report.duplicates,
            local_drops: report.local_drops,
            departed_by: report.departed_by,
            arrived_by: report.arrived_by,
            pacing: report.pacing,
            rows: report.arrivals.iter().map(|row| before.pack(row)).collect(),
        }
    }
}

impl From<TrainForm> for TrainReport {
    fn from(form: TrainForm) -> Self {
        let mut before = Before { seq: u32::MAX, ..Before::default() };
        Self {
            id: form.id,
            arrivals: form.rows.iter().map(|row| before.unpack(row)).collect(),
            reordered: form.reordered,
            duplicates: form.duplicates,
            local_drops: form.local_drops,
            departed_by: form.departed_by,
            arrived_by: form.arrived_by,
            pacing: form.pacing,
        }
    }
}

impl Before {
    fn pack(&mut self, row: &Arrival) -> RowForm {
        let departed = row.departed.nanos();
        let form = RowForm {
            seq: row.seq.wrapping_sub(self.seq).wrapping_sub(1).cast_signed(),
            departed: departed.wrapping_sub(self.departed),
            ip_octets: row.ip_octets.wrapping_sub(self.ip_octets).cast_signed(),
            fate: match row.fate {
                Fate::Received(stamp) => FateForm::Received(self.received(stamp.nanos())),
                Fate::Echoed { returned, turned } => FateForm::Echoed {
                    returned: returned.nanos().wrapping_sub(departed),
                    turned: turned.map(|stamp| self.received(stamp.nanos())),
                },
                Fate::Answered(reply) => FateForm::Answered {
                    from: reply.from,
                    returned: reply.returned.nanos().wrapping_sub(departed),
                    reply_ip_octets: reply.reply_ip_octets,
                    kind: reply.kind,
                },
                Fate::Lost => FateForm::Lost,
            },
        };
        self.seq = row.seq;
        self.departed = departed;
        self.ip_octets = row.ip_octets;
        form
    }

    fn received(&mut self, nanos: i64) -> i64 {
        let step = nanos.wrapping_sub(self.received);
        self.received = nanos;
        step
    }

    fn unpack(&mut self, form: &RowForm) -> Arrival {
        self.seq = self.seq.wrapping_add(form.seq.cast_unsigned()).wrapping_add(1);
        self.departed = self.departed.wrapping_add(form.departed);
        self.ip_octets = self.ip_octets.wrapping_add(form.ip_octets.cast_unsigned());
        let departed = self.departed;
        let fate = match form.fate {
            FateForm::Received(step) => Fate::Received(self.stamp(step)),
            FateForm::Echoed { returned, turned } => Fate::Echoed {
                returned: Stamp::from_nanos(departed.wrapping_add(returned)),
                turned: turned.map(|step| self.stamp(step)),
            },
            FateForm::Answered { from, returned, reply_ip_octets, kind } => Fate::Answered(HopReply {
                from,
                returned: Stamp::from_nanos(departed.wrapping_add(returned)),
                reply_ip_octets,
                kind,
            }),
            FateForm::Lost => Fate::Lost,
        };
        Arrival { seq: self.seq, departed: Stamp::from_nanos(departed), ip_octets: self.ip_octets, fate }
    }

    fn stamp(&mut self, step: i64) -> Stamp<narrows_units::Receiver> {
        self.received = self.received.wrapping_add(step);
        Stamp::from_nanos(self.received)
    }
}
