//! Gives the library a name of its own, so that the loader takes the preloaded one for the one that
//! a program was linked with, wherever that lies.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libforetell_runtime.so");
    println!("cargo::rerun-if-changed=build.rs");
}
