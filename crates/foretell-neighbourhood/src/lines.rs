//! Events by source line: the iterations of a loop are one thing to a reader.
//!
//! Two events of a thread belong to one *line* when they have the same source site, or, where the
//! trace has none, when the thread repeats a block of steps of the same shape (same kind of action,
//! same variables, same label but for its number) and the events have the same place in the block.
//! Formulas and locks over single events are then said once for all iterations.

use std::collections::BTreeMap;

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_trace::{EventId, Trace};

use crate::engine::system::System;
use crate::formula::{Atom, HbFormula};

/// The number of a line.
pub type LineId = usize;

/// Lines and iterations of all events.
#[derive(Clone, Debug)]
pub struct Lines {
    line: Vec<LineId>,
    iteration: Vec<u32>,
    events: Vec<Vec<EventId>>,
    /// By event: its source line, the same number in all threads.
    code: Vec<Option<usize>>,
}

/// What identifies the line of an event besides its thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineKey {
    /// Source site, when known.
    pub(crate) site: Option<(Box<str>, u32)>,
    /// Label without trailing digits.
    pub(crate) stem: Box<str>,
}

impl Lines {
    pub(crate) fn new(system: &System, keys: &[LineKey]) -> Self {
        let mut line = vec![0; keys.len()];
        let mut iteration = vec![0; keys.len()];
        let mut events: Vec<Vec<EventId>> = Vec::new();
        for steps in &system.threads {
            let own: Vec<EventId> =
                steps.iter().flat_map(|&step| system.steps[step].events.iter().copied()).collect();
            let blocks = repeated_blocks(&own, |a, b| same_shape(system, keys, a, b));
            // events of a repeated block share the lines of its first round
            let mut given: Vec<Option<LineId>> = vec![None; own.len()];
            let mut round = vec![0; own.len()];
            let mut by_site: BTreeMap<(Box<str>, u32), LineId> = BTreeMap::new();
            for place in 0..own.len() {
                let key = &keys[own[place].index()];
                let model = blocks[place];
                let known = match (&key.site, model) {
                    (Some(site), _) => by_site.get(site).copied(),
                    (None, Some(earlier)) => given[earlier],
                    (None, None) => None,
                };
                if let Some(earlier) = model {
                    round[place] = round[earlier] + 1;
                } else if let Some(known) = known {
                    let last = events[known].last().copied();
                    let last = last.map_or(0, |event: EventId| iteration[event.index()]);
                    round[place] = last + 1;
                }
                let number = known.unwrap_or_else(|| {
                    events.push(Vec::new());
                    events.len() - 1
                });
                if let Some(site) = &key.site {
                    by_site.insert(site.clone(), number);
                }
                given[place] = Some(number);
                line[own[place].index()] = number;
                iteration[own[place].index()] = round[place];
                events[number].push(own[place]);
            }
        }
        let mut numbers: BTreeMap<&(Box<str>, u32), usize> = BTreeMap::new();
        let mut number = |site| {
            let next = numbers.len();
            *numbers.entry(site).or_insert(next)
        };
        let code = keys.iter().map(|key| key.site.as_ref().map(&mut number)).collect();
        Self { line, iteration, events, code }
    }

    /// The same lines over the events of the trace.
    pub(crate) fn new_for_trace(
        trace: &Trace,
        lines: &Lines,
        ctp: &ConcurrentTraceProgram,
    ) -> Self {
        let mut line = vec![usize::MAX; trace.events.len()];
        let mut iteration = vec![0; trace.events.len()];
        let mut events: Vec<Vec<EventId>> = vec![Vec::new(); lines.events.len()];
        let mut code = vec![None; trace.events.len()];
        for (number, event) in ctp.events.iter().enumerate() {
            let origin = event.origin;
            if line[origin.index()] == usize::MAX {
                line[origin.index()] = lines.line[number];
                iteration[origin.index()] = lines.iteration[number];
                events[lines.line[number]].push(origin);
                code[origin.index()] = lines.code[number];
            }
        }
        Self { line, iteration, events, code }
    }

    /// Every event of the trace for itself.
    pub(crate) fn none(trace: &Trace) -> Self {
        let count = trace.events.len();
        Self {
            line: (0..count).collect(),
            iteration: vec![0; count],
            events: (0..count).map(|event| vec![EventId::from(event)]).collect(),
            code: vec![None; count],
        }
    }

    /// The event's line.
    pub fn line(&self, event: EventId) -> LineId {
        self.line[event.index()]
    }

    /// The event's source line, the same number in all threads; `None` where it is not known.
    pub(crate) fn code(&self, event: EventId) -> Option<usize> {
        self.code[event.index()]
    }

    /// How often the thread had been in this block before.
    pub fn iteration(&self, event: EventId) -> u32 {
        self.iteration[event.index()]
    }

    /// The events of a line.
    pub fn events(&self, line: LineId) -> &[EventId] {
        &self.events[line]
    }
}

fn same_shape(system: &System, keys: &[LineKey], a: EventId, b: EventId) -> bool {
    let (x, y) = (&system.accesses[a.index()], &system.accesses[b.index()]);
    keys[a.index()] == keys[b.index()]
        && x.reads == y.reads
        && x.writes == y.writes
        && x.guard == y.guard
}

/// For each place the same place of the round before, where a block of two or more events (or one,
/// if three times in a row) repeats.
fn repeated_blocks(own: &[EventId], same: impl Fn(EventId, EventId) -> bool) -> Vec<Option<usize>> {
    let mut model = vec![None; own.len()];
    let mut start = 0;
    while start < own.len() {
        let mut found = None;
        for length in 1..=(own.len() - start) / 2 {
            let mut rounds = 1;
            while start + (rounds + 1) * length <= own.len()
                && (0..length).all(|at| same(own[start + at], own[start + rounds * length + at]))
            {
                rounds += 1;
            }
            if rounds >= 3 || rounds == 2 && length >= 2 {
                found = Some((length, rounds));
                break;
            }
        }
        match found {
            Some((length, rounds)) => {
                let later = start + length..start + rounds * length;
                for (offset, model) in model[later].iter_mut().enumerate() {
                    *model = Some(start + offset);
                }
                start += rounds * length;
            }
            None => start += 1,
        }
    }
    model
}

/// Clauses of a formula that differ only in the iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePattern {
    /// Atoms between lines, with the first event of each as its representative; equal iteration
    /// marks mean the same iteration.
    pub atoms: Vec<LineAtom>,
    /// How many clauses say it.
    pub count: usize,
    /// One of them.
    pub example: Vec<Atom>,
}

/// `hb(line, line)` with marks for the iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineAtom {
    /// First event of the earlier line.
    pub before: EventId,
    /// Which iteration variable it belongs to.
    pub before_mark: u32,
    /// First event of the later line.
    pub after: EventId,
    /// Which iteration variable it belongs to.
    pub after_mark: u32,
}

/// The formula, said once for all iterations.
pub fn by_line(
    formula: &HbFormula,
    lines: &Lines,
    thread: impl Fn(EventId) -> usize,
) -> Vec<LinePattern> {
    let mut patterns: BTreeMap<Vec<LineAtom>, LinePattern> = BTreeMap::new();
    for clause in formula.clauses() {
        // iterations of each thread get marks in order of first use
        let mut marks: BTreeMap<(usize, u32), u32> = BTreeMap::new();
        let mut sorted: Vec<&Atom> = clause.iter().collect();
        let head = |event: EventId| lines.events(lines.line(event))[0];
        sorted.sort_by_key(|atom| (head(atom.before), head(atom.after), **atom));
        let mut mark = |event: EventId| {
            let next = marks.len() as u32;
            *marks.entry((thread(event), lines.iteration(event))).or_insert(next)
        };
        let atoms: Vec<LineAtom> = sorted
            .into_iter()
            .map(|atom| LineAtom {
                before: head(atom.before),
                before_mark: mark(atom.before),
                after: head(atom.after),
                after_mark: mark(atom.after),
            })
            .collect();
        patterns
            .entry(atoms.clone())
            .and_modify(|pattern| pattern.count += 1)
            .or_insert_with(|| LinePattern { atoms, count: 1, example: clause.clone() });
    }
    patterns.into_values().collect()
}
