//! Mutexes and spin locks.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

use foretell_wire::outside::Cause;
use foretell_wire::record;
use foretell_wire::sync_log::Kind as Logged;
use foretell_wire::{Kind, ObjectKind, await_mark, lock};
use libc::{c_int, clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};

use super::destroyed;
use super::time::deadline_of;
use crate::channels;
use crate::hooks;
use crate::look;
use crate::objects::{self, Left, Model, Mutex, Object};
use crate::outside;
use crate::real::{interpose, real};
use crate::replay;
use crate::scheduler;
use crate::sys;
use crate::thread::{Session, Wait};
use crate::turn::Turn;

/// The kind that glibc keeps in the mutex: type in bits 0..2, robust 16, inheriting 32, protecting
/// 64, shared with other processes 128.
unsafe fn glibc_kind(mutex: *const pthread_mutex_t) -> c_int {
    // SAFETY: glibc's layout on x86-64: lock, count, owner, users, kind.
    unsafe { mutex.cast::<c_int>().add(4).read() }
}

const ROBUST: c_int = 16;
const SHARED: c_int = 128;

/// What glibc leaves in a mutex that was destroyed.
const DESTROYED: c_int = -1;

fn kind(code: c_int) -> ObjectKind {
    match code & 3 {
        1 => ObjectKind::RecursiveMutex,
        2 => ObjectKind::ErrorCheckingMutex,
        _ => ObjectKind::Mutex,
    }
}

/// A mutex that nobody has.
pub fn unlocked(kind: ObjectKind) -> Model {
    Model::Mutex(Mutex {
        kind,
        owner: Cell::new(None),
        depth: Cell::new(0),
        destroyed: Cell::new(false),
        left: Cell::new(Left::Consistent),
    })
}

/// The model of the mutex; made at first use, as mutexes need no call to be initialised.
pub fn object(turn: Turn, mutex: *const pthread_mutex_t) -> &'static Object {
    // What was destroyed and does not look so any more was initialised by an assignment.
    // SAFETY: the program uses it as a mutex.
    let looks_destroyed = unsafe { glibc_kind(mutex) } == DESTROYED;
    objects::get(
        turn,
        mutex as u64,
        |model| matches!(model, Model::Mutex(mutex) if !mutex.destroyed.get() || looks_destroyed),
        // SAFETY: the program uses it as a mutex.
        || unlocked(kind(unsafe { glibc_kind(mutex) })),
    )
}

/// The mutex behind an object's number.
pub fn state(turn: Turn, number: u32) -> &'static Mutex {
    match &objects::by_number(turn, number).model {
        Model::Mutex(mutex) => mutex,
        _ => unreachable!("numbers of mutexes name mutexes"),
    }
}

/// How long a lock may take.
pub enum Patience {
    /// Not at all.
    Try,
    /// Until this virtual time; `None` for ever.
    Until(Option<u64>),
}

/// The entries of a log that fit a lock.
const LOCKS: [Logged; 2] = [Logged::Lock, Logged::LockFailed];

/// Takes the mutex.
pub fn acquire(session: &mut Session, number: u32, patience: Patience) -> c_int {
    session.point();
    let (me, turn) = (session.me.number, session.turn());
    let by_try = matches!(patience, Patience::Try);
    let flags = match patience {
        Patience::Until(None) => 0,
        Patience::Try | Patience::Until(Some(_)) => lock::BY_TRY,
    };
    let failed = |session: &mut Session, flags: u32, error: c_int| {
        replay::pass(session.me);
        session.record(0, &record::AcquireFailed { object: number, flags });
        session.point();
        error
    };
    loop {
        let logged = replay::peek(session.me, &LOCKS);
        match logged {
            // When it failed is not in the log: there is an event only if it would fail now too.
            Some((Logged::LockFailed, error)) if state(turn, number).owner.get().is_none() => {
                replay::pass(session.me);
                return error as c_int;
            }
            Some((Logged::LockFailed, error)) => {
                return failed(session, lock::BY_TRY, error as c_int);
            }
            Some((_, place)) if !replay::is_due(number, place) => {
                scheduler::block(session.me, Wait::Object(number), None);
                continue;
            }
            _ => {}
        }
        let mutex = state(turn, number);
        match mutex.owner.get() {
            None => break,
            Some(owner) if owner == me && mutex.kind == ObjectKind::RecursiveMutex => break,
            Some(owner)
                if owner == me && mutex.kind == ObjectKind::ErrorCheckingMutex && !by_try =>
            {
                return failed(session, 0, libc::EDEADLK);
            }
            Some(_) => {}
        }
        match patience {
            // The log says that it will be had.
            _ if logged.is_some() => {
                scheduler::block(session.me, Wait::Object(number), None);
            }
            Patience::Try => return failed(session, lock::BY_TRY, libc::EBUSY),
            Patience::Until(deadline) => {
                if scheduler::block(session.me, Wait::Object(number), deadline)
                    && state(turn, number).owner.get().is_some()
                {
                    return failed(session, lock::BY_TRY, libc::ETIMEDOUT);
                }
            }
        }
    }
    state(turn, number).take(me);
    replay::done(session.me, number);
    session.record(0, &record::Acquire { object: number, flags });
    session.point();
    0
}

/// Takes the mutex if it is free; where a loop tries again and again, when it is.
fn try_to_acquire(session: &mut Session, number: u32) -> c_int {
    let look = look::take(session);
    let mutex = state(session.turn(), number);
    // Such a mutex tells its owner.
    let tells = mutex.kind == ObjectKind::ErrorCheckingMutex
        && mutex.owner.get() == Some(session.me.number);
    if look::waits_for_lock(look) && !tells {
        return acquire(session, number, Patience::Until(None));
    }
    let result = acquire(session, number, Patience::Try);
    look::tried(session, look, result);
    result
}

/// Takes all of the mutexes, or waits with none, as `std::lock` does. That one is taken by somebody else is no path
/// of its own: the thread then has not begun yet.
fn acquire_all(session: &mut Session, numbers: &[u32]) {
    loop {
        let turn = session.turn();
        let taken = |number: &&u32| state(turn, **number).owner.get().is_some();
        while let Some(&number) = numbers.iter().find(taken) {
            scheduler::block(session.me, Wait::Object(number), None);
        }
        let mut held = 0;
        for (position, &number) in numbers.iter().enumerate() {
            let patience = if position == 0 { Patience::Until(None) } else { Patience::Try };
            if acquire(session, number, patience) != 0 {
                break;
            }
            if position > 0 {
                session.event(Kind::Await, await_mark::TEST, []);
            }
            held += 1;
        }
        if held == numbers.len() {
            return;
        }
        for &number in numbers[..held].iter().rev() {
            release(session, number);
        }
    }
}

/// Gives the mutex back. A plain mutex may be given back by a thread that did not take it.
pub fn release(session: &mut Session, number: u32) -> c_int {
    session.point();
    let mutex = state(session.turn(), number);
    let plain = mutex.kind == ObjectKind::Mutex;
    let owner = mutex.owner.get();
    if owner.is_none() || (owner != Some(session.me.number) && !plain) {
        session.event(Kind::ReleaseFailed, 0, [number.into()]);
        session.point();
        return if plain { 0 } else { libc::EPERM };
    }
    mutex.give_back();
    session.event(Kind::Release, 0, [number.into()]);
    scheduler::wake(Wait::Object(number));
    session.point();
    0
}

/// Whether the scheduler alone can model the mutex: not if other processes see it, and not if the
/// kernel gives it on when its owner dies.
pub unsafe fn modelled(mutex: *const pthread_mutex_t) -> bool {
    // SAFETY: the program uses it as a mutex.
    let kind = unsafe { glibc_kind(mutex) };
    kind == DESTROYED || kind & (ROBUST | SHARED) == 0
}

/// Whether the kernel gives the mutex on when its owner dies.
unsafe fn is_robust(mutex: *const pthread_mutex_t) -> bool {
    // SAFETY: the program uses it as a mutex.
    unsafe { glibc_kind(mutex) & ROBUST != 0 }
}

/// How the owners of a robust mutex have left it is a variable of the trace: who takes it is told.
fn leave(session: &mut Session, number: u32, left: Left) {
    let before = state(session.turn(), number).left.replace(left);
    if before != left {
        hooks::set(session, left_of(number), before as u32, left as u32);
        session.point();
    }
}

fn left_of(number: u32) -> u64 {
    channels::variable(&[1, number.into()], "owner of a robust mutex")
}

/// Takes a mutex that the scheduler alone cannot model: the real one decides, the model follows.
pub unsafe fn acquire_real(
    session: &mut Session,
    mutex: *mut pthread_mutex_t,
    patience: Patience,
) -> c_int {
    session.point();
    let (me, turn) = (session.me.number, session.turn());
    let object = object(turn, mutex);
    object.shared.set(true);
    let number = object.number;
    let state = state(turn, number);
    let by_try = if matches!(patience, Patience::Try) { lock::BY_TRY } else { 0 };
    let failed = |session: &mut Session, error: c_int| {
        if state.owner.get().is_some() {
            let flags = lock::BY_TRY;
            session.record(0, &record::AcquireFailed { object: number, flags });
            session.point();
        }
        error
    };
    loop {
        match real!(pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int) {
            result @ (0 | libc::EOWNERDEAD) => {
                state.take(me);
                HELD.store(true, Relaxed);
                session.record(0, &record::Acquire { object: number, flags: by_try });
                // SAFETY: as above.
                if unsafe { is_robust(mutex) } {
                    let left = state.left.get() as u32;
                    session.point();
                    hooks::look_at(session, left_of(number), left);
                }
                session.point();
                return result;
            }
            libc::EBUSY => {}
            libc::ENOTRECOVERABLE => {
                hooks::look_at(session, left_of(number), Left::NotRecoverable as u32);
                session.point();
                return libc::ENOTRECOVERABLE;
            }
            error => return error,
        }
        match patience {
            Patience::Try => return failed(session, libc::EBUSY),
            _ if state.owner.get() == Some(me) && state.kind == ObjectKind::ErrorCheckingMutex => {
                return failed(session, libc::EDEADLK);
            }
            Patience::Until(deadline) => {
                if state.owner.get().is_none() {
                    outside::note(me, Cause::SharedObject, 0, "a mutex", session.place);
                }
                let late = scheduler::block(session.me, Wait::Object(number), deadline);
                if late && !objects::is_free(turn, number) {
                    return failed(session, libc::ETIMEDOUT);
                }
            }
        }
    }
}

/// Gives back what [`acquire_real`] took.
pub unsafe fn release_real(session: &mut Session, mutex: *mut pthread_mutex_t) -> c_int {
    session.point();
    let number = object(session.turn(), mutex).number;
    let state = state(session.turn(), number);
    let is_mine = state.owner.get() == Some(session.me.number);
    if is_mine && state.depth.get() == 1 && state.left.get() == Left::OwnerDead {
        // While nobody else can have it.
        leave(session, number, Left::NotRecoverable);
    }
    let result = real!(pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int);
    if result == 0 && is_mine {
        state.give_back();
        session.event(Kind::Release, 0, [number.into()]);
        scheduler::wake(Wait::Object(number));
        session.point();
    }
    result
}

/// A mutex was taken by [`acquire_real`].
static HELD: AtomicBool = AtomicBool::new(false);

/// In the word of a robust mutex, see `linux/futex.h`.
const WAITERS: u32 = 1 << 31;
const OWNER_DIED: u32 = 1 << 30;

/// The thread ends: the robust mutexes that it holds are given on. The kernel would do so when the thread is gone, at
/// a moment that no schedule says, so it is done here.
pub fn owner_dies(session: &mut Session) {
    if !HELD.load(Relaxed) {
        return;
    }
    let (me, turn) = (session.me.number, session.turn());
    let mut died = false;
    for number in 0..objects::count(turn) {
        let object = objects::by_number(turn, number);
        let Model::Mutex(mutex) = &object.model else { continue };
        // SAFETY: a mutex that somebody holds.
        let is_held = object.shared.get()
            && mutex.owner.get() == Some(me)
            && unsafe { is_robust(object.address as *const pthread_mutex_t) };
        if !is_held {
            continue;
        }
        let address = object.address;
        leave(session, number, Left::OwnerDead);
        died = true;
        // SAFETY: the first word of the mutex, which this thread holds.
        let word = unsafe { &*(address as *const AtomicU32) };
        word.store(word.load(Relaxed) & WAITERS | OWNER_DIED, Relaxed);
        let depth = mutex.leave();
        (0..depth).for_each(|_| session.event(Kind::Release, 0, [number.into()]));
        scheduler::wake(Wait::Object(number));
    }
    if died {
        sys::forget_robust_mutexes();
        session.point();
    }
}

interpose! {
    fn pthread_mutex_init(
        mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t,
    ) -> c_int {
        let result = real!(pthread_mutex_init(
            mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t) -> c_int);
        if result == 0 && let Some(session) = Session::begin() {
            objects::define(session.turn(), mutex as u64, unlocked(kind(glibc_kind(mutex))));
        }
        result
    }

    fn pthread_mutex_destroy as destroy(mutex: *mut pthread_mutex_t) -> c_int {
        if let Some(mut session) = Session::begin() {
            session.point();
            let number = object(session.turn(), mutex).number;
            let state = state(session.turn(), number);
            let is_held = state.owner.get().is_some();
            state.destroyed.set(!is_held);
            session.event(Kind::Destroy, 0, [number.into()]);
            session.point();
            if is_held {
                return libc::EBUSY;
            }
        }
        real!(pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int)
    }

    fn pthread_mutex_consistent(mutex: *mut pthread_mutex_t) -> c_int {
        let result = real!(pthread_mutex_consistent(mutex: *mut pthread_mutex_t) -> c_int);
        if result == 0 && let Some(mut session) = Session::begin() {
            let number = object(session.turn(), mutex).number;
            session.point();
            leave(&mut session, number, Left::Consistent);
            session.point();
        }
        result
    }

    fn pthread_mutex_lock as lock_mutex or crate::sync_only::lock_freely,
        (mutex: *mut pthread_mutex_t) -> c_int {
        match Session::begin() {
            None => crate::sync_only::mutex_lock(mutex),
            Some(mut session) if modelled(mutex) => {
                let number = object(session.turn(), mutex).number;
                acquire(&mut session, number, Patience::Until(None))
            }
            Some(mut session) => acquire_real(&mut session, mutex, Patience::Until(None)),
        }
    }

    fn pthread_mutex_trylock as try_lock(mutex: *mut pthread_mutex_t) -> c_int {
        match Session::begin() {
            None => crate::sync_only::mutex_trylock(mutex),
            Some(mut session) if modelled(mutex) => {
                let number = object(session.turn(), mutex).number;
                try_to_acquire(&mut session, number)
            }
            Some(mut session) => acquire_real(&mut session, mutex, Patience::Try),
        }
    }

    fn pthread_mutex_timedlock as timed_lock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int {
        match Session::begin() {
            None => crate::sync_only::mutex_timedlock(mutex, until),
            Some(mut session) if modelled(mutex) => {
                let deadline = deadline_of(libc::CLOCK_REALTIME, until);
                let number = object(session.turn(), mutex).number;
                acquire(&mut session, number, Patience::Until(Some(deadline)))
            }
            Some(mut session) => {
                let deadline = deadline_of(libc::CLOCK_REALTIME, until);
                acquire_real(&mut session, mutex, Patience::Until(Some(deadline)))
            }
        }
    }

    fn pthread_mutex_clocklock(
        mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec,
    ) -> c_int {
        match Session::begin() {
            None => crate::sync_only::mutex_clocklock(mutex, clock, until),
            Some(mut session) if modelled(mutex) => {
                let deadline = deadline_of(clock, until);
                let number = object(session.turn(), mutex).number;
                acquire(&mut session, number, Patience::Until(Some(deadline)))
            }
            Some(mut session) => {
                let deadline = deadline_of(clock, until);
                acquire_real(&mut session, mutex, Patience::Until(Some(deadline)))
            }
        }
    }

    fn pthread_mutex_unlock as unlock or crate::sync_only::unlock_freely,
        (mutex: *mut pthread_mutex_t) -> c_int {
        match Session::begin() {
            None => crate::sync_only::mutex_unlock(mutex),
            Some(mut session) if modelled(mutex) => {
                let number = object(session.turn(), mutex).number;
                release(&mut session, number)
            }
            Some(mut session) => release_real(&mut session, mutex),
        }
    }

    fn foretell_lock_all(mutexes: *const *mut pthread_mutex_t, count: usize) -> () {
        let mutexes = std::slice::from_raw_parts(mutexes, count);
        if let Some(mut session) = Session::begin() {
            let number = |&mutex: &*mut _| object(session.turn(), mutex).number;
            let numbers: Vec<u32> = mutexes.iter().map(number).collect();
            return acquire_all(&mut session, &numbers);
        }
        let Some((&first, others)) = mutexes.split_first() else { return };
        loop {
            crate::sync_only::mutex_lock(first);
            let failed = others.iter().position(|&mutex| crate::sync_only::mutex_trylock(mutex) != 0);
            let Some(failed) = failed else { return };
            for &mutex in others[..failed].iter().chain([&first]) {
                crate::sync_only::mutex_unlock(mutex);
            }
            libc::sched_yield();
        }
    }

    fn pthread_spin_init(lock: *mut c_int, shared: c_int) -> c_int {
        if let Some(session) = Session::begin() {
            objects::define(session.turn(), lock as u64, unlocked(ObjectKind::Mutex));
        }
        real!(pthread_spin_init(lock: *mut c_int, shared: c_int) -> c_int)
    }

    fn pthread_spin_destroy(lock: *mut c_int) -> c_int {
        if let Some(mut session) = Session::begin() {
            let number = spin(session.turn(), lock);
            destroyed(&mut session, number);
            objects::bury(session.turn(), lock as u64);
        }
        real!(pthread_spin_destroy(lock: *mut c_int) -> c_int)
    }

    fn pthread_spin_lock(lock: *mut c_int) -> c_int {
        match Session::begin() {
            None => crate::sync_only::spin_lock(lock),
            Some(mut session) => {
                let number = spin(session.turn(), lock);
                acquire(&mut session, number, Patience::Until(None))
            }
        }
    }

    fn pthread_spin_trylock(lock: *mut c_int) -> c_int {
        match Session::begin() {
            None => crate::sync_only::spin_trylock(lock),
            Some(mut session) => {
                let number = spin(session.turn(), lock);
                try_to_acquire(&mut session, number)
            }
        }
    }

    fn pthread_spin_unlock(lock: *mut c_int) -> c_int {
        match Session::begin() {
            None => crate::sync_only::spin_unlock(lock),
            Some(mut session) => {
                let number = spin(session.turn(), lock);
                release(&mut session, number)
            }
        }
    }
}

fn spin(turn: Turn, lock: *mut c_int) -> u32 {
    at(turn, lock as u64, ObjectKind::Mutex)
}

/// The mutex at an address that is not of the C library, by number.
pub fn at(turn: Turn, address: u64, kind: ObjectKind) -> u32 {
    let fits = |model: &Model| matches!(model, Model::Mutex(_));
    objects::get(turn, address, fits, || unlocked(kind)).number
}
