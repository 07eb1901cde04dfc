//! The operations of p-code, each on values with what they were computed from.

use foretell_abi::{BinaryOp, CastOp};
use libsla::{BoolOp, IntOp, IntSign, OpCode};

use super::lift::{Lifted, Operand, Operation, Space};
use super::value::Value;
use super::{Seen, Terms};

/// Why an instruction is not followed any further for now.
pub enum Stop {
    /// It is over.
    End,
    /// It loads from this address.
    Load(Value),
    /// It stores this to the address.
    Store(Value, Value),
}

/// Where the next operation is.
enum Next {
    Following,
    /// So many operations on, or back.
    Relative(i64),
    /// The instruction is over.
    End,
}

fn width(operand: &Operand) -> u8 {
    u8::try_from(operand.size * 8).unwrap_or(u8::MAX)
}

/// Whether the first input is a place in the code.
fn jumps(code: OpCode) -> bool {
    matches!(code, OpCode::Branch | OpCode::BranchConditional | OpCode::Call)
}

impl Terms {
    /// Follows an instruction from where it was left. `all`: its accesses are over.
    pub(super) fn run(&mut self, instruction: &Lifted, all: bool) -> Stop {
        let Some(operations) = &instruction.operations else {
            self.hold_inputs(instruction);
            return Stop::End;
        };
        /// No instruction has so many; one that goes round in itself is not followed.
        const MOST: usize = 10_000;
        for _ in 0..MOST {
            let Some(operation) = operations.get(self.at.1) else { return Stop::End };
            if let Some(stop) = self.needs_access(operation, all) {
                return stop;
            }
            match self.execute(instruction, operation) {
                Next::Following => self.at.1 += 1,
                Next::End => self.at.1 = usize::MAX,
                Next::Relative(by) => {
                    self.at.1 = self.at.1.checked_add_signed(by as isize).unwrap_or(usize::MAX);
                }
            }
        }
        self.hold_inputs(instruction);
        self.at.1 = usize::MAX;
        Stop::End
    }

    /// The access that the operation makes and that has not been seen yet.
    fn needs_access(&mut self, operation: &Operation, all: bool) -> Option<Stop> {
        if all {
            return None;
        }
        if operation.code == OpCode::Load {
            let address = self.input(operation, 1);
            let size = operation.output.map_or(0, |output| output.size);
            return self.found(&address, size).is_none().then_some(Stop::Load(address));
        }
        for input in operation.inputs.iter().skip(usize::from(jumps(operation.code))) {
            if input.space == Space::Memory {
                let address = Value::constant(64, input.offset);
                if self.found(&address, input.size).is_none() {
                    return Some(Stop::Load(address));
                }
            }
        }
        let (address, size) = match operation {
            Operation { code: OpCode::Store, inputs, .. } => {
                (self.input(operation, 1), inputs.get(2).map_or(0, |input| input.size))
            }
            Operation { output: Some(output), .. } if output.space == Space::Memory => {
                (Value::constant(64, output.offset), output.size)
            }
            _ => return None,
        };
        if self.written(&address, size) {
            return None;
        }
        let value = match operation.code {
            OpCode::Store => self.input(operation, 2),
            _ => self.result(operation),
        };
        Some(Stop::Store(address, value))
    }

    /// What an access of the instruction found or left there, if it has been seen.
    fn found(&self, address: &Value, size: usize) -> Option<(&Seen, u8)> {
        let of_size = |seen: &&Seen| usize::from(seen.size) == size && !seen.writes;
        let Some(address) = address.bits else {
            // The one that there is.
            let mut all = self.seen.iter().filter(of_size);
            return all.next().filter(|_| all.next().is_none()).map(|seen| (seen, 0));
        };
        let covers = |seen: &&Seen| {
            seen.address <= address && address + size as u64 <= seen.address + u64::from(seen.size)
        };
        let seen = self.seen.iter().rev().find(covers)?;
        Some((seen, (address - seen.address) as u8))
    }

    /// Whether the instruction was seen to write there.
    fn written(&self, address: &Value, size: usize) -> bool {
        self.seen.iter().any(|seen| {
            seen.writes
                && usize::from(seen.size) == size
                && address.bits.is_none_or(|bits| bits == seen.address)
        })
    }

    fn load(&mut self, address: &Value, size: usize) -> Value {
        let width = u8::try_from(size * 8).unwrap_or(u8::MAX);
        if let Some((seen, from)) = self.found(address, size) {
            let value = seen.value.clone();
            return value.part(&mut self.guards, from * 8, width);
        }
        // It was not seen, or in parts: all that the instruction has read is in it.
        let parts: Vec<Value> = self.seen.iter().map(|seen| seen.value.clone()).collect();
        let parts: Vec<_> = parts.iter().map(Value::term).chain([address.term()]).collect();
        Value::opaque(&mut self.guards, width, None, &parts)
    }

    fn operand(&mut self, operand: &Operand) -> Value {
        match operand.space {
            Space::Constant => Value::constant(width(operand), operand.offset),
            Space::Register => self.registers.read(&mut self.guards, operand),
            Space::Temporary => self.temporaries.read(&mut self.guards, operand),
            Space::Memory => self.load(&Value::constant(64, operand.offset), operand.size),
            Space::Other => Value::unknown(width(operand)),
        }
    }

    fn input(&mut self, operation: &Operation, number: usize) -> Value {
        match operation.inputs.get(number).copied() {
            Some(operand) => self.operand(&operand),
            None => Value::unknown(64),
        }
    }

    fn execute(&mut self, instruction: &Lifted, operation: &Operation) -> Next {
        match operation.code {
            OpCode::Store => {
                // Where it was not seen, nobody knows where it went.
                let (address, value) = (self.input(operation, 1), self.input(operation, 2));
                let size = operation.inputs.get(2).map_or(0, |input| input.size);
                if !self.written(&address, size) {
                    self.guards.hold(&address);
                    self.guards.hold(&value);
                }
            }
            OpCode::Branch | OpCode::Call => {
                let to = operation.inputs.first();
                if let Some(to) = to.filter(|to| to.space == Space::Constant) {
                    return Next::Relative(to.offset as i64);
                }
                self.goes_to = to.map(|to| to.offset);
                return Next::End;
            }
            OpCode::BranchConditional => return self.branch(instruction, operation),
            OpCode::BranchIndirect | OpCode::CallIndirect | OpCode::Return => {
                let to = self.input(operation, 0);
                self.guards.hold(&to);
                self.goes_to = to.bits;
                return Next::End;
            }
            _ => {
                let result = self.result(operation);
                match operation.output {
                    Some(output) if output.space == Space::Register => {
                        self.registers.write(&mut self.guards, &output, result);
                    }
                    Some(output) if output.space == Space::Temporary => {
                        self.temporaries.write(&mut self.guards, &output, result);
                    }
                    Some(output) if output.space == Space::Memory => {
                        let address = Value::constant(64, output.offset);
                        if !self.written(&address, output.size) {
                            self.guards.hold(&result);
                        }
                    }
                    Some(_) => self.guards.hold(&result),
                    // What it does with them is not known.
                    None => {
                        for number in 0..operation.inputs.len() {
                            let value = self.input(operation, number);
                            self.guards.hold(&value);
                        }
                    }
                }
            }
        }
        Next::Following
    }

    /// A condition: of a jump, or of the rest of an instruction.
    fn branch(&mut self, instruction: &Lifted, operation: &Operation) -> Next {
        let condition = self.input(operation, 1);
        let Some(&to) = operation.inputs.first() else { return Next::End };
        let Some(taken) = condition.bits.map(|bits| bits != 0) else {
            // How it came out is not known: neither is what it does.
            self.guards.hold(&condition);
            self.hold_inputs(instruction);
            self.goes_to = None;
            return Next::End;
        };
        let skips = to.space == Space::Constant || to.offset == instruction.end;
        if skips {
            self.guards.hold(&condition);
        } else if let Some((before, _)) = self.branch.replace((condition, taken)) {
            self.guards.hold(&before);
        }
        match (taken, to.space) {
            (false, _) if skips => Next::Following,
            (false, _) => {
                self.goes_to = Some(instruction.end);
                Next::Following
            }
            (true, Space::Constant) => Next::Relative(to.offset as i64),
            (true, _) => {
                self.goes_to = Some(to.offset);
                Next::End
            }
        }
    }

    /// What the operation computes.
    fn result(&mut self, operation: &Operation) -> Value {
        let output = operation.output.map_or(64, |output| width(&output));
        let wide = |operand: &Operand| operand.size > 8;
        if operation.output.as_ref().is_some_and(wide) || operation.inputs.iter().any(wide) {
            return self.not_followed(operation, output);
        }
        let left = self.input(operation, usize::from(operation.code == OpCode::Load));
        let guards = &mut self.guards;
        match operation.code {
            OpCode::Copy => left,
            OpCode::Load => self.load(&left, usize::from(output / 8)),
            OpCode::Int(IntOp::Extension(sign)) => {
                let extends = sign == IntSign::Signed;
                let op = if extends { CastOp::SignExtend } else { CastOp::ZeroExtend };
                left.cast(guards, op, output)
            }
            OpCode::Int(IntOp::Negate) => {
                let zero = Value::constant(output, 0);
                Value::binary(guards, BinaryOp::Sub, &zero, &left)
            }
            OpCode::Int(IntOp::Bitwise(BoolOp::Negate)) => {
                Value::binary(guards, BinaryOp::Xor, &left, &Value::constant(output, u64::MAX))
            }
            OpCode::Bool(BoolOp::Negate) => {
                Value::binary(guards, BinaryOp::Xor, &left, &Value::constant(output, 1))
            }
            OpCode::Subpiece => {
                let from = operation.inputs.get(1).map_or(0, |input| input.offset);
                match u8::try_from(from * 8).ok().filter(|low| low + output <= left.width) {
                    Some(low) => left.part(guards, low, output),
                    None => self.not_followed(operation, output),
                }
            }
            OpCode::Piece => {
                let low = self.input(operation, 1);
                let guards = &mut self.guards;
                let wide = low.cast(guards, CastOp::ZeroExtend, output);
                wide.with_part(guards, low.width, &left)
            }
            OpCode::Int(_) | OpCode::Bool(_) => {
                let right = self.input(operation, 1);
                self.of_two(operation, &left, &right, output)
            }
            OpCode::Popcount => {
                let bits = left.bits.map(|bits| u64::from(bits.count_ones()));
                Value::opaque(guards, output, bits, &[left.term()])
            }
            OpCode::LzCount => {
                let unused = 64 - u64::from(left.width);
                let bits = left.bits.map(|bits| u64::from(bits.leading_zeros()) - unused);
                Value::opaque(guards, output, bits, &[left.term()])
            }
            _ => self.not_followed(operation, output),
        }
    }

    /// What depends on all inputs in a way that is not followed.
    fn not_followed(&mut self, operation: &Operation, output: u8) -> Value {
        let from = usize::from(operation.code == OpCode::Load);
        let inputs: Vec<Value> =
            (from..operation.inputs.len()).map(|number| self.input(operation, number)).collect();
        let mut parts: Vec<_> = inputs.iter().map(Value::term).collect();
        let seen: Vec<Value> = match operation.code {
            OpCode::Load => self.seen.iter().map(|seen| seen.value.clone()).collect(),
            _ => Vec::new(),
        };
        parts.extend(seen.iter().map(Value::term));
        Value::opaque(&mut self.guards, output, None, &parts)
    }

    fn of_two(&mut self, operation: &Operation, left: &Value, right: &Value, output: u8) -> Value {
        use BinaryOp as B;
        let shifts = matches!(operation.code, OpCode::Int(IntOp::ShiftLeft | IntOp::ShiftRight(_)));
        let guards = &mut self.guards;
        let amount;
        let mut right = right;
        if shifts && right.width != left.width {
            // A constant by which nothing is left is one that has room.
            amount = match right.bits.filter(|_| right.term().is_none()) {
                Some(bits) => Value::constant(left.width, bits.min(left.width.into())),
                None if right.width < left.width => {
                    right.cast(guards, CastOp::ZeroExtend, left.width)
                }
                None => return self.not_followed(operation, output),
            };
            right = &amount;
        }
        if right.width != left.width {
            return self.not_followed(operation, output);
        }
        let op = match operation.code {
            OpCode::Int(IntOp::Add) => B::Add,
            OpCode::Int(IntOp::Subtract) => B::Sub,
            OpCode::Int(IntOp::Multiply) => B::Mul,
            OpCode::Int(IntOp::Divide(IntSign::Unsigned)) => B::UDiv,
            OpCode::Int(IntOp::Divide(IntSign::Signed)) => B::SDiv,
            OpCode::Int(IntOp::Remainder(IntSign::Unsigned)) => B::URem,
            OpCode::Int(IntOp::Remainder(IntSign::Signed)) => B::SRem,
            OpCode::Int(IntOp::Bitwise(BoolOp::And)) | OpCode::Bool(BoolOp::And) => B::And,
            OpCode::Int(IntOp::Bitwise(BoolOp::Or)) | OpCode::Bool(BoolOp::Or) => B::Or,
            OpCode::Int(IntOp::Bitwise(BoolOp::Xor)) | OpCode::Bool(BoolOp::Xor) => B::Xor,
            OpCode::Int(IntOp::ShiftLeft) => B::Shl,
            OpCode::Int(IntOp::ShiftRight(IntSign::Unsigned)) => B::LShr,
            OpCode::Int(IntOp::ShiftRight(IntSign::Signed)) => B::AShr,
            OpCode::Int(IntOp::Equal) => B::Eq,
            OpCode::Int(IntOp::NotEqual) => B::Ne,
            OpCode::Int(IntOp::LessThan(IntSign::Unsigned)) => B::Ult,
            OpCode::Int(IntOp::LessThan(IntSign::Signed)) => B::Slt,
            OpCode::Int(IntOp::LessThanOrEqual(IntSign::Unsigned)) => B::Ule,
            OpCode::Int(IntOp::LessThanOrEqual(IntSign::Signed)) => B::Sle,
            OpCode::Int(IntOp::Carry(IntSign::Unsigned)) => {
                let sum = Value::binary(guards, B::Add, left, right);
                let carries = Value::binary(guards, B::Ult, &sum, left);
                return carries.cast(guards, CastOp::ZeroExtend, output);
            }
            OpCode::Int(IntOp::Carry(IntSign::Signed) | IntOp::Borrow) => {
                let borrows = operation.code == OpCode::Int(IntOp::Borrow);
                let op = if borrows { B::Sub } else { B::Add };
                let sum = Value::binary(guards, op, left, right);
                // The sign of the result is wrong.
                let mut signs = Value::binary(guards, B::Xor, left, right);
                if !borrows {
                    let ones = Value::constant(left.width, u64::MAX);
                    signs = Value::binary(guards, B::Xor, &signs, &ones);
                }
                let changed = Value::binary(guards, B::Xor, left, &sum);
                let both = Value::binary(guards, B::And, &signs, &changed);
                let zero = Value::constant(left.width, 0);
                let over = Value::binary(guards, B::Slt, &both, &zero);
                return over.cast(guards, CastOp::ZeroExtend, output);
            }
            _ => return self.not_followed(operation, output),
        };
        let result = Value::binary(guards, op, left, right);
        match result.width == output {
            true => result,
            false => result.cast(guards, CastOp::ZeroExtend, output),
        }
    }
}
