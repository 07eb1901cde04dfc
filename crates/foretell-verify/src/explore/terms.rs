//! Values that depend on inputs, as terms over bit vectors.
//!
//! Terms are interned: equal terms have equal numbers, and a term needs memory once however often it
//! is used. Operators mean what SMT-LIB says, also where LLVM leaves them undefined (a division by
//! zero, a long shift); whoever builds such a term has excluded these cases before.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::ir::{Arithmetic, Cast, Comparison, mask, signed};

/// The number of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(pub u32);

/// What a term is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Node {
    /// An input, by its number in the state.
    Input(u32),
    Number(u128),
    Compute(Arithmetic, Symbol, Symbol),
    /// One bit.
    Compare(Comparison, Symbol, Symbol),
    Convert(Cast, Symbol),
}

#[derive(Debug)]
struct Known {
    node: Node,
    bits: u32,
    /// The inputs in it, in ascending order.
    inputs: Arc<[Symbol]>,
    /// It is between these, as a signed number.
    range: (i128, i128),
}

/// Values of inputs.
pub type Assignment = HashMap<Symbol, u128>;

/// All terms. Parts of a term have smaller numbers than the term.
#[derive(Debug, Default)]
pub struct Terms {
    known: Vec<Known>,
    numbers: HashMap<(Node, u32), Symbol>,
}

impl Terms {
    fn intern(&mut self, node: Node, bits: u32) -> Symbol {
        if let Some(&symbol) = self.numbers.get(&(node.clone(), bits)) {
            return symbol;
        }
        let symbol = Symbol(self.known.len() as u32);
        let inputs: Arc<[Symbol]> = match &node {
            Node::Input(_) => [symbol].into(),
            Node::Number(_) => [].into(),
            Node::Convert(_, a) => self.inputs(*a),
            Node::Compute(_, a, b) | Node::Compare(_, a, b) => {
                union(&self.inputs(*a), &self.inputs(*b))
            }
        };
        self.numbers.insert((node.clone(), bits), symbol);
        let range = self.bounds(&node, bits);
        self.known.push(Known { node, bits, inputs, range });
        symbol
    }

    /// Bounds of a signed number; not always the best ones.
    fn bounds(&self, node: &Node, bits: u32) -> (i128, i128) {
        let all = all_of(bits);
        let within = |range: Option<(i128, i128)>| {
            range.filter(|(low, high)| all.0 <= *low && *high <= all.1).unwrap_or(all)
        };
        match node {
            Node::Number(value) => (signed(*value, bits), signed(*value, bits)),
            Node::Convert(Cast::SignExtend | Cast::Truncate | Cast::Same, a) => {
                within(Some(self.range(*a)))
            }
            Node::Convert(Cast::ZeroExtend, a) => match self.range(*a) {
                range @ (0.., _) => range,
                _ => within(1_i128.checked_shl(self.bits(*a)).map(|end| (0, end - 1))),
            },
            Node::Compute(operation, a, b) => within(self.exact(*operation, *a, *b)),
            Node::Input(_) | Node::Compare(..) => all,
        }
    }

    /// Bounds of the sum, difference or product of two signed numbers in a type without bounds.
    fn exact(&self, operation: Arithmetic, a: Symbol, b: Symbol) -> Option<(i128, i128)> {
        let ((a_low, a_high), (b_low, b_high)) = (self.range(a), self.range(b));
        match operation {
            Arithmetic::Add => Some((a_low.checked_add(b_low)?, a_high.checked_add(b_high)?)),
            Arithmetic::Subtract => Some((a_low.checked_sub(b_high)?, a_high.checked_sub(b_low)?)),
            Arithmetic::Multiply => {
                let mut ends = Vec::new();
                for a in [a_low, a_high] {
                    for b in [b_low, b_high] {
                        ends.push(a.checked_mul(b)?);
                    }
                }
                Some((*ends.iter().min()?, *ends.iter().max()?))
            }
            Arithmetic::And if b_low >= 0 => Some((0, b_high)),
            Arithmetic::And if a_low >= 0 => Some((0, a_high)),
            _ => None,
        }
    }

    /// Bounds of a term as a signed number.
    pub fn range(&self, symbol: Symbol) -> (i128, i128) {
        self.known[symbol.0 as usize].range
    }

    /// Is it plain that the operation on signed numbers stays in its type?
    pub fn stays_within(&self, operation: Arithmetic, a: Symbol, b: Symbol) -> bool {
        let (lowest, highest) = all_of(self.bits(a));
        self.exact(operation, a, b).is_some_and(|(low, high)| lowest <= low && high <= highest)
    }

    /// The input of that number in a state.
    pub fn input(&mut self, number: u32, bits: u32) -> Symbol {
        self.intern(Node::Input(number), bits)
    }

    /// A number.
    pub fn number(&mut self, value: u128, bits: u32) -> Symbol {
        self.intern(Node::Number(mask(value, bits)), bits)
    }

    /// An operation of two terms of equal width.
    pub fn compute(&mut self, operation: Arithmetic, a: Symbol, b: Symbol) -> Symbol {
        let bits = self.bits(a);
        self.intern(Node::Compute(operation, a, b), bits)
    }

    /// A truth value.
    pub fn compare(&mut self, comparison: Comparison, a: Symbol, b: Symbol) -> Symbol {
        // clang compares truth values that it has widened with 0: this is the truth value itself
        if comparison == Comparison::NotEqual
            && matches!(self.known[b.0 as usize].node, Node::Number(0))
            && let Node::Convert(Cast::ZeroExtend, truth) = self.known[a.0 as usize].node
            && self.bits(truth) == 1
        {
            return truth;
        }
        self.intern(Node::Compare(comparison, a, b), 1)
    }

    /// A term of another width.
    pub fn convert(&mut self, cast: Cast, a: Symbol, bits: u32) -> Symbol {
        if self.bits(a) == bits {
            return a;
        }
        self.intern(Node::Convert(cast, a), bits)
    }

    /// The negation of a truth value.
    pub fn not(&mut self, a: Symbol) -> Symbol {
        let one = self.number(1, 1);
        if let Node::Compute(Arithmetic::Xor, inner, other) = self.known[a.0 as usize].node
            && other == one
        {
            return inner;
        }
        self.compute(Arithmetic::Xor, a, one)
    }

    /// Width.
    pub fn bits(&self, symbol: Symbol) -> u32 {
        self.known[symbol.0 as usize].bits
    }

    /// The inputs in a term.
    pub fn inputs(&self, symbol: Symbol) -> Arc<[Symbol]> {
        self.known[symbol.0 as usize].inputs.clone()
    }

    /// The number of an input in its state.
    pub fn input_number(&self, symbol: Symbol) -> Option<u32> {
        match self.known[symbol.0 as usize].node {
            Node::Input(number) => Some(number),
            _ => None,
        }
    }

    /// The terms and all their parts, parts first.
    fn parts(&self, of: &[Symbol]) -> BTreeSet<Symbol> {
        let mut parts = BTreeSet::new();
        let mut open = of.to_vec();
        while let Some(symbol) = open.pop() {
            if parts.insert(symbol) {
                match self.known[symbol.0 as usize].node {
                    Node::Input(_) | Node::Number(_) => {}
                    Node::Convert(_, a) => open.push(a),
                    Node::Compute(_, a, b) | Node::Compare(_, a, b) => open.extend([a, b]),
                }
            }
        }
        parts
    }

    /// The terms with inputs renumbered.
    pub fn renumber(
        &mut self,
        of: &[Symbol],
        new: &HashMap<Symbol, u32>,
    ) -> HashMap<Symbol, Symbol> {
        let mut renamed = HashMap::new();
        for symbol in self.parts(of) {
            let Known { node, bits, .. } = &self.known[symbol.0 as usize];
            let (node, bits) = (node.clone(), *bits);
            let node = match node {
                Node::Input(old) => Node::Input(new.get(&symbol).copied().unwrap_or(old)),
                Node::Number(_) => node,
                Node::Convert(cast, a) => Node::Convert(cast, renamed[&a]),
                Node::Compute(operation, a, b) => {
                    Node::Compute(operation, renamed[&a], renamed[&b])
                }
                Node::Compare(comparison, a, b) => {
                    Node::Compare(comparison, renamed[&a], renamed[&b])
                }
            };
            let symbol_now = self.intern(node, bits);
            renamed.insert(symbol, symbol_now);
        }
        renamed
    }

    /// The values of terms when inputs have these values (0 where none is given).
    pub fn evaluate(&self, of: &[Symbol], inputs: &Assignment) -> Vec<u128> {
        let parts: Vec<Symbol> = self.parts(of).into_iter().collect();
        self.evaluate_parts(&parts, of, inputs)
    }

    /// The first of these assignments that makes all terms 1.
    pub fn first_that_holds(
        &self,
        of: &[Symbol],
        mut assignments: impl Iterator<Item = Assignment>,
    ) -> Option<Assignment> {
        let parts: Vec<Symbol> = self.parts(of).into_iter().collect();
        assignments
            .find(|inputs| self.evaluate_parts(&parts, of, inputs).iter().all(|&value| value == 1))
    }

    fn evaluate_parts(&self, parts: &[Symbol], of: &[Symbol], inputs: &Assignment) -> Vec<u128> {
        let mut values: HashMap<Symbol, u128> = HashMap::with_capacity(parts.len());
        for &symbol in parts {
            let Known { node, bits, .. } = &self.known[symbol.0 as usize];
            let value = match node {
                Node::Input(_) => inputs.get(&symbol).copied().unwrap_or(0),
                Node::Number(number) => *number,
                Node::Convert(Cast::SignExtend, a) => signed(values[a], self.bits(*a)) as u128,
                Node::Convert(_, a) => values[a],
                Node::Compute(operation, a, b) => compute(*operation, *bits, values[a], values[b]),
                Node::Compare(comparison, a, b) => super::machine::compare_numbers(
                    *comparison,
                    self.bits(*a),
                    values[a],
                    values[b],
                )
                .into(),
            };
            values.insert(symbol, mask(value, *bits));
        }
        of.iter().map(|symbol| values[symbol]).collect()
    }

    /// SMT-LIB that defines the terms and their parts as `t1`, `t2`, ...; what `defined` has is left
    /// out, and what is defined here is added to it.
    pub fn define(&self, of: &[Symbol], defined: &mut BTreeSet<Symbol>) -> String {
        let mut text = String::new();
        for symbol in self.parts(of) {
            if !defined.insert(symbol) {
                continue;
            }
            let Known { node, bits, .. } = &self.known[symbol.0 as usize];
            let name = symbol.0;
            let body = match node {
                Node::Input(_) => {
                    let _ = writeln!(text, "(declare-const t{name} (_ BitVec {bits}))");
                    continue;
                }
                Node::Number(value) => format!("(_ bv{value} {bits})"),
                Node::Convert(cast, a) => {
                    let from = self.bits(*a);
                    let how = match cast {
                        Cast::Truncate | Cast::Same => format!("(_ extract {} 0)", bits - 1),
                        Cast::ZeroExtend => format!("(_ zero_extend {})", bits - from),
                        Cast::SignExtend => format!("(_ sign_extend {})", bits - from),
                    };
                    format!("({how} t{})", a.0)
                }
                Node::Compute(operation, a, b) => {
                    format!("({} t{} t{})", smt(*operation), a.0, b.0)
                }
                Node::Compare(comparison, a, b) => {
                    let truth = match comparison {
                        Comparison::Equal => format!("(= t{} t{})", a.0, b.0),
                        Comparison::NotEqual => format!("(distinct t{} t{})", a.0, b.0),
                        Comparison::Less { signed, or_equal, swapped } => {
                            let (a, b) = if *swapped { (b, a) } else { (a, b) };
                            let kind = if *signed { "s" } else { "u" };
                            let equal = if *or_equal { "le" } else { "lt" };
                            format!("(bv{kind}{equal} t{} t{})", a.0, b.0)
                        }
                    };
                    format!("(ite {truth} #b1 #b0)")
                }
            };
            let _ = writeln!(text, "(define-fun t{name} () (_ BitVec {bits}) {body})");
        }
        text
    }
}

fn union(a: &Arc<[Symbol]>, b: &Arc<[Symbol]>) -> Arc<[Symbol]> {
    let within = |few: &[Symbol], many: &[Symbol]| {
        few.len() <= many.len() && few.iter().all(|symbol| many.binary_search(symbol).is_ok())
    };
    if within(b, a) {
        return a.clone();
    }
    if within(a, b) {
        return b.clone();
    }
    let all: BTreeSet<Symbol> = a.iter().chain(b.iter()).copied().collect();
    all.into_iter().collect()
}

/// The signed numbers of so many bits.
fn all_of(bits: u32) -> (i128, i128) {
    let highest = i128::MAX >> (128 - bits);
    (-highest - 1, highest)
}

fn smt(operation: Arithmetic) -> &'static str {
    match operation {
        Arithmetic::Add => "bvadd",
        Arithmetic::Subtract => "bvsub",
        Arithmetic::Multiply => "bvmul",
        Arithmetic::DivideUnsigned => "bvudiv",
        Arithmetic::DivideSigned => "bvsdiv",
        Arithmetic::RemainderUnsigned => "bvurem",
        Arithmetic::RemainderSigned => "bvsrem",
        Arithmetic::ShiftLeft => "bvshl",
        Arithmetic::ShiftRight => "bvlshr",
        Arithmetic::ShiftRightSigned => "bvashr",
        Arithmetic::And => "bvand",
        Arithmetic::Or => "bvor",
        Arithmetic::Xor => "bvxor",
    }
}

/// An operation as SMT-LIB defines it.
fn compute(operation: Arithmetic, bits: u32, a: u128, b: u128) -> u128 {
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    let long = b >= u128::from(bits);
    let value = match operation {
        Arithmetic::Add => a.wrapping_add(b),
        Arithmetic::Subtract => a.wrapping_sub(b),
        Arithmetic::Multiply => a.wrapping_mul(b),
        Arithmetic::DivideUnsigned => a.checked_div(b).unwrap_or(u128::MAX),
        Arithmetic::RemainderUnsigned => a.checked_rem(b).unwrap_or(a),
        Arithmetic::DivideSigned if b == 0 => (if sa < 0 { 1 } else { -1_i128 }) as u128,
        Arithmetic::DivideSigned => sa.wrapping_div(sb) as u128,
        Arithmetic::RemainderSigned if b == 0 => a,
        Arithmetic::RemainderSigned => sa.wrapping_rem(sb) as u128,
        Arithmetic::ShiftLeft if long => 0,
        Arithmetic::ShiftLeft => a << b,
        Arithmetic::ShiftRight if long => 0,
        Arithmetic::ShiftRight => a >> b,
        Arithmetic::ShiftRightSigned if long => (if sa < 0 { -1_i128 } else { 0 }) as u128,
        Arithmetic::ShiftRightSigned => (sa >> b) as u128,
        Arithmetic::And => a & b,
        Arithmetic::Or => a | b,
        Arithmetic::Xor => a ^ b,
    };
    mask(value, bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Arithmetic; 13] = [
        Arithmetic::Add,
        Arithmetic::Subtract,
        Arithmetic::Multiply,
        Arithmetic::DivideUnsigned,
        Arithmetic::DivideSigned,
        Arithmetic::RemainderUnsigned,
        Arithmetic::RemainderSigned,
        Arithmetic::ShiftLeft,
        Arithmetic::ShiftRight,
        Arithmetic::ShiftRightSigned,
        Arithmetic::And,
        Arithmetic::Or,
        Arithmetic::Xor,
    ];

    /// Every operation on every pair of four bits has the value that the solver gives it.
    #[test]
    fn operations_mean_what_the_solver_takes_them_for() {
        let mut terms = Terms::default();
        let mut equal = Vec::new();
        for operation in ALL {
            for pair in 0..256_u128 {
                let a = terms.number(pair & 15, 4);
                let b = terms.number(pair >> 4, 4);
                let term = terms.compute(operation, a, b);
                let value = terms.evaluate(&[term], &Assignment::new())[0];
                let value = terms.number(value, 4);
                equal.push(terms.compare(Comparison::Equal, term, value));
            }
        }
        let mut inputs = super::super::inputs::Solver::default();
        for chunk in equal.chunks(256) {
            for &term in chunk {
                assert_eq!(terms.evaluate(&[term], &Assignment::new()), [1]);
            }
            assert!(inputs.model(&terms, chunk).expect("z3 answers").is_some());
        }
    }

    #[test]
    fn bounds_are_bounds() {
        let mut terms = Terms::default();
        let byte = terms.input(0, 8);
        let as_signed = terms.convert(Cast::SignExtend, byte, 32);
        let as_unsigned = terms.convert(Cast::ZeroExtend, byte, 32);
        let square = terms.compute(Arithmetic::Multiply, as_signed, as_signed);
        let fourth = terms.compute(Arithmetic::Multiply, square, square);
        let low = terms.number(15, 32);
        let digit = terms.compute(Arithmetic::And, as_signed, low);
        let less = terms.compute(Arithmetic::Subtract, digit, as_unsigned);
        let narrow = terms.convert(Cast::Truncate, less, 8);
        let all = [as_signed, as_unsigned, square, fourth, digit, less, narrow];
        for value in 0..256 {
            let values = terms.evaluate(&all, &Assignment::from([(byte, value)]));
            for (&term, value) in all.iter().zip(values) {
                let (low, high) = terms.range(term);
                assert!((low..=high).contains(&signed(value, terms.bits(term))), "{term:?}");
            }
        }
        assert_eq!(terms.range(square), (-16256, 16384));
        assert!(terms.stays_within(Arithmetic::Multiply, square, as_unsigned));
        assert!(!terms.stays_within(Arithmetic::Multiply, fourth, fourth));
    }

    #[test]
    fn a_long_sum_is_kept_once() {
        let mut terms = Terms::default();
        let x = terms.input(0, 32);
        let mut sum = x;
        for _ in 0..6000 {
            sum = terms.compute(Arithmetic::Add, sum, x);
        }
        assert_eq!(terms.known.len(), 6001);
        assert_eq!(&*terms.inputs(sum), [x]);
        assert_eq!(terms.evaluate(&[sum], &Assignment::from([(x, 7)])), [7 * 6001]);
    }
}
