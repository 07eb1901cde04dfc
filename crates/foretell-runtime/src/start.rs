//! The begin and the end: reads the recorder's wishes, starts what they ask for.

use foretell_wire::{RING_BYTES, environment, parse_turns};
use libc::{c_char, c_int};

use crate::clients;
use crate::fiber;
use crate::forced::Forced;
use crate::foreign;
use crate::hooks;
use crate::modules;
use crate::path;
use crate::policy;
use crate::processor;
use crate::recorder::recorder;
use crate::replay;
use crate::scheduler::{self, say};
use crate::server;
use crate::sync_only;
use crate::sys;
use crate::wrappers::{process, random, threads};

/// Runs before the program's own constructors. (The TSan ABI's `__tsan_init` runs earlier still,
/// when there is no environment yet.)
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = constructor;

/// Runs after the program's own destructors.
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

extern "C" fn destructor() {
    process::ending();
}

extern "C" fn constructor(
    _count: c_int,
    _arguments: *const *const c_char,
    _environment: *const *const c_char,
) {
    let Some(mode) = take(environment::MODE) else { return };
    let executable = take(environment::EXECUTABLE);
    let ring = take(environment::RING);
    let base = take(environment::POLICY);
    let serving = take(environment::SERVER);
    let processor = take(environment::PROCESSOR);
    let points = take(environment::POINTS);
    let path = take(environment::PATH);
    let switching = take(environment::SWITCH);
    let log = take(environment::LOG);
    let concrete = take(environment::CONCRETE);
    let replayed = take(environment::REPLAY);
    let watched = take(environment::WATCH_CLIENTS);
    let played = take(environment::CLIENTS);
    restore_preload();
    remove_filling();
    if executable.is_some_and(|wanted| !is_running(&wanted)) {
        return;
    }
    let result = match mode.as_str() {
        "record" => {
            foreign::prepare();
            let mut wishes = Wishes {
                ring: ring.and_then(|number| number.parse().ok()),
                policy: base.unwrap_or_else(|| "os".into()),
                points: points.and_then(|points| points.parse().ok()),
                path: path.is_some(),
            };
            if let Some(number) = processor.and_then(|number| number.parse().ok()) {
                processor::keep_to(number);
            }
            if let Some(socket) = serving.and_then(|number| number.parse().ok()) {
                wishes = server::serve(socket);
            }
            if let Some(limit) = wishes.points {
                scheduler::limit_points(limit);
            }
            if wishes.path {
                path::turn_on();
            }
            if switching.as_deref() == Some("fiber") {
                fiber::turn_on();
            }
            if concrete.is_some() {
                hooks::leave_expressions_out();
            }
            record(&wishes, replayed).and_then(|()| match (&played, &watched) {
                (Some(path), _) => clients::play(path),
                (None, Some(path)) => clients::watch(path),
                (None, None) => Ok(()),
            })
        }
        "sync-only" => sync_only::start(log),
        _ => Err("unknown mode".into()),
    };
    if let Err(reason) = result {
        say(&format!("not recording: {reason}"));
        if reason == OTHER_RECORDER {
            sys::exit(foretell_wire::STOPPED_STATUS); // the recorder says the same
        }
    }
}

/// Why a library does not serve a recorder that may understand something else.
pub const OTHER_RECORDER: &str = "the recorder and this runtime library are of different builds";

/// What this library understands; the recorder looks before it starts a program.
#[unsafe(no_mangle)]
#[used]
static foretell_contract: u64 = foretell_wire::CONTRACT;

/// What the recorder wants of one run.
pub struct Wishes {
    /// The file of the ring.
    pub ring: Option<c_int>,
    /// The base schedule.
    pub policy: String,
    /// The most scheduling points.
    pub points: Option<u64>,
    /// Branches are recorded.
    pub path: bool,
}

fn record(wishes: &Wishes, replayed: Option<String>) -> Result<(), String> {
    if let Some(path) = replayed {
        let content = sys::read_file(format!("{path}\0").as_bytes());
        replay::load(&content.ok_or("cannot read the log")?)?;
    }
    let ring = wishes.ring.ok_or("the recorder's memory is not named")?;
    let mut policy = policy::parse(&wishes.policy).ok_or("unknown policy")?;
    if sys::file_size(ring) > RING_BYTES as u64 {
        let text = sys::read_from(ring, RING_BYTES as u64)
            .and_then(|content| String::from_utf8(content).ok())
            .ok_or("cannot read the turns")?;
        let turns = parse_turns(&text).map_err(|line| format!("line {line} is not a turn"))?;
        policy = Box::new(Forced::new(turns, policy));
        // SAFETY: there is no other thread yet.
        unsafe { recorder() }.set_checked(true);
    }
    // SAFETY: as above.
    let attached = unsafe { recorder() }.attach(ring);
    sys::close(ring);
    attached?;
    // SAFETY: as above.
    unsafe { modules::announce() };
    process::initialise();
    random::initialise();
    scheduler::start(policy);
    threads::initialise();
    Ok(())
}

/// A variable of the environment, which the program shall not see.
fn take(name: &str) -> Option<String> {
    let name = format!("{name}\0");
    // SAFETY: the name ends in NUL; no other thread is there to change the environment.
    unsafe {
        let value = libc::getenv(name.as_ptr().cast());
        if value.is_null() {
            return None;
        }
        let value = std::ffi::CStr::from_ptr(value).to_str().ok().map(str::to_owned);
        libc::unsetenv(name.as_ptr().cast());
        value
    }
}

/// Removes the variables that only keep the environment's size.
fn remove_filling() {
    unsafe extern "C" {
        static mut environ: *mut *const c_char;
    }
    // SAFETY: the list ends in null and its strings in NUL; there is no other thread yet.
    unsafe {
        let mut from = environ;
        let mut to = from;
        while !from.is_null() && !(*from).is_null() {
            let variable = std::ffi::CStr::from_ptr(*from).to_bytes();
            if !variable.starts_with(environment::FILLING.as_bytes()) {
                *to = *from;
                to = to.add(1);
            }
            from = from.add(1);
        }
        if !to.is_null() {
            *to = std::ptr::null();
        }
    }
}

/// Puts the user's own `LD_PRELOAD` back.
fn restore_preload() {
    let preload = take(environment::PRELOAD);
    // SAFETY: as above.
    unsafe {
        match preload {
            Some(value) if !value.is_empty() => {
                let value = format!("{value}\0");
                libc::setenv(c"LD_PRELOAD".as_ptr(), value.as_ptr().cast(), 1);
            }
            _ => {
                libc::unsetenv(c"LD_PRELOAD".as_ptr());
            }
        }
    }
}

/// Whether this process runs the executable.
fn is_running(wanted: &str) -> bool {
    let mut buffer = [0u8; 4096];
    let at = libc::AT_FDCWD as u64;
    let path = c"/proc/self/exe".as_ptr() as u64;
    // SAFETY: the buffer is ours.
    let length = unsafe {
        sys::call(
            libc::SYS_readlinkat,
            [at, path, buffer.as_mut_ptr() as u64, buffer.len() as u64, 0, 0],
        )
    };
    length > 0 && &buffer[..length as usize] == wanted.as_bytes()
}
