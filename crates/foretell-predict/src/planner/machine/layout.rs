//! Memory cut into cells, so that accesses that overlap share them.

use std::collections::HashMap;

use foretell_trace::{MemoryRange, Op, Trace, Value, VariableId};

/// Which cells each variable lies in: one, or one a byte where it overlaps another variable.
pub(super) struct Layout {
    places: Vec<Box<[u32]>>,
    pub(super) cell_count: usize,
    /// An access of the variable has no value: a write is its own value.
    pub(super) by_writer: Vec<bool>,
}

impl Layout {
    pub(super) fn new(trace: &Trace) -> Self {
        let mut by_writer = vec![false; trace.variables.len()];
        for event in &trace.events {
            let (variable, known) = match &event.op {
                Op::Read(access) | Op::Write(access) => (access.variable, access.value.is_some()),
                Op::ReadModifyWrite(rmw) => (rmw.variable, rmw.old.is_some() && rmw.new.is_some()),
                _ => continue,
            };
            by_writer[variable.index()] |= !known;
        }
        let overlapping = overlapping(trace);
        let mut bytes: HashMap<(u64, u32), u32> = HashMap::new();
        let mut cell_count = 0;
        let mut fresh = || {
            cell_count += 1;
            cell_count - 1
        };
        let places = trace.variables.iter().zip(overlapping).map(|(variable, overlaps)| {
            match variable.memory {
                Some(range) if overlaps => (0..u64::from(range.size))
                    .map(|offset| (range.address.wrapping_add(offset), range.generation))
                    .map(|byte| *bytes.entry(byte).or_insert_with(&mut fresh))
                    .collect(),
                _ => Box::from([fresh()]),
            }
        });
        let places: Vec<Box<[u32]>> = places.collect();
        Self { places, cell_count: cell_count as usize, by_writer }
    }

    /// The cells of an access and the values in them.
    pub(super) fn split(
        &self,
        variable: VariableId,
        value: Option<u64>,
        token: u64,
    ) -> Vec<(u32, u64)> {
        let cells = &self.places[variable.index()];
        let whole = match value {
            Some(value) if !self.by_writer[variable.index()] => value,
            _ => return cells.iter().map(|&cell| (cell, token)).collect(),
        };
        match cells.as_ref() {
            [only] => vec![(*only, whole)],
            _ => {
                cells.iter().zip(0..).map(|(&cell, at)| (cell, whole >> (8 * at) & 0xff)).collect()
            }
        }
    }
}

/// Which variables share bytes with another one.
fn overlapping(trace: &Trace) -> Vec<bool> {
    let mut ranges: Vec<(MemoryRange, usize)> = trace
        .variables
        .iter()
        .enumerate()
        .filter_map(|(index, variable)| Some((variable.memory?, index)))
        .collect();
    ranges.sort_by_key(|(range, _)| (range.generation, range.address));
    let mut overlaps = vec![false; trace.variables.len()];
    // The range met so far that reaches furthest.
    let mut reach: Option<(u32, u64, usize)> = None;
    for (range, index) in ranges {
        let end = range.address.saturating_add(u64::from(range.size));
        match reach {
            Some((generation, furthest, other))
                if generation == range.generation && range.address < furthest =>
            {
                (overlaps[index], overlaps[other]) = (true, true);
                if end > furthest {
                    reach = Some((generation, end, index));
                }
            }
            _ => reach = Some((range.generation, end, index)),
        }
    }
    overlaps
}

/// The bits of a value that a cell can hold.
pub(super) fn bits_of(value: &Value) -> Option<u64> {
    match value {
        Value::BitVec { bits, .. } => Some(*bits),
        Value::Int(number) => Some(*number as u64),
        Value::Bool(truth) => Some(u64::from(*truth)),
        Value::Real(_) | Value::Array(_) => None,
    }
}
