//! The program that a command runs: as it is, or built first from one source file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use foretell_build::Language;
use foretell_force::program::Program;
use foretell_guard::{PrivateFolder, process};
use foretell_record::check_traffic;

use crate::cli::RunArguments;
use crate::commands::frameworks;
use crate::exit::Failure;
use crate::input;

/// A program, and the folder of the build if there was one.
pub struct Prepared {
    /// The program.
    pub program: Program,
    /// Removed in the end.
    _build: Option<PrivateFolder>,
}

/// A temporary folder of our own.
pub fn temporary() -> Result<PrivateFolder, Failure> {
    PrivateFolder::new()
        .map_err(|error| Failure::Input(format!("{}: {error}", std::env::temp_dir().display())))
}

/// What was typed, ready to run.
pub fn prepare(typed: &[OsString], run: &RunArguments) -> Result<Prepared, Failure> {
    let (first, rest) = typed.split_first().expect("clap demands a program");
    if first.as_encoded_bytes().starts_with(b"-") {
        let option = first.display();
        return Err(Failure::Input(format!(
            "there is no option `{option}`; options stand before the program, `--help` lists them"
        )));
    }
    run.traffic.as_deref().map_or(Ok(()), check_traffic).map_err(Failure::Input)?;
    let mut program = described(first.into(), rest, run)?;
    let source = Path::new(first);
    program.is_test |= frameworks::of(source).is_some();
    let Some(language) = language_of(source).filter(|_| !run.binary) else {
        return Ok(Prepared { program, _build: None });
    };
    let folder = temporary()?;
    let binary = folder.path().join(source.file_stem().unwrap_or(first));
    build(language, source, &binary, None)?;
    program.called = Some(source.to_owned());
    program.path = binary;
    Ok(Prepared { program, _build: Some(folder) })
}

/// The same program with another text of its one source file; `None` where what was typed is not a
/// source file. What the text includes by a relative name is looked for beside the original.
pub fn prepare_text(
    typed: &[OsString],
    run: &RunArguments,
    text: &str,
) -> Result<Option<Prepared>, Failure> {
    let (first, rest) = typed.split_first().expect("clap demands a program");
    let original = Path::new(first);
    let (Some(language @ Source::Clang(_)), Some(name)) =
        (language_of(original), original.file_name())
    else {
        return Ok(None);
    };
    let folder = temporary()?;
    let source = folder.path().join(name);
    std::fs::write(&source, text)
        .map_err(|error| Failure::Input(format!("{}: {error}", source.display())))?;
    let binary = source.with_extension("");
    let beside = original.parent().filter(|parent| !parent.as_os_str().is_empty());
    build(language, &source, &binary, Some(beside.unwrap_or(Path::new("."))))?;
    let mut program = described(binary, rest, run)?;
    program.called = Some(original.to_owned());
    Ok(Some(Prepared { program, _build: Some(folder) }))
}

/// What a source file is written in.
#[derive(Clone, Copy)]
enum Source {
    /// What clang compiles.
    Clang(Language),
    Rust,
}

/// The language of a source file by its ending.
fn language_of(source: &Path) -> Option<Source> {
    match source.extension()?.to_str()? {
        "c" => Some(Source::Clang(Language::C)),
        "cc" | "cpp" | "cxx" | "C" => Some(Source::Clang(Language::Cxx)),
        "rs" => Some(Source::Rust),
        _ => None,
    }
}

/// A program with what it is given.
fn described(
    path: PathBuf,
    arguments: &[OsString],
    run: &RunArguments,
) -> Result<Program, Failure> {
    let mut program = Program::new(path, arguments.to_vec());
    let given = input::given()?;
    program.stdin.clone_from(&given.file);
    program.unread.clone_from(&given.unread);
    program.binary = run.binary;
    program.terms = run.symbolic;
    program.is_test = run.is_test;
    program.inputs.clone_from(&run.input);
    program.writes.clone_from(&run.writes);
    program.traffic.clone_from(&run.traffic);
    Ok(program)
}

/// Builds; what the compiler has to say goes to standard error. `beside` is where else included files
/// are looked for.
fn build(
    language: Source,
    source: &Path,
    binary: &Path,
    beside: Option<&Path>,
) -> Result<(), Failure> {
    if !source.is_file() {
        return Err(Failure::Input(format!("there is no file `{}`", source.display())));
    }
    let command = match language {
        Source::Clang(language) => {
            let standard = (language == Language::Cxx).then(|| OsString::from("-std=gnu++20"));
            let words = ["--as-written", "-O1", "-g", "-pthread", "-o"].map(OsString::from);
            let openmp = has_openmp(source).then(|| OsString::from("-fopenmp"));
            let words = standard.into_iter().chain(openmp).chain(words).chain([
                binary.into(),
                source.into(),
                "-lm".into(),
            ]);
            let beside = beside.into_iter().flat_map(|folder| ["-iquote".into(), folder.into()]);
            foretell_build::command(language, words.chain(beside))
        }
        Source::Rust => rust_host(None).map(|_| foretell_build::rust::command(source, binary))?,
    };
    let mut command = command.map_err(|error| Failure::Input(error.to_string()))?;
    // What the compiler leaves when it is ended goes with the folder.
    if let Some(folder) = binary.parent() {
        command.env("TMPDIR", folder);
    }
    let status = process::status(&mut command)
        .map_err(|error| Failure::Input(format!("cannot start the compiler: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Input(format!("{} was not compiled ({status})", source.display()))),
    }
}

/// Whether a line of the file is for OpenMP, which clang passes over without its option.
fn has_openmp(source: &Path) -> bool {
    let text = std::fs::read(source).unwrap_or_default();
    text.split(|&byte| byte == b'\n').any(|line| {
        let line = String::from_utf8_lossy(line);
        let mut words = line.trim_start().strip_prefix('#').unwrap_or_default().split_whitespace();
        words.next() == Some("pragma") && words.next() == Some("omp")
    })
}

/// The platform that `rustc` compiles for in this folder, if it is a `rustc` that the plugin is for.
pub fn rust_host(folder: Option<&Path>) -> Result<String, Failure> {
    let compiler = foretell_build::rust::compiler();
    let mut command = Command::new(&compiler);
    command.arg("-vV");
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let asked = process::output(&mut command).map_err(|error| {
        let name = compiler.display();
        Failure::Input(format!("cannot start {name}: {error}; install Rust 1.95 with rustup"))
    })?;
    let version = String::from_utf8_lossy(&asked.stdout);
    foretell_build::rust::host(&version).map_err(|error| Failure::Input(error.to_string()))
}
