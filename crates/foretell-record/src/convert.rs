//! Records of the runtime to a trace, in a file or in memory: while the program runs, or from a log
//! of it.
//!
//! Definitions go into the output before their first use, so that whatever part of the file is kept
//! makes sense. The records come from a process that may have gone wild: what does not decode ends
//! the conversion with a gap, never with a panic.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use foretell_abi::{BinaryOp, CastOp};
use foretell_trace::{ChannelKind, Object, ObjectId, ObjectKind, Site, ThreadId};
use foretell_wire::again::{Again, Short};
use foretell_wire::predictor::Branch;
use foretell_wire::record::{self, Words};
use foretell_wire::{Kind, WIDE_OPERAND, format_path, of_variable};

use crate::account::{Account, NO_SENSE};
use crate::convert::names::Names;
use crate::convert::terms::Terms;
use crate::described::Description;
use crate::forced::Comparison;
use crate::limits::MOST_RENEWED;
use crate::memory::Memory;
use crate::names as spelling;
use crate::output::{Ending, Output};
use crate::outside::{Noted, Outside};
use crate::path::ExecutionPath;
use crate::symbols::Symbols;
use crate::words::{path, site, text};

mod events;
mod names;
mod terms;

/// A thread as far as it has been converted.
#[derive(Default)]
struct Thread {
    /// Its events so far.
    index: u32,
    /// Where the open calls of functions of the language's library return to, the innermost last.
    library: Vec<u64>,
    /// How it was created.
    path: Box<[u32]>,
    /// What the program calls it.
    name: Option<String>,
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
    pub site: Site,
    /// The address that could not be accessed, for faults.
    pub address: u64,
}

/// See the module's text.
pub struct Converter<O> {
    output: O,
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
    names: Names,
    terms: Terms,
    crash: Option<Crash>,
    /// Of the first reads that returned what no event had written: the address; its name and the line.
    unseen: Vec<(u64, String)>,
    broken: bool,
    /// What is to be said at the end.
    pub account: Account,
    /// The branches that were taken.
    pub path: ExecutionPath,
    /// The schedule that the run is to obey.
    pub schedule: Option<Comparison>,
}

impl<O: Output> Converter<O> {
    /// Writes to `output`; `executable` is the program's.
    pub fn new(output: O, executable: PathBuf, symbols: Symbols) -> Self {
        Self {
            output,
            memory: Memory::default(),
            is_rust: false,
            executable,
            current: 0,
            again: Again::new(),
            threads: Vec::new(),
            variables: 0,
            objects: 0,
            object_names: HashMap::new(),
            names: Names::new(symbols),
            terms: Terms::new(),
            crash: None,
            unseen: Vec::new(),
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
            let shared = |(address, _): &&(u64, String)| self.memory.is_shared(*address);
            let first =
                self.unseen.iter().find(shared).map(|(_, what)| format!(" (first: {what})"));
            let gap = format!(
                "{unseen} reads returned values that were written by code that is not instrumented{}; from then \
                 on, that memory is treated as a new location",
                first.unwrap_or_default()
            );
            self.account.gap(&gap);
        }
        let symbols = &mut self.names.symbols;
        let outside = self.account.settle(|place| Some(symbols.site(place)));
        let symbolic = self.account.is_symbolic();
        let mut gaps = self.account.gaps();
        let restrictions = self.account.restrictions();
        let ending = Ending {
            symbolic,
            machine_code: self.account.is_machine_code(),
            unseen: self.account.unseen(),
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
    fn record(&mut self, words: &mut Words<'_>) -> Option<()> {
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
            Kind::Turn => {
                self.current = record::Turn::from_words(detail, words)?.thread;
                self.terms.thread = ThreadId(self.current);
            }
            Kind::DefineThread => {
                let record::DefineThread { thread, path: bytes } =
                    record::DefineThread::from_words(words)?;
                let path = path(&bytes);
                self.account.thread(&path);
                if thread as usize != self.threads.len() {
                    return None;
                }
                self.threads.push(Thread { path: path.clone().into(), ..Thread::default() });
                self.terms.add_thread();
                self.path.add_thread(&path);
                if let Some(schedule) = &mut self.schedule {
                    schedule.thread(&path);
                }
                let name = if path.is_empty() { "main".into() } else { format_path(&path) };
                self.output.thread(ThreadId(thread), &name, &path);
            }
            Kind::NameThread => {
                let record::NameThread { thread, name } = record::NameThread::from_words(words)?;
                self.name_thread(thread.into(), &text(name))?;
            }
            Kind::DefineObject => {
                self.define_object(record::DefineObject::from_words(detail, words)?)?
            }
            Kind::DefineSite => {
                let mut site = site(record::DefineSite::from_words(words)?);
                self.is_rust |= site.file.ends_with(".rs");
                spelling::shorten(&mut site);
                self.path.add_site(place, &site);
                let (output, schedule) = (&mut self.output, &mut self.schedule);
                self.names.define_site(place, site, |id, site| {
                    output.site(id, site);
                    if let Some(schedule) = schedule {
                        schedule.site(site);
                    }
                });
            }
            Kind::DefineBinary => {
                let op = BinaryOp::from_code((detail & !WIDE_OPERAND).into())?;
                let record = record::DefineBinary::from_words(detail, words)?;
                self.terms.define_binary(&mut self.output, op, place, record)?;
            }
            Kind::DefineCast => {
                let (op, record) = (
                    CastOp::from_code(detail.into())?,
                    record::DefineCast::from_words(detail, words)?,
                );
                self.terms.define_cast(&mut self.output, op, place, record)?;
            }
            Kind::DefineAddress => {
                let op = CastOp::from_code(detail.into())?;
                let record = record::DefineAddress::from_words(detail, words)?;
                self.terms.define_address(&mut self.output, op, place, record)?;
            }
            Kind::DefineSelect => {
                let record = record::DefineSelect::from_words(detail, words)?;
                self.terms.define_select(&mut self.output, place, record)?;
            }
            Kind::DefineModule => {
                let record::DefineModule { load_address, first, end, file } =
                    record::DefineModule::from_words(words)?;
                let file = text(file);
                let file =
                    if file.is_empty() { self.executable.clone() } else { PathBuf::from(file) };
                self.names.symbols.add_module(load_address, first, end, file);
            }
            Kind::DefineGlobal => {
                let record::DefineGlobal { address, size, name } =
                    record::DefineGlobal::from_words(words)?;
                self.names.symbols.add_name(address, size, &text(name));
            }
            Kind::Image => {
                let record::Image { address, bytes } = record::Image::from_words(words)?;
                self.memory.know(address, &bytes);
            }
            Kind::Gap => self.account.gap_record(detail, record::Gap::from_words(words)?),
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
            Kind::Crash => {
                let record::Crash { signal, address } = record::Crash::from_words(detail, words)?;
                let site = self.names.symbols.site(place + 1);
                self.crash = Some(Crash { signal: signal as i32, site, address });
            }
            Kind::DefinePlace => {}
            Kind::Renew => {
                let record::Renew { address, size } = record::Renew::from_words(detail, words)?;
                self.names.freed(address);
                self.memory.free(address, size.min(MOST_RENEWED));
            }
            Kind::Mispredicted => {
                let record::Mispredicted { outcome, predicted_before } =
                    record::Mispredicted::from_words(detail, words)?;
                let branch = Branch::new(place, outcome);
                if !self.path.knows(place) {
                    self.path.add_site(place, &self.names.symbols.site(place));
                }
                self.path.mispredicted(self.current, predicted_before, branch)?;
            }
            Kind::PathEnd => {
                let record::PathEnd { thread, predicted_since } =
                    record::PathEnd::from_words(detail, words)?;
                self.path.end(thread, predicted_since)?;
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
                let record::DefineDescription { size, name, function, layout } =
                    record::DefineDescription::from_words(words)?;
                let function = spelling::function(&text(function));
                let description = Description::new(&text(name), &function, size, &text(layout));
                self.names.define_description(place, description);
            }
            Kind::Describe => {
                let record::Describe { address } = record::Describe::from_words(detail, words)?;
                if let Some(size) = self.names.describe(address, place)? {
                    self.memory.free(address, size.min(MOST_RENEWED));
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn define_object(&mut self, record: record::DefineObject) -> Option<()> {
        let record::DefineObject { object, kind, address, amount } = record;
        let kind = object_kind(foretell_wire::ObjectKind::from_code(kind)?, amount as u32);
        if object != self.objects {
            return None;
        }
        self.objects += 1;
        // What a channel is known by is no memory, unless it is a buffer of the program's; what belongs to a variable
        // lies nowhere.
        let is_channel = matches!(kind, ObjectKind::Channel(_));
        let of_variable = if is_channel { 0 } else { address & of_variable::ANY };
        let mut name = self.names.of_memory(address & !of_variable);
        if of_variable == of_variable::MUTEX {
            name += " (waiting)";
        }
        // Runs know each other's objects by name: those at two addresses never have the same.
        if *self.object_names.entry(name.clone()).or_insert(address) != address {
            name += &format!(" at {address:#x}");
        }
        let is_key = is_channel && address >> 63 != 0;
        let address = (!is_key && of_variable == 0).then_some(address);
        self.output.object(ObjectId(object), Object { name: name.into(), kind, address });
        Some(())
    }

    /// The program gives a thread a name. Where another has it already, a number tells them apart; the first
    /// thread stays `main`.
    fn name_thread(&mut self, number: u64, given: &str) -> Option<()> {
        let number = usize::try_from(number).ok()?;
        let thread = self.threads.get(number)?;
        let given = spelling::thread(given);
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

    /// What people call the memory.
    pub fn name(&mut self, address: u64) -> String {
        self.names.of_memory(address)
    }

    /// The events so far.
    pub fn events(&self) -> u64 {
        self.output.events()
    }
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
