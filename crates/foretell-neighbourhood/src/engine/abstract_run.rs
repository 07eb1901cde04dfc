//! A cheap proof that no good run respects a set of constraints.
//!
//! All steps are run once in their partial order; a read has the values of all writes that it may
//! see, joined. Values only grow, combinations that violate a guard or an assertion are left out
//! (a good run has none), and if a step has no combination left there is no good run. "No" proves
//! nothing; most generalisations of a bad run are decided here, in microseconds.

use foretell_trace::TermId;

use super::system::{StepId, System};
use crate::formula::Atom;

/// More values than this are "any value".
const VALUES: usize = 80;
/// More combinations of values than this are not tried.
const COMBINATIONS: usize = 100;
/// The same for a step that writes nothing: its first combination that passes is enough.
const COMBINATIONS_OF_CHECK: usize = 2000;

#[derive(Clone, Debug, PartialEq)]
enum Values {
    Some(Vec<TermId>),
    Any,
}

impl Values {
    fn join(&mut self, other: &Values) -> bool {
        let Values::Some(mine) = self else { return false };
        match other {
            Values::Any => {
                *self = Values::Any;
                true
            }
            Values::Some(more) => {
                let before = mine.len();
                for value in more {
                    if !mine.contains(value) {
                        mine.push(*value);
                    }
                }
                let changed = mine.len() > before;
                if mine.len() > VALUES {
                    *self = Values::Any;
                }
                changed
            }
        }
    }
}

/// Places reached and reaching, per step and thread, in the order with the constraints.
struct Reach {
    /// Steps of thread `t` with a smaller place come before the step.
    before: Vec<Vec<u32>>,
}

impl Reach {
    fn new(system: &System, atoms: &[Atom]) -> Option<Self> {
        let threads = system.threads.len();
        let mut incoming = system.predecessors.clone();
        for &atom in atoms {
            let (a, b) = system.step_atom(atom);
            if a != b {
                incoming[b].push(a);
            }
        }
        let mut before = vec![vec![0u32; threads]; system.steps.len()];
        let mut done = vec![0usize; threads];
        let total = system.steps.len();
        let mut count = 0;
        loop {
            let mut progress = false;
            for thread in 0..threads {
                while let Some(&step) = system.threads[thread].get(done[thread]) {
                    let ready = incoming[step]
                        .iter()
                        .all(|&other| done[system.steps[other].thread] > system.steps[other].place);
                    if !ready {
                        break;
                    }
                    let mut row = match done[thread] {
                        0 => vec![0; threads],
                        place => before[system.threads[thread][place - 1]].clone(),
                    };
                    row[thread] = done[thread] as u32;
                    for &other in &incoming[step] {
                        for (mine, theirs) in row.iter_mut().zip(&before[other]) {
                            *mine = (*mine).max(*theirs);
                        }
                        let other = &system.steps[other];
                        row[other.thread] = row[other.thread].max(other.place as u32 + 1);
                    }
                    before[step] = row;
                    done[thread] += 1;
                    count += 1;
                    progress = true;
                }
            }
            if count == total {
                return Some(Self { before });
            }
            if !progress {
                return None;
            }
        }
    }

    fn precedes(&self, system: &System, a: StepId, b: StepId) -> bool {
        (system.steps[a].place as u32) < self.before[b][system.steps[a].thread]
    }
}

/// Is it certain that no complete run respects the atoms, with all guards and assertions holding?
pub(crate) fn excludes_good_runs(system: &mut System, atoms: &[Atom]) -> bool {
    if system.has_leaving() {
        return false; // it speaks of complete runs only
    }
    let Some(reach) = Reach::new(system, atoms) else { return true };
    // sources of each read: `None` is the initial value
    let mut sources: Vec<Vec<Vec<Option<StepId>>>> = Vec::with_capacity(system.steps.len());
    for step in 0..system.steps.len() {
        let reads = &system.steps[step].reads;
        sources.push(
            reads
                .iter()
                .map(|&v| visible_writes(system, &reach, &system.writers[v], step))
                .collect(),
        );
    }
    let mut written: Vec<Vec<Values>> =
        system.steps.iter().map(|step| vec![Values::Some(Vec::new()); step.writes.len()]).collect();
    let order: Vec<StepId> = system.threads.iter().flatten().copied().collect();
    let mut passed = vec![false; system.steps.len()];
    let mut dirty = vec![true; system.steps.len()];
    let mut readers: Vec<Vec<StepId>> = vec![Vec::new(); system.steps.len()];
    for (step, sources) in sources.iter().enumerate() {
        for write in sources.iter().flatten().flatten() {
            readers[*write].push(step);
        }
    }
    loop {
        let mut changed = false;
        for &step in &order {
            if dirty[step] {
                dirty[step] = false;
                let news = run_step(system, step, &sources[step], &mut written, &mut passed[step]);
                if news {
                    changed = true;
                    readers[step].iter().for_each(|&reader| dirty[reader] = true);
                }
            }
        }
        if !changed {
            break;
        }
    }
    passed.iter().any(|&passed| !passed)
}

fn visible_writes(
    system: &System,
    reach: &Reach,
    writers: &[Vec<StepId>],
    step: StepId,
) -> Vec<Option<StepId>> {
    let mut visible = Vec::new();
    // the last write of each thread that certainly comes before
    let mut last = Vec::new();
    for own in writers {
        let certain = own.partition_point(|&write| reach.precedes(system, write, step));
        if certain > 0 {
            last.push(own[certain - 1]);
        }
        visible.extend(
            own[certain..]
                .iter()
                .filter(|&&write| write != step && !reach.precedes(system, step, write))
                .map(|&write| Some(write)),
        );
    }
    if last.is_empty() {
        visible.push(None);
    }
    for &write in &last {
        if !last.iter().any(|&other| other != write && reach.precedes(system, write, other)) {
            visible.push(Some(write));
        }
    }
    visible
}

fn run_step(
    system: &mut System,
    step: StepId,
    sources: &[Vec<Option<StepId>>],
    written: &mut [Vec<Values>],
    passed: &mut bool,
) -> bool {
    let check_only = written[step].is_empty();
    if check_only && *passed {
        return false;
    }
    let reads = system.steps[step].reads.clone();
    let mut choices: Vec<Values> = Vec::with_capacity(reads.len());
    for (&variable, sources) in reads.iter().zip(sources) {
        let mut values = Values::Some(Vec::new());
        for source in sources {
            match source {
                None => {
                    values.join(&Values::Some(vec![system.initial_value(variable)]));
                }
                Some(write) => {
                    let at = system.steps[*write].writes.binary_search(&variable);
                    values.join(&written[*write][at.expect("a writer writes it")]);
                }
            }
        }
        choices.push(values);
    }
    let mut combinations = 1usize;
    for values in &choices {
        match values {
            Values::Any => combinations = usize::MAX,
            Values::Some(values) => combinations = combinations.saturating_mul(values.len()),
        }
    }
    let mut changed = false;
    if combinations > if check_only { COMBINATIONS_OF_CHECK } else { COMBINATIONS } {
        if choices.contains(&Values::Some(Vec::new())) {
            return false;
        }
        for values in &mut written[step] {
            changed |= values.join(&Values::Any);
        }
        changed |= !*passed;
        *passed = true;
        return changed;
    }
    let lists: Vec<Vec<TermId>> = choices
        .into_iter()
        .map(|values| match values {
            Values::Some(values) => values,
            Values::Any => Vec::new(),
        })
        .collect();
    let mut key = Vec::with_capacity(lists.len());
    for number in 0..combinations {
        let mut rest = number;
        key.clear();
        key.extend(lists.iter().map(|values| {
            let value = values[rest % values.len()];
            rest /= values.len();
            value
        }));
        if let Some(outcome) = system.passing_writes(step, &key) {
            changed |= !*passed;
            *passed = true;
            if check_only {
                break;
            }
            for &(variable, value) in &outcome.writes {
                if let Ok(at) = system.steps[step].writes.binary_search(&variable) {
                    changed |= written[step][at].join(&Values::Some(vec![value]));
                }
            }
        }
    }
    changed
}
