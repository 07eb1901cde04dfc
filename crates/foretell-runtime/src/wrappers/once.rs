//! Initialisation that happens once: `pthread_once`, `call_once` and C++'s guards of local statics.
//!
//! In the trace this is a mutex with a semaphore at one: everybody takes the mutex and then tries to take the
//! semaphore. Who gets it initialises, and gives the mutex back afterwards; who does not gives it back at
//! once. So the initialisation stays before its uses in every interleaving, and who is first is a choice.

use std::cell::RefCell;

use foretell_abi::Order;
use foretell_wire::sync_log::Kind as Logged;
use foretell_wire::{BY_TRY, Kind, ObjectKind, access};
use libc::c_int;

use super::mutex;
use crate::objects::{self, Model};
use crate::real::{interpose, real};
use crate::recorder::head;
use crate::replay;
use crate::scheduler;
use crate::thread::{Session, Wait};
use crate::turn::{Turn, TurnCell};

/// glibc's word of a `pthread_once_t` whose routine has run.
const DONE: c_int = 2;

/// How far an initialisation is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nobody has begun.
    Fresh,
    /// A thread is at it.
    Running,
    /// It is complete.
    Done,
}

/// The initialisations that were seen, by address.
static SEEN: TurnCell<RefCell<Vec<(u64, Progress)>>> = TurnCell::new(RefCell::new(Vec::new()));

/// The progress of the initialisation at the address.
fn progress(turn: Turn, address: u64) -> Progress {
    let seen = SEEN.shared(turn).borrow();
    let known = seen.iter().find(|&&(other, _)| other == address);
    known.map_or(Progress::Fresh, |&(_, progress)| progress)
}

fn set_progress(turn: Turn, address: u64, progress: Progress) {
    let mut seen = SEEN.shared(turn).borrow_mut();
    match seen.iter_mut().find(|(other, _)| *other == address) {
        Some((_, known)) => *known = progress,
        None => seen.push((address, progress)),
    }
}

/// The mutex that whoever initialises holds.
fn lock(turn: Turn, address: u64) -> u32 {
    mutex::at(turn, address, ObjectKind::Mutex)
}

/// Gives the mutex back.
fn unlock(session: &mut Session, address: u64) {
    let lock = lock(session.turn(), address);
    mutex::state(session.turn(), lock).leave();
    session.event(Kind::Release, 0, [lock.into()]);
    scheduler::wake(Wait::Object(lock));
    scheduler::wake(Wait::Once(address));
    session.point();
}

/// The semaphore that says who initialises.
fn claim(turn: Turn, address: u64) -> u64 {
    let fits = |model: &Model| matches!(model, Model::Semaphore(_));
    objects::get(turn, address + 1, fits, || Model::semaphore(1)).number.into()
}

/// The initialisation was left without being complete: somebody else may begin it.
fn give_up(session: &mut Session, address: u64) {
    let turn = session.turn();
    set_progress(turn, address, Progress::Fresh);
    session.event(Kind::SemaphorePost, 0, [claim(turn, address)]);
    session.point();
    unlock(session, address);
}

/// Waits until nobody initialises; says whether the caller must. `logged`: whether it did in the
/// run whose log is followed.
pub fn begin(session: &mut Session, address: u64, logged: Option<bool>) -> bool {
    session.point();
    let turn = session.turn();
    while progress(turn, address) == Progress::Fresh && logged == Some(false) {
        scheduler::block(session.me, Wait::Once(address), None);
    }
    let lock = lock(turn, address);
    let held = mutex::state(turn, lock);
    while held.owner.get().is_some() {
        scheduler::block(session.me, Wait::Object(lock), None);
    }
    held.take(session.me.number);
    session.event(Kind::Acquire, 0, [lock.into()]);
    session.point();
    if progress(turn, address) == Progress::Fresh {
        set_progress(turn, address, Progress::Running);
        session.event(Kind::SemaphoreWait, BY_TRY, [claim(turn, address)]);
        session.point();
        return true;
    }
    session.event(Kind::SemaphoreWaitFailed, 0, [claim(turn, address)]);
    session.point();
    unlock(session, address);
    false
}

/// The initialisation is complete.
pub fn end(session: &mut Session, address: u64) {
    set_progress(session.turn(), address, Progress::Done);
    unlock(session, address);
}

/// Lets another thread try when the initialisation was left by an exception.
pub struct Attempt(pub u64);

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(mut session) = Session::begin()
            && progress(session.turn(), self.0) != Progress::Done
        {
            give_up(&mut session, self.0);
        }
    }
}

type Routine = unsafe extern "C-unwind" fn();

/// Runs the routine unless that has been done.
pub unsafe fn once(control: *mut c_int, routine: Routine) -> c_int {
    let address = control as u64;
    let Some(mut session) = Session::begin() else {
        // SAFETY: as the program asked.
        return unsafe { crate::sync_only::once(control, routine) };
    };
    let logged = replay::peek(session.me, &[Logged::Once]).map(|(_, ran)| ran == 1);
    if logged.is_some() {
        replay::pass(session.me);
    }
    // SAFETY: the program's own word.
    let before_us =
        unsafe { *control == DONE } && progress(session.turn(), address) == Progress::Fresh;
    if before_us || !begin(&mut session, address, logged) {
        return 0;
    }
    drop(session);
    let attempt = Attempt(address);
    // SAFETY: the program gave it to be called.
    unsafe { routine() };
    if let Some(mut session) = Session::begin() {
        end(&mut session, address);
    }
    drop(attempt);
    // SAFETY: as above.
    unsafe { *control = DONE };
    0
}

interpose! {
    fn pthread_once(control: *mut c_int, routine: Routine) -> c_int {
        once(control, routine)
    }

    fn call_once(control: *mut c_int, routine: Routine) -> () {
        once(control, routine);
    }

    fn __cxa_guard_acquire(guard: *mut u8) -> c_int {
        let Some(mut session) = Session::begin() else {
            return real!(__cxa_guard_acquire(guard: *mut u8) -> c_int);
        };
        if *guard != 0 && progress(session.turn(), guard as u64) == Progress::Fresh {
            return 0;
        }
        begin(&mut session, guard as u64, None).into()
    }

    fn __cxa_guard_release(guard: *mut u8) -> () {
        let Some(mut session) = Session::begin() else {
            return real!(__cxa_guard_release(guard: *mut u8) -> ());
        };
        *guard = 1;
        // The code that looks at it does so atomically.
        let detail = access::detail(1, Order::Release as u8);
        let head = head(Kind::Write, detail, session.place);
        session.me.access::<false, 0>(head, guard as u64, 1, []);
        session.point();
        end(&mut session, guard as u64);
    }

    fn __cxa_guard_abort(guard: *mut u8) -> () {
        let Some(mut session) = Session::begin() else {
            return real!(__cxa_guard_abort(guard: *mut u8) -> ());
        };
        give_up(&mut session, guard as u64);
    }
}
