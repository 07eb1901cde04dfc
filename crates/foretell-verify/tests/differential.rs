//! Random C programs, judged by gcc and clang: a program is compiled and run under every schedule by a
//! scheduler of its own (`differential/steps.h`), which gives the results that it can have. The
//! verifier is then asked two questions about the same program: "is this result, which happens,
//! impossible?" must never be proved, and "is the result always one of those that happen?" must never
//! be refuted.
//!
//! The programs have integers of all types with conversions, shifts, divisions and comparisons,
//! arrays, pointers, structures with bit-fields passed by value, function pointers, two threads with
//! arguments and results, a mutex and a condition. Some access memory by two types or through `restrict`
//! pointers that overlap, or have operands without an order, pointers to blocks that have ended, initialisers
//! with effects, which is undefined or open more often than not: gcc and clang compile each program without
//! and with optimisation, and what one of them does happens. Nothing is shared with the verifier but the
//! source.
//!
//! `FORETELL_VERIFY_PROGRAMS` says how many (500); `FORETELL_VERIFY_SEED` where to begin;
//! `FORETELL_VERIFY_COMPILERS` asks for more compilers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use foretell_verify::explore::search::{Options, Verdict, explore};
use foretell_verify::ir::{Constant, Module, Type, clang};

#[path = "differential/generator.rs"]
mod generator;

use generator::{Random, program};

/// Programs in one file.
const BATCH: u64 = 25;

/// Compilers with their options; more of them if `FORETELL_VERIFY_COMPILERS` is set.
fn compilers() -> Vec<(&'static str, &'static [&'static str])> {
    let mut compilers: Vec<(&str, &[&str])> =
        vec![("gcc", &["-O0", "-fwrapv"]), ("gcc", &["-O2"]), ("clang-22", &["-O2"])];
    if std::env::var_os("FORETELL_VERIFY_COMPILERS").is_some() {
        compilers.extend::<[(&str, &[&str]); 4]>([
            ("gcc", &["-O1"]),
            ("gcc", &["-O3"]),
            ("clang-22", &["-O0", "-fwrapv"]),
            ("clang-22", &["-O3"]),
        ]);
    }
    compilers
}

/// What compiled programs do: for each program, whether all results are known, and the results; of none
/// where a compiler itself fails.
fn truth(folder: &Path, source: &Path, first: u64, count: u64) -> Option<Vec<(bool, Vec<u64>)>> {
    let mut all = vec![(true, Vec::new()); count as usize];
    for (compiler, options) in compilers() {
        let found = truth_at(folder, source, first, count, compiler, options)?;
        if found.is_empty() {
            return Some(found);
        }
        for ((complete, values), (other, more)) in all.iter_mut().zip(found) {
            *complete &= other;
            values.extend(more);
        }
    }
    for (complete, values) in &mut all {
        values.sort_unstable();
        values.dedup();
        // the verifier is asked about eight
        *complete &= values.len() <= 8;
    }
    Some(all)
}

/// The same, compiled with these options.
fn truth_at(
    folder: &Path,
    source: &Path,
    first: u64,
    count: u64,
    compiler: &str,
    options: &[&str],
) -> Option<Vec<(bool, Vec<u64>)>> {
    let binary = folder.join(format!("truth{first}"));
    let mut main = String::from("int main(void) {\n");
    let mut declared = String::new();
    for number in first..first + count {
        let _ =
            writeln!(declared, "extern char __start_shared{number}[], __stop_shared{number}[];");
        let _ = writeln!(
            main,
            "  enumerate({number}, p{number}_main, __start_shared{number}, __stop_shared{number});"
        );
    }
    main.push_str("  return 0;\n}\n");
    let whole = folder.join(format!("truth{first}.c"));
    let text = format!("#include \"{}\"\n{declared}{main}", source.display());
    std::fs::write(&whole, text).expect("the folder of tests can be written");
    let mut command = Command::new(compiler);
    command.args(options).args(["-w", "-DTRUTH", "-o"]).arg(&binary).arg(&whole);
    let compiled = match command.output() {
        Ok(compiled) => compiled,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "CI has {compiler}: {error}");
            eprintln!("SKIPPED: {compiler}: {error}");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&compiled.stderr).into_owned();
    if said.contains("internal compiler error") {
        eprintln!("{compiler} fails by itself on {}", whole.display());
        return Some(Vec::new());
    }
    assert!(compiled.status.success(), "{}: {said}", whole.display());
    let output = Command::new(&binary).output().expect("it runs");
    assert!(output.status.success(), "{}: {:?}", binary.display(), output.status);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = said.lines().map(|line| {
        let mut words = line.split(' ').skip(1);
        let complete = words.next() == Some("1");
        (complete, words.map(|word| word.parse().expect("a number")).collect())
    });
    Some(lines.collect())
}

fn set(module: &mut Module, name: &str, value: Constant) {
    let global = module.globals.iter_mut().find(|global| &*global.name == name);
    global.expect("the variable is there").initial = Some(value);
}

/// The module with one program as `main` and one question.
fn question(module: &Module, number: u64, forbid: bool, values: &[u64]) -> Module {
    let mut module = module.clone();
    let parts: Vec<(Type, Constant)> = (0..8)
        .map(|at| {
            (Type::Integer(64), Constant::Integer(values.get(at).copied().unwrap_or(0).into()))
        })
        .collect();
    set(&mut module, "oracle_values", Constant::Aggregate(Arc::from(parts)));
    set(&mut module, "oracle_count", Constant::Integer(values.len() as u128));
    set(&mut module, "oracle_forbid", Constant::Integer(forbid.into()));
    let name = format!("p{number}_main");
    let main = module.functions.iter_mut().find(|function| *function.name == *name);
    main.expect("the program is there").name = "main".into();
    module
}

fn variable(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

#[derive(Default, Debug)]
struct Tally {
    programs: u64,
    proved: u64,
    violated: u64,
    other: u64,
}

#[test]
fn what_happens_is_never_proved_impossible_and_what_never_happens_is_never_found() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("differential");
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/steps.h");
    let mut wanted = variable("FORETELL_VERIFY_PROGRAMS", 500);
    let seed = variable("FORETELL_VERIFY_SEED", 1);
    let mut tally = Tally::default();
    let mut wrong = Vec::new();
    let mut first = 0;
    while first < wanted {
        let count = BATCH.min(wanted - first);
        let mut text = format!("#include \"{}\"\n", header.display());
        for number in first..first + count {
            let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(number));
            text.push_str(&program(&mut random, number));
        }
        let source = folder.join(format!("batch{first}.c"));
        std::fs::write(&source, text).expect("the folder of tests can be written");
        let Some(truths) = truth(&folder, &source, first, count) else { return };
        if truths.is_empty() {
            wanted += count;
            first += count;
            continue;
        }
        let module = match clang::compile(&source, clang::Options::default()) {
            Ok(module) => module,
            Err(refusal) if refusal.what.contains("cannot run") => {
                assert!(std::env::var_os("CI").is_none(), "CI has clang: {refusal}");
                eprintln!("SKIPPED: {refusal}");
                return;
            }
            Err(refusal) => panic!("{refusal}"),
        };
        assert_eq!(truths.len() as u64, count);
        for (number, (complete, values)) in (first..).zip(truths) {
            tally.programs += 1;
            let mut questions = Vec::new();
            let ends = [values.first(), values.last().filter(|_| values.len() > 1)];
            questions.extend(ends.into_iter().flatten().map(|&value| (true, vec![value])));
            if complete {
                questions.push((false, values));
            }
            for (forbid, values) in questions {
                let module = question(&module, number, forbid, &values);
                let options = Options { states: 200_000, ..Options::default() };
                let verdict = explore(&module, &options).verdict;
                let about = format!("{}, program {number}, {values:?}", source.display());
                match (verdict, forbid) {
                    (Verdict::Proved(_), true) => {
                        wrong
                            .push(format!("{about}: proved impossible, and gcc's program does it"));
                    }
                    // undefined, and no run has to show it
                    (Verdict::Violated(found), false)
                        if found.violation.contains("no longer exists") =>
                    {
                        tally.other += 1;
                    }
                    (Verdict::Violated(found), false) => wrong.push(format!(
                        "{about}: {} at {}, which gcc's program never does\n{}",
                        found.violation,
                        found.place,
                        found.render()
                    )),
                    (Verdict::Proved(_), false) => tally.proved += 1,
                    (Verdict::Violated(_), true) => tally.violated += 1,
                    (Verdict::Unknown(why), _) => {
                        tally.other += 1;
                        eprintln!("{about}: unknown: {why}");
                    }
                }
            }
        }
        first += count;
        // a long run that is ended early has said what it found
        eprintln!("{first} programs, {} wrong", wrong.len());
    }
    eprintln!("{tally:?}");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    // a verifier that refuses everything shows nothing
    assert!(8 * tally.other <= tally.proved + tally.violated, "{tally:?}");
}
