//! Terms from trees.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Atom, NodeId, SyntaxError, Tree, coerce, literal, print_sort};
use crate::id::TermId;
use crate::term::{ArrayValue, Operator, Sort, Term, TermStore, Value};

/// Says what names stand for.
pub trait Scope {
    /// The term for a name.
    fn name(&mut self, terms: &mut TermStore, atom: &Atom<'_>) -> Result<TermId, Refusal>;

    /// The term for a list that only this language has, e.g. `(read T1 3)`; `None` when it is none.
    fn form(
        &mut self,
        terms: &mut TermStore,
        tree: &Tree<'_>,
        list: NodeId,
        head: &str,
    ) -> Result<Option<TermId>, SyntaxError> {
        let _ = (terms, tree, list, head);
        Ok(None)
    }
}

/// Why a name is refused, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// Builds terms from trees. One reader serves a whole file, so that its budget bounds the file.
#[derive(Debug)]
pub struct TermReader {
    budget: usize,
}

impl Default for TermReader {
    fn default() -> Self {
        Self { budget: Self::BUDGET }
    }
}

enum Head<'a> {
    Named(&'a str),
    Indexed(Operator),
    ConstantArray(Sort),
    /// `(x)`
    Parentheses,
    Let {
        names: Vec<Cow<'a, str>>,
    },
}

struct Frame<'a> {
    node: NodeId,
    head: Head<'a>,
    /// What is still to be read, last first.
    pending: Vec<NodeId>,
    arguments: Vec<TermId>,
}

enum Entered<'a> {
    Term(TermId),
    List(Frame<'a>),
}

impl TermReader {
    /// How many arguments all terms of a file may have together beyond those that are written.
    const BUDGET: usize = 1 << 22;
    /// What an entry of a constant array costs of the budget.
    const ENTRY_COST: usize = 16;

    /// The term at `node`.
    pub fn term(
        &mut self,
        terms: &mut TermStore,
        scope: &mut dyn Scope,
        tree: &Tree<'_>,
        node: NodeId,
    ) -> Result<TermId, SyntaxError> {
        let mut reading = Reading { reader: self, terms, scope, tree, bound: HashMap::new() };
        reading.term(node)
    }

    /// The term at `node`, which must have this sort; integers are taken for reals or bit-vectors.
    pub fn term_of_sort(
        &mut self,
        terms: &mut TermStore,
        scope: &mut dyn Scope,
        tree: &Tree<'_>,
        node: NodeId,
        sort: Sort,
    ) -> Result<TermId, SyntaxError> {
        let term = self.term(terms, scope, tree, node)?;
        let term = coerce(terms, term, sort);
        if terms.sort(term) != sort {
            let found = print_sort(terms.sort(term));
            let message = format!("expected {}, this is {found}", print_sort(sort));
            return Err(tree.error(node, message));
        }
        Ok(term)
    }
}

struct Reading<'r, 'a> {
    reader: &'r mut TermReader,
    terms: &'r mut TermStore,
    scope: &'r mut dyn Scope,
    tree: &'r Tree<'a>,
    /// What `let` binds each name to, innermost last.
    bound: HashMap<String, Vec<TermId>>,
}

impl<'a> Reading<'_, 'a> {
    fn term(&mut self, root: NodeId) -> Result<TermId, SyntaxError> {
        let mut frames: Vec<Frame<'a>> = Vec::new();
        let mut next = Some(root);
        let mut done: Option<TermId> = None;
        loop {
            if let Some(node) = next.take() {
                match self.enter(node)? {
                    Entered::Term(term) => done = Some(term),
                    Entered::List(frame) => frames.push(frame),
                }
            }
            let Some(frame) = frames.last_mut() else {
                return Ok(done.expect("the last frame left a term"));
            };
            frame.arguments.extend(done.take());
            next = frame.pending.pop();
            match (&frame.head, next) {
                (Head::Let { names }, Some(_)) if frame.pending.is_empty() => {
                    for (name, value) in names.iter().zip(&frame.arguments) {
                        self.bound.entry(name.to_string()).or_default().push(*value);
                    }
                }
                (_, Some(_)) => {}
                (_, None) => {
                    let frame = frames.pop().expect("it is the last");
                    done = Some(self.leave(&frame)?);
                }
            }
        }
    }

    fn enter(&mut self, node: NodeId) -> Result<Entered<'a>, SyntaxError> {
        let tree = self.tree;
        if let Some(value) = literal(tree, node)? {
            return Ok(Entered::Term(self.terms.constant(value)));
        }
        if let Some(atom) = tree.atom(node) {
            let bound = self.bound.get(atom.name.as_ref()).and_then(|values| values.last());
            return match bound {
                Some(&term) => Ok(Entered::Term(term)),
                None => self
                    .scope
                    .name(self.terms, &atom)
                    .map(Entered::Term)
                    .map_err(|refusal| tree.error(node, refusal.message).help(refusal.help)),
            };
        }
        let mut children: Vec<NodeId> = tree.children(node).collect();
        let Some(&first) = children.first() else {
            return Err(tree.error(node, "`()` is not a formula"));
        };
        let head = match tree.head(node) {
            None => self.indexed(first)?,
            Some("let") => return self.enter_let(node, &children),
            Some(word @ ("forall" | "exists")) => {
                if let Some(term) = self.scope.form(self.terms, tree, node, word)? {
                    return Ok(Entered::Term(term));
                }
                return Err(tree.error(node, "quantifiers are not handled").help(
                    "state it for each index, or `(forall ((i Int)) (= (select a i) 0))` for a \
                     constant array",
                ));
            }
            Some(word) => {
                if let Some(term) = self.scope.form(self.terms, tree, node, word)? {
                    return Ok(Entered::Term(term));
                }
                if is_function(word) {
                    Head::Named(word)
                } else if children.len() == 1 {
                    Head::Parentheses
                } else {
                    return Err(tree.error(first, format!("unknown function `{word}`")));
                }
            }
        };
        if !matches!(head, Head::Parentheses) {
            children.remove(0);
        }
        children.reverse();
        Ok(Entered::List(Frame { node, head, pending: children, arguments: Vec::new() }))
    }

    /// `(_ extract 7 0)` and the like, `(as const S)`, or a parenthesised formula.
    fn indexed(&mut self, node: NodeId) -> Result<Head<'a>, SyntaxError> {
        let tree = self.tree;
        let parts: Vec<NodeId> = tree.children(node).collect();
        let words: Vec<&str> = parts.iter().map(|&part| tree.source(part)).collect();
        let number = |index: usize| words[index].parse::<u16>().ok();
        let operator = match words.as_slice() {
            ["as", "const", _] => return Ok(Head::ConstantArray(tree.sort(parts[2])?)),
            ["_", "extract", _, _] => {
                number(2).zip(number(3)).map(|(high, low)| Operator::Extract { high, low })
            }
            ["_", "zero_extend", _] => number(2).map(Operator::ZeroExtend),
            ["_", "sign_extend", _] => number(2).map(Operator::SignExtend),
            ["_", ..] => None,
            _ => return Ok(Head::Parentheses),
        };
        let unknown = || tree.error(node, format!("unknown function `{}`", tree.source(node)));
        operator.map(Head::Indexed).ok_or_else(unknown)
    }

    fn enter_let(&mut self, node: NodeId, children: &[NodeId]) -> Result<Entered<'a>, SyntaxError> {
        let tree = self.tree;
        let malformed = || tree.error(node, "malformed `let`").help("write (let ((x e)) body)");
        let &[_, bindings, body] = children else { return Err(malformed()) };
        let mut names = Vec::new();
        let mut pending = Vec::new();
        for binding in tree.children(bindings) {
            let parts: Vec<NodeId> = tree.children(binding).collect();
            let &[name, value] = parts.as_slice() else { return Err(malformed()) };
            names.push(tree.atom(name).ok_or_else(malformed)?.name);
            pending.push(value);
        }
        pending.push(body);
        pending.reverse();
        if names.is_empty() {
            return Err(malformed());
        }
        let head = Head::Let { names };
        Ok(Entered::List(Frame { node, head, pending, arguments: Vec::new() }))
    }

    fn leave(&mut self, frame: &Frame<'a>) -> Result<TermId, SyntaxError> {
        let arguments = frame.arguments.as_slice();
        match &frame.head {
            Head::Named(name) => self.apply_named(frame.node, name, arguments),
            Head::Indexed(operator) => self.apply(frame.node, *operator, arguments),
            Head::Parentheses => match arguments {
                [only] => Ok(*only),
                _ => Err(self.tree.error(frame.node, "this list is not a formula")),
            },
            Head::ConstantArray(sort) => {
                let &Sort::Array { index, element } = sort else {
                    return Err(self.tree.error(frame.node, "`as const` needs an array sort"));
                };
                let value = match arguments {
                    [only] => {
                        let term = coerce(self.terms, *only, element.into());
                        self.terms.constant_value(term).cloned()
                    }
                    _ => None,
                };
                match value {
                    Some(value) if value.sort() == element.into() => {
                        let array = ArrayValue::constant(index, value);
                        Ok(self.terms.constant(Value::Array(Box::new(array))))
                    }
                    _ => Err(self.tree.error(frame.node, "a constant array needs one constant")),
                }
            }
            Head::Let { names } => {
                for name in names {
                    if let Some(values) = self.bound.get_mut(name.as_ref()) {
                        values.pop();
                        if values.is_empty() {
                            self.bound.remove(name.as_ref());
                        }
                    }
                }
                Ok(*arguments.last().expect("the body is an argument"))
            }
        }
    }

    fn apply_named(
        &mut self,
        node: NodeId,
        name: &str,
        arguments: &[TermId],
    ) -> Result<TermId, SyntaxError> {
        let swapped = || arguments.iter().rev().copied().collect::<Vec<_>>();
        match name {
            "true" | "false" => Err(self.tree.error(node, "a truth value takes no arguments")),
            "and" => self.apply(node, Operator::And, arguments),
            "or" => self.apply(node, Operator::Or, arguments),
            "-" if arguments.len() == 1 => self.apply(node, Operator::Neg, arguments),
            "+" | "*" if arguments.len() == 1 => Ok(arguments[0]),
            "distinct" => {
                self.pay(node, arguments.len().saturating_mul(arguments.len()))?;
                let mut pairs = Vec::new();
                for (index, &left) in arguments.iter().enumerate() {
                    for &right in &arguments[index + 1..] {
                        let equal = self.apply(node, Operator::Eq, &[left, right])?;
                        pairs.push(self.terms.not(equal));
                    }
                }
                Ok(self.terms.and(&pairs))
            }
            "=" => self.chain(node, Operator::Eq, arguments),
            "<" => self.chain(node, Operator::Lt, arguments),
            "<=" => self.chain(node, Operator::Le, arguments),
            ">" => self.chain(node, Operator::Lt, &swapped()),
            ">=" => self.chain(node, Operator::Le, &swapped()),
            "bvugt" => self.apply(node, Operator::BvUlt, &swapped()),
            "bvuge" => self.apply(node, Operator::BvUle, &swapped()),
            "bvsgt" => self.apply(node, Operator::BvSlt, &swapped()),
            "bvsge" => self.apply(node, Operator::BvSle, &swapped()),
            "bvnand" | "bvnor" | "bvxnor" => {
                let operator = match name {
                    "bvnand" => Operator::BvAnd,
                    "bvnor" => Operator::BvOr,
                    _ => Operator::BvXor,
                };
                let term = self.apply(node, operator, arguments)?;
                self.apply(node, Operator::BvNot, &[term])
            }
            "=>" => match arguments {
                [premises @ .., last] if !premises.is_empty() => {
                    let mut term = *last;
                    for &premise in premises.iter().rev() {
                        term = self.apply(node, Operator::Implies, &[premise, term])?;
                    }
                    Ok(term)
                }
                _ => self.apply(node, Operator::Implies, arguments),
            },
            _ => {
                let operator = function(name).expect("checked when the list was entered");
                let folds = matches!(
                    operator,
                    Operator::Xor
                        | Operator::IntDiv
                        | Operator::RealDiv
                        | Operator::Concat
                        | Operator::BvAdd
                        | Operator::BvMul
                        | Operator::BvAnd
                        | Operator::BvOr
                        | Operator::BvXor
                );
                let (left, rest) = match arguments {
                    [first, second, rest @ ..] if folds => ([*first, *second], rest),
                    _ => return self.apply(node, operator, arguments),
                };
                let mut term = self.apply(node, operator, &left)?;
                for &argument in rest {
                    term = self.apply(node, operator, &[term, argument])?;
                }
                Ok(term)
            }
        }
    }

    /// `(< a b c)` is `(and (< a b) (< b c))`.
    fn chain(
        &mut self,
        node: NodeId,
        operator: Operator,
        arguments: &[TermId],
    ) -> Result<TermId, SyntaxError> {
        if arguments.len() <= 2 {
            return self.apply(node, operator, arguments);
        }
        let mut links = Vec::with_capacity(arguments.len() - 1);
        for pair in arguments.windows(2) {
            links.push(self.apply(node, operator, pair)?);
        }
        let conjunction = self.terms.and(&links);
        self.charge(node, conjunction, arguments.len())
    }

    fn apply(
        &mut self,
        node: NodeId,
        operator: Operator,
        arguments: &[TermId],
    ) -> Result<TermId, SyntaxError> {
        let mut ids = arguments.to_vec();
        self.unify(operator, &mut ids);
        let term = self.terms.apply(operator, &ids).map_err(|error| {
            let arithmetic = matches!(
                operator,
                Operator::Add | Operator::Sub | Operator::Mul | Operator::Lt | Operator::Le
            );
            let vectors = error.arguments.iter().any(|sort| sort.width().is_some());
            let error = self.tree.error(node, error.to_string());
            match arithmetic && vectors {
                true => error.help("for bit-vectors write bvadd, bvsub, bvmul, bvslt, bvule, ..."),
                false => error,
            }
        })?;
        self.charge(node, term, arguments.len())
    }

    /// Takes integers for reals or bit-vectors where the other arguments ask for it.
    fn unify(&mut self, operator: Operator, arguments: &mut [TermId]) {
        use Operator::*;
        match (operator, &*arguments) {
            (Select | Store, &[array, ..]) => {
                if let Sort::Array { index, element } = self.terms.sort(array) {
                    for (argument, sort) in arguments[1..].iter_mut().zip([index, element]) {
                        *argument = coerce(self.terms, *argument, sort.into());
                    }
                }
            }
            (RealDiv | ToInt, _) => {
                for argument in arguments {
                    *argument = coerce(self.terms, *argument, Sort::REAL);
                }
            }
            (Not | And | Or | Xor | Implies | IntDiv | Mod | ToReal | Concat, _) => {}
            _ => {
                let branches = if operator == Ite { 1.min(arguments.len()) } else { 0 };
                let arguments = &mut arguments[branches..];
                let asked = arguments.iter().map(|&argument| self.terms.sort(argument));
                if let Some(sort) = asked.clone().find(|&sort| sort != Sort::INT) {
                    for argument in arguments {
                        *argument = coerce(self.terms, *argument, sort);
                    }
                }
            }
        }
    }

    /// Pays for a term of which `written` arguments stand in the file.
    fn charge(
        &mut self,
        node: NodeId,
        term: TermId,
        written: usize,
    ) -> Result<TermId, SyntaxError> {
        let cost = match self.terms.term(term) {
            Term::Apply(_, arguments) => arguments.len().saturating_sub(written),
            Term::Constant(Value::Array(array)) => array.entries().count() * TermReader::ENTRY_COST,
            _ => 0,
        };
        self.pay(node, cost)?;
        Ok(term)
    }

    fn pay(&mut self, node: NodeId, cost: usize) -> Result<(), SyntaxError> {
        let left = self.reader.budget.checked_sub(cost);
        let too_large = || self.tree.error(node, "the formulas of this file are too large");
        self.reader.budget = left.ok_or_else(too_large)?;
        Ok(())
    }
}

/// The operators without indices.
const OPERATORS: [Operator; 38] = {
    use Operator::*;
    [
        Not, And, Or, Xor, Implies, Ite, Eq, Add, Sub, Mul, IntDiv, Mod, Abs, RealDiv, ToReal,
        ToInt, Lt, Le, BvNot, BvNeg, BvAnd, BvOr, BvXor, BvAdd, BvSub, BvMul, BvUdiv, BvUrem,
        BvSdiv, BvSrem, BvShl, BvLshr, BvAshr, BvUlt, BvUle, BvSlt, BvSle, Concat,
    ]
};

fn function(name: &str) -> Option<Operator> {
    match name {
        "select" => Some(Operator::Select),
        "store" => Some(Operator::Store),
        _ => OPERATORS.into_iter().find(|operator| operator.smtlib_name() == name),
    }
}

fn is_function(name: &str) -> bool {
    const DERIVED: [&str; 10] =
        [">", ">=", "distinct", "bvugt", "bvuge", "bvsgt", "bvsge", "bvnand", "bvnor", "bvxnor"];
    DERIVED.contains(&name) || function(name).is_some()
}
