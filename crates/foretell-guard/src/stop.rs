//! What happens on SIGINT, SIGTERM and SIGHUP.
//!
//! Without more, a signal ends the process as it always does, after everything temporary is removed
//! and the processes that we started are killed. After [`come_to_a_close_first`] the first signal only
//! asks for an end: long work looks at [`is_over`] now and then and comes to a close with what it has.
//! It has [`GRACE`] for that, and a second signal takes the rest of it away.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::cleanup;

/// How long work may take to come to a close.
pub const GRACE: Duration = Duration::from_secs(20);

const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The signal that asked for an end; 0 while none did.
static ASKED: AtomicI32 = AtomicI32::new(0);
static GRACEFUL: AtomicBool = AtomicBool::new(false);
/// The writing end of the pipe from the handler to the thread that cleans up.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// The signal that asked for an end.
pub fn asked() -> Option<i32> {
    match ASKED.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// When everything has to come to a close, besides signals.
static DEADLINE: OnceLock<Instant> = OnceLock::new();

/// Sets the moment after which [`is_over`]; the first one counts.
pub fn set_deadline(deadline: Instant) {
    let _ = DEADLINE.set(deadline);
}

/// Must long work come to a close: because a signal asked for it, or because the time is over?
pub fn is_over() -> bool {
    asked().is_some() || DEADLINE.get().is_some_and(|deadline| Instant::now() >= *deadline)
}

/// How long work may go on, if there is a limit; nothing once a signal has asked for an end.
pub fn time_left() -> Option<Duration> {
    match asked() {
        Some(_) => Some(Duration::ZERO),
        None => DEADLINE.get().map(|deadline| deadline.saturating_duration_since(Instant::now())),
    }
}

/// Why work came to a close before it was done, for people.
pub fn why() -> Option<String> {
    match asked() {
        Some(signal) => Some(format!("signal {signal} asked foretell to end")),
        None => is_over().then(|| "the time limit was reached".into()),
    }
}

/// From now on, until the process ends by itself, the first signal does not end it; see the module's
/// text.
pub fn come_to_a_close_first() {
    GRACEFUL.store(true, Ordering::Relaxed);
}

extern "C" fn handler(signal: i32) {
    let number = signal as u8;
    // SAFETY: write may be called in a handler; errno is put back. A full pipe has signals enough.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(PIPE.load(Ordering::Relaxed), (&raw const number).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

extern "C" fn nothing(_: i32) {}

/// Takes the signals over, once for the whole process. What is ignored (by `nohup`, or in the
/// background of a shell) stays ignored.
pub fn take_over() -> std::io::Result<()> {
    static READER: OnceLock<()> = OnceLock::new();
    let mut ends = [0; 2];
    // SAFETY: the array takes both ends.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let [reader, writer] = ends;
    if READER.set(()).is_err() {
        return Ok(());
    }
    // A file that may not grow any more is an error of the write, like a full disk, and not our end. A
    // handler, unlike a signal that is ignored, is not inherited by what we start.
    // SAFETY: a plain structure, and a handler that does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &action, std::ptr::null_mut());
    }
    PIPE.store(writer, Ordering::Relaxed);
    std::thread::Builder::new().name("signals".into()).spawn(move || watch(reader))?;
    for signal in SIGNALS {
        // SAFETY: both are plain structures, and the handler only does what handlers may.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut old);
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    Ok(())
}

/// Waits for signals in a thread of its own, where everything may be called.
fn watch(reader: i32) {
    let Some(first) = next(reader, None) else { return };
    ASKED.store(first, Ordering::Relaxed);
    if GRACEFUL.load(Ordering::Relaxed) {
        next(reader, Some(GRACE));
    }
    end(first);
}

/// The next signal, if one comes in time.
fn next(reader: i32, limit: Option<Duration>) -> Option<i32> {
    let milliseconds = limit.map_or(-1, |limit| i32::try_from(limit.as_millis()).unwrap_or(-1));
    loop {
        let mut file = libc::pollfd { fd: reader, events: libc::POLLIN, revents: 0 };
        let mut number = 0u8;
        // SAFETY: one entry, and one byte to write to.
        unsafe {
            match libc::poll(&mut file, 1, milliseconds) {
                0 => return None,
                ready if ready < 0 => continue,
                _ => {}
            }
            match libc::read(reader, (&raw mut number).cast(), 1) {
                1 => return Some(number.into()),
                _ => return None,
            }
        }
    }
}

/// Ends the process by the signal, after cleaning up.
pub fn end(signal: i32) -> ! {
    cleanup::everything();
    // SAFETY: plain system calls; the default action of these signals is to end the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
        libc::sleep(5);
        libc::_exit(128 + signal)
    }
}
