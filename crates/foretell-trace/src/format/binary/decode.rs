//! Bytes to records: the mirror of [`super::encode`]. Every count is checked against the bytes that
//! remain before anything is allocated, and every record takes at least one byte, so decoding ends
//! and needs no more memory than a fixed multiple of the chunk.

use super::encode::{
    Context, MAX_SLOT_TEXT, OPERATORS, ORDERS, TABLE, attribute, code, definition, term_kind,
};
use super::varint::{unzigzag, unzigzag_wide};
use crate::event::{
    Access, AwaitMark, Condition, Event, Guarded, MemoryOrder, Op, ReadModifyWrite, Transition,
};
use crate::id::{ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::sync::{Parts, SyncKind, SyncOp};
use crate::term::{ArrayValue, Operator, Rational, ScalarSort, Sort, Value};
use crate::trace::{
    ChannelKind, MemoryRange, Object, ObjectKind, Scope, Site, Thread, Unseen, Variable,
};

/// What a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// See [`crate::Metadata::symbolic`].
    pub symbolic: bool,
    /// See [`crate::Metadata::observed_order`].
    pub observed_order: bool,
    /// See [`crate::Metadata::machine_code`].
    pub machine_code: bool,
    /// See [`crate::Metadata::unseen`].
    pub unseen: Unseen,
}

/// One record of a chunk. Ids are the recorder's own; events are named by sequence number.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// An event and its place in the total order.
    Event(u64, Event),
    /// A thread.
    Thread(ThreadId, Thread),
    /// A variable.
    Variable(VariableId, Variable),
    /// A synchronisation object.
    Object(ObjectId, Object),
    /// A source position.
    Site(SiteId, Site),
    /// A term.
    Term(TermId, TermDefinition),
    /// The program and its arguments.
    Command(Vec<Box<str>>),
    /// The program's build id.
    BuildId(Box<str>),
    /// What the trace has.
    Properties(Properties),
    /// Something that was not seen.
    Gap(Box<str>),
    /// Something that was held at its recorded value.
    Restriction(Box<str>),
    /// Holds of the initial values.
    Precondition(TermId),
    /// Two events that every interleaving keeps in this order.
    Order(u64, u64),
    /// First and last event of a section that runs without interruption.
    AtomicSection(u64, u64),
    /// What a person calls the event.
    Label(u64, Box<str>),
    /// The recording is complete and has this many events.
    End(u64),
}

/// A term as it stands in a file: not simplified, its arguments named by the recorder's ids.
#[derive(Clone, Debug, PartialEq)]
pub enum TermDefinition {
    /// A constant.
    Constant(Value),
    /// A variable before the step.
    Variable(VariableId, Sort),
    /// A variable after the step.
    Primed(VariableId, Sort),
    /// What a read returned.
    ReadValue(ThreadId, u32, Sort),
    /// The first event comes before the second.
    Before(u64, u64),
    /// A free symbol with its name.
    Symbol(Box<str>, Sort),
    /// An operator and its arguments, whose ids are smaller than the term's.
    Apply(Operator, Box<[TermId]>),
}

/// What is wrong with a record, and where in the chunk's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

type Decoded<T> = Result<T, Malformed>;

/// Decodes the records of one chunk.
pub(super) struct ChunkDecoder {
    at: usize,
    context: Context,
    names: Vec<Option<Box<str>>>,
}

impl ChunkDecoder {
    pub(super) fn new() -> Self {
        Self { at: 0, context: Context::new(), names: Vec::new() }
    }

    /// The next record of `content`, which must be the same at every call; `None` at its end.
    pub(super) fn next(&mut self, content: &[u8]) -> Decoded<Option<Record>> {
        let mut bytes = Bytes { content, at: self.at };
        let record = loop {
            if bytes.at == content.len() {
                break None;
            }
            match bytes.byte()? {
                code::SWITCH => {
                    self.context.thread = Some(ThreadId(bytes.id()?));
                    self.context.next_index = bytes.id()?;
                }
                code::DEFINITION => break Some(bytes.definition()?),
                code::ESCAPE => {
                    let (operation, flags) = (bytes.byte()?, bytes.byte()?);
                    if operation <= code::DEFINITION || flags & 31 != 0 {
                        return Err(bytes.fault("an unknown kind of record"));
                    }
                    break Some(self.event(operation, flags, &mut bytes)?);
                }
                tag => break Some(self.event(tag & 31, tag, &mut bytes)?),
            }
        };
        self.at = bytes.at;
        Ok(record)
    }

    fn event(&mut self, operation: u8, tag: u8, bytes: &mut Bytes<'_>) -> Decoded<Record> {
        let attributes = if tag & code::ATTRIBUTES != 0 { bytes.byte()? } else { 0 };
        if tag & code::JUMP != 0 {
            let jump = unzigzag(bytes.number()?);
            self.context.next_sequence = self.context.next_sequence.wrapping_add(jump as u64);
        }
        let sequence = self.context.next_sequence;
        self.context.next_sequence = sequence.wrapping_add(1);
        if tag & code::SITE != 0 {
            self.context.site = match bytes.number()? {
                0 => None,
                folded => {
                    let last = self.context.site.map_or(0, |site| site.0);
                    Some(SiteId(bytes.stepped(last, folded - 1)?))
                }
            };
        }
        let thread = self
            .context
            .thread
            .ok_or(bytes.fault("an event before the first switch to a thread"))?;
        let index = self.context.next_index;
        self.context.next_index = index.wrapping_add(1);
        let site = self.context.site;
        let op = self.op(operation, attributes, bytes)?;
        Ok(Record::Event(sequence, Event { thread, index, site, op }))
    }

    fn op(&mut self, operation: u8, attributes: u8, bytes: &mut Bytes<'_>) -> Decoded<Op> {
        use attribute::*;
        let allowed = match operation {
            code::READ | code::WRITE => ORDER | NO_VALUE | TERM | ADDRESS,
            code::READ_MODIFY_WRITE => ORDER | NO_VALUE | NO_NEW_VALUE | TERM | ADDRESS,
            code::AWAIT => 3,
            code::FENCE => ORDER,
            code::BRANCH | code::ASSERT => OUTCOME | TERM,
            code => SyncKind::of_code(code).map_or(0, |kind| kind.shape().attributes()),
        };
        if attributes & !allowed != 0 {
            return Err(bytes.fault("an attribute that the operation does not have"));
        }
        Ok(match operation {
            code::THREAD_BEGIN => Op::ThreadBegin,
            code::THREAD_END => Op::ThreadEnd,
            code::FORK => Op::Fork(ThreadId(bytes.id()?)),
            code::JOIN => Op::Join(ThreadId(bytes.id()?)),
            code::READ => Op::Read(self.access(attributes, bytes)?),
            code::WRITE => Op::Write(self.access(attributes, bytes)?),
            code::READ_MODIFY_WRITE => {
                let order = bytes.order(attributes)?;
                let variable = self.variable_id(bytes)?;
                let old = self.value(attributes & NO_VALUE == 0, variable, bytes)?;
                let new = self.value(attributes & NO_NEW_VALUE == 0, variable, bytes)?;
                let term = self.optional_term(attributes & TERM != 0, bytes)?;
                let address = self.optional_term(attributes & ADDRESS != 0, bytes)?;
                let order = order.ok_or(bytes.fault("an atomic step without memory order"))?;
                let update = ReadModifyWrite { variable, old, new, term, address, order };
                Op::ReadModifyWrite(Box::new(update))
            }
            code::FENCE => Op::Fence(
                bytes.order(attributes)?.ok_or(bytes.fault("a fence without memory order"))?,
            ),
            code::BRANCH => Op::Branch(self.condition(attributes, bytes)?),
            code::ASSERT => Op::Assert(self.condition(attributes, bytes)?),
            code::REGION_BEGIN => Op::RegionBegin(self.name(bytes)?),
            code::REGION_END => Op::RegionEnd,
            code::CALL => Op::Call(self.name(bytes)?),
            code::RETURN => Op::Return,
            code::AWAIT => Op::Await(match attributes {
                0 => AwaitMark::Round,
                1 => AwaitMark::Test,
                2 => AwaitMark::Failed,
                _ => AwaitMark::Again,
            }),
            code::ALLOC => Op::Alloc { address: bytes.number()?, size: bytes.number()? },
            code::FREE => Op::Free { address: bytes.number()? },
            code::INPUT => Op::Input { source: self.name(bytes)?, value: bytes.number()? },
            code::GUARDED => {
                let guard = self.term_id(bytes)?;
                let count = bytes.count(2)?;
                let mut assignments = Vec::with_capacity(count);
                for _ in 0..count {
                    assignments.push((self.variable_id(bytes)?, self.term_id(bytes)?));
                }
                Op::Guarded(Box::new(Guarded { guard, assignments }))
            }
            code::TRANSITION => {
                let predicate = self.term_id(bytes)?;
                let count = bytes.count(1)?;
                let mut changed = Vec::with_capacity(count);
                for _ in 0..count {
                    changed.push(self.variable_id(bytes)?);
                }
                Op::Transition(Box::new(Transition { predicate, changed }))
            }
            code => match SyncKind::of_code(code) {
                Some(kind) => self.sync(kind, attributes, bytes)?,
                None => return Err(bytes.fault("an unknown kind of record")),
            },
        })
    }

    fn access(&mut self, attributes: u8, bytes: &mut Bytes<'_>) -> Decoded<Access> {
        let order = bytes.order(attributes)?;
        let variable = self.variable_id(bytes)?;
        let value = self.value(attributes & attribute::NO_VALUE == 0, variable, bytes)?;
        let term = self.optional_term(attributes & attribute::TERM != 0, bytes)?;
        let address = self.optional_term(attributes & attribute::ADDRESS != 0, bytes)?;
        Ok(Access { variable, value, term, address, order })
    }

    fn sync(&mut self, kind: SyncKind, attributes: u8, bytes: &mut Bytes<'_>) -> Decoded<Op> {
        let shape = kind.shape();
        let object = self.object_id(bytes)?;
        let mut parts = Parts::new(attributes);
        if shape.mutex {
            parts.mutex = Some(self.object_id(bytes)?);
        }
        for _ in shape.numbers {
            parts.push(bytes.number()?);
        }
        Ok(Op::Sync(object, SyncOp::from_parts(kind, parts)))
    }

    fn condition(&mut self, attributes: u8, bytes: &mut Bytes<'_>) -> Decoded<Condition> {
        Ok(Condition {
            term: self.optional_term(attributes & attribute::TERM != 0, bytes)?,
            outcome: attributes & attribute::OUTCOME != 0,
        })
    }

    fn variable_id(&mut self, bytes: &mut Bytes<'_>) -> Decoded<VariableId> {
        let folded = bytes.number()?;
        self.context.variable = bytes.stepped(self.context.variable, folded)?;
        Ok(VariableId(self.context.variable))
    }

    fn object_id(&mut self, bytes: &mut Bytes<'_>) -> Decoded<ObjectId> {
        let folded = bytes.number()?;
        self.context.object = bytes.stepped(self.context.object, folded)?;
        Ok(ObjectId(self.context.object))
    }

    fn term_id(&mut self, bytes: &mut Bytes<'_>) -> Decoded<TermId> {
        let folded = bytes.number()?;
        self.context.term = bytes.stepped(self.context.term, folded)?;
        Ok(TermId(self.context.term))
    }

    fn optional_term(&mut self, present: bool, bytes: &mut Bytes<'_>) -> Decoded<Option<TermId>> {
        present.then(|| self.term_id(bytes)).transpose()
    }

    fn value(
        &mut self,
        present: bool,
        variable: VariableId,
        bytes: &mut Bytes<'_>,
    ) -> Decoded<Option<u64>> {
        if !present {
            return Ok(None);
        }
        let difference = unzigzag(bytes.number()?);
        let last = &mut self.context.values[variable.index() % TABLE];
        *last = last.wrapping_add(difference as u64);
        Ok(Some(*last))
    }

    fn name(&mut self, bytes: &mut Bytes<'_>) -> Decoded<Box<str>> {
        let number = match bytes.number()? {
            0 => return bytes.text(),
            number => number - 1,
        };
        let slot = (number / 2) as usize;
        if slot >= TABLE {
            return Err(bytes.fault("a name in a slot that does not exist"));
        }
        if number % 2 == 1 {
            let text = bytes.text()?;
            if text.len() > MAX_SLOT_TEXT {
                return Err(bytes.fault("a name that is too long for a slot"));
            }
            self.names.resize(TABLE, None);
            self.names[slot] = Some(text.clone());
            return Ok(text);
        }
        match self.names.get(slot) {
            Some(Some(text)) => Ok(text.clone()),
            _ => Err(bytes.fault("a name in an empty slot")),
        }
    }
}

/// A chunk's content and how far it has been read.
struct Bytes<'a> {
    content: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    fn fault(&self, what: &'static str) -> Malformed {
        Malformed { at: self.at, what }
    }

    fn byte(&mut self) -> Decoded<u8> {
        let byte = *self.content.get(self.at).ok_or(self.fault("a record that is cut off"))?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn number(&mut self) -> Decoded<u64> {
        match self.content.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => u64::try_from(self.wide()?).map_err(|_| self.fault("a number above 64 bits")),
        }
    }

    fn wide(&mut self) -> Decoded<u128> {
        let mut value = 0u128;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if shift >= 128 || (bits << shift) >> shift != bits {
                return Err(self.fault("a number above 128 bits"));
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    fn signed_wide(&mut self) -> Decoded<i128> {
        Ok(unzigzag_wide(self.wide()?))
    }

    fn id(&mut self) -> Decoded<u32> {
        u32::try_from(self.number()?).map_err(|_| self.fault("a number above 32 bits"))
    }

    fn small(&mut self) -> Decoded<u16> {
        u16::try_from(self.number()?).map_err(|_| self.fault("a number above 16 bits"))
    }

    /// `last` and a folded step.
    fn stepped(&self, last: u32, folded: u64) -> Decoded<u32> {
        match i32::try_from(unzigzag(folded)) {
            Ok(step) => Ok(last.wrapping_add(step as u32)),
            Err(_) => Err(self.fault("a step above 32 bits")),
        }
    }

    /// How many items follow; each takes at least `bytes` bytes.
    fn count(&mut self, bytes: usize) -> Decoded<usize> {
        let count = self.number()?;
        let room = (self.content.len() - self.at) / bytes;
        match usize::try_from(count) {
            Ok(count) if count <= room => Ok(count),
            _ => Err(self.fault("more items than there are bytes for")),
        }
    }

    fn text(&mut self) -> Decoded<Box<str>> {
        let length = self.count(1)?;
        let text = std::str::from_utf8(&self.content[self.at..self.at + length])
            .map_err(|_| self.fault("a text that is not utf-8"))?;
        self.at += length;
        Ok(text.into())
    }

    fn order(&self, attributes: u8) -> Decoded<Option<MemoryOrder>> {
        match attributes & attribute::ORDER {
            0 => Ok(None),
            number => match ORDERS.get(usize::from(number) - 1) {
                Some(&order) => Ok(Some(order)),
                None => Err(self.fault("an unknown memory order")),
            },
        }
    }

    fn scalar_sort(&mut self) -> Decoded<ScalarSort> {
        match self.byte()? {
            65 => Ok(ScalarSort::Bool),
            66 => Ok(ScalarSort::Int),
            67 => Ok(ScalarSort::Real),
            width @ 1..=64 => Ok(ScalarSort::BitVec(width.into())),
            _ => Err(self.fault("an unknown sort")),
        }
    }

    fn sort(&mut self) -> Decoded<Sort> {
        if self.content.get(self.at) == Some(&68) {
            self.at += 1;
            return Ok(Sort::Array { index: self.scalar_sort()?, element: self.scalar_sort()? });
        }
        Ok(Sort::Scalar(self.scalar_sort()?))
    }

    fn scalar(&mut self, sort: ScalarSort) -> Decoded<Value> {
        Ok(match sort {
            ScalarSort::Bool => match self.byte()? {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                _ => return Err(self.fault("a truth value that is neither 0 nor 1")),
            },
            ScalarSort::Int => Value::Int(self.signed_wide()?),
            ScalarSort::Real => {
                let (numerator, denominator) = (self.signed_wide()?, self.signed_wide()?);
                let fault = self.fault("a fraction without value");
                Value::Real(Rational::new(numerator, denominator).ok_or(fault)?)
            }
            ScalarSort::BitVec(width) => {
                let bits = self.number()?;
                let value = Value::bit_vec(width, bits);
                if value != (Value::BitVec { width, bits }) {
                    return Err(self.fault("bits above the width"));
                }
                value
            }
        })
    }

    fn value(&mut self) -> Decoded<Value> {
        match self.sort()? {
            Sort::Scalar(sort) => self.scalar(sort),
            Sort::Array { index, element } => {
                let mut array = ArrayValue::constant(index, self.scalar(element)?);
                for _ in 0..self.count(2)? {
                    let at = self.scalar(index)?;
                    array = array.store(at, self.scalar(element)?);
                }
                Ok(Value::Array(Box::new(array)))
            }
        }
    }

    fn definition(&mut self) -> Decoded<Record> {
        Ok(match self.byte()? {
            definition::THREAD => {
                let id = ThreadId(self.id()?);
                let name = self.text()?;
                let count = self.count(1)?;
                let mut path = Vec::with_capacity(count);
                for _ in 0..count {
                    path.push(self.id()?);
                }
                Record::Thread(id, Thread { name, path })
            }
            definition::VARIABLE => {
                let id = VariableId(self.id()?);
                let name = self.text()?;
                let sort = self.sort()?;
                let scope = match self.number()? {
                    0 => Scope::Shared,
                    thread => Scope::Local(ThreadId(
                        u32::try_from(thread - 1)
                            .map_err(|_| self.fault("a number above 32 bits"))?,
                    )),
                };
                let memory = match self.number()? {
                    0 => None,
                    size => Some(MemoryRange {
                        size: u8::try_from(size - 1)
                            .map_err(|_| self.fault("a number above 8 bits"))?,
                        address: self.number()?,
                        generation: self.id()?,
                    }),
                };
                let initial = match self.byte()? {
                    0 => None,
                    1 => Some(self.value()?),
                    _ => return Err(self.fault("a truth value that is neither 0 nor 1")),
                };
                Record::Variable(id, Variable { name, sort, scope, memory, initial })
            }
            definition::OBJECT => {
                let id = ObjectId(self.id()?);
                let name = self.text()?;
                let code = self.byte()?;
                let kind = match code & !definition::OBJECT_HAS_ADDRESS {
                    0 => ObjectKind::Mutex,
                    1 => ObjectKind::RecursiveMutex,
                    2 => ObjectKind::ErrorCheckingMutex,
                    3 => ObjectKind::ReaderWriterLock,
                    4 => ObjectKind::Condition,
                    5 => ObjectKind::Semaphore { initial: self.id()? },
                    6 => ObjectKind::Barrier { parties: self.id()? },
                    7 => ObjectKind::Channel(match self.byte()? {
                        0 => ChannelKind::Queue,
                        1 => ChannelKind::State,
                        2 => ChannelKind::Interrupt,
                        _ => return Err(self.fault("an unknown kind of channel")),
                    }),
                    _ => return Err(self.fault("an unknown kind of synchronisation object")),
                };
                let address = match code & definition::OBJECT_HAS_ADDRESS {
                    0 => None,
                    _ => Some(self.number()?),
                };
                Record::Object(id, Object { name, kind, address })
            }
            definition::SITE => Record::Site(
                SiteId(self.id()?),
                Site {
                    file: self.text()?,
                    line: self.id()?,
                    column: self.id()?,
                    function: self.text()?,
                },
            ),
            definition::TERM => {
                let id = self.id()?;
                Record::Term(TermId(id), self.term(id)?)
            }
            definition::COMMAND => {
                let count = self.count(1)?;
                let mut command = Vec::with_capacity(count);
                for _ in 0..count {
                    command.push(self.text()?);
                }
                Record::Command(command)
            }
            definition::BUILD_ID => Record::BuildId(self.text()?),
            definition::PROPERTIES => match self.byte()? {
                bits @ 0..=63 => Record::Properties(Properties {
                    symbolic: bits & 1 != 0,
                    observed_order: bits & 2 != 0,
                    machine_code: bits & 4 != 0,
                    unseen: Unseen::from_flags([8, 16, 32].map(|bit| bits & bit != 0)),
                }),
                _ => return Err(self.fault("an unknown property")),
            },
            definition::GAP => Record::Gap(self.text()?),
            definition::RESTRICTION => Record::Restriction(self.text()?),
            definition::PRECONDITION => Record::Precondition(TermId(self.id()?)),
            definition::ORDER => Record::Order(self.number()?, self.number()?),
            definition::ATOMIC_SECTION => Record::AtomicSection(self.number()?, self.number()?),
            definition::LABEL => Record::Label(self.number()?, self.text()?),
            definition::END => Record::End(self.number()?),
            _ => return Err(self.fault("an unknown kind of definition")),
        })
    }

    fn term(&mut self, id: u32) -> Decoded<TermDefinition> {
        let operator = match self.byte()? {
            term_kind::CONSTANT => return Ok(TermDefinition::Constant(self.value()?)),
            term_kind::VARIABLE => {
                return Ok(TermDefinition::Variable(VariableId(self.id()?), self.sort()?));
            }
            term_kind::PRIMED => {
                return Ok(TermDefinition::Primed(VariableId(self.id()?), self.sort()?));
            }
            term_kind::READ_VALUE => {
                let (thread, index) = (ThreadId(self.id()?), self.id()?);
                return Ok(TermDefinition::ReadValue(thread, index, self.sort()?));
            }
            term_kind::BEFORE => {
                return Ok(TermDefinition::Before(self.number()?, self.number()?));
            }
            term_kind::SYMBOL => return Ok(TermDefinition::Symbol(self.text()?, self.sort()?)),
            term_kind::EXTRACT => Operator::Extract { high: self.small()?, low: self.small()? },
            term_kind::ZERO_EXTEND => Operator::ZeroExtend(self.small()?),
            term_kind::SIGN_EXTEND => Operator::SignExtend(self.small()?),
            number => match OPERATORS.get(usize::from(number)) {
                Some(&operator) => operator,
                None => return Err(self.fault("an unknown operator")),
            },
        };
        let count = self.count(1)?;
        let mut arguments = Vec::with_capacity(count);
        for _ in 0..count {
            match self.id()? {
                back if back > 0 && back <= id => arguments.push(TermId(id - back)),
                _ => return Err(self.fault("a term that does not come after its arguments")),
            }
        }
        Ok(TermDefinition::Apply(operator, arguments.into()))
    }
}
