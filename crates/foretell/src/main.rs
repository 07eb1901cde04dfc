//! The command line of foretell.
fn main() {}
