//! Barriers.

use std::cell::Cell;

use foretell_abi::{BinaryOp, Order};
use foretell_wire::outside::Cause;
use foretell_wire::record::ReadModifyWrite;
use foretell_wire::sync_log::Kind as Logged;
use foretell_wire::{Kind, access};
use libc::{c_int, c_uint, pthread_barrier_t, pthread_barrierattr_t};

use crate::channels;
use crate::objects::{self, Barrier, Model};
use crate::outside;
use crate::real::{interpose, real};
use crate::replay;
use crate::scheduler;
use crate::shadow;
use crate::thread::{Session, Wait};
use crate::turn::Turn;

fn state(turn: Turn, number: u32) -> &'static Barrier {
    match &objects::by_number(turn, number).model {
        Model::Barrier(barrier) => barrier,
        _ => unreachable!("numbers of barriers name barriers"),
    }
}

fn number(turn: Turn, barrier: *const pthread_barrier_t) -> u32 {
    objects::get(
        turn,
        barrier as u64,
        |model| matches!(model, Model::Barrier(_)),
        // SAFETY: glibc's layout: the third word is the count of a barrier initialised unseen.
        || Model::Barrier(fresh(unsafe { barrier.cast::<c_uint>().add(2).read() })),
    )
    .number
}

fn fresh(parties: c_uint) -> Barrier {
    Barrier { parties, arrived: Cell::default(), counted: Cell::default(), round: Cell::default() }
}

/// Counts the thread among those that come, in a variable of the trace; whether it is the last, as an expression, too.
/// So which thread the barrier names is varied, where the program looks.
fn count(session: &mut Session, number: u32) -> (bool, u32) {
    let Barrier { parties, counted, .. } = state(session.turn(), number);
    let (before, parties) = (u64::from(counted.get()), u64::from(*parties));
    let last = before + 1 == parties;
    counted.set(if last { 0 } else { counted.get() + 1 });
    let after = u64::from(counted.get());
    let read = shadow::of_read(session.me.slots.index);
    let is_last = shadow::binary(BinaryOp::Eq as u32, 32, read, before, 0, parties - 1);
    let more = shadow::binary(BinaryOp::Add as u32, 32, read, before, 0, 1);
    let written = shadow::select(32, (is_last, last.into()), (0, 0), (more, before + 1));
    let variable = channels::variable(&[u64::from(number)], "arrivals at a barrier");
    let detail = access::detail(4, Order::SequentiallyConsistent as u8);
    let (address, old, new) = (variable, before, after);
    let record = ReadModifyWrite { address, old, new, shadow: written, address_shadow: 0 };
    session.me.record(detail, session.place, &record);
    session.point();
    (last, is_last)
}

/// The barrier at an address that is not of the C library, for so many threads.
pub fn of(turn: Turn, address: u64, parties: u32) -> u32 {
    let fits = |model: &Model| matches!(model, Model::Barrier(known) if known.parties == parties);
    objects::get(turn, address, fits, || Model::Barrier(fresh(parties))).number
}

/// Waits until all have come; whether this thread was the last.
pub fn meet(mut session: Session, number: u32) -> bool {
    session.event(Kind::BarrierArrive, 0, [number.into()]);
    let Barrier { parties, arrived, round, .. } = state(session.turn(), number);
    arrived.set(arrived.get() + 1);
    let last = arrived.get() == *parties;
    if last {
        arrived.set(0);
        round.set(round.get() + 1);
        scheduler::wake(Wait::Object(number));
        session.point();
    } else {
        let ours = round.get();
        while round.get() == ours {
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

/// What the barrier tells the thread.
fn named(is_last: bool) -> c_int {
    if is_last { libc::PTHREAD_BARRIER_SERIAL_THREAD } else { 0 }
}

interpose! {
    fn pthread_barrier_init(
        barrier: *mut pthread_barrier_t, attributes: *const pthread_barrierattr_t,
        count: c_uint,
    ) -> c_int {
        let result = real!(pthread_barrier_init(barrier: *mut pthread_barrier_t,
            attributes: *const pthread_barrierattr_t, count: c_uint) -> c_int);
        if result == 0 && let Some(session) = Session::begin() {
            objects::define(session.turn(), barrier as u64, Model::Barrier(fresh(count)));
        }
        result
    }

    fn pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int {
        if let Some(mut session) = Session::begin() {
            if let Some(number) = objects::number_at(session.turn(), barrier as u64) {
                super::destroyed(&mut session, number);
            }
            let result = real!(pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int);
            objects::bury(session.turn(), barrier as u64);
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
        let number = number(session.turn(), barrier);
        let Some(callee) = session.me.asks_for_result() else {
            return named(meet(session, number));
        };
        let (is_last, expression) = count(&mut session, number);
        let (yes, no) = (named(true), named(false));
        let result = shadow::select(
            32, (expression, is_last.into()), (0, u64::from(yes as u32)), (0, u64::from(no as u32)));
        meet(session, number);
        if let Some(session) = Session::begin() {
            session.me.leave_result(callee, result);
        }
        named(is_last)
    }
}
