//! What a thread stands before whose run was cut off, and the model in which it can be asked whether it
//! goes on.
//!
//! A thread that has taken the same steps and choices stands before the same operation in every run. So
//! where another class is known in which it went on, its next step there is what it stands before here. If
//! that is an operation that can wait (a lock, a semaphore, a condition, a barrier, a join), it is added to
//! the class's trace as an event that never takes place: of that event it is asked whether the state at the
//! end of a prefix lets it take place. Any other operation can always be taken.

use std::collections::{HashMap, VecDeque};

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_trace::schedule::{CreationPath, Schedule, Step};
use foretell_trace::{Event, EventId, LockStep, ObjectId, Op, SyncOp, ThreadId, Trace};

use crate::class::{Class, Kept, Paths};
use crate::{Doubt, Explorer, Open};

/// What a thread stands before.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pending {
    /// No class says so.
    Unknown,
    /// Something that it can do whatever the others have done.
    Free,
    /// Something that may have to wait, as an event of the class's trace.
    Waits(Op),
    /// The end of a thread that does not end in this class.
    Never,
}

/// A class with what its threads stand before.
pub(crate) struct Model {
    pub ctp: ConcurrentTraceProgram,
    pub order: MustOrder,
    /// By thread: the event that it stands before, if it may have to wait there.
    pub next: Vec<Option<EventId>>,
    /// By thread, as a step that can be forced.
    pub steps: Vec<Option<Step>>,
}

impl Class {
    /// What the thread, whose run was cut off, stands before.
    fn pending(&self, thread: usize, known: &[Kept]) -> Pending {
        let Some((class, next)) = further(self, thread, known) else { return Pending::Unknown };
        let class = class.open();
        let op = &class.trace.event(class.ctp.event(next).origin).op;
        let object = |object: ObjectId| {
            let name = &class.trace.objects[object.index()].name;
            let known = self.trace.objects.iter().position(|object| object.name == *name);
            known.map(ObjectId::from)
        };
        let op = match *op {
            Op::Sync(lock, step @ SyncOp::Acquire(LockStep { by_try: false, .. })) => {
                object(lock).map(|lock| Op::Sync(lock, step))
            }
            Op::Sync(
                waited,
                step @ (SyncOp::SemaphoreWait { by_try: false } | SyncOp::BarrierLeave),
            ) => object(waited).map(|waited| Op::Sync(waited, step)),
            Op::Sync(condition, SyncOp::WaitEnd { mutex, timed_out: false, timed: false }) => {
                let both = object(condition).zip(object(mutex));
                both.map(|(condition, mutex)| {
                    Op::Sync(condition, SyncOp::WaitEnd { mutex, timed_out: false, timed: false })
                })
            }
            Op::Join(child) => {
                let creation = &class.trace.threads[child.index()].path;
                let child = self.threads.iter().position(|path| path.creation == *creation);
                match child {
                    Some(child) if self.threads[child].ended => {
                        Some(Op::Join(ThreadId::from(child)))
                    }
                    _ => return Pending::Never,
                }
            }
            // Whether it waits is not known: the run says so.
            Op::Sync(_, SyncOp::Receive { .. } | SyncOp::WaitEnd { .. }) | Op::Branch(_) => {
                return Pending::Unknown;
            }
            _ => return Pending::Free,
        };
        op.map_or(Pending::Unknown, Pending::Waits)
    }

    /// The step after the thread's last one, whatever it is.
    pub fn any_step(&self, thread: usize) -> Step {
        Step {
            thread: CreationPath(self.threads[thread].creation.clone()),
            index: events_of(&self.trace, thread),
            operation: Step::ANY.into(),
            site: None,
        }
    }

    /// The class with what these threads stand before; `None` where that cannot be modelled.
    pub fn with_pending(&self, pending: &[(usize, Op)]) -> Option<Model> {
        let mut trace = self.trace.clone();
        let mut next = vec![None; self.threads.len()];
        let mut steps = vec![None; self.threads.len()];
        for (thread, op) in pending {
            let event = EventId::from(trace.events.len());
            let index = events_of(&self.trace, *thread);
            let op = op.clone();
            trace.events.push(Event { thread: ThreadId::from(*thread), index, site: None, op });
            next[*thread] = Some(event);
            steps[*thread] = Schedule::of_trace(&trace, [event], []).steps.pop();
        }
        let ctp = ConcurrentTraceProgram::build(&trace).ok()?;
        let order = MustOrder::new(&trace).ok()?;
        let next = next.into_iter().map(|event| event.and_then(|event| ctp.event_of(event)));
        let next = next.collect();
        Some(Model { ctp, order, next, steps })
    }
}

/// A class in which the thread goes on where its run was cut off, and what it does next there.
fn further<'k>(paths: &Paths, thread: usize, known: &'k [Kept]) -> Option<(&'k Kept, EventId)> {
    let path = &paths.threads[thread];
    known.iter().find_map(|class| {
        let mut threads = class.paths.threads.iter();
        let theirs = threads.find(|theirs| theirs.creation == path.creation)?;
        let next = theirs.events.get(path.events.len())?;
        let agrees = path.agreement(&theirs.events) == path.events.len();
        agrees.then_some((class, next.id))
    })
}

impl Explorer<'_> {
    /// What the threads of a class stand before that are asked to go on. Those that wait for the end of a
    /// thread that does not end here do not.
    pub fn pending(&self, class: &Class, open: &mut VecDeque<Open>) -> HashMap<usize, Pending> {
        let mut pending = HashMap::new();
        open.retain(|open| {
            let thread = open.choice.thread();
            if !open.choice.is_cut() {
                return true;
            }
            let before = class.pending(thread, &self.classes);
            let never = before == Pending::Never;
            pending.insert(thread, before);
            !never
        });
        pending
    }

    /// When every other question is answered: are there classes now that say what threads stand before
    /// that were stopped? Then it is asked again whether they go on. What is not settled is open.
    pub fn settle(&mut self) -> bool {
        let mut again = false;
        let mut unsettled = Vec::new();
        for (number, choice) in std::mem::take(&mut self.unsettled) {
            let (kept, thread) = (&self.classes[number], choice.thread());
            let is_known = further(&kept.paths, thread, &self.classes).is_some()
                && kept.open().pending(thread, &self.classes) != Pending::Unknown;
            match is_known {
                false => unsettled.push((number, choice)),
                true => {
                    let todo = &mut self.todo[number];
                    todo.is_done = false;
                    let open = Open { choice, faults: Vec::new() };
                    todo.open.get_or_insert_default().push(open);
                    again = true;
                }
            }
        }
        // What is asked again may lead to classes that settle the others.
        match again {
            true => self.unsettled = unsettled,
            false => self.result.doubt(Doubt::CutOff, unsettled.len()),
        }
        again
    }
}

fn events_of(trace: &Trace, thread: usize) -> u32 {
    trace.events.iter().filter(|event| event.thread.index() == thread).count() as u32
}
