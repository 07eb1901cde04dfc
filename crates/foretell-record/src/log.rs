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

use std::path::PathBuf;

use foretell_trace::format::{LOG_MAGIC, Position, ReadError};
use foretell_wire::record::{self, Words, put_text};
use foretell_wire::{Kind, LOG_VERSION, measure};

use crate::convert::Converter;
use crate::output::Output;
use crate::symbols::{Named, Stored, Symbols};
use crate::words::{site, text};

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
        put_text(&mut words, self.executable.to_string_lossy().as_bytes());
        put_text(&mut words, self.build_id.as_deref().unwrap_or_default().as_bytes());
        for word in &self.command {
            put_text(&mut words, word.as_bytes());
        }
        words
    }

    fn read(words: &[u64]) -> Option<About> {
        let mut words = Words::new(words);
        let executable = text(words.bytes()?).into();
        let build_id = Some(text(words.bytes()?)).filter(|id| !id.is_empty());
        let mut command = Vec::new();
        while words.at < words.words.len() {
            command.push(text(words.bytes()?));
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

    /// Makes the trace.
    pub fn convert<O: Output>(&self, output: O) -> Result<O::Made, ReadError> {
        let symbols = Symbols::stored(self.stored()?);
        let mut converter = self.converter(output, symbols)?;
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
        let (summary, made) = converter.finish(command, build_id.as_deref()).map_err(no_room)?;
        match summary.lost {
            Some(lost) => Err(no_room(std::io::Error::other(lost))),
            None => Ok(made),
        }
    }

    /// A converter that has seen all records.
    pub fn converter<O: Output>(
        &self,
        output: O,
        symbols: Symbols,
    ) -> Result<Converter<O>, ReadError> {
        let executable = self.about.executable.clone();
        let mut converter = Converter::new(output, executable, symbols);
        let mut said = None;
        if let Some(chunk) = &self.end {
            let words = chunk.words()?;
            let fault = || damaged(chunk.at, NOT_WHOLE);
            let (&events, records) = words.split_first().ok_or_else(fault)?;
            said = Some(events);
            each_record(records, |kind, detail, words| match kind {
                Kind::Gap => {
                    converter.account.gap_record(detail, record::Gap::from_words(words)?);
                    Some(())
                }
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
                    // Where it lies, the records say too.
                    module = text(record::DefineModule::from_words(words)?.file).into();
                }
                Kind::DefineGlobal => {
                    let record::DefineGlobal { address, size, name } =
                        record::DefineGlobal::from_words(words)?;
                    let named = Named { address, size, name: text(name).into() };
                    stored.names.entry(module.clone()).or_default().push(named);
                }
                Kind::DefineSite => {
                    let place = words.words[0] >> 16;
                    stored.sites.insert(place, site(record::DefineSite::from_words(words)?));
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
    mut take: impl FnMut(Kind, u8, &mut Words<'_>) -> Option<()>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logger::Logger;
    use crate::read_log;
    use crate::ring::{self, memory_file};
    use foretell_trace::Trace;
    use foretell_trace::format::{Mapped, text as format};
    use foretell_wire::record::{head, put};
    use foretell_wire::{access, gap};

    /// Where the hook of ThreadSanitizer's ABI was called from.
    const PLACE: u64 = 0x5555_5555_5123;

    fn as_text(trace: &Trace) -> String {
        let mut bytes = Vec::new();
        format::write(trace, &mut bytes).expect("a vector takes everything");
        String::from_utf8(bytes).expect("text is UTF-8")
    }

    fn about() -> About {
        About {
            executable: "/nowhere/bank".into(),
            build_id: Some("00ff".into()),
            command: vec!["./bank".into(), "10".into()],
        }
    }

    /// Two chunks of records, in words: a thread that reads the same place twice.
    fn chunks() -> [Vec<u64>; 2] {
        let mut first = Vec::new();
        put(&mut first, 0, 0, &record::DefineThread { thread: 0, path: "" });
        put(&mut first, 0, 0, &record::Turn { thread: 0 });
        put(&mut first, 0, 0, &record::ThreadBegin {});
        put(&mut first, 0, 0, &record::Instrumented {});
        put(&mut first, 0, PLACE, &record::DefinePlace {});
        first.extend([head(Kind::Read, access::detail(4, 0), PLACE), 0x4000, 7]);
        let mut second = Vec::new();
        let what = "a child process was not followed";
        put(&mut second, gap::ANY, 0, &record::Gap { count: 2, what });
        put(&mut second, gap::HELD_FIXED, 0, &record::Gap { count: 1, what: "floats" });
        second.extend([head(Kind::Write, access::detail(4, 0), PLACE), 0x4000, 8]);
        put(&mut second, 0, 0, &record::ThreadEnd {});
        [first, second]
    }

    /// A log as the recorder writes it.
    fn written() -> Vec<u8> {
        let file = memory_file().expect("memory");
        let mut logger = Logger::new(file.try_clone().expect("a file"), &about()).expect("written");
        let [first, second] = chunks();
        logger.chunk(&ring::Chunk { words: first.clone(), events: 2, notable: true });
        logger.rest(&second);
        let summary = logger.finish().expect("written");
        assert_eq!((summary.events, summary.threads), (4, 1));
        assert_eq!(summary.gaps, ["a child process was not followed (2 times)"]);
        assert_eq!(summary.restrictions, ["floats"]);
        assert!(summary.instrumented && !summary.symbolic);
        let bytes = Mapped::of(file).expect("mapped").to_vec();
        assert_eq!(bytes.len() as u64, summary.bytes);
        bytes
    }

    /// A log of these chunks.
    fn log_of(chunks: &[(Part, &[u64])]) -> Vec<u8> {
        let mut bytes = file_header().to_vec();
        for (part, words) in chunks {
            bytes.extend(chunk_header(*part, words));
            bytes.extend(bytes_of(words));
        }
        bytes
    }

    #[test]
    fn a_log_is_read_as_the_trace_that_it_tells_of() {
        let trace = read_log(&written()).expect("whole");
        let expected = "foretell-trace 1
command \"./bank\" \"10\"
build-id \"00ff\"
observed
gap \"a child process was not followed (2 times)\"
restriction \"floats\"
thread main path 0
var 0x4000 : bv32 = 7 at 0x4000 size 4

main begin
main read 0x4000 = 7 @ ||:0
main write 0x4000 = 8 @ ||:0
main end
";
        assert_eq!(as_text(&trace), expected);
    }

    #[test]
    fn a_log_that_is_cut_off_anywhere_is_read_as_far_as_it_goes() {
        let bytes = written();
        let mut lengths: Vec<usize> = Vec::new();
        for length in 0..bytes.len() {
            match read_log(&bytes[..length]) {
                Ok(trace) => {
                    let gaps = trace.metadata.gaps.join("\n");
                    assert!(gaps.contains("no end mark"), "{length}: {gaps}");
                    if trace.events.len() == 4 && !lengths.contains(&4) {
                        assert!(gaps.contains("no source position"), "{gaps}");
                        assert!(gaps.contains("was not followed"), "the records say it: {gaps}");
                    }
                    lengths.push(trace.events.len());
                }
                Err(error) => assert!(length < FILE_HEADER_BYTES, "{length}: {error}"),
            }
        }
        assert!(lengths.is_sorted());
        lengths.dedup();
        assert_eq!(lengths, [0, 2, 4], "whole chunks only");
    }

    #[test]
    fn every_damaged_byte_is_found() {
        let bytes = written();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            let error = read_log(&damaged).err();
            assert!(error.is_some(), "byte {at} of {}", bytes.len());
        }
        let mut longer = bytes.clone();
        longer.extend(log_of(&[(Part::Records, &[])]).split_off(FILE_HEADER_BYTES));
        let error = read_log(&longer).unwrap_err().to_string();
        assert!(error.contains("a chunk is not where it belongs; record again"), "{error}");
    }

    #[test]
    fn a_log_of_another_version_says_what_to_do() {
        let mut bytes = written();
        bytes[8] += 1;
        let checksum = crc32fast::hash(&bytes[..12]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        let error = read_log(&bytes).unwrap_err().to_string();
        assert!(error.contains("version 3") && error.contains("foretell trace convert"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_a_gap_or_an_error() {
        let preamble = about().words();
        let [first, _] = chunks();
        let with = |part: Part, words: &[u64]| {
            let chunks = [(Part::Preamble, &*preamble), (Part::Records, &*first), (part, words)];
            read_log(&log_of(&chunks))
        };
        let wild = with(Part::Records, &[0x3f]).expect("the rest is read");
        assert_eq!(wild.events.len(), 2);
        assert!(wild.metadata.gaps.iter().any(|gap| gap.contains("make no sense")));
        for (part, words) in [
            (Part::Definitions, &[Kind::Read as u64, 1, 2][..]),
            (Part::Definitions, &[Kind::DefineSite as u64, 1, u64::MAX, 0]),
            (Part::End, &[]),
            (Part::End, &[2, Kind::DefineSite as u64]),
            (Part::Preamble, &[0, 0]),
        ] {
            let error = with(part, words).expect_err("damaged").to_string();
            assert!(error.contains("the log is damaged"), "{part:?} {words:x?}: {error}");
        }
        let miscounted = with(Part::End, &[9]).expect("readable");
        let gaps = miscounted.metadata.gaps.join("\n");
        assert!(gaps.contains("9 events were counted, and 2 were read"), "{gaps}");
    }

    #[test]
    fn source_positions_and_names_come_from_the_log() {
        let [first, _] = chunks();
        let preamble = about().words();
        let mut module = Vec::new();
        let put_module = |words: &mut Vec<u64>, first: u64, end: u64, file: &str| {
            put(words, 0, 0, &record::DefineModule { load_address: 0x1000, first, end, file });
        };
        put_module(&mut module, PLACE - 1, PLACE + 1, "");
        let mut definitions = Vec::new();
        put_module(&mut definitions, 0, 0, "/nowhere/bank");
        let (address, size, name) = (0x3ff0, 32, "balances");
        put(&mut definitions, 0, 0, &record::DefineGlobal { address, size, name });
        let site = foretell_trace::Site {
            file: "bank.c".into(),
            line: 13,
            column: 9,
            function: "deposit".into(),
        };
        crate::words::put_site(&mut definitions, PLACE, &site);
        let bytes = log_of(&[
            (Part::Preamble, &preamble),
            (Part::Records, &module),
            (Part::Records, &first),
            (Part::Definitions, &definitions),
        ]);
        let trace = read_log(&bytes).expect("readable");
        assert_eq!(trace.sites, [site]);
        assert_eq!(&*trace.variables[0].name, "balances+16");
    }

    #[test]
    fn a_file_that_takes_nothing_is_an_error() {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let error = Logger::new(full, &about()).err().expect("nothing fits");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
}
