//! What makes an interleaving bad: assertions that fail, atomic regions that are broken.
//!
//! A region (from [`Op::RegionBegin`] to its end) is broken when another thread's access comes
//! between two consecutive accesses of one variable in it such that no order without the
//! interruption gives the same result: read-write-read, write-write-read, read-write-write,
//! write-read-write (004 section 4). Each such pair gets a flag: the first access clears it, the
//! interrupting one sets it, and before the second it is asserted to be clear. So one machinery
//! serves both properties.

use foretell_model::ctp::{Action, ConcurrentTraceProgram, CtpEvent, CtpVariable, Role};
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

/// A program whose assertions are the wanted properties.
pub(crate) struct Instrumented {
    pub(crate) ctp: ConcurrentTraceProgram,
    /// By event: the event of the program it was made from that a person knows.
    pub(crate) shown: Vec<EventId>,
}

struct Watched {
    first: EventId,
    second: EventId,
    intruders: Vec<EventId>,
}

/// Puts the properties into the program.
pub(crate) fn instrument(
    trace: &Trace,
    mut ctp: ConcurrentTraceProgram,
    properties: Properties,
) -> Instrumented {
    if !properties.assertions {
        let always = ctp.terms.bool(true);
        for event in &mut ctp.events {
            if let Action::Assert { .. } = event.action {
                event.action = Action::Guarded { guard: always, assignments: Vec::new() };
            }
        }
    }
    let watched = if properties.regions { watched_pairs(trace, &ctp) } else { Vec::new() };
    if watched.is_empty() {
        let shown = (0..ctp.events.len()).map(EventId::from).collect();
        return Instrumented { ctp, shown };
    }
    let mut before: Vec<Vec<Action>> = vec![Vec::new(); ctp.events.len()];
    let mut after: Vec<Vec<Action>> = vec![Vec::new(); ctp.events.len()];
    let always = ctp.terms.bool(true);
    for (number, pair) in watched.iter().enumerate() {
        ctp.variables.push(CtpVariable {
            name: format!("interrupted#{number}").into(),
            sort: Sort::BOOL,
            scope: Scope::Shared,
            initial: Some(Value::Bool(false)),
            role: Role::Data,
        });
        let flag = VariableId::from(ctp.variables.len() - 1);
        let flag_term = ctp.terms.variable(flag, Sort::BOOL);
        let (clear, set) = (ctp.terms.bool(false), ctp.terms.bool(true));
        after[pair.first.index()]
            .push(Action::Guarded { guard: always, assignments: vec![(flag, clear)] });
        let unbroken = ctp.terms.not(flag_term);
        before[pair.second.index()].push(Action::Assert { condition: unbroken });
        for intruder in &pair.intruders {
            before[intruder.index()]
                .push(Action::Guarded { guard: always, assignments: vec![(flag, set)] });
        }
    }
    rebuild(ctp, before, after)
}

fn rebuild(
    mut ctp: ConcurrentTraceProgram,
    before: Vec<Vec<Action>>,
    after: Vec<Vec<Action>>,
) -> Instrumented {
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
            if events.len() - start > 1 {
                sections.push((EventId::from(start), EventId::from(events.len() - 1)));
            }
        }
        threads.push(own);
    }
    for (a, b) in ctp.orders.iter_mut().chain(&mut ctp.atomic_sections) {
        (*a, *b) = (new_id[a.index()], new_id[b.index()]);
    }
    ctp.atomic_sections.extend(sections);
    ctp.sections.clear();
    ctp.events = events;
    ctp.threads = threads;
    // events of the new program know the event they came from by its new number
    let shown = shown.iter().map(|event| new_id[event.index()]).collect();
    Instrumented { ctp, shown }
}

/// The variables that an event reads and writes, of those that stand for the program's memory.
fn accesses(ctp: &ConcurrentTraceProgram, event: EventId) -> (Vec<VariableId>, Vec<VariableId>) {
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
                Term::Variable(variable) => {
                    ctp.variables[variable.index()].name.starts_with("interrupted#")
                }
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}
