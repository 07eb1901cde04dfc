//! What differs from run to run: instructions that give random numbers or count cycles, and the ids of
//! processes and threads.
//!
//! Intrinsics are followed by a hook that gives the program the same value in every run. Inline assembly
//! cannot be changed; a hook says what it does. An id stays what it is, because programs make unique names
//! of it and send signals to it; a hook says so where the program does anything else with it.
//!
//! Guaranteed: a value that comes from one of these is the same in every run, or it is said. Not covered:
//! libraries that were not compiled with the plugin; bytes in inline assembly that stand for an instruction;
//! text that was made of an id.

use crate::function::FunctionContext;
use crate::library;
use crate::llvm::{Opcode, Value};
use foretell_abi::{Hook, Source, Unseen};

/// Functions that give the id of a process or thread.
const IDS: &[&str] = &["getpid", "getppid", "gettid", "getpgrp", "getpgid", "getsid"];
/// The same by `syscall`, x86-64: getpid, getppid, getpgrp, getpgid, getsid, gettid.
const ID_CALLS: &[i64] = &[39, 110, 111, 121, 124, 186];
/// Functions to which an id may be handed: their outcome does not depend on which it is.
const TAKE_IDS: &[&str] = &[
    "getpgid",
    "getpriority",
    "getsid",
    "kill",
    "printf",
    "fprintf",
    "prlimit",
    "prlimit64",
    "sched_getaffinity",
    "sched_getparam",
    "sched_getscheduler",
    "sched_setaffinity",
    "sched_setparam",
    "sched_setscheduler",
    "setpgid",
    "setpriority",
    "sigqueue",
    "snprintf",
    "sprintf",
    "syscall",
    "syslog",
    "tgkill",
];
/// In assembly: instructions whose results differ from run to run.
const INSTRUCTIONS: &[&str] = &["rdtsc", "rdrand", "rdseed", "rdpmc", "rdpid"];

impl FunctionContext<'_> {
    /// An intrinsic (without `llvm.`) that gives something else in every run: gives the program what the
    /// runtime says instead. Whether it was one.
    pub(crate) fn replace_varying(&mut self, call: Value, name: &str) -> bool {
        let random = name.starts_with("x86.rdrand.") || name.starts_with("x86.rdseed.");
        let with_processor = name == "x86.rdtscp";
        let source = match name {
            _ if random => Source::Random,
            "readcyclecounter" | "readsteadycounter" | "x86.rdtsc" | "x86.rdtscp" => Source::Cycles,
            _ => return false,
        };
        let (users, site) = (call.users(), self.site(call));
        let Some(place) = call.next() else { return true };
        self.module.builder.place_before(place);
        self.module.builder.take_debug_location(call);
        let (builder, constants) = (&self.module.builder, &self.module.module);
        let given = match random || with_processor {
            true => builder.extract(call, 0),
            false => call,
        };
        let source = constants.constant32(source as u32);
        let arguments = [source, builder.widen(given), site];
        let value = self.module.hook(Hook::Value, &arguments);
        let value = builder.integer_cast(value, given.ty(), false);
        let value = match random || with_processor {
            true => {
                let parts = builder.insert(call, value, 0);
                let second = constants.constant32(u32::from(random)); // it worked; processor 0
                builder.insert(parts, second, 1)
            }
            false => value,
        };
        for user in users {
            for position in 0..user.operand_count() {
                if user.operand(position) == call {
                    user.set_operand(position, value);
                }
            }
        }
        true
    }

    /// Says what a piece of inline assembly does that is not seen.
    pub(crate) fn say_assembly(&mut self, call: Value, assembly: Value) {
        let text = assembly.assembly_text().to_ascii_lowercase();
        let constraints = assembly.assembly_constraints();
        let text = text.trim();
        if let Some(instruction) = INSTRUCTIONS.iter().find(|name| text.contains(**name)) {
            self.say_unseen(call, Unseen::Varying, &format!("{instruction} in inline assembly"));
        }
        if text.contains("syscall") || text.contains("int $$0x80") {
            self.say_unseen(call, Unseen::Assembler, "a system call");
        }
        // `lock; addl $0, (%rsp)` is a fence.
        let addresses = text.split(['(', '[']).skip(1);
        let mut others = addresses.filter(|address| !address.starts_with("%rsp"));
        let by_operand = constraints.split(',').any(|operand| operand.contains('*'));
        let by_address = constraints.contains("~{memory}") && others.next().is_some();
        if !text.is_empty() && (by_operand || by_address) {
            self.say_unseen(call, Unseen::Assembler, "an access of memory");
        }
    }

    /// Says that the id which a call gives differs from run to run, unless nothing depends on it.
    pub(crate) fn say_id(&mut self, call: Value, name: &str) {
        let by_number = |call: Value| {
            let number = (call.argument_count() > 0).then(|| call.operand(0).constant_integer());
            name == "syscall" && number.flatten().is_some_and(|number| ID_CALLS.contains(&number))
        };
        if (IDS.contains(&name) || by_number(call)) && !is_handed_on(call) {
            let place = match call.opcode() {
                Opcode::LLVMCall => call,
                _ => return,
            };
            let name = if name == "syscall" { "the id by syscall" } else { name };
            self.say_unseen(place, Unseen::Varying, name);
        }
    }

    pub(crate) fn say_unseen(&mut self, call: Value, what: Unseen, text: &str) {
        let site = self.site(call);
        let text = self.module.string(text);
        self.module.builder.place_before(call);
        let constants = &self.module.module;
        let arguments = [constants.constant32(what as u32), text, site];
        self.module.hook(Hook::Unseen, &arguments);
    }
}

/// Does the program only print the value, or hand it back to the system?
fn is_handed_on(value: Value) -> bool {
    value.users().into_iter().all(|user| match user.instruction_opcode() {
        Some(Opcode::LLVMSExt | Opcode::LLVMZExt | Opcode::LLVMTrunc) => is_handed_on(user),
        Some(Opcode::LLVMCall | Opcode::LLVMInvoke) => {
            let callee = user.callee().as_function().filter(|callee| callee.is_declaration());
            let name = callee.map(Value::name).unwrap_or_default();
            TAKE_IDS.contains(&name.as_str()) || library::is_output_only(user)
        }
        _ => false,
    })
}
