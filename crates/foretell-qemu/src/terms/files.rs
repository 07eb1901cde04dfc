//! The registers of each processor: QEMU's numbers, where SLEIGH has them, and what calls do to them.

use std::sync::OnceLock;

use super::lift::{self, Operand};
use crate::cpu::{Machine, machine};

/// The registers of a processor that QEMU tells.
pub struct Files {
    /// General registers: QEMU's number, and where SLEIGH has them.
    pub general: Vec<(i32, Operand)>,
    /// Flags: the bit in QEMU's register of flags.
    pub flags: Vec<(u32, Operand)>,
    /// That register.
    pub flags_number: i32,
    /// Those that functions get arguments in.
    pub arguments: Vec<u64>,
    /// Those that functions leave as they are.
    pub preserved: Vec<u64>,
}

/// Those of this processor; none where SLEIGH does not know them.
pub fn files() -> Option<&'static Files> {
    static FILES: OnceLock<Option<Files>> = OnceLock::new();
    FILES.get_or_init(|| Files::new(machine())).as_ref()
}

impl Files {
    fn new(machine: Machine) -> Option<Files> {
        let numbered = |prefix: &str, range: std::ops::Range<usize>| {
            range.map(|number| format!("{prefix}{number}")).collect::<Vec<_>>()
        };
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        // In QEMU's order.
        let mut names = match machine {
            Machine::X86 => {
                let first = ["RAX", "RBX", "RCX", "RDX", "RSI", "RDI", "RBP", "RSP"];
                [owned(&first), numbered("R", 8..16)].concat()
            }
            Machine::Arm64 => [numbered("x", 0..31), owned(&["sp"])].concat(),
            Machine::Arm => [numbered("r", 0..13), owned(&["sp", "lr"])].concat(),
        };
        let mut numbers: Vec<i32> = (0..names.len() as i32).collect();
        if machine == Machine::X86 {
            names.push("FS_OFFSET".into());
            numbers.push(24);
        }
        let (flags, flags_number): (&[(u32, &str)], i32) = match machine {
            // QEMU computes the others when somebody looks at them.
            Machine::X86 => (&[(10, "DF")], 17),
            Machine::Arm64 => (&[(31, "NG"), (30, "ZR"), (29, "CY"), (28, "OV")], 33),
            Machine::Arm => (&[(31, "NG"), (30, "ZR"), (29, "CY"), (28, "OV")], 25),
        };
        let all = |names: &[String]| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            lift::registers(machine, &names)
        };
        let places = |names: Vec<String>| {
            all(&names).map(|found| found.iter().map(|one| one.offset).collect::<Vec<u64>>())
        };
        let (arguments, preserved) = match machine {
            Machine::X86 => (
                owned(&["RDI", "RSI", "RDX", "RCX", "R8", "R9"]),
                owned(&["RBX", "RBP", "R12", "R13", "R14", "R15", "FS_OFFSET"]),
            ),
            Machine::Arm64 => (numbered("x", 0..9), numbered("x", 19..30)),
            Machine::Arm => (numbered("r", 0..4), numbered("r", 4..12)),
        };
        let flag_names: Vec<String> = flags.iter().map(|(_, name)| (*name).to_owned()).collect();
        Some(Files {
            general: numbers.into_iter().zip(all(&names)?).collect(),
            flags: flags.iter().map(|&(bit, _)| bit).zip(all(&flag_names)?).collect(),
            flags_number,
            arguments: places(arguments)?,
            preserved: places(preserved)?,
        })
    }
}
