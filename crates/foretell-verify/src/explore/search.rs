//! Breadth-first search over all states.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::inputs::Taken;
use super::machine::{Access, Kind, Machine, Stop};
use super::memory::Object;
use super::progress::{Edge, endless};
use super::shown::{Summary, counterexample};
use super::state::{State, Status, Thread};
use crate::certificate::Assumption;
use crate::counterexample::Counterexample;
use crate::ir::{Module, Op, Place};

/// What is looked for, and how much work it may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Failed assertions, `reach_error`, undefined behaviour that a run can show.
    pub assertions: bool,
    /// States in which nobody can go on.
    pub deadlocks: bool,
    /// States to look at.
    pub states: usize,
    /// Bytes that they may need, about.
    pub bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { assertions: true, deadlocks: false, states: 2_000_000, bytes: 2 << 30 }
    }
}

/// What is known about a program.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// No execution violates a property.
    Proved(Box<Summary>),
    /// This one does.
    Violated(Box<Counterexample>),
    /// Not decided, and why.
    Unknown(String),
}

/// A verdict, what it cost and what it rests on.
#[derive(Clone, Debug)]
pub struct Report {
    /// The verdict.
    pub verdict: Verdict,
    /// States looked at.
    pub states: usize,
    /// Steps from one to another.
    pub steps: usize,
    /// What a proof assumes, beside what C, POSIX and clang say.
    pub assumptions: BTreeSet<Assumption>,
}

/// Numbers for parts of states: equal parts have equal numbers, and are kept once.
#[derive(Default)]
struct Parts {
    objects: HashMap<Arc<Object>, u32>,
    threads: HashMap<Arc<Thread>, u32>,
    bytes: usize,
}

impl Parts {
    fn object(&mut self, object: &mut Arc<Object>) -> u32 {
        if let Some((kept, &number)) = self.objects.get_key_value(object) {
            *object = kept.clone();
            return number;
        }
        let number = self.objects.len() as u32 + 1;
        self.bytes += 200 + 2 * object.size();
        self.objects.insert(object.clone(), number);
        number
    }

    fn thread(&mut self, thread: &mut Arc<Thread>) -> u32 {
        if let Some((kept, &number)) = self.threads.get_key_value(thread) {
            *thread = kept.clone();
            return number;
        }
        let number = self.threads.len() as u32 + 1;
        for frame in &thread.frames {
            let locals: usize = frame.locals.iter().map(|local| 200 + 2 * local.size()).sum();
            self.bytes += 100 + 48 * frame.registers.len() + locals;
        }
        self.threads.insert(thread.clone(), number);
        number
    }

    /// The number of a state as a list; `parent` had these numbers.
    fn key(&mut self, state: &mut State, parent: Option<(&State, &[u32])>) -> Box<[u32]> {
        let mut key = Vec::with_capacity(state.globals.len() + state.threads.len() + 4);
        for (place, object) in state.globals.iter_mut().enumerate() {
            key.push(match parent {
                Some((parent, numbers)) if Arc::ptr_eq(object, &parent.globals[place]) => {
                    numbers[place]
                }
                _ => self.object(object),
            });
        }
        key.push(state.threads.len() as u32);
        for thread in &mut state.threads {
            key.push(thread.as_mut().map_or(0, |thread| self.thread(thread)));
        }
        for object in &mut state.heap {
            key.push(object.as_mut().map_or(0, |object| self.object(object)));
        }
        if let Some((thread, depth)) = state.alone {
            key.extend([u32::MAX, thread.into(), depth]);
        }
        if state.keys > 0 {
            let deleted = state.deleted_keys;
            key.extend([u32::MAX - 2, state.keys.into(), deleted as u32, (deleted >> 32) as u32]);
        }
        if !state.path.is_empty() {
            key.push(u32::MAX - 1);
            key.extend(state.path.iter().map(|fact| fact.0));
        }
        key.into()
    }
}

/// Looks at all states of a program.
pub fn explore(module: &Module, options: &Options) -> Report {
    let machine = Machine::new(module, options.deadlocks);
    let mut search = Search {
        machine: &machine,
        options,
        parts: Parts::default(),
        states: Vec::new(),
        keys: Vec::new(),
        seen: HashMap::new(),
        parents: Vec::new(),
        steps: 0,
        refusal: None,
        races: BTreeSet::new(),
        racing: BTreeSet::new(),
        edges: Vec::new(),
        ends: BTreeSet::new(),
    };
    let verdict = search.run();
    let mut assumptions = machine.assumed.take();
    assumptions.extend(
        search
            .races
            .iter()
            .map(|&(a, b)| Assumption::race(module.show_short(a), module.show_short(b))),
    );
    Report { verdict, states: search.states.len(), steps: search.steps, assumptions }
}

struct Search<'a, 'm> {
    machine: &'a Machine<'m>,
    options: &'a Options,
    parts: Parts,
    states: Vec<State>,
    keys: Vec<Arc<[u32]>>,
    seen: HashMap<Arc<[u32]>, u32>,
    /// For each state but the first: where it was come from, and by which step.
    parents: Vec<Option<(u32, Taken)>>,
    steps: usize,
    refusal: Option<String>,
    /// Places without columns.
    races: BTreeSet<(Place, Place)>,
    /// Places of accesses that race.
    racing: BTreeSet<Place>,
    /// All steps, to see which loops end.
    edges: Vec<Edge>,
    /// States in which the program can end.
    ends: BTreeSet<u32>,
}

impl Search<'_, '_> {
    fn run(&mut self) -> Verdict {
        match self.machine.first() {
            Ok(state) => {
                self.add(state, None);
            }
            Err(Stop::Violated(kind, place)) if self.options.assertions => {
                return Verdict::Violated(Box::new(counterexample(self.machine, &[], kind, place)));
            }
            Err(Stop::Refused(place, what)) => {
                return Verdict::Unknown(self.refusal_text(place, &what));
            }
            Err(_) => {}
        }
        let mut next = 0;
        while next < self.states.len() {
            if self.states.len() > self.options.states {
                let states = self.options.states;
                return Verdict::Unknown(format!("the budget is spent: {states} states"));
            }
            if self.parts.bytes + 300 * self.states.len() > self.options.bytes {
                let states = self.states.len();
                return Verdict::Unknown(format!(
                    "the memory is spent: {states} states were looked at"
                ));
            }
            if next.is_multiple_of(64)
                && let Some(why) = foretell_guard::stop::why()
            {
                let states = self.states.len();
                return Verdict::Unknown(format!("{why} after {states} states"));
            }
            if let Some(verdict) = self.expand(next) {
                return verdict;
            }
            next += 1;
        }
        if let Some(refusal) = self.refusal.take() {
            return Verdict::Unknown(refusal);
        }
        if let Some(place) = self.machine.weaker.get() {
            let shown = self.machine.module.show(place);
            return Verdict::Unknown(format!(
                "{shown}: an atomic operation weaker than memory_order_seq_cst; only sequentially \
                 consistent executions were looked at, and none of them violates a property"
            ));
        }
        if let Some(place) = self.machine.ended.get() {
            let shown = self.machine.module.show(place);
            return Verdict::Unknown(format!(
                "refused: {shown}: undefined: a comparison of a pointer to an object whose lifetime has ended (C17 6.2.4, 2)"
            ));
        }
        if let Some(place) = self.machine.open_order.get() {
            let shown = self.machine.module.show(place);
            return Verdict::Unknown(format!(
                "{shown}: C leaves open which operand is evaluated first, and the program can see it; \
                 only clang's order was looked at, and no execution violates a property"
            ));
        }
        self.note_races_of_edges();
        if let Some(place) = endless(self.machine.module, &self.states, &self.edges, &self.ends) {
            let shown = self.machine.module.show(place);
            return Verdict::Unknown(format!(
                "refused: {shown}: undefined: a loop that does not end, and that C lets compilers \
                 assume to end (C17 6.8.5, 6); no execution that loops violates a property"
            ));
        }
        Verdict::Proved(Box::new(Summary::of(self.machine, &self.states)))
    }

    /// A step that begins with an access that races is not quiet.
    fn note_races_of_edges(&mut self) {
        for edge in self.edges.iter_mut().filter(|edge| edge.quiet && !self.racing.is_empty()) {
            let state = &self.states[edge.from as usize];
            let next = self.machine.next(state, usize::from(edge.thread));
            edge.quiet = !next.is_some_and(|next| self.racing.contains(&next.place));
        }
    }

    fn refusal_text(&self, place: Place, what: &str) -> String {
        format!("refused: {}: {what}", self.machine.module.show(place))
    }

    fn refuse(&mut self, place: Place, what: &str) {
        if self.refusal.is_none() {
            self.refusal = Some(self.refusal_text(place, what));
        }
    }

    /// The number of the state, which may be known.
    fn add(&mut self, state: State, parent: Option<(u32, Taken)>) -> u32 {
        let mut state = state.canonical();
        self.machine.forget_inputs(&mut state);
        let known = parent
            .as_ref()
            .map(|&(at, _)| (self.states[at as usize].clone(), self.keys[at as usize].clone()));
        let known = known.as_ref().map(|(state, key)| (state, &**key));
        let key: Arc<[u32]> = self.parts.key(&mut state, known).into();
        if let Some(&number) = self.seen.get(&key) {
            return number;
        }
        let number = self.states.len() as u32;
        self.seen.insert(key.clone(), number);
        self.keys.push(key);
        self.states.push(state);
        self.parents.push(parent);
        number
    }

    /// The steps that lead to a state.
    fn path(&self, mut at: u32) -> Vec<Taken> {
        let mut path = Vec::new();
        while let Some((parent, taken)) = &self.parents[at as usize] {
            path.push(taken.clone());
            at = *parent;
        }
        path.reverse();
        path
    }

    /// The counterexample, with values for the inputs that it takes.
    fn violated(&self, path: &[Taken], kind: Kind, place: Place) -> Verdict {
        if let Err(why) = self.machine.fix_inputs(path) {
            let shown = self.machine.module.show(place);
            return Verdict::Unknown(format!(
                "{shown}: {}, for inputs that are not known: {why}",
                kind.show()
            ));
        }
        Verdict::Violated(Box::new(counterexample(self.machine, path, kind, place)))
    }

    fn expand(&mut self, at: usize) -> Option<Verdict> {
        let state = self.states[at].clone();
        let running: Vec<usize> = state.running().collect();
        if running.is_empty() {
            return None;
        }
        self.find_races(&state, &running);
        if let Some((alone, _)) = state.alone
            && self.machine.choices(&state, usize::from(alone)) == 0
        {
            let place = self.machine.next(&state, usize::from(alone)).map(|i| i.place);
            self.refuse(place.unwrap_or_default(), "a thread waits inside an atomic section");
            return None;
        }
        if self.options.deadlocks {
            let stuck = match running.iter().any(|&t| self.machine.can_go_on(&state, t)) {
                false => Some((running[0], Kind::Deadlock)),
                true => self.machine.never_goes_on(&state).map(|thread| (thread, Kind::Circle)),
            };
            if let Some((thread, kind)) = stuck {
                let place = self.machine.next(&state, thread).map(|i| i.place).unwrap_or_default();
                let path = self.path(at as u32);
                return Some(self.violated(&path, kind, place));
            }
        }
        for thread in running {
            for choice in 0..self.machine.choices(&state, thread) {
                for (taken, quiet, outcome) in self.machine.outcomes(&state, thread, choice) {
                    self.steps += 1;
                    match outcome {
                        Ok(next) => {
                            let from = at as u32;
                            let to = self.add(next, Some((from, taken)));
                            self.edges.push(Edge { from, to, thread: thread as u8, quiet });
                        }
                        Err(Stop::Violated(kind, place)) if self.options.assertions => {
                            let mut path = self.path(at as u32);
                            path.push(taken);
                            return Some(self.violated(&path, kind, place));
                        }
                        Err(Stop::Refused(place, what)) => self.refuse(place, &what),
                        Err(Stop::Over) => {
                            self.ends.insert(at as u32);
                        }
                        Err(Stop::Violated(..) | Stop::Pruned) => {}
                    }
                }
            }
        }
        None
    }

    /// Two threads are about to access the same memory, one of them writes, and one of them is not
    /// atomic: a data race. Without one, C promises sequential consistency.
    fn find_races(&mut self, state: &State, running: &[usize]) {
        if running.len() < 2 || state.alone.is_some() {
            return;
        }
        let mut accesses: Vec<(usize, Access, bool)> = Vec::new();
        for &thread in running {
            let runs = state.threads[thread].as_ref().is_some_and(|t| t.status == Status::Runs);
            if let Some(instruction) = self.machine.next(state, thread).filter(|_| runs) {
                let whole = !matches!(instruction.op, Op::Call { .. });
                for access in self.machine.accesses(state, thread, instruction) {
                    accesses.push((thread, access, whole));
                }
            }
        }
        for (index, (one, a, a_whole)) in accesses.iter().enumerate() {
            for (other, b, b_whole) in &accesses[..index] {
                let overlap = a.at.base == b.at.base
                    && a.at.offset < b.at.offset + b.length as i64
                    && b.at.offset < a.at.offset + a.length as i64;
                let races =
                    one != other && overlap && (a.write || b.write) && !(a.atomic && b.atomic);
                if !races {
                    continue;
                }
                let line = |place: Place| Place { column: 0, ..place };
                self.races.insert((line(b.place), line(a.place)));
                self.racing.extend([a.place, b.place]);
                // what the machine does in one piece is one step; what it may do in two is not
                let pieces = |access: &Access, whole: bool| {
                    !whole
                        || access.length > 8
                        || access.length > 0 && access.at.offset % access.length as i64 != 0
                };
                if pieces(a, *a_whole) || pieces(b, *b_whole) {
                    let place = if pieces(a, *a_whole) { a.place } else { b.place };
                    self.refuse(place, "a data race on an access that the machine may tear");
                }
            }
        }
    }
}
