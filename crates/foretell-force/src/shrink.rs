//! Which context switch made a run go wrong.
//!
//! A run that went wrong is a list of turns. Its first turns, after which no thread is interrupted
//! any more, either go wrong too or do not: a bisection finds a turn with which they do and without
//! which they do not. Each of its answers is a run of the program; that a longer begin goes wrong
//! when a shorter one does is not assumed, so the turn found is *a* decisive one, not the only one.
//! What the turn changed is the first pair of conflicting events that came in one order in the bad
//! run and in the other in the good one (001's happens-before edge, for runs instead of traces).

use std::collections::HashMap;

use foretell_predict::access::Accesses;
use foretell_record::Policy;
use foretell_trace::schedule::Schedule;
use foretell_trace::{EventId, Trace};

use crate::canonical::objects;
use crate::forced::{Violation, forced_steps};
use crate::limits::{DECISIVE_STEPS, LONGEST_SHORTENED};
use crate::run::{Limits, Run, Runner};

/// The shortest begin that was found, and what it shows.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The turns up to the decisive one; what comes then needs no force.
    pub steps: usize,
    /// The run that goes wrong.
    pub bad: Run,
    /// What came the other way round in the run without the decisive turn, where there is such a
    /// thing: the first event came before the second.
    pub switch: Option<(EventId, EventId)>,
}

/// The schedule of the run led to another end.
#[derive(Clone, Copy, Debug)]
pub struct NotRepeated;

/// Bisects the turns of a run that went wrong. `wrong` says whether another run went wrong the same
/// way. `None`: it was not tried, or a run could not be made.
pub fn shrink(
    runner: &Runner<'_>,
    bad: Run,
    after: &Policy,
    limits: Limits,
    wrong: impl Fn(&Run) -> bool,
) -> Option<Result<Shrunk, NotRepeated>> {
    let trace = bad.trace.clone();
    if trace.events.len() > LONGEST_SHORTENED {
        return None;
    }
    let all = Schedule::of_trace(&trace, (0..trace.events.len()).map(EventId::from), []);
    let steps = forced_steps(&all, Violation::OtherPath);
    // A turn begins when its first event has happened.
    let mut begins: Vec<usize> = turns(&trace).into_iter().map(|start| start + 1).collect();
    begins.push(steps.len());
    let attempt =
        |turn: usize| runner.run(steps[..begins[turn]].to_vec(), after.clone(), limits).ok();
    let (mut low, mut high) = (0, begins.len() - 1);
    let mut bad = attempt(high)?;
    if !wrong(&bad) {
        return Some(Err(NotRepeated));
    }
    let mut good = None;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match attempt(middle)? {
            run if wrong(&run) => (high, bad) = (middle, run),
            run => (low, good) = (middle, Some(run)),
        }
    }
    let good = match good {
        Some(good) => Some(good),
        None => attempt(low).filter(|run| !wrong(run)),
    };
    let taken = begins[high];
    // What the turn before did may be what the others now come too late for.
    let from = begins[high.saturating_sub(1)] - 1;
    let switch = good.and_then(|good| reversed(&bad.trace, from, &good.trace));
    Some(Ok(Shrunk { steps: taken, bad, switch }))
}

/// Where another thread than before goes on.
fn turns(trace: &Trace) -> Vec<usize> {
    let thread = |position: usize| trace.events[position].thread;
    (0..trace.events.len())
        .filter(|&position| position == 0 || thread(position) != thread(position - 1))
        .collect()
}

/// The first two conflicting events of different threads, from this one on, that came the other way
/// round in the good run.
fn reversed(bad: &Trace, from: usize, good: &Trace) -> Option<(EventId, EventId)> {
    let name = |trace: &Trace, event: EventId| {
        let described = trace.event(event);
        (trace.threads[described.thread.index()].path.clone(), described.index)
    };
    let in_good: HashMap<_, usize> =
        (0..good.events.len()).map(|at| (name(good, EventId::from(at)), at)).collect();
    let place = |event: EventId| {
        let at = *in_good.get(&name(bad, event))?;
        let same = good.events[at].op.keyword() == bad.event(event).op.keyword();
        same.then_some(at)
    };
    let mut accesses = Accesses::new(bad);
    let mut steps = Vec::new();
    for event in (from..bad.events.len()).map(EventId::from) {
        let mut here = Vec::new();
        accesses.of(event, &mut here);
        let locks = objects(&bad.event(event).op);
        if let Some(at) = place(event).filter(|_| !here.is_empty() || !locks.is_empty()) {
            steps.push((event, at, here, locks));
        }
        if steps.len() == DECISIVE_STEPS {
            break;
        }
    }
    let mut of_lock = None;
    for (number, (first, first_in_good, mine, locks)) in steps.iter().enumerate() {
        for (second, second_in_good, theirs, other_locks) in &steps[number + 1..] {
            let other_thread = bad.event(*first).thread != bad.event(*second).thread;
            if !other_thread || first_in_good < second_in_good {
                continue;
            }
            let conflict = mine.iter().any(|one| {
                theirs.iter().any(|other| one.cell == other.cell && (one.writes || other.writes))
            });
            if conflict {
                return Some((*first, *second));
            }
            if of_lock.is_none() && locks.iter().any(|lock| other_locks.contains(lock)) {
                of_lock = Some((*first, *second));
            }
        }
    }
    of_lock
}

/// The event of another run with the same thread and number, if it is of the same kind and place.
pub(crate) fn same_event(run: &Trace, event: EventId, other: &Trace) -> Option<EventId> {
    let here = run.event(event);
    let path = &run.threads[here.thread.index()].path;
    let thread = other.threads.iter().position(|thread| thread.path == *path)?;
    let site = |trace: &Trace, event: &foretell_trace::Event| {
        event.site.map(|site| trace.sites[site.index()].clone())
    };
    let found = other
        .events
        .iter()
        .position(|there| there.thread.index() == thread && there.index == here.index)?;
    let there = &other.events[found];
    let same = there.op.keyword() == here.op.keyword() && site(other, there) == site(run, here);
    same.then(|| EventId::from(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_trace::format::text;

    fn trace(events: &str) -> Trace {
        let text = format!(
            "foretell-trace 1\nobserved\nthread main, one, two\nvar x\nvar y\nmutex m\n{events}"
        );
        text::read(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_turn_begins_where_another_thread_goes_on() {
        assert_eq!(turns(&trace("one read x\none write x\ntwo read x\none read y")), [0, 2, 3]);
    }

    #[test]
    fn the_pair_is_the_first_conflict_that_came_the_other_way_round() {
        let bad = trace("one read x\ntwo read y\ntwo read x\none write x\ntwo write x");
        let good = trace("one read x\none write x\ntwo read y\ntwo read x\ntwo write x");
        assert_eq!(reversed(&bad, 1, &good), Some((EventId(2), EventId(3))));
        assert_eq!(reversed(&bad, 1, &bad), None, "the same order");
    }

    #[test]
    fn without_accesses_it_is_the_lock() {
        let bad = trace("one begin\ntwo acquire m\ntwo release m\none acquire m\none release m");
        let good = trace("one begin\none acquire m\none release m\ntwo acquire m\ntwo release m");
        assert_eq!(reversed(&bad, 1, &good), Some((EventId(1), EventId(3))));
    }
}
