//! The default backend: CaDiCaL with the ordering theory (`order.rs`) as its external propagator
//! (IPASIR-UP, Fazekas et al., SAT 2023), and data as literals (`literals.rs`).
//!
//! Answers are exact or unknown. What the encoder does not support is left out: a proof without it is
//! still a proof, a solution without it is none. Integers without bounds are cut to a width; a proof
//! that relies on the cut is tried again with more bits, up to the last of `WIDTHS`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use cadical_sys::{ExternalPropagator, Status, Terminator};
use foretell_trace::{TermId, TermStore};

use crate::cnf::{Cnf, FALSE, Lit, TRUE};
use crate::literals::{EAGER_CHOICES, Encoder, Unsupported};
use crate::must::MustOrder;
use crate::order::OrderTheory;
use crate::problem::OrderProblem;
use crate::solver::{Answer, Budget, Model, OrderSolver, SolveError, Statistics, UnknownReason};

/// Conflicts after which the time is looked at.
const CONFLICTS_AT_ONCE: u64 = 2_000;

/// Widths that are tried for integers without bounds.
const WIDTHS: [usize; 3] = [8, 20, 52];

/// The solver inside foretell.
pub struct Embedded {
    pub(crate) problem: OrderProblem,
    must: MustOrder,
    engine: Engine,
    width: usize,
    eager: usize,
    statistics: Statistics,
}

/// One SAT solver; a wider one replaces it.
struct Engine {
    encoder: Encoder,
    last: Rc<RefCell<Option<Vec<u32>>>>,
    assumed: HashMap<TermId, Lit>,
    /// The first thing that could not be encoded.
    left_out: Option<Unsupported>,
    deadline: Option<Instant>,
    /// The time was over before all was encoded.
    late: bool,
    counted: Statistics,
}

impl Embedded {
    /// Encodes the problem.
    pub fn new(problem: OrderProblem) -> Result<Self, SolveError> {
        Self::with_eager_choices(problem, EAGER_CHOICES)
    }

    /// Problems with more choices than this get the clauses of their values as they are needed.
    fn with_eager_choices(problem: OrderProblem, eager: usize) -> Result<Self, SolveError> {
        let mut problem = problem;
        let must = MustOrder::new(&problem)?;
        let engine = Engine::new(&mut problem, &must, WIDTHS[0], eager);
        Ok(Self { problem, must, engine, width: 0, eager, statistics: Statistics::default() })
    }

    /// Starts again with more bits; false when there are no more.
    fn widen(&mut self) -> bool {
        let Some(&bits) = WIDTHS.get(self.width + 1) else { return false };
        self.width += 1;
        self.statistics = self.statistics();
        self.engine = Engine::new(&mut self.problem, &self.must, bits, self.eager);
        true
    }
}

impl OrderSolver for Embedded {
    fn terms(&mut self) -> &mut TermStore {
        &mut self.problem.terms
    }

    fn assert(&mut self, formula: TermId) {
        self.problem.asserted.push(formula);
        self.engine.assert(&mut self.problem.terms, formula);
    }

    fn check(&mut self, assumptions: &[TermId], budget: Budget) -> Answer {
        self.statistics.checks += 1;
        if self.must.is_cyclic() {
            return Answer::Unsatisfiable { core: Vec::new() };
        }
        loop {
            match self.engine.check(&mut self.problem.terms, assumptions, budget) {
                Outcome::Answer(answer) => return answer,
                Outcome::Cut if self.widen() => {}
                Outcome::Cut => {
                    return Answer::Unknown(UnknownReason::Unsupported(String::from(
                        "integers without bounds",
                    )));
                }
            }
        }
    }

    fn statistics(&self) -> Statistics {
        let now = self.engine.statistics();
        Statistics {
            checks: self.statistics.checks,
            conflicts: self.statistics.conflicts + now.conflicts,
            decisions: self.statistics.decisions + now.decisions,
            cycles: self.statistics.cycles + now.cycles,
            order_propagations: self.statistics.order_propagations + now.order_propagations,
        }
    }
}

enum Outcome {
    Answer(Answer),
    /// There is no solution whose integers fit.
    Cut,
}

impl Engine {
    fn new(
        problem: &mut OrderProblem,
        must: &MustOrder,
        width: usize,
        eager_choices: usize,
    ) -> Self {
        let theory = Rc::new(RefCell::new(OrderTheory::new(must.clone())));
        let last = Rc::new(RefCell::new(None));
        let mut cnf = Cnf::new();
        cnf.sat.connect_terminator(TimeIsOver { asked: 0 });
        cnf.sat.connect_external_propagator(Propagator {
            theory: Rc::clone(&theory),
            last: Rc::clone(&last),
            clause: Vec::new(),
            reason: Vec::new(),
            explained: None,
        });
        let encoder = Encoder::new(cnf, theory, &problem.terms, &problem.pis, width, eager_choices);
        let mut engine = Self {
            encoder,
            last,
            assumed: HashMap::new(),
            left_out: None,
            deadline: problem.deadline,
            late: false,
            counted: Statistics::default(),
        };
        if must.is_cyclic() {
            return engine;
        }
        for pi in &problem.pis {
            if engine.is_late() {
                engine.late = true;
                return engine;
            }
            if let Err(reason) = engine.encoder.add_pi(&mut problem.terms, pi) {
                engine.left_out.get_or_insert(reason);
            }
        }
        for &formula in &problem.asserted {
            engine.assert(&mut problem.terms, formula);
        }
        engine
    }

    fn is_late(&self) -> bool {
        foretell_guard::stop::is_over()
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn assert(&mut self, terms: &mut TermStore, formula: TermId) {
        if let Err(reason) = self.encoder.assert(terms, formula) {
            self.left_out.get_or_insert(reason);
        }
    }

    fn check(&mut self, terms: &mut TermStore, assumptions: &[TermId], budget: Budget) -> Outcome {
        if self.late {
            return Outcome::Answer(Answer::Unknown(UnknownReason::Late));
        }
        let mut left_out = self.left_out.clone();
        let mut literals = Vec::with_capacity(assumptions.len());
        for &assumption in assumptions {
            let literal = match self.assumed.get(&assumption) {
                Some(&literal) => literal,
                None => match self.encoder.assumption(terms, assumption) {
                    Ok(literal) => {
                        self.assumed.insert(assumption, literal);
                        literal
                    }
                    Err(reason) => {
                        left_out.get_or_insert(reason);
                        continue;
                    }
                },
            };
            if literal == FALSE {
                return Outcome::Answer(Answer::Unsatisfiable { core: vec![assumption] });
            }
            literals.push((assumption, literal));
        }
        let (cut, narrow) = (self.encoder.is_cut(), self.encoder.narrow);
        let before = self.counted.conflicts;
        let status = loop {
            let left =
                before.saturating_add(budget.conflicts).saturating_sub(self.counted.conflicts);
            let now = match self.deadline {
                Some(_) => left.min(CONFLICTS_AT_ONCE),
                None => left,
            };
            let status = self.solve(&literals, cut.then_some(narrow), now);
            match status {
                Status::UNKNOWN if now < left => {}
                Status::SATISFIABLE if self.encoder.refine() => {}
                _ => break status,
            }
            if self.is_late() {
                return Outcome::Answer(Answer::Unknown(UnknownReason::Late));
            }
        };
        let late = self.is_late();
        let sat = &mut self.encoder.cnf.sat;
        match status {
            Status::UNKNOWN if late => Outcome::Answer(Answer::Unknown(UnknownReason::Late)),
            Status::UNKNOWN => Outcome::Answer(Answer::Unknown(UnknownReason::Budget)),
            Status::UNSATISFIABLE if cut && sat.failed(narrow.0) => Outcome::Cut,
            Status::UNSATISFIABLE => {
                let mut core: Vec<TermId> = literals
                    .into_iter()
                    .filter(|&(_, literal)| literal != TRUE && sat.failed(literal.0))
                    .map(|(assumption, _)| assumption)
                    .collect();
                core.dedup();
                Outcome::Answer(Answer::Unsatisfiable { core })
            }
            Status::SATISFIABLE => Outcome::Answer(match left_out {
                Some(reason) => Answer::Unknown(UnknownReason::Unsupported(reason)),
                None => Answer::Satisfiable(self.model(terms)),
            }),
        }
    }

    /// One solution of the clauses so far.
    fn solve(&mut self, assumed: &[(TermId, Lit)], narrow: Option<Lit>, conflicts: u64) -> Status {
        let sat = &mut self.encoder.cnf.sat;
        for literal in narrow.into_iter().chain(assumed.iter().map(|&(_, literal)| literal)) {
            if literal != TRUE {
                sat.assume(literal.0);
            }
        }
        // a negative limit is none
        sat.limit("conflicts", i32::try_from(conflicts).unwrap_or(-1));
        *self.last.borrow_mut() = None;
        let status = sat.solve();
        self.counted.conflicts = sat.get_statistic_value("conflicts").try_into().unwrap_or(0);
        self.counted.decisions = sat.get_statistic_value("decisions").try_into().unwrap_or(0);
        status
    }

    fn model(&mut self, terms: &TermStore) -> Model {
        let found = self.last.borrow_mut().take();
        let theory = Rc::clone(&self.encoder.theory);
        let order = found.unwrap_or_else(|| theory.borrow().linearise());
        let mut values = self.encoder.values(terms);
        self.encoder.array_values(terms, &order, &mut values);
        let theory = theory.borrow();
        let events = theory.must().events();
        Model { order: order.into_iter().map(|event| events[event as usize]).collect(), values }
    }

    fn statistics(&self) -> Statistics {
        let theory = self.encoder.theory.borrow();
        Statistics {
            cycles: theory.cycles,
            order_propagations: theory.propagations,
            ..self.counted
        }
    }
}

/// Ends a question when everything has to come to a close.
struct TimeIsOver {
    asked: u32,
}

impl Terminator for TimeIsOver {
    fn terminated(&mut self) -> bool {
        // To look at the clock costs more than most steps of the search.
        self.asked = self.asked.wrapping_add(1);
        self.asked.is_multiple_of(64) && foretell_guard::stop::is_over()
    }
}

/// Hands CaDiCaL's callbacks to the theory. Clauses are handed over literal by literal, so they are
/// kept in reverse.
struct Propagator {
    theory: Rc<RefCell<OrderTheory>>,
    last: Rc<RefCell<Option<Vec<u32>>>>,
    clause: Vec<Lit>,
    reason: Vec<Lit>,
    explained: Option<Lit>,
}

impl ExternalPropagator for Propagator {
    fn are_reasons_forgettable(&mut self) -> bool {
        true
    }

    fn notify_assignment(&mut self, literals: &[i32]) {
        let mut theory = self.theory.borrow_mut();
        for &literal in literals {
            theory.assign(Lit(literal));
        }
    }

    fn notify_new_decision_level(&mut self) {
        self.theory.borrow_mut().new_level();
    }

    fn notify_backtrack(&mut self, level: usize) {
        self.theory.borrow_mut().backtrack(level);
    }

    fn cb_check_found_model(&mut self, _model: &[i32]) -> bool {
        let mut theory = self.theory.borrow_mut();
        let consistent = theory.consistent();
        if consistent {
            *self.last.borrow_mut() = Some(theory.linearise());
        }
        consistent
    }

    fn cb_propagate(&mut self) -> i32 {
        self.theory.borrow_mut().propagate().map_or(0, |literal| literal.0)
    }

    fn cb_add_reason_clause_lit(&mut self, propagated: i32) -> i32 {
        if self.explained != Some(Lit(propagated)) {
            self.explained = Some(Lit(propagated));
            self.reason = self.theory.borrow_mut().explain(Lit(propagated));
        }
        match self.reason.pop() {
            Some(literal) => literal.0,
            None => {
                self.explained = None;
                0
            }
        }
    }

    fn cb_has_external_clause(&mut self, is_forgettable: &mut bool) -> bool {
        *is_forgettable = true;
        match self.theory.borrow_mut().take_conflict() {
            Some(clause) => {
                self.clause = clause;
                true
            }
            None => false,
        }
    }

    fn cb_add_external_clause_lit(&mut self) -> i32 {
        self.clause.pop().map_or(0, |literal| literal.0)
    }
}

#[cfg(test)]
mod tests {
    use foretell_model::cssa::Cssa;
    use foretell_model::ctp::ConcurrentTraceProgram;
    use foretell_model::must_order::MustOrder;
    use foretell_testing::machine::random_trace;
    use foretell_trace::EventId;

    use super::*;
    use crate::encode::{Mode, Observed, encode};

    /// What the solver says to each assertion: can it fail?
    fn answers(trace: &foretell_trace::Trace, eager: usize) -> Option<Vec<Option<bool>>> {
        let ctp = ConcurrentTraceProgram::build(trace).ok()?;
        let cssa = Cssa::build(&ctp, &MustOrder::new(trace).ok()?);
        let encoding = encode(&ctp, &cssa, Mode::Prefix, Observed::Everything);
        let executed = encoding.executed;
        let mut solver = Embedded::with_eager_choices(encoding.problem, eager).ok()?;
        let asserted = (0..ctp.events.len()).map(EventId::from).filter_map(|event| {
            Some((executed[event.index()], cssa.events[event.index()].assertion?))
        });
        let answers = asserted.map(|(executed, demand)| {
            let fails = solver.terms().not(demand);
            match solver.check(&[executed, fails], Budget::default()) {
                Answer::Satisfiable(_) => Some(true),
                Answer::Unsatisfiable { .. } => Some(false),
                Answer::Unknown(_) => None,
            }
        });
        Some(answers.collect())
    }

    #[test]
    fn values_that_are_added_as_needed_change_no_answer() {
        let mut decided = [0; 2];
        for seed in 0..600 {
            let trace = random_trace(seed);
            let (eager, lazy) = (answers(&trace, usize::MAX), answers(&trace, 0));
            assert_eq!(eager, lazy, "seed {seed}");
            for answer in eager.into_iter().flatten().flatten() {
                decided[usize::from(answer)] += 1;
            }
        }
        assert!(decided.iter().all(|&count| count > 50), "{decided:?}");
    }
}
