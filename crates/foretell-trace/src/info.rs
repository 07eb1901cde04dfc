//! What is in a trace, in numbers: `foretell trace info`.
//!
//! STD and binary files are counted as they stream by, in memory that grows with the number of
//! threads, variables and locks only; other formats are read first.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::path::Path;

use fixedbitset::FixedBitSet;

use crate::event::{Event, Op};
use crate::format::binary::{Record, Records};
use crate::format::rapid::{self, Operation};
use crate::format::{Format, Opened, ReadError, log_is_no_trace};
use crate::id::ThreadId;
use crate::names::Names;
use crate::sync::SyncKind;
use crate::trace::{ObjectKind, Thread, Trace};

/// The kinds of events, one for each variant of [`Op`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // those of `Op`
pub enum OpKind {
    ThreadBegin,
    ThreadEnd,
    Fork,
    Join,
    Read,
    Write,
    ReadModifyWrite,
    Sync(SyncKind),
    Fence,
    Branch,
    Assert,
    RegionBegin,
    RegionEnd,
    Call,
    Return,
    Alloc,
    Free,
    Input,
    Await,
    Guarded,
    Transition,
}

impl OpKind {
    const BEFORE: [OpKind; 7] = [
        OpKind::ThreadBegin,
        OpKind::ThreadEnd,
        OpKind::Fork,
        OpKind::Join,
        OpKind::Read,
        OpKind::Write,
        OpKind::ReadModifyWrite,
    ];
    const AFTER: [OpKind; 13] = [
        OpKind::Fence,
        OpKind::Branch,
        OpKind::Assert,
        OpKind::RegionBegin,
        OpKind::RegionEnd,
        OpKind::Call,
        OpKind::Return,
        OpKind::Alloc,
        OpKind::Free,
        OpKind::Input,
        OpKind::Await,
        OpKind::Guarded,
        OpKind::Transition,
    ];

    /// How many kinds there are.
    pub const COUNT: usize = Self::BEFORE.len() + SyncKind::ALL.len() + Self::AFTER.len();

    /// All kinds, in order.
    pub fn all() -> impl Iterator<Item = OpKind> {
        let synchronisation = SyncKind::ALL.iter().map(|&kind| OpKind::Sync(kind));
        Self::BEFORE.into_iter().chain(synchronisation).chain(Self::AFTER)
    }

    /// The place of the kind among all.
    pub fn index(self) -> usize {
        let place = |kinds: &[OpKind]| kinds.iter().position(|&kind| kind == self);
        match self {
            OpKind::Sync(kind) => Self::BEFORE.len() + kind as usize,
            _ => place(&Self::BEFORE).unwrap_or_else(|| {
                let behind = Self::BEFORE.len() + SyncKind::ALL.len();
                behind + place(&Self::AFTER).unwrap_or_default()
            }),
        }
    }

    /// The kind of the operation.
    pub fn of(op: &Op) -> OpKind {
        match op {
            Op::ThreadBegin => OpKind::ThreadBegin,
            Op::ThreadEnd => OpKind::ThreadEnd,
            Op::Fork(_) => OpKind::Fork,
            Op::Join(_) => OpKind::Join,
            Op::Read(_) => OpKind::Read,
            Op::Write(_) => OpKind::Write,
            Op::ReadModifyWrite(_) => OpKind::ReadModifyWrite,
            Op::Sync(_, step) => OpKind::Sync(step.kind()),
            Op::Fence(_) => OpKind::Fence,
            Op::Branch(_) => OpKind::Branch,
            Op::Assert(_) => OpKind::Assert,
            Op::RegionBegin(_) => OpKind::RegionBegin,
            Op::RegionEnd => OpKind::RegionEnd,
            Op::Call(_) => OpKind::Call,
            Op::Return => OpKind::Return,
            Op::Alloc { .. } => OpKind::Alloc,
            Op::Free { .. } => OpKind::Free,
            Op::Input { .. } => OpKind::Input,
            Op::Await(_) => OpKind::Await,
            Op::Guarded(_) => OpKind::Guarded,
            Op::Transition(_) => OpKind::Transition,
        }
    }

    /// The kind's name in words, e.g. `thread begin`.
    pub fn name(self) -> &'static str {
        match self {
            OpKind::ThreadBegin => "thread begin",
            OpKind::ThreadEnd => "thread end",
            OpKind::Fork => "fork",
            OpKind::Join => "join",
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::ReadModifyWrite => "read-modify-write",
            OpKind::Sync(kind) => kind.name(),
            OpKind::Fence => "fence",
            OpKind::Branch => "branch",
            OpKind::Assert => "assert",
            OpKind::RegionBegin => "region begin",
            OpKind::RegionEnd => "region end",
            OpKind::Call => "call",
            OpKind::Return => "return",
            OpKind::Alloc => "alloc",
            OpKind::Free => "free",
            OpKind::Input => "input",
            OpKind::Await => "loop that waits",
            OpKind::Guarded => "guarded assignment",
            OpKind::Transition => "transition",
        }
    }
}

/// A thread and how many events it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// For people.
    pub name: Box<str>,
    /// How many events.
    pub events: u64,
}

/// What is in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceInfo {
    /// How many events.
    pub events: u64,
    /// How many of each kind; the kinds that occur, in the order of [`OpKind`].
    pub kinds: Vec<(OpKind, u64)>,
    /// The threads, in order of first appearance.
    pub threads: Vec<ThreadInfo>,
    /// How many variables.
    pub variables: u64,
    /// How many mutexes and reader-writer locks.
    pub locks: u64,
    /// How many other synchronisation objects.
    pub other_objects: u64,
    /// How many source positions.
    pub sites: u64,
    /// How many symbolic terms.
    pub terms: u64,
    /// How many accesses have a value.
    pub values: u64,
    /// See [`crate::Metadata::symbolic`].
    pub symbolic: bool,
    /// See [`crate::Metadata::observed_order`].
    pub observed_order: bool,
    /// What was not seen.
    pub gaps: Vec<Box<str>>,
    /// What was held at its recorded value.
    pub restrictions: Vec<Box<str>>,
}

impl TraceInfo {
    /// Counts what is in a file of any format but a log.
    pub fn of_path(path: &Path) -> Result<(Format, TraceInfo), ReadError> {
        Self::of_opened(Opened::new(path)?, path)
    }

    /// Counts what is in a file; `path` is the one that was opened.
    pub fn of_opened(opened: Opened, path: &Path) -> Result<(Format, TraceInfo), ReadError> {
        let format = opened.format;
        let info = match format {
            Format::Std => Self::of_std(opened.stream()),
            Format::Binary => {
                let bytes = opened.bytes().map_err(|error| ReadError::io(path, &error))?;
                Self::of_binary(&bytes)
            }
            Format::Text | Format::Ctrc => opened.read(path).map(|trace| Self::of(&trace)),
            Format::Log => Err(log_is_no_trace()),
        };
        Ok((format, info.map_err(|error| error.in_file(path))?))
    }

    /// Counts what is in a trace.
    pub fn of(trace: &Trace) -> TraceInfo {
        let mut counter = Counter::default();
        let name = |thread: &Thread| (thread.name.clone(), 0);
        counter.threads = (0..).map(ThreadId).zip(trace.threads.iter().map(name)).collect();
        for event in &trace.events {
            counter.add(event);
        }
        let locks = trace.objects.iter().filter(|object| is_lock(object.kind)).count() as u64;
        TraceInfo {
            variables: trace.variables.len() as u64,
            locks,
            other_objects: trace.objects.len() as u64 - locks,
            sites: trace.sites.len() as u64,
            terms: trace.terms.len() as u64,
            symbolic: trace.metadata.symbolic,
            observed_order: trace.metadata.observed_order,
            gaps: trace.metadata.gaps.clone(),
            restrictions: trace.metadata.restrictions.clone(),
            ..counter.info()
        }
    }

    /// Counts what is in a binary file. Events behind a lost one, which
    /// [`crate::format::read_path`] leaves out, are counted here.
    pub fn of_binary(file: &[u8]) -> Result<TraceInfo, ReadError> {
        let mut counter = Counter::default();
        let mut info = TraceInfo::default();
        // A definition may come twice.
        let mut objects = HashMap::new();
        let mut variables = HashSet::new();
        let mut sites = HashSet::new();
        let mut terms = HashSet::new();
        for record in Records::new(file)? {
            match record? {
                Record::Event(_, event) => counter.add(&event),
                Record::Thread(id, thread) => {
                    counter.threads.entry(id).or_default().0 = thread.name;
                }
                Record::Variable(id, _) => drop(variables.insert(id)),
                Record::Object(id, object) => drop(objects.insert(id, is_lock(object.kind))),
                Record::Site(id, _) => drop(sites.insert(id)),
                Record::Term(id, _) => drop(terms.insert(id)),
                Record::Properties(has) => {
                    info.symbolic = has.symbolic;
                    info.observed_order = has.observed_order;
                }
                Record::Gap(sentence) => info.gaps.push(sentence),
                Record::Restriction(sentence) => info.restrictions.push(sentence),
                _ => {}
            }
        }
        let locks = objects.values().filter(|&&lock| lock).count() as u64;
        Ok(TraceInfo {
            variables: variables.len() as u64,
            locks,
            other_objects: objects.len() as u64 - locks,
            sites: sites.len() as u64,
            terms: terms.len() as u64,
            symbolic: info.symbolic,
            observed_order: info.observed_order,
            gaps: info.gaps,
            restrictions: info.restrictions,
            ..counter.info()
        })
    }

    /// Counts what is in an STD file, plain or gzip.
    pub fn of_std(input: impl Read) -> Result<TraceInfo, ReadError> {
        let mut lines = rapid::Events::new(input)?;
        let mut threads = Names::new();
        let mut variables = Names::new();
        let mut locks = Names::new();
        let mut locations = Locations::default();
        let mut kinds = [0u64; OpKind::COUNT];
        let mut events = Vec::new();
        let mut current: Option<usize> = None;
        while let Some(line) = lines.next()? {
            // Threads run in bursts: look at the last one first.
            let thread = match current {
                Some(thread) if threads.get(thread) == line.thread => thread,
                _ => threads.number(line.thread).0,
            };
            current = Some(thread);
            if events.len() <= thread {
                events.resize(thread + 1, 0u64);
            }
            events[thread] += 1;
            let kind = match line.operation {
                Operation::Read => {
                    variables.number(line.name);
                    OpKind::Read
                }
                Operation::Write => {
                    variables.number(line.name);
                    OpKind::Write
                }
                Operation::Acquire => {
                    locks.number(line.name);
                    OpKind::Sync(SyncKind::Acquire)
                }
                Operation::Release => {
                    locks.number(line.name);
                    OpKind::Sync(SyncKind::Release)
                }
                Operation::Fork => {
                    threads.number(line.name);
                    OpKind::Fork
                }
                Operation::Join => {
                    threads.number(line.name);
                    OpKind::Join
                }
                Operation::Begin => OpKind::RegionBegin,
                Operation::End => OpKind::RegionEnd,
            };
            kinds[kind.index()] += 1;
            locations.add(line.location);
        }
        events.resize(threads.len(), 0); // some were only forked or joined
        Ok(TraceInfo {
            events: events.iter().sum(),
            kinds: occurring(&kinds),
            threads: events
                .iter()
                .enumerate()
                .map(|(number, &events)| {
                    let name = String::from_utf8_lossy(threads.get(number)).into();
                    ThreadInfo { name, events }
                })
                .collect(),
            variables: variables.len() as u64,
            locks: locks.len() as u64,
            sites: locations.distinct,
            observed_order: true,
            ..TraceInfo::default()
        })
    }
}

/// Counts events one by one.
struct Counter {
    kinds: [u64; OpKind::COUNT],
    values: u64,
    /// Name and number of events of each thread.
    threads: BTreeMap<ThreadId, (Box<str>, u64)>,
    /// The thread that is running, and its events that are not yet in `threads`.
    burst: Option<(ThreadId, u64)>,
}

impl Default for Counter {
    fn default() -> Self {
        Self { kinds: [0; OpKind::COUNT], values: 0, threads: BTreeMap::new(), burst: None }
    }
}

impl Counter {
    fn add(&mut self, event: &Event) {
        self.kinds[OpKind::of(&event.op).index()] += 1;
        self.values += u64::from(match &event.op {
            Op::Read(access) | Op::Write(access) => access.value.is_some(),
            Op::ReadModifyWrite(update) => update.old.is_some() || update.new.is_some(),
            _ => false,
        });
        match &mut self.burst {
            Some((thread, count)) if *thread == event.thread => *count += 1,
            _ => {
                self.end_burst();
                self.burst = Some((event.thread, 1));
            }
        }
    }

    fn end_burst(&mut self) {
        if let Some((thread, count)) = self.burst.take() {
            self.threads.entry(thread).or_default().1 += count;
        }
    }

    fn info(mut self) -> TraceInfo {
        self.end_burst();
        let threads = self.threads.into_values();
        TraceInfo {
            events: self.kinds.iter().sum(),
            kinds: occurring(&self.kinds),
            threads: threads.map(|(name, events)| ThreadInfo { name, events }).collect(),
            values: self.values,
            ..TraceInfo::default()
        }
    }
}

/// How many different locations a file has: a bit for each small one, a set for the rest.
#[derive(Default)]
struct Locations {
    small: FixedBitSet,
    large: HashSet<u32>,
    distinct: u64,
}

impl Locations {
    const SMALL: u32 = 1 << 24;

    #[inline]
    fn add(&mut self, location: u32) {
        if !self.small.contains(location as usize) {
            self.add_new(location);
        }
    }

    #[cold]
    fn add_new(&mut self, location: u32) {
        let new = if location == 0 {
            false // no location
        } else if location < Self::SMALL {
            self.small.grow_and_insert(location as usize);
            true
        } else {
            self.large.insert(location)
        };
        self.distinct += u64::from(new);
    }
}

fn is_lock(kind: ObjectKind) -> bool {
    use ObjectKind::*;
    match kind {
        Mutex | RecursiveMutex | ErrorCheckingMutex | ReaderWriterLock => true,
        Condition | Semaphore { .. } | Barrier { .. } | Channel(_) => false,
    }
}

fn occurring(kinds: &[u64; OpKind::COUNT]) -> Vec<(OpKind, u64)> {
    OpKind::all().zip(*kinds).filter(|(_, count)| *count > 0).collect()
}
