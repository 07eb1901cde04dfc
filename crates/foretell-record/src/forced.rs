//! A schedule seen from outside: the turns that the runtime is to take, and whether what came is
//! what the schedule says.
//!
//! The runtime ends the run at the first event that differs, as far as it can tell; it has no source
//! lines of its own. So every event is compared here once more, with its source line, and the order
//! of the steps too: what is reported as obeyed was obeyed.

use std::collections::HashMap;
use std::fmt;

use foretell_trace::schedule::{CreationPath, Step};
use foretell_trace::{Site, ThreadId};
use foretell_wire::standing::Sentence;
use foretell_wire::{Expected, Turn, is_local};

use crate::blocked::InSchedules;

/// Where a run left its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftSchedule {
    /// The first step that was not taken, counted from 1; `None` when the run followed no schedule
    /// (but a log).
    pub step: Option<usize>,
    /// That step.
    pub expected: Option<Step>,
    /// The event that came instead, if one did.
    pub found: Option<Step>,
    /// What else is known, for people; may be empty.
    pub reason: Sentence,
}

impl LeftSchedule {
    /// The whole, for people.
    pub fn sentence(&self) -> Sentence {
        let reason = self.reason.clone();
        let (Some(step), Some(expected)) = (self.step, &self.expected) else { return reason };
        let sentence = Sentence::from(&*format!("step {step} should be ")).then(shown(expected));
        let sentence = match &self.found {
            Some(found) => sentence.text(", but was ").then(shown(found)),
            None => sentence.text(", but did not happen"),
        };
        match reason.is_empty() {
            true => sentence,
            false => sentence.text(": ").then(reason),
        }
    }
}

impl fmt::Display for LeftSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        InSchedules(&self.sentence()).fmt(f)
    }
}

/// `write of thread 0.1 (its event 7) at bank.c:12:5`
fn shown(step: &Step) -> Sentence {
    let mut text = format!(" (its event {})", step.index);
    if let Some(Site { file, line, column, .. }) = &step.site {
        text.push_str(&format!(" at {file}:{line}"));
        if *column > 0 {
            text.push_str(&format!(":{column}"));
        }
    }
    Sentence::from(&*step.operation).text(" of ").thread(&step.thread.0).text(&text)
}

/// The turns of a schedule. A turn does not end at a step that other threads cannot see (a branch,
/// a call), because there the runtime does not look whether it is over: such steps are left for the
/// thread's next turn. An assertion that a schedule ends with is what it is to show: the last turn goes on
/// to it, or another thread could end the program first.
pub fn turns(steps: &[Step]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut waiting: HashMap<&[u32], Vec<Expected>> = HashMap::new();
    for stretch in steps.chunk_by(|a, b| a.thread == b.thread) {
        let path = stretch[0].thread.0.as_slice();
        let expected = waiting.entry(path).or_default();
        expected.extend(stretch.iter().map(|step| Expected {
            index: step.index,
            keyword: step.operation.to_string(),
            line: step.site.as_ref().map_or(0, |site| site.line),
            column: step.site.as_ref().map_or(0, |site| site.column),
        }));
        if let Some(last) = stretch.iter().rev().find(|step| !is_local(&step.operation)) {
            let expected = std::mem::take(expected);
            turns.push(Turn { path: path.to_vec(), until: last.index + 1, expected });
        }
    }
    if let Some(last) = steps.last().filter(|step| &*step.operation == "assert") {
        let path = last.thread.0.as_slice();
        let expected = waiting.remove(path).unwrap_or_default();
        match turns.last_mut().filter(|turn| turn.path == path) {
            Some(turn) => turn.until = last.index + 1,
            None => turns.push(Turn { path: path.to_vec(), until: last.index + 1, expected }),
        }
    }
    turns
}

/// Compares what comes with the schedule.
pub struct Comparison {
    steps: Vec<Step>,
    /// The steps of each thread that is not there yet, by place in `steps`, the next one at the
    /// end.
    unborn: HashMap<Vec<u32>, Vec<usize>>,
    /// Those of the threads that are, by number.
    threads: Vec<Vec<usize>>,
    paths: Vec<CreationPath>,
    /// Which steps were taken.
    taken: Vec<bool>,
    /// All steps before this one were taken, or could come later.
    next: usize,
    /// Every site, by number.
    sites: Vec<Site>,
    difference: Option<(usize, Step, &'static str)>,
}

impl Comparison {
    /// With these steps.
    pub fn new(steps: Vec<Step>) -> Self {
        let mut unborn: HashMap<Vec<u32>, Vec<usize>> = HashMap::new();
        for (place, step) in steps.iter().enumerate().rev() {
            unborn.entry(step.thread.0.clone()).or_default().push(place);
        }
        let taken = vec![false; steps.len()];
        Self {
            steps,
            unborn,
            threads: Vec::new(),
            paths: Vec::new(),
            taken,
            next: 0,
            sites: Vec::new(),
            difference: None,
        }
    }

    /// The next thread comes into being.
    pub fn thread(&mut self, path: &[u32]) {
        self.threads.push(self.unborn.remove(path).unwrap_or_default());
        self.paths.push(CreationPath(path.to_vec()));
    }

    /// The next site is defined.
    pub fn site(&mut self, site: &Site) {
        self.sites.push(site.clone());
    }

    /// An event came.
    pub fn event(&mut self, thread: ThreadId, index: u32, operation: &str, site: Option<usize>) {
        let Some(own) = self.threads.get_mut(thread.index()) else { return };
        let Some(&place) = own.last() else { return };
        let step = &self.steps[place];
        if index < step.index || self.difference.is_some() {
            return;
        }
        own.pop();
        let site = site.and_then(|site| self.sites.get(site));
        let differs = index != step.index
            || (*step.operation != *Step::ANY && operation != &*step.operation)
            || matches!((site, &step.site), (Some(a), Some(b)) if !same_place(a, b));
        let can_wait = |place: usize| self.taken[place] || is_local(&self.steps[place].operation);
        while self.next < place && can_wait(self.next) {
            self.next += 1;
        }
        let early = self.next < place && !is_local(operation);
        if differs || early {
            let found = Step {
                thread: self.paths[thread.index()].clone(),
                index,
                operation: operation.into(),
                site: site.cloned(),
            };
            let (place, why) = if differs { (place, "") } else { (self.next, "it came too early") };
            self.difference = Some((place, found, why));
        } else {
            self.taken[place] = true;
        }
    }

    /// How many steps were taken, or could still have come when the run ended: others cannot see them. What
    /// the schedule ends with is no such step.
    pub fn taken(&self) -> usize {
        let last = self.steps.len().saturating_sub(1);
        let could_come = |place: usize| place < last && is_local(&self.steps[place].operation);
        // The run came past the last step that others see, or it could not have come later.
        let seen = |place: usize| self.taken[place] || could_come(place);
        match (0..self.steps.len()).all(seen) {
            true => self.steps.len(),
            false => self.taken.iter().filter(|&&taken| taken).count(),
        }
    }

    /// Where the run left the schedule. `reason`: what the runtime said, if it ended the run.
    /// `over`: the program came to its own end, so that every step must have been taken.
    pub fn divergence(&self, reason: Option<Sentence>, over: bool) -> Option<LeftSchedule> {
        if let Some((place, found, why)) = &self.difference {
            return Some(LeftSchedule {
                step: Some(place + 1),
                expected: Some(self.steps[*place].clone()),
                found: Some(found.clone()),
                reason: (*why).into(),
            });
        }
        let reason = match reason {
            Some(reason) => reason,
            None if over => "the program ended before".into(),
            None => return None,
        };
        // Steps that others cannot see may come at any time: the run stands at one that is not.
        let stands =
            |place: &usize| !self.taken[*place] && !is_local(&self.steps[*place].operation);
        let missing = (0..self.steps.len()).find(stands);
        if missing.is_none() && over {
            return None;
        }
        let missing = missing.or_else(|| self.taken.iter().position(|&taken| !taken));
        Some(LeftSchedule {
            step: missing.map(|place| place + 1),
            expected: missing.map(|place| self.steps[place].clone()),
            found: None,
            reason,
        })
    }
}

/// Functions are not compared: an inlined one has several names.
fn same_place(a: &Site, b: &Site) -> bool {
    (&a.file, a.line, a.column) == (&b.file, b.line, b.column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(thread: &[u32], index: u32, operation: &str) -> Step {
        let thread = CreationPath(thread.to_vec());
        Step { thread, index, operation: operation.into(), site: None }
    }

    fn schedule() -> Vec<Step> {
        vec![
            step(&[], 0, "begin"),
            step(&[], 1, "fork"),
            step(&[], 2, "branch"),
            step(&[0], 0, "begin"),
            step(&[], 3, "write"),
            step(&[], 4, "call"),
            step(&[0], 1, "read"),
        ]
    }

    #[test]
    fn turns_end_at_steps_that_others_see() {
        let turns = turns(&schedule());
        let ends: Vec<(&[u32], u32)> = turns.iter().map(|t| (&*t.path, t.until)).collect();
        assert_eq!(ends, [(&[][..], 2), (&[][..], 4), (&[0][..], 2)]);
        assert_eq!(turns[2].expected.len(), 2, "the begin waits for the thread's first turn");
    }

    #[test]
    fn an_assertion_at_the_end_is_part_of_the_last_turn() {
        let ends = |more: &[Step]| {
            let turns = turns(&[&schedule()[..], more].concat());
            let expected: usize = turns.iter().map(|turn| turn.expected.len()).sum();
            assert_eq!(expected, schedule().len() + more.len());
            turns.iter().map(|turn| (turn.path.len(), turn.until)).collect::<Vec<_>>()
        };
        assert_eq!(ends(&[step(&[0], 2, "assert")]), [(0, 2), (0, 4), (1, 3)]);
        assert_eq!(ends(&[step(&[0], 2, "branch"), step(&[0], 3, "assert")]).last(), Some(&(1, 4)));
        let alone = turns(&[&schedule()[..], &[step(&[], 5, "assert")]].concat());
        let last = alone.last().expect("a turn");
        assert_eq!((last.path.len(), last.until, last.expected.len()), (0, 6, 1));
    }

    #[test]
    fn the_first_difference_is_named() {
        let mut run = Comparison::new(schedule());
        run.thread(&[]);
        for (index, operation) in ["begin", "fork", "branch", "write", "return"].iter().enumerate()
        {
            run.event(ThreadId(0), index as u32, operation, None);
        }
        let found = run.divergence(Some("x".into()), false).expect("a call was expected");
        assert_eq!(
            found.to_string(),
            "step 6 should be call of thread 0 (its event 4), \
             but was return of thread 0 (its event 4)"
        );
    }

    #[test]
    fn steps_in_another_order_are_a_divergence() {
        let mut run = Comparison::new(schedule());
        run.thread(&[]);
        run.thread(&[0]);
        for (index, operation) in ["begin", "fork"].iter().enumerate() {
            run.event(ThreadId(0), index as u32, operation, None);
        }
        run.event(ThreadId(1), 0, "begin", None);
        assert_eq!(run.divergence(None, false), None, "so far all is well");
        run.event(ThreadId(1), 1, "read", None);
        let found = run.divergence(None, false).expect("the write should come first");
        assert_eq!(found.step, Some(5));
        assert_eq!(found.reason, "it came too early".into());
    }

    #[test]
    fn steps_that_others_cannot_see_may_be_missing_in_the_end() {
        let mut run = Comparison::new(schedule());
        run.thread(&[]);
        run.thread(&[0]);
        for (index, operation) in ["begin", "fork", "branch", "write"].iter().enumerate() {
            run.event(ThreadId(0), index as u32, operation, None);
        }
        run.event(ThreadId(1), 0, "begin", None);
        assert_eq!(run.taken(), 5, "the last step is missing, and the call");
        run.event(ThreadId(1), 1, "read", None);
        assert_eq!(run.taken(), 7, "the call of the first thread may come later");
    }

    #[test]
    fn a_program_that_ends_early_did_not_obey() {
        let mut run = Comparison::new(schedule());
        run.thread(&[]);
        run.event(ThreadId(0), 0, "begin", None);
        assert_eq!(run.taken(), 1);
        let found = run.divergence(None, true).expect("steps are missing");
        assert_eq!(found.step, Some(2));
    }
}
