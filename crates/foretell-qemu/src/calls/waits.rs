//! Condition variables, semaphores, barriers, and sleeping.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use foretell_wire::condition::Condition;
use foretell_wire::record;
use foretell_wire::sync_log::Kind as Logged;
use foretell_wire::{BY_TRY, Kind, ObjectKind, gap, wait as detail};

use super::locks::{self, Patience, define, destroy};
use super::{Call, Then, follow};
use crate::cpu::{self, Machine, machine, peek};
use crate::objects::Model;
use crate::scheduler::{self, scheduler};
use crate::thread::{Thread, Wait};

/// See `super::FUNCTIONS`.
pub const FUNCTIONS: &[(&str, super::Handler)] = &[
    ("pthread_cond_init", |call| {
        define(call.argument(0), Model::Condition(Condition::default()));
        Then::Run
    }),
    ("pthread_cond_destroy", |call| {
        destroy(call);
        Then::Return(0) // the real one would wait for waiters, of which it knows nothing
    }),
    ("pthread_cond_wait", |call| wait(call, None)),
    ("pthread_cond_timedwait", |call| {
        // glibc notes in the condition that its deadlines are of the monotonic clock.
        let monotonic = peek(call.argument(0) + 36, 4) & 2 != 0;
        let clock = if monotonic { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME };
        let until = call.deadline(clock, 2);
        wait(call, Some(until))
    }),
    ("pthread_cond_clockwait", |call| {
        let clock = call.integer(2);
        let until = call.deadline(clock, 3);
        wait(call, Some(until))
    }),
    ("pthread_cond_signal", |call| notify(call, Kind::Signal)),
    ("pthread_cond_broadcast", |call| notify(call, Kind::Broadcast)),
    ("cnd_wait", |call| wait(call, None)),
    ("cnd_timedwait", |call| {
        let until = call.deadline(libc::CLOCK_REALTIME, 2);
        locks::of_c11(wait(call, Some(until)))
    }),
    ("cnd_signal", |call| notify(call, Kind::Signal)),
    ("cnd_broadcast", |call| notify(call, Kind::Broadcast)),
    ("sem_init", |call| {
        if call.integer(1) != 0 {
            scheduler().lacks_once(gap::UNKNOWN_LOCKS, REAL_SEMAPHORES);
            scheduler().objects.forget(call.argument(0));
            return Then::Run;
        }
        define(call.argument(0), Model::Semaphore(call.integer(2) as u32));
        // The real one stays empty: it is asked only for how a wait fails.
        cpu::set_argument(call.me.cpu, 2, 0);
        Then::Run
    }),
    ("sem_destroy", destroy),
    ("sem_wait", |call| take(call, Patience::Until(None))),
    ("sem_trywait", |call| take(call, Patience::Try)),
    ("sem_timedwait", |call| {
        let until = call.deadline(libc::CLOCK_REALTIME, 1);
        take(call, Patience::Until(Some(until)))
    }),
    ("sem_clockwait", |call| {
        let clock = call.integer(1);
        let until = call.deadline(clock, 2);
        take(call, Patience::Until(Some(until)))
    }),
    ("sem_post", |call| {
        let Some(number) = semaphore(call.argument(0)) else { return Then::Run };
        call.point();
        follow::await_place(call.me, number, &[Logged::SemaphorePost]);
        *count(number) += 1;
        follow::done(call.me, number);
        call.event(Kind::SemaphorePost, 0, &[number.into()]);
        scheduler::wake(Wait::Object(number));
        call.point();
        Then::Return(0)
    }),
    ("sem_getvalue", |call| {
        let Some(number) = semaphore(call.argument(0)) else { return Then::Run };
        call.point();
        cpu::poke(call.argument(1), 4, (*count(number)).into());
        scheduler().ring.gap("a look at the count of a semaphore");
        Then::Return(0)
    }),
    ("pthread_barrier_init", |call| {
        define(call.argument(0), Model::Barrier(call.integer(2) as u32, 0, 0));
        Then::Run
    }),
    ("pthread_barrier_destroy", destroy),
    ("pthread_barrier_wait", meet),
    ("nanosleep", |call| {
        let time = call.duration(0);
        sleep(call, time)
    }),
    ("clock_nanosleep", |call| {
        let (clock, absolute) = (call.integer(0), call.integer(1) & libc::TIMER_ABSTIME != 0);
        let time = match absolute {
            true => call.deadline(clock, 2).saturating_sub(scheduler().elapsed),
            false => call.duration(2),
        };
        sleep(call, time)
    }),
    ("usleep", |call| {
        let time = u64::from(call.integer(0) as u32) * 1_000;
        sleep(call, time)
    }),
    ("sleep", |call| {
        let time = u64::from(call.integer(0) as u32) * 1_000_000_000;
        sleep(call, time)
    }),
    ("thrd_sleep", |call| {
        let time = call.duration(0);
        sleep(call, time)
    }),
    ("sched_yield", give_way),
    ("thrd_yield", give_way),
];

fn give_way(call: &mut Call<'_>) -> Then {
    scheduler::yield_turn(call.me);
    Then::Return(0)
}

/// When nothing else can happen any more.
const END_OF_TIME: u64 = u64::MAX / 2;

impl Call<'_> {
    /// The argument with this number, a `struct timespec` of the program, in nanoseconds.
    fn duration(&mut self, number: usize) -> u64 {
        let address = self.argument(number);
        let (seconds, rest) = match machine() {
            Machine::Arm if self.long_times => (peek(address, 8), peek(address + 8, 4)),
            Machine::Arm => (peek(address, 4), peek(address + 4, 4)),
            Machine::X86 | Machine::Arm64 => (peek(address, 8), peek(address + 8, 8)),
        };
        seconds.saturating_mul(1_000_000_000).saturating_add(rest)
    }

    /// The argument with this number, a moment of a clock, in virtual time.
    pub fn deadline(&mut self, clock: i32, number: usize) -> u64 {
        self.duration(number).saturating_sub(crate::system::clock_begin(clock))
    }
}

fn sleep(call: &mut Call<'_>, time: u64) -> Then {
    let until = scheduler().elapsed.saturating_add(time);
    scheduler::block(call.me, Wait::Time, Some(until));
    Then::Return(0)
}

fn condition(address: u64) -> u32 {
    let scheduler = scheduler();
    scheduler.objects.number(
        &mut scheduler.ring,
        address,
        |model| matches!(model, Model::Condition(_)),
        || Model::Condition(Condition::default()),
    )
}

fn waiters(number: u32) -> &'static mut Condition {
    match scheduler().objects.model(number) {
        Model::Condition(condition) => condition,
        _ => unreachable!("numbers of conditions name conditions"),
    }
}

/// Threads wait in the C library itself, as it has their mutex: who wakes others has to call it, too.
static REAL_WAITS: AtomicBool = AtomicBool::new(false);

/// Waits: gives the mutex back, sleeps, takes the mutex again.
fn wait(call: &mut Call<'_>, deadline: Option<u64>) -> Then {
    call.point();
    if !locks::is_modelled(call.argument(1)) {
        REAL_WAITS.store(true, Relaxed);
        return Then::Run;
    }
    let me = call.me.number;
    let number = condition(call.argument(0));
    let lock = locks::mutex(call.argument(1));
    if *locks::state(lock).1 != Some(me) {
        call.event(Kind::ReleaseFailed, 0, &[lock.into()]);
        if locks::state(lock).0 != ObjectKind::Mutex {
            return Then::Return(libc::EPERM.into());
        }
        // glibc waits all the same, and gives the mutex to the thread afterwards.
        locks::take(call, lock, &Patience::Until(None), 0);
    }
    let timed = if deadline.is_some() { detail::TIMED } else { 0 };
    call.record(0, &record::WaitBegin { condition: number, mutex: lock });
    // Only once: who has a recursive mutex several times sleeps with it.
    let (_, owner, depth) = locks::state(lock);
    *depth -= 1;
    if *depth == 0 {
        *owner = None;
    }
    scheduler::wake(Wait::Object(lock));
    waiters(number).arrive(me);
    // A wake-up without a signal is allowed, and not told apart in a log: when nothing else can run, it
    // was one. The recording then says that the wait ended by itself.
    let logged = follow::pass(call.me, Logged::Wait).map(|late| late == 1);
    let deadline = if logged.is_some() { Some(END_OF_TIME) } else { deadline };
    // A schedule in which it times out lets it give up at once, and its turn says when it goes on.
    let gives_up =
        timed != 0 && logged.is_none() && scheduler().policy.expects(call.me, "wait-timeout");
    let mut timed_out = gives_up || logged == Some(true);
    if timed_out {
        waiters(number).give_up(me);
    }
    if gives_up {
        call.point();
    }
    while !timed_out {
        let late = scheduler::block(call.me, Wait::Object(number), deadline);
        if waiters(number).take(me) {
            break;
        }
        if late {
            waiters(number).give_up(me);
            timed_out = true;
        }
    }
    let is_others = |owner: Option<u32>| owner.is_some_and(|owner| owner != me);
    while is_others(*locks::state(lock).1) || !follow::may(call.me, lock, &[Logged::Lock]) {
        scheduler::block(call.me, Wait::Object(lock), None);
    }
    let (_, owner, held) = locks::state(lock);
    *owner = Some(me);
    *held += 1;
    follow::done(call.me, lock);
    let late = if timed_out { detail::TIMED_OUT } else { 0 };
    call.record(late | timed, &record::WaitEnd { condition: number, mutex: lock });
    call.point();
    Then::Return(if logged.unwrap_or(timed_out) { libc::ETIMEDOUT.into() } else { 0 })
}

/// Wakes waiters.
fn notify(call: &mut Call<'_>, kind: Kind) -> Then {
    call.point();
    let number = condition(call.argument(0));
    match kind {
        Kind::Broadcast => waiters(number).broadcast(),
        _ => waiters(number).signal(),
    }
    call.event(kind, 0, &[number.into()]);
    scheduler::wake(Wait::Object(number));
    call.point();
    if REAL_WAITS.load(Relaxed) {
        return Then::Run;
    }
    Then::Return(0)
}

/// The number of the semaphore; `None` for one that was made unseen: by another process, or by name.
fn semaphore(address: u64) -> Option<u32> {
    let number = scheduler().objects.at(address)?;
    matches!(scheduler().objects.model(number), Model::Semaphore(_)).then_some(number)
}

fn count(number: u32) -> &'static mut u32 {
    match scheduler().objects.model(number) {
        Model::Semaphore(count) => count,
        _ => unreachable!("numbers of semaphores name semaphores"),
    }
}

/// What the trace lacks then.
const REAL_SEMAPHORES: &str =
    "semaphores that are shared with other processes: torn blocks and races are not looked for";

/// Decrements, waiting if need be. One that fails lets the real function say so: `errno` is the C
/// library's.
fn take(call: &mut Call<'_>, patience: Patience) -> Then {
    const WAITS: [Logged; 2] = [Logged::SemaphoreWait, Logged::SemaphoreFailed];
    let Some(number) = semaphore(call.argument(0)) else {
        scheduler().lacks_once(gap::UNKNOWN_LOCKS, REAL_SEMAPHORES);
        return Then::Run;
    };
    call.point();
    let logged = follow::next(call.me, &WAITS);
    let may = |me: &mut Thread| *count(number) > 0 && follow::may(me, number, &WAITS);
    loop {
        let fails = matches!(logged, Some((Logged::SemaphoreFailed, _)));
        if !fails && may(call.me) {
            break;
        }
        let late = match patience {
            _ if fails => true,
            _ if logged.is_some() => scheduler::block(call.me, Wait::Object(number), None),
            Patience::Try => true,
            Patience::Until(deadline) => scheduler::block(call.me, Wait::Object(number), deadline),
        };
        if fails {
            call.me.follows.pass();
        }
        if fails || late && *count(number) == 0 {
            call.event(Kind::SemaphoreWaitFailed, 0, &[number.into()]);
            call.point();
            if let Patience::Until(_) = patience {
                // An empty semaphore looks like a moment that is long past.
                let (cpu, semaphore) = (call.me.cpu, call.argument(0));
                cpu::set_argument(cpu, 1, semaphore);
            }
            return Then::Run;
        }
    }
    follow::done(call.me, number);
    *count(number) -= 1;
    let by_try = !matches!(patience, Patience::Until(None));
    call.event(Kind::SemaphoreWait, if by_try { BY_TRY } else { 0 }, &[number.into()]);
    call.point();
    Then::Return(0)
}

fn barrier(address: u64) -> u32 {
    let scheduler = scheduler();
    scheduler.objects.number(
        &mut scheduler.ring,
        address,
        |model| matches!(model, Model::Barrier(..)),
        // glibc's layout: the third word is the count.
        || Model::Barrier(peek(address + 8, 4) as u32, 0, 0),
    )
}

fn round(number: u32) -> (u32, &'static mut u32, &'static mut u64) {
    match scheduler().objects.model(number) {
        Model::Barrier(parties, arrived, round) => (*parties, arrived, round),
        _ => unreachable!("numbers of barriers name barriers"),
    }
}

fn meet(call: &mut Call<'_>) -> Then {
    call.point();
    let number = barrier(call.argument(0));
    call.event(Kind::BarrierArrive, 0, &[number.into()]);
    let (parties, arrived, rounds) = round(number);
    *arrived += 1;
    let last = *arrived == parties;
    if last {
        *arrived = 0;
        *rounds += 1;
        scheduler::wake(Wait::Object(number));
        call.point();
    } else {
        let this = *rounds;
        while *round(number).2 == this {
            scheduler::block(call.me, Wait::Object(number), None);
        }
    }
    let last = follow::pass(call.me, Logged::Barrier).map_or(last, |serial| serial == 1);
    call.event(Kind::BarrierLeave, 0, &[number.into()]);
    call.point();
    Then::Return(if last { libc::PTHREAD_BARRIER_SERIAL_THREAD.into() } else { 0 })
}
