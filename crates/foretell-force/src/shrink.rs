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
use foretell_trace::{EventId, ThreadId, Trace};

use crate::canonical::objects;
use crate::forced::{Violation, forced_steps};
use crate::run::{Limits, Run, Runner};

/// Events of each thread that are looked at for the pair.
const LOOKED_AT: usize = 400;
/// Longer runs are not bisected: every one of them would be as long.
const LONGEST: usize = 200_000;

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

/// Bisects the turns of a run that went wrong. `wrong` says whether another run went wrong the same
/// way. `None`: the run cannot be repeated.
pub fn shrink(
    runner: &Runner<'_>,
    bad: Run,
    after: &Policy,
    limits: Limits,
    wrong: impl Fn(&Run) -> bool,
) -> Option<Shrunk> {
    let trace = bad.trace.clone();
    if trace.events.len() > LONGEST {
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
    let mut bad = attempt(high).filter(|run| wrong(run))?;
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
    let switch = good.and_then(|good| reversed(&bad.trace, taken, &good.trace));
    Some(Shrunk { steps: taken, bad, switch })
}

/// Where another thread than before goes on.
fn turns(trace: &Trace) -> Vec<usize> {
    let thread = |position: usize| trace.events[position].thread;
    (0..trace.events.len())
        .filter(|&position| position == 0 || thread(position) != thread(position - 1))
        .collect()
}

/// The first two events of the thread that took the turn and of one that it overtook which conflict
/// and came the other way round in the good run.
fn reversed(bad: &Trace, taken: usize, good: &Trace) -> Option<(EventId, EventId)> {
    let turn = EventId::from(taken.checked_sub(1)?);
    let overtaker = bad.event(turn).thread;
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
    let of = |thread: Option<ThreadId>| {
        let from = (turn.index()..bad.events.len()).map(EventId::from);
        from.filter(move |&event| match thread {
            Some(thread) => bad.event(event).thread == thread,
            None => bad.event(event).thread != overtaker,
        })
        .take(LOOKED_AT)
    };
    let mut accesses = Accesses::new(bad);
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    let mut of_lock = None;
    for first in of(Some(overtaker)) {
        accesses.of(first, &mut mine);
        let locks = objects(&bad.event(first).op);
        if mine.is_empty() && locks.is_empty() {
            continue;
        }
        let Some(first_in_good) = place(first) else { continue };
        for second in of(None).filter(|&second| first < second) {
            if place(second).is_none_or(|at| first_in_good < at) {
                continue;
            }
            accesses.of(second, &mut theirs);
            let conflict = mine.iter().any(|one| {
                theirs
                    .iter()
                    .any(|other| one.variable == other.variable && (one.writes || other.writes))
            });
            if conflict {
                return Some((first, second));
            }
            let same_lock = objects(&bad.event(second).op).iter().any(|lock| locks.contains(lock));
            if same_lock && of_lock.is_none() {
                of_lock = Some((first, second));
            }
        }
    }
    of_lock
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
        assert_eq!(reversed(&bad, 2, &good), Some((EventId(2), EventId(3))));
        assert_eq!(reversed(&bad, 2, &bad), None, "the same order");
    }

    #[test]
    fn without_accesses_it_is_the_lock() {
        let bad = trace("two acquire m\ntwo release m\none acquire m\none release m");
        let good = trace("one acquire m\none release m\ntwo acquire m\ntwo release m");
        assert_eq!(reversed(&bad, 1, &good), Some((EventId(0), EventId(2))));
    }
}
