//! What functions of the C library read and write in the program's memory. They are not
//! instrumented, so their accesses are reported at the call. Reads are pinned: the result of
//! `strcmp` is concrete, so the strings must have been what they were.
//!
//! Covered are those whose extent can be told from arguments and result. `read` and its kin are the
//! runtime's own wrappers and report themselves.

use crate::function::FunctionContext;
use crate::library::{START_THREAD, state_of};
use crate::llvm::{Predicate, TypeKind, Value};
use crate::module::Mode;
use foretell_abi::COPY_SYMBOLIC;

impl FunctionContext<'_> {
    /// Reports the accesses of a call, made as the library declares the function, at the builder's
    /// place, which is before `place`.
    pub(crate) fn library_effects(&mut self, call: Value, name: &str, place: Value, site: Value) {
        let argument = |position: u32| call.operand(position);
        let int64 = self.module.module.int64;
        let one = self.module.module.constant64(1);
        match name {
            "memcmp" | "bcmp" => {
                let size = self.module.builder.integer_cast(argument(2), int64, false);
                self.range_of("read_range", argument(0), size, site, true);
                self.range_of("read_range", argument(1), size, site, true);
            }
            "strlen" => {
                let length = self.module.builder.integer_cast(call, int64, false);
                let size = self.module.builder.add(length, one);
                self.range_of("read_range", argument(0), size, site, true);
            }
            "strcmp" => {
                // Perhaps less was read, but no more than the shorter string with its end.
                let (left, right) = (self.length(argument(0)), self.length(argument(1)));
                let builder = &self.module.builder;
                let shorter = builder.compare(Predicate::LLVMIntULT, left, right);
                let size = builder.add(builder.select(shorter, left, right), one);
                self.range_of("read_range", argument(0), size, site, true);
                self.range_of("read_range", argument(1), size, site, true);
            }
            "strcpy" => {
                let length = self.length(argument(0));
                let size = self.module.builder.add(length, one);
                let symbolic = self.module.mode == Mode::Symbolic;
                let flags = if symbolic { COPY_SYMBOLIC } else { 0 };
                let flags = self.module.module.constant32(flags);
                let arguments = [argument(0), argument(1), size, flags, site];
                self.module.hook("memcpy", self.module.module.void, &arguments);
            }
            "fread" => {
                let builder = &self.module.builder;
                let count = builder.integer_cast(call, int64, false);
                let each = builder.integer_cast(argument(1), int64, false);
                let size = builder.mul(count, each);
                let any = builder.differ(size, self.module.module.constant64(0));
                builder.place_in_if(any, place, false);
                self.range_of("write_range", argument(0), size, site, false);
                self.module.builder.place_before(place);
            }
            // The thread's state is taken out of its `unique_ptr`; a joined or detached thread's
            // handle becomes zero.
            START_THREAD => {
                let size = self.module.module.constant64(8);
                self.range_of("write_range", argument(1), size, site, false);
            }
            "_ZNSt6thread4joinEv" | "_ZNSt6thread6detachEv" => {
                let size = self.module.module.constant64(8);
                self.range_of("write_range", argument(0), size, site, false);
            }
            _ => {}
        }
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

    fn length(&self, string: Value) -> Value {
        let constants = &self.module.module;
        let strlen = constants.function("strlen", constants.int64, &[constants.pointer]);
        self.module.builder.call(strlen, &[string])
    }
}
