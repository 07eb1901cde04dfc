//! Concurrent programs: one control-flow automaton per thread, whose edges are guarded assignments
//! over integer variables (001 section 5.1 speaks of events of threads; an edge is a statement that
//! gives such events).
//!
//! *Meaning.* A state has a location of every thread and a value of every variable. A step takes an
//! edge of one thread whose guard holds, in one piece; integers are mathematical. A thread may start
//! another and wait for another's end; while a thread stands inside an atomic section, only it moves.
//! The program is safe if no thread can come to its error location.
//!
//! A front end builds small edges ([`Builder`]); [`Program::in_large_blocks`] joins an edge with the
//! steps behind it that nobody else can see.

mod builder;
mod large_blocks;

use std::collections::HashMap;

use foretell_trace::{Term, TermId, TermStore, VariableId};

pub use builder::{Builder, less};

/// More variables than this are refused: sets of variables are words of as many bits.
pub const VARIABLES: usize = 128;

/// A set of variables.
pub type VariableSet = u128;

/// A location of a thread.
pub type Location = usize;

/// The number of an edge of a program.
pub type EdgeId = usize;

/// A program variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// As the source calls it, a local with its thread in front.
    pub name: Box<str>,
    /// The thread whose local it is; nobody else touches it.
    pub local_of: Option<usize>,
    /// Its first value; any when absent.
    pub initial: Option<i128>,
}

/// A place in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// From 1.
    pub line: u32,
    /// From 1; 0 when unknown.
    pub column: u32,
}

/// What the compiled program does in a small edge, where others can see it; for whoever forces a run
/// on it ([`crate::compiled`]). Guarded commands are not compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visible {
    /// Nothing that anybody else sees.
    No,
    /// Reads a shared variable.
    Read,
    /// Writes a shared variable.
    Write,
    /// Copies memory or fills it, in several accesses.
    Copy,
    /// Takes a mutex.
    Lock,
    /// Tries to take a mutex.
    TryLock,
    /// Gives a mutex back.
    Unlock,
    /// Begins to wait for a condition, and gives its mutex back.
    WaitBegin,
    /// Wakes up and has the mutex again.
    WaitEnd,
    /// Wakes who waits for a condition.
    Signal,
    /// Waits for a semaphore.
    SemaphoreWait,
    /// Increments a semaphore.
    SemaphorePost,
    /// Creates a thread.
    Fork,
    /// Waits for a thread's end.
    Join,
    /// Leaves an atomic section.
    AtomicEnd,
    /// Takes a value that the environment chooses.
    Input,
    /// Reads and writes a shared variable in one step.
    Modify,
    /// Comes to a barrier.
    BarrierArrive,
    /// Leaves a barrier.
    BarrierLeave,
    /// Ends its thread.
    End,
}

/// A guarded assignment of one thread.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Whose.
    pub thread: usize,
    /// From here
    pub from: Location,
    /// to there.
    pub to: Location,
    /// Must hold before.
    pub guard: TermId,
    /// New values, all computed before any changes.
    pub assignments: Vec<(VariableId, TermId)>,
    /// Symbols whose values the environment chooses.
    pub inputs: Vec<TermId>,
    /// A thread that begins with this step.
    pub starts: Option<usize>,
    /// A thread that must have ended before.
    pub awaits: Option<usize>,
    /// Where in the source.
    pub place: Place,
    /// What the statement says.
    pub text: Box<str>,
    /// What the compiled program does (of a small edge).
    pub visible: Visible,
    /// The small edges it was joined from; itself when small.
    pub parts: Vec<EdgeId>,
}

/// The automaton of a thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its name.
    pub name: Box<str>,
    /// Whether it runs from the beginning.
    pub initial: bool,
    /// Number of locations.
    pub locations: usize,
    /// Where it stands before it is started.
    pub idle: Location,
    /// Its first location.
    pub entry: Location,
    /// Where it has ended.
    pub exit: Location,
    /// Where a property has been violated.
    pub error: Location,
    /// Where the whole program has ended, if it can end here.
    pub dead: Option<Location>,
    /// For each location: inside an atomic section.
    pub atomic: Vec<bool>,
    /// For each location: a loop may come back here.
    pub loop_head: Vec<bool>,
    /// For each location: some edge is possible in every state.
    pub total: Vec<bool>,
    /// For each location: the edges that leave it.
    pub outgoing: Vec<Vec<EdgeId>>,
}

/// A concurrent program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Owns every term.
    pub terms: TermStore,
    /// The file it was read from, for messages.
    pub file: Box<str>,
    /// All variables; a term calls them by their place here.
    pub variables: Vec<Variable>,
    /// What holds of the first values beside [`Variable::initial`].
    pub initially: TermId,
    /// All threads.
    pub threads: Vec<Thread>,
    /// All edges.
    pub edges: Vec<Edge>,
}

impl Program {
    /// The variables of a term.
    pub fn variables_of(&self, term: TermId) -> VariableSet {
        variables_of(&self.terms, term)
    }

    /// Variables that the edge reads, its guard included.
    pub fn reads(&self, edge: EdgeId) -> VariableSet {
        let edge = &self.edges[edge];
        let values = edge.assignments.iter().map(|&(_, value)| self.variables_of(value));
        values.fold(self.variables_of(edge.guard), |all, some| all | some)
    }

    /// Variables that the edge assigns.
    pub fn writes(&self, edge: EdgeId) -> VariableSet {
        self.edges[edge].assignments.iter().fold(0, |all, (variable, _)| all | bit(*variable))
    }

    /// Variables that more than one thread may touch.
    pub fn shared(&self) -> VariableSet {
        let shared = self.variables.iter().enumerate().filter(|(_, v)| v.local_of.is_none());
        shared.fold(0, |all, (index, _)| all | 1 << index)
    }

    /// The control state in which a run begins.
    pub fn first_control(&self) -> Vec<Location> {
        self.threads
            .iter()
            .map(|thread| if thread.initial { thread.entry } else { thread.idle })
            .collect()
    }

    /// The edges that control allows: whose thread stands there, is not shut out by another's
    /// atomic section, and does not wait for a thread that runs.
    pub fn possible(&self, control: &[Location]) -> Vec<EdgeId> {
        let alone = (0..control.len()).find(|&t| self.threads[t].atomic[control[t]]);
        let mut edges = Vec::new();
        for (thread, &location) in control.iter().enumerate() {
            if alone.is_some_and(|alone| alone != thread) {
                continue;
            }
            let leaving = self.threads[thread].outgoing[location].iter().copied();
            edges.extend(leaving.filter(|&edge| {
                self.edges[edge]
                    .awaits
                    .is_none_or(|other| control[other] == self.threads[other].exit)
            }));
        }
        edges
    }

    /// The control state after the edge.
    pub fn after(&self, control: &[Location], edge: EdgeId) -> Vec<Location> {
        let edge = &self.edges[edge];
        let mut control = control.to_vec();
        control[edge.thread] = edge.to;
        if let Some(started) = edge.starts {
            control[started] = self.threads[started].entry;
        }
        control
    }

    /// Does the edge violate a property?
    pub fn is_error(&self, edge: EdgeId) -> bool {
        self.edges[edge].to == self.threads[self.edges[edge].thread].error
    }

    /// The weakest formula whose truth before the edge makes `formula` true after it, for given
    /// inputs and where the guard holds.
    pub fn before_edge(&mut self, edge: EdgeId, formula: TermId) -> TermId {
        let assigned: HashMap<VariableId, TermId> =
            self.edges[edge].assignments.iter().copied().collect();
        replace_variables(&mut self.terms, formula, &assigned)
    }

    /// `file:line: text` of an edge.
    pub fn describe(&self, edge: EdgeId) -> String {
        let edge = &self.edges[edge];
        let name = &self.threads[edge.thread].name;
        format!("{name} at {}:{}: {}", self.file, edge.place.line, edge.text)
    }

    /// A formula with the names of the source.
    pub fn show(&self, term: TermId) -> String {
        foretell_trace::sexpr::print_term(
            &self.terms,
            term,
            &mut |leaf| match self.terms.term(leaf) {
                Term::Variable(variable) => {
                    Some(quoted_name(&self.variables[variable.index()].name))
                }
                Term::Symbol(symbol) => Some(self.terms.symbol(*symbol).name.to_string()),
                _ => None,
            },
        )
    }
}

/// A set of one variable.
pub fn bit(variable: VariableId) -> VariableSet {
    1 << variable.index()
}

/// The variables of a term.
pub fn variables_of(terms: &TermStore, term: TermId) -> VariableSet {
    terms.leaves(term).into_iter().fold(0, |all, leaf| match terms.term(leaf) {
        Term::Variable(variable) => all | bit(*variable),
        _ => all,
    })
}

/// The term with variables replaced by terms.
pub fn replace_variables(
    terms: &mut TermStore,
    term: TermId,
    values: &HashMap<VariableId, TermId>,
) -> TermId {
    terms.substitute(term, &mut HashMap::new(), &mut |_, leaf| match leaf {
        Term::Variable(variable) => values.get(variable).copied(),
        _ => None,
    })
}

/// A name as SMT-LIB writes it.
pub fn quoted_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => name.to_string(),
        false => format!("|{name}|"),
    }
}
