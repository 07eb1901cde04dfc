//! The file from which an exploration that was ended goes on.
//!
//! A store is a memory of what was found out, by question: *this schedule was forced, and this came of
//! it*. It decides nothing. Whoever goes on asks the same questions in the same order as before and
//! gets the answers at once, until the first that is not in the store. So the store need not know how
//! an exploration goes, and no answer is lost when it goes another way.
//!
//! # The file
//! One file in a folder of its own, which only grows. All fixed-width numbers are little-endian.
//!
//! | | bytes | |
//! |---|---|---|
//! | magic | 17 | `foretell-store 1\n`; the number is the version |
//! | records | | until the end of the file |
//!
//! | record | bytes | |
//! |---|---|---|
//! | kind | 1 | [`Kind`] |
//! | length | 4 | of the content |
//! | header's checksum | 4 | CRC-32 of kind, length and the record's place in the file |
//! | content | | |
//! | content's checksum | 4 | CRC-32 |
//!
//! The content is a key (with its length) and a value. The first record says what the store is about:
//! names and values, all of which have to be the same when it is opened again.
//!
//! # What is guaranteed
//! - **`kill -9` loses at most the record that was being written.** Each goes to the kernel at once,
//!   with one call. A last record that is not whole is cut off when the store is opened, and that is
//!   said ([`Store::note`]).
//! - **Damage is an error.** A checksum that is wrong anywhere else is no end of the file, and no part of
//!   such a file is used. (The header has a checksum of its own, over its place too, so that a record
//!   that is cut off is known from one that is damaged, missing or moved.)
//! - **A full disk loses nothing that was found**: the record is taken back, no more is written, and
//!   [`Store::failure`] says so at the end.
//! - **One process at a time**: the file is locked (`flock`), and the lock goes with the process however
//!   that ends.
//! - A power failure may lose more than one record: nothing waits for the disk.

mod bytes;

pub use bytes::{Reader, Writer};

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, fs};

/// The name of the file in the folder.
pub const FILE: &str = "exploration.store";

const MAGIC: &[u8] = b"foretell-store 1\n";
const NAME: &[u8] = b"foretell-store ";
/// Bytes of a record before its content.
const HEADER: u64 = 9;
/// Bytes of a record after its content.
const TRAILER: u64 = 4;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// What the store is about.
    Subject = 0,
    /// What came of a run of the program.
    Run = 1,
    /// The answer to a question.
    Answer = 2,
    /// The result of a whole test.
    Result = 3,
}

impl Kind {
    fn of(code: u8) -> Option<Self> {
        [Kind::Subject, Kind::Run, Kind::Answer, Kind::Result]
            .into_iter()
            .find(|kind| *kind as u8 == code)
    }
}

/// Why there is no store.
#[derive(Debug)]
pub enum StoreError {
    /// The folder or the file cannot be used.
    Io(PathBuf, io::Error),
    /// Another process has it.
    InUse(PathBuf),
    /// The file is something else.
    NotAStore(PathBuf),
    /// It was made by another version.
    Version(PathBuf, String),
    /// It was changed by somebody else, from this byte on.
    Damaged(PathBuf, u64),
    /// It is about something else: a name, what the store has, what is asked for.
    Other(PathBuf, String, String, String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            StoreError::InUse(path) => write!(
                f,
                "{}: another foretell is using it; wait for that one, or choose another folder",
                path.display()
            ),
            StoreError::NotAStore(path) => write!(
                f,
                "{}: not a store of foretell; choose another folder (it is created)",
                path.display()
            ),
            StoreError::Version(path, version) => write!(
                f,
                "{}: a store of version {version}, and this foretell reads version 1; go on with the \
                 foretell that made it, or begin again in another folder",
                path.display()
            ),
            StoreError::Damaged(path, place) => write!(
                f,
                "{}: damaged at byte {place}; begin again in another folder, or keep what stands \
                 before the damage: truncate -s {place} {}",
                path.display(),
                path.display()
            ),
            StoreError::Other(path, name, there, here) => write!(
                f,
                "{}: made for another test: {name} was {there} and is {here}; test as before, or \
                 begin again in another folder",
                path.display()
            ),
        }
    }
}

impl std::error::Error for StoreError {}

/// A store that this process has for itself.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    state: Mutex<State>,
    note: Option<String>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Where the next record begins.
    end: u64,
    /// Contents by kind and hash of the key: place and length.
    index: HashMap<(Kind, u64), Vec<(u64, u32)>>,
    /// How many records were there when it was opened.
    before: usize,
    failure: Option<String>,
}

impl Store {
    /// Opens the store in a folder, or makes both. `subject` is what it is about.
    pub fn open(folder: &Path, subject: &[(&str, String)]) -> Result<Self, StoreError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| StoreError::Io(path, error)
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let path = folder.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o666);
        let file = options.open(&path).map_err(failed(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(path)),
            Err(TryLockError::Error(error)) => return Err(StoreError::Io(path, error)),
        }
        let length = file.metadata().map_err(failed(&path))?.len();
        let mut index: HashMap<(Kind, u64), Vec<(u64, u32)>> = HashMap::new();
        let mut about = None;
        let mut before = 0;
        let source = |place, buffer: &mut [u8]| file.read_exact_at(buffer, place);
        let scanned = scan(length, source, |record| {
            if record.kind == Kind::Subject {
                about.get_or_insert_with(|| read_subject(record.value));
                return;
            }
            before += 1;
            let places = index.entry((record.kind, hashed(record.key))).or_default();
            places.push((record.place, record.length));
        });
        let mut end = scanned.map_err(|fault| fault.at(&path))?;
        match about {
            // It was ended before it had said what it is about.
            None => {
                let mut begin = MAGIC.to_vec();
                begin.extend(record(
                    MAGIC.len() as u64,
                    Kind::Subject,
                    &[],
                    &subject_bytes(subject),
                ));
                file.set_len(0)
                    .and_then(|()| file.write_all_at(&begin, 0))
                    .map_err(failed(&path))?;
                end = begin.len() as u64;
            }
            Some(None) => return Err(StoreError::Damaged(path, MAGIC.len() as u64)),
            Some(Some(there)) => compare(&path, &there, subject)?,
        }
        let note = (before > 0 && end < length)
            .then(|| format!("{}: the last record was not whole and is cut off", path.display()));
        if end < length {
            file.set_len(end).map_err(failed(&path))?;
        }
        let state = State { file, end, index, before, failure: None };
        Ok(Self { path, state: Mutex::new(state), note })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value that was put last under a key.
    pub fn get(&self, kind: Kind, key: &[u8]) -> Option<Vec<u8>> {
        let state = self.state();
        let places = state.index.get(&(kind, hashed(key)))?;
        places.iter().rev().find_map(|&(place, length)| {
            let mut content = vec![0; length as usize];
            state.file.read_exact_at(&mut content, place).ok()?;
            let mut reader = Reader::new(&content);
            (reader.bytes()? == key).then(|| reader.bytes().map(<[u8]>::to_vec))?
        })
    }

    /// Keeps a value. That it cannot be written is said by [`Store::failure`].
    pub fn put(&self, kind: Kind, key: &[u8], value: &[u8]) {
        let mut state = self.state();
        if state.failure.is_some() {
            return;
        }
        let bytes = record(state.end, kind, key, value);
        let length = bytes.len() as u64 - HEADER - TRAILER;
        let written = match u32::try_from(length) {
            Ok(_) => state.file.write_all_at(&bytes, state.end),
            Err(_) => return, // over 4 GiB: not worth it
        };
        match written {
            Ok(()) => {
                let place = (state.end + HEADER, length as u32);
                state.index.entry((kind, hashed(key))).or_default().push(place);
                state.end += bytes.len() as u64;
            }
            Err(error) => {
                // What was written of it is cut off now, or else when the store is opened again.
                let _ = state.file.set_len(state.end);
                state.failure = Some(format!(
                    "{}: {error}: what is found from here on is not kept for another time",
                    self.path.display()
                ));
            }
        }
    }

    /// How many records were there when the store was opened.
    pub fn records_before(&self) -> usize {
        self.state().before
    }

    /// What was cut off, in words.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Why the store no longer keeps what is found, in words.
    pub fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }
}

/// Reads a store from bytes, as [`Store::open`] does: how many records it has, and how many bytes of it
/// count. `None` where it is damaged or something else.
pub fn check(bytes: &[u8]) -> Option<(usize, u64)> {
    let mut records = 0;
    let source = |place: u64, buffer: &mut [u8]| {
        let begin = usize::try_from(place).unwrap_or(usize::MAX);
        let end = begin.saturating_add(buffer.len());
        let there = bytes.get(begin..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(there);
        Ok(())
    };
    let counted = |record: Record<'_>| {
        records += 1;
        if record.kind == Kind::Subject {
            let _ = read_subject(record.value);
        }
    };
    let end = scan(bytes.len() as u64, source, counted).ok()?;
    Some((records, end))
}

/// A record that was read.
struct Record<'a> {
    kind: Kind,
    key: &'a [u8],
    value: &'a [u8],
    /// Of the content.
    place: u64,
    length: u32,
}

/// Why a file cannot be read.
enum Fault {
    Io(io::Error),
    NotAStore,
    Version(String),
    Damaged(u64),
}

impl Fault {
    fn at(self, path: &Path) -> StoreError {
        let path = path.to_owned();
        match self {
            Fault::Io(error) => StoreError::Io(path, error),
            Fault::NotAStore => StoreError::NotAStore(path),
            Fault::Version(version) => StoreError::Version(path, version),
            Fault::Damaged(place) => StoreError::Damaged(path, place),
        }
    }
}

/// Reads all records; gives the place after the last whole one.
fn scan(
    length: u64,
    source: impl Fn(u64, &mut [u8]) -> io::Result<()>,
    mut found: impl FnMut(Record<'_>),
) -> Result<u64, Fault> {
    let mut magic = vec![0; length.min(MAGIC.len() as u64 + 8) as usize];
    source(0, &mut magic).map_err(Fault::Io)?;
    if let Some(rest) = magic.strip_prefix(NAME)
        && let Some(end) = rest.iter().position(|&byte| byte == b'\n')
        && !magic.starts_with(MAGIC)
    {
        return Err(Fault::Version(String::from_utf8_lossy(&rest[..end]).into_owned()));
    }
    if length < MAGIC.len() as u64 {
        return if MAGIC.starts_with(&magic) { Ok(0) } else { Err(Fault::NotAStore) };
    }
    if !magic.starts_with(MAGIC) {
        return Err(Fault::NotAStore);
    }
    let mut place = MAGIC.len() as u64;
    let mut content = Vec::new();
    while length - place >= HEADER {
        let mut header = [0; HEADER as usize];
        source(place, &mut header).map_err(Fault::Io)?;
        let [code, a, b, c, d, check @ ..] = header;
        let size = u32::from_le_bytes([a, b, c, d]);
        if u32::from_le_bytes(check) != header_check(place, code, size) {
            return Err(Fault::Damaged(place));
        }
        let whole = HEADER + u64::from(size) + TRAILER;
        if length - place < whole {
            return Ok(place);
        }
        content.resize(size as usize + TRAILER as usize, 0);
        source(place + HEADER, &mut content).map_err(Fault::Io)?;
        let (said, check) = content.split_at(size as usize);
        if check != crc32fast::hash(said).to_le_bytes() {
            return Err(Fault::Damaged(place));
        }
        let mut reader = Reader::new(said);
        let (Some(kind), Some(key), Some(value), true) =
            (Kind::of(code), reader.bytes(), reader.bytes(), reader.is_empty())
        else {
            return Err(Fault::Damaged(place));
        };
        found(Record { kind, key, value, place: place + HEADER, length: size });
        place += whole;
    }
    Ok(place)
}

fn header_check(place: u64, code: u8, size: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&place.to_le_bytes());
    hasher.update(&[code]);
    hasher.update(&size.to_le_bytes());
    hasher.finalize()
}

/// A record for this place in the file.
fn record(place: u64, kind: Kind, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut content = Writer::default();
    content.bytes(key);
    content.bytes(value);
    let content = content.finish();
    let size = content.len() as u32;
    let mut bytes = Vec::with_capacity(content.len() + (HEADER + TRAILER) as usize);
    bytes.push(kind as u8);
    bytes.extend(size.to_le_bytes());
    bytes.extend(header_check(place, kind as u8, size).to_le_bytes());
    bytes.extend(&content);
    bytes.extend(crc32fast::hash(&content).to_le_bytes());
    bytes
}

fn hashed(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

fn subject_bytes(subject: &[(&str, String)]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.list(subject.iter(), |writer, (name, value)| {
        writer.text(name);
        writer.text(value);
    });
    writer.finish()
}

fn read_subject(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    Reader::new(bytes).list(|reader| Some((reader.text()?.to_owned(), reader.text()?.to_owned())))
}

/// Is the store about what is asked for?
fn compare(
    path: &Path,
    there: &[(String, String)],
    here: &[(&str, String)],
) -> Result<(), StoreError> {
    let of = |name: &str| here.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let shown = |value: &str| match value.is_empty() {
        true => "not given".to_owned(),
        false => format!("`{value}`"),
    };
    for (name, value) in there {
        let now = of(name).map(String::as_str).unwrap_or_default();
        if now != value {
            return Err(StoreError::Other(path.into(), name.clone(), shown(value), shown(now)));
        }
    }
    let new = here.iter().find(|(name, _)| !there.iter().any(|(known, _)| known == name));
    match new {
        Some((name, value)) => {
            let name = (*name).to_owned();
            Err(StoreError::Other(path.into(), name, shown(""), shown(value)))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
