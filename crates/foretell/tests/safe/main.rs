//! Nobody gets in, nothing is lost: foretell among hostile users, programs, files and tools.

mod common;
mod configuration;
mod files;
mod hostile;
mod licences;
mod output;
mod parsers;
mod tools;
