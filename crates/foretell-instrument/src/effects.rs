//! Calls of functions of the C library: what they do to the program's memory, and what they keep between their
//! calls. They are not instrumented, so the runtime is told of the calls.

use crate::function::FunctionContext;
use crate::library::state_of;
use crate::llvm::{TypeKind, Value};
use crate::module::Mode;
use foretell_abi::summaries::{IS_OVER, IS_SYMBOLIC, SUMMARIES, TOLD};

impl FunctionContext<'_> {
    /// Tells at the builder's place of a call of a function that has this summary, before it or after.
    pub(crate) fn tell_summary(&mut self, call: Value, number: usize, is_over: bool, site: Value) {
        let effects = SUMMARIES[number].effects.iter();
        let any = match is_over {
            true => effects.clone().any(|effect| !effect.is_before()),
            false => effects.clone().any(|effect| effect.is_any_before()),
        };
        if !any {
            return;
        }
        let constants = self.module.module;
        let (builder, zero) = (&self.module.builder, constants.constant64(0));
        let told = |value: Value| match value.ty().kind() {
            TypeKind::LLVMPointerTypeKind => builder.widen(value),
            TypeKind::LLVMIntegerTypeKind => builder.integer_cast(value, constants.int64, true),
            _ => zero,
        };
        let mut flags = if is_over { IS_OVER } else { 0 };
        if self.module.mode == Mode::Symbolic {
            flags |= IS_SYMBOLIC;
        }
        let mut arguments = vec![constants.constant32(number as u32), constants.constant32(flags)];
        let count = call.argument_count();
        arguments.extend((0..TOLD as u32).map(|position| match position < count {
            true => told(call.operand(position)),
            false => zero,
        }));
        arguments.push(if is_over { told(call) } else { zero });
        arguments.push(site);
        self.module.hook("library", constants.void, &arguments);
    }

    /// Reports, before the call, what the function keeps between its calls.
    pub(crate) fn library_state(&mut self, call: Value, name: &str) {
        let Some((state, position, effect)) = state_of(name) else { return };
        let stream = match state.is_empty() {
            true if position < call.argument_count() => call.operand(position),
            true => return, // declared by the program in its own way
            false => self.module.module.null(),
        };
        if stream.ty().kind() != TypeKind::LLVMPointerTypeKind {
            return;
        }
        let (site, state) = (self.site(call), self.module.string(state));
        self.module.builder.place_before(call);
        let constants = &self.module.module;
        let arguments = [stream, state, constants.constant32(effect), site];
        self.module.hook("state", constants.void, &arguments);
    }
}
