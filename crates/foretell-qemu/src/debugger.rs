//! A debugger looks at the run (`foretell replay --gdb`), by QEMU's own end for it.
//!
//! QEMU throws its translated code away whenever a debugger lets the program go on. So no thread waits inside
//! code then: it waits where a block begins, each of which is one instruction (`-singlestep`), and leaves the
//! block for the same one anew.

use std::ffi::c_uint;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::accesses::Pending;
use crate::api::{Pointer, api};
use crate::calls;
use crate::scheduler;
use crate::thread::Thread;
use crate::thread_of;

static ON: AtomicBool = AtomicBool::new(false);

/// A debugger will look at the run.
pub fn turn_on() {
    ON.store(true, Relaxed);
}

/// Whether a debugger looks at the run.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Stops the calling thread before its next block: by a signal, which QEMU tells a debugger of before it tells
/// the program.
pub fn stop() {
    // SAFETY: a signal to the thread itself, whose handler is QEMU's.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), libc::SIGTRAP) };
}

/// Lets QEMU call us at a block of the program.
pub fn watch(block: Pointer) {
    (api().qemu_plugin_register_vcpu_tb_exec_cb)(block, on_block, 0, std::ptr::null_mut());
}

extern "C" fn on_block(cpu: c_uint, _data: Pointer) {
    let me = thread_of(cpu);
    (me.in_code, me.at_begin) = (true, true);
    if !me.started {
        calls::begin_thread(me);
    }
    if is_on() && me.owes_pause && me.pending == Pending::None {
        scheduler::pause(me);
    }
    leave_old_code(me);
}

/// Where a block begins: if it is no more, because the thread has waited, it is left, and begins again.
pub fn leave_old_code(me: &mut Thread) {
    me.at_begin = false;
    if std::mem::take(&mut me.must_leave) {
        // SAFETY: this is the start of a block, and nothing here needs to be dropped.
        unsafe { (api().cpu_loop_exit_noexc)(me.cpu) }
    }
}
