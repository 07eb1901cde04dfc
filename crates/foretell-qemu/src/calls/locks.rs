//! Mutexes, spin locks and reader-writer locks.

use foretell_wire::record;
use foretell_wire::sync_log::Kind as Logged;
use foretell_wire::{Kind, ObjectKind, gap, lock};

use super::{Call, Then, follow};
use crate::cpu::{Machine, machine, peek};
use crate::objects::Model;
use crate::scheduler::{self, scheduler};
use crate::thread::Wait;

/// See `super::FUNCTIONS`.
pub const FUNCTIONS: &[(&str, super::Handler)] = &[
    ("pthread_mutex_init", |call| {
        let address = call.argument(0);
        let attributes = call.argument(1);
        // The kind is in the attributes' first word.
        let kind = if attributes == 0 { 0 } else { peek(attributes, 4) as u32 };
        let plain = kind & (SHARED_ATTRIBUTE | ROBUST_ATTRIBUTE) == 0;
        match plain {
            true => {
                define(address, Model::Mutex(kind_of(kind), None, 0));
            }
            false => scheduler().objects.forget(address),
        }
        Then::Run
    }),
    ("pthread_mutex_destroy", destroy),
    ("pthread_mutex_lock", |call| lock(call, Patience::Until(None))),
    ("pthread_mutex_trylock", |call| lock(call, Patience::Try)),
    ("pthread_mutex_timedlock", |call| {
        let until = call.deadline(libc::CLOCK_REALTIME, 1);
        lock(call, Patience::Until(Some(until)))
    }),
    ("pthread_mutex_clocklock", |call| {
        let clock = call.integer(1);
        let until = call.deadline(clock, 2);
        lock(call, Patience::Until(Some(until)))
    }),
    ("pthread_mutex_unlock", |call| match is_modelled(call.argument(0)) {
        true => {
            let number = mutex(call.argument(0));
            Then::Return(release(call, number).into())
        }
        false => Then::Run,
    }),
    // Those of C11 are the same ones; only what they say of a failure differs.
    ("mtx_lock", |call| of_c11(lock(call, Patience::Until(None)))),
    ("mtx_timedlock", |call| {
        let until = call.deadline(libc::CLOCK_REALTIME, 1);
        of_c11(lock(call, Patience::Until(Some(until))))
    }),
    ("mtx_unlock", |call| {
        let number = mutex(call.argument(0));
        Then::Return(release(call, number).into())
    }),
    ("mtx_trylock", |call| of_c11(lock(call, Patience::Try))),
    ("mtx_destroy", destroy),
    ("pthread_spin_init", |call| match is_freed_like_new() && is_held(call) {
        true => free_spin(call),
        false => new_spin(call),
    }),
    ("pthread_spin_destroy", destroy),
    ("pthread_spin_lock", |call| {
        let number = spin(call.argument(0));
        Then::Return(acquire(call, number, &Patience::Until(None)).into())
    }),
    ("pthread_spin_trylock", |call| {
        let number = spin(call.argument(0));
        Then::Return(acquire(call, number, &Patience::Try).into())
    }),
    ("pthread_spin_unlock", |call| match is_freed_like_new() && !is_held(call) {
        true => new_spin(call),
        false => free_spin(call),
    }),
    ("pthread_rwlock_init", |call| {
        define(call.argument(0), Model::ReaderWriter(None, Vec::new()));
        Then::Run
    }),
    ("pthread_rwlock_destroy", destroy),
    ("pthread_rwlock_rdlock", |call| share(call, true, Patience::Until(None))),
    ("pthread_rwlock_wrlock", |call| share(call, false, Patience::Until(None))),
    ("pthread_rwlock_tryrdlock", |call| share(call, true, Patience::Try)),
    ("pthread_rwlock_trywrlock", |call| share(call, false, Patience::Try)),
    ("pthread_rwlock_timedrdlock", |call| {
        let until = call.deadline(libc::CLOCK_REALTIME, 1);
        share(call, true, Patience::Until(Some(until)))
    }),
    ("pthread_rwlock_timedwrlock", |call| {
        let until = call.deadline(libc::CLOCK_REALTIME, 1);
        share(call, false, Patience::Until(Some(until)))
    }),
    ("pthread_rwlock_clockrdlock", |call| {
        let clock = call.integer(1);
        let until = call.deadline(clock, 2);
        share(call, true, Patience::Until(Some(until)))
    }),
    ("pthread_rwlock_clockwrlock", |call| {
        let clock = call.integer(1);
        let until = call.deadline(clock, 2);
        share(call, false, Patience::Until(Some(until)))
    }),
    ("pthread_rwlock_unlock", unshare),
];

/// In glibc's attributes of a mutex.
const SHARED_ATTRIBUTE: u32 = 0x8000_0000;
const ROBUST_ATTRIBUTE: u32 = 0x4000_0000;

/// How long a lock may take.
pub enum Patience {
    /// Not at all.
    Try,
    /// Until this virtual time; `None` for ever.
    Until(Option<u64>),
}

impl Patience {
    fn flags(&self) -> u32 {
        match self {
            Patience::Until(None) => 0,
            Patience::Try | Patience::Until(Some(_)) => lock::BY_TRY,
        }
    }
}

/// A new object.
pub fn define(address: u64, model: Model) -> u32 {
    let scheduler = scheduler();
    scheduler.objects.define(&mut scheduler.ring, address, model)
}

/// An object is destroyed; the real function has its say too.
pub fn destroy(call: &mut Call<'_>) -> Then {
    call.point();
    if let Some(number) = scheduler().objects.at(call.argument(0)) {
        if let Model::Mutex(_, Some(_), _) = scheduler().objects.model(number) {
            return Then::Return(libc::EBUSY.into());
        }
        call.event(Kind::Destroy, 0, &[number.into()]);
        scheduler().objects.forget(call.argument(0));
    }
    Then::Run
}

/// glibc keeps in a mutex what kind it is: type in bits 0..2, robust 16, shared with others 128.
fn glibc_kind(address: u64) -> u32 {
    let offset = if machine() == Machine::Arm { 12 } else { 16 };
    peek(address + offset, 4) as u32
}

fn kind_of(code: u32) -> ObjectKind {
    match code & 3 {
        1 => ObjectKind::RecursiveMutex,
        2 => ObjectKind::ErrorCheckingMutex,
        _ => ObjectKind::Mutex,
    }
}

/// Whether the scheduler alone can model the mutex: not if other processes see it, and not if the
/// kernel gives it on when its owner dies.
pub fn is_modelled(address: u64) -> bool {
    let modelled = glibc_kind(address) & (16 | 128) == 0;
    if !modelled {
        let what = "mutexes that are robust, or shared with other processes: torn blocks and races are not looked for";
        scheduler().lacks_once(gap::UNKNOWN_LOCKS, what);
    }
    modelled
}

/// The number of the mutex.
pub fn mutex(address: u64) -> u32 {
    let scheduler = scheduler();
    scheduler.objects.number(
        &mut scheduler.ring,
        address,
        |model| matches!(model, Model::Mutex(..)),
        || Model::Mutex(kind_of(glibc_kind(address)), None, 0),
    )
}

/// The number of a lock that is always a plain one.
pub fn spin(address: u64) -> u32 {
    let scheduler = scheduler();
    scheduler.objects.number(
        &mut scheduler.ring,
        address,
        |model| matches!(model, Model::Mutex(..)),
        || Model::Mutex(ObjectKind::Mutex, None, 0),
    )
}

/// Whether the C library has one function that makes a spin lock and frees it, as on x86-64: which of the two is
/// meant, the lock says.
fn is_freed_like_new() -> bool {
    machine() == Machine::X86
}

/// Whether somebody has the spin lock.
fn is_held(call: &mut Call<'_>) -> bool {
    let objects = &mut scheduler().objects;
    let number = objects.at(call.argument(0));
    number.is_some_and(|number| matches!(objects.model(number), Model::Mutex(_, Some(_), _)))
}

fn new_spin(call: &mut Call<'_>) -> Then {
    define(call.argument(0), Model::Mutex(ObjectKind::Mutex, None, 0));
    Then::Run
}

fn free_spin(call: &mut Call<'_>) -> Then {
    let number = spin(call.argument(0));
    Then::Return(release(call, number).into())
}

/// The state of a mutex: its kind, holder and depth.
pub fn state(number: u32) -> (ObjectKind, &'static mut Option<u32>, &'static mut u32) {
    match scheduler().objects.model(number) {
        Model::Mutex(kind, owner, depth) => (*kind, owner, depth),
        _ => unreachable!("numbers of mutexes name mutexes"),
    }
}

/// What C11's functions say of a failure: glibc's `thrd_busy`, `thrd_error` and `thrd_timedout`.
pub fn of_c11(then: Then) -> Then {
    match then {
        Then::Return(0) => then,
        Then::Return(error) if error == i64::from(libc::EBUSY) => Then::Return(1),
        Then::Return(error) if error == i64::from(libc::ETIMEDOUT) => Then::Return(4),
        Then::Return(_) => Then::Return(2),
        Then::Run | Then::RunAnd(..) => then,
    }
}

fn lock(call: &mut Call<'_>, patience: Patience) -> Then {
    if !is_modelled(call.argument(0)) {
        return Then::Run;
    }
    let number = mutex(call.argument(0));
    Then::Return(acquire(call, number, &patience).into())
}

/// Takes the mutex, when and as a log that is followed says.
pub fn acquire(call: &mut Call<'_>, number: u32, patience: &Patience) -> i32 {
    const LOCKS: [Logged; 2] = [Logged::Lock, Logged::LockFailed];
    call.point();
    let result = match follow::next(call.me, &LOCKS) {
        None => take(call, number, patience, patience.flags()),
        // When it failed is not in the log: there is an event only if it would fail now too.
        Some((Logged::LockFailed, error)) => {
            call.me.follows.pass();
            match state(number).1 {
                Some(_) => failed(call, number, lock::BY_TRY, error as i32),
                None => error as i32,
            }
        }
        Some(_) => {
            follow::await_place(call.me, number, &LOCKS);
            let result = take(call, number, &Patience::Until(None), patience.flags());
            follow::done(call.me, number);
            result
        }
    };
    call.point();
    result
}

/// Nobody gets the lock.
fn failed(call: &mut Call<'_>, number: u32, flags: u32, error: i32) -> i32 {
    call.record(0, &record::AcquireFailed { object: number, flags });
    error
}

/// Takes the mutex.
pub fn take(call: &mut Call<'_>, number: u32, patience: &Patience, flags: u32) -> i32 {
    let me = call.me.number;
    loop {
        let (kind, owner, _) = state(number);
        match (*owner, patience) {
            (None, _) => break,
            (Some(owner), _) if owner == me && kind == ObjectKind::RecursiveMutex => break,
            (Some(_), Patience::Try) => return failed(call, number, lock::BY_TRY, libc::EBUSY),
            (Some(owner), _) if owner == me && kind == ObjectKind::ErrorCheckingMutex => {
                return failed(call, number, 0, libc::EDEADLK);
            }
            (Some(_), Patience::Until(deadline)) => {
                let late = scheduler::block(call.me, Wait::Object(number), *deadline);
                if late && state(number).1.is_some() {
                    return failed(call, number, lock::BY_TRY, libc::ETIMEDOUT);
                }
            }
        }
    }
    let (_, owner, depth) = state(number);
    *owner = Some(me);
    *depth += 1;
    call.record(0, &record::Acquire { object: number, flags });
    0
}

/// Gives the mutex back. A plain mutex may be given back by a thread that did not take it.
pub fn release(call: &mut Call<'_>, number: u32) -> i32 {
    call.point();
    let (kind, owner, depth) = state(number);
    let plain = kind == ObjectKind::Mutex;
    if owner.is_none() || (*owner != Some(call.me.number) && !plain) {
        call.event(Kind::ReleaseFailed, 0, &[number.into()]);
        call.point();
        return if plain { 0 } else { libc::EPERM };
    }
    *depth -= 1;
    if *depth == 0 {
        *owner = None;
    }
    call.event(Kind::Release, 0, &[number.into()]);
    scheduler::wake(Wait::Object(number));
    call.point();
    0
}

fn rwlock(address: u64) -> u32 {
    let scheduler = scheduler();
    scheduler.objects.number(
        &mut scheduler.ring,
        address,
        |model| matches!(model, Model::ReaderWriter(..)),
        || Model::ReaderWriter(None, Vec::new()),
    )
}

fn holders(number: u32) -> (&'static mut Option<u32>, &'static mut Vec<u32>) {
    match scheduler().objects.model(number) {
        Model::ReaderWriter(writer, readers) => (writer, readers),
        _ => unreachable!("numbers of reader-writer locks name reader-writer locks"),
    }
}

/// Takes a reader-writer lock. Readers come before waiting writers, as in glibc by default.
fn share(call: &mut Call<'_>, shared: bool, patience: Patience) -> Then {
    const LOCKS: [Logged; 2] = [Logged::ReaderWriter, Logged::ReaderWriterFailed];
    call.point();
    let (me, number) = (call.me.number, rwlock(call.argument(0)));
    let mode = if shared { lock::SHARED } else { 0 };
    let flags = patience.flags() | mode;
    let is_free = || {
        let (writer, readers) = holders(number);
        writer.is_none() && (shared || readers.is_empty())
    };
    let error = match follow::next(call.me, &LOCKS) {
        Some((Logged::ReaderWriterFailed, error)) => {
            call.me.follows.pass();
            if is_free() {
                return Then::Return((error as i32).into());
            }
            Some((patience.flags(), error as i32))
        }
        Some(_) => {
            while !is_free() || !follow::may(call.me, number, &LOCKS) {
                scheduler::block(call.me, Wait::Object(number), None);
            }
            None
        }
        None => loop {
            if is_free() {
                break None;
            }
            match patience {
                Patience::Try => break Some((lock::BY_TRY, libc::EBUSY)),
                Patience::Until(_) if *holders(number).0 == Some(me) => {
                    break Some((0, libc::EDEADLK));
                }
                Patience::Until(deadline) => {
                    let late = scheduler::block(call.me, Wait::Object(number), deadline);
                    if late && !is_free() {
                        break Some((lock::BY_TRY, libc::ETIMEDOUT));
                    }
                }
            }
        },
    };
    if let Some((by_try, error)) = error {
        failed(call, number, by_try | mode, error);
        call.point();
        return Then::Return(error.into());
    }
    let (writer, readers) = holders(number);
    match shared {
        true => readers.push(me),
        false => *writer = Some(me),
    }
    follow::done(call.me, number);
    call.record(0, &record::Acquire { object: number, flags });
    call.point();
    Then::Return(0)
}

fn unshare(call: &mut Call<'_>) -> Then {
    call.point();
    let (me, number) = (call.me.number, rwlock(call.argument(0)));
    let (writer, readers) = holders(number);
    let reader = readers.iter().position(|&reader| reader == me);
    let mode = match (&*writer, reader) {
        (Some(owner), _) if *owner == me => {
            *writer = None;
            0
        }
        (_, Some(place)) => {
            readers.remove(place);
            lock::SHARED
        }
        _ => {
            call.event(Kind::ReleaseFailed, 0, &[number.into()]);
            call.point();
            return Then::Return(0);
        }
    };
    call.record(0, &record::Release { object: number, flags: mode });
    scheduler::wake(Wait::Object(number));
    call.point();
    Then::Return(0)
}
