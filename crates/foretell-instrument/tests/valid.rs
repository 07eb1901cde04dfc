//! Whatever clang accepts, the plugin makes valid IR of: LLVM's verifier looks at every function
//! after the pass (`FORETELL_VERIFY_IR`), and the code generator has to cope with it.
//!
//! `programs/odd` has what is unusual: variable-length arrays, computed jumps, `setjmp`, inline
//! assembly, complex numbers and vectors, integers of odd widths, atomics of every size, tail calls
//! that must be ones, coroutines, exceptions, arguments by value and through memory, functions of the
//! library that are declared otherwise. `scripts/corpus.sh` does the same with Debian's sources.

mod common;

use common::{Mode, Runtime, compiler, plugin, succeed, temporary};
use std::path::{Path, PathBuf};
use std::process::Command;

fn odd(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/odd").join(name)
}

/// Compiles at every level in both modes.
fn is_valid(name: &str, standard: &str) {
    let source = odd(name);
    let mut option = std::ffi::OsString::from("-fpass-plugin=");
    option.push(plugin());
    for mode in ["symbolic", "concrete"] {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            let object = temporary("odd.o");
            succeed(
                compiler(&source)
                    .args([standard, level, "-g", "-w", "-c", "-pthread"])
                    .args(["-fno-vectorize", "-fno-slp-vectorize"])
                    .arg(&option)
                    .arg(&source)
                    .arg("-o")
                    .arg(&object)
                    .env("FORETELL_INSTRUMENT", mode)
                    .env("FORETELL_VERIFY_IR", "1"),
            );
            std::fs::remove_file(object).expect("the object is there");
        }
    }
}

#[test]
fn variables_of_every_size_and_shape() {
    is_valid("memory.c", "-std=gnu2x");
}

#[test]
fn every_way_through_a_function() {
    is_valid("control.c", "-std=gnu17");
}

#[test]
fn a_library_of_the_programs_own() {
    is_valid("strange_library.c", "-std=gnu17");
}

#[test]
fn functions_of_the_library_declared_otherwise() {
    is_valid("declared_otherwise.c", "-std=gnu17");
}

#[test]
fn c_plus_plus() {
    is_valid("features.cc", "-std=c++20");
}

/// Valid is not enough: shadows and values must agree, too.
#[test]
fn variable_length_arrays_keep_their_contents() {
    let code = "#include <stdio.h>\n#include <string.h>\n\
        static void swap(char *b, size_t w) {\n\
          char t[w]; memcpy(t, b, w); memcpy(b, b + w, w); memcpy(b + w, t, w);\n}\n\
        int shared[4] = {1, 2, 3, 4};\n\
        static int sum(int n) {\n\
          int all = 0;\n\
          for (int i = 1; i <= n; i++) { int v[i]; for (int j = 0; j < i; j++) v[j] = shared[j];\n\
            for (int j = 0; j < i; j++) all += v[j]; }\n\
          return all;\n}\n\
        int main(void) {\n\
          char s[] = \"abcdef\"; swap(s, 3); printf(\"%s %d\\n\", s, sum(4)); return 0;\n}\n";
    let source = temporary("arrays.c");
    std::fs::write(&source, code).expect("source");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let program = common::build(&source, &[level], Mode::Symbolic, Runtime::Checking);
        let output = succeed(&mut Command::new(program));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "defabc 20\n", "{level}");
    }
}
