//! Builds the C++ shim against the headers of LLVM 22.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=shim.cc");
    println!("cargo::rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    let prefix = env::var_os("LLVM_SYS_221_PREFIX").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    let include = PathBuf::from(prefix).join("include");
    if !include.join("llvm/Plugins/PassPlugin.h").is_file() {
        println!(
            "cargo::error=no LLVM 22 headers in {}: install llvm-22-dev, or set LLVM_SYS_221_PREFIX",
            include.display()
        );
        return;
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .flag("-isystem")
        .flag(include)
        .file("shim.cc")
        .compile("foretell_shim");
}
