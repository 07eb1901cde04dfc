//! Programs of guarded commands that grow: how refinement by one trace and by the neighbourhood grow with
//! them (001 section 5).
//!
//! Three families are of the paper's kind, threads that hand values over by flags (`rounds`, `pipeline`,
//! `published`); three have work that does not depend on one another and one place that looks at all of
//! it. None was left out because of its result.

use std::fmt::Write as _;

use foretell_verify::text;

use crate::verify::both;

/// Larger programs of a family are left out once one took so many seconds of CPU.
const ENOUGH: f64 = 10.0;

const SIZES: [usize; 6] = [1, 2, 4, 6, 8, 12];

/// What a family is called, and its program of a size.
type Family = (&'static str, fn(usize) -> String);

const FAMILIES: [Family; 6] = [
    ("rounds", rounds),
    ("pipeline", pipeline),
    ("published", published),
    ("workers", workers),
    ("fields", fields),
    ("total", total),
];

/// Prints the table and the geometric mean of the ratios of the largest programs.
pub fn table() -> Result<(), String> {
    println!(
        "{:<10} {:>4} | {:>5} {:>7} {:>8} | {:>5} {:>7} {:>8} | trace / hood",
        "family", "size", "trace", "quest.", "cpu s", "hood", "quest.", "cpu s"
    );
    let mut logarithms = 0.0;
    for (name, family) in FAMILIES {
        let mut last = 1.0;
        for size in SIZES {
            let program = text::parse(name, &family(size)).map_err(|error| error.to_string())?;
            let (verdict, [trace, hood]) = both(&program)?;
            // a budget that ends one of them early says nothing about time
            if verdict == "unknown" {
                println!("{name:<10} {size:>4} | not decided within the budget");
                break;
            }
            last = trace.cpu.max(0.001) / hood.cpu.max(0.001);
            println!(
                "{name:<10} {size:>4} | {:>5} {:>7} {:>8.2} | {:>5} {:>7} {:>8.2} | {last:>6.2}  {verdict}",
                trace.iterations,
                trace.questions,
                trace.cpu,
                hood.iterations,
                hood.questions,
                hood.cpu
            );
            if verdict == "unsafe" || hood.iterations > trace.iterations {
                return Err(format!("{name} {size}: {verdict}, {} iterations", hood.iterations));
            }
            if trace.cpu.max(hood.cpu) > ENOUGH {
                break;
            }
        }
        println!("{name:<10} largest: by the trace needs {last:.2} times the CPU");
        logarithms += last.ln();
    }
    let mean = (logarithms / FAMILIES.len() as f64).exp();
    println!("geometric mean of the {} families: {mean:.2}\n", FAMILIES.len());
    match mean < 1.0 {
        true => Err(format!("the neighbourhood is slower: {mean:.2}")),
        false => Ok(()),
    }
}

/// Text for each number, with something between.
fn each(n: usize, between: &str, one: impl Fn(usize) -> String) -> String {
    (0..n).map(one).collect::<Vec<_>>().join(between)
}

/// A producer and a consumer hand a value over, so many times.
fn rounds(n: usize) -> String {
    let mut text = String::from("shared x = 0, y = 0, ready = 0, taken = 0;\nthread producer {\n");
    for i in 0..n {
        let (value, round) = (2 * i + 1, i + 1);
        let _ = writeln!(
            text,
            "  x := {value}; y := x + 1; ready := {round}; assume(taken == {round});"
        );
    }
    text += "}\nthread consumer {\n  local l = 0;\n";
    for i in 0..n {
        let (value, sum, round) = (2 * i + 1, 4 * i + 3, i + 1);
        let _ = writeln!(
            text,
            "  assume(ready == {round}); l := x; assert(l == {value}); l := l + y; \
             assert(l == {sum}); taken := {round};"
        );
    }
    text + "}\n"
}

/// Each thread waits for the one before and adds one to what that has left.
fn pipeline(n: usize) -> String {
    let mut text = format!(
        "shared x0 = 1, f0 = 1, {};\n",
        each(n, ", ", |i| format!("x{0} = 0, f{0} = 0", i + 1))
    );
    for i in 0..n {
        let next = i + 1;
        let _ = writeln!(
            text,
            "thread s{next} {{ assume(f{i} == 1); x{next} := x{i} + 1; f{next} := 1; }}"
        );
    }
    text + &format!("thread last {{ assume(f{n} == 1); assert(x{n} == {}); }}\n", n + 1)
}

/// Each thread publishes two fields and a flag; a reader looks when all flags are up.
fn published(n: usize) -> String {
    let mut text =
        format!("shared {};\n", each(n, ", ", |i| format!("a{i} = 0, b{i} = 0, f{i} = 0")));
    for i in 0..n {
        let value = i + 1;
        let _ =
            writeln!(text, "thread writer{i} {{ a{i} := {value}; b{i} := a{i} + 1; f{i} := 1; }}");
    }
    let flags = each(n, " && ", |i| format!("f{i} == 1"));
    let _ = writeln!(text, "thread reader {{\n  assume({flags});");
    for i in 0..n {
        let _ = writeln!(text, "  assert(b{i} == a{i} + 1); assert(a{i} == {});", i + 1);
    }
    text + "}\n"
}

/// Each thread counts to two in a variable of its own; the sum is known when all have ended.
fn workers(n: usize) -> String {
    let mut text = format!("shared {};\n", each(n, ", ", |i| format!("c{i} = 0, d{i} = 0")));
    for i in 0..n {
        let _ = writeln!(text, "thread w{i} {{ c{i} := c{i} + 1; c{i} := c{i} + 1; d{i} := 1; }}");
    }
    let done = each(n, " && ", |i| format!("d{i} == 1"));
    let sum = each(n, " ", |i| format!("s := s + c{i};"));
    text + &format!(
        "thread main {{ local s = 0; assume({done}); {sum} assert(s == {}); }}\n",
        2 * n
    )
}

/// Pairs of a writer and a reader, each pair with fields of its own.
fn fields(n: usize) -> String {
    let mut text =
        format!("shared {};\n", each(n, ", ", |i| format!("v{i} = 0, k{i} = 0, g{i} = 0")));
    for i in 0..n {
        let value = i + 3;
        let _ = writeln!(
            text,
            "thread w{i} {{ local t = 0; t := {value}; v{i} := t; k{i} := v{i} - t; g{i} := 1; }}\n\
             thread r{i} {{ assume(g{i} == 1); assert(k{i} == 0); }}"
        );
    }
    text
}

/// Each thread adds one to a total under a lock.
fn total(n: usize) -> String {
    let mut text =
        format!("shared t = 0, {};\nmutex m;\n", each(n, ", ", |i| format!("done{i} = 0")));
    for i in 0..n {
        let _ = writeln!(text, "thread w{i} {{ lock(m); t := t + 1; unlock(m); done{i} := 1; }}");
    }
    let done = each(n, " && ", |i| format!("done{i} == 1"));
    text + &format!("thread main {{ assume({done}); assert(t == {n}); }}\n")
}
