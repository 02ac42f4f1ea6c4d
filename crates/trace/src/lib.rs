//! Recorded observations: what a method asked of a path and what it was told, to be analysed again without probing again.
