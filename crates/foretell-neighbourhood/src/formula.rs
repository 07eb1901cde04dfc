//! HB-formulas: Boolean combinations of happens-before constraints (001 section 2.2).
//!
//! A formula is kept in disjunctive or conjunctive normal form. Simplification is relative to the
//! orders that every interleaving keeps anyway ([`KnownOrder`]: program order, fixed orders): an
//! atom that follows from its neighbours goes, a clause that follows from (or is absorbed by)
//! another goes, a conjunction with a cycle is false. Clauses and atoms are sorted, so equal
//! formulas print equally.

use std::collections::BTreeSet;

use foretell_trace::EventId;

/// `hb(before, after)`: the first event comes before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Atom {
    /// The earlier event.
    pub before: EventId,
    /// The later event.
    pub after: EventId,
}

impl Atom {
    /// `hb(before, after)`.
    pub fn new(before: EventId, after: EventId) -> Self {
        Self { before, after }
    }

    /// In a total order, the negation: the other way round.
    pub fn negated(self) -> Self {
        Self { before: self.after, after: self.before }
    }
}

/// Which normal form a formula is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NormalForm {
    /// A disjunction of conjunctions.
    Disjunctive,
    /// A conjunction of disjunctions.
    Conjunctive,
}

/// A formula in normal form. No clauses at all is false for a disjunction, true for a conjunction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HbFormula {
    form: NormalForm,
    clauses: Vec<Vec<Atom>>,
}

/// The order that every interleaving keeps: reachability over program order and fixed orders.
#[derive(Clone, Debug)]
pub struct KnownOrder {
    thread: Vec<usize>,
    position: Vec<u32>,
    /// `reaches[e][t]`: the first position in thread `t` that comes after event `e` (or is it).
    reaches: Vec<Vec<u32>>,
    cyclic: bool,
}

impl KnownOrder {
    /// From the events of each thread in program order and further pairs. Events are numbered
    /// densely from 0 over all threads. A cycle among the pairs makes all its events come before
    /// each other; [`KnownOrder::is_cyclic`] says so.
    pub fn new(threads: &[Vec<EventId>], orders: &[(EventId, EventId)]) -> Self {
        let count: usize = threads.iter().map(Vec::len).sum();
        let mut thread = vec![0; count];
        let mut position = vec![0; count];
        for (number, events) in threads.iter().enumerate() {
            for (place, event) in events.iter().enumerate() {
                thread[event.index()] = number;
                position[event.index()] = place as u32;
            }
        }
        let mut known = Self { thread, position, reaches: Vec::new(), cyclic: false };
        known.reaches = known.closure(threads, orders.iter().map(|&(a, b)| Atom::new(a, b)));
        known.cyclic = orders.iter().any(|&(a, b)| known.at_or_before(b, a));
        known
    }

    fn closure(
        &self,
        threads: &[Vec<EventId>],
        edges: impl Iterator<Item = Atom>,
    ) -> Vec<Vec<u32>> {
        let mut outgoing = vec![Vec::new(); self.thread.len()];
        for edge in edges {
            outgoing[edge.before.index()].push(edge.after);
        }
        let mut reaches = vec![vec![u32::MAX; threads.len()]; self.thread.len()];
        for (event, row) in reaches.iter_mut().enumerate() {
            row[self.thread[event]] = self.position[event];
        }
        loop {
            let mut changed = false;
            for events in threads {
                for (place, &event) in events.iter().enumerate().rev() {
                    let next = events.get(place + 1).copied();
                    for successor in outgoing[event.index()].iter().copied().chain(next) {
                        let through = reaches[successor.index()].clone();
                        for (mine, theirs) in reaches[event.index()].iter_mut().zip(through) {
                            if theirs < *mine {
                                *mine = theirs;
                                changed = true;
                            }
                        }
                    }
                }
            }
            if !changed {
                return reaches;
            }
        }
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.thread.len()
    }

    /// No events.
    pub fn is_empty(&self) -> bool {
        self.thread.is_empty()
    }

    /// The event's thread.
    pub fn thread(&self, event: EventId) -> usize {
        self.thread[event.index()]
    }

    /// The event's place in its thread.
    pub fn position(&self, event: EventId) -> u32 {
        self.position[event.index()]
    }

    /// Does the first event come before the second in every interleaving?
    pub fn implies(&self, atom: Atom) -> bool {
        atom.before != atom.after && self.at_or_before(atom.before, atom.after)
    }

    /// The same event, or before it in every interleaving.
    pub fn at_or_before(&self, before: EventId, after: EventId) -> bool {
        self.reaches[before.index()][self.thread[after.index()]] <= self.position[after.index()]
    }

    /// The fixed orders contradict each other: there is no interleaving.
    pub fn is_cyclic(&self) -> bool {
        self.cyclic
    }

    /// Does the conjunction of `premises` imply `atom`? A cyclic conjunction implies everything.
    pub fn follows(&self, premises: &[Atom], atom: Atom) -> bool {
        if self.implies(atom) {
            return true;
        }
        // a path before → p₁.before, p₁.after → p₂.before, …, → after
        let mut used = vec![false; premises.len()];
        let mut frontier = vec![atom.before];
        while let Some(at) = frontier.pop() {
            if at != atom.before && self.at_or_before(at, atom.after) {
                return true;
            }
            for (number, premise) in premises.iter().enumerate() {
                if !used[number] && self.at_or_before(at, premise.before) {
                    used[number] = true;
                    frontier.push(premise.after);
                }
            }
        }
        self.has_cycle(premises)
    }

    /// Do the atoms contradict each other or the known order?
    pub fn has_cycle(&self, atoms: &[Atom]) -> bool {
        // states: 0 unseen, 1 on the path, 2 done; nodes are atoms, an edge leads to an atom whose
        // first event is reached by the second event of the other
        fn visit(known: &KnownOrder, atoms: &[Atom], at: usize, state: &mut [u8]) -> bool {
            state[at] = 1;
            for next in 0..atoms.len() {
                if known.at_or_before(atoms[at].after, atoms[next].before)
                    && (state[next] == 1 || state[next] == 0 && visit(known, atoms, next, state))
                {
                    return true;
                }
            }
            state[at] = 2;
            false
        }
        let mut state = vec![0; atoms.len()];
        (0..atoms.len()).any(|at| state[at] == 0 && visit(self, atoms, at, &mut state))
    }

    /// Does one conjunction imply the other?
    pub fn conjunction_implies(&self, stronger: &[Atom], weaker: &[Atom]) -> bool {
        weaker.iter().all(|&atom| self.follows(stronger, atom))
    }

    /// The conjunction without atoms that follow from the others; `None` when it is false.
    pub fn simplify_conjunction(&self, atoms: &[Atom]) -> Option<Vec<Atom>> {
        let mut kept: Vec<Atom> = BTreeSet::from_iter(atoms.iter().copied())
            .into_iter()
            .filter(|&atom| !self.implies(atom))
            .collect();
        if self.has_cycle(&kept) || kept.iter().any(|atom| self.implies(atom.negated())) {
            return None;
        }
        let mut at = 0;
        while at < kept.len() {
            let atom = kept.remove(at);
            if !self.follows(&kept, atom) {
                kept.insert(at, atom);
                at += 1;
            }
        }
        Some(kept)
    }
}

impl HbFormula {
    /// The formula with these clauses, simplified.
    pub fn new(form: NormalForm, clauses: Vec<Vec<Atom>>, known: &KnownOrder) -> Self {
        let disjuncts = match form {
            NormalForm::Disjunctive => clauses,
            NormalForm::Conjunctive => negate_all(clauses),
        };
        // a disjunct that implies another is absorbed by it
        let mut simple: Vec<Vec<Atom>> =
            disjuncts.iter().filter_map(|atoms| known.simplify_conjunction(atoms)).collect();
        simple.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        simple.dedup();
        let mut kept: Vec<Vec<Atom>> = Vec::with_capacity(simple.len());
        for disjunct in simple {
            if kept.iter().any(|weaker| known.conjunction_implies(&disjunct, weaker)) {
                continue;
            }
            kept.retain(|stronger| !known.conjunction_implies(stronger, &disjunct));
            kept.push(disjunct);
        }
        kept.sort();
        let mut clauses = match form {
            NormalForm::Disjunctive => kept,
            NormalForm::Conjunctive => negate_all(kept),
        };
        for clause in &mut clauses {
            clause.sort();
        }
        clauses.sort();
        Self { form, clauses }
    }

    /// False, as a disjunction.
    pub fn never() -> Self {
        Self { form: NormalForm::Disjunctive, clauses: Vec::new() }
    }

    /// The normal form.
    pub fn form(&self) -> NormalForm {
        self.form
    }

    /// Disjuncts or conjuncts.
    pub fn clauses(&self) -> &[Vec<Atom>] {
        &self.clauses
    }

    /// How many atoms there are in all clauses.
    pub fn atom_count(&self) -> usize {
        self.clauses.iter().map(Vec::len).sum()
    }

    /// The negation, in the other normal form: ¬DNF is a CNF of reversed atoms, and back.
    pub fn complement(&self) -> Self {
        let form = match self.form {
            NormalForm::Disjunctive => NormalForm::Conjunctive,
            NormalForm::Conjunctive => NormalForm::Disjunctive,
        };
        let mut clauses = negate_all(self.clauses.clone());
        for clause in &mut clauses {
            clause.sort();
        }
        clauses.sort();
        Self { form, clauses }
    }

    /// The same formula in the other normal form, by distribution; `None` when it would have more
    /// than `limit` clauses on the way.
    pub fn to_other_form(&self, known: &KnownOrder, limit: usize) -> Option<Self> {
        let form = match self.form {
            NormalForm::Disjunctive => NormalForm::Conjunctive,
            NormalForm::Conjunctive => NormalForm::Disjunctive,
        };
        let mut product = Self { form, clauses: vec![Vec::new()] };
        for clause in &self.clauses {
            let mut next = Vec::new();
            for partial in &product.clauses {
                for &atom in clause {
                    let mut longer = partial.clone();
                    longer.push(atom);
                    next.push(longer);
                }
            }
            if next.len() > limit {
                return None;
            }
            product = Self::new(form, next, known);
        }
        Some(product)
    }

    /// Is the total order in the set? `place` gives each event its position.
    pub fn contains(&self, place: impl Fn(EventId) -> usize) -> bool {
        let holds = |atom: &Atom| place(atom.before) < place(atom.after);
        match self.form {
            NormalForm::Disjunctive => self.clauses.iter().any(|clause| clause.iter().all(holds)),
            NormalForm::Conjunctive => self.clauses.iter().all(|clause| clause.iter().any(holds)),
        }
    }

    /// As text: `hb(a3[6],b4[19]) ∧ hb(b3[18],a2[5])`, clauses in brackets where needed.
    pub fn to_text(&self, name: impl Fn(EventId) -> String) -> String {
        let (inner, outer, empty, empty_clause) = match self.form {
            NormalForm::Disjunctive => (" ∧ ", " ∨\n", "false", "true"),
            NormalForm::Conjunctive => (" ∨ ", " ∧\n", "true", "false"),
        };
        if self.clauses.is_empty() {
            return empty.to_string();
        }
        let bracket = self.clauses.len() > 1;
        let clause_text = |clause: &Vec<Atom>| {
            let atoms: Vec<String> = clause
                .iter()
                .map(|atom| format!("hb({},{})", name(atom.before), name(atom.after)))
                .collect();
            match atoms.len() {
                0 => empty_clause.to_string(),
                1 => atoms.join(""),
                _ if bracket => format!("( {} )", atoms.join(inner)),
                _ => atoms.join(inner),
            }
        };
        self.clauses.iter().map(clause_text).collect::<Vec<_>>().join(outer)
    }

    /// The same formula over other event numbers.
    pub fn map_events(&self, map: impl Fn(EventId) -> EventId) -> Self {
        let mut clauses: Vec<Vec<Atom>> = self
            .clauses
            .iter()
            .map(|clause| {
                let mut clause: Vec<Atom> = clause
                    .iter()
                    .map(|atom| Atom::new(map(atom.before), map(atom.after)))
                    .collect();
                clause.sort();
                clause.dedup();
                clause
            })
            .collect();
        clauses.sort();
        clauses.dedup();
        Self { form: self.form, clauses }
    }
}

fn negate_all(clauses: Vec<Vec<Atom>>) -> Vec<Vec<Atom>> {
    clauses.into_iter().map(|clause| clause.into_iter().map(Atom::negated).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use NormalForm::{Conjunctive, Disjunctive};

    fn e(number: u32) -> EventId {
        EventId(number)
    }

    fn hb(before: u32, after: u32) -> Atom {
        Atom::new(e(before), e(after))
    }

    /// Threads `0 1 2` and `3 4 5`.
    fn two_threads() -> KnownOrder {
        KnownOrder::new(&[vec![e(0), e(1), e(2)], vec![e(3), e(4), e(5)]], &[])
    }

    #[test]
    fn program_and_fixed_orders_are_closed_under_transitivity() {
        let known =
            KnownOrder::new(&[vec![e(0), e(1), e(2)], vec![e(3), e(4), e(5)]], &[(e(1), e(4))]);
        assert!(known.implies(hb(0, 5)));
        assert!(!known.implies(hb(2, 5)));
        assert!(!known.implies(hb(0, 3)));
        assert!(!known.is_cyclic());
        assert!(
            KnownOrder::new(&[vec![e(0)], vec![e(1)]], &[(e(0), e(1)), (e(1), e(0))]).is_cyclic()
        );
    }

    #[test]
    fn an_atom_implied_by_its_neighbours_goes() {
        let known = two_threads();
        assert_eq!(
            known.simplify_conjunction(&[hb(1, 3), hb(0, 4), hb(0, 1)]),
            Some(vec![hb(1, 3)])
        );
        assert_eq!(known.simplify_conjunction(&[hb(1, 4), hb(4, 0)]), None, "a cycle is false");
    }

    #[test]
    fn a_disjunct_implied_by_another_goes() {
        let known = two_threads();
        let formula = HbFormula::new(Disjunctive, vec![vec![hb(2, 3)], vec![hb(1, 4)]], &known);
        assert_eq!(formula.clauses(), [[hb(1, 4)]], "2 before 3 implies 1 before 4");
    }

    #[test]
    fn the_complement_of_the_complement_is_the_formula() {
        let known = two_threads();
        let formula =
            HbFormula::new(Disjunctive, vec![vec![hb(1, 4), hb(4, 2)], vec![hb(5, 0)]], &known);
        assert_eq!(formula.complement().form(), Conjunctive);
        assert_eq!(formula.complement().complement(), formula);
    }

    #[test]
    fn both_normal_forms_have_the_same_members() {
        let known = two_threads();
        let formula = HbFormula::new(
            Disjunctive,
            vec![vec![hb(0, 4), hb(4, 2)], vec![hb(3, 1), hb(1, 5)], vec![hb(5, 2)]],
            &known,
        );
        let other = formula.to_other_form(&known, 1000).expect("small");
        for choice in 0..64u32 {
            if choice.count_ones() != 3 {
                continue;
            }
            let (mut a, mut b, mut place) = (0, 3, [0; 6]);
            for step in 0..6 {
                let event = if choice >> step & 1 == 1 { &mut a } else { &mut b };
                place[*event as usize] = step;
                *event += 1;
            }
            let place = |event: EventId| place[event.index()];
            assert_eq!(formula.contains(place), other.contains(place));
            assert_ne!(formula.contains(place), formula.complement().contains(place));
        }
    }

    #[test]
    fn text_is_stable() {
        let known = two_threads();
        let formula =
            HbFormula::new(Disjunctive, vec![vec![hb(4, 2), hb(1, 4)], vec![hb(5, 0)]], &known);
        let again =
            HbFormula::new(Disjunctive, vec![vec![hb(5, 0)], vec![hb(1, 4), hb(4, 2)]], &known);
        let text = formula.to_text(|event| format!("e{}", event.0));
        assert_eq!(text, "( hb(e1,e4) ∧ hb(e4,e2) ) ∨\nhb(e5,e0)");
        assert_eq!(formula, again);
        assert_eq!(HbFormula::never().to_text(|_| String::new()), "false");
    }
}
