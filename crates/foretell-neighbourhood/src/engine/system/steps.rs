//! The steps of a transition system: which events are taken together, and what others notice of them.

use fixedbitset::FixedBitSet;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_trace::EventId;

/// The number of a step.
pub(crate) type StepId = usize;

/// One event, or the events of an atomic section.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) thread: usize,
    /// Index in the thread's steps.
    pub(crate) place: usize,
    pub(crate) events: Vec<EventId>,
    /// Variables whose value matters before the step, sorted.
    pub(crate) reads: Vec<usize>,
    /// Variables that change, sorted.
    pub(crate) writes: Vec<usize>,
    /// The same, restricted to variables that other threads touch.
    pub(crate) shared_reads: FixedBitSet,
    pub(crate) shared_writes: FixedBitSet,
    /// Another thread may notice when the step is taken, or it asserts something.
    pub(crate) visible: bool,
    pub(crate) asserts: bool,
    /// Where its guard does not hold the thread does something that was not recorded, rather than
    /// wait ([`System::allow_leaving`]).
    pub(crate) leaving: bool,
}

pub(super) fn make_steps(
    ctp: &ConcurrentTraceProgram,
) -> (Vec<Vec<StepId>>, Vec<Step>, Vec<StepId>) {
    let mut joined = vec![false; ctp.events.len()]; // with the next event of its thread
    for &(first, last) in &ctp.atomic_sections {
        let (first, last) = (&ctp.events[first.index()], &ctp.events[last.index()]);
        if first.thread == last.thread {
            let events = &ctp.threads[first.thread.index()];
            for place in first.position..last.position {
                joined[events[place as usize].index()] = true;
            }
        }
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut step_of = vec![0; ctp.events.len()];
    let mut threads = Vec::new();
    for (thread, events) in ctp.threads.iter().enumerate() {
        let mut own: Vec<StepId> = Vec::new();
        let mut open = false;
        for &event in events {
            if !open {
                own.push(steps.len());
                steps.push(Step {
                    thread,
                    place: own.len() - 1,
                    events: Vec::new(),
                    reads: Vec::new(),
                    writes: Vec::new(),
                    shared_reads: FixedBitSet::with_capacity(ctp.variables.len()),
                    shared_writes: FixedBitSet::with_capacity(ctp.variables.len()),
                    visible: false,
                    asserts: false,
                    leaving: false,
                });
            }
            let step = steps.len() - 1;
            steps[step].events.push(event);
            step_of[event.index()] = step;
            open = joined[event.index()];
        }
        threads.push(own);
    }
    (threads, steps, step_of)
}

pub(super) fn mark_shared(steps: &mut [Step], variables: usize, threads: usize) {
    let mut readers = vec![FixedBitSet::with_capacity(threads); variables];
    let mut writers = vec![FixedBitSet::with_capacity(threads); variables];
    for step in steps.iter() {
        step.reads.iter().for_each(|&variable| readers[variable].insert(step.thread));
        step.writes.iter().for_each(|&variable| writers[variable].insert(step.thread));
    }
    let conflict = |variable: usize| {
        (0..threads).any(|writer| {
            writers[variable].contains(writer)
                && (0..threads).any(|other| {
                    other != writer
                        && (readers[variable].contains(other) || writers[variable].contains(other))
                })
        })
    };
    let shared: Vec<bool> = (0..variables).map(conflict).collect();
    for step in steps.iter_mut() {
        for &variable in step.reads.iter().filter(|&&variable| shared[variable]) {
            step.shared_reads.insert(variable);
        }
        for &variable in step.writes.iter().filter(|&&variable| shared[variable]) {
            step.shared_writes.insert(variable);
        }
        let noticed = step.reads.iter().chain(&step.writes).any(|&variable| shared[variable]);
        step.visible = noticed || step.asserts;
    }
}
