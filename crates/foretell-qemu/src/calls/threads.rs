//! Creating and joining threads, and what is done once.

use foretell_wire::Kind;
use foretell_wire::sync_log::Kind as Logged;

use super::locks::{self, Patience};
use super::{Call, Then, follow};
use crate::accesses::{open, touch};
use crate::cpu::{self, Machine, machine, peek, peek_word};
use crate::scheduler::{self, scheduler};
use crate::thread::{Handle, Wait};

/// See `super::FUNCTIONS`.
pub const FUNCTIONS: &[(&str, super::Handler)] = &[
    ("pthread_create", |call| create(call, 2)),
    ("thrd_create", |call| create(call, 1)),
    ("pthread_join", join),
    ("thrd_join", join),
    ("pthread_tryjoin_np", try_join),
    ("pthread_timedjoin_np", refuse_timed_join),
    ("pthread_clockjoin_np", refuse_timed_join),
    ("pthread_once", once),
    ("call_once", once),
    ("__assert_fail", |call| {
        call.event(Kind::Assert, 0, &[0]);
        Then::Run
    }),
    ("pthread_cancel", |call| {
        call.point();
        scheduler().gap_once("cancellations of threads");
        Then::Run
    }),
];

/// Creates a thread, whose function is the argument with this number; the next one it is given.
fn create(call: &mut Call<'_>, routine: usize) -> Then {
    call.point();
    let thumb = u64::from(machine() == Machine::Arm);
    call.me.creates = (call.place, call.argument(routine) & !thumb);
    let argument = call.argument(routine + 1);
    if call.me.stack.contains(&argument) {
        let stack = cpu::stack_pointer(call.me.cpu);
        open(call.me, stack.min(argument));
    }
    Then::RunAnd(created, [call.argument(0), scheduler().created().into()])
}

/// What is done once is done under a lock, which tells others that it was done. Whoever comes later reads in
/// its word that it was.
fn once(call: &mut Call<'_>) -> Then {
    let control = call.argument(0);
    let number = locks::spin(control);
    call.point();
    follow::pass(call.me, Logged::Once);
    locks::take(call, number, &Patience::Until(None), 0);
    touch(call.me, call.place, 0, control, 4, peek(control, 4), false);
    Then::RunAnd(done_once, [number.into(), control])
}

fn done_once(call: &mut Call<'_>, [lock, control]: [u64; 2], _result: u64) {
    let done = peek(control, 4);
    if scheduler().shadow.value(control, 4) != Some(done) {
        touch(call.me, call.place, 0, control, 4, done, true);
    }
    locks::release(call, lock as u32);
}

/// `pthread_create` returns. A thread that was created is known by what it wrote there.
fn created(call: &mut Call<'_>, [handle, before]: [u64; 2], result: u64) {
    if result as i32 == 0 && u64::from(scheduler().created()) > before {
        let (word, value) = (machine().word(), peek_word(handle));
        let (number, clears) = (before as u32, call.me.creates_clearing);
        scheduler().handles.retain(|known| known.value != value);
        scheduler().handles.push(Handle { value, number, clears });
        touch(call.me, call.place, 0, handle, word, value, true);
    }
    call.point();
}

fn join(call: &mut Call<'_>) -> Then {
    call.point();
    let Some(thread) = handle(call.argument(0)) else { return Then::Run };
    while scheduler::is_alive(thread.number) {
        if thread.number == call.me.number {
            return Then::Run; // it says that this is a deadlock
        }
        scheduler::block(call.me, Wait::Thread(thread.number), None);
    }
    over(call, &thread)
}

/// Joins a thread if it is over. That it may be over or not is nothing that a prediction varies.
fn try_join(call: &mut Call<'_>) -> Then {
    call.point();
    let Some(thread) = handle(call.argument(0)) else { return Then::Run };
    scheduler().restriction_once("whether threads are over that are joined without waiting");
    if thread.number == call.me.number {
        return Then::Run;
    }
    if scheduler::is_alive(thread.number) {
        return Then::Return(libc::EBUSY.into());
    }
    // Who does not wait looks whether the kernel has cleared the number of the thread.
    while thread.clears != 0 && peek(thread.clears, 4) != 0 {
        std::thread::yield_now();
    }
    over(call, &thread)
}

fn handle(value: u64) -> Option<Handle> {
    scheduler().handles.iter().find(|known| known.value == value).copied()
}

/// The thread is joined.
fn over(call: &mut Call<'_>, thread: &Handle) -> Then {
    scheduler().handles.retain(|known| known.value != thread.value);
    call.event(Kind::Join, 0, &[thread.number.into()]);
    // The thread has nothing left to do but to end.
    call.me.keeps_turn = true;
    Then::RunAnd(joined, [call.argument(1), 0])
}

fn joined(call: &mut Call<'_>, [result_at, _]: [u64; 2], result: u64) {
    call.me.keeps_turn = false;
    if result as i32 == 0 && result_at != 0 {
        let value = peek_word(result_at);
        touch(call.me, call.place, 0, result_at, machine().word(), value, true);
    }
    call.point();
}

fn refuse_timed_join(_call: &mut Call<'_>) -> Then {
    scheduler().gap_once("joins with a time limit");
    Then::Run
}
