//! What is outside the scheduler and could still wake a thread: timers, signal handlers, child
//! processes, objects that other processes see, tasks of the process that are no threads of the
//! program.
//!
//! When no thread can run, this is a deadlock only if all of that is ruled out ([`wakers`]).
//! Otherwise the runtime waits for the real world, and time passes as it does there.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use foretell_wire::outside::{AWAITED, Cause};
use foretell_wire::record;
use libc::c_int;

use crate::channels;
use crate::clients;
use crate::hooks;
use crate::objects::{self, Model};
use crate::recorder::recorder;
use crate::sys;
use crate::thread::{Session, State, Thread, Wait};
use crate::turn::{Turn, TurnCell};
use crate::wrappers::signals;

/// The program has forked or started another program.
pub static FORKED: AtomicBool = AtomicBool::new(false);
/// This process is itself a forked child.
static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// The signals for which the program has a handler: bit 0 for signal 1.
pub static HANDLED: AtomicU64 = AtomicU64::new(0);
/// POSIX timers that send signals.
static TIMERS: TurnCell<Vec<libc::timer_t>> = TurnCell::new(Vec::new());

/// Something that could still wake a thread.
pub struct Waker {
    cause: Cause,
    number: u64,
}

/// Notes in the trace that the run depends on something that is not controlled.
pub fn note(thread: u32, cause: Cause, number: u64, text: &str, place: u64) {
    put(thread, 0, cause, number, text, place);
}

/// Notes that a call which may time out, or fail rather than wait, is made.
pub fn note_outcome(session: &Session, function: &str) {
    note(session.me.number, Cause::HeldOutcome, 0, function, session.place);
}

/// The same for a call that leaves no other event, though it comes out by how far the others are, or decides how
/// far they come: without an event a schedule could not say when it was made.
pub fn decided(session: &mut Session, function: &str) {
    note_outcome(session, function);
    let variable =
        channels::variable(&[2, session.me.number.into()], &format!("outcome of {function}"));
    hooks::mark(session, variable);
}

/// Notes what could have woken a thread when nobody could run.
pub fn note_awaited(thread: u32, waker: &Waker) {
    put(thread, AWAITED, waker.cause, waker.number, "", 0);
}

fn put(thread: u32, flags: u32, cause: Cause, number: u64, text: &str, place: u64) {
    // SAFETY: callers have the turn.
    let recorder = unsafe { recorder() };
    recorder.meet(place);
    recorder.record(cause as u8, place, &record::Outside { thread, flags, number, text });
}

/// In a forked child: the parent is the outside world, and no timer is inherited.
pub fn after_fork() {
    IS_CHILD.store(true, SeqCst);
    // SAFETY: the only thread.
    unsafe { TIMERS.get() }.clear();
}

/// A POSIX timer that sends a signal was made, or is gone.
pub fn timer_created(timer: libc::timer_t) {
    // SAFETY: callers have the turn.
    unsafe { TIMERS.get() }.push(timer);
}

/// See [`timer_created`].
pub fn timer_deleted(timer: libc::timer_t) {
    // SAFETY: callers have the turn.
    unsafe { TIMERS.get() }.retain(|&other| other != timer);
}

/// Whether others act while this process waits, so that time has to pass as it does for them.
pub fn others_act() -> bool {
    IS_CHILD.load(Relaxed)
        || FORKED.load(Relaxed) && !children().is_empty()
        || !running_timers().is_empty()
}

/// Whether one of the files is made ready from outside the process. Pipes and event counters whose
/// other end is in this process are not.
pub fn come_from_outside(files: &[libc::pollfd]) -> bool {
    let forked = FORKED.load(Relaxed);
    forked
        || !clients::are_played()
            && (files.is_empty() || files.iter().any(|file| is_outside(file.fd)))
}

fn is_outside(file: i32) -> bool {
    let Some(name) = link(file) else { return true };
    if name == b"anon_inode:[eventfd]" {
        return false;
    }
    if name.starts_with(b"pipe:") {
        let files = numbers_in(b"/proc/self/fd\0").unwrap_or_default();
        return !files
            .into_iter()
            .any(|other| other as i32 != file && link(other as i32).as_ref() == Some(&name));
    }
    if name.starts_with(b"socket:") {
        return channels::peer_process(file).unwrap_or(0) != sys::process();
    }
    true
}

/// What the file is.
fn link(file: i32) -> Option<Vec<u8>> {
    link_at(&format!("/proc/self/fd/{file}\0"))
}

/// What the link at the path, which ends in NUL, leads to.
pub fn link_at(path: &str) -> Option<Vec<u8>> {
    let mut buffer = [0u8; 64];
    let at = libc::AT_FDCWD as u64;
    let (path, room) = (path.as_ptr() as u64, buffer.as_mut_ptr() as u64);
    // SAFETY: the path ends in NUL, the buffer is ours.
    let length =
        unsafe { sys::call(libc::SYS_readlinkat, [at, path, room, buffer.len() as u64, 0, 0]) };
    (length > 0).then(|| buffer[..length as usize].to_vec())
}

/// Everything that could still wake one of the threads, none of which can run.
pub fn wakers(threads: &[*mut Thread]) -> Vec<Waker> {
    let mut wakers = running_timers();
    let waker = |cause, number| Waker { cause, number };
    if FORKED.load(Relaxed) {
        wakers.extend(children().into_iter().map(|child| waker(Cause::Process, child)));
    }
    // SAFETY: live threads.
    let blocked = || threads.iter().map(|&thread| unsafe { &*thread });
    let handled = HANDLED.load(Relaxed);
    for signal in (1..=64).filter(|signal| handled >> (signal - 1) & 1 != 0) {
        if blocked().any(|thread| a_handler_may_wake(thread, signal as c_int)) {
            wakers.push(waker(Cause::Handler, signal));
        }
    }
    if IS_CHILD.load(Relaxed) || blocked().any(another_process_may_wake) {
        wakers.push(waker(Cause::SharedObject, 0));
    }
    wakers.extend(unknown_tasks(threads).into_iter().map(|task| waker(Cause::Task, task)));
    wakers
}

/// Whether the handler of a signal from outside may wake this thread: by what it does, such as to post a
/// semaphore (that it signals a condition is not allowed, and done), or because the wait ends when it was
/// interrupted. A handler that is known to do nothing of the kind leaves a thread that waits for a condition
/// where it is, and with `SA_RESTART` one that waits for a semaphore or a futex, too.
fn a_handler_may_wake(thread: &Thread, signal: c_int) -> bool {
    let acts = || !signals::is_quiet(signal);
    // SAFETY: only who has the turn looks at other threads.
    let turn = unsafe { Turn::held() };
    thread.state == State::Blocked
        && match thread.wait {
            Wait::Object(number) => match &objects::by_number(turn, number).model {
                // A futex's wait ends, too.
                Model::Condition(_) if objects::is_of_variable(turn, number) => {
                    acts() || !signals::restarts(signal)
                }
                Model::Condition(_) => acts(),
                Model::Semaphore(_) => acts() || !signals::restarts(signal),
                _ => false,
            },
            Wait::Futex(_) => acts() || !signals::restarts(signal),
            // `poll`, `semop` and their kin never go on; a handler may write to a pipe, and store to what
            // is waited for in a loop.
            Wait::Files | Wait::Kernel(_) | Wait::Change => true,
            _ => false,
        }
}

/// Whether the thread waits for something that another process has in its memory.
fn another_process_may_wake(thread: &Thread) -> bool {
    // SAFETY: only who has the turn looks at other threads.
    let turn = unsafe { Turn::held() };
    match thread.wait {
        Wait::Object(number) if thread.state == State::Blocked => {
            let object = objects::by_number(turn, number);
            object.shared.get() && mapped_elsewhere(object.address)
        }
        Wait::Change if thread.state == State::Blocked => {
            let seen = |address| is_shared_mapping(address) && mapped_elsewhere(address);
            thread.watched.iter().any(|&(address, ..)| seen(address))
        }
        _ => false,
    }
}

/// The interval timers and POSIX timers that will fire.
fn running_timers() -> Vec<Waker> {
    let mut running = Vec::new();
    for which in 0..3u64 {
        // SAFETY: a plain structure that the kernel fills.
        let left = unsafe {
            let mut time: libc::itimerval = std::mem::zeroed();
            sys::call(libc::SYS_getitimer, [which, (&raw mut time) as u64, 0, 0, 0, 0]);
            time.it_value
        };
        if left.tv_sec != 0 || left.tv_usec != 0 {
            running.push(Waker { cause: Cause::Alarm, number: which });
        }
    }
    // SAFETY: callers have the turn; timers of the program that it has not deleted.
    for &timer in unsafe { TIMERS.get() }.iter() {
        // SAFETY: as above.
        let left = unsafe {
            let mut time: libc::itimerspec = std::mem::zeroed();
            libc::timer_gettime(timer, &mut time);
            time.it_value
        };
        if left.tv_sec != 0 || left.tv_nsec != 0 {
            running.push(Waker { cause: Cause::Timer, number: 0 });
        }
    }
    running
}

/// The child processes that are alive.
fn children() -> Vec<u64> {
    let Some(tasks) = tasks() else { return Vec::new() };
    let mut children = Vec::new();
    for task in tasks {
        let path = format!("/proc/self/task/{task}/children\0");
        let Some(text) = sys::read_file(path.as_bytes()) else { continue };
        let text = String::from_utf8_lossy(&text).into_owned();
        children.extend(text.split_whitespace().filter_map(|child| child.parse::<u64>().ok()));
    }
    children.retain(|child| {
        let status = sys::read_file(format!("/proc/{child}/stat\0").as_bytes());
        status.and_then(|status| state_of(&status)).is_some_and(|state| state != b'Z')
    });
    children
}

/// The state letter of a `stat` file of the kernel.
pub fn state_of(status: &[u8]) -> Option<u8> {
    let after_name = status.iter().rposition(|&byte| byte == b')')?;
    status.get(after_name + 2).copied()
}

/// The numbers of all tasks of this process.
pub fn tasks() -> Option<Vec<u32>> {
    numbers_in(b"/proc/self/task\0")
}

/// The names in the folder (NUL-terminated path) that are numbers.
pub fn numbers_in(path: &[u8]) -> Option<Vec<u32>> {
    let folder = sys::open(path, libc::O_RDONLY | libc::O_CLOEXEC);
    if folder < 0 {
        return None;
    }
    let mut tasks = Vec::new();
    let mut buffer = [0u64; 256];
    loop {
        let (first, size) = (buffer.as_mut_ptr() as u64, size_of_val(&buffer) as u64);
        // SAFETY: the buffer is ours.
        let count =
            unsafe { sys::call(libc::SYS_getdents64, [folder as u64, first, size, 0, 0, 0]) };
        if count <= 0 {
            break;
        }
        // SAFETY: the kernel has filled so much of it.
        let bytes =
            unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), count as usize) };
        let mut at = 0;
        while at + 19 < bytes.len() {
            let length = u16::from_le_bytes([bytes[at + 16], bytes[at + 17]]) as usize;
            let name = bytes[at + 19..].split(|&byte| byte == 0).next().unwrap_or_default();
            tasks.extend(std::str::from_utf8(name).ok().and_then(|name| name.parse::<u32>().ok()));
            at += length.max(1);
        }
    }
    sys::close(folder);
    Some(tasks)
}

/// The tasks of this process that are no threads of the program and could do something.
fn unknown_tasks(threads: &[*mut Thread]) -> Vec<u64> {
    let Some(mut tasks) = tasks() else { return Vec::new() };
    // SAFETY: live threads.
    let known = |task: u32| threads.iter().any(|&thread| unsafe { (*thread).task } == task);
    tasks.retain(|&task| !known(task) && !is_over(task));
    tasks.into_iter().filter(|&task| !waits_for_timers(task)).map(u64::from).collect()
}

/// Whether the task is libc's helper that waits for timers, none of which runs (those whose function
/// is to be called are threads that have not begun, see `wrappers::notify`).
fn waits_for_timers(task: u32) -> bool {
    system_call(task) == Some(libc::SYS_rt_sigtimedwait as u64)
}

/// The system call that the task is blocked in.
pub fn system_call(task: u32) -> Option<u64> {
    let text = sys::read_file(format!("/proc/self/task/{task}/syscall\0").as_bytes())?;
    let text = String::from_utf8_lossy(&text).into_owned();
    text.split_whitespace().next()?.parse().ok()
}

/// Threads of ours that have had their last event, but still end inside libc.
static OVER: TurnCell<Vec<u32>> = TurnCell::new(Vec::new());

/// The thread with this number in the kernel has had its last event.
pub fn finished(task: u32) {
    // SAFETY: callers have the turn.
    let over = unsafe { OVER.get() };
    if over.len() >= 64 {
        over.remove(0);
    }
    over.push(task);
}

fn is_over(task: u32) -> bool {
    // SAFETY: callers have the turn.
    unsafe { OVER.get() }.contains(&task)
}

/// Whether the memory at this address can be shared with other processes at all. What lies in memory of
/// this process only is not shared, whatever its attributes say.
pub fn is_shared_memory(address: u64) -> bool {
    let Some(text) = sys::read_file(b"/proc/self/maps\0") else { return true };
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        let (Some(range), Some(mode)) = (words.next(), words.next()) else { return false };
        let Some((first, end)) = range.split_once('-') else { return false };
        let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
        mode.ends_with('s') && (number(first)..number(end)).contains(&address)
    })
}

/// Whether another process that we may look at has the memory at this address, too.
fn mapped_elsewhere(address: u64) -> bool {
    let Some(identity) =
        mapping_at(b"/proc/self/maps\0", |first, end| (first..end).contains(&address))
    else {
        return false;
    };
    let myself = sys::process();
    let processes = numbers_in(b"/proc\0").unwrap_or_default();
    for process in processes.into_iter().filter(|&process| process != myself) {
        let path = format!("/proc/{process}/maps\0");
        let Some(text) = sys::read_file(path.as_bytes()) else { continue };
        if String::from_utf8_lossy(&text).lines().any(|line| identity_of(line) == Some(&*identity))
        {
            return true;
        }
    }
    false
}

/// Whether another process that we may look at has the file open.
pub fn is_open_elsewhere(file: &libc::stat) -> bool {
    let has = |process: u32| {
        let folder = format!("/proc/{process}/fd");
        let files = numbers_in(format!("{folder}\0").as_bytes()).unwrap_or_default();
        files.into_iter().any(|number| {
            let path = format!("{folder}/{number}\0");
            let at = libc::AT_FDCWD as u64;
            // SAFETY: the path ends in NUL, the structure is ours.
            unsafe {
                let mut there: libc::stat = std::mem::zeroed();
                let (path, there_at) = (path.as_ptr() as u64, (&raw mut there) as u64);
                let words = [at, path, there_at, 0, 0, 0];
                sys::call(libc::SYS_newfstatat, words) == 0
                    && (there.st_dev, there.st_ino) == (file.st_dev, file.st_ino)
            }
        })
    };
    let myself = sys::process();
    let processes = numbers_in(b"/proc\0").unwrap_or_default();
    processes.into_iter().any(|process| process != myself && has(process))
}

/// Whether what is stored at this address is not only for this process.
fn is_shared_mapping(address: u64) -> bool {
    let text = sys::read_file(b"/proc/self/maps\0").unwrap_or_default();
    String::from_utf8_lossy(&text).lines().any(|line| {
        let mut words = line.split_whitespace();
        let (range, mode) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
        let (first, end) = range.split_once('-').unwrap_or_default();
        (number(first)..number(end)).contains(&address) && mode.ends_with('s')
    })
}

/// Device and inode of a line of `maps`; none for memory that is no file's.
fn identity_of(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let (_, mode) = (words.next()?, words.next()?);
    let rest = line.split_once(mode)?.1.trim_start();
    let end = rest.match_indices(' ').nth(2).map_or(rest.len(), |(at, _)| at);
    let identity = rest.get(..end)?;
    let identity = identity.split_once(' ')?.1;
    (!identity.ends_with(" 0")).then_some(identity)
}

/// Device and inode of the file that is mapped where `is_there` says.
fn mapping_at(path: &[u8], is_there: impl Fn(u64, u64) -> bool) -> Option<String> {
    let text = String::from_utf8_lossy(&sys::read_file(path)?).into_owned();
    text.lines().find_map(|line| {
        let (first, rest) = line.split_once('-')?;
        let end = rest.split(' ').next()?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        is_there(number(first)?, number(end)?).then(|| identity_of(line).map(str::to_owned))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_known_by_device_and_inode() {
        let line = "7f1200000000-7f1200001000 rw-s 00000000 00:1b 42   /dev/shm/sem.x";
        assert_eq!(identity_of(line), Some("00:1b 42"));
        assert_eq!(identity_of("7f12-7f13 rw-p 00000000 00:00 0"), None);
        assert_eq!(identity_of(""), None);
    }

    #[test]
    fn the_state_of_a_process_comes_after_its_name() {
        assert_eq!(state_of(b"12 (a) b) S 1"), Some(b'S'));
        assert_eq!(state_of(b""), None);
    }

    #[test]
    fn this_process_has_its_own_task() {
        let tasks = tasks().expect("there is a /proc");
        assert!(tasks.contains(&sys::process()));
    }
}
