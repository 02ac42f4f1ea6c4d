//! The probe vocabulary, the estimator contract, the registry and every method.
