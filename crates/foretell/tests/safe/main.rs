//! Nobody gets in, nothing is lost: foretell among hostile users, programs, files and tools.

mod closing;
mod common;
mod configuration;
mod faults;
mod files;
mod hostile;
mod left_behind;
mod licences;
mod output;
mod parsers;
mod tools;
