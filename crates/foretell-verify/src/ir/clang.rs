//! From a C file to its IR.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use foretell_guard::{PrivateFolder, process};

use super::{Module, Refusal, read};

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
    let shown = file.display().to_string();
    let refuse = |what: String| Refusal { place: shown.clone(), what };
    let mut command = Command::new(CLANG);
    command.args(["-x", "c", "-S", "-emit-llvm", "-g", "-D_GNU_SOURCE", "-pthread"]);
    // what clang writes before any optimisation, with the lifetimes of variables, which it leaves out
    // at -O0, and with the types by which memory is accessed; headers are to see -O0
    command.args(["-O1", "-Xclang", "-disable-llvm-passes"]);
    command.args(["-U__OPTIMIZE__", "-D__NO_INLINE__=1"]);
    // what C leaves undefined between two sequence points has no meaning that could be looked at
    command.args(["-Wno-everything", "-Werror=unsequenced", "-fno-discard-value-names"]);
    // whoever writes to a constant has cast it away; it matters only where no write is seen
    command.args(["-Wcast-qual", "-Wincompatible-pointer-types-discards-qualifiers"]);
    // a program that says when it was compiled is another one each time
    command.arg("-Werror=date-time");
    if !options.overflow {
        command.arg("-fwrapv");
    }
    // `__FILE__` without its folder: the same program wherever it lies
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut map = OsString::from("-fmacro-prefix-map=");
        map.push(folder);
        map.push("/=");
        command.arg(map);
    }
    command.args(["-o", "-"]).arg(file);
    // What the compiler leaves when it is ended goes with the folder.
    let folder = PrivateFolder::new().map_err(|error| refuse(error.to_string()))?;
    command.env("TMPDIR", folder.path());
    let output = process::output(&mut command).map_err(|error| {
        refuse(format!("cannot run {CLANG}: {error}; scripts/setup.sh installs it"))
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| line.contains("error:")).unwrap_or("it fails");
        return Err(refuse(format!("{CLANG} refuses the file: {first}")));
    }
    let text = String::from_utf8(output.stdout)
        .map_err(|_| refuse(format!("what {CLANG} writes is no text")))?;
    if text.lines().any(calls_by_pointer)
        && let Some(place) = promise(file, &shown)?
    {
        let what = "nonnull, in a program that calls functions by pointers: what the type of such a pointer \
                    promises is not in the IR";
        return Err(Refusal { place, what: what.into() });
    }
    let module = read(&shown, &text)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if let Some(warning) = said.lines().find(|line| line.contains(": warning: "))
        && module.constant_parts
    {
        let (place, _) = warning.split_once(": warning: ").unwrap_or((&shown, ""));
        let place = place.rsplit_once(':').map_or(place, |(place, _)| place).to_owned();
        let what = "const is cast away, and a local structure or array is const";
        return Err(Refusal { place, what: what.into() });
    }
    Ok(Module { overflow: options.overflow, ..module })
}

/// Is it an instruction that calls a function by a pointer?
fn calls_by_pointer(line: &str) -> bool {
    let Some((_, call)) = line.split_once("call ") else { return false };
    let mut parts = call.split('%').skip(1);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-$".contains(c);
    parts.any(|part| part.trim_start_matches(is_name).starts_with('('))
}

/// Where the program itself, besides the headers of the system, says `nonnull`.
fn promise(file: &Path, shown: &str) -> Result<Option<String>, Refusal> {
    let mut command = Command::new(CLANG);
    command.args(["-x", "c", "-E", "-w", "-D_GNU_SOURCE", "-pthread"]).arg(file);
    let refuse = |what: String| Refusal { place: shown.into(), what };
    let output = process::output(&mut command).map_err(|error| refuse(error.to_string()))?;
    if !output.status.success() {
        return Err(refuse(format!("{CLANG} cannot preprocess the file")));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let (mut name, mut number, mut is_own) = (shown.to_owned(), 0, true);
    for line in text.lines() {
        // `# 12 "file.c" 1 3`: the next line is line 12 of that file; 3 is a header of the system.
        if let Some((begin, rest)) = line.strip_prefix("# ").and_then(|rest| rest.split_once(" \""))
        {
            let (file, flags) = rest.rsplit_once('"').unwrap_or((rest, ""));
            (name, number) = (file.to_owned(), begin.parse().unwrap_or(0));
            is_own = !flags.split(' ').any(|flag| flag == "3");
            continue;
        }
        let is_word = |word: &str| matches!(word, "nonnull" | "__nonnull__");
        if is_own && line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(is_word) {
            return Ok(Some(format!("{name}:{number}")));
        }
        number += 1;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_by_pointers_are_told_from_others() {
        assert!(calls_by_pointer("  %2 = call i32 %1(ptr noundef null), !dbg !5"));
        assert!(calls_by_pointer("  call void (ptr, ...) %look(ptr %x)"));
        assert!(!calls_by_pointer("  %3 = call i32 @look(ptr noundef %2), !dbg !5"));
        assert!(!calls_by_pointer("  %3 = load ptr, ptr %2, align 8"));
    }
}
