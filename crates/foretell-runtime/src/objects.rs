//! The synchronisation objects as the scheduler models them: who holds what.
//!
//! The program's own objects in memory are not touched while the scheduler is on; an object is
//! known by its address and gets a number in the trace when it is first used or initialised. An
//! address that is initialised again is another object; one that was only destroyed is not.

use std::cell::{Cell, RefCell};

use foretell_wire::condition::Condition;
use foretell_wire::record::{self, Stands};
use foretell_wire::standing::Awaited;
use foretell_wire::{ObjectKind, of_variable};

use crate::recorder::recorder;
use crate::turn::{Turn, TurnCell};

/// Spreads the bits of an address for tables whose size is a power of two.
pub fn hash(address: u64) -> usize {
    ((address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize
}

/// An object. It stays where it is as long as the process runs; what changes is in cells, because others
/// change it while a thread waits.
pub struct Object {
    /// Its number in the trace.
    pub number: u32,
    /// Where it lies.
    pub address: u64,
    /// What it is and who holds it.
    pub model: Model,
    /// Other processes may see it: the real object decides, and the model follows.
    pub shared: Cell<bool>,
    /// It was destroyed, and its memory says so while nobody initialises it again, see [`bury`].
    buried: Cell<bool>,
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
    Condition(RefCell<Condition>),
    /// A semaphore's count.
    Semaphore(Cell<u32>),
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
    pub owner: Cell<Option<u32>>,
    /// How often the holder has it.
    pub depth: Cell<u32>,
    /// It was destroyed.
    pub destroyed: Cell<bool>,
    /// Of a robust one: what the last owners have left.
    pub left: Cell<Left>,
}

impl Mutex {
    /// The thread has it, or has it once more.
    pub fn take(&self, thread: u32) {
        self.owner.set(Some(thread));
        self.depth.set(self.depth.get() + 1);
    }

    /// The owner gives it back once; whether nobody has it now.
    pub fn give_back(&self) -> bool {
        self.depth.set(self.depth.get() - 1);
        let is_free = self.depth.get() == 0;
        if is_free {
            self.owner.set(None);
        }
        is_free
    }

    /// Nobody has it any more; says how often the owner had it.
    pub fn leave(&self) -> u32 {
        self.owner.set(None);
        self.depth.take()
    }
}

/// How its owners have left a robust mutex, by the number that the trace has for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// As they should.
    Consistent = 0,
    /// The last one ended with it.
    OwnerDead = 1,
    /// And whoever was told so gave it back without a word.
    NotRecoverable = 2,
}

/// A reader-writer lock.
#[derive(Default)]
pub struct ReaderWriter {
    /// The writer's number.
    pub writer: Cell<Option<u32>>,
    /// The readers' numbers; one may be there several times.
    pub readers: RefCell<Vec<u32>>,
}

impl ReaderWriter {
    /// Whether one more reader, or a writer, can have it.
    pub fn is_free(&self, shared: bool) -> bool {
        self.writer.get().is_none() && (shared || self.readers.borrow().is_empty())
    }

    /// The thread gives it back; whether as a reader, or `None` if it does not have it.
    pub fn give_back(&self, thread: u32) -> Option<bool> {
        if self.writer.get() == Some(thread) {
            self.writer.set(None);
            return Some(false);
        }
        let mut readers = self.readers.borrow_mut();
        let reader = readers.iter().position(|&reader| reader == thread)?;
        readers.swap_remove(reader);
        Some(true)
    }
}

/// A barrier.
pub struct Barrier {
    /// How many threads meet.
    pub parties: u32,
    /// How many have come in this round.
    pub arrived: Cell<u32>,
    /// How many of those that look at what it tells them were counted in this round.
    pub counted: Cell<u32>,
    /// Rounds that are complete.
    pub round: Cell<u64>,
}

/// All objects by address.
struct Table {
    /// Objects by number.
    objects: Vec<&'static Object>,
    /// Numbers plus 1, by hash of the address; 0 is empty, [`GONE`] was used.
    slots: Vec<u32>,
    /// Slots that are not empty.
    used: usize,
}

const GONE: u32 = u32::MAX;

static TABLE: TurnCell<RefCell<Table>> =
    TurnCell::new(RefCell::new(Table { objects: Vec::new(), slots: Vec::new(), used: 0 }));

impl Model {
    /// A semaphore with this count.
    pub fn semaphore(count: u32) -> Model {
        Model::Semaphore(Cell::new(count))
    }

    /// A condition variable for which nobody waits.
    pub fn condition() -> Model {
        Model::Condition(RefCell::default())
    }
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
    turn: Turn,
    address: u64,
    fits: impl Fn(&Model) -> bool,
    make: impl FnOnce() -> Model,
) -> &'static Object {
    if let Some(number) = number_at(turn, address) {
        let object = by_number(turn, number);
        // SAFETY: the program uses what lies there.
        let again =
            || object.buried.get() && unsafe { (address as *const u32).read_volatile() } != GRAVE;
        if fits(&object.model) && !again() {
            return object;
        }
    }
    define(turn, address, make())
}

/// A new object at the address, whatever was there.
pub fn define(turn: Turn, address: u64, model: Model) -> &'static Object {
    forget(turn, address);
    let number = count(turn);
    let (kind, amount) = match &model {
        Model::Mutex(mutex) => (mutex.kind, 0),
        Model::ReaderWriter(_) => (ObjectKind::ReaderWriterLock, 0),
        Model::Condition(_) => (ObjectKind::Condition, 0),
        Model::Semaphore(count) => (ObjectKind::Semaphore, count.get()),
        Model::Barrier(barrier) => (ObjectKind::Barrier, barrier.parties),
        Model::Channel(kind) => (*kind, 0),
    };
    let (kind, amount) = (kind as u32, amount.into());
    let record = record::DefineObject { object: number, kind, address, amount };
    // SAFETY: the token; nobody else has the recorder here.
    unsafe { recorder() }.record(0, 0, &record);
    let (shared, buried) = (Cell::new(false), Cell::new(false));
    let object: &'static Object =
        Box::leak(Box::new(Object { number, address, model, shared, buried }));
    let mut table = TABLE.shared(turn).borrow_mut();
    table.objects.push(object);
    table.insert(address, number);
    object
}

/// The number of the object at the address, if one was ever used there.
pub fn number_at(turn: Turn, address: u64) -> Option<u32> {
    let table = TABLE.shared(turn).borrow();
    table.find(address).map(|slot| table.slots[slot] - 1)
}

/// There is no object at the address any more.
pub fn forget(turn: Turn, address: u64) {
    let mut table = TABLE.shared(turn).borrow_mut();
    if let Some(slot) = table.find(address) {
        table.slots[slot] = GONE;
    }
}

/// The object at the address was destroyed. Whoever uses it from now on uses the same object, unless it
/// is initialised again, by a function or by plain writes.
pub fn bury(turn: Turn, address: u64) {
    let Some(number) = number_at(turn, address) else { return };
    let object = by_number(turn, number);
    match object.shared.get() {
        true => forget(turn, address), // other processes see the memory
        false => {
            object.buried.set(true);
            // SAFETY: the program's object, which it has just destroyed.
            unsafe { (address as *mut u32).write_volatile(GRAVE) };
        }
    }
}

/// How many objects there are and were; their numbers begin with 0.
pub fn count(turn: Turn) -> u32 {
    TABLE.shared(turn).borrow().objects.len() as u32
}

/// The object with this number, which comes from [`define`].
pub fn by_number(turn: Turn, number: u32) -> &'static Object {
    TABLE.shared(turn).borrow().objects[number as usize]
}

/// Whether the object exists in the scheduler's model only, for a variable.
pub fn is_of_variable(turn: Turn, number: u32) -> bool {
    by_number(turn, number).address & of_variable::ANY != 0
}

/// The count of the semaphore with this number.
pub fn semaphore(turn: Turn, number: u32) -> &'static Cell<u32> {
    match &by_number(turn, number).model {
        Model::Semaphore(count) => count,
        _ => unreachable!("numbers of semaphores name semaphores"),
    }
}

/// The semaphore at an address that is not of the C library, and its count, which is 0 at first.
pub fn semaphore_at(turn: Turn, address: u64) -> (u32, &'static Cell<u32>) {
    let fits = |model: &Model| matches!(model, Model::Semaphore(_));
    let number = get(turn, address, fits, || Model::semaphore(0)).number;
    (number, semaphore(turn, number))
}

/// Whether a semaphore, or another object that other processes see, can be taken now.
pub fn is_free(turn: Turn, number: u32) -> bool {
    let object = by_number(turn, number);
    if let Model::Semaphore(count) = &object.model
        && !object.shared.get()
    {
        return count.get() > 0;
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

/// The address of what a thread waits for, without the marks of what belongs to a variable. (A channel's key has none.)
pub fn without_marks(on: Awaited, subject: u64) -> u64 {
    match on {
        Awaited::Mutex | Awaited::Condition => subject & !of_variable::ANY,
        _ => subject,
    }
}

/// Where a thread stands that waits for the object.
pub fn awaited(turn: Turn, number: u32, thread: u32, event: u32) -> Stands {
    let object = by_number(turn, number);
    let stands = |on: Awaited| Stands::new(thread, event, on, object.address);
    match &object.model {
        Model::Mutex(mutex) => stands(Awaited::Mutex).held_by(mutex.owner.get()),
        Model::ReaderWriter(lock) => {
            let owner = lock.writer.get().or_else(|| lock.readers.borrow().first().copied());
            stands(Awaited::ReaderWriterLock).held_by(owner)
        }
        Model::Condition(_) => stands(Awaited::Condition),
        Model::Semaphore(_) => stands(Awaited::Semaphore),
        Model::Channel(_) => stands(Awaited::Channel),
        Model::Barrier(barrier) => {
            stands(Awaited::Barrier).of_whom(barrier.arrived.get(), barrier.parties)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn object(number: u32, address: u64) -> &'static Object {
        let (shared, buried) = (Cell::new(false), Cell::new(false));
        let model = Model::semaphore(0);
        Box::leak(Box::new(Object { number, address, model, shared, buried }))
    }

    #[test]
    fn an_address_is_found_until_it_is_forgotten() {
        let mut table = Table { objects: Vec::new(), slots: Vec::new(), used: 0 };
        let mut known = BTreeMap::new();
        for number in 0..600u32 {
            let address = u64::from(number % 400) * 40;
            if let Some(slot) = table.find(address) {
                table.slots[slot] = GONE;
            }
            table.objects.push(object(number, address));
            table.insert(address, number);
            known.insert(address, number);
            if number % 3 == 0 {
                let slot = table.find(address).expect("it was put there");
                table.slots[slot] = GONE;
                known.remove(&address);
            }
        }
        for address in (0..400 * 40).step_by(8) {
            let found = table.find(address).map(|slot| table.slots[slot] - 1);
            assert_eq!(found, known.get(&address).copied(), "{address}");
        }
    }

    #[test]
    fn a_mutex_is_free_when_its_owner_gave_it_back_as_often_as_it_took_it() {
        let Model::Mutex(mutex) = crate::wrappers::mutex::unlocked(ObjectKind::RecursiveMutex)
        else {
            unreachable!("a mutex")
        };
        mutex.take(3);
        mutex.take(3);
        assert!(!mutex.give_back());
        assert_eq!(mutex.owner.get(), Some(3));
        assert!(mutex.give_back());
        assert_eq!(mutex.owner.get(), None);
        mutex.take(4);
        mutex.take(4);
        assert_eq!(mutex.leave(), 2);
        assert_eq!((mutex.owner.get(), mutex.depth.get()), (None, 0));
    }

    #[test]
    fn a_reader_writer_lock_has_one_writer_or_any_readers() {
        let lock = ReaderWriter::default();
        lock.readers.borrow_mut().extend([1, 2, 1]);
        assert!(lock.is_free(true) && !lock.is_free(false));
        assert_eq!(
            [1, 1, 1, 2].map(|thread| lock.give_back(thread)),
            [Some(true), Some(true), None, Some(true)]
        );
        lock.writer.set(Some(5));
        assert!(!lock.is_free(true) && !lock.is_free(false));
        assert_eq!((lock.give_back(6), lock.give_back(5)), (None, Some(false)));
        assert!(lock.is_free(false));
    }
}
