//! Terms, values, sorts and quoted words as text.

use std::fmt::Write;

use crate::id::TermId;
use crate::term::{Operator, ScalarSort, Sort, Term, TermStore, Value};

/// The sort as people write it: `int`, `bv32`, `(Array int bv8)`.
pub fn print_sort(sort: Sort) -> String {
    let scalar = |sort: ScalarSort| match sort {
        ScalarSort::Bool => "bool".to_owned(),
        ScalarSort::Int => "int".to_owned(),
        ScalarSort::Real => "real".to_owned(),
        ScalarSort::BitVec(width) => format!("bv{width}"),
    };
    match sort {
        Sort::Scalar(sort) => scalar(sort),
        Sort::Array { index, element } => format!("(Array {} {})", scalar(index), scalar(element)),
    }
}

/// The text between two `quote` characters, with what needs it escaped.
pub fn quoted(text: &str, quote: char) -> String {
    let mut result = String::with_capacity(text.len() + 2);
    result.push(quote);
    for character in text.chars() {
        match character {
            '\n' => result.push_str("\\n"),
            '\t' => result.push_str("\\t"),
            '\r' => result.push_str("\\r"),
            '\\' => result.push_str("\\\\"),
            _ if character == quote => {
                result.push('\\');
                result.push(quote);
            }
            _ if character.is_control() => {
                let _ = write!(result, "\\u{{{:x}}}", u32::from(character));
            }
            _ => result.push(character),
        }
    }
    result.push(quote);
    result
}

/// The term in SMT-LIB. `name` says how a term is called (leaves must have a name; any other term
/// may, and is then not spelled out).
pub fn print_term(
    terms: &TermStore,
    root: TermId,
    name: &mut dyn FnMut(TermId) -> Option<String>,
) -> String {
    enum Work {
        Term(TermId),
        Close,
    }
    let mut text = String::new();
    let mut work = vec![Work::Term(root)];
    while let Some(next) = work.pop() {
        let Work::Term(term) = next else {
            text.push(')');
            continue;
        };
        if !text.is_empty() && !text.ends_with('(') {
            text.push(' ');
        }
        if let Some(name) = name(term) {
            text.push_str(&name);
            continue;
        }
        match terms.term(term) {
            Term::Constant(value) => print_value_into(&mut text, value),
            Term::Apply(operator, arguments) => {
                text.push('(');
                match operator {
                    Operator::Extract { high, low } => {
                        let _ = write!(text, "(_ extract {high} {low})");
                    }
                    Operator::ZeroExtend(by) | Operator::SignExtend(by) => {
                        let _ = write!(text, "(_ {} {by})", operator.smtlib_name());
                    }
                    _ => text.push_str(operator.smtlib_name()),
                }
                work.push(Work::Close);
                work.extend(arguments.iter().rev().map(|&argument| Work::Term(argument)));
            }
            leaf => {
                let _ = write!(text, "<{leaf:?}>"); // a caller's mistake, made visible
            }
        }
    }
    text
}

/// The value in SMT-LIB.
pub fn print_value(value: &Value) -> String {
    let mut text = String::new();
    print_value_into(&mut text, value);
    text
}

fn print_value_into(text: &mut String, value: &Value) {
    let _ = match value {
        Value::Bool(value) => write!(text, "{value}"),
        Value::Int(number) if *number < 0 => write!(text, "(- {})", number.unsigned_abs()),
        Value::Int(number) => write!(text, "{number}"),
        Value::Real(real) => {
            let magnitude = real.numerator().unsigned_abs();
            let whole = if real.numerator() < 0 {
                format!("(- {magnitude}.0)")
            } else {
                format!("{magnitude}.0")
            };
            match real.denominator() {
                1 => write!(text, "{whole}"),
                denominator => write!(text, "(/ {whole} {denominator}.0)"),
            }
        }
        Value::BitVec { width, bits } if width % 4 == 0 => {
            write!(text, "#x{bits:0digits$x}", digits = usize::from(width / 4))
        }
        Value::BitVec { width, bits } => {
            write!(text, "#b{bits:0digits$b}", digits = usize::from(*width))
        }
        Value::Array(array) => {
            let entries: Vec<_> = array.entries().collect();
            for _ in &entries {
                text.push_str("(store ");
            }
            let _ = write!(text, "((as const {}) ", value.sort());
            print_value_into(text, array.default_element());
            text.push(')');
            for (index, element) in entries {
                text.push(' ');
                print_value_into(text, index);
                text.push(' ');
                print_value_into(text, element);
                text.push(')');
            }
            Ok(())
        }
    };
}
