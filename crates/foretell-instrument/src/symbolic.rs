//! Which values can have a shadow at all: the least set that holds what the function reads, is
//! given or gets back from calls, and is closed under the operations that have expressions.
//! Everything outside (loop counters, addresses of variables, constants) costs nothing at run time.
//!
//! A value that is held (see `pins`) has no shadow where it is used. What is held depends on what
//! may have a shadow and the other way round; each round starts from a set that is large enough, so
//! every round's answer is right, and later ones are smaller.

use crate::library;
use crate::llvm::{Block, Module, Opcode, Value};
use crate::locals::{Local, Locals};
use crate::memory::{self, Place};
use crate::pins::{self, Flow, Pins, Position};
use foretell_abi::{ARGUMENT_SLOTS, RESULT_SLOTS};
use std::collections::HashSet;

/// How often the set is made smaller at most.
const ROUNDS: usize = 8;

/// Values, and local variables by their `alloca`, that may have a shadow.
pub struct MaySymbolic {
    values: HashSet<Value>,
    pins: Pins,
}

impl MaySymbolic {
    /// No value has a shadow: only concrete accesses are reported.
    pub fn nothing() -> MaySymbolic {
        MaySymbolic { values: HashSet::new(), pins: Pins::new(Flow::new(&[])) }
    }

    /// The set for a function, whose reachable blocks are given in reverse post-order.
    pub fn find(
        function: Value,
        blocks: &[Block],
        instructions: &[Value],
        locals: &Locals,
        module: &Module,
    ) -> MaySymbolic {
        let mut set = MaySymbolic { values: HashSet::new(), pins: Pins::new(Flow::new(blocks)) };
        set.close(function, instructions, locals);
        for _ in 0..ROUNDS {
            if !set.pins.add(instructions, &set.values, locals, module) {
                break;
            }
            set.close(function, instructions, locals);
        }
        set
    }

    /// The least fixed point over the function, in view of what is held.
    fn close(&mut self, function: Value, instructions: &[Value], locals: &Locals) {
        let parameters = function.parameters().into_iter().take(ARGUMENT_SLOTS);
        let handed =
            parameters.filter(|p| p.ty().scalar_width().is_some() && !p.is_by_value_parameter());
        self.values = handed.collect();
        let mut grown = true;
        while grown {
            grown = false;
            for &instruction in instructions {
                if let Some(target) = self.target(instruction, locals) {
                    grown |= self.values.insert(target);
                }
            }
        }
    }

    /// Whether the value, or the variable of this `alloca`, may have a shadow somewhere.
    pub fn contains(&self, value: Value) -> bool {
        self.values.contains(&value)
    }

    /// Whether a value is known to have no shadow there, although it may elsewhere.
    pub fn is_held(&self, value: Value, at: Position) -> bool {
        self.pins.holds(value, at, &self.values)
    }

    /// The values of which an instruction's code is to tell that they had to be what they were.
    pub fn held_by(&self, instruction: Value, locals: &Locals) -> Vec<Value> {
        pins::held_by(instruction, &self.values, locals)
    }

    /// The order of the function's instructions.
    pub fn flow(&self) -> &Flow {
        self.pins.flow()
    }

    fn symbolic(&self, value: Value, at: Position) -> bool {
        self.contains(value) && !self.is_held(value, at)
    }

    fn any_operand(&self, instruction: Value) -> bool {
        let at = self.flow().position(instruction);
        instruction.operands().any(|operand| self.symbolic(operand, at))
    }

    /// A phi takes its values at the ends of the blocks that they come from.
    fn any_incoming(&self, phi: Value) -> bool {
        phi.incoming().into_iter().any(|(value, block)| {
            self.flow().end(block).is_some_and(|end| self.symbolic(value, end))
        })
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
                Place::Local(alloca, _) => {
                    let at = self.flow().position(instruction);
                    return self.symbolic(instruction.operand(0), at).then_some(alloca);
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
            | LLVMSelect | LLVMGetElementPtr => scalar && self.any_operand(instruction),
            LLVMPHI => scalar && self.any_incoming(instruction),
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
            self.symbolic(call.operand(1), self.flow().position(call))
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
