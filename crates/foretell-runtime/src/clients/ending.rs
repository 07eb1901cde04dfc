//! The end of a server whose clients are done.

use foretell_wire::End;
use libc::c_int;

use crate::objects::{self, Model};
use crate::recorder::recorder;
use crate::scheduler;
use crate::sys;
use crate::thread::{State, Thread, Wait};
use crate::turn::Turn;
use crate::wrappers::process;

/// Tells the server to end. Says whether that may have woken somebody.
pub fn tell(threads: &[*mut Thread], signal: c_int) -> bool {
    // SAFETY: live threads, whose state belongs to us.
    let main = threads.iter().find(|&&thread| unsafe { (*thread).path.is_empty() });
    // SAFETY: as above.
    let main = main.map(|&main| unsafe { &mut *main });
    let masked = main.as_ref().is_some_and(|main| main.mask >> (signal - 1) & 1 != 0);
    match main {
        // Its handler runs where the thread waits, as if the kernel had called it there.
        Some(main) if process::has_handler(signal) && !masked && main.state == State::Blocked => {
            main.signals |= 1 << (signal - 1);
            main.state = State::Runnable;
            true
        }
        _ if process::has_handler(signal) || masked => {
            // SAFETY: a signal to ourselves, for which the program is prepared.
            unsafe {
                let process = u64::from(sys::process());
                sys::call(libc::SYS_kill, [process, signal as u64, 0, 0, 0, 0]);
            }
            true
        }
        _ => end(threads),
    }
}

/// The server would be ended by the signal, or has been told to end and does not.
pub fn end(threads: &[*mut Thread]) -> ! {
    // SAFETY: callers have the turn.
    let turn = unsafe { Turn::held() };
    let stuck = |&thread: &*mut Thread| {
        // SAFETY: live threads.
        let thread = unsafe { &*thread };
        let locked = |number| match &objects::by_number(turn, number).model {
            Model::Mutex(mutex) => mutex.owner.get(),
            Model::ReaderWriter(lock) => lock.writer.get(),
            _ => None,
        };
        match thread.wait {
            Wait::Object(number) if thread.state == State::Blocked && thread.deadline.is_none() => {
                locked(number)
            }
            _ => None,
        }
    };
    // A thread that waits for a lock whose holder does so too will never go on.
    let holders: Vec<u32> = threads.iter().filter_map(stuck).collect();
    let is_stuck = |thread: &&*mut Thread| {
        // SAFETY: as above.
        stuck(thread).is_some() && holders.contains(&unsafe { (***thread).number })
    };
    if threads.iter().any(|thread| is_stuck(&thread)) {
        scheduler::stop_in_deadlock();
    }
    // SAFETY: callers have the turn.
    unsafe { recorder() }.end(End::Exit, "");
    sys::exit(0)
}
