//! Channels of Rust's standard library (see `rust_channels` in foretell-instrument).
//!
//! The library does its work itself, but never waits: before it begins, the thread waits here until the
//! library can go through at once. What it does is in the trace as
//!
//! - a lock, which is held while the library works;
//! - a semaphore of the messages, posted by who sends and taken by who receives, and one of the room that is
//!   left where there is a bound;
//! - two counts, of messages sent and received: which message is the how many-th decides where it lies, and
//!   is therefore a choice (a pin);
//! - a semaphore of the senders that are gone. Who receives and finds no message takes one post for each
//!   sender that there ever was. Which sender goes last is of no interest, as nobody can send after it;
//! - a count of receivers that are gone, which who sends looks at.
//!
//! Messages are plain memory, written and read by the library where it was instrumented.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use foretell_abi::{BinaryOp, ChannelCall, Order};
use foretell_wire::outside::Cause;
use foretell_wire::record::{self, ReadModifyWrite};
use foretell_wire::{BY_TRY, Kind, ObjectKind, access};

use super::mutex::{self, Patience, unlocked};
use super::time::deadline_of;
use crate::forced;
use crate::local;
use crate::objects::{self, Model};
use crate::outside;
use crate::recorder::{SKIPPED, head};
use crate::scheduler;
use crate::shadow;
use crate::thread::{Session, Wait};
use crate::turn::{Turn, TurnCell};

/// A channel. What changes is in cells: others change it while a thread waits.
struct Channel {
    address: u64,
    lock: u32,
    messages: u32,
    room: Option<u32>,
    gone: u32,
    /// Senders that there ever were, those that are gone, and those of them that a receiver knows of.
    senders: Cell<u32>,
    senders_gone: Cell<u32>,
    senders_known_gone: Cell<u32>,
    receiver_gone: Cell<bool>,
    /// Threads that have taken room and wait for the lock.
    reserved: Cell<u32>,
    /// The thread that receives, and whether there are several.
    receiver: Cell<Option<u32>>,
    has_several: Cell<bool>,
}

/// What is counted, at an address that no program has: the memory of a channel is the library's, and may be
/// another channel's later.
#[derive(Clone, Copy)]
enum Count {
    Sent,
    Received,
    ReceiversGone,
}

/// What is added to the address of a channel; no address of a program has such a bit.
const COUNTS: u64 = 1 << 56;

/// Channels that are in use. A thread that waits keeps its own from being freed.
static CHANNELS: TurnCell<RefCell<Vec<Rc<Channel>>>> = TurnCell::new(RefCell::new(Vec::new()));
/// The address of a channel, and how often each `Count` was counted there.
type Counted = (u64, [u64; 3]);
/// What was counted at the addresses of channels, also of those that are gone.
static COUNTED: TurnCell<RefCell<Vec<Counted>>> = TurnCell::new(RefCell::new(Vec::new()));
/// Calls that have begun.
static OPEN: TurnCell<RefCell<Vec<Open>>> = TurnCell::new(RefCell::new(Vec::new()));

/// A call that has begun.
struct Open {
    thread: u32,
    channel: u64,
    place: u64,
    then: Then,
}

/// What is left to do when the library is done.
enum Then {
    /// Posts the semaphore of the messages, or of the room, and gives the lock back.
    Post(Option<u32>),
    /// Gives the lock back.
    Release,
    /// A sender is gone. What the library does with the last one is not told of: so many hooks had been
    /// skipped before.
    SenderGone(u64),
    /// A receiver is gone. What the library frees of its own is not told of: who frees it came last.
    ReceiverGone(Vec<u64>),
}

/// Words of a channel in memory, at least.
const WORDS: usize = 64;
/// The words that come before its fields: two positions, each alone in 128 bytes. The rest of those bytes is
/// never written, so it has what some stack had there before.
const POSITIONS: usize = 32;

/// How many messages there is room for: the library keeps it twice, and beside it the next power of two
/// beyond it (a bit that marks the end) and twice that (a lap). One other word, the address of the messages, may lie among
/// them.
fn capacity(words: &[u64]) -> Option<u32> {
    let fields = words.get(POSITIONS..)?;
    let without_one = |window: &[u64]| {
        let mut four = [[0; 4]; 5];
        for (left_out, four) in four.iter_mut().enumerate() {
            let kept = window.iter().enumerate().filter(|&(at, _)| at != left_out);
            four.iter_mut().zip(kept).for_each(|(to, (_, word))| *to = *word);
        }
        four
    };
    let mut found = fields.windows(5).flat_map(without_one).filter_map(|mut sorted| {
        sorted.sort_unstable();
        let [capacity, again, mark, lap] = sorted;
        let expected = capacity.checked_add(1)?.checked_next_power_of_two()?;
        let is_it = capacity > 0 && capacity == again && mark == expected && lap / 2 == mark;
        is_it.then_some(capacity)
    });
    let capacity = found.next()?;
    let is_clear = found.all(|other| other == capacity);
    is_clear.then(|| u32::try_from(capacity).ok())?
}

fn words(channel: u64) -> Vec<u64> {
    // SAFETY: the program's channel, which is so large, and aligned to more.
    let word = |at: usize| unsafe { (*(channel as *const AtomicU64).add(at)).load(SeqCst) };
    (0..WORDS).map(word).collect()
}

fn add(count: &Cell<u32>) {
    count.set(count.get() + 1);
}

fn semaphore(turn: Turn, address: u64, count: u32) -> u32 {
    objects::define(turn, address, Model::semaphore(count)).number
}

/// The channel at the address; `None` if it cannot be understood.
fn channel(session: &Session, address: u64, bounded: bool) -> Option<Rc<Channel>> {
    let turn = session.turn();
    if let Some(known) = known(turn, address) {
        return Some(known);
    }
    let room = match bounded {
        true => match capacity(&words(address)) {
            Some(capacity) => Some(semaphore(turn, address + 8, capacity)),
            None => {
                let (me, place) = (session.me.number, session.place);
                outside::note(me, Cause::Library, 0, "a channel of unknown size", place);
                return None;
            }
        },
        false => None,
    };
    let channel = Rc::new(Channel {
        address,
        lock: objects::define(turn, address, unlocked(ObjectKind::Mutex)).number,
        messages: semaphore(turn, address + 16, 0),
        room,
        gone: semaphore(turn, address + 24, 0),
        senders: Cell::new(1),
        senders_gone: Cell::new(0),
        senders_known_gone: Cell::new(0),
        receiver_gone: Cell::new(false),
        reserved: Cell::new(0),
        receiver: Cell::new(None),
        has_several: Cell::new(false),
    });
    CHANNELS.shared(turn).borrow_mut().push(channel.clone());
    Some(channel)
}

fn known(turn: Turn, address: u64) -> Option<Rc<Channel>> {
    CHANNELS.shared(turn).borrow().iter().find(|channel| channel.address == address).cloned()
}

fn count_of(session: &Session, semaphore: u32) -> u32 {
    objects::semaphore(session.turn(), semaphore).get()
}

/// Adds to what was counted; says how many there are now.
fn counted(session: &Session, channel: u64, what: Count, more: u64) -> u64 {
    let mut all = COUNTED.shared(session.turn()).borrow_mut();
    let at = all.iter().position(|(known, _)| *known == channel).unwrap_or_else(|| {
        all.push((channel, [0; 3]));
        all.len() - 1
    });
    let count = &mut all[at].1[what as usize];
    *count += more;
    *count
}

fn cell(channel: u64, what: Count) -> u64 {
    (channel | COUNTS) + 8 * what as u64
}

/// Holds what the event with this shadow read at the value.
fn hold(session: &mut Session, read: u32, value: u64) {
    session.record(64, &record::Pin { shadow: read, value });
    session.point();
}

/// Counts one more; how many there were decides what follows.
fn count(session: &mut Session, channel: u64, what: Count) {
    let new = counted(session, channel, what, 1);
    let old = new - 1;
    let read = shadow::of_read(session.me.slots.index);
    let written = shadow::binary(BinaryOp::Add as u32, 64, read, old, 0, 1);
    let detail = access::detail(8, Order::AcquireRelease as u8);
    let (address, shadow) = (cell(channel, what), written);
    session.record(detail, &ReadModifyWrite { address, old, new, shadow, address_shadow: 0 });
    hold(session, read, old);
}

/// Looks whether the receiver is gone, which decides what follows.
fn look(session: &mut Session, channel: u64) {
    let value = counted(session, channel, Count::ReceiversGone, 0);
    let read = shadow::of_read(session.me.slots.index);
    let place = session.place;
    session.recorder().meet(place);
    let head = head(Kind::Read, access::detail(8, Order::Acquire as u8), place);
    session.me.access::<false, 0>(head, cell(channel, Count::ReceiversGone), value, []);
    hold(session, read, value);
}

/// Takes one, which is there.
fn take(session: &mut Session, semaphore: u32, by_try: bool) {
    let count = objects::semaphore(session.turn(), semaphore);
    count.set(count.get() - 1);
    let detail = if by_try { BY_TRY } else { 0 };
    session.event(Kind::SemaphoreWait, detail, [semaphore.into()]);
    session.point();
}

fn found_nothing(session: &mut Session, semaphore: u32) {
    session.event(Kind::SemaphoreWaitFailed, 0, [semaphore.into()]);
    session.point();
}

fn post(session: &mut Session, semaphore: u32) {
    add(objects::semaphore(session.turn(), semaphore));
    session.event(Kind::SemaphorePost, 0, [semaphore.into()]);
    scheduler::wake(Wait::Object(semaphore));
    session.point();
}

fn lock(session: &mut Session, number: u32) {
    mutex::acquire(session, number, Patience::Until(None));
}

/// With the lock, and room for a message taken: what follows when the library has sent it. Nobody receives
/// it if the receiver is gone, which the library will find, too.
fn sends(session: &mut Session, channel: &Channel) -> Then {
    look(session, channel.address);
    if channel.receiver_gone.get() {
        // The others must see it.
        return Then::Post(channel.room);
    }
    count(session, channel.address, Count::Sent);
    Then::Post(Some(channel.messages))
}

/// With the lock, and a message taken.
fn receives(session: &mut Session, channel: &Channel) -> Then {
    count(session, channel.address, Count::Received);
    Then::Post(channel.room)
}

/// Sends as soon as there is room.
fn send(session: &mut Session, channel: &Channel) -> Then {
    if let Some(room) = channel.room {
        while count_of(session, room) == 0 {
            scheduler::block(session.me, Wait::Object(room), None);
        }
        add(&channel.reserved);
        take(session, room, false);
    }
    lock(session, channel.lock);
    channel.reserved.set(channel.reserved.get().saturating_sub(1));
    sends(session, channel)
}

fn try_send(session: &mut Session, channel: &Channel) -> Then {
    // Who has room will send in a moment; until then the library would find it.
    while channel.reserved.get() > 0
        && channel.room.is_some_and(|room| count_of(session, room) == 0)
    {
        scheduler::block(session.me, Wait::Object(channel.lock), None);
    }
    lock(session, channel.lock);
    match channel.room {
        Some(room) if count_of(session, room) == 0 => {
            found_nothing(session, room);
            return Then::Release;
        }
        Some(room) => take(session, room, true),
        None => {}
    }
    sends(session, channel)
}

/// Receives as soon as there is a message or nobody can send one any more, until the deadline.
fn receive(session: &mut Session, channel: &Channel, deadline: Option<u64>) -> Option<Then> {
    let by_try = deadline.is_some();
    let before = channel.receiver.replace(Some(session.me.number));
    channel
        .has_several
        .set(channel.has_several.get() || before.is_some_and(|before| before != session.me.number));
    let several = channel.has_several.get();
    let (mut late, mut looked) = (false, !several);
    loop {
        if count_of(session, channel.messages) > 0 {
            take(session, channel.messages, by_try);
            lock(session, channel.lock);
            return Some(receives(session, channel));
        }
        // A schedule may have the thread find nothing, or learn of a sender, before all are gone.
        let me = session.me.number;
        let all_gone = channel.senders_gone.get() == channel.senders.get();
        if !looked && (all_gone || forced::expects(me, "sem-wait-failed")) {
            // Another thread that receives may have taken what was there.
            found_nothing(session, channel.messages);
            looked = true;
            continue;
        }
        if all_gone && channel.senders_known_gone.get() == channel.senders.get() {
            return None;
        }
        if all_gone || count_of(session, channel.gone) > 0 && forced::expects(me, "sem-wait") {
            take(session, channel.gone, by_try);
            add(&channel.senders_known_gone);
            // Nobody has sent anything meanwhile.
            looked = !several || channel.senders_known_gone.get() < channel.senders.get();
            continue;
        }
        if late {
            found_nothing(session, channel.messages);
            lock(session, channel.lock);
            // The library looks once more.
            if count_of(session, channel.messages) > 0 {
                take(session, channel.messages, true);
                return Some(receives(session, channel));
            }
            return Some(Then::Release);
        }
        late |= scheduler::block(session.me, Wait::Object(channel.messages), deadline);
    }
}

fn try_receive(session: &mut Session, channel: &Channel) -> Then {
    lock(session, channel.lock);
    if count_of(session, channel.messages) > 0 {
        take(session, channel.messages, true);
        return receives(session, channel);
    }
    found_nothing(session, channel.messages);
    learn_of_senders(session, channel);
    Then::Release
}

/// With the lock: looks whether there are senders.
fn learn_of_senders(session: &mut Session, channel: &Channel) {
    while channel.senders_known_gone.get() < channel.senders.get() {
        if count_of(session, channel.gone) == 0 {
            return found_nothing(session, channel.gone);
        }
        take(session, channel.gone, true);
        add(&channel.senders_known_gone);
    }
}

/// The receiver takes what is there, which the library destroys, and is gone. What the program does when its
/// messages are destroyed may need other locks, so the lock is given back before.
fn drop_receiver(session: &mut Session, channel: &Channel) -> Then {
    lock(session, channel.lock);
    while count_of(session, channel.messages) > 0 {
        take(session, channel.messages, true);
    }
    if channel.senders_known_gone.get() < channel.senders.get() {
        found_nothing(session, channel.messages);
    }
    // Whether it is the last to go decides what the library does.
    learn_of_senders(session, channel);
    channel.receiver_gone.set(true);
    count_gone(session, channel.address);
    if let Some(room) = channel.room {
        post(session, room);
    }
    session.me.unpreemptible += 1;
    mutex::release(session, channel.lock);
    let mut own = words(channel.address);
    own.push(channel.address);
    Then::ReceiverGone(own)
}

fn count_gone(session: &mut Session, channel: u64) {
    let gone = counted(session, channel, Count::ReceiversGone, 1);
    let place = session.place;
    session.recorder().meet(place);
    let head = head(Kind::Write, access::detail(8, Order::Release as u8), place);
    session.me.access::<false, 0>(head, cell(channel, Count::ReceiversGone), gone, []);
    session.point();
}

/// Whether a block that the thread frees is the library's own business.
pub fn frees(session: &Session, block: u64) -> bool {
    let open = OPEN.shared(session.turn()).borrow();
    open.iter().filter(|open| open.thread == session.me.number).any(|open| match &open.then {
        Then::ReceiverGone(own) => own.contains(&block),
        _ => false,
    })
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_rust_channel_begin(
    call: u32,
    address: *const u8,
    bounded: u32,
    seconds: u64,
    nanoseconds: u32,
) {
    let Some(mut session) = Session::begin() else { return };
    let Some(call) = ChannelCall::ALL.get(call as usize) else { return };
    session.place = session.me.called_at;
    session.point();
    let Some(channel) = channel(&session, address as u64, bounded != 0) else { return };
    let channel = &*channel;
    let limit = libc::timespec { tv_sec: seconds as i64, tv_nsec: nanoseconds.into() };
    let deadline = (nanoseconds < ChannelCall::NO_LIMIT)
        .then(|| deadline_of(libc::CLOCK_MONOTONIC, &raw const limit));
    let then = match call {
        ChannelCall::Send => Some(send(&mut session, channel)),
        ChannelCall::TrySend => Some(try_send(&mut session, channel)),
        ChannelCall::Receive => receive(&mut session, channel, deadline),
        ChannelCall::TryReceive => Some(try_receive(&mut session, channel)),
        ChannelCall::AddSender => {
            add(&channel.senders);
            None
        }
        ChannelCall::DropSender => {
            lock(&mut session, channel.lock);
            Some(Then::SenderGone(SKIPPED.load(Relaxed)))
        }
        ChannelCall::DropReceiver => Some(drop_receiver(&mut session, channel)),
    };
    if let Some(then) = then {
        let silent = matches!(then, Then::SenderGone(_));
        let (thread, place) = (session.me.number, session.place);
        let open = Open { thread, channel: address as u64, place, then };
        OPEN.shared(session.turn()).borrow_mut().push(open);
        if silent {
            // The thread counts as inside the runtime until the library is done.
            session.recorder().allow(0);
            std::mem::forget(session);
        }
    }
}

/// The session in which a thread's call ends, and the call.
fn ending(address: u64) -> Option<(Session, Open)> {
    let current = local::current();
    if current.is_null() {
        return None;
    }
    // SAFETY: this thread's own state.
    let me = unsafe { &mut *current };
    let number = me.number;
    let find = || {
        // SAFETY: who has begun a call without leaving the runtime has the turn, as has a session.
        let mut open = OPEN.shared(unsafe { Turn::held() }).borrow_mut();
        let is_it = |open: &Open| open.thread == number && open.channel == address;
        open.iter().rposition(is_it).map(|at| open.swap_remove(at))
    };
    if me.is_inside() && scheduler::has_turn(me) {
        let open = find()?;
        if let Then::SenderGone(skipped) = open.then {
            SKIPPED.store(skipped, Relaxed);
            me.leave();
        }
        return Some((Session::begin()?, open));
    }
    let session = Session::begin()?;
    Some((session, find()?))
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_rust_channel_end(_call: u32, address: *const u8) {
    let Some((mut session, Open { place, then, .. })) = ending(address as u64) else { return };
    session.place = place;
    let Some(channel) = known(session.turn(), address as u64) else { return };
    let number = channel.lock;
    match then {
        Then::Post(semaphore) => {
            if let Some(semaphore) = semaphore {
                post(&mut session, semaphore);
            }
            mutex::release(&mut session, number);
        }
        Then::Release => _ = mutex::release(&mut session, number),
        Then::SenderGone(_) => {
            add(&channel.senders_gone);
            post(&mut session, channel.gone);
            scheduler::wake(Wait::Object(channel.messages));
            mutex::release(&mut session, number);
        }
        Then::ReceiverGone(_) => session.me.unpreemptible -= 1,
    }
    let left = |channel: &Channel| channel.senders_gone.get() < channel.senders.get();
    let stays = |channel: &Rc<Channel>| !channel.receiver_gone.get() || left(channel);
    CHANNELS.shared(session.turn()).borrow_mut().retain(stays);
    session.point();
}

#[cfg(test)]
mod tests {
    use super::{POSITIONS, capacity};

    /// A channel for so many messages in memory whose unused bytes have the word.
    fn in_memory(capacity: u64, unused: &[u64]) -> Vec<u64> {
        let mark = (capacity + 1).next_power_of_two();
        let mut words: Vec<u64> = unused.iter().copied().cycle().take(POSITIONS).collect();
        // Empty lists of who waits have a capacity of 0 and point to their alignment.
        let waiting = [0, 8, 0, 0, 8, 0, 1, 0, 8, 0, 0, 8, 0, 1];
        words.extend([0x7f00_1000, capacity, capacity, 2 * mark, mark]);
        words.extend(waiting);
        words
    }

    #[test]
    fn the_capacity_is_where_its_mark_and_its_lap_are() {
        for there in 1..200u64 {
            assert_eq!(capacity(&in_memory(there, &[0])), Some(there as u32));
        }
        assert_eq!(capacity(&[0, 8, 8, 1, 1, 16]), None);
    }

    #[test]
    fn what_nobody_wrote_is_no_capacity() {
        for there in 1..200u64 {
            // A larger channel that once lay on the stack, and words that go with the channel's own.
            assert_eq!(capacity(&in_memory(there, &[300, 300, 1024, 512])), Some(there as u32));
            let (mark, lap) =
                ((there + 1).next_power_of_two(), 2 * (there + 1).next_power_of_two());
            assert_eq!(capacity(&in_memory(there, &[mark, lap, 2 * lap])), Some(there as u32));
        }
    }
}
