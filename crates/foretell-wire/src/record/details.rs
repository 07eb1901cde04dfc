//! What the details and some of the words of records mean.

/// The detail of [`super::Kind::WaitEnd`].
pub mod wait {
    /// No signal ended it.
    pub const TIMED_OUT: u8 = 1;
    /// It had a time limit.
    pub const TIMED: u8 = 2;
}

/// The detail of [`super::Kind::SemaphoreWait`]: it would have failed rather than waited for ever.
pub const BY_TRY: u8 = 1;

/// In the address of an object that exists in the scheduler's model only: it belongs to the variable there, for
/// which threads wait.
pub mod of_variable {
    /// The mutex under which they look at it.
    pub const MUTEX: u64 = 1 << 63;
    /// The condition that it has changed.
    pub const CONDITION: u64 = 1 << 62;
    /// Either.
    pub const ANY: u64 = MUTEX | CONDITION;
}

/// Detail of [`super::Kind::Alloc`]: the memory is zero.
pub const ZEROED: u8 = 1;

/// The details of [`super::Kind::Await`].
pub mod await_mark {
    /// A round begins.
    pub const ROUND: u8 = 0;
    /// The branch right before it leaves the round, which with the other outcome goes round again.
    pub const TEST: u8 = 1;
    /// The branch right before it makes the loop go round again.
    pub const FAILED: u8 = 2;
    /// The round is over, and another one follows: nothing is left of it.
    pub const AGAIN: u8 = 3;
}

/// The detail of [`super::Kind::Instrumented`].
pub mod instrumented {
    /// What the module computes is told.
    pub const SYMBOLIC: u8 = 1;
    /// It is a binary that nobody compiled for recording.
    pub const MACHINE_CODE: u8 = 2;
}

/// The details of [`super::Kind::Gap`].
pub mod gap {
    /// Nothing is known but the sentence.
    pub const ANY: u8 = 0;
    /// No gap: what was held at its recorded value.
    pub const HELD_FIXED: u8 = 1;
    /// The functions of the program's C library are not recognised: locks, conditions and joins are not seen as such.
    pub const UNKNOWN_LIBRARY: u8 = 2;
    /// Some locks are not seen as such.
    pub const UNKNOWN_LOCKS: u8 = 3;
    /// The C library took memory for itself that the program had freed.
    pub const FREED_IN_USE: u8 = 4;
}

/// In the detail of [`super::Kind::DefineBinary`], see there.
pub const WIDE_OPERAND: u8 = 1 << 7;

/// The detail of accesses: size in bits 0..4, memory order in bits 4..7 (0: plain, else as
/// `foretell_abi::Order`), and one flag.
pub mod access {
    /// One word more follows; which one, the kind tells.
    pub const MORE: u8 = 1 << 7;

    /// Packs size and order.
    pub fn detail(size: u8, order: u8) -> u8 {
        size | order << 4
    }

    /// The size in bytes.
    pub fn size(detail: u8) -> u8 {
        detail & 15
    }

    /// The order's number.
    pub fn order(detail: u8) -> u8 {
        detail >> 4 & 7
    }
}

/// The flags of lock steps.
pub mod lock {
    /// Held by any number of readers.
    pub const SHARED: u32 = 1;
    /// By an operation that fails rather than waits for ever.
    pub const BY_TRY: u32 = 2;
}

/// The detail of [`super::Kind::Receive`].
pub mod channel {
    /// More would have been taken.
    pub const DRAINED: u8 = 1;
    /// It would have failed rather than waited.
    pub const BY_TRY: u8 = 2;
}

/// The kinds of synchronisation objects.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A mutex that deadlocks on a second lock by its holder.
    Mutex = 0,
    /// A counting mutex.
    RecursiveMutex = 1,
    /// A mutex that refuses a second lock by its holder.
    ErrorCheckingMutex = 2,
    /// A reader-writer lock.
    ReaderWriterLock = 3,
    /// A condition variable.
    Condition = 4,
    /// A semaphore.
    Semaphore = 5,
    /// A barrier.
    Barrier = 6,
    /// A pipe, a socket or an eventfd.
    Queue = 7,
    /// A file, or a signal that is pending.
    State = 8,
    /// A signal with a handler.
    Interrupt = 9,
}

impl ObjectKind {
    /// From the number in a record.
    pub fn from_code(code: u32) -> Option<ObjectKind> {
        use ObjectKind::*;
        [
            Mutex,
            RecursiveMutex,
            ErrorCheckingMutex,
            ReaderWriterLock,
            Condition,
            Semaphore,
            Barrier,
            Queue,
            State,
            Interrupt,
        ]
        .into_iter()
        .find(|&kind| kind as u32 == code)
    }
}

/// Shadows with this bit name a built term by its number; those without name what the read with
/// index `shadow - 1` of the same thread returned. 0 is concrete.
pub const TERM_SHADOW: u32 = foretell_abi::record::TERM_SHADOW;
