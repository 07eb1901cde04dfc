//! Following a log of `foretell record --sync-only`, as `foretell-runtime` does: the second of the two
//! steps of 002. The log may be of another machine on which the same binary ran.
//!
//! Each operation waits until its place in the object's recorded order has come, and tries fail as
//! they did. A thread that is past the end of its log goes on freely. Inputs of the log are passed over:
//! the program gets its own.

use std::path::Path;

use foretell_wire::End;
use foretell_wire::sync_log::{self, Cursor, Kind, Places, ThreadLog};

use crate::scheduler::{self, scheduler};
use crate::thread::{Thread, Wait};

/// What is left of a log that is followed.
#[derive(Default)]
pub struct Followed {
    /// Of threads that have not begun yet.
    logs: Vec<ThreadLog>,
    places: Places,
}

impl Followed {
    /// Reads a log.
    pub fn read(path: &Path) -> Result<Followed, String> {
        let content =
            std::fs::read(path).map_err(|error| format!("cannot read the log: {error}"))?;
        let (words, _) = content.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let logs = sync_log::parse(&words);
        let logs = logs.map_err(|at| format!("the log makes no sense at word {at}"))?;
        Ok(Followed { logs, places: Places::new() })
    }

    /// The log of a thread that comes into being.
    pub fn cursor(&mut self, path: &[u32]) -> Cursor {
        Cursor::new(&mut self.logs, path)
    }
}

/// The thread's next entry, which must be of one of these kinds; `None` past the end of the log.
pub fn next(me: &mut Thread, kinds: &[Kind]) -> Option<(Kind, u32)> {
    while let Some((Kind::Input, _)) = me.follows.next() {
        me.follows.pass();
        scheduler().gap_once("inputs in the log that is followed: the program gets its own");
    }
    let (kind, number) = me.follows.next()?;
    if !kinds.contains(&kind) {
        scheduler::stop(End::LeftSchedule, &me.follows.strays(&me.path, kinds[0], me.index));
    }
    Some((kind, number))
}

/// As [`next`], and passes it.
pub fn pass(me: &mut Thread, kind: Kind) -> Option<u32> {
    let (_, number) = next(me, &[kind])?;
    me.follows.pass();
    Some(number)
}

/// Whether the thread's next operation on the object may happen: it is due, or the log is over.
pub fn may(me: &mut Thread, object: u32, kinds: &[Kind]) -> bool {
    next(me, kinds).is_none_or(|(_, place)| scheduler().follows.places.is_due(object, place))
}

/// Waits until the thread's next operation on the object may happen.
pub fn await_place(me: &mut Thread, object: u32, kinds: &[Kind]) {
    while !may(me, object, kinds) {
        scheduler::block(me, Wait::Object(object), None);
    }
}

/// The operation has happened: the next one on the object is due.
pub fn done(me: &mut Thread, object: u32) {
    if me.follows.next().is_some() {
        me.follows.pass();
        scheduler().follows.places.done(object);
        scheduler::wake(Wait::Object(object));
    }
}
