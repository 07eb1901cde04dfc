//! All bad interleavings, found by one search that learns.
//!
//! Depth-first search over runs; a run that fails outside the formula found so far is handed to
//! the caller, who generalises it to a new disjunct; the search goes on. A subtree is left as soon
//! as a disjunct holds. What makes this fast: for each state the search remembers *which* disjuncts
//! covered the failures below it. When the state comes again by another history, and none of those
//! disjuncts has been violated on the way, everything below is covered again. (Whether an atom with
//! two future events will hold depends on the future only, so equal states with the same live
//! disjuncts have equal futures.)

use std::collections::HashMap;
use std::rc::Rc;

use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

use super::explore::Run;
use super::system::{State, StepId, System};
use crate::formula::Atom;

/// How a search for all bad interleavings ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// Every failing run satisfies a disjunct.
    Complete,
    /// The budget ran out.
    Budget,
    /// A condition over inputs was not decided.
    Undecided,
    /// The caller stopped the search.
    Stopped,
}

struct Disjunct {
    atoms: Vec<(StepId, StepId)>,
    satisfied: usize,
    violated: usize,
}

struct Frame {
    state: Rc<State>,
    step: Option<StepId>,
    choices: Vec<StepId>,
    next: usize,
    /// Disjuncts that covered failures below.
    reasons: FixedBitSet,
}

/// The search.
pub(crate) struct Cover<'a> {
    system: &'a mut System,
    disjuncts: Vec<Disjunct>,
    /// By step: disjunct and atom.
    mentions: HashMap<StepId, Vec<(usize, usize)>>,
    violated: FixedBitSet,
    /// Disjuncts that hold where the search stands.
    holding: FixedBitSet,
    known: FxHashMap<Rc<State>, Vec<FixedBitSet>>,
    /// Steps visited.
    pub(crate) visited: u64,
}

/// At most so many reasons are kept for one state.
const REASONS_PER_STATE: usize = 6;

impl<'a> Cover<'a> {
    pub(crate) fn new(system: &'a mut System) -> Self {
        Self {
            system,
            disjuncts: Vec::new(),
            mentions: HashMap::new(),
            violated: FixedBitSet::new(),
            holding: FixedBitSet::new(),
            known: FxHashMap::default(),
            visited: 0,
        }
    }

    /// Adds a disjunct; `state` is where the search stands, `order` the steps taken so far.
    pub(crate) fn add(&mut self, atoms: &[Atom], place: &[Option<usize>]) {
        let number = self.disjuncts.len();
        self.violated.grow(number + 1);
        self.holding.grow(number + 1);
        let atoms: Vec<(StepId, StepId)> =
            atoms.iter().map(|&atom| self.system.step_atom(atom)).collect();
        let mut disjunct = Disjunct { satisfied: 0, violated: 0, atoms };
        for (at, &(before, after)) in disjunct.atoms.iter().enumerate() {
            self.mentions.entry(before).or_default().push((number, at));
            self.mentions.entry(after).or_default().push((number, at));
            match (place[before], place[after]) {
                (Some(a), Some(b)) if a > b => disjunct.violated += 1,
                (None, Some(_)) => disjunct.violated += 1,
                (Some(_), _) => disjunct.satisfied += 1,
                (None, None) => {}
            }
        }
        if disjunct.violated > 0 {
            self.violated.insert(number);
        }
        self.disjuncts.push(disjunct);
        self.note(number);
    }

    /// Does the disjunct hold now?
    fn note(&mut self, number: usize) {
        let disjunct = &self.disjuncts[number];
        let holds = disjunct.violated == 0 && disjunct.satisfied == disjunct.atoms.len();
        self.holding.set(number, holds);
    }

    /// Runs the search. `generalise` gets each failing run outside the formula and gives disjuncts,
    /// the first of which holds of it (each atom's first event is in the run), or `None` to stop.
    pub(crate) fn run(
        &mut self,
        budget: u64,
        mut generalise: impl FnMut(&mut System, &Run) -> Option<Vec<Vec<Atom>>>,
    ) -> Coverage {
        let undecided = self.system.inputs.undecided();
        let Some(initial) = self.system.initial_state() else { return Coverage::Complete };
        let mut place: Vec<Option<usize>> = vec![None; self.system.steps.len()];
        let mut order: Vec<StepId> = Vec::new();
        let mut frames = vec![self.frame(initial, None)];
        while let Some(frame) = frames.last_mut() {
            // a disjunct that was learnt below may hold already here
            let held = self.holding.minimum();
            if let Some(last) = held {
                frame.reasons.grow_and_insert(last);
                frame.next = frame.choices.len();
            }
            if frame.next == frame.choices.len() {
                let frame = frames.pop().expect("not empty");
                if held.is_none() {
                    let reasons = self.known.entry(frame.state).or_default();
                    if reasons.len() < REASONS_PER_STATE {
                        reasons.push(frame.reasons.clone());
                    }
                }
                if let Some(step) = frame.step {
                    order.pop();
                    place[step] = None;
                    self.unmark(step, &place);
                }
                if let Some(parent) = frames.last_mut() {
                    parent.reasons.union_with(&frame.reasons);
                }
                continue;
            }
            let step = frame.choices[frame.next];
            frame.next += 1;
            self.visited += 1;
            if self.visited > budget {
                return Coverage::Budget;
            }
            let state = Rc::clone(&frame.state);
            let taken = self.system.take(&state, step);
            if taken.next.is_none() && taken.failure.is_none() {
                continue;
            }
            place[step] = Some(order.len());
            order.push(step);
            let mut cover = self.mark(step, &place);
            if let Some(failure) = taken.failure
                && cover.is_none()
            {
                let run = Run { steps: order.clone(), failure: Some(failure), state };
                let Some(new) = generalise(self.system, &run) else { return Coverage::Stopped };
                cover = Some(self.disjuncts.len());
                new.iter().for_each(|atoms| self.add(atoms, &place));
                debug_assert!(cover.is_some_and(|number| self.holding.contains(number)));
            }
            let mut descend = None;
            if let Some(number) = cover {
                frame.reasons.grow_and_insert(number);
            } else if let Some(next) = taken.next {
                let violated = &self.violated;
                let remembered = self.known.get(&next).and_then(|reasons| {
                    reasons.iter().find(|reasons| reasons.is_disjoint(violated))
                });
                match remembered {
                    Some(reasons) => frame.reasons.union_with(reasons),
                    None => descend = Some(next),
                }
            }
            match descend {
                Some(next) => {
                    let new = self.frame(next, Some(step));
                    frames.push(new);
                }
                None => {
                    order.pop();
                    place[step] = None;
                    self.unmark(step, &place);
                }
            }
        }
        match self.system.inputs.undecided() > undecided {
            true => Coverage::Undecided,
            false => Coverage::Complete,
        }
    }

    fn frame(&mut self, state: State, step: Option<StepId>) -> Frame {
        let system = &self.system;
        let mut choices = Vec::new();
        for thread in 0..system.threads.len() {
            let Some(next) = system.next_step(&state, thread) else { continue };
            if system.predecessors[next].iter().all(|&other| system.taken(&state, other)) {
                choices.push(next);
            }
        }
        // steps that nobody notices are taken at once; a blocked one stays blocked for ever
        let mut hidden = None;
        for &choice in &choices {
            if !self.system.steps[choice].visible {
                let taken = self.system.take(&state, choice);
                if taken.next.is_some() {
                    hidden = Some(choice);
                    break;
                }
            }
        }
        if let Some(hidden) = hidden {
            choices = vec![hidden];
        }
        Frame { state: Rc::new(state), step, choices, next: 0, reasons: FixedBitSet::new() }
    }

    /// The step was taken; gives a disjunct that now holds.
    fn mark(&mut self, step: StepId, place: &[Option<usize>]) -> Option<usize> {
        let mut holds = None;
        let mentions = self.mentions.remove(&step).unwrap_or_default();
        for &(number, at) in &mentions {
            let disjunct = &mut self.disjuncts[number];
            let (before, after) = disjunct.atoms[at];
            if before == step && place[after].is_none() {
                disjunct.satisfied += 1;
            } else if after == step && place[before].is_none() {
                disjunct.violated += 1;
                self.violated.insert(number);
            }
            self.note(number);
            if self.holding.contains(number) {
                holds = Some(number);
            }
        }
        self.mentions.insert(step, mentions);
        holds
    }

    /// The step, the last one taken, is taken back (`place` has it no more).
    fn unmark(&mut self, step: StepId, place: &[Option<usize>]) {
        let mentions = self.mentions.remove(&step).unwrap_or_default();
        for &(number, at) in &mentions {
            let disjunct = &mut self.disjuncts[number];
            let (before, after) = disjunct.atoms[at];
            if before == step && place[after].is_none() {
                disjunct.satisfied -= 1;
            } else if after == step && place[before].is_none() {
                disjunct.violated -= 1;
                if disjunct.violated == 0 {
                    self.violated.remove(number);
                }
            }
            self.note(number);
        }
        self.mentions.insert(step, mentions);
    }
}
