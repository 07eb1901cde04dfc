//! Small programs of many kinds (promotions, bit-fields, unions, literals, texts, locks, atomics, inputs, ends of
//! threads and programs): what fails is never proved, what holds is never refuted.
//!
//! That a program fails is not our word: programs of one thread without inputs are compiled by gcc or clang and
//! run. Those of several threads fail in some schedule, which a run need not meet.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foretell_verify::explore::search::{Options, Verdict, explore};
use foretell_verify::ir::clang;

const HEADERS: &str = "assert.h ctype.h errno.h float.h limits.h math.h pthread.h semaphore.h setjmp.h signal.h \
    stdarg.h stdatomic.h stddef.h stdint.h stdio.h stdlib.h string.h threads.h time.h unistd.h wchar.h alloca.h \
    complex.h";

struct Collected {
    name: String,
    file: PathBuf,
    /// A compiled run shows that it fails.
    shown: bool,
}

/// The programs of a collection, each in a file.
fn programs(collection: &str) -> Vec<Collected> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/collected");
    let text = std::fs::read_to_string(tests.join(collection)).expect("the collection is there");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("collected");
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    let sections = text.split("\n=== ").skip(1);
    let write = |section: &str| {
        let (title, body) = section.split_once('\n').expect("a section has a title");
        let (name, marked) = match title.strip_suffix(" ?") {
            Some(name) => (name, true),
            None => (title, false),
        };
        let headers = HEADERS.split_whitespace().filter(|header| needs(body, header));
        let headers: String = headers.map(|header| format!("#include <{header}>\n")).collect();
        let file = folder.join(format!("{name}.c"));
        std::fs::write(&file, format!("{headers}{body}\n")).expect("it can be written");
        let is_open =
            ["pthread_create", "thrd_create", "__VERIFIER_"].iter().any(|w| body.contains(w));
        Collected { name: name.into(), file, shown: !marked && !is_open }
    };
    sections.map(write).collect()
}

/// Headers that change what a program may name are added where it is needed.
fn needs(body: &str, header: &str) -> bool {
    match header {
        "threads.h" => body.contains("thrd_") || body.contains("mtx_"),
        "complex.h" => body.contains("complex"),
        "ctype.h" => body.contains("isalpha") || body.contains("toupper"),
        _ => true,
    }
}

/// In a word, and why; none where there is no clang, said aloud.
fn verdict(file: &Path) -> Option<(&'static str, String)> {
    let module = match clang::compile(file, clang::Options::default()) {
        Ok(module) => module,
        Err(refusal) if refusal.what.contains("cannot run") => {
            assert!(std::env::var_os("CI").is_none(), "CI has clang: {refusal}");
            eprintln!("SKIPPED: {refusal}");
            return None;
        }
        Err(refusal) => return Some(("refused", refusal.to_string())),
    };
    Some(match explore(&module, &Options::default()).verdict {
        Verdict::Proved(_) => ("proved", String::new()),
        Verdict::Violated(found) => ("violated", format!("{}: {}", found.place, found.violation)),
        Verdict::Unknown(why) => ("unknown", why),
    })
}

/// Does the program fail when it is compiled so and run?
fn fails(file: &Path, compiler: &str, level: &str) -> Option<bool> {
    let binary = file.with_extension(format!("{compiler}{level}"));
    let mut command = Command::new(compiler);
    command
        .args([level, "-w", "-pthread", "-D_GNU_SOURCE", "-o"])
        .arg(&binary)
        .arg(file)
        .arg("-lm");
    let compiled = match command.output() {
        Ok(compiled) => compiled,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "CI has {compiler}: {error}");
            eprintln!("SKIPPED: {compiler}: {error}");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{}: {said}", file.display());
    let mut run = Command::new(&binary);
    run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = run.status().expect("it runs");
    let _ = std::fs::remove_file(&binary);
    Some(!status.success())
}

/// Looks at all programs, on two threads.
fn all<T: Send>(programs: &[Collected], look: impl Fn(&Collected) -> T + Sync) -> Vec<T> {
    let half = programs.len().div_ceil(2);
    std::thread::scope(|scope| {
        let look = &look;
        let halves = programs.chunks(half.max(1));
        let threads: Vec<_> = halves
            .map(|half| scope.spawn(move || half.iter().map(look).collect::<Vec<T>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn what_fails_is_never_proved() {
    let programs = programs("fails.txt");
    assert!(programs.len() >= 250, "{} programs", programs.len());
    let wrong = all(&programs, |program| {
        let Some((found, why)) = verdict(&program.file) else { return (None, String::new()) };
        let is_shown = !program.shown
            || fails(&program.file, "gcc", "-O0").unwrap_or(true)
            || fails(&program.file, "clang-22", "-O2").unwrap_or(true);
        let wrong = match (found, is_shown) {
            ("proved", _) => format!("{} is proved; ", program.name),
            (_, false) => format!("{} does not fail when it is run; ", program.name),
            // a refusal has its place
            _ if !why.contains(&format!("{}.c", program.name)) => {
                format!("{}: {why}; ", program.name)
            }
            _ => String::new(),
        };
        (Some(found), wrong)
    });
    let (found, wrong): (Vec<Option<&str>>, Vec<String>) = wrong.into_iter().unzip();
    if found.contains(&None) {
        return;
    }
    assert!(wrong.concat().is_empty(), "{}", wrong.concat());
    // a verifier that refuses everything shows nothing
    let violated = found.iter().filter(|found| **found == Some("violated")).count();
    eprintln!("{} programs: {violated} violated, the others refused", found.len());
    assert!(3 * violated >= 2 * found.len(), "{violated} of {}", found.len());
}

#[test]
fn what_holds_is_never_refuted() {
    let programs = programs("holds.txt");
    assert!(programs.len() >= 45, "{} programs", programs.len());
    let found = all(&programs, |program| {
        let (found, why) = verdict(&program.file)?;
        assert_ne!(found, "violated", "{}: {why}", program.name);
        Some((found, format!("{}: {why}", program.name)))
    });
    let Some(found) = found.into_iter().collect::<Option<Vec<_>>>() else { return };
    let open: Vec<&String> =
        found.iter().filter(|(f, _)| *f != "proved").map(|(_, why)| why).collect();
    eprintln!("{} programs, not proved: {open:#?}", found.len());
    assert!(10 * open.len() <= found.len(), "{open:#?}");
}
