//! Discrete-event path simulator, and the estimators' world over it.
