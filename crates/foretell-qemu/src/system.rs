//! System calls: which may block, which end a thread or the process, and what time it is.

use std::ffi::c_uint;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use foretell_wire::End;

use crate::accesses::settle;
use crate::api::{Id, api};
use crate::calls;
use crate::cpu::{Machine, guest_base, machine, peek_word, poke};
use crate::futexes;
use crate::heap;
use crate::scheduler::{self, scheduler};
use crate::thread::State;
use crate::thread_of;

/// What a system call means for the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The thread ends.
    Exit,
    /// The process ends.
    ExitGroup,
    /// It may wait for a change of memory.
    Futex,
    /// Creates a thread, or a process.
    Clone,
    /// Creates a process.
    Fork,
    /// Says what is done when a signal arrives.
    Handle,
    /// Sends a signal: in this argument is which.
    Send { argument: usize },
    /// It may wait, if its first argument is a file of no fixed size.
    Transfer,
    /// It may wait.
    Blocking,
    /// The process becomes another program.
    Exec,
    /// Asks for the time: a structure of two words, of this many bytes each, and how many of the
    /// second make a nanosecond.
    Clock { word: u8, divisor: u64, by_clock: bool },
    /// Maps memory: in its second argument are the bytes, or in the third.
    Map { third: bool },
    /// Nothing.
    Other,
}

/// Numbers on x86-64, AArch64 and 32-bit ARM; -1 where there is none.
const MEANINGS: &[(Meaning, [i64; 3])] = {
    use Meaning::*;
    const LONG: Meaning = Clock { word: 8, divisor: 1, by_clock: true };
    const SHORT: Meaning = Clock { word: 4, divisor: 1, by_clock: true };
    const OF_DAY: Meaning = Clock { word: 8, divisor: 1_000, by_clock: false };
    const SHORT_OF_DAY: Meaning = Clock { word: 4, divisor: 1_000, by_clock: false };
    &[
        (Exit, [60, 93, 1]),
        (ExitGroup, [231, 94, 248]),
        (Futex, [202, 98, 240]),
        (Futex, [-1, -1, 422]),
        (Clone, [56, 220, 120]),
        (Fork, [57, -1, 2]),
        (Fork, [58, -1, 190]),                   // vfork
        (Handle, [13, 134, 174]),                // rt_sigaction
        (Send { argument: 1 }, [62, 129, 37]),   // kill
        (Send { argument: 1 }, [200, 130, 238]), // tkill
        (Send { argument: 2 }, [234, 131, 268]), // tgkill
        (Send { argument: 1 }, [129, 138, 178]), // rt_sigqueueinfo
        (Send { argument: 2 }, [297, 240, 363]), // rt_tgsigqueueinfo
        (Transfer, [0, 63, 3]),                  // read
        (Transfer, [1, 64, 4]),                  // write
        (Transfer, [19, 65, 145]),               // readv
        (Transfer, [20, 66, 146]),               // writev
        (Blocking, [7, -1, 168]),                // poll
        (Blocking, [271, 73, 336]),              // ppoll
        (Blocking, [-1, -1, 414]),               // ppoll with long times
        (Blocking, [23, -1, 142]),               // select
        (Blocking, [270, 72, 335]),              // pselect6
        (Blocking, [-1, -1, 413]),               // pselect6 with long times
        (Blocking, [232, -1, 252]),              // epoll_wait
        (Blocking, [281, 22, 346]),              // epoll_pwait
        (Blocking, [43, 202, 285]),              // accept
        (Blocking, [288, 242, 366]),             // accept4
        (Blocking, [42, 203, 283]),              // connect
        (Blocking, [45, 207, 292]),              // recvfrom
        (Blocking, [47, 212, 297]),              // recvmsg
        (Blocking, [44, 206, 290]),              // sendto
        (Blocking, [46, 211, 296]),              // sendmsg
        (Blocking, [61, 260, 114]),              // wait4
        (Blocking, [247, 95, 280]),              // waitid
        (Blocking, [35, 101, 162]),              // nanosleep
        (Blocking, [230, 115, 265]),             // clock_nanosleep
        (Blocking, [-1, -1, 407]),               // clock_nanosleep with long times
        (Blocking, [34, -1, 29]),                // pause
        (Blocking, [130, 133, 179]),             // rt_sigsuspend
        (Blocking, [128, 137, 177]),             // rt_sigtimedwait
        (Blocking, [73, 32, 143]),               // flock
        (Blocking, [70, 188, 304]),              // msgrcv
        (Blocking, [69, 189, 301]),              // msgsnd
        (Blocking, [65, 193, 298]),              // semop
        (Map { third: false }, [9, 222, 192]),
        (Map { third: true }, [25, 216, 163]), // mremap
        (Exec, [59, 221, 11]),
        (Exec, [322, 281, 387]), // execveat
        (LONG, [228, 113, 403]),
        (SHORT, [-1, -1, 263]),
        (OF_DAY, [96, 169, -1]),
        (SHORT_OF_DAY, [-1, -1, 78]),
    ]
};

fn meaning(number: i64) -> Meaning {
    let column = match machine() {
        Machine::X86 => 0,
        Machine::Arm64 => 1,
        Machine::Arm => 2,
    };
    let known = MEANINGS.iter().find(|(_, numbers)| numbers[column] == number && number >= 0);
    known.map_or(Meaning::Other, |(meaning, _)| *meaning)
}

/// The executable.
pub fn binary() -> PathBuf {
    let path = (api().qemu_plugin_path_to_binary)();
    if path.is_null() {
        return PathBuf::new();
    }
    // SAFETY: QEMU's string ends in NUL.
    let path = unsafe { std::ffi::CStr::from_ptr(path) }.to_string_lossy().into_owned();
    std::fs::canonicalize(path).unwrap_or_default()
}

/// What a clock says when the program begins: the same in every run of the same file.
pub fn clock_begin(clock: i32) -> u64 {
    static REAL: OnceLock<u64> = OnceLock::new();
    const MONOTONIC: u64 = 1_000_000_000_000;
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => *REAL.get_or_init(|| {
            let changed = std::fs::metadata(binary()).map_or(0, |file| file.mtime());
            changed.max(0) as u64 * 1_000_000_000
        }),
        _ => MONOTONIC,
    }
}

/// What the trace lacks of a program that starts others.
const PROCESSES: &str = "what processes do that the program starts";
/// What is not varied where signals are sent and handled.
const INTERRUPTIONS: &str = "where signals interrupt the threads that handle them";

/// The signals that the program has a handler for, one bit each; those above 63 are not told apart.
static HANDLED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The arguments of the system call that the thread is in.
    static ARGUMENTS: std::cell::Cell<[u64; 3]> = const { std::cell::Cell::new([0; 3]) };
}

/// Before a system call.
#[allow(clippy::too_many_arguments)] // QEMU's choice
pub extern "C" fn on_call(
    _id: Id,
    cpu: c_uint,
    number: i64,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    _f: u64,
    _g: u64,
    _h: u64,
) {
    let me = thread_of(cpu);
    me.in_code = false;
    if !me.started {
        // A new thread comes here before it comes to the program's code.
        calls::begin_thread(me);
    }
    settle(me);
    ARGUMENTS.set([a, b, c]);
    match meaning(number) {
        Meaning::Exit if futexes::is_on() => {}
        Meaning::Exit => scheduler::finish(me),
        Meaning::Clone => {
            if a & libc::CLONE_THREAD as u64 == 0 {
                scheduler().gap_once(PROCESSES);
            }
            me.creates_clearing = futexes::cleared_at_end([a, b, c, d, e]);
        }
        Meaning::Fork => scheduler().gap_once(PROCESSES),
        Meaning::Handle => {
            // The handler is the first word of the structure, or 0 or 1 where nothing is called.
            let is_handled = b != 0 && peek_word(b) > 1;
            if is_handled && let Some(signal) = 1_u64.checked_shl(a as u32) {
                HANDLED.fetch_or(signal, Relaxed);
            }
        }
        Meaning::Send { argument } => {
            let signal = 1_u64.checked_shl([a, b, c][argument] as u32);
            if signal.is_none_or(|signal| HANDLED.load(Relaxed) & signal != 0) {
                scheduler().restriction_once(INTERRUPTIONS);
            }
        }
        Meaning::Futex if futexes::is_on() => {
            if futexes::call(me, [a, b, c, d, e]) {
                scheduler::leave(me);
            }
        }
        Meaning::ExitGroup => {
            scheduler::await_others(me);
            scheduler::end(End::Exit, "");
        }
        Meaning::Futex if !is_wait(b) || me.keeps_turn => {}
        Meaning::Transfer if is_plain_file(a as i32) => {}
        Meaning::Futex | Meaning::Transfer | Meaning::Blocking => scheduler::leave(me),
        Meaning::Exec => {
            // SAFETY: the path of the program is a string of its memory.
            let path = unsafe { std::ffi::CStr::from_ptr((a + guest_base()) as *const _) };
            scheduler().ring.announce(End::Replaced, &path.to_string_lossy());
        }
        Meaning::Clock { .. } | Meaning::Map { .. } | Meaning::Other => {}
    }
}

/// After a system call.
pub extern "C" fn on_return(_id: Id, cpu: c_uint, number: i64, result: i64) {
    let me = thread_of(cpu);
    if me.state == State::External {
        scheduler::enter(me);
    }
    futexes::returned(me);
    match meaning(number) {
        Meaning::Clock { word, divisor, by_clock } if result == 0 => {
            let [a, b, _] = ARGUMENTS.get();
            let (clock, at) = if by_clock { (a as i32, b) } else { (libc::CLOCK_REALTIME, a) };
            // What a thread or the process has used of the processor is as it is.
            let virtual_clock = !(2..=3).contains(&clock) && clock >= 0 && at != 0;
            if virtual_clock {
                scheduler().elapsed += 1_000;
                let now = clock_begin(clock).saturating_add(scheduler().elapsed);
                poke(at, word, now / 1_000_000_000);
                poke(at + u64::from(word), word, now % 1_000_000_000 / divisor);
            }
        }
        // What fails gives -4095 to -1.
        Meaning::Map { third } if !(-4095..0).contains(&result) => {
            let [_, second, other] = ARGUMENTS.get();
            let begin =
                if machine() == Machine::Arm { u64::from(result as u32) } else { result as u64 };
            heap::taken_by_others(begin, if third { other } else { second });
        }
        Meaning::Exec => scheduler().ring.announce(End::Unsaid, ""),
        _ => {}
    }
}

/// Whether the operation of a futex waits.
pub fn is_wait(operation: u64) -> bool {
    const WAITS: [i32; 4] = [
        libc::FUTEX_WAIT,
        libc::FUTEX_WAIT_BITSET,
        libc::FUTEX_LOCK_PI,
        libc::FUTEX_WAIT_REQUEUE_PI,
    ];
    WAITS.contains(&(operation as i32 & libc::FUTEX_CMD_MASK))
}

/// Whether reading and writing the file never waits.
fn is_plain_file(file: i32) -> bool {
    // SAFETY: the structure is only written to.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        libc::fstat(file, &mut status) != 0
            || matches!(
                status.st_mode & libc::S_IFMT,
                libc::S_IFREG | libc::S_IFCHR | libc::S_IFDIR
            ) && libc::isatty(file) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_has_two_meanings() {
        for column in 0..3 {
            let mut numbers: Vec<i64> = MEANINGS.iter().map(|(_, n)| n[column]).collect();
            numbers.retain(|&number| number >= 0);
            let count = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), count);
        }
    }

    #[test]
    fn futexes_that_wake_do_not_wait() {
        assert!(is_wait(libc::FUTEX_WAIT_BITSET as u64 | libc::FUTEX_PRIVATE_FLAG as u64));
        assert!(!is_wait(libc::FUTEX_WAKE as u64));
    }
}
