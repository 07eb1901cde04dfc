//! What can go wrong when a trace is read or written, with the place and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::Format;

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// In a text: line and column, both from 1; columns count characters.
    Line {
        /// Line from 1.
        line: u32,
        /// Column from 1.
        column: u32,
    },
    /// In a binary file: bytes from the start.
    Byte(u64),
    /// The file as a whole.
    None,
}

impl Position {
    /// The line and column of a byte offset in a text.
    pub fn in_text(text: &str, offset: usize) -> Position {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        // Count characters: every byte that does not continue one.
        let column = 1 + before[line_start..].iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
        Position::Line {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }
}

/// Why a file is not a trace (or schedule) that foretell can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The file; absent when the text came from memory.
    pub path: Option<PathBuf>,
    /// Where in it.
    pub position: Position,
    /// What is wrong: a lower-case fragment.
    pub message: String,
    /// What to do about it: a lower-case fragment.
    pub help: Option<String>,
}

impl ReadError {
    /// An error at a position.
    pub fn new(position: Position, message: impl Into<String>) -> Self {
        Self { path: None, position, message: message.into(), help: None }
    }

    /// An error of the operating system.
    pub fn io(path: &Path, error: &io::Error) -> Self {
        Self::new(Position::None, error.to_string().to_lowercase()).in_file(path)
    }

    /// The same error with what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same error with the file, unless it has one already.
    #[must_use]
    pub fn in_file(mut self, path: &Path) -> Self {
        self.path.get_or_insert_with(|| path.to_owned());
        self
    }
}

impl fmt::Display for ReadError {
    /// `file.ctrc:3:14: what is wrong; what to do`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.position) {
            (Some(path), Position::Line { line, column }) => {
                write!(f, "{}:{line}:{column}: ", path.display())?;
            }
            (Some(path), Position::Byte(offset)) => {
                write!(f, "{}: byte {offset}: ", path.display())?;
            }
            (Some(path), Position::None) => write!(f, "{}: ", path.display())?,
            (None, Position::Line { line, column }) => write!(f, "{line}:{column}: ")?,
            (None, Position::Byte(offset)) => write!(f, "byte {offset}: ")?,
            (None, Position::None) => {}
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ReadError {}

/// Why a trace was not written. Nothing is left under the final name.
#[derive(Debug)]
pub enum WriteError {
    /// The operating system refused.
    Io {
        /// The file that was to be written.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// The format has no way to say something that is in the trace.
    CannotCarry {
        /// The format.
        format: Format,
        /// The first thing that does not fit, e.g. ``event T1#3: a mutex acquire``.
        what: String,
    },
}

impl WriteError {
    /// The format cannot carry `what`.
    pub fn cannot_carry(format: Format, what: impl Into<String>) -> Self {
        WriteError::CannotCarry { format, what: what.into() }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Io { path, error } => {
                write!(f, "cannot write {}: {}", path.display(), error.to_string().to_lowercase())
            }
            WriteError::CannotCarry { format, what } => {
                write!(f, "the {format} format cannot carry {what}; choose text or binary")
            }
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Io { error, .. } => Some(error),
            WriteError::CannotCarry { .. } => None,
        }
    }
}
