//! Sorts and literals, and when an integer stands for a value of another sort.

use super::{NodeId, SyntaxError, Tree};
use crate::id::TermId;
use crate::term::{Operator, Rational, ScalarSort, Sort, TermStore, Value};

impl Tree<'_> {
    /// The sort: `int`, `bool`, `real`, `bv32`, `(_ BitVec 8)`, `(Array Int Int)`.
    pub fn sort(&self, node: NodeId) -> Result<Sort, SyntaxError> {
        let children: Vec<NodeId> = self.children(node).collect();
        let sort = match *children.as_slice() {
            [array, index, element] if self.source(array) == "Array" => {
                let scalars = self.scalar_sort(index).zip(self.scalar_sort(element));
                scalars.map(|(index, element)| Sort::Array { index, element })
            }
            _ => self.scalar_sort(node).map(Sort::from),
        };
        sort.ok_or_else(|| {
            self.error(node, format!("unknown sort `{}`", self.source(node))).help(
                "write int, bool, real, bv1 to bv64, or (Array I E) with I and E one of those",
            )
        })
    }

    fn scalar_sort(&self, node: NodeId) -> Option<ScalarSort> {
        let words: Vec<&str> = self.children(node).map(|child| self.source(child)).collect();
        match *words.as_slice() {
            ["_", "BitVec", width] => bit_vec_sort(width),
            [] => scalar_sort(self.source(node)),
            _ => None,
        }
    }
}

fn scalar_sort(word: &str) -> Option<ScalarSort> {
    match word {
        "int" | "Int" => Some(ScalarSort::Int),
        "bool" | "Bool" => Some(ScalarSort::Bool),
        "real" | "Real" => Some(ScalarSort::Real),
        _ => bit_vec_sort(word.strip_prefix("bv")?),
    }
}

fn bit_vec_sort(width: &str) -> Option<ScalarSort> {
    let width = width.parse().ok()?;
    (1..=64).contains(&width).then_some(ScalarSort::BitVec(width))
}

/// The constant at `node`: a literal, or `(- literal)`.
pub fn literal(tree: &Tree<'_>, node: NodeId) -> Result<Option<Value>, SyntaxError> {
    if tree.is_list(node) {
        let children: Vec<NodeId> = tree.children(node).collect();
        return match *children.as_slice() {
            [minus, number] if tree.source(minus) == "-" && !tree.is_list(number) => {
                number_literal(tree, number, true)
            }
            [underscore, value, width]
                if tree.source(underscore) == "_" && tree.source(value).starts_with("bv") =>
            {
                bit_vec_literal(tree, node, &tree.source(value)[2..], tree.source(width)).map(Some)
            }
            _ => Ok(None),
        };
    }
    let source = tree.source(node);
    match source.as_bytes() {
        b"true" => Ok(Some(Value::Bool(true))),
        b"false" => Ok(Some(Value::Bool(false))),
        [b'#', base, digits @ ..] => {
            let bits_per_digit = if *base == b'x' { 4 } else { 1 };
            let width = digits.len() * bits_per_digit;
            if width > 64 {
                return Err(tree.error(node, "bit-vectors have at most 64 bits"));
            }
            let bits = u64::from_str_radix(&source[2..], 1 << bits_per_digit);
            let bits = bits.map_err(|_| tree.error(node, "not a bit-vector literal"))?;
            Ok(Some(Value::bit_vec(width as u16, bits)))
        }
        _ => number_literal(tree, node, false),
    }
}

fn bit_vec_literal(
    tree: &Tree<'_>,
    node: NodeId,
    bits: &str,
    width: &str,
) -> Result<Value, SyntaxError> {
    match (bit_vec_sort(width), bits.parse::<u64>()) {
        (Some(ScalarSort::BitVec(width)), Ok(bits)) if width == 64 || bits >> width == 0 => {
            Ok(Value::bit_vec(width, bits))
        }
        _ => Err(tree.error(node, "not a bit-vector of 1 to 64 bits")),
    }
}

/// A numeral or decimal; `None` when the word is a name.
fn number_literal(
    tree: &Tree<'_>,
    node: NodeId,
    negated: bool,
) -> Result<Option<Value>, SyntaxError> {
    let source = tree.source(node);
    let (digits, negative) = match source.strip_prefix('-') {
        Some(digits) => (digits, !negated),
        None => (source, negated),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let real = whole.len() < digits.len();
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || digits.ends_with('.') {
        return Ok(None);
    }
    let too_large = || tree.error(node, "numbers of more than 128 bits are not handled");
    let fraction = fraction.trim_end_matches('0');
    let sign = if negative { "-" } else { "" };
    let numerator: i128 = format!("{sign}{whole}{fraction}").parse().map_err(|_| too_large())?;
    if !real {
        return Ok(Some(Value::Int(numerator)));
    }
    let denominator = 10_i128.checked_pow(fraction.len() as u32).ok_or_else(too_large)?;
    Rational::new(numerator, denominator).map(Value::Real).map(Some).ok_or_else(too_large)
}

/// The value as one of that sort: an integer as a real, or as a bit-vector when it fits, signed or
/// unsigned. Other values stay as they are.
pub fn coerce_value(value: Value, sort: Sort) -> Value {
    match (&value, sort) {
        (Value::Int(number), Sort::REAL) => Value::Real(Rational::integer(*number)),
        (&Value::Int(number), Sort::Scalar(ScalarSort::BitVec(width))) => {
            let fits = -(1_i128 << (width - 1)) <= number && number < 1_i128 << width;
            if fits { Value::bit_vec(width, number as u64) } else { value }
        }
        _ => value,
    }
}

/// The term as one of that sort: an integer as a real, an integer constant also as a bit-vector that
/// it fits. Other terms stay as they are.
pub fn coerce(terms: &mut TermStore, term: TermId, sort: Sort) -> TermId {
    if terms.sort(term) != Sort::INT || sort == Sort::INT {
        return term;
    }
    match terms.constant_value(term) {
        Some(value) => {
            let value = coerce_value(value.clone(), sort);
            terms.constant(value)
        }
        None if sort == Sort::REAL => terms.build(Operator::ToReal, &[term]),
        None => term,
    }
}
