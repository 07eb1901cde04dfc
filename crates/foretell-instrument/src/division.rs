//! Integer divisions that trap (SIGFPE). Nothing in the program branches on it, so the recording needs a branch
//! for the exploration to ask whether the division can trap in another interleaving. (`control.rs` asks in the same
//! way whether `main` returns 0.)

use crate::expression::Operand;
use crate::function::FunctionContext;
use crate::llvm::{Opcode, Value};
use crate::module::Recurring;
use foretell_abi::{BinaryOp, Hook};

impl FunctionContext<'_> {
    /// A division by zero traps, and so does one of the least number by -1. That it does not is a branch that
    /// nobody wrote.
    pub(crate) fn division(&mut self, instruction: Value) {
        use Opcode::*;
        let opcode = instruction.opcode();
        let is_signed = matches!(opcode, LLVMSDiv | LLVMSRem);
        let (left, right) = (instruction.operand(0), instruction.operand(1));
        let Some(width) = right.ty().scalar_width() else { return };
        if !is_signed && !matches!(opcode, LLVMUDiv | LLVMURem) {
            return;
        }
        self.module.builder.place_before(instruction);
        let [by_zero, least, by_minus_one] =
            [(right, 0), (left, 1 << (width - 1)), (right, u64::MAX >> (64 - width))]
                .map(|(value, bad)| self.differs(value, width, bad, instruction));
        self.unwritten_branch(by_zero, instruction);
        let is_known = |value: Value, bad: i64| {
            value.constant_integer().is_some_and(|constant| constant != bad)
        };
        if is_signed && !is_known(right, -1) && !is_known(left, i64::MIN >> (64 - width)) {
            let shadow = self.guarded(&[least.0, by_minus_one.0], instruction, |me| {
                me.define_binary(BinaryOp::Or, 1, least, by_minus_one)
            });
            let holds = self.module.builder.or(least.1, by_minus_one.1);
            self.unwritten_branch((shadow, holds), instruction);
        }
    }

    /// Whether the value differs from a constant.
    pub(crate) fn differs(
        &mut self,
        value: Value,
        width: u32,
        constant: u64,
        before: Value,
    ) -> Operand {
        let operand = self.operand(value);
        let constant = self.constant_operand(constant);
        let shadow = self.guarded(&[operand.0], before, |me| {
            me.define_binary(BinaryOp::Ne, width, operand, constant)
        });
        let holds = self.module.builder.differ(operand.1, constant.1);
        (shadow, self.module.builder.widen(holds))
    }

    /// Reports a branch by a condition before an instruction.
    pub(crate) fn unwritten_branch(&mut self, (shadow, holds): Operand, instruction: Value) {
        if shadow == self.concrete() {
            return;
        }
        let site = self.site(instruction);
        let taken = self.module.met(site, Recurring::Branch(true));
        let not_taken = self.module.met(site, Recurring::Branch(false));
        self.if_symbolic(&[shadow], instruction, |me| {
            let int32 = me.module.module.int32;
            let builder = &me.module.builder;
            let met = builder.select(
                builder.differ(holds, me.module.module.constant64(0)),
                taken,
                not_taken,
            );
            let outcome = builder.integer_cast(holds, int32, false);
            me.module.hook(Hook::Branch, &[shadow, outcome, site, met]);
        });
    }
}
