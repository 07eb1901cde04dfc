//! A solver that writes every question it is asked as an SMT-LIB file, then passes it on.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use foretell_guard::say;
use foretell_trace::{TermId, TermStore};

use crate::problem::OrderProblem;
use crate::smtlib::script;
use crate::solver::{Answer, Budget, OrderSolver, Statistics};

/// Questions are numbered through the whole process, in the order in which they are asked.
static NUMBER: AtomicUsize = AtomicUsize::new(1);

/// Writes `question-N.smt2` into a folder for each check; comments in it name the events.
pub struct Dumping {
    inner: Box<dyn OrderSolver>,
    problem: OrderProblem,
    directory: PathBuf,
}

impl Dumping {
    /// Before `inner`, which solves `problem`.
    pub fn new(inner: Box<dyn OrderSolver>, problem: OrderProblem, directory: &Path) -> Self {
        Self { inner, problem, directory: directory.to_owned() }
    }

    /// A question that cannot be written is reported on standard error; the answer does not depend on
    /// it.
    fn write(&mut self, assumptions: &[TermId]) {
        let mut question = self.problem.clone();
        question.terms = self.inner.terms().clone();
        question.asserted.extend_from_slice(assumptions);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(format!("question-{number}.smt2"));
        let written = match script(&question) {
            Ok(text) => std::fs::write(&path, text).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            say!("foretell: cannot write {}: {error}", path.display());
        }
    }
}

impl OrderSolver for Dumping {
    fn terms(&mut self) -> &mut TermStore {
        self.inner.terms()
    }

    fn assert(&mut self, formula: TermId) {
        self.problem.asserted.push(formula);
        self.inner.assert(formula);
    }

    fn check(&mut self, assumptions: &[TermId], budget: Budget) -> Answer {
        self.write(assumptions);
        self.inner.check(assumptions, budget)
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}
