//! The channels of Rust's standard library (`mpsc`, which is made of `mpmc`).
//!
//! Their functions are generic, so all of them go through the pass. Each call is told to the runtime when it
//! begins and when it ends: the runtime has the thread wait until the library can do it without waiting, and
//! writes into the trace what it means. What the library itself does with its atomics is therefore left out;
//! the messages, which are plain memory, stay. Channels without room (`sync_channel(0)`) are not told of:
//! they are a mutex and threads that park, and both are known.

use crate::llvm::{self, Builder, Module, Opcode, Value};
use crate::rust::path;
use foretell_abi::{ChannelCall, Hook};
use std::collections::HashMap;

/// By their paths: what the functions do. Those of the counters are given a pointer to the channel's.
const CALLS: &[(&str, ChannelCall)] = &[
    ("std::sync::mpmc::list::Channel::send", ChannelCall::Send),
    ("std::sync::mpmc::list::Channel::recv", ChannelCall::Receive),
    ("std::sync::mpmc::list::Channel::try_recv", ChannelCall::TryReceive),
    ("std::sync::mpmc::array::Channel::send", ChannelCall::Send),
    ("std::sync::mpmc::array::Channel::try_send", ChannelCall::TrySend),
    ("std::sync::mpmc::array::Channel::recv", ChannelCall::Receive),
    ("std::sync::mpmc::array::Channel::try_recv", ChannelCall::TryReceive),
    (ADD_SENDER, ChannelCall::AddSender),
    (DROP_SENDER, ChannelCall::DropSender),
    (DROP_RECEIVER, ChannelCall::DropReceiver),
];
const ADD_SENDER: &str = "std::sync::mpmc::counter::Sender::acquire";
const DROP_SENDER: &str = "std::sync::mpmc::counter::Sender::release";
const DROP_RECEIVER: &str = "std::sync::mpmc::counter::Receiver::release";

/// How the paths of functions begin whose atomic accesses are the library's own business.
const OWN: &[&str] = &[
    "std::sync::mpmc::list::",
    "std::sync::mpmc::array::",
    "std::sync::mpmc::counter::",
    "std::sync::mpmc::waker::SyncWaker::",
];

/// Channels without room.
const ZERO: &str = "std::sync::mpmc::zero::";
/// Channels with a bound.
const BOUNDED: &str = "std::sync::mpmc::array::";

/// What a function of this name does to a channel, and whether that has a bound.
fn call(symbol: &str) -> Option<(&'static str, ChannelCall, bool)> {
    let path = path(symbol)?;
    let (path, call) = CALLS.iter().find(|(function, _)| *function == path)?;
    let full = llvm::demangle(symbol);
    (!full.contains(ZERO)).then(|| (*path, *call, full.contains(BOUNDED)))
}

/// Whether the function tells of itself.
pub fn is_watched(function: Value) -> bool {
    !function.is_declaration() && call(&function.name()).is_some()
}

/// Whether the function is the library's own business.
fn is_own(symbol: &str) -> bool {
    path(symbol).is_some_and(|path| OWN.iter().any(|own| path.starts_with(own)))
        && !llvm::demangle(symbol).contains(ZERO)
}

/// Whether loops of this function that wait never do.
pub fn never_waits(function: Value) -> bool {
    is_own(&function.name())
}

/// Whether an atomic access is the library's own business: it was written there, and not in what the program
/// has destroyed or called there.
pub fn is_hidden(access: Value, known: &mut HashMap<String, bool>) -> bool {
    let is_core = |name: &String| path(name).is_some_and(|path| path.starts_with("core::"));
    let written = access.inlined_functions().find(|name| !is_core(name));
    written.is_some_and(|name| *known.entry(name).or_insert_with_key(|name| is_own(name)))
}

/// Has the functions of channels in a module tell when they begin and end.
pub fn watch(module: Module) {
    for function in module.functions() {
        if function.is_declaration() {
            continue;
        }
        if let Some((path, call, bounded)) = call(&function.name()) {
            tell(&module, function, path, call, bounded);
        }
    }
}

fn tell(module: &Module, function: Value, path: &str, call: ChannelCall, bounded: bool) {
    let parameters = function.parameters();
    let first = usize::from(function.returns_through_parameter());
    let Some(&given) = parameters.get(first) else { return };
    let blocks = function.reachable_blocks();
    let is_alloca = |instruction: &Value| instruction.opcode() == Opcode::LLVMAlloca;
    let start =
        blocks.first().and_then(|entry| entry.instructions().into_iter().find(|i| !is_alloca(i)));
    let Some(start) = start else { return };
    let builder = Builder::new(module);
    builder.place_before(start);
    let counted = [ADD_SENDER, DROP_SENDER, DROP_RECEIVER].contains(&path);
    let channel = if counted { builder.load(module.pointer, given) } else { given };
    // A point in time, if there is one, comes last.
    let limit = match (call, parameters.as_slice()) {
        (ChannelCall::Receive, [.., seconds, nanoseconds])
            if seconds.ty() == module.int64 && nanoseconds.ty() == module.int32 =>
        {
            [*seconds, *nanoseconds]
        }
        _ => [module.constant64(0), module.constant32(ChannelCall::NO_LIMIT)],
    };
    let number = module.constant32(call as u32);
    let begin = module.hook(Hook::RustChannelBegin);
    let bounded = module.constant32(bounded.into());
    builder.call(begin, &[number, channel, bounded, limit[0], limit[1]]);
    let end = module.hook(Hook::RustChannelEnd);
    for block in &blocks {
        let Some(leave) = block.terminator() else { continue };
        if matches!(leave.opcode(), Opcode::LLVMRet | Opcode::LLVMResume) {
            builder.place_before(leave);
            builder.call(end, &[number, channel]);
        }
    }
    function.never_inline();
}
