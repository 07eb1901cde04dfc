//! Functions that may be signal handlers and cannot wake a thread.
//!
//! Where all threads of a program wait, a signal from outside may still come. It ends the wait only if its
//! handler does something about it: posts a semaphore, signals a condition, jumps out of the wait. A handler
//! that sets a flag, prints or ends the program does not, and the program is stuck all the same.
//!
//! Guaranteed: a function that is called quiet here, and all that it calls, does nothing but compute, access
//! memory, write output and end the program. Where anything is in doubt (a call by a pointer, inline
//! assembly, a function that is not known) it is not quiet.

use crate::library;
use crate::llvm::{Opcode, TypeKind, Value};
use std::collections::HashSet;

/// Functions of the C library that wake nobody.
const HARMLESS: &[&str] = &[
    "_Exit",
    "__errno_location",
    "_exit",
    "abort",
    "clock_gettime",
    "exit",
    "fflush",
    "fprintf",
    "fputc",
    "fputs",
    "fwrite",
    "getpid",
    "memcpy",
    "memmove",
    "memset",
    "perror",
    "printf",
    "pthread_self",
    "putc",
    "putchar",
    "puts",
    "quick_exit",
    "snprintf",
    "sprintf",
    "strcpy",
    "strerror",
    "strlen",
    "strsignal",
    "time",
    "write",
];

/// The quiet functions among these that have the type of a handler and whose address is taken.
pub fn quiet(functions: &[Value]) -> Vec<Value> {
    let is_quiet = |&function: &Value| {
        is_handler(function) && is_address_taken(function) && all_quiet(function)
    };
    functions.iter().copied().filter(is_quiet).collect()
}

/// `void (int)`, or `void (int, siginfo_t *, void *)`.
fn is_handler(function: Value) -> bool {
    let kinds: Vec<TypeKind> =
        function.parameters().iter().map(|parameter| parameter.ty().kind()).collect();
    let (integer, pointer) = (TypeKind::LLVMIntegerTypeKind, TypeKind::LLVMPointerTypeKind);
    kinds == [integer] || kinds == [integer, pointer, pointer]
}

fn is_address_taken(function: Value) -> bool {
    function.users().iter().any(|user| match user.instruction_opcode() {
        Some(Opcode::LLVMCall | Opcode::LLVMInvoke) => {
            user.callee() != function || user.operands().filter(|&o| o == function).count() > 1
        }
        _ => true,
    })
}

/// Is the function quiet, and is everything that it calls?
fn all_quiet(function: Value) -> bool {
    let mut seen = HashSet::from([function]);
    let mut open = vec![function];
    while let Some(function) = open.pop() {
        for block in function.reachable_blocks() {
            for instruction in block.instructions() {
                match instruction.opcode() {
                    Opcode::LLVMCall => match called(instruction) {
                        Called::Harmless => {}
                        Called::Other(callee) => {
                            if seen.insert(callee) {
                                open.push(callee);
                            }
                        }
                        Called::Unknown => return false,
                    },
                    Opcode::LLVMInvoke
                    | Opcode::LLVMCallBr
                    | Opcode::LLVMResume
                    | Opcode::LLVMIndirectBr => return false,
                    _ => {}
                }
            }
        }
    }
    true
}

enum Called {
    Harmless,
    Other(Value),
    Unknown,
}

fn called(call: Value) -> Called {
    if let Some(name) = call.intrinsic() {
        return if name.starts_with("eh.") { Called::Unknown } else { Called::Harmless };
    }
    match call.callee().as_function() {
        Some(function) if !function.is_declaration() => Called::Other(function),
        Some(function)
            if HARMLESS.contains(&&*function.name()) || library::is_output_only(call) =>
        {
            Called::Harmless
        }
        _ => Called::Unknown,
    }
}
