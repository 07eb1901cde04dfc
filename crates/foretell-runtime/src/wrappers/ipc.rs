//! Message queues, System V semaphores and locks of files.
//!
//! No call waits in the kernel while another thread of the program could run: it is made in a way that
//! does not wait, and if it would have to, the thread waits under the scheduler until another thread has
//! used the same object. When nobody else can run the call is tried again from time to time, because
//! other processes may use the object, too.
//!
//! What they order is recorded as a channel (crate::channels):
//! - a message queue is a queue of messages;
//! - a System V semaphore is a queue in which only the amount counts: raising it sends, lowering it
//!   receives, waiting for zero is a look that finds nothing;
//! - a lock of an open file (`flock`, `F_OFD_SETLK`) is a state that locking and unlocking change.
//!
//! Priorities of messages, full queues, and several operations in one `semop` have no exact counterpart
//! there: those channels keep their recorded order.
//!
//! Locks of the process (`F_SETLK`, `lockf`) never exclude threads of the same process from each other,
//! so they order nothing here.

use std::ffi::c_ulong;

use foretell_wire::outside::Cause;
use libc::{c_int, c_long, c_uint, c_ushort, c_void, off_t, size_t, ssize_t, timespec};

use super::blocking::{outside, when_ready_until, written};
use super::fail;
use super::time::{deadline_in, deadline_of, input};
use crate::channels::descriptors;
use crate::channels::ipc::{self, Lock, Message, Queue, Step, Wanted};
use crate::hooks;
use crate::outside;
use crate::real::{interpose, real};
use crate::scheduler;
use crate::thread::{Session, Wait};

fn error() -> c_int {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() }
}

/// Repeats a call that does not wait until it need not wait, if the program's own call `waits`. Otherwise,
/// and when a signal, a cancellation or the deadline cuts the wait short, the call fails.
fn attempt(
    mut session: Session,
    key: u64,
    waits: bool,
    deadline: Option<u64>,
    call: impl Fn() -> ssize_t,
) -> (Session, ssize_t) {
    session.point();
    loop {
        let result = call();
        let would_wait = result < 0 && matches!(error(), libc::EAGAIN | libc::ENOMSG);
        if !would_wait || !waits {
            return (session, result);
        }
        let late = scheduler::block(session.me, Wait::Kernel(key), deadline);
        if super::threads::is_cancelled(session.me) {
            let session = super::threads::cancellation_point(session);
            return (session, fail(libc::EINTR) as ssize_t);
        }
        if late || session.me.interrupted {
            let error = if late { libc::EAGAIN } else { libc::EINTR };
            return (session, fail(error) as ssize_t);
        }
    }
}

/// The program's memory.
///
/// # Safety
/// It can be read.
unsafe fn bytes<'a>(buffer: *const c_void, count: size_t) -> &'a [u8] {
    if buffer.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(buffer.cast(), count) }
}

// POSIX message queues

fn mq_sent(
    session: Session,
    queue: c_int,
    message: &[u8],
    priority: c_uint,
    deadline: Option<u64>,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let (mut session, result) = when_ready_until(session, queue, libc::POLLOUT, deadline, call);
    if result == 0 {
        let message = Message { kind: priority.into(), bytes: message };
        ipc::sent(&mut session, Queue::Posix(queue), &message);
    }
    input(&mut session, "mq_send", result as u64);
    session.point();
    result
}

/// # Safety
/// As `mq_receive`.
unsafe fn mq_received(
    session: Session,
    queue: c_int,
    buffer: *mut c_void,
    priority: *mut c_uint,
    deadline: Option<u64>,
    call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let (mut session, result) = when_ready_until(session, queue, libc::POLLIN, deadline, call);
    match usize::try_from(result) {
        Ok(length) => {
            ipc::received(&mut session, Queue::Posix(queue), 0, Wanted::Any);
            written(&mut session, buffer as u64, length);
            if !priority.is_null() {
                written(&mut session, priority as u64, size_of::<c_uint>());
            }
        }
        Err(_) if error() == libc::EAGAIN => {
            ipc::found_nothing(&mut session, Queue::Posix(queue), Wanted::Any);
        }
        Err(_) => {}
    }
    input(&mut session, "mq_receive", result as u64);
    session.point();
    result
}

interpose! {
    fn mq_send(queue: c_int, message: *const c_void, size: size_t, priority: c_uint) -> c_int {
        let call = || real!(mq_send(
            queue: c_int, message: *const c_void, size: size_t, priority: c_uint) -> c_int);
        let Some(mut session) = Session::begin() else { return call() };
        hooks::held(&mut session, message as u64, size as u64);
        mq_sent(session, queue, bytes(message, size), priority, None, call)
    }

    fn mq_timedsend(
        queue: c_int, message: *const c_void, size: size_t, priority: c_uint,
        until: *const timespec,
    ) -> c_int {
        let Some(mut session) = Session::begin() else {
            return real!(mq_timedsend(queue: c_int, message: *const c_void, size: size_t,
                priority: c_uint, until: *const timespec) -> c_int);
        };
        hooks::held(&mut session, message as u64, size as u64);
        let limit = (!until.is_null()).then(|| deadline_of(libc::CLOCK_REALTIME, until));
        mq_sent(session, queue, bytes(message, size), priority, limit, || real!(mq_send(
            queue: c_int, message: *const c_void, size: size_t, priority: c_uint) -> c_int))
    }

    fn mq_receive(
        queue: c_int, buffer: *mut c_void, size: size_t, priority: *mut c_uint,
    ) -> ssize_t {
        let call = || real!(mq_receive(
            queue: c_int, buffer: *mut c_void, size: size_t, priority: *mut c_uint) -> ssize_t);
        let Some(session) = Session::begin() else { return call() };
        mq_received(session, queue, buffer, priority, None, call)
    }

    fn mq_timedreceive(
        queue: c_int, buffer: *mut c_void, size: size_t, priority: *mut c_uint,
        until: *const timespec,
    ) -> ssize_t {
        let Some(session) = Session::begin() else {
            return real!(mq_timedreceive(queue: c_int, buffer: *mut c_void, size: size_t,
                priority: *mut c_uint, until: *const timespec) -> ssize_t);
        };
        let limit = (!until.is_null()).then(|| deadline_of(libc::CLOCK_REALTIME, until));
        mq_received(session, queue, buffer, priority, limit, || real!(mq_receive(
            queue: c_int, buffer: *mut c_void, size: size_t, priority: *mut c_uint) -> ssize_t))
    }

    fn mq_notify(queue: c_int, event: *const c_void) -> c_int {
        if let Some(session) = Session::begin() {
            outside::note(session.me.number, Cause::PassedCall, 0, "mq_notify", session.place);
        }
        real!(mq_notify(queue: c_int, event: *const c_void) -> c_int)
    }
}

// System V message queues

/// A message of the program: its type, then its text.
const HEAD: usize = size_of::<c_long>();

interpose! {
    fn msgget(key: libc::key_t, flags: c_int) -> c_int {
        let result = real!(msgget(key: libc::key_t, flags: c_int) -> c_int);
        if result >= 0 && key == libc::IPC_PRIVATE && let Some(session) = Session::begin() {
            ipc::made(&session, Queue::SystemV(result).key());
        }
        result
    }

    fn msgsnd(queue: c_int, message: *const c_void, size: size_t, flags: c_int) -> c_int {
        let Some(mut session) = Session::begin() else {
            return real!(msgsnd(
                queue: c_int, message: *const c_void, size: size_t, flags: c_int) -> c_int);
        };
        hooks::held(&mut session, message as u64, (HEAD + size) as u64);
        let key = Queue::SystemV(queue).key();
        let (waits, flags) = (flags & libc::IPC_NOWAIT == 0, flags | libc::IPC_NOWAIT);
        let (mut session, result) = attempt(session, key, waits, None, || real!(msgsnd(
            queue: c_int, message: *const c_void, size: size_t, flags: c_int) -> c_int) as ssize_t);
        if result == 0 {
            let kind = message.cast::<c_long>().read_unaligned() as u64;
            let text = bytes(message.byte_add(HEAD), size);
            ipc::sent(&mut session, Queue::SystemV(queue), &Message { kind, bytes: text });
            scheduler::wake(Wait::Kernel(key));
        }
        input(&mut session, "msgsnd", result as u64);
        session.point();
        result as c_int
    }

    fn msgrcv(
        queue: c_int, message: *mut c_void, size: size_t, kind: c_long, flags: c_int,
    ) -> ssize_t {
        let Some(session) = Session::begin() else {
            return real!(msgrcv(queue: c_int, message: *mut c_void, size: size_t, kind: c_long,
                flags: c_int) -> ssize_t);
        };
        let key = Queue::SystemV(queue).key();
        let wanted = match kind {
            1.. if flags & libc::MSG_EXCEPT == 0 => Wanted::Type(kind as u64),
            _ => Wanted::Any,
        };
        let (waits, flags) = (flags & libc::IPC_NOWAIT == 0, flags | libc::IPC_NOWAIT);
        let (mut session, result) = attempt(session, key, waits, None, || real!(msgrcv(
            queue: c_int, message: *mut c_void, size: size_t, kind: c_long, flags: c_int) -> ssize_t));
        match usize::try_from(result) {
            Ok(length) => {
                let kind = message.cast::<c_long>().read_unaligned() as u64;
                ipc::received(&mut session, Queue::SystemV(queue), kind, wanted);
                scheduler::wake(Wait::Kernel(key));
                written(&mut session, message as u64, HEAD + length);
            }
            Err(_) if error() == libc::ENOMSG => {
                ipc::found_nothing(&mut session, Queue::SystemV(queue), wanted);
            }
            Err(_) => {}
        }
        input(&mut session, "msgrcv", result as u64);
        session.point();
        result
    }

    fn msgctl(queue: c_int, command: c_int, buffer: *mut c_void) -> c_int {
        let Some(mut session) = Session::begin() else {
            return real!(msgctl(queue: c_int, command: c_int, buffer: *mut c_void) -> c_int);
        };
        session.point();
        let result = real!(msgctl(queue: c_int, command: c_int, buffer: *mut c_void) -> c_int);
        if command == libc::IPC_RMID {
            scheduler::wake(Wait::Kernel(Queue::SystemV(queue).key()));
        }
        session.point();
        result
    }
}

// System V semaphores

/// # Safety
/// As `semop`.
unsafe fn semaphores_changed(
    session: Session,
    set: c_int,
    operations: *mut libc::sembuf,
    count: size_t,
    limit: Option<u64>,
) -> c_int {
    // SAFETY: the program's operations.
    let asked: Vec<libc::sembuf> = match operations.is_null() {
        true => Vec::new(),
        false => unsafe { std::slice::from_raw_parts(operations, count.min(512)) }.to_vec(),
    };
    let now = libc::IPC_NOWAIT as i16;
    let waits = !asked.iter().any(|operation| operation.sem_flg & now != 0);
    let mut tried = asked.clone();
    tried.iter_mut().for_each(|operation| operation.sem_flg |= now);
    let operations: *mut libc::sembuf = tried.as_mut_ptr();
    let key = ipc::set_key(set);
    let mut session = session;
    ipc::about_to_use(&mut session, set, asked.iter().map(|operation| operation.sem_num));
    let (mut session, result) = attempt(session, key, waits, limit, || {
        real!(semop(set: c_int, operations: *mut libc::sembuf, count: size_t) -> c_int) as ssize_t
    });
    let step = |one: &libc::sembuf| (one.sem_num, Step::from(one.sem_op));
    let steps: Vec<(c_ushort, Step)> = asked.iter().map(step).collect();
    if result == 0 {
        ipc::changed(&mut session, set, &steps);
        scheduler::wake(Wait::Kernel(key));
    } else if error() == libc::EAGAIN {
        ipc::not_changed(&mut session, set, &steps);
    }
    input(&mut session, "semop", result as u64);
    session.point();
    result as c_int
}

interpose! {
    fn semget(key: libc::key_t, count: c_int, flags: c_int) -> c_int {
        let result = real!(semget(key: libc::key_t, count: c_int, flags: c_int) -> c_int);
        if result >= 0 && key == libc::IPC_PRIVATE && let Some(session) = Session::begin() {
            ipc::made(&session, ipc::set_key(result));
        }
        result
    }

    fn semop(set: c_int, operations: *mut libc::sembuf, count: size_t) -> c_int {
        match Session::begin() {
            None => real!(semop(
                set: c_int, operations: *mut libc::sembuf, count: size_t) -> c_int),
            Some(session) => semaphores_changed(session, set, operations, count, None),
        }
    }

    fn semtimedop(
        set: c_int, operations: *mut libc::sembuf, count: size_t, limit: *const timespec,
    ) -> c_int {
        let Some(session) = Session::begin() else {
            return real!(semtimedop(set: c_int, operations: *mut libc::sembuf, count: size_t,
                limit: *const timespec) -> c_int);
        };
        let limit = (!limit.is_null()).then(|| deadline_in(limit));
        semaphores_changed(session, set, operations, count, limit)
    }

    // Its last argument is a union of an integer and pointers.
    fn semctl(set: c_int, number: c_int, command: c_int, argument: c_ulong) -> c_int {
        let call = || real!(semctl(
            set: c_int, number: c_int, command: c_int, argument: c_ulong) -> c_int);
        let Some(mut session) = Session::begin() else { return call() };
        session.point();
        let (me, place) = (session.me.number, session.place);
        match command {
            libc::SETVAL => {
                let number = number as c_ushort;
                ipc::about_to_use(&mut session, set, [number]);
                let before = ipc::value(set, number);
                let result = call();
                if result == 0 {
                    ipc::set_to(&mut session, set, number, before, argument & 0xffff);
                    scheduler::wake(Wait::Kernel(ipc::set_key(set)));
                }
                session.point();
                return result;
            }
            libc::GETVAL => {
                let result = call();
                ipc::looked(&mut session, set, number as c_ushort);
                input(&mut session, "semctl", result as u64);
                session.point();
                return result;
            }
            libc::SETALL | libc::GETALL | libc::GETNCNT | libc::GETZCNT if !ipc::alone() => {
                outside::note(me, Cause::PassedCall, 0, "semctl", place);
            }
            _ => {}
        }
        let result = call();
        if matches!(command, libc::IPC_RMID | libc::SETALL) {
            scheduler::wake(Wait::Kernel(ipc::set_key(set)));
        }
        session.point();
        result
    }
}

// Locks of files

/// Locks or unlocks a file by a call that does not wait.
fn locked(
    session: Session,
    file: c_int,
    lock: Lock,
    waits: bool,
    call: impl Fn() -> c_int,
) -> c_int {
    let Some(key) = ipc::lock_key(file) else { return call() };
    let (mut session, result) = attempt(session, key, waits, None, || call() as ssize_t);
    if result == 0 {
        ipc::locked(&mut session, key, lock);
        scheduler::wake(Wait::Kernel(key)); // even locking may free it: for readers
    } else if error() == libc::EAGAIN {
        ipc::lock_refused(&mut session, key);
    }
    session.point();
    result as c_int
}

/// Locks a file for the process; only another process can make it wait.
fn locked_for_process(
    session: Session,
    name: &str,
    try_now: impl FnOnce() -> c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let result = try_now();
    if result == 0 || !matches!(error(), libc::EAGAIN | libc::EACCES) {
        return result;
    }
    outside::note(session.me.number, Cause::PassedCall, 0, name, session.place);
    let (mut session, result) = outside(session, call);
    input(&mut session, name, result as u64);
    session.point();
    result
}

macro_rules! controls {
    ($($name:ident;)*) => {
        interpose! {$(
            // Its last argument is an integer or a pointer.
            fn $name(file: c_int, command: c_int, argument: c_ulong) -> c_int {
                let call = |command: c_int| real!($name(
                    file: c_int, command: c_int, argument: c_ulong) -> c_int);
                let is_lock =
                    matches!(command, libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW);
                let Some(mut session) = Session::begin() else { return call(command) };
                match command {
                    libc::F_SETFD | libc::F_SETFL => descriptors::changes(&mut session, file),
                    libc::F_GETFD | libc::F_GETFL => descriptors::looks(&mut session, file),
                    _ => {}
                }
                if !is_lock {
                    return call(command);
                }
                if command == libc::F_SETLKW {
                    return locked_for_process(
                        session, "fcntl", || call(libc::F_SETLK), || call(command));
                }
                let lock = match (*(argument as *const libc::flock)).l_type as c_int {
                    libc::F_UNLCK => Lock::Released,
                    _ => Lock::Taken,
                };
                let waits = command == libc::F_OFD_SETLKW;
                locked(session, file, lock, waits, || call(libc::F_OFD_SETLK))
            }
        )*}
    };
}

controls! {
    fcntl;
    fcntl64;
}

interpose! {
    fn flock(file: c_int, operation: c_int) -> c_int {
        let Some(session) = Session::begin() else {
            return real!(flock(file: c_int, operation: c_int) -> c_int);
        };
        let waits = operation & libc::LOCK_NB == 0;
        let lock = if operation & libc::LOCK_UN == 0 { Lock::Taken } else { Lock::Released };
        let operation = operation | libc::LOCK_NB;
        locked(session, file, lock, waits, || real!(flock(file: c_int, operation: c_int) -> c_int))
    }

    fn lockf(file: c_int, operation: c_int, length: off_t) -> c_int {
        let call = |operation: c_int| real!(lockf(
            file: c_int, operation: c_int, length: off_t) -> c_int);
        match Session::begin() {
            Some(session) if operation == libc::F_LOCK => {
                locked_for_process(session, "lockf", || call(libc::F_TLOCK), || call(operation))
            }
            _ => call(operation),
        }
    }
}
