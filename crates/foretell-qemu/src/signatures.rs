//! The C library in a static executable that was stripped of its symbols: its parts are told by their
//! code, as the library's archives have it. What the linker fills in (relocations) may be anything. A part
//! is what one source file of the library became; it is linked as a whole.

use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, SectionKind, SymbolKind};
use rustc_hash::FxHashMap;

use crate::cpu::Machine;
use crate::modules::Origin;

/// A part of an archive.
pub struct Signature {
    /// Its functions: how far each is from its begin, and the name.
    pub functions: Vec<(u64, String)>,
    /// Whose code it is.
    pub origin: Origin,
    /// Several parts have this code.
    pub is_ambiguous: bool,
    /// Its bytes; `None` where the linker fills them in.
    code: Vec<Option<u8>>,
}

/// A part in an executable.
pub struct Found {
    /// Where it begins.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Which one it is.
    pub signature: usize,
}

/// A part with fewer bytes that are known looks like others.
const FEWEST_KNOWN: usize = 10;
/// Bytes by which parts are looked up.
const KEY: usize = 4;

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
    for (offset, relocation) in section.relocations() {
        let (before, size) = filled_in(machine, relocation.flags(), relocation.size());
        let begin = (offset as usize).saturating_sub(before);
        let end = code.len().min(offset as usize + size);
        if let Some(filled) = code.get_mut(begin..end) {
            filled.fill(None);
        }
    }
    let here = |symbol: &object::Symbol<'_, '_>| {
        symbol.kind() == SymbolKind::Text && symbol.section_index() == Some(section.index())
    };
    let functions = file.symbols().filter(here).filter_map(|symbol| {
        let begin = symbol.address() & !u64::from(machine == Machine::Arm);
        Some((begin, symbol.name().ok()?.to_owned()))
    });
    let functions: Vec<(u64, String)> = functions.collect();
    signatures.push(Signature { functions, origin, is_ambiguous: false, code });
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
        let known = signature.code.iter().flatten().count();
        let key = signature.code.iter().take(KEY).flatten().count();
        if known < FEWEST_KNOWN || key < KEY {
            continue;
        }
        match places.get(&signature.code) {
            Some(&place) => {
                merged[place].is_ambiguous = true;
                merged[place].functions.extend(signature.functions);
            }
            None => {
                places.insert(signature.code.clone(), merged.len());
                merged.push(signature);
            }
        }
    }
    merged
}

/// Where the code that begins at the address has which of the parts; the longest that fits counts.
pub fn find(code: &[u8], address: u64, machine: Machine, signatures: &[Signature]) -> Vec<Found> {
    let mut by_key: FxHashMap<[u8; KEY], Vec<usize>> = FxHashMap::default();
    for (number, signature) in signatures.iter().enumerate() {
        let mut key = [0; KEY];
        for (byte, known) in key.iter_mut().zip(&signature.code) {
            *byte = known.unwrap_or(0);
        }
        by_key.entry(key).or_default().push(number);
    }
    let step = if machine == Machine::X86 { 1 } else { 2 };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(key) = code.get(at..at + KEY) {
        let key: [u8; KEY] = key.try_into().unwrap_or_default();
        let rest = &code[at..];
        let fits = |&&number: &&usize| {
            let known = &signatures[number].code;
            let same = |(known, byte): (&Option<u8>, &u8)| known.is_none_or(|known| known == *byte);
            known.len() <= rest.len() && known.iter().zip(rest).all(same)
        };
        let candidates = by_key.get(&key).into_iter().flatten().filter(fits);
        let longest = candidates.copied().max_by_key(|&number| signatures[number].code.len());
        match longest {
            Some(signature) => {
                let size = signatures[signature].code.len();
                let address = address + at as u64;
                found.push(Found { address, size: size as u64, signature });
                at += size.next_multiple_of(step);
            }
            None => at += step,
        }
    }
    found
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
        let (functions, code) = (vec![(0, name.to_owned())], code.to_vec());
        Signature { functions, origin: Origin::CLibrary, is_ambiguous: false, code }
    }

    #[test]
    fn parts_are_found_by_what_the_linker_leaves() {
        let plain: Vec<Option<u8>> = (1..=16).map(Some).collect();
        let mut filled = plain.clone();
        filled[8..12].fill(None);
        let mut longer = filled.clone();
        longer.extend([Some(90); 4]);
        let short = &plain[..8];
        let all = [("filled", &filled[..]), ("longer", &longer), ("short", short)];
        let signatures = merged(all.map(|(name, code)| signature(name, code)).into());
        assert_eq!(signatures.len(), 2, "eight bytes tell nothing");
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
    fn parts_with_the_same_code_are_one_that_nobody_can_tell() {
        let code: Vec<Option<u8>> = (1..=16).map(Some).collect();
        let both = merged(vec![signature("one", &code), signature("other", &code)]);
        assert_eq!(both.len(), 1);
        assert!(both[0].is_ambiguous && both[0].functions.len() == 2);
    }
}
