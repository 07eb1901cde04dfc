//! The functions of the C library that are recognised. Those that synchronise are modelled and return
//! at once, without being executed; others are executed, and what they mean is recorded.

pub mod follow;
mod locks;
mod memory;
mod threads;
mod waits;

use std::ffi::c_uint;

use foretell_wire::Kind;
use foretell_wire::record::{Record, Renew};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

use crate::accesses::{look_again, settle};
use crate::api::{Pointer, api};
use crate::cpu::{self, Machine, machine};
use crate::debugger;
use crate::heap;
use crate::modules::{self, Origin};
use crate::scheduler::{self, scheduler};
use crate::terms;
use crate::thread::Thread;
use crate::{set_current, thread_of};

/// A call of a function that is recognised.
pub struct Call<'t> {
    /// Who calls.
    pub me: &'t mut Thread,
    /// Where it returns to.
    pub place: u64,
    /// Times that it is given have 64 bits though words have 32.
    pub long_times: bool,
}

impl Call<'_> {
    /// An argument, of the first four.
    pub fn argument(&mut self, number: usize) -> u64 {
        terms::hold_argument(self.me, number);
        cpu::argument(self.me.cpu, number)
    }

    /// As [`Call::argument`], of 32 bits.
    pub fn integer(&mut self, number: usize) -> i32 {
        self.argument(number) as i32
    }

    /// Records an event of the call.
    pub fn event(&mut self, kind: Kind, detail: u8, words: &[u64]) {
        terms::flush(self.me);
        scheduler::event(self.me, kind, detail, self.place, words);
    }

    /// Appends an event with its fields.
    pub fn record<const N: usize, R: Record<N>>(&mut self, detail: u8, record: &R) {
        self.event(R::KIND, detail, &record.words());
    }

    /// A scheduling point.
    pub fn point(&mut self) {
        scheduler::point(self.me);
    }
}

/// What becomes of a call.
pub enum Then {
    /// It returns at once with this result.
    Return(i64),
    /// The function is executed.
    Run,
    /// The function is executed, and this is called with what was kept and its result.
    RunAnd(AtReturn, [u64; 2]),
}

/// See [`Then::RunAnd`].
pub type AtReturn = fn(&mut Call<'_>, [u64; 2], u64);

/// A function that is executed and whose return matters.
pub struct Frame {
    back: u64,
    /// The stack pointer then.
    stack: u64,
    at_return: AtReturn,
    kept: [u64; 2],
}

type Handler = fn(&mut Call<'_>) -> Then;

/// All functions that are recognised.
const FUNCTIONS: &[&[(&str, Handler)]] =
    &[locks::FUNCTIONS, waits::FUNCTIONS, threads::FUNCTIONS, memory::FUNCTIONS];

/// Functions that every static program has, as the C library calls them itself.
pub const EVERYWHERE: [&str; 4] = ["pthread_mutex_lock", "pthread_mutex_unlock", "malloc", "free"];

/// Who recognises the first must recognise the second: what one takes, the other gives back.
pub const PAIRS: [(&str, &str); 5] = [
    ("pthread_spin_lock", "pthread_spin_unlock"),
    ("pthread_rwlock_rdlock", "pthread_rwlock_unlock"),
    ("pthread_rwlock_wrlock", "pthread_rwlock_unlock"),
    ("mtx_lock", "mtx_unlock"),
    ("sem_wait", "sem_post"),
];

/// The number of the function with this name, if it is recognised.
pub fn number(name: &str) -> Option<usize> {
    static NUMBERS: OnceLock<FxHashMap<&str, usize>> = OnceLock::new();
    let numbers = NUMBERS.get_or_init(|| {
        FUNCTIONS.iter().flat_map(|part| part.iter()).zip(0..).map(|(f, n)| (f.0, n)).collect()
    });
    numbers.get(name).copied().or_else(|| with_long_times(name, numbers)).or_else(|| {
        // Implementations for a processor: `__memcpy_avx_unaligned`. `memcpy_ifunc` chooses one.
        let plain = name.trim_start_matches('_');
        let is_one = |(begin, end): &(&str, &str)| memory::has_variants(begin) && *end != "ifunc";
        let plain = plain.split_once('_').filter(is_one);
        numbers.get(plain?.0).copied()
    })
}

/// In the number of a function: see [`Call::long_times`].
const LONG_TIMES: usize = 1 << 16;

/// glibc for 32-bit processors has another function for programs whose times have 64 bits:
/// `__sem_timedwait64`, `__clock_nanosleep_time64`.
fn with_long_times(name: &str, numbers: &FxHashMap<&str, usize>) -> Option<usize> {
    let plain = name.strip_prefix("__")?.trim_start_matches('_').strip_suffix("64")?;
    let number = numbers.get(plain.strip_suffix("_time").unwrap_or(plain))?;
    Some(number | LONG_TIMES)
}

fn function(number: usize) -> &'static (&'static str, Handler) {
    let mut all = FUNCTIONS.iter().flat_map(|part| part.iter());
    all.nth(number & !LONG_TIMES).expect("numbers come from `number`")
}

/// Where functions return to whose return matters: where QEMU began, in the loader or in a static
/// program, which is never executed again.
pub fn landing() -> u64 {
    (api().qemu_plugin_entry_code)() & !u64::from(machine() == Machine::Arm)
}

/// A function that is recognised is entered.
pub extern "C" fn on_call(cpu: c_uint, function: Pointer) {
    let me = thread_of(cpu);
    if !me.started {
        return; // the C library for itself
    }
    me.in_code = true;
    if std::mem::take(&mut me.entered) {
        return; // once more, as its code was thrown away
    }
    let place = cpu::return_address(me.cpu) & !u64::from(machine() == Machine::Arm);
    // What returns to the landing is called by a function of the C library, as the last thing that it does.
    if place == landing() || modules::origin(place.wrapping_sub(1)) == Origin::CLibrary {
        // For itself. What it allocates is no event: whoever needs it first allocates it, and a schedule
        // could not be followed.
        if let Some(size) = memory::asked_for(self::function(function as usize).0, me.cpu) {
            let note: AtReturn = |_, [size, _], block| heap::taken_by_others(block, size);
            watch_return(me, note, [size, 0]);
        }
        return;
    }
    me.at_begin = true;
    settle(me);
    if me.owes_pause {
        scheduler::pause(me);
    }
    scheduler::meet(scheduler(), place);
    terms::finish(me, None);
    let long_times = function as usize & LONG_TIMES != 0;
    me.called_at = Some(me.index);
    let then = self::function(function as usize).1(&mut Call { me, place, long_times });
    me.called_at = None;
    terms::leave(me, !matches!(then, Then::Return(_)));
    match then {
        // SAFETY: this is the start of a block, and nothing here needs to be dropped.
        Then::Return(result) => unsafe {
            (me.at_begin, me.must_leave) = (false, false);
            cpu::return_now(me.cpu, result as u64)
        },
        Then::Run => {}
        Then::RunAnd(at_return, kept) => watch_return(me, at_return, kept),
    }
    me.entered = me.must_leave;
    debugger::leave_old_code(me);
}

/// What is not varied in the recording of a binary.
const MACHINE_CODE: &str = "which accesses are atomic in the source, where their instructions do not tell: a race \
     may be between those";

/// The function that the thread has called is executed, and this is called when it returns.
fn watch_return(me: &mut Thread, at_return: AtReturn, kept: [u64; 2]) {
    let (back, stack) = (cpu::return_address(me.cpu), cpu::stack_after_return(me.cpu));
    me.frames.push(Frame { back, stack, at_return, kept });
    cpu::set_return_address(me.cpu, (api().qemu_plugin_entry_code)());
}

/// The program begins.
pub extern "C" fn on_begin(cpu: c_uint, _data: Pointer) {
    let me = thread_of(cpu);
    know_stack(me, cpu::stack_pointer(me.cpu));
    modules::resolve_imports();
    scheduler().ring.restriction(MACHINE_CODE);
}

/// A function returns whose return matters; or the process begins.
pub extern "C" fn on_landing(cpu: c_uint, _data: Pointer) {
    let me = thread_of(cpu);
    me.in_code = true;
    let stack = cpu::stack_pointer(me.cpu);
    // Functions that were left by `longjmp` are below.
    while me.frames.last().is_some_and(|frame| frame.stack < stack) {
        me.frames.pop();
    }
    match me.frames.pop() {
        Some(frame) => {
            let result = cpu::result(me.cpu);
            let (back, place) = (frame.back, frame.back & !u64::from(machine() == Machine::Arm));
            me.at_begin = true;
            (frame.at_return)(&mut Call { me, place, long_times: false }, frame.kept, result);
            (me.at_begin, me.must_leave) = (false, false);
            // SAFETY: this is the start of a block, and nothing here needs to be dropped.
            unsafe { cpu::go_to(me.cpu, back) }
        }
        None if modules::is_entry(landing()) => on_begin(cpu, std::ptr::null_mut()),
        None => {}
    }
}

/// A new thread waits for its first turn.
pub fn begin_thread(me: &mut Thread) {
    set_current(me);
    scheduler::begin(me);
    know_stack(me, cpu::stack_pointer(me.cpu));
    let (begin, size) = (me.stack.start, me.stack.end - me.stack.start);
    if size > 0 {
        scheduler().ring.record(0, 0, &Renew { address: begin, size });
    }
}

/// Finds the stack of the thread, which uses it from this address down.
pub fn know_stack(me: &mut Thread, from: u64) {
    me.stack = modules::stack_around(from).map_or(0..0, |range| range.start..from);
    me.open_from = me.stack.end;
    look_again();
}

/// What atomic operations replace is no longer told from now on, so what they may replace is noted.
pub fn before_second_thread() {
    for range in modules::writable() {
        // SAFETY: the data of the program's own files.
        let bytes = unsafe {
            let begin = (range.start + cpu::guest_base()) as *const u8;
            std::slice::from_raw_parts(begin, (range.end - range.start) as usize)
        };
        scheduler().shadow.see_bytes(range.start, bytes);
    }
}
