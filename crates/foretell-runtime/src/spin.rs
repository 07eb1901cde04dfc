//! Loops that wait (`while (!flag);`, a lock taken by compare-and-swap), as the pass marks them.
//!
//! A round that is followed by another leaves nothing behind. So a thread that has gone round need not
//! look again before something has changed of what it read: it waits for that, like for a lock. When
//! nobody is left who could change it, no thread can run, and that is said.
//!
//! What a round read is taken from the log. Where that does not tell, the thread goes round at once.

use foretell_wire::again::Short;
use foretell_wire::{Kind, access, await_mark, lock, measure};

use crate::objects::{self, Model};
use crate::outside;
use crate::recorder::{Mark, Recorder, head};
use crate::scheduler;
use crate::thread::{Session, Thread, Wait, peek};
use crate::turn::Turn;

/// A loop that waits, while a thread is in it.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    place: u64,
    /// How many calls were open.
    depth: usize,
    /// Where its last round begins in the log.
    mark: Mark,
}

/// What a round did.
enum Seen {
    /// It read these (address, size and value), could not take these locks, and gave back all that it took.
    Only(Vec<(u64, u8, u64)>, Vec<u32>),
    /// Something that others can notice.
    More,
    /// The log does not say.
    Unknown,
}

/// The thread comes to the begin of the loop at this place, for the first time or again.
pub fn round(session: &mut Session, place: u64) {
    let depth = session.me.frames.len();
    if let Some(spin) = session.me.spin
        && spin.place == place
        && spin.depth == depth
    {
        let number = session.me.number;
        let seen = seen(session.recorder(), spin.mark, number);
        let me = &mut *session.me;
        match seen {
            Seen::More => {}
            Seen::Unknown => me.event([head(Kind::Await, await_mark::AGAIN, place)]),
            Seen::Only(places, refused) => {
                me.event([head(Kind::Await, await_mark::AGAIN, place)]);
                let waits = !places.is_empty() || !refused.is_empty();
                // Where other processes act, nobody says when memory changes.
                if me.unpreemptible == 0 && waits && !outside::others_act() {
                    (me.watched, me.refused) = (places, refused);
                    scheduler::block(me, Wait::Change, None);
                }
            }
        }
    }
    session.me.event([head(Kind::Await, await_mark::ROUND, place)]);
    session.me.spin = Some(Spin { place, depth, mark: session.recorder().mark() });
}

/// Whether memory holds something else than the thread read there, or a lock that it could not take is free.
pub fn has_changed(turn: Turn, thread: &Thread) -> bool {
    // SAFETY: the thread has read there.
    thread.watched.iter().any(|&(address, size, value)| unsafe { peek(address, size) } != value)
        || thread.refused.iter().any(|&lock| is_free(turn, lock))
}

fn is_free(turn: Turn, lock: u32) -> bool {
    match &objects::by_number(turn, lock).model {
        Model::Mutex(mutex) => mutex.owner.get().is_none(),
        _ => true,
    }
}

/// What the thread did since the mark.
fn seen(recorder: &Recorder, mark: Mark, thread: u32) -> Seen {
    let Some(words) = recorder.words_since(mark) else { return Seen::Unknown };
    let (mut places, mut refused, mut held) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut shorts, mut mine) = (0, false, true);
    while at < words.len() {
        let Some((kind, _, length)) = measure(&words[at..]) else { return Seen::Unknown };
        let record = &words[at..at + length];
        at += length;
        let (head, address, value) = match Short::from_word(record[0]) {
            Some(short) => {
                shorts = true;
                let Some((head, address)) = recorder.long(short) else { return Seen::Unknown };
                (head, address, short.value().unwrap_or_else(|| record[1]))
            }
            // It may have taken the entry that an earlier short stands for.
            None if kind.can_be_short() && shorts => return Seen::Unknown,
            None => {
                let word = |number: usize| record.get(number).copied().unwrap_or(0);
                (record[0], word(1), word(2))
            }
        };
        let Some(kind) = Kind::from_code(head as u8) else { return Seen::Unknown };
        if kind == Kind::Turn {
            mine = address == u64::from(thread);
        }
        if !mine || !kind.is_event() {
            continue;
        }
        let size = access::size((head >> 8) as u8);
        match kind {
            Kind::Read => places.push((address, size, value)),
            Kind::ReadModifyWrite if record[2] == record[3] => {
                places.push((address, size, value));
            }
            Kind::Branch | Kind::Call | Kind::Return | Kind::Fence | Kind::Await => {}
            Kind::Acquire => held.push(address as u32),
            Kind::Release => match held.iter().position(|&lock| lock == address as u32) {
                Some(at) => _ = held.swap_remove(at),
                None => return Seen::More,
            },
            Kind::AcquireFailed if (address >> 32) as u32 & lock::BY_TRY != 0 => {
                refused.push(address as u32);
            }
            _ => return Seen::More,
        }
    }
    if held.is_empty() { Seen::Only(places, refused) } else { Seen::More }
}
