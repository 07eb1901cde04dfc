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

use std::collections::HashMap;

use foretell_trace::{Operator, Sort, Term, TermId, TermStore, VariableId};

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

    /// The same program with every edge joined with what follows it unseen: steps that touch no
    /// shared variable and can always go on, and the rest of an atomic section.
    ///
    /// Nothing else can be told apart. An unseen step commutes with all steps of others, and as some
    /// step is always possible behind it, whoever sees the first part of a joined edge sees all of
    /// it at once. Inside an atomic section nobody else moves: a section that cannot be left ends
    /// the run, and then violates nothing. Loop heads stay, so no thread can hide the others by
    /// turning round for ever.
    pub fn in_large_blocks(&self) -> Program {
        let mut program = self.clone();
        let shared = self.shared();
        let silent = |program: &Program, edge: EdgeId| {
            let joined = &program.edges[edge];
            // the end of the program is seen by all
            let ends = program.threads[joined.thread].dead == Some(joined.to);
            (program.reads(edge) | program.writes(edge)) & shared == 0
                && !ends
                && joined.starts.is_none()
                && joined.awaits.is_none()
        };
        for index in 0..program.threads.len() {
            let thread = self.threads[index].clone();
            for location in forward_order(self, &thread) {
                let kept = [thread.entry, thread.exit, thread.error, thread.idle];
                let ended = thread.dead == Some(location);
                if kept.contains(&location) || ended || thread.loop_head[location] {
                    continue;
                }
                let outgoing = program.threads[index].outgoing[location].clone();
                let total = program.threads[index].total[location];
                let unseen = total && outgoing.iter().all(|&edge| silent(&program, edge));
                let controls = outgoing.iter().any(|&edge| {
                    program.edges[edge].starts.is_some() || program.edges[edge].awaits.is_some()
                });
                if controls || !(unseen || thread.atomic[location]) {
                    continue;
                }
                let incoming: Vec<EdgeId> = program.threads[index]
                    .outgoing
                    .iter()
                    .flatten()
                    .copied()
                    .filter(|&edge| program.edges[edge].to == location)
                    .collect();
                if incoming.len() * outgoing.len() > 16.max(incoming.len() + outgoing.len()) {
                    continue;
                }
                for &first in &incoming {
                    let from = program.edges[first].from;
                    program.threads[index].total[from] &= total;
                    for &second in &outgoing {
                        if let Some(edge) = program.join(first, second) {
                            program.edges.push(edge);
                            let id = program.edges.len() - 1;
                            program.threads[index].outgoing[from].push(id);
                        }
                    }
                }
                let leaving = &mut program.threads[index].outgoing;
                leaving[location].clear();
                for edges in leaving.iter_mut() {
                    edges.retain(|edge| !incoming.contains(edge));
                }
            }
        }
        program.without_ends();
        program.without_dead_values();
        program.without_unused_edges()
    }

    /// Drops the edges that end the whole program: behind them nothing is violated. A location that
    /// loses one can no longer always go on.
    fn without_ends(&mut self) {
        for thread in &mut self.threads {
            let Some(dead) = thread.dead else { continue };
            for (location, edges) in thread.outgoing.iter_mut().enumerate() {
                let before = edges.len();
                edges.retain(|&edge| self.edges[edge].to != dead);
                thread.total[location] &= edges.len() == before;
            }
        }
    }

    /// Drops assignments to locals that nobody reads any more, unless they name an input.
    fn without_dead_values(&mut self) {
        let shared = self.shared();
        for index in 0..self.threads.len() {
            let thread = self.threads[index].clone();
            let mut live: Vec<VariableSet> = vec![0; thread.locations];
            let mut changed = true;
            while changed {
                changed = false;
                for location in 0..thread.locations {
                    for &edge in &thread.outgoing[location] {
                        let behind = live[self.edges[edge].to];
                        let kept = self.edges[edge].assignments.iter();
                        let kept = kept.filter(|(v, value)| {
                            (behind | shared) & bit(*v) != 0 || self.names_input(edge, *value)
                        });
                        let used = kept
                            .fold(self.variables_of(self.edges[edge].guard), |all, &(_, value)| {
                                all | self.variables_of(value)
                            });
                        let before = live[location] | used | behind & !self.writes(edge);
                        changed |= before != live[location];
                        live[location] = before;
                    }
                }
            }
            for &edge in thread.outgoing.iter().flatten() {
                let behind = live[self.edges[edge].to] | shared;
                let mut assignments = std::mem::take(&mut self.edges[edge].assignments);
                assignments
                    .retain(|&(v, value)| behind & bit(v) != 0 || self.names_input(edge, value));
                self.edges[edge].assignments = assignments;
                let edge = &mut self.edges[edge];
                let used: Vec<TermId> =
                    edge.assignments.iter().map(|&(_, v)| v).chain([edge.guard]).collect();
                let leaves: Vec<TermId> =
                    used.into_iter().flat_map(|term| self.terms.leaves(term)).collect();
                edge.inputs.retain(|input| leaves.contains(input));
            }
        }
    }

    /// Is the value an input that the edge's guard is about? Then its variable is the only name by
    /// which a predicate can say what the guard demands.
    fn names_input(&self, edge: EdgeId, value: TermId) -> bool {
        let is_input = |leaf: &TermId| matches!(self.terms.term(*leaf), Term::Symbol(_));
        let constrained = self.terms.leaves(self.edges[edge].guard);
        self.terms.leaves(value).iter().any(|leaf| is_input(leaf) && constrained.contains(leaf))
    }

    fn without_unused_edges(mut self) -> Program {
        let mut edges = Vec::new();
        for thread in &mut self.threads {
            for edge in thread.outgoing.iter_mut().flatten() {
                edges.push(self.edges[*edge].clone());
                *edge = edges.len() - 1;
            }
        }
        self.edges = edges;
        self
    }

    /// First one edge, then the other; `None` if that is never possible.
    fn join(&mut self, first: EdgeId, second: EdgeId) -> Option<Edge> {
        let (first, second) = (self.edges[first].clone(), self.edges[second].clone());
        let known: HashMap<VariableId, TermId> = first.assignments.iter().copied().collect();
        let guard = replace_variables(&mut self.terms, second.guard, &known);
        let guard = self.terms.and(&[first.guard, guard]);
        if self.terms.is_false(guard) {
            return None;
        }
        let mut assignments = first.assignments.clone();
        for &(variable, value) in &second.assignments {
            let value = replace_variables(&mut self.terms, value, &known);
            assignments.retain(|(other, _)| *other != variable);
            assignments.push((variable, value));
        }
        Some(Edge {
            thread: first.thread,
            from: first.from,
            to: second.to,
            guard,
            assignments,
            inputs: [first.inputs, second.inputs].concat(),
            starts: first.starts.or(second.starts),
            awaits: first.awaits.or(second.awaits),
            place: first.place,
            text: match (&*first.text, &*second.text) {
                (text, "") => text.into(),
                ("", text) => text.into(),
                (one, two) => format!("{one}; {two}").into(),
            },
            visible: Visible::No,
            parts: [first.parts, second.parts].concat(),
        })
    }
}

/// The locations of a thread, each after one that leads to it where possible.
fn forward_order(program: &Program, thread: &Thread) -> Vec<Location> {
    let mut seen = vec![false; thread.locations];
    let mut order = Vec::new();
    let mut queue = std::collections::VecDeque::from([thread.entry]);
    seen[thread.entry] = true;
    while let Some(location) = queue.pop_front() {
        order.push(location);
        for &edge in &thread.outgoing[location] {
            let to = program.edges[edge].to;
            if !std::mem::replace(&mut seen[to], true) {
                queue.push_back(to);
            }
        }
    }
    order
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

/// Builds a program edge by edge.
pub struct Builder {
    /// What has been built.
    pub program: Program,
    atomic: usize,
}

impl Builder {
    /// A program without threads.
    pub fn new(file: &str) -> Self {
        let mut terms = TermStore::default();
        let initially = terms.bool(true);
        Self {
            program: Program {
                terms,
                file: file.into(),
                variables: Vec::new(),
                initially,
                threads: Vec::new(),
                edges: Vec::new(),
            },
            atomic: 0,
        }
    }

    /// The terms of the program.
    pub fn terms(&mut self) -> &mut TermStore {
        &mut self.program.terms
    }

    /// A new variable, as a term; `None` when there are too many.
    pub fn variable(
        &mut self,
        name: impl Into<Box<str>>,
        local_of: Option<usize>,
        initial: Option<i128>,
    ) -> Option<TermId> {
        let id = self.program.variables.len();
        if id == VARIABLES {
            return None;
        }
        // functions are inlined, and blocks may reuse a name: a proof calls variables by theirs
        let said: Box<str> = name.into();
        let mut name = said.clone();
        let taken = |name: &str| self.program.variables.iter().any(|v| &*v.name == name);
        for again in 2.. {
            if !taken(&name) {
                break;
            }
            name = format!("{said}#{again}").into();
        }
        self.program.variables.push(Variable { name, local_of, initial });
        Some(self.program.terms.variable(VariableId::from(id), Sort::INT))
    }

    /// A value that the environment chooses.
    pub fn input(&mut self) -> TermId {
        let name = format!("input{}", self.program.terms.symbol_count());
        self.program.terms.fresh_symbol(name, Sort::INT)
    }

    /// A new thread.
    pub fn thread(&mut self, name: impl Into<Box<str>>, initial: bool) -> usize {
        self.program.threads.push(Thread {
            name: name.into(),
            initial,
            locations: 4,
            idle: 0,
            entry: 1,
            exit: 2,
            error: 3,
            dead: None,
            atomic: vec![false; 4],
            loop_head: vec![false; 4],
            total: Vec::new(),
            outgoing: Vec::new(),
        });
        self.program.threads.len() - 1
    }

    /// A new location.
    pub fn location(&mut self, thread: usize) -> Location {
        let inside = self.atomic > 0;
        let thread = &mut self.program.threads[thread];
        thread.locations += 1;
        thread.atomic.push(inside);
        thread.loop_head.push(false);
        thread.locations - 1
    }

    /// The location of a thread in which the whole program has ended: nobody moves any more.
    pub fn dead(&mut self, thread: usize) -> Location {
        if let Some(dead) = self.program.threads[thread].dead {
            return dead;
        }
        let dead = self.location(thread);
        let thread = &mut self.program.threads[thread];
        thread.atomic[dead] = true;
        thread.dead = Some(dead);
        dead
    }

    /// Locations made from now on are inside an atomic section, until [`Builder::end_atomic`].
    pub fn begin_atomic(&mut self) {
        self.atomic += 1;
    }

    /// Ends the innermost atomic section; returns whether there was one.
    pub fn end_atomic(&mut self) -> bool {
        let inside = self.atomic > 0;
        self.atomic = self.atomic.saturating_sub(1);
        inside
    }

    /// How deep in atomic sections we are.
    pub fn atomic_depth(&self) -> usize {
        self.atomic
    }

    /// A loop comes back to the location.
    pub fn loop_head(&mut self, thread: usize, location: Location) {
        self.program.threads[thread].loop_head[location] = true;
    }

    /// A new edge without guard, assignments and control; the caller fills it in.
    pub fn edge(&mut self, thread: usize, from: Location, to: Location, place: Place) -> &mut Edge {
        let guard = self.program.terms.bool(true);
        let id = self.program.edges.len();
        self.program.edges.push(Edge {
            thread,
            from,
            to,
            guard,
            assignments: Vec::new(),
            inputs: Vec::new(),
            starts: None,
            awaits: None,
            place,
            text: "".into(),
            visible: Visible::No,
            parts: vec![id],
        });
        &mut self.program.edges[id]
    }

    /// The program of small edges.
    pub fn finish(mut self) -> Program {
        let program = &mut self.program;
        for thread in &mut program.threads {
            thread.outgoing = vec![Vec::new(); thread.locations];
        }
        for (id, edge) in program.edges.iter_mut().enumerate() {
            // inputs are the symbols that occur
            let terms = &program.terms;
            let used = edge.assignments.iter().map(|&(_, value)| value).chain([edge.guard]);
            let mut inputs: Vec<TermId> = used
                .flat_map(|term| terms.leaves(term))
                .filter(|&leaf| matches!(terms.term(leaf), Term::Symbol(_)))
                .collect();
            inputs.sort_unstable();
            inputs.dedup();
            edge.inputs = inputs;
            if !terms.is_false(edge.guard) {
                program.threads[edge.thread].outgoing[edge.from].push(id);
            }
        }
        for thread in &mut program.threads {
            thread.total = (0..thread.locations)
                .map(|location| {
                    let leaving = &thread.outgoing[location];
                    let waits = leaving.iter().any(|&edge| program.edges[edge].awaits.is_some());
                    let guards: Vec<TermId> =
                        leaving.iter().map(|&edge| program.edges[edge].guard).collect();
                    let some = program.terms.or(&guards);
                    !waits && program.terms.is_true(some)
                })
                .collect();
        }
        self.program
    }
}

/// `a < b`, written so that a formula and its negation are one term and its `not`.
pub fn less(terms: &mut TermStore, a: TermId, b: TermId) -> TermId {
    let not_less = terms.build(Operator::Le, &[b, a]);
    terms.not(not_less)
}
