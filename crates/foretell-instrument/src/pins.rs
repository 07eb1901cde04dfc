//! Values that must be what they were, from some place on.
//!
//! Every access is held at its recorded address (`foretell-model` demands it of the step), and a
//! pin holds any value. So wherever such an instruction lies on every way, the value is a constant:
//! code there needs no shadow of it, nor of what is computed from it there. This loses nothing,
//! because no interleaving that the model allows gets there with another value.
//!
//! A value is also held if the held one was computed from it *injectively*, everything else in that
//! computation being constant. All arithmetic here is modulo 2^w, as it is in the recorded terms;
//! that an overflow would be undefined is not relied on.
//! - Adding, subtracting, `xor` and extensions are injective.
//! - A product with `c = odd * 2^t` is if the factor is one of at most 2^(w-t) consecutive numbers:
//!   two of them with the same product differ by `d` with `c * d = 0`, so 2^(w-t) divides `d`, but
//!   `d` is smaller. An extension from `n` bits is one of 2^n consecutive numbers, and still is
//!   after a constant was added. The scaled index of an address is such a product with w = 64.
//!
//! What is used where the instruction dominates the use is the very value that was held: between
//! the last time it was computed and the use the instruction was passed, or there were a way to the
//! use around it. The same goes for what it was computed from.

use crate::dominance::Dominators;
use crate::library;
use crate::llvm::{Block, Module, Opcode, TypeKind, Value};
use crate::locals::Locals;
use crate::memory::{self, Place};
use foretell_abi::ARGUMENT_SLOTS;
use std::collections::{HashMap, HashSet};

/// How far back a value is looked through to see that it is computed from held ones.
const DEPTH: u32 = 4;

/// A place in a function as it was before it was instrumented: block, and instruction in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    block: usize,
    index: usize,
}

/// The order of a function's instructions.
pub struct Flow {
    positions: HashMap<Value, Position>,
    dominators: Dominators,
}

impl Flow {
    /// Of reachable blocks in reverse post-order.
    pub fn new(blocks: &[Block]) -> Flow {
        let mut positions = HashMap::new();
        for (block, instructions) in blocks.iter().map(|b| b.instructions()).enumerate() {
            let of_block = instructions.into_iter().enumerate();
            positions.extend(of_block.map(|(index, i)| (i, Position { block, index })));
        }
        let numbers: HashMap<Block, usize> = blocks.iter().copied().zip(0..).collect();
        let successors: Vec<Vec<usize>> = blocks
            .iter()
            .map(|b| b.successors().iter().filter_map(|next| numbers.get(next).copied()).collect())
            .collect();
        Flow { positions, dominators: Dominators::new(&successors) }
    }

    /// Where an instruction stood.
    pub fn position(&self, instruction: Value) -> Position {
        self.positions.get(&instruction).copied().unwrap_or_default()
    }

    /// The end of a block, where its phis' values leave it. (A block that was split meanwhile ends
    /// with the same instruction.) Blocks that are never reached have none.
    pub fn end(&self, block: Block) -> Option<Position> {
        let last = *self.positions.get(&block.terminator()?)?;
        Some(Position { index: last.index + 1, ..last })
    }

    /// Whether whoever gets to the later position has passed the earlier one.
    fn passed(&self, earlier: Position, later: Position) -> bool {
        if earlier.block == later.block {
            return earlier.index < later.index;
        }
        self.dominators.dominates(earlier.block, later.block)
    }
}

/// Which values are held, and after which instructions.
pub struct Pins {
    flow: Flow,
    held: HashMap<Value, Vec<Position>>,
}

impl Pins {
    /// Nothing is held yet.
    pub fn new(flow: Flow) -> Pins {
        Pins { flow, held: HashMap::new() }
    }

    /// The order of the instructions.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Whether a value that may have a shadow is known to be what it was; `may` are all such values.
    pub fn holds(&self, value: Value, at: Position, may: &HashSet<Value>) -> bool {
        !self.held.is_empty() && self.holds_within(DEPTH, value, at, may)
    }

    fn holds_within(&self, depth: u32, value: Value, at: Position, may: &HashSet<Value>) -> bool {
        let held = self.held.get(&value).into_iter().flatten();
        if held.copied().any(|place| self.flow.passed(place, at)) {
            return true;
        }
        depth > 0
            && value.instruction_opcode().is_some_and(is_function_of_operands)
            && value.operands().all(|operand| {
                !may.contains(&operand) || self.holds_within(depth - 1, operand, at, may)
            })
    }

    fn symbolic(&self, value: Value, at: Position, may: &HashSet<Value>) -> bool {
        may.contains(&value) && !self.holds(value, at, may)
    }

    /// Adds what the instructions hold, given the values that may have a shadow; says whether that
    /// is more than before.
    pub fn add(
        &mut self,
        instructions: &[Value],
        may: &HashSet<Value>,
        locals: &Locals,
        module: &Module,
    ) -> bool {
        let mut more = false;
        for &instruction in instructions {
            let at = self.flow.position(instruction);
            for value in held_by(instruction, may, locals) {
                more |= self.hold(value, at, may, module);
            }
        }
        more
    }

    fn hold(&mut self, value: Value, at: Position, may: &HashSet<Value>, module: &Module) -> bool {
        let mut more = false;
        let mut next = Some(value);
        // (A struct's members have shadows of their own.)
        let scalar = |value: &Value| value.ty().scalar_width().is_some();
        while let Some(value) = next.filter(|value| may.contains(value) && scalar(value)) {
            if !self.holds(value, at, may) {
                let places = self.held.entry(value).or_default();
                if !places.contains(&at) {
                    places.push(at);
                    more = true;
                }
            }
            next = self.source(value, at, may, module);
        }
        more
    }

    /// The value from which this one was computed injectively.
    fn source(
        &self,
        value: Value,
        at: Position,
        may: &HashSet<Value>,
        module: &Module,
    ) -> Option<Value> {
        use Opcode::*;
        let opcode = value.instruction_opcode()?;
        let position = self.only_symbolic(value, at, may)?;
        let source = value.operand(position);
        let (from, to) = (source.ty().scalar_width()?, value.ty().scalar_width()?);
        let injective = match opcode {
            LLVMAdd | LLVMSub | LLVMXor | LLVMZExt | LLVMSExt | LLVMFreeze => true,
            LLVMBitCast | LLVMPtrToInt | LLVMIntToPtr => from <= to,
            LLVMMul => {
                let factor = value.operand(1 - position).constant_unsigned()?;
                self.scaled_injectively(source, factor, at, may)
            }
            LLVMShl if position == 0 => {
                let by = value.operand(1).constant_unsigned().filter(|by| *by < 64)?;
                self.scaled_injectively(source, 1 << by, at, may)
            }
            LLVMGetElementPtr if position == 0 => true,
            LLVMGetElementPtr => {
                let (_, stride) = *module.strides(value).get(position as usize - 1)?;
                // A narrower index is sign-extended.
                match from < 64 {
                    true => from + stride.trailing_zeros() <= 64,
                    false => self.scaled_injectively(source, stride, at, may),
                }
            }
            _ => false,
        };
        injective.then_some(source)
    }

    /// The position of the only operand that is not a constant there.
    fn only_symbolic(&self, value: Value, at: Position, may: &HashSet<Value>) -> Option<u32> {
        let symbolic = |k: &u32| {
            let operand = value.operand(*k);
            !operand.0.is_null() && self.symbolic(operand, at, may)
        };
        let mut positions = (0..value.operand_count()).filter(symbolic);
        positions.next().filter(|_| positions.next().is_none())
    }

    /// Whether different values of the operand have different products, see above.
    fn scaled_injectively(
        &self,
        operand: Value,
        factor: u64,
        at: Position,
        may: &HashSet<Value>,
    ) -> bool {
        let Some(width) = operand.ty().scalar_width() else { return false };
        self.spread(operand, at, may) + factor.trailing_zeros() <= width
    }

    /// The value is one of 2^n consecutive numbers: gives n.
    fn spread(&self, value: Value, at: Position, may: &HashSet<Value>) -> u32 {
        use Opcode::*;
        let width = value.ty().scalar_width().unwrap_or(64);
        match value.instruction_opcode() {
            Some(LLVMZExt | LLVMSExt) => value.operand(0).ty().scalar_width().unwrap_or(width),
            Some(LLVMAdd | LLVMSub) => match self.only_symbolic(value, at, may) {
                Some(position) => self.spread(value.operand(position), at, may),
                None => width,
            },
            _ => width,
        }
    }
}

/// Whether the result depends on the operands alone.
fn is_function_of_operands(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        LLVMAdd
            | LLVMSub
            | LLVMMul
            | LLVMUDiv
            | LLVMSDiv
            | LLVMURem
            | LLVMSRem
            | LLVMAnd
            | LLVMOr
            | LLVMXor
            | LLVMShl
            | LLVMLShr
            | LLVMAShr
            | LLVMZExt
            | LLVMSExt
            | LLVMTrunc
            | LLVMICmp
            | LLVMPtrToInt
            | LLVMIntToPtr
            | LLVMBitCast
            | LLVMSelect
            | LLVMGetElementPtr
    )
}

/// The values of which the instrumented instruction tells in any case that they had to be what they
/// were, before the next instruction is reached: by the address of its event, or by a pin.
pub fn held_by(instruction: Value, may: &HashSet<Value>, locals: &Locals) -> Vec<Value> {
    use Opcode::*;
    match instruction.opcode() {
        LLVMLoad | LLVMAtomicRMW | LLVMAtomicCmpXchg => vec![instruction.operand(0)],
        LLVMStore => vec![instruction.operand(1)],
        LLVMCall | LLVMInvoke => held_by_call(instruction, may, locals),
        LLVMPHI | LLVMBr | LLVMSwitch | LLVMRet | LLVMResume | LLVMLandingPad | LLVMFence
        | LLVMCallBr | LLVMUnreachable => Vec::new(),
        // What has no expression pins its operands.
        _ if !may.contains(&instruction) => instruction.operands().collect(),
        _ => Vec::new(),
    }
}

fn held_by_call(call: Value, may: &HashSet<Value>, locals: &Locals) -> Vec<Value> {
    let callee = call.callee();
    let arguments = |from: u32| (from..call.argument_count()).map(|k| call.operand(k)).collect();
    if callee.is_inline_asm() {
        return arguments(0);
    }
    let name = callee.as_function().map(Value::name).unwrap_or_default();
    let intrinsic = name.strip_prefix("llvm.");
    let plain = call.opcode() == Opcode::LLVMCall;
    match intrinsic {
        Some(name) if library::is_ignored(name) || library::is_identity(name) => Vec::new(),
        Some(name) if name.starts_with("mem") && plain => held_by_copy(call, locals),
        Some(name) if library::has_expression(name) && may.contains(&call) => Vec::new(),
        Some(_) => arguments(0),
        None if name.starts_with("__foretell_") => Vec::new(),
        None if plain && (library::is_named_copy(&name) || library::is_named_fill(&name)) => {
            held_by_copy(call, locals)
        }
        None if library::is_output_only(call) => Vec::new(),
        None if library::is_foreign(callee) => arguments(0),
        // What is handed over is pinned only if the callee does not take it.
        None => {
            let mut values: Vec<Value> =
                arguments(call.call_fixed_parameters().min(ARGUMENT_SLOTS as u32));
            values.push(callee);
            values
        }
    }
}

/// Addresses and length of a copy or fill.
fn held_by_copy(call: Value, locals: &Locals) -> Vec<Value> {
    let is_pointer = |value: &Value| value.ty().kind() == TypeKind::LLVMPointerTypeKind;
    let pointers: Vec<Value> =
        [0, 1].map(|k| call.operand(k)).into_iter().filter(is_pointer).collect();
    if pointers.iter().any(|pointer| matches!(memory::place(*pointer, locals), Place::Foreign)) {
        return Vec::new();
    }
    pointers.into_iter().chain([call.operand(2)]).collect()
}
