//! The files that carry traces: which format a file has, reading and writing by path.
//!
//! A reader never panics, allocates no more than the file's size warrants, and says where and what
//! is wrong. A writer refuses what its format cannot say, naming the first such thing, and never
//! leaves a partial file under the final name.

pub mod binary;
pub mod ctrc;
mod error;
pub mod limits;
mod mapped;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod rapid;
pub mod text;

pub use error::{Position, ReadError, WriteError};
pub use mapped::Mapped;

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use foretell_guard::{Keep, Replacement};

use crate::trace::Trace;

/// The formats of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Our own binary format: what the recorder writes.
    Binary,
    /// Our own text format: what people write and read.
    Text,
    /// TARA's format of abstract traces.
    Ctrc,
    /// RAPID's text format, plain or compressed with gzip.
    Std,
    /// What a program did, as its runtime recorded it: what `foretell record` writes. The crate
    /// `foretell-record` makes a trace of it; nobody else reads it.
    Log,
}

/// The first bytes of a log. Its layout is described where it is written and read, in the crate
/// `foretell-record`; here it is only recognised.
pub const LOG_MAGIC: [u8; 8] = *b"\x89FTLOG\r\n";

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Binary => "binary",
            Format::Text => "text",
            Format::Ctrc => "CTRC",
            Format::Std => "STD",
            Format::Log => "log",
        })
    }
}

impl Format {
    /// How many of a file's first bytes [`Format::detect`] looks at.
    pub const DETECT_BYTES: usize = 4096;

    /// The format of the file, by its first bytes where they decide, else by its name. `None` when
    /// neither does.
    pub fn detect(path: &Path, first: &[u8]) -> Option<Format> {
        Self::of_content(first).or_else(|| Self::of_name(path))
    }

    /// The format that a file of this name should have.
    pub fn of_name(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        [
            (".std.gz", Format::Std),
            (".std", Format::Std),
            (".ctrc", Format::Ctrc),
            (".ft", Format::Text),
            (".trace", Format::Text),
            (".ftrace", Format::Binary),
        ]
        .into_iter()
        .find_map(|(extension, format)| name.ends_with(extension).then_some(format))
    }

    fn of_content(first: &[u8]) -> Option<Format> {
        const GZIP: &[u8] = &[0x1f, 0x8b];
        if first.starts_with(GZIP) {
            return Some(Format::Std);
        }
        if first.starts_with(&binary::FILE_HEADER[..8]) {
            return Some(Format::Binary);
        }
        if first.starts_with(&LOG_MAGIC) {
            return Some(Format::Log);
        }
        let text = String::from_utf8_lossy(first);
        let line =
            text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
        if line.split_whitespace().next() == Some("foretell-trace") {
            Some(Format::Text)
        } else if line.strip_prefix("global").is_some_and(|rest| rest.trim_start().starts_with(':'))
        {
            Some(Format::Ctrc)
        } else {
            // `T0|r(V1)|12`
            let mut fields = line.split('|');
            let operation = fields.nth(1)?;
            (fields.next().is_some() && operation.contains('(')).then_some(Format::Std)
        }
    }
}

/// A trace file whose format is known.
pub struct Opened {
    /// The format.
    pub format: Format,
    first: Vec<u8>,
    rest: File,
}

impl Opened {
    /// Opens the file and looks at its first bytes.
    pub fn new(path: &Path) -> Result<Self, ReadError> {
        let mut rest = File::open(path).map_err(|error| ReadError::io(path, &error))?;
        let mut first = Vec::new();
        (&mut rest)
            .take(Format::DETECT_BYTES as u64)
            .read_to_end(&mut first)
            .map_err(|error| ReadError::io(path, &error))?;
        if first.is_empty() {
            return Err(ReadError::new(Position::None, "the file is empty")
                .help("record a run with `foretell record`")
                .in_file(path));
        }
        let format = Format::detect(path, &first).ok_or_else(|| {
            ReadError::new(Position::None, "not a trace of a known format")
                .help("name the file .ftrace (binary), .ft (text), .ctrc or .std")
                .in_file(path)
        })?;
        Ok(Self { format, first, rest })
    }

    /// The whole file as a stream.
    pub fn stream(self) -> impl Read {
        io::Cursor::new(self.first).chain(self.rest)
    }

    /// The whole file in memory, mapped where that is possible.
    pub fn bytes(self) -> io::Result<Mapped> {
        Mapped::new(self.first, self.rest)
    }

    /// Reads the trace; `path` is the one that was opened.
    pub fn read(self, path: &Path) -> Result<Trace, ReadError> {
        let bytes = |opened: Self| opened.bytes().map_err(|error| ReadError::io(path, &error));
        match self.format {
            Format::Text => utf8(&bytes(self)?).and_then(text::read),
            Format::Binary => binary::read(&bytes(self)?),
            Format::Std => rapid::read(self.stream()),
            Format::Ctrc => utf8(&bytes(self)?).and_then(ctrc::read),
            Format::Log => Err(log_is_no_trace()),
        }
        .map_err(|error| error.in_file(path))
    }
}

/// Reads a trace of any format but a log, which must be converted first.
pub fn read_path(path: &Path) -> Result<Trace, ReadError> {
    Opened::new(path)?.read(path)
}

/// What is said where a trace is expected.
pub(crate) fn log_is_no_trace() -> ReadError {
    ReadError::new(Position::None, "a recording's log, which is not a trace yet").help(
        "convert it with `foretell trace convert LOG -o run.ftrace`, or record with --compact",
    )
}

/// The bytes as text.
pub fn utf8(bytes: &[u8]) -> Result<&str, ReadError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = &bytes[..error.valid_up_to()];
        let valid = std::str::from_utf8(valid).expect("valid up to there");
        ReadError::new(Position::in_text(valid, valid.len()), "not UTF-8")
            .help("text formats are UTF-8; is this another kind of file?")
    })
}

/// Writes a trace; the file appears under its name only when it is whole.
pub fn write_path(trace: &Trace, path: &Path, format: Format) -> Result<(), WriteError> {
    let io_error = |error: io::Error| WriteError::Io { path: path.to_owned(), error };
    write_whole(path, |file| match format {
        Format::Text => text::write(trace, file).map_err(io_error),
        Format::Binary => binary::write(trace, file).map_err(io_error),
        Format::Std => {
            rapid::check(trace)?;
            rapid::write_path(trace, path, file).map_err(io_error)
        }
        Format::Ctrc => file.write_all(ctrc::write(trace)?.as_bytes()).map_err(io_error),
        Format::Log => Err(WriteError::cannot_carry(format, "a trace that is not a recording")),
    })
}

/// Lets `write` fill a temporary file beside `path` and renames it to `path` when that succeeded;
/// removes it otherwise.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let io_error = |error: io::Error| WriteError::Io { path: path.to_owned(), error };
    // What is not complete is removed when it is dropped.
    let replacement = Replacement::new(path, Keep::Mode).map_err(io_error)?;
    let mut file = BufWriter::new(replacement.file().try_clone().map_err(io_error)?);
    write(&mut file)?;
    file.flush().map_err(io_error)?;
    drop(file);
    replacement.complete().map_err(io_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_the_format_before_the_name_does() {
        let detect =
            |name: &str, content: &str| Format::detect(Path::new(name), content.as_bytes());
        assert_eq!(detect("x", "# made by hand\nforetell-trace 1\n"), Some(Format::Text));
        assert_eq!(detect("x.std", "global: x y\n"), Some(Format::Ctrc));
        assert_eq!(detect("x", "T0|r(V1)|12\n"), Some(Format::Std));
        assert_eq!(detect("x.std.gz", "\u{1f}"), Some(Format::Std));
        assert_eq!(detect("x.ft", "thread"), Some(Format::Text));
        assert_eq!(Format::detect(Path::new("x.ftrace"), &LOG_MAGIC), Some(Format::Log));
        assert_eq!(detect("x.txt", "hello"), None);
    }

    #[test]
    fn a_failed_write_leaves_no_file() {
        let directory = std::env::temp_dir().join(format!("foretell-write-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("out.std");
        let refused = write_whole(&path, |file| {
            file.write_all(b"half").unwrap();
            Err(WriteError::cannot_carry(Format::Std, "event T1#3: a barrier"))
        });
        assert_eq!(
            refused.unwrap_err().to_string(),
            "the STD format cannot carry event T1#3: a barrier; choose text or binary"
        );
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        write_whole(&path, |file| {
            file.write_all(b"whole").unwrap();
            Ok(())
        })
        .unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        let _ = std::fs::remove_dir_all(&directory);
    }

    #[test]
    fn a_bad_file_is_named_with_the_place_of_the_fault() {
        let directory = std::env::temp_dir().join(format!("foretell-read-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (name, content, expected) in [
            ("a.ctrc", &b"global: x\nthread t:\n\xff"[..], "a.ctrc:3:1: not UTF-8; text formats"),
            ("a.ctrc", b"global: x\nthread 't:", "a.ctrc:2:8: expected a name here"),
            ("a.ft", b"foretell-trace 1\nvar", "a.ft:2:4: expected a name here"),
            ("a.ft", b"", "a.ft: the file is empty; record a run"),
            ("a.txt", b"hello", "a.txt: not a trace of a known format; name the file"),
            (
                "a.ftrace",
                &LOG_MAGIC,
                "a.ftrace: a recording's log, which is not a trace yet; convert",
            ),
        ] {
            let path = directory.join(name);
            std::fs::write(&path, content).unwrap();
            let message = read_path(&path).unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("{}/{expected}", directory.display())),
                "{message}"
            );
        }
        let missing = read_path(&directory.join("missing.ft")).unwrap_err().to_string();
        assert!(missing.contains("missing.ft: no such file"), "{missing}");
        let _ = std::fs::remove_dir_all(&directory);
    }

    #[test]
    fn an_error_says_where_what_and_what_to_do() {
        let text = "global: x\npre: (= ü z)\n";
        let error =
            ReadError::new(Position::in_text(text, text.find('z').unwrap()), "z is unknown")
                .help("declare it under `global:`")
                .in_file(Path::new("a.ctrc"));
        assert_eq!(error.to_string(), "a.ctrc:2:11: z is unknown; declare it under `global:`");
    }
}
