//! Where things are: clang on the `PATH`, foretell's own files beside its executable (a build
//! tree), in `../lib/foretell` or `../lib` (an installation), or where `FORETELL_LIB_DIR` says.

use crate::BuildError;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The environment variable that names the directory of plugin and runtime.
pub const DIRECTORY_VARIABLE: &str = "FORETELL_LIB_DIR";
/// File name of the plugin.
pub const PLUGIN: &str = "libforetell_instrument.so";
/// File name of the runtime.
pub const RUNTIME: &str = "libforetell_runtime.so";
/// Where Debian's packages put the compilers, under their plain names.
const LLVM_BIN: &str = "/usr/lib/llvm-22/bin";

/// The compiler with this name (`clang-22` or `clang++-22`).
pub fn compiler(name: &'static str) -> Result<PathBuf, BuildError> {
    compiler_in(name, &env::var_os("PATH").unwrap_or_default(), Path::new(LLVM_BIN))
}

fn compiler_in(name: &'static str, path: &OsStr, fallback: &Path) -> Result<PathBuf, BuildError> {
    let plain = name.trim_end_matches("-22");
    env::split_paths(path)
        .filter(|directory| !directory.as_os_str().is_empty())
        .map(|directory| directory.join(name))
        .chain([fallback.join(plain)])
        .find(|candidate| candidate.is_file())
        .ok_or(BuildError::NoCompiler(name))
}

/// Directories where foretell's files may be, best first.
pub fn directories() -> Vec<PathBuf> {
    if let Some(directory) = env::var_os(DIRECTORY_VARIABLE).filter(|d| !d.is_empty()) {
        return vec![PathBuf::from(directory)];
    }
    // An executable may be started by a link.
    let executable = env::current_exe().and_then(|path| path.canonicalize());
    let Some(beside) = executable.ok().and_then(|path| Some(path.parent()?.to_owned())) else {
        return Vec::new();
    };
    let mut directories = vec![beside.clone()];
    if let Some(prefix) = beside.parent() {
        directories.extend([prefix.join("lib/foretell"), prefix.join("lib")]);
    }
    // Cargo leaves libraries there when they are built for the tests of another crate.
    directories.push(beside.join("deps"));
    // And tests are there themselves.
    directories.extend(beside.parent().map(Path::to_owned));
    directories
}

/// The library with this name.
pub fn library(name: &'static str, directories: &[PathBuf]) -> Result<PathBuf, BuildError> {
    directories
        .iter()
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| BuildError::NotInstalled { file: name, searched: directories.to_vec() })
}

/// The directory of `foretell.h`: `include` beside or one up from the libraries, else the source
/// tree from which this executable was built.
pub fn include_directory(directories: &[PathBuf]) -> Option<PathBuf> {
    let installed = directories
        .iter()
        .flat_map(|directory| [directory.join("include"), directory.join("../include")])
        .chain(directories.iter().map(|directory| directory.join("../../include")));
    installed
        .chain([PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))])
        .find(|directory| directory.join("foretell.h").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_compiler_is_named_with_its_package() {
        let nowhere = Path::new("/nonexistent");
        let error = compiler_in("clang++-22", nowhere.as_os_str(), nowhere).expect_err("no clang");
        let text = error.to_string();
        assert!(text.starts_with("clang++-22 not found"), "{text}");
        assert!(text.contains("apt-get install clang-22"), "{text}");
    }

    #[test]
    fn a_missing_library_says_where_it_was_looked_for() {
        let error = library(PLUGIN, &[PathBuf::from("/nonexistent")]).expect_err("no plugin");
        assert_eq!(
            error.to_string(),
            "libforetell_instrument.so not found in /nonexistent: install foretell completely, or \
             set FORETELL_LIB_DIR to its directory"
        );
    }

    #[test]
    fn the_header_is_found_in_the_source_tree() {
        let directory = include_directory(&[]).expect("foretell.h");
        assert!(directory.ends_with("crates/foretell-build/include"), "{}", directory.display());
    }
}
