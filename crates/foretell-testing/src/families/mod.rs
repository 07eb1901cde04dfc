//! The papers' benchmark families as traces of any size (000 Table 1, 004 Table 1), and a large
//! one: for the tests, the bench and anybody who wants to try something.
//!
//! The programs are small, but their steps carry what a recorder would write. Each family says
//! what is wrong with it; the tests and the bench compare that with what is predicted.

mod atom;
mod bank;
mod banking;
mod blocks;
mod counters;
mod indexer;
mod lost_update;
mod program;

pub use atom::{atom001, atom002};
pub use bank::{BankVersion, bank};
pub use banking::banking;
pub use blocks::{Blocks, blocks};
pub use counters::{Counters, counters};
pub use indexer::{first_collision, indexer};
pub use lost_update::lost_update;
pub use program::Program;
