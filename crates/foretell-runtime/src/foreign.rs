//! Functions that are not instrumented: whose they are, and what they may keep between their calls.
//!
//! What the C library keeps is known (`foretell-instrument`, `library`). Of other compiled code, a library or
//! an object that another compiler made, nothing is known: it may answer by what was called before. So
//! each call of it looks at a state that all such code has in common, and changes it, and where threads
//! call it in an order that nothing else settles, that is said.

use std::collections::BTreeMap;
use std::ffi::CStr;

use foretell_abi::summaries::number_of;

use crate::turn::TurnCell;

/// Who a function belongs to.
#[derive(Clone, Copy)]
enum Owner {
    /// The C library, the loader, or us.
    Known,
    /// The C library, but nobody wrote down what the function does with memory.
    Undescribed,
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
        Owner::Known | Owner::Undescribed => None,
        Owner::Cpp => {
            // Names are demangled: one of C++ has its parameters.
            let is_member = name.to_bytes().contains(&b'(');
            (is_member && object != 0 && !is_standard(object)).then_some(object)
        }
        Owner::Objects => (object != 0).then_some(object),
        Owner::Unknown => Some(0),
    }
}

/// Is nothing known about what the function reads and writes?
pub fn is_unknown(function: u64, name: &CStr) -> bool {
    // SAFETY: a session has the turn.
    let owners = unsafe { OWNERS.get() };
    let owner = *owners.entry(function).or_insert_with(|| owner(function, name));
    matches!(owner, Owner::Unknown | Owner::Undescribed)
}

/// The function and the file that it is in, with a tabulator between them.
pub fn told(function: u64, name: &CStr) -> String {
    let name = name.to_string_lossy();
    let name = if name.is_empty() { "a function" } else { &*name };
    format!("{name}\t{}", file_of(function).unwrap_or_default())
}

/// Is it `std::cout` or one of its kin? What order their lines have is lawful.
fn is_standard(stream: u64) -> bool {
    [c"_ZSt4cout", c"_ZSt4cerr", c"_ZSt4clog"].iter().any(|name| {
        // SAFETY: asks the loader.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        found as u64 == stream
    })
}

/// The name of the file that the address is in.
fn file_of(function: u64) -> Option<String> {
    // SAFETY: zero is valid for it; the loader only looks the address up.
    let (found, info) = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        (libc::dladdr(function as *const libc::c_void, &mut info) != 0, info)
    };
    if !found || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's own string.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy();
    path.rsplit('/').next().map(str::to_owned)
}

fn owner(function: u64, name: &CStr) -> Owner {
    let Some(file) = file_of(function) else { return Owner::Unknown };
    let is_one = |names: &[&str]| names.iter().any(|begin| file.starts_with(begin));
    let is_libc = is_one(&["libc.so"]);
    if is_one(KNOWN) && !is_libc {
        return Owner::Known;
    }
    if is_libc || is_elsewhere(name) {
        return match name.to_str().is_ok_and(is_described) {
            true => Owner::Known,
            false => Owner::Undescribed,
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
    number_of(name).is_some()
        || HARMLESS.contains(&name)
        || HARMLESS_BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// Functions of the C library that leave the program's own data alone: what they are given is opaque, is called
/// back, or says how they are to do their work. (Not here: those that the runtime replaces, or that the compiler
/// pass knows by name.)
const HARMLESS: &[&str] = &[
    "__cxa_atexit",
    "__cxa_thread_atexit_impl",
    "__sigsetjmp",
    "_setjmp",
    "at_quick_exit",
    "atexit",
    "bsearch",
    "clock_getres",
    "closedir",
    "clearerr",
    "dlclose",
    "dlsym",
    "fclose",
    "feof",
    "ferror",
    "fileno",
    "flockfile",
    "freeaddrinfo",
    "funlockfile",
    "getrlimit",
    "getrusage",
    "lfind",
    "longjmp",
    "on_exit",
    "pclose",
    "sched_setaffinity",
    "setbuf",
    "setitimer",
    "setjmp",
    "setrlimit",
    "setsockopt",
    "setvbuf",
    "sysinfo",
    "times",
    "twalk",
    "uname",
];

const HARMLESS_BEGINNINGS: &[&str] = &["posix_spawn", "pthread_", "sched_", "sem_", "sig"];

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
