//! Operators on words: on ladders, on bit-vectors, on integers.

use std::rc::Rc;

use foretell_trace::{Operator, Sort, TermId, TermStore};

use super::{Encoder, Unsupported, WIDEST, Word};
use crate::bitblast;
use crate::cnf::{Cnf, FALSE, Lit};
use crate::domain::Domain;
use crate::ladder::{self, Ladder};

impl Encoder {
    /// Both numbers as bits of one width.
    pub(super) fn same_width(&mut self, a: TermId, b: TermId) -> (Vec<Lit>, Vec<Lit>) {
        let width = |word: &Word| match word {
            Word::Ladder(ladder) => ladder.width(),
            Word::Bits(bits) => bits.len(),
            Word::Truth(_) => unreachable!("Booleans have no bits"),
        };
        let width = width(&self.words[&a]).max(width(&self.words[&b]));
        let mut extended = |term: TermId| match self.words[&term].clone() {
            Word::Ladder(ladder) => ladder.bits(&mut self.cnf, width),
            Word::Bits(bits) => bitblast::sign_extend(&bits, width),
            Word::Truth(_) => unreachable!("Booleans have no bits"),
        };
        (extended(a), extended(b))
    }

    pub(super) fn apply(
        &mut self,
        terms: &TermStore,
        operator: Operator,
        sort: Sort,
        arguments: &[TermId],
    ) -> Result<Word, Unsupported> {
        use Operator::*;
        let truths = |encoder: &Self| -> Vec<Lit> {
            arguments.iter().map(|&part| encoder.truth(part)).collect()
        };
        let compared = arguments.first().map(|&part| terms.sort(part));
        let word = match operator {
            Not => Word::Truth(!self.truth(arguments[0])),
            And => {
                let parts = truths(self);
                Word::Truth(self.cnf.and_all(&parts))
            }
            Or => {
                let parts = truths(self);
                Word::Truth(self.cnf.or_all(&parts))
            }
            Xor => Word::Truth(self.cnf.xor(self.truth(arguments[0]), self.truth(arguments[1]))),
            Implies => {
                Word::Truth(self.cnf.or(!self.truth(arguments[0]), self.truth(arguments[1])))
            }
            Eq if compared == Some(Sort::BOOL) => {
                Word::Truth(!self.cnf.xor(self.truth(arguments[0]), self.truth(arguments[1])))
            }
            Ite if sort == Sort::BOOL => {
                let [condition, then, otherwise] = truths(self)[..] else { unreachable!("sorted") };
                Word::Truth(self.cnf.ite(condition, then, otherwise))
            }
            _ => match self.on_ladders(terms, operator, sort, arguments) {
                Some(word) => word,
                None if sort == Sort::BOOL => self.compare(terms, operator, arguments)?,
                None if sort.width().is_some() => {
                    Word::Bits(self.bit_vector(terms, operator, arguments).into())
                }
                None => Word::Bits(self.integer(terms, operator, arguments)?.into()),
            },
        };
        Ok(word)
    }

    /// The operator where all numbers are ladders, if that stays small.
    fn on_ladders(
        &mut self,
        terms: &TermStore,
        operator: Operator,
        sort: Sort,
        arguments: &[TermId],
    ) -> Option<Word> {
        use Operator::*;
        let mut ladders = Vec::with_capacity(arguments.len());
        for &argument in arguments {
            match &self.words[&argument] {
                Word::Ladder(ladder) => ladders.push(ladder.clone()),
                Word::Truth(_) if operator == Ite => {}
                _ => return None,
            }
        }
        let cnf = &mut self.cnf;
        let natural = |ladder: &Ladder| ladder.values[0] >= 0;
        // a sum of bit-vectors that cannot wrap around
        let fits = |ladder: Ladder| {
            let (low, high) = (ladder.values[0], *ladder.values.last()?);
            let inside = Domain::full(sort).bounds().is_none_or(|(a, b)| a <= low && high <= b);
            inside.then_some(ladder)
        };
        if sort == Sort::BOOL {
            let [a, b] = ladders.as_slice() else { return None };
            let (strict, fitting) = match operator {
                Eq => return Some(Word::Truth(a.same(cnf, b))),
                Lt | BvSlt => (true, true),
                Le | BvSle => (false, true),
                BvUlt => (true, natural(a) && natural(b)),
                BvUle => (false, natural(a) && natural(b)),
                _ => return None,
            };
            return fitting.then(|| Word::Truth(a.less(cnf, b, !strict)));
        }
        let sum = |cnf: &mut Cnf, negate: bool| {
            let mut sum = ladders[0].clone();
            for next in &ladders[1..] {
                let next = if negate { next.negate()? } else { next.clone() };
                sum = sum.plus(cnf, &next)?;
            }
            fits(sum)
        };
        let simple = match operator {
            Ite => {
                let condition = match &self.words[&arguments[0]] {
                    Word::Truth(literal) => *literal,
                    _ => return None,
                };
                let [then, otherwise] = ladders.as_slice() else { return None };
                let mut values: Vec<i128> =
                    then.values.iter().chain(&*otherwise.values).copied().collect();
                values.sort_unstable();
                values.dedup();
                if values.len() > ladder::FEW {
                    return None;
                }
                let steps = values[1..]
                    .iter()
                    .map(|&v| cnf.ite(condition, then.at_least(v), otherwise.at_least(v)));
                let steps = steps.collect();
                Some(Ladder { steps, values: values.into() })
            }
            Add | BvAdd => sum(cnf, false),
            Sub | BvSub => sum(cnf, true),
            Neg | BvNeg => ladders[0].negate().and_then(fits),
            SignExtend(_) => Some(ladders[0].clone()),
            ZeroExtend(_) if natural(&ladders[0]) => Some(ladders[0].clone()),
            Mul | BvMul => match ladders.as_slice() {
                [a, b] => match (&*a.values, &*b.values) {
                    (_, [factor]) if *factor != 0 => a.scale(*factor).and_then(fits),
                    ([factor], _) if *factor != 0 => b.scale(*factor).and_then(fits),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        let ladder = match simple {
            Some(ladder) => ladder,
            None if operator == Ite => return None,
            None => {
                let sorts = arguments.iter().map(|&argument| terms.sort(argument));
                let arguments: Vec<(&Ladder, Sort)> = ladders.iter().zip(sorts).collect();
                Ladder::table(cnf, operator, sort, &arguments)?
            }
        };
        Some(Word::Ladder(ladder))
    }

    fn compare(
        &mut self,
        terms: &TermStore,
        operator: Operator,
        arguments: &[TermId],
    ) -> Result<Word, Unsupported> {
        use Operator::*;
        let [a, b] = arguments else { return Err(format!("`{}`", operator.smtlib_name())) };
        let (a, b) = match terms.sort(*a).width() {
            Some(_) => (self.bits_of(terms, *a).to_vec(), self.bits_of(terms, *b).to_vec()),
            None => self.same_width(*a, *b),
        };
        let cnf = &mut self.cnf;
        Ok(Word::Truth(match operator {
            Eq => cnf.bits_equal(&a, &b),
            Lt | BvSlt => cnf.signed_less(&a, &b, false),
            Le | BvSle => cnf.signed_less(&a, &b, true),
            BvUlt => cnf.unsigned_less(&a, &b, false),
            BvUle => cnf.unsigned_less(&a, &b, true),
            _ => return Err(format!("`{}`", operator.smtlib_name())),
        }))
    }

    fn bit_vector(
        &mut self,
        terms: &TermStore,
        operator: Operator,
        arguments: &[TermId],
    ) -> Vec<Lit> {
        use Operator::*;
        if operator == Ite {
            let condition = self.truth(arguments[0]);
            let then = self.bits_of(terms, arguments[1]);
            let otherwise = self.bits_of(terms, arguments[2]);
            return self.cnf.mux(condition, &then, &otherwise);
        }
        let words: Vec<Rc<[Lit]>> =
            arguments.iter().map(|&argument| self.bits_of(terms, argument)).collect();
        let a = &words[0];
        let cnf = &mut self.cnf;
        let b = words.get(1).unwrap_or(a);
        let mut each = |gate: fn(&mut Cnf, Lit, Lit) -> Lit| -> Vec<Lit> {
            a.iter().zip(&**b).map(|(&a, &b)| gate(cnf, a, b)).collect()
        };
        match operator {
            BvAnd => return each(Cnf::and),
            BvOr => return each(Cnf::or),
            BvXor => return each(Cnf::xor),
            _ => {}
        }
        match operator {
            BvNot => a.iter().map(|&bit| !bit).collect(),
            BvNeg => cnf.neg(a),
            BvAdd => cnf.add(a, b, FALSE),
            BvSub => cnf.sub(a, b),
            BvMul => cnf.mul(a, b),
            BvUdiv => cnf.unsigned_divide(a, b).0,
            BvUrem => cnf.unsigned_divide(a, b).1,
            BvSdiv => cnf.signed_divide(a, b).0,
            BvSrem => cnf.signed_divide(a, b).1,
            BvShl => cnf.shift(a, b, true, FALSE),
            BvLshr => cnf.shift(a, b, false, FALSE),
            BvAshr => cnf.shift(a, b, false, a[a.len() - 1]),
            Concat => b.iter().chain(&**a).copied().collect(),
            Extract { high, low } => a[usize::from(low)..=usize::from(high)].to_vec(),
            ZeroExtend(by) => a.iter().copied().chain((0..by).map(|_| FALSE)).collect(),
            SignExtend(by) => bitblast::sign_extend(a, a.len() + usize::from(by)),
            other => unreachable!("{other:?} gives no bit-vector"),
        }
    }

    fn integer(
        &mut self,
        terms: &TermStore,
        operator: Operator,
        arguments: &[TermId],
    ) -> Result<Vec<Lit>, Unsupported> {
        use Operator::*;
        if operator == Ite {
            let condition = self.truth(arguments[0]);
            let (then, otherwise) = self.same_width(arguments[1], arguments[2]);
            return Ok(self.cnf.mux(condition, &then, &otherwise));
        }
        if !matches!(operator, Add | Sub | Mul | Neg | Abs | IntDiv | Mod) {
            return Err(format!("`{}`", operator.smtlib_name()));
        }
        let words: Vec<Rc<[Lit]>> =
            arguments.iter().map(|&argument| self.bits_of(terms, argument)).collect();
        let mut result = words[0].to_vec();
        if matches!(operator, Neg | Abs) {
            let wide = bitblast::sign_extend(&result, result.len() + 1);
            let negative = self.cnf.neg(&wide);
            return Ok(match operator {
                Neg => negative,
                _ => self.cnf.mux(wide[wide.len() - 1], &negative, &wide),
            });
        }
        for word in &words[1..] {
            let width = match operator {
                Mul => result.len() + word.len(),
                _ => result.len().max(word.len()) + 1,
            };
            if width > WIDEST {
                return Err(format!("integers of more than {WIDEST} bits"));
            }
            let a = bitblast::sign_extend(&result, width);
            let b = bitblast::sign_extend(word, width);
            result = match operator {
                Add => self.cnf.add(&a, &b, FALSE),
                Sub => self.cnf.sub(&a, &b),
                Mul => self.cnf.mul(&a, &b),
                _ => {
                    let Some(divisor) = bitblast::known(&b).filter(|&divisor| divisor != 0) else {
                        return Err(String::from("division of integers by a variable"));
                    };
                    self.euclid(&a, &b, divisor, operator == Mod)
                }
            };
        }
        Ok(result)
    }

    /// Division with a remainder that is not negative.
    fn euclid(&mut self, a: &[Lit], b: &[Lit], divisor: i128, remainder: bool) -> Vec<Lit> {
        let width = a.len();
        let (quotient, rest) = self.cnf.signed_divide(a, b);
        let negative = rest[width - 1];
        let (word, step) = match remainder {
            true => (rest, divisor.abs()),
            false => (quotient, -divisor.signum()),
        };
        let corrected = self.cnf.add(&word, &bitblast::constant(step, width), FALSE);
        self.cnf.mux(negative, &corrected, &word)
    }
}
