//! Signals while a program is recorded.
//!
//! Those that ask us to end go to the program, which decides what they mean. It has a while for that:
//! a program that ignores them, or a second signal, ends the recording all the same.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);

/// How many signals asked us to end while programs run in the foreground.
static REQUESTS: AtomicU32 = AtomicU32::new(0);

/// Whether a program has to be ended because somebody asks for it.
pub struct Requests {
    before: u32,
    first: Option<Instant>,
    /// A captured program is not the one that the signals are meant for.
    captured: bool,
    /// A debugger decides by itself.
    debugged: bool,
}

impl Requests {
    pub fn new(captured: bool, debugged: bool) -> Self {
        let before = REQUESTS.load(Ordering::Relaxed);
        Self { before, first: None, captured, debugged }
    }

    /// Must the program be killed now?
    pub fn must_end(&mut self) -> bool {
        if self.captured {
            return foretell_guard::stop::is_over();
        }
        // A signal that came before ours were installed counts as one.
        let early = u32::from(foretell_guard::stop::asked().is_some());
        let count = REQUESTS.load(Ordering::Relaxed).wrapping_sub(self.before) + early;
        if count == 0 || self.debugged {
            return false;
        }
        let first = *self.first.get_or_insert_with(Instant::now);
        count > 1 || first.elapsed() > GRACE
    }
}

/// The programs that signals to us are meant for; 0 for none. Those beyond get none.
static TARGETS: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

/// How many programs run, and what the signals did before the first.
static BEFORE: Mutex<(usize, Vec<(i32, libc::sigaction)>)> = Mutex::new((0, Vec::new()));

/// A file that may not grow any more is an error of the write, like a full disk, and not our end.
/// Gives what the signal did before, for the program.
pub fn survive_full_files() -> libc::sigaction {
    static OLD: OnceLock<libc::sigaction> = OnceLock::new();
    *OLD.get_or_init(|| {
        // SAFETY: both are plain structures; the signal is only ignored.
        unsafe {
            let mut ignored: libc::sigaction = std::mem::zeroed();
            ignored.sa_sigaction = libc::SIG_IGN;
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGXFSZ, &ignored, &mut old);
            old
        }
    })
}

/// While one of these lives, signals that ask us to end go to the programs: they decide what they
/// mean. (Those from the terminal reach them anyway, so we only stay alive.)
pub struct SignalsPassOn {
    /// 0 until the program is started.
    process: i32,
}

/// Passes a signal on. One that was typed at the terminal reaches the program anyway.
extern "C" fn pass_on(signal: i32, information: *mut libc::siginfo_t, _: *mut libc::c_void) {
    REQUESTS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the kernel passes a valid structure.
    let typed = unsafe { (*information).si_code } == libc::SI_KERNEL;
    if typed {
        return;
    }
    for target in &TARGETS {
        let target = target.load(Ordering::Relaxed);
        if target != 0 {
            // SAFETY: kill may be called in a handler.
            unsafe { libc::kill(target, signal) };
        }
    }
}

impl SignalsPassOn {
    /// Takes the signals; there is no program yet.
    pub fn begin() -> Self {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        before.0 += 1;
        if before.0 == 1 {
            before.1 = install();
        }
        Self { process: 0 }
    }

    /// The program is there.
    pub fn pass_to(&mut self, process: i32) {
        self.process = process;
        for target in &TARGETS {
            if target.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                break;
            }
        }
    }

    /// What the signals did before we took them, for a program that is started meanwhile.
    pub fn before() -> Vec<(i32, libc::sigaction)> {
        BEFORE.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

/// Takes the signals; gives what they did before.
fn install() -> Vec<(i32, libc::sigaction)> {
    let mut before = Vec::new();
    let actions = [
        (libc::SIGINT, pass_on as *const () as usize),
        (libc::SIGQUIT, libc::SIG_IGN),
        (libc::SIGTERM, pass_on as *const () as usize),
        (libc::SIGHUP, pass_on as *const () as usize),
    ];
    for (signal, handler) in actions {
        // SAFETY: the handler only does what handlers may.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler;
            action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut old);
            // What is ignored (by `nohup`, or in the background of a shell) stays ignored.
            let ignored = old.sa_sigaction == libc::SIG_IGN;
            if !ignored && libc::sigaction(signal, &action, std::ptr::null_mut()) == 0 {
                before.push((signal, old));
            }
        }
    }
    before
}

impl Drop for SignalsPassOn {
    fn drop(&mut self) {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        for target in &TARGETS {
            let relaxed = Ordering::Relaxed;
            if target.compare_exchange(self.process, 0, relaxed, relaxed).is_ok() {
                break;
            }
        }
        before.0 -= 1;
        if before.0 == 0 {
            for (signal, action) in before.1.drain(..) {
                // SAFETY: what was there before.
                unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
            }
        }
    }
}
