//! What is inserted into the code that QEMU translates.

use std::cell::Cell;
use std::ffi::c_uint;
use std::sync::{Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::accesses::{self, Instruction};
use crate::api::{Id, Pointer, READ_AND_WRITE, api};
use crate::branches::{self, Block};
use crate::calls;
use crate::cpu::{self, Machine, machine};
use crate::current;
use crate::debugger;
use crate::futexes;
use crate::instructions::Class;
use crate::modules::{self, Origin};
use crate::terms;

/// What was translated so far. QEMU translates one block at a time.
struct Known {
    /// Instructions of the program that access memory; never freed.
    instructions: FxHashMap<(u64, Class), usize>,
    /// Addresses after atomic instructions.
    after_atomic: FxHashSet<u64>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// QEMU translates a block.
pub extern "C" fn on_translation(_id: Id, block: Pointer) {
    let api = api();
    let count = (api.qemu_plugin_tb_n_insns)(block);
    if count == 0 {
        return;
    }
    let instruction = |number| (api.qemu_plugin_tb_get_insn)(block, number);
    let begin = (api.qemu_plugin_insn_vaddr)(instruction(0));
    let own = modules::origin(begin) == Origin::Program;
    if !own && branches::is_on() {
        branches::watch_foreign(block);
    }
    let function = modules::function(begin);
    if !own && terms::is_on() && function.is_none() {
        terms::watch_foreign(block, begin);
    }
    if begin == calls::landing() {
        let on_landing = calls::on_landing;
        (api.qemu_plugin_register_vcpu_tb_exec_cb)(block, on_landing, 0, std::ptr::null_mut());
    } else if modules::is_entry(begin) {
        (api.qemu_plugin_register_vcpu_tb_exec_cb)(block, calls::on_begin, 0, std::ptr::null_mut());
    } else if let Some(function) = function {
        let data = function as Pointer;
        (api.qemu_plugin_register_vcpu_tb_exec_cb)(block, calls::on_call, 0, data);
    }
    if own && (debugger::is_on() || futexes::is_on()) {
        debugger::watch(block);
    }
    let size = |number| (api.qemu_plugin_insn_size)(instruction(number));
    let thumb = machine() == Machine::Arm && is_thumb(begin, (0..count).map(size));
    if own && branches::is_on() {
        let bytes = |number| bytes_of(instruction(number));
        let last = instruction(count - 1);
        let end = (api.qemu_plugin_insn_vaddr)(last) + size(count - 1) as u64;
        branches::watch(block, Block::new(machine(), thumb, begin, (0..count).map(bytes), end));
    }
    if own && terms::is_on() {
        let code = |number| {
            let (at, bytes) = (instruction(number), bytes_of(instruction(number)));
            let class = Class::of(machine(), thumb, bytes);
            let followed = !class.is_atomic() || class == Class::Atomic;
            ((api.qemu_plugin_insn_vaddr)(at), bytes, followed)
        };
        terms::watch(block, thumb, begin, &(0..count).map(code).collect::<Vec<_>>());
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_with(|| Known {
        instructions: FxHashMap::default(),
        after_atomic: FxHashSet::default(),
    });
    for number in 0..count {
        let (instruction, size) = (instruction(number), size(number));
        let address = (api.qemu_plugin_insn_vaddr)(instruction);
        let bytes = bytes_of(instruction);
        if modules::origin(address) != Origin::Program {
            if may_be_atomic(bytes) {
                let register = api.qemu_plugin_register_vcpu_mem_cb;
                register(instruction, ignore, 0, READ_AND_WRITE, std::ptr::null_mut());
            }
            continue;
        }
        let class = Class::of(machine(), thumb, bytes);
        let place = address + size as u64;
        if class.is_atomic() {
            known.after_atomic.insert(place);
        }
        if known.after_atomic.contains(&address) && !debugger::is_on() {
            let (register, after) =
                (api.qemu_plugin_register_vcpu_insn_exec_cb, accesses::after_atomic);
            register(instruction, after, 0, std::ptr::null_mut());
        }
        // Another file may be loaded where one was before.
        let data = *known.instructions.entry((place, class)).or_insert_with(|| {
            let (shared, met) = (modules::is_shared(address), Cell::new(false));
            Box::into_raw(Box::new(Instruction { place, class, shared, met })) as usize
        });
        let register = api.qemu_plugin_register_vcpu_mem_cb;
        register(instruction, accesses::on_access, 0, READ_AND_WRITE, data as Pointer);
    }
}

/// The code of an instruction, while its block is being translated.
fn bytes_of<'a>(instruction: Pointer) -> &'a [u8] {
    let api = api();
    let size = (api.qemu_plugin_insn_size)(instruction);
    // SAFETY: QEMU's copy of the code.
    unsafe { std::slice::from_raw_parts((api.qemu_plugin_insn_data)(instruction), size) }
}

/// Whether the code is Thumb: short instructions are there only, and so are odd halves of words. Else
/// the thread that asks for the translation is about to execute it.
fn is_thumb(begin: u64, mut sizes: impl Iterator<Item = usize>) -> bool {
    begin % 4 == 2
        || sizes.any(|size| size == 2)
        || current().is_some_and(|thread| cpu::is_thumb(thread.cpu))
}

/// QEMU 7.2 tells of an atomic access whoever was last told of one: code that is not recorded must have
/// somebody of its own.
fn may_be_atomic(bytes: &[u8]) -> bool {
    match machine() {
        Machine::X86 => bytes.iter().any(|byte| matches!(byte, 0xf0 | 0x86 | 0x87 | 0x0f)),
        Machine::Arm64 | Machine::Arm => bytes.len() == 4,
    }
}

extern "C" fn ignore(_cpu: c_uint, _what: u32, _address: u64, _data: Pointer) {}
