//! From a C file to its IR.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use foretell_guard::{PrivateFolder, process};

use super::macros::identifiers;
use super::syntax::{self, Syntax};
use super::{Module, Refusal, files, macros, read, scopes, unions};

/// The compiler whose IR is read.
pub const CLANG: &str = "clang-22";

/// How C is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Signed overflow is a violation; otherwise it wraps, as `-fwrapv` has it.
    pub overflow: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { overflow: true }
    }
}

/// Compiles and reads a C file.
pub fn compile(file: &Path, options: Options) -> Result<Module, Refusal> {
    // What the compiler leaves when it is ended goes with the folder.
    let folder = PrivateFolder::new()
        .map_err(|error| Refusal { place: file.display().to_string(), what: error.to_string() })?;
    let clang = Clang { shown: file.display().to_string(), folder, options };
    let text = clang.preprocess(file, &OWN_MACROS)?;
    let lines = Preprocessed::of(&text);
    clang.check_lines(&lines)?;
    clang.check_macros(file, &text, &lines)?;
    let preprocessed = clang.folder.path().join("program.i");
    std::fs::write(&preprocessed, &text).map_err(|error| clang.refuse(error.to_string()))?;
    let mut command = clang.command();
    command.args(["-x", "cpp-output", "-S", "-emit-llvm", "-g"]);
    // what clang writes before any optimisation, with the lifetimes of variables, which it leaves out
    // at -O0, and with the types by which memory is accessed
    command.args(["-O1", "-Xclang", "-disable-llvm-passes", "-fno-discard-value-names"]);
    // what C leaves undefined between two sequence points has no meaning that could be looked at
    command.args(["-Wno-everything", "-Werror=unsequenced"]);
    // of which the effects are left out by one compiler and not by another
    command.arg("-Werror=initializer-overrides");
    // whoever writes to a constant has cast it away; it matters only where no write is seen
    command.args(["-Wcast-qual", "-Wincompatible-pointer-types-discards-qualifiers"]);
    if !options.overflow {
        command.arg("-fwrapv");
    }
    command.args(["-o", "-"]).arg(&preprocessed);
    let output = clang.run(&mut command)?;
    let ir = String::from_utf8(output.stdout)
        .map_err(|_| clang.refuse(format!("the output of {CLANG} is not text")))?;
    if ir.lines().any(calls_by_pointer)
        && let Some(place) = lines.place_of(&["nonnull", "__nonnull__"])
    {
        let what = "nonnull, in a program that calls functions by pointers: what the type of such a pointer \
                    promises is not in the IR";
        return Err(Refusal { place, what: what.into() });
    }
    let mut module = read(&clang.shown, &ir)?;
    let defined = module.functions.iter().filter(|function| function.is_defined());
    let defined: HashSet<&str> = defined.map(|function| &*function.name).collect();
    if let Some((file, line)) = files::misused(&lines.lines, &defined) {
        let what = "__FILE__, which depends on how the program is compiled";
        return Err(Refusal { place: format!("{file}:{line}"), what: what.into() });
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if let Some(warning) = said.lines().find(|line| line.contains(": warning: "))
        && module.constant_parts
    {
        let (place, _) = warning.split_once(": warning: ").unwrap_or((&clang.shown, ""));
        let place = place.rsplit_once(':').map_or(place, |(place, _)| place).to_owned();
        let what = "const is cast away, and a local structure or array is const";
        return Err(Refusal { place, what: what.into() });
    }
    let syntax = clang.syntax(&preprocessed, &lines)?;
    if let Some((file, line, what)) = syntax.refused {
        return Err(Refusal { place: format!("{file}:{line}"), what });
    }
    for function in &module.functions {
        let shape = syntax.functions.get(&*function.name);
        if function.is_defined() && shape.is_none() {
            let what =
                format!("the function {}, which has another name in the source", function.name);
            return Err(clang.refuse(what));
        }
        module.shapes.push(shape.cloned().unwrap_or_default());
    }
    unions::refuse(&mut module)?;
    scopes::bound(&mut module);
    module.overflow = options.overflow;
    Ok(module)
}

/// Macros as without optimisation: headers are to see -O0.
const OWN_MACROS: [&str; 2] = ["-U__OPTIMIZE__", "-D__NO_INLINE__=1"];

/// As optimisation has them.
const OTHER_MACROS: [&str; 2] = ["-D__OPTIMIZE__=1", "-U__NO_INLINE__"];

/// How clang is called for one file.
struct Clang {
    /// The file, for messages.
    shown: String,
    folder: PrivateFolder,
    options: Options,
}

impl Clang {
    fn refuse(&self, what: String) -> Refusal {
        Refusal { place: self.shown.clone(), what }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(CLANG);
        command.arg("-pthread").env("TMPDIR", self.folder.path());
        command
    }

    fn cannot_run(&self, error: &std::io::Error) -> Refusal {
        self.refuse(format!("cannot run {CLANG}: {error}; scripts/setup.sh installs it"))
    }

    fn run(&self, command: &mut Command) -> Result<Output, Refusal> {
        let output = process::output(command).map_err(|error| self.cannot_run(&error))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| line.contains("error:")).unwrap_or("it fails");
            return Err(self.refuse(format!("{CLANG} rejects the file: {first}")));
        }
        Ok(output)
    }

    fn preprocess(&self, file: &Path, macros: &[&str]) -> Result<String, Refusal> {
        let mut command = self.command();
        command.args(["-x", "c", "-E", "-O1", "-D_GNU_SOURCE"]).args(macros);
        // a program that says when it was compiled is another one each time
        command.args(["-Wno-everything", "-Werror=date-time"]);
        if !self.options.overflow {
            command.arg("-fwrapv");
        }
        command.arg(format!("-D__FILE__=\"{}\"", files::FILE_TEXT));
        let output = self.run(command.arg(file))?;
        String::from_utf8(output.stdout)
            .map_err(|_| self.refuse("the file is not UTF-8 text".into()))
    }

    /// Places tell tokens apart only if no line is numbered twice.
    fn check_lines(&self, lines: &Preprocessed<'_>) -> Result<(), Refusal> {
        match lines.twice {
            Some((file, line)) => {
                let what = "two lines with the same number (#line)";
                Err(Refusal { place: format!("{file}:{line}"), what: what.into() })
            }
            None => Ok(()),
        }
    }

    /// The program is the same one for every compiler and whether it is optimised or not.
    fn check_macros(
        &self,
        file: &Path,
        text: &str,
        lines: &Preprocessed<'_>,
    ) -> Result<(), Refusal> {
        let mut pastes = false;
        let mut command = self.command();
        let output = self.run(command.args(["-x", "c", "-dM", "-E", "/dev/null"]))?;
        let all = String::from_utf8_lossy(&output.stdout).into_owned();
        let defined: HashSet<&str> =
            all.lines().filter_map(|line| line.split([' ', '(']).nth(1)).collect();
        for &own in &lines.own {
            let path = Path::new(own);
            // the main file by the name that we were given
            let path = if own == lines.first { file } else { path };
            let Ok(source) = std::fs::read_to_string(path) else { continue };
            pastes |= source.contains("##");
            if let Some((number, word)) = macros::of_compilers(&source, &defined) {
                return Err(Refusal {
                    place: format!("{}:{number}", path.display()),
                    what: format!("{word}, which differs between compilers"),
                });
            }
        }
        // a name that is put together is not found by looking for it
        if pastes {
            let other = self.preprocess(file, &OTHER_MACROS)?;
            let other = Preprocessed::of(&other);
            if other.own_text() != Preprocessed::of(text).own_text() {
                let what = "macros that compilers define only if they optimise, or only if not";
                return Err(self.refuse(what.into()));
            }
        }
        Ok(())
    }

    fn syntax(&self, file: &Path, lines: &Preprocessed<'_>) -> Result<Syntax, Refusal> {
        let mut command = self.command();
        command.args(["-x", "cpp-output", "-fsyntax-only", "-w", "-Xclang", "-ast-dump"]);
        command.arg("-fno-color-diagnostics").arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process =
            process::Guarded::start(&mut command).map_err(|error| self.cannot_run(&error))?;
        let Some(dump) = process.child().stdout.take() else {
            return Err(self.refuse(format!("{CLANG} prints nothing")));
        };
        let is_own = |name: &str| lines.own.contains(name);
        let syntax = syntax::read(BufReader::new(dump), &is_own).map_err(|why| self.refuse(why))?;
        match process.wait() {
            Ok(status) if status.success() => Ok(syntax),
            _ => Err(self.refuse(format!("{CLANG} cannot show the syntax tree"))),
        }
    }
}

/// A preprocessed file, by lines.
struct Preprocessed<'t> {
    /// The file that was preprocessed.
    first: &'t str,
    /// Files of the program itself, besides the headers of the system.
    own: BTreeSet<&'t str>,
    /// Lines of these, with their files and numbers.
    lines: Vec<(&'t str, u32, &'t str)>,
    /// A line whose number was there before.
    twice: Option<(&'t str, u32)>,
}

impl<'t> Preprocessed<'t> {
    fn of(text: &'t str) -> Self {
        let mut all = Self { first: "", own: BTreeSet::new(), lines: Vec::new(), twice: None };
        let (mut name, mut number, mut is_own) = ("", 0, false);
        // the last line of each file that something stood in
        let mut last: HashMap<&str, u32> = HashMap::new();
        for line in text.lines() {
            // `# 12 "file.c" 1 3`: the next line is line 12 of that file; 3 is a header of the system.
            if let Some((begin, rest)) =
                line.strip_prefix("# ").and_then(|rest| rest.split_once(" \""))
            {
                let (file, flags) = rest.rsplit_once('"').unwrap_or((rest, ""));
                (name, number) = (file, begin.parse().unwrap_or(0));
                is_own = !flags.split(' ').any(|flag| flag == "3") && !file.starts_with('<');
                if all.first.is_empty() {
                    all.first = file;
                }
                if is_own {
                    all.own.insert(file);
                }
                if flags.split(' ').any(|flag| flag == "1") {
                    last.remove(file);
                }
                continue;
            }
            if is_own && !line.trim().is_empty() && !line.starts_with('#') {
                if last.insert(name, number).is_some_and(|last| last >= number) {
                    all.twice.get_or_insert((name, number));
                }
                all.lines.push((name, number, line));
            }
            number += 1;
        }
        all
    }

    fn own_text(&self) -> Vec<&'t str> {
        self.lines.iter().map(|(_, _, line)| *line).collect()
    }

    /// Where one of the words stands.
    fn place_of(&self, words: &[&str]) -> Option<String> {
        let (file, number, _) = self
            .lines
            .iter()
            .find(|(_, _, line)| identifiers(line).any(|word| words.contains(&word)))?;
        Some(format!("{file}:{number}"))
    }
}

/// Is it an instruction that calls a function by a pointer?
fn calls_by_pointer(line: &str) -> bool {
    let Some((_, call)) = line.split_once("call ") else { return false };
    let mut parts = call.split('%').skip(1);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-$".contains(c);
    parts.any(|part| part.trim_start_matches(is_name).starts_with('('))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_program_are_told_from_those_of_headers() {
        let text = "# 1 \"a.c\"\n# 1 \"/usr/x.h\" 1 3\nint h;\n# 2 \"a.c\" 2\nint nonnull;\n\n";
        let lines = Preprocessed::of(text);
        assert_eq!(lines.own_text(), ["int nonnull;"]);
        assert_eq!(lines.place_of(&["nonnull"]).as_deref(), Some("a.c:2"));
        assert_eq!(lines.place_of(&["h"]), None);
        assert_eq!(lines.twice, None);
        let text = "# 1 \"a.c\"\nint a;\nint b;\n# 1 \"a.c\"\nint c;\n";
        assert_eq!(Preprocessed::of(text).twice, Some(("a.c", 1)));
    }

    #[test]
    fn calls_by_pointers_are_told_from_others() {
        assert!(calls_by_pointer("  %2 = call i32 %1(ptr noundef null), !dbg !5"));
        assert!(calls_by_pointer("  call void (ptr, ...) %look(ptr %x)"));
        assert!(!calls_by_pointer("  %3 = call i32 @look(ptr noundef %2), !dbg !5"));
        assert!(!calls_by_pointer("  %3 = load ptr, ptr %2, align 8"));
    }
}
