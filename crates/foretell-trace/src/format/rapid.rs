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

mod lines;
mod write;

use std::collections::{HashMap, HashSet};
use std::io::Read;

use super::{ReadError, limits};
use crate::event::{Access, LockMode, LockStep, Op};
use crate::id::{ObjectId, SiteId, ThreadId, VariableId};
use crate::names::Names;
use crate::sync::SyncOp;
use crate::term::Sort;
use crate::trace::{Indexer, ObjectKind, Scope, Site, Thread, Trace, Variable};
use lines::line_start;
pub use lines::{Events, Line, Operation};
pub(super) use write::write_path;
pub use write::{check, project, write};

/// Longer lines are refused, so that a file without line ends cannot fill the memory.
const MAX_LINE_BYTES: usize = 1 << 16;

/// Paths grow with the depth, so a long chain of forks would take its square in memory.
const MAX_CREATION_DEPTH: usize = 256;

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
