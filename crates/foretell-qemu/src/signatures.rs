//! The C library in a static executable that was stripped of its symbols: its parts are told by their
//! code, as the library's archives have it. What the linker fills in (relocations) may be anything. A part
//! is what one source file of the library became; it is linked as a whole. Parts that have the same code
//! (`mtx_lock` and `mtx_unlock`) are told by what they call.

use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, SectionKind, SymbolKind, elf};
use rustc_hash::FxHashMap;

use crate::cpu::Machine;
use crate::modules::{self, Origin};

/// Code of an archive.
pub struct Signature {
    /// Whose code it is.
    pub origin: Origin,
    /// The parts that have this code.
    parts: Vec<Part>,
    /// Its bytes; `None` where the linker fills them in.
    code: Vec<Option<u8>>,
}

/// A part of an archive.
#[derive(Clone, PartialEq, Eq)]
pub struct Part {
    /// Its functions: how far each is from its begin, and the name.
    pub functions: Vec<(u64, String)>,
    /// What it calls: how far the instruction is from its begin, and the name.
    calls: Vec<(u64, String)>,
}

/// Code of an archive in an executable.
pub struct Found {
    /// Where it begins.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Which one it is.
    pub signature: usize,
}

impl Found {
    fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// Code with fewer bytes that are known looks like other code.
const FEWEST_KNOWN: usize = 10;
/// As [`FEWEST_KNOWN`], right behind other code of the library.
const FEWEST_BEHIND: usize = 8;
/// Bytes by which code is looked up.
const KEY: usize = 4;

impl Signature {
    fn known(&self) -> usize {
        self.code.iter().flatten().count()
    }

    /// The first bytes that are known, and where they are.
    fn key(&self) -> Option<(usize, [u8; KEY])> {
        let window = |at: usize| {
            let bytes: Option<Vec<u8>> = self.code.get(at..at + KEY)?.iter().copied().collect();
            Some((at, bytes?.try_into().ok()?))
        };
        // Instructions of ARM begin at even addresses.
        (0..self.code.len()).step_by(2).find_map(window)
    }

    /// Whether the code that begins at the address has it.
    fn fits(&self, code: &[u8], address: u64, machine: Machine) -> bool {
        let same = |((known, byte), at): ((&Option<u8>, &u8), u64)| {
            known.is_none_or(|known| known == *byte) || may_be_changed(machine, at)
        };
        self.code.len() <= code.len() && self.code.iter().zip(code).zip(address..).all(same)
    }
}

/// Whether the linker may have put another instruction at the address, because of what some processors do wrong
/// near the end of a page: a branch of 32 bits across it (Cortex-A8), a load after an `adrp` right before it
/// (Cortex-A53).
fn may_be_changed(machine: Machine, address: u64) -> bool {
    match machine {
        Machine::X86 => false,
        Machine::Arm64 => address % 4096 < 12,
        Machine::Arm => (address + 2) % 4096 < 4,
    }
}

/// Adds the parts of an archive.
pub fn add(signatures: &mut Vec<Signature>, machine: Machine, path: &Path, origin: Origin) {
    let Ok(content) = std::fs::read(path) else { return };
    let Ok(archive) = object::read::archive::ArchiveFile::parse(&*content) else { return };
    for member in archive.members().flatten() {
        let Ok(bytes) = member.data(&*content) else { continue };
        let Ok(file) = object::File::parse(bytes) else { continue };
        let sections = file.sections().filter(|section| section.kind() == SectionKind::Text);
        for section in sections {
            of_section(signatures, machine, &file, &section, origin);
        }
    }
}

fn of_section(
    signatures: &mut Vec<Signature>,
    machine: Machine,
    file: &object::File<'_>,
    section: &object::Section<'_, '_>,
    origin: Origin,
) {
    let Ok(data) = section.data() else { return };
    let mut code: Vec<Option<u8>> = data.iter().copied().map(Some).collect();
    let mut calls = Vec::new();
    for (offset, relocation) in section.relocations() {
        let (before, size) = filled_in(machine, relocation.flags(), relocation.size());
        let begin = (offset as usize).saturating_sub(before);
        let end = code.len().min(offset as usize + size);
        if let Some(filled) = code.get_mut(begin..end) {
            filled.fill(None);
        }
        if let object::RelocationTarget::Symbol(index) = relocation.target()
            && is_call(machine, relocation.flags())
            && let Ok(name) = file.symbol_by_index(index).and_then(|symbol| symbol.name())
        {
            calls.push((offset, name.to_owned()));
        }
    }
    let here = |symbol: &object::Symbol<'_, '_>| {
        // What stands for several implementations is only called to choose one.
        let is_chooser = matches!(symbol.flags(), object::SymbolFlags::Elf { st_info, .. }
            if st_info.st_type() == elf::STT_GNU_IFUNC);
        symbol.kind() == SymbolKind::Text
            && symbol.section_index() == Some(section.index())
            && !is_chooser
    };
    let functions = file.symbols().filter(here).filter_map(|symbol| {
        let begin = symbol.address() & !u64::from(machine == Machine::Arm);
        Some((begin, symbol.name().ok()?.to_owned()))
    });
    let functions: Vec<(u64, String)> = functions.collect();
    let is_operation = functions.iter().any(|(_, name)| modules::is_atomic_operation(name));
    let origin = if is_operation { Origin::Program } else { origin };
    signatures.push(Signature { origin, parts: vec![Part { functions, calls }], code });
}

/// Whether the linker fills in the address of a function, in an instruction that [`target`] knows.
fn is_call(machine: Machine, flags: RelocationFlags) -> bool {
    let RelocationFlags::Elf { r_type } = flags else { return false };
    let calls: &[elf::RelocationType] = match machine {
        Machine::X86 => &[elf::R_X86_64_PLT32],
        Machine::Arm64 => &[elf::R_AARCH64_CALL26, elf::R_AARCH64_JUMP26],
        Machine::Arm => &[elf::R_ARM_THM_PC22, elf::R_ARM_THM_JUMP24],
    };
    calls.contains(&r_type)
}

/// What the instruction at this place of the code calls, which begins at the address.
fn target(machine: Machine, code: &[u8], address: u64, place: u64) -> Option<u64> {
    let bytes = code.get(place.checked_sub(address)? as usize..)?.get(..4)?;
    let word = u32::from_le_bytes(bytes.try_into().ok()?);
    // Moves the sign of a number of so many bits to where it belongs.
    let signed = |value: u32, bits: u32| i64::from((value << (32 - bits)) as i32 >> (32 - bits));
    let (from, distance) = match machine {
        Machine::X86 => (place + 4, signed(word, 32)),
        Machine::Arm64 => (place, signed(word, 26) * 4),
        Machine::Arm => {
            let (first, second) = (word & 0xffff, word >> 16);
            let sign = first >> 10 & 1;
            let bit = |at: u32| !(second >> at & 1) & 1 ^ sign;
            let high = sign << 24 | bit(13) << 23 | bit(11) << 22;
            let distance = signed(high | (first & 0x3ff) << 12 | (second & 0x7ff) << 1, 25);
            // One that goes to code that is not Thumb counts from the word.
            let word_of = if second >> 12 & 1 == 0 { !3 } else { !0 };
            ((place + 4) & word_of, distance)
        }
    };
    Some(from.wrapping_add_signed(distance))
}

/// How many bytes before and from the place of a relocation the linker may write.
fn filled_in(machine: Machine, flags: RelocationFlags, bits: u8) -> (usize, usize) {
    // Those of x86-64 for which the linker may choose another instruction.
    const GOT: [u32; 5] = [9, 19, 22, 41, 42];
    match (machine, flags) {
        (Machine::X86, RelocationFlags::Elf { r_type }) => {
            let before = if GOT.contains(&r_type.0) { 3 } else { 0 };
            (before, if bits == 64 { 8 } else { 4 })
        }
        _ => (0, 4),
    }
}

/// Puts parts with the same code together.
pub fn merged(signatures: Vec<Signature>) -> Vec<Signature> {
    let mut places: FxHashMap<Vec<Option<u8>>, usize> = FxHashMap::default();
    let mut merged: Vec<Signature> = Vec::new();
    for signature in signatures {
        if signature.known() < FEWEST_BEHIND || signature.key().is_none() {
            continue;
        }
        match places.get(&signature.code) {
            Some(&place) => {
                for part in signature.parts {
                    if !merged[place].parts.contains(&part) {
                        merged[place].parts.push(part);
                    }
                }
            }
            None => {
                places.insert(signature.code.clone(), merged.len());
                merged.push(signature);
            }
        }
    }
    merged
}

/// Where the code that begins at the address has which of the signatures; the longest that fits counts.
pub fn find(code: &[u8], address: u64, machine: Machine, signatures: &[Signature]) -> Vec<Found> {
    let mut by_key: FxHashMap<[u8; KEY], Vec<(usize, usize)>> = FxHashMap::default();
    for (number, signature) in signatures.iter().enumerate() {
        let long = signature.known() >= FEWEST_KNOWN;
        if let Some((at, key)) = signature.key().filter(|_| long) {
            by_key.entry(key).or_default().push((at, number));
        }
    }
    let step = if machine == Machine::X86 { 1 } else { 2 };
    let mut fitting = Vec::new();
    for (at, key) in code.windows(KEY).enumerate().step_by(step) {
        for &(before, signature) in by_key.get(key).into_iter().flatten() {
            let Some(begin) = at.checked_sub(before) else { continue };
            let (one, address) = (&signatures[signature], address + begin as u64);
            if one.fits(&code[begin..], address, machine) {
                fitting.push(Found { address, size: one.code.len() as u64, signature });
            }
        }
    }
    fitting.sort_by_key(|found| (std::cmp::Reverse(found.size), found.address));
    let mut taken = std::collections::BTreeMap::new();
    for found in fitting {
        let before = taken.range(..found.end()).next_back();
        if before.is_none_or(|(_, other): (&u64, &Found)| other.end() <= found.address) {
            taken.insert(found.address, found);
        }
    }
    taken.into_values().collect()
}

/// Adds small parts, from this address on: each right behind another one.
pub fn find_small(
    found: &mut Vec<Found>,
    code: &[u8],
    address: u64,
    machine: Machine,
    library: u64,
    signatures: &[Signature],
) {
    /// Debian's linker begins parts at such addresses.
    const ALIGNED: u64 = 16;
    let small: Vec<usize> =
        (0..signatures.len()).filter(|&number| signatures[number].known() < FEWEST_KNOWN).collect();
    let mut added = Vec::new();
    for (number, part) in found.iter().enumerate().filter(|(_, part)| part.address >= library) {
        let next = found.get(number + 1).map_or(address + code.len() as u64, |next| next.address);
        let mut begin = part.end().next_multiple_of(ALIGNED);
        while let Some(rest) = code.get((begin - address) as usize..) {
            let fits = |&&number: &&usize| {
                let end = begin + signatures[number].code.len() as u64;
                end <= next && signatures[number].fits(rest, begin, machine)
            };
            let Some(&signature) = small.iter().find(fits) else { break };
            let size = signatures[signature].code.len() as u64;
            added.push(Found { address: begin, size, signature });
            begin = (begin + size).next_multiple_of(ALIGNED);
        }
    }
    found.extend(added);
    found.sort_by_key(|part| part.address);
}

/// Which parts each may be, by what it calls. The code begins at the address.
pub fn told<'s>(
    found: &[Found],
    code: &[u8],
    address: u64,
    machine: Machine,
    signatures: &'s [Signature],
) -> Vec<Vec<&'s Part>> {
    let mut may_be: Vec<Vec<&Part>> =
        found.iter().map(|found| signatures[found.signature].parts.iter().collect()).collect();
    let mut names: FxHashMap<u64, Vec<&str>> = FxHashMap::default();
    let mut is_told = vec![false; found.len()];
    loop {
        let mut changes = false;
        for ((found, parts), is_told) in found.iter().zip(&may_be).zip(&mut is_told) {
            if let [part] = parts[..]
                && !std::mem::replace(is_told, true)
            {
                changes = true;
                for (offset, name) in &part.functions {
                    names.entry(found.address + offset).or_default().push(name);
                }
            }
        }
        for (found, parts) in found.iter().zip(&mut may_be).filter(|(_, parts)| parts.len() > 1) {
            parts.retain(|part| {
                part.calls.iter().all(|(offset, name)| {
                    let called = target(machine, code, address, found.address + offset);
                    let known = called.and_then(|called| names.get(&called));
                    known.is_none_or(|known| known.contains(&name.as_str()))
                })
            });
        }
        if !changes {
            return may_be;
        }
    }
}

/// Where the library begins behind the program's entry: at the first part after which most of the code
/// is known. (One part alone may look like the program's own code.)
pub fn begin_of_library(found: &[Found], entry: u64, end: u64) -> u64 {
    const LOOKED_AT: u64 = 1 << 14;
    let is_begin = |part: &&Found| {
        let until = end.min(part.address + LOOKED_AT);
        let within = |other: &&Found| (part.address..until).contains(&other.address);
        let known: u64 = found.iter().filter(within).map(|other| other.size).sum();
        part.address > entry && 2 * known >= until - part.address
    };
    found.iter().find(is_begin).map_or(end, |part| part.address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(name: &str, code: &[Option<u8>]) -> Signature {
        let part = Part { functions: vec![(0, name.to_owned())], calls: Vec::new() };
        Signature { origin: Origin::CLibrary, parts: vec![part], code: code.to_vec() }
    }

    #[test]
    fn parts_are_found_by_what_the_linker_leaves() {
        let plain: Vec<Option<u8>> = (1..=16).map(Some).collect();
        let mut filled = plain.clone();
        filled[8..12].fill(None);
        let mut longer = filled.clone();
        longer.extend([Some(90); 4]);
        let short = &plain[..7];
        let all = [("filled", &filled[..]), ("longer", &longer), ("short", short)];
        let signatures = merged(all.map(|(name, code)| signature(name, code)).into());
        assert_eq!(signatures.len(), 2, "seven bytes tell nothing");
        let mut code: Vec<u8> = vec![0; 3];
        code.extend((1..=8).chain([77; 4]).chain(13..=16));
        code.extend([5, 6]);
        let begin = code.len() as u64;
        code.extend((1..=8).chain([78; 4]).chain(13..=16).chain([90; 4]));
        let found = find(&code, 1_000, Machine::X86, &signatures);
        let places: Vec<(u64, u64)> = found.iter().map(|one| (one.address, one.size)).collect();
        assert_eq!(places, [(1_003, 16), (1_000 + begin, 20)]);
        assert!(find(&code[4..], 0, Machine::X86, &signatures).len() == 1);
    }

    #[test]
    fn the_library_begins_where_most_is_known() {
        let part = |address, size| Found { address, size, signature: 0 };
        // Before the entry, alone in the program's code, and the library.
        let found = [part(100, 50), part(20_000, 50), part(60_000, 9_000), part(70_000, 9_000)];
        assert_eq!(begin_of_library(&found, 200, 80_000), 60_000);
        assert_eq!(begin_of_library(&found[..2], 200, 80_000), 80_000);
    }

    #[test]
    fn the_first_bytes_may_be_what_the_linker_fills_in() {
        let mut plain: Vec<Option<u8>> = (1..=16).map(Some).collect();
        plain[..4].fill(None);
        let signatures = merged(vec![signature("it", &plain)]);
        let code: Vec<u8> = [0; 6].into_iter().chain(5..=16).collect();
        let found = find(&code, 1_000, Machine::Arm64, &signatures);
        assert_eq!(found.iter().map(|one| one.address).collect::<Vec<_>>(), [1_002]);
    }

    #[test]
    fn branches_across_pages_may_be_others() {
        let plain: Vec<Option<u8>> = (1..=16).map(Some).collect();
        let signatures = merged(vec![signature("it", &plain)]);
        let code: Vec<u8> = (1..=8).chain([99; 4]).chain(13..=16).collect();
        let count = |address, machine| find(&code, address, machine, &signatures).len();
        assert_eq!(count(4_096 - 10, Machine::Arm), 1);
        assert_eq!(count(4_096 - 10, Machine::X86), 0);
        assert_eq!(count(4_096 - 8, Machine::Arm), 0);
        assert_eq!(count(4_096 - 8, Machine::Arm64), 1);
    }

    #[test]
    fn small_parts_are_found_right_behind_others() {
        let large: Vec<Option<u8>> = (1..=16).map(Some).collect();
        let small: Vec<Option<u8>> = (50..58).map(Some).collect();
        let signatures = merged(vec![signature("large", &large), signature("small", &small)]);
        let small: Vec<u8> = (50..58).chain([0; 8]).collect();
        // In the program, at the begin of nothing, and behind a part.
        let code: Vec<u8> = small.iter().copied().chain(1..=16).chain(small.clone()).collect();
        let mut found = find(&code, 1_600, Machine::X86, &signatures);
        find_small(&mut found, &code, 1_600, Machine::X86, 1_610, &signatures);
        let places: Vec<(u64, u64)> = found.iter().map(|one| (one.address, one.size)).collect();
        assert_eq!(places, [(1_616, 16), (1_632, 8)]);
    }

    #[test]
    fn parts_with_the_same_code_are_told_by_what_they_call() {
        let own = |first: u8| (first..first + 16).map(Some).collect::<Vec<_>>();
        let calls = |name: &str, called: &str| {
            let mut code = vec![Some(0xe8), None, None, None, None];
            code.extend(own(100));
            let mut one = signature(name, &code);
            one.parts[0].calls.push((1, called.to_owned()));
            one
        };
        let all = vec![
            signature("lock", &own(1)),
            signature("unlock", &own(40)),
            calls("mtx_lock", "lock"),
            calls("mtx_unlock", "unlock"),
            calls("mtx_other", "other"),
        ];
        let signatures = merged(all);
        assert_eq!(signatures.len(), 3);
        // Both locks, then a call of the second.
        let mut code: Vec<u8> = (1..17).chain(40..56).chain([0xe8]).collect();
        code.extend((-21i32).to_le_bytes());
        code.extend(100..116);
        let found = find(&code, 5_000, Machine::X86, &signatures);
        let told = told(&found, &code, 5_000, Machine::X86, &signatures);
        let names = |parts: &Vec<&Part>| {
            parts.iter().map(|part| part.functions[0].1.clone()).collect::<Vec<_>>()
        };
        let names: Vec<Vec<String>> = told.iter().map(names).collect();
        assert_eq!(names, [["lock"], ["unlock"], ["mtx_unlock"]]);
    }

    #[test]
    fn calls_are_decoded_as_the_processors_do() {
        // As the assembler of each gives them: a call at 0x1000 of what is 0x20 bytes before.
        let at = |machine, code: [u8; 4]| target(machine, &code, 0x1000, 0x1000);
        assert_eq!(at(Machine::X86, (-0x24i32).to_le_bytes()), Some(0xfe0));
        assert_eq!(at(Machine::Arm64, 0x97ff_fff8u32.to_le_bytes()), Some(0xfe0));
        assert_eq!(at(Machine::Arm, [0xff, 0xf7, 0xee, 0xff]), Some(0xfe0));
        assert_eq!(at(Machine::Arm, [0x00, 0xf0, 0x0e, 0xf8]), Some(0x1020));
    }

    #[test]
    fn parts_with_the_same_code_are_one_signature() {
        let code: Vec<Option<u8>> = (1..=16).map(Some).collect();
        let both = merged(vec![signature("one", &code), signature("other", &code)]);
        assert_eq!(both.len(), 1);
        assert_eq!(both[0].parts.len(), 2);
    }
}
