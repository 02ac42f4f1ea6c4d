//! Small worlds for the tests of methods: paths in closed form and a path with hosts that
//! misbehave.

pub mod closed_form_world;
pub mod fluid;
pub mod fluid_path;
