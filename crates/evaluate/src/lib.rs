//! Evaluation plans: scenarios, methods, parameters, seeds and worlds crossed, run, kept and summarised; rivals beside them.

pub mod rival;
