//! Line after line of a file, without copying.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::MAX_LINE_BYTES;
use crate::format::{Position, ReadError};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

const BUFFER_BYTES: usize = 1 << 18;

/// What a line says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `r(x)`
    Read,
    /// `w(x)`
    Write,
    /// `acq(l)`
    Acquire,
    /// `rel(l)`
    Release,
    /// `fork(t)`
    Fork,
    /// `join(t)`
    Join,
    /// `begin`
    Begin,
    /// `end`
    End,
}

/// One line; names are bytes of the file, which need not be UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The thread.
    pub thread: &'a [u8],
    /// What it did.
    pub operation: Operation,
    /// To which variable, lock or thread; empty for a region without a name.
    pub name: &'a [u8],
    /// Where.
    pub location: u32,
}

/// The events of a file, plain or gzip, one line at a time.
pub struct Events<'a> {
    input: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    /// What has been read and not yet handed out.
    start: usize,
    end: usize,
    line: u64,
    at_end: bool,
}

impl<'a> Events<'a> {
    /// Starts to read.
    pub fn new(mut input: impl Read + 'a) -> Result<Self, ReadError> {
        let mut first = Vec::new();
        (&mut input)
            .take(GZIP_MAGIC.len() as u64)
            .read_to_end(&mut first)
            .map_err(|error| read_fault(0, &error))?;
        let gzip = first == GZIP_MAGIC;
        let input = Cursor::new(first).chain(input);
        Ok(Self {
            input: if gzip { Box::new(MultiGzDecoder::new(input)) } else { Box::new(input) },
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            line: 0,
            at_end: false,
        })
    }

    /// The next event; `None` at the end of the file. Empty lines are skipped.
    #[allow(clippy::should_implement_trait)] // the line borrows from the buffer
    pub fn next(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        loop {
            let Some((from, to)) = self.next_line()? else { return Ok(None) };
            let mut to = to;
            while to > from && self.buffer[to - 1].is_ascii_whitespace() {
                to -= 1;
            }
            if from < to {
                let line = self.line;
                return match parse(&self.buffer[from..to]) {
                    Ok(parsed) => Ok(Some(parsed)),
                    Err(fault) => Err(fault.at_line(line, &self.buffer[from..to])),
                };
            }
        }
    }

    /// The number of the line that [`Events::next`] returned last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Bounds of the next line in the buffer, without its end.
    #[inline]
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, ReadError> {
        loop {
            let from = self.start;
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[from..self.end]) {
                self.start = from + length + 1;
                self.line += 1;
                return Ok(Some((from, from + length)));
            }
            if self.at_end {
                if from == self.end {
                    return Ok(None);
                }
                self.start = self.end;
                self.line += 1;
                return Ok(Some((from, self.end)));
            }
            self.refill()?;
        }
    }

    #[cold]
    fn refill(&mut self) -> Result<(), ReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end > MAX_LINE_BYTES {
            let message = format!("the line is longer than {MAX_LINE_BYTES} bytes");
            return Err(ReadError::new(line_start(self.line + 1), message)
                .help("is this a trace in the STD format?"));
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(read_fault(self.line, &error)),
            }
            return Ok(());
        }
    }
}

pub(super) fn line_start(line: u64) -> Position {
    Position::Line { line: u32::try_from(line).unwrap_or(u32::MAX), column: 1 }
}

fn read_fault(lines: u64, error: &io::Error) -> ReadError {
    let message = format!("reading fails here: {}", error.to_string().to_lowercase());
    ReadError::new(line_start(lines + 1), message)
}

/// What is wrong with a line, and at which byte of it.
struct Fault {
    at: usize,
    what: &'static str,
}

impl Fault {
    #[cold]
    fn at_line(&self, line: u64, text: &[u8]) -> ReadError {
        let before = &text[..self.at.min(text.len())];
        let column = 1 + before.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
        let position = Position::Line {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        };
        ReadError::new(position, self.what).help("a line looks like `T0|r(V1)|12`")
    }
}

/// Parses a line without white space at its end.
#[inline]
fn parse(line: &[u8]) -> Result<Line<'_>, Fault> {
    let fault = |at, what| Err(Fault { at, what });
    let Some(first_bar) = line.iter().position(|&byte| byte == b'|') else {
        return fault(0, "no `|` after the thread");
    };
    if first_bar == 0 {
        return fault(0, "no thread before the `|`");
    }
    // The location, from its last digit to the bar before it.
    let mut location = 0u64;
    let mut scale = 1u64;
    let mut at = line.len();
    loop {
        at -= 1; // stops at the first bar at the latest
        match line[at] {
            digit @ b'0'..=b'9' if scale <= 1_000_000_000 => {
                location += u64::from(digit - b'0') * scale;
                scale *= 10;
            }
            b'0' => {} // leading zeros
            b'|' => break,
            _ => return fault(at, "the location is not an integer below 2^32"),
        }
    }
    if at == first_bar {
        return fault(line.len(), "no `|` after the operation");
    }
    if scale == 1 {
        return fault(line.len(), "no location after the `|`");
    }
    let Ok(location) = u32::try_from(location) else {
        return fault(at + 1, "the location is not an integer below 2^32");
    };
    let operation_at = first_bar + 1;
    let field = &line[operation_at..at];
    let (operation, skip) = match field {
        [b'r', b'(', ..] => (Operation::Read, 2),
        [b'w', b'(', ..] => (Operation::Write, 2),
        [b'a', b'c', b'q', b'(', ..] => (Operation::Acquire, 4),
        [b'r', b'e', b'l', b'(', ..] => (Operation::Release, 4),
        [b'f', b'o', b'r', b'k', b'(', ..] => (Operation::Fork, 5),
        [b'j', b'o', b'i', b'n', b'(', ..] => (Operation::Join, 5),
        [b'b', b'e', b'g', b'i', b'n', rest @ ..] => {
            let name = match rest {
                [b'(', name @ .., b')'] => name,
                _ => &[],
            };
            let thread = &line[..first_bar];
            return Ok(Line { thread, operation: Operation::Begin, name, location });
        }
        [b'e', b'n', b'd', ..] => {
            let thread = &line[..first_bar];
            return Ok(Line { thread, operation: Operation::End, name: &[], location });
        }
        _ => return fault(operation_at, "unknown operation"),
    };
    match &field[skip..] {
        [b')'] => fault(operation_at + skip, "no name between the parentheses"),
        [name @ .., b')'] => Ok(Line { thread: &line[..first_bar], operation, name, location }),
        _ => fault(at, "no `)` after the name"),
    }
}
