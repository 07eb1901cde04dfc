//! What is known of Rust's standard library: its locks, the functions that panic, its names.
//!
//! The library comes compiled, so that only what is inlined or generic goes through the pass. The fast
//! ways of its locks are: an atomic access of a word, recognised by the function of the library that it
//! was written in, which debug information keeps. It is replaced by a hook of the runtime that takes or
//! gives back the lock of the model, so that locks are locks in the trace and nothing is contended under
//! the scheduler. What is not inlined (condition variables, `Once`) is called through a detour that gives
//! the runtime the library's own function, too.
//!
//! Guaranteed: without the scheduler a program does what it would have done, at most on a slower way of
//! the library. Can be missed: locks in code that was compiled without debug information; they stay
//! atomic accesses.

use crate::llvm::{self, Builder, Opcode, Value};
use crate::module::ModuleContext;
use crate::rust_channels;
use crate::rust_names::{is_mangled, plain_path};
use foretell_abi::rust_lock::{BYTE, READER_WRITER, SHARED, SUBTRACT, TRY};
use foretell_abi::{Hook, RmwKind, Unseen};
use std::collections::HashMap;

/// What an atomic access in a function of the library is.
#[derive(Clone, Copy)]
enum Role {
    /// A compare-and-swap that takes the lock; a load before it is the guess that nobody has it.
    Acquire(u32),
    /// A read-modify-write that gives it back.
    Release(u32),
    /// An exchange that gives a thread its token to go on.
    Unpark,
    /// A load of how many threads of a scope run, until none does.
    AwaitScope,
    /// A load of how many threads panic. The library's own functions count them, which nobody sees; where the
    /// count is not 0, a thread asks whether it is one of them.
    Panicking,
}

/// By the functions that the accesses were written in.
const ROLES: &[(&str, Role)] = &[
    ("std::sys::sync::mutex::futex::Mutex::lock", Role::Acquire(0)),
    ("std::sys::sync::mutex::futex::Mutex::try_lock", Role::Acquire(TRY)),
    ("std::sys::sync::mutex::futex::Mutex::unlock", Role::Release(0)),
    ("std::sys::sync::rwlock::futex::RwLock::read", Role::Acquire(READER_WRITER | SHARED)),
    ("std::sys::sync::rwlock::futex::RwLock::write", Role::Acquire(READER_WRITER)),
    (
        "std::sys::sync::rwlock::futex::RwLock::try_read",
        Role::Acquire(READER_WRITER | SHARED | TRY),
    ),
    ("std::sys::sync::rwlock::futex::RwLock::try_write", Role::Acquire(READER_WRITER | TRY)),
    ("std::sys::sync::rwlock::futex::RwLock::read_unlock", Role::Release(READER_WRITER | SHARED)),
    ("std::sys::sync::rwlock::futex::RwLock::write_unlock", Role::Release(READER_WRITER)),
    ("parking_lot::raw_mutex::RawMutex::lock", Role::Acquire(BYTE)),
    ("parking_lot::raw_mutex::RawMutex::try_lock", Role::Acquire(BYTE | TRY)),
    ("parking_lot::raw_mutex::RawMutex::unlock", Role::Release(BYTE)),
    ("parking_lot::raw_mutex::RawMutex::unlock_inner", Role::Release(BYTE)),
    ("parking_lot::raw_mutex::RawMutex::unlock_fair", Role::Release(BYTE)),
    ("spin::mutex::spin::SpinMutex::lock", Role::Acquire(BYTE)),
    ("spin::mutex::spin::SpinMutex::try_lock_weak", Role::Acquire(BYTE)),
    ("spin::mutex::spin::SpinMutex::try_lock", Role::Acquire(BYTE | TRY)),
    ("spin::mutex::spin::SpinMutexGuard::drop", Role::Release(BYTE)),
    ("spin::mutex::spin::SpinMutex::force_unlock", Role::Release(BYTE)),
    ("std::sys::sync::thread_parking::futex::Parker::unpark", Role::Unpark),
    ("std::thread::scoped::scope", Role::AwaitScope),
    ("std::panicking::panic_count::count_is_zero", Role::Panicking),
];

/// Functions of the library that are called through a detour, and the runtime's hooks.
const DETOURS: &[(&str, &str)] = &[
    ("std::sys::sync::condvar::futex::Condvar::wait", "__foretell_rust_wait"),
    ("std::sys::sync::condvar::futex::Condvar::wait_timeout", "__foretell_rust_wait_timeout"),
    ("std::sys::sync::condvar::futex::Condvar::notify_one", "__foretell_rust_notify_one"),
    ("std::sys::sync::condvar::futex::Condvar::notify_all", "__foretell_rust_notify_all"),
    ("std::sync::poison::condvar::Condvar::notify_one", "__foretell_rust_notify_one"),
    ("std::sync::poison::condvar::Condvar::notify_all", "__foretell_rust_notify_all"),
    ("std::sys::sync::once::futex::Once::call", "__foretell_rust_once"),
    ("std::sync::barrier::Barrier::wait", "__foretell_rust_barrier"),
    ("std::thread::functions::park", "__foretell_rust_park"),
    ("std::thread::thread::Thread::park", "__foretell_rust_park_thread"),
    (
        "std::thread::scoped::ScopeData::increment_num_running_threads",
        "__foretell_rust_scope_begin",
    ),
    ("std::thread::scoped::ScopeData::decrement_num_running_threads", "__foretell_rust_scope_end"),
];

/// How the paths of functions begin that panic or abort.
const PANICS: &[&str] = &[
    "core::panicking::",
    "core::option::unwrap_failed",
    "core::option::expect_failed",
    "core::result::unwrap_failed",
    "core::cell::panic_already_",
    "core::slice::index::slice_",
    "core::str::slice_error_fail",
    "core::num::from_ascii_radix_panic",
    "std::process::abort",
    "std::rt::begin_panic",
    "std::rt::panic_",
    "std::panicking::begin_panic",
];

/// Functions whose only effect is output.
const OUTPUT: &[&str] = &["std::io::stdio::_print", "std::io::stdio::_eprint"];

/// The path of the function of this symbol, if it is one of Rust's.
pub fn path(symbol: &str) -> Option<String> {
    is_mangled(symbol).then(|| plain_path(&llvm::demangle(symbol)))
}

/// Whether reaching the function of this name means that the program panics or aborts.
pub fn panics(symbol: &str) -> bool {
    path(symbol).is_some_and(|path| PANICS.iter().any(|panics| path.starts_with(panics)))
}

/// Whether the function of this name only writes output.
pub fn is_output_only(symbol: &str) -> bool {
    path(symbol).is_some_and(|path| OUTPUT.contains(&path.as_str()))
}

/// Functions that do nothing but let others go first.
const PAUSES: &[&str] = &[
    "std::thread::functions::yield_now",
    "std::thread::functions::sleep",
    "core::hint::spin_loop",
];

/// Whether the function of this name does nothing but let others go first.
pub fn is_pause(symbol: &str) -> bool {
    path(symbol).is_some_and(|path| PAUSES.contains(&path.as_str()))
}

/// What is done before a module is optimised.
pub fn prepare(module: llvm::Module) {
    inline_atomics(module);
    rust_channels::watch(module);
    mark_handlers(module);
    for function in module.functions().into_iter().filter(|function| is_pause(&function.name())) {
        function.never_unwinds();
    }
}

/// The function of the compiler's in which a panic is caught: what is called, its data, what then.
const CATCH: &str = "__rust_try";

/// Libraries that run what they are given as tasks: a panic there is no more handled than one that ends a
/// thread, whoever looks at what became of the task.
const RUN_TASKS: &[&str] =
    &["std::", "tokio::", "rayon_core::", "async_executor::", "async_task::"];

/// Says where the program handles panics by `catch_unwind`.
fn mark_handlers(module: llvm::Module) {
    let builder = Builder::new(&module);
    let (hook, ty) = module.hook(Hook::RustCatch);
    for function in module.functions().into_iter().filter(|function| function.name() == CATCH) {
        for call in function.users() {
            let is_call = call.instruction_opcode() == Some(Opcode::LLVMCall);
            if !is_call || call.callee() != function {
                continue;
            }
            let Some(body) = call.operand(0).as_function() else { continue };
            let name = llvm::demangle(&body.name());
            let closure = name.split_once("do_call::<").map_or("", |(_, closure)| closure);
            let plain = closure.strip_prefix("core::panic::unwind_safe::AssertUnwindSafe<");
            let closure = plain.unwrap_or(closure).trim_start_matches('<');
            let Some(next) = call.next() else { continue };
            if closure.is_empty() || RUN_TASKS.iter().any(|library| closure.starts_with(library)) {
                continue;
            }
            for (place, begins) in [(call, 1), (next, 0)] {
                builder.place_before(place);
                builder.call((hook, ty), &[module.constant32(begins)]);
            }
        }
    }
}

/// Has the library's functions for atomic accesses inlined, also without optimisation: then debug
/// information says of each access in which function of the library it was written.
fn inline_atomics(module: llvm::Module) {
    for function in module.functions() {
        let is_atomic = |path: String| path.starts_with("core::sync::atomic::");
        if !function.is_declaration() && path(&function.name()).is_some_and(is_atomic) {
            function.always_inline();
        }
    }
}

/// Replaces the locks in a module by hooks.
pub fn replace_locks(context: &mut ModuleContext, functions: &[Value]) {
    let mut hidden: HashMap<String, bool> = HashMap::new();
    let mut roles: HashMap<String, Option<Role>> = HashMap::new();
    let mut detours: HashMap<Value, Option<Value>> = HashMap::new();
    for &function in functions {
        for block in function.reachable_blocks() {
            for instruction in block.instructions() {
                match instruction.opcode() {
                    Opcode::LLVMLoad | Opcode::LLVMStore if instruction.ordering().is_none() => {}
                    Opcode::LLVMLoad
                    | Opcode::LLVMStore
                    | Opcode::LLVMFence
                    | Opcode::LLVMAtomicCmpXchg
                    | Opcode::LLVMAtomicRMW => {
                        let role = instruction.inlined_functions().find_map(|name| {
                            let role = |name: &String| role_of(name);
                            *roles.entry(name.clone()).or_insert_with_key(role)
                        });
                        if let Some(role) = role {
                            replace_access(context, function, instruction, role);
                        } else if rust_channels::is_hidden(instruction, &mut hidden) {
                            context.hidden.insert(instruction);
                        }
                    }
                    Opcode::LLVMCall | Opcode::LLVMInvoke => {
                        let Some(callee) = instruction.callee().as_function() else { continue };
                        say_stream_lock(context, function, instruction, callee);
                        tell_writes(context, function, instruction, callee);
                        let make = || detour(context, callee);
                        let detour = *detours.entry(callee).or_insert_with(make);
                        if detour.is_none() && rust_channels::is_watched(callee) {
                            let site = context.site(instruction, function);
                            context.builder.place_before(instruction);
                            context.hook(Hook::RustPlace, &[site]);
                        }
                        if let Some(detour) = detour {
                            let site = context.site(instruction, function);
                            context.builder.place_before(instruction);
                            context.hook(Hook::RustPlace, &[site]);
                            instruction.set_operand(instruction.operand_count() - 1, detour);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Where functions are that come compiled and change what they are given: vectors that grow, and the like.
const CHANGES: &str = "alloc::";

/// Says what a compiled function of the library may have written: what it was given by reference. (What it
/// copies is seen, as every copy of memory is.)
fn tell_writes(context: &mut ModuleContext, function: Value, call: Value, callee: Value) {
    if !callee.is_declaration() || !path(&callee.name()).is_some_and(|p| p.starts_with(CHANGES)) {
        return;
    }
    let written = callee.written_parameters();
    if written.is_empty() {
        return;
    }
    let site = context.site(call, function);
    let after = match call.opcode() {
        Opcode::LLVMInvoke => Some(call.after_invoke()),
        _ => call.next(),
    };
    let Some(after) = after else { return };
    for (parameter, size) in written {
        context.builder.place_before(after);
        let size = context.module.constant64(size);
        let arguments = [call.operand(parameter), size, site];
        context.hook(Hook::WriteRange, &arguments);
    }
}

/// Functions that take the lock of a standard stream, which only the compiled library sees.
const STREAM_LOCKS: &[&str] = &[
    "std::io::stdio::Stdin::lock",
    "std::io::stdio::Stdout::lock",
    "std::io::stdio::Stderr::lock",
];

/// Says that the program takes the lock of a stream, which is not seen.
fn say_stream_lock(context: &mut ModuleContext, function: Value, call: Value, callee: Value) {
    if !callee.is_declaration() {
        return;
    }
    let Some(path) = path(&callee.name()).filter(|path| STREAM_LOCKS.contains(&path.as_str()))
    else {
        return;
    };
    let site = context.site(call, function);
    let text = context.string(&path);
    context.builder.place_before(call);
    let what = context.module.constant32(Unseen::Call as u32);
    context.hook(Hook::Unseen, &[what, text, site]);
}

fn role_of(symbol: &str) -> Option<Role> {
    let path = path(symbol)?;
    ROLES.iter().find(|(function, _)| *function == path).map(|(_, role)| *role)
}

/// The function to call instead of the callee.
fn detour(context: &ModuleContext, callee: Value) -> Option<Value> {
    let symbol = callee.name();
    let path = path(&symbol)?;
    let (_, hook) = DETOURS.iter().find(|(function, _)| *function == path)?;
    Some(context.module.add_detour(&format!("{hook}_detour"), callee, hook))
}

/// How wide the word of a lock is.
fn width(role: Role) -> u32 {
    match role {
        Role::Acquire(flags) | Role::Release(flags) if flags & BYTE != 0 => 8,
        _ => 32,
    }
}

fn replace_access(context: &mut ModuleContext, function: Value, access: Value, role: Role) {
    let site = context.site(access, function);
    let constants = context.module;
    let opcode = access.opcode();
    if opcode == Opcode::LLVMFence {
        return;
    }
    if opcode == Opcode::LLVMLoad {
        let word = access.operand(0);
        match role {
            Role::Acquire(_) => access.replace_by(constants.null_of(access.ty())),
            Role::Panicking if access.ty() == constants.int64 => {
                access.replace_by(constants.constant64(1));
            }
            Role::AwaitScope if access.ty() == constants.int64 => {
                context.builder.place_before(access);
                let left = context.hook(Hook::RustScopeWait, &[word, site]);
                access.replace_by(left);
            }
            _ => {}
        }
        return;
    }
    // A store has the word behind what it stores.
    let is_store = opcode == Opcode::LLVMStore;
    let (word, given) = match is_store {
        true => (access.operand(1), access.operand(0)),
        false => (access.operand(0), access.operand(1)),
    };
    let ty = given.ty();
    if ty.scalar_width() != Some(width(role)) {
        return;
    }
    context.builder.place_before(access);
    let wide = |context: &ModuleContext, value: Value| {
        context.builder.integer_cast(value, constants.int32, false)
    };
    match (opcode, role) {
        (Opcode::LLVMAtomicCmpXchg, Role::Acquire(flags)) => {
            let (expected, desired) = (wide(context, given), wide(context, access.operand(2)));
            let arguments = [word, expected, desired, constants.constant32(flags), site];
            let old = context.hook(Hook::RustAcquire, &arguments);
            exchanged(context, access, old, given);
        }
        (Opcode::LLVMAtomicCmpXchg, Role::Release(flags)) => {
            let desired = wide(context, access.operand(2));
            let arguments = [word, desired, constants.constant32(flags), site];
            let old = context.hook(Hook::RustRelease, &arguments);
            exchanged(context, access, old, given);
        }
        (Opcode::LLVMAtomicRMW, Role::Release(flags)) => {
            let subtracts = access.rmw_kind() == RmwKind::Sub;
            let flags = if subtracts { flags | SUBTRACT } else { flags };
            let arguments = [word, wide(context, given), constants.constant32(flags), site];
            let old = context.hook(Hook::RustRelease, &arguments);
            access.replace_by(context.builder.integer_cast(old, ty, false));
        }
        (Opcode::LLVMStore, Role::Release(flags)) => {
            let arguments = [word, wide(context, given), constants.constant32(flags), site];
            context.hook(Hook::RustRelease, &arguments);
            access.remove();
        }
        (Opcode::LLVMAtomicRMW, Role::Unpark) => {
            let arguments = [word, given, site];
            access.replace_by(context.hook(Hook::RustUnpark, &arguments));
        }
        _ => {}
    }
}

/// Puts what the word was, and whether that was expected, into the place of a compare-and-swap.
fn exchanged(context: &ModuleContext, access: Value, old: Value, expected: Value) {
    let old = context.builder.integer_cast(old, expected.ty(), false);
    let success = context.builder.equal(old, expected);
    let nothing = context.module.null_of(access.ty());
    let result = context.builder.insert(nothing, old, 0);
    access.replace_by(context.builder.insert(result, success, 1));
}
