//! Inputs of any width: programs get the verdict that holds for all values, and random expressions
//! over inputs have exactly the results that gcc computes for all of their values.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use foretell_verify::counterexample::Counterexample;
use foretell_verify::explore::search::{Options, Verdict, explore};
use foretell_verify::ir::clang;

const HEAD: &str = "#include <assert.h>\n#include <pthread.h>\n#include <stdlib.h>\n\
    extern int __VERIFIER_nondet_int(void);\nextern unsigned __VERIFIER_nondet_uint(void);\n\
    extern long __VERIFIER_nondet_long(void);\nextern unsigned char __VERIFIER_nondet_uchar(void);\n\
    extern char __VERIFIER_nondet_char(void);\nextern short __VERIFIER_nondet_short(void);\n\
    extern _Bool __VERIFIER_nondet_bool(void);\nextern void __VERIFIER_assume(int);\n\
    extern void __VERIFIER_atomic_begin(void), __VERIFIER_atomic_end(void);\n";

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("inputs");
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    folder
}

/// The verdict; `None` where there is no clang, said aloud.
fn verdict(name: &str, code: &str) -> Option<Verdict> {
    let file = folder().join(format!("{name}.c"));
    std::fs::write(&file, format!("{HEAD}{code}\n")).expect("the file can be written");
    match clang::compile(&file, clang::Options::default()) {
        Ok(module) => Some(explore(&module, &Options::default()).verdict),
        Err(refusal) if refusal.what.contains("cannot run") => {
            assert!(std::env::var_os("CI").is_none(), "CI has clang: {refusal}");
            eprintln!("SKIPPED: {refusal}");
            None
        }
        Err(refusal) => panic!("{name}: {refusal}"),
    }
}

fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Proved(_) => "proved".into(),
        Verdict::Violated(_) => "violated".into(),
        Verdict::Unknown(why) => format!("unknown: {why}"),
    }
}

fn inputs(found: &Counterexample) -> Vec<u64> {
    found.events.iter().filter_map(|event| event.input).collect()
}

/// Statements that hold for all inputs; their negation does not.
const HOLDS: [(&str, &str); 22] = [
    ("int x = __VERIFIER_nondet_int(); int y = x > 5 ? 5 : x;", "y <= 5"),
    ("unsigned x = __VERIFIER_nondet_uint();", "x % 8 == (x & 7)"),
    ("unsigned x = __VERIFIER_nondet_uint();", "x * 2 == x << 1"),
    (
        "unsigned x = __VERIFIER_nondet_uint(), y = __VERIFIER_nondet_uint();",
        "(x ^ y) == (x | y) - (x & y)",
    ),
    ("int x = __VERIFIER_nondet_int(); char c = x;", "c == (signed char)x"),
    ("short x = __VERIFIER_nondet_short(); int y = x * x;", "y >= 0"),
    ("char x = __VERIFIER_nondet_char();", "x >= -128 && x <= 127"),
    ("unsigned char x = __VERIFIER_nondet_uchar(); x++;", "x <= 255"),
    ("long x = __VERIFIER_nondet_long(); long y = x < 0 ? 0 : x;", "y >= 0"),
    ("_Bool b = __VERIFIER_nondet_bool();", "b == 0 || b == 1"),
    ("int x = __VERIFIER_nondet_int(); _Bool b = x;", "b == (x != 0)"),
    (
        "int x = __VERIFIER_nondet_int(); __VERIFIER_assume(x > 3 && x < 9);",
        "x * x >= 16 && x * x <= 64",
    ),
    (
        "int a[5] = {3, 1, 4, 1, 5}; unsigned i = __VERIFIER_nondet_uint(); int v = a[i % 5];",
        "v >= 1 && v <= 5",
    ),
    (
        "int x = __VERIFIER_nondet_int(), n = 0; if (x > 0 && x < 7) for (int i = 0; i < x; i++) n++;",
        "n == 0 || n == x",
    ),
    (
        "struct { unsigned a : 3, b : 5; } s = {0}; s.b = __VERIFIER_nondet_uint(); s.a = s.b;",
        "s.b <= 31 && s.a == (s.b & 7)",
    ),
    (
        "struct p { int x, y; } a = {__VERIFIER_nondet_int(), 2}, b; b = a;",
        "b.x == a.x && b.y == 2",
    ),
    (
        "int x = __VERIFIER_nondet_int(), r; switch (x) { case 1: r = 10; break; case 7: r = 70; break; default: r = 0; }",
        "r == 0 || r == 10 * x",
    ),
    ("int x = __VERIFIER_nondet_int(); long v = (long)(void *)(long)x;", "v == x"),
    (
        "int x = __VERIFIER_nondet_int(); __VERIFIER_assume(x != 0 && x != -1); int q = 100 / x;",
        "q * x + 100 % x == 100",
    ),
    ("unsigned n = 0; while (__VERIFIER_nondet_int()) n = (n + 1) % 4;", "n < 4"),
    ("int x = __VERIFIER_nondet_int(), *p = malloc(sizeof *p); *p = x;", "*p == x"),
    (
        "int x = __VERIFIER_nondet_int(); int y; __VERIFIER_atomic_begin(); y = __VERIFIER_nondet_int(); __VERIFIER_atomic_end(); int z = x < y ? x : y;",
        "z <= x && z <= y",
    ),
];

#[test]
fn what_holds_for_all_inputs_is_proved_and_its_negation_is_violated() {
    for (number, (body, condition)) in HOLDS.iter().enumerate() {
        for (negated, expected) in [(false, "proved"), (true, "violated")] {
            let condition = if negated { format!("!({condition})") } else { (*condition).into() };
            let code = format!("int main(void) {{ {body} assert({condition}); return 0; }}");
            let Some(found) = verdict(&format!("holds_{number}_{negated}"), &code) else { return };
            assert_eq!(word(&found), expected, "{code}");
        }
    }
}

/// Each is violated for some input, and the counterexample has one.
#[test]
fn a_counterexample_has_the_inputs_that_it_needs() {
    type Needs = fn(&[u64]) -> bool;
    let cases: [(&str, Needs); 9] = [
        ("int x = __VERIFIER_nondet_int(); assert(x != 123456);", |v| v == [123_456]),
        ("int x = __VERIFIER_nondet_int(); assert(x != -5);", |v| v[0] as i32 == -5),
        ("long x = __VERIFIER_nondet_long(); assert(x != 5000000000);", |v| v == [5_000_000_000]),
        (
            "unsigned x = __VERIFIER_nondet_uint(), y = __VERIFIER_nondet_uint(); \
          assert(!(x > 1 && y > 1 && x < 60000 && y < 60000 && x * y == 10403));",
            |v| v[0] * v[1] == 10403,
        ),
        ("int x = __VERIFIER_nondet_int(); x++;", |v| v[0] as i32 == i32::MAX),
        ("int x = __VERIFIER_nondet_int(), y = 7 / x; assert(y == y);", |v| v[0] == 0),
        (
            "int a[4] = {0}; int i = __VERIFIER_nondet_int(); __VERIFIER_assume(i >= 0 && i < 6); a[i] = 1;",
            |v| v[0] == 4 || v[0] == 5,
        ),
        ("int x = 0; while (__VERIFIER_nondet_bool()) x++; assert(x < 3);", |v| v == [1, 1, 1, 0]),
        ("int x = __VERIFIER_nondet_int(); if (x > 10) if (x < 13) if (x != 11) assert(0);", |v| {
            v == [12]
        }),
    ];
    for (number, (body, needs)) in cases.iter().enumerate() {
        let code = format!("int main(void) {{ {body} return 0; }}");
        let Some(found) = verdict(&format!("needs_{number}"), &code) else { return };
        let Verdict::Violated(found) = found else { panic!("{body}: {}", word(&found)) };
        let values = inputs(&found);
        assert!(needs(&values), "{body}: {values:?}");
    }
}

#[test]
fn threads_share_inputs() {
    let program = |locked: bool, bound: u32| {
        let (lock, unlock) = match locked {
            true => ("pthread_mutex_lock(&m);", "pthread_mutex_unlock(&m);"),
            false => ("", ""),
        };
        format!(
            "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; unsigned total, limit;\n\
             void *f(void *p) {{ unsigned mine = __VERIFIER_nondet_uint(); {lock} \
             if (mine <= limit - total) total += mine; {unlock} return 0; }}\n\
             int main(void) {{ pthread_t a, b; limit = __VERIFIER_nondet_uint(); \
             __VERIFIER_assume(limit < {bound}); pthread_create(&a, 0, f, 0); \
             pthread_create(&b, 0, f, 0); pthread_join(a, 0); pthread_join(b, 0); \
             assert(total <= limit); return 0; }}"
        )
    };
    for (locked, expected) in [(true, "proved"), (false, "violated")] {
        let Some(found) = verdict(&format!("share_{locked}"), &program(locked, 1000)) else {
            return;
        };
        assert_eq!(word(&found), expected);
    }
}

/// What cannot be looked at for all inputs is not decided, and the reason has a place.
#[test]
fn too_many_values_are_not_decided() {
    let cases = [
        ("int n = __VERIFIER_nondet_int(); char *p = malloc(n); assert(p);", "more than 64 values"),
        (
            "extern void *__VERIFIER_nondet_pointer(void); assert(__VERIFIER_nondet_pointer());",
            "nondet_pointer",
        ),
        (
            "extern double __VERIFIER_nondet_double(void); assert(__VERIFIER_nondet_double() >= 0);",
            "double",
        ),
        ("int *p = (int *)__VERIFIER_nondet_long(); assert(*p);", "address"),
    ];
    for (number, (body, reason)) in cases.iter().enumerate() {
        let code = format!("int main(void) {{ {body} return 0; }}");
        let Some(found) = verdict(&format!("many_{number}"), &code) else { return };
        let Verdict::Unknown(why) = &found else { panic!("{body}: {}", word(&found)) };
        assert!(why.contains(reason) && why.contains(".c:"), "{body}: {why}");
    }
}

/// A generator of random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[(self.next() % words.len() as u64) as usize]
    }

    /// An expression over `a` and `b` that is defined for all of their values.
    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 || self.next().is_multiple_of(5) {
            return self.pick(&["a", "b", "a", "b", "3", "-1", "200", "0x7fu"]).into();
        }
        let kind = self.pick(&[
            "unsigned",
            "unsigned long",
            "signed char",
            "unsigned short",
            "int",
            "_Bool",
        ]);
        let (x, y) = (self.expression(depth - 1), self.expression(depth - 1));
        match self.next() % 8 {
            0 => format!("(({kind})({x}))"),
            1 => {
                format!("({x} {} {y})", self.pick(&["<", "<=", "==", "!=", ">", ">=", "&&", "||"]))
            }
            2 => format!("({x} {} {y})", self.pick(&["&", "|", "^"])),
            3 => format!("((unsigned)({x}) {} (unsigned)({y}))", self.pick(&["+", "-", "*"])),
            4 => format!("((short)({x}) {} (signed char)({y}))", self.pick(&["+", "-", "*"])),
            5 => format!("((unsigned)({x}) {} (({y}) & 15))", self.pick(&["<<", ">>"])),
            6 => format!("((short)({x}) {} ((({y}) & 7) + 1))", self.pick(&["/", "%", ">>"])),
            _ => format!("({x} ? {y} : {})", self.expression(depth - 1)),
        }
    }
}

/// The results of the expressions for all values of `a` and `b`, by gcc.
fn results(expressions: &[String]) -> Option<Vec<BTreeSet<u64>>> {
    let mut code = String::from("#include <stdio.h>\n");
    for (number, expression) in expressions.iter().enumerate() {
        let _ = writeln!(
            code,
            "static unsigned long e{number}(signed char a, unsigned char b) {{ return {expression}; }}"
        );
    }
    code.push_str("static unsigned long all[65536];\nint main(void) {\n");
    for number in 0..expressions.len() {
        let _ = writeln!(
            code,
            "for (int i = 0; i < 65536; i++) printf(\"{number} %lu\\n\", e{number}(i, i >> 8));"
        );
    }
    code.push_str("return 0; }\n");
    let (file, program) = (folder().join("results.c"), folder().join("results"));
    std::fs::write(&file, code).expect("the file can be written");
    let built = Command::new("gcc").args(["-O1", "-w", "-o"]).arg(&program).arg(&file).status();
    match built {
        Ok(status) => assert!(status.success(), "gcc compiles it"),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "CI has gcc: {error}");
            eprintln!("SKIPPED: gcc: {error}");
            return None;
        }
    }
    let output = Command::new(&program).output().expect("it runs");
    let mut results = vec![BTreeSet::new(); expressions.len()];
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (number, value) = line.split_once(' ').expect("a number and a value");
        let number: usize = number.parse().expect("a number");
        results[number].insert(value.parse().expect("a value"));
    }
    Some(results)
}

#[test]
fn expressions_over_inputs_have_the_results_that_gcc_computes() {
    let mut random = Random(14);
    let expressions: Vec<String> = (0..60).map(|_| random.expression(3)).collect();
    let Some(results) = results(&expressions) else { return };
    for (number, (expression, results)) in expressions.iter().zip(&results).enumerate() {
        let start = format!(
            "int main(void) {{ signed char a = __VERIFIER_nondet_char(); \
             unsigned char b = __VERIFIER_nondet_uchar(); unsigned long r = {expression}; "
        );
        let (low, high) = (results.first().expect("a result"), results.last().expect("a result"));
        let some = results.iter().nth(results.len() / 2).expect("a result");
        let mut questions = vec![
            (format!("r >= {low}ul && r <= {high}ul"), "proved"),
            (format!("r != {some}ul"), "violated"),
            (format!("r != {low}ul"), "violated"),
        ];
        if let Some(never) = (1..=u64::MAX).find(|value| !results.contains(value)) {
            questions.push((format!("r != {never}ul"), "proved"));
        }
        for (which, (question, expected)) in questions.iter().enumerate() {
            let code = format!("{start} assert({question}); return 0; }}");
            let Some(found) = verdict(&format!("random_{number}_{which}"), &code) else { return };
            assert_eq!(word(&found), *expected, "{expression}: {question}");
        }
    }
}
