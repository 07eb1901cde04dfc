//! Records to bytes: what the recorder calls for every event. Nothing here panics, and nothing
//! allocates as long as the caller's buffer has room.

use super::decode::Properties;
use super::varint::{SHORT, Short, put, put_wide, step, zigzag, zigzag_wide};
use crate::event::{Access, Condition, Event, MemoryOrder, Op};
use crate::id::{ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::sync::SyncOp;
use crate::term::{Operator, ScalarSort, Sort, Term, TermStore, Value};
use crate::trace::{MemoryRange, Metadata, Object, ObjectKind, Scope};

/// The most bytes that one event takes, the text of a [`Name`] and the lists of guarded
/// assignments and transitions not counted. A buffer with this much room does not grow.
pub const MAX_STEP_BYTES: usize = 96;

/// Which event, of whom and where: what all events have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Place in the recorded total order: taken from one counter, each number once.
    pub sequence: u64,
    /// The thread.
    pub thread: ThreadId,
    /// How many events the thread had before.
    pub index: u32,
    /// Where in the source, when known.
    pub site: Option<SiteId>,
}

/// A text that comes again and again (a function, a region), with a key by which the encoder knows
/// it again in the same chunk, e.g. the address of a string constant. Equal keys must mean equal
/// texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// Anything but `u64::MAX`.
    pub key: u64,
    /// The text.
    pub text: &'a str,
}

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
        fn operator_number(operator: Operator) -> Option<u8> {
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

/// Appends the records of one chunk to a buffer of the caller's; a
/// [`ChunkSealer`](super::ChunkSealer) makes the chunk. One encoder has one buffer.
///
/// ```
/// use foretell_trace::format::binary::{ChunkEncoder, ChunkSealer, Compression, FILE_HEADER};
/// use foretell_trace::{Access, Event, Op, Sort, Scope, ThreadId, VariableId};
///
/// let mut encoder = ChunkEncoder::new();
/// let mut sealer = ChunkSealer::new(Compression::Lz4);
/// let mut records = Vec::with_capacity(64 * 1024);
/// encoder.thread(ThreadId(0), "main", &[], &mut records);
/// encoder.variable(VariableId(0), "x", Sort::bit_vec(32), Scope::Shared, None, None, &mut records);
/// let access = Access {
///     variable: VariableId(0), value: Some(7), term: None, address: None, order: None,
/// };
/// let event = Event { thread: ThreadId(0), index: 0, site: None, op: Op::Write(access) };
/// encoder.event(0, &event, &mut records);
/// encoder.end(1, &mut records);
///
/// let mut file = FILE_HEADER.to_vec();
/// file.extend_from_slice(sealer.seal(&mut encoder, &mut records));
/// let trace = foretell_trace::format::binary::read(&file).unwrap();
/// assert_eq!(trace.events, [event]);
/// ```
#[derive(Clone, Debug)]
pub struct ChunkEncoder {
    context: Context,
    names: [u64; TABLE],
    events: u32,
    definitions: u32,
    first: u64,
    last: u64,
}

const NO_KEY: u64 = u64::MAX;

impl Default for ChunkEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkEncoder {
    /// An encoder at the start of a chunk (a bit more than 4 KiB of tables).
    pub const fn new() -> Self {
        Self {
            context: Context::new(),
            names: [NO_KEY; TABLE],
            events: 0,
            definitions: 0,
            first: u64::MAX,
            last: 0,
        }
    }

    /// How many events the chunk has so far.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// How many other records the chunk has so far.
    pub fn definitions(&self) -> u32 {
        self.definitions
    }

    /// The smallest and the largest sequence number so far.
    pub fn sequence_range(&self) -> Option<(u64, u64)> {
        (self.events > 0).then_some((self.first, self.last))
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }

    /// Appends an event. Texts in it are written out in full: [`ChunkEncoder::call`],
    /// [`ChunkEncoder::region_begin`] and [`ChunkEncoder::input`] are cheaper.
    pub fn event(&mut self, sequence: u64, event: &Event, out: &mut Vec<u8>) {
        let at = Step { sequence, thread: event.thread, index: event.index, site: event.site };
        match &event.op {
            Op::ThreadBegin => self.start(code::THREAD_BEGIN, 0, at, out),
            Op::ThreadEnd => self.start(code::THREAD_END, 0, at, out),
            Op::Fork(thread) => self.with_thread(code::FORK, *thread, at, out),
            Op::Join(thread) => self.with_thread(code::JOIN, *thread, at, out),
            Op::Read(access) => self.access(code::READ, access, at, out),
            Op::Write(access) => self.access(code::WRITE, access, at, out),
            Op::ReadModifyWrite(update) => {
                let attributes = order_number(Some(update.order))
                    | flag(update.old.is_none(), attribute::NO_VALUE)
                    | flag(update.new.is_none(), attribute::NO_NEW_VALUE)
                    | flag(update.term.is_some(), attribute::TERM)
                    | flag(update.address.is_some(), attribute::ADDRESS);
                self.start(code::READ_MODIFY_WRITE, attributes, at, out);
                self.variable_id(update.variable, out);
                for value in [update.old, update.new].into_iter().flatten() {
                    self.value(update.variable, value, out);
                }
                for term in [update.term, update.address].into_iter().flatten() {
                    self.term_id(term, out);
                }
            }
            Op::Sync(object, step) => self.sync(*object, step, at, out),
            Op::Fence(order) => self.start(code::FENCE, order_number(Some(*order)), at, out),
            Op::Branch(condition) => self.condition(code::BRANCH, *condition, at, out),
            Op::Assert(condition) => self.condition(code::ASSERT, *condition, at, out),
            Op::RegionBegin(name) => {
                self.start(code::REGION_BEGIN, 0, at, out);
                put_unkeyed(name, out);
            }
            Op::RegionEnd => self.start(code::REGION_END, 0, at, out),
            Op::Call(name) => {
                self.start(code::CALL, 0, at, out);
                put_unkeyed(name, out);
            }
            Op::Return => self.start(code::RETURN, 0, at, out),
            Op::Await(mark) => self.start(code::AWAIT, *mark as u8, at, out),
            Op::Alloc { address, size } => {
                self.start(code::ALLOC, 0, at, out);
                put(out, *address);
                put(out, *size);
            }
            Op::Free { address } => {
                self.start(code::FREE, 0, at, out);
                put(out, *address);
            }
            Op::Input { source, value } => {
                self.start(code::INPUT, 0, at, out);
                put_unkeyed(source, out);
                put(out, *value);
            }
            Op::Guarded(guarded) => {
                self.start(code::GUARDED, 0, at, out);
                self.term_id(guarded.guard, out);
                put(out, guarded.assignments.len() as u64);
                for &(variable, term) in &guarded.assignments {
                    self.variable_id(variable, out);
                    self.term_id(term, out);
                }
            }
            Op::Transition(transition) => {
                self.start(code::TRANSITION, 0, at, out);
                self.term_id(transition.predicate, out);
                put(out, transition.changed.len() as u64);
                for &variable in &transition.changed {
                    self.variable_id(variable, out);
                }
            }
        }
    }

    /// Appends [`Op::Call`].
    pub fn call(&mut self, at: Step, function: Name<'_>, out: &mut Vec<u8>) {
        self.start(code::CALL, 0, at, out);
        self.name(function, out);
    }

    /// Appends [`Op::Read`].
    #[inline]
    pub fn read(&mut self, at: Step, access: &Access, out: &mut Vec<u8>) {
        self.access(code::READ, access, at, out);
    }

    /// Appends [`Op::Write`].
    #[inline]
    pub fn write(&mut self, at: Step, access: &Access, out: &mut Vec<u8>) {
        self.access(code::WRITE, access, at, out);
    }

    /// Appends [`Op::Branch`].
    #[inline]
    pub fn branch(&mut self, at: Step, condition: Condition, out: &mut Vec<u8>) {
        self.condition(code::BRANCH, condition, at, out);
    }

    /// Appends [`Op::RegionBegin`].
    pub fn region_begin(&mut self, at: Step, region: Name<'_>, out: &mut Vec<u8>) {
        self.start(code::REGION_BEGIN, 0, at, out);
        self.name(region, out);
    }

    /// Appends [`Op::Input`].
    pub fn input(&mut self, at: Step, source: Name<'_>, value: u64, out: &mut Vec<u8>) {
        self.start(code::INPUT, 0, at, out);
        self.name(source, out);
        put(out, value);
    }

    #[inline]
    fn start(&mut self, code: u8, attributes: u8, at: Step, out: &mut Vec<u8>) {
        let context = &mut self.context;
        if context.thread != Some(at.thread) || context.next_index != at.index {
            out.push(code::SWITCH);
            put(out, u64::from(at.thread.0));
            put(out, u64::from(at.index));
            context.thread = Some(at.thread);
        }
        context.next_index = at.index.wrapping_add(1);
        let jump = at.sequence.wrapping_sub(context.next_sequence);
        context.next_sequence = at.sequence.wrapping_add(1);
        let site_changed = at.site != context.site;
        let flags = flag(site_changed, code::SITE)
            | flag(jump != 0, code::JUMP)
            | flag(attributes != 0, code::ATTRIBUTES);
        if code < code::DEFINITION {
            out.push(code | flags);
        } else {
            out.extend([code::ESCAPE, code, flags]);
        }
        if attributes != 0 {
            out.push(attributes);
        }
        if jump != 0 {
            put(out, zigzag(jump as i64));
        }
        if site_changed {
            match at.site {
                None => put(out, 0),
                Some(site) => put(out, 1 + step(context.site.map_or(0, |site| site.0), site.0)),
            }
            context.site = at.site;
        }
        self.events = self.events.saturating_add(1);
        self.first = self.first.min(at.sequence);
        self.last = self.last.max(at.sequence);
    }

    /// What almost all records are. They are put together in place; those that do not follow
    /// straight on the previous event begin in the general way.
    #[inline]
    fn access(&mut self, code: u8, access: &Access, at: Step, out: &mut Vec<u8>) {
        let attributes = order_number(access.order)
            | flag(access.value.is_none(), attribute::NO_VALUE)
            | flag(access.term.is_some(), attribute::TERM)
            | flag(access.address.is_some(), attribute::ADDRESS);
        let context = &self.context;
        let follows = context.thread == Some(at.thread)
            && context.next_index == at.index
            && context.next_sequence == at.sequence;
        if !follows {
            self.start(code, attributes, at, out);
        }
        out.extend_from_slice(&[0; SHORT]);
        let Some(mut short) = Short::at_end(out) else { return };
        let context = &mut self.context;
        if follows {
            let site_changed = at.site != context.site;
            let marks = flag(site_changed, code::SITE) | flag(attributes != 0, code::ATTRIBUTES);
            short.byte(code | marks);
            if attributes != 0 {
                short.byte(attributes);
            }
            if site_changed {
                let last = context.site.map_or(0, |site| site.0);
                short.put(at.site.map_or(0, |site| 1 + step(last, site.0)));
                context.site = at.site;
            }
            context.next_index = at.index.wrapping_add(1);
            context.next_sequence = at.sequence.wrapping_add(1);
            self.events = self.events.saturating_add(1);
            self.first = self.first.min(at.sequence);
            self.last = self.last.max(at.sequence);
        }
        short.put(step(context.variable, access.variable.0));
        context.variable = access.variable.0;
        if let Some(value) = access.value {
            let last = &mut context.values[access.variable.index() % TABLE];
            short.put(zigzag(value.wrapping_sub(*last) as i64));
            *last = value;
        }
        for term in [access.term, access.address].into_iter().flatten() {
            short.put(step(context.term, term.0));
            context.term = term.0;
        }
        let unused = SHORT - short.length();
        out.truncate(out.len() - unused);
    }

    fn sync(&mut self, object: ObjectId, step: &SyncOp, at: Step, out: &mut Vec<u8>) {
        let (shape, parts) = (step.kind().shape(), step.parts());
        self.start(shape.code, parts.attributes, at, out);
        self.object_id(object, out);
        if let Some(mutex) = parts.mutex {
            self.object_id(mutex, out);
        }
        for (number, _) in parts.numbers.into_iter().zip(shape.numbers) {
            put(out, number);
        }
    }

    #[inline]
    fn condition(&mut self, code: u8, condition: Condition, at: Step, out: &mut Vec<u8>) {
        let attributes = flag(condition.outcome, attribute::OUTCOME)
            | flag(condition.term.is_some(), attribute::TERM);
        self.start(code, attributes, at, out);
        if let Some(term) = condition.term {
            self.term_id(term, out);
        }
    }

    fn with_thread(&mut self, code: u8, thread: ThreadId, at: Step, out: &mut Vec<u8>) {
        self.start(code, 0, at, out);
        put(out, u64::from(thread.0));
    }

    #[inline]
    fn variable_id(&mut self, variable: VariableId, out: &mut Vec<u8>) {
        put(out, step(self.context.variable, variable.0));
        self.context.variable = variable.0;
    }

    #[inline]
    fn object_id(&mut self, object: ObjectId, out: &mut Vec<u8>) {
        put(out, step(self.context.object, object.0));
        self.context.object = object.0;
    }

    #[inline]
    fn term_id(&mut self, term: TermId, out: &mut Vec<u8>) {
        put(out, step(self.context.term, term.0));
        self.context.term = term.0;
    }

    #[inline]
    fn value(&mut self, variable: VariableId, value: u64, out: &mut Vec<u8>) {
        let last = &mut self.context.values[variable.index() % TABLE];
        put(out, zigzag(value.wrapping_sub(*last) as i64));
        *last = value;
    }

    /// Writes 1 + 2 * slot for a text that the slot holds already; one more where the text follows
    /// and goes into the slot.
    fn name(&mut self, name: Name<'_>, out: &mut Vec<u8>) {
        if name.text.len() > MAX_SLOT_TEXT {
            return put_unkeyed(name.text, out);
        }
        let slot = (name.key ^ (name.key >> 8) ^ (name.key >> 16)) as usize % TABLE;
        if self.names[slot] == name.key && name.key != NO_KEY {
            put(out, 1 + 2 * slot as u64);
        } else {
            put(out, 2 + 2 * slot as u64);
            put_text(name.text, out);
            self.names[slot] = name.key;
        }
    }

    #[inline]
    fn define(&mut self, kind: u8, out: &mut Vec<u8>) {
        self.definitions = self.definitions.saturating_add(1);
        out.extend_from_slice(&[code::DEFINITION, kind]);
    }

    /// Defines a thread; see [`crate::Thread`].
    pub fn thread(&mut self, id: ThreadId, name: &str, path: &[u32], out: &mut Vec<u8>) {
        self.define(definition::THREAD, out);
        put(out, u64::from(id.0));
        put_text(name, out);
        put(out, path.len() as u64);
        for &part in path {
            put(out, u64::from(part));
        }
    }

    /// Defines a variable; see [`crate::Variable`].
    #[allow(clippy::too_many_arguments)] // borrowed parts: building a `Variable` would allocate
    pub fn variable(
        &mut self,
        id: VariableId,
        name: &str,
        sort: Sort,
        scope: Scope,
        memory: Option<MemoryRange>,
        initial: Option<&Value>,
        out: &mut Vec<u8>,
    ) {
        self.define(definition::VARIABLE, out);
        put(out, u64::from(id.0));
        put_text(name, out);
        put_sort(sort, out);
        match scope {
            Scope::Shared => put(out, 0),
            Scope::Local(thread) => put(out, 1 + u64::from(thread.0)),
        }
        match memory {
            None => put(out, 0),
            Some(range) => {
                put(out, 1 + u64::from(range.size));
                put(out, range.address);
                put(out, u64::from(range.generation));
            }
        }
        out.push(initial.is_some().into());
        if let Some(value) = initial {
            put_value(value, out);
        }
    }

    /// Defines a synchronisation object; see [`crate::Object`].
    pub fn object(&mut self, id: ObjectId, object: &Object, out: &mut Vec<u8>) {
        self.define(definition::OBJECT, out);
        put(out, u64::from(id.0));
        put_text(&object.name, out);
        let (kind, amount) = match object.kind {
            ObjectKind::Mutex => (0, None),
            ObjectKind::RecursiveMutex => (1, None),
            ObjectKind::ErrorCheckingMutex => (2, None),
            ObjectKind::ReaderWriterLock => (3, None),
            ObjectKind::Condition => (4, None),
            ObjectKind::Semaphore { initial } => (5, Some(initial)),
            ObjectKind::Barrier { parties } => (6, Some(parties)),
            ObjectKind::Channel(kind) => (7, Some(kind as u32)),
        };
        out.push(kind | if object.address.is_some() { definition::OBJECT_HAS_ADDRESS } else { 0 });
        for number in amount.map(u64::from).into_iter().chain(object.address) {
            put(out, number);
        }
    }

    /// Defines a source position; see [`crate::Site`].
    pub fn site(
        &mut self,
        id: SiteId,
        file: &str,
        line: u32,
        column: u32,
        function: &str,
        out: &mut Vec<u8>,
    ) {
        self.define(definition::SITE, out);
        put(out, u64::from(id.0));
        put_text(file, out);
        put(out, u64::from(line));
        put(out, u64::from(column));
        put_text(function, out);
    }

    /// Defines a term that is an operator and its arguments; those must have smaller ids. It need
    /// not be simplified: the reader does that.
    #[inline]
    pub fn apply_term(
        &mut self,
        id: TermId,
        operator: Operator,
        arguments: &[TermId],
        out: &mut Vec<u8>,
    ) {
        self.definitions = self.definitions.saturating_add(1);
        out.extend_from_slice(&[0; SHORT]);
        let Some(mut short) = Short::at_end(out) else { return };
        short.byte(code::DEFINITION);
        short.byte(definition::TERM);
        short.put(u64::from(id.0));
        match operator {
            Operator::Extract { high, low } => {
                short.byte(term_kind::EXTRACT);
                short.put(u64::from(high));
                short.put(u64::from(low));
            }
            Operator::ZeroExtend(by) => {
                short.byte(term_kind::ZERO_EXTEND);
                short.put(u64::from(by));
            }
            Operator::SignExtend(by) => {
                short.byte(term_kind::SIGN_EXTEND);
                short.put(u64::from(by));
            }
            plain => short.byte(operator_number(plain).unwrap_or_default()),
        }
        short.put(arguments.len() as u64);
        let (at_hand, more) = arguments.split_at(arguments.len().min(3));
        for argument in at_hand {
            short.put(u64::from(id.0.wrapping_sub(argument.0)));
        }
        let unused = SHORT - short.length();
        out.truncate(out.len() - unused);
        for argument in more {
            put(out, u64::from(id.0.wrapping_sub(argument.0)));
        }
    }

    /// Defines the term for what a read returned.
    #[inline]
    pub fn read_value_term(
        &mut self,
        id: TermId,
        thread: ThreadId,
        index: u32,
        sort: Sort,
        out: &mut Vec<u8>,
    ) {
        self.leaf(id, term_kind::READ_VALUE, out);
        put(out, u64::from(thread.0));
        put(out, u64::from(index));
        put_sort(sort, out);
    }

    /// Defines a constant term.
    #[inline]
    pub fn constant_term(&mut self, id: TermId, value: &Value, out: &mut Vec<u8>) {
        self.leaf(id, term_kind::CONSTANT, out);
        put_value(value, out);
    }

    /// Defines the term `id` of a store in which events are numbered by sequence number.
    pub fn term(&mut self, id: TermId, terms: &TermStore, out: &mut Vec<u8>) {
        let sort = terms.sort(id);
        match terms.term(id) {
            Term::Apply(operator, arguments) => self.apply_term(id, *operator, arguments, out),
            Term::Constant(value) => self.constant_term(id, value, out),
            Term::ReadValue(thread, index) => self.read_value_term(id, *thread, *index, sort, out),
            Term::Variable(variable) => {
                self.leaf(id, term_kind::VARIABLE, out);
                put(out, u64::from(variable.0));
                put_sort(sort, out);
            }
            Term::Primed(variable) => {
                self.leaf(id, term_kind::PRIMED, out);
                put(out, u64::from(variable.0));
                put_sort(sort, out);
            }
            Term::Before(first, second) => {
                self.leaf(id, term_kind::BEFORE, out);
                put(out, u64::from(first.0));
                put(out, u64::from(second.0));
            }
            Term::Symbol(symbol) => {
                self.leaf(id, term_kind::SYMBOL, out);
                put_text(&terms.symbol(*symbol).name, out);
                put_sort(sort, out);
            }
        }
    }

    #[inline]
    fn leaf(&mut self, id: TermId, kind: u8, out: &mut Vec<u8>) {
        self.define(definition::TERM, out);
        put(out, u64::from(id.0));
        out.push(kind);
    }

    /// The program and its arguments.
    pub fn command<'a>(
        &mut self,
        command: impl ExactSizeIterator<Item = &'a str>,
        out: &mut Vec<u8>,
    ) {
        self.define(definition::COMMAND, out);
        put(out, command.len() as u64);
        for part in command {
            put_text(part, out);
        }
    }

    /// The program's build id in hexadecimal.
    pub fn build_id(&mut self, build_id: &str, out: &mut Vec<u8>) {
        self.define(definition::BUILD_ID, out);
        put_text(build_id, out);
    }

    /// Says what the trace has. All are false in a file that does not say.
    pub fn properties(&mut self, has: Properties, out: &mut Vec<u8>) {
        self.define(definition::PROPERTIES, out);
        let Properties { symbolic, observed_order, machine_code, unseen } = has;
        let [library, locks, freed] = unseen.flags();
        let unseen = flag(library, 8) | flag(locks, 16) | flag(freed, 32);
        out.push(flag(symbolic, 1) | flag(observed_order, 2) | flag(machine_code, 4) | unseen);
    }

    /// Something that was not seen, in one sentence.
    pub fn gap(&mut self, sentence: &str, out: &mut Vec<u8>) {
        self.define(definition::GAP, out);
        put_text(sentence, out);
    }

    /// Something that was held at its recorded value, in one sentence.
    pub fn restriction(&mut self, sentence: &str, out: &mut Vec<u8>) {
        self.define(definition::RESTRICTION, out);
        put_text(sentence, out);
    }

    /// All of the metadata.
    pub fn metadata(&mut self, metadata: &Metadata, out: &mut Vec<u8>) {
        let &Metadata { symbolic, observed_order, machine_code, unseen, .. } = metadata;
        self.properties(Properties { symbolic, observed_order, machine_code, unseen }, out);
        if !metadata.command.is_empty() {
            self.command(metadata.command.iter().map(|part| &**part), out);
        }
        if let Some(build_id) = &metadata.build_id {
            self.build_id(build_id, out);
        }
        for gap in &metadata.gaps {
            self.gap(gap, out);
        }
        for restriction in &metadata.restrictions {
            self.restriction(restriction, out);
        }
    }

    /// Holds of the initial values.
    pub fn precondition(&mut self, term: TermId, out: &mut Vec<u8>) {
        self.define(definition::PRECONDITION, out);
        put(out, u64::from(term.0));
    }

    /// The event with sequence number `first` comes before `second` in every interleaving.
    pub fn order(&mut self, first: u64, second: u64, out: &mut Vec<u8>) {
        self.define(definition::ORDER, out);
        put(out, first);
        put(out, second);
    }

    /// The events of one thread from `first` to `last` run without interruption.
    pub fn atomic_section(&mut self, first: u64, last: u64, out: &mut Vec<u8>) {
        self.define(definition::ATOMIC_SECTION, out);
        put(out, first);
        put(out, last);
    }

    /// What a person calls the event with this sequence number.
    pub fn label(&mut self, sequence: u64, label: &str, out: &mut Vec<u8>) {
        self.define(definition::LABEL, out);
        put(out, sequence);
        put_text(label, out);
    }

    /// The recording is complete and has this many events. Write it in the last chunk; a file
    /// without it is taken for one whose recorder was killed.
    pub fn end(&mut self, events: u64, out: &mut Vec<u8>) {
        self.define(definition::END, out);
        put(out, events);
    }
}

fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

fn order_number(order: Option<MemoryOrder>) -> u8 {
    match order {
        None => 0,
        Some(MemoryOrder::Relaxed) => 1,
        Some(MemoryOrder::Acquire) => 2,
        Some(MemoryOrder::Release) => 3,
        Some(MemoryOrder::AcquireRelease) => 4,
        Some(MemoryOrder::SequentiallyConsistent) => 5,
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// A name without a slot: 0, then the text.
fn put_unkeyed(text: &str, out: &mut Vec<u8>) {
    out.push(0);
    put_text(text, out);
}

#[inline]
fn put_scalar_sort(sort: ScalarSort, out: &mut Vec<u8>) {
    out.push(match sort {
        ScalarSort::Bool => 65,
        ScalarSort::Int => 66,
        ScalarSort::Real => 67,
        ScalarSort::BitVec(width) => width.min(64) as u8,
    });
}

/// A scalar sort is one byte: the width of a bit-vector, or 65 to 67. An array is 68 and two.
#[inline]
fn put_sort(sort: Sort, out: &mut Vec<u8>) {
    match sort {
        Sort::Scalar(scalar) => put_scalar_sort(scalar, out),
        Sort::Array { index, element } => {
            out.push(68);
            put_scalar_sort(index, out);
            put_scalar_sort(element, out);
        }
    }
}

/// A value is its sort and then its bits, numbers, or entries.
#[inline]
fn put_value(value: &Value, out: &mut Vec<u8>) {
    put_sort(value.sort(), out);
    put_content(value, out);
}

fn put_content(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => out.push((*value).into()),
        Value::Int(value) => put_wide(out, zigzag_wide(*value)),
        Value::Real(value) => {
            put_wide(out, zigzag_wide(value.numerator()));
            put_wide(out, zigzag_wide(value.denominator()));
        }
        Value::BitVec { bits, .. } => put(out, *bits),
        Value::Array(array) => {
            put_content(array.default_element(), out);
            put(out, array.entries().count() as u64);
            for (index, element) in array.entries() {
                put_content(index, out);
                put_content(element, out);
            }
        }
    }
}
