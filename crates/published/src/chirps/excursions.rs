//! Where delays leave their level: excursions that end, and the one that does not (`[Chirp03]` §4;
//! F and L as in the tool).

/// How delays are cut into excursions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rule {
    /// An excursion ends where the delay has fallen below its highest point's height over this (F,
    /// 1.5).
    pub(crate) decrease: f64,
    /// An excursion that ends counts from this many steps on (L, 5).
    pub(crate) busy: usize,
    /// The first point looked at (pathchirp 0, ASSOLO 1).
    pub(crate) from: usize,
    /// A delay has risen if it did by more than this.
    pub(crate) noise: f64,
}

/// What the rule finds. Numbers are of points; step `k` leads from point `k` to the next.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Excursions {
    /// Those that ended and count: begin and end.
    pub(crate) ended: Vec<(usize, usize)>,
    /// Begin of the one that has not ended.
    pub(crate) lasting: Option<usize>,
}

/// Cuts.
pub(crate) fn excursions(delays: &[f64], rule: &Rule) -> Excursions {
    let mut found = Excursions::default();
    let mut from = rule.from;
    while let Some(begin) = next_rise(delays, from, rule.noise) {
        let Some(end) = end(delays, begin, rule.decrease) else {
            found.lasting = Some(begin);
            break;
        };
        if end - begin >= rule.busy {
            found.ended.push((begin, end));
        }
        from = end;
    }
    found
}

fn next_rise(delays: &[f64], from: usize, noise: f64) -> Option<usize> {
    let steps = delays.windows(2).enumerate().skip(from);
    steps.into_iter().find(|(_, two)| two[1] - two[0] > noise).map(|(at, _)| at)
}

fn end(delays: &[f64], begin: usize, decrease: f64) -> Option<usize> {
    let level = delays.get(begin)?;
    let mut highest = 0.0f64;
    let later = delays.iter().enumerate().skip(begin + 1);
    for (at, delay) in later {
        let height = delay - level;
        highest = highest.max(height);
        if height < highest / decrease {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: Rule = Rule { decrease: 1.5, busy: 5, from: 0, noise: 0.0 };

    #[test]
    fn one_that_ends_and_one_that_does_not() {
        // Up from 2 to 5, back below two thirds of the height at 7; then for good from 8.
        let delays = [0.0, 0.0, 0.0, 3.0, 6.0, 9.0, 7.0, 5.0, 0.0, 1.0, 2.0, 4.0];
        let found = excursions(&delays, &TOOL);
        assert_eq!(found.ended, [(2, 7)]);
        assert_eq!(found.lasting, Some(8));
        // It lasts five steps; with a longer least length it does not count, and nothing else
        // changes.
        let longer = excursions(&delays, &Rule { busy: 6, ..TOOL });
        assert_eq!((longer.ended.len(), longer.lasting), (0, Some(8)));
    }

    #[test]
    fn level_and_falling_delays_have_none() {
        assert_eq!(excursions(&[5.0; 20], &TOOL), Excursions::default());
        let falling: Vec<f64> = (0..20).map(|k| -f64::from(k)).collect();
        assert_eq!(excursions(&falling, &TOOL), Excursions::default());
        assert_eq!(excursions(&[], &TOOL), Excursions::default());
        assert_eq!(excursions(&[1.0], &TOOL), Excursions::default());
    }

    #[test]
    fn noise_below_the_limit_begins_nothing() {
        let delays: Vec<f64> = (0..30).map(|k| f64::from(k % 3)).chain([9.0, 19.0, 29.0]).collect();
        let found = excursions(&delays, &Rule { noise: 3.0, ..TOOL });
        assert_eq!(found.lasting, Some(29));
    }
}
