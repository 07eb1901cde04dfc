//! The hooks of our LLVM pass, as the contract in `foretell-abi` has them.
//!
//! A memory hook runs right after its access: it records the event and then, at its end, lets the
//! scheduler decide; so a turn ends between two events, as everywhere.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use foretell_abi::summaries::{IS_OVER, IS_SYMBOLIC, IS_USED};
use foretell_abi::{
    ABI_VERSION, AccessInfo, BinaryOp, COPY_HELD, COPY_SYMBOLIC, CallSlots, Described, FORMATS,
    LOCAL_DESTINATION, LOCAL_SOURCE, MODULE_RUST, MODULE_SYMBOLIC, Met, Module, Order, PinReason,
    RmwKind, Site, Source, Unseen,
};
use foretell_wire::outside::Cause;
use foretell_wire::record::{self, ReadModifyWrite};
use foretell_wire::{Kind, access, await_mark};
use libc::c_char;

use crate::channels;
use crate::foreign;
use crate::look;
use crate::modules;
use crate::outside;
use crate::recorder::{Recorder, Text, head};
use crate::scheduler;
use crate::shadow;
use crate::spin;
use crate::summaries;
use crate::thread::{EMPTY_SLOTS, Session, built, peek, quickly};
use crate::turn::TurnCell;
use crate::wrappers::blocking::piece;
use crate::wrappers::process::PASS_REPORTS;
use crate::wrappers::{random, signals, time, wide_atomic};

/// How many expressions were concretised, by reason.
static PINS: [AtomicU64; PinReason::COUNT] = [const { AtomicU64::new(0) }; PinReason::COUNT];

/// The slots that functions get while there is no thread of ours: everything is concrete then.
struct NoSlots(std::cell::UnsafeCell<CallSlots>);
// SAFETY: what is written there is never believed: `callee` and `returned_by` name functions of
// other threads at worst, and a shadow that is not ours is only used while a session exists.
unsafe impl Sync for NoSlots {}
static NO_SLOTS: NoSlots = NoSlots(std::cell::UnsafeCell::new(EMPTY_SLOTS));

/// What `unseen` hooks have said: thread, site and text.
static SAID: TurnCell<BTreeSet<(u32, u64, u64)>> = TurnCell::new(BTreeSet::new());

/// The recorder wants no expressions.
static CONCRETE: AtomicBool = AtomicBool::new(false);

/// From now on no read has a shadow, so nothing has.
pub fn leave_expressions_out() {
    CONCRETE.store(true, Relaxed);
}

/// What counts of a read's shadow, for [`CallSlots::shadow_mask`].
pub fn shadow_mask() -> u32 {
    if wanted(true) { u32::MAX } else { 0 }
}

#[inline(always)]
fn wanted(symbolic: bool) -> bool {
    symbolic && !CONCRETE.load(Relaxed)
}

#[inline(always)]
fn detail(info: AccessInfo) -> u8 {
    access::detail(info.size() as u8, info.order_code() as u8)
}

/// Records a read; gives its shadow.
#[inline(always)]
fn note_read<const SITE: bool>(
    session: &mut Session,
    place: u64,
    detail: u8,
    at: u64,
    value: u64,
    to: u32,
) -> u32 {
    let shadow = shadow::of_read(session.me.slots.index);
    let head = head(Kind::Read, detail, place);
    if to == 0 {
        session.me.access::<SITE, 0>(head, at, value, []);
    } else {
        session.me.access::<SITE, 1>(head, at, value, [to.into()]);
    }
    shadow
}

#[inline(always)]
fn note_write<const SITE: bool>(
    session: &mut Session,
    place: u64,
    detail: u8,
    at: u64,
    value: u64,
    shadows: u64,
) {
    if shadows == 0 {
        session.me.access::<SITE, 0>(head(Kind::Write, detail, place), at, value, []);
    } else {
        session.me.access::<SITE, 1>(head(Kind::WriteShadow, detail, place), at, value, [shadows]);
    }
}

/// The expression had to have this value.
fn note_pin(session: &mut Session, place: u64, width: u32, shadow: u32, value: u64) {
    session.me.record(width as u8, place, &record::Pin { shadow, value });
}

/// The hooks that come most often: each first tries to do without a session.
pub(crate) mod often {
    use super::*;

    #[unsafe(no_mangle)]
    #[allow(missing_docs, clippy::missing_safety_doc)] // foretell-abi
    pub unsafe extern "C" fn __foretell_load(
        address: *const u8,
        info: AccessInfo,
        value: u64,
        address_shadow: u32,
        site: *const Site,
        met: *mut Met,
    ) -> u32 {
        let (at, place, detail) = (address as u64, site as u64, detail(info));
        let head = head(Kind::Read, detail, place);
        let note = |recorder: &mut Recorder| match address_shadow {
            0 => recorder.try_again(head, at, value, []),
            shadow => recorder.try_again(head, at, value, [shadow.into()]),
        };
        // SAFETY: the program has read it.
        let shadow = match unsafe { quickly(note) } {
            0 => load_in_session(place, detail, at, value, address_shadow, met),
            shadow => shadow::of_read(shadow - 1),
        };
        if wanted(true) { shadow } else { 0 }
    }

    #[cold]
    #[inline(never)]
    extern "C" fn load_in_session(
        place: u64,
        detail: u8,
        at: u64,
        value: u64,
        to: u32,
        met: *mut Met,
    ) -> u32 {
        let Some(mut session) = Session::begin_hook() else { return 0 };
        let shadow = note_read::<true>(&mut session, place, detail, at, value, to);
        session.recorder().grant(head(Kind::Read, detail, place), to != 0, met);
        session.point();
        shadow
    }

    #[unsafe(no_mangle)]
    #[allow(missing_docs, clippy::missing_safety_doc)] // foretell-abi
    pub unsafe extern "C" fn __foretell_store(
        address: *const u8,
        info: AccessInfo,
        value: u64,
        shadow: u32,
        address_shadow: u32,
        site: *const Site,
        met: *mut Met,
    ) {
        let (at, place, detail) = (address as u64, site as u64, detail(info));
        let shadows = u64::from(shadow) | u64::from(address_shadow) << 32;
        let note = |recorder: &mut Recorder| match shadows {
            0 => recorder.try_again(head(Kind::Write, detail, place), at, value, []),
            _ => recorder.try_again(head(Kind::WriteShadow, detail, place), at, value, [shadows]),
        };
        // SAFETY: the program has written it.
        if unsafe { quickly(note) } == 0 {
            store_in_session(place, detail, at, value, shadows, met);
        }
    }

    #[cold]
    #[inline(never)]
    extern "C" fn store_in_session(
        place: u64,
        detail: u8,
        at: u64,
        value: u64,
        shadows: u64,
        met: *mut Met,
    ) {
        if let Some(mut session) = Session::begin_hook() {
            note_write::<true>(&mut session, place, detail, at, value, shadows);
            let kind = if shadows == 0 { Kind::Write } else { Kind::WriteShadow };
            session.recorder().grant(head(kind, detail, place), shadows != 0, met);
            session.point();
        }
    }

    #[unsafe(no_mangle)]
    #[allow(missing_docs, clippy::missing_safety_doc)] // foretell-abi
    pub unsafe extern "C" fn __foretell_branch(
        shadow: u32,
        outcome: u32,
        site: *const Site,
        met: *mut Met,
    ) {
        let head = head(Kind::Branch, (outcome & 1) as u8, site as u64);
        // SAFETY: the program goes on.
        let noted = unsafe { quickly(|recorder| recorder.try_again(head, 0, shadow.into(), [])) };
        if noted == 0 {
            branch_in_session(head, shadow, met);
        }
    }

    #[cold]
    #[inline(never)]
    extern "C" fn branch_in_session(head: u64, shadow: u32, met: *mut Met) {
        if let Some(mut session) = Session::begin_hook() {
            session.me.access::<true, 0>(head, 0, shadow.into(), []);
            session.recorder().grant(head, false, met);
        }
    }

    #[unsafe(no_mangle)]
    #[allow(missing_docs, clippy::missing_safety_doc)] // foretell-abi
    pub unsafe extern "C" fn __foretell_expr_binary(
        op: u32,
        width: u32,
        left: u32,
        left_value: u64,
        right: u32,
        right_value: u64,
    ) -> u32 {
        built(|| shadow::binary(op, width, left, left_value, right, right_value))
    }

    #[unsafe(no_mangle)]
    #[allow(missing_docs, clippy::missing_safety_doc)] // foretell-abi
    pub unsafe extern "C" fn __foretell_expr_cast(op: u32, from: u32, to: u32, shadow: u32) -> u32 {
        built(|| shadow::cast(op, from, to, shadow))
    }

    #[unsafe(no_mangle)]
    #[allow(missing_docs, clippy::missing_safety_doc)] // foretell-abi
    pub unsafe extern "C" fn __foretell_expr_address(
        op: u32,
        width: u32,
        index: u32,
        scale: u32,
        base: u64,
    ) -> u32 {
        built(|| shadow::address(op, width, index, scale, base))
    }

    #[unsafe(no_mangle)]
    #[allow(missing_docs, clippy::missing_safety_doc)] // foretell-abi
    pub unsafe extern "C" fn __foretell_expr_select(
        width: u32,
        condition: u32,
        condition_value: u32,
        then: u32,
        then_value: u64,
        otherwise: u32,
        otherwise_value: u64,
    ) -> u32 {
        let (then, otherwise) = ((then, then_value), (otherwise, otherwise_value));
        built(|| shadow::select(width, (condition, condition_value), then, otherwise))
    }
}

/// Exports the hooks; each body runs in a session, without one it gives `otherwise`.
macro_rules! hooks {
    ($(fn $name:ident($session:ident $(, $argument:ident : $type:ty)* $(,)?)
        $(-> $result:ty, else $otherwise:expr;)? => $body:block)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(missing_docs, clippy::missing_safety_doc, clippy::too_many_arguments)] // foretell-abi
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            #[allow(unused_mut)]
            let Some(mut $session) = Session::begin_hook() else { return $($otherwise)? };
            $body
        }
    )*};
}

hooks! {
    fn __foretell_rmw(
        session, address: *const u8, info: AccessInfo, old: u64, operand: u64,
        operand_shadow: u32, address_shadow: u32, site: *const Site,
    ) -> u32, else 0; => {
        let place = session.recorder().site(site);
        let size = info.size() as u8;
        let width = info.size() * 8;
        let read = shadow::of_read(session.me.slots.index);
        // SAFETY: the program wrote there just now, and nobody else has the turn.
        let new = unsafe { peek(address as u64, size) };
        let symbolic = wanted(info.has(AccessInfo::SYMBOLIC));
        let operand = (operand_shadow, operand);
        let written = if symbolic { modified(info.rmw(), width, (read, old), operand) } else { 0 };
        let address = address as u64;
        let record = ReadModifyWrite { address, old, new, shadow: written, address_shadow };
        session.me.record(detail(info), place, &record);
        if symbolic && written == 0 && info.rmw() != RmwKind::Exchange {
            count_pin(PinReason::Other as u32);
            note_pin(&mut session, place, width, read, old);
        }
        session.point();
        if symbolic { read } else { 0 }
    }

    fn __foretell_cmpxchg(
        session, address: *const u8, info: AccessInfo, old: u64, expected: u64, desired: u64,
        success: u32, expected_shadow: u32, desired_shadow: u32, address_shadow: u32,
        site: *const Site,
    ) -> u32, else 0; => {
        let place = session.recorder().site(site);
        let width = info.size() * 8;
        let read = shadow::of_read(session.me.slots.index);
        let symbolic = wanted(info.has(AccessInfo::SYMBOLIC));
        let written = if symbolic {
            let equal =
                shadow::binary(BinaryOp::Eq as u32, width, read, old, expected_shadow, expected);
            shadow::select(width, (equal, success), (desired_shadow, desired), (read, old))
        } else {
            0
        };
        let new = if success != 0 { desired } else { old };
        let address = address as u64;
        let record = ReadModifyWrite { address, old, new, shadow: written, address_shadow };
        session.me.record(detail(info), place, &record);
        session.point();
        if symbolic { read } else { 0 }
    }

    fn __foretell_fence(session, order: u32, site: *const Site) => {
        let place = session.recorder().site(site);
        session.event_at(Kind::Fence, order as u8, place, []);
        session.point();
    }

    fn __foretell_wide_atomic(session, object: *const u8, begins: u32, site: *const Site) => {
        session.place = session.recorder().site(site);
        match begins {
            0 => wide_atomic::end(&mut session, object as u64),
            _ => wide_atomic::begin(&mut session, object as u64),
        }
    }

    fn __foretell_read_range(
        session, address: *const u8, size: u64, symbolic: u32, site: *const Site,
    ) => {
        read_range(&mut session, site as u64, address as u64, size, symbolic != 0);
        session.point();
    }

    fn __foretell_write_range(session, address: *const u8, size: u64, site: *const Site) => {
        write_range(&mut session, site as u64, address as u64, size);
        session.point();
    }

    fn __foretell_memcpy(
        session, destination: *const u8, source: *const u8, length: u64, flags: u32,
        site: *const Site,
    ) => {
        let place = site as u64;
        copy::<true>(&mut session, place, destination as u64, source as u64, length, flags);
        session.point();
    }

    fn __foretell_memset(
        session, destination: *const u8, byte: u32, shadow: u32, length: u64, flags: u32,
        site: *const Site,
    ) => {
        let place = site as u64;
        let (mut at, end) = (destination as u64, destination as u64 + length);
        if flags & LOCAL_DESTINATION != 0 {
            if flags & COPY_SYMBOLIC != 0 {
                for at in at..end {
                    session.me.local.store(at, 1, shadow);
                }
                session.me.slots.local_shadows = session.me.local.len() as u32;
            }
            return;
        }
        while at < end {
            // With a shadow byte by byte: each byte holds the same expression.
            let size = if shadow == 0 { piece(end - at) } else { 1 };
            let value = u64::from_le_bytes([byte as u8; 8]) >> (64 - 8 * u32::from(size));
            note_write::<true>(&mut session, place, access::detail(size, 0), at, value, shadow.into());
            at += u64::from(size);
        }
        session.point();
    }

    fn __foretell_local_load(session, address: *const u8, size: u32, value: u64)
        -> u32, else 0; => {
        session.me.local.load(address as u64, size, value)
    }

    fn __foretell_local_store(session, address: *const u8, size: u64, shadow: u32) => {
        session.me.local.store(address as u64, size, shadow);
        session.me.slots.local_shadows = session.me.local.len() as u32;
    }

    fn __foretell_switch(
        session, shadow: u32, width: u32, value: u64, cases: *const u64, count: u64,
        site: *const Site,
    ) => {
        let place = session.recorder().site(site);
        // SAFETY: the pass passes an array of so many cases.
        let cases = unsafe { std::slice::from_raw_parts(cases, count as usize) };
        // One question after the other, so that runs that go different ways differ in the answer to one.
        for &case in cases {
            if case == value {
                note_pin(&mut session, place, width, shadow, value);
                return;
            }
            let equal = shadow::binary(BinaryOp::Eq as u32, width, shadow, value, 0, case);
            let head = head(Kind::Branch, 0, place);
            session.me.access::<true, 0>(head, 0, equal.into(), []);
        }
    }

    fn __foretell_assert(
        session, shadow: u32, outcome: u32, wanted: u32, site: *const Site,
    ) => {
        let place = session.recorder().site(site);
        if session.me.handlers > 0 {
            // The program goes on after a panic.
            if shadow != 0 {
                let head = head(Kind::Branch, (outcome & 1) as u8, site as u64);
                session.me.access::<true, 0>(head, 0, shadow.into(), []);
            }
            return;
        }
        let held = (outcome ^ wanted ^ 1) & 1;
        let negated = (wanted & 1) ^ 1;
        let detail = (held | negated << 1) as u8;
        session.me.record(detail, place, &record::Assert { shadow });
        if held == 0 {
            session.me.fails();
        }
    }

    fn __foretell_pin(
        session, shadow: u32, width: u32, value: u64, reason: u32, site: *const Site,
    ) => {
        let place = session.recorder().site(site);
        count_pin(reason);
        note_pin(&mut session, place, width, shadow, value);
    }

    fn __foretell_enter(session, site: *const Site, frame: *const u8)
        -> *mut CallSlots, else slots_outside(); => {
        let place = session.recorder().site(site);
        leave_calls(&mut session, |open| open <= frame as u64);
        session.me.frames.push(frame as u64);
        session.me.event([head(Kind::Call, 0, place)]);
        &raw mut session.me.slots
    }

    fn __foretell_enter_library(session, frame: *const u8, caller: *const u8)
        -> *mut CallSlots, else slots_outside(); => {
        let frame = frame as u64;
        leave_calls(&mut session, |open| open <= frame);
        session.me.frames.push(frame);
        session.me.library_frames.push(frame);
        let recorder = session.recorder();
        recorder.meet(caller as u64);
        recorder.record(1, caller as u64, &record::Library {});
        &raw mut session.me.slots
    }

    fn __foretell_describe(session, address: *const u8, what: *const Described) => {
        session.recorder().describe(address as u64, what);
    }

    fn __foretell_exit(session, frame: *const u8) => {
        leave_calls(&mut session, |open| open <= frame as u64);
    }


    fn __foretell_value(session, source: u32, given: u64, site: *const Site)
        -> u64, else given; => {
        session.place = session.recorder().site(site);
        match source {
            source if source == Source::Random as u32 => random::instruction(&mut session),
            _ => time::cycles(&mut session),
        }
    }

    fn __foretell_unseen(session, what: u32, text: *const c_char, site: *const Site) => {
        // Once for each thread and place: it may stand in a loop.
        // SAFETY: a session has the turn; constants of the module.
        let (said, text, site_of) = unsafe { (SAID.get(), CStr::from_ptr(text), &*site) };
        if said.insert((session.me.number, site as u64, text.as_ptr() as u64)) {
            // SAFETY: as above.
            let file = unsafe { CStr::from_ptr(site_of.file) }.to_string_lossy();
            let text = format!("{} ({file}:{})", text.to_string_lossy(), site_of.line);
            if what == Unseen::Clock as u32 {
                return time::compared(session.me.number, text);
            }
            let cause = match what {
                what if what == Unseen::Varying as u32 => Cause::Varying,
                what if what == Unseen::Call as u32 => Cause::PassedCall,
                _ => Cause::Assembler,
            };
            outside::note(session.me.number, cause, 0, &text, 0);
        }
    }

    fn __foretell_state(
        session, stream: *const u8, name: *const c_char, effect: u32, site: *const Site,
    ) => {
        if channels::alone() {
            return;
        }
        session.place = session.recorder().site(site);
        if effect & FORMATS != 0 {
            // SAFETY: an output stream that is about to be used.
            let (at, size) = unsafe { foreign::format_of(stream as u64) };
            return read_range(&mut session, site as u64, at, size, true);
        }
        // SAFETY: a constant of the module.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        channels::library_state(&mut session, stream as u64, name, effect);
    }

    fn __foretell_library(
        session, number: u32, flags: u32, first: u64, second: u64, third: u64, fourth: u64, fifth: u64,
        sixth: u64, seventh: u64, eighth: u64, ninth: u64, tenth: u64, result: u64, site: *const Site,
    ) => {
        let call = summaries::Call {
            number: number as usize,
            is_over: flags & IS_OVER != 0,
            is_symbolic: flags & IS_SYMBOLIC != 0,
            is_used: flags & IS_USED != 0,
            arguments: [
                first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth,
            ],
            result,
            site,
        };
        summaries::report(&mut session, &call);
        session.point();
    }

    fn __foretell_foreign(
        session, function: *const u8, name: *const c_char, object: *const u8, given: u32,
        site: *const Site,
    ) => {
        // SAFETY: a constant of the module.
        let name = unsafe { CStr::from_ptr(name) };
        let is_unknown = foreign::is_unknown(function as u64, name, object as u64, given);
        // SAFETY: a session has the turn.
        if is_unknown && !unsafe { scheduler::scheduler() }.is_single() {
            let text = foreign::told(function as u64, name);
            outside::note(session.me.number, Cause::Foreign, 0, &text, 0);
        }
        if let Some(object) = foreign::state(function as u64, name, object as u64) {
            session.place = session.recorder().site(site);
            channels::foreign_state(&mut session, object);
        }
    }

    fn __foretell_region_begin(session, name: *const c_char, site: *const Site) => {
        let place = session.recorder().site(site);
        session.me.record(0, place, &record::RegionBegin { name: Text::C(name) });
    }

    fn __foretell_region_end(session, site: *const Site) => {
        let place = session.recorder().site(site);
        session.me.event([head(Kind::RegionEnd, 0, place)]);
    }

    fn __foretell_await_enter(session) => {
        session.me.spin = None;
    }

    fn __foretell_await_round(session, site: *const Site) => {
        let place = session.recorder().site(site);
        spin::round(&mut session, place);
    }

    fn __foretell_await_test(session, index: u32, leaves: u32, site: *const Site) => {
        // Only a branch that depends on what was read is an event.
        if session.me.slots.index == index.wrapping_add(1) {
            let place = session.recorder().site(site);
            let mark = if leaves != 0 { await_mark::TEST } else { await_mark::FAILED };
            session.me.event([head(Kind::Await, mark, place)]);
        }
    }

    fn __foretell_await_look(session, comparison: u32, constant: u64, again: u32, alone: u32) => {
        look::announce(&mut session, comparison, constant as i64, again != 0, alone != 0);
    }

    fn __foretell_module(session, module: *const Module) => {
        // SAFETY: the module's description of itself; a session has the turn.
        unsafe { register(&mut session, &*module) };
    }
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_unwind(frame: *const u8) {
    scheduler::jumped_out(frame as u64);
    if let Some(mut session) = Session::begin_hook() {
        leave_calls(&mut session, |open| open < frame as u64);
    }
}

/// See `foretell-abi`.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc)] // foretell-abi
pub unsafe extern "C" fn __foretell_summary_of(function: *const u8) -> u32 {
    foreign::summary_of(function as u64)
}

/// The slots of code that runs without a session: shared ones, so that a signal handler that interrupted the runtime does not
/// change the slots of its own thread.
fn slots_outside() -> *mut CallSlots {
    NO_SLOTS.0.get()
}

/// Leaves the calls whose frames are over.
fn leave_calls(session: &mut Session, over: impl Fn(u64) -> bool) {
    while session.me.frames.last().is_some_and(|&open| over(open)) {
        let frame = session.me.frames.pop();
        if session.me.library_frames.last() == frame.as_ref() {
            session.me.library_frames.pop();
            session.recorder().record(0, 0, &record::Library {});
        } else {
            session.me.event([head(Kind::Return, 0, 0)]);
        }
    }
}

/// The memory was read; what the reader made of it is not seen.
pub fn read_range(session: &mut Session, place: u64, address: u64, size: u64, symbolic: bool) {
    let (mut at, end) = (address, address + size);
    while at < end {
        let size = piece(end - at);
        // SAFETY: the program reads it now.
        let value = unsafe { peek(at, size) };
        let read = note_read::<true>(session, place, access::detail(size, 0), at, value, 0);
        if wanted(symbolic) {
            note_pin(session, place, u32::from(size) * 8, read, value);
        }
        at += u64::from(size);
    }
}

/// The memory was written; by what is not seen.
pub fn write_range(session: &mut Session, place: u64, address: u64, size: u64) {
    let (mut at, end) = (address, address + size);
    while at < end {
        let size = piece(end - at);
        // SAFETY: the program wrote it just now.
        let value = unsafe { peek(at, size) };
        note_write::<true>(session, place, access::detail(size, 0), at, value, 0);
        at += u64::from(size);
    }
}

fn count_pin(reason: u32) {
    let reason = (reason as usize).min(PinReason::COUNT - 1);
    PINS[reason].fetch_add(1, Relaxed);
}

/// What the reasons mean, for people, with how often each came.
pub fn pins() -> [(&'static str, u64); PinReason::COUNT] {
    let words = [
        "results of operations that foretell does not model",
        "floating-point results",
        "results of vector and wide-integer operations",
        "values passed to functions that are not instrumented",
        "values used as addresses or lengths",
        "values passed as late or variadic arguments",
    ];
    let mut at = 0;
    words.map(|what| {
        at += 1;
        (what, PINS[at - 1].load(Relaxed))
    })
}

/// The expression that a read-modify-write stores; 0 when it has none.
fn modified(kind: RmwKind, width: u32, old: (u32, u64), operand: (u32, u64)) -> u32 {
    let apply = |op: BinaryOp| shadow::binary(op as u32, width, old.0, old.1, operand.0, operand.1);
    let choose = |op: BinaryOp| {
        shadow::select(width, (apply(op), outcome(op, width, old.1, operand.1)), old, operand)
    };
    match kind {
        RmwKind::Other => 0,
        RmwKind::Exchange => operand.0,
        RmwKind::Add => apply(BinaryOp::Add),
        RmwKind::Sub => apply(BinaryOp::Sub),
        RmwKind::And => apply(BinaryOp::And),
        RmwKind::Or => apply(BinaryOp::Or),
        RmwKind::Xor => apply(BinaryOp::Xor),
        RmwKind::Nand => {
            let ones = u64::MAX >> (64 - width);
            shadow::binary(BinaryOp::Xor as u32, width, apply(BinaryOp::And), 0, 0, ones)
        }
        RmwKind::Max => choose(BinaryOp::Sgt),
        RmwKind::Min => choose(BinaryOp::Slt),
        RmwKind::UMax => choose(BinaryOp::Ugt),
        RmwKind::UMin => choose(BinaryOp::Ult),
    }
}

/// How the comparison of a minimum or maximum came out.
fn outcome(op: BinaryOp, width: u32, left: u64, right: u64) -> u32 {
    let signed = |value: u64| ((value << (64 - width)) as i64) >> (64 - width);
    let holds = match op {
        BinaryOp::Sgt => signed(left) > signed(right),
        BinaryOp::Slt => signed(left) < signed(right),
        BinaryOp::Ugt => left > right,
        _ => left < right,
    };
    holds.into()
}

/// Events and shadows of a copy that has happened. `SITE`: the place is a site, and not a program counter.
pub fn copy<const SITE: bool>(
    session: &mut Session,
    place: u64,
    to: u64,
    from: u64,
    length: u64,
    flags: u32,
) {
    let (local_to, local_from) = (flags & LOCAL_DESTINATION != 0, flags & LOCAL_SOURCE != 0);
    let symbolic = wanted(flags & COPY_SYMBOLIC != 0);
    if local_to && local_from {
        if symbolic {
            session.me.local.copy(to, from, length);
            session.me.slots.local_shadows = session.me.local.len() as u32;
        }
        return;
    }
    let mut at = 0;
    while at < length {
        // The values are those of the destination.
        let size = piece(length - at);
        // SAFETY: the program wrote it just now.
        let value = unsafe { peek(to + at, size) };
        let detail = access::detail(size, 0);
        let shadow = if local_from {
            session.me.local.load(from + at, size.into(), value)
        } else {
            note_read::<SITE>(session, place, detail, from + at, value, 0)
        };
        let shadow = if symbolic { shadow } else { 0 };
        if shadow != 0 && flags & COPY_HELD != 0 {
            note_pin(session, place, u32::from(size) * 8, shadow, value);
        }
        if local_to {
            session.me.local.store(to + at, size.into(), shadow);
        } else {
            note_write::<SITE>(session, place, detail, to + at, value, shadow.into());
        }
        at += u64::from(size);
    }
    session.me.slots.local_shadows = session.me.local.len() as u32;
}

/// The memory is read by the system or a library, and goes where it is not followed: it had to be what it was.
pub fn held(session: &mut Session, address: u64, size: u64) {
    let (mut at, end) = (address, address + size);
    while address != 0 && at < end {
        let size = piece(end - at);
        // SAFETY: the program hands it over to be read.
        let value = unsafe { peek(at, size) };
        let place = session.place;
        let read = note_read::<false>(session, place, access::detail(size, 0), at, value, 0);
        if wanted(true) {
            note_pin(session, place, u32::from(size) * 8, read, value);
        }
        at += u64::from(size);
    }
}

/// Looks at a variable that no memory of the program has (`channels::variable`); what follows depends on its value.
pub fn look_at(session: &mut Session, variable: u64, value: u32) {
    let place = session.place;
    let detail = access::detail(4, Order::SequentiallyConsistent as u8);
    let read = note_read::<false>(session, place, detail, variable, value.into(), 0);
    if wanted(true) {
        note_pin(session, place, 32, read, value.into());
    }
}

/// The system has compared a word with what was expected; how it came out decides what follows.
pub fn compared(session: &mut Session, word: u64, current: u32, expected: u32) {
    let place = session.place;
    let detail = access::detail(4, Order::SequentiallyConsistent as u8);
    let read = note_read::<false>(session, place, detail, word, current.into(), 0);
    if wanted(true) {
        let equal =
            shadow::binary(BinaryOp::Eq as u32, 32, read, current.into(), 0, expected.into());
        let head = head(Kind::Branch, u8::from(current == expected), place);
        session.me.access::<false, 0>(head, 0, equal.into(), []);
    }
}

/// Looks at such a variable, of which nobody makes anything.
pub fn mark(session: &mut Session, variable: u64) {
    let detail = access::detail(4, Order::SequentiallyConsistent as u8);
    note_read::<false>(session, session.place, detail, variable, 0, 0);
}

/// Sets such a variable.
pub fn set(session: &mut Session, variable: u64, old: u32, value: u32) {
    let detail = access::detail(4, Order::SequentiallyConsistent as u8);
    let head = head(Kind::Write, detail, session.place);
    session.me.access::<false, 1>(head, variable, value.into(), [old.into()]);
}

/// A block has become another one, and holds what it held: it was read before it was freed.
pub fn resized(session: &mut Session, block: u64, moved: u64, size: u64, kept: u64) {
    let place = session.place;
    let mut shadows = Vec::new();
    let pieces = || {
        let next = move |at: &u64| Some(at + u64::from(piece(kept - at))).filter(|&at| at < kept);
        let first = (kept > 0).then_some(0);
        std::iter::successors(first, next).map(move |at| (at, piece(kept - at)))
    };
    for (at, size) in pieces() {
        // SAFETY: the values are those of the new block, which the program has yet to get.
        let value = unsafe { peek(moved + at, size) };
        let detail = access::detail(size, 0);
        shadows.push(note_read::<false>(session, place, detail, block + at, value, 0));
    }
    session.event(Kind::Free, 0, [block]);
    session.record(0, &record::Alloc { address: moved, size });
    for ((at, size), shadow) in pieces().zip(shadows) {
        // SAFETY: as above.
        let value = unsafe { peek(moved + at, size) };
        let shadow = if wanted(true) { shadow } else { 0 };
        note_write::<false>(
            session,
            place,
            access::detail(size, 0),
            moved + at,
            value,
            shadow.into(),
        );
    }
}

/// Tells the recorder of a module's globals and what they hold before the program runs.
unsafe fn register(session: &mut Session, module: &Module) {
    let recorder = session.recorder();
    if module.abi_version != ABI_VERSION {
        recorder.gap(1, "a module compiled by another version of the compiler");
    }
    let symbolic = wanted(module.flags & MODULE_SYMBOLIC != 0);
    PASS_REPORTS.store(true, Relaxed);
    if module.flags & MODULE_RUST != 0 {
        crate::wrappers::rust::IS_RUST.store(true, Relaxed);
    }
    recorder.record(symbolic.into(), 0, &record::Instrumented {});
    // SAFETY: the module's own tables.
    unsafe {
        modules::announce();
        modules::mark_pass((module as *const Module) as u64);
        if module.abi_version == ABI_VERSION {
            let quiet = (0..module.quiet_count).map(|n| *module.quiet.add(n as usize) as usize);
            signals::are_quiet(quiet);
        }
        for index in 0..module.global_count {
            let global = &*module.globals.add(index as usize);
            let (address, size) = (global.address as u64, global.size);
            let name = Text::C(global.name);
            recorder.record(0, 0, &record::DefineGlobal { address, size, name });
            if module.abi_version == ABI_VERSION && *global.layout != 0 {
                let record = record::DefineDescription {
                    size,
                    name: Text::C(global.name),
                    function: Text::Bytes(b""),
                    layout: Text::C(global.layout),
                };
                recorder.record(0, address, &record);
                recorder.record(0, address, &record::Describe { address });
            }
            // Large arrays are left out: their first read tells.
            let known = global.size.min(foretell_wire::MAX_TEXT as u64) as usize;
            let bytes = std::slice::from_raw_parts(global.address, known);
            recorder.record(0, 0, &record::Image { address, bytes });
        }
    }
}
