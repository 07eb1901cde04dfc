//! Where programs and our own library are, and what build a program is.

use std::env;
use std::path::{Path, PathBuf};

use foretell_wire::{CONTRACT, CONTRACT_SYMBOL};
use object::{Object, ObjectSection, ObjectSymbol};

const LIBRARY: &str = "libforetell_runtime.so";

/// The runtime library: beside the running executable, in `../lib/foretell`, or where cargo puts
/// it.
pub fn runtime_library() -> Option<PathBuf> {
    let executable = env::current_exe().ok()?.canonicalize().ok()?;
    let beside = executable.parent()?;
    let places = [
        beside.to_owned(),
        beside.join("../lib/foretell"),
        beside.join("../lib"),
        beside.join("deps"),
        beside.join(".."),
    ];
    places
        .into_iter()
        .map(|place| place.join(LIBRARY))
        .find(|path| path.is_file())
        .and_then(|path| path.canonicalize().ok())
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

/// Whether a runtime library was built together with this recorder; `None` when that cannot be read.
pub fn is_of_this_build(library: &Path) -> Option<bool> {
    let content = std::fs::read(library).ok()?;
    let file = object::File::parse(&*content).ok()?;
    let Some(symbol) = file.dynamic_symbols().find(|s| s.name() == Ok(CONTRACT_SYMBOL)) else {
        return Some(false); // older than the mark
    };
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let bytes = section.data_range(symbol.address(), 8).ok()??;
    Some(u64::from_le_bytes(bytes.try_into().ok()?) == CONTRACT)
}

/// The build id of an executable in hexadecimal.
pub fn build_id(path: &Path) -> Option<String> {
    let content = std::fs::read(path).ok()?;
    let file = object::File::parse(&*content).ok()?;
    let id = file.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}
