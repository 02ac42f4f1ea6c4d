//! Rates, octets, stamps per clock and the metric names of narrows.
