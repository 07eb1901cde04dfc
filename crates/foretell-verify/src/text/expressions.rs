//! Expressions, conditions, and the indices in them.

use foretell_trace::{Operator, Sort, Term, TermId, TermStore, Value};

use super::tokens::Token;
use super::{InputError, Meaning, Parser};
use crate::limits::DEEPEST_COMMANDS;
use crate::program::{Location, Place, less};

impl Parser<'_> {
    pub(super) fn number(&mut self) -> Result<i128, InputError> {
        let negative = self.take("-");
        match self.tokens[self.at].0 {
            Token::Number(number) => {
                self.at += 1;
                Ok(if negative { -number } else { number })
            }
            _ => self.error("expected a number"),
        }
    }

    /// An index must lie inside; noted for the statement that is being read.
    pub(super) fn check_index(&mut self, index: TermId, size: usize) {
        let terms = self.builder.terms();
        let (zero, size) = (terms.int(0), terms.int(size as i128));
        let below = less(terms, index, zero);
        let above = terms.build(Operator::Le, &[size, index]);
        let outside = terms.or(&[below, above]);
        self.outside.push(outside);
    }

    /// The condition under which the statement's indices lie inside; an edge to the error location
    /// is made for the others.
    pub(super) fn inside(
        &mut self,
        from: Location,
        guard: TermId,
        place: Place,
        said: &str,
    ) -> TermId {
        let outside = std::mem::take(&mut self.outside);
        let outside = self.builder.terms().or(&outside);
        if !self.builder.terms().is_false(outside) {
            let error = self.builder.program.threads[self.thread].error;
            let guard = self.builder.terms().and(&[guard, outside]);
            let edge = self.builder.edge(self.thread, from, error, place);
            edge.guard = guard;
            edge.text = format!("{said}: index outside").into();
        }
        self.builder.terms().not(outside)
    }

    /// An expression that is true or false.
    pub(super) fn condition(&mut self) -> Result<TermId, InputError> {
        let term = self.expression(0)?;
        Ok(truth(self.builder.terms(), term))
    }

    /// An expression that is a number; `*` is any.
    pub(super) fn value(&mut self) -> Result<TermId, InputError> {
        if self.is("*") {
            self.at += 1;
            return Ok(self.builder.input());
        }
        let term = self.expression(0)?;
        Ok(number(self.builder.terms(), term))
    }

    /// Operators by how tightly they bind.
    fn expression(&mut self, level: usize) -> Result<TermId, InputError> {
        const LEVELS: [&[&str]; 6] = [
            &["||"],
            &["&&"],
            &["==", "!="],
            &["<", "<=", ">", ">="],
            &["+", "-"],
            &["*", "/", "%"],
        ];
        if level == LEVELS.len() {
            return self.unary();
        }
        let mut left = self.expression(level + 1)?;
        while let Some(sign) = LEVELS[level].iter().find(|sign| self.is(sign)) {
            self.at += 1;
            let noted = self.outside.len();
            let right = self.expression(level + 1)?;
            if matches!(*sign, "&&" | "||") {
                // the right side counts only where the left does not decide
                let left = truth(self.builder.terms(), left);
                for place in noted..self.outside.len() {
                    let outside = self.outside[place];
                    let terms = self.builder.terms();
                    let reached = if *sign == "&&" { left } else { terms.not(left) };
                    self.outside[place] = terms.and(&[reached, outside]);
                }
            }
            left = match binary(self.builder.terms(), sign, left, right) {
                Ok(term) => term,
                Err(why) => return self.error(why),
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<TermId, InputError> {
        self.depth += 1;
        if self.depth > DEEPEST_COMMANDS {
            return self.error("nested too deeply");
        }
        let term = self.unary_inside();
        self.depth -= 1;
        term
    }

    fn unary_inside(&mut self) -> Result<TermId, InputError> {
        if self.take("!") {
            let inner = self.unary()?;
            let terms = self.builder.terms();
            let inner = truth(terms, inner);
            return Ok(terms.not(inner));
        }
        if self.take("-") {
            let inner = self.unary()?;
            let terms = self.builder.terms();
            let inner = number(terms, inner);
            return Ok(terms.build(Operator::Neg, &[inner]));
        }
        if self.take("(") {
            let inner = self.expression(0)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if let Token::Number(value) = self.tokens[self.at].0 {
            self.at += 1;
            return Ok(self.builder.terms().int(value));
        }
        let name = self.word()?;
        match name.as_str() {
            "self" => return Ok(self.builder.terms().int(self.own)),
            "true" => return Ok(self.builder.terms().bool(true)),
            "false" => return Ok(self.builder.terms().bool(false)),
            _ => {}
        }
        match self.names.get(&name).cloned() {
            Some(Meaning::Scalar(variable)) => Ok(variable),
            Some(Meaning::Array(cells)) => {
                self.expect("[")?;
                let index = self.value()?;
                self.expect("]")?;
                self.check_index(index, cells.len());
                Ok(cell(self.builder.terms(), &cells, index))
            }
            Some(Meaning::Mutex(_)) => self.error(format!("the mutex `{name}` has no value")),
            None => self.error(format!("`{name}` is not declared; declare it `shared` or `local`")),
        }
    }
}

/// The cell of an array at an index, which must lie inside.
pub(crate) fn cell(terms: &mut TermStore, cells: &[TermId], index: TermId) -> TermId {
    let (&last, others) = cells.split_last().expect("arrays have cells");
    let mut value = last;
    for (place, &cell) in others.iter().enumerate().rev() {
        let here = terms.int(place as i128);
        let here = terms.eq(index, here);
        value = terms.ite(here, cell, value);
    }
    value
}

/// A term as true or false: not zero.
pub(crate) fn truth(terms: &mut TermStore, term: TermId) -> TermId {
    if terms.sort(term) == Sort::BOOL {
        return term;
    }
    // undo what `number` did
    if let Term::Apply(Operator::Ite, parts) = terms.term(term)
        && let (condition, Some(Value::Int(1)), Some(Value::Int(0))) =
            (parts[0], terms.constant_value(parts[1]), terms.constant_value(parts[2]))
    {
        return condition;
    }
    let zero = terms.int(0);
    let equal = terms.eq(term, zero);
    terms.not(equal)
}

/// A term as a number: 1 for true.
pub(crate) fn number(terms: &mut TermStore, term: TermId) -> TermId {
    if terms.sort(term) == Sort::INT {
        return term;
    }
    let (one, zero) = (terms.int(1), terms.int(0));
    terms.ite(term, one, zero)
}

/// A binary operator of C on terms; division truncates and needs a positive constant divisor.
pub(crate) fn binary(
    terms: &mut TermStore,
    sign: &str,
    left: TermId,
    right: TermId,
) -> Result<TermId, String> {
    if matches!(sign, "&&" | "||") {
        let sides = [truth(terms, left), truth(terms, right)];
        return Ok(if sign == "&&" { terms.and(&sides) } else { terms.or(&sides) });
    }
    let (left, right) = (number(terms, left), number(terms, right));
    Ok(match sign {
        "==" => terms.eq(left, right),
        "!=" => {
            let equal = terms.eq(left, right);
            terms.not(equal)
        }
        "<" => less(terms, left, right),
        ">" => less(terms, right, left),
        "<=" => terms.build(Operator::Le, &[left, right]),
        ">=" => terms.build(Operator::Le, &[right, left]),
        "+" => terms.build(Operator::Add, &[left, right]),
        "-" => terms.build(Operator::Sub, &[left, right]),
        "*" => {
            let constant = |term| terms.constant_value(term).is_some();
            if !constant(left) && !constant(right) {
                return Err("a product of two variables is not linear and not supported".into());
            }
            terms.build(Operator::Mul, &[left, right])
        }
        "/" | "%" => {
            let positive = matches!(terms.constant_value(right), Some(Value::Int(n)) if *n > 0);
            if !positive {
                return Err("only division by a positive constant is supported".into());
            }
            // C truncates: -(-a / b) for a negative dividend
            let operator = if sign == "/" { Operator::IntDiv } else { Operator::Mod };
            let direct = terms.build(operator, &[left, right]);
            let opposite = terms.build(Operator::Neg, &[left]);
            let opposite = terms.build(operator, &[opposite, right]);
            let opposite = terms.build(Operator::Neg, &[opposite]);
            let zero = terms.int(0);
            let negative = less(terms, left, zero);
            terms.ite(negative, opposite, direct)
        }
        other => return Err(format!("the operator `{other}` is not supported")),
    })
}
