//! Other paths of a program whose recording does not say what was computed from what: a binary, or a
//! program that was compiled without expressions.
//!
//! Predictions from such a recording are about runs in which every read returns what it did. What lies
//! past that is tried: a feasible prefix after which a read sees something else
//! ([`foretell_predict::divergences`]) is forced, and the program goes on as it likes. What it then does is
//! judged, and predicted from in turn. So is a wait with a time limit that ended in time: it gives up instead.
//! Last, the other threads go on before the one that read. That covers nothing for certain, and never says that it does.

use std::collections::{BTreeMap, HashMap, HashSet};

use foretell_explore::{Doubt, Executed, Exploration, Probe, Program as _};
use foretell_predict::{Divergence, divergences};
use foretell_trace::schedule::{Schedule, Step};
use foretell_trace::{EventId, Op, SyncOp, ThreadId, Trace};

use crate::bounded::bounded;
use crate::canonical;
use crate::exploring::Exploring;
use crate::limits::MOST_CLASSES;
use crate::session::{TestError, all_events};

/// Random walks where locks are unknown: most of what reads could see instead is then inside of locks.
const WALKS: u64 = 24;

impl Exploring<'_, '_> {
    /// Tries what reads could see instead, run by run.
    pub(crate) fn stray(&mut self, recorded: &Trace) -> Exploration {
        if recorded.metadata.unseen.library {
            self.walks();
        }
        let mut known = HashSet::from([canonical::order(recorded, all_events(recorded))]);
        let mut classes = vec![recorded.clone()];
        let mut old_reads = Vec::new();
        let mut asked = 0;
        let mut at = 0;
        while at < classes.len() && self.goes_on() {
            let class = classes[at].clone();
            let probes = self.strays(at, &class);
            asked += probes.len();
            for run in self.tried(&class, &probes) {
                let new = known.insert(canonical::order(&run.trace, all_events(&run.trace)));
                if new && classes.len() < MOST_CLASSES {
                    self.found(classes.len(), &run.trace, run.ended);
                    classes.push(run.trace);
                }
            }
            old_reads.extend(probes.iter().flat_map(|probe| with_others_first(&class, probe)));
            at += 1;
        }
        asked += old_reads.len();
        for (number, class) in classes.iter().enumerate() {
            let (of_class, rest) = old_reads.into_iter().partition(|probe| probe.class == number);
            old_reads = rest;
            self.tried(class, &of_class);
        }
        self.found_late();
        let mut open = BTreeMap::from([(Doubt::NoTerms, 1)]);
        if recorded.metadata.machine_code {
            open.insert(Doubt::MachineCode, 1);
        }
        Exploration { classes: classes.len(), asked, open, ..Exploration::default() }
    }

    /// Runs at random, each of which is judged like any other.
    fn walks(&mut self) {
        for number in 0..WALKS {
            if !self.goes_on() {
                return;
            }
            let _ = self.walk(number); // what it shows is kept by whoever judges it
        }
    }

    /// Runs that followed what was forced.
    fn tried(&mut self, class: &Trace, probes: &[Probe]) -> Vec<Executed> {
        let mut runs = Vec::new();
        for probes in probes.chunks(self.at_once()) {
            if !self.goes_on() {
                break;
            }
            let executed = self.execute(class, probes.to_vec()).into_iter().flatten();
            runs.extend(executed.filter(|run| run.followed));
        }
        runs
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
        let strays = found.found.iter().map(|divergence| probe(class, trace, divergence));
        strays.chain(given_up(class, trace)).collect()
    }
}

/// Waits with a time limit that ended in time give up at once: one for each place in the code.
fn given_up(class: usize, trace: &Trace) -> Vec<Probe> {
    let mut places = HashSet::new();
    let mut probes = Vec::new();
    let mut began: HashMap<ThreadId, usize> = HashMap::new();
    for (number, id) in all_events(trace).enumerate() {
        let event = trace.event(id);
        match event.op {
            Op::Sync(_, SyncOp::WaitBegin { .. }) => _ = began.insert(event.thread, number),
            Op::Sync(_, SyncOp::WaitEnd { timed: true, timed_out: false, .. })
                if places.insert(event.site) =>
            {
                let Some(&begin) = began.get(&event.thread) else { continue };
                // Right after its begin nobody has the lock.
                let prefix: Vec<EventId> = all_events(trace).take(begin + 1).collect();
                let mut steps = Schedule::of_trace(trace, prefix.iter().copied(), []).steps;
                let end = Schedule::of_trace(trace, [id], []).steps;
                steps.extend(
                    end.into_iter().map(|step| Step { operation: "wait-timeout".into(), ..step }),
                );
                probes.push(Probe { class, prefix, choice: Some(id), steps });
            }
            _ => {}
        }
    }
    probes
}

/// The same read, but then each of the other threads goes on before the reader: what was read is old when it is
/// used, as in a lost update.
fn with_others_first(trace: &Trace, probe: &Probe) -> Vec<Probe> {
    let reader = probe.choice.map(|event| trace.event(event).thread);
    let prefix: HashSet<EventId> = probe.prefix.iter().copied().collect();
    let mut next: BTreeMap<ThreadId, EventId> = BTreeMap::new();
    for id in all_events(trace).filter(|id| !prefix.contains(id)) {
        next.entry(trace.event(id).thread).or_insert(id);
    }
    let others = next.into_iter().filter(|(thread, _)| Some(*thread) != reader);
    let probes = others.map(|(_, event)| {
        let mut steps = probe.steps.clone();
        let one = Schedule::of_trace(trace, [event], []).steps;
        steps.extend(one.into_iter().map(|step| Step { operation: Step::ANY.into(), ..step }));
        Probe { steps, ..probe.clone() }
    });
    probes.collect()
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
