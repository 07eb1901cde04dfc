//! What makes an interleaving bad: assertions that fail, atomic regions that are broken.
//!
//! A region (from [`Op::RegionBegin`] to its end) is broken when another thread's access comes
//! between two consecutive accesses of one variable in it such that no order without the
//! interruption gives the same result: read-write-read, write-write-read, read-write-write,
//! write-read-write (000 section 3). Each such pair gets a flag: the first access clears it, the
//! interrupting one sets it, and before the second it is asserted to be clear. So one machinery
//! serves both properties.

use std::collections::HashMap;

use foretell_model::ctp::{Action, ConcurrentTraceProgram, CtpEvent, CtpVariable, Mode, Role};
use foretell_model::slice::{Criterion, slice};
use foretell_trace::{
    EventId, Op, Operator, Scope, Sort, Term, ThreadId, Trace, Value, VariableId,
};

/// What counts as bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// An assertion that does not hold.
    pub assertions: bool,
    /// An atomic region that is broken.
    pub regions: bool,
}

impl Default for Properties {
    fn default() -> Self {
        Self { assertions: true, regions: true }
    }
}

/// How the names of flags begin.
const FLAG: &str = "interrupted#";

/// A program whose assertions are the wanted properties.
pub(crate) struct Instrumented {
    pub(crate) ctp: ConcurrentTraceProgram,
    /// By event: the event of the program it was made from that a person knows.
    pub(crate) shown: Vec<EventId>,
}

/// Two accesses of one thread that belong together, and what must not come between them.
pub(crate) struct Watched {
    pub(crate) first: EventId,
    pub(crate) second: EventId,
    pub(crate) intruders: Vec<EventId>,
}

/// Puts the properties into the program.
pub(crate) fn instrument(
    trace: &Trace,
    mut ctp: ConcurrentTraceProgram,
    properties: Properties,
) -> Instrumented {
    if !properties.assertions {
        without_assertions(&mut ctp, |_| false);
    }
    let watched = if properties.regions { watched_pairs(trace, &ctp) } else { Vec::new() };
    let mut editor = Editor::new(ctp);
    for pair in &watched {
        editor.watch(pair);
    }
    editor.finish()
}

/// Assertions that are not kept always hold.
pub(crate) fn without_assertions(ctp: &mut ConcurrentTraceProgram, keep: impl Fn(EventId) -> bool) {
    let always = ctp.terms.bool(true);
    for event in &mut ctp.events {
        if let Action::Assert { .. } = event.action
            && !keep(event.origin)
        {
            event.action = Action::Guarded { guard: always, assignments: Vec::new() };
        }
    }
}

/// Puts steps before and after the events of a program.
pub(crate) struct Editor {
    pub(crate) ctp: ConcurrentTraceProgram,
    before: Vec<Vec<Action>>,
    after: Vec<Vec<Action>>,
    /// Others may run between the event and what was put around it.
    open: Vec<bool>,
    flags: usize,
}

impl Editor {
    pub(crate) fn new(ctp: ConcurrentTraceProgram) -> Self {
        let none = vec![Vec::new(); ctp.events.len()];
        let open = vec![false; ctp.events.len()];
        Self { ctp, before: none.clone(), after: none, open, flags: 0 }
    }

    /// A new flag, clear at the start.
    fn flag(&mut self) -> (VariableId, foretell_trace::TermId) {
        self.ctp.variables.push(CtpVariable {
            name: format!("{FLAG}{}", self.flags).into(),
            sort: Sort::BOOL,
            scope: Scope::Shared,
            initial: Some(Value::Bool(false)),
            role: Role::Data,
        });
        self.flags += 1;
        let flag = VariableId::from(self.ctp.variables.len() - 1);
        (flag, self.ctp.terms.variable(flag, Sort::BOOL))
    }

    fn assign(&mut self, flag: VariableId, value: bool) -> Action {
        let always = self.ctp.terms.bool(true);
        let value = self.ctp.terms.bool(value);
        Action::Guarded { guard: always, assignments: vec![(flag, value)] }
    }

    /// It is bad when an intruder comes between the two.
    pub(crate) fn watch(&mut self, pair: &Watched) {
        let (flag, broken) = self.flag();
        let clear = self.assign(flag, false);
        let set = self.assign(flag, true);
        self.after[pair.first.index()].push(clear);
        let unbroken = self.ctp.terms.not(broken);
        self.before[pair.second.index()].push(Action::Assert { condition: unbroken });
        for intruder in &pair.intruders {
            self.before[intruder.index()].push(set.clone());
        }
    }

    /// It is bad when the event comes before all of the others.
    pub(crate) fn must_follow_one(&mut self, event: EventId, others: &[EventId]) {
        let (flag, condition) = self.flag();
        let set = self.assign(flag, true);
        for other in others {
            self.after[other.index()].push(set.clone());
        }
        self.before[event.index()].push(Action::Assert { condition });
    }

    /// It is bad when the event comes after the other.
    pub(crate) fn must_not_follow(&mut self, event: EventId, other: EventId) {
        let (flag, term) = self.flag();
        let set = self.assign(flag, true);
        self.after[other.index()].push(set);
        let condition = self.ctp.terms.not(term);
        self.before[event.index()].push(Action::Assert { condition });
    }

    /// It is bad when both can be next.
    pub(crate) fn must_not_meet(&mut self, one: EventId, two: EventId) {
        let (flag, term) = self.flag();
        let (set, clear) = (self.assign(flag, true), self.assign(flag, false));
        self.before[one.index()].push(set);
        self.after[one.index()].push(clear);
        let condition = self.ctp.terms.not(term);
        self.before[two.index()].push(Action::Assert { condition });
        self.open[one.index()] = true;
        self.open[two.index()] = true;
    }

    /// It is bad when the condition does not hold as the event is reached.
    pub(crate) fn must_hold(&mut self, event: EventId, condition: foretell_trace::TermId) {
        self.before[event.index()].push(Action::Assert { condition });
    }

    /// The program with what was put in.
    pub(crate) fn finish(self) -> Instrumented {
        let Self { mut ctp, before, after, open, .. } = self;
        let mut events = Vec::new();
        let mut shown = Vec::new();
        let mut new_id = vec![EventId(0); ctp.events.len()];
        let mut sections = Vec::new();
        let mut threads = Vec::new();
        for (thread, old) in ctp.threads.iter().enumerate() {
            let mut own: Vec<EventId> = Vec::new();
            for &event in old {
                let this = &ctp.events[event.index()];
                let start = events.len();
                let actions = before[event.index()]
                    .iter()
                    .map(|action| (action, false))
                    .chain([(&this.action, true)])
                    .chain(after[event.index()].iter().map(|action| (action, false)));
                for (action, itself) in actions {
                    let id = EventId::from(events.len());
                    if itself {
                        new_id[event.index()] = id;
                    }
                    events.push(CtpEvent {
                        thread: ThreadId::from(thread),
                        position: own.len() as u32,
                        origin: this.origin,
                        action: action.clone(),
                    });
                    shown.push(event);
                    own.push(id);
                }
                if events.len() - start > 1 && !open[event.index()] {
                    sections.push((EventId::from(start), EventId::from(events.len() - 1)));
                }
            }
            threads.push(own);
        }
        for (a, b) in ctp.orders.iter_mut().chain(&mut ctp.atomic_sections) {
            (*a, *b) = (new_id[a.index()], new_id[b.index()]);
        }
        for section in &mut ctp.sections {
            section.acquire = section.acquire.map(|event| new_id[event.index()]);
            section.release = section.release.map(|event| new_id[event.index()]);
        }
        ctp.atomic_sections.extend(sections);
        ctp.events = events;
        ctp.threads = threads;
        // events of the new program know the event they came from by its new number
        let shown = shown.iter().map(|event| new_id[event.index()]).collect();
        Instrumented { ctp, shown }
    }
}

impl Instrumented {
    /// Only what the assertions can depend on (000 section 6), up to the last of each thread.
    pub(crate) fn sliced(&self) -> Self {
        let asserts = |event: &CtpEvent| matches!(event.action, Action::Assert { .. });
        let events = (0..self.ctp.events.len())
            .filter(|&event| asserts(&self.ctp.events[event]))
            .map(EventId::from)
            .collect();
        let criterion = Criterion { events, variables: Vec::new() };
        let slice = slice(&self.ctp, &criterion, Mode::Prefix);
        let mut number = vec![None; self.ctp.events.len()];
        for (new, old) in slice.kept.iter().enumerate() {
            number[old.index()] = Some(EventId::from(new));
        }
        // where the event itself went, the first that was put around it stands for it
        let mut stands: HashMap<EventId, EventId> = HashMap::new();
        let shown = slice
            .kept
            .iter()
            .enumerate()
            .map(|(new, old)| {
                let itself = self.shown[old.index()];
                number[itself.index()]
                    .unwrap_or_else(|| *stands.entry(itself).or_insert(EventId::from(new)))
            })
            .collect();
        Self { ctp: slice.ctp, shown }
    }
}

/// The variables that an event reads and writes, of those that stand for the program's memory.
pub(crate) fn accesses(
    ctp: &ConcurrentTraceProgram,
    event: EventId,
) -> (Vec<VariableId>, Vec<VariableId>) {
    let shared = |variable: &VariableId| {
        let variable = &ctp.variables[variable.index()];
        variable.scope == Scope::Shared && variable.role == Role::Data
    };
    let read = |term| {
        let leaves: Vec<VariableId> = ctp
            .terms
            .leaves(term)
            .into_iter()
            .filter_map(|leaf| match ctp.terms.term(leaf) {
                Term::Variable(variable) => Some(*variable),
                _ => None,
            })
            .collect();
        leaves
    };
    let (mut reads, writes) = match &ctp.event(event).action {
        Action::Assert { condition } => (read(*condition), Vec::new()),
        Action::Transition { predicate, changed } => (read(*predicate), changed.clone()),
        Action::Guarded { guard, assignments } => {
            let mut reads = read(*guard);
            reads.extend(assignments.iter().flat_map(|&(_, value)| read(value)));
            (reads, assignments.iter().map(|&(variable, _)| variable).collect())
        }
    };
    reads.retain(shared);
    (reads, writes.into_iter().filter(shared).collect())
}

fn watched_pairs(trace: &Trace, ctp: &ConcurrentTraceProgram) -> Vec<Watched> {
    let all: Vec<(Vec<VariableId>, Vec<VariableId>)> =
        (0..ctp.events.len()).map(|event| accesses(ctp, EventId::from(event))).collect();
    let mut watched = Vec::new();
    for (thread, events) in ctp.threads.iter().enumerate() {
        let mut depth = 0;
        let mut open: Vec<(VariableId, EventId)> = Vec::new();
        for &event in events {
            match &trace.event(ctp.event(event).origin).op {
                Op::RegionBegin(_) => depth += 1,
                Op::RegionEnd => {
                    depth -= if depth > 0 { 1 } else { 0 };
                    if depth == 0 {
                        open.clear();
                    }
                }
                _ if depth > 0 => {
                    let (reads, writes) = &all[event.index()];
                    for &variable in reads.iter().chain(writes) {
                        let earlier = open.iter().position(|&(open, _)| open == variable);
                        if let Some(at) = earlier {
                            let (_, first) = open.remove(at);
                            let intruders = intruders(ctp, &all, thread, first, event, variable);
                            if first != event && !intruders.is_empty() {
                                watched.push(Watched { first, second: event, intruders });
                            }
                        }
                        open.push((variable, event));
                    }
                }
                _ => {}
            }
        }
    }
    watched
}

/// Events of other threads that break the pair.
fn intruders(
    ctp: &ConcurrentTraceProgram,
    all: &[(Vec<VariableId>, Vec<VariableId>)],
    thread: usize,
    first: EventId,
    second: EventId,
    variable: VariableId,
) -> Vec<EventId> {
    let writes = |event: EventId| all[event.index()].1.contains(&variable);
    let reads = |event: EventId| all[event.index()].0.contains(&variable);
    (0..ctp.events.len())
        .map(EventId::from)
        .filter(|&event| ctp.event(event).thread.index() != thread)
        .filter(|&event| {
            // reads come before writes within one step
            let first_writes = writes(first);
            let second_reads = reads(second);
            match (first_writes, second_reads) {
                (true, true) => writes(event),                   // W W R
                (true, false) => reads(event) && writes(second), // W R W
                (false, true) => writes(event),                  // R W R
                (false, false) => writes(event),                 // R W W
            }
        })
        .collect()
}

/// The assertion that a flag of a broken region is, in words for the report.
pub(crate) fn is_region_flag(ctp: &ConcurrentTraceProgram, event: EventId) -> bool {
    match &ctp.event(event).action {
        Action::Assert { condition } => match ctp.terms.term(*condition) {
            Term::Apply(Operator::Not, parts) => match ctp.terms.term(parts[0]) {
                Term::Variable(variable) => ctp.variables[variable.index()].name.starts_with(FLAG),
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}
