//! Rust: `rustc` with foretell's plugin and runtime.
//!
//! `rustc` loads plugins of LLVM by an option that only its nightly versions take, unless they are told
//! otherwise; the option itself has not changed. The plugin must be for the LLVM that `rustc` was built
//! with.

use crate::{BuildError, locate, prefixed};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// The LLVM that the plugin is for.
const LLVM: &str = "22";

/// The variable that lets a stable compiler take options of a nightly one, and its value.
pub const BOOTSTRAP: (&str, &str) = ("RUSTC_BOOTSTRAP", "1");

/// The compiler: `$RUSTC`, or `rustc` on the `PATH`.
pub fn compiler() -> PathBuf {
    std::env::var_os("RUSTC").filter(|name| !name.is_empty()).unwrap_or("rustc".into()).into()
}

/// What a compiler says about itself with `-vV`: the platform that it compiles for, if its LLVM is the
/// plugin's.
pub fn host(version: &str) -> Result<String, BuildError> {
    let line = |name: &str| {
        let mut lines = version.lines().filter_map(|line| line.strip_prefix(name));
        lines.next().map(|value| value.trim().to_owned())
    };
    let release = line("release:").unwrap_or_else(|| "of unknown version".into());
    let llvm = line("LLVM version:").unwrap_or_else(|| "unknown".into());
    if llvm.split('.').next() != Some(LLVM) {
        return Err(BuildError::RustLlvm { release, llvm });
    }
    line("host:").ok_or(BuildError::RustLlvm { release, llvm })
}

/// What the compiler must be given so that a program can be recorded.
pub fn flags() -> Result<Vec<OsString>, BuildError> {
    let directories = locate::directories();
    let plugin = locate::library(locate::PLUGIN, &directories)?;
    let runtime = locate::library(locate::RUNTIME, &directories)?;
    let mut flags = vec![prefixed("-Zllvm-plugins=", plugin.as_os_str())];
    if let Some(directory) = runtime.parent() {
        flags.push(prefixed("-Lnative=", directory.as_os_str()));
        flags.push(prefixed("-Clink-arg=-Wl,-rpath,", directory.as_os_str()));
    }
    // What is generic is compiled with the program, also where the libraries have it compiled: that would not be
    // seen. Debug information says in which function of the standard library an atomic access was written,
    // which is how locks are recognised. Vectors have no shadows.
    let others = [
        "-ldylib=foretell_runtime",
        "-Cdebuginfo=2",
        "-Ccodegen-units=1",
        "--cfg=foretell",
        "-Zshare-generics=no",
    ];
    flags.extend(others.map(OsString::from));
    flags.extend(["-Cno-vectorize-loops", "-Cno-vectorize-slp"].map(OsString::from));
    Ok(flags)
}

/// The command that compiles one file to a program.
pub fn command(source: &std::path::Path, binary: &std::path::Path) -> Result<Command, BuildError> {
    let mut command = Command::new(compiler());
    command.env(BOOTSTRAP.0, BOOTSTRAP.1).args(flags()?);
    // As cargo does for tests, with the optimisation that makes traces short.
    command.args(["--edition=2024", "-Copt-level=1", "-Cdebug-assertions=on"]);
    command.arg("-o").arg(binary).arg(source);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_must_have_the_plugins_llvm() {
        let version =
            "rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\nLLVM version: 22.1.2\n";
        assert_eq!(host(version).expect("fits"), "x86_64-unknown-linux-gnu");
        let error = host(&version.replace("22.1.2", "19.1.7")).expect_err("does not fit");
        let text = error.to_string();
        assert!(text.contains("rustc 1.95.0") && text.contains("19.1.7"), "{text}");
    }
}
