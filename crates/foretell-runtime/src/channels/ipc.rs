//! The channels of message queues, System V semaphores and locks of files.

use std::cell::{RefCell, RefMut};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use foretell_wire::ObjectKind;
use foretell_wire::outside::Cause;
use foretell_wire::record;
use libc::{c_int, c_ushort};

use super::{Errno, SEED, digest, key, object, poll, send, sort, status};
use crate::outside;
use crate::scheduler;
use crate::sys;
use crate::thread::{Session, Wait};
use crate::turn::{Turn, TurnCell};

/// What is known of them.
#[derive(Default)]
struct Known {
    /// By key of a message queue.
    queues: Option<BTreeMap<u64, Traffic>>,
    /// The amount that our own steps explain, by key of a semaphore.
    semaphores: Option<BTreeMap<u64, u64>>,
    /// Keys of the files that were locked.
    locked: Option<BTreeSet<u64>>,
    /// Keys of the queues and sets that only this process and its children know.
    private: Option<BTreeSet<u64>>,
}

/// What went through a message queue.
#[derive(Default)]
struct Traffic {
    /// The priorities or types of the messages.
    kinds: BTreeSet<u64>,
    /// So many messages were sent, of so many bytes.
    sent: u64,
    bytes: u64,
    /// A call took a message whatever its type was.
    untyped: bool,
    /// It keeps its recorded order.
    in_order: bool,
}

static KNOWN: TurnCell<RefCell<Known>> = TurnCell::new(RefCell::new(Known {
    queues: None,
    semaphores: None,
    locked: None,
    private: None,
}));

fn known(turn: Turn) -> RefMut<'static, Known> {
    KNOWN.shared(turn).borrow_mut()
}

/// Whether anybody else could ever have looked.
pub fn alone() -> bool {
    super::alone()
}

/// The program made the queue or set by itself, and nobody else knows its number.
pub fn made(session: &Session, key: u64) {
    known(session.turn()).private.get_or_insert_default().insert(key);
}

/// Whether only this process can use what has this key.
pub fn is_private(key: u64) -> bool {
    // SAFETY: callers have the turn.
    let (turn, has_children) = unsafe { (Turn::held(), super::known().has_children) };
    known(turn).private.as_ref().is_some_and(|private| private.contains(&key))
        && !has_children
        && !sys::has_child()
}

/// Whether the descriptor is a message queue that no other process has, and that none can open any more: its name is
/// gone.
pub fn is_unreachable(file: c_int, status: &libc::stat) -> bool {
    let _errno = Errno::keep();
    // SAFETY: the attributes are ours; any number may be asked about.
    let is_queue = unsafe {
        let mut attributes: libc::mq_attr = std::mem::zeroed();
        libc::mq_getattr(file, &mut attributes) == 0
    };
    is_queue && status.st_nlink == 0 && !outside::is_open_elsewhere(status)
}

/// Makes the channel one that keeps its recorded order: a look that contradicts what was sent and
/// received. The model takes only channels that add up for queues or counts.
fn keep_order(session: &mut Session, channel: u32, holds_something: bool) {
    poll(session, channel, !holds_something);
}

// Message queues

/// A message queue.
#[derive(Clone, Copy)]
pub enum Queue {
    /// By descriptor.
    Posix(c_int),
    /// By number.
    SystemV(c_int),
}

/// A message of the program.
pub struct Message<'a> {
    /// Its priority or type.
    pub kind: u64,
    /// What it says.
    pub bytes: &'a [u8],
}

impl Queue {
    /// What it is known by.
    pub fn key(self) -> u64 {
        match self {
            Queue::Posix(file) => match status(file) {
                Some(status) => key(&[sort::MESSAGES, 0, status.st_dev, status.st_ino]),
                None => key(&[sort::MESSAGES, 1, file as u64]),
            },
            Queue::SystemV(number) => key(&[sort::MESSAGES, 2, number as u64]),
        }
    }

    /// The channel of messages of a kind. System V's queues are taken from by type, so that each type has
    /// a queue of its own.
    fn channel(self, kind: u64) -> u32 {
        let key = match self {
            Queue::Posix(_) => self.key(),
            Queue::SystemV(_) => key(&[self.key(), kind]),
        };
        object(key, ObjectKind::Queue, "message queue")
    }

    fn traffic(self, turn: Turn) -> RefMut<'static, Traffic> {
        let key = self.key();
        RefMut::map(known(turn), |known| {
            known.queues.get_or_insert_default().entry(key).or_default()
        })
    }

    /// Whether so many messages of so many bytes together always fit.
    fn has_room(self, traffic: &Traffic) -> bool {
        match self {
            // SAFETY: plain structures that the system fills.
            Queue::Posix(file) => unsafe {
                let mut attributes: libc::mq_attr = std::mem::zeroed();
                libc::mq_getattr(file, &mut attributes) != 0
                    || traffic.sent <= attributes.mq_maxmsg as u64
            },
            // SAFETY: as above.
            Queue::SystemV(number) => unsafe {
                let mut state: libc::msqid_ds = std::mem::zeroed();
                let asked =
                    [number as u64, libc::IPC_STAT as u64, (&raw mut state) as u64, 0, 0, 0];
                sys::call(libc::SYS_msgctl, asked) != 0 || traffic.bytes <= state.msg_qbytes
            },
        }
    }
}

/// The message was put into the queue.
pub fn sent(session: &mut Session, queue: Queue, message: &Message) {
    let _errno = Errno::keep();
    let channel = queue.channel(message.kind);
    let content = digest(digest(SEED, &message.kind.to_le_bytes()), message.bytes);
    let mut traffic = queue.traffic(session.turn());
    traffic.kinds.insert(message.kind);
    traffic.sent += 1;
    traffic.bytes += message.bytes.len() as u64;
    let overtakes = match queue {
        Queue::Posix(_) => traffic.kinds.len() > 1,
        Queue::SystemV(_) => is_mixed(session, &traffic),
    };
    let is_full = !queue.has_room(&traffic);
    let in_order = overtakes || is_full;
    let begins = in_order && !traffic.in_order;
    traffic.in_order |= in_order;
    drop(traffic);
    send(session, channel, 1, content.max(1));
    if begins {
        keep_order(session, channel, true);
        if is_full {
            outside::note_outcome(session, "a message to a queue that may be full");
        }
    }
}

/// Whether messages of several types are taken whatever their type is: then an order between channels
/// would be needed, which they do not have. That is said.
fn is_mixed(session: &Session, traffic: &Traffic) -> bool {
    let mixed = traffic.untyped && traffic.kinds.len() > 1;
    if mixed {
        outside::note(session.me.number, Cause::PassedCall, 0, "msgrcv", session.place);
    }
    mixed
}

/// What a call takes from a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Messages of a type.
    Type(u64),
    /// Whatever comes next.
    Any,
}

/// A message of this kind was taken from the queue.
pub fn received(session: &mut Session, queue: Queue, kind: u64, wanted: Wanted) {
    let _errno = Errno::keep();
    super::heard_of_children(session);
    if matches!(queue, Queue::SystemV(_)) {
        let mut traffic = queue.traffic(session.turn());
        traffic.untyped |= wanted == Wanted::Any;
        is_mixed(session, &traffic);
    }
    let channel = queue.channel(kind);
    session.record(0, &record::Receive { channel, amount: 1 });
}

/// There was no message for a call that does not wait.
pub fn found_nothing(session: &mut Session, queue: Queue, wanted: Wanted) {
    let _errno = Errno::keep();
    let kinds: Vec<u64> = match (queue, wanted) {
        (Queue::Posix(_), _) => vec![0],
        (_, Wanted::Type(kind)) => vec![kind],
        (_, Wanted::Any) => queue.traffic(session.turn()).kinds.iter().copied().collect(),
    };
    for kind in kinds {
        let channel = queue.channel(kind);
        poll(session, channel, false);
    }
}

// System V semaphores

/// What an operation does with a semaphore.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Raise(u64),
    Lower(u64),
    AwaitZero,
}

impl From<i16> for Step {
    fn from(amount: i16) -> Self {
        match amount {
            0 => Step::AwaitZero,
            1.. => Step::Raise(amount as u64),
            _ => Step::Lower(u64::from(amount.unsigned_abs())),
        }
    }
}

/// What a set of semaphores is known by.
pub fn set_key(set: c_int) -> u64 {
    key(&[sort::SEMAPHORES, set as u64])
}

fn semaphore_key(set: c_int, number: c_ushort) -> u64 {
    key(&[sort::SEMAPHORES, set as u64, number.into()])
}

fn semaphore(set: c_int, number: c_ushort) -> u32 {
    object(semaphore_key(set, number), ObjectKind::Queue, "System V semaphore")
}

/// The value that the semaphore has.
pub fn value(set: c_int, number: c_ushort) -> u64 {
    let _errno = Errno::keep();
    let asked = [set as u64, number.into(), libc::GETVAL as u64, 0, 0, 0];
    // SAFETY: any number may be asked about.
    u64::try_from(unsafe { sys::call(libc::SYS_semctl, asked) }).unwrap_or(0)
}

/// The semaphores are about to be used. What one holds before its first use was put there by nobody
/// that was seen: the thread that uses it first stands in for them.
pub fn about_to_use(
    session: &mut Session,
    set: c_int,
    numbers: impl IntoIterator<Item = c_ushort>,
) {
    for number in numbers {
        let key = semaphore_key(set, number);
        let mut known = known(session.turn());
        let amounts = known.semaphores.get_or_insert_default();
        if amounts.contains_key(&key) {
            continue;
        }
        let amount = value(set, number);
        amounts.insert(key, amount);
        drop(known);
        if amount > 0 {
            send(session, semaphore(set, number), amount, 0);
        }
    }
}

/// The amount that the recorded steps leave in the semaphore.
fn amount(turn: Turn, set: c_int, number: c_ushort) -> RefMut<'static, u64> {
    let key = semaphore_key(set, number);
    RefMut::map(known(turn), |known| {
        known.semaphores.get_or_insert_default().entry(key).or_default()
    })
}

/// A `semop` did these steps, all at once.
pub fn changed(session: &mut Session, set: c_int, steps: &[(c_ushort, Step)]) {
    let _errno = Errno::keep();
    for &(number, step) in steps {
        let channel = semaphore(set, number);
        let mut there = amount(session.turn(), set, number);
        match step {
            Step::Raise(more) => {
                *there += more;
                drop(there);
                send(session, channel, more, 0);
            }
            Step::Lower(less) => {
                *there = there.saturating_sub(less);
                drop(there);
                super::heard_of_children(session);
                session.record(0, &record::Receive { channel, amount: less });
            }
            Step::AwaitZero => {
                drop(there);
                poll(session, channel, false);
            }
        }
    }
    if steps.len() > 1 {
        keep_set_in_order(session, set, steps);
    }
}

/// A `semop` that does not wait could not do these steps.
pub fn not_changed(session: &mut Session, set: c_int, steps: &[(c_ushort, Step)]) {
    let _errno = Errno::keep();
    match *steps {
        [(number, Step::Lower(1))] => poll(session, semaphore(set, number), false),
        [(number, Step::AwaitZero)] => poll(session, semaphore(set, number), true),
        _ => keep_set_in_order(session, set, steps),
    }
}

fn keep_set_in_order(session: &mut Session, set: c_int, steps: &[(c_ushort, Step)]) {
    for &(number, _) in steps {
        let holds_something = *amount(session.turn(), set, number) > 0;
        keep_order(session, semaphore(set, number), holds_something);
    }
}

/// The semaphore was set to a value, whatever it had `before`.
pub fn set_to(session: &mut Session, set: c_int, number: c_ushort, before: u64, after: u64) {
    let _errno = Errno::keep();
    match after.cmp(&before) {
        Ordering::Greater => changed(session, set, &[(number, Step::Raise(after - before))]),
        Ordering::Less => changed(session, set, &[(number, Step::Lower(before - after))]),
        Ordering::Equal => {}
    }
}

/// Somebody asked for the value of the semaphore: any other order could give another one.
pub fn looked(session: &mut Session, set: c_int, number: c_ushort) {
    if !alone() {
        let _errno = Errno::keep();
        let holds_something = *amount(session.turn(), set, number) > 0;
        keep_order(session, semaphore(set, number), holds_something);
    }
}

// Locks of files

/// What happened to a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    Taken,
    Released,
}

/// What the locks of an open file are known by.
pub fn lock_key(file: c_int) -> Option<u64> {
    let status = status(file)?;
    Some(key(&[sort::LOCKS, status.st_dev, status.st_ino]))
}

fn locks(key: u64) -> u32 {
    object(key, ObjectKind::State, "lock of a file")
}

/// The file was locked or unlocked.
pub fn locked(session: &mut Session, key: u64, lock: Lock) {
    let _errno = Errno::keep();
    known(session.turn()).locked.get_or_insert_default().insert(key);
    let channel = locks(key);
    match lock {
        Lock::Taken => session.record(0, &record::Receive { channel, amount: 1 }),
        Lock::Released => send(session, channel, 1, 0),
    }
}

/// The file could not be locked by a call that does not wait.
pub fn lock_refused(session: &mut Session, key: u64) {
    let _errno = Errno::keep();
    poll(session, locks(key), false);
}

/// A descriptor is about to be closed, which may unlock its file.
pub fn closing(session: &mut Session, file: c_int) {
    let turn = session.turn();
    let any = known(turn).locked.is_some();
    let is_locked =
        |key: &u64| known(turn).locked.as_ref().is_some_and(|files| files.contains(key));
    if any && let Some(key) = lock_key(file).filter(is_locked) {
        locked(session, key, Lock::Released);
        scheduler::wake(Wait::Kernel(key));
    }
}
