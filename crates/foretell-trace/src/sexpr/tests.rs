use super::*;
use crate::id::{TermId, VariableId};
use crate::term::{Rational, Sort, Term, TermStore, Value};

/// `a` to `e` are integers, `p` to `t` Booleans, `u` to `z` bit-vectors of 8 bits.
struct Letters;

impl Scope for Letters {
    fn name(&mut self, terms: &mut TermStore, atom: &Atom<'_>) -> Result<TermId, Refusal> {
        let letter = atom.name.bytes().next().unwrap_or(b'?');
        let sort = match letter {
            b'a'..=b'e' if atom.name.len() == 1 => Sort::INT,
            b'p'..=b't' if atom.name.len() == 1 => Sort::BOOL,
            b'u'..=b'z' if atom.name.len() == 1 => Sort::bit_vec(8),
            _ => return Err(Refusal { message: "unknown".into(), help: "a letter".into() }),
        };
        Ok(terms.variable(VariableId(u32::from(letter)), sort))
    }
}

fn read(terms: &mut TermStore, source: &str) -> Result<TermId, SyntaxError> {
    let tree = Tree::read(source, &mut 0, Comments::Anywhere)?;
    TermReader::default().term(terms, &mut Letters, &tree, tree.roots()[0])
}

fn printed(terms: &TermStore, term: TermId) -> String {
    print_term(terms, term, &mut |id| match terms.term(id) {
        Term::Variable(variable) => Some(char::from(variable.0 as u8).to_string()),
        _ => None,
    })
}

fn assert_same(one: &str, other: &str) {
    let mut terms = TermStore::default();
    let term = read(&mut terms, one).unwrap_or_else(|error| panic!("{one}: {error:?}"));
    assert_eq!(read(&mut terms, other), Ok(term), "{one} and {other}");
    let back = printed(&terms, term);
    assert_eq!(read(&mut terms, &back), Ok(term), "{one} and {back}");
}

#[test]
fn abbreviations_mean_what_smt_lib_says() {
    for (short, long) in [
        ("(< a b c)", "(and (< a b) (< b c))"),
        ("(>= a b c)", "(and (<= b a) (<= c b))"),
        ("(= a b c)", "(and (= a b) (= b c))"),
        ("(distinct a b c)", "(and (not (= a b)) (not (= a c)) (not (= b c)))"),
        ("(=> p q r)", "(=> p (=> q r))"),
        ("(- a b c)", "(- a b c)"),
        ("(div a b c)", "(div (div a b) c)"),
        ("(xor p q r)", "(xor (xor p q) r)"),
        ("(bvadd u v w)", "(bvadd (bvadd u v) w)"),
        ("(bvsgt u v)", "(bvslt v u)"),
        ("(bvnand u v)", "(bvnot (bvand u v))"),
        (
            "(concat ((_ extract 3 0) u) ((_ extract 7 4) u))",
            "(concat ((_ extract 3 0) u) ((_ extract 7 4) u))",
        ),
        ("((_ zero_extend 8) u)", "((_ zero_extend 8) u)"),
        ("(let ((a b) (b a)) (- a b))", "(- b a)"),
        ("(let ((c 1)) (let ((c (+ c 1))) c))", "2"),
        ("(a)", "a"),
        ("((and p q))", "(and q p)"),
        ("|a|", "a"),
        ("(- 5)", "-5"),
        (
            "(select (store ((as const (Array Int Int)) 0) 1 7) a)",
            "(select (store ((as const (Array Int Int)) 0) 1 7) a)",
        ),
    ] {
        assert_same(short, long);
    }
}

#[test]
fn integers_stand_for_reals_and_bit_vectors() {
    assert_same("(= u 5)", "(= u #x05)");
    assert_same("(= u (- 1))", "(= u #xff)");
    assert_same("(/ a 2)", "(/ (to_real a) 2.0)");
    assert_same("(+ a 0.5)", "(+ (to_real a) (/ 1.0 2.0))");
    assert_same("(ite p 1 0.5)", "(ite p 1.0 0.5)");
    let mut terms = TermStore::default();
    assert!(read(&mut terms, "(= u 256)").is_err());
    assert!(read(&mut terms, "(= u a)").is_err());
    assert!(read(&mut terms, "(+ u 1)").unwrap_err().help.unwrap().contains("bvadd"));
}

#[test]
fn the_smallest_numbers_come_back() {
    for value in [
        Value::Int(i128::MIN),
        Value::Int(i128::MAX),
        Value::Real(Rational::new(i128::MIN, 1).unwrap()),
        Value::Real(Rational::new(i128::MIN, 3).unwrap()),
        Value::Real(Rational::new(1, i128::MAX).unwrap()),
        Value::bit_vec(64, u64::MAX),
        Value::bit_vec(3, 5),
    ] {
        let mut terms = TermStore::default();
        let term = read(&mut terms, &print_value(&value)).unwrap();
        assert_eq!(terms.constant_value(term), Some(&value));
    }
}

#[test]
fn hostile_formulas_are_refused_in_time() {
    let mut terms = TermStore::default();
    let many = |count: usize| "a ".repeat(count);
    let error = read(&mut terms, &format!("(distinct {})", many(10_000))).unwrap_err();
    assert!(error.message.contains("too large"), "{error:?}");
    let stores: String = (0..50_000).map(|index| format!(" {index} 1)")).collect();
    let opening = "(store ".repeat(50_000);
    let array = format!("{opening}((as const (Array Int Int)) 0){stores}");
    assert!(read(&mut terms, &array).unwrap_err().message.contains("too large"));
    let deep = format!("{}p{}", "(not (xor q ".repeat(50_000), "))".repeat(50_000));
    let term = read(&mut terms, &deep).unwrap();
    let back = printed(&terms, term);
    assert_eq!(read(&mut terms, &back), Ok(term));
}

#[test]
fn escapes_in_quoted_names_come_back() {
    for name in ["", "a|b", "a\\", "\u{7}\n\r\t", "\"", "\\n", "ü→", "\\u{41}"] {
        for quote in ['|', '"'] {
            let text = quoted(name, quote);
            let tree = Tree::read(&text, &mut 0, Comments::BetweenWords).unwrap();
            assert_eq!(tree.atom(tree.roots()[0]).unwrap().name, name, "{text}");
        }
    }
}
