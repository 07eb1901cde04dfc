//! Branches, assertions, and the ways out of a function.

use crate::append::Event;
use crate::function::FunctionContext;
use crate::library;
use crate::llvm::{Block, Opcode, Value};
use crate::module::{Mode, Recurring};
use foretell_abi::{CallSlots, Hook, PinReason, RESULT_SLOTS};
use std::mem::offset_of;

/// How many jumps may lie between a branch and the failure it leads to.
const FAILURE_DISTANCE: usize = 4;

/// The call by which the block inevitably ends the program: a failed assertion, `abort` or a trap.
fn failure(block: Block) -> Option<Value> {
    let mut block = block;
    for _ in 0..FAILURE_DISTANCE {
        let failure = block.instructions().into_iter().find(|instruction| {
            matches!(instruction.opcode(), Opcode::LLVMCall | Opcode::LLVMInvoke)
                && instruction
                    .callee()
                    .as_function()
                    .is_some_and(|callee| library::is_failing(&callee.name()))
        });
        if failure.is_some() {
            return failure;
        }
        match block.successors().as_slice() {
            [only] => block = *only,
            _ => return None,
        }
    }
    None
}

/// Where the assertion stands whose failure the branch leads to: at the branch, unless the optimiser
/// has made it of the conditions of several statements.
fn place_of_assertion(branch: Value, failure: Value) -> Value {
    let (written, decided) = (failure.location().line, branch.location().line);
    let named = failure.callee().as_function();
    let is_assertion = named.is_some_and(|callee| library::is_assertion(&callee.name()));
    if is_assertion && written != 0 && written != decided { failure } else { branch }
}

impl FunctionContext<'_> {
    /// Does something where execution paths are recorded.
    fn if_path(&mut self, before: Value, report: impl FnOnce(&mut Self)) {
        let wanted = self.slot(offset_of!(CallSlots, path));
        let builder = &self.module.builder;
        let wanted = builder.load(self.module.module.int32, wanted);
        let condition = builder.differ(wanted, self.module.module.constant32(0));
        builder.place_in_if(condition, before, true);
        report(self);
        self.module.builder.place_before(before);
    }

    pub(crate) fn branch(&mut self, branch: Value) {
        if !branch.is_conditional() {
            return;
        }
        let condition = branch.condition();
        let shadow = self.shadow(condition);
        let failures = match branch.successors().as_slice() {
            [when_true, when_false] => [failure(*when_true), failure(*when_false)],
            _ => return,
        };
        let [when_true, when_false] = failures.map(|failure| failure.is_some());
        let int32 = self.module.module.int32;
        let site = self.site(branch);
        self.module.builder.place_before(branch);
        let outcome = self.module.builder.integer_cast(condition, int32, false);
        let goes_round = self.awaits.goes_round(branch).filter(|_| when_true == when_false);
        let index = goes_round.map(|_| self.index());
        self.if_path(branch, |me| {
            me.module.hook(Hook::Path, &[outcome, site]);
        });
        if when_true != when_false {
            let wanted = self.module.module.constant32(u32::from(when_false));
            let [one, other] = failures;
            let site = match one.or(other) {
                Some(failure) => self.site(place_of_assertion(branch, failure)),
                None => site,
            };
            self.module.hook(Hook::Assert, &[shadow, outcome, wanted, site]);
        } else if self.has_shadow(condition) {
            let taken = self.module.met(site, Recurring::Branch(true));
            let not_taken = self.module.met(site, Recurring::Branch(false));
            self.if_symbolic(&[shadow], branch, |me| {
                let Some(end) = me.module.builder.terminator() else { return };
                let builder = &me.module.builder;
                let met = builder.select(condition, taken, not_taken);
                let event = Event {
                    met,
                    address: me.module.module.constant64(0),
                    bits: builder.integer_cast(shadow, me.module.module.int64, false),
                    narrow: true,
                    more: None,
                };
                me.append(&event, end, |me, met| {
                    me.module.hook(Hook::Branch, &[shadow, outcome, site, met]);
                    me.concrete()
                });
            });
            if let (Some(goes_round), Some(index)) = (goes_round, index) {
                let again = self.module.module.constant32(u32::from(goes_round));
                let leaves = self.module.builder.differ(outcome, again);
                let leaves = self.module.builder.integer_cast(leaves, int32, false);
                self.module.hook(Hook::AwaitTest, &[index, leaves, site]);
            }
        }
    }

    pub(crate) fn switch(&mut self, switch: Value) {
        let value = switch.operand(0);
        let Some(width) = value.ty().scalar_width() else { return };
        let site = self.site(switch);
        let constants = self.module.module;
        let cases: Vec<Value> =
            switch.switch_cases().into_iter().map(|case| constants.constant64(case)).collect();
        let array = constants.constant_array(constants.int64, &cases);
        let table = constants.add_constant(array, "foretell.cases");
        let shadow = self.shadow(value);
        self.module.builder.place_before(switch);
        let bits = self.module.builder.widen(value);
        let count = constants.constant64(cases.len() as u64);
        self.if_path(switch, |me| {
            me.module.hook(Hook::PathSwitch, &[bits, table, count, site]);
        });
        if !self.has_shadow(value) {
            return;
        }
        self.if_symbolic(&[shadow], switch, |me| {
            let arguments = [shadow, constants.constant32(width), bits, table, count, site];
            me.module.hook(Hook::Switch, &arguments);
        });
    }

    /// A return: leaves the result's shadows for the caller.
    pub(crate) fn leave(&mut self, leave: Value) {
        let tail_call = leave
            .block()
            .instructions()
            .into_iter()
            .any(|i| i.opcode() == Opcode::LLVMCall && i.is_must_tail());
        if tail_call {
            return; // the call has reported the exit; nothing may stand between it and the return
        }
        self.module.builder.place_before(leave);
        if leave.operand_count() == 1 && self.module.mode == Mode::Symbolic {
            if self.function.name() == "main"
                && let Some(width) = leave.operand(0).ty().scalar_width()
            {
                // Whether the program succeeds is what others go by.
                let fails = self.differs(leave.operand(0), width, 0, leave);
                self.unwritten_branch(fails, leave);
            }
            self.leave_result(leave, leave.operand(0));
        }
        self.go_back(leave);
        self.exit();
    }

    /// Code that is not instrumented and called this function back goes by its result: that had to be what it
    /// was. And it may call back again. That something called back it took does not make it instrumented.
    fn go_back(&mut self, leave: Value) {
        let Some(caller) = self.called_back_by else { return };
        let site = self.site(leave);
        let builder = &self.module.builder;
        builder.place_before(leave);
        let called_back = builder.differ(caller, self.module.module.constant64(0));
        let end = builder.place_in_if(called_back, leave, true);
        builder.store(caller, self.slot(offset_of!(CallSlots, outside)));
        builder.store(caller, self.slot(offset_of!(CallSlots, callee)));
        if leave.operand_count() == 1 {
            let result = leave.operand(0);
            match result.ty().scalar_width() {
                Some(_) if self.has_shadow(result) => {
                    self.pin(result, PinReason::External, site, end);
                }
                Some(_) => {}
                None => self.pin_parts(leave, PinReason::External, end),
            }
        }
        self.module.builder.place_before(leave);
    }

    fn leave_result(&mut self, leave: Value, value: Value) {
        let shadows = if value.ty().scalar_width().is_some() {
            vec![self.shadow(value)]
        } else if value.ty().flat_members(RESULT_SLOTS).is_some() {
            let members = value.ty().flat_members(RESULT_SLOTS).map_or(0, |m| m.len());
            self.parts(value).cloned().unwrap_or_else(|| vec![self.concrete(); members])
        } else {
            self.pin_parts(leave, PinReason::Wide, leave);
            return;
        };
        self.module.builder.place_before(leave);
        let concrete = self.concrete();
        let builder = &self.module.builder;
        let tag = if shadows.iter().all(|shadow| *shadow == concrete) {
            self.module.module.constant64(0)
        } else {
            for (position, shadow) in shadows.iter().enumerate() {
                let slot = self.slot(offset_of!(CallSlots, results) + 4 * position);
                builder.store(*shadow, slot);
            }
            builder.widen(self.function)
        };
        builder.store(tag, self.slot(offset_of!(CallSlots, returned_by)));
    }

    /// Reports at the builder's place that the function is left.
    pub(crate) fn exit(&self) {
        self.module.hook(Hook::Exit, &[self.frame]);
    }

    /// Reports at the builder's place that inner calls are over.
    pub(crate) fn unwind(&self) {
        self.module.hook(Hook::Unwind, &[self.frame]);
    }

    /// An exception leaves the function.
    pub(crate) fn pass_on_exception(&mut self, resume: Value) {
        self.module.builder.place_before(resume);
        self.exit();
    }

    /// An exception arrived.
    pub(crate) fn landing_pad(&mut self, pad: Value) {
        if let Some(place) = pad.block().first_insertion_point() {
            self.module.builder.place_before(place);
            self.unwind();
        }
    }
}
