//! What the threads of a program that is about to be ended are doing: the kernel knows in which
//! system call each of them is.

use std::fs;

use foretell_wire::outside::Cause;

use crate::account::Account;
use crate::outside::Noted;

/// A thread that is asleep in a system call.
pub struct Asleep {
    task: u32,
    call: u64,
}

/// The threads of the process that are in a system call. Those that wait for their turn are in
/// `futex`, as are some that wait for others: that says nothing.
pub fn asleep(process: i32) -> Vec<Asleep> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let asleep = tasks.filter_map(|task| {
        let name = task.file_name();
        let text = fs::read_to_string(task.path().join("syscall")).ok()?;
        let call: u64 = text.split_whitespace().next()?.parse().ok()?;
        let task = name.to_str()?.parse().ok()?;
        (call != libc::SYS_futex as u64).then_some(Asleep { task, call })
    });
    asleep.collect()
}

/// Says so in the account, once it knows all threads.
pub fn note(asleep: Vec<Asleep>, account: &mut Account) {
    for Asleep { task, call } in asleep {
        if let Some(thread) = account.thread_of_task(task) {
            account.outside(Noted {
                cause: Cause::StillInCall,
                thread,
                awaited: false,
                number: call,
                text: String::new(),
                place: 0,
            });
        }
    }
}
