//! Barriers.

use foretell_wire::Kind;
use foretell_wire::outside::Cause;
use foretell_wire::sync_log::Kind as Logged;
use libc::{c_int, c_uint, pthread_barrier_t, pthread_barrierattr_t};

use crate::channels;
use crate::objects::{self, Barrier, Model};
use crate::outside;
use crate::real::{interpose, real};
use crate::replay;
use crate::scheduler;
use crate::thread::{Session, Wait};

fn state(number: u32) -> &'static mut Barrier {
    match &mut objects::by_number(number).model {
        Model::Barrier(barrier) => barrier,
        _ => unreachable!("numbers of barriers name barriers"),
    }
}

fn number(barrier: *const pthread_barrier_t) -> u32 {
    objects::get(
        barrier as u64,
        |model| matches!(model, Model::Barrier(_)),
        // SAFETY: glibc's layout: the third word is the count of a barrier initialised unseen.
        || Model::Barrier(fresh(unsafe { barrier.cast::<c_uint>().add(2).read() })),
    )
    .number
}

fn fresh(parties: c_uint) -> Barrier {
    Barrier { parties, arrived: 0, round: 0 }
}

/// The barrier at an address that is not of the C library, for so many threads.
pub fn of(address: u64, parties: u32) -> u32 {
    let fits = |model: &Model| matches!(model, Model::Barrier(known) if known.parties == parties);
    objects::get(address, fits, || Model::Barrier(fresh(parties))).number
}

/// Waits until all have come; whether this thread was the last.
pub fn meet(mut session: Session, number: u32) -> bool {
    session.event(Kind::BarrierArrive, 0, [number.into()]);
    let meeting = state(number);
    meeting.arrived += 1;
    let last = meeting.arrived == meeting.parties;
    if last {
        meeting.arrived = 0;
        meeting.round += 1;
        scheduler::wake(Wait::Object(number));
        session.point();
    } else {
        let round = meeting.round;
        while state(number).round == round {
            scheduler::block(session.me, Wait::Object(number), None);
        }
    }
    let logged = replay::peek(session.me, &[Logged::Barrier]);
    if logged.is_some() {
        replay::pass(session.me);
    }
    let last = logged.map_or(last, |(_, serial)| serial == 1);
    session.event(Kind::BarrierLeave, 0, [number.into()]);
    session.point();
    last
}

interpose! {
    fn pthread_barrier_init(
        barrier: *mut pthread_barrier_t, attributes: *const pthread_barrierattr_t,
        count: c_uint,
    ) -> c_int {
        let result = real!(pthread_barrier_init(barrier: *mut pthread_barrier_t,
            attributes: *const pthread_barrierattr_t, count: c_uint) -> c_int);
        if result == 0 && let Some(_session) = Session::begin() {
            objects::define(barrier as u64, Model::Barrier(fresh(count)));
        }
        result
    }

    fn pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int {
        if let Some(mut session) = Session::begin() {
            if let Some(number) = objects::number_at(barrier as u64) {
                super::destroyed(&mut session, number);
            }
            let result = real!(pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int);
            objects::bury(barrier as u64);
            return result;
        }
        real!(pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int)
    }

    fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int {
        let Some(mut session) = Session::begin() else {
            return crate::sync_only::barrier_wait(barrier);
        };
        session.point();
        // SAFETY: glibc's layout: the fourth word says whether other processes may use it.
        let shared = barrier.cast::<c_uint>().add(3).read() != 0;
        if shared && outside::is_shared_memory(barrier as u64) {
            let (me, place) = (session.me.number, session.place);
            outside::note(me, Cause::SharedObject, 0, "a barrier", place);
            channels::came_to(&mut session, barrier as u64);
            let (mut session, result) = super::blocking::outside(session, || real!(
                pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int));
            channels::left(&mut session, barrier as u64);
            session.point();
            return result;
        }
        match meet(session, number(barrier)) {
            true => libc::PTHREAD_BARRIER_SERIAL_THREAD,
            false => 0,
        }
    }
}
