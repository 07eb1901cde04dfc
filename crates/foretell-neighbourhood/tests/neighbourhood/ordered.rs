//! The order solver as a second opinion: the formula of the concurrent trace program (001 section
//! 2.3) over all interleavings and all inputs, where the engine explores.

use foretell_model::cssa::Cssa;
use foretell_model::ctp::{ConcurrentTraceProgram, Mode};
use foretell_model::must_order::MustOrder;
use foretell_neighbourhood::{Atom, ExplainError, Options, Verdict, explain};
use foretell_solve::encode::{Observed, encode};
use foretell_solve::{Answer, Backend, Budget, OrderSolver};
use foretell_trace::{EventId, TermId, TermStore, Trace};

/// Asks about the interleavings of one trace. Event ids are the trace's and the program's alike.
pub struct SecondOpinion {
    ctp: ConcurrentTraceProgram,
    bad: Box<dyn OrderSolver>,
    good: Box<dyn OrderSolver>,
    /// Pairs of events of different threads of which one writes what the other touches.
    dependent: Vec<(EventId, EventId)>,
}

/// What may be left of an answer.
pub type Answered<T> = Result<T, String>;

/// A disjunction of conjunctions.
pub fn formula(terms: &mut TermStore, clauses: &[Vec<Atom>]) -> TermId {
    let disjuncts: Vec<TermId> = clauses.iter().map(|clause| conjunction(terms, clause)).collect();
    terms.or(&disjuncts)
}

fn conjunction(terms: &mut TermStore, atoms: &[Atom]) -> TermId {
    let atoms: Vec<TermId> =
        atoms.iter().map(|atom| terms.before(atom.before, atom.after)).collect();
    terms.and(&atoms)
}

impl SecondOpinion {
    pub fn new(trace: &Trace) -> Self {
        let ctp = ConcurrentTraceProgram::build(trace).expect("a model");
        let order = MustOrder::new(trace).expect("no cycle");
        let cssa = Cssa::build(&ctp, &order);
        let asserted = |event: usize| cssa.events[event].assertion;

        let mut prefixes = encode(&ctp, &cssa, Mode::Prefix, Observed::Everything);
        let terms = &mut prefixes.problem.terms;
        let fails: Vec<TermId> = (0..ctp.events.len())
            .filter_map(|event| {
                let fails = terms.not(asserted(event)?);
                Some(terms.and(&[prefixes.executed[event], fails]))
            })
            .collect();
        let some = terms.or(&fails);
        prefixes.problem.asserted.push(some);

        let mut whole = encode(&ctp, &cssa, Mode::Whole, Observed::Everything);
        whole.problem.asserted.extend((0..ctp.events.len()).filter_map(asserted));
        let solver = |problem| foretell_solve::solver(problem, &Backend::Auto).expect("a solver");
        Self {
            bad: solver(prefixes.problem),
            good: solver(whole.problem),
            dependent: dependent_pairs(&ctp),
            ctp,
        }
    }

    fn ask(solver: &mut dyn OrderSolver, assumptions: &[TermId]) -> Answered<Option<Vec<EventId>>> {
        match solver.check(assumptions, Budget::default()) {
            Answer::Satisfiable(model) => Ok(Some(model.order)),
            Answer::Unsatisfiable { .. } => Ok(None),
            Answer::Unknown(reason) => Err(format!("{reason:?}")),
        }
    }

    /// Is there a bad interleaving, for some inputs, in which these orders hold?
    pub fn has_bad(&mut self, atoms: &[Atom]) -> Answered<bool> {
        let assumption = conjunction(self.bad.terms(), atoms);
        Ok(Self::ask(self.bad.as_mut(), &[assumption])?.is_some())
    }

    /// Is there a complete run without a failure, for some inputs, in which these orders hold?
    pub fn has_good(&mut self, atoms: &[Atom]) -> Answered<bool> {
        let assumption = conjunction(self.good.terms(), atoms);
        Ok(Self::ask(self.good.as_mut(), &[assumption])?.is_some())
    }

    /// Does every bad interleaving satisfy the formula?
    pub fn covers_bad(&mut self, clauses: &[Vec<Atom>]) -> Answered<bool> {
        let formula = formula(self.bad.terms(), clauses);
        let outside = self.bad.terms().not(formula);
        Ok(Self::ask(self.bad.as_mut(), &[outside])?.is_none())
    }

    /// Does no good interleaving satisfy the formula? An interleaving that some inputs complete is
    /// good only if none make it fail; so each one that is found is asked about again, up to
    /// `most` that differ in the order of dependent events. Gives how many those were.
    pub fn excludes_good(&mut self, clauses: &[Vec<Atom>], most: usize) -> Answered<usize> {
        let inside = formula(self.good.terms(), clauses);
        let mut assumptions = vec![inside];
        for examined in 0..most {
            let Some(order) = Self::ask(self.good.as_mut(), &assumptions)? else {
                return Ok(examined);
            };
            let mut place = vec![0; self.ctp.events.len()];
            for (at, event) in order.iter().enumerate() {
                place[event.index()] = at;
            }
            let same: Vec<Atom> = self
                .dependent
                .iter()
                .map(|&(a, b)| match place[a.index()] < place[b.index()] {
                    true => Atom::new(a, b),
                    false => Atom::new(b, a),
                })
                .collect();
            if !self.has_bad(&same)? {
                return Err(format!("a good interleaving is called bad: {order:?}"));
            }
            let again = conjunction(self.good.terms(), &same);
            assumptions.push(self.good.terms().not(again));
        }
        Ok(most)
    }
}

fn dependent_pairs(ctp: &ConcurrentTraceProgram) -> Vec<(EventId, EventId)> {
    let touched = |event: &foretell_model::ctp::CtpEvent| {
        use foretell_model::ctp::Action::{Assert, Guarded, Transition};
        let terms = match &event.action {
            Guarded { guard, assignments } => {
                let mut terms = vec![*guard];
                terms.extend(assignments.iter().map(|&(_, value)| value));
                terms
            }
            Transition { predicate, .. } => vec![*predicate],
            Assert { condition } => vec![*condition],
        };
        let mut variables = event.action.defined();
        for leaf in terms.into_iter().flat_map(|term| ctp.terms.leaves(term)) {
            if let foretell_trace::Term::Variable(variable) = *ctp.terms.term(leaf) {
                variables.push(variable);
            }
        }
        variables
    };
    let mut pairs = Vec::new();
    for (i, a) in ctp.events.iter().enumerate() {
        for (j, b) in ctp.events.iter().enumerate().skip(i + 1) {
            let meets = |writer: &foretell_model::ctp::CtpEvent, other| {
                writer.action.defined().iter().any(|variable| touched(other).contains(variable))
            };
            if a.thread != b.thread && (meets(a, b) || meets(b, a)) {
                pairs.push((EventId::from(i), EventId::from(j)));
            }
        }
    }
    pairs
}

/// The engine, told the orders as fixed ones of the trace, and the solver agree on whether there is a
/// bad and whether there is a good interleaving.
pub fn agree(about: &str, trace: &Trace, opinion: &mut SecondOpinion, atoms: &[Atom]) {
    let mut ordered = trace.clone();
    ordered.orders.extend(atoms.iter().map(|atom| (atom.before, atom.after)));
    let options = Options { synthesis: false, ..Options::default() };
    let verdict = explain(&ordered, &options).map(|explanation| explanation.verdict);
    let engine = match verdict {
        Ok(Verdict::Depends) => (true, Some(true)),
        Ok(Verdict::AllBad) => (true, Some(false)),
        Ok(Verdict::AllGood) => (false, Some(true)),
        Ok(Verdict::Infeasible) | Err(ExplainError::CyclicOrders) => (false, Some(false)),
        // no bad one; whether threads that wait for each other are all there is, is not said
        Ok(Verdict::Deadlock) => (false, None),
        other => panic!("{about}: {other:?}"),
    };
    let (bad, good) = (opinion.has_bad(atoms), opinion.has_good(atoms));
    if let (Err(reason), false) = (bad.as_ref().and(good.as_ref()), has_z3()) {
        eprintln!("SKIPPED {about}: {reason}; it needs z3 on the PATH");
        return;
    }
    let solver = (bad.expect("decided"), good.expect("decided"));
    let engine = (engine.0, engine.1.unwrap_or(solver.1));
    assert_eq!(engine, solver, "{about}: engine and solver differ on (bad, good) under {atoms:?}");
}

/// Can what the embedded solver does not support be asked of z3?
pub fn has_z3() -> bool {
    std::process::Command::new("z3").arg("--version").output().is_ok()
}
