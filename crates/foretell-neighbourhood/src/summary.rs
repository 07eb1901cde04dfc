//! Bug summaries: which known kind of concurrency bug a bad neighbourhood shows (001 section 4).
//!
//! The rules of Fig. 4 are tried on each disjunct in the paper's order: data race, atomicity violation,
//! two-stage access, define-use. Three refinements keep them from naming a bug that is not there.
//! Define-use asks for a *failing* run in which the use comes before every definition (the paper: for
//! any permutation; that is why TARA calls usb_serial-1 a define-use bug), and a step that updates the
//! variable it reads (`v := v + 1`) defines nothing. Two-stage access asks for data reads: a guard that
//! was waiting for the first write is the announcement of a define-use bug. Where no rule fits, the
//! disjunct is an order violation, said as such.

use std::collections::BTreeSet;

use foretell_trace::EventId;

use crate::engine::explore::{Found, Goal, Search};
use crate::engine::system::System;
use crate::formula::{Atom, HbFormula};
use crate::limits::DEFINE_USE_STATES;
use crate::lines::Lines;

/// The kinds of bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BugKind {
    /// A read and a write that belong together, with another access in between.
    DataRace,
    /// Accesses of one variable that should not be interrupted.
    AtomicityViolation,
    /// Two variables that belong together, seen half changed.
    TwoStageAccess,
    /// Used before it was defined.
    DefineUse,
    /// None of these: an order that must not be.
    OrderViolation,
}

/// One summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BugSummary {
    /// The kind.
    pub kind: BugKind,
    /// The first thread's events: one, or the first and last of a stretch.
    pub first: Vec<EventId>,
    /// The other thread's events.
    pub second: Vec<EventId>,
    /// The variables it is about, by number in the program.
    pub variables: Vec<usize>,
    /// The atoms that show it; for an order violation the one edge that must not be.
    pub atoms: Vec<Atom>,
    /// How many disjuncts say the same (by source line).
    pub count: usize,
}

struct Rules<'a> {
    system: &'a mut System,
    shared: Vec<bool>,
}

/// Summaries of a bad neighbourhood in disjunctive form, duplicates merged.
pub(crate) fn summarise(system: &mut System, bad: &HbFormula, lines: &Lines) -> Vec<BugSummary> {
    let shared = shared_variables(system);
    let mut rules = Rules { system, shared };
    let mut summaries: Vec<BugSummary> = Vec::new();
    for disjunct in bad.clauses() {
        let summary = rules.classify(disjunct);
        let by_line = |events: &[EventId]| -> Vec<usize> {
            events.iter().map(|&event| lines.line(event)).collect()
        };
        let same = summaries.iter_mut().find(|other| {
            other.kind == summary.kind
                && other.variables == summary.variables
                && by_line(&other.first) == by_line(&summary.first)
                && by_line(&other.second) == by_line(&summary.second)
        });
        match same {
            Some(other) => other.count += 1,
            None => summaries.push(summary),
        }
    }
    summaries.sort_by(|a, b| (a.kind, &a.first, &a.second).cmp(&(b.kind, &b.first, &b.second)));
    summaries
}

fn shared_variables(system: &System) -> Vec<bool> {
    let mut threads: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); system.variable_count];
    for (event, accesses) in system.accesses.iter().enumerate() {
        for &variable in accesses.reads.iter().chain(&accesses.writes) {
            threads[variable].insert(system.known.thread(EventId::from(event)));
        }
    }
    threads.iter().map(|threads| threads.len() > 1).collect()
}

impl Rules<'_> {
    fn reads(&self, event: EventId) -> BTreeSet<usize> {
        let reads = self.system.accesses[event.index()].reads.iter().copied();
        reads.filter(|&variable| self.shared[variable]).collect()
    }

    fn writes(&self, event: EventId) -> BTreeSet<usize> {
        let writes = self.system.accesses[event.index()].writes.iter().copied();
        writes.filter(|&variable| self.shared[variable]).collect()
    }

    fn accesses(&self, event: EventId) -> BTreeSet<usize> {
        &self.reads(event) | &self.writes(event)
    }

    /// In program order, and not the same event.
    fn in_order(&self, first: EventId, second: EventId) -> bool {
        let known = &self.system.known;
        known.thread(first) == known.thread(second)
            && known.position(first) < known.position(second)
    }

    fn classify(&mut self, disjunct: &[Atom]) -> BugSummary {
        self.data_race(disjunct)
            .or_else(|| self.atomicity_violation(disjunct))
            .or_else(|| self.two_stage_access(disjunct))
            .or_else(|| self.define_use(disjunct))
            .unwrap_or_else(|| self.order_violation(disjunct))
    }

    /// All ordered pairs of different atoms.
    fn pairs<'d>(disjunct: &'d [Atom]) -> impl Iterator<Item = (Atom, Atom)> + 'd {
        disjunct
            .iter()
            .flat_map(move |&a| disjunct.iter().filter(move |&&b| b != a).map(move |&b| (a, b)))
    }

    fn data_race(&self, disjunct: &[Atom]) -> Option<BugSummary> {
        self.interrupted(BugKind::DataRace, disjunct, |rules, from, to| {
            &rules.reads(from) & &rules.writes(to)
        })
    }

    fn atomicity_violation(&self, disjunct: &[Atom]) -> Option<BugSummary> {
        self.interrupted(BugKind::AtomicityViolation, disjunct, |rules, from, to| {
            &rules.accesses(from) & &rules.accesses(to)
        })
    }

    /// Rules 1 and 2 of data races and atomicity violations; `stretch` gives the variables that a
    /// first and a last event of one thread hold together.
    fn interrupted(
        &self,
        kind: BugKind,
        disjunct: &[Atom],
        stretch: impl Fn(&Self, EventId, EventId) -> BTreeSet<usize>,
    ) -> Option<BugSummary> {
        for (one, two) in Self::pairs(disjunct) {
            // hb(T1[l'], T2[l]) ∧ hb(T2[l], T1[l''])
            if one.after == two.before && self.in_order(one.before, two.after) {
                let held = stretch(self, one.before, two.after);
                let common = &held & &self.accesses(one.after);
                if !common.is_empty() {
                    return Some(BugSummary {
                        kind,
                        first: vec![one.before, two.after],
                        second: vec![one.after],
                        variables: common.into_iter().collect(),
                        atoms: vec![one, two],
                        count: 1,
                    });
                }
            }
        }
        for (one, two) in Self::pairs(disjunct) {
            // hb(T1[l1'], T2[l2'']) ∧ hb(T2[l2'], T1[l1''])
            if self.in_order(one.before, two.after) && self.in_order(two.before, one.after) {
                let here = stretch(self, one.before, two.after);
                let there = stretch(self, two.before, one.after);
                let common = &here & &there;
                if !common.is_empty() {
                    let mut stretches = [[one.before, two.after], [two.before, one.after]];
                    stretches.sort();
                    return Some(BugSummary {
                        kind,
                        first: stretches[0].to_vec(),
                        second: stretches[1].to_vec(),
                        variables: common.into_iter().collect(),
                        atoms: vec![one, two],
                        count: 1,
                    });
                }
            }
        }
        None
    }

    fn two_stage_access(&self, disjunct: &[Atom]) -> Option<BugSummary> {
        for (one, two) in Self::pairs(disjunct) {
            // hb(T1[l1], T2[l2]) ∧ hb(T2[l2'], T1[l1'])
            if !self.in_order(one.before, two.after) || !self.in_order(one.after, two.before) {
                continue;
            }
            let data_read = |event: EventId| {
                let guard: BTreeSet<usize> =
                    self.system.accesses[event.index()].guard.iter().copied().collect();
                &self.reads(event) - &guard
            };
            let cases = [
                // 1: the writer is seen between its two writes
                (
                    &self.writes(one.before) & &data_read(one.after),
                    &self.writes(two.after) & &data_read(two.before),
                ),
                // 2: the reader reads one before and one after
                (
                    &data_read(one.before) & &self.writes(one.after),
                    &data_read(two.after) & &self.writes(two.before),
                ),
            ];
            for (v, w) in cases {
                let different = v.iter().flat_map(|v| w.iter().map(move |w| (*v, *w)));
                if let Some((v, w)) = different.into_iter().find(|(v, w)| v != w) {
                    return Some(BugSummary {
                        kind: BugKind::TwoStageAccess,
                        first: vec![one.before, two.after],
                        second: vec![one.after, two.before],
                        variables: vec![v, w],
                        atoms: vec![one, two],
                        count: 1,
                    });
                }
            }
        }
        None
    }

    fn define_use(&mut self, disjunct: &[Atom]) -> Option<BugSummary> {
        for &atom in disjunct {
            let (used, defines) = (self.reads(atom.before), self.writes(atom.after));
            for variable in &used & &defines {
                let updates = self.system.accesses[atom.after.index()].reads.contains(&variable);
                if !updates && self.fails_before_every_definition(disjunct, atom.before, variable) {
                    return Some(BugSummary {
                        kind: BugKind::DefineUse,
                        first: vec![atom.before],
                        second: vec![atom.after],
                        variables: vec![variable],
                        atoms: vec![atom],
                        count: 1,
                    });
                }
            }
        }
        None
    }

    fn fails_before_every_definition(
        &mut self,
        disjunct: &[Atom],
        reader: EventId,
        variable: usize,
    ) -> bool {
        let mut constraints = disjunct.to_vec();
        for (event, accesses) in self.system.accesses.iter().enumerate() {
            let event = EventId::from(event);
            if event != reader && accesses.writes.contains(&variable) {
                let atom = Atom::new(reader, event);
                if self.system.known.implies(atom.negated()) {
                    return false;
                }
                constraints.push(atom);
            }
        }
        if self.system.known.has_cycle(&constraints) {
            return false;
        }
        matches!(
            Search::new(self.system, &constraints, Goal::Bad).run(DEFINE_USE_STATES),
            Found::Run(_)
        )
    }

    fn order_violation(&self, disjunct: &[Atom]) -> BugSummary {
        // the edge to name: one that reads what the other writes, else the last
        let reads_write = |atom: &&Atom| {
            !self.reads(atom.before).is_disjoint(&self.writes(atom.after))
                || !self.writes(atom.before).is_disjoint(&self.reads(atom.after))
        };
        let edge = disjunct.iter().find(reads_write).or(disjunct.last()).copied();
        let variables = edge.map_or(Vec::new(), |edge| {
            (&self.accesses(edge.before) & &self.accesses(edge.after)).into_iter().collect()
        });
        BugSummary {
            kind: BugKind::OrderViolation,
            first: edge.iter().map(|edge| edge.before).collect(),
            second: edge.iter().map(|edge| edge.after).collect(),
            variables,
            atoms: edge.into_iter().collect(),
            count: 1,
        }
    }
}
