//! Whether a good run satisfies a set of constraints, and the smallest sets that none satisfies.

use std::collections::{HashMap, HashSet};

use fixedbitset::FixedBitSet;
use foretell_trace::EventId;

use super::{Limits, Work};
use crate::engine::abstract_run;
use crate::engine::explore::{Found, Goal, Search};
use crate::engine::system::{StepId, System};
use crate::formula::Atom;

/// Answers "does every run under these constraints miss the goal?", remembering runs.
pub(crate) struct Oracle {
    goal: Goal,
    limit: u64,
    /// Complete runs that reach the goal: the place of each step.
    known: Vec<Vec<u32>>,
    /// By pair of steps: the known runs in which the first comes before the second.
    holding: HashMap<(StepId, StepId), FixedBitSet>,
    pub(crate) work: Work,
}

/// So many atoms are tried alone.
const SINGLES: usize = 80;

/// So many of those that have no quick answer are explored at once.
const EXPLORED_SINGLES: usize = 2;

/// So many of the most important atoms are tried in pairs.
const PAIRED: usize = 24;

/// So many good runs are remembered.
const KNOWN_RUNS: usize = 4096;

impl Oracle {
    pub(crate) fn new(goal: Goal, limits: &Limits) -> Self {
        Self {
            goal,
            limit: limits.states_per_search,
            known: Vec::new(),
            holding: HashMap::new(),
            work: Work::default(),
        }
    }

    /// Runs found so far prove nothing for another system.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.holding.clear();
    }

    fn refuted_by_known_run(&mut self, system: &System, atoms: &[Atom]) -> bool {
        let mut common = FixedBitSet::with_capacity(self.known.len());
        common.insert_range(..);
        for &atom in atoms {
            let pair = system.step_atom(atom);
            if pair.0 == pair.1 {
                continue;
            }
            let known = &self.known;
            let holding = self.holding.entry(pair).or_insert_with(|| {
                let mut set = FixedBitSet::with_capacity(known.len());
                for (number, place) in known.iter().enumerate() {
                    set.set(number, place[pair.0] < place[pair.1]);
                }
                set
            });
            common.intersect_with(holding);
        }
        !common.is_clear()
    }

    /// Like [`Oracle::excludes`], but gives up where only a long exploration would tell.
    pub(super) fn excludes_cheaply(&mut self, system: &mut System, atoms: &[Atom]) -> bool {
        self.quick_answer(system, atoms).unwrap_or(false)
    }

    /// Known runs, a short exploration, and the abstract run.
    fn quick_answer(&mut self, system: &mut System, atoms: &[Atom]) -> Option<bool> {
        self.work.questions += 1;
        if self.refuted_by_known_run(system, atoms) {
            self.work.by_known_run += 1;
            return Some(false);
        }
        let short = 2 * system.steps.len() as u64 + 20;
        if let Some(answer) = self.explore(system, atoms, short) {
            return Some(answer);
        }
        if self.goal == Goal::Good && abstract_run::excludes_good_runs(system, atoms) {
            self.work.by_abstract_run += 1;
            return Some(true);
        }
        None
    }

    pub(super) fn explore(
        &mut self,
        system: &mut System,
        atoms: &[Atom],
        limit: u64,
    ) -> Option<bool> {
        let mut search = Search::new(system, atoms, self.goal);
        let found = search.run(limit);
        self.work.visited += search.visited;
        match found {
            Found::Unknown => None,
            Found::Nothing => {
                self.work.by_exploration += 1;
                Some(true)
            }
            Found::Run(run) => {
                self.work.by_exploration += 1;
                if system.is_complete(&run.state) {
                    self.remember(system, &run.steps);
                }
                Some(false)
            }
        }
    }

    /// True only if it is certain that no run under the atoms reaches the goal.
    pub(crate) fn excludes(&mut self, system: &mut System, atoms: &[Atom]) -> bool {
        match self.quick_answer(system, atoms) {
            Some(answer) => answer,
            None => self.explore(system, atoms, self.limit).unwrap_or(false),
        }
    }

    fn remember(&mut self, system: &System, steps: &[StepId]) {
        if self.known.len() >= KNOWN_RUNS {
            return;
        }
        let mut place = vec![0; system.steps.len()];
        for (at, &step) in steps.iter().enumerate() {
            place[step] = at as u32;
        }
        let number = self.known.len();
        for (&(a, b), set) in &mut self.holding {
            set.grow(number + 1);
            set.set(number, place[a] < place[b]);
        }
        self.known.push(place);
    }

    /// A subset of the atoms that still excludes, from which nothing can be left out. `atoms` have
    /// the least important first. One or two atoms that the abstract run finds enough are taken at
    /// once; else blocks are left out, then single atoms, and for small sets any one or two atoms
    /// that are enough alone are looked for.
    pub(crate) fn minimise(&mut self, system: &mut System, atoms: &[Atom]) -> Vec<Atom> {
        if self.excludes_cheaply(system, &[]) {
            return Vec::new();
        }
        let mut open = Vec::new();
        for &atom in atoms.iter().rev().take(SINGLES) {
            match self.quick_answer(system, &[atom]) {
                Some(true) => return vec![atom],
                Some(false) => {}
                None => open.push(atom),
            }
        }
        for atom in open.into_iter().take(EXPLORED_SINGLES) {
            if self.excludes(system, &[atom]) {
                return vec![atom];
            }
        }
        if let Some(pair) = self.cheap_pair(system, atoms) {
            let mut pair = pair.to_vec();
            pair.dedup();
            return pair;
        }
        let mut kept = atoms.to_vec();
        let mut size = (kept.len() / 2).max(1);
        loop {
            let mut at = 0;
            while at < kept.len() {
                let end = (at + size).min(kept.len());
                let mut fewer = kept[..at].to_vec();
                fewer.extend_from_slice(&kept[end..]);
                if self.excludes(system, &fewer) {
                    kept = fewer;
                } else {
                    at = end;
                }
            }
            if size == 1 {
                break;
            }
            size /= 2;
        }
        if kept.len() >= 2 && atoms.len() <= SINGLES {
            for &atom in atoms.iter().rev() {
                if self.excludes(system, &[atom]) {
                    return vec![atom];
                }
            }
        }
        if kept.len() >= 3 && atoms.len() <= 32 {
            for (number, &first) in atoms.iter().enumerate().rev() {
                for &second in atoms[..number].iter().rev() {
                    if self.excludes(system, &[first, second]) {
                        return vec![first, second];
                    }
                }
            }
        }
        kept
    }

    /// Two of the most important atoms that the abstract run finds enough, while neither is alone.
    /// Where there are none among many, atoms that others imply are left out: a loop gives one for
    /// each iteration, which pushes the few that matter out.
    fn cheap_pair(&mut self, system: &mut System, atoms: &[Atom]) -> Option<[Atom; 2]> {
        let most_important = |atoms: &[Atom]| atoms[atoms.len().saturating_sub(PAIRED)..].to_vec();
        let pair = self.pair_among(system, &most_important(atoms));
        if pair.is_some() || atoms.len() <= PAIRED {
            return pair;
        }
        let strongest = system.known.simplify_conjunction(atoms)?;
        let strongest: HashSet<Atom> = strongest.into_iter().collect();
        let mut atoms = atoms.to_vec();
        atoms.retain(|atom| strongest.contains(atom));
        self.pair_among(system, &most_important(&atoms))
    }

    fn pair_among(&mut self, system: &mut System, atoms: &[Atom]) -> Option<[Atom; 2]> {
        for (number, &first) in atoms.iter().enumerate().rev() {
            for &second in atoms[..number].iter().rev() {
                if self.excludes_cheaply(system, &[first, second]) {
                    // one alone may be enough, which only exploration sees
                    for atom in [first, second] {
                        if self.excludes(system, &[atom]) {
                            return Some([atom, atom]);
                        }
                    }
                    return Some([first, second]);
                }
            }
        }
        None
    }

    /// Moves atoms to earlier and later events of the same threads as long as the set excludes:
    /// `hb(e, f)` becomes `hb(e', f')` with `e'` before `e` and `f'` after `f`, the two still
    /// conflicting. Fewer, more general disjuncts are the result.
    pub(crate) fn weaken(&mut self, system: &mut System, atoms: &[Atom]) -> Vec<Atom> {
        let mut kept = atoms.to_vec();
        for at in 0..kept.len() {
            loop {
                let mut moved = false;
                for weaker in weaker_atoms(system, kept[at]) {
                    let mut candidate = kept.clone();
                    candidate[at] = weaker;
                    if self.excludes(system, &candidate) {
                        kept = candidate;
                        moved = true;
                        break;
                    }
                }
                if !moved {
                    break;
                }
            }
        }
        system.known.simplify_conjunction(&kept).unwrap_or(kept)
    }
}

/// Atoms implied by this one that relate conflicting events: one end moved to the nearest such
/// event.
fn weaker_atoms(system: &System, atom: Atom) -> Vec<Atom> {
    let events = |event: EventId| -> Vec<EventId> {
        let thread = &system.threads[system.known.thread(event)];
        thread.iter().flat_map(|&step| system.steps[step].events.iter().copied()).collect()
    };
    let mut weaker = Vec::new();
    let place = system.known.position(atom.before) as usize;
    let earlier = events(atom.before)[..place].to_vec();
    weaker.extend(
        earlier
            .into_iter()
            .rev()
            .find(|&event| system.dependent(event, atom.after))
            .map(|event| Atom::new(event, atom.after)),
    );
    let place = system.known.position(atom.after) as usize;
    weaker.extend(
        events(atom.after)[place + 1..]
            .iter()
            .find(|&&event| system.dependent(event, atom.before))
            .map(|&event| Atom::new(atom.before, event)),
    );
    weaker.retain(|&atom| !system.known.implies(atom));
    weaker
}
