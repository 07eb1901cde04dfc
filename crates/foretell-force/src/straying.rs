//! Other paths of a program whose recording does not say what was computed from what: a binary, or a
//! program that was compiled without expressions.
//!
//! Predictions from such a recording are about runs in which every read returns what it did. What lies
//! past that is tried: a feasible prefix after which a read sees something else
//! ([`foretell_predict::divergences`]) is forced, and the program goes on as it likes. What it then does is
//! judged, and predicted from in turn. That covers nothing for certain, and never says that it does.

use std::collections::{BTreeMap, HashSet};

use foretell_explore::{Doubt, Exploration, Probe, Program as _};
use foretell_predict::{Divergence, divergences};
use foretell_trace::schedule::{Schedule, Step};
use foretell_trace::{EventId, ThreadId, Trace};

use crate::bounded::bounded;
use crate::canonical;
use crate::exploring::Exploring;
use crate::session::{TestError, all_events};

/// Runs that are predicted from, at most: each costs questions and more runs.
const MOST_CLASSES: usize = 16;

impl Exploring<'_, '_> {
    /// Tries what reads could see instead, run by run.
    pub(crate) fn stray(&mut self, recorded: &Trace) -> Exploration {
        let mut known = HashSet::from([canonical::order(recorded, all_events(recorded))]);
        let mut classes = vec![recorded.clone()];
        let mut asked = 0;
        let mut at = 0;
        while at < classes.len() && self.goes_on() {
            let class = classes[at].clone();
            let probes = self.strays(at, &class);
            asked += probes.len();
            for probes in probes.chunks(self.at_once()) {
                if !self.goes_on() {
                    break;
                }
                for run in self.execute(&class, probes.to_vec()).into_iter().flatten() {
                    let new = run.followed
                        && known.insert(canonical::order(&run.trace, all_events(&run.trace)));
                    if new && classes.len() < MOST_CLASSES {
                        self.found(classes.len(), &run.trace, run.ended);
                        classes.push(run.trace);
                    }
                }
            }
            at += 1;
        }
        self.found_late();
        let open = [(Doubt::NoTerms, 1)].into();
        Exploration { classes: classes.len(), asked, open, ..Exploration::default() }
    }

    /// What to force so that a read of the class sees something else.
    fn strays(&mut self, class: usize, trace: &Trace) -> Vec<Probe> {
        let (trace_of_class, options) = (trace.clone(), self.campaign.options.predict.clone());
        let left = self.campaign.options.time.saturating_sub(self.campaign.started.elapsed()) / 4;
        let found = match bounded(left, move || divergences(&trace_of_class, &options)) {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                self.campaign.lost(TestError::Predict(error));
                return Vec::new();
            }
            Err(_) => {
                self.campaign.lost(TestError::Late);
                return Vec::new();
            }
        };
        self.campaign.errors.extend(found.internal_errors);
        found.found.iter().flat_map(|divergence| probes(class, trace, divergence)).collect()
    }
}

/// The prefix and the read, after which the thread goes on; and once for each other thread that goes on before
/// it: what was read is then old when it is used, as in a lost update.
fn probes(class: usize, trace: &Trace, divergence: &Divergence) -> Vec<Probe> {
    let first = probe(class, trace, divergence);
    let reader = trace.event(divergence.event).thread;
    let mut next: BTreeMap<ThreadId, EventId> = BTreeMap::new();
    let prefix: HashSet<EventId> = first.prefix.iter().copied().collect();
    for id in all_events(trace).filter(|id| !prefix.contains(id)) {
        next.entry(trace.event(id).thread).or_insert(id);
    }
    next.remove(&reader);
    let others = next.into_values().map(|event| {
        let mut steps = first.steps.clone();
        let one = Schedule::of_trace(trace, [event], []).steps;
        steps.extend(one.into_iter().map(|step| Step { operation: Step::ANY.into(), ..step }));
        Probe { steps, ..first.clone() }
    });
    let others: Vec<Probe> = others.collect();
    std::iter::once(first).chain(others).collect()
}

fn probe(class: usize, trace: &Trace, divergence: &Divergence) -> Probe {
    let prefix: Vec<_> = divergence.schedule.events().collect();
    let Schedule { mut steps, next, .. } =
        Schedule::of_trace(trace, prefix.iter().copied(), divergence.schedule.next.iter().copied());
    // A try is another event when it comes out differently.
    let event = trace.event(divergence.event);
    let path = &trace.threads[event.thread.index()].path;
    let tried = next.into_iter().find(|step| step.thread.0 == *path && step.index == event.index);
    steps.extend(tried.map(|step| Step { operation: Step::ANY.into(), ..step }));
    Probe { class, prefix, choice: Some(divergence.event), steps }
}
