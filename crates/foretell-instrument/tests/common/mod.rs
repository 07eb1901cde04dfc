//! Compiles programs with the plugin and one of the test runtimes, and runs them.
#![allow(dead_code)] // each test file uses its part

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the plugin is told to report.
#[derive(Clone, Copy, Debug)]
pub enum Mode {
    Symbolic,
    Concrete,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Symbolic => "symbolic",
            Mode::Concrete => "concrete",
        }
    }
}

/// A runtime of C in this directory.
#[derive(Clone, Copy)]
pub enum Runtime {
    /// Prints each call of a hook.
    Printing,
    /// Checks that shadows and values agree.
    Checking,
}

/// The plugin, which Cargo leaves beside the test executable.
pub fn plugin() -> PathBuf {
    let executable = std::env::current_exe().expect("path of the test");
    let plugin = executable.with_file_name("libforetell_instrument.so");
    assert!(plugin.is_file(), "{} is not built", plugin.display());
    plugin
}

/// A new path for a file of a test.
pub fn temporary(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}-{name}", std::process::id()))
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    output
}

/// Clang for C or, by the name's ending, C++.
pub fn compiler(source: &Path) -> Command {
    let cxx = source.extension().is_some_and(|e| e == "cc");
    Command::new(if cxx { "clang++-22" } else { "clang-22" })
}

fn runtime(runtime: Runtime) -> &'static Path {
    static OBJECTS: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
    let name = match runtime {
        Runtime::Printing => "printing_runtime",
        Runtime::Checking => "checking_runtime",
    };
    OBJECTS[runtime as usize].get_or_init(|| {
        let object = temporary(&format!("{name}.o"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}.c"));
        succeed(
            Command::new("clang-22").args(["-O1", "-w", "-c"]).arg(source).arg("-o").arg(&object),
        );
        object
    })
}

/// Compiles a source with the plugin.
fn object(source: &Path, options: &[&str], mode: Mode) -> PathBuf {
    let object = temporary("program.o");
    let mut plugin_option = std::ffi::OsString::from("-fpass-plugin=");
    plugin_option.push(plugin());
    succeed(
        compiler(source)
            .args(options)
            .args(["-g", "-w", "-c", "-fno-vectorize", "-fno-slp-vectorize"])
            .arg(plugin_option)
            .arg(source)
            .arg("-o")
            .arg(&object)
            .env("FORETELL_INSTRUMENT", mode.name())
            .env("FORETELL_VERIFY_IR", "1"),
    );
    object
}

/// Compiles a source with the plugin, and links it with a runtime.
pub fn build(source: &Path, options: &[&str], mode: Mode, with: Runtime) -> PathBuf {
    let object = object(source, options, mode);
    let program = temporary("program");
    succeed(
        compiler(source).arg(&object).arg(runtime(with)).arg("-pthread").arg("-o").arg(&program),
    );
    program
}

/// A shared library that holds the source, instrumented, and the checking runtime.
pub fn build_shared(source: &Path) -> PathBuf {
    let library = temporary("library.so");
    let runtime_source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checking_runtime.c");
    let runtime = temporary("runtime.o");
    succeed(
        Command::new("clang-22")
            .args(["-O1", "-w", "-fPIC", "-c"])
            .arg(runtime_source)
            .arg("-o")
            .arg(&runtime),
    );
    let object = object(source, &["-O1", "-fPIC"], Mode::Symbolic);
    succeed(
        Command::new("clang-22").arg("-shared").arg(object).arg(runtime).arg("-o").arg(&library),
    );
    library
}

/// An instrumented program that uses such a library.
pub fn build_with_library(source: &Path, library: &Path) -> PathBuf {
    let program = temporary("program");
    let object = object(source, &["-O1"], Mode::Symbolic);
    succeed(Command::new("clang-22").arg(object).arg(library).arg("-o").arg(&program));
    program
}

/// The hooks that a C program calls, one a line, from the entry of `main` on.
pub fn hooks(code: &str, optimisation: &str, mode: Mode) -> Vec<String> {
    hooks_of("program.c", code, optimisation, mode)
}

/// The same for C++.
pub fn hooks_cxx(code: &str, optimisation: &str, mode: Mode) -> Vec<String> {
    hooks_of("program.cc", code, optimisation, mode)
}

fn hooks_of(name: &str, code: &str, optimisation: &str, mode: Mode) -> Vec<String> {
    let source = temporary(name);
    std::fs::write(&source, code).expect("source");
    let program = build(&source, &[optimisation], mode, Runtime::Printing);
    let printed = temporary("hooks");
    succeed(Command::new(program).env("FORETELL_PRINT", &printed));
    let text = std::fs::read_to_string(printed).expect("hooks");
    text.lines().skip_while(|line| !line.starts_with("enter main")).map(str::to_owned).collect()
}

/// Whether the wanted lines occur in this order (each as the beginning of a printed line).
pub fn assert_in_order(printed: &[String], wanted: &[&str]) {
    let mut rest = printed.iter();
    for line in wanted {
        let found = rest.any(|candidate| candidate.starts_with(line));
        assert!(found, "no `{line}` in its place in\n{}", printed.join("\n"));
    }
}

/// That no line begins with this.
pub fn assert_none(printed: &[String], unwanted: &str) {
    let found = printed.iter().any(|line| line.starts_with(unwanted));
    assert!(!found, "`{unwanted}` in\n{}", printed.join("\n"));
}
