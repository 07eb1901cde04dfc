//! The synchronisation objects as the scheduler models them: who holds what. As in
//! `foretell-runtime`, the program's own objects in memory are not touched.

use foretell_wire::ObjectKind;
use foretell_wire::condition::Condition;
use foretell_wire::record::DefineObject;
use foretell_wire::standing::Awaited;
use rustc_hash::FxHashMap;

use crate::ring::Ring;

/// The state of an object.
pub enum Model {
    /// Any mutex, and a spin lock: its kind, the holder's number, how often it has it.
    Mutex(ObjectKind, Option<u32>, u32),
    /// A reader-writer lock: its writer and its readers.
    ReaderWriter(Option<u32>, Vec<u32>),
    /// A condition variable.
    Condition(Condition),
    /// A semaphore's count.
    Semaphore(u32),
    /// A barrier: how many threads meet, how many have come, rounds that are complete.
    Barrier(u32, u32, u64),
}

impl Model {
    fn kind(&self) -> (ObjectKind, u32) {
        match self {
            Model::Mutex(kind, ..) => (*kind, 0),
            Model::ReaderWriter(..) => (ObjectKind::ReaderWriterLock, 0),
            Model::Condition(_) => (ObjectKind::Condition, 0),
            Model::Semaphore(count) => (ObjectKind::Semaphore, *count),
            Model::Barrier(parties, ..) => (ObjectKind::Barrier, *parties),
        }
    }
}

/// All objects.
#[derive(Default)]
pub struct Objects {
    all: Vec<(u64, Model)>,
    by_address: FxHashMap<u64, u32>,
}

impl Objects {
    /// The number of the object at the address; a new one where there is none, or another kind.
    pub fn number(
        &mut self,
        ring: &mut Ring,
        address: u64,
        fits: impl Fn(&Model) -> bool,
        make: impl FnOnce() -> Model,
    ) -> u32 {
        match self.by_address.get(&address) {
            Some(&number) if fits(&self.all[number as usize].1) => number,
            _ => self.define(ring, address, make()),
        }
    }

    /// A new object at the address, whatever was there.
    pub fn define(&mut self, ring: &mut Ring, address: u64, model: Model) -> u32 {
        let number = self.all.len() as u32;
        let (kind, amount) = model.kind();
        let (kind, amount) = (kind as u32, amount.into());
        ring.record(0, 0, &DefineObject { object: number, kind, address, amount });
        self.all.push((address, model));
        self.by_address.insert(address, number);
        number
    }

    /// The object at the address, if one was used there.
    pub fn at(&self, address: u64) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    /// What lies there is none any more.
    pub fn forget(&mut self, address: u64) {
        self.by_address.remove(&address);
    }

    /// The object with this number.
    pub fn model(&mut self, number: u32) -> &mut Model {
        &mut self.all[number as usize].1
    }

    /// What a thread waits for that waits for the object, its address, and who holds it by number.
    pub fn awaited(&self, number: u32) -> (Awaited, u64, Option<u32>) {
        let (address, model) = &self.all[number as usize];
        let (what, holder) = match model {
            Model::Mutex(_, owner, _) => (Awaited::Mutex, *owner),
            Model::ReaderWriter(writer, readers) => {
                (Awaited::ReaderWriterLock, writer.or(readers.first().copied()))
            }
            Model::Condition(_) => (Awaited::Condition, None),
            Model::Semaphore(_) => (Awaited::Semaphore, None),
            Model::Barrier(..) => (Awaited::Barrier, None),
        };
        (what, *address, holder)
    }
}
