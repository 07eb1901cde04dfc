//! How findings are shown. Decides nothing: what is predicted, confirmed or unknown comes in and
//! goes out as it is.
//!
//! [`Report`] is the result as data; every renderer takes it and nothing else.

mod assemble;
pub mod fingerprint;
pub mod html;
pub mod junit;
pub mod limits;
pub mod markdown;
pub mod perfetto;
pub mod report;
pub mod sarif;
pub mod session;
pub mod source;
pub mod story;
pub mod suppress;
pub mod terminal;
pub mod timeline;

pub use assemble::shell_word;
pub use foretell_guard::sha256;
pub use report::{Report, ReportError};

/// The published JSON Schema of everything that `--format json` prints.
pub const SCHEMA: &str = include_str!("../schema/result-1.schema.json");
