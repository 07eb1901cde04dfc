//! Literals, clauses and gates (Tseitin), written straight into CaDiCaL.
//!
//! Gates are hash-consed and constants are folded, so equal subformulas share one variable.

use std::collections::HashMap;

use cadical_sys::CaDiCal;

/// A literal: a variable's number, negative for its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lit(pub(crate) i32);

/// The literal that holds.
pub(crate) const TRUE: Lit = Lit(1);
/// The literal that does not.
pub(crate) const FALSE: Lit = Lit(-1);

impl std::ops::Not for Lit {
    type Output = Lit;

    fn not(self) -> Lit {
        Lit(-self.0)
    }
}

impl Lit {
    /// The number of the variable.
    pub(crate) fn variable(self) -> usize {
        self.0.unsigned_abs() as usize
    }

    /// Literals as numbers for tables.
    pub(crate) fn index(self) -> usize {
        2 * self.variable() + usize::from(self.0 < 0)
    }

    /// The constant's value.
    pub(crate) fn known(self) -> Option<bool> {
        (self.variable() == 1).then_some(self == TRUE)
    }
}

impl From<bool> for Lit {
    fn from(value: bool) -> Self {
        if value { TRUE } else { FALSE }
    }
}

/// The clauses of a SAT problem that grows.
pub(crate) struct Cnf {
    pub(crate) sat: CaDiCal,
    variables: i32,
    ands: HashMap<Box<[Lit]>, Lit>,
    xors: HashMap<(Lit, Lit), Lit>,
}

impl Cnf {
    pub(crate) fn new() -> Self {
        let mut sat = CaDiCal::new();
        sat.set("quiet", 1);
        // the order theory relies on a trail whose levels only grow
        sat.set("chrono", 0);
        // a restart propagates the order of all events again, so they should be rare
        sat.set("stabilizeonly", 1);
        // new variables are ours only
        sat.set("factor", 0);
        sat.clause1(TRUE.0);
        Self { sat, variables: 1, ands: HashMap::new(), xors: HashMap::new() }
    }

    pub(crate) fn fresh(&mut self) -> Lit {
        self.variables += 1;
        Lit(self.variables)
    }

    pub(crate) fn clause(&mut self, literals: &[Lit]) {
        if literals.contains(&TRUE) {
            return;
        }
        for &literal in literals {
            if literal != FALSE {
                self.sat.add(literal.0);
            }
        }
        self.sat.add(0);
    }

    /// The literal's value in the assignment that was found last.
    pub(crate) fn holds(&mut self, literal: Lit) -> bool {
        match literal.known() {
            Some(value) => value,
            None => (self.sat.val(literal.0.abs()) > 0) == (literal.0 > 0),
        }
    }

    /// `guard` implies that the two are equal.
    pub(crate) fn equal_if(&mut self, guard: &[Lit], a: Lit, b: Lit) {
        if a == b {
            return;
        }
        let mut clause: Vec<Lit> = guard.iter().map(|&literal| !literal).collect();
        clause.extend([!a, b]);
        self.clause(&clause);
        let end = clause.len();
        clause[end - 2..].copy_from_slice(&[a, !b]);
        self.clause(&clause);
    }

    pub(crate) fn and(&mut self, a: Lit, b: Lit) -> Lit {
        self.and_all(&[a, b])
    }

    pub(crate) fn or(&mut self, a: Lit, b: Lit) -> Lit {
        !self.and_all(&[!a, !b])
    }

    pub(crate) fn or_all(&mut self, literals: &[Lit]) -> Lit {
        let negated: Vec<Lit> = literals.iter().map(|&literal| !literal).collect();
        !self.and_all(&negated)
    }

    pub(crate) fn and_all(&mut self, literals: &[Lit]) -> Lit {
        let mut parts: Vec<Lit> = literals.iter().copied().filter(|&part| part != TRUE).collect();
        parts.sort_unstable();
        parts.dedup();
        if parts.contains(&FALSE) || parts.iter().any(|&part| parts.binary_search(&!part).is_ok()) {
            return FALSE;
        }
        match parts.as_slice() {
            [] => return TRUE,
            [only] => return *only,
            _ => {}
        }
        if let Some(&known) = self.ands.get(parts.as_slice()) {
            return known;
        }
        let gate = self.fresh();
        for &part in &parts {
            self.clause(&[!gate, part]);
        }
        let mut long: Vec<Lit> = parts.iter().map(|&part| !part).collect();
        long.push(gate);
        self.clause(&long);
        self.ands.insert(parts.into(), gate);
        gate
    }

    pub(crate) fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        match (a.known(), b.known()) {
            (Some(a), _) => return if a { !b } else { b },
            (_, Some(b)) => return if b { !a } else { a },
            _ if a == b => return FALSE,
            _ if a == !b => return TRUE,
            _ => {}
        }
        // signs move to the output
        let flip = (a.0 < 0) != (b.0 < 0);
        let (a, b) = (Lit(a.0.abs().min(b.0.abs())), Lit(a.0.abs().max(b.0.abs())));
        let gate = match self.xors.get(&(a, b)) {
            Some(&gate) => gate,
            None => {
                let gate = self.fresh();
                self.clause(&[!gate, a, b]);
                self.clause(&[!gate, !a, !b]);
                self.clause(&[gate, !a, b]);
                self.clause(&[gate, a, !b]);
                self.xors.insert((a, b), gate);
                gate
            }
        };
        if flip { !gate } else { gate }
    }

    pub(crate) fn ite(&mut self, condition: Lit, then: Lit, otherwise: Lit) -> Lit {
        match condition.known() {
            Some(true) => return then,
            Some(false) => return otherwise,
            None if then == otherwise => return then,
            None => {}
        }
        if then == !otherwise {
            return !self.xor(condition, then);
        }
        let yes = self.and(condition, then);
        let no = self.and(!condition, otherwise);
        let both = self.or(yes, no);
        // what both branches say holds without the condition
        self.clause(&[!then, !otherwise, both]);
        self.clause(&[then, otherwise, !both]);
        both
    }

    /// At least two of three.
    pub(crate) fn majority(&mut self, a: Lit, b: Lit, c: Lit) -> Lit {
        match (a.known(), b.known(), c.known()) {
            (Some(true), ..) => return self.or(b, c),
            (Some(false), ..) => return self.and(b, c),
            (_, Some(true), _) => return self.or(a, c),
            (_, Some(false), _) => return self.and(a, c),
            (.., Some(true)) => return self.or(a, b),
            (.., Some(false)) => return self.and(a, b),
            _ => {}
        }
        let gate = self.fresh();
        for (x, y) in [(a, b), (a, c), (b, c)] {
            self.clause(&[!x, !y, gate]);
            self.clause(&[x, y, !gate]);
        }
        gate
    }
}
