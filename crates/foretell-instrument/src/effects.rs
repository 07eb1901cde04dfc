//! Calls of functions of the C library: what they do to the program's memory, and what they keep between their
//! calls. They are not instrumented, so the runtime is told of the calls.

use crate::call::leads_to_memory;
use crate::function::FunctionContext;
use crate::library::{is_output_only, is_stream_output, state_of};
use crate::llvm::{TypeKind, Value};
use crate::module::Mode;
use foretell_abi::summaries::{IS_OVER, IS_SYMBOLIC, IS_USED, NO_SUMMARY, SUMMARIES, TOLD};
use foretell_abi::{FORMATS, Hook, VARIES};

impl FunctionContext<'_> {
    /// Tells at the builder's place of a call of a function that has this summary, before it or after.
    pub(crate) fn tell_summary(&mut self, call: Value, number: usize, is_over: bool, site: Value) {
        let effects = SUMMARIES[number].effects.iter();
        let any = match is_over {
            true => effects.clone().any(|effect| !effect.is_before()),
            false => effects.clone().any(|effect| effect.is_any_before()),
        };
        if any {
            let number = self.module.module.constant32(number as u32);
            self.tell_library(call, number, is_over, site);
        }
    }

    /// As [`Self::tell_summary`], of a call by a pointer: if the function has a summary, which the program finds
    /// out.
    pub(crate) fn tell_summary_if_any(
        &mut self,
        call: Value,
        number: Value,
        place: Value,
        site: Value,
    ) {
        let none = self.module.module.constant32(NO_SUMMARY);
        let builder = &self.module.builder;
        builder.place_before(place);
        let any = builder.differ(number, none);
        builder.place_in_if(any, place, true);
        self.tell_library(call, number, place != call, site);
        self.module.builder.place_before(place);
    }

    fn tell_library(&mut self, call: Value, number: Value, is_over: bool, site: Value) {
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
        if call.is_used() {
            flags |= IS_USED;
        }
        let mut arguments = vec![number, constants.constant32(flags)];
        let count = call.argument_count();
        arguments.extend((0..TOLD as u32).map(|position| match position < count {
            true => told(call.operand(position)),
            false => zero,
        }));
        arguments.push(if is_over { told(call) } else { zero });
        arguments.push(site);
        self.module.hook(Hook::Library, &arguments);
    }

    /// Reports, before the call, what the function keeps between its calls.
    pub(crate) fn library_state(&mut self, call: Value, name: &str) {
        if is_stream_output(name) && !is_output_only(call) {
            return self.tell_state(call, call.operand(0), "", FORMATS);
        }
        let Some((state, position, effect)) = state_of(name) else { return };
        let stream = match state.is_empty() {
            true if position < call.argument_count() => call.operand(position),
            true => return, // declared by the program in its own way
            false => self.module.module.null(),
        };
        if stream.ty().kind() != TypeKind::LLVMPointerTypeKind {
            return;
        }
        let varies = (0..call.argument_count()).filter(|&given| given != position).any(|given| {
            let argument = call.operand(given);
            self.has_shadow(argument) || leads_to_memory(argument)
        });
        let effect = if varies { effect | VARIES } else { effect };
        self.tell_state(call, stream, state, effect);
    }

    fn tell_state(&mut self, call: Value, stream: Value, state: &str, effect: u32) {
        let (site, state) = (self.site(call), self.module.string(state));
        self.module.builder.place_before(call);
        let constants = &self.module.module;
        let arguments = [stream, state, constants.constant32(effect), site];
        self.module.hook(Hook::State, &arguments);
    }
}
