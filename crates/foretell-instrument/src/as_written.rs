//! Accesses as the source has them (`foretell cc --as-written`).
//!
//! An optimiser may drop, merge, move and shrink accesses of memory as long as one thread alone cannot
//! tell: a static pointer that is only ever null or one address becomes a Boolean, and with it goes the
//! null dereference that another interleaving would show. So each access of the source to memory that
//! another thread may see is volatile while the module is optimised, and no longer when it is instrumented.
//! Atomic accesses are no exception: a static atomic that is stored once is folded away like any other
//! variable. What is volatile already is left as it is.
//!
//! An address that is handed to a function lets a variable escape until the function is inlined. So the
//! mark is taken off again where inlining shows a variable to be local; iterators and other small objects of
//! C++ are then kept in registers as usual.
//!
//! A load is atomic, too, where it can be: InstCombine makes one of two volatile loads whose values meet in a
//! phi, which then has no line of its own. No source has this order (`unordered`).
//!
//! The mark is a piece of metadata. Where LLVM drops it (two accesses made one), the access stays
//! volatile, which nobody minds at the end.

use crate::llvm::{Opcode, Value};
use crate::locals::{Locals, is_pointer};
use crate::memory::{Place, place};

/// The environment variable by which the compiler driver asks for it.
const VARIABLE: &str = "FORETELL_AS_WRITTEN";
/// The metadata of an access that was made volatile here.
const MARK: &str = "foretell.as_written";

/// Whether the driver asks for it.
pub fn wanted() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Marks the accesses of a function to memory that another thread may see.
pub fn keep(function: Value) {
    let locals = Locals::find(instructions(function));
    for instruction in instructions(function) {
        let is_access = match instruction.opcode() {
            Opcode::LLVMLoad
            | Opcode::LLVMStore
            | Opcode::LLVMAtomicRMW
            | Opcode::LLVMAtomicCmpXchg => true,
            Opcode::LLVMCall => is_bytes(instruction),
            _ => false,
        };
        if is_access && !instruction.is_volatile() && !is_local(instruction, &locals) {
            instruction.set_volatile(true);
            instruction.set_metadata(MARK);
            if is_plain_load(instruction) {
                instruction.set_unordered(true);
            }
        }
    }
}

/// Takes the mark off the accesses of a function to variables that are local by now; gives whether there
/// are such accesses.
pub fn release_locals(function: Value) -> bool {
    let locals = Locals::find(instructions(function));
    release(function, |instruction| is_local(instruction, &locals))
}

/// Takes the mark off all accesses of a function.
pub fn release_all(function: Value) {
    release(function, |_| true);
}

fn release(function: Value, wanted: impl Fn(Value) -> bool) -> bool {
    let mut released = false;
    for instruction in instructions(function) {
        let is_unordered = instruction.opcode() == Opcode::LLVMLoad && instruction.is_unordered();
        if (is_unordered || instruction.has_metadata(MARK)) && wanted(instruction) {
            instruction.set_volatile(false);
            instruction.clear_metadata(MARK);
            if is_unordered {
                instruction.set_unordered(false);
            }
            released = true;
        }
    }
    released
}

/// Is it a load without an order of its own that the machine makes in one piece?
fn is_plain_load(load: Value) -> bool {
    if load.opcode() != Opcode::LLVMLoad || load.ordering().is_some() {
        return false;
    }
    let width = load.ty().scalar_width().unwrap_or(0);
    [8, 16, 32, 64].contains(&width) && load.alignment() * 8 >= width
}

fn instructions(function: Value) -> impl Iterator<Item = Value> {
    function.reachable_blocks().into_iter().flat_map(|block| block.instructions())
}

/// `memcpy`, `memmove` or `memset` as an intrinsic.
fn is_bytes(call: Value) -> bool {
    let is_known = |name: &str| {
        let begins = ["memcpy.", "memmove.", "memset."];
        begins.iter().any(|begin| name.starts_with(begin)) && !name.contains("atomic")
    };
    call.intrinsic().is_some_and(|name| is_known(&name))
}

/// Whether all memory that the instruction accesses is out of reach of other threads.
fn is_local(instruction: Value, locals: &Locals) -> bool {
    let pointers = match instruction.opcode() {
        Opcode::LLVMLoad | Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg => 0..1,
        Opcode::LLVMStore => 1..2,
        // What is filled, and for a copy what is read; the byte of `memset` is no pointer.
        _ => 0..2,
    };
    pointers
        .map(|index| instruction.operand(index))
        .all(|pointer| !is_pointer(pointer) || !matches!(place(pointer, locals), Place::Shared))
}
