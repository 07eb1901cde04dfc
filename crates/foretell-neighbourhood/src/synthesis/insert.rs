//! Puts primitives into a program, as guarded assignments over new variables.
//!
//! | primitive | before | after |
//! |---|---|---|
//! | lock | `assume(l = 0); l := me` | `l := 0` |
//! | wait-notify | waiter: `assume(n = 1)` | notifier: `n := 1` |
//! | barrier | `bᵢ := 1`, then `assume(all bⱼ = 1)` | |
//! | shared | `assume(w = 0); r := r + 1` | `r := r - 1` |
//! | exclusive | `assume(w = 0 ∧ r = 0); w := 1` | `w := 0` |
//!
//! A primitive that would stand inside an atomic section stands around it.

use foretell_model::ctp::{Action, ConcurrentTraceProgram, CtpEvent, CtpVariable, Role};
use foretell_trace::{EventId, Operator, Scope, Sort, TermId, ThreadId, Value, VariableId};

use super::{Primitive, Region};
use crate::engine::system::System;

/// A program with primitives in it.
pub(crate) struct Inserted {
    pub(crate) ctp: ConcurrentTraceProgram,
    /// By event of the new program: does it belong to a primitive?
    pub(crate) added: Vec<bool>,
}

struct Editor {
    ctp: ConcurrentTraceProgram,
    before: Vec<Vec<Action>>,
    after: Vec<Vec<Action>>,
}

impl Editor {
    fn variable(&mut self, name: String) -> (VariableId, TermId) {
        self.ctp.variables.push(CtpVariable {
            name: name.into(),
            sort: Sort::INT,
            scope: Scope::Shared,
            initial: Some(Value::Int(0)),
            role: Role::Data,
        });
        let id = VariableId::from(self.ctp.variables.len() - 1);
        let term = self.ctp.terms.variable(id, Sort::INT);
        (id, term)
    }

    fn equals(&mut self, term: TermId, value: i128) -> TermId {
        let value = self.ctp.terms.int(value);
        self.ctp.terms.build(Operator::Eq, &[term, value])
    }

    fn set(&mut self, variable: VariableId, value: i128) -> Action {
        let guard = self.ctp.terms.bool(true);
        let value = self.ctp.terms.int(value);
        Action::Guarded { guard, assignments: vec![(variable, value)] }
    }
}

/// The program of a trace with the primitives of a [`super::Synthesis`] in it. Primitives name
/// events of the trace; those that the program does not have are left out.
pub fn with_primitives(
    ctp: &ConcurrentTraceProgram,
    primitives: &[Primitive],
) -> ConcurrentTraceProgram {
    let system = System::new(ctp, |_| None);
    let event = |origin: EventId| ctp.event_of(origin);
    let regions = |regions: &[Region]| -> Option<Vec<Region>> {
        regions
            .iter()
            .map(|region| {
                let (first, last) = (event(region.first)?, event(region.last)?);
                Some(Region { thread: region.thread, first, last })
            })
            .collect()
    };
    let plan: Vec<Primitive> = primitives
        .iter()
        .filter_map(|primitive| {
            Some(match primitive {
                Primitive::Lock { regions: all } => Primitive::Lock { regions: regions(all)? },
                Primitive::WaitNotify { waiter, notifier } => {
                    Primitive::WaitNotify { waiter: event(*waiter)?, notifier: event(*notifier)? }
                }
                Primitive::Barrier { events } => Primitive::Barrier {
                    events: events.iter().map(|&origin| event(origin)).collect::<Option<_>>()?,
                },
                Primitive::SharedExclusiveLock { shared, exclusive } => {
                    Primitive::SharedExclusiveLock {
                        shared: regions(shared)?,
                        exclusive: regions(exclusive)?,
                    }
                }
            })
        })
        .collect();
    insert(ctp, &system, &plan).ctp
}

/// The program with the primitives of the plan.
pub(crate) fn insert(
    ctp: &ConcurrentTraceProgram,
    system: &System,
    plan: &[Primitive],
) -> Inserted {
    let count = ctp.events.len();
    let mut editor = Editor {
        ctp: ctp.clone(),
        before: vec![Vec::new(); count],
        after: vec![Vec::new(); count],
    };
    let step = |event: EventId| &system.steps[system.step_of[event.index()]].events;
    let first_of = |event: EventId| step(event)[0].index();
    let last_of = |event: EventId| step(event)[step(event).len() - 1].index();
    // waits come first, then barriers, then locks: nobody waits with a lock in hand
    for (number, primitive) in plan.iter().enumerate() {
        if let Primitive::WaitNotify { waiter, notifier } = primitive {
            let (flag, term) = editor.variable(format!("notify#{number}"));
            let guard = editor.equals(term, 1);
            editor.before[first_of(*waiter)]
                .push(Action::Guarded { guard, assignments: Vec::new() });
            let notify = editor.set(flag, 1);
            editor.after[last_of(*notifier)].push(notify);
        }
    }
    for (number, primitive) in plan.iter().enumerate() {
        if let Primitive::Barrier { events } = primitive {
            let flags: Vec<(VariableId, TermId)> = (0..events.len())
                .map(|party| editor.variable(format!("barrier#{number}.{party}")))
                .collect();
            let all: Vec<TermId> = flags.iter().map(|&(_, term)| editor.equals(term, 1)).collect();
            let guard = editor.ctp.terms.and(&all);
            for (&event, &(flag, _)) in events.iter().zip(&flags) {
                let arrive = editor.set(flag, 1);
                editor.before[first_of(event)].push(arrive);
                editor.before[first_of(event)]
                    .push(Action::Guarded { guard, assignments: Vec::new() });
            }
        }
    }
    for (number, primitive) in plan.iter().enumerate() {
        match primitive {
            Primitive::Lock { regions } => {
                let (holder, term) = editor.variable(format!("lock#{number}"));
                let free = editor.equals(term, 0);
                for region in regions {
                    let me = editor.ctp.terms.int(region.thread as i128 + 1);
                    editor.before[first_of(region.first)]
                        .push(Action::Guarded { guard: free, assignments: vec![(holder, me)] });
                    let release = editor.set(holder, 0);
                    editor.after[last_of(region.last)].insert(0, release);
                }
            }
            Primitive::SharedExclusiveLock { shared, exclusive } => {
                insert_shared_exclusive(&mut editor, number, shared, exclusive, first_of, last_of);
            }
            _ => {}
        }
    }
    finish(editor)
}

fn insert_shared_exclusive(
    editor: &mut Editor,
    number: usize,
    shared: &[Region],
    exclusive: &[Region],
    first_of: impl Fn(EventId) -> usize,
    last_of: impl Fn(EventId) -> usize,
) {
    let (writer, writer_term) = editor.variable(format!("writer#{number}"));
    let (readers, readers_term) = editor.variable(format!("readers#{number}"));
    let no_writer = editor.equals(writer_term, 0);
    let no_reader = editor.equals(readers_term, 0);
    let alone = editor.ctp.terms.and(&[no_writer, no_reader]);
    let one = editor.ctp.terms.int(1);
    let always = editor.ctp.terms.bool(true);
    let more = editor.ctp.terms.build(Operator::Add, &[readers_term, one]);
    let fewer = editor.ctp.terms.build(Operator::Sub, &[readers_term, one]);
    for region in shared {
        editor.before[first_of(region.first)]
            .push(Action::Guarded { guard: no_writer, assignments: vec![(readers, more)] });
        editor.after[last_of(region.last)]
            .insert(0, Action::Guarded { guard: always, assignments: vec![(readers, fewer)] });
    }
    for region in exclusive {
        editor.before[first_of(region.first)]
            .push(Action::Guarded { guard: alone, assignments: vec![(writer, one)] });
        let release = editor.set(writer, 0);
        editor.after[last_of(region.last)].insert(0, release);
    }
}

fn finish(editor: Editor) -> Inserted {
    let Editor { mut ctp, before, after } = editor;
    let mut events = Vec::new();
    let mut added = Vec::new();
    let mut new_id = vec![EventId(0); ctp.events.len()];
    let mut threads = Vec::with_capacity(ctp.threads.len());
    for (thread, old) in ctp.threads.iter().enumerate() {
        let mut own = Vec::new();
        let mut push = |action: Action, origin: EventId, is_new: bool| {
            let id = EventId::from(events.len());
            events.push(CtpEvent {
                thread: ThreadId::from(thread),
                position: own.len() as u32,
                origin,
                action,
            });
            added.push(is_new);
            own.push(id);
            id
        };
        for &event in old {
            let this = &ctp.events[event.index()];
            for action in &before[event.index()] {
                push(action.clone(), this.origin, true);
            }
            new_id[event.index()] = push(this.action.clone(), this.origin, false);
            for action in &after[event.index()] {
                push(action.clone(), this.origin, true);
            }
        }
        threads.push(own);
    }
    let renumber = |pairs: &mut Vec<(EventId, EventId)>| {
        for (a, b) in pairs {
            (*a, *b) = (new_id[a.index()], new_id[b.index()]);
        }
    };
    renumber(&mut ctp.orders);
    renumber(&mut ctp.atomic_sections);
    ctp.sections.clear();
    ctp.events = events;
    ctp.threads = threads;
    Inserted { ctp, added }
}
