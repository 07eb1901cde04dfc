//! What a compiler invocation asks for, as far as the driver must know. Everything is passed on to
//! clang as it came, but for the driver's own options `-fforetell=symbolic|concrete` and `--as-written`.

use crate::{BuildError, MODE_VARIABLE};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// How far the compiler goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It answers a question, or has nothing to work on.
    Question,
    /// `-E`, `-M`, `-MM`
    Preprocess,
    /// `-c`, `-S`, `-fsyntax-only`, or a relocatable object that is no program yet (`-r`)
    Compile,
    /// Program or shared library.
    Link,
}

/// What the plugin reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Accesses with values and expressions.
    Symbolic,
    /// Accesses with values.
    Concrete,
}

impl Mode {
    /// As in options and environment.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Symbolic => "symbolic",
            Mode::Concrete => "concrete",
        }
    }

    fn parse(from: &'static str, value: &OsStr) -> Result<Mode, BuildError> {
        match value.to_str() {
            Some("symbolic") => Ok(Mode::Symbolic),
            Some("concrete") => Ok(Mode::Concrete),
            _ => Err(BuildError::Mode { from, value: value.to_owned() }),
        }
    }
}

/// An invocation of the compiler.
#[derive(Debug)]
pub struct Request {
    /// What clang is given.
    pub passed: Vec<OsString>,
    /// How far it goes.
    pub stage: Stage,
    /// Some `-g` option is given.
    pub has_debug_option: bool,
    /// Link-time optimisation is asked for.
    pub has_lto_option: bool,
    /// `-static` is given.
    pub is_static: bool,
    /// The optimiser must keep the accesses of the source.
    pub as_written: bool,
    /// A program of C++ can be given functions of its library of our own.
    pub takes_containers: bool,
    /// libc++ is the library of C++.
    pub has_libcxx: bool,
    /// The headers of the library of C++ are not those that clang knows.
    pub has_other_library: bool,
    /// OpenMP by `-fopenmp`, which names no library.
    pub has_openmp: bool,
    /// One more source file can be compiled into the program.
    pub takes_sources: bool,
    mode: Option<Mode>,
}

/// The driver's own options.
const MODE_OPTION: &str = "-fforetell=";
const AS_WRITTEN_OPTION: &str = "--as-written";
/// Clang's own, but [`crate::command`] says what it is replaced by.
const OPENMP_OPTION: &str = "-fopenmp";

/// Options whose value is the next argument, so that it is not taken for an input file.
const WITH_VALUE: &[&str] = &[
    "-o",
    "-x",
    "-I",
    "-D",
    "-U",
    "-L",
    "-F",
    "-l",
    "-u",
    "-T",
    "-z",
    "-e",
    "-B",
    "-G",
    "-A",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-isysroot",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-Xclang",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xarch_host",
    "-mllvm",
    "-arch",
    "-target",
    "--param",
    "--sysroot",
    "-resource-dir",
    "-gcc-toolchain",
    "-aux-info",
    "-dumpbase",
    "-dumpdir",
    "-rpath",
    "-soname",
    "-install_name",
    "-working-directory",
    "--serialize-diagnostics",
    "-fplugin",
    "-include-pch",
    "-dyld-prefix",
];

/// Options that make clang print something and stop.
fn is_question(option: &str) -> bool {
    matches!(
        option,
        "--version"
            | "--help"
            | "-help"
            | "--help-hidden"
            | "-###"
            | "-dumpversion"
            | "-dumpmachine"
            | "-dumpspecs"
            | "--target-help"
            | "-cc1"
            | "-cc1as"
    ) || option.starts_with("-print-")
        || option.starts_with("--print-")
        || option.starts_with("--autocomplete=")
}

impl Request {
    /// Looks at the arguments.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, BuildError> {
        let mut request = Request {
            passed: Vec::new(),
            stage: Stage::Question,
            has_debug_option: false,
            has_lto_option: false,
            is_static: false,
            as_written: false,
            takes_containers: true,
            has_libcxx: false,
            has_other_library: false,
            has_openmp: false,
            takes_sources: true,
            mode: None,
        };
        let mut reading = Reading::default();
        for argument in arguments {
            if let Some(path) = response_file(&argument) {
                for inner in read_response_file(path)? {
                    request.see(&inner, &mut reading)?;
                }
                request.passed.push(argument);
            } else if request.see(&argument, &mut reading)? {
                request.passed.push(argument);
            }
        }
        request.stage = match reading {
            Reading { question: true, .. } | Reading { input: false, .. } => Stage::Question,
            Reading { stop: Some(stage), .. } => stage,
            _ => Stage::Link,
        };
        Ok(request)
    }

    /// The mode from the option, else from the environment, else symbolic.
    pub fn mode(&self) -> Result<Mode, BuildError> {
        match (self.mode, std::env::var_os(MODE_VARIABLE)) {
            (Some(mode), _) => Ok(mode),
            (None, Some(value)) => Mode::parse(MODE_VARIABLE, &value),
            (None, None) => Ok(Mode::Symbolic),
        }
    }

    /// Takes note of one argument; gives whether it is passed on.
    fn see(&mut self, argument: &OsStr, reading: &mut Reading) -> Result<bool, BuildError> {
        if std::mem::take(&mut reading.value_follows) {
            return Ok(true);
        }
        let option = argument.to_str().filter(|text| text.len() > 1 && text.starts_with('-'));
        let Some(option) = option else {
            reading.input |= !argument.is_empty();
            return Ok(true);
        };
        if let Some(value) = option.strip_prefix(MODE_OPTION) {
            self.mode = Some(Mode::parse("-fforetell", OsStr::new(value))?);
            return Ok(false);
        }
        if option == AS_WRITTEN_OPTION {
            self.as_written = true;
            return Ok(false);
        }
        if option == OPENMP_OPTION {
            self.has_openmp = true;
            return Ok(false);
        }
        reading.value_follows = WITH_VALUE.contains(&option);
        match option {
            "-E" | "-M" | "-MM" => reading.stop_at(Stage::Preprocess),
            "-c" | "-S" | "-fsyntax-only" | "-r" | "--analyze" | "-emit-ast" => {
                reading.stop_at(Stage::Compile);
            }
            "-static" | "--static" => self.is_static = true,
            _ if is_question(option) => reading.question = true,
            // A library or a word for the linker is something to work on, too.
            _ if option.starts_with("-l") || option.starts_with("-Wl,") => reading.input = true,
            _ => {}
        }
        self.takes_containers &= !is_without_containers(option);
        self.takes_sources &= !is_without_sources(option);
        self.has_openmp &= option != "-fno-openmp";
        if let Some(library) = option.strip_prefix("-stdlib=") {
            self.has_libcxx = library == "libc++";
        }
        self.has_other_library |= option.starts_with("-nostdinc");
        self.has_debug_option |= is_debug_option(option);
        self.has_lto_option |= option == "-flto" || option.starts_with("-flto=");
        Ok(true)
    }
}

/// Options with which one more source file cannot be compiled into a program: lists of what the one source
/// file includes, files that are named after it, a library, for which it is the program's.
fn is_without_sources(option: &str) -> bool {
    let begins = ["-M", "-save-temps", "--save-temps"];
    option == "-shared" || begins.iter().any(|begin| option.starts_with(begin))
}

/// Options with which functions of the library of C++ have no place in a program: no library, one that the program
/// has in itself, a C++ that is too old.
fn is_without_containers(option: &str) -> bool {
    let begins = ["-nostd", "-static-libstdc++"];
    let old = ["-std=c++98", "-std=c++03", "-std=gnu++98", "-std=gnu++03", "-ansi"];
    option == "-nodefaultlibs"
        || is_without_sources(option)
        || begins.iter().any(|begin| option.starts_with(begin))
        || old.contains(&option)
}

/// What was seen so far.
#[derive(Default)]
struct Reading {
    value_follows: bool,
    question: bool,
    input: bool,
    stop: Option<Stage>,
}

impl Reading {
    /// The earliest stage wins, as in clang.
    fn stop_at(&mut self, stage: Stage) {
        if self.stop != Some(Stage::Preprocess) {
            self.stop = Some(stage);
        }
    }
}

/// `-g`, `-g0`, `-gdwarf-4`, ... but not `-gcc-toolchain` and the like.
fn is_debug_option(option: &str) -> bool {
    option.strip_prefix("-g").is_some_and(|rest| {
        rest.is_empty()
            || rest.starts_with(|c: char| c.is_ascii_digit())
            || ["gdb", "dwarf", "line-tables-only", "line-directives-only", "full", "lldb", "sce"]
                .iter()
                .any(|known| rest.starts_with(known))
    })
}

fn response_file(argument: &OsStr) -> Option<PathBuf> {
    let bytes = argument.as_bytes().strip_prefix(b"@")?;
    let path = PathBuf::from(OsStr::from_bytes(bytes));
    path.is_file().then_some(path)
}

/// The words of a response file, in the GNU manner: separated by white space, with quotes and
/// backslashes.
fn read_response_file(path: PathBuf) -> Result<Vec<OsString>, BuildError> {
    let bytes =
        fs::read(&path).map_err(|error| BuildError::ResponseFile { path: path.clone(), error })?;
    Ok(split_words(&bytes))
}

fn split_words(bytes: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut rest = bytes.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' if quote != Some(b'\'') => word.get_or_insert_default().extend(rest.next()),
            b'\'' | b'"' if quote.is_none() => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            _ if quote == Some(byte) => quote = None,
            _ if quote.is_none() && byte.is_ascii_whitespace() => {
                words.extend(word.take().map(OsString::from_vec));
            }
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Request {
        Request::parse(line.split_whitespace().map(OsString::from)).expect(line)
    }

    #[test]
    fn the_stage_is_that_of_clang() {
        for (line, stage) in [
            ("--version", Stage::Question),
            ("-v", Stage::Question),
            ("", Stage::Question),
            ("-dumpmachine", Stage::Question),
            ("-print-prog-name=ld", Stage::Question),
            ("-o out", Stage::Question),
            ("-E a.c", Stage::Preprocess),
            ("-c -E a.c", Stage::Preprocess),
            ("-E -c a.c", Stage::Preprocess),
            ("-MM a.c", Stage::Preprocess),
            ("-c a.c -o a.o", Stage::Compile),
            ("-S a.c", Stage::Compile),
            ("-r a.o b.o -o c.o", Stage::Compile),
            ("a.c -o a", Stage::Link),
            ("-MMD -MF a.d a.c", Stage::Link),
            ("-shared -fPIC a.o -o a.so", Stage::Link),
            ("-x c -", Stage::Link),
            ("-Wl,--version", Stage::Link),
        ] {
            assert_eq!(parse(line).stage, stage, "{line}");
        }
    }

    #[test]
    fn values_of_options_are_no_inputs() {
        for option in WITH_VALUE.iter().filter(|option| **option != "-l") {
            assert_eq!(parse(&format!("{option} value")).stage, Stage::Question, "{option}");
        }
    }

    #[test]
    fn debug_options_are_told_from_others() {
        for (line, expected) in [
            ("-g a.c", true),
            ("-g0 a.c", true),
            ("-ggdb3 a.c", true),
            ("-gdwarf-4 a.c", true),
            ("-gcc-toolchain /x a.c", false),
            ("-O2 a.c", false),
            ("-I -g a.c", false),
        ] {
            assert_eq!(parse(line).has_debug_option, expected, "{line}");
        }
    }

    #[test]
    fn whether_as_written_is_ours_alone() {
        let request = parse("-c --as-written a.c");
        assert!(request.as_written);
        assert_eq!(request.passed, ["-c", "a.c"]);
        assert!(!parse("-c a.c").as_written);
        assert!(!parse("-o --as-written a.c").as_written);
    }

    #[test]
    fn containers_are_for_programs_with_a_library_beside_them() {
        assert!(parse("a.cc -o a -std=c++20").takes_containers);
        for line in ["-shared a.o", "-nostdlib++ a.o", "-MMD a.cc", "-std=c++98 a.cc"] {
            assert!(!parse(line).takes_containers, "{line}");
        }
    }

    #[test]
    fn the_library_of_cxx_is_the_one_that_was_named_last() {
        assert!(!parse("a.cc").has_libcxx);
        assert!(parse("-stdlib=libc++ a.cc").has_libcxx);
        assert!(!parse("-stdlib=libc++ -stdlib=libstdc++ a.cc").has_libcxx);
        assert!(parse("-stdlib=libc++ a.o -o a").takes_containers);
    }

    #[test]
    fn openmp_is_replaced_where_no_library_is_named() {
        let request = parse("-c -fopenmp a.c");
        assert!(request.has_openmp && request.takes_sources);
        assert_eq!(request.passed, ["-c", "a.c"]);
        assert!(!parse("-fopenmp -MMD a.c").takes_sources);
        assert!(!parse("-fopenmp -fno-openmp a.c").has_openmp);
        let request = parse("-fopenmp=libomp a.c");
        assert!(!request.has_openmp);
        assert_eq!(request.passed, ["-fopenmp=libomp", "a.c"]);
    }

    #[test]
    fn the_mode_option_is_ours_alone() {
        let request = parse("-c -fforetell=concrete a.c");
        assert_eq!(request.mode().expect("mode"), Mode::Concrete);
        assert_eq!(request.passed, ["-c", "a.c"]);
        let wrong = Request::parse(["-fforetell=fast".into()]).expect_err("no such mode");
        assert_eq!(wrong.to_string(), "-fforetell is fast: it must be symbolic or concrete");
    }

    #[test]
    fn response_files_are_words_with_quotes() {
        let words = split_words(b"-c  'a b.c'\n\"x\\\"y\" d\\ e \"\"");
        assert_eq!(words, ["-c", "a b.c", "x\"y", "d e", ""]);
    }
}
