//! The machine that is emulated: its registers as its calling convention has them, and its memory.
//!
//! QEMU keeps registers in memory at the start of a block of translated code and during system calls:
//! only there may they be asked for or changed.

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use crate::api::{Bytes, Pointer, api, lookup};

/// An architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64
    X86,
    /// AArch64
    Arm64,
    /// 32-bit ARM, with Thumb
    Arm,
}

type Read = extern "C" fn(Pointer, *mut Bytes, c_int) -> c_int;
type Write = extern "C" fn(Pointer, *const u8, c_int) -> c_int;

static CURRENT: OnceLock<(Machine, Read, Write)> = OnceLock::new();

/// How many bytes `pthread_mutex_t` and others have before what is looked at depends on this.
impl Machine {
    /// By QEMU's name for it.
    pub fn from_name(name: &[u8]) -> Option<Machine> {
        match name {
            b"x86_64" => Some(Machine::X86),
            b"aarch64" => Some(Machine::Arm64),
            b"arm" => Some(Machine::Arm),
            _ => None,
        }
    }

    /// Bytes of a pointer.
    pub fn word(self) -> u8 {
        if self == Machine::Arm { 4 } else { 8 }
    }

    fn accessors(self) -> [&'static CStr; 2] {
        match self {
            Machine::X86 => [c"x86_cpu_gdb_read_register", c"x86_cpu_gdb_write_register"],
            Machine::Arm64 => [c"aarch64_cpu_gdb_read_register", c"aarch64_cpu_gdb_write_register"],
            Machine::Arm => [c"arm_cpu_gdb_read_register", c"arm_cpu_gdb_write_register"],
        }
    }
}

/// Says which machine it is; the error is a function that QEMU does not export.
pub fn set(machine: Machine) -> Result<(), String> {
    let [read, write] = machine.accessors();
    let missing = |name: &CStr| name.to_string_lossy().into_owned();
    let (read, write) =
        (lookup(read).ok_or_else(|| missing(read))?, lookup(write).ok_or_else(|| missing(write))?);
    // SAFETY: the types that QEMU's headers give them.
    let found = unsafe {
        (
            machine,
            std::mem::transmute::<Pointer, Read>(read),
            std::mem::transmute::<Pointer, Write>(write),
        )
    };
    let _ = CURRENT.set(found); // a plugin is loaded once
    Ok(())
}

fn current() -> (Machine, Read, Write) {
    *CURRENT.get().expect("the plugin was installed")
}

/// Which machine it is.
pub fn machine() -> Machine {
    current().0
}

/// A register by QEMU's number, of at most eight bytes.
pub fn register(cpu: Pointer, number: c_int) -> u64 {
    thread_local! {
        static BYTES: Cell<*mut Bytes> = const { Cell::new(std::ptr::null_mut()) };
    }
    let mut bytes = BYTES.get();
    if bytes.is_null() {
        bytes = (api().g_byte_array_new)();
        BYTES.set(bytes);
    }
    (api().g_byte_array_set_size)(bytes, 0);
    let length = current().1(cpu, bytes, number);
    // SAFETY: the array has so many bytes now.
    unsafe {
        match length {
            8 => (*bytes).data.cast::<u64>().read_unaligned(),
            4 => (*bytes).data.cast::<u32>().read_unaligned().into(),
            _ => 0,
        }
    }
}

fn set_register(cpu: Pointer, number: c_int, value: u64) {
    current().2(cpu, value.to_le_bytes().as_ptr(), number);
}

/// An argument of the function that is being entered, of the first four.
pub fn argument(cpu: Pointer, number: usize) -> u64 {
    register(cpu, argument_register(number))
}

/// Gives the function that is being entered another argument.
pub fn set_argument(cpu: Pointer, number: usize, value: u64) {
    set_register(cpu, argument_register(number), value);
}

fn argument_register(number: usize) -> c_int {
    match machine() {
        Machine::X86 => [5, 4, 3, 2][number],
        Machine::Arm64 | Machine::Arm => number as c_int,
    }
}

/// The stack pointer.
pub fn stack_pointer(cpu: Pointer) -> u64 {
    register(cpu, stack_register())
}

fn stack_register() -> c_int {
    match machine() {
        Machine::X86 => 7,
        Machine::Arm64 => 31,
        Machine::Arm => 13,
    }
}

const X86_PC: c_int = 16;
const ARM64_LINK: c_int = 30;
const ARM64_PC: c_int = 32;
const ARM_LINK: c_int = 14;
const ARM_PC: c_int = 15;
const ARM_FLAGS: c_int = 25;
const ARM_THUMB: u64 = 1 << 5;

/// Where the function that is being entered returns to; on 32-bit ARM bit 0 says that it is Thumb.
pub fn return_address(cpu: Pointer) -> u64 {
    match machine() {
        Machine::X86 => peek(stack_pointer(cpu), 8),
        Machine::Arm64 => register(cpu, ARM64_LINK),
        Machine::Arm => register(cpu, ARM_LINK),
    }
}

/// Makes the function that is being entered return to another place.
pub fn set_return_address(cpu: Pointer, address: u64) {
    match machine() {
        Machine::X86 => poke(stack_pointer(cpu), 8, address),
        Machine::Arm64 => set_register(cpu, ARM64_LINK, address),
        Machine::Arm => set_register(cpu, ARM_LINK, address),
    }
}

/// The stack pointer once the function that is being entered has returned.
pub fn stack_after_return(cpu: Pointer) -> u64 {
    let stack = stack_pointer(cpu);
    if machine() == Machine::X86 { stack + 8 } else { stack }
}

/// What the function that has just returned gave.
pub fn result(cpu: Pointer) -> u64 {
    register(cpu, 0)
}

/// Goes on at an address as [`return_address`] has it, and never comes back.
///
/// # Safety
/// Only in a callback at the start of a block, with nothing left to drop.
pub unsafe fn go_to(cpu: Pointer, address: u64) -> ! {
    match machine() {
        Machine::X86 => set_register(cpu, X86_PC, address),
        Machine::Arm64 => set_register(cpu, ARM64_PC, address),
        Machine::Arm => {
            let flags = register(cpu, ARM_FLAGS) & !ARM_THUMB;
            let thumb = if address & 1 == 1 { ARM_THUMB } else { 0 };
            set_register(cpu, ARM_FLAGS, flags | thumb);
            set_register(cpu, ARM_PC, address & !1);
        }
    }
    // SAFETY: the caller's promise: the registers are in memory, and no frame of ours needs to end.
    unsafe { (api().cpu_loop_exit_noexc)(cpu) }
}

/// Makes the function that is being entered return at once, with this result.
///
/// # Safety
/// As [`go_to`].
pub unsafe fn return_now(cpu: Pointer, result: u64) -> ! {
    let back = return_address(cpu);
    set_register(cpu, 0, result);
    if machine() == Machine::X86 {
        set_register(cpu, stack_register(), stack_pointer(cpu) + 8);
    }
    // SAFETY: the caller's promise.
    unsafe { go_to(cpu, back) }
}

/// Whether the CPU executes Thumb code.
pub fn is_thumb(cpu: Pointer) -> bool {
    machine() == Machine::Arm && register(cpu, ARM_FLAGS) & ARM_THUMB != 0
}

/// How far an address of the program is from ours.
pub fn guest_base() -> u64 {
    // SAFETY: a variable of QEMU's.
    unsafe { *api().guest_base as u64 }
}

/// What the program's memory holds there, in 1, 2, 4 or 8 bytes.
#[inline(always)]
pub fn peek(address: u64, size: u8) -> u64 {
    let at = address.wrapping_add(guest_base());
    // SAFETY: the program has just accessed it, or is about to.
    unsafe {
        match size {
            1 => (at as *const u8).read().into(),
            2 => (at as *const u16).read_unaligned().into(),
            4 => (at as *const u32).read_unaligned().into(),
            _ => (at as *const u64).read_unaligned(),
        }
    }
}

/// Writes to the program's memory.
pub fn poke(address: u64, size: u8, value: u64) {
    let at = address.wrapping_add(guest_base());
    // SAFETY: the program has just accessed it, or is about to.
    unsafe {
        match size {
            1 => (at as *mut u8).write(value as u8),
            2 => (at as *mut u16).write_unaligned(value as u16),
            4 => (at as *mut u32).write_unaligned(value as u32),
            _ => (at as *mut u64).write_unaligned(value),
        }
    }
}

/// A pointer or a `long` of the program.
pub fn peek_word(address: u64) -> u64 {
    peek(address, machine().word())
}
