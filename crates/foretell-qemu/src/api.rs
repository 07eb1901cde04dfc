//! QEMU as the plugin sees it: version 1 of its plugin interface, and the functions beside it that
//! Debian's `qemu-user` exports. All are looked up by name when the plugin is loaded, so that one that
//! is not there is said by its name.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};

/// Something of QEMU's.
pub type Pointer = *mut c_void;
/// The plugin's number.
pub type Id = u64;
/// A callback of an access: virtual CPU, what it is, address, and what was given.
pub type OnAccess = extern "C" fn(c_uint, u32, u64, Pointer);
/// A callback of an execution: virtual CPU and what was given.
pub type OnExecution = extern "C" fn(c_uint, Pointer);
/// A callback of a virtual CPU's begin or end.
pub type OnCpu = extern "C" fn(Id, c_uint);
/// A callback before a system call.
pub type OnSystemCall = extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
/// A callback after a system call.
pub type OnSystemReturn = extern "C" fn(Id, c_uint, i64, i64);

/// The begin of what QEMU tells a plugin about itself.
#[repr(C)]
pub struct Info {
    /// The architecture of the program.
    pub target: *const c_char,
}

/// The begin of glib's `GByteArray`.
#[repr(C)]
pub struct Bytes {
    /// Its content.
    pub data: *mut u8,
    /// How much of it.
    pub length: c_uint,
}

/// QEMU's `rcu_reader_data`.
#[repr(C)]
pub struct RcuReader {
    counter: AtomicU64,
    waiting: AtomicBool,
}

macro_rules! functions {
    ($($name:ident: $type:ty;)*) => {
        /// The functions and variables of QEMU that are used.
        pub struct Api {
            $(pub $name: $type,)*
        }

        impl Api {
            /// Looks them up; the error is a name that is missing.
            fn load() -> Result<Api, &'static str> {
                Ok(Api {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        // SAFETY: the name ends in NUL; the types are those of QEMU's headers.
                        unsafe {
                            let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr().cast());
                            if found.is_null() {
                                return Err(stringify!($name));
                            }
                            std::mem::transmute_copy::<Pointer, $type>(&found)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    qemu_plugin_register_vcpu_tb_trans_cb: extern "C" fn(Id, extern "C" fn(Id, Pointer));
    qemu_plugin_register_flush_cb: extern "C" fn(Id, extern "C" fn(Id));
    qemu_plugin_register_vcpu_init_cb: extern "C" fn(Id, OnCpu);
    qemu_plugin_register_vcpu_exit_cb: extern "C" fn(Id, OnCpu);
    qemu_plugin_register_vcpu_syscall_cb: extern "C" fn(Id, OnSystemCall);
    qemu_plugin_register_vcpu_syscall_ret_cb: extern "C" fn(Id, OnSystemReturn);
    qemu_plugin_register_vcpu_mem_cb: extern "C" fn(Pointer, OnAccess, c_int, c_int, Pointer);
    qemu_plugin_register_vcpu_insn_exec_cb: extern "C" fn(Pointer, OnExecution, c_int, Pointer);
    qemu_plugin_register_vcpu_tb_exec_cb: extern "C" fn(Pointer, OnExecution, c_int, Pointer);
    qemu_plugin_tb_n_insns: extern "C" fn(Pointer) -> usize;
    qemu_plugin_tb_get_insn: extern "C" fn(Pointer, usize) -> Pointer;
    qemu_plugin_insn_vaddr: extern "C" fn(Pointer) -> u64;
    qemu_plugin_insn_size: extern "C" fn(Pointer) -> usize;
    qemu_plugin_insn_data: extern "C" fn(Pointer) -> *const u8;
    qemu_plugin_mem_size_shift: extern "C" fn(u32) -> c_uint;
    qemu_plugin_mem_is_store: extern "C" fn(u32) -> bool;
    qemu_plugin_entry_code: extern "C" fn() -> u64;
    qemu_plugin_path_to_binary: extern "C" fn() -> *const c_char;
    guest_base: *const usize;
    qemu_get_cpu: extern "C" fn(c_int) -> Pointer;
    cpu_exec_start: extern "C" fn(Pointer);
    cpu_exec_end: extern "C" fn(Pointer);
    cpu_loop_exit_noexc: unsafe extern "C" fn(Pointer) -> !;
    get_ptr_rcu_reader: extern "C" fn() -> *const RcuReader;
    rcu_gp_ctr: *const AtomicU64;
    rcu_gp_event: Pointer;
    qemu_event_set: extern "C" fn(Pointer);
    g_byte_array_new: extern "C" fn() -> *mut Bytes;
    g_byte_array_set_size: extern "C" fn(*mut Bytes, c_uint) -> *mut Bytes;
}

// SAFETY: addresses of code and of variables that live as long as the process.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

static API: OnceLock<Api> = OnceLock::new();

/// Looks QEMU's functions up; the error is the name of one that is missing.
pub fn load() -> Result<(), &'static str> {
    let found = Api::load()?;
    for what in (0..5).flat_map(|size| (1..4).map(move |kind| size << 4 | kind << 16)) {
        if (found.qemu_plugin_mem_size_shift)(what) != size_shift(what) {
            return Err("qemu_plugin_mem_size_shift of version 7.2");
        }
        if (found.qemu_plugin_mem_is_store)(what) != is_store(what) {
            return Err("qemu_plugin_mem_is_store of version 7.2");
        }
    }
    let _ = API.set(found); // a plugin is loaded once
    Ok(())
}

/// QEMU's functions. Only after [`load`].
#[inline(always)]
pub fn api() -> &'static Api {
    API.get().expect("the plugin was installed")
}

/// A function that only the QEMU of one architecture has.
pub fn lookup(name: &CStr) -> Option<Pointer> {
    // SAFETY: a name that ends in NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Both kinds of access, for the registration of callbacks.
pub const READ_AND_WRITE: c_int = 3;
/// In what an access is: it reads and writes at once.
pub const IS_BOTH: u32 = 3 << 16;

/// How many bytes an access has, as a power of two. QEMU's own function for this costs a call each time;
/// [`load`] makes sure that it says the same.
#[inline(always)]
pub fn size_shift(what: u32) -> u32 {
    what >> 4 & 7
}

/// Whether an access writes; as [`size_shift`].
#[inline(always)]
pub fn is_store(what: u32) -> bool {
    what & 2 << 16 != 0
}

/// Waits inside a callback of code. For QEMU the thread is as one that has left the emulation
/// meanwhile: else its exclusive sections, and its RCU thread, and so every `fork`, would wait for one
/// that waits here.
pub fn away(cpu: Pointer, wait: impl FnOnce()) {
    let api = api();
    // SAFETY: the calling thread's own reader; what follows is QEMU's `rcu_read_unlock` and
    // `rcu_read_lock`.
    let reader = unsafe { &*(api.get_ptr_rcu_reader)() };
    reader.counter.store(0, Release);
    fence(SeqCst);
    if reader.waiting.swap(false, SeqCst) {
        (api.qemu_event_set)(api.rcu_gp_event);
    }
    (api.cpu_exec_end)(cpu);
    wait();
    (api.cpu_exec_start)(cpu);
    // SAFETY: a variable of QEMU's.
    let period = unsafe { (*api.rcu_gp_ctr).load(Relaxed) };
    reader.counter.store(period, Relaxed);
    fence(SeqCst);
}
