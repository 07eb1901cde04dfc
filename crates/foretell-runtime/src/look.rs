//! Looks by which a loop that waits decides (`while (access("ready", F_OK)) usleep(1000);`), as the pass
//! announces them.
//!
//! A round that is followed by another leaves nothing behind, so the look is made when it leaves the loop:
//! the thread waits until somebody has changed what it looks at. Where nobody can run, what it waits for may
//! come from outside: then the look is made as it is, and counts as any other.
//!
//! A loop that tries to take a lock decides by that. Where a round does nothing else, the thread waits for the lock
//! ([`waits_for_lock`]); otherwise it is marked how the try came out ([`tried`]).

use foretell_wire::{Kind, await_mark};

use crate::outside;
use crate::scheduler;
use crate::thread::{Session, Wait};

/// A look that was announced.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The number of the thread's events before it.
    index: u32,
    comparison: u32,
    constant: i64,
    again: bool,
    alone: bool,
}

/// The next call looks, and decides by its result.
pub fn announce(session: &mut Session, comparison: u32, constant: i64, again: bool, alone: bool) {
    let index = session.me.slots.index;
    session.me.look = Some(Look { index, comparison, constant, again, alone });
}

/// The look that was announced for the call that begins now.
pub fn take(session: &mut Session) -> Option<Look> {
    let look = session.me.look.take()?;
    let since = session.me.slots.index.wrapping_sub(look.index);
    (since <= ARGUMENTS && session.me.unpreemptible == 0).then_some(look)
}

/// So many events at most come between the announcement and the call: that an argument is handed to code
/// that is not seen is one.
const ARGUMENTS: u32 = 6;

impl Look {
    /// Whether the loop goes round again if the call gives this.
    pub fn goes_round(&self, result: i64) -> bool {
        let constant = self.constant;
        let outcome = match self.comparison {
            0 => result == constant,
            1 => result != constant,
            2 => result < constant,
            3 => result <= constant,
            4 => result > constant,
            _ => result >= constant,
        };
        outcome == self.again
    }
}

/// Makes a look by `call`; where it would make its loop go round again, when it does not. `vain`: with this
/// result the call did nothing.
pub fn made<R: Copy + Into<i64>>(
    session: &mut Session,
    look: Option<Look>,
    channel: Option<u32>,
    vain: impl Fn(R) -> bool,
    call: impl Fn() -> R,
) -> R {
    loop {
        let result = call();
        let (Some(look), Some(channel)) = (look, channel) else { return result };
        // Where other processes act, nobody says when something changes.
        if !look.goes_round(result.into()) || !vain(result) || outside::others_act() {
            return result;
        }
        if scheduler::block(session.me, Wait::Look(channel), None) || session.me.interrupted {
            return call();
        }
    }
}

/// The look that was just recorded left its loop, if it was announced as one that decides about it.
pub fn done(session: &mut Session, look: Option<Look>, result: i64) {
    if look.is_some_and(|look| !look.goes_round(result)) {
        session.event(Kind::Await, await_mark::TEST, []);
    }
}

/// Whether a loop goes round until the lock that is tried can be had, and does nothing else.
pub fn waits_for_lock(look: Option<Look>) -> bool {
    look.is_some_and(|look| look.alone && look.goes_round(libc::EBUSY.into()))
}

/// The try that was just recorded decided whether a loop goes round again, if it was announced as one.
pub fn tried(session: &mut Session, look: Option<Look>, result: libc::c_int) {
    let Some(look) = look else { return };
    let mark = if look.goes_round(result.into()) { await_mark::FAILED } else { await_mark::TEST };
    session.event(Kind::Await, mark, []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_goes_round_by_the_outcome_of_a_comparison() {
        let look = |comparison, constant, again| Look {
            index: 0,
            comparison,
            constant,
            again,
            alone: true,
        };
        // `while (access(..))`, `while (!access(..))`, `while (read(..) != 1)`, `while (open(..) < 0)`
        let rows = [
            (look(0, 0, false), [true, false, true]),
            (look(0, 0, true), [false, true, false]),
            (look(1, 1, true), [true, true, false]),
            (look(2, 0, true), [true, false, false]),
            (look(4, -1, false), [true, false, false]),
            (look(3, -1, true), [true, false, false]),
            (look(5, 0, false), [true, false, false]),
        ];
        for (look, expected) in rows {
            assert_eq!([-1, 0, 1].map(|result| look.goes_round(result)), expected, "{look:?}");
        }
    }
}
