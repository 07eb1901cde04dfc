//! The driver in the place of a compiler. The runtime here is that of foretell-instrument's tests,
//! which checks each hook's call and otherwise keeps still.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

const CC: &str = env!("CARGO_BIN_EXE_foretell-cc");
const CXX: &str = env!("CARGO_BIN_EXE_foretell-cxx");

/// A directory with plugin and runtime.
fn libraries() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = directory();
        let test = std::env::current_exe().expect("path of the test");
        let plugin = test.with_file_name("libforetell_instrument.so");
        fs::copy(&plugin, directory.join("libforetell_instrument.so")).expect("plugin");
        let source =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../foretell-instrument/tests/checking_runtime.c");
        let mut compile = Command::new("clang-22");
        compile.args(["-O1", "-w", "-shared", "-fPIC", source, "-o"]);
        succeed(compile.arg(directory.join("libforetell_runtime.so")));
        directory
    })
}

/// A new empty directory.
fn directory() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("drop-in-{}-{number}", std::process::id());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).expect("directory");
    directory
}

fn run(program: &str, arguments: &[&str], directory: &Path) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("FORETELL_LIB_DIR", libraries())
        .output()
        .expect(program)
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs the driver, which must succeed and print nothing.
fn silently(program: &str, arguments: &[&str], directory: &Path) {
    let output = run(program, arguments, directory);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}");
    assert!(text.is_empty() && output.stdout.is_empty(), "{arguments:?}: {text}");
}

#[test]
fn questions_get_clangs_answers() {
    let here = directory();
    for question in [
        &["--version"][..],
        &["-v"],
        &[],
        &["-dumpmachine"],
        &["-dumpversion"],
        &["-print-prog-name=ld"],
        &["-print-search-dirs"],
        &["--print-resource-dir"],
        &["-c", "missing.c"],
        &["-o"],
    ] {
        for (ours, clang) in [(CC, "clang-22"), (CXX, "clang++-22")] {
            let (expected, actual) = (run(clang, question, &here), run(ours, question, &here));
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(actual.status, expected.status, "{question:?}");
            assert_eq!(text(&actual.stdout), text(&expected.stdout), "{question:?}");
            assert_eq!(text(&actual.stderr), text(&expected.stderr), "{question:?}");
        }
    }
}

#[test]
fn a_wrong_program_gets_clangs_diagnostics() {
    let here = directory();
    fs::write(here.join("wrong.c"), "int main(void) { int unused; return nothing; }\n")
        .expect("source");
    let arguments = ["-Wall", "-c", "wrong.c"];
    let (expected, actual) = (run("clang-22", &arguments, &here), run(CC, &arguments, &here));
    assert_eq!(actual.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&actual.stderr), String::from_utf8_lossy(&expected.stderr));
}

#[test]
fn preprocessing_knows_foretell_and_dependencies_are_clangs() {
    let here = directory();
    let source = "#include \"own.h\"\n#ifdef __FORETELL__\nint instrumented;\n#endif\n";
    fs::write(here.join("own.h"), "int own;\n").expect("header");
    fs::write(here.join("a.c"), source).expect("source");
    let output = run(CC, &["-E", "a.c"], &here);
    assert!(String::from_utf8_lossy(&output.stdout).contains("int instrumented;"));
    assert!(output.stderr.is_empty());
    for arguments in [&["-M", "a.c"][..], &["-MM", "a.c"]] {
        let (expected, actual) = (run("clang-22", arguments, &here), run(CC, arguments, &here));
        assert_eq!(actual.stdout, expected.stdout);
    }
    silently(CC, &["-MMD", "-MF", "a.d", "-c", "a.c"], &here);
    assert_eq!(fs::read_to_string(here.join("a.d")).expect("dependencies"), "a.o: a.c own.h\n");
}

#[test]
fn all_stages_and_kinds_of_input_are_silent_even_with_werror() {
    let here = directory();
    fs::write(here.join("a.c"), "int f(int); int main(void) { return f(3) - 3; }\n")
        .expect("source");
    fs::write(here.join("b.c"), "int f(int x) { return x; }\n").expect("source");
    fs::write(here.join("c.s"), ".globl g\ng: ret\n.section .note.GNU-stack,\"\"\n")
        .expect("source");
    let strict = ["-Wall", "-Wextra", "-Werror", "-O2"];
    let with = |rest: &[&'static str]| [&strict[..], rest].concat();
    silently(CC, &with(&["-c", "a.c"]), &here);
    silently(CC, &["-Wall", "-Werror", "-c", "c.s"], &here);
    silently(CC, &with(&["-S", "b.c"]), &here);
    silently(CC, &with(&["-fsyntax-only", "b.c"]), &here);
    silently(CC, &["-Wall", "-Werror", "-c", "b.s"], &here);
    silently(CC, &with(&["-r", "b.o", "c.o", "-o", "bc.o"]), &here);
    silently(CC, &with(&["a.o", "bc.o", "-o", "linked"]), &here);
    silently(CC, &with(&["a.c", "b.c", "-flto", "-o", "at_once"]), &here);
    silently(CC, &with(&["-fPIC", "-shared", "b.c", "-o", "libb.so"]), &here);
    silently(CC, &with(&["a.c", "./libb.so", "-Wl,-z,defs", "-o", "with_library"]), &here);
    fs::write(here.join("arguments"), "-O1 a.c\n'b.c' -o from_file\n").expect("response file");
    silently(CC, &["@arguments"], &here);
    for program in ["linked", "at_once", "with_library", "from_file"] {
        succeed(Command::new(here.join(program)).current_dir(&here));
    }
}

#[test]
fn the_runtime_is_linked_before_all_libraries() {
    let here = directory();
    fs::write(here.join("a.c"), "int main(void) { return 0; }\n").expect("source");
    silently(CC, &["a.c", "-lpthread", "-lm", "-lc", "-o", "a"], &here);
    let dynamic = succeed(Command::new("readelf").arg("-d").arg(here.join("a")));
    let needed: Vec<&str> = dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(needed[0].contains("libforetell_runtime.so"), "{needed:?}");
    assert!(dynamic.contains(&*libraries().to_string_lossy()), "no search path in\n{dynamic}");
}

#[test]
fn what_cannot_work_says_so() {
    let here = directory();
    fs::write(here.join("a.c"), "int main(void) { return 0; }\n").expect("source");
    for (arguments, status, message) in [
        (&["-static", "a.c"][..], 2, "foretell cc: error: cannot link statically"),
        (&["-fforetell=all", "-c", "a.c"], 2, "foretell cc: error: -fforetell is all"),
    ] {
        let output = run(CC, arguments, &here);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.starts_with(message), "{text}");
    }
    let output = Command::new(CC)
        .args(["-c", "a.c"])
        .current_dir(&here)
        .env("FORETELL_LIB_DIR", "/nonexistent")
        .output()
        .expect("driver");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("libforetell_instrument.so not found in /nonexistent"), "{text}");
}

#[test]
fn a_cxx_program_with_marks_builds_and_runs_either_way() {
    let here = directory();
    let source = "#include <foretell.h>
#include <iostream>
#include <stdexcept>
int balance = 10;
int withdraw(int amount) {
  ForetellAtomic atomic(\"withdraw\");
  if (balance < amount) throw std::runtime_error(\"not enough\");
  return balance -= amount;
}
int main() {
  try { withdraw(3); withdraw(30); } catch (const std::exception &e) { std::cout << e.what() << balance; }
}
";
    fs::write(here.join("a.cc"), source).expect("source");
    silently(CXX, &["-O1", "a.cc", "-o", "ours"], &here);
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    assert!(run("clang++-22", &["a.cc", include, "-o", "plain"], &here).status.success());
    for program in ["ours", "plain"] {
        assert_eq!(succeed(&mut Command::new(here.join(program))), "not enough7");
    }
}

#[test]
fn a_configure_script_and_its_makefile_notice_nothing() {
    let here = directory();
    let configure = "#!/bin/sh
set -e
: ${CC:=cc}
echo 'int main(void){return 0;}' > conftest.c
$CC -o conftest conftest.c && ./conftest && test \"$($CC --version 2>&1 | head -1)\" != ''
test -z \"$($CC -Werror -pthread -c conftest.c 2>&1)\"
echo 'char pthread_create(); int main(void){return pthread_create();}' > conftest.c
$CC -w -o conftest conftest.c -lpthread
echo 'int main(void){return no_such_function();}' > conftest.c
if $CC -w -o conftest conftest.c 2>/dev/null; then echo undefined function found; exit 1; fi
printf 'prog: a.o b.o\\n\\t%s -pthread -o prog a.o b.o\\n.c.o:\\n\\t%s -O2 -c $<\\n' \"$CC\" \"$CC\" > Makefile
";
    fs::write(here.join("configure"), configure).expect("configure");
    fs::write(here.join("a.c"), "int f(void); int main(void) { return f(); }\n").expect("source");
    fs::write(here.join("b.c"), "int x = 4; int f(void) { return x - 4; }\n").expect("source");
    let with = |program: &str, arguments: &[&str]| {
        succeed(
            Command::new(program)
                .args(arguments)
                .current_dir(&here)
                .env("CC", CC)
                .env("FORETELL_LIB_DIR", libraries()),
        )
    };
    with("sh", &["configure"]);
    with("make", &[]);
    with("./prog", &[]);
    let symbols = with("nm", &["prog"]);
    assert!(symbols.contains("U __foretell_load"), "{symbols}");
}
