//! Calls: intrinsics, the region markers of `foretell.h`, and functions, to which shadows are handed
//! through the thread's slots (see `foretell-abi`, "Calls").

use crate::function::FunctionContext;
use crate::library;
use crate::llvm::{Description, Opcode, Value, demangle};
use crate::locals::is_pointer;
use crate::module::Mode;
use foretell_abi::{ARGUMENT_SLOTS, CallSlots, Hook, PinReason, RESULT_SLOTS};
use std::mem::offset_of;

/// A call, and no invoke, that hands over what the library's function expects.
fn is_library_call(call: Value, name: &str) -> bool {
    call.opcode() == Opcode::LLVMCall && library::is_called_as_declared(call, name)
}

/// Whether the argument points to memory that may change.
pub fn leads_to_memory(argument: Value) -> bool {
    is_pointer(argument)
        && !argument.is_null()
        && argument.as_function().is_none()
        && !argument.is_constant_global()
}

impl FunctionContext<'_> {
    pub(crate) fn call(&mut self, call: Value) {
        let callee = call.callee();
        if callee.is_inline_asm() {
            self.say_assembly(call, callee);
            return self.pin_arguments(call, 0, PinReason::External, call);
        }
        if let Some(name) = call.intrinsic() {
            return self.intrinsic(call, &name);
        }
        let name = callee.as_function().map(Value::name).unwrap_or_default();
        match name.as_str() {
            "__foretell_region_begin" => call.set_operand(1, self.site(call)),
            "__foretell_region_end" => call.set_operand(0, self.site(call)),
            _ if name.starts_with("__foretell_") => {}
            _ if library::is_named_copy(&name) && is_library_call(call, &name) => self.copy(call),
            _ if library::is_named_fill(&name) && is_library_call(call, &name) => self.fill(call),
            _ => self.function_call(call, callee),
        }
    }

    fn intrinsic(&mut self, call: Value, name: &str) {
        if library::is_ignored(name) || self.replace_varying(call, name) {
            return;
        }
        if name.starts_with("memcpy") || name.starts_with("memmove") {
            self.copy(call);
        } else if name.starts_with("memset") {
            self.fill(call);
        } else if library::is_identity(name) {
            let shadow = self.shadow(call.operand(0));
            self.set_shadow(call, shadow);
        } else if self.may.contains(call) && library::has_expression(name) {
            self.intrinsic_expression(call, name);
        } else {
            self.pin_operands(call, call);
        }
    }

    fn function_call(&mut self, call: Value, callee: Value) {
        let site = self.site(call);
        if let Some(function) = callee.as_function().filter(|callee| callee.is_declaration()) {
            let name = function.name();
            self.say_id(call, &name);
            self.library_state(call, &name);
        }
        self.module.builder.place_before(call);
        for argument in 0..call.argument_count() {
            let size = call.by_value_size(argument);
            if size != 0 {
                self.pin(call.operand(argument), PinReason::Address, site, call);
                let size = self.module.module.constant64(size);
                self.range_of(Hook::ReadRange, call.operand(argument), size, site, true);
            }
        }
        let declared = callee.as_function().filter(|function| function.is_declaration());
        let summary = declared.and_then(|function| library::summary_of(call, &function.name()));
        if summary.is_some() || library::is_foreign(callee) || library::reports(callee) {
            self.pin_pointers(call, site);
        }
        if let Some(number) = summary {
            self.module.builder.place_before(call);
            self.tell_summary(call, number, false, site);
        }
        let by_pointer = self.summary_by_pointer(call, callee, site);
        let place = match call.opcode() {
            Opcode::LLVMCall => call.next(),
            Opcode::LLVMInvoke => Some(call.after_invoke()),
            _ => None,
        };
        let place = place.filter(|next| next.opcode() != Opcode::LLVMUnreachable);
        let is_symbolic = self.module.mode == Mode::Symbolic;
        let is_elsewhere = declared.is_some() || callee.as_function().is_none();
        if is_symbolic && place.is_none() && is_elsewhere && !self.module.is_rust {
            // Whether it is instrumented is known only afterwards, and there is no afterwards (`longjmp`).
            self.pin_arguments(call, 0, PinReason::External, call);
        }
        let may_be_foreign = is_symbolic && self.may_be_foreign(call, callee);
        let tagged = is_symbolic && self.hand_over(call, callee, site, may_be_foreign);
        if call.is_must_tail() {
            self.module.builder.place_before(call);
            return self.exit();
        }
        let Some(place) = place else { return };
        self.module.builder.place_before(place);
        self.module.builder.take_debug_location(call);
        if call.returns_twice() {
            self.unwind();
        }
        if self.may.contains(call) && call.is_used() {
            self.take_result(call, callee);
        }
        if tagged {
            self.pin_if_untaken(call, callee, place, site);
        }
        if may_be_foreign {
            self.say_foreign(call, callee, place, site);
        }
        let description = call.new_description();
        if let Some(description) = description.or_else(|| memory_of_library(call, callee)) {
            self.describe(call, &description, 0);
        }
        if let Some(number) = summary {
            self.tell_summary(call, number, true, site);
        }
        if let Some(number) = by_pointer {
            self.tell_summary_if_any(call, number, place, site);
        }
    }

    /// Which function of the C library is called by a pointer, if it is one (`std::stoi` calls `strtol` in this
    /// way); tells of it before the call.
    fn summary_by_pointer(&mut self, call: Value, callee: Value, site: Value) -> Option<Value> {
        let takes_pointer =
            (0..call.argument_count()).any(|position| is_pointer(call.operand(position)));
        if callee.as_function().is_some() || self.module.is_rust || !takes_pointer {
            return None;
        }
        self.module.builder.place_before(call);
        let number = self.module.hook(Hook::SummaryOf, &[callee]);
        self.tell_summary_if_any(call, number, call, site);
        Some(number)
    }

    /// Whether it is known only after the call that the callee is not instrumented. What the C library keeps
    /// between its calls is known by name, and Rust's library has rules of its own.
    fn may_be_foreign(&self, call: Value, callee: Value) -> bool {
        if self.module.is_rust {
            return false;
        }
        callee.as_function().is_none_or(|function| {
            let name = function.name();
            function.is_declaration()
                && !library::is_foreign(callee)
                && (!library::is_output_only(call) || library::is_stream_output(&name))
                && (call.is_used() || !library::is_expressed(&name))
        })
    }

    /// If nobody took the call, the callee is not instrumented, and may keep something between its calls.
    fn say_foreign(&mut self, call: Value, callee: Value, place: Value, site: Value) {
        let name = callee.as_function().map(Value::name).unwrap_or_default();
        let constants = self.module.module;
        let own = u32::from(callee.as_function().is_some_and(Value::returns_through_parameter));
        // What a C function is about is its first argument, as for a member of a class.
        let is_of_object = (library::is_member_of_library(&name) || !name.starts_with("_Z"))
            && call.argument_count() > own
            && is_pointer(call.operand(own));
        let object = if is_of_object { call.operand(own) } else { constants.null() };
        let name = self.module.string(&demangle(&name));
        let given = (0..call.argument_count())
            .filter(|&position| leads_to_memory(call.operand(position)))
            .count();
        let given = constants.constant32(given as u32);
        self.place_if_untaken(callee, place);
        self.module.hook(Hook::Foreign, &[callee, name, object, given, site]);
        self.module.builder.place_before(place);
    }

    /// The C library reads where the arguments point to, and what it reads is told of before it is known that it took them:
    /// another pointer may be null, or lead to what was not freed. (That what is written is of no consequence is another
    /// matter.)
    fn pin_pointers(&mut self, call: Value, site: Value) {
        for position in 0..call.argument_count() {
            let argument = call.operand(position);
            if is_pointer(argument) && self.has_shadow(argument) {
                self.module.builder.place_before(call);
                self.pin(argument, PinReason::Address, site, call);
            }
        }
    }

    /// Leaves the arguments' shadows for the callee; gives whether there are any. Those that cannot
    /// be handed over are pinned. `always`: the callee is to be known by whether it takes them.
    fn hand_over(&mut self, call: Value, callee: Value, site: Value, always: bool) -> bool {
        self.pin_parts(call, PinReason::Argument, call);
        let output_only = library::is_output_only(call);
        if self.has_shadow(callee) {
            self.module.builder.place_before(call);
            self.pin(callee, PinReason::Address, site, call);
        }
        if library::is_foreign(callee) {
            if !output_only {
                self.pin_arguments(call, 0, PinReason::External, call);
            }
            if (0..call.argument_count()).any(|position| is_pointer(call.operand(position))) {
                // It may call back.
                self.module.builder.place_before(call);
                let slot = self.slot(offset_of!(CallSlots, outside));
                let builder = &self.module.builder;
                builder.store(builder.widen(callee), slot);
            }
            return false;
        }
        let handed = call.call_fixed_parameters().min(ARGUMENT_SLOTS as u32);
        if !output_only {
            self.pin_arguments(call, handed, PinReason::Argument, call);
        }
        self.module.builder.place_before(call);
        let any = (0..handed).any(|position| self.has_shadow(call.operand(position)));
        let builder = &self.module.builder;
        let tag = if any || always {
            for position in 0..handed {
                let argument = call.operand(position);
                if argument.ty().scalar_width().is_some() {
                    let slot = self.argument_slot(position as usize);
                    builder.store(self.shadow(argument), slot);
                }
            }
            builder.widen(callee)
        } else {
            self.module.module.constant64(0)
        };
        builder.store(tag, self.slot(offset_of!(CallSlots, callee)));
        builder.store(tag, self.slot(offset_of!(CallSlots, outside)));
        if self.may.contains(call) {
            let returned_by = self.slot(offset_of!(CallSlots, returned_by));
            builder.store(self.module.module.constant64(0), returned_by);
        }
        any && !output_only
    }

    /// Takes the shadows that the callee left, if it was the one to leave them.
    fn take_result(&mut self, call: Value, callee: Value) {
        let count = match call.ty().flat_members(RESULT_SLOTS) {
            Some(members) => members.len(),
            None => 1,
        };
        let builder = &self.module.builder;
        let returned_by = self.slot(offset_of!(CallSlots, returned_by));
        let tag = builder.load(self.module.module.int64, returned_by);
        let by_callee = builder.equal(tag, builder.widen(callee));
        let shadows: Vec<Value> = (0..count)
            .map(|position| {
                let slot = self.slot(offset_of!(CallSlots, results) + 4 * position);
                let shadow = builder.load(self.module.module.int32, slot);
                builder.select(by_callee, shadow, self.concrete())
            })
            .collect();
        if call.ty().scalar_width().is_some() {
            self.set_shadow(call, shadows[0]);
        } else {
            self.set_parts(call, shadows);
        }
    }

    /// If nobody took the arguments' shadows, the callee is not instrumented.
    fn pin_if_untaken(&mut self, call: Value, callee: Value, place: Value, site: Value) {
        let shadowed: Vec<Value> = (0..call.call_fixed_parameters().min(ARGUMENT_SLOTS as u32))
            .map(|position| call.operand(position))
            .filter(|argument| self.has_shadow(*argument))
            .collect();
        let constants = self.module.module;
        self.place_if_untaken(callee, place);
        for argument in shadowed {
            let width = argument.ty().scalar_width().unwrap_or(64);
            let arguments = [
                self.shadow(argument),
                constants.constant32(width),
                self.module.builder.widen(argument),
                constants.constant32(PinReason::External as u32),
                site,
            ];
            self.module.hook(Hook::Pin, &arguments);
        }
        self.module.builder.place_before(place);
    }

    /// Goes to where it is known that nobody took what was handed over.
    fn place_if_untaken(&self, callee: Value, place: Value) {
        let builder = &self.module.builder;
        builder.place_before(place);
        let slot = self.slot(offset_of!(CallSlots, callee));
        let tag = builder.load(self.module.module.int64, slot);
        let untaken = builder.equal(tag, builder.widen(callee));
        builder.place_in_if(untaken, place, true);
    }

    /// Pins the arguments from a position on.
    fn pin_arguments(&mut self, call: Value, from: u32, reason: PinReason, place: Value) {
        for position in from..call.argument_count() {
            let argument = call.operand(position);
            if self.has_shadow(argument) {
                let site = self.site(call);
                self.module.builder.place_before(place);
                self.pin(argument, reason, site, place);
            }
        }
    }
}

/// Types of the standard library that have memory of their own: as they stand in the linkage names of their
/// functions, before the template arguments. Of two that have one implementation the first is told by a text
/// among these.
const OWNERS: &[(&str, &str, &str)] = &[
    ("8_Rb_tree", "_Select1st", "std::map"),
    ("8_Rb_tree", "", "std::set"),
    ("10_Hashtable", "_Select1st", "std::unordered_map"),
    ("10_Hashtable", "", "std::unordered_set"),
    ("12basic_string", "", "std::string"),
    ("11_Deque_base", "", "std::deque"),
    ("5deque", "", "std::deque"),
    ("10_List_base", "", "std::list"),
    ("4list", "", "std::list"),
    ("12_Vector_base", "", "std::vector"),
    ("6vector", "", "std::vector"),
    ("14__shared_count", "", "std::shared_ptr"),
    ("14_Function_base", "", "std::function"),
    ("8function", "", "std::function"),
];

/// What is allocated inside a type of the standard library belongs to it; what `std::make_unique` makes is of the
/// type that it is given.
fn memory_of_library(call: Value, callee: Value) -> Option<Description> {
    if !callee.as_function().is_some_and(|function| function.name().starts_with("_Znw")) {
        return None;
    }
    let name = call.inlined_functions().find_map(|function| {
        let (class, arguments) = function.split_once('I').unwrap_or((&function, ""));
        if class.ends_with("make_unique") {
            return made_type(&demangle(&function));
        }
        let is = |(first, second, _): &&(&str, &str, &str)| {
            class.starts_with("_ZNSt") && class.contains(first) && arguments.contains(second)
        };
        OWNERS.iter().find(is).map(|(.., name)| format!("memory of {name}"))
    })?;
    Some(Description { name, function: String::new(), layout: String::new() })
}

/// The first template argument, without its namespaces and arguments.
fn made_type(demangled: &str) -> Option<String> {
    let (_, arguments) = demangled.split_once("make_unique<")?;
    let whole = arguments.split(['<', ',', '>', '[']).next()?;
    let name = whole.rsplit("::").next()?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::made_type;

    #[test]
    fn what_make_unique_makes_has_a_short_name() {
        for (demangled, name) in [
            ("std::unique_ptr<A, B> std::make_unique<net::Connection, int>(int&&)", "Connection"),
            ("std::make_unique<Box<int>>()", "Box"),
        ] {
            assert_eq!(made_type(demangled).as_deref(), Some(name));
        }
    }
}
