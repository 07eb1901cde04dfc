//! Writes the log of a recording: see `log`.
//!
//! While the program runs, a chunk of the ring is written as it is; only one that has notable
//! records (there are few) is looked into. Source positions and names are looked up at the end, once.
//!
//! As with traces (`output`), what was written stays whatever happens. When a chunk cannot be written
//! (the disk is full), everything from there on is lost, and the log says so.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

use foretell_build::locate::RUNTIME;
use foretell_trace::format::Mapped;
use foretell_wire::Kind;
use foretell_wire::record::{self, Words, put};

use crate::account::{Account, NO_SENSE};
use crate::convert::{Crash, Summary};
use crate::limits::MOST_NAMES;
use crate::log::{About, CHUNK_HEADER_BYTES, FILE_HEADER_BYTES, Log, Part};
use crate::log::{bytes_of, chunk_header, each_record, file_header};
use crate::output::TraceInMemory;
use crate::outside::{Noted, Outside};
use crate::ring::Chunk;
use crate::symbols::{Symbols, data_symbols};
use crate::words::{path, put_site, text};

/// An executable segment of a module.
#[derive(Clone)]
struct Segment {
    base: u64,
    first: u64,
    end: u64,
    path: PathBuf,
}

/// See the module's text.
pub struct Logger {
    file: File,
    /// Bytes of whole chunks.
    bytes: u64,
    /// Where the chunks with records begin, with the number of events before each.
    chunks: Vec<(u64, u64)>,
    /// Events so far.
    events: u64,
    /// How many events are kept, and why no more.
    lost: Option<(u64, io::Error)>,
    executable: PathBuf,
    account: Account,
    threads: u32,
    segments: Vec<Segment>,
    /// Program counters whose source positions are wanted.
    places: Vec<u64>,
    /// Signal, address and program counter.
    crash: Option<(i32, u64, u64)>,
    broken: bool,
}

impl Logger {
    /// Writes to the file, which is empty and can be read, too.
    pub fn new(mut file: File, about: &About) -> io::Result<Self> {
        file.write_all(&file_header())?;
        let mut logger = Self {
            file,
            bytes: FILE_HEADER_BYTES as u64,
            chunks: Vec::new(),
            events: 0,
            lost: None,
            executable: about.executable.to_string_lossy().into_owned().into(),
            account: Account::default(),
            threads: 0,
            segments: Vec::new(),
            places: Vec::new(),
            crash: None,
            broken: false,
        };
        logger.append(Part::Preamble, &about.words())?;
        Ok(logger)
    }

    /// Appends a whole chunk.
    fn append(&mut self, part: Part, words: &[u64]) -> io::Result<()> {
        self.file.write_all(&chunk_header(part, words))?;
        self.file.write_all(bytes_of(words))?;
        self.bytes += (CHUNK_HEADER_BYTES + size_of_val(words)) as u64;
        Ok(())
    }

    /// Writes a full chunk of the ring.
    pub fn chunk(&mut self, chunk: &Chunk) {
        if chunk.notable {
            self.note(&chunk.words);
        }
        self.records(&chunk.words, chunk.events);
    }

    /// Writes the chunk that is not full, once the program is gone.
    pub fn rest(&mut self, words: &[u64]) {
        let events = self.events + self.note(words);
        self.records(words, events);
    }

    /// Writes records with which there are so many events. If that fails, everything from there on
    /// is lost.
    fn records(&mut self, words: &[u64], events: u64) {
        let before = std::mem::replace(&mut self.events, events);
        if self.lost.is_some() || words.is_empty() {
            return;
        }
        let at = self.bytes;
        match self.append(Part::Records, words) {
            Ok(()) => self.chunks.push((at, before)),
            Err(error) => self.lost = Some((before, error)),
        }
    }

    /// Takes note of what records say besides events; gives the number of these.
    fn note(&mut self, words: &[u64]) -> u64 {
        let mut events = 0;
        if !self.broken {
            let whole = each_record(words, |kind, detail, words| {
                events += u64::from(kind.is_event());
                if kind.is_notable() { self.notable(kind, detail, words) } else { Some(()) }
            });
            self.broken = whole.is_none();
        }
        events
    }

    fn notable(&mut self, kind: Kind, detail: u8, words: &mut Words<'_>) -> Option<()> {
        let place = words.words[0] >> 16;
        match kind {
            Kind::DefineThread => {
                self.threads += 1;
                self.account.thread(&path(&record::DefineThread::from_words(words)?.path));
            }
            Kind::Task => self.account.task(record::Task::from_words(detail, words)?),
            Kind::Outside => {
                self.account.outside(Noted::of(
                    detail,
                    place,
                    record::Outside::from_words(words)?,
                )?);
            }
            Kind::Stands => self.account.stands(record::Stands::from_words(detail, words)?)?,
            Kind::Said => self.account.said(detail, record::Said::from_words(words)?)?,
            Kind::DefineModule => {
                let record::DefineModule { load_address: base, first, end, file } =
                    record::DefineModule::from_words(words)?;
                let file = text(file);
                let path =
                    if file.is_empty() { self.executable.clone() } else { PathBuf::from(file) };
                self.segments.push(Segment { base, first, end, path });
            }
            Kind::DefinePlace => self.places.push(place),
            Kind::Gap => self.account.gap_record(detail, record::Gap::from_words(words)?),
            Kind::Crash => {
                let record::Crash { signal, address } = record::Crash::from_words(detail, words)?;
                self.crash = Some((signal as i32, address, place));
            }
            Kind::Instrumented => self.account.instrumented_record(detail),
            _ => {}
        }
        Some(())
    }

    /// What is to be said about the recording.
    pub fn account(&mut self) -> &mut Account {
        &mut self.account
    }

    /// Notes something that the trace lacks.
    pub fn gap(&mut self, what: &str) {
        self.account.gap(what);
    }

    /// The events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What people call the memory at these addresses. Blocks of the heap are known
    /// only to who has seen all events; they are asked for only when a run cannot go on.
    pub fn names(&self, addresses: &[u64]) -> Option<Vec<String>> {
        let bytes = self.file.try_clone().and_then(Mapped::of).ok()?;
        let bytes = bytes.get(..usize::try_from(self.bytes).ok()?)?;
        let log = Log::new(bytes).ok()?;
        let mut converter = log.converter(TraceInMemory::default(), Symbols::default()).ok()?;
        Some(addresses.iter().map(|&address| converter.name(address)).collect())
    }

    /// Ends the log. When the disk is full, chunks are given up until there is room.
    pub fn finish(mut self) -> io::Result<Summary> {
        let (definitions, crash, outside) = self.definitions();
        loop {
            let (events, lost) = match &self.lost {
                None => (self.events, None),
                Some((events, error)) => {
                    (*events, Some(format!("events after number {events} were lost: {error}")))
                }
            };
            let mut end = vec![events];
            self.account.put(&mut end);
            if let Some(lost) = &lost {
                put(&mut end, 0, 0, &record::Gap { count: 1, what: lost.as_str() });
            }
            let Err(error) = self.close(&definitions, &end) else {
                if self.broken {
                    self.account.gap(NO_SENSE); // who converts the log finds it, too
                }
                let mut gaps = self.account.gaps();
                gaps.extend(lost.clone());
                return Ok(Summary {
                    events,
                    bytes: self.bytes,
                    threads: self.threads,
                    gaps,
                    outside,
                    restrictions: self.account.restrictions(),
                    lost,
                    crash,
                    instrumented: self.account.is_instrumented(),
                    symbolic: self.account.is_symbolic(),
                });
            };
            let Some((at, events)) = self.chunks.pop() else { return Err(error) };
            self.bytes = at;
            let first = self.lost.take().map_or(error, |(_, first)| first);
            self.lost = Some((events, first));
        }
    }

    /// Writes the last two chunks after those that are in the file.
    fn close(&mut self, definitions: &[u64], end: &[u64]) -> io::Result<()> {
        let begin = self.bytes;
        self.file.set_len(begin)?;
        self.file.seek(SeekFrom::Start(begin))?;
        let written = self
            .append(Part::Definitions, definitions)
            .and_then(|()| self.append(Part::End, end))
            .and_then(|()| self.file.flush());
        if written.is_err() {
            self.bytes = begin;
        }
        written
    }

    /// What program counters and addresses mean, and where the program died.
    fn definitions(&mut self) -> (Vec<u64>, Option<Crash>, Vec<Outside>) {
        self.places.sort_unstable();
        self.places.dedup();
        let mut words = Vec::new();
        self.put_names(&mut words);
        let mut symbols = Symbols::default();
        for Segment { base, first, end, path } in self.segments.clone() {
            symbols.add_segment(base, first, end, path);
        }
        let mut put = |place: u64| {
            let site = symbols.site(place);
            if !site.file.is_empty() || !site.function.is_empty() {
                put_site(&mut words, place, &site);
            }
            site
        };
        for &place in &self.places {
            put(place);
        }
        let crash = self.crash.map(|(signal, address, place)| Crash {
            signal,
            site: put(place + 1),
            address,
        });
        let outside = self.account.settle(|place| Some(put(place)));
        (words, crash, outside)
    }

    /// Appends the names of the modules' data.
    fn put_names(&self, words: &mut Vec<u64>) {
        let acted = |segment: &Segment| {
            let after = self.places.partition_point(|&place| place < segment.first);
            segment.path == self.executable
                || self.places.get(after).is_some_and(|&place| place < segment.end)
        };
        let mut segments: Vec<&Segment> = self.segments.iter().collect();
        segments.sort_by_key(|segment| !acted(segment));
        let mut done = HashSet::new();
        let mut room = MOST_NAMES;
        for Segment { base, first, end, path } in segments {
            // The program does nothing with our own data.
            if path.ends_with(RUNTIME) || !done.insert(path) {
                continue;
            }
            let file = path.to_string_lossy();
            let (load_address, first, end) = (*base, *first, *end);
            put(words, 0, 0, &record::DefineModule { load_address, first, end, file: &*file });
            for named in data_symbols(*base, path).into_iter().take(room) {
                let (address, size) = (named.address, named.size);
                put(words, 0, 0, &record::DefineGlobal { address, size, name: &*named.name });
                room -= 1;
            }
        }
    }
}
