//! One file a command: reads what it needs, calls the library, prints.

pub mod cargo;
pub mod cases;
mod clients;
pub mod cmake;
pub mod config;
pub mod doctor;
pub mod explain;
pub mod explained;
pub mod explaining;
pub mod fix;
pub mod frameworks;
pub mod merge;
pub mod past;
pub mod pddl;
pub mod predict;
pub mod program;
pub mod record;
pub mod replay;
pub mod report;
pub mod resume;
pub mod schedules;
pub mod test;
pub mod trace;
mod trials;
pub mod verify;
