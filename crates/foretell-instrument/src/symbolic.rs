//! Which values can have a shadow at all: the least set that holds what the function reads, is
//! given or gets back from calls, and is closed under the operations that have expressions.
//! Everything outside (loop counters, addresses of variables, constants) costs nothing at run time.

use crate::library;
use crate::llvm::{Opcode, Value};
use crate::locals::{Local, Locals};
use crate::memory::{self, Place};
use foretell_abi::{ARGUMENT_SLOTS, RESULT_SLOTS};
use std::collections::HashSet;

/// Values, and local variables by their `alloca`, that may have a shadow.
pub struct MaySymbolic(HashSet<Value>);

impl MaySymbolic {
    /// No value has a shadow: only concrete accesses are reported.
    pub fn nothing() -> MaySymbolic {
        MaySymbolic(HashSet::new())
    }

    /// The least fixed point over the function.
    pub fn find(function: Value, instructions: &[Value], locals: &Locals) -> MaySymbolic {
        let parameters = function.parameters().into_iter().take(ARGUMENT_SLOTS);
        let handed =
            parameters.filter(|p| p.ty().scalar_width().is_some() && !p.is_by_value_parameter());
        let mut set = MaySymbolic(handed.collect());
        let mut grown = true;
        while grown {
            grown = false;
            for &instruction in instructions {
                if let Some(target) = set.target(instruction, locals) {
                    grown |= set.0.insert(target);
                }
            }
        }
        set
    }

    /// Whether the value, or the variable of this `alloca`, may have a shadow.
    pub fn contains(&self, value: Value) -> bool {
        self.0.contains(&value)
    }

    fn any_operand(&self, instruction: Value) -> bool {
        instruction.operands().any(|operand| self.contains(operand))
    }

    /// What the instruction makes symbolic in view of the current set.
    fn target(&self, instruction: Value, locals: &Locals) -> Option<Value> {
        use Opcode::*;
        let scalar = instruction.ty().scalar_width().is_some();
        let keeps = |value: Value| scalar || value.ty().flat_members(RESULT_SLOTS).is_some();
        let symbolic = match instruction.opcode() {
            LLVMLoad => {
                keeps(instruction)
                    && match memory::place(instruction.operand(0), locals) {
                        Place::Local(alloca, _) => self.contains(alloca),
                        Place::Constant | Place::Foreign => false,
                        Place::Shared => true,
                    }
            }
            LLVMStore => match memory::place(instruction.operand(1), locals) {
                Place::Local(alloca, _) if self.contains(instruction.operand(0)) => {
                    return Some(alloca);
                }
                _ => false,
            },
            LLVMAtomicRMW => scalar,
            LLVMAtomicCmpXchg => instruction.operand(1).ty().scalar_width().is_some(),
            LLVMCall | LLVMInvoke => match instruction.intrinsic() {
                Some(name) if name.starts_with("mem") => {
                    return self.copied_into(instruction, &name, locals);
                }
                Some(name) => {
                    (library::is_identity(&name) || library::has_expression(&name))
                        && self.any_operand(instruction)
                        && keeps(instruction)
                }
                None => {
                    let callee = instruction.callee();
                    !callee.is_inline_asm()
                        && !library::is_foreign(callee)
                        && keeps(instruction)
                        && !instruction.is_must_tail()
                }
            },
            LLVMExtractValue | LLVMInsertValue => {
                instruction.indices().len() == 1
                    && keeps(instruction)
                    && self.any_operand(instruction)
            }
            LLVMAdd | LLVMSub | LLVMMul | LLVMUDiv | LLVMSDiv | LLVMURem | LLVMSRem | LLVMAnd
            | LLVMOr | LLVMXor | LLVMShl | LLVMLShr | LLVMAShr | LLVMZExt | LLVMSExt
            | LLVMTrunc | LLVMICmp | LLVMPtrToInt | LLVMIntToPtr | LLVMBitCast | LLVMFreeze
            | LLVMSelect | LLVMGetElementPtr | LLVMPHI => scalar && self.any_operand(instruction),
            _ => false,
        };
        symbolic.then_some(instruction)
    }

    /// The local variable into which a memory intrinsic may copy shadows.
    fn copied_into(&self, call: Value, name: &str, locals: &Locals) -> Option<Value> {
        let Place::Local(alloca, Local::Memory) = memory::place(call.operand(0), locals) else {
            return None;
        };
        let source_symbolic = if name.starts_with("memset") {
            self.contains(call.operand(1))
        } else {
            match memory::place(call.operand(1), locals) {
                Place::Local(source, _) => self.contains(source),
                Place::Constant => false,
                Place::Shared | Place::Foreign => true,
            }
        };
        source_symbolic.then_some(alloca)
    }
}
