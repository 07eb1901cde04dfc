//! Stack variables whose address never leaves their function. No other thread can see them, so
//! their accesses are no events; only their shadows are kept.
//!
//! The analysis is syntactic: an address may flow through `getelementptr` and casts into loads,
//! stores, comparisons and memory intrinsics. Anything else (a call, a store of the address, a phi)
//! lets it escape.

use crate::llvm::{Opcode, Type, Value};
use std::collections::HashMap;

/// How the shadow of a local variable is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Local {
    /// A scalar that is always accessed whole: its shadow is a stack variable beside it.
    Scalar,
    /// An array or struct: its shadow is in the runtime's map.
    Memory,
}

/// The local variables of a function.
pub struct Locals {
    /// From `alloca` to kind.
    kinds: HashMap<Value, Local>,
    /// The `alloca`s as they stand in the function: what is compiled must not depend on addresses.
    order: Vec<Value>,
    /// From each pointer into a local variable to its `alloca`.
    bases: HashMap<Value, Value>,
}

impl Locals {
    /// Looks at all `alloca`s among the instructions.
    pub fn find(instructions: impl Iterator<Item = Value>) -> Locals {
        let mut locals = Locals { kinds: HashMap::new(), order: Vec::new(), bases: HashMap::new() };
        for instruction in instructions {
            if instruction.opcode() == Opcode::LLVMAlloca {
                locals.add(instruction);
            }
        }
        locals
    }

    /// The variable into which the pointer points, if it is local.
    pub fn get(&self, pointer: Value) -> Option<(Value, Local)> {
        let alloca = *self.bases.get(&pointer)?;
        Some((alloca, *self.kinds.get(&alloca)?))
    }

    /// All local variables, as they stand in the function.
    pub fn iter(&self) -> impl Iterator<Item = (Value, Local)> {
        self.order.iter().map(|alloca| (*alloca, self.kinds[alloca]))
    }

    fn add(&mut self, alloca: Value) {
        let mut pointers = vec![alloca];
        let mut accessed: Option<Type> = None;
        let mut whole = alloca.allocated_type().scalar_width().is_some()
            && alloca.operand(0).constant_integer() == Some(1);
        let mut next = 0;
        while let Some(&pointer) = pointers.get(next) {
            next += 1;
            for user in pointer.users() {
                let Some(use_of) = classify(pointer, user) else { return };
                match use_of {
                    Use::Derived => {
                        whole = false;
                        pointers.push(user);
                    }
                    Use::Access(ty) => {
                        whole &= *accessed.get_or_insert(ty) == ty && ty.scalar_width().is_some();
                    }
                    Use::Bytes => whole = false,
                    Use::Harmless => {}
                }
            }
        }
        let kind = if whole { Local::Scalar } else { Local::Memory };
        self.kinds.insert(alloca, kind);
        self.order.push(alloca);
        self.bases.extend(pointers.into_iter().map(|pointer| (pointer, alloca)));
    }
}

enum Use {
    /// The user is another pointer into the variable.
    Derived,
    /// A load or store of this type.
    Access(Type),
    /// A memory intrinsic.
    Bytes,
    /// Neither reads, writes nor leaks.
    Harmless,
}

/// What the user does with the pointer; `None` if it lets it escape.
fn classify(pointer: Value, user: Value) -> Option<Use> {
    match user.instruction_opcode()? {
        Opcode::LLVMLoad => Some(Use::Access(user.ty())),
        Opcode::LLVMStore if user.operand(0) != pointer => Some(Use::Access(user.operand(0).ty())),
        Opcode::LLVMGetElementPtr if user.operand(0) == pointer && is_pointer(user) => {
            Some(Use::Derived)
        }
        Opcode::LLVMBitCast | Opcode::LLVMFreeze if is_pointer(user) => Some(Use::Derived),
        Opcode::LLVMICmp => Some(Use::Harmless),
        Opcode::LLVMCall => {
            let name = user.intrinsic()?;
            let starts = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
            if starts(&["memcpy", "memmove", "memset", "va_start", "va_end", "va_copy"]) {
                Some(Use::Bytes)
            } else if starts(&["lifetime.", "invariant.", "dbg."]) {
                Some(Use::Harmless)
            } else {
                None
            }
        }
        _ => None,
    }
}

/// Whether the value is one pointer.
pub fn is_pointer(value: Value) -> bool {
    value.ty().kind() == crate::llvm::TypeKind::LLVMPointerTypeKind
}
