//! Mutexes and spin locks.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use foretell_wire::outside::Cause;
use foretell_wire::sync_log::Kind as Logged;
use foretell_wire::{Kind, ObjectKind, lock};
use libc::{c_int, clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};

use super::destroyed;
use super::time::deadline_of;
use crate::objects::{self, Model, Mutex, Object};
use crate::outside;
use crate::real::{interpose, real};
use crate::replay;
use crate::scheduler;
use crate::thread::{Session, Wait};

/// The kind that glibc keeps in the mutex: type in bits 0..2, robust 16, inheriting 32, protecting
/// 64, shared with other processes 128.
unsafe fn glibc_kind(mutex: *const pthread_mutex_t) -> c_int {
    // SAFETY: glibc's layout on x86-64: lock, count, owner, users, kind.
    unsafe { mutex.cast::<c_int>().add(4).read() }
}

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
    Model::Mutex(Mutex { kind, owner: None, depth: 0, destroyed: false })
}

/// The model of the mutex; made at first use, as mutexes need no call to be initialised.
pub fn object(mutex: *const pthread_mutex_t) -> &'static mut Object {
    // What was destroyed and does not look so any more was initialised by an assignment.
    // SAFETY: the program uses it as a mutex.
    let looks_destroyed = unsafe { glibc_kind(mutex) } == DESTROYED;
    objects::get(
        mutex as u64,
        |model| matches!(model, Model::Mutex(mutex) if !mutex.destroyed || looks_destroyed),
        // SAFETY: the program uses it as a mutex.
        || unlocked(kind(unsafe { glibc_kind(mutex) })),
    )
}

/// The mutex behind an object's number.
pub fn state(number: u32) -> &'static mut Mutex {
    match &mut objects::by_number(number).model {
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
    let me = session.me.number;
    let by_try = matches!(patience, Patience::Try);
    let flags = match patience {
        Patience::Until(None) => 0,
        Patience::Try | Patience::Until(Some(_)) => lock::BY_TRY,
    };
    let failed = |session: &mut Session, flags: u32, error: c_int| {
        replay::pass(session.me);
        session.event(Kind::AcquireFailed, 0, [u64::from(number) | u64::from(flags) << 32]);
        session.point();
        error
    };
    loop {
        let logged = replay::peek(session.me, &LOCKS);
        match logged {
            // When it failed is not in the log: there is an event only if it would fail now too.
            Some((Logged::LockFailed, error)) if state(number).owner.is_none() => {
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
        let mutex = state(number);
        match mutex.owner {
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
                    && state(number).owner.is_some()
                {
                    return failed(session, lock::BY_TRY, libc::ETIMEDOUT);
                }
            }
        }
    }
    let mutex = state(number);
    mutex.owner = Some(me);
    mutex.depth += 1;
    replay::done(session.me, number);
    session.event(Kind::Acquire, 0, [u64::from(number) | u64::from(flags) << 32]);
    session.point();
    0
}

/// Gives the mutex back. A plain mutex may be given back by a thread that did not take it.
pub fn release(session: &mut Session, number: u32) -> c_int {
    session.point();
    let mutex = state(number);
    let plain = mutex.kind == ObjectKind::Mutex;
    if mutex.owner.is_none() || (mutex.owner != Some(session.me.number) && !plain) {
        session.event(Kind::ReleaseFailed, 0, [number.into()]);
        session.point();
        return if plain { 0 } else { libc::EPERM };
    }
    mutex.depth -= 1;
    if mutex.depth == 0 {
        mutex.owner = None;
    }
    session.event(Kind::Release, 0, [number.into()]);
    scheduler::wake(Wait::Object(number));
    session.point();
    0
}

/// Whether the scheduler alone can model the mutex: not if other processes see it, and not if the
/// kernel gives it on when its owner dies.
pub unsafe fn modelled(mutex: *const pthread_mutex_t) -> bool {
    const ROBUST: c_int = 16;
    const SHARED: c_int = 128;
    // SAFETY: the program uses it as a mutex.
    let kind = unsafe { glibc_kind(mutex) };
    kind == DESTROYED || kind & (ROBUST | SHARED) == 0
}

/// Takes a mutex that the scheduler alone cannot model: the real one decides, the model follows.
pub unsafe fn acquire_real(
    session: &mut Session,
    mutex: *mut pthread_mutex_t,
    patience: Patience,
) -> c_int {
    session.point();
    let me = session.me.number;
    let object = object(mutex);
    object.shared = true;
    let number = object.number;
    let by_try = if matches!(patience, Patience::Try) { lock::BY_TRY } else { 0 };
    let failed = |session: &mut Session, error: c_int| {
        if state(number).owner.is_some() {
            let flags = u64::from(lock::BY_TRY) << 32;
            session.event(Kind::AcquireFailed, 0, [u64::from(number) | flags]);
            session.point();
        }
        error
    };
    loop {
        match real!(pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int) {
            result @ (0 | libc::EOWNERDEAD) => {
                let state = state(number);
                state.owner = Some(me);
                state.depth += 1;
                HELD.store(true, Relaxed);
                session.event(Kind::Acquire, 0, [u64::from(number) | u64::from(by_try) << 32]);
                session.point();
                return result;
            }
            libc::EBUSY => {}
            error => return error,
        }
        let state = state(number);
        match patience {
            Patience::Try => return failed(session, libc::EBUSY),
            _ if state.owner == Some(me) && state.kind == ObjectKind::ErrorCheckingMutex => {
                return failed(session, libc::EDEADLK);
            }
            Patience::Until(deadline) => {
                if state.owner.is_none() {
                    outside::note(me, Cause::SharedObject, 0, "a mutex", session.place);
                }
                let late = scheduler::block(session.me, Wait::Object(number), deadline);
                if late && !objects::is_free(number) {
                    return failed(session, libc::ETIMEDOUT);
                }
            }
        }
    }
}

/// Gives back what [`acquire_real`] took.
pub unsafe fn release_real(session: &mut Session, mutex: *mut pthread_mutex_t) -> c_int {
    session.point();
    let result = real!(pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int);
    let number = object(mutex).number;
    let state = state(number);
    if result == 0 && state.owner == Some(session.me.number) {
        state.depth -= 1;
        if state.depth == 0 {
            state.owner = None;
        }
        session.event(Kind::Release, 0, [number.into()]);
        scheduler::wake(Wait::Object(number));
        session.point();
    }
    result
}

/// A mutex was taken by [`acquire_real`].
static HELD: AtomicBool = AtomicBool::new(false);

/// The thread ends: the kernel gives on the robust mutexes that it holds.
pub fn owner_dies(session: &mut Session) {
    if !HELD.load(Relaxed) {
        return;
    }
    let me = session.me.number;
    for number in 0..objects::count() {
        let object = objects::by_number(number);
        // SAFETY: a mutex that somebody holds.
        let robust = |mutex| unsafe { glibc_kind(mutex as *const pthread_mutex_t) & 16 != 0 };
        if let Model::Mutex(mutex) = &mut object.model
            && object.shared
            && mutex.owner == Some(me)
            && robust(object.address)
        {
            mutex.owner = None;
            let depth = std::mem::take(&mut mutex.depth);
            (0..depth).for_each(|_| session.event(Kind::Release, 0, [number.into()]));
        }
    }
}

interpose! {
    fn pthread_mutex_init(
        mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t,
    ) -> c_int {
        let result = real!(pthread_mutex_init(
            mutex: *mut pthread_mutex_t, attributes: *const pthread_mutexattr_t) -> c_int);
        if result == 0 && let Some(_session) = Session::begin() {
            objects::define(mutex as u64, unlocked(kind(glibc_kind(mutex))));
        }
        result
    }

    fn pthread_mutex_destroy as destroy(mutex: *mut pthread_mutex_t) -> c_int {
        if let Some(mut session) = Session::begin() {
            let number = object(mutex).number;
            destroyed(&mut session, number);
            if state(number).owner.is_some() {
                return libc::EBUSY;
            }
            state(number).destroyed = true;
        }
        real!(pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int)
    }

    fn pthread_mutex_lock as lock_mutex or crate::sync_only::lock_freely,
        (mutex: *mut pthread_mutex_t) -> c_int {
        match Session::begin() {
            None => crate::sync_only::mutex_lock(mutex),
            Some(mut session) if modelled(mutex) => {
                acquire(&mut session, object(mutex).number, Patience::Until(None))
            }
            Some(mut session) => acquire_real(&mut session, mutex, Patience::Until(None)),
        }
    }

    fn pthread_mutex_trylock as try_lock(mutex: *mut pthread_mutex_t) -> c_int {
        match Session::begin() {
            None => crate::sync_only::mutex_trylock(mutex),
            Some(mut session) if modelled(mutex) => {
                acquire(&mut session, object(mutex).number, Patience::Try)
            }
            Some(mut session) => acquire_real(&mut session, mutex, Patience::Try),
        }
    }

    fn pthread_mutex_timedlock as timed_lock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int {
        match Session::begin() {
            None => crate::sync_only::mutex_timedlock(mutex, until),
            Some(mut session) if modelled(mutex) => {
                let deadline = deadline_of(libc::CLOCK_REALTIME, until);
                acquire(&mut session, object(mutex).number, Patience::Until(Some(deadline)))
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
                acquire(&mut session, object(mutex).number, Patience::Until(Some(deadline)))
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
                release(&mut session, object(mutex).number)
            }
            Some(mut session) => release_real(&mut session, mutex),
        }
    }

    fn pthread_spin_init(lock: *mut c_int, shared: c_int) -> c_int {
        if let Some(_session) = Session::begin() {
            objects::define(lock as u64, unlocked(ObjectKind::Mutex));
        }
        real!(pthread_spin_init(lock: *mut c_int, shared: c_int) -> c_int)
    }

    fn pthread_spin_destroy(lock: *mut c_int) -> c_int {
        if let Some(mut session) = Session::begin() {
            destroyed(&mut session, spin(lock).number);
            objects::bury(lock as u64);
        }
        real!(pthread_spin_destroy(lock: *mut c_int) -> c_int)
    }

    fn pthread_spin_lock(lock: *mut c_int) -> c_int {
        match Session::begin() {
            None => crate::sync_only::spin_lock(lock),
            Some(mut session) => {
                acquire(&mut session, spin(lock).number, Patience::Until(None))
            }
        }
    }

    fn pthread_spin_trylock(lock: *mut c_int) -> c_int {
        match Session::begin() {
            None => crate::sync_only::spin_trylock(lock),
            Some(mut session) => acquire(&mut session, spin(lock).number, Patience::Try),
        }
    }

    fn pthread_spin_unlock(lock: *mut c_int) -> c_int {
        match Session::begin() {
            None => crate::sync_only::spin_unlock(lock),
            Some(mut session) => release(&mut session, spin(lock).number),
        }
    }
}

fn spin(lock: *mut c_int) -> &'static mut Object {
    let fits = |model: &Model| matches!(model, Model::Mutex(_));
    objects::get(lock as u64, fits, || unlocked(ObjectKind::Mutex))
}
