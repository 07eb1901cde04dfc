//! The LLVM pass plugin behind `foretell cc` and `foretell c++`.
//!
//! It makes a program report what it does to foretell's runtime: every access of memory that
//! another thread could see, with the value; every branch that depends on such a read, with its
//! condition as a symbolic expression; assertions; calls and returns. Crate `foretell-abi` is the
//! contract. The expressions are shadows in the SSA graph, in the manner of SymCC (Poeplau and
//! Francillon, "Symbolic execution with SymCC", USENIX Security 2020): computed beside the values,
//! skipped at run time where all operands are concrete.
//!
//! The pass runs last in the optimiser, so it sees what will be executed; accesses that the
//! optimiser removed are not there to be scheduled either, unless it is told to keep them (`as_written`).
//!
//! Guaranteed: a value without a shadow depends on no reported read, or a pin was reported that
//! says on which value it relied. Can be missed: accesses in inline assembly and in functions that
//! were not compiled with the plugin.
//!
//! | module | idea |
//! |---|---|
//! | `llvm` | handles for LLVM's C interface |
//! | `as_written` | what keeps the optimiser from removing accesses |
//! | `locals` | stack variables that no one else can see |
//! | `symbolic` | which values can have a shadow at all |
//! | `awaits` | loops that wait |
//! | `pins`, `dominance` | where they cannot, because they must be what they were |
//! | `library`, `effects` | what is known of functions of the C library |
//! | `rust`, `rust_channels`, `rust_names` | what is known of Rust's standard library |
//! | `varying`, `clocks` | what differs from run to run, and what depends on the time |
//! | `append` | accesses that are recorded without a call |
//! | `module` | a module: sites, names of globals, registration |
//! | `function` | a function: entry, exit, the walk over its instructions |
//! | `memory`, `expression`, `control`, `call` | the kinds of instructions |

mod append;
mod as_written;
mod awaits;
mod call;
mod clocks;
mod control;
mod division;
mod dominance;
mod effects;
mod expression;
mod function;
mod handlers;
mod library;
mod llvm;
mod locals;
mod memory;
mod module;
mod pins;
mod polled;
mod rust;
mod rust_channels;
mod rust_names;
mod symbolic;
mod varying;

use llvm_sys::prelude::{LLVMBool, LLVMModuleRef, LLVMValueRef};
use std::ffi::{c_char, c_void};

/// LLVM's `PassPluginLibraryInfo`.
#[repr(C)]
pub struct PluginInfo {
    api_version: u32,
    name: *const c_char,
    version: *const c_char,
    register: *const c_void,
    before_code_generation: *const c_void,
}

unsafe extern "C" {
    fn foretell_plugin_info() -> PluginInfo;
}

/// The symbol that LLVM looks for in a plugin.
#[unsafe(no_mangle)]
pub extern "C" fn llvmGetPassPluginInfo() -> PluginInfo {
    unsafe { foretell_plugin_info() }
}

/// Called by the shim for each module that is compiled, before it is optimised.
///
/// # Safety
/// LLVM calls it with a module that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foretell_prepare_module(module: LLVMModuleRef) {
    let module = unsafe { llvm::Module::new(module) };
    rust::prepare(module);
    polled::keep_whole(module.functions().into_iter());
    if as_written::wanted() {
        module::defined(&module).for_each(as_written::keep);
    }
}

/// Called by the shim for each function while it is optimised; gives whether it changed the function.
///
/// # Safety
/// LLVM calls it with a function with a body that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foretell_simplify_function(function: LLVMValueRef) -> LLVMBool {
    let changed = as_written::wanted() && as_written::release_locals(llvm::Value(function));
    changed.into()
}

/// Called by the shim for each module that is compiled, when it is optimised.
///
/// # Safety
/// LLVM calls it with a module that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foretell_instrument_module(module: LLVMModuleRef) {
    let module = unsafe { llvm::Module::new(module) };
    module::defined(&module).for_each(as_written::release_all);
    module::instrument(module, module::Mode::from_environment());
}
