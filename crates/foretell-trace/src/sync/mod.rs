//! Synchronisation, described once: the steps on objects such as locks, what they are called, how files
//! hold them, and ([`transition`]) what they do.
//!
//! Each row of [`SyncOp`]'s table says everything that formats, counts and checks of a trace have to know
//! of a step, so that a new kind of step is a new row here and a rule in [`transition`]. The oracle
//! of the tests (foretell-testing's `machine`) has rules of its own, on purpose: the table is tested against
//! them.

pub mod transition;

use crate::event::{LockMode, LockStep};
use crate::id::ObjectId;
use crate::trace::ObjectKind;

/// What a step is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A mutex or a reader-writer lock.
    Lock,
    /// A condition variable.
    Condition,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// A channel.
    Channel,
    /// Any object.
    Any,
}

impl Class {
    /// Is an object of this kind one of them?
    pub fn has(self, kind: ObjectKind) -> bool {
        match kind {
            _ if self == Class::Any => true,
            ObjectKind::Mutex
            | ObjectKind::RecursiveMutex
            | ObjectKind::ErrorCheckingMutex
            | ObjectKind::ReaderWriterLock => self == Class::Lock,
            ObjectKind::Condition => self == Class::Condition,
            ObjectKind::Semaphore { .. } => self == Class::Semaphore,
            ObjectKind::Barrier { .. } => self == Class::Barrier,
            ObjectKind::Channel(_) => self == Class::Channel,
        }
    }
}

/// How the text format writes a flag that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// As a word at the end.
    Word(&'static str),
    /// In front of the keyword.
    Prefix(&'static str),
    /// Behind the keyword, after a dot.
    Suffix(&'static str),
    /// By another keyword.
    Keyword(&'static str),
    /// By another keyword where it is not set.
    KeywordIfNot(&'static str),
}

/// How the text format writes a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// Always; what a reader misses where it is absent.
    Always(&'static str),
    /// Behind `=`, unless it is 0.
    UnlessZero(&'static str),
}

/// Everything that formats have to know of a kind of step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The operation's number in the binary format. Numbers above 31 stand behind its escape tag; one
    /// that was given is never given again, so that old files stay readable.
    pub(crate) code: u8,
    pub(crate) keyword: &'static str,
    pub(crate) name: &'static str,
    pub(crate) on: Class,
    /// The bits of an attribute byte and how they are written.
    pub(crate) flags: &'static [(u8, Written)],
    pub(crate) mutex: bool,
    pub(crate) numbers: &'static [Number],
}

impl Shape {
    const fn new(code: u8, on: Class, keyword: &'static str, name: &'static str) -> Self {
        Self { code, keyword, name, on, flags: &[], mutex: false, numbers: &[] }
    }

    const fn flags(self, flags: &'static [(u8, Written)]) -> Self {
        Self { flags, ..self }
    }

    const fn mutex(self) -> Self {
        Self { mutex: true, ..self }
    }

    const fn numbers(self, numbers: &'static [Number]) -> Self {
        Self { numbers, ..self }
    }

    /// All attribute bits that such a step may have.
    pub(crate) fn attributes(&self) -> u8 {
        self.flags.iter().fold(0, |bits, (bit, _)| bits | bit)
    }
}

/// The parts of a step, as files hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) attributes: u8,
    pub(crate) mutex: Option<ObjectId>,
    pub(crate) numbers: [u64; 2],
    count: usize,
}

impl Parts {
    pub(crate) fn new(attributes: u8) -> Self {
        Self { attributes, ..Self::default() }
    }

    pub(crate) fn push(&mut self, number: u64) {
        self.numbers[self.count] = number;
        self.count += 1;
    }
}

/// A field of a step: one of its parts. `bit` is the attribute of a flag.
trait Field: Copy {
    fn put(self, bit: u8, parts: &mut Parts);
    fn take(bit: u8, parts: &mut Parts) -> Self;
}

impl Field for bool {
    fn put(self, bit: u8, parts: &mut Parts) {
        parts.attributes |= if self { bit } else { 0 };
    }
    fn take(bit: u8, parts: &mut Parts) -> Self {
        parts.attributes & bit != 0
    }
}

impl Field for u64 {
    fn put(self, _: u8, parts: &mut Parts) {
        parts.push(self);
    }
    fn take(_: u8, parts: &mut Parts) -> Self {
        let [first, second] = parts.numbers;
        parts.numbers = [second, 0];
        first
    }
}

impl Field for ObjectId {
    fn put(self, _: u8, parts: &mut Parts) {
        parts.mutex = Some(self);
    }
    fn take(_: u8, parts: &mut Parts) -> Self {
        parts.mutex.unwrap_or(ObjectId(0))
    }
}

impl Field for LockStep {
    fn put(self, _: u8, parts: &mut Parts) {
        (self.mode == LockMode::Shared).put(SHARED, parts);
        self.by_try.put(BY_TRY, parts);
    }
    fn take(_: u8, parts: &mut Parts) -> Self {
        let shared = bool::take(SHARED, parts);
        let mode = if shared { LockMode::Shared } else { LockMode::Exclusive };
        LockStep { mode, by_try: bool::take(BY_TRY, parts) }
    }
}

const SHARED: u8 = 1;
const BY_TRY: u8 = 2;
const LOCK_FLAGS: &[(u8, Written)] =
    &[(SHARED, Written::Suffix("shared")), (BY_TRY, Written::Prefix("try-"))];

/// Makes the steps, their kinds, and what takes them apart and puts them together again.
macro_rules! steps {
    ($(
        $(#[$doc:meta])*
        $name:ident $(($step:ident: $payload:ty))?
        $({ $($(#[$field_doc:meta])* $field:ident: $type:ty $(= $bit:literal)?,)* })?
        => $shape:expr;
    )*) => {
        /// A step on a synchronisation object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SyncOp {
            $($(#[$doc])* $name $(($payload))? $({ $($(#[$field_doc])* $field: $type,)* })?,)*
        }

        /// The kinds of steps, one for each variant of [`SyncOp`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)] // those of `SyncOp`
        pub enum SyncKind {
            $($name,)*
        }

        impl SyncKind {
            /// All kinds, in order.
            pub const ALL: &[SyncKind] = &[$(SyncKind::$name,)*];

            pub(crate) fn shape(self) -> &'static Shape {
                const SHAPES: &[Shape] = &[$($shape,)*];
                &SHAPES[self as usize]
            }
        }

        impl SyncOp {
            /// The kind of the step.
            pub fn kind(&self) -> SyncKind {
                match self {
                    $(SyncOp::$name { .. } => SyncKind::$name,)*
                }
            }

            pub(crate) fn parts(&self) -> Parts {
                let mut parts = Parts::default();
                match *self {
                    $(SyncOp::$name $(($step))? $({ $($field,)* })? => {
                        $($step.put(0, &mut parts);)?
                        $($($field.put(0 $(+ $bit)?, &mut parts);)*)?
                    })*
                }
                parts
            }

            pub(crate) fn from_parts(kind: SyncKind, mut parts: Parts) -> SyncOp {
                match kind {
                    $(SyncKind::$name => SyncOp::$name
                        $((<$payload as Field>::take(0, &mut parts)))?
                        $({ $($field: <$type as Field>::take(0 $(+ $bit)?, &mut parts),)* })?,)*
                }
            }

            /// Objects besides the one that the step is about.
            pub fn other_object_mut(&mut self) -> Option<&mut ObjectId> {
                match self {
                    SyncOp::WaitBegin { mutex } | SyncOp::WaitEnd { mutex, .. } => Some(mutex),
                    _ => None,
                }
            }
        }
    };
}

steps! {
    /// Took a mutex or reader-writer lock (also by a try that succeeded).
    Acquire(step: LockStep) => Shape::new(7, Class::Lock, "acquire", "acquire").flags(LOCK_FLAGS);
    /// A try-lock that found the lock taken.
    AcquireFailed(step: LockStep) =>
        Shape::new(8, Class::Lock, "acquire-failed", "failed acquire").flags(LOCK_FLAGS);
    /// Gave a lock back.
    Release(step: LockStep) => Shape::new(9, Class::Lock, "release", "release").flags(LOCK_FLAGS);
    /// Tried to give back a lock that it did not hold, which was refused.
    ReleaseFailed(step: LockStep) =>
        Shape::new(32, Class::Lock, "release-failed", "failed release").flags(LOCK_FLAGS);
    /// Began to wait on a condition: gives the mutex back and sleeps, in one step.
    WaitBegin {
        /// The mutex that is given back.
        mutex: ObjectId,
    } => Shape::new(10, Class::Condition, "wait-begin", "wait begin").mutex();
    /// Woke up from a condition and has the mutex again.
    WaitEnd {
        /// The mutex that is held again.
        mutex: ObjectId,
        /// The wait ended by its time limit, not by a signal.
        timed_out: bool = 1,
        /// It had a time limit.
        timed: bool = 2,
    } => Shape::new(11, Class::Condition, "wait-end", "wait end")
        .mutex()
        .flags(&[(1, Written::Keyword("wait-timeout")), (2, Written::Word("timed"))]);
    /// Woke one waiter, if there is one.
    Signal => Shape::new(12, Class::Condition, "signal", "signal");
    /// Woke all waiters.
    Broadcast => Shape::new(13, Class::Condition, "broadcast", "broadcast");
    /// Decremented a semaphore.
    SemaphoreWait {
        /// It would have failed rather than waited, or rather than waited for ever.
        by_try: bool = 2,
    } => Shape::new(14, Class::Semaphore, "sem-wait", "semaphore wait")
        .flags(&[(BY_TRY, Written::Word("try"))]);
    /// A wait that found the semaphore at zero, and failed.
    SemaphoreWaitFailed =>
        Shape::new(15, Class::Semaphore, "sem-wait-failed", "failed semaphore wait");
    /// Incremented a semaphore.
    SemaphorePost => Shape::new(16, Class::Semaphore, "sem-post", "semaphore post");
    /// Came to a barrier.
    BarrierArrive => Shape::new(17, Class::Barrier, "barrier-arrive", "barrier arrive");
    /// Left a barrier after all parties had come.
    BarrierLeave => Shape::new(18, Class::Barrier, "barrier-leave", "barrier leave");
    /// Put something into a channel: wrote to a pipe, a socket or a file, sent a signal.
    Send {
        /// How much: bytes of a stream, messages of a datagram socket, the number added to an eventfd.
        amount: u64,
        /// A number for what was sent: equal for equal content. 0 where only the amount counts.
        content: u64,
    } => Shape::new(33, Class::Channel, "send", "send")
        .numbers(&[Number::Always("an amount"), Number::UnlessZero("a content")]);
    /// Took out of a channel what was sent before.
    Receive {
        /// How much.
        amount: u64,
        /// More would have been taken if there had been more.
        drained: bool = 1,
        /// It would have failed rather than waited.
        by_try: bool = 2,
    } => Shape::new(34, Class::Channel, "receive", "receive")
        .numbers(&[Number::Always("an amount")])
        .flags(&[(1, Written::Word("drained")), (BY_TRY, Written::Word("try"))]);
    /// Looked whether there is something in a channel and took nothing.
    Poll {
        /// There was.
        ready: bool = 1,
    } => Shape::new(35, Class::Channel, "poll", "poll of a channel")
        .flags(&[(1, Written::KeywordIfNot("poll-empty"))]);
    /// Destroyed a synchronisation object.
    Destroy => Shape::new(36, Class::Any, "destroy", "destruction");
}

impl SyncKind {
    /// The step whose number in the binary format this is.
    pub(crate) fn of_code(code: u8) -> Option<SyncKind> {
        Self::ALL.iter().copied().find(|kind| kind.shape().code == code)
    }

    /// The kind's name in words.
    pub fn name(self) -> &'static str {
        self.shape().name
    }

    /// What such a step is about.
    pub fn class(self) -> Class {
        self.shape().on
    }
}

impl SyncOp {
    /// The mutex of a wait on a condition.
    pub fn mutex(&self) -> Option<ObjectId> {
        self.parts().mutex
    }

    /// The word of the text format for this kind of step.
    pub fn keyword(&self) -> &'static str {
        let (shape, attributes) = (self.kind().shape(), self.parts().attributes);
        let other = shape.flags.iter().find_map(|&(bit, written)| match written {
            Written::Keyword(other) if attributes & bit != 0 => Some(other),
            Written::KeywordIfNot(other) if attributes & bit == 0 => Some(other),
            _ => None,
        });
        other.unwrap_or(shape.keyword)
    }

    /// The words of the text format before and after the objects.
    pub(crate) fn text(&self) -> (String, String) {
        let (shape, parts) = (self.kind().shape(), self.parts());
        let (mut before, mut after) = (self.keyword().to_owned(), String::new());
        for (number, value) in shape.numbers.iter().zip(parts.numbers) {
            match number {
                Number::Always(_) => after.push_str(&format!(" {value}")),
                Number::UnlessZero(_) if value == 0 => {}
                Number::UnlessZero(_) => after.push_str(&format!(" = {value}")),
            }
        }
        for &(bit, written) in shape.flags {
            match written {
                Written::Word(word) if parts.attributes & bit != 0 => {
                    after.push_str(&format!(" {word}"));
                }
                Written::Prefix(prefix) if parts.attributes & bit != 0 => {
                    before.insert_str(0, prefix)
                }
                Written::Suffix(suffix) if parts.attributes & bit != 0 => {
                    before.push_str(&format!(".{suffix}"));
                }
                _ => {}
            }
        }
        (before, after)
    }
}

impl SyncKind {
    /// The step that a word of the text format stands for, with the attributes that the word says.
    pub(crate) fn of_word(word: &str) -> Option<(SyncKind, u8)> {
        Self::ALL.iter().find_map(|&kind| Some((kind, kind.shape().attributes_of(word)?)))
    }
}

impl Shape {
    fn attributes_of(&self, word: &str) -> Option<u8> {
        let (mut rest, mut attributes) = (word, 0);
        let mut keyword = self.keyword;
        for &(bit, written) in self.flags {
            match written {
                Written::Word(_) => {}
                Written::Prefix(prefix) => {
                    if let Some(stripped) = rest.strip_prefix(prefix) {
                        (rest, attributes) = (stripped, attributes | bit);
                    }
                }
                Written::Suffix(suffix) => {
                    let stripped =
                        rest.strip_suffix(suffix).and_then(|rest| rest.strip_suffix('.'));
                    if let Some(stripped) = stripped {
                        (rest, attributes) = (stripped, attributes | bit);
                    }
                }
                Written::Keyword(other) if rest == other => {
                    (keyword, attributes) = (other, attributes | bit);
                }
                Written::KeywordIfNot(other) if rest == other => keyword = other,
                Written::KeywordIfNot(_) => attributes |= bit,
                Written::Keyword(_) => {}
            }
        }
        (rest == keyword).then_some(attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of the binary format that is given twice, or taken by another record, would make files
    /// unreadable.
    #[test]
    fn every_step_has_a_number_and_a_word_of_its_own() {
        let codes: std::collections::BTreeSet<u8> =
            SyncKind::ALL.iter().map(|kind| kind.shape().code).collect();
        assert_eq!(codes.len(), SyncKind::ALL.len());
        for &kind in SyncKind::ALL {
            assert_eq!(SyncKind::of_code(kind.shape().code), Some(kind));
        }
    }

    #[test]
    fn steps_are_put_together_from_their_parts_and_words() {
        for &kind in SyncKind::ALL {
            let shape = kind.shape();
            for attributes in 0..=u8::MAX {
                if attributes & !shape.attributes() != 0 {
                    continue;
                }
                let mut parts = Parts::new(attributes);
                parts.mutex = shape.mutex.then_some(ObjectId(3));
                for number in 0..shape.numbers.len() {
                    parts.push(number as u64 + 7);
                }
                let op = SyncOp::from_parts(kind, parts);
                assert_eq!((op.kind(), op.parts()), (kind, parts));
                let (word, after) = op.text();
                let (read, said) = SyncKind::of_word(&word).expect("its own word");
                let words = shape.flags.iter().filter(|(bit, written)| {
                    attributes & bit != 0
                        && matches!(written, Written::Word(word) if after.contains(word))
                });
                let said = words.fold(said, |bits, (bit, _)| bits | bit);
                assert_eq!((read, said), (kind, attributes), "{word}{after}");
            }
        }
    }
}
