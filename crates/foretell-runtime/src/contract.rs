//! The hooks are what instrumented code calls: each function has the type that `foretell_abi::hooks!` says.

use std::ffi::c_char;
use std::sync::atomic::{AtomicU32, AtomicU64};

use foretell_abi::{AccessInfo, CallSlots, Described, Met, Module, Site};

use crate::hooks::often::*;
use crate::hooks::*;
use crate::path::*;
use crate::wrappers::rust::*;
use crate::wrappers::rust_channel::*;
use crate::wrappers::rust_scope::*;

macro_rules! compare {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident($($argument:ident: $ty:ty),* $(,)?)
        $(-> $result:ty)?;)*) => {
        $(const _: unsafe extern "C" fn($($ty),*) $(-> $result)? = $symbol;)*
    };
}

foretell_abi::hooks!(compare);
