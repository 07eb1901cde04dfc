//! Instrumented programs behave as plain ones do, and every shadow that they hand over belongs to
//! the value beside it (the checking runtime ends the program otherwise).

mod common;

use common::{Mode, Runtime, build, compiler, succeed, temporary};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

fn run(program: &Path) -> Output {
    Command::new("timeout").arg("600").arg(program).output().expect("run")
}

/// Compares the plain program with what the instrumented one does at optimisation levels.
fn same(name: &str, variants: &[(&str, Mode)]) {
    let source = program(name);
    let plain = temporary("plain");
    succeed(compiler(&source).args(["-w", "-pthread"]).arg(&source).arg("-o").arg(&plain));
    let expected = run(&plain);
    for (level, mode) in variants {
        let actual = run(&build(&source, &[level], *mode, Runtime::Checking));
        let errors = String::from_utf8_lossy(&actual.stderr);
        assert_eq!(actual.status, expected.status, "{name} {level} {mode:?}: {errors}");
        assert_eq!(
            String::from_utf8_lossy(&actual.stdout),
            String::from_utf8_lossy(&expected.stdout),
            "{name} {level} {mode:?}"
        );
    }
}

#[test]
fn every_kind_of_operation() {
    same(
        "operations.c",
        &[
            ("-O0", Mode::Symbolic),
            ("-O1", Mode::Symbolic),
            ("-O2", Mode::Symbolic),
            ("-O0", Mode::Concrete),
            ("-O2", Mode::Concrete),
        ],
    );
}

#[test]
fn threads_and_exceptions() {
    same(
        "threads.cc",
        &[("-O0", Mode::Symbolic), ("-O2", Mode::Symbolic), ("-O1", Mode::Concrete)],
    );
}

#[test]
fn position_independent_code_in_a_shared_library() {
    let library_source = temporary("library.c");
    std::fs::write(&library_source, "int shared = 5;\nint bump(int n) { return shared += n; }\n")
        .expect("source");
    let program_source = temporary("user.c");
    std::fs::write(
        &program_source,
        "#include <stdio.h>\nextern int shared; int bump(int);\nint start = 2;\n\
         int main(void) { int n = bump(start); printf(\"%d %d\\n\", n, shared); return n; }\n",
    )
    .expect("source");
    let library = common::build_shared(&library_source);
    let program = common::build_with_library(&program_source, &library);
    let output = run(&program);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "7 7\n");
    assert_eq!(output.status.code(), Some(7));
}
