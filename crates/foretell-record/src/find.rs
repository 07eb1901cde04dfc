//! Where programs and our own library are, and what build a program is.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use foretell_build::locate::RUNTIME;
use foretell_trace::format::Mapped;
use foretell_wire::{CONTRACT, CONTRACT_SYMBOL};
use object::{Object, ObjectSection, ObjectSymbol};

/// The runtime library: of those where foretell's files may be, the first of this build, or any at all.
pub fn runtime_library() -> Option<PathBuf> {
    library(RUNTIME)
}

/// A library of ours, see [`runtime_library`].
pub fn library(name: &str) -> Option<PathBuf> {
    let places = foretell_build::locate::directories().into_iter();
    let found: Vec<PathBuf> =
        places.filter_map(|place| place.join(name).canonicalize().ok()).collect();
    found.iter().find(|path| is_of_this_build(path)).or(found.first()).cloned()
}

/// The file that running `program` would execute: as the shell looks it up.
pub fn program(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 || program.is_absolute() {
        return program.is_file().then(|| program.canonicalize().ok())?;
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
        .and_then(|path| path.canonicalize().ok())
}

/// Whether a runtime library was built together with this recorder. Looked up once: a program may
/// be run a thousand times.
pub fn is_of_this_build(library: &Path) -> bool {
    static KNOWN: Mutex<Vec<(PathBuf, bool)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, same)) = known.iter().find(|(path, _)| path == library) {
        return *same;
    }
    let same = contract_of(library) == Some(CONTRACT);
    known.push((library.to_owned(), same));
    same
}

/// The contract that a runtime library shows; older ones show none.
fn contract_of(library: &Path) -> Option<u64> {
    let content = File::open(library).and_then(Mapped::of).ok()?;
    let file = object::File::parse(&*content).ok()?;
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(CONTRACT_SYMBOL))?;
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let bytes = section.data_range(symbol.address(), 8).ok()??;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// The build id of an executable in hexadecimal.
pub fn build_id(path: &Path) -> Option<String> {
    let content = File::open(path).and_then(Mapped::of).ok()?;
    let file = object::File::parse(&*content).ok()?;
    let id = file.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}
