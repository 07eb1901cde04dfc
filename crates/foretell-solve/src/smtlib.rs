//! The question as SMT-LIB 2.6 text.
//!
//! An event is an integer, `Before(a, b)` is `a < b` (section 4.3 of 004, the order variables of the
//! encoding). Integers may be equal while a solution is a total order: for a pair of events only the
//! atom whose first event has the smaller number is written, and the other direction is its
//! negation. A cycle of such edges has at least one step to a larger number, which is strict, so
//! what is satisfiable here has a total order: by value, and among equal values the larger number
//! first. No `distinct` is needed.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use foretell_trace::{EventId, Operator, Sort, Term, TermId, TermStore, Value};

use crate::must::MustOrder;
use crate::problem::{OrderProblem, Pi};
use crate::solver::SolveError;

/// Nested deeper than this a subterm gets a name of its own, so that neither side recurses deeply.
const DEPTH: u32 = 100;

/// The whole question as a script that ends in `(check-sat)` and `(get-model)`; comments name the
/// events.
pub fn script(problem: &OrderProblem) -> Result<String, SolveError> {
    let mut terms = problem.terms.clone();
    let mut writer = Writer::new(problem)?;
    let formulas = writer.formulas(problem, &mut terms)?;
    let mut text = String::from("; an order of events, written by foretell\n");
    let mut logic = Logic::default();
    for (_, formula) in &formulas {
        logic.look_at(&terms, *formula);
    }
    writeln!(text, "(set-logic {})", logic.name()).expect("strings accept everything");
    text.push_str(&writer.declare_events(problem));
    for (comment, formula) in formulas {
        let formula = writer.term(&terms, formula)?;
        text.push_str(&std::mem::take(&mut writer.definitions));
        writeln!(text, "(assert {formula}) ; {comment}").expect("strings accept everything");
    }
    text.push_str("(check-sat)\n(get-model)\n");
    Ok(text)
}

/// Turns terms into text, once each: shared and deep subterms are defined under a name.
pub(crate) struct Writer {
    must: MustOrder,
    /// What the next text relies on; to be sent before it.
    pub(crate) definitions: String,
    names: HashMap<TermId, String>,
    /// The symbols declared so far, for models.
    pub(crate) symbols: Vec<TermId>,
}

impl Writer {
    pub(crate) fn new(problem: &OrderProblem) -> Result<Self, SolveError> {
        Ok(Self {
            must: MustOrder::new(problem)?,
            definitions: String::new(),
            names: HashMap::new(),
            symbols: Vec::new(),
        })
    }

    /// Forget what was declared: a new process knows nothing.
    pub(crate) fn restart(&mut self) {
        self.definitions.clear();
        self.names.clear();
        self.symbols.clear();
    }

    /// The text of a leaf that was written before.
    pub(crate) fn name(&self, leaf: TermId) -> &str {
        &self.names[&leaf]
    }

    pub(crate) fn must(&self) -> &MustOrder {
        &self.must
    }

    /// Order variables, and the chains and edges among them.
    pub(crate) fn declare_events(&self, problem: &OrderProblem) -> String {
        let mut text = String::new();
        for &event in self.must.events() {
            let name = problem.names.get(event.index()).map_or("", String::as_str);
            let comment = if name.is_empty() { "" } else { " ; " };
            let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            text.push_str(&format!("(declare-const {event:?} Int){comment}{name}\n"));
        }
        for chain in &problem.chains {
            for pair in chain.windows(2) {
                text.push_str(&format!("(assert (< {:?} {:?}))\n", pair[0], pair[1]));
            }
        }
        for &(first, second) in &problem.edges {
            let [first, second] = [first, second].map(|event| format!("{event:?}"));
            text.push_str(&format!("(assert (< {first} {second}))\n"));
        }
        text
    }

    /// Everything that holds besides chains and edges, each with what it says.
    pub(crate) fn formulas(
        &self,
        problem: &OrderProblem,
        terms: &mut TermStore,
    ) -> Result<Vec<(String, TermId)>, SolveError> {
        let mut formulas = Vec::with_capacity(problem.pis.len() + problem.asserted.len());
        for pi in &problem.pis {
            formulas.push((format!("what {:?} reads", pi.event), self.pi(terms, pi)?));
        }
        for &formula in &problem.asserted {
            formulas.push((String::from("asserted"), formula));
        }
        Ok(formulas)
    }

    /// The π-function as a formula (section 4.2 of 004, pruned by what must hold anyway).
    fn pi(&self, terms: &mut TermStore, pi: &Pi) -> Result<TermId, SolveError> {
        let mut alternatives = Vec::with_capacity(pi.choices.len());
        for &(definition, value) in &pi.choices {
            let mut parts = vec![terms.eq(pi.symbol, value)];
            if let Some(definition) = definition {
                parts.push(self.before(terms, definition, pi.event)?);
            }
            for &other in &pi.interfering {
                if Some(other) == definition || other == pi.event {
                    continue;
                }
                let after = self.before(terms, pi.event, other)?;
                let outside = match definition {
                    Some(definition) => {
                        let earlier = self.before(terms, other, definition)?;
                        terms.or(&[earlier, after])
                    }
                    None => after,
                };
                parts.push(outside);
            }
            alternatives.push(terms.and(&parts));
        }
        let some = terms.or(&alternatives);
        Ok(terms.implies(pi.active, some))
    }

    fn before(
        &self,
        terms: &mut TermStore,
        first: EventId,
        second: EventId,
    ) -> Result<TermId, SolveError> {
        Ok(match self.must.before(first, second)? {
            Some(known) => terms.bool(known),
            None if first < second => terms.before(first, second),
            None => {
                let reverse = terms.before(second, first);
                terms.not(reverse)
            }
        })
    }

    /// The text of a term; what it relies on is appended to `definitions`.
    pub(crate) fn term(&mut self, terms: &TermStore, root: TermId) -> Result<String, SolveError> {
        let uses = self.uses(terms, root);
        let mut texts: HashMap<TermId, (String, u32)> = HashMap::new();
        let mut stack = vec![root];
        while let Some(&top) = stack.last() {
            if texts.contains_key(&top) || self.names.contains_key(&top) {
                stack.pop();
                continue;
            }
            let Term::Apply(operator, arguments) = terms.term(top) else {
                let text = self.leaf(terms, top)?;
                self.names.insert(top, text);
                continue;
            };
            let known = |id: &TermId| texts.contains_key(id) || self.names.contains_key(id);
            let before = stack.len();
            stack.extend(arguments.iter().filter(|argument| !known(argument)));
            if stack.len() > before {
                continue;
            }
            let mut depth = 0;
            let mut parts = Vec::with_capacity(arguments.len());
            for argument in arguments {
                parts.push(match self.names.get(argument) {
                    Some(name) => name.clone(),
                    None => {
                        let (text, below) = &texts[argument];
                        depth = depth.max(*below + 1);
                        text.clone()
                    }
                });
            }
            let text = application(*operator, terms.sort(top), &parts);
            if uses[&top] > 1 || depth >= DEPTH {
                let name = format!("t{}", top.0);
                let sort = terms.sort(top);
                self.definitions.push_str(&format!("(define-fun {name} () {sort} {text})\n"));
                self.names.insert(top, name);
            } else {
                texts.insert(top, (text, depth));
            }
            for argument in arguments {
                texts.remove(argument);
            }
        }
        Ok(match texts.remove(&root) {
            Some((text, _)) => text,
            None => self.names[&root].clone(),
        })
    }

    /// How often each subterm without a name is used below the root.
    fn uses(&self, terms: &TermStore, root: TermId) -> HashMap<TermId, u32> {
        let mut uses = HashMap::from([(root, 1)]);
        let mut stack = vec![root];
        while let Some(top) = stack.pop() {
            if self.names.contains_key(&top) {
                continue;
            }
            if let Term::Apply(_, arguments) = terms.term(top) {
                for &argument in arguments {
                    let count = uses.entry(argument).or_insert(0);
                    *count += 1;
                    if *count == 1 {
                        stack.push(argument);
                    }
                }
            }
        }
        uses
    }

    fn leaf(&mut self, terms: &TermStore, leaf: TermId) -> Result<String, SolveError> {
        Ok(match terms.term(leaf) {
            Term::Constant(value) => constant(value),
            Term::Before(first, second) => match self.must.before(*first, *second)? {
                Some(known) => known.to_string(),
                None if first < second => format!("(< {first:?} {second:?})"),
                None => format!("(not (< {second:?} {first:?}))"),
            },
            Term::Symbol(symbol) => {
                let symbol_ = terms.symbol(*symbol);
                let plain = |c: char| if c == '|' || c == '\\' || c.is_control() { '_' } else { c };
                let name: String = symbol_.name.chars().map(plain).collect();
                let name = format!("|{name}!{}|", symbol.0);
                let sort = symbol_.sort;
                self.definitions.push_str(&format!("(declare-const {name} {sort})\n"));
                self.symbols.push(leaf);
                name
            }
            other => return Err(SolveError::Leaf(format!("{other:?}"))),
        })
    }
}

fn application(operator: Operator, sort: Sort, parts: &[String]) -> String {
    let name = operator.smtlib_name();
    let head = match operator {
        Operator::Extract { high, low } => format!("(_ {name} {high} {low})"),
        Operator::ZeroExtend(by) | Operator::SignExtend(by) => format!("(_ {name} {by})"),
        // SMT-LIB has `abs` for integers only
        Operator::Abs if sort == Sort::REAL => {
            let part = &parts[0];
            return format!("(ite (< {part} 0.0) (- {part}) {part})");
        }
        _ => name.to_string(),
    };
    format!("({head} {})", parts.join(" "))
}

fn constant(value: &Value) -> String {
    fn integer(value: i128, suffix: &str) -> String {
        match value < 0 {
            true => format!("(- {}{suffix})", value.unsigned_abs()),
            false => format!("{value}{suffix}"),
        }
    }
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => integer(*value, ""),
        Value::Real(value) if value.denominator() == 1 => integer(value.numerator(), ".0"),
        Value::Real(value) => {
            format!("(/ {} {}.0)", integer(value.numerator(), ".0"), value.denominator())
        }
        Value::BitVec { width, bits } => format!("(_ bv{bits} {width})"),
        Value::Array(array) => {
            let default = constant(array.default_element());
            let mut text = format!("((as const {}) {default})", value.sort());
            for (index, element) in array.entries() {
                text = format!("(store {text} {} {})", constant(index), constant(element));
            }
            text
        }
    }
}

/// Which theories the formulas need besides the order of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logic {
    seen: HashSet<TermId>,
    beyond: Beyond,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Beyond {
    /// Differences of integers: half as expensive for Z3 (solving.md).
    #[default]
    Differences,
    Linear,
    Everything,
}

impl Logic {
    pub(crate) fn name(&self) -> &'static str {
        match self.beyond {
            Beyond::Differences => "QF_IDL",
            Beyond::Linear => "QF_LIA",
            Beyond::Everything => "ALL",
        }
    }

    /// Widens the logic so that it covers the formula; was that necessary?
    pub(crate) fn look_at(&mut self, terms: &TermStore, formula: TermId) -> bool {
        let before = self.beyond;
        let mut stack = vec![formula];
        while let Some(top) = stack.pop() {
            if !self.seen.insert(top) {
                continue;
            }
            if let Term::Apply(_, arguments) = terms.term(top) {
                stack.extend(arguments.iter().copied());
            }
            self.beyond = self.beyond.max(needs(terms, top));
        }
        self.beyond > before
    }
}

fn needs(terms: &TermStore, term: TermId) -> Beyond {
    use Operator::*;
    match terms.sort(term) {
        Sort::BOOL | Sort::INT => {}
        _ => return Beyond::Everything,
    }
    let Term::Apply(operator, arguments) = terms.term(term) else { return Beyond::Differences };
    let integers = arguments.iter().any(|&argument| terms.sort(argument) == Sort::INT);
    match operator {
        Eq | Lt | Le if integers => match difference(terms, arguments[0], arguments[1]) {
            true => Beyond::Differences,
            false => Beyond::Linear,
        },
        Not | And | Or | Xor | Implies | Eq | Lt | Le | Add | Sub | Neg => Beyond::Differences,
        Ite if !integers => Beyond::Differences,
        Ite => Beyond::Linear,
        Mul => {
            let factors = arguments.iter().filter(|&&a| terms.constant_value(a).is_none()).count();
            if factors > 1 { Beyond::Everything } else { Beyond::Linear }
        }
        _ => Beyond::Everything,
    }
}

/// Is `left` compared with `right` a bound of `x - y` or of `x`?
fn difference(terms: &TermStore, left: TermId, right: TermId) -> bool {
    let mut factors: HashMap<TermId, i64> = HashMap::new();
    let mut stack = vec![(left, 1), (right, -1)];
    let mut steps = 0;
    while let Some((top, factor)) = stack.pop() {
        steps += 1;
        if steps > 16 {
            return false;
        }
        match terms.term(top) {
            Term::Constant(_) => {}
            Term::Symbol(_) => *factors.entry(top).or_insert(0) += factor,
            Term::Apply(Operator::Add, parts) => stack.extend(parts.iter().map(|&p| (p, factor))),
            // Z3 does not recognise a negated variable
            Term::Apply(Operator::Sub, parts) if terms.constant_value(parts[0]).is_none() => {
                stack.push((parts[0], factor));
                stack.extend(parts[1..].iter().map(|&p| (p, -factor)));
            }
            _ => return false,
        }
    }
    factors.retain(|_, factor| *factor != 0);
    let mut factors: Vec<i64> = factors.into_values().collect();
    factors.sort_unstable();
    // a bound of a single variable is written against zero, which Z3 accepts as a difference
    matches!(factors.as_slice(), [] | [1] | [-1] | [-1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_names_the_events_and_writes_a_pair_once() {
        let mut terms = TermStore::default();
        let [a, b] = [EventId(0), EventId(1)];
        let forth = terms.before(a, b);
        let back = terms.before(b, a);
        let either = terms.or(&[forth, back]);
        let problem = OrderProblem {
            terms,
            chains: vec![vec![a], vec![b]],
            asserted: vec![either],
            names: vec!["main: x = 1".into(), "worker: x = 2\n(exit)".into()],
            ..OrderProblem::default()
        };
        assert_eq!(
            script(&problem).unwrap(),
            "; an order of events, written by foretell\n\
             (set-logic QF_IDL)\n\
             (declare-const e0 Int) ; main: x = 1\n\
             (declare-const e1 Int) ; worker: x = 2 (exit)\n\
             (assert (or (< e0 e1) (not (< e0 e1)))) ; asserted\n\
             (check-sat)\n\
             (get-model)\n"
        );
    }

    #[test]
    fn the_logic_is_as_small_as_the_formulas_allow() {
        let mut terms = TermStore::default();
        let x = terms.fresh_symbol("x", Sort::INT);
        let y = terms.fresh_symbol("y", Sort::INT);
        let byte = terms.fresh_symbol("byte", Sort::bit_vec(8));
        let one = terms.int(1);
        let next = terms.build(Operator::Add, &[x, one]);
        let step = terms.build(Operator::Eq, &[y, next]);
        let sum = terms.build(Operator::Add, &[x, y]);
        let bound = terms.build(Operator::Lt, &[sum, one]);
        let zero = terms.bit_vec(8, 0);
        let bits = terms.build(Operator::Eq, &[byte, zero]);
        let mut logic = Logic::default();
        assert_eq!(logic.name(), "QF_IDL");
        assert!(!logic.look_at(&terms, step));
        assert_eq!(logic.name(), "QF_IDL");
        assert!(logic.look_at(&terms, bound));
        assert_eq!(logic.name(), "QF_LIA");
        assert!(logic.look_at(&terms, bits));
        assert_eq!(logic.name(), "ALL");
    }

    #[test]
    fn deep_and_shared_terms_stay_small() {
        let mut terms = TermStore::default();
        let mut sum = terms.fresh_symbol("x", Sort::bit_vec(32));
        for _ in 0..5000 {
            sum = terms.build(Operator::BvMul, &[sum, sum]);
        }
        let zero = terms.bit_vec(32, 0);
        let asserted = vec![terms.build(Operator::Eq, &[sum, zero])];
        let problem = OrderProblem { terms, asserted, ..OrderProblem::default() };
        assert!(script(&problem).unwrap().len() < 500_000);
    }
}
