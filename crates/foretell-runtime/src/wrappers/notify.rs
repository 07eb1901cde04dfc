//! Timers and asynchronous input and output whose end is told by a call (`SIGEV_THREAD`).
//!
//! libc makes a thread of its own for the call, unseen. Here it is a thread of the program that is
//! created where the timer is set or the request is made, and waits outside the scheduler until libc
//! calls the function: so it is known that it may still come, and what came before is before it.

use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::SeqCst;

use foretell_wire::Kind;
use foretell_wire::outside::Cause;
use libc::{c_int, c_void, sigevent, sigval};

use crate::fiber;
use crate::local;
use crate::outside;
use crate::real::{interpose, real};
use crate::recorder::head;
use crate::scheduler;
use crate::sys;
use crate::thread::{Session, State, Thread};
use crate::turn::TurnCell;

type Function = unsafe extern "C-unwind" fn(sigval);

/// The beginning of `sigevent`, with what glibc has in its union.
#[repr(C)]
struct Event {
    value: sigval,
    signal: c_int,
    notify: c_int,
    function: Option<Function>,
    attributes: *mut c_void,
}

/// A notification that is to come.
struct Notice {
    function: Function,
    value: sigval,
    /// The thread that stands for the next call; null when there is none.
    thread: AtomicPtr<Thread>,
    /// It comes again and again, and each call needs a thread.
    repeats: bool,
}

/// POSIX timers that call a function.
static TIMERS: TurnCell<Vec<(libc::timer_t, *mut Notice)>> = TurnCell::new(Vec::new());

/// Makes the thread that stands for the next call.
fn expect(session: &mut Session, notice: &Notice) {
    let thread = scheduler::create(Some(session.me));
    session.me.children += 1;
    // SAFETY: fresh; nobody else knows it.
    let number = unsafe {
        (*thread).detached = true;
        (*thread).state = State::External;
        (*thread).number
    };
    notice.thread.store(thread, SeqCst);
    session.event(Kind::Fork, 0, [number.into()]);
}

/// The call will not come.
fn give_up(notice: &Notice) {
    let thread = notice.thread.swap(std::ptr::null_mut(), SeqCst);
    if !thread.is_null() {
        scheduler::discard(thread);
    }
}

/// What libc calls, in a thread of its own.
unsafe extern "C-unwind" fn arrive(value: sigval) {
    // SAFETY: made by `wrapped`; never freed, as the call may come at any time.
    let notice = unsafe { &*value.sival_ptr.cast::<Notice>() };
    let thread = notice.thread.swap(std::ptr::null_mut(), SeqCst);
    if thread.is_null() || !local::current().is_null() {
        // SAFETY: what the program asked for.
        return unsafe { (notice.function)(notice.value) };
    }
    // SAFETY: states of threads are never freed, and this one is nobody's else.
    let me = unsafe { &mut *thread };
    // SAFETY: asks who we are.
    me.handle = unsafe { libc::pthread_self() };
    fiber::is_home(me);
    me.task = sys::task();
    scheduler::enter(me);
    local::set_current(me);
    scheduler::define_task(me);
    me.event([head(Kind::ThreadBegin, 0, 0)]);
    me.leave();
    if notice.repeats
        && let Some(mut session) = Session::begin()
    {
        expect(&mut session, notice);
    }
    // SAFETY: what the program asked for.
    unsafe { (notice.function)(notice.value) };
    if let Some(mut session) = Session::begin() {
        session.point();
        session.event_at(Kind::ThreadEnd, 0, 0, []);
        local::set_current(std::ptr::null_mut());
        scheduler::finish(session.me);
        std::mem::forget(session);
    }
}

/// The event with [`arrive`] in the place of its function; `None` if it calls none.
unsafe fn wrapped(event: *mut sigevent, repeats: bool) -> Option<&'static mut Notice> {
    if event.is_null() {
        return None;
    }
    // SAFETY: the program's event, as glibc lays it out.
    let event = unsafe { &mut *event.cast::<Event>() };
    if event.notify != libc::SIGEV_THREAD {
        return None;
    }
    let function = event.function?;
    let thread = AtomicPtr::new(std::ptr::null_mut());
    let notice = Box::leak(Box::new(Notice { function, value: event.value, thread, repeats }));
    event.function = Some(arrive);
    event.value = sigval { sival_ptr: (&raw mut *notice).cast() };
    Some(notice)
}

/// Makes a request of asynchronous input or output.
unsafe fn request(control: *mut libc::aiocb, name: &str, call: impl FnOnce() -> c_int) -> c_int {
    let Some(mut session) = Session::begin() else { return call() };
    session.point();
    outside::note(session.me.number, Cause::AsynchronousIo, 0, name, session.place);
    // SAFETY: the program's request.
    let event = unsafe { &raw mut (*control).aio_sigevent };
    // SAFETY: as above.
    let before = unsafe { event.read() };
    // SAFETY: as above.
    let notice = unsafe { wrapped(event, false) };
    if let Some(notice) = &notice {
        expect(&mut session, notice);
    }
    let result = call();
    if result != 0 {
        if let Some(notice) = notice {
            give_up(notice);
        }
        // SAFETY: as above.
        unsafe { event.write(before) };
    }
    result
}

interpose! {
    fn aio_read(control: *mut libc::aiocb) -> c_int {
        request(control, "aio_read", || real!(aio_read(control: *mut libc::aiocb) -> c_int))
    }

    fn aio_write(control: *mut libc::aiocb) -> c_int {
        request(control, "aio_write", || real!(aio_write(control: *mut libc::aiocb) -> c_int))
    }

    fn aio_fsync(operation: c_int, control: *mut libc::aiocb) -> c_int {
        request(control, "aio_fsync", || real!(aio_fsync(
            operation: c_int, control: *mut libc::aiocb) -> c_int))
    }

    fn timer_create(
        clock: libc::clockid_t, event: *mut sigevent, timer: *mut libc::timer_t,
    ) -> c_int {
        let Some(session) = Session::begin() else {
            return real!(timer_create(clock: libc::clockid_t, event: *mut sigevent,
                timer: *mut libc::timer_t) -> c_int);
        };
        outside::note(session.me.number, Cause::Timer, 0, "timer_create", session.place);
        let mut copy = (!event.is_null()).then(|| event.read());
        let given: *mut sigevent =
            copy.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
        let notice = wrapped(given, true);
        let result = real!(timer_create(clock: libc::clockid_t, given: *mut sigevent,
            timer: *mut libc::timer_t) -> c_int);
        if result == 0 {
            match notice {
                Some(notice) => TIMERS.get().push((*timer, notice)),
                None => outside::timer_created(*timer),
            }
        }
        drop(session);
        result
    }

    fn timer_settime(
        timer: libc::timer_t, flags: c_int, time: *const libc::itimerspec,
        old: *mut libc::itimerspec,
    ) -> c_int {
        let Some(mut session) = Session::begin() else {
            return real!(timer_settime(timer: libc::timer_t, flags: c_int,
                time: *const libc::itimerspec, old: *mut libc::itimerspec) -> c_int);
        };
        session.point();
        let known = TIMERS.get().iter().find(|(known, _)| *known == timer);
        if let Some(&(_, notice)) = known {
            let notice = &mut *notice;
            give_up(notice);
            let value = (*time).it_value;
            let interval = (*time).it_interval;
            notice.repeats = interval.tv_sec != 0 || interval.tv_nsec != 0;
            if value.tv_sec != 0 || value.tv_nsec != 0 {
                expect(&mut session, notice);
            }
        }
        real!(timer_settime(timer: libc::timer_t, flags: c_int,
            time: *const libc::itimerspec, old: *mut libc::itimerspec) -> c_int)
    }

    fn timer_delete(timer: libc::timer_t) -> c_int {
        if let Some(_session) = Session::begin() {
            if let Some(at) = TIMERS.get().iter().position(|(known, _)| *known == timer) {
                let (_, notice) = TIMERS.get().swap_remove(at);
                give_up(&*notice);
            }
            outside::timer_deleted(timer);
        }
        real!(timer_delete(timer: libc::timer_t) -> c_int)
    }
}
