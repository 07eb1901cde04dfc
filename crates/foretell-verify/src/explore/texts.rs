//! The meaning of string and output functions.
//!
//! Such a function is one step. If what it accesses is shared, others see it as accesses of as many bytes
//! ([`Machine::text_accesses`]); a race on them is refused, because the library makes them in pieces.

use super::library::Call;
use super::machine::{Machine, Step};
use super::memory::{Pointer, Value};
use super::state::State;
use crate::certificate::Assumption;
use crate::ir::{Argument, Type};

/// Functions that access memory as strings or blocks.
pub(super) fn is_text(name: &str) -> bool {
    matches!(
        name,
        "strlen" | "strcmp" | "strncmp" | "memcmp" | "strcpy" | "strncpy" | "strcat" | "atoi"
    ) || is_output(name)
}

pub(super) fn is_output(name: &str) -> bool {
    matches!(name, "printf" | "fprintf" | "puts" | "fputs" | "perror")
}

/// A format's conversions behind its `%`, without flags and widths; is it one of 64 bits?
fn conversions(format: &[u8]) -> Vec<(u8, bool)> {
    let mut found = Vec::new();
    let mut bytes = format.iter();
    while let Some(&byte) = bytes.next() {
        if byte == b'%' {
            let mut is_long = false;
            let conversion = bytes.find(|byte| {
                is_long |= b"lzjt".contains(byte);
                !b"0123456789-+ #.lhzjt".contains(byte)
            });
            match conversion {
                Some(b'%') => {}
                Some(&conversion) => found.push((conversion, is_long)),
                None => found.push((0, false)),
            }
        }
    }
    found
}

/// Functions whose result C gives only the sign of: the C library gives the difference of two bytes,
/// compilers 1 or -1.
pub(super) fn is_comparison(name: &str) -> bool {
    matches!(name, "strcmp" | "strncmp" | "memcmp")
}

impl Machine<'_> {
    /// The difference of the first bytes that differ; none if something is not known or not there.
    pub(super) fn difference(
        &self,
        state: &State,
        thread: usize,
        name: &str,
        arguments: &[Argument],
    ) -> Option<i32> {
        let value = |index: usize| {
            let argument = arguments.get(index)?;
            self.operand(state, thread, &argument.value, &argument.kind).ok()
        };
        let (Value::Pointer(a), Value::Pointer(b)) = (value(0)?, value(1)?) else { return None };
        let limit = match value(2) {
            Some(Value::Integer(limit)) => i64::try_from(limit).unwrap_or(i64::MAX),
            Some(_) => return None,
            None => i64::MAX,
        };
        let byte = |at: Pointer, further: i64| {
            let (object, offset) = (state.object(at.base)?, at.offset + further);
            match object.contains(offset, 1).then(|| object.load_byte(offset as usize))? {
                Value::Integer(byte) => Some(byte as i32),
                _ => None,
            }
        };
        for further in 0..limit {
            let (a, b) = (byte(a, further)?, byte(b, further)?);
            if a != b || a == 0 && name != "memcmp" {
                return Some(a - b);
            }
        }
        Some(0)
    }

    /// Known bytes up to the end of a string, without it; all there are if it does not end.
    fn bytes_of(&self, state: &State, at: Pointer) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Some(object) = state.object(at.base) else { return bytes };
        for offset in at.offset.max(0) as usize..object.size() {
            match object.load_byte(offset) {
                Value::Integer(byte @ 1..) => bytes.push(byte as u8),
                _ => break,
            }
        }
        bytes
    }

    /// Is there more than one result that a C library or compiler gives?
    pub(super) fn result_is_open(
        &self,
        state: &State,
        thread: usize,
        name: &str,
        arguments: &[Argument],
    ) -> bool {
        let difference = self.difference(state, thread, name, arguments);
        difference.is_some_and(|difference| difference.abs() > 1)
    }

    /// What a function of strings is about to access: where, how many bytes, does it write.
    pub(super) fn text_accesses(
        &self,
        state: &State,
        thread: usize,
        name: &str,
        arguments: &[Argument],
    ) -> Vec<(Pointer, usize, bool)> {
        let value = |index: usize| {
            let argument = arguments.get(index)?;
            self.operand(state, thread, &argument.value, &argument.kind).ok()
        };
        let pointer = |index: usize| match value(index) {
            Some(Value::Pointer(at)) => Some(at),
            _ => None,
        };
        let length = |at: Pointer| self.bytes_of(state, at).len() + 1;
        let limit = match value(2) {
            Some(Value::Integer(limit)) => limit as usize,
            _ => usize::MAX,
        };
        let mut found = Vec::new();
        let mut read = |index: usize| {
            if let Some(at) = pointer(index) {
                let bytes = if name == "memcmp" { limit } else { length(at).min(limit) };
                found.push((at, bytes, false));
            }
        };
        match name {
            "strlen" | "atoi" | "puts" | "fputs" | "perror" => read(0),
            "strcmp" | "strncmp" | "memcmp" => {
                read(0);
                read(1);
            }
            "strcpy" | "strncpy" | "strcat" => {
                read(1);
                if let (Some(to), Some(from)) = (pointer(0), pointer(1)) {
                    let bytes = match name {
                        "strncpy" => limit,
                        "strcpy" => length(from),
                        _ => length(to) + length(from),
                    };
                    found.push((to, bytes, true));
                }
            }
            "printf" | "fprintf" => {
                let format = usize::from(name == "fprintf");
                let text = pointer(format).map(|at| self.bytes_of(state, at)).unwrap_or_default();
                for (place, (conversion, _)) in conversions(&text).into_iter().enumerate() {
                    if conversion == b's' {
                        // a limit belongs to functions with a length
                        if let Some(at) = pointer(format + 1 + place) {
                            found.push((at, length(at), false));
                        }
                    }
                }
            }
            _ => {}
        }
        found
    }

    /// Can others see a function of strings?
    pub(super) fn text_is_seen(
        &self,
        state: &State,
        thread: usize,
        name: &str,
        arguments: &[Argument],
    ) -> bool {
        if is_comparison(name) && self.result_is_open(state, thread, name, arguments) {
            return true;
        }
        let accesses = self.text_accesses(state, thread, name, arguments);
        accesses.iter().any(|(at, ..)| self.is_shared(state, thread, at.base))
    }
}

impl Call<'_, '_> {
    /// The bytes of a string up to its end, or as many as are asked for.
    fn string(&self, state: &State, at: Pointer, limit: usize) -> Step<Vec<u8>> {
        let mut bytes = Vec::new();
        for further in 0..i64::try_from(limit).unwrap_or(i64::MAX) {
            let at = Pointer { offset: at.offset + further, ..at };
            let offset = self.machine.bounds(state, self.place, at, 1, false)?;
            match state.object(at.base).map(|object| object.load_byte(offset)) {
                Some(Value::Integer(0)) => break,
                Some(Value::Integer(byte)) => bytes.push(byte as u8),
                _ => return self.refuse("a string that is undefined"),
            }
        }
        Ok(bytes)
    }

    fn string_at(&self, state: &State, index: usize) -> Step<Vec<u8>> {
        self.string(state, self.pointer(state, index)?, usize::MAX)
    }

    fn write(&self, state: &mut State, to: Pointer, bytes: &[u8]) -> Step<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let offset = self.machine.bounds(state, self.place, to, bytes.len(), true)?;
        if let Some(object) = state.object_mut(to.base) {
            for (place, byte) in bytes.iter().enumerate() {
                object.store(offset + place, 1, &Value::Integer((*byte).into()));
            }
        }
        Ok(())
    }

    /// Executes a function of strings.
    pub(super) fn text(
        &self,
        state: &mut State,
        name: &str,
        kind: &Type,
        choice: u32,
    ) -> Step<Option<Value>> {
        let code = |number: i64| match kind {
            Type::Integer(bits) => Ok(Some(Value::Integer(crate::ir::mask(number as u128, *bits)))),
            _ => self.refuse(format!("a call of {name} with a result of type {}", kind.show())),
        };
        if is_output(name) {
            return self.print(state, name);
        }
        match name {
            "strlen" => code(self.string_at(state, 0)?.len() as i64),
            "atoi" => {
                let text = String::from_utf8_lossy(&self.string_at(state, 0)?).into_owned();
                let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
                let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                match digits[..end].parse::<i32>() {
                    Ok(value) if text.starts_with('-') => code(-i64::from(value)),
                    Ok(value) => code(value.into()),
                    Err(_) if end == 0 => code(0),
                    Err(_) => self.refuse("undefined: atoi of a number that is too large"),
                }
            }
            _ if is_comparison(name) => {
                if name != "strcmp" && self.length(state)? == 0 {
                    for index in 0..2 {
                        self.valid(state, self.pointer(state, index)?)?;
                    }
                }
                if name == "memcmp" {
                    let length = self.length(state)?;
                    for index in 0..2 {
                        let at = self.pointer(state, index)?;
                        self.machine.bounds(state, self.place, at, length, false)?;
                    }
                }
                let (machine, thread) = (self.machine, self.thread);
                match machine.difference(state, thread, name, self.arguments) {
                    Some(difference) if choice == 0 => code(difference.into()),
                    Some(difference) => {
                        self.assume(Assumption::Comparisons);
                        code(difference.signum().into())
                    }
                    None => self.refuse(format!("{name} of bytes that are not known")),
                }
            }
            _ => {
                let (to, from) = (self.pointer(state, 0)?, self.pointer(state, 1)?);
                let limit = if name == "strncpy" { self.length(state)? } else { usize::MAX };
                if limit == 0 {
                    self.valid(state, to)?;
                    self.valid(state, from)?;
                }
                let mut bytes = self.string(state, from, limit)?;
                let mut start = to;
                match name {
                    "strncpy" => bytes.resize(limit.min(1 << 20), 0),
                    "strcat" => {
                        start.offset += self.string(state, to, usize::MAX)?.len() as i64;
                        bytes.push(0);
                    }
                    _ => bytes.push(0),
                }
                let (end, source_end) =
                    (start.offset + bytes.len() as i64, from.offset + bytes.len() as i64);
                if to.base == from.base && from.offset < end && start.offset < source_end {
                    return self.refuse("undefined: a copy of a string that overlaps");
                }
                self.write(state, start, &bytes)?;
                Ok(Some(Value::Pointer(to)))
            }
        }
    }

    /// Output changes nothing that the program could see; its result is not known.
    fn print(&self, state: &State, name: &str) -> Step<Option<Value>> {
        let format = match name {
            "printf" => 0,
            "fprintf" => 1,
            _ => {
                // only `perror` takes null for no text
                if name != "perror" || self.pointer(state, 0)? != Pointer::NULL {
                    self.string_at(state, 0)?;
                }
                return Ok(Some(Value::Undefined));
            }
        };
        let text = self.string_at(state, format)?;
        for (place, (conversion, is_long)) in conversions(&text).into_iter().enumerate() {
            let next = format + 1 + place;
            let kind = &self.argument(next)?.kind;
            let fits = match conversion {
                b'd' | b'i' | b'u' | b'x' | b'X' | b'o' => {
                    *kind == Type::Integer(if is_long { 64 } else { 32 })
                }
                b'c' => *kind == Type::Integer(32) && !is_long,
                b'f' | b'g' | b'e' => matches!(kind, Type::Float { size: 8, .. }),
                b'p' => *kind == Type::Pointer,
                b's' => {
                    self.string_at(state, next)?;
                    !is_long
                }
                _ => return self.refuse("a format that has no meaning here"),
            };
            if !fits {
                return self.refuse("undefined: an argument of another type than the format says");
            }
        }
        Ok(Some(Value::Undefined))
    }
}
