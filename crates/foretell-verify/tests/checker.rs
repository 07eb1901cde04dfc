//! The independent checker agrees with the explorer about proofs, rejects proofs that were changed,
//! and accepts no program that fails.

use std::path::{Path, PathBuf};

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

#[test]
fn proofs_hold_and_changed_proofs_do_not() {
    let (mut holds, mut rejected, mut open, mut kept) = (0, 0, Vec::new(), Vec::new());
    for file in
        files("../../examples/verify").into_iter().chain(files("../../bench/programs/verify"))
    {
        let Some(module) = module(&file) else { continue };
        let options = Options { states: 3_000, ..Options::default() };
        let Verdict::Proved(summary) = explore(&module, &options).verdict else { continue };
        let proof = summary.print();
        match check(&module, &proof) {
            Answer::Holds(_) => holds += 1,
            Answer::Rejected(why) => panic!("{}: {why}", file.display()),
            Answer::NotChecked(why) => {
                open.push(format!("{}: {why}", file.display()));
                continue;
            }
        }
        // a few of each proof are enough, and others of the next
        for mutation in mutations(&proof).into_iter().skip(holds % 3).step_by(7).take(4) {
            match check(&module, &mutation) {
                Answer::Rejected(_) => rejected += 1,
                answer => kept.push(format!("{}: {answer:?}\n{mutation}", file.display())),
            }
        }
    }
    eprintln!("{holds} hold, {rejected} changed ones are rejected, {} are not", kept.len());
    assert!(holds >= 30 && rejected >= 60, "{holds} hold, {rejected} rejected; {open:#?}");
    // claims about places where only memory of `malloc` is accessed are not compared
    assert!(kept.len() * 10 <= rejected, "{kept:#?}");
}

#[test]
fn what_fails_is_never_accepted() {
    let mut rejected = 0;
    let folders = ["tests/never_proved", "../../examples/verify", "../../bench/programs/verify"];
    for file in folders.into_iter().flat_map(files) {
        let source = std::fs::read_to_string(&file).expect("it can be read");
        let header = source.split("*/").next().unwrap_or_default();
        let folder = file.parent().expect("it lies in a folder");
        if !folder.ends_with("never_proved") && !header.contains("Unsafe") {
            continue;
        }
        let Some(module) = module(&file) else { continue };
        match check(&module, "") {
            Answer::Holds(_) => panic!("{} is accepted", file.display()),
            Answer::Rejected(_) => rejected += 1,
            Answer::NotChecked(_) => {}
        }
    }
    assert!(rejected >= 60, "{rejected} rejected");
}

#[test]
fn what_is_no_proof_is_rejected() {
    let Some(module) = module(&root().join("../../examples/verify/counter_lock.c")) else { return };
    for proof in [
        "nonsense\n",
        "at a.c:1\n",
        "at a.c:1 in main\n",
        "at a.c:1 in main: x\n",
        "at a.c:1 in main: x in {\n",
        "at a.c:1 in main: x in {one}\n",
        "at a.c:1 in main: x in 1..\n",
    ] {
        let answer = check(&module, proof);
        assert!(matches!(answer, Answer::Rejected(_)), "{proof}: {answer:?}");
    }
}
