//! Accesses of the program's own code, which QEMU reports right after each.
//!
//! A thread's own stack is not recorded below the lowest address that others may know: an address of
//! it that was stored elsewhere or given to a new thread. Where another thread comes to it all the
//! same, that is said, and recorded from there on. Constants are not recorded either.

use std::cell::Cell;
use std::ffi::c_uint;
use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use foretell_abi::Order;
use foretell_wire::{Kind, access as detail};

use crate::api::{IS_BOTH, Pointer, is_store, size_shift};
use crate::calls;
use crate::cpu::{Machine, machine, peek, return_address, stack_pointer};
use crate::debugger;
use crate::instructions::Class;
use crate::modules::{self, Origin};
use crate::scheduler::{self, scheduler};
use crate::shadow::PAGE;
use crate::terms;
use crate::thread::Thread;
use crate::thread_of;

/// An instruction of the program.
pub struct Instruction {
    /// The address after it: what it did is told like a call that returns there.
    pub place: u64,
    /// What its accesses are.
    pub class: Class,
    /// The C library executes it, too, for itself.
    pub shared: bool,
    /// The recorder knows the place.
    pub met: Cell<bool>,
}

/// Changes whenever it may have changed what of a page is recorded. Whoever has the turn writes it.
static EPOCH: AtomicU32 = AtomicU32::new(1);

/// What of which page is recorded has to be looked up again.
pub fn look_again() {
    EPOCH.fetch_add(1, Relaxed);
}

/// What a thread has done of an atomic access so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// Nothing.
    None,
    /// It read this, which may be all.
    Read { place: u64, address: u64, size: u8, value: u64 },
}

const SEQUENTIAL: u8 = Order::SequentiallyConsistent as u8;

/// An instruction accessed memory.
pub extern "C" fn on_access(cpu: c_uint, what: u32, address: u64, data: Pointer) {
    let me = thread_of(cpu);
    // SAFETY: instructions are never freed.
    let instruction = unsafe { &*data.cast::<Instruction>() };
    me.in_code = true;
    if !me.started {
        calls::begin_thread(me);
    }
    let (shift, writes, both) = (size_shift(what), is_store(what), what & IS_BOTH == IS_BOTH);
    if me.terms.is_some() {
        let size = 1 << shift;
        match instruction.class {
            Class::Plain | Class::Ordered => {
                terms::before_access(me, instruction.place, address, size, writes);
            }
            Class::Atomic if both && size <= 8 && is_all_recorded(address) => {
                settle(me);
                let old = scheduler().shadow.value(address, size);
                terms::before_exchange(me, instruction.place, address, size, old);
            }
            _ => terms::before_atomic(me, instruction.place),
        }
    }
    // In such a function nothing changes the register with the place that it returns to.
    if instruction.shared
        && modules::origin(return_address(me.cpu).wrapping_sub(1)) == Origin::CLibrary
    {
        if both {
            unseen(me, address, shift, false);
        }
        return unseen(me, address, shift, writes);
    }
    if instruction.class == Class::Plain && me.pending == Pending::None && is_own(me, address) {
        return unseen(me, address, shift, writes);
    }
    if !instruction.met.replace(true) {
        scheduler::meet(scheduler(), instruction.place);
    }
    for part in 0..1u64 << shift.saturating_sub(3) {
        let size = 1 << shift.min(3);
        accessed(me, instruction, address + 8 * part, size, writes, both);
    }
    if me.index >= me.pause_at {
        match instruction.class.is_atomic() || debugger::is_on() {
            true => me.owes_pause = true,
            false if me.pending == Pending::None => scheduler::pause(me),
            false => {}
        }
    }
}

/// An access to memory that nobody else knows: not recorded, but what it holds may be computed from what is.
fn unseen(me: &mut Thread, address: u64, shift: u32, writes: bool) {
    if me.terms.is_none() {
        return;
    }
    for part in 0..1u64 << shift.saturating_sub(3) {
        let (at, size) = (address + 8 * part, 1 << shift.min(3));
        terms::unrecorded(me, at, size, peek(at, size), writes);
    }
}

/// The instruction before this one was atomic.
pub extern "C" fn after_atomic(cpu: c_uint, _data: Pointer) {
    let me = thread_of(cpu);
    if me.owes_pause && me.pending == Pending::None {
        me.in_code = true;
        scheduler::pause(me);
    }
}

fn accessed(
    me: &mut Thread,
    instruction: &Instruction,
    address: u64,
    size: u8,
    writes: bool,
    both: bool,
) {
    let &Instruction { place, class, .. } = instruction;
    let value = peek(address, size);
    match class {
        Class::Plain => {
            settle(me);
            touch(me, place, 0, address, size, value, writes);
        }
        Class::Ordered => {
            settle(me);
            touch(me, place, SEQUENTIAL, address, size, value, writes);
        }
        // Before there is a second thread, and where it is one instruction: a read, then a write.
        Class::Atomic | Class::CompareExchange if both => {
            settle(me);
            let old = scheduler().shadow.value(address, size);
            exchanged(me, class, place, address, size, old, value);
        }
        Class::Atomic | Class::CompareExchange | Class::LoadLinked if !writes => {
            settle(me);
            me.pending = Pending::Read { place, address, size, value };
        }
        // It looks once more before it writes.
        Class::StoreConditional if !writes => {}
        Class::LoadLinked => {
            settle(me);
            touch(me, place, SEQUENTIAL, address, size, value, true);
        }
        Class::Atomic | Class::CompareExchange | Class::StoreConditional => {
            let read = std::mem::replace(&mut me.pending, Pending::None);
            let old = match read {
                Pending::Read { address: at, size: read, value, .. }
                    if (at, read) == (address, size) =>
                {
                    Some(value)
                }
                _ => scheduler().shadow.value(address, size),
            };
            exchanged(me, class, place, address, size, old, value);
        }
    }
}

/// What was begun as an atomic access was only a read.
pub fn settle(me: &mut Thread) {
    if let Pending::Read { place, address, size, value } = me.pending {
        me.pending = Pending::None;
        let aside = terms::aside(me);
        touch(me, place, SEQUENTIAL, address, size, value, false);
        terms::back(me, aside);
    }
}

/// An atomic access was made: from `old`, where that is known, to `new`.
fn exchanged(
    me: &mut Thread,
    class: Class,
    place: u64,
    address: u64,
    size: u8,
    old: Option<u64>,
    new: u64,
) {
    // With what it would have written instead, it is not only a read.
    let is_read = class == Class::CompareExchange && old == Some(new) && me.terms.is_none();
    if is_read || old.is_none() {
        if old.is_none() {
            scheduler().gap_once(
                "what an atomic operation replaced, where the C library had written it: it counts as \
                 a write",
            );
        }
        return touch(me, place, SEQUENTIAL, address, size, new, !is_read);
    }
    if is_private(me, address) {
        terms::unrecorded(me, address, size, new, false);
        return terms::unrecorded(me, address, size, new, true);
    }
    scheduler().shadow.see(address, size, new);
    if me.stack.contains(&new) {
        escape(me, address, new);
    }
    let (index, old) = (me.index, old.unwrap_or(new));
    let words = [address, old, new, terms::of_exchange(me, address, size, old, new)];
    scheduler::event(me, Kind::ReadModifyWrite, detail::detail(size, SEQUENTIAL), place, &words);
    terms::exchanged(me, index, address, size, old);
}

/// Records a read or a write, unless it is of what nobody else sees. The recorder knows the place.
#[inline]
pub fn touch(
    me: &mut Thread,
    place: u64,
    order: u8,
    address: u64,
    size: u8,
    value: u64,
    writes: bool,
) {
    if !is_all_recorded(address) && (is_private(me, address) || modules::is_constant(address)) {
        return terms::unrecorded(me, address, size, value, writes);
    }
    scheduler().shadow.see(address, size, value);
    if writes && me.stack.contains(&value) {
        escape(me, address, value);
    }
    let kind = if writes { Kind::Write } else { Kind::Read };
    let detail = detail::detail(size, order);
    if me.terms.is_none() {
        return scheduler::access(me, kind, detail, place, address, value);
    }
    let index = me.index;
    match terms::of_access(me, address, value) {
        0 => scheduler::access(me, kind, detail, place, address, value),
        names => scheduler::access_with(me, writes, detail, place, address, value, names),
    }
    terms::recorded(me, index, address, size, value, writes);
}

/// Whether everything in the page of the address is recorded, whoever accesses it.
#[inline(always)]
fn is_all_recorded(address: u64) -> bool {
    let epoch = EPOCH.load(Relaxed);
    let page = scheduler().shadow.page(address / PAGE);
    if page.looked.0 != epoch {
        page.looked = (epoch, look(address & !(PAGE - 1)));
    }
    page.looked.1
}

/// See [`is_all_recorded`], for the page that begins here.
#[cold]
fn look(page: u64) -> bool {
    let meets = |range: &Range<u64>| range.start < page + PAGE && page < range.end;
    // SAFETY: live threads, and their state belongs to us.
    let stacks = scheduler().threads.iter().map(|&thread| unsafe { &(*thread).stack });
    !modules::has_constants(page..page + PAGE) && !stacks.into_iter().any(meets)
}

/// Whether the address is of the thread's own stack, and nobody else knows it.
#[inline(always)]
fn is_own(me: &Thread, address: u64) -> bool {
    me.stack.contains(&address) && address < me.open_from
}

/// As [`is_own`]. Opens another thread's stack.
fn is_private(me: &Thread, address: u64) -> bool {
    if me.stack.contains(&address) {
        return address < me.open_from;
    }
    for &other in &scheduler().threads {
        // SAFETY: live threads, and their state belongs to us.
        let other = unsafe { &mut *other };
        if other.stack.contains(&address) && address < other.open_from {
            open(other, address);
            scheduler().gap_once(
                "accesses of a thread to its own stack before another thread came to the same memory",
            );
        }
    }
    false
}

/// A thread may let others know an address of its stack by writing this value there.
fn escape(me: &mut Thread, address: u64, value: u64) {
    /// What the address is of may begin before it.
    const AROUND: u64 = 1 << 10;
    if !is_own(me, address) && may_be_used(me, value) {
        open(me, value & !(AROUND - 1));
    }
}

/// Whether a thread may have something at this address of its stack. Among the values of 32 bits are many that only
/// look like addresses: the upper half of 1.0 is one of a main thread's stack. What is a distance below the
/// stack pointer is none. (The stack pointer is that of the begin of the block.)
fn may_be_used(me: &Thread, value: u64) -> bool {
    const FRAME: u64 = 1 << 16;
    machine() != Machine::Arm || value >= stack_pointer(me.cpu).saturating_sub(FRAME)
}

/// From this address on the stack is recorded.
pub fn open(thread: &mut Thread, from: u64) {
    let from = from.max(thread.stack.start);
    if from < thread.open_from {
        // SAFETY: a part of the thread's stack.
        let bytes = unsafe {
            let begin = (from + crate::cpu::guest_base()) as *const u8;
            std::slice::from_raw_parts(begin, (thread.open_from - from) as usize)
        };
        scheduler().shadow.see_bytes(from, bytes);
        terms::opened(thread, from..thread.open_from);
        thread.open_from = from;
    }
}
