//! `foretell c++` under a name of one word, for build systems that want a path (CMake, Meson).

use std::process::ExitCode;

fn main() -> ExitCode {
    foretell_build::compile(foretell_build::Language::Cxx, std::env::args_os().skip(1))
}
