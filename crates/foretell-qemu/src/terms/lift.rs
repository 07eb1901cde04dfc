//! Instructions as p-code: the operations that Ghidra's SLEIGH has for each processor, by the crates
//! `libsla` and `sleigh-config`. Once for each block that QEMU translates.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use libsla::{
    Address, AddressSpace, AddressSpaceType, GhidraSleigh, InstructionLoader, OpCode, Sleigh,
    VarnodeData,
};
use sleigh_config::{processor_aarch64, processor_arm, processor_x86};

use crate::cpu::Machine;

/// Where an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Constant,
    Register,
    Temporary,
    Memory,
    Other,
}

/// An operand.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub space: Space,
    /// The value of a constant.
    pub offset: u64,
    /// In bytes.
    pub size: usize,
}

/// An operation.
pub struct Operation {
    pub code: OpCode,
    pub output: Option<Operand>,
    pub inputs: Vec<Operand>,
}

/// An instruction.
pub struct Lifted {
    pub address: u64,
    /// The address after it.
    pub end: u64,
    /// `None` where SLEIGH does not know it, and for what is not followed.
    pub operations: Option<Vec<Operation>>,
    /// Registers that it may change or read, where that is known.
    pub operands: Vec<(Operand, bool)>,
}

/// SLEIGH for a processor.
struct Lifter {
    sleigh: GhidraSleigh,
    code: AddressSpace,
}

struct Code<'c> {
    begin: u64,
    bytes: &'c [u8],
}

impl InstructionLoader for Code<'_> {
    fn load_instruction_bytes(&self, source: &VarnodeData) -> Result<Vec<u8>, String> {
        let from = source.address.offset.wrapping_sub(self.begin);
        let rest = usize::try_from(from).ok().and_then(|from| self.bytes.get(from..));
        let rest = rest.filter(|rest| !rest.is_empty()).ok_or("no code of this block")?;
        Ok(rest[..source.size.min(rest.len())].to_vec())
    }
}

impl Lifter {
    fn new(machine: Machine, thumb: bool) -> Option<Lifter> {
        let (processor, sla) = match machine {
            Machine::X86 => (processor_x86::PSPEC_X86_64, processor_x86::SLA_X86_64),
            Machine::Arm64 => (processor_aarch64::PSPEC_AARCH64, processor_aarch64::SLA_AARCH64),
            Machine::Arm if thumb => (processor_arm::PSPEC_ARMTTHUMB, processor_arm::SLA_ARM8_LE),
            Machine::Arm => (processor_arm::PSPEC_ARMT, processor_arm::SLA_ARM8_LE),
        };
        let sleigh = GhidraSleigh::builder().processor_spec(processor).ok()?.build(sla).ok()?;
        let code = sleigh.default_code_space();
        Some(Lifter { sleigh, code })
    }

    fn operand(data: &VarnodeData) -> Operand {
        let space = &data.address.address_space;
        let space = match space.space_type {
            AddressSpaceType::Constant => Space::Constant,
            AddressSpaceType::Internal => Space::Temporary,
            AddressSpaceType::Processor if space.name == "register" => Space::Register,
            AddressSpaceType::Processor if space.name == "ram" => Space::Memory,
            _ => Space::Other,
        };
        Operand { space, offset: data.address.offset, size: data.size }
    }

    fn lift(&self, code: &Code<'_>, address: u64, size: usize, follow: bool) -> Lifted {
        let at = Address::new(self.code.clone(), address);
        let found = self.sleigh.disassemble_pcode(code, at).ok();
        let found = found.filter(|found| found.origin.size == size);
        let operations: Option<Vec<Operation>> = found.map(|found| {
            let operation = |op: libsla::PcodeInstruction| Operation {
                code: op.op_code,
                output: op.output.as_ref().map(Self::operand),
                inputs: op.inputs.iter().map(Self::operand).collect(),
            };
            found.instructions.into_iter().map(operation).collect()
        });
        let of_operation = |op: &Operation| {
            let inputs: Vec<_> = op.inputs.iter().map(|&input| (input, false)).collect();
            op.output.map(|output| (output, true)).into_iter().chain(inputs).collect::<Vec<_>>()
        };
        let operands = operations.iter().flatten().flat_map(of_operation);
        let operands = operands.filter(|(operand, _)| operand.space == Space::Register).collect();
        let operations = operations.filter(|_| follow);
        Lifted { address, end: address + size as u64, operations, operands }
    }
}

/// QEMU translates one block at a time, under a lock of its own.
struct Shared([Option<Lifter>; 2]);
// SAFETY: used by who translates, and by the thread that installs the plugin before there is another.
unsafe impl Send for Shared {}
static SHARED: Mutex<Shared> = Mutex::new(Shared([None, None]));

fn with<R>(machine: Machine, thumb: bool, what: impl FnOnce(&Lifter) -> R) -> Option<R> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let lifter = &mut shared.0[usize::from(thumb)];
    if lifter.is_none() {
        *lifter = Lifter::new(machine, thumb);
    }
    lifter.as_ref().map(what)
}

/// Registers by their names, where SLEIGH has them.
pub fn registers(machine: Machine, names: &[&str]) -> Option<Vec<Operand>> {
    with(machine, false, |lifter| {
        let register = |name: &&str| {
            let found = lifter.sleigh.register_from_name(name).ok()?;
            Some(Lifter::operand(&found))
        };
        names.iter().map(register).collect()
    })?
}

/// The instructions of a block: their addresses, their code, and whether they are to be followed.
pub fn lift(machine: Machine, thumb: bool, code: &[(u64, &[u8], bool)]) -> Vec<Lifted> {
    let begin = code.first().map_or(0, |&(address, ..)| address);
    let bytes: Vec<u8> = code.iter().flat_map(|&(_, bytes, _)| bytes.iter().copied()).collect();
    let block = Code { begin, bytes: &bytes };
    let unknown = |&(address, bytes, _): &(u64, &[u8], bool)| Lifted {
        address,
        end: address + bytes.len() as u64,
        operations: None,
        operands: Vec::new(),
    };
    let one = |lifter: &Lifter, &(address, bytes, follow): &(u64, &[u8], bool)| match machine {
        Machine::Arm if follow => change_of_mode(lifter, thumb, address, bytes)
            .unwrap_or_else(|| lifter.lift(&block, address, bytes.len(), follow)),
        _ => lifter.lift(&block, address, bytes.len(), follow),
    };
    let all = |lifter: &Lifter| code.iter().map(|code| one(lifter, code)).collect::<Vec<_>>();
    let lifted = with(machine, thumb, all);
    // On ARM, what SLEIGH has seen may have changed how it takes all code behind it.
    let is_strange = |lifted: &Lifted| lifted.operands.is_empty() && lifted.operations.is_none();
    let strange = lifted.as_ref().is_some_and(|lifted: &Vec<Lifted>| lifted.iter().any(is_strange));
    match lifted {
        Some(_) if machine == Machine::Arm && strange && begin_again(thumb) => {
            with(machine, thumb, all).unwrap_or_default()
        }
        Some(lifted) => lifted,
        None => code.iter().map(unknown).collect(),
    }
}

/// Forgets what SLEIGH has seen of the code, if that was not done too often: it takes a while.
fn begin_again(thumb: bool) -> bool {
    static TIMES: AtomicU32 = AtomicU32::new(0);
    const MOST: u32 = 20;
    let again = TIMES.fetch_add(1, Relaxed) < MOST;
    if again {
        SHARED.lock().unwrap_or_else(PoisonError::into_inner).0[usize::from(thumb)] = None;
    }
    again
}

/// A call of ARM that changes between ARM and Thumb code (`blx` with an address): SLEIGH would take all code
/// from there on for the other one.
fn change_of_mode(lifter: &Lifter, thumb: bool, address: u64, bytes: &[u8]) -> Option<Lifted> {
    let half = |at: usize| bytes.get(at..at + 2).map(|b| u32::from(b[0]) | u32::from(b[1]) << 8);
    let (first, second) = (half(0)?, half(2)?);
    let offset = match thumb {
        true if first >> 11 == 0b11110 && second >> 14 == 3 && second >> 12 & 1 == 0 => {
            let sign = first >> 10 & 1;
            let inner = |bit: u32| 1 ^ (second >> bit & 1) ^ sign;
            let high = sign << 24 | inner(13) << 23 | inner(11) << 22 | (first & 0x3ff) << 12;
            ((high | (second >> 1 & 0x3ff) << 2) << 7).cast_signed() >> 7
        }
        false if second >> 9 == 0b111_1101 => {
            let word = first | second << 16;
            (word << 8).cast_signed() >> 6 | (word >> 23 & 2).cast_signed()
        }
        _ => return None,
    };
    let from = if thumb { (address + 4) & !3 } else { address + 8 };
    let to = u64::from((from as u32).wrapping_add_signed(offset));
    let link = Lifter::operand(&lifter.sleigh.register_from_name("lr").ok()?);
    let constant = |offset: u64| Operand { space: Space::Constant, offset, size: 4 };
    let back = (address + 4) | u64::from(thumb);
    let operations = vec![
        Operation { code: OpCode::Copy, output: Some(link), inputs: vec![constant(back)] },
        Operation {
            code: OpCode::Call,
            output: None,
            inputs: vec![Operand { space: Space::Memory, offset: to, size: 4 }],
        },
    ];
    let operands = vec![(link, true)];
    Some(Lifted { address, end: address + 4, operations: Some(operations), operands })
}
