//! Which block a run tore apart that left its path: what a thread saw when it decided was no longer
//! true when it acted.
//!
//! Past the recorded path nobody predicted anything, but the run has its own trace. The read with
//! which a thread left its path and a later access of the same variable by that thread, with a write
//! of another thread in between, are a torn block as 002 has it; if there is none, the same is looked
//! for around a read of another thread that the first one's write came after. Guaranteed: the three
//! accesses happened in this order. Missed: blocks over several variables.

use foretell_predict::access::{Accesses, Cell};
use foretell_predict::finding::access_info;
use foretell_predict::{Finding, FindingKind, PatternKind, Status, WitnessSchedule};
use foretell_trace::{EventId, ThreadId, Trace};

#[derive(Clone, Copy)]
struct Touch {
    event: EventId,
    thread: ThreadId,
    writes: bool,
}

/// The torn block around the read, as a finding of the run itself.
pub fn torn_block(run: &Trace, look: EventId) -> Option<Finding> {
    let mut accesses = Accesses::new(run);
    let mut here = Vec::new();
    accesses.of(look, &mut here);
    let cell = here.iter().find(|access| !access.writes)?.cell;
    let touches = touches(run, cell);
    let thread = run.event(look).thread;
    let acts =
        touches.iter().find(|touch| touch.event > look && touch.thread == thread && touch.writes);
    // The last look of every other thread before the first one acts.
    let mut others: Vec<Touch> = Vec::new();
    for touch in touches.iter().filter(|touch| !touch.writes && touch.thread != thread) {
        if acts.is_some_and(|acts| touch.event < acts.event) {
            others.retain(|other| other.thread != touch.thread);
            others.push(*touch);
        }
    }
    let firsts = std::iter::once(look).chain(others.iter().map(|touch| touch.event));
    let (pattern, events) = firsts.into_iter().find_map(|first| torn(run, &touches, first))?;
    let order: Vec<EventId> = (0..run.events.len()).map(EventId::from).collect();
    let places: Vec<String> = events.map(|event| run.event_name(event)).to_vec();
    Some(Finding {
        id: places.join(" "),
        group: places.join(" "),
        kind: FindingKind::Atomicity,
        pattern: Some(pattern),
        status: Status::Predicted,
        accesses: events.map(|event| access_info(run, event)).to_vec(),
        detail: "what was seen was no longer true when it was acted on".into(),
        schedule: Some(WitnessSchedule {
            recorded: 0,
            order,
            next: Vec::new(),
            context_switches: 0,
        }),
    })
}

/// All accesses of the cell, in order; a step that reads and writes counts as a write.
fn touches(run: &Trace, cell: Cell) -> Vec<Touch> {
    let mut accesses = Accesses::new(run);
    let mut here = Vec::new();
    let mut found = Vec::new();
    for event in (0..run.events.len()).map(EventId::from) {
        accesses.of(event, &mut here);
        let mut of_cell = here.iter().filter(|access| access.cell == cell).peekable();
        if of_cell.peek().is_some() {
            let writes = of_cell.any(|access| access.writes);
            found.push(Touch { event, thread: run.event(event).thread, writes });
        }
    }
    found
}

/// The first write of another thread after the read, and what the reader does then: best a write.
fn torn(run: &Trace, touches: &[Touch], first: EventId) -> Option<(PatternKind, [EventId; 3])> {
    let thread = run.event(first).thread;
    let mut after = touches.iter().filter(|touch| touch.event > first);
    let remote = after.find(|touch| touch.thread != thread && touch.writes)?;
    let seconds = || after.clone().filter(|touch| touch.thread == thread);
    let second = seconds().find(|touch| touch.writes).or(seconds().next())?;
    let pattern = PatternKind::of(false, true, second.writes)?;
    Some((pattern, [first, remote.event, second.event]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_trace::format::text;

    fn found(events: &str, look: u32) -> Option<Vec<u32>> {
        let text =
            format!("foretell-trace 1\nobserved\nthread main, one, two\nvar x\nvar y\n{events}");
        let run = text::read(&text).unwrap_or_else(|error| panic!("{error}"));
        let block = torn_block(&run, EventId(look))?;
        Some(block.accesses.iter().map(|access| access.event.0).collect())
    }

    #[test]
    fn what_was_seen_is_overwritten_before_it_is_acted_on() {
        let run = "two read x\none read x\none write x\ntwo read x\ntwo write x";
        assert_eq!(found(run, 0), Some(vec![0, 2, 4]));
    }

    #[test]
    fn the_other_thread_may_be_the_one_that_acts_too_late() {
        let run = "one read x\ntwo read x\ntwo write x\none write x\none read y";
        assert_eq!(found(run, 1), Some(vec![0, 2, 3]));
    }

    #[test]
    fn nothing_is_torn_where_nobody_comes_between() {
        assert_eq!(found("one read x\none write x\ntwo read x\ntwo write x", 0), None);
    }
}
