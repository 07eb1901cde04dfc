//! Which instructions are atomic accesses, by their code.

use crate::cpu::Machine;

/// What an instruction's accesses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Plain.
    Plain,
    /// A plain access with an order: ARM's load-acquire and store-release.
    Ordered,
    /// Reads and writes in one step.
    Atomic,
    /// As `Atomic`; writes only if it found what it expected.
    CompareExchange,
    /// The first half of an atomic access of ARM.
    LoadLinked,
    /// Its second half.
    StoreConditional,
}

impl Class {
    /// Of the instruction with these bytes; `thumb` counts on 32-bit ARM only.
    pub fn of(machine: Machine, thumb: bool, bytes: &[u8]) -> Class {
        match machine {
            Machine::X86 => x86(bytes),
            Machine::Arm64 => word(bytes).map_or(Class::Plain, arm64),
            Machine::Arm if thumb => thumb2(bytes),
            Machine::Arm => word(bytes).map_or(Class::Plain, arm),
        }
    }

    /// Whether no thread may wait in the middle of it: QEMU may have stopped all others for it.
    pub fn is_atomic(self) -> bool {
        !matches!(self, Class::Plain | Class::Ordered)
    }
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn x86(bytes: &[u8]) -> Class {
    let is_prefix = |byte: u8| {
        matches!(byte, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0xf0)
    };
    let prefixes = bytes.iter().take_while(|&&byte| is_prefix(byte)).count();
    let locked = bytes[..prefixes].contains(&0xf0);
    let code = match &bytes[prefixes..] {
        [0x40..=0x4f, code @ ..] => code, // REX
        code => code,
    };
    match code {
        [0x0f, 0xb0 | 0xb1 | 0xc7, ..] if locked => Class::CompareExchange,
        _ if locked => Class::Atomic,
        // `xchg` with memory is atomic by itself.
        [0x86 | 0x87, modrm, ..] if modrm >> 6 != 3 => Class::Atomic,
        _ => Class::Plain,
    }
}

fn arm64(code: u32) -> Class {
    let bit = |number: u32| code >> number & 1 == 1;
    if code & 0x3f00_0000 == 0x0800_0000 {
        let (second, load, first) = (bit(23), bit(22), bit(21));
        return match (second, first) {
            (true, true) => Class::CompareExchange,              // cas
            (true, false) => Class::Ordered,                     // ldar, stlr
            (false, true) if !bit(31) => Class::CompareExchange, // casp
            (false, _) if load => Class::LoadLinked,             // ldxr, ldxp
            (false, _) => Class::StoreConditional,               // stxr, stxp
        };
    }
    match code {
        _ if code & 0x3fff_fc00 == 0x38bf_c000 => Class::Ordered, // ldapr
        _ if code & 0x3f20_0c00 == 0x3820_0000 => Class::Atomic,  // ldadd, swp and the like
        _ => Class::Plain,
    }
}

fn arm(code: u32) -> Class {
    let bit = |number: u32| code >> number & 1 == 1;
    if code >> 28 == 0xf {
        return Class::Plain;
    }
    if code & 0x0f80_00f0 == 0x0180_0090 {
        return match (bit(9), bit(20)) {
            (false, _) => Class::Ordered,             // lda, stl
            (true, true) => Class::LoadLinked,        // ldrex
            (true, false) => Class::StoreConditional, // strex
        };
    }
    if code & 0x0fb0_0ff0 == 0x0100_0090 { Class::Atomic } else { Class::Plain } // swp
}

fn thumb2(bytes: &[u8]) -> Class {
    let &[a, b, c, d] = bytes else { return Class::Plain };
    let (first, second) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    match (first & 0xfff0, second >> 4 & 0xf) {
        (0xe850, _) => Class::LoadLinked,
        (0xe840, _) => Class::StoreConditional,
        (0xe8d0, 4 | 5 | 7 | 12..=15) => Class::LoadLinked,
        (0xe8c0, 4 | 5 | 7 | 12..=15) => Class::StoreConditional,
        (0xe8d0 | 0xe8c0, 8..=10) => Class::Ordered,
        _ => Class::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_instructions_are_told_from_others() {
        // As GNU as assembles them.
        let x86: [(&[u8], Class); 7] = [
            (&[0xf0, 0x83, 0x05, 0, 0, 0, 0, 1], Class::Atomic), // lock addl $1, x(%rip)
            (&[0xf0, 0x48, 0x0f, 0xc1, 0x02], Class::Atomic),    // lock xadd %rax, (%rdx)
            (&[0xf0, 0x0f, 0xb1, 0x11], Class::CompareExchange), // lock cmpxchg %edx, (%rcx)
            (&[0x87, 0x07], Class::Atomic),                      // xchg %eax, (%rdi)
            (&[0x87, 0xc7], Class::Plain),                       // xchg %eax, %edi
            (&[0x66, 0x87, 0x07], Class::Atomic),                // xchg %ax, (%rdi)
            (&[0x8b, 0x07], Class::Plain),                       // mov (%rdi), %eax
        ];
        for (bytes, class) in x86 {
            assert_eq!(Class::of(Machine::X86, false, bytes), class, "{bytes:x?}");
        }
        for (code, class) in [
            (0x885f_fc01, Class::LoadLinked),       // ldaxr w1, [x0]
            (0x8802_fc01, Class::StoreConditional), // stlxr w2, w1, [x0]
            (0x88df_fc01, Class::Ordered),          // ldar w1, [x0]
            (0x889f_fc01, Class::Ordered),          // stlr w1, [x0]
            (0x88e0_fc41, Class::CompareExchange),  // casal w0, w1, [x2]
            (0xb8e0_0041, Class::Atomic),           // ldaddal w0, w1, [x2]
            (0xb8e0_8041, Class::Atomic),           // swpal w0, w1, [x2]
            (0xb8bf_c001, Class::Ordered),          // ldapr w1, [x0]
            (0xb940_0001, Class::Plain),            // ldr w1, [x0]
            (0xb820_6801, Class::Plain),            // str w1, [x0, x0]
        ] {
            assert_eq!(
                Class::of(Machine::Arm64, false, &u32::to_le_bytes(code)),
                class,
                "{code:x}"
            );
        }
        for (code, class) in [
            (0xe190_1f9f, Class::LoadLinked),       // ldrex r1, [r0]
            (0xe180_2f91, Class::StoreConditional), // strex r2, r1, [r0]
            (0xe1d0_1f9f, Class::LoadLinked),       // ldrexb r1, [r0]
            (0xe190_1c9f, Class::Ordered),          // lda r1, [r0]
            (0xe590_1000, Class::Plain),            // ldr r1, [r0]
        ] {
            assert_eq!(Class::of(Machine::Arm, false, &u32::to_le_bytes(code)), class, "{code:x}");
        }
        let thumb: [(&[u8], Class); 5] = [
            (&[0x50, 0xe8, 0x00, 0x1f], Class::LoadLinked), // ldrex r1, [r0]
            (&[0x40, 0xe8, 0x00, 0x12], Class::StoreConditional), // strex r2, r1, [r0]
            (&[0xd0, 0xe8, 0xef, 0x1f], Class::LoadLinked), // ldaex r1, [r0]
            (&[0xd0, 0xe8, 0x00, 0xf0], Class::Plain),      // tbb [r0, r0]
            (&[0x01, 0x68], Class::Plain),                  // ldr r1, [r0]
        ];
        for (bytes, class) in thumb {
            assert_eq!(Class::of(Machine::Arm, true, bytes), class, "{bytes:x?}");
        }
    }
}
