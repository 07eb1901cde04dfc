//! Thread-local words in the initial-exec model, on stable Rust.
//!
//! A `thread_local!` of a shared library costs a call of `__tls_get_addr` an access. The library is
//! always there when the program starts (linked or preloaded), so its words can lie at a fixed
//! distance from the thread pointer; only assembly can say so on stable Rust.

use core::arch::{asm, global_asm};

use crate::thread::Thread;

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".balign 8",
    ".hidden foretell_current",
    ".globl foretell_current",
    ".type foretell_current, @object",
    ".size foretell_current, 8",
    "foretell_current:",
    ".zero 8",
    ".hidden foretell_caller",
    ".globl foretell_caller",
    ".type foretell_caller, @object",
    ".size foretell_caller, 8",
    "foretell_caller:",
    ".zero 8",
    ".hidden foretell_log",
    ".globl foretell_log",
    ".type foretell_log, @object",
    ".size foretell_log, 8",
    "foretell_log:",
    ".zero 8",
    ".previous",
);

macro_rules! word {
    ($get:ident, $set:ident, $symbol:literal, $type:ty, $doc:literal) => {
        word!($get, $symbol, $type, $doc);

        #[doc = concat!("Sets it: ", $doc)]
        #[inline(always)]
        pub fn $set(value: $type) {
            // SAFETY: writes a word of this thread.
            unsafe {
                asm!(
                    concat!("mov {0}, qword ptr [rip + ", $symbol, "@gottpoff]"),
                    "mov qword ptr fs:[{0}], {1}",
                    out(reg) _,
                    in(reg) value as u64,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
    ($get:ident, $symbol:literal, $type:ty, $doc:literal) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $get() -> $type {
            let value: u64;
            // SAFETY: reads a word of this thread.
            unsafe {
                asm!(
                    concat!("mov {0}, qword ptr [rip + ", $symbol, "@gottpoff]"),
                    "mov {0}, qword ptr fs:[{0}]",
                    out(reg) value,
                    options(nostack, preserves_flags, readonly, pure),
                );
            }
            value as $type
        }
    };
}

word!(
    current,
    set_current,
    "foretell_current",
    *mut Thread,
    "This thread's state; null when the thread is none of ours."
);
word!(
    caller,
    set_caller,
    "foretell_caller",
    u64,
    "The program counter, or the site, that a wrapper was last called from."
);
word!(
    sync_log,
    set_sync_log,
    "foretell_log",
    *mut crate::sync_only::Log,
    "This thread's log of synchronisation; null when there is none."
);
