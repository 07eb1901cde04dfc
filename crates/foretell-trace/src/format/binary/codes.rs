//! What encoder and decoder share: the numbers of the format, and the state by which a record leaves
//! out what the last one said.

use crate::event::MemoryOrder;
use crate::id::{SiteId, ThreadId};
use crate::term::Operator;

/// Entries in the tables of last values and recent names.
pub(super) const TABLE: usize = 256;

/// Longer names are written out every time: a few bytes must not stand for much memory.
pub(super) const MAX_SLOT_TEXT: usize = 255;

/// What the previous records of a chunk let the next one leave out. Encoder and decoder keep it in
/// the same way.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) next_sequence: u64,
    pub(super) thread: Option<ThreadId>,
    pub(super) next_index: u32,
    pub(super) site: Option<SiteId>,
    pub(super) variable: u32,
    pub(super) object: u32,
    pub(super) term: u32,
    pub(super) values: [u64; TABLE],
}

impl Context {
    pub(super) const fn new() -> Self {
        Self {
            next_sequence: 0,
            thread: None,
            next_index: 0,
            site: None,
            variable: 0,
            object: 0,
            term: 0,
            values: [0; TABLE],
        }
    }
}

/// The operations, in the low five bits of a tag. Those on synchronisation objects have their numbers from
/// the table of [`SyncOp`]: 7 to 18, and from 32 on behind the escape tag.
pub(super) mod code {
    pub(crate) const THREAD_BEGIN: u8 = 0;
    pub(crate) const THREAD_END: u8 = 1;
    pub(crate) const FORK: u8 = 2;
    pub(crate) const JOIN: u8 = 3;
    pub(crate) const READ: u8 = 4;
    pub(crate) const WRITE: u8 = 5;
    pub(crate) const READ_MODIFY_WRITE: u8 = 6;
    pub(crate) const FENCE: u8 = 19;
    pub(crate) const BRANCH: u8 = 20;
    pub(crate) const ASSERT: u8 = 21;
    pub(crate) const REGION_BEGIN: u8 = 22;
    pub(crate) const REGION_END: u8 = 23;
    pub(crate) const CALL: u8 = 24;
    pub(crate) const RETURN: u8 = 25;
    pub(crate) const ALLOC: u8 = 26;
    pub(crate) const FREE: u8 = 27;
    pub(crate) const INPUT: u8 = 28;
    pub(crate) const GUARDED: u8 = 29;
    pub(crate) const TRANSITION: u8 = 30;
    /// Not an event: a definition, whose kind is the next byte.
    pub(crate) const DEFINITION: u8 = 31;
    /// Not an event: thread and index of the next one. (A definition's tag has no flags.)
    pub(crate) const SWITCH: u8 = 63;

    /// An event whose operation does not fit into five bits: it is the next byte, and the byte after
    /// it has the flags of a tag. (A definition's tag has no flags.)
    pub(crate) const ESCAPE: u8 = DEFINITION | ATTRIBUTES;
    pub(crate) const AWAIT: u8 = 37;

    /// The site is not that of the previous event.
    pub(crate) const SITE: u8 = 1 << 5;
    /// The sequence number is not the previous one plus one.
    pub(crate) const JUMP: u8 = 1 << 6;
    /// An attribute byte follows the tag.
    pub(crate) const ATTRIBUTES: u8 = 1 << 7;
}

/// The bits of an attribute byte; which of them an operation may have, the decoder knows. Those of steps on
/// synchronisation objects stand in their table.
pub(super) mod attribute {
    /// Memory order: 0 none, else 1 + its place in the list of orders.
    pub(crate) const ORDER: u8 = 0b111;
    /// An access without a value (a read-modify-write without the old value).
    pub(crate) const NO_VALUE: u8 = 1 << 3;
    /// A term follows.
    pub(crate) const TERM: u8 = 1 << 4;
    /// An address term follows.
    pub(crate) const ADDRESS: u8 = 1 << 5;
    /// A read-modify-write without the new value.
    pub(crate) const NO_NEW_VALUE: u8 = 1 << 6;
    /// A condition that held.
    pub(crate) const OUTCOME: u8 = 1;
}

/// The kinds of definition records.
pub(super) mod definition {
    pub(crate) const THREAD: u8 = 1;
    pub(crate) const VARIABLE: u8 = 2;
    pub(crate) const OBJECT: u8 = 3;
    /// In the kind of an object: its address follows.
    pub(crate) const OBJECT_HAS_ADDRESS: u8 = 0x80;
    pub(crate) const SITE: u8 = 4;
    pub(crate) const TERM: u8 = 5;
    pub(crate) const COMMAND: u8 = 6;
    pub(crate) const BUILD_ID: u8 = 7;
    pub(crate) const PROPERTIES: u8 = 8;
    pub(crate) const GAP: u8 = 9;
    pub(crate) const PRECONDITION: u8 = 10;
    pub(crate) const ORDER: u8 = 11;
    pub(crate) const ATOMIC_SECTION: u8 = 12;
    pub(crate) const LABEL: u8 = 13;
    pub(crate) const END: u8 = 14;
    pub(crate) const RESTRICTION: u8 = 15;
}

/// Memory orders by their number in an attribute byte.
pub(super) const ORDERS: [MemoryOrder; 5] = [
    MemoryOrder::Relaxed,
    MemoryOrder::Acquire,
    MemoryOrder::Release,
    MemoryOrder::AcquireRelease,
    MemoryOrder::SequentiallyConsistent,
];

/// Makes [`OPERATORS`] and its inverse from one list.
macro_rules! operators {
    ($count:literal: $($name:ident)*) => {
        /// The operators without indices, by their number in a term record.
        pub(super) const OPERATORS: [Operator; $count] = [$(Operator::$name,)*];

        /// The number of an operator without indices; those with have records of their own.
        pub(super) fn operator_number(operator: Operator) -> Option<u8> {
            #[repr(u8)]
            enum Number { $($name,)* }
            match operator {
                $(Operator::$name => Some(Number::$name as u8),)*
                Operator::Extract { .. } | Operator::ZeroExtend(_) | Operator::SignExtend(_) => None,
            }
        }
    };
}

operators! {
    41:
    Not And Or Xor Implies Ite Eq Add Sub Neg Mul IntDiv Mod Abs RealDiv ToReal ToInt Lt Le BvNot
    BvNeg BvAnd BvOr BvXor BvAdd BvSub BvMul BvUdiv BvUrem BvSdiv BvSrem BvShl BvLshr BvAshr BvUlt
    BvUle BvSlt BvSle Concat Select Store
}

/// Numbers of the operators with indices, and of the other kinds of terms.
pub(super) mod term_kind {
    pub(crate) const EXTRACT: u8 = 64;
    pub(crate) const ZERO_EXTEND: u8 = 65;
    pub(crate) const SIGN_EXTEND: u8 = 66;
    pub(crate) const CONSTANT: u8 = 96;
    pub(crate) const VARIABLE: u8 = 97;
    pub(crate) const PRIMED: u8 = 98;
    pub(crate) const READ_VALUE: u8 = 99;
    pub(crate) const BEFORE: u8 = 100;
    pub(crate) const SYMBOL: u8 = 101;
}
