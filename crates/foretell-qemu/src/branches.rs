//! Execution paths (002, "Execution Path Analysis"): how every conditional branch of the program's own
//! code came out, behind the predictor that `foretell-runtime` has too, so that only mispredictions are
//! sent. They are no events.
//!
//! A block of translated code ends at its branch; how that came out is seen where the next block begins.

use std::ffi::c_uint;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use foretell_wire::predictor::{Branch, Predictor};
use foretell_wire::record;

use crate::api::{Pointer, api};
use crate::cpu::Machine;
use crate::ring::Ring;
use crate::scheduler::{self, scheduler};
use crate::thread::Thread;
use crate::thread_of;

/// Whether paths are recorded.
static ON: AtomicBool = AtomicBool::new(false);

/// From now on paths are recorded.
pub fn turn_on() {
    ON.store(true, Relaxed);
}

/// Whether paths are recorded.
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// A block of the program's own code.
pub struct Block {
    begin: u64,
    /// It ends at a conditional branch, behind which this address is.
    behind: Option<u64>,
}

impl Block {
    /// A block that begins here, with the code of its instructions and where it ends.
    pub fn new<'a>(
        machine: Machine,
        thumb: bool,
        begin: u64,
        codes: impl Iterator<Item = &'a [u8]>,
        end: u64,
    ) -> Block {
        Block { begin, behind: ends_in_branch(machine, thumb, codes).then_some(end) }
    }
}

/// The branches of a thread.
pub struct Path {
    predictor: Box<Predictor>,
    /// Branches since the last one that was not predicted.
    predicted: u64,
    /// The branch that the thread has come to: the address behind it.
    open: Option<u64>,
    /// Code that is not the program's was executed since then.
    elsewhere: bool,
}

impl Path {
    /// For a new thread, if paths are recorded.
    pub fn new() -> Option<Path> {
        is_on().then(|| Path {
            predictor: Predictor::new(),
            predicted: 0,
            open: None,
            elsewhere: false,
        })
    }
}

/// Lets QEMU call us at the block, which is never freed.
pub fn watch(block: Pointer, known: Block) {
    let data = Box::into_raw(Box::new(known)).cast();
    (api().qemu_plugin_register_vcpu_tb_exec_cb)(block, on_block, 0, data);
}

/// Lets QEMU call us at the block, which is not the program's.
pub fn watch_foreign(block: Pointer) {
    (api().qemu_plugin_register_vcpu_tb_exec_cb)(block, on_foreign, 0, std::ptr::null_mut());
}

/// A block begins that is not the program's.
extern "C" fn on_foreign(cpu: c_uint, _data: Pointer) {
    if let Some(path) = &mut thread_of(cpu).branches {
        path.elsewhere = true;
    }
}

/// A block of the program begins.
extern "C" fn on_block(cpu: c_uint, data: Pointer) {
    let me = thread_of(cpu);
    // SAFETY: blocks are never freed.
    let block = unsafe { &*data.cast::<Block>() };
    if !me.started {
        me.in_code = true;
        crate::calls::begin_thread(me);
    }
    let Some(path) = &mut me.branches else { return };
    let elsewhere = std::mem::take(&mut path.elsewhere);
    let Some(behind) = std::mem::replace(&mut path.open, block.behind) else { return };
    // A conditional call comes back to what is behind it.
    let went = block.begin != behind || elsewhere;
    if path.predictor.observe(Branch::new(behind, went.into())) {
        path.predicted += 1;
    } else {
        let predicted = std::mem::take(&mut path.predicted);
        scheduler::meet(scheduler(), behind);
        let record = record::Mispredicted { outcome: went.into(), predicted_before: predicted };
        scheduler().ring.record(0, behind, &record);
    }
}

/// The thread has no more branches.
pub fn end_of(ring: &mut Ring, thread: &mut Thread) {
    if let Some(path) = thread.branches.take() {
        let (thread, predicted_since) = (thread.number, path.predicted);
        ring.record(0, 0, &record::PathEnd { thread, predicted_since });
    }
}

/// Whether the last of these instructions is a conditional branch.
fn ends_in_branch<'a>(
    machine: Machine,
    thumb: bool,
    codes: impl Iterator<Item = &'a [u8]>,
) -> bool {
    if machine == Machine::Arm && thumb {
        return thumb_ends_in_branch(codes);
    }
    let Some(last) = codes.last() else { return false };
    match machine {
        Machine::X86 => x86(last),
        Machine::Arm64 => word(last).is_some_and(arm64),
        Machine::Arm => word(last).is_some_and(arm),
    }
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn x86(bytes: &[u8]) -> bool {
    let is_prefix = |byte: &u8| matches!(byte, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x2e | 0x3e);
    let prefixes = bytes.iter().take_while(|byte| is_prefix(byte)).count();
    let code = match &bytes[prefixes..] {
        [0x40..=0x4f, code @ ..] => code, // REX
        code => code,
    };
    // jcc near and short; loopne, loope, loop, jrcxz
    matches!(code, [0x0f, 0x80..=0x8f, ..] | [0x70..=0x7f | 0xe0..=0xe3, ..])
}

fn arm64(code: u32) -> bool {
    let always = code & 0xe == 0xe;
    code & 0xff00_0010 == 0x5400_0000 && !always // b.cond
        || code & 0x7e00_0000 == 0x3400_0000 // cbz, cbnz
        || code & 0x7e00_0000 == 0x3600_0000 // tbz, tbnz
}

fn arm(code: u32) -> bool {
    let to_pc = code >> 12 & 0xf == 0xf;
    let goes = code & 0x0e00_0000 == 0x0a00_0000 // b, bl
        || code & 0x0fff_ffd0 == 0x012f_ff10 // bx, blx
        || code & 0x0e10_8000 == 0x0810_8000 // ldm with pc
        || code & 0x0c10_0000 == 0x0410_0000 && to_pc // ldr pc
        || code & 0x0fe0_0000 == 0x01a0_0000 && to_pc; // mov pc
    code >> 28 < 0xe && goes
}

/// In Thumb a condition may stand before up to four instructions (`it`).
fn thumb_ends_in_branch<'a>(codes: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut conditional, mut under) = (false, 0);
    for bytes in codes {
        let half = |at: usize| bytes.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        let Some(first) = half(0) else { return false };
        let is_under = under > 0;
        under = if is_under { under - 1 } else { 0 };
        conditional = match half(2) {
            None => {
                let alone = matches!(first >> 8, 0xd0..=0xdd) || first & 0xf500 == 0xb100; // b<c>, cbz
                let goes = first & 0xff00 == 0x4700 // bx, blx
                    || first & 0xff00 == 0xbd00 // pop with pc
                    || first & 0xf800 == 0xe000 // b
                    || first & 0xff87 == 0x4687; // mov pc
                alone || is_under && goes
            }
            Some(second) => {
                let is_branch = first & 0xf800 == 0xf000 && second & 0x8000 != 0;
                // Those with a condition of their own; above are other instructions.
                let alone = is_branch && second & 0x5000 == 0 && first >> 6 & 0xf < 0xe;
                let loads_pc = first & 0xff70 == 0xf850 && second >> 12 == 0xf
                    || first & 0xfe50 == 0xe810 && second & 0x8000 != 0;
                alone || is_under && (is_branch || loads_pc)
            }
        };
        if first & 0xff00 == 0xbf00 && first & 0xf != 0 {
            under = 4 - (first & 0xf).trailing_zeros();
        }
    }
    conditional
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditional_branches_are_told_from_others() {
        // As GNU as assembles them.
        let x86: [(&[u8], bool); 6] = [
            (&[0x74, 0x05], true),                   // je
            (&[0x0f, 0x85, 0, 0, 0, 0], true),       // jne near
            (&[0xe3, 0x02], true),                   // jrcxz
            (&[0xf2, 0x0f, 0x84, 0, 0, 0, 0], true), // bnd je
            (&[0xeb, 0x05], false),                  // jmp
            (&[0xc3], false),                        // ret
        ];
        for (bytes, is) in x86 {
            assert_eq!(ends_in_branch(Machine::X86, false, [bytes].into_iter()), is, "{bytes:x?}");
        }
        for (code, is) in [
            (0x5400_0040, true),  // b.eq
            (0x5400_004e, false), // b.al
            (0x3400_0040, true),  // cbz w0
            (0xb500_0040, true),  // cbnz x0
            (0x3700_0040, true),  // tbnz w0, #0
            (0x1400_0002, false), // b
            (0xd65f_03c0, false), // ret
        ] {
            let bytes = u32::to_le_bytes(code);
            let codes = [bytes.as_slice()].into_iter();
            assert_eq!(ends_in_branch(Machine::Arm64, false, codes), is, "{code:x}");
        }
        for (code, is) in [
            (0x0a00_0000, true),  // beq
            (0x1b00_0000, true),  // blne
            (0x012f_ff1e, true),  // bxeq lr
            (0x08bd_8010, true),  // popeq {r4, pc}
            (0xea00_0000, false), // b
            (0xe12f_ff1e, false), // bx lr
            (0x0280_0001, false), // addeq r0, r0, #1
            (0x0590_1000, false), // ldreq r1, [r0]
        ] {
            let bytes = u32::to_le_bytes(code);
            let codes = [bytes.as_slice()].into_iter();
            assert_eq!(ends_in_branch(Machine::Arm, false, codes), is, "{code:x}");
        }
        let thumb: [(&[&[u8]], bool); 8] = [
            (&[&[0x00, 0xd0]], true),                                // beq
            (&[&[0x00, 0xb1]], true),                                // cbz r0
            (&[&[0x00, 0xf0, 0x00, 0x80]], true),                    // beq.w
            (&[&[0x00, 0xe0]], false),                               // b
            (&[&[0x70, 0x47]], false),                               // bx lr
            (&[&[0x08, 0xbf], &[0x70, 0x47]], true),                 // it eq; bxeq lr
            (&[&[0x08, 0xbf], &[0x01, 0x30], &[0x70, 0x47]], false), // it eq; addeq; bx lr
            (&[&[0x0c, 0xbf], &[0x01, 0x30], &[0x10, 0xbd]], true), // ite eq; addeq; popne {r4, pc}
        ];
        for (codes, is) in thumb {
            let found = ends_in_branch(Machine::Arm, true, codes.iter().copied());
            assert_eq!(found, is, "{codes:x?}");
        }
    }
}
