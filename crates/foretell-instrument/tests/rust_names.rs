//! Names of Rust's functions.

#[path = "../src/rust_names.rs"]
mod rust_names;

use rust_names::{is_mangled, plain_path, shortened};

#[test]
fn paths_are_without_types_and_hashes() {
    for (demangled, path) in [
        (
            "<std::sys::sync::mutex::futex::Mutex>::lock",
            "std::sys::sync::mutex::futex::Mutex::lock",
        ),
        ("core::panicking::assert_failed::<i32, i32>", "core::panicking::assert_failed"),
        ("std::sys::Mutex::lock::h0123456789abcdef", "std::sys::Mutex::lock"),
        ("<a::B<fn(u8) -> C> as d::E<F>>::g::<H>", "a::B::g"),
    ] {
        assert_eq!(plain_path(demangled), path);
    }
}

#[test]
fn closures_are_named_by_their_function() {
    let spawned = "<std::thread::lifecycle::spawn_unchecked<bank::main::{closure#0}::{closure#0}, \
                   ()>::{closure#1} as core::ops::function::FnOnce<()>>::call_once::{shim:vtable#0}";
    assert_eq!(shortened(spawned).as_deref(), Some("closure in bank::main"));
    let function = "<std::thread::lifecycle::spawn_unchecked<fn(), ()>::{closure#1}>::call";
    assert_eq!(shortened(function).as_deref(), Some("fn()"));
    assert_eq!(shortened("bank::deposit"), None);
}

#[test]
fn names_of_cpp_are_not_names_of_rust() {
    assert!(is_mangled("_ZN4core9panicking5panic17h0123456789abcdefE"));
    assert!(is_mangled("_RNvCs1234_4bank7deposit"));
    assert!(!is_mangled("_ZN4core9panicking5panicE"));
}
