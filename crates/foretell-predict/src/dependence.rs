//! Guarded independence (000 Definition 2): when swapping two accesses of a variable changes
//! nothing, whatever else happens.
//!
//! For `x` and two events, the first in state `s`:
//! - a read and a later write of `e`: dependent unless `x = e` in the state the read saw; where `x`
//!   stands in a condition, unless the condition comes out the same with `e`; where `x` is an
//!   array, unless the element comes out the same (so other indices are independent);
//! - a write of `e` and a later read: the same with the value of `x` before the write;
//! - two writes: dependent unless both orders leave the same value. For plain values this is
//!   `e₁ = e₂` (`x = 5` against `x = 5`), for arrays also different indices, and two atomic
//!   increments commute.
//!
//! One deviation, on purpose: where a written value was computed from an earlier read of the same
//! variable by the same thread, two writes are dependent even if the values happen to be equal.
//! Definition 2 by itself calls `t = x; x = t + 1` in two threads independent (both write 1), and
//! the lost update would never be seen.
//!
//! Pointers need no rule of their own: a recorded access is of one location, and the guard of the
//! event keeps its address at that.

use std::collections::{BTreeSet, HashMap};

use foretell_model::ctp::{Action, ConcurrentTraceProgram};
use foretell_trace::{EventId, Operator, Scope, Term, TermId, VariableId};

use crate::goal::{Goal, GoalBuilder, Moment, is_array, is_shared_data};
use crate::pattern::PatternKind;

/// What an event does to data.
#[derive(Clone, Debug, Default)]
struct Uses {
    /// Guard or assertion.
    conditions: Vec<TermId>,
    /// Right-hand sides.
    right: Vec<TermId>,
    /// Assigned variables.
    written: Vec<(VariableId, TermId)>,
}

impl Uses {
    /// `None` for a transition predicate: it has no right-hand sides.
    fn of(ctp: &ConcurrentTraceProgram, event: EventId) -> Option<Self> {
        Some(match &ctp.event(event).action {
            Action::Guarded { guard, assignments } => Self {
                conditions: vec![*guard],
                right: assignments
                    .iter()
                    .flat_map(|&(target, term)| used_terms(ctp, target, term))
                    .collect(),
                written: assignments.clone(),
            },
            Action::Assert { condition } => {
                Self { conditions: vec![*condition], ..Self::default() }
            }
            Action::Transition { .. } => return None,
        })
    }

    fn write_of(&self, variable: VariableId) -> Option<TermId> {
        self.written.iter().find(|(written, _)| *written == variable).map(|&(_, term)| term)
    }

    fn variables(&self, ctp: &ConcurrentTraceProgram, writes: bool) -> BTreeSet<VariableId> {
        if writes {
            return self.written.iter().map(|&(variable, _)| variable).collect();
        }
        let terms = self.conditions.iter().chain(&self.right);
        terms.flat_map(|&term| variables_in(ctp, term)).collect()
    }
}

/// What an assignment uses: storing an element uses index and value, not the other elements.
fn used_terms(ctp: &ConcurrentTraceProgram, target: VariableId, term: TermId) -> Vec<TermId> {
    match ctp.terms.term(term) {
        Term::Apply(Operator::Store, parts)
            if *ctp.terms.term(parts[0]) == Term::Variable(target) =>
        {
            parts[1..].to_vec()
        }
        _ => vec![term],
    }
}

fn variables_in(ctp: &ConcurrentTraceProgram, term: TermId) -> Vec<VariableId> {
    let leaves = ctp.terms.leaves(term);
    let variable = |leaf: TermId| match ctp.terms.term(leaf) {
        Term::Variable(variable) => Some(*variable),
        _ => None,
    };
    leaves.into_iter().filter_map(variable).collect()
}

/// For each thread's local variables at each write: from which shared variables the written value
/// was computed.
#[derive(Clone, Debug, Default)]
pub struct ComputedFrom {
    /// By event: shared variables that the event's right-hand sides know through locals.
    sources: HashMap<EventId, BTreeSet<VariableId>>,
}

impl ComputedFrom {
    /// Follows the locals of every thread.
    pub fn new(ctp: &ConcurrentTraceProgram) -> Self {
        let mut sources = HashMap::new();
        for chain in &ctp.threads {
            let mut locals: HashMap<VariableId, BTreeSet<VariableId>> = HashMap::new();
            for &event in chain {
                let Action::Guarded { assignments, .. } = &ctp.event(event).action else {
                    continue;
                };
                let mut updates = Vec::new();
                for &(target, term) in assignments {
                    let mut through_locals = BTreeSet::new();
                    let mut direct = BTreeSet::new();
                    for leaf in variables_in(ctp, term) {
                        if let Some(known) = locals.get(&leaf) {
                            through_locals.extend(known.iter().copied());
                        } else if is_shared_data(ctp, leaf) {
                            direct.insert(leaf);
                        }
                    }
                    if ctp.variables[target.index()].scope == Scope::Shared {
                        if !through_locals.is_empty() {
                            sources
                                .entry(event)
                                .or_insert_with(BTreeSet::new)
                                .extend(through_locals);
                        }
                    } else {
                        through_locals.extend(direct);
                        updates.push((target, through_locals));
                    }
                }
                locals.extend(updates);
            }
        }
        Self { sources }
    }

    fn contains(&self, event: EventId, variable: VariableId) -> bool {
        self.sources.get(&event).is_some_and(|sources| sources.contains(&variable))
    }
}

/// The goal of a three-access pattern: the events take place in this order, and neither neighbour
/// is independent of the remote access. `None` when an event is a transition predicate.
pub fn pattern_goal(
    ctp: &ConcurrentTraceProgram,
    computed_from: &ComputedFrom,
    [first, remote, second]: [EventId; 3],
    kind: PatternKind,
) -> Option<Goal> {
    let uses = [Uses::of(ctp, first)?, Uses::of(ctp, remote)?, Uses::of(ctp, second)?];
    let writes = kind.writes();
    let mut common = uses[0].variables(ctp, writes[0]);
    for (uses, writes) in uses.iter().zip(writes).skip(1) {
        let here = uses.variables(ctp, writes);
        common.retain(|variable| here.contains(variable));
    }
    common.retain(|&variable| is_shared_data(ctp, variable));
    let mut builder = PairBuilder { builder: GoalBuilder::new(ctp), computed_from };
    let mut violated = Vec::new();
    for variable in common {
        let one = builder.dependent(
            (first, &uses[0], writes[0]),
            (remote, &uses[1], writes[1]),
            variable,
        );
        let two = builder.dependent(
            (remote, &uses[1], writes[1]),
            (second, &uses[2], writes[2]),
            variable,
        );
        violated.push(builder.builder.terms.and(&[one, two]));
    }
    let mut builder = builder.builder;
    let violated = builder.terms.or(&violated);
    let before = builder.terms.before(first, remote);
    let after = builder.terms.before(remote, second);
    let taken = builder.taken(second);
    let formula = builder.terms.and(&[before, after, taken, violated]);
    Some(builder.finish(formula))
}

struct PairBuilder<'c> {
    builder: GoalBuilder<'c>,
    computed_from: &'c ComputedFrom,
}

type Step<'u> = (EventId, &'u Uses, bool);

impl PairBuilder<'_> {
    /// `¬c_G` of the earlier and the later event for the variable.
    fn dependent(&mut self, earlier: Step<'_>, later: Step<'_>, variable: VariableId) -> TermId {
        match (earlier, later) {
            ((_, _, false), (_, _, false)) => self.builder.terms.bool(false),
            ((reader, uses, false), (writer, writes, true)) => {
                let before = self.builder.value(Moment::Before(reader), variable);
                let after = self.written(writer, writes, variable, None);
                self.read_changes(reader, uses, variable, before, after)
            }
            ((writer, writes, true), (reader, uses, false)) => {
                let before = self.builder.value(Moment::Before(writer), variable);
                let after = self.written(writer, writes, variable, None);
                self.read_changes(reader, uses, variable, before, after)
            }
            ((one, one_writes, true), (two, two_writes, true)) => {
                self.writes_change((one, one_writes), (two, two_writes), variable)
            }
        }
    }

    /// What the event writes to the variable, if the variable has the given value before.
    fn written(
        &mut self,
        event: EventId,
        uses: &Uses,
        variable: VariableId,
        before: Option<TermId>,
    ) -> TermId {
        let term = uses.write_of(variable).expect("the event writes the variable");
        let replaced = before.map(|before| (variable, before));
        self.builder.at(Moment::Before(event), term, replaced)
    }

    /// Does what the reader does with the variable differ for the two values?
    fn read_changes(
        &mut self,
        reader: EventId,
        uses: &Uses,
        variable: VariableId,
        one: TermId,
        two: TermId,
    ) -> TermId {
        let ctp = self.builder.ctp();
        let mut changes = Vec::new();
        let scalar = !is_array(ctp.variables[variable.index()].sort);
        let mentions = |term: &TermId| variables_in(ctp, *term).contains(&variable);
        if scalar && uses.right.iter().any(mentions) {
            changes.push(self.builder.differ(one, two));
        }
        let right = if scalar { &[][..] } else { &uses.right[..] };
        for &term in uses.conditions.iter().chain(right).filter(|term| mentions(term)) {
            let moment = Moment::Before(reader);
            let with_one = self.builder.at(moment, term, Some((variable, one)));
            let with_two = self.builder.at(moment, term, Some((variable, two)));
            changes.push(self.builder.differ(with_one, with_two));
        }
        self.builder.terms.or(&changes)
    }

    /// Does the order of the two writes matter?
    fn writes_change(
        &mut self,
        (one, one_uses): (EventId, &Uses),
        (two, two_uses): (EventId, &Uses),
        variable: VariableId,
    ) -> TermId {
        if self.computed_from.contains(one, variable) || self.computed_from.contains(two, variable)
        {
            return self.builder.terms.bool(true);
        }
        let stores = (self.store(one, one_uses, variable), self.store(two, two_uses, variable));
        if let (Some((one_index, one_value)), Some((two_index, two_value))) = stores {
            let same_place = self.builder.terms.build(Operator::Eq, &[one_index, two_index]);
            let differ = self.builder.differ(one_value, two_value);
            return self.builder.terms.and(&[same_place, differ]);
        }
        let before = self.builder.value(Moment::Before(one), variable);
        let only_one = self.written(one, one_uses, variable, Some(before));
        let one_two = self.written(two, two_uses, variable, Some(only_one));
        let only_two = self.written(two, two_uses, variable, Some(before));
        let two_one = self.written(one, one_uses, variable, Some(only_two));
        self.builder.differ(one_two, two_one)
    }

    /// Index and value, when the event stores one element of the array.
    fn store(
        &mut self,
        event: EventId,
        uses: &Uses,
        variable: VariableId,
    ) -> Option<(TermId, TermId)> {
        let ctp = self.builder.ctp();
        let Term::Apply(Operator::Store, parts) = ctp.terms.term(uses.write_of(variable)?) else {
            return None;
        };
        let [array, index, value] = **parts else { return None };
        if *ctp.terms.term(array) != Term::Variable(variable) {
            return None;
        }
        let index = self.builder.at(Moment::Before(event), index, None);
        let value = self.builder.at(Moment::Before(event), value, None);
        Some((index, value))
    }
}
