//! Bytes to records: the mirror of [`super::encode`]. Every count is checked against the bytes that
//! remain before anything is allocated, and every record takes at least one byte, so decoding ends
//! and needs no more memory than a fixed multiple of the chunk.

mod bytes;

use super::codes::{Context, MAX_SLOT_TEXT, TABLE, attribute, code};
use super::varint::unzigzag;
use crate::event::{Access, AwaitMark, Condition, Event, Guarded, Op, ReadModifyWrite, Transition};
use crate::id::{ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::sync::{Parts, SyncKind, SyncOp};
use crate::term::{Operator, Sort, Value};
use crate::trace::{Object, Site, Thread, Unseen, Variable};
use bytes::Bytes;

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
