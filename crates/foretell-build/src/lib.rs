//! The compiler driver: `foretell cc` and `foretell c++` are clang 22 with foretell's plugin and
//! runtime added.
//!
//! A build system must not notice the difference: the driver prints nothing of its own, becomes
//! clang (so exit status and signals are clang's), and adds only what the invocation needs: the
//! plugin when something is compiled, the runtime when something is linked, nothing for
//! `--version` and other questions.
//!
//! | module | idea |
//! |---|---|
//! | [`arguments`] | what an invocation asks for |
//! | [`locate`] | where clang, the plugin, the runtime and `foretell.h` are |
//! | [`rust`] | the same for `rustc` |

pub mod arguments;
pub mod locate;
pub mod rust;

use arguments::{Request, Stage};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The environment variable that tells the plugin what to report.
pub const MODE_VARIABLE: &str = "FORETELL_INSTRUMENT";

/// The environment variable that tells the plugin to keep the accesses of the source.
const AS_WRITTEN_VARIABLE: &str = "FORETELL_AS_WRITTEN";

/// Functions of libstdc++ that are not in its headers, to be compiled into the program. The folder's name
/// says that they are of the library.
const CONTAINERS: &str = "c++/containers.cc";
/// The same of libc++.
const LIBCXX: &str = "c++/libc++.cc";
/// OpenMP's functions in the place of clang's library, to be compiled into the program.
const OPENMP: &str = "c++/openmp.c";
/// Headers in the place of libstdc++'s own.
const REPLACED: &str = "c++/libstdc++";
/// Headers in the place of libc++'s own.
const REPLACED_LIBCXX: &str = "c++/libc++";

/// Which compiler to stand in for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// `foretell cc`
    C,
    /// `foretell c++`
    Cxx,
}

impl Language {
    fn compiler(self) -> &'static str {
        match self {
            Language::C => "clang-22",
            Language::Cxx => "clang++-22",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Language::C => "foretell cc",
            Language::Cxx => "foretell c++",
        }
    }
}

/// Why the compiler could not be started.
#[derive(Debug)]
pub enum BuildError {
    /// No clang 22 on this machine.
    NoCompiler(&'static str),
    /// A file of foretell's own is missing.
    NotInstalled {
        /// Which.
        file: &'static str,
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
    /// Not `symbolic` or `concrete`.
    Mode {
        /// Where it was given.
        from: &'static str,
        /// What was given.
        value: OsString,
    },
    /// The runtime is a shared library.
    Static,
    /// A response file could not be read.
    ResponseFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The plugin is not for this `rustc`.
    RustLlvm {
        /// The version of `rustc`.
        release: String,
        /// Its LLVM.
        llvm: String,
    },
    /// Clang is there but did not start.
    Start {
        /// The compiler.
        compiler: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::NoCompiler(name) => write!(
                out,
                "{name} not found on PATH or in /usr/lib/llvm-22/bin: install Debian's package \
                 clang-22 (apt-get install clang-22)"
            ),
            BuildError::NotInstalled { file, searched } => {
                let places: Vec<_> = searched.iter().map(|p| p.display().to_string()).collect();
                write!(
                    out,
                    "{file} not found in {}: install foretell completely, or set {} to its directory",
                    places.join(", "),
                    locate::DIRECTORY_VARIABLE
                )
            }
            BuildError::Mode { from, value } => write!(
                out,
                "{from} is {}: it must be symbolic or concrete",
                value.to_string_lossy()
            ),
            BuildError::Static => write!(
                out,
                "cannot link statically, because the runtime is a shared library: build without -static"
            ),
            BuildError::ResponseFile { path, error } => {
                write!(out, "cannot read response file {}: {error}", path.display())
            }
            BuildError::RustLlvm { release, llvm } => write!(
                out,
                "rustc {release} has LLVM {llvm}, and foretell's plugin is for LLVM 22: use Rust 1.95 \
                 (RUSTUP_TOOLCHAIN chooses a toolchain)"
            ),
            BuildError::Start { compiler, error } => {
                write!(out, "cannot start {}: {error}", compiler.display())
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// The clang command that an invocation stands for.
pub fn command(
    language: Language,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Command, BuildError> {
    let request = Request::parse(arguments)?;
    let compiler = locate::compiler(language.compiler())?;
    let mut command = Command::new(&compiler);
    if request.stage == Stage::Question {
        command.args(request.has_openmp.then_some("-fopenmp"));
        command.args(&request.passed);
        return Ok(command);
    }
    let directories = locate::directories();
    command.env(MODE_VARIABLE, request.mode()?.as_str());
    match request.as_written {
        true => command.env(AS_WRITTEN_VARIABLE, "1"),
        false => command.env_remove(AS_WRITTEN_VARIABLE),
    };
    // Whatever of this a stage has no use for must not be reported as unused.
    command.arg("--start-no-unused-arguments");
    if let Some(include) = locate::include_directory(&directories) {
        let replaced = match (request.has_libcxx, request.has_other_library) {
            (true, _) => Some(REPLACED_LIBCXX),
            (false, true) => None,
            (false, false) => Some(REPLACED),
        };
        if let Some(replaced) = replaced.filter(|_| language == Language::Cxx) {
            command.arg("-isystem").arg(include.join(replaced));
        }
        command.arg("-idirafter").arg(include);
    }
    command.arg("-D__FORETELL__=1");
    if request.stage != Stage::Preprocess {
        let plugin = locate::library(locate::PLUGIN, &directories)?;
        command.arg(prefixed("-fpass-plugin=", plugin.as_os_str()));
        // Vectors have no shadows; functions that nobody marked `inline` stay, because calls are the
        // regions that are checked for atomicity; in link-time optimisation the plugin would not run.
        command.args([
            "-fno-vectorize",
            "-fno-slp-vectorize",
            "-finline-hint-functions",
            "-fno-lto",
        ]);
        if request.as_written {
            // What two branches both do is one access then, without a line of its own.
            for option in ["hoist", "sink"] {
                command.args(["-mllvm".into(), format!("-simplifycfg-{option}-common=false")]);
            }
            // A block that nobody reads is left out otherwise, with whatever overruns it.
            for function in ["malloc", "calloc", "realloc", "free"] {
                command.arg(format!("-fno-builtin-{function}"));
            }
        }
        if !request.has_debug_option {
            command.arg("-gline-tables-only");
        }
    }
    if request.stage == Stage::Link {
        if request.is_static {
            return Err(BuildError::Static);
        }
        let runtime = locate::library(locate::RUNTIME, &directories)?;
        if let Some(directory) = runtime.parent() {
            command.arg(prefixed("-L", directory.as_os_str()));
            command.arg(prefixed("-Wl,-rpath,", directory.as_os_str()));
        }
        // First of all libraries: its wrappers must be found before the C library's functions.
        command.args(["-Wl,--push-state,--no-as-needed", "-lforetell_runtime", "-Wl,--pop-state"]);
    }
    let openmp = request.has_openmp && (request.stage != Stage::Link || request.takes_sources);
    let openmp = openmp.then(|| locate::include_directory(&directories)).flatten();
    match &openmp {
        // The language without the library.
        Some(_) => command.args(["-Xclang", "-fopenmp", "-pthread"]),
        None => command.args(request.has_openmp.then_some("-fopenmp")),
    };
    command.arg("--end-no-unused-arguments");
    command.args(&request.passed);
    if let (Some(include), Stage::Link) = (openmp, request.stage) {
        let language = if language == Language::Cxx { "c++" } else { "c" };
        command.args(["-x", language]).arg(include.join(OPENMP));
    }
    if language == Language::Cxx && request.stage == Stage::Link && request.takes_containers {
        let functions = if request.has_libcxx { LIBCXX } else { CONTAINERS };
        let containers = locate::include_directory(&directories).map(|d| d.join(functions));
        if let Some(containers) = containers.filter(|file| file.is_file()) {
            command.args(["-x", "c++"]).arg(containers);
        }
    }
    if request.has_lto_option {
        command.args(["--start-no-unused-arguments", "-fno-lto", "--end-no-unused-arguments"]);
    }
    Ok(command)
}

fn prefixed(prefix: &str, rest: &OsStr) -> OsString {
    let mut text = OsString::from(prefix);
    text.push(rest);
    text
}

/// Becomes the compiler. Returns only if that fails, with a message on standard error.
pub fn compile(language: Language, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let error = match command(language, arguments) {
        Ok(mut command) => {
            let error = command.exec();
            BuildError::Start { compiler: command.get_program().into(), error }
        }
        Err(error) => error,
    };
    // A standard error that is closed or full changes nothing about the failure.
    let _ = writeln!(io::stderr(), "{}: error: {error}", language.name());
    match error {
        BuildError::Mode { .. } | BuildError::Static | BuildError::ResponseFile { .. } => {
            ExitCode::from(2)
        }
        _ => ExitCode::FAILURE,
    }
}
