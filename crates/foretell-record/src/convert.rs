//! Records of the runtime to a trace, in a file or in memory: while the program runs, or from a log
//! of it.
//!
//! Definitions go into the output before their first use, so that whatever part of the file is kept
//! makes sense. The records come from a process that may have gone wild: what does not decode ends
//! the conversion with a gap, never with a panic.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use foretell_abi::{BinaryOp, CastOp};
use foretell_trace::format::binary::{Name, Step};
use foretell_trace::{
    Access, AwaitMark, ChannelKind, Condition, Event, LockMode, LockStep, MemoryOrder, MemoryRange,
    Object, ObjectId, ObjectKind, Op, Operator, ReadModifyWrite, Scope, SiteId, Sort, SyncOp,
    TermId, ThreadId, Value, Variable, VariableId,
};
use foretell_wire::again::{Again, Short};
use foretell_wire::predictor::Branch;
use foretell_wire::{
    BY_TRY, Kind, TERM_SHADOW, WIDE_OPERAND, ZEROED, access, channel, format_path, lock,
    of_variable, wait,
};
use rustc_hash::FxHashMap;

use crate::account::{Account, NO_SENSE};
use crate::described::Description;
use crate::forced::Comparison;
use crate::memory::{Location, Memory};
use crate::names;
use crate::output::{Ending, Output};
use crate::outside::{Noted, Outside};
use crate::path::ExecutionPath;
use crate::symbols::Symbols;
use crate::words::Words;

/// Terms that are known again, and reads of a thread whose terms are. A term that fell out is
/// written again: the reader of a trace takes equal terms for one. The tables stay small enough to
/// lie in the processor's caches, where a table of all terms would not.
const RECENT_TERMS: usize = 1 << 11;
const RECENT_READS: usize = 1 << 9;

/// Bytes that become another location at once at most: more than stacks have.
const MOST_RENEWED: u64 = 1 << 28;

/// Places whose sites are at hand.
const RECENT_SITES: usize = 1024;

/// A thread as far as it has been converted.
#[derive(Default)]
struct Thread {
    /// Its events so far.
    index: u32,
    /// Terms of its reads, by the low bits of the index: index, width, and term.
    reads: RecentReads,
    /// Where the open calls of functions of the language's library return to, the innermost last.
    library: Vec<u64>,
    /// How it was created.
    path: Box<[u32]>,
    /// What the program calls it.
    name: Option<String>,
}

/// See [`Thread`].
struct RecentReads(Box<[(u32, u16, TermId)]>);

impl Default for RecentReads {
    fn default() -> Self {
        Self(vec![(0, 0, TermId(0)); RECENT_READS].into())
    }
}

/// A term that can be met again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Constant(u16, u64),
    Apply(Operator, [u32; 3]),
}

impl Key {
    /// Where it is among the recent terms.
    fn way(self) -> usize {
        let mixed = match self {
            Key::Constant(width, bits) => bits ^ u64::from(width) << 48,
            Key::Apply(operator, [first, second, third]) => {
                let operator = match operator {
                    Operator::Extract { high, low } => u64::from(high) << 8 | u64::from(low),
                    Operator::ZeroExtend(by) | Operator::SignExtend(by) => u64::from(by) << 16,
                    _ => 0,
                };
                (u64::from(first) | u64::from(second) << 32)
                    ^ (u64::from(third) ^ operator).rotate_left(17)
            }
        };
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % RECENT_TERMS
    }
}

/// What the conversion knows at its end.
pub struct Summary {
    /// Events in the file.
    pub events: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Threads.
    pub threads: u32,
    /// What the trace lacks.
    pub gaps: Vec<String>,
    /// What the scheduler did not control.
    pub outside: Vec<Outside>,
    /// What was held at its recorded value.
    pub restrictions: Vec<String>,
    /// Events were lost: how many are left, and why.
    pub lost: Option<String>,
    /// Where the program died, if the runtime saw it.
    pub crash: Option<Crash>,
    /// Instrumented modules were there.
    pub instrumented: bool,
    /// The trace has expressions.
    pub symbolic: bool,
}

/// A fatal signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Its number.
    pub signal: i32,
    /// Where in the source.
    pub site: foretell_trace::Site,
    /// The address that could not be accessed, for faults.
    pub address: u64,
}

/// See the module's text.
pub struct Converter<O> {
    output: O,
    symbols: Symbols,
    memory: Memory,
    /// Instrumented code was written in Rust.
    is_rust: bool,
    executable: PathBuf,
    current: u32,
    again: Again,
    threads: Vec<Thread>,
    variables: u32,
    objects: u32,
    /// What the objects are called, and where they are.
    object_names: HashMap<String, u64>,
    sites: FxHashMap<u64, (SiteId, Box<str>)>,
    /// All sites in the file, with their places.
    defined: HashMap<(u64, foretell_trace::Site), SiteId>,
    /// Sites met lately, by the low bits of their place.
    recent_sites: [(u64, SiteId); RECENT_SITES],
    /// All sites by their numbers, and those that are in the language's library.
    written_sites: Vec<foretell_trace::Site>,
    of_library: HashSet<SiteId>,
    /// Allocated blocks: size and where they came from.
    blocks: BTreeMap<u64, (u64, SiteId)>,
    /// What variables and the things that `new` makes are called, by the place of the description.
    descriptions: FxHashMap<u64, Description>,
    /// The place of the description of what begins at an address, and its number where it is on the heap.
    described: BTreeMap<u64, (u64, u32)>,
    /// How many things of each type `new` has made.
    made: HashMap<Box<str>, u32>,
    terms: u32,
    /// The runtime's terms by number: the file's term and its width.
    built: Vec<(u32, u8)>,
    recent_terms: Box<[(Key, TermId)]>,
    crash: Option<Crash>,
    broken: bool,
    /// What is to be said at the end.
    pub account: Account,
    /// The branches that were taken.
    pub path: ExecutionPath,
    /// The schedule that the run is to obey.
    pub schedule: Option<Comparison>,
}

/// A record that has a short form, see `foretell_wire::again`.
struct Recurring {
    kind: Kind,
    detail: u8,
    place: u64,
    address: u64,
    value: u64,
    /// The word more that it has; else 0.
    more: u64,
}

impl<O: Output> Converter<O> {
    /// Writes to `output`; `executable` is the program's.
    pub fn new(output: O, executable: PathBuf, symbols: Symbols) -> Self {
        Self {
            output,
            symbols,
            memory: Memory::default(),
            is_rust: false,
            executable,
            current: 0,
            again: Again::new(),
            threads: Vec::new(),
            variables: 0,
            objects: 0,
            object_names: HashMap::new(),
            sites: FxHashMap::default(),
            defined: HashMap::new(),
            recent_sites: [(0, SiteId(0)); RECENT_SITES],
            written_sites: Vec::new(),
            of_library: HashSet::new(),
            blocks: BTreeMap::new(),
            descriptions: FxHashMap::default(),
            described: BTreeMap::new(),
            made: HashMap::new(),
            terms: 0,
            built: Vec::new(),
            // No constant has 255 bits.
            recent_terms: vec![(Key::Constant(255, 0), TermId(0)); RECENT_TERMS].into(),
            crash: None,
            broken: false,
            account: Account::default(),
            path: ExecutionPath::default(),
            schedule: None,
        }
    }

    /// Converts the records of a chunk.
    pub fn chunk(&mut self, words: &[u64]) {
        let mut words = Words::new(words);
        while !self.broken && words.at < words.words.len() {
            if self.record(&mut words).is_none() {
                self.broken = true;
                self.account.gap(NO_SENSE);
            }
        }
    }

    /// Whether there were records that make no sense; nothing after them is converted.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes what is left and gives the account.
    pub fn finish(
        mut self,
        command: &[String],
        build_id: Option<&str>,
    ) -> io::Result<(Summary, O::Made)> {
        // What Rust's library writes into memory that one thread alone uses is like the result of a call.
        let unseen = self.memory.unseen_and_shared();
        if unseen > 0 {
            let gap = format!(
                "{unseen} reads returned values that were written by code that is not instrumented; from then \
                 on, that memory is treated as a new location"
            );
            self.account.gap(&gap);
        }
        let symbols = &mut self.symbols;
        let outside = self.account.settle(|place| Some(symbols.site(place)));
        let symbolic = self.account.is_symbolic();
        let mut gaps = self.account.gaps();
        let restrictions = self.account.restrictions();
        let ending = Ending {
            symbolic,
            machine_code: self.account.is_machine_code(),
            command,
            build_id,
            gaps: &gaps,
            restrictions: &restrictions,
        };
        let (written, made) = self.output.finish(&ending)?;
        gaps.extend(written.lost.clone());
        let summary = Summary {
            events: written.events,
            bytes: written.bytes,
            threads: self.threads.len() as u32,
            gaps,
            outside,
            restrictions,
            lost: written.lost,
            crash: self.crash,
            instrumented: self.account.is_instrumented(),
            symbolic,
        };
        Ok((summary, made))
    }

    /// One record; `None` when it makes no sense.
    fn record(&mut self, words: &mut Words) -> Option<()> {
        let head = words.next()?;
        if Short::from_word(head).is_some()
            || Kind::from_code(head as u8).is_some_and(Kind::can_be_short)
        {
            let step = self.recurring(head, words)?;
            return self.recurring_event(step);
        }
        let kind = Kind::from_code(head as u8)?;
        let detail = (head >> 8) as u8;
        let place = head >> 16;
        if kind.is_event() {
            return self.event(kind, detail, place, words);
        }
        match kind {
            Kind::Turn => self.current = u32::try_from(words.next()?).ok()?,
            Kind::DefineThread => {
                let number = words.next()?;
                let bytes = words.bytes()?;
                self.account.thread(&bytes);
                let path: Vec<u32> = bytes
                    .chunks_exact(8)
                    .map(|part| u64::from_le_bytes(part.try_into().unwrap_or_default()) as u32)
                    .collect();
                if number != self.threads.len() as u64 {
                    return None;
                }
                self.threads.push(Thread { path: path.clone().into(), ..Thread::default() });
                self.path.add_thread(&path);
                if let Some(schedule) = &mut self.schedule {
                    schedule.thread(&path);
                }
                let name = if path.is_empty() { "main".into() } else { format_path(&path) };
                let id = ThreadId(number as u32);
                self.output.thread(id, &name, &path);
            }
            Kind::NameThread => {
                let number = words.next()?;
                let name = words.text()?;
                self.name_thread(number, &name)?;
            }
            Kind::DefineObject => {
                let (number, kind) = words.pair()?;
                let address = words.next()?;
                let amount = words.next()? as u32;
                let kind = object_kind(foretell_wire::ObjectKind::from_code(kind)?, amount);
                if number != self.objects {
                    return None;
                }
                self.objects += 1;
                // What a channel is known by is no memory, and what belongs to a variable lies nowhere.
                let is_channel = matches!(kind, ObjectKind::Channel(_));
                let of_variable = if is_channel { 0 } else { address & of_variable::ANY };
                let mut name = self.name(address & !of_variable);
                if of_variable == of_variable::MUTEX {
                    name += " (waiting)";
                }
                // Runs know each other's objects by name: those at two addresses never have the same.
                if *self.object_names.entry(name.clone()).or_insert(address) != address {
                    name += &format!(" at {address:#x}");
                }
                let id = ObjectId(number);
                let address = (!is_channel && of_variable == 0).then_some(address);
                self.output.object(id, Object { name: name.into(), kind, address });
            }
            Kind::DefineSite => {
                let mut site = words.site()?;
                self.is_rust |= site.file.ends_with(".rs");
                names::shorten(&mut site);
                self.path.add_site(place, &site);
                self.define_site(place, site);
            }
            Kind::DefineBinary => {
                let (left, right) = words.pair()?;
                let wide = detail & WIDE_OPERAND != 0;
                let value = if wide { words.next()? } else { place >> 8 };
                let op = BinaryOp::from_code((detail & !WIDE_OPERAND).into())?;
                let width = width_of(place & 0xff)?;
                let term = self.binary(op, width, left, right, value)?;
                let width = if op.is_comparison() { 1 } else { width };
                self.built.push((term.0, width as u8));
            }
            Kind::DefineCast => {
                let shadow = words.next()? as u32;
                let op = CastOp::from_code(detail.into())?;
                let (from, to) = (width_of(place & 0xff)?, width_of(place >> 8)?);
                let term = self.operand(shadow, from, 0)?;
                let term = self.cast(op, from, to, term);
                self.built.push((term.0, to as u8));
            }
            Kind::DefineAddress => {
                let (index, base) = (words.next()? as u32, words.next()?);
                let op = CastOp::from_code(detail.into())?;
                let term = self.address(op, width_of(place & 0xff)?, index, place >> 8, base)?;
                self.built.push((term.0, 64));
            }
            Kind::DefineSelect => {
                let (condition, then) = words.pair()?;
                let (otherwise, outcome) = words.pair()?;
                let (then_value, otherwise_value) = (words.next()?, words.next()?);
                let width = width_of(place)?;
                let condition = self.operand(condition, 1, outcome.into())?;
                let then = self.operand(then, width, then_value)?;
                let otherwise = self.operand(otherwise, width, otherwise_value)?;
                let term = self.apply(Operator::Ite, &[condition, then, otherwise]);
                self.built.push((term.0, width as u8));
            }
            Kind::DefineModule => {
                let (base, first, end) = (words.next()?, words.next()?, words.next()?);
                let path = words.text()?;
                let path =
                    if path.is_empty() { self.executable.clone() } else { PathBuf::from(path) };
                self.symbols.add_module(base, first, end, path);
            }
            Kind::DefineGlobal => {
                let (address, size) = (words.next()?, words.next()?);
                let name = words.text()?;
                self.symbols.add_name(address, size, &name);
            }
            Kind::Image => {
                let address = words.next()?;
                let bytes = words.bytes()?;
                self.memory.know(address, &bytes);
            }
            Kind::Gap => self.account.gap_record(detail, words)?,
            Kind::Task => self.account.task_record(words)?,
            Kind::Outside => self.account.outside(Noted::read(detail, place, words)?),
            Kind::Crash => {
                let (signal, address) = (words.next()? as i32, words.next()?);
                let site = self.symbols.site(place + 1);
                self.crash = Some(Crash { signal, site, address });
            }
            Kind::DefinePlace => {}
            Kind::Renew => {
                let (address, size) = (words.next()?, words.next()?);
                self.blocks.remove(&address);
                self.memory.free(address, size.min(MOST_RENEWED));
            }
            Kind::Mispredicted => {
                let (outcome, predicted) = (words.next()?, words.next()?);
                let branch = Branch::new(place, outcome);
                if !self.path.knows(place) {
                    self.path.add_site(place, &self.symbols.site(place));
                }
                self.path.mispredicted(self.current, predicted, branch)?;
            }
            Kind::PathEnd => {
                let (thread, predicted) = (words.next()?, words.next()?);
                self.path.end(u32::try_from(thread).ok()?, predicted)?;
            }
            Kind::Instrumented => self.account.instrumented_record(detail),
            Kind::Library => {
                let open = &mut self.threads.get_mut(self.current as usize)?.library;
                match detail {
                    0 => _ = open.pop()?,
                    _ => open.push(place),
                }
            }
            Kind::DefineDescription => {
                let size = words.next()?;
                let (name, function, layout) = (words.text()?, words.text()?, words.text()?);
                let function = names::function(&function);
                let description = Description::new(&name, &function, size, &layout);
                self.descriptions.insert(place, description);
            }
            Kind::Describe => {
                let address = words.next()?;
                self.describe(address, place)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// What begins at the address is as described at the place.
    fn describe(&mut self, address: u64, place: u64) -> Option<()> {
        let what = self.descriptions.get(&place)?;
        let mut number = 0;
        if self.blocks.contains_key(&address) {
            let made = self.made.entry(what.name.clone()).or_default();
            *made += 1;
            number = *made;
        }
        let before = self.described.insert(address, (place, number));
        // Another variable of another function, where the stack is used again.
        if before.is_some_and(|(before, _)| before != place) {
            self.memory.free(address, what.size.min(MOST_RENEWED));
        }
        Some(())
    }

    /// Reads a record that has a short form, in whichever form it is.
    #[inline]
    fn recurring(&mut self, first: u64, words: &mut Words) -> Option<Recurring> {
        let (head, address, value) = match Short::from_word(first) {
            Some(short) => {
                let (head, address) = self.again.long(short)?;
                let value = match short.value() {
                    Some(value) => value,
                    None => words.next()?,
                };
                (head, address, value)
            }
            None => {
                let (address, value) = (words.next()?, words.next()?);
                self.again.enter(first, address);
                (first, address, value)
            }
        };
        let detail = (head >> 8) as u8;
        let more = if detail & access::MORE != 0 { words.next()? } else { 0 };
        let kind = Kind::from_code(head as u8)?;
        Some(Recurring { kind, detail, place: head >> 16, address, value, more })
    }

    #[inline]
    fn recurring_event(&mut self, step: Recurring) -> Option<()> {
        let Recurring { kind, detail, place, address, value, more } = step;
        if kind == Kind::Branch {
            let term = self.optional(value as u32, 1)?;
            let condition = Condition { term, outcome: detail & 1 == 1 };
            let site = self.site(place);
            let at = self.next_step(site, "branch")?;
            self.output.branch(at, condition);
            return Some(());
        }
        let size = size_of(detail)?;
        let shadows = match kind {
            Kind::Read => more << 32,
            Kind::WriteShadow => more,
            _ => 0,
        };
        let (mut term, mut address_term) = (None, None);
        if shadows != 0 {
            term = self.optional(shadows as u32, u16::from(size) * 8)?;
            address_term = self.optional((shadows >> 32) as u32, 64)?;
        }
        let site = self.site(place);
        let reads = kind == Kind::Read;
        if self.is_rust {
            self.memory.touch(address, size, self.current);
        }
        // Mostly it is memory that was accessed in the same way before.
        let variable = match reads {
            true => self.memory.read_again(address, size, value),
            false => self.memory.written_again(address, size, value),
        };
        let variable = match variable {
            Some(variable) => VariableId(variable),
            None if reads => {
                self.memory.found(address, size, value);
                self.variable(address, size)
            }
            None => {
                if kind == Kind::Write && detail & access::MORE != 0 {
                    self.memory.know(address, &more.to_le_bytes()[..size.into()]);
                }
                let variable = self.variable(address, size);
                self.memory.left(address, size, value);
                variable
            }
        };
        let at = self.next_step(site, if reads { "read" } else { "write" })?;
        let order = order_of(detail)?;
        let access = Access { variable, value: Some(value), term, address: address_term, order };
        match reads {
            true => self.output.read(at, access),
            false => self.output.write(at, access),
        }
        Some(())
    }

    /// The place of the running thread's next event, which has this keyword.
    #[inline]
    fn next_step(&mut self, site: Option<SiteId>, keyword: &str) -> Option<Step> {
        let thread = ThreadId(self.current);
        let state = self.threads.get_mut(thread.index())?;
        let index = state.index;
        state.index += 1;
        if let Some(schedule) = &mut self.schedule {
            schedule.event(thread, index, keyword, site.map(SiteId::index));
        }
        Some(Step { sequence: self.output.events(), thread, index, site })
    }

    fn event(&mut self, kind: Kind, detail: u8, place: u64, words: &mut Words) -> Option<()> {
        let site = self.site(place);
        let object = |words: &mut Words| words.next().map(|number| ObjectId(number as u32));
        let op = match kind {
            Kind::ReadModifyWrite => {
                let (address, old, new) = (words.next()?, words.next()?, words.next()?);
                let (shadow, address_shadow) = words.pair()?;
                let size = size_of(detail)?;
                if self.is_rust {
                    self.memory.touch(address, size, self.current);
                }
                self.memory.found(address, size, old);
                let variable = self.variable(address, size);
                self.memory.left(address, size, new);
                Op::ReadModifyWrite(Box::new(ReadModifyWrite {
                    variable,
                    old: Some(old),
                    new: Some(new),
                    term: self.optional(shadow, u16::from(size) * 8)?,
                    address: self.optional(address_shadow, 64)?,
                    order: order_of(detail)?.unwrap_or(MemoryOrder::SequentiallyConsistent),
                }))
            }
            Kind::Acquire | Kind::AcquireFailed | Kind::Release | Kind::ReleaseFailed => {
                let (number, flags) = words.pair()?;
                let shared = flags & lock::SHARED != 0;
                let step = LockStep {
                    mode: if shared { LockMode::Shared } else { LockMode::Exclusive },
                    by_try: flags & lock::BY_TRY != 0,
                };
                match kind {
                    Kind::Acquire => Op::Sync(ObjectId(number), SyncOp::Acquire(step)),
                    Kind::Release => Op::Sync(ObjectId(number), SyncOp::Release(step)),
                    Kind::ReleaseFailed => Op::Sync(ObjectId(number), SyncOp::ReleaseFailed(step)),
                    _ => Op::Sync(ObjectId(number), SyncOp::AcquireFailed(step)),
                }
            }
            Kind::WaitBegin => {
                let (condition, mutex) = words.pair()?;
                Op::Sync(ObjectId(condition), SyncOp::WaitBegin { mutex: ObjectId(mutex) })
            }
            Kind::WaitEnd => {
                let (condition, mutex) = words.pair()?;
                Op::Sync(
                    ObjectId(condition),
                    SyncOp::WaitEnd {
                        mutex: ObjectId(mutex),
                        timed_out: detail & wait::TIMED_OUT != 0,
                        timed: detail & wait::TIMED != 0,
                    },
                )
            }
            Kind::Signal => Op::Sync(object(words)?, SyncOp::Signal),
            Kind::Broadcast => Op::Sync(object(words)?, SyncOp::Broadcast),
            Kind::SemaphoreWait => {
                Op::Sync(object(words)?, SyncOp::SemaphoreWait { by_try: detail == BY_TRY })
            }
            Kind::SemaphoreWaitFailed => Op::Sync(object(words)?, SyncOp::SemaphoreWaitFailed),
            Kind::SemaphorePost => Op::Sync(object(words)?, SyncOp::SemaphorePost),
            Kind::BarrierArrive => Op::Sync(object(words)?, SyncOp::BarrierArrive),
            Kind::BarrierLeave => Op::Sync(object(words)?, SyncOp::BarrierLeave),
            Kind::Send => Op::Sync(
                object(words)?,
                SyncOp::Send { amount: words.next()?, content: words.next()? },
            ),
            Kind::Receive => Op::Sync(
                object(words)?,
                SyncOp::Receive {
                    amount: words.next()?,
                    drained: detail & channel::DRAINED != 0,
                    by_try: detail & channel::BY_TRY != 0,
                },
            ),
            Kind::Poll => Op::Sync(object(words)?, SyncOp::Poll { ready: detail == 1 }),
            Kind::Destroy => Op::Sync(object(words)?, SyncOp::Destroy),
            Kind::Fence => Op::Fence(memory_order(detail)?),
            Kind::Assert => {
                let mut term = self.optional(words.next()? as u32, 1)?;
                if detail & 2 != 0 {
                    term = term.map(|term| self.apply(Operator::Not, &[term]));
                }
                Op::Assert(Condition { term, outcome: detail & 1 == 1 })
            }
            Kind::Pin => {
                let (shadow, value) = (words.next()? as u32, words.next()?);
                let width = width_of(detail.into())?;
                let term = self.operand(shadow, width, value)?;
                let value = self.constant(width, value);
                let term = self.apply(Operator::Eq, &[term, value]);
                Op::Branch(Condition { term: Some(term), outcome: true })
            }
            Kind::RegionBegin => Op::RegionBegin(words.text()?.into()),
            Kind::RegionEnd => Op::RegionEnd,
            Kind::Call => {
                let at = self.next_step(site, "call")?;
                let text = self.sites.get(&place).map_or("", |(_, function)| function);
                let name = Name { key: place, text };
                self.output.call(at, name);
                return Some(());
            }
            Kind::Return => Op::Return,
            Kind::Await => Op::Await(match detail {
                foretell_wire::await_mark::ROUND => AwaitMark::Round,
                foretell_wire::await_mark::TEST => AwaitMark::Test,
                foretell_wire::await_mark::FAILED => AwaitMark::Failed,
                foretell_wire::await_mark::AGAIN => AwaitMark::Again,
                _ => return None,
            }),
            Kind::Alloc => {
                let (address, size) = (words.next()?, words.next()?);
                self.memory.free(address, size);
                if detail & ZEROED != 0 {
                    self.memory.know_zeros(address, size);
                }
                self.described.remove(&address);
                self.blocks.insert(address, (size, site.unwrap_or(SiteId(u32::MAX))));
                Op::Alloc { address, size }
            }
            Kind::Free => {
                let address = words.next()?;
                if let Some((size, _)) = self.blocks.remove(&address) {
                    self.memory.free(address, size);
                }
                Op::Free { address }
            }
            Kind::Input => {
                let value = words.next()?;
                Op::Input { source: words.text()?.into(), value }
            }
            Kind::ThreadBegin => Op::ThreadBegin,
            Kind::ThreadEnd => Op::ThreadEnd,
            Kind::Fork => Op::Fork(ThreadId(words.next()? as u32)),
            Kind::Join => Op::Join(ThreadId(words.next()? as u32)),
            _ => return None,
        };
        let at = self.next_step(site, op.keyword())?;
        self.output.event(at.sequence, Event { thread: at.thread, index: at.index, site, op });
        Some(())
    }

    /// The site at a place: one that the pass defined, or one found by its program counter. What the
    /// language's library does belongs to the line of the program that called it.
    fn site(&mut self, place: u64) -> Option<SiteId> {
        if place == 0 {
            return None;
        }
        let site = self.own_site(place);
        if !self.of_library.contains(&site) {
            return Some(site);
        }
        let thread = self.current as usize;
        let open = self.threads.get(thread).map_or(0, |thread| thread.library.len());
        for at in (0..open).rev() {
            let caller = self.own_site(self.threads[thread].library[at]);
            if !self.of_library.contains(&caller) {
                return Some(caller);
            }
        }
        Some(site)
    }

    /// The program gives a thread a name. Where another has it already, a number tells them apart; the first
    /// thread stays `main`.
    fn name_thread(&mut self, number: u64, given: &str) -> Option<()> {
        let number = usize::try_from(number).ok()?;
        let thread = self.threads.get(number)?;
        let given = names::thread(given);
        let is_number = given.chars().all(|c| c.is_ascii_digit() || c == '.');
        if thread.path.is_empty() || is_number {
            return Some(());
        }
        let others = self.threads.iter().enumerate().filter(|(at, _)| *at != number);
        let taken: Vec<&str> = others.filter_map(|(_, other)| other.name.as_deref()).collect();
        let numbered = (2..).map(|count| format!("{given}#{count}"));
        let mut free = std::iter::once(given.clone())
            .chain(numbered)
            .filter(|name| name != "main" && !taken.contains(&&**name));
        let name = free.next()?;
        self.output.thread(ThreadId(number as u32), &name, &thread.path);
        self.threads[number].name = Some(name);
        Some(())
    }

    /// The site at a place, whatever it belongs to.
    fn own_site(&mut self, place: u64) -> SiteId {
        let way = site_way(place);
        if self.recent_sites[way].0 == place {
            return self.recent_sites[way].1;
        }
        let known = self.sites.get(&place).map(|&(site, _)| site);
        let site = known.unwrap_or_else(|| {
            let site = self.symbols.site(place);
            self.define_site(place, site)
        });
        self.recent_sites[way] = (place, site);
        site
    }

    /// The site at a place. Where a library was unloaded, another one's may take the place of one.
    fn define_site(&mut self, place: u64, site: foretell_trace::Site) -> SiteId {
        let next = SiteId(self.defined.len() as u32);
        // Nothing tells places apart of which nothing is known.
        let is_known = !site.file.is_empty() || !site.function.is_empty();
        let by_place = if is_known { place } else { 0 };
        let id = *self.defined.entry((by_place, site.clone())).or_insert(next);
        self.recent_sites[site_way(place)] = (place, id);
        if id != next {
            self.sites.insert(place, (id, site.function));
            return id;
        }
        // A place without a line is no place of the program, either.
        if foretell_wire::is_of_library(&site.file) || site.line == 0 {
            self.of_library.insert(id);
        }
        self.output.site(id, &site);
        self.written_sites.push(site.clone());
        if let Some(schedule) = &mut self.schedule {
            schedule.site(&site);
        }
        self.sites.insert(place, (id, site.function));
        id
    }

    fn variable(&mut self, address: u64, size: u8) -> VariableId {
        let next = self.variables;
        let mut made = None;
        let number = self.memory.variable(address, size, |location| {
            made = Some(location);
            next
        });
        if let Some(Location { generation, initial }) = made {
            self.variables += 1;
            let name = self.name(address);
            let width = u16::from(size) * 8;
            let memory = Some(MemoryRange { address, size, generation });
            let initial = initial.map(|bits| Value::bit_vec(width, bits));
            let scope = Scope::Shared;
            let sort = Sort::bit_vec(width);
            let variable = Variable { name: name.into(), sort, scope, memory, initial };
            self.output.variable(VariableId(number), variable);
        }
        VariableId(number)
    }

    /// The events so far.
    pub fn events(&self) -> u64 {
        self.output.events()
    }

    /// The text with names in place of the addresses that have one, and threads told as in schedules.
    pub fn with_names(&mut self, text: &str) -> String {
        let text = with_creation_paths(text);
        let mut parts = text.split("0x");
        let mut named = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
            let name = u64::from_str_radix(&part[..end], 16).map(|address| self.name(address));
            named.push_str(&name.unwrap_or_else(|_| format!("0x{}", &part[..end])));
            named.push_str(&part[end..]);
        }
        named
    }

    /// How people may call the memory: as the program describes it, by a symbol, by where it was allocated,
    /// or by the address.
    fn name(&mut self, address: u64) -> String {
        let block = self.blocks.range(..=address).next_back();
        let block = block.map(|(&first, &(size, site))| (first, size, site));
        let block = block.filter(|&(first, size, _)| address - first < size);
        if let Some((&first, &(place, number))) = self.described.range(..=address).next_back()
            && let Some(what) = self.descriptions.get(&place)
        {
            match block {
                Some((begin, _, site)) if begin == first && number > 0 => {
                    let place =
                        self.line_of(site).map_or(String::new(), |place| format!(" ({place})"));
                    return format!("{}{place}", what.numbered(number, address - first));
                }
                None if address - first < what.size => {
                    let part = what.part(address - first);
                    return match what.function.is_empty() {
                        true => part,
                        false => format!("{part} in {}", what.function),
                    };
                }
                _ => {}
            }
        }
        if let Some(name) = self.symbols.name(address) {
            return name;
        }
        match block.and_then(|(first, _, site)| Some((first, self.line_of(site)?))) {
            Some((first, line)) => format!("heap@{line}+{}", address - first),
            None => format!("{address:#x}"),
        }
    }

    /// File and line of a site, where it has one.
    fn line_of(&self, id: SiteId) -> Option<String> {
        let site = self.written_sites.get(id.index())?;
        let file = site.file.rsplit('/').next().filter(|file| !file.is_empty())?;
        Some(format!("{file}:{}", site.line))
    }

    // Terms. A 1-bit value is a Boolean, everything else a bit-vector.

    fn next_term(&mut self) -> TermId {
        self.terms += 1;
        TermId(self.terms - 1)
    }

    /// The term with this key. A `fresh` one is not looked for: there cannot be one yet.
    #[inline]
    fn intern(&mut self, key: Key, fresh: bool, define: impl FnOnce(TermId, &mut O)) -> TermId {
        let way = key.way();
        if !fresh {
            let (recent, term) = self.recent_terms[way];
            if recent == key {
                return term;
            }
        }
        let id = self.next_term();
        define(id, &mut self.output);
        self.recent_terms[way] = (key, id);
        id
    }

    fn constant(&mut self, width: u16, value: u64) -> TermId {
        let value = match width {
            1 => Value::Bool(value & 1 == 1),
            _ => Value::bit_vec(width, value),
        };
        let bits = match value {
            Value::Bool(value) => value.into(),
            Value::BitVec { bits, .. } => bits,
            _ => 0,
        };
        self.intern(Key::Constant(width, bits), false, |id, output| output.constant(id, value))
    }

    fn apply(&mut self, operator: Operator, arguments: &[TermId]) -> TermId {
        let mut parts = [u32::MAX; 3];
        for (part, argument) in parts.iter_mut().zip(arguments) {
            *part = argument.0;
        }
        // Nothing has been made of the newest term so far.
        let newest = self.terms.wrapping_sub(1);
        let fresh = parts.contains(&newest) && self.terms != 0;
        self.intern(Key::Apply(operator, parts), fresh, |id, output| {
            output.apply(id, operator, arguments);
        })
    }

    /// The term of a shadow; none for 0.
    fn optional(&mut self, shadow: u32, width: u16) -> Option<Option<TermId>> {
        if shadow == 0 { Some(None) } else { self.operand(shadow, width, 0).map(Some) }
    }

    /// The term of a shadow, of this width; the constant for 0.
    fn operand(&mut self, shadow: u32, width: u16, value: u64) -> Option<TermId> {
        if shadow == 0 {
            return Some(self.constant(width, value));
        }
        if shadow & TERM_SHADOW != 0 {
            let &(term, has) = self.built.get((shadow & !TERM_SHADOW) as usize)?;
            let (term, has) = (TermId(term), u16::from(has));
            return Some(match has.cmp(&width) {
                std::cmp::Ordering::Equal => term,
                std::cmp::Ordering::Less => self.cast(CastOp::ZeroExtend, has, width, term),
                std::cmp::Ordering::Greater => self.cast(CastOp::Truncate, has, width, term),
            });
        }
        let index = shadow - 1;
        if width == 1 {
            let byte = self.operand(shadow, 8, 0)?;
            return Some(self.cast(CastOp::Truncate, 8, 1, byte));
        }
        let thread = ThreadId(self.current);
        let way = index as usize % RECENT_READS;
        let (recent, wide, term) = self.threads.get(thread.index())?.reads.0[way];
        if (recent, wide) == (index, width) {
            return Some(term);
        }
        let id = self.next_term();
        let sort = Sort::bit_vec(width);
        self.output.read_value(id, thread, index, sort);
        self.threads.get_mut(thread.index())?.reads.0[way] = (index, width, id);
        Some(id)
    }

    fn cast(&mut self, op: CastOp, from: u16, to: u16, term: TermId) -> TermId {
        match op {
            _ if from == to => term,
            CastOp::Truncate if to == 1 => {
                let bit = self.apply(Operator::Extract { high: 0, low: 0 }, &[term]);
                let one = self.intern(Key::Constant(0, 1), false, |id, output| {
                    output.constant(id, Value::bit_vec(1, 1));
                });
                self.apply(Operator::Eq, &[bit, one])
            }
            CastOp::Truncate => self.apply(Operator::Extract { high: to - 1, low: 0 }, &[term]),
            CastOp::ZeroExtend | CastOp::SignExtend if from == 1 => {
                let set = if op == CastOp::SignExtend { u64::MAX } else { 1 };
                let (set, clear) = (self.constant(to, set), self.constant(to, 0));
                self.apply(Operator::Ite, &[term, set, clear])
            }
            CastOp::ZeroExtend => self.apply(Operator::ZeroExtend(to - from), &[term]),
            CastOp::SignExtend => self.apply(Operator::SignExtend(to - from), &[term]),
        }
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        width: u16,
        left: u32,
        right: u32,
        value: u64,
    ) -> Option<TermId> {
        use BinaryOp as B;
        use Operator as O;
        let left = self.operand(left, width, value)?;
        let right = self.operand(right, width, value)?;
        if width == 1 {
            return Some(self.boolean(op, left, right));
        }
        let (operator, swapped, negated) = match op {
            B::Add => (O::BvAdd, false, false),
            B::Sub => (O::BvSub, false, false),
            B::Mul => (O::BvMul, false, false),
            B::UDiv => (O::BvUdiv, false, false),
            B::SDiv => (O::BvSdiv, false, false),
            B::URem => (O::BvUrem, false, false),
            B::SRem => (O::BvSrem, false, false),
            B::And => (O::BvAnd, false, false),
            B::Or => (O::BvOr, false, false),
            B::Xor => (O::BvXor, false, false),
            B::Shl => (O::BvShl, false, false),
            B::LShr => (O::BvLshr, false, false),
            B::AShr => (O::BvAshr, false, false),
            B::Eq => (O::Eq, false, false),
            B::Ne => (O::Eq, false, true),
            B::Ult => (O::BvUlt, false, false),
            B::Ule => (O::BvUle, false, false),
            B::Ugt => (O::BvUlt, true, false),
            B::Uge => (O::BvUle, true, false),
            B::Slt => (O::BvSlt, false, false),
            B::Sle => (O::BvSle, false, false),
            B::Sgt => (O::BvSlt, true, false),
            B::Sge => (O::BvSle, true, false),
        };
        let arguments = if swapped { [right, left] } else { [left, right] };
        let term = self.apply(operator, &arguments);
        Some(if negated { self.apply(O::Not, &[term]) } else { term })
    }

    /// An address: the base, and an index that is extended and scaled.
    fn address(
        &mut self,
        op: CastOp,
        width: u16,
        index: u32,
        scale: u64,
        base: u64,
    ) -> Option<TermId> {
        let index = self.operand(index, width, 0)?;
        let mut offset = self.cast(op, width, 64, index);
        if scale != 1 {
            let scale = self.constant(64, scale);
            offset = self.apply(Operator::BvMul, &[offset, scale]);
        }
        let base = self.constant(64, base);
        Some(self.apply(Operator::BvAdd, &[base, offset]))
    }

    /// Operations on single bits. A set bit is 1 unsigned and -1 signed.
    fn boolean(&mut self, op: BinaryOp, left: TermId, right: TermId) -> TermId {
        use BinaryOp as B;
        use Operator as O;
        match op {
            B::Add | B::Sub | B::Xor | B::Ne => self.apply(O::Xor, &[left, right]),
            B::And | B::Mul => self.apply(O::And, &[left, right]),
            B::Or => self.apply(O::Or, &[left, right]),
            B::Eq => self.apply(O::Eq, &[left, right]),
            // Division by a clear bit is undefined, and a remainder of one bit is zero.
            B::UDiv | B::SDiv | B::AShr => left,
            B::URem | B::SRem => self.constant(1, 0),
            B::Shl | B::LShr | B::Ugt | B::Slt => {
                let not = self.apply(O::Not, &[right]);
                self.apply(O::And, &[left, not])
            }
            B::Ult | B::Sgt => {
                let not = self.apply(O::Not, &[left]);
                self.apply(O::And, &[not, right])
            }
            B::Ule | B::Sge => {
                let not = self.apply(O::Not, &[left]);
                self.apply(O::Or, &[not, right])
            }
            B::Uge | B::Sle => {
                let not = self.apply(O::Not, &[right]);
                self.apply(O::Or, &[left, not])
            }
        }
    }
}

/// The runtime tells threads as files do (`-`, `0.1`); people see them as in schedules (`0`, `0.0.1`).
fn with_creation_paths(text: &str) -> String {
    const WORD: &str = "thread ";
    let mut parts = text.split(WORD);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.len());
        told += WORD;
        match part.strip_prefix('-') {
            Some(rest) => told.extend(["0", rest]),
            None if end > 0 => told.extend(["0.", part]),
            None => told += part,
        }
    }
    told
}

/// Where a place is among the recent sites.
#[inline]
fn site_way(place: u64) -> usize {
    (place as usize ^ (place >> 10) as usize) % RECENT_SITES
}

fn size_of(detail: u8) -> Option<u8> {
    let size = access::size(detail);
    (1..=8).contains(&size).then_some(size)
}

fn width_of(width: u64) -> Option<u16> {
    (1..=64).contains(&width).then_some(width as u16)
}

fn order_of(detail: u8) -> Option<Option<MemoryOrder>> {
    match access::order(detail) {
        0 => Some(None),
        code => memory_order(code).map(Some),
    }
}

fn memory_order(code: u8) -> Option<MemoryOrder> {
    use foretell_abi::Order;
    Some(match Order::from_code(code.into())? {
        Order::Relaxed => MemoryOrder::Relaxed,
        Order::Acquire => MemoryOrder::Acquire,
        Order::Release => MemoryOrder::Release,
        Order::AcquireRelease => MemoryOrder::AcquireRelease,
        Order::SequentiallyConsistent => MemoryOrder::SequentiallyConsistent,
    })
}

fn object_kind(kind: foretell_wire::ObjectKind, amount: u32) -> ObjectKind {
    use foretell_wire::ObjectKind as K;
    match kind {
        K::Mutex => ObjectKind::Mutex,
        K::RecursiveMutex => ObjectKind::RecursiveMutex,
        K::ErrorCheckingMutex => ObjectKind::ErrorCheckingMutex,
        K::ReaderWriterLock => ObjectKind::ReaderWriterLock,
        K::Condition => ObjectKind::Condition,
        K::Semaphore => ObjectKind::Semaphore { initial: amount },
        K::Queue => ObjectKind::Channel(ChannelKind::Queue),
        K::State => ObjectKind::Channel(ChannelKind::State),
        K::Interrupt => ObjectKind::Channel(ChannelKind::Interrupt),
        K::Barrier => ObjectKind::Barrier { parties: amount },
    }
}
