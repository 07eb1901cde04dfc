//! What of the program's memory is which file's: the code that is recorded, the functions that are
//! recognised, the data that never changes.
//!
//! QEMU maps the program's files into its own process, so they are found in its `/proc/self/maps`.
//! Code that is translated under an address that no known file has makes us look there again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, PoisonError};

use foretell_wire::{instrumented, record};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind, elf};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::accesses;
use crate::calls;
use crate::cpu::{Machine, guest_base, machine};
use crate::futexes;
use crate::ring::Ring;
use crate::signatures::{self, Signature};

/// A file of the program's.
struct Module {
    path: PathBuf,
    /// What is to be added to the file's addresses.
    base: u64,
    code: Vec<Range<u64>>,
    origin: Origin,
    defined: bool,
}

/// Whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The program's.
    Program,
    /// A library's of the language, which calls the C library as the program does.
    Runtime,
    /// The C library's or the loader's, which call themselves as they like.
    CLibrary,
}

#[derive(Default)]
struct Modules {
    all: Vec<Module>,
    /// Files that were looked at, by where they lie.
    seen: FxHashSet<(u64, PathBuf)>,
    /// Pages without a file.
    unknown: FxHashSet<u64>,
    /// Functions that are recognised.
    functions: FxHashMap<u64, usize>,
    /// Code of the program's own files that is not the program's, with its end: stubs that jump to other
    /// files, and in a static executable the C library.
    excluded: BTreeMap<u64, (u64, Origin)>,
    /// Code that leads from the program's files to functions of others.
    stubs: Vec<Range<u64>>,
    /// Where the executable begins.
    entry: Option<u64>,
    /// What the program's own files write to.
    writable: Vec<Range<u64>>,
    /// Atomic operations in a static executable, which the C library calls as well.
    shared: Vec<Range<u64>>,
}

static MODULES: Mutex<Option<Modules>> = Mutex::new(None);
/// Archives of the C library, for static executables.
static ARCHIVES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// What never changes: leaked anew whenever there is more of it.
static CONSTANT: AtomicPtr<Vec<Range<u64>>> = AtomicPtr::new(std::ptr::null_mut());

fn with<R>(act: impl FnOnce(&mut Modules) -> R) -> R {
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    act(modules.get_or_insert_default())
}

/// An archive whose functions are not the program's.
pub fn add_archive(path: PathBuf) {
    ARCHIVES.lock().unwrap_or_else(PoisonError::into_inner).push(path);
}

/// Whose code is at the address. Code of no file is the program's: it made it.
pub fn origin(address: u64) -> Origin {
    with(|modules| {
        modules.look_for(address);
        let excluded = modules.excluded.range(..=address).next_back();
        match excluded {
            Some((_, &(end, origin))) if address < end => origin,
            _ => modules.module(address).map_or(Origin::Program, |module| module.origin),
        }
    })
}

/// Whether the code at the address only leads to a function of another file.
pub fn is_stub(address: u64) -> bool {
    with(|modules| modules.stubs.iter().any(|range| range.contains(&address)))
}

/// Whether the code at the address is the program's only if the program has called it.
pub fn is_shared(address: u64) -> bool {
    with(|modules| modules.shared.iter().any(|range| range.contains(&address)))
}

/// Whether the function of this name is an atomic operation: gcc for AArch64 makes a call of each.
pub fn is_atomic_operation(name: &str) -> bool {
    name.starts_with("__aarch64_")
}

/// Whether the program begins at the address.
pub fn is_entry(address: u64) -> bool {
    with(|modules| {
        modules.look_for(address);
        modules.entry == Some(address)
    })
}

/// The function that begins at the address, if it is one that is recognised.
pub fn function(address: u64) -> Option<usize> {
    with(|modules| {
        modules.look_for(address);
        modules.functions.get(&address).copied()
    })
}

/// Whether what lies there never changes.
#[inline]
pub fn is_constant(address: u64) -> bool {
    let constant = CONSTANT.load(Acquire);
    // SAFETY: lists are never freed.
    !constant.is_null() && unsafe { (*constant).iter().any(|range| range.contains(&address)) }
}

/// Whether something of the range never changes.
pub fn has_constants(range: Range<u64>) -> bool {
    let meets = |constant: &Range<u64>| constant.start < range.end && range.start < constant.end;
    constants().iter().any(meets)
}

/// Tells the recorder which file the place is in.
pub fn define(ring: &mut Ring, place: u64) {
    with(|modules| {
        let Some(module) = modules.module_mut(place.wrapping_sub(1)) else { return };
        if module.defined {
            return;
        }
        module.defined = true;
        if module.origin == Origin::Program {
            let symbolic = if crate::terms::is_on() { instrumented::SYMBOLIC } else { 0 };
            ring.record(instrumented::MACHINE_CODE | symbolic, 0, &record::Instrumented {});
        }
        for code in &module.code {
            let (load_address, first, end) = (module.base, code.start, code.end);
            let file = module.path.to_string_lossy();
            ring.record(0, 0, &record::DefineModule { load_address, first, end, file: &*file });
        }
    });
}

/// What the program's own files write to.
pub fn writable() -> Vec<Range<u64>> {
    with(|modules| modules.writable.clone())
}

/// Functions that the loader chooses among several by the processor: what other files call them by is
/// known once they are all loaded.
pub fn resolve_imports() {
    with(|modules| {
        let files: Vec<(PathBuf, u64)> =
            modules.all.iter().map(|module| (module.path.clone(), module.base)).collect();
        for (path, base) in files {
            let Ok(content) = std::fs::read(path) else { continue };
            let Ok(file) = object::File::parse(&*content) else { continue };
            let Some(relocations) = file.dynamic_relocations() else { continue };
            for (slot, relocation) in relocations {
                let object::RelocationTarget::Symbol(index) = relocation.target() else { continue };
                let Some(table) = file.dynamic_symbol_table() else { continue };
                use object::ObjectSymbolTable;
                let Ok(symbol) = table.symbol_by_index(index) else { continue };
                let Some(number) = symbol.name().ok().and_then(calls::number) else { continue };
                let chosen = crate::cpu::peek_word(base.wrapping_add(slot));
                // Not yet resolved: the loader was asked to be lazy.
                let is_code = modules
                    .module(chosen & !thumb_bit())
                    .is_some_and(|m| m.origin == Origin::CLibrary);
                if is_code {
                    modules.functions.entry(chosen & !thumb_bit()).or_insert(number);
                }
            }
        }
    });
}

fn thumb_bit() -> u64 {
    u64::from(machine() == Machine::Arm)
}

impl Modules {
    fn module(&self, address: u64) -> Option<&Module> {
        self.all.iter().find(|module| module.code.iter().any(|code| code.contains(&address)))
    }

    fn module_mut(&mut self, address: u64) -> Option<&mut Module> {
        self.all.iter_mut().find(|module| module.code.iter().any(|code| code.contains(&address)))
    }

    /// Makes sure that the file at the address is known, if there is one.
    fn look_for(&mut self, address: u64) {
        if self.module(address).is_none() && self.unknown.insert(address >> 12) {
            self.look();
        }
    }

    fn look(&mut self) {
        for (begin, path) in mapped_files() {
            if self.seen.insert((begin, path.clone())) {
                self.add(begin, path);
            }
        }
    }

    fn add(&mut self, begin: u64, path: PathBuf) {
        let Ok(content) = std::fs::read(&path) else { return };
        let Ok(file) = object::File::parse(&*content) else { return };
        if machine_of(&file) != Some(machine()) {
            return; // QEMU's own
        }
        let segments = segments(&content);
        let lowest =
            segments.iter().filter(|s| s.kind == elf::PT_LOAD).map(|s| s.range.start).min();
        let base = begin.wrapping_sub(lowest.unwrap_or(0) & !0xfff);
        let at = |range: &Range<u64>| range.start.wrapping_add(base)..range.end.wrapping_add(base);
        let origin = origin_of(&path);
        let own = origin == Origin::Program;
        let mut constant = constants();
        for segment in &segments {
            match segment.kind {
                elf::PT_LOAD if segment.flags.0 & elf::PF_W.0 == 0 => {
                    constant.push(at(&segment.range))
                }
                elf::PT_LOAD if own => self.writable.push(at(&segment.range)),
                elf::PT_GNU_RELRO => constant.push(at(&segment.range)),
                _ => {}
            }
        }
        for section in file.sections() {
            let range = section.address()..section.address() + section.size();
            match section.name().unwrap_or_default() {
                ".plt" | ".plt.sec" | ".plt.got" | ".iplt" => {
                    let range = at(&range);
                    self.excluded.insert(range.start, (range.end, Origin::Runtime));
                    self.stubs.push(range);
                }
                // Only the loader writes it.
                ".got" | ".got.plt" => constant.push(at(&range)),
                _ => {}
            }
        }
        let executable =
            |segment: &&Segment| segment.kind == elf::PT_LOAD && segment.flags.0 & elf::PF_X.0 != 0;
        let code = segments.iter().filter(executable).map(|segment| at(&segment.range)).collect();
        let has_loader = segments.iter().any(|segment| segment.kind == elf::PT_INTERP);
        let is_main = path == crate::system::binary();
        let is_static = is_main && !has_loader;
        if is_main {
            self.entry = Some(file.entry().wrapping_add(base) & !thumb_bit());
        }
        let is_stripped = file.symbols().next().is_none();
        if origin == Origin::CLibrary || is_static {
            self.recognise(&file, base);
        }
        match is_static {
            true if is_stripped => self.recognise_code(&file, base),
            false if is_main && is_stripped => self.exclude_code(&file, base),
            true => self.exclude_archives(&file, base),
            // Processors without a division have it in a library of the compiler's, which is always static.
            false if is_main => self.exclude_archives(&file, base),
            false => {}
        }
        CONSTANT.store(Box::into_raw(Box::new(constant)), Release);
        accesses::look_again();
        self.all.push(Module { path, base, code, origin, defined: false });
    }

    /// Finds the functions that are recognised by their names.
    fn recognise(&mut self, file: &object::File<'_>, base: u64) {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if symbol.kind() != SymbolKind::Text || symbol.address() == 0 {
                continue;
            }
            // What stands for several implementations is only called to choose one.
            let is_chooser = matches!(symbol.flags(), object::SymbolFlags::Elf { st_info, .. }
                if st_info.st_type() == elf::STT_GNU_IFUNC);
            let Some(number) = symbol.name().ok().and_then(calls::number) else { continue };
            if !is_chooser {
                let address = symbol.address().wrapping_add(base) & !thumb_bit();
                self.functions.insert(address, number);
            }
        }
    }

    /// In a static executable without symbols, the C library is told by its code. The linker puts it
    /// behind the program, whose own code begins with its entry: all from there on is the library's.
    fn recognise_code(&mut self, file: &object::File<'_>, base: u64) {
        let all = signatures_of_archives();
        let entry = file.entry().wrapping_add(base) & !thumb_bit();
        let (mut is_known, mut is_told) = (false, true);
        let mut recognised: FxHashSet<&str> = FxHashSet::default();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let Ok(code) = section.data() else { continue };
            let begin = section.address().wrapping_add(base);
            let end = begin + code.len() as u64;
            let mut found = signatures::find(code, begin, machine(), &all);
            let library = signatures::begin_of_library(&found, entry, end);
            signatures::find_small(&mut found, code, begin, machine(), library, &all);
            let told = signatures::told(&found, code, begin, machine(), &all);
            for (number, (part, may_be)) in found.iter().zip(told).enumerate() {
                let functions = may_be.iter().flat_map(|part| &part.functions);
                for (offset, name) in functions {
                    is_known |= name.starts_with("__libc_start_main");
                    let Some(number) = calls::number(name) else { continue };
                    let meant = |part: &&signatures::Part| {
                        let mut names = part.functions.iter().map(|(_, name)| calls::number(name));
                        names.any(|other| other == Some(number))
                    };
                    match may_be.iter().all(meant) {
                        true => {
                            self.functions.insert(part.address + offset, number);
                            recognised.insert(name);
                        }
                        // Not to recognise these loses nothing.
                        false => is_told &= name.ends_with("_init"),
                    }
                }
                let next = found.get(number + 1).map_or(end, |next| next.address);
                let own = part.address + part.size;
                let until = if part.address >= library { next } else { own };
                let origin = all[part.signature].origin;
                if origin == Origin::Program {
                    self.shared.push(part.address..until);
                }
                self.excluded.insert(part.address, (until, origin));
            }
        }
        let lacks = |(taken, given): &(&str, &str)| {
            recognised.contains(taken) && !recognised.contains(given)
        };
        is_known &= calls::EVERYWHERE.iter().all(|name| recognised.contains(name));
        if !is_known || !is_told || calls::PAIRS.iter().any(lacks) {
            // What is recognised of it by chance is no use: what one function takes another gives back.
            self.functions.clear();
            self.excluded.clear();
            self.shared.clear();
            futexes::turn_on();
        }
    }

    /// Functions of the archives are not the program's, wherever their code is found.
    fn exclude_code(&mut self, file: &object::File<'_>, base: u64) {
        let all = signatures_of_archives();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let Ok(code) = section.data() else { continue };
            let begin = section.address().wrapping_add(base);
            for part in signatures::find(code, begin, machine(), &all) {
                let end = part.address + part.size;
                self.excluded.insert(part.address, (end, all[part.signature].origin));
            }
        }
    }

    /// In a static executable, functions of the same name and size as one of the C library's archives
    /// are the library's.
    fn exclude_archives(&mut self, file: &object::File<'_>, base: u64) {
        let archives = ARCHIVES.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known: FxHashMap<(Vec<u8>, u64), Origin> = FxHashMap::default();
        for path in &*archives {
            let origin = origin_of(path);
            known.extend(functions_of_archive(path).into_iter().map(|function| (function, origin)));
        }
        let text = |symbol: &object::Symbol<'_, '_>| symbol.kind() == SymbolKind::Text;
        let begin =
            |symbol: &object::Symbol<'_, '_>| symbol.address().wrapping_add(base) & !thumb_bit();
        let mut begins: Vec<u64> =
            file.symbols().filter(text).map(|symbol| begin(&symbol)).collect();
        begins.sort_unstable();
        for symbol in file.symbols().filter(text) {
            let name = symbol.name_bytes().unwrap_or_default().to_vec();
            let Some(&origin) = known.get(&(name, symbol.size())) else { continue };
            // What is written in assembly goes on past its end.
            let begin = begin(&symbol);
            let next = begins.partition_point(|&other| other <= begin);
            let end = begins.get(next).copied().unwrap_or(begin + symbol.size());
            match symbol.name().is_ok_and(is_atomic_operation) {
                true => self.shared.push(begin..end),
                false => _ = self.excluded.insert(begin, (end, origin)),
            }
        }
    }
}

/// The code of the archives that were given.
fn signatures_of_archives() -> Vec<Signature> {
    let archives = ARCHIVES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = Vec::new();
    for path in &*archives {
        signatures::add(&mut all, machine(), path, origin_of(path));
    }
    signatures::merged(all)
}

fn constants() -> Vec<Range<u64>> {
    let constant = CONSTANT.load(Acquire);
    // SAFETY: lists are never freed.
    if constant.is_null() { Vec::new() } else { unsafe { (*constant).clone() } }
}

/// The functions of an archive: names and sizes.
fn functions_of_archive(path: &Path) -> Vec<(Vec<u8>, u64)> {
    let mut functions = Vec::new();
    let Ok(content) = std::fs::read(path) else { return functions };
    let Ok(archive) = object::read::archive::ArchiveFile::parse(&*content) else {
        return functions;
    };
    for member in archive.members().flatten() {
        let Ok(bytes) = member.data(&*content) else { continue };
        let Ok(file) = object::File::parse(bytes) else { continue };
        for symbol in file.symbols() {
            if symbol.is_definition() && symbol.kind() == SymbolKind::Text {
                functions.push((symbol.name_bytes().unwrap_or_default().to_vec(), symbol.size()));
            }
        }
    }
    functions
}

/// Whose code a file has. Only the program's memory traffic is recorded.
fn origin_of(path: &Path) -> Origin {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let begins = |names: &[&str]| names.iter().any(|begin| name.starts_with(begin));
    match () {
        () if begins(&["libc.", "libc-", "ld-", "libpthread", "librt", "libdl", "libresolv"]) => {
            Origin::CLibrary
        }
        () if begins(&["libnss", "libm.", "libm-", "libmvec"]) => Origin::CLibrary,
        () if begins(&["libgcc", "libstdc++"]) => Origin::Runtime,
        () => Origin::Program,
    }
}

fn machine_of(file: &object::File<'_>) -> Option<Machine> {
    match file.architecture() {
        object::Architecture::X86_64 => Some(Machine::X86),
        object::Architecture::Aarch64 => Some(Machine::Arm64),
        object::Architecture::Arm => Some(Machine::Arm),
        _ => None,
    }
}

/// What a program header says.
struct Segment {
    kind: elf::ProgramType,
    flags: elf::ProgramFlags,
    range: Range<u64>,
}

fn segments(content: &[u8]) -> Vec<Segment> {
    match object::FileKind::parse(content) {
        Ok(object::FileKind::Elf64) => of_headers::<elf::FileHeader64<object::Endianness>>(content),
        Ok(object::FileKind::Elf32) => of_headers::<elf::FileHeader32<object::Endianness>>(content),
        _ => Vec::new(),
    }
}

fn of_headers<H: FileHeader<Endian = object::Endianness>>(content: &[u8]) -> Vec<Segment> {
    let Ok(header) = H::parse(content) else { return Vec::new() };
    let Ok(endian) = header.endian() else { return Vec::new() };
    let Ok(headers) = header.program_headers(endian, content) else { return Vec::new() };
    let segment = |header: &H::ProgramHeader| {
        let begin: u64 = header.p_vaddr(endian).into();
        let size: u64 = header.p_memsz(endian).into();
        let range = begin..begin.saturating_add(size);
        Segment { kind: header.p_type(endian), flags: header.p_flags(endian), range }
    };
    headers.iter().map(segment).collect()
}

/// Addresses of this process from here on are QEMU's own, and the kernel's choice.
const HOST: u64 = 0x7000_0000_0000;

/// The begins of the program's files, in its own addresses.
fn mapped_files() -> Vec<(u64, PathBuf)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let emulator = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let mut files: Vec<(u64, PathBuf)> = Vec::new();
    let found = maps.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let begin = u64::from_str_radix(words.next()?.split('-').next()?, 16).ok()?;
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        let path = PathBuf::from(&line[line.find('/')?..]);
        let guest = begin.checked_sub(guest_base())?;
        (offset == 0 && begin < HOST && path != emulator).then_some((guest, path))
    });
    for (begin, path) in found {
        // The first page of a small file is mapped twice: for its code and for its data.
        if files.iter().all(|(_, known)| *known != path) {
            files.push((begin, path));
        }
    }
    files
}

/// The mapping that the address is in, if what lies right below it cannot be accessed: a stack with its
/// guard.
pub fn stack_around(address: u64) -> Option<Range<u64>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let host = address.wrapping_add(guest_base());
    let mut guard_end = None;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let begin = u64::from_str_radix(begin, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let access = words.next()?;
        if begin <= host && host < end {
            return (guard_end == Some(begin)).then(|| begin - guest_base()..end - guest_base());
        }
        guard_end = access.starts_with("---").then_some(end);
    }
    None
}
