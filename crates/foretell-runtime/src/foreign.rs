//! Functions that are not instrumented: whose they are, and what they may keep between their calls.
//!
//! What the C library keeps is known (`foretell-instrument`, `library`). Of other compiled code, a library or
//! an object that another compiler made, nothing is known: it may answer by what was called before. So
//! each call of it looks at a state that all such code has in common, and changes it, and where threads
//! call it in an order that nothing else settles, that is said.

mod names;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use foretell_abi::summaries::{NO_SUMMARY, SUMMARIES, number_of};

use crate::turn::TurnCell;
use names::{CPP_KNOWN, HARMLESS, HARMLESS_BEGINNINGS, STATELESS, STREAMS};

/// Who a function belongs to.
#[derive(Clone, Copy)]
enum Owner {
    /// The C library, the loader, or us.
    Known,
    /// The C library, but nobody wrote down what the function does with memory and keeps between its calls.
    Undescribed,
    /// The C library, but nobody wrote down what the function does with memory.
    Stateless,
    /// The C++ library: objects that are handed to it are changed, nothing else.
    Cpp,
    /// A library that keeps nothing but what belongs to the objects that are handed to it.
    Objects,
    /// Somebody else.
    Unknown,
}

/// Beginnings of the files' names.
const KNOWN: &[&str] = &[
    "ld-linux",
    "libc.so",
    "libdl.so",
    "libforetell",
    "libgcc_s",
    "libm.so",
    "libomp",
    "libpthread",
    "libresolv",
    "librt.so",
    "linux-vdso",
];
const CPP: &[&str] = &["libc++", "libstdc++"];
/// Libraries that say so of themselves: each event, buffer and loop of libevent is a state of its own.
const OBJECTS: &[&str] = &["libevent"];
/// Libraries whose functions a program may know by an address in itself, where it was not linked to be
/// loaded anywhere.
const COMMON: &[&CStr] = &[c"libc.so.6", c"libm.so.6"];

static OWNERS: TurnCell<BTreeMap<u64, Owner>> = TurnCell::new(BTreeMap::new());

/// The object that the function may have looked at and changed, 0 for the state of all code that is not
/// seen; `None`: nothing.
pub fn state(function: u64, name: &CStr, object: u64) -> Option<u64> {
    // SAFETY: a session has the turn.
    let owners = unsafe { OWNERS.get() };
    match *owners.entry(function).or_insert_with(|| owner(function, name)) {
        Owner::Known | Owner::Undescribed | Owner::Stateless => None,
        Owner::Cpp => {
            // Names are demangled: one of C++ has its parameters.
            let is_member = name.to_bytes().contains(&b'(');
            (is_member && object != 0 && !is_standard(object)).then_some(object)
        }
        Owner::Objects => (object != 0).then_some(object),
        Owner::Unknown => Some(0),
    }
}

/// Is it unknown what the function reads, writes and keeps? Code that is not the C library's shares one state
/// ([`state`]); what it does besides matters where it is given memory of the program.
pub fn is_unknown(function: u64, name: &CStr, object: u64, given: u32) -> bool {
    // SAFETY: a session has the turn.
    let owners = unsafe { OWNERS.get() };
    match *owners.entry(function).or_insert_with(|| owner(function, name)) {
        Owner::Undescribed => true,
        Owner::Unknown | Owner::Stateless => given > 0,
        // Its own object is a state ([`state`]); one that others may see holds what the program reads by itself.
        Owner::Cpp => {
            let is_shared = object != 0 && !is_standard(object) && !is_on_stack(object);
            let besides = given - u32::from(object != 0).min(given);
            // libc++ has its own in a namespace for its version.
            let name = name.to_string_lossy().replace("std::__1::", "std::");
            let is_stream = STREAMS.iter().any(|begin| name.starts_with(begin));
            let is_known = CPP_KNOWN.iter().any(|begin| name.starts_with(begin));
            is_stream && is_shared
                || !is_stream && !is_known && besides > 0 && !is_output(function, &name, object)
        }
        Owner::Known | Owner::Objects => false,
    }
}

/// Is it what writes to standard output or error in the library: a function without a name, called by its address, of an
/// object that the library has in itself?
fn is_output(function: u64, name: &str, object: u64) -> bool {
    let is_of_library = |file: String| CPP.iter().any(|begin| file.starts_with(begin));
    name.is_empty()
        && object != 0
        && name_of(function, c"").is_empty()
        && file_of(object).is_some_and(is_of_library)
}

/// The function and the file that it is in, with a tabulator between them.
pub fn told(function: u64, name: &CStr) -> String {
    let name = name_of(function, name).to_string_lossy();
    let name = if name.is_empty() { "a function" } else { &*name };
    format!("{name}\t{}", file_of(function).unwrap_or_default())
}

/// Where an output stream of C++ keeps how it formats (precision, width, flags), and how many bytes that has.
///
/// # Safety
/// It must be one.
pub unsafe fn format_of(stream: u64) -> (u64, u64) {
    // SAFETY: the Itanium ABI: the table of virtual functions has the way to the virtual base before it. There
    // `std::ios_base` has a table of its own, and then these.
    unsafe {
        let table = (stream as *const *const i64).read();
        let base = stream.wrapping_add_signed(table.sub(3).read());
        (base + 8, 20)
    }
}

/// Is it on the stack of the thread that asks? (Stacks grow downwards.)
fn is_on_stack(object: u64) -> bool {
    let here = (&raw const object) as u64;
    object > here && object - here < STACK
}

/// So large is a stack by default.
const STACK: u64 = 8 << 20;

/// Is it `std::cout` or one of its kin? What order their lines have is lawful.
pub fn is_standard(stream: u64) -> bool {
    let of_libstdcxx = [c"_ZSt4cout", c"_ZSt4cerr", c"_ZSt4clog"];
    let of_libcxx = [c"_ZNSt3__14coutE", c"_ZNSt3__14cerrE", c"_ZNSt3__14clogE"];
    of_libstdcxx.iter().chain(&of_libcxx).any(|name| {
        // SAFETY: asks the loader.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        found as u64 == stream
    })
}

/// What the loader knows of the address.
fn looked_up(function: u64) -> Option<libc::Dl_info> {
    // SAFETY: zero is valid for it; the loader only looks the address up.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        (libc::dladdr(function as *const libc::c_void, &mut info) != 0).then_some(info)
    }
}

/// The name of the file that the address is in.
fn file_of(function: u64) -> Option<String> {
    let info = looked_up(function).filter(|info| !info.dli_fname.is_null())?;
    // SAFETY: the loader's own string.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy();
    path.rsplit('/').next().map(str::to_owned)
}

/// The name that the caller knows, or, of a function that is called by a pointer, the loader.
fn name_of(function: u64, known: &CStr) -> &CStr {
    if !known.is_empty() {
        return known;
    }
    let is_it =
        |info: &libc::Dl_info| info.dli_saddr as u64 == function && !info.dli_sname.is_null();
    // SAFETY: the loader's own string, of a library that is in use.
    looked_up(function)
        .filter(is_it)
        .map_or(known, |info| unsafe { CStr::from_ptr(info.dli_sname) })
}

/// Addresses of the functions that have a summary, with its position; in order.
static SUMMARISED: OnceLock<Vec<(u64, u32)>> = OnceLock::new();

/// Looks the functions up that have a summary. Before the program begins: what that takes must not be recorded.
pub fn prepare() {
    SUMMARISED.get_or_init(|| {
        let mut addresses: Vec<(u64, u32)> = Vec::with_capacity(SUMMARIES.len());
        for (position, summary) in SUMMARIES.iter().enumerate() {
            let Ok(name) = CString::new(summary.name) else { continue };
            // SAFETY: asks the loader.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            if !found.is_null() {
                addresses.push((found as u64, position as u32));
            }
        }
        addresses.sort_unstable();
        addresses
    });
}

/// The summary of a function that is called by its address.
pub fn summary_of(function: u64) -> u32 {
    let addresses = SUMMARISED.get().map_or(&[][..], Vec::as_slice);
    let at = addresses.partition_point(|&(address, _)| address < function);
    addresses
        .get(at)
        .filter(|(address, _)| *address == function)
        .map_or(NO_SUMMARY, |found| found.1)
}

fn owner(function: u64, name: &CStr) -> Owner {
    let is_by_pointer = name.is_empty();
    let name = name_of(function, name);
    if is_by_pointer && summary_of(function) != NO_SUMMARY {
        return Owner::Known;
    }
    let Some(file) = file_of(function) else { return Owner::Unknown };
    let is_one = |names: &[&str]| names.iter().any(|begin| file.starts_with(begin));
    let is_libc = is_one(&["libc.so"]);
    if is_one(KNOWN) && !is_libc {
        return Owner::Known;
    }
    if is_libc || is_elsewhere(name) {
        return match name.to_str() {
            Ok(name) if is_described(name) => Owner::Known,
            Ok(name) if STATELESS.contains(&name) => Owner::Stateless,
            _ => Owner::Undescribed,
        };
    }
    match () {
        () if is_one(CPP) => Owner::Cpp,
        () if is_one(OBJECTS) => Owner::Objects,
        () => Owner::Unknown,
    }
}

/// Is it known what the C library's function does with memory that it is given: by the table in `foretell-abi`, or
/// because it concerns nobody else?
fn is_described(name: &str) -> bool {
    // The C library's own name of the same function: where a call goes by pointer, the loader may give that one.
    let public = name.strip_prefix("__").unwrap_or(name);
    number_of(name).is_some()
        || HARMLESS.contains(&name)
        || HARMLESS.contains(&public)
        || HARMLESS_BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// Does a library that everybody uses have a function of this name?
fn is_elsewhere(name: &CStr) -> bool {
    COMMON.iter().any(|library| {
        // SAFETY: asks the loader for what is loaded already.
        unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            !handle.is_null() && !libc::dlsym(handle, name.as_ptr()).is_null()
        }
    })
}
