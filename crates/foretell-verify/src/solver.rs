//! Questions about integer formulas, asked of one solver process that stays alive.
//!
//! Every question has a resource limit of the solver's own counting, so an answer does not depend on
//! the clock; whoever asks counts the questions against a [`Budget`](crate::Budget).

use std::collections::{HashMap, HashSet};

use foretell_solve::{Dialogue, Sexpr, parse_value};
use foretell_trace::sexpr::print_term;
use foretell_trace::{Sort, Term, TermId, TermStore, Value};

use crate::limits::RESOURCES;

/// How the solver is started.
pub const COMMAND: &str = "z3 -in";

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The solver cannot be started; the text says what to do.
    NoSolver(String),
    /// So many questions were asked that the budget is spent.
    Budget(String),
    /// The solver gave up or failed.
    Failed(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::NoSolver(text) => write!(f, "{text}; install z3 (scripts/setup.sh does)"),
            Trouble::Budget(text) | Trouble::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Trouble {}

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Values of the leaves of the question.
    Satisfiable(HashMap<TermId, Value>),
    /// These of the assumptions (by place) cannot hold together with the facts.
    Unsatisfiable(Vec<usize>),
}

/// A solver process.
pub struct Solver {
    dialogue: Dialogue,
    declared: HashSet<String>,
    /// The process still has the last question.
    open: bool,
    /// Questions asked so far.
    pub questions: u64,
    /// Questions that may be asked.
    pub limit: u64,
}

impl Solver {
    /// Starts Z3 from the PATH.
    pub fn start(limit: u64) -> Result<Self, Trouble> {
        let mut dialogue =
            Dialogue::start(COMMAND).map_err(|error| Trouble::NoSolver(error.to_string()))?;
        let options = format!("(set-option :rlimit {RESOURCES})\n(set-logic ALL)\n");
        dialogue.exchange(&options).map_err(Trouble::Failed)?;
        Ok(Self { dialogue, declared: HashSet::new(), open: false, questions: 0, limit })
    }

    fn count(&mut self) -> Result<(), Trouble> {
        if self.questions >= self.limit {
            return Err(Trouble::Budget(format!("{} questions to the solver", self.limit)));
        }
        self.questions += 1;
        Ok(())
    }

    /// Can the facts hold with all assumptions?
    pub fn check(
        &mut self,
        terms: &TermStore,
        facts: &[TermId],
        assumptions: &[TermId],
    ) -> Result<Answer, Trouble> {
        self.count()?;
        let mut leaves: Vec<TermId> =
            facts.iter().chain(assumptions).flat_map(|&term| terms.leaves(term)).collect();
        leaves.sort_unstable();
        leaves.dedup();
        // the last question is forgotten only now: one exchange less
        let mut text = String::from(if self.open { "(pop)\n" } else { "" });
        self.open = true;
        for &leaf in &leaves {
            let name = leaf_name(terms, leaf);
            if !self.declared.contains(&name) {
                let sort = if terms.sort(leaf) == Sort::BOOL { "Bool" } else { "Int" };
                text.push_str(&format!("(declare-const {name} {sort})\n"));
                self.declared.insert(name);
            }
        }
        text.push_str("(push)\n");
        for &fact in facts {
            text.push_str(&format!("(assert {})\n", print(terms, fact)));
        }
        for (place, &assumption) in assumptions.iter().enumerate() {
            text.push_str(&format!(
                "(declare-const a{place} Bool)\n(assert (=> a{place} {}))\n",
                print(terms, assumption)
            ));
        }
        let names: Vec<String> = (0..assumptions.len()).map(|place| format!("a{place}")).collect();
        text.push_str(&format!("(check-sat-assuming ({}))\n", names.join(" ")));
        let replies = self.dialogue.exchange(&text).map_err(Trouble::Failed)?;
        match replies.first().and_then(Sexpr::atom) {
            Some("unsat") => Ok(Answer::Unsatisfiable(self.core(assumptions.len())?)),
            Some("sat") => Ok(Answer::Satisfiable(self.values(terms, &leaves)?)),
            other => {
                let said = other.unwrap_or("nothing");
                Err(Trouble::Failed(format!("the solver says {said} to a question")))
            }
        }
    }

    /// Can no state satisfy all of these?
    pub fn refutes(&mut self, terms: &TermStore, facts: &[TermId]) -> Result<bool, Trouble> {
        Ok(matches!(self.check(terms, facts, &[])?, Answer::Unsatisfiable(_)))
    }

    fn core(&mut self, assumptions: usize) -> Result<Vec<usize>, Trouble> {
        if assumptions == 0 {
            return Ok(Vec::new());
        }
        let replies =
            self.dialogue.exchange("(get-unsat-assumptions)\n").map_err(Trouble::Failed)?;
        let words = replies.first().and_then(Sexpr::list).unwrap_or_default();
        Ok(words
            .iter()
            .filter_map(|word| word.atom()?.strip_prefix('a')?.parse().ok())
            .filter(|&place: &usize| place < assumptions)
            .collect())
    }

    fn values(
        &mut self,
        terms: &TermStore,
        leaves: &[TermId],
    ) -> Result<HashMap<TermId, Value>, Trouble> {
        if leaves.is_empty() {
            return Ok(HashMap::new());
        }
        let names: Vec<String> = leaves.iter().map(|&leaf| leaf_name(terms, leaf)).collect();
        let question = format!("(get-value ({}))\n", names.join(" "));
        let replies = self.dialogue.exchange(&question).map_err(Trouble::Failed)?;
        let pairs = replies.first().and_then(Sexpr::list).unwrap_or_default();
        let mut values = HashMap::new();
        for (pair, &leaf) in pairs.iter().zip(leaves) {
            let value = pair.list().and_then(|pair| parse_value(terms.sort(leaf), pair.get(1)?));
            let value = value.ok_or_else(|| Trouble::Failed("the answer is not a value".into()))?;
            values.insert(leaf, value);
        }
        Ok(values)
    }

    /// Solves constrained Horn clauses (Z3's Spacer) in a process of its own: `text` declares
    /// predicates and asserts clauses. The reply is the model, `None` if there is none or the limit
    /// is reached.
    pub fn horn(&mut self, text: &str) -> Result<Option<Vec<Sexpr>>, Trouble> {
        self.count()?;
        let mut dialogue =
            Dialogue::start(COMMAND).map_err(|error| Trouble::NoSolver(error.to_string()))?;
        let question =
            format!("(set-option :rlimit {RESOURCES})\n(set-logic HORN)\n{text}(check-sat)\n");
        let replies = dialogue.exchange(&question).map_err(Trouble::Failed)?;
        if replies.first().and_then(Sexpr::atom) != Some("sat") {
            return Ok(None);
        }
        let replies = dialogue.exchange("(get-model)\n").map_err(Trouble::Failed)?;
        Ok(replies.first().and_then(Sexpr::list).map(<[Sexpr]>::to_vec))
    }
}

/// What a leaf is called in questions.
pub fn leaf_name(terms: &TermStore, leaf: TermId) -> String {
    match terms.term(leaf) {
        Term::Variable(variable) => format!("v{}", variable.0),
        Term::Primed(variable) => format!("w{}", variable.0),
        Term::Symbol(symbol) => format!("s{}", symbol.0),
        other => unreachable!("programs have no {other:?}"),
    }
}

/// A formula in SMT-LIB, leaves as [`leaf_name`] calls them.
pub fn print(terms: &TermStore, term: TermId) -> String {
    print_term(terms, term, &mut |inner| match terms.term(inner) {
        Term::Constant(_) | Term::Apply(..) => None,
        _ => Some(leaf_name(terms, inner)),
    })
}
