//! Macros that compilers predefine: a program that uses one whose value differs between compilers is a
//! different program for each of them.

use std::collections::HashSet;

/// Defined by compilers in their own way, or only if they optimise; not all of them by clang.
const OWN_WAY: [&str; 16] = [
    "__OPTIMIZE__",
    "__OPTIMIZE_SIZE__",
    "__NO_INLINE__",
    "__has_feature",
    "__has_extension",
    "__has_builtin",
    "__has_attribute",
    "__has_c_attribute",
    "__has_warning",
    "__has_include",
    "__COUNTER__",
    "__INCLUDE_LEVEL__",
    "__BASE_FILE__",
    "__FILE_NAME__",
    "__TIMESTAMP__",
    "__FAST_MATH__",
];

/// How macros begin whose values the target, C17 or our own command line says.
const OF_TARGET: [&str; 36] = [
    "__ATOMIC_",
    "__ORDER_",
    "__SIZEOF_",
    "__INT",
    "__UINT",
    "__CHAR",
    "__SHRT_",
    "__LONG_",
    "__LLONG_",
    "__SCHAR_",
    "__WCHAR_",
    "__WINT_",
    "__SIZE_",
    "__PTRDIFF_",
    "__SIG_ATOMIC_",
    "__BYTE_ORDER__",
    "__BOOL_",
    "__POINTER_",
    "__FLT_",
    "__DBL_",
    "__LDBL_",
    "__DECIMAL_DIG__",
    "__STDC_",
    "__STDC__",
    "__LP64__",
    "_LP64",
    "__LITTLE_ENDIAN__",
    "__x86_64",
    "__amd64",
    "__linux",
    "__unix",
    "__gnu_linux__",
    "linux",
    "unix",
    "__ELF__",
    "_REENTRANT",
];

/// Defined for other languages and systems, and asked for to find that out.
const ELSEWHERE: [&str; 16] = [
    "__cplusplus",
    "__STDC",
    "_WIN32",
    "_WIN64",
    "_MSC_VER",
    "__APPLE__",
    "__MACH__",
    "__FreeBSD__",
    "__NetBSD__",
    "__OpenBSD__",
    "__CYGWIN__",
    "__MINGW",
    "__ANDROID__",
    "__arm",
    "__aarch64__",
    "__i386",
];

/// Line and name of a macro in a source that is not the same for every compiler. `defined` by clang.
pub(super) fn of_compilers<'s>(source: &'s str, defined: &HashSet<&str>) -> Option<(u32, &'s str)> {
    let own: HashSet<&str> = source
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("define"))
        .filter_map(|rest| identifiers(rest).find(|word| !word.is_empty()))
        .collect();
    let is_of_target = |word: &str| OF_TARGET.iter().any(|start| word.starts_with(start));
    let is_elsewhere = |word: &str| ELSEWHERE.iter().any(|start| word.starts_with(start));
    (1..).zip(source.lines()).find_map(|(number, line)| {
        let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
        let asks = directive.is_some_and(|d| d.starts_with("if") || d.starts_with("elif"));
        let asks_only = asks && (line.contains("def ") || line.contains("defined"));
        let is_refused = |word: &&str| {
            // clang and gcc both define it
            if *word == "__GNUC__" {
                return !asks_only;
            }
            let is_reserved = word.starts_with("__")
                || word.strip_prefix('_').is_some_and(|rest| rest.starts_with(char::is_uppercase));
            let is_open = defined.contains(word) || asks && is_reserved && !own.contains(word);
            OWN_WAY.contains(word) || is_open && !is_of_target(word) && !is_elsewhere(word)
        };
        identifiers(line).find(is_refused).map(|word| (number, word))
    })
}

pub(super) fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_compilers_define_in_their_own_way_is_found() {
        let defined = HashSet::from(["__GNUC__", "__clang__", "__PIE__", "__INT_MAX__", "linux"]);
        for refused in [
            "int x = __GNUC__;",
            "#if __GNUC__ > 4",
            "#ifdef __clang__",
            "int x = __PIE__;",
            "# ifdef __SSP_STRONG__",
            "#if defined(__CET__)",
            "#elif _FORTIFY_SOURCE > 1",
            "int x = __COUNTER__;",
        ] {
            assert!(of_compilers(refused, &defined).is_some(), "{refused}");
        }
        for fine in [
            "#ifdef __GNUC__",
            "#if defined(__GNUC__)",
            "int x = __INT_MAX__;",
            "#ifndef __MY_H\n#define __MY_H",
            "#ifdef __cplusplus",
            "#ifdef linux",
            "#ifdef DEBUG",
            "__attribute__((noinline)) int f(void);",
        ] {
            assert_eq!(of_compilers(fine, &defined), None, "{fine}");
        }
    }
}
