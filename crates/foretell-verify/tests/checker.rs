//! The independent checker agrees with the explorer about proofs, rejects proofs that were changed,
//! and accepts no program that fails.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use foretell_verify::certificate::{Certificate, Property};
use foretell_verify::checker::{Answer, check};
use foretell_verify::explore::search::{Options, Verdict, explore};
use foretell_verify::ir::{Module, clang};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .collect();
    files.sort();
    files
}

/// The program; `None` if it is refused as a whole.
fn module(file: &Path) -> Option<Module> {
    match clang::compile(file, clang::Options::default()) {
        Ok(module) => Some(module),
        Err(refusal) => {
            let absent = refusal.what.contains("cannot run");
            assert!(!absent || std::env::var_os("CI").is_none(), "CI has clang: {refusal}");
            eprintln!("SKIPPED: {refusal}");
            None
        }
    }
}

/// Proofs with the first value of a list left out: no longer what the program does.
fn mutations(proof: &str) -> Vec<String> {
    let mut mutations = Vec::new();
    for (at, _) in proof.match_indices('{') {
        let end = at + proof[at..].find('}').expect("a list ends");
        let values: Vec<&str> = proof[at + 1..end].split(", ").collect();
        let changed = match values.len() {
            1 => "77777".to_owned(),
            _ => values[1..].join(", "),
        };
        mutations.push(format!("{}{{{changed}}}{}", &proof[..at], &proof[end + 1..]));
    }
    mutations
}

/// The first comment of a program says what it is about.
fn header(file: &Path) -> String {
    let source = std::fs::read_to_string(file).expect("it can be read");
    source.split("*/").next().unwrap_or_default().to_owned()
}

/// The proof of a program, if it has one.
fn proof(module: &Module, deadlocks: bool) -> Option<Certificate> {
    let options = Options { deadlocks, states: 3_000, ..Options::default() };
    let report = explore(module, &options);
    let Verdict::Proved(summary) = report.verdict else { return None };
    let mut properties = BTreeSet::from([Property::Assertion]);
    properties.extend(deadlocks.then_some(Property::Deadlock));
    Some(Certificate::new(module, properties, report.assumptions, summary.print()))
}

/// What the checker says of a file.
fn answer(module: &Module, text: &str, asked: &[Property]) -> Answer {
    match Certificate::parse(text) {
        Ok(proof) => check(module, &proof, &asked.iter().copied().collect()),
        Err(why) => Answer::Rejected(why),
    }
}

#[test]
fn proofs_hold_and_changed_proofs_do_not() {
    let (mut holds, mut rejected, mut open, mut kept) = (0, 0, Vec::new(), Vec::new());
    let (mut deadlocks, mut silent) = (0, 0);
    for file in
        files("../../examples/verify").into_iter().chain(files("../../bench/programs/verify"))
    {
        let Some(module) = module(&file) else { continue };
        let of_deadlocks = header(&file).contains("No deadlock.");
        let Some(proof) = proof(&module, of_deadlocks) else { continue };
        match answer(&module, &proof.print(), &[Property::Assertion]) {
            Answer::Holds(_) => holds += 1,
            Answer::Rejected(why) => panic!("{}: {why}", file.display()),
            Answer::NotChecked(why) => {
                open.push(format!("{}: {why}", file.display()));
                continue;
            }
        }
        deadlocks += usize::from(of_deadlocks);
        // a few of each proof are enough, and others of the next
        for claims in mutations(&proof.claims).into_iter().skip(holds % 3).step_by(7).take(4) {
            // the file is whole and its hash is right: only what it says is wrong
            let changed = Certificate { claims, ..proof.clone() };
            match answer(&module, &changed.print(), &[Property::Assertion]) {
                Answer::Rejected(_) => rejected += 1,
                answer => kept.push(format!("{}: {answer:?}\n{changed:?}", file.display())),
            }
        }
        // what it assumes is left out
        for assumption in &proof.assumptions {
            let mut changed = proof.clone();
            changed.assumptions.remove(assumption);
            let answer = answer(&module, &changed.print(), &[Property::Assertion]);
            let Answer::Rejected(why) = answer else { panic!("{}: {answer:?}", file.display()) };
            assert!(why.contains(&assumption.to_string()), "{}: {why}", file.display());
            silent += 1;
        }
    }
    eprintln!(
        "{holds} hold ({deadlocks} of deadlocks), {rejected} changed ones are rejected, {} are not",
        kept.len()
    );
    eprintln!("{silent} that do not say what they assume are rejected; not checked: {open:#?}");
    assert!(holds >= 50 && rejected >= 90, "{holds} hold, {rejected} rejected; {open:#?}");
    assert!(deadlocks >= 2 && silent >= 60, "{deadlocks} of deadlocks, {silent} silent");
    // claims about places where only memory of `malloc` is accessed are not compared
    assert!(kept.len() * 10 <= rejected, "{kept:#?}");
}

/// A proof that says nothing, of all places: it holds of every program that does not fail.
fn empty_proof(module: &Module) -> Certificate {
    let mut claims = BTreeSet::new();
    for function in &module.functions {
        for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
            let place = module.show_short(instruction.place);
            claims.insert(format!("at {place} in {}: \n", function.name));
        }
    }
    let properties = BTreeSet::from([Property::Assertion]);
    Certificate::new(module, properties, BTreeSet::new(), claims.into_iter().collect())
}

#[test]
fn what_fails_is_never_accepted() {
    let mut rejected = 0;
    let folders = ["tests/never_proved", "../../examples/verify", "../../bench/programs/verify"];
    for file in folders.into_iter().flat_map(files) {
        let folder = file.parent().expect("it lies in a folder");
        if !folder.ends_with("never_proved") && !header(&file).contains("Unsafe") {
            continue;
        }
        let Some(module) = module(&file) else { continue };
        match answer(&module, &empty_proof(&module).print(), &[Property::Assertion]) {
            Answer::Holds(_) => panic!("{} is accepted", file.display()),
            Answer::Rejected(why) => {
                assert!(!why.contains("says nothing"), "{}: {why}", file.display());
                rejected += 1;
            }
            Answer::NotChecked(_) => {}
        }
    }
    assert!(rejected >= 60, "{rejected} rejected");
}

/// What unoptimised code does not show: the checker accepts none of it either.
#[test]
fn what_is_undefined_is_never_accepted() {
    let mut accepted = Vec::new();
    for file in files("tests/undefined") {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some(module) = module(&file).filter(|_| !name.ends_with("_ok")) else { continue };
        let answer = answer(&module, &empty_proof(&module).print(), &[Property::Assertion]);
        match answer {
            Answer::Holds(_) => accepted.push(name),
            Answer::Rejected(why) => assert!(!why.contains("says nothing"), "{name}: {why}"),
            Answer::NotChecked(_) => {}
        }
    }
    assert!(accepted.is_empty(), "{accepted:?}");
}

/// Each is refused, and the message says what is wrong.
fn refused(module: &Module, text: &str, asked: Property, word: &str) {
    match answer(module, text, &[asked]) {
        Answer::Rejected(why) if why.contains(word) => {}
        answer => panic!("{answer:?} instead of {word}:\n{text}"),
    }
}

#[test]
fn what_is_no_proof_of_this_is_refused() {
    let example = |name: &str| module(&root().join("../../examples/verify").join(name));
    let (Some(program), Some(other)) = (example("counter_lock.c"), example("lazy01_safe.c")) else {
        return;
    };
    let proof_of = |module| proof(module, false).expect("it is proved");
    let proof = proof_of(&program);
    let text = proof.print();
    assert!(matches!(answer(&program, &text, &[Property::Assertion]), Answer::Holds(_)));
    let assertion = |text: &str, word: &str| refused(&program, text, Property::Assertion, word);
    // a header alone, nothing, the format of before
    assertion("foretell-states 2\n", "incomplete");
    assertion("", "not a proof");
    assertion("nonsense\n", "not a proof");
    assertion("foretell-states 1\nat a.c:1 in main: \n", "older version");
    // cut at every line, and changed at many places
    for (at, _) in text.match_indices('\n').filter(|(at, _)| *at + 1 < text.len()) {
        let word = if at < 20 { "" } else { "incomplete" };
        assertion(&text[..=at], word);
    }
    for at in (20..text.len() - 80).step_by(7) {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
        let changed = String::from_utf8_lossy(&bytes).into_owned();
        assertion(&changed, "changed");
    }
    // of another program, compiler, property, kind of overflow
    assertion(&proof_of(&other).print(), "another program");
    refused(&other, &text, Property::Assertion, "another program");
    refused(&program, &text, Property::Deadlock, "deadlock was asked for");
    let compiler = "some other compiler".to_owned();
    assertion(&Certificate { compiler, ..proof.clone() }.print(), "different compiler");
    assertion(&Certificate { overflow: false, ..proof.clone() }.print(), "--no-overflow");
    let properties = BTreeSet::new();
    assertion(&Certificate { properties, ..proof.clone() }.print(), "no property");
    // without an invariant, or with lines of it left out
    assertion(&Certificate { claims: String::new(), ..proof.clone() }.print(), "no invariant");
    let lines = proof.claims.lines().count();
    let mut missed = 0;
    for left_out in 0..lines {
        let kept = proof.claims.lines().enumerate().filter(|(line, _)| *line != left_out);
        let claims = kept.map(|(_, line)| format!("{line}\n")).collect();
        let changed = Certificate { claims, ..proof.clone() }.print();
        match answer(&program, &changed, &[Property::Assertion]) {
            Answer::Rejected(why) => assert!(why.contains("says nothing of"), "{why}"),
            // a line that only accesses locals
            _ => missed += 1,
        }
    }
    assert!(missed * 3 <= lines, "{missed} of {lines}\n{}", proof.claims);
    // with lines that are none
    for line in [
        "nonsense\n",
        "at a.c:1\n",
        "at a.c:1 in main\n",
        "at a.c:1 in main: x\n",
        "at a.c:1 in main: x in {\n",
        "at a.c:1 in main: x in {one}\n",
        "at a.c:1 in main: x in 1..\n",
    ] {
        let claims = format!("{line}{}", proof.claims);
        assertion(&Certificate { claims, ..proof.clone() }.print(), "");
    }
}

/// The identity of a program does not depend on where it lies, and changes with its text.
#[test]
fn a_proof_travels_with_its_program() {
    let source = root().join("../../examples/verify/counter_lock.c");
    let Some(here) = module(&source) else { return };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("elsewhere");
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    let copy = folder.join("counter_lock.c");
    let text = std::fs::read_to_string(&source).expect("it can be read");
    std::fs::write(&copy, &text).expect("it can be written");
    let proof = proof(&here, false).expect("it is proved").print();
    let there = module(&copy).expect("it compiles");
    assert!(matches!(answer(&there, &proof, &[Property::Assertion]), Answer::Holds(_)));
    std::fs::write(&copy, text.replacen("main(", "main (", 1).replacen("++", "+=1", 1))
        .expect("it can be written");
    let changed = module(&copy).expect("it compiles");
    refused(&changed, &proof, Property::Assertion, "another program");
}
