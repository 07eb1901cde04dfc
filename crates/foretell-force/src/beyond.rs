//! Ways to go on after a thread has left its path.
//!
//! A prefix after which a thread leaves its path says nothing about what comes then, and one
//! uninterrupted run shows one way. Two threads that both have looked and then both act need another
//! one: the thread that left its path has to stop once more, so that another one looks too. So after
//! each prefix that showed nothing a few more ways are tried: another thread goes first, at once or
//! when the first gives a lock back (one more preemption, 003's rescheduling at synchronisation), and
//! short turns for everybody.
//!
//! Guaranteed: the number of runs is bounded. Missed: what needs more preemptions at chosen places;
//! the runs are a sample, not all ways.

use foretell_record::Policy;
use foretell_trace::schedule::{Schedule, Step};
use foretell_trace::{EventId, Op, Trace};

/// Places at which the thread that left its path stops: at once, and where it lets others in.
const STOPS: usize = 3;
/// Threads that go first instead.
const OTHERS: usize = 2;
/// Short turns, in events.
const QUANTA: [u32; 3] = [3, 1, 7];

/// So many ways at most.
pub const MOST_WAYS: usize = STOPS * OTHERS + QUANTA.len();

/// One way: steps, and who runs when after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// More steps than the prefix has.
    pub steps: Vec<Step>,
    /// What happens when they are over; `None`: as after every schedule.
    pub after: Option<Policy>,
}

/// The ways to go on after the first `taken` events of a run, which ended with the one that made a
/// thread leave its path.
pub fn ways(run: &Trace, taken: usize) -> Vec<Way> {
    let Some(last) = taken.checked_sub(1).filter(|&last| last < run.events.len()) else {
        return Vec::new();
    };
    let leaver = run.events[last].thread;
    let prefix: Vec<EventId> = (0..taken).map(EventId::from).collect();
    let rest = || (taken..run.events.len()).map(EventId::from);
    // In the order of creation; each by its next event.
    let mut others: Vec<EventId> = Vec::new();
    for event in rest().filter(|&event| run.event(event).thread != leaver) {
        if others.iter().all(|&other| run.event(other).thread != run.event(event).thread) {
            others.push(event);
        }
    }
    others.sort_by_key(|&event| run.event(event).thread);
    others.retain(|&event| !waits_for_an_end(&run.event(event).op));
    others.truncate(OTHERS);
    let mut stops: Vec<Vec<EventId>> = vec![Vec::new()];
    let mut done = Vec::new();
    for event in rest().filter(|&event| run.event(event).thread == leaver) {
        done.push(event);
        if lets_others_in(&run.event(event).op) {
            stops.push(done.clone());
        }
        if stops.len() == STOPS {
            break;
        }
    }
    // Where a lock is held nobody else comes far, so that the first release is the best guess.
    stops.sort_by_key(|stop| stop.is_empty());
    let mut ways = Vec::new();
    for stop in &stops {
        for &other in &others {
            let events = prefix.iter().chain(stop).copied().chain([other]);
            ways.push(Way { steps: Schedule::of_trace(run, events, []).steps, after: None });
        }
    }
    let steps = Schedule::of_trace(run, prefix, []).steps;
    ways.extend(
        QUANTA.map(|quantum| Way {
            steps: steps.clone(),
            after: Some(Policy::RoundRobin { quantum }),
        }),
    );
    ways
}

/// Another thread may be able to go on after it that could not before.
fn lets_others_in(op: &Op) -> bool {
    matches!(
        op,
        Op::Release(_)
            | Op::Signal(_)
            | Op::Broadcast(_)
            | Op::SemaphorePost(_)
            | Op::Send { .. }
            | Op::WaitBegin { .. }
            | Op::BarrierArrive(_)
    )
}

/// The event can only happen when another thread has ended.
fn waits_for_an_end(op: &Op) -> bool {
    matches!(op, Op::Join(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_trace::format::text;

    fn told(events: &str, taken: usize) -> Vec<String> {
        let text =
            format!("foretell-trace 1\nobserved\nthread main, one, two\nvar x\nmutex m\n{events}");
        let trace = text::read(&text).unwrap_or_else(|error| panic!("{error}"));
        ways(&trace, taken)
            .iter()
            .map(|way| {
                let steps = way.steps[taken..]
                    .iter()
                    .map(|step| format!("{}:{}", step.thread, step.operation));
                let after = way.after.as_ref().map(ToString::to_string);
                steps.chain(after).collect::<Vec<_>>().join(" ")
            })
            .collect()
    }

    #[test]
    fn another_thread_goes_first_when_the_lock_is_free_again_or_at_once() {
        let run = "one acquire m\none read x\none release m\none write x\ntwo acquire m\n\
                   two release m\nmain join one";
        assert_eq!(
            told(run, 2),
            [
                "0.0:release 0.1:acquire",
                "0.1:acquire",
                "round-robin:3",
                "round-robin:1",
                "round-robin:7"
            ]
        );
    }

    #[test]
    fn where_nobody_else_is_left_only_turns_remain() {
        assert_eq!(told("one read x\none write x\nmain join one", 1).len(), QUANTA.len());
        assert_eq!(told("one read x", 0), Vec::<String>::new());
    }
}
