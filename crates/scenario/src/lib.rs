//! One builder and one file format for paths, with their derived truth.
