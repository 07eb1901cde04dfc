//! Shadows of computed values: arithmetic, comparisons, casts, selections, addresses, and the
//! intrinsics that have an equivalent. Operations without one pin their operands.

use crate::function::FunctionContext;
use crate::llvm::{Opcode, Predicate, Type, TypeKind, Value};
use foretell_abi::{BinaryOp, CastOp, Hook, PinReason, record};

/// A shadow and the value it stands for, widened to 64 bits.
pub type Operand = (Value, Value);

fn binary_operator(opcode: Opcode) -> Option<BinaryOp> {
    use Opcode::*;
    Some(match opcode {
        LLVMAdd => BinaryOp::Add,
        LLVMSub => BinaryOp::Sub,
        LLVMMul => BinaryOp::Mul,
        LLVMUDiv => BinaryOp::UDiv,
        LLVMSDiv => BinaryOp::SDiv,
        LLVMURem => BinaryOp::URem,
        LLVMSRem => BinaryOp::SRem,
        LLVMAnd => BinaryOp::And,
        LLVMOr => BinaryOp::Or,
        LLVMXor => BinaryOp::Xor,
        LLVMShl => BinaryOp::Shl,
        LLVMLShr => BinaryOp::LShr,
        LLVMAShr => BinaryOp::AShr,
        _ => return None,
    })
}

fn comparison(predicate: Predicate) -> BinaryOp {
    use Predicate::*;
    match predicate {
        LLVMIntEQ => BinaryOp::Eq,
        LLVMIntNE => BinaryOp::Ne,
        LLVMIntUGT => BinaryOp::Ugt,
        LLVMIntUGE => BinaryOp::Uge,
        LLVMIntULT => BinaryOp::Ult,
        LLVMIntULE => BinaryOp::Ule,
        LLVMIntSGT => BinaryOp::Sgt,
        LLVMIntSGE => BinaryOp::Sge,
        LLVMIntSLT => BinaryOp::Slt,
        LLVMIntSLE => BinaryOp::Sle,
    }
}

/// Which of two values a minimum or maximum gives: the left one if this comparison holds.
fn choice(intrinsic: &str) -> Option<Predicate> {
    match intrinsic.split('.').next()? {
        "umin" => Some(Predicate::LLVMIntULT),
        "umax" => Some(Predicate::LLVMIntUGT),
        "smin" => Some(Predicate::LLVMIntSLT),
        "smax" => Some(Predicate::LLVMIntSGT),
        _ => None,
    }
}

impl FunctionContext<'_> {
    /// Calls the builder of binary expressions.
    pub(crate) fn binary_hook(
        &self,
        op: BinaryOp,
        width: u32,
        left: Operand,
        right: Operand,
    ) -> Value {
        let constants = &self.module.module;
        let arguments = [
            constants.constant32(op as u32),
            constants.constant32(width),
            left.0,
            left.1,
            right.0,
            right.1,
        ];
        self.module.hook(Hook::ExprBinary, &arguments)
    }

    /// Calls the builder of conversions.
    pub(crate) fn cast_hook(&self, op: CastOp, from: u32, to: u32, shadow: Value) -> Value {
        let constants = &self.module.module;
        let arguments = [
            constants.constant32(op as u32),
            constants.constant32(from),
            constants.constant32(to),
            shadow,
        ];
        self.module.hook(Hook::ExprCast, &arguments)
    }

    /// Calls the builder of if-then-else; `condition` is an `i1`.
    fn select_hook(
        &self,
        width: u32,
        condition: (Value, Value),
        then: Operand,
        otherwise: Operand,
    ) -> Value {
        let constants = &self.module.module;
        let outcome = self.module.builder.integer_cast(condition.1, constants.int32, false);
        let arguments = [
            constants.constant32(width),
            condition.0,
            outcome,
            then.0,
            then.1,
            otherwise.0,
            otherwise.1,
        ];
        self.module.hook(Hook::ExprSelect, &arguments)
    }

    /// Defines an if-then-else of which at least one part has a shadow; `condition` is an `i1`.
    fn define_select(
        &mut self,
        width: u32,
        condition: (Value, Value),
        then: Operand,
        otherwise: Operand,
    ) -> Value {
        let head = record::head(record::DEFINE_SELECT, 0, width, 0);
        let words = [
            self.module.module.constant64(head),
            self.pair(condition.0, then.0),
            self.pair(otherwise.0, condition.1),
            then.1,
            otherwise.1,
        ];
        self.define(&words, None, |me| me.select_hook(width, condition, then, otherwise))
    }

    pub(crate) fn operand(&self, value: Value) -> Operand {
        (self.shadow(value), self.module.builder.widen(value))
    }

    pub(crate) fn constant_operand(&self, value: u64) -> Operand {
        (self.concrete(), self.module.module.constant64(value))
    }

    /// Any instruction that neither accesses memory nor transfers control.
    pub(crate) fn expression(&mut self, instruction: Value) {
        use Opcode::*;
        let modelled = self.may.contains(instruction);
        if modelled && instruction.opcode() == LLVMGetElementPtr {
            return self.address(instruction);
        }
        let any = instruction
            .operands()
            .any(|operand| self.has_shadow(operand) || self.parts(operand).is_some());
        if !any {
            return;
        }
        match instruction.opcode() {
            opcode if modelled && binary_operator(opcode).is_some() => {
                self.division(instruction);
                self.binary(instruction, binary_operator(opcode));
            }
            LLVMICmp if modelled => {
                self.binary(instruction, Some(comparison(instruction.integer_predicate())));
            }
            LLVMZExt | LLVMSExt if modelled && self.is_part_of_addresses(instruction) => {}
            LLVMZExt if modelled => self.cast(instruction, CastOp::ZeroExtend),
            LLVMSExt if modelled => self.cast(instruction, CastOp::SignExtend),
            LLVMTrunc if modelled => self.cast(instruction, CastOp::Truncate),
            LLVMPtrToInt | LLVMIntToPtr | LLVMBitCast | LLVMFreeze if modelled => {
                self.reinterpret(instruction);
            }
            LLVMSelect if modelled => self.selection(instruction),
            LLVMExtractValue if modelled => {
                let index = instruction.indices()[0] as usize;
                let part =
                    self.parts(instruction.operand(0)).and_then(|parts| parts.get(index)).copied();
                if let Some(shadow) = part {
                    self.set_shadow(instruction, shadow);
                }
            }
            LLVMInsertValue if modelled => self.insertion(instruction),
            _ => self.pin_operands(instruction, instruction),
        }
    }

    fn binary(&mut self, instruction: Value, op: Option<BinaryOp>) {
        let (left, right) = (instruction.operand(0), instruction.operand(1));
        let (Some(op), Some(width)) = (op, left.ty().scalar_width()) else { return };
        let Some(next) = self.place_after(instruction) else { return };
        let shadows = [self.shadow(left), self.shadow(right)];
        let shadow = self.guarded(&shadows, next, |me| {
            me.define_binary(op, width, me.operand(left), me.operand(right))
        });
        self.set_shadow(instruction, shadow);
    }

    /// Defines a binary expression of which at least one operand has a shadow.
    pub(crate) fn define_binary(
        &mut self,
        op: BinaryOp,
        width: u32,
        left: Operand,
        right: Operand,
    ) -> Value {
        let builder = &self.module.builder;
        let constant = |value: u64| self.module.module.constant64(value);
        let concrete = self.concrete();
        let value = match (left.0 == concrete, right.0 == concrete) {
            (true, _) => left.1,
            (_, true) => right.1,
            _ => builder.select(builder.equal(left.0, concrete), left.1, right.1),
        };
        let head = record::head(record::DEFINE_BINARY, op as u32, width, 0);
        let words = [
            builder.or(constant(head), builder.shift_left(value, constant(24))),
            self.pair(left.0, right.0),
        ];
        let fits =
            (width > 32).then(|| builder.compare(Predicate::LLVMIntULT, value, constant(1 << 32)));
        self.define(&words, fits, |me| me.binary_hook(op, width, left, right))
    }

    fn cast(&mut self, instruction: Value, op: CastOp) {
        let operand = instruction.operand(0);
        let (Some(from), Some(to)) = (operand.ty().scalar_width(), instruction.ty().scalar_width())
        else {
            return;
        };
        let Some(next) = self.place_after(instruction) else { return };
        let inner = self.shadow(operand);
        let shadow = self.guarded(&[inner], next, |me| {
            let int64 = me.module.module.int64;
            let head = record::head(record::DEFINE_CAST, op as u32, from, to.into());
            let operand = me.module.builder.integer_cast(inner, int64, false);
            let words = [me.module.module.constant64(head), operand];
            me.define(&words, None, |me| me.cast_hook(op, from, to, inner))
        });
        self.set_shadow(instruction, shadow);
    }

    /// Casts that keep the bits, but that pointers have 64.
    fn reinterpret(&mut self, instruction: Value) {
        let operand = instruction.operand(0);
        match (operand.ty().scalar_width(), instruction.ty().scalar_width()) {
            (Some(from), Some(to)) if from == to => {
                let shadow = self.shadow(operand);
                self.set_shadow(instruction, shadow);
            }
            (Some(from), Some(to)) if from < to => self.cast(instruction, CastOp::ZeroExtend),
            (Some(_), Some(_)) => self.cast(instruction, CastOp::Truncate),
            _ => self.pin_operands(instruction, instruction),
        }
    }

    fn selection(&mut self, select: Value) {
        let (condition, then, otherwise) =
            (select.operand(0), select.operand(1), select.operand(2));
        let Some(width) = select.ty().scalar_width() else { return };
        let Some(next) = self.place_after(select) else { return };
        let shadows = [self.shadow(condition), self.shadow(then), self.shadow(otherwise)];
        let shadow = if self.has_shadow(condition) {
            self.guarded(&shadows, next, |me| {
                let outcome = (shadows[0], condition);
                me.define_select(width, outcome, me.operand(then), me.operand(otherwise))
            })
        } else {
            self.module.builder.select(condition, shadows[1], shadows[2])
        };
        self.set_shadow(select, shadow);
    }

    /// The only operand of a `getelementptr` that may have a shadow where it stands, and its
    /// stride, if that is an index which `expr_address` takes.
    fn only_index(&self, gep: Value) -> Option<(Value, u32)> {
        let at = self.may.flow().position(gep);
        let symbolic = |value: Value| self.may.contains(value) && !self.may.is_held(value, at);
        let mut indices = self.module.module.strides(gep);
        indices.retain(|(index, _)| symbolic(*index));
        match indices.as_slice() {
            &[(index, stride)] if !symbolic(gep.operand(0)) => {
                Some((index, u32::try_from(stride).ok()?))
            }
            _ => None,
        }
    }

    /// Whether an extension has a shadow only where it is the index of an address, which extends it
    /// itself.
    fn is_part_of_addresses(&self, extension: Value) -> bool {
        let is_index = |user: Value| {
            self.may.contains(user)
                && self.only_index(user).is_some_and(|(index, _)| index == extension)
        };
        extension.ty().scalar_width() == Some(64)
            && extension.users().into_iter().all(|user| match user.instruction_opcode() {
                Some(Opcode::LLVMGetElementPtr) if is_index(user) => true,
                // It flows into a phi elsewhere than where the phi stands.
                Some(Opcode::LLVMPHI) | None => false,
                Some(_) => self.may.is_held(extension, self.may.flow().position(user)),
            })
    }

    /// A pointer that depends on one index: one expression.
    fn indexed_address(&mut self, gep: Value, index: Value, stride: u32) {
        let Some(next) = self.place_after(gep) else { return };
        let (narrow, op) = match index.instruction_opcode() {
            Some(Opcode::LLVMZExt) => (index.operand(0), CastOp::ZeroExtend),
            Some(Opcode::LLVMSExt) => (index.operand(0), CastOp::SignExtend),
            _ => (index, CastOp::SignExtend),
        };
        let Some(width) = narrow.ty().scalar_width() else { return };
        let inner = self.shadow(narrow);
        let shadow = self.guarded(&[inner], next, |me| {
            let constants = &me.module.module;
            let builder = &me.module.builder;
            let value = builder.integer_cast(index, constants.int64, true);
            let offset = builder.mul(value, constants.constant64(stride.into()));
            let base = builder.sub(builder.widen(gep), offset);
            let arguments = [
                constants.constant32(op as u32),
                constants.constant32(width),
                inner,
                constants.constant32(stride),
                base,
            ];
            let head = record::head(record::DEFINE_ADDRESS, op as u32, width, stride.into());
            let operand = builder.integer_cast(inner, constants.int64, false);
            let words = [constants.constant64(head), operand, base];
            me.define(&words, None, |me| me.module.hook(Hook::ExprAddress, &arguments))
        });
        self.set_shadow(gep, shadow);
    }

    /// A pointer plus the offsets of its indices. Those without a shadow are taken together, as the
    /// difference of the result and the rest; `whole` says that there is none.
    fn address(&mut self, gep: Value) {
        if let Some((index, stride)) = self.only_index(gep) {
            return self.indexed_address(gep, index, stride);
        }
        let base = gep.operand(0);
        let mut indices = self.module.module.strides(gep);
        indices.retain(|(index, _)| self.has_shadow(*index));
        let whole = (1..gep.operand_count())
            .map(|position| gep.operand(position))
            .all(|index| self.has_shadow(index) || index.constant_integer() == Some(0));
        let Some(next) = self.place_after(gep) else { return };
        let mut shadows = vec![self.shadow(base)];
        shadows.extend(indices.iter().map(|(index, _)| self.shadow(*index)));
        let shadow = self.guarded(&shadows, next, |me| me.sum(gep, base, &indices, whole));
        self.set_shadow(gep, shadow);
    }

    fn sum(&self, gep: Value, base: Value, indices: &[(Value, u64)], whole: bool) -> Value {
        let builder = &self.module.builder;
        let int64 = self.module.module.int64;
        let mut total = self.operand(base);
        for (index, stride) in indices {
            let width = index.ty().scalar_width().unwrap_or(64);
            let value = builder.integer_cast(*index, int64, true);
            let mut shadow = self.shadow(*index);
            if width < 64 {
                shadow = self.cast_hook(CastOp::SignExtend, width, 64, shadow);
            }
            let mut offset = (shadow, value);
            if *stride != 1 {
                let scale = self.constant_operand(*stride);
                let scaled = self.binary_hook(BinaryOp::Mul, 64, offset, scale);
                offset = (scaled, builder.mul(value, scale.1));
            }
            let sum = builder.add(total.1, offset.1);
            total = (self.binary_hook(BinaryOp::Add, 64, total, offset), sum);
        }
        if whole {
            return total.0;
        }
        let rest = builder.sub(builder.widen(gep), total.1);
        self.binary_hook(BinaryOp::Add, 64, total, (self.concrete(), rest))
    }

    fn insertion(&mut self, insert: Value) {
        let (aggregate, member) = (insert.operand(0), insert.operand(1));
        let Some(members) = insert.ty().flat_members(foretell_abi::RESULT_SLOTS) else {
            return self.pin_operands(insert, insert);
        };
        let mut parts =
            self.parts(aggregate).cloned().unwrap_or_else(|| vec![self.concrete(); members.len()]);
        let index = insert.indices()[0] as usize;
        if let Some(part) = parts.get_mut(index) {
            *part = self.shadow(member);
        }
        self.set_parts(insert, parts);
    }

    /// An intrinsic that has an expression.
    pub(crate) fn intrinsic_expression(&mut self, call: Value, name: &str) {
        let (left, right) = (call.operand(0), call.operand(1));
        let Some(width) = left.ty().scalar_width() else {
            return self.pin_operands(call, call);
        };
        let Some(next) = self.place_after(call) else { return };
        let shadows = [self.shadow(left), self.shadow(right)];
        if let Some(predicate) = choice(name) {
            let shadow = self.guarded(&shadows, next, |me| {
                let (a, b) = (me.operand(left), me.operand(right));
                let outcome = me.module.builder.compare(predicate, left, right);
                let condition = me.binary_hook(comparison(predicate), width, a, b);
                me.select_hook(width, (condition, outcome), a, b)
            });
            self.set_shadow(call, shadow);
        } else if name.starts_with("abs.") {
            let shadow = self.guarded(&shadows[..1], next, |me| me.absolute(call, width));
            self.set_shadow(call, shadow);
        } else if name.starts_with("usub.sat.") {
            let shadow = self.guarded(&shadows, next, |me| {
                let (a, b) = (me.operand(left), me.operand(right));
                let zero = me.constant_operand(0);
                let predicate = Predicate::LLVMIntUGT;
                let outcome = me.module.builder.compare(predicate, left, right);
                let condition = me.binary_hook(BinaryOp::Ugt, width, a, b);
                let native = me.module.builder.sub(left, right);
                let difference = me.module.builder.widen(native);
                let difference = (me.binary_hook(BinaryOp::Sub, width, a, b), difference);
                me.select_hook(width, (condition, outcome), difference, zero)
            });
            self.set_shadow(call, shadow);
        } else if name.contains(".with.overflow.") {
            self.overflow(call, width, name, next);
        } else {
            self.funnel_shift(call, name, width, next);
        }
    }

    fn absolute(&self, call: Value, width: u32) -> Value {
        let value = call.operand(0);
        let zero_native = self.module.module.null_of(value.ty());
        let builder = &self.module.builder;
        let outcome = builder.compare(Predicate::LLVMIntSLT, value, zero_native);
        let negated = builder.widen(builder.sub(zero_native, value));
        let (operand, zero) = (self.operand(value), self.constant_operand(0));
        let condition = self.binary_hook(BinaryOp::Slt, width, operand, zero);
        let negation = self.binary_hook(BinaryOp::Sub, width, zero, operand);
        self.select_hook(width, (condition, outcome), (negation, negated), operand)
    }

    /// Addition, subtraction or multiplication, and whether the result fits.
    fn overflow(&mut self, call: Value, width: u32, name: &str, next: Value) {
        let (left, right) = (call.operand(0), call.operand(1));
        let shadows = [self.shadow(left), self.shadow(right)];
        let (signed, op) = match name.split('.').next() {
            Some("uadd") => (false, BinaryOp::Add),
            Some("usub") => (false, BinaryOp::Sub),
            Some("sadd") => (true, BinaryOp::Add),
            Some("ssub") => (true, BinaryOp::Sub),
            Some("umul") if width <= 32 => (false, BinaryOp::Mul),
            Some("smul") if width <= 32 => (true, BinaryOp::Mul),
            _ => return self.pin_operands(call, call),
        };
        let result = self.guarded(&shadows, next, |me| {
            me.binary_hook(op, width, me.operand(left), me.operand(right))
        });
        let overflows = self.guarded(&[shadows[0], shadows[1], result], next, |me| {
            let (a, b) = (me.operand(left), me.operand(right));
            let native = me.module.builder.extract(call, 0);
            let sum = (result, me.module.builder.widen(native));
            match (op, signed) {
                (BinaryOp::Mul, _) => {
                    let product = me.wide_product((left, right), signed, width);
                    let fits = me.extended(result, native, signed, width);
                    me.binary_hook(BinaryOp::Ne, 2 * width, product, fits)
                }
                (BinaryOp::Add, false) => me.binary_hook(BinaryOp::Ult, width, sum, a),
                (_, false) => me.binary_hook(BinaryOp::Ult, width, a, b),
                // The signs of the operands say which sign the result must have.
                (_, true) => {
                    let other = if op == BinaryOp::Add { (b, sum) } else { (a, b) };
                    let one = me.xor(width, a, sum);
                    let two = me.xor(width, other.0, other.1);
                    let bits = me.module.builder.and(one.1, two.1);
                    let both = (me.binary_hook(BinaryOp::And, width, one, two), bits);
                    me.binary_hook(BinaryOp::Slt, width, both, me.constant_operand(0))
                }
            }
        });
        self.set_parts(call, vec![result, overflows]);
    }

    fn xor(&self, width: u32, left: Operand, right: Operand) -> Operand {
        let bits = self.module.builder.xor(left.1, right.1);
        (self.binary_hook(BinaryOp::Xor, width, left, right), bits)
    }

    /// A value in twice its width.
    fn extended(&self, shadow: Value, value: Value, signed: bool, width: u32) -> Operand {
        let op = if signed { CastOp::SignExtend } else { CastOp::ZeroExtend };
        let wide = self.module.module.integer(2 * width);
        let builder = &self.module.builder;
        let bits = builder.widen(builder.integer_cast(value, wide, signed));
        (self.cast_hook(op, width, 2 * width, shadow), bits)
    }

    /// The product in twice the width, where it always fits.
    fn wide_product(&self, (left, right): (Value, Value), signed: bool, width: u32) -> Operand {
        let a = self.extended(self.shadow(left), left, signed, width);
        let b = self.extended(self.shadow(right), right, signed, width);
        let bits = self.module.builder.mul(a.1, b.1);
        (self.binary_hook(BinaryOp::Mul, 2 * width, a, b), bits)
    }

    /// Shifts of two joined words by a constant; rotations are the case of equal words.
    fn funnel_shift(&mut self, call: Value, name: &str, width: u32, next: Value) {
        let (high, low) = (call.operand(0), call.operand(1));
        let amount = call.operand(2).constant_unsigned().map(|k| k % u64::from(width));
        let Some(amount) = amount.filter(|k| *k != 0) else {
            return self.pin_operands(call, call);
        };
        let left = if name.starts_with("fshl") { amount } else { u64::from(width) - amount };
        let right = u64::from(width) - left;
        let shadows = [self.shadow(high), self.shadow(low)];
        let shadow = self.guarded(&shadows, next, |me| {
            let native = |k: u64| me.module.module.constant_of(high.ty(), k);
            let builder = &me.module.builder;
            let upper_bits = builder.widen(builder.shift_left(high, native(left)));
            let lower_bits = builder.widen(builder.shift_right(low, native(right)));
            let by_left = me.constant_operand(left);
            let by_right = me.constant_operand(right);
            let upper = me.binary_hook(BinaryOp::Shl, width, me.operand(high), by_left);
            let lower = me.binary_hook(BinaryOp::LShr, width, me.operand(low), by_right);
            me.binary_hook(BinaryOp::Or, width, (upper, upper_bits), (lower, lower_bits))
        });
        self.set_shadow(call, shadow);
    }

    /// The instruction has no expression: its operands must have been what they were. `place` is
    /// the instruction before which to say so.
    pub(crate) fn pin_operands(&mut self, instruction: Value, place: Value) {
        self.pin_parts(instruction, PinReason::Other, place);
        for operand in instruction.operands().collect::<Vec<_>>() {
            if self.has_shadow(operand) {
                let reason = reason(instruction, operand.ty());
                let site = self.site(instruction);
                self.module.builder.place_before(place);
                self.pin(operand, reason, site, place);
            }
        }
    }

    /// The same for the members of operands that are structs.
    pub(crate) fn pin_parts(&mut self, instruction: Value, reason: PinReason, place: Value) {
        for operand in instruction.operands().collect::<Vec<_>>() {
            self.pin_members(operand, instruction, reason, place);
        }
    }

    /// A phi of structs keeps no shadows: pins what flows into it where it comes from.
    pub(crate) fn pin_incoming(&mut self, phi: Value) {
        for (value, block) in phi.incoming() {
            if let Some(end) = block.terminator().filter(|end| *end != value) {
                self.pin_members(value, phi, PinReason::Wide, end);
            }
        }
    }

    fn pin_members(
        &mut self,
        aggregate: Value,
        instruction: Value,
        reason: PinReason,
        place: Value,
    ) {
        let Some(parts) = self.parts(aggregate).cloned() else { return };
        let site = self.site(instruction);
        self.module.builder.place_before(place);
        for (index, shadow) in (0u32..).zip(parts) {
            let member = self.module.builder.extract(aggregate, index);
            self.set_shadow(member, shadow);
            self.pin(member, reason, site, place);
        }
    }
}

fn reason(instruction: Value, operand: Type) -> PinReason {
    use TypeKind::*;
    if operand.is_float_like() || instruction.ty().is_float_like() {
        return PinReason::Float;
    }
    match instruction.ty().kind() {
        LLVMVectorTypeKind | LLVMScalableVectorTypeKind => PinReason::Wide,
        LLVMIntegerTypeKind if instruction.ty().integer_width() > 64 => PinReason::Wide,
        _ if instruction.opcode() == Opcode::LLVMAlloca => PinReason::Address,
        _ => PinReason::Other,
    }
}
