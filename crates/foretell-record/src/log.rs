//! The log of a recording: what the runtime told (`foretell_wire`), word for word.
//!
//! To turn a record into an event of a trace takes longer than to make it, so that a recorder that
//! does it while the program runs holds the program up. A log is written as fast as a file can be
//! written, and converted when it is read. It brings along what the recorder alone can know (source
//! positions, names, how the run ended), so that it can be read on another machine.
//!
//! # Layout
//! Everything is little-endian. The file begins with
//!
//! | file header | bytes | |
//! |---|---|---|
//! | magic | 8 | [`LOG_MAGIC`] |
//! | version | 4 | [`LOG_VERSION`] |
//! | checksum | 4 | CRC-32 of the 12 bytes before |
//!
//! and then has chunks:
//!
//! | chunk header | bytes | |
//! |---|---|---|
//! | magic | 4 | `FTLC` |
//! | part | 4 | see [`Part`] |
//! | words | 4 | how many follow the header, eight bytes each |
//! | payload checksum | 4 | CRC-32 of the words |
//! | header checksum | 4 | CRC-32 of the 16 bytes before |
//! | reserved | 4 | 0 |
//!
//! First comes the preamble, then the records in the order of time, cut into chunks at any record,
//! then what the recorder found out when the program was over: definitions and the end.
//!
//! # What a reader guarantees
//! Nothing points forwards, so what a killed recorder leaves is read up to its last whole chunk, and
//! the trace says what it lacks: the last events, and source positions of places that were only
//! program counters. A damaged byte is an error that names the chunk.

use std::fs::File;
use std::path::PathBuf;

use foretell_trace::format::{LOG_MAGIC, Position, ReadError};
use foretell_wire::{Kind, LOG_VERSION, measure};

use crate::convert::{Converter, Summary};
use crate::symbols::{Named, Stored, Symbols};
use crate::words::{Words, put_text};

/// Bytes of the file's header.
pub const FILE_HEADER_BYTES: usize = 16;
/// Bytes of a chunk's header.
pub const CHUNK_HEADER_BYTES: usize = 24;
const CHUNK_MAGIC: [u8; 4] = *b"FTLC";

// Words are written as they lie in memory.
const _: () = assert!(cfg!(target_endian = "little"));

/// What a chunk is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// [`About`].
    Preamble = 1,
    /// Records of the runtime.
    Records = 2,
    /// For each module [`Kind::DefineModule`] and its data as [`Kind::DefineGlobal`], and for each
    /// program counter [`Kind::DefineSite`].
    Definitions = 3,
    /// The number of events, then all that is to be said about the recording: [`Kind::Gap`] and
    /// [`Kind::Instrumented`].
    End = 4,
}

impl Part {
    fn from_code(code: u32) -> Option<Part> {
        [Part::Preamble, Part::Records, Part::Definitions, Part::End]
            .into_iter()
            .find(|&part| part as u32 == code)
    }
}

/// The first bytes of a log.
pub fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&LOG_MAGIC);
    header[8..12].copy_from_slice(&LOG_VERSION.to_le_bytes());
    let checksum = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// What stands before the words of a chunk.
pub fn chunk_header(part: Part, words: &[u64]) -> [u8; CHUNK_HEADER_BYTES] {
    let mut header = [0; CHUNK_HEADER_BYTES];
    header[..4].copy_from_slice(&CHUNK_MAGIC);
    header[4..8].copy_from_slice(&(part as u32).to_le_bytes());
    header[8..12].copy_from_slice(&(words.len() as u32).to_le_bytes());
    header[12..16].copy_from_slice(&crc32fast::hash(bytes_of(words)).to_le_bytes());
    let checksum = crc32fast::hash(&header[..16]);
    header[16..20].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// The words as they are written.
pub fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: the same memory; bytes need no alignment and every value of them is one.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// What is known before the program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The program's file.
    pub executable: PathBuf,
    /// Its build id.
    pub build_id: Option<String>,
    /// The command line.
    pub command: Vec<String>,
}

impl About {
    /// As the words of [`Part::Preamble`].
    pub fn words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        put_text(&mut words, &self.executable.to_string_lossy());
        put_text(&mut words, self.build_id.as_deref().unwrap_or_default());
        for word in &self.command {
            put_text(&mut words, word);
        }
        words
    }

    fn read(words: &[u64]) -> Option<About> {
        let mut words = Words::new(words);
        let executable = words.text()?.into();
        let build_id = Some(words.text()?).filter(|id| !id.is_empty());
        let mut command = Vec::new();
        while words.at < words.words.len() {
            command.push(words.text()?);
        }
        Some(About { executable, build_id, command })
    }
}

/// A chunk in a file.
struct Chunk<'a> {
    at: usize,
    part: Part,
    bytes: &'a [u8],
    checksum: u32,
}

impl<'a> Chunk<'a> {
    /// The chunk at this place; `None` when the file ends before the chunk does.
    fn find(file: &'a [u8], at: usize) -> Result<Option<Self>, ReadError> {
        let fault = |message: &str| Err(damaged(at, message));
        let rest = &file[at..];
        let magic = rest.len().min(CHUNK_MAGIC.len());
        if rest[..magic] != CHUNK_MAGIC[..magic] {
            return fault("no chunk starts here");
        }
        let Some((header, rest)) = rest.split_at_checked(CHUNK_HEADER_BYTES) else {
            return Ok(None);
        };
        if u32_at(header, 16) != crc32fast::hash(&header[..16]) || u32_at(header, 20) != 0 {
            return fault("wrong checksum of a chunk header");
        }
        let Some(part) = Part::from_code(u32_at(header, 4)) else {
            return fault("a chunk of an unknown kind");
        };
        let bytes = rest.get(..u32_at(header, 8) as usize * 8);
        Ok(bytes.map(|bytes| Self { at, part, bytes, checksum: u32_at(header, 12) }))
    }

    fn end(&self) -> usize {
        self.at + CHUNK_HEADER_BYTES + self.bytes.len()
    }

    /// The words, if they are those that were written.
    fn words(&self) -> Result<Vec<u64>, ReadError> {
        if crc32fast::hash(self.bytes) != self.checksum {
            return Err(damaged(self.at, "wrong checksum of a chunk"));
        }
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        Ok(self.bytes.chunks_exact(8).map(word).collect())
    }
}

/// A log that is in memory or mapped into it.
pub struct Log<'a> {
    about: About,
    records: Vec<Chunk<'a>>,
    definitions: Option<Chunk<'a>>,
    end: Option<Chunk<'a>>,
    /// The file is cut off here.
    cut: Option<usize>,
    bytes: usize,
}

impl<'a> Log<'a> {
    /// Looks at the headers of all chunks.
    pub fn new(file: &'a [u8]) -> Result<Self, ReadError> {
        let fault = |at: usize, message: &str| Err(damaged(at, message));
        if !file.starts_with(&LOG_MAGIC) {
            let message = "not a recording's log";
            return Err(ReadError::new(Position::Byte(0), message));
        }
        if file.len() < FILE_HEADER_BYTES {
            return fault(file.len(), "the file ends in its header");
        }
        if u32_at(file, 12) != crc32fast::hash(&file[..12]) {
            return fault(8, "wrong checksum of the file header");
        }
        let version = u32_at(file, 8);
        if version != LOG_VERSION {
            let message = format!(
                "a recording's log of version {version}, and this foretell reads {LOG_VERSION}"
            );
            return Err(ReadError::new(Position::Byte(8), message).help(
                "another version of foretell made it: convert it there with `foretell trace convert`",
            ));
        }
        let mut log = Self {
            about: About::default(),
            records: Vec::new(),
            definitions: None,
            end: None,
            cut: None,
            bytes: file.len(),
        };
        let mut at = FILE_HEADER_BYTES;
        while at < file.len() {
            let Some(chunk) = Chunk::find(file, at)? else {
                log.cut = Some(at);
                break;
            };
            let next = chunk.end();
            let over = log.definitions.is_some() || log.end.is_some();
            match chunk.part {
                Part::Preamble if at == FILE_HEADER_BYTES => {
                    let about = About::read(&chunk.words()?);
                    let Some(about) = about else { return fault(at, NOT_WHOLE) };
                    log.about = about;
                }
                Part::Records if !over => log.records.push(chunk),
                Part::Definitions if !over => log.definitions = Some(chunk),
                Part::End if log.end.is_none() => log.end = Some(chunk),
                _ => return fault(at, "a chunk is not where it belongs"),
            }
            at = next;
        }
        Ok(log)
    }

    /// Writes the trace to `file`, which is empty.
    pub fn convert(&self, file: File) -> Result<Summary, ReadError> {
        let symbols = Symbols::stored(self.stored()?);
        let mut converter = self.converter(file, symbols)?;
        if let Some(at) = self.cut {
            let rest = self.bytes - at;
            converter.account.gap(&format!(
                "the file is cut off in the chunk at byte {at}: its {rest} bytes were left out"
            ));
        }
        if self.end.is_none() {
            converter.account.gap("the recording has no end mark: the last events may be missing");
        }
        if self.definitions.is_none() {
            converter.account.gap(
                "the recorder was ended before it looked up program counters: events at them have \
                 no source position",
            );
        }
        let About { command, build_id, .. } = &self.about;
        let summary = converter.finish(command, build_id.as_deref()).map_err(no_room)?;
        match summary.lost {
            Some(lost) => Err(no_room(std::io::Error::other(lost))),
            None => Ok(summary),
        }
    }

    /// A converter that has seen all records.
    pub fn converter(&self, file: File, symbols: Symbols) -> Result<Converter, ReadError> {
        let executable = self.about.executable.clone();
        let mut converter = Converter::new(file, executable, symbols).map_err(no_room)?;
        let mut said = None;
        if let Some(chunk) = &self.end {
            let words = chunk.words()?;
            let fault = || damaged(chunk.at, NOT_WHOLE);
            let (&events, records) = words.split_first().ok_or_else(fault)?;
            said = Some(events);
            each_record(records, |kind, detail, words| match kind {
                Kind::Gap => converter.account.gap_record(detail, words),
                Kind::Instrumented => {
                    converter.account.instrumented_record(detail);
                    Some(())
                }
                _ => None,
            })
            .ok_or_else(fault)?;
            converter.account.close();
        }
        for chunk in &self.records {
            converter.chunk(&chunk.words()?);
        }
        let found = converter.events();
        if let Some(said) = said.filter(|&said| said != found && !converter.is_broken()) {
            converter.account.gap(&format!("{said} events were counted, and {found} were read"));
        }
        Ok(converter)
    }

    /// What the log brings along in place of the program's files.
    fn stored(&self) -> Result<Stored, ReadError> {
        let mut stored = Stored::default();
        let Some(chunk) = &self.definitions else { return Ok(stored) };
        let mut module = PathBuf::new();
        each_record(&chunk.words()?, |kind, _, words| {
            match kind {
                Kind::DefineModule => {
                    words.at += 3; // where it lies, the records say too
                    module = words.text()?.into();
                }
                Kind::DefineGlobal => {
                    let (address, size) = (words.next()?, words.next()?);
                    let named = Named { address, size, name: words.text()?.into() };
                    stored.names.entry(module.clone()).or_default().push(named);
                }
                Kind::DefineSite => {
                    let place = words.words[0] >> 16;
                    stored.sites.insert(place, words.site()?);
                }
                _ => return None,
            }
            Some(())
        })
        .ok_or_else(|| damaged(chunk.at, NOT_WHOLE))?;
        Ok(stored)
    }
}

/// Calls `take` with each record, the words standing after the first one; `None` when there is
/// anything else or `take` says so.
pub fn each_record(
    mut words: &[u64],
    mut take: impl FnMut(Kind, u8, &mut Words) -> Option<()>,
) -> Option<()> {
    while !words.is_empty() {
        let (kind, detail, length) = measure(words)?;
        let (record, rest) = words.split_at(length);
        take(kind, detail, &mut Words { words: record, at: 1 })?;
        words = rest;
    }
    Some(())
}

const NOT_WHOLE: &str = "a chunk does not hold what it should";

fn damaged(at: usize, message: &str) -> ReadError {
    ReadError::new(Position::Byte(at as u64), format!("the log is damaged: {message}"))
        .help("record again")
}

/// The converted trace could not be put anywhere.
fn no_room(error: std::io::Error) -> ReadError {
    ReadError::new(Position::None, format!("cannot convert the log: {error}"))
        .help("make room, or record with --compact")
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}
