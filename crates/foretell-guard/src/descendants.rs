//! The processes that a program under test leaves behind.
//!
//! Killing a program's process group misses what has left the group: a child that called `setsid`, a
//! daemon that forked twice. So foretell becomes the process that adopts orphans among its descendants
//! ([`adopt`]); every descendant is then our child, or a child of one that is still there, and killing
//! children until none is left ends all of them.
//!
//! Several programs may run at once, and an orphan does not say whose it is. So every program gets a
//! [`Mark`] that its descendants inherit. One that has removed the mark is ended when no other program
//! is running, at the latest when foretell itself ends.
//!
//! *Can be missed*: what a program left behind when foretell itself is killed by SIGKILL.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cleanup::{self, Registry};

/// Orphans come to us.
static ADOPTS: AtomicBool = AtomicBool::new(false);
/// What the program left behind is its user's.
static LEFT_ALONE: AtomicBool = AtomicBool::new(false);

/// A killed process ends within this time, unless the kernel holds it.
const LONGEST_END: Duration = Duration::from_secs(2);
/// All our children are looked at for adopted ones that have ended at most so often.
const NOW_AND_THEN: Duration = Duration::from_millis(20);

/// Says which program a process descends from.
///
/// It is a resource limit, because limits pass through `fork` and `execve` and can be read from outside,
/// and an environment variable would be gone after the first `execve` with another environment. The
/// limit is the one on CPU time of threads with real-time scheduling, in microseconds; the values used
/// are longer than a hundred thousand years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    const FIRST: u64 = 1 << 62;

    /// A mark that no other program has.
    #[allow(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(Self::FIRST + u64::from(NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// As a number, for a process that puts it on itself: the soft limit on RLIMIT_RTTIME. (A process
    /// without a mark has none and stays so.)
    pub fn value(self) -> u64 {
        self.0
    }

    /// Puts it on the calling process, between `fork` and `execve`. Where a lower limit is in force the
    /// process stays without a mark.
    pub fn put_on(self) {
        // SAFETY: system calls on structures that live here; they may be called after `fork`.
        unsafe {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            if libc::getrlimit(libc::RLIMIT_RTTIME, &mut limit) == 0
                && limit.rlim_cur == libc::RLIM_INFINITY
            {
                limit.rlim_cur = self.0;
                libc::setrlimit(libc::RLIMIT_RTTIME, &limit);
            }
        }
    }

    /// Puts it on what is started meanwhile. Nothing else of ours is started in that time: the caller has
    /// the registry.
    pub(crate) fn around<T>(self, start: impl FnOnce() -> T) -> T {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure lives here.
        let known = unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &mut before) } == 0;
        self.put_on();
        let started = start();
        if known {
            // SAFETY: as above.
            unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &before) };
        }
        started
    }

    fn is_on(self, process: i32) -> bool {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure lives here, and nothing is changed.
        let read =
            unsafe { libc::prlimit(process, libc::RLIMIT_RTTIME, std::ptr::null(), &mut limit) };
        read == 0 && limit.rlim_cur == self.0
    }
}

/// From now on orphans among our descendants become our children. For the whole process, at its start.
pub fn adopt() -> std::io::Result<()> {
    // SAFETY: a plain system call.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } {
        0 => {
            ADOPTS.store(true, Ordering::Relaxed);
            Ok(())
        }
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// What is left behind stays when foretell ends: a program that is only recorded may start a daemon,
/// as it would without us.
pub fn leave_alone() {
    LEFT_ALONE.store(true, Ordering::Relaxed);
}

/// Takes note of adopted processes that have ended, so that whoever waits for them to disappear sees
/// it. To be called now and then while a program runs.
pub fn reap() {
    if !ADOPTS.load(Ordering::Relaxed) {
        return;
    }
    while let Some(process) = ended_child() {
        let registry = cleanup::registry();
        if registry.children().iter().any(|own| own.process == process) {
            // There may be others behind it, which the kernel does not tell before somebody has waited for
            // this one. That is soon, unless that somebody waits for one of the others.
            static LAST: Mutex<Option<Instant>> = Mutex::new(None);
            let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            if !registry.is_incomplete() && last.is_none_or(|last| last.elapsed() > NOW_AND_THEN) {
                adopted(&registry).into_iter().for_each(reap_one);
                *last = Some(Instant::now());
            }
            return;
        }
        if registry.is_incomplete() {
            return;
        }
        reap_one(process);
    }
}

/// A child that has ended and was not waited for.
fn ended_child() -> Option<i32> {
    // SAFETY: the structure is only written to.
    unsafe {
        let mut information: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let asked = libc::waitid(libc::P_ALL, 0, &mut information, flags);
        Some(information.si_pid()).filter(|&process| asked == 0 && process != 0)
    }
}

/// Ends what a program left behind that has ended itself: every orphan with its mark, and every orphan
/// at all if no other process of ours is running.
pub fn end_those_of(mark: Mark) {
    if !ADOPTS.load(Ordering::Relaxed) {
        return;
    }
    let begin = Instant::now();
    loop {
        let registry = cleanup::registry();
        let mut adopted = adopted(&registry);
        if registry.is_incomplete() || !registry.children().iter().all(|child| child.serves) {
            adopted.retain(|&process| mark.is_on(process));
        }
        let left: Vec<i32> = adopted.iter().copied().filter(|&process| !is_over(process)).collect();
        for &process in &left {
            kill(process);
        }
        adopted.into_iter().for_each(reap_one);
        drop(registry);
        // The children of those that were killed come to us now.
        if left.is_empty() || begin.elapsed() > LONGEST_END {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Ends every descendant; the process is about to end, and nothing new is started.
pub(crate) fn end_all() {
    if !ADOPTS.load(Ordering::Relaxed) || LEFT_ALONE.load(Ordering::Relaxed) {
        return;
    }
    for _ in 0..LONGEST_END.as_millis() {
        // They are not waited for: a thread that still waits for its child should find it.
        let left: Vec<i32> = children().into_iter().filter(|&child| !is_over(child)).collect();
        if left.is_empty() {
            return;
        }
        left.into_iter().for_each(kill);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Our children that we did not start, unless [`Registry::is_incomplete`]. The registry is locked, so that
/// none is just being started.
fn adopted(registry: &Registry) -> Vec<i32> {
    let ours = |process: &i32| registry.children().iter().any(|own| own.process == *process);
    children().into_iter().filter(|process| !ours(process)).collect()
}

/// The children of all our threads.
fn children() -> Vec<i32> {
    let mut children = Vec::new();
    let tasks = Path::new("/proc/self/task").read_dir().into_iter().flatten().flatten();
    for task in tasks {
        match std::fs::read_to_string(task.path().join("children")) {
            Ok(list) => children.extend(list.split_whitespace().flat_map(str::parse::<i32>)),
            // The thread has ended, and its children are another's; or the kernel has no such file.
            Err(_) if task.path().exists() => return children_by_parent(),
            Err(_) => {}
        }
    }
    children
}

/// The same by looking at every process.
fn children_by_parent() -> Vec<i32> {
    let us = std::process::id().to_string();
    let processes = Path::new("/proc").read_dir().into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|&process| fields(process).is_some_and(|fields| fields.1 == us))
        .collect()
}

/// State and parent of a process.
fn fields(process: i32) -> Option<(String, String)> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before them may have blanks and parentheses.
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

/// Has it ended? (It may still be there to be waited for.)
fn is_over(process: i32) -> bool {
    fields(process).is_none_or(|(state, _)| matches!(&*state, "Z" | "X"))
}

fn kill(process: i32) {
    // SAFETY: a child that was not waited for, so that the number is still its own.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

fn reap_one(process: i32) {
    // SAFETY: a plain system call; a process that has not ended is left alone.
    unsafe { libc::waitpid(process, std::ptr::null_mut(), libc::WNOHANG) };
}
