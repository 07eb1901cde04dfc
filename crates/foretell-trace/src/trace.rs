//! A whole trace in memory: the events in recorded order and the tables they refer to.

use std::collections::{BTreeMap, HashMap};

use crate::event::{Event, Op};
use crate::id::{EventId, ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::schedule::CreationPath;
use crate::term::{Sort, Term, TermStore, Value};

/// A recorded run, a hand-written text trace, or the content of a CTRC or STD file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Where it comes from and what it lacks.
    pub metadata: Metadata,
    /// The threads.
    pub threads: Vec<Thread>,
    /// The memory locations and variables.
    pub variables: Vec<Variable>,
    /// The synchronisation objects.
    pub objects: Vec<Object>,
    /// The source positions.
    pub sites: Vec<Site>,
    /// The symbolic expressions that events refer to.
    pub terms: TermStore,
    /// The events in recorded order. Where no order was recorded (CTRC), thread after thread.
    pub events: Vec<Event>,
    /// Holds of the variables' initial values.
    pub precondition: Option<TermId>,
    /// Pairs that every interleaving keeps in this order.
    pub orders: Vec<(EventId, EventId)>,
    /// Events of one thread, from first to last, that always run without interruption. (Blocks
    /// that *should* be atomic are [`Op::RegionBegin`] events.)
    pub atomic_sections: Vec<(EventId, EventId)>,
    /// Names given to events by a person, e.g. CTRC's `w1`.
    pub labels: BTreeMap<EventId, Box<str>>,
}

/// What is known about a trace as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The program and its arguments.
    pub command: Vec<Box<str>>,
    /// The program's build id in hexadecimal.
    pub build_id: Option<Box<str>>,
    /// Writes and conditions carry expressions: an absent term means "depends on no read". When
    /// false, every read must return its recorded value for the run to go on as recorded.
    pub symbolic: bool,
    /// The order of `events` was observed in a run.
    pub observed_order: bool,
    /// It is the recording of a binary that nobody compiled for it: what the C library does by itself, such as
    /// allocating memory, is not in it, and which accesses the source has as atomic ones is not known.
    pub machine_code: bool,
    /// What the analysis has to know of the gaps.
    pub unseen: Unseen,
    /// The run was ended before its end: a thread that had not ended would have gone on. No file says so: readers of files
    /// find it among the gaps.
    pub cut: bool,
    /// What was not seen, one sentence each (dropped events, uninstrumented modules, ...).
    pub gaps: Vec<Box<str>>,
    /// What was held at its recorded value, one sentence each (expressions given to uninstrumented
    /// functions, ...). Nothing is missing there: like a branch on a value, it keeps predictions on
    /// the recorded path, so an answer is complete for that path in spite of it.
    pub restrictions: Vec<Box<str>>,
}

/// What a recording of a binary did not see, as far as it matters for what can be concluded from it. A sentence of
/// [`Metadata::gaps`] says each of them to people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// The functions of its C library are not recognised: a lock is the atomic accesses that it is made of.
    pub library: bool,
    /// Some locks are not seen as such: what is done under a lock looks like what is not.
    pub locks: bool,
    /// The C library took memory for itself that the program had freed: an access of freed memory may be of what it put there.
    pub freed: bool,
}

impl Unseen {
    /// The words for it in text traces.
    pub const WORDS: [&str; 3] = ["unknown-library", "unknown-locks", "freed-in-use"];

    /// In the order of [`Unseen::WORDS`].
    pub fn flags(self) -> [bool; 3] {
        [self.library, self.locks, self.freed]
    }

    /// From what [`Unseen::flags`] gives.
    pub fn from_flags([library, locks, freed]: [bool; 3]) -> Self {
        Self { library, locks, freed }
    }
}

impl Metadata {
    /// Whether nobody can access memory that is freed and not allocated again in the trace, but by mistake.
    pub fn knows_what_is_freed(&self) -> bool {
        match self.machine_code {
            true => !self.unseen.freed,
            false => self.symbolic,
        }
    }
}

/// A thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// For people.
    pub name: Box<str>,
    /// Creation path: the main thread is `[]`; the second thread that thread `p` creates is `p`
    /// followed by 1. Stays the same from run to run.
    pub path: Vec<u32>,
}

/// A memory location or program variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// For people: `counter`, `account.balance`, `0x55d0c8`.
    pub name: Box<str>,
    /// The values it takes.
    pub sort: Sort,
    /// Who can see it.
    pub scope: Scope,
    /// Address and size in bytes, for memory. Ranges of two variables may overlap.
    pub memory: Option<MemoryRange>,
    /// Value before the first event, when known.
    pub initial: Option<Value>,
}

/// Who can see a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every thread.
    Shared,
    /// One thread.
    Local(ThreadId),
}

/// Where a variable lies. A freed and reused address is another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryRange {
    /// First byte.
    pub address: u64,
    /// Bytes, at most 8.
    pub size: u8,
    /// How often the address had been freed before.
    pub generation: u32,
}

/// A synchronisation object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// For people.
    pub name: Box<str>,
    /// What it is.
    pub kind: ObjectKind,
    /// Where it lies in memory, if that is known.
    pub address: Option<u64>,
}

/// The kinds of synchronisation objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A mutex that deadlocks on a second acquire by its holder.
    Mutex,
    /// A mutex that counts acquires by its holder.
    RecursiveMutex,
    /// A mutex whose second acquire by its holder fails (seen as a failed acquire).
    ErrorCheckingMutex,
    /// A reader-writer lock.
    ReaderWriterLock,
    /// A condition variable.
    Condition,
    /// A counting semaphore.
    Semaphore {
        /// Count before the first event.
        initial: u32,
    },
    /// A barrier.
    Barrier {
        /// How many threads meet.
        parties: u32,
    },
    /// What one thread puts in and another takes out.
    Channel(ChannelKind),
}

/// How a channel passes on what is put into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// In the order in which it came: a pipe, a socket, an eventfd.
    Queue,
    /// As a state that everybody sees who looks: a file, a signal that is pending. What was sent
    /// before is not sent again.
    State,
    /// At once, wherever the receiver is: a signal with a handler.
    Interrupt,
}

/// A source position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// File name as the compiler had it; empty when unknown.
    pub file: Box<str>,
    /// Line from 1; 0 when unknown.
    pub line: u32,
    /// Column from 1; 0 when unknown.
    pub column: u32,
    /// Function; empty when unknown.
    pub function: Box<str>,
}

impl Trace {
    /// An empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a thread.
    pub fn add_thread(&mut self, name: &str, path: Vec<u32>) -> ThreadId {
        self.threads.push(Thread { name: name.into(), path });
        ThreadId::from(self.threads.len() - 1)
    }

    /// Adds a variable.
    pub fn add_variable(&mut self, variable: Variable) -> VariableId {
        self.variables.push(variable);
        VariableId::from(self.variables.len() - 1)
    }

    /// Adds a synchronisation object that lies nowhere in particular.
    pub fn add_object(&mut self, name: &str, kind: ObjectKind) -> ObjectId {
        self.objects.push(Object { name: name.into(), kind, address: None });
        ObjectId::from(self.objects.len() - 1)
    }

    /// Adds a source position. Does not look for an equal one.
    pub fn add_site(&mut self, site: Site) -> SiteId {
        self.sites.push(site);
        SiteId::from(self.sites.len() - 1)
    }

    /// Appends an event at the end of the recorded order; `index` must be the number of events the
    /// thread had before (see [`Indexer`]).
    pub fn push(&mut self, event: Event) -> EventId {
        self.events.push(event);
        EventId::from(self.events.len() - 1)
    }

    /// The event.
    pub fn event(&self, id: EventId) -> &Event {
        &self.events[id.index()]
    }

    /// The events of each thread, in program order.
    pub fn events_by_thread(&self) -> Vec<Vec<EventId>> {
        let mut chains = vec![Vec::new(); self.threads.len()];
        for (position, event) in self.events.iter().enumerate() {
            chains[event.thread.index()].push(EventId::from(position));
        }
        chains
    }

    /// Gives every thread the name that people know it by, see [`Trace::thread_names`].
    pub fn name_threads_by_function(&mut self) {
        let names = self.thread_names();
        self.threads.iter_mut().zip(names).for_each(|(thread, name)| thread.name = name);
    }

    /// What people call the threads. One that is named by a number (as recorders do) has the name of
    /// the first function of the program that it calls: `worker`, or `worker#1`, `worker#2` where
    /// several begin with it. A lambda is named by its place. Names that threads have already stay.
    pub fn thread_names(&self) -> Vec<Box<str>> {
        // A C++ thread begins in the library, which then calls the program.
        let of_library =
            |name: &str| ["std::", "void std::", "__"].iter().any(|begin| name.starts_with(begin));
        let mut functions: Vec<Option<Box<str>>> = vec![None; self.threads.len()];
        for event in &self.events {
            if let Op::Call(function) = &event.op {
                let entry = &mut functions[event.thread.index()];
                match entry {
                    Some(known) if !of_library(known) || of_library(function) => {}
                    _ => *entry = Some(self.called(function, event.site)),
                }
            }
        }
        let mut count: BTreeMap<Box<str>, (usize, usize)> = BTreeMap::new();
        let numbered =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_digit() || c == '.');
        for (thread, function) in self.threads.iter().zip(&mut functions) {
            match function {
                Some(function) if numbered(&thread.name) => {
                    count.entry(function.clone()).or_default().0 += 1;
                }
                _ => *function = None,
            }
        }
        let taken: Vec<Box<str>> = self.threads.iter().map(|thread| thread.name.clone()).collect();
        let name = |(thread, function): (&Thread, Option<Box<str>>)| {
            let Some(function) = function else { return thread.name.clone() };
            let (all, before) = count.get_mut(&function).expect("every function was counted");
            *before += 1;
            match *all {
                1 if !taken.contains(&function) => function,
                _ => format!("{function}#{before}").into(),
            }
        };
        self.threads.iter().zip(functions).map(name).collect()
    }

    /// What people call a function that begins at the site.
    fn called(&self, function: &str, site: Option<SiteId>) -> Box<str> {
        let site = site.map(|site| &self.sites[site.index()]).filter(|site| site.line > 0);
        match site {
            Some(site) if function.starts_with("lambda ") => {
                let file = site.file.rsplit('/').next().unwrap_or_default();
                format!("lambda at {file}:{}", site.line).into()
            }
            _ => function.into(),
        }
    }

    /// What people call the thread with this creation path; one that the trace does not know keeps its path.
    pub fn name_of_thread(&self, path: &[u32]) -> String {
        match self.threads.iter().find(|thread| thread.path == path) {
            Some(thread) => thread.name.to_string(),
            None => CreationPath(path.to_vec()).to_string(),
        }
    }

    /// Do both say the same? Terms are compared by what they are: their numbers, and terms that
    /// nothing refers to, may differ (they do when a trace went through a text).
    pub fn says_the_same_as(&self, other: &Trace) -> bool {
        if self.terms.symbols() != other.terms.symbols() {
            return false;
        }
        let mut terms = self.terms.clone();
        let mut copies = HashMap::new();
        let mut translated = Trace { terms: TermStore::default(), ..other.clone() };
        let roots = translated.events.iter_mut().flat_map(|event| event.op.terms_mut());
        for root in roots.chain(&mut translated.precondition) {
            *root = terms.import(&other.terms, *root, &mut copies, &mut |terms, leaf| {
                let sort = other.terms.sort(leaf);
                match *other.terms.term(leaf) {
                    Term::Variable(variable) => terms.variable(variable, sort),
                    Term::Primed(variable) => terms.primed(variable, sort),
                    Term::ReadValue(thread, index) => terms.read_value(thread, index, sort),
                    Term::Before(first, second) => terms.before(first, second),
                    ref symbol => terms.find(symbol).expect("both have the same symbols"),
                }
            });
        }
        translated == Trace { terms: TermStore::default(), ..self.clone() }
    }

    /// How a person calls the event: its label, or `thread#index`.
    pub fn event_name(&self, id: EventId) -> String {
        match self.labels.get(&id) {
            Some(label) => label.to_string(),
            None => {
                let event = self.event(id);
                format!("{}#{}", self.threads[event.thread.index()].name, event.index)
            }
        }
    }
}

/// Numbers the events of each thread while a trace is built.
#[derive(Clone, Debug, Default)]
pub struct Indexer {
    next: Vec<u32>,
}

impl Indexer {
    /// An event of `thread` with the next index of that thread.
    pub fn event(&mut self, thread: ThreadId, site: Option<SiteId>, op: Op) -> Event {
        if self.next.len() <= thread.index() {
            self.next.resize(thread.index() + 1, 0);
        }
        let index = self.next[thread.index()];
        self.next[thread.index()] += 1;
        Event { thread, index, site, op }
    }

    /// The index that the next event of the thread gets.
    pub fn next_index(&self, thread: ThreadId) -> u32 {
        self.next.get(thread.index()).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use crate::format::text;

    #[test]
    fn threads_are_named_by_what_they_run() {
        let mut trace = text::read(
            "foretell-trace 1
             thread main, |0|, |1|, |2|, |3|, named
             main call main
             |0| call worker
             |0| call helper
             |1| call worker
             |2| call |std::thread::_State_impl<main::$_0>::_M_run()|
             |2| call reader
             named call worker",
        )
        .unwrap();
        trace.name_threads_by_function();
        let names: Vec<&str> = trace.threads.iter().map(|thread| &*thread.name).collect();
        assert_eq!(names, ["main", "worker#1", "worker#2", "reader", "3", "named"]);
        assert_eq!(trace.name_of_thread(&[]), "main");
        assert_eq!(trace.name_of_thread(&[1]), names[2]);
        assert_eq!(trace.name_of_thread(&[9]), "0.9");
    }
}
