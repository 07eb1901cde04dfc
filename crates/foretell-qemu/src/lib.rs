//! A plugin for QEMU's user mode: the counterpart of `foretell-runtime` for programs that nobody
//! recompiled, on x86-64, AArch64 and 32-bit ARM.
//!
//! QEMU translates the program block by block and asks us what to insert. The program's own code
//! reports its `accesses`; `calls` of the C library's synchronisation are recognised where its
//! `modules` have them, modelled by the `scheduler` and never executed; `system` calls that may block
//! let other threads run. What happens is written to the same `ring` that the runtime writes to, and
//! schedules come from there, so that everything outside the program is the same.
//!
//! Invariants: only the thread that has the turn executes code of the program; a thread that waits in
//! the middle of translated code has told QEMU so (`api::away`); nothing waits inside an atomic
//! instruction; what is not seen is said in the recording.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("foretell-qemu knows QEMU on Linux on x86-64 only");

mod accesses;
mod api;
mod branches;
mod calls;
mod cpu;
mod debugger;
mod futexes;
mod heap;
mod instructions;
mod modules;
mod objects;
mod policy;
mod ring;
mod scheduler;
mod shadow;
mod signatures;
mod standing;
mod system;
mod terms;
mod thread;
mod translate;

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use foretell_wire::limits::MOST_THREADS_OF_BINARY;
use foretell_wire::{CONTRACT, parse_turns};

use api::{Id, Info, api};
use calls::follow::Followed;
use cpu::Machine;
use policy::Policy;
use ring::Ring;
use thread::Thread;

/// The version of QEMU's plugin interface.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = 1;

/// By this the recorder sees that both are of one build.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static foretell_contract: u64 = CONTRACT;

/// The thread of each virtual CPU.
static THREADS: [AtomicPtr<Thread>; MOST_THREADS_OF_BINARY] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST_THREADS_OF_BINARY];

thread_local! {
    /// The thread of the program that this thread of QEMU's runs.
    static CURRENT: Cell<*mut Thread> = const { Cell::new(std::ptr::null_mut()) };
}

/// The thread of the virtual CPU, which calls.
#[inline(always)]
fn thread_of(cpu: c_uint) -> &'static mut Thread {
    // SAFETY: set before the CPU runs; threads are never freed, and a CPU runs on one thread.
    unsafe { &mut *THREADS[cpu as usize % MOST_THREADS_OF_BINARY].load(Relaxed) }
}

/// The thread that calls, if it has been seen.
fn current() -> Option<&'static mut Thread> {
    // SAFETY: threads are never freed, and this is the caller's own.
    unsafe { CURRENT.get().as_mut() }
}

fn set_current(thread: &mut Thread) {
    CURRENT.set(thread);
}

/// What the recorder asks for.
#[derive(Default)]
struct Wishes {
    ring: Option<i32>,
    policy: String,
    points: Option<u64>,
    follows: Followed,
}

/// QEMU loads the plugin.
///
/// # Safety
/// QEMU's to call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    count: c_int,
    words: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU gives strings that end in NUL.
    let target = unsafe { CStr::from_ptr((*info).target) }.to_bytes();
    // SAFETY: as above.
    let words = (0..count as usize).map(|i| unsafe { CStr::from_ptr(*words.add(i)) });
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    match install(id, target, &words) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("foretell: {why}");
            1
        }
    }
}

fn install(id: Id, target: &[u8], words: &[String]) -> Result<(), String> {
    let machine = Machine::from_name(target).ok_or("this QEMU is for another architecture")?;
    let missing = |name: String| {
        format!(
            "this QEMU does not export `{name}`, without which a binary cannot be controlled; install \
             Debian's qemu-user 7.2"
        )
    };
    api::load().map_err(|name| missing(name.into()))?;
    cpu::set(machine).map_err(missing)?;
    let mut wishes = Wishes::default();
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse().map_err(|_| format!("`{word}` has no number"));
        match name {
            "ring" => wishes.ring = Some(number()? as i32),
            "policy" => value.clone_into(&mut wishes.policy),
            "branches" => branches::turn_on(),
            "terms" => terms::turn_on()?,
            "points" => wishes.points = Some(number()?),
            "follow" => wishes.follows = Followed::read(value.as_ref())?,
            "debugged" => debugger::turn_on(),
            "library" => modules::add_archive(value.into()),
            _ => return Err(format!("the plugin has no option `{name}`")),
        }
    }
    let (ring, behind) = Ring::attach(wishes.ring.ok_or("the plugin was given no ring")?)?;
    let turns = parse_turns(&behind).map_err(|line| format!("line {line} of the schedule"))?;
    let policy = Policy::new(turns, &wishes.policy)
        .ok_or_else(|| format!("`{}` is no policy", wishes.policy))?;
    scheduler::install(ring, policy, wishes.follows, wishes.points.unwrap_or(u64::MAX));
    let api = api();
    (api.qemu_plugin_register_vcpu_init_cb)(id, on_cpu);
    (api.qemu_plugin_register_vcpu_exit_cb)(id, futexes::on_end);
    (api.qemu_plugin_register_vcpu_tb_trans_cb)(id, translate::on_translation);
    (api.qemu_plugin_register_vcpu_syscall_cb)(id, system::on_call);
    (api.qemu_plugin_register_vcpu_syscall_ret_cb)(id, system::on_return);
    (api.qemu_plugin_register_flush_cb)(id, on_flush);
    // SAFETY: the function is never unloaded.
    unsafe { pthread_atfork(None, None, Some(in_child)) };
    Ok(())
}

unsafe extern "C" {
    fn pthread_atfork(
        before: Option<extern "C" fn()>,
        in_parent: Option<extern "C" fn()>,
        in_child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// A virtual CPU comes into being, in the system call of the thread that creates it.
extern "C" fn on_cpu(_id: Id, number: c_uint) {
    if number as usize >= MOST_THREADS_OF_BINARY {
        let why = "the program has more than 4096 threads";
        scheduler::stop(foretell_wire::End::Refused, &why.into());
    }
    let cpu = (api().qemu_get_cpu)(number as c_int);
    let parent = current();
    let is_main = parent.is_none();
    if !is_main && scheduler::scheduler().created() == 1 {
        calls::before_second_thread();
    }
    let thread = scheduler::create(parent, cpu);
    THREADS[number as usize].store(thread, SeqCst);
    if is_main {
        CURRENT.set(thread);
    }
}

extern "C" fn on_flush(_id: Id) {
    scheduler::FLUSHES.fetch_add(1, SeqCst);
}

/// The process was forked, and this is the child.
extern "C" fn in_child() {
    if let Some(me) = current() {
        scheduler::after_fork(me);
    }
}
