//! What the receiver counted, shared out among streams.

use std::time::Duration;

use narrows_wire::iperf3::StreamResult;

/// Everything that was written was read, and the receiver knows how long that took: what was in
/// buffers and queues when the writing ended neither lacks, as it does in what was acknowledged by
/// then, nor counts as if it had arrived.
pub(super) fn reported_by_receiver(sent: &mut [StreamResult], taken: &mut [StreamResult], octets: u64, time: Duration) {
    let acked: u64 = taken.iter().map(|row| row.octets).fold(0, u64::saturating_add);
    if acked == 0 || octets < acked || time.is_zero() {
        // A receiver that was cut short knows less than the sender.
        return;
    }
    let share = |row: u64| {
        let whole = u128::from(row) * u128::from(octets) / u128::from(acked);
        u64::try_from(whole).unwrap_or(u64::MAX)
    };
    let mut left = octets;
    let last = taken.len().saturating_sub(1);
    for (place, (sent, taken)) in sent.iter_mut().zip(taken).enumerate() {
        let octets = if place == last { left } else { share(taken.octets).min(left) };
        left -= octets;
        (sent.octets, taken.octets) = (octets, octets);
        taken.span_seconds = Some((0.0, time.as_secs_f64()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_s_count_is_shared_out() {
        let row = |octets| StreamResult {
            id: 1,
            octets,
            retransmits: None,
            jitter_seconds: 0.0,
            lost: 0,
            lost_omitted: None,
            datagrams: 0,
            datagrams_omitted: None,
            span_seconds: Some((0.0, 10.0)),
        };
        let rows = || [row(100), row(200), row(0)];
        let (mut sent, mut taken) = (rows(), rows());
        reported_by_receiver(&mut sent, &mut taken, 331, Duration::from_secs(11));
        assert_eq!(taken.each_ref().map(|row| row.octets), [110, 220, 1]);
        assert_eq!(sent.each_ref().map(|row| row.octets), [110, 220, 1]);
        assert_eq!((sent[0].span_seconds, taken[0].span_seconds), (Some((0.0, 10.0)), Some((0.0, 11.0))));
        // Less than was acknowledged: it was cut short.
        let (mut sent, mut taken) = (rows(), rows());
        reported_by_receiver(&mut sent, &mut taken, 299, Duration::from_secs(11));
        assert_eq!((&sent, &taken), (&rows(), &rows()));
    }
}
