//! How findings are shown. Decides nothing: what is predicted, confirmed or unknown comes in and
//! goes out as it is.

pub mod json;
pub mod terminal;

/// The published JSON Schema of everything that `--format json` prints.
pub const SCHEMA: &str = include_str!("../schema/result-1.schema.json");
