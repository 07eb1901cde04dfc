//! Types and where their parts lie in memory (x86-64).

use std::sync::Arc;

use crate::limits::LARGEST_TYPE;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Nothing.
    Void,
    /// An integer of so many bits.
    Integer(u32),
    /// A pointer.
    Pointer,
    /// So many elements.
    Array(u64, Arc<Type>),
    /// Fields.
    Struct(Arc<Struct>),
    /// Floating point: has a size, its values are refused.
    Float {
        /// Bytes in memory.
        size: u64,
        /// Its name.
        name: &'static str,
    },
    /// No meaning, not even a size.
    Refused(Arc<str>),
}

/// A structure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Struct {
    /// Its fields.
    pub fields: Vec<Type>,
    /// No padding.
    pub packed: bool,
    /// It has the members of a structure of C; a union, or what stands for an initialiser, need not.
    pub declared: bool,
}

impl Type {
    /// Bytes in memory, padding included; `None` if it has no size here, or too great a one.
    pub fn size(&self) -> Option<u64> {
        let size = match self {
            Type::Void | Type::Refused(_) => return None,
            Type::Integer(bits) => u64::from(bits.div_ceil(8)).next_multiple_of(self.align()),
            Type::Pointer => 8,
            Type::Array(length, element) => element.size()?.checked_mul(*length)?,
            Type::Struct(fields) => {
                let end = fields.end(fields.fields.len())?;
                end.next_multiple_of(self.align())
            }
            Type::Float { size, .. } => *size,
        };
        (size <= LARGEST_TYPE).then_some(size)
    }

    /// Its address is a multiple of this.
    pub fn align(&self) -> u64 {
        match self {
            Type::Integer(bits) => u64::from(bits.div_ceil(8)).max(1).next_power_of_two().min(16),
            Type::Pointer => 8,
            Type::Array(_, element) => element.align(),
            Type::Struct(fields) if fields.packed => 1,
            Type::Struct(fields) => fields.fields.iter().map(Type::align).max().unwrap_or(1),
            Type::Float { size, .. } => *size,
            Type::Void | Type::Refused(_) => 1,
        }
    }

    /// Does it say which type of C lies where? Unions and literal structures do not.
    pub fn is_declared(&self) -> bool {
        match self {
            Type::Array(_, element) => element.is_declared(),
            Type::Struct(fields) => fields.declared && fields.fields.iter().all(Type::is_declared),
            Type::Refused(_) => false,
            _ => true,
        }
    }

    /// What begins at the offset.
    pub fn leaf(&self, offset: u64) -> Option<&Type> {
        match self {
            Type::Array(_, element) => element.leaf(offset.checked_rem(element.size()?)?),
            Type::Struct(fields) => {
                let starts = (0..fields.fields.len()).rev();
                let (field, start) = starts
                    .filter_map(|field| Some((field, fields.offset(field)?)))
                    .find(|(_, start)| *start <= offset)?;
                fields.fields[field].leaf(offset - start)
            }
            other => (offset == 0).then_some(other),
        }
    }

    /// How it is written.
    pub fn show(&self) -> String {
        match self {
            Type::Void => "void".into(),
            Type::Integer(bits) => format!("i{bits}"),
            Type::Pointer => "ptr".into(),
            Type::Array(length, element) => format!("[{length} x {}]", element.show()),
            Type::Struct(_) => "a structure".into(),
            Type::Float { name, .. } => (*name).into(),
            Type::Refused(what) => what.to_string(),
        }
    }
}

impl Struct {
    /// Where the field lies.
    pub fn offset(&self, field: usize) -> Option<u64> {
        let before = self.end(field)?;
        let align = if self.packed { 1 } else { self.fields.get(field)?.align() };
        Some(before.next_multiple_of(align))
    }

    /// Where the fields before the given one end.
    fn end(&self, field: usize) -> Option<u64> {
        let mut at: u64 = 0;
        for kind in self.fields.get(..field)? {
            if !self.packed {
                at = at.next_multiple_of(kind.align());
            }
            at = at.checked_add(kind.size()?)?;
        }
        Some(at)
    }
}

/// What of an object has no value by its declaration: bytes between members, bits beside bit-fields. C
/// leaves open what they hold (C17 6.2.6.1, 6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Padding {
    /// Bytes without any value.
    pub whole: Vec<u32>,
    /// Bytes of which some bits have a value.
    pub partial: Vec<u32>,
}
