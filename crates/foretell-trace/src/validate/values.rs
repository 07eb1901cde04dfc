//! Reads return what was written last.
//!
//! Memory is kept by byte, because locations of different size may overlap; variables without an
//! address are kept whole.

use std::collections::HashMap;

use super::Faults;
use crate::event::{Event, Op};
use crate::id::{EventId, VariableId};
use crate::term::Value;
use crate::trace::{MemoryRange, Trace};

/// A part of a location: a variable without an address, or one byte of a generation of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Cell {
    Whole(VariableId),
    Byte { address: u64, generation: u32 },
}

#[derive(Clone, Copy)]
struct Content {
    bits: u64,
    /// `None` for an initial value.
    writer: Option<EventId>,
}

pub(super) struct Memory<'t> {
    trace: &'t Trace,
    checked: bool,
    cells: HashMap<Cell, Content>,
}

impl<'t> Memory<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        let checked = trace.metadata.observed_order && trace.metadata.gaps.is_empty();
        let mut memory = Self { trace, checked, cells: HashMap::new() };
        for (number, variable) in trace.variables.iter().enumerate() {
            let bits = match variable.initial {
                Some(Value::Bool(value)) => Some(u64::from(value)),
                Some(Value::Int(value)) => i64::try_from(value).ok().map(|value| value as u64),
                Some(Value::BitVec { bits, .. }) => Some(bits),
                _ => None,
            };
            if checked && let Some(bits) = bits {
                memory.write(VariableId::from(number), Some(bits), None);
            }
        }
        memory
    }

    /// The cells of a variable, each with the place of its bits in the variable's value.
    fn cells(&self, variable: VariableId) -> impl Iterator<Item = (Cell, u32, u64)> + use<> {
        let range = self.trace.variables[variable.index()].memory;
        let count = range.map_or(1, |range| u64::from(range.size.min(8)));
        (0..count).map(move |offset| match range {
            None => (Cell::Whole(variable), 0, u64::MAX),
            Some(MemoryRange { address, generation, .. }) => {
                let address = address.wrapping_add(offset);
                (Cell::Byte { address, generation }, 8 * offset as u32, 0xff)
            }
        })
    }

    fn write(&mut self, variable: VariableId, bits: Option<u64>, writer: Option<EventId>) {
        for (cell, shift, mask) in self.cells(variable) {
            match bits {
                Some(bits) => {
                    self.cells.insert(cell, Content { bits: (bits >> shift) & mask, writer });
                }
                None => {
                    self.cells.remove(&cell);
                }
            }
        }
    }

    /// Checks what was read, and takes it for the content from here on.
    fn read(
        &mut self,
        id: EventId,
        variable: VariableId,
        value: Option<u64>,
        faults: &mut Faults<'_>,
    ) {
        let Some(value) = value else { return };
        let mut wrong = None;
        for (cell, shift, mask) in self.cells(variable) {
            let bits = (value >> shift) & mask;
            let known = self.cells.get(&cell);
            let content = known.copied().unwrap_or(Content { bits, writer: None });
            if content.bits != bits {
                wrong = Some(content.writer);
            }
            self.cells.insert(cell, Content { bits, ..content });
        }
        if let Some(writer) = wrong {
            let name = faults.variable(variable).to_owned();
            let source = match writer {
                Some(writer) => format!("{} wrote something else", self.trace.event_name(writer)),
                None => "it held something else before".to_owned(),
            };
            faults.at(id, format!("reads {value} from {name}, but {source}"));
        }
    }

    pub(super) fn step(&mut self, id: EventId, event: &Event, faults: &mut Faults<'_>) {
        if !self.checked {
            return;
        }
        match &event.op {
            Op::Read(access) => self.read(id, access.variable, access.value, faults),
            Op::Write(access) => self.write(access.variable, access.value, Some(id)),
            Op::ReadModifyWrite(step) => {
                self.read(id, step.variable, step.old, faults);
                self.write(step.variable, step.new, Some(id));
            }
            Op::Guarded(step) => {
                for &(variable, _) in &step.assignments {
                    self.write(variable, None, Some(id));
                }
            }
            Op::Transition(step) => {
                for &variable in &step.changed {
                    self.write(variable, None, Some(id));
                }
            }
            _ => {}
        }
    }
}
