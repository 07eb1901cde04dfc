//! The synchronisation objects as the scheduler models them: who holds what.
//!
//! The program's own objects in memory are not touched while the scheduler is on; an object is
//! known by its address and gets a number in the trace when it is first used or initialised. An
//! address that is initialised again is another object; one that was only destroyed is not.

use foretell_wire::condition::Condition;
use foretell_wire::{Kind, ObjectKind, of_variable};

use crate::recorder::{head, recorder};
use crate::scheduler;
use crate::turn::TurnCell;

/// Spreads the bits of an address for tables whose size is a power of two.
pub fn hash(address: u64) -> usize {
    ((address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize
}

/// An object.
pub struct Object {
    /// Its number in the trace.
    pub number: u32,
    /// Where it lies.
    pub address: u64,
    /// What it is and who holds it.
    pub model: Model,
    /// Other processes may see it: the real object decides, and the model follows.
    pub shared: bool,
    /// It was destroyed, and its memory says so while nobody initialises it again, see [`bury`].
    buried: bool,
}

/// What the first word of a destroyed object is. POSIX says nothing about what is there, and no object
/// has it there while it is in use.
const GRAVE: u32 = 0x6e6f_7065;

/// The state of an object.
pub enum Model {
    /// Any mutex, and a spin lock.
    Mutex(Mutex),
    /// A reader-writer lock.
    ReaderWriter(ReaderWriter),
    /// A condition variable.
    Condition(Condition),
    /// A semaphore's count.
    Semaphore(u32),
    /// A barrier.
    Barrier(Barrier),
    /// A channel, whose state the kernel keeps.
    Channel(ObjectKind),
}

/// A mutex.
pub struct Mutex {
    /// How a second lock by the holder ends.
    pub kind: ObjectKind,
    /// The holder's number.
    pub owner: Option<u32>,
    /// How often the holder has it.
    pub depth: u32,
    /// It was destroyed.
    pub destroyed: bool,
}

/// A reader-writer lock.
#[derive(Default)]
pub struct ReaderWriter {
    /// The writer's number.
    pub writer: Option<u32>,
    /// The readers' numbers; one may be there several times.
    pub readers: Vec<u32>,
}

/// A barrier.
pub struct Barrier {
    /// How many threads meet.
    pub parties: u32,
    /// How many have come in this round.
    pub arrived: u32,
    /// Rounds that are complete.
    pub round: u64,
}

/// All objects by address.
struct Table {
    /// Objects by number.
    objects: Vec<Object>,
    /// Numbers plus 1, by hash of the address; 0 is empty, [`GONE`] was used.
    slots: Vec<u32>,
    /// Slots that are not empty.
    used: usize,
}

const GONE: u32 = u32::MAX;

static TABLE: TurnCell<Table> =
    TurnCell::new(Table { objects: Vec::new(), slots: Vec::new(), used: 0 });

/// # Safety
/// Only for the thread that has the turn.
unsafe fn table() -> &'static mut Table {
    // SAFETY: the caller's promise.
    unsafe { TABLE.get() }
}

impl Table {
    /// The slot of the address, or an empty one where it would go.
    fn find(&self, address: u64) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash(address) & mask;
        loop {
            match self.slots[slot] {
                0 => return None,
                GONE => {}
                number if self.objects[number as usize - 1].address == address => {
                    return Some(slot);
                }
                _ => {}
            }
            slot = (slot + 1) & mask;
        }
    }

    fn insert(&mut self, address: u64, number: u32) {
        if self.used * 2 >= self.slots.len() {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![0; (old.len() * 2).max(256)];
            self.used = 0;
            for number in old.into_iter().filter(|&number| number != 0 && number != GONE) {
                self.place(self.objects[number as usize - 1].address, number);
            }
        }
        self.place(address, number + 1);
    }

    fn place(&mut self, address: u64, entry: u32) {
        let mask = self.slots.len() - 1;
        let mut slot = hash(address) & mask;
        while self.slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = entry;
        self.used += 1;
    }
}

/// The object at the address; a new one as `make` says when there is none, or when `fits` says that
/// what was there is something else.
pub fn get(
    address: u64,
    fits: impl Fn(&Model) -> bool,
    make: impl FnOnce() -> Model,
) -> &'static mut Object {
    // SAFETY: callers have the turn; objects are used one at a time.
    let table = unsafe { table() };
    if let Some(slot) = table.find(address) {
        let number = table.slots[slot] as usize - 1;
        let object = &table.objects[number];
        // SAFETY: the program uses what lies there.
        let again = || object.buried && unsafe { (address as *const u32).read_volatile() } != GRAVE;
        if fits(&object.model) && !again() {
            return &mut table.objects[number];
        }
    }
    define(address, make())
}

/// A new object at the address, whatever was there.
pub fn define(address: u64, model: Model) -> &'static mut Object {
    forget(address);
    // SAFETY: as above.
    let table = unsafe { table() };
    let number = table.objects.len() as u32;
    let (kind, amount) = match &model {
        Model::Mutex(mutex) => (mutex.kind, 0),
        Model::ReaderWriter(_) => (ObjectKind::ReaderWriterLock, 0),
        Model::Condition(_) => (ObjectKind::Condition, 0),
        Model::Semaphore(count) => (ObjectKind::Semaphore, *count),
        Model::Barrier(barrier) => (ObjectKind::Barrier, barrier.parties),
        Model::Channel(kind) => (*kind, 0),
    };
    let what = u64::from(number) | u64::from(kind as u32) << 32;
    // SAFETY: as above.
    unsafe { recorder() }.put([head(Kind::DefineObject, 0, 0), what, address, amount.into()]);
    table.objects.push(Object { number, address, model, shared: false, buried: false });
    table.insert(address, number);
    &mut table.objects[number as usize]
}

/// The number of the object at the address, if one was ever used there.
pub fn number_at(address: u64) -> Option<u32> {
    // SAFETY: callers have the turn.
    let table = unsafe { table() };
    table.find(address).map(|slot| table.slots[slot] - 1)
}

/// There is no object at the address any more.
pub fn forget(address: u64) {
    // SAFETY: callers have the turn.
    let table = unsafe { table() };
    if let Some(slot) = table.find(address) {
        table.slots[slot] = GONE;
    }
}

/// The object at the address was destroyed. Whoever uses it from now on uses the same object, unless it
/// is initialised again, by a function or by plain writes.
pub fn bury(address: u64) {
    let Some(number) = number_at(address) else { return };
    let object = by_number(number);
    match object.shared {
        true => forget(address), // other processes see the memory
        false => {
            object.buried = true;
            // SAFETY: the program's object, which it has just destroyed.
            unsafe { (address as *mut u32).write_volatile(GRAVE) };
        }
    }
}

/// How many objects there are and were; their numbers begin with 0.
pub fn count() -> u32 {
    // SAFETY: callers have the turn.
    unsafe { table() }.objects.len() as u32
}

/// The object with this number.
pub fn by_number(number: u32) -> &'static mut Object {
    // SAFETY: callers have the turn; numbers come from `define`.
    &mut unsafe { table() }.objects[number as usize]
}

/// Whether a semaphore, or another object that other processes see, can be taken now.
pub fn is_free(number: u32) -> bool {
    let object = by_number(number);
    if let Model::Semaphore(count) = object.model
        && !object.shared
    {
        return count > 0;
    }
    // SAFETY: glibc's layout: the first word of a semaphore is its count, that of a mutex its owner
    // and flags. The object is in use, so it is there.
    let word = unsafe { (object.address as *const u32).read_volatile() };
    match object.model {
        Model::Semaphore(_) => word > 0,
        Model::Mutex(_) => word & OWNER == 0 || word & OWNER_DIED != 0,
        Model::ReaderWriter(_) => word & WRITE_LOCKED == 0,
        _ => true,
    }
}

/// Of the first word of a robust mutex.
const OWNER: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;

/// Of the first word of a reader-writer lock.
const WRITE_LOCKED: u32 = 2;

/// For people.
pub fn describe(number: u32) -> String {
    let object = by_number(number);
    let holder = |owner: Option<u32>| match owner {
        Some(owner) => format!(" held by {}", scheduler::thread_name(owner)),
        None => String::new(),
    };
    // A channel's is none.
    let address = object.address & !of_variable::ANY;
    match &object.model {
        Model::Mutex(mutex) => format!("mutex {address:#x}{}", holder(mutex.owner)),
        Model::ReaderWriter(lock) => {
            let owner = lock.writer.or(lock.readers.first().copied());
            format!("reader-writer lock {:#x}{}", object.address, holder(owner))
        }
        Model::Condition(_) => format!("condition {address:#x}"),
        Model::Semaphore(_) => format!("semaphore {:#x}", object.address),
        Model::Channel(_) => format!("channel {:#x}", object.address),
        Model::Barrier(barrier) => format!(
            "barrier {:#x} ({} of {} came)",
            object.address, barrier.arrived, barrier.parties
        ),
    }
}
