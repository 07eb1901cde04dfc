//! RAPID's STD format: one event a line, `thread|operation(name)|location`.
//!
//! Operations are `r` and `w` of a variable, `acq` and `rel` of a lock, `fork` and `join` of a
//! thread, and `begin` and `end` of a region; the location is an integer. There are no values, so
//! [`crate::Metadata::symbolic`] is false and a read is explained by its last writer. Files
//! compressed with gzip are recognised by their first bytes.
//!
//! [`Events`] reads line after line without copying, in memory that does not grow with the file.
//! What the format leaves open is settled as RAPID does: text after `begin` and `end` is allowed
//! (in parentheses it is the region's name), and a lock may be acquired again by its holder
//! (Java's monitors). Location 0 stands for no location.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Cursor, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::{Format, Position, ReadError, WriteError, limits};
use crate::event::{Access, Event, LockMode, LockStep, Op};
use crate::id::{EventId, ObjectId, SiteId, ThreadId, VariableId};
use crate::names::Names;
use crate::sync::SyncOp;
use crate::term::Sort;
use crate::trace::{Indexer, ObjectKind, Scope, Site, Thread, Trace, Variable};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BUFFER_BYTES: usize = 1 << 18;
/// Longer lines are refused, so that a file without line ends cannot fill the memory.
const MAX_LINE_BYTES: usize = 1 << 16;

/// Paths grow with the depth, so a long chain of forks would take its square in memory.
const MAX_CREATION_DEPTH: usize = 256;

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

fn line_start(line: u64) -> Position {
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

/// Reads a trace, plain or gzip.
pub fn read(input: impl Read) -> Result<Trace, ReadError> {
    let mut events = Events::new(input)?;
    let mut builder = Builder::new();
    while let Some(line) = events.next()? {
        if let Err(what) = builder.add(&line) {
            return Err(ReadError::new(line_start(events.line()), what));
        }
        limits::check(builder.trace.events.len())?;
    }
    Ok(builder.trace)
}

struct Builder {
    trace: Trace,
    indexer: Indexer,
    threads: Names,
    variables: Names,
    locks: Names,
    sites: HashMap<u32, SiteId>,
    paths: CreationPaths,
    /// Who holds each lock, and how often.
    holders: Vec<Option<(ThreadId, u32)>>,
}

impl Builder {
    fn new() -> Self {
        let mut trace = Trace::new();
        trace.metadata.observed_order = true;
        Self {
            trace,
            indexer: Indexer::default(),
            threads: Names::new(),
            variables: Names::new(),
            locks: Names::new(),
            sites: Default::default(),
            paths: CreationPaths::default(),
            holders: Vec::new(),
        }
    }

    fn add(&mut self, line: &Line<'_>) -> Result<(), &'static str> {
        if self.trace.events.len() >= u32::MAX as usize {
            return Err("more events than foretell can number");
        }
        let thread = self.thread(line.thread)?;
        let op = match line.operation {
            Operation::Read => Op::Read(self.access(line.name)?),
            Operation::Write => Op::Write(self.access(line.name)?),
            Operation::Acquire => {
                let lock = self.lock(line.name)?;
                match &mut self.holders[lock.index()] {
                    Some((holder, depth)) if *holder == thread => {
                        *depth += 1;
                        self.trace.objects[lock.index()].kind = ObjectKind::RecursiveMutex;
                    }
                    other => *other = Some((thread, 1)),
                }
                Op::Sync(
                    lock,
                    SyncOp::Acquire(LockStep { mode: LockMode::Exclusive, by_try: false }),
                )
            }
            Operation::Release => {
                let lock = self.lock(line.name)?;
                if let Some((holder, depth)) = &mut self.holders[lock.index()]
                    && *holder == thread
                {
                    *depth -= 1;
                    if *depth == 0 {
                        self.holders[lock.index()] = None;
                    }
                }
                Op::Sync(
                    lock,
                    SyncOp::Release(LockStep { mode: LockMode::Exclusive, by_try: false }),
                )
            }
            Operation::Fork => {
                let child = self.thread(line.name)?;
                if let Some(path) = self.paths.fork(&self.trace.threads, thread, child)? {
                    self.trace.threads[child.index()].path = path;
                }
                Op::Fork(child)
            }
            Operation::Join => Op::Join(self.thread(line.name)?),
            Operation::Begin => Op::RegionBegin(text(line.name)?.into()),
            Operation::End => Op::RegionEnd,
        };
        let site = (line.location != 0).then(|| {
            *self.sites.entry(line.location).or_insert_with(|| {
                let (file, function) = ("".into(), "".into());
                self.trace.add_site(Site { file, line: line.location, column: 0, function })
            })
        });
        let event = self.indexer.event(thread, site, op);
        self.trace.push(event);
        Ok(())
    }

    fn thread(&mut self, name: &[u8]) -> Result<ThreadId, &'static str> {
        let (number, new) = self.threads.number(name);
        if new {
            // The first thread is the main thread; until a fork says more, the others get paths
            // that no fork gives.
            let path = if number == 0 { vec![] } else { vec![u32::MAX - number as u32] };
            self.trace.add_thread(text(name)?, path);
        }
        Ok(ThreadId::from(number))
    }

    fn access(&mut self, name: &[u8]) -> Result<Access, &'static str> {
        let (number, new) = self.variables.number(name);
        if new {
            self.trace.add_variable(plain_variable(text(name)?));
        }
        let variable = VariableId::from(number);
        Ok(Access { variable, value: None, term: None, address: None, order: None })
    }

    fn lock(&mut self, name: &[u8]) -> Result<ObjectId, &'static str> {
        let (number, new) = self.locks.number(name);
        if new {
            self.trace.add_object(text(name)?, ObjectKind::Mutex);
            self.holders.push(None);
        }
        Ok(ObjectId::from(number))
    }
}

fn text(name: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(name).map_err(|_| "a name is not utf-8")
}

/// All that the format says about a variable is its name.
fn plain_variable(name: &str) -> Variable {
    Variable {
        name: name.into(),
        sort: Sort::bit_vec(64),
        scope: Scope::Shared,
        memory: None,
        initial: None,
    }
}

/// The creation paths that follow from the forks.
#[derive(Default)]
struct CreationPaths {
    children: HashMap<ThreadId, u32>,
    forked: HashSet<ThreadId>,
}

impl CreationPaths {
    /// The path of `child`, unless it was forked before.
    fn fork(
        &mut self,
        threads: &[Thread],
        parent: ThreadId,
        child: ThreadId,
    ) -> Result<Option<Vec<u32>>, &'static str> {
        let children = self.children.entry(parent).or_insert(0);
        let number = *children;
        *children += 1;
        if parent == child || !self.forked.insert(child) {
            return Ok(None);
        }
        let mut path = threads[parent.index()].path.clone();
        if path.len() >= MAX_CREATION_DEPTH {
            return Err("threads create threads more than 256 deep");
        }
        path.push(number);
        Ok(Some(path))
    }
}

/// Says whether the format can carry the trace without loss; the error names the first thing that
/// it cannot. See [`project`] for traces that have more.
pub fn check(trace: &Trace) -> Result<(), WriteError> {
    let refuse = |what: String| Err(WriteError::cannot_carry(Format::Std, what));
    if !trace.orders.is_empty() || !trace.atomic_sections.is_empty() {
        return refuse("orders and atomic sections".into());
    }
    if !trace.labels.is_empty() || trace.precondition.is_some() || !trace.terms.is_empty() {
        return refuse("labels, a precondition or terms".into());
    }
    // What a reader would make of the lines must be the trace.
    let mut builder = Builder::new();
    for (place, event) in trace.events.iter().enumerate() {
        let said = match line_of(trace, event) {
            Some(line) if sayable(&line) => builder.add(&line).is_ok(),
            _ => false,
        };
        if !said || builder.trace.events.pop().as_ref() != Some(event) {
            let name = trace.event_name(EventId::from(place));
            return refuse(format!("event {name}: {}", described(event)));
        }
    }
    let understood = &builder.trace;
    if understood.metadata != trace.metadata {
        return refuse("metadata of a recorded run".into());
    }
    if understood.threads != trace.threads {
        return refuse("threads without events or with other creation paths".into());
    }
    if understood.variables != trace.variables {
        return refuse("what is known about variables".into());
    }
    if understood.objects != trace.objects {
        return refuse("what is known about synchronisation objects".into());
    }
    if understood.sites != trace.sites {
        return refuse("files, columns and functions of sites".into());
    }
    Ok(())
}

fn described(event: &Event) -> &'static str {
    match &event.op {
        Op::Read(_) | Op::Write(_) => "an access with a value, a term or a memory order",
        Op::Sync(_, SyncOp::Acquire(_) | SyncOp::Release(_)) => "a reader-writer lock or a try",
        Op::Fork(_) | Op::Join(_) | Op::RegionBegin(_) | Op::RegionEnd => "its names",
        _ => "an operation other than r, w, acq, rel, fork, join, begin, end",
    }
}

/// The event as a line, as far as the operation goes.
fn line_of<'a>(trace: &'a Trace, event: &'a Event) -> Option<Line<'a>> {
    let variable = |access: &Access| &*trace.variables[access.variable.index()].name;
    let object = |lock: &ObjectId| &*trace.objects[lock.index()].name;
    let (operation, name) = match &event.op {
        Op::Read(access) => (Operation::Read, variable(access)),
        Op::Write(access) => (Operation::Write, variable(access)),
        Op::Sync(lock, SyncOp::Acquire(_)) => (Operation::Acquire, object(lock)),
        Op::Sync(lock, SyncOp::Release(_)) => (Operation::Release, object(lock)),
        Op::Fork(thread) => (Operation::Fork, &*trace.threads[thread.index()].name),
        Op::Join(thread) => (Operation::Join, &*trace.threads[thread.index()].name),
        Op::RegionBegin(name) => (Operation::Begin, &**name),
        Op::RegionEnd => (Operation::End, ""),
        _ => return None,
    };
    Some(Line {
        thread: trace.threads[event.thread.index()].name.as_bytes(),
        operation,
        name: name.as_bytes(),
        location: event.site.map_or(0, |site| trace.sites[site.index()].line),
    })
}

/// Names that RAPID and we read back as they are.
fn sayable(line: &Line<'_>) -> bool {
    let fine = |name: &[u8]| {
        name.len() < MAX_LINE_BYTES / 4
            && name.iter().all(|&byte| byte > b' ' && !matches!(byte, b'|' | b'(' | b')' | 0x7f))
    };
    let unnamed = matches!(line.operation, Operation::Begin | Operation::End);
    fine(line.thread)
        && fine(line.name)
        && !line.thread.is_empty()
        && (unnamed || !line.name.is_empty())
}

/// Writes a trace that passes [`check`].
///
/// # Errors
/// When `out` fails, or at the first event that the format has no line for.
pub fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    for event in &trace.events {
        let Some(line) = line_of(trace, event) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, described(event)));
        };
        out.write_all(line.thread)?;
        let operation: &[u8] = match line.operation {
            Operation::Read => b"|r(",
            Operation::Write => b"|w(",
            Operation::Acquire => b"|acq(",
            Operation::Release => b"|rel(",
            Operation::Fork => b"|fork(",
            Operation::Join => b"|join(",
            Operation::Begin if line.name.is_empty() => b"|begin",
            Operation::Begin => b"|begin(",
            Operation::End => b"|end",
        };
        out.write_all(operation)?;
        if operation.ends_with(b"(") {
            out.write_all(line.name)?;
            out.write_all(b")")?;
        }
        writeln!(out, "|{}", line.location)?;
    }
    out.flush()
}

/// Like [`write`], compressed with gzip where the file is to be called `.gz`.
pub(super) fn write_path(trace: &Trace, path: &Path, out: &mut dyn Write) -> io::Result<()> {
    if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("gz")) {
        return write(trace, out);
    }
    let mut gzip = GzEncoder::new(out, Compression::default());
    write(trace, &mut BufWriter::new(&mut gzip))?;
    gzip.finish()?;
    Ok(())
}

/// What of the trace the format can carry: accesses lose values, terms and memory orders; a
/// read-modify-write becomes a read and a write; a condition wait becomes a release and an acquire;
/// readers lock like writers; all other events, and all that is known beside names and lines, is
/// left out. Names are made unique and free of the format's own characters.
pub fn project(trace: &Trace) -> Trace {
    let mut builder = Builder::new();
    let threads = plain_names(trace.threads.iter().map(|thread| &*thread.name));
    let variables = plain_names(trace.variables.iter().map(|variable| &*variable.name));
    let objects = plain_names(trace.objects.iter().map(|object| &*object.name));
    for event in &trace.events {
        let variable = |variable: VariableId| variables[variable.index()].as_str();
        let object = |object: ObjectId| objects[object.index()].as_str();
        let region;
        let (operation, name) = match &event.op {
            Op::Read(access) => (Operation::Read, variable(access.variable)),
            Op::Write(access) => (Operation::Write, variable(access.variable)),
            Op::ReadModifyWrite(update) => (Operation::Read, variable(update.variable)),
            Op::Sync(lock, SyncOp::Acquire(_)) => (Operation::Acquire, object(*lock)),
            Op::Sync(lock, SyncOp::Release(_)) => (Operation::Release, object(*lock)),
            Op::Sync(_, SyncOp::WaitBegin { mutex, .. }) => (Operation::Release, object(*mutex)),
            Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) => (Operation::Acquire, object(*mutex)),
            Op::Fork(thread) => (Operation::Fork, threads[thread.index()].as_str()),
            Op::Join(thread) => (Operation::Join, threads[thread.index()].as_str()),
            Op::RegionBegin(name) => {
                region = plain_name(name);
                (Operation::Begin, region.as_str())
            }
            Op::RegionEnd => (Operation::End, ""),
            _ => continue,
        };
        let mut line = Line {
            thread: threads[event.thread.index()].as_bytes(),
            operation,
            name: name.as_bytes(),
            location: event.site.map_or(0, |site| trace.sites[site.index()].line),
        };
        let mut complete = builder.add(&line).is_ok();
        if matches!(event.op, Op::ReadModifyWrite(_)) {
            line.operation = Operation::Write;
            complete &= builder.add(&line).is_ok();
        }
        if !complete {
            break; // more events than can be numbered
        }
    }
    builder.trace
}

fn plain_name(name: &str) -> String {
    let plain = |letter: char| {
        if letter <= ' ' || matches!(letter, '|' | '(' | ')' | '\x7f') { '_' } else { letter }
    };
    name.chars().take(1000).map(plain).collect()
}

/// The names without what the format cannot say; where two would be equal, or one empty, they get
/// their number.
fn plain_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    names
        .enumerate()
        .map(|(number, name)| {
            let mut plain = plain_name(name);
            while plain.is_empty() || !taken.insert(plain.clone()) {
                plain = format!("{plain}_{number}");
            }
            plain
        })
        .collect()
}
