//! The bytes that remain of a chunk, and the values that records are made of.

use super::{Decoded, Malformed, Properties, Record, TermDefinition};
use crate::event::MemoryOrder;
use crate::format::binary::codes::{OPERATORS, ORDERS, attribute, definition, term_kind};
use crate::format::binary::varint::{unzigzag, unzigzag_wide};
use crate::id::{ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::term::{ArrayValue, Operator, Rational, ScalarSort, Sort, Value};
use crate::trace::{
    ChannelKind, MemoryRange, Object, ObjectKind, Scope, Site, Thread, Unseen, Variable,
};

/// A chunk's content and how far it has been read.
pub(super) struct Bytes<'a> {
    pub(super) content: &'a [u8],
    pub(super) at: usize,
}

impl Bytes<'_> {
    pub(super) fn fault(&self, what: &'static str) -> Malformed {
        Malformed { at: self.at, what }
    }

    pub(super) fn byte(&mut self) -> Decoded<u8> {
        let byte = *self.content.get(self.at).ok_or(self.fault("a record that is cut off"))?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Decoded<u64> {
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

    pub(super) fn id(&mut self) -> Decoded<u32> {
        u32::try_from(self.number()?).map_err(|_| self.fault("a number above 32 bits"))
    }

    fn small(&mut self) -> Decoded<u16> {
        u16::try_from(self.number()?).map_err(|_| self.fault("a number above 16 bits"))
    }

    /// `last` and a folded step.
    pub(super) fn stepped(&self, last: u32, folded: u64) -> Decoded<u32> {
        match i32::try_from(unzigzag(folded)) {
            Ok(step) => Ok(last.wrapping_add(step as u32)),
            Err(_) => Err(self.fault("a step above 32 bits")),
        }
    }

    /// How many items follow; each takes at least `bytes` bytes.
    pub(super) fn count(&mut self, bytes: usize) -> Decoded<usize> {
        let count = self.number()?;
        let room = (self.content.len() - self.at) / bytes;
        match usize::try_from(count) {
            Ok(count) if count <= room => Ok(count),
            _ => Err(self.fault("more items than there are bytes for")),
        }
    }

    pub(super) fn text(&mut self) -> Decoded<Box<str>> {
        let length = self.count(1)?;
        let text = std::str::from_utf8(&self.content[self.at..self.at + length])
            .map_err(|_| self.fault("a text that is not utf-8"))?;
        self.at += length;
        Ok(text.into())
    }

    pub(super) fn order(&self, attributes: u8) -> Decoded<Option<MemoryOrder>> {
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

    pub(super) fn definition(&mut self) -> Decoded<Record> {
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
