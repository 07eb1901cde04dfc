//! Source positions of program counters and names of addresses, from the modules' own tables or from
//! a log that brings along what its recorder found in them.
//!
//! A program is run thousands of times, and reading the tables takes longer than a run: what was found
//! in a file is kept for the next run, as long as the file is the same.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use foretell_trace::Site;
use foretell_trace::format::Mapped;
use object::{Object, ObjectSymbol, SymbolKind};
use rustc_hash::FxHashMap;

use crate::names;

/// A loaded executable or library.
struct Module {
    base: u64,
    first: u64,
    end: u64,
    path: PathBuf,
    tables: Arc<Tables>,
    lines: Option<addr2line::Loader>,
    opened: bool,
    /// Of 32-bit ARM, 1: functions in Thumb have odd addresses in the symbol table.
    odd: u64,
}

/// What was found in a module's file so far.
struct Tables {
    /// Device, number, size and time of change of the file.
    file: Option<[i64; 5]>,
    /// What its data is called, as if it had been loaded at 0; sorted by address.
    names: Vec<Named>,
    /// The source positions of the calls that were asked for, by offset.
    sites: Mutex<FxHashMap<u64, Site>>,
}

impl Tables {
    /// Those of a file.
    fn of(path: &Path) -> Arc<Self> {
        static KNOWN: Mutex<Option<HashMap<PathBuf, Arc<Tables>>>> = Mutex::new(None);
        let file = std::fs::metadata(path).ok().map(|file| {
            let (device, number) = (file.dev() as i64, file.ino() as i64);
            [device, number, file.size() as i64, file.mtime(), file.mtime_nsec()]
        });
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        match known.get(path) {
            Some(tables) if tables.file == file => Arc::clone(tables),
            _ => {
                let mut names = data_symbols(0, path);
                names.sort_by_key(|named| named.address);
                let tables = Arc::new(Self { file, names, sites: Mutex::default() });
                known.insert(path.to_owned(), Arc::clone(&tables));
                tables
            }
        }
    }

    /// Nothing is known.
    fn none() -> Arc<Self> {
        Arc::new(Self { file: None, names: Vec::new(), sites: Mutex::default() })
    }
}

/// A named piece of memory.
pub struct Named {
    pub address: u64,
    pub size: u64,
    pub name: Box<str>,
}

/// What a log has in place of the modules' files.
#[derive(Default)]
pub struct Stored {
    /// What the data of each module is called.
    pub names: HashMap<PathBuf, Vec<Named>>,
    /// The source positions of program counters.
    pub sites: FxHashMap<u64, Site>,
}

/// All modules of the program.
#[derive(Default)]
pub struct Symbols {
    modules: Vec<Module>,
    /// Sorted by address when `sorted`.
    named: Vec<Named>,
    sorted: bool,
    /// Each module once, with where it was loaded.
    tables: Vec<(u64, Arc<Tables>)>,
    with_symbols: HashSet<PathBuf>,
    /// In place of files.
    stored: Option<Stored>,
}

impl Symbols {
    /// Those of a log: no file is looked at.
    pub fn stored(stored: Stored) -> Self {
        Self { stored: Some(stored), ..Self::default() }
    }

    /// Adds an executable segment of the module that was loaded at `base`, with the names of its
    /// data.
    pub fn add_module(&mut self, base: u64, first: u64, end: u64, path: PathBuf) {
        if self.with_symbols.insert(path.clone()) {
            match &mut self.stored {
                Some(stored) => {
                    self.named.extend(stored.names.remove(&path).unwrap_or_default());
                    self.sorted = false;
                }
                None => self.tables.push((base, Tables::of(&path))),
            }
        }
        self.add_segment(base, first, end, path);
    }

    /// As [`Symbols::add_module`], without the names.
    pub fn add_segment(&mut self, base: u64, first: u64, end: u64, path: PathBuf) {
        let loaded = self.tables.iter().find(|(known, _)| *known == base);
        let tables = match loaded {
            Some((_, tables)) => Arc::clone(tables),
            None if self.stored.is_some() => Tables::none(),
            None => Tables::of(&path),
        };
        self.modules.push(Module {
            base,
            first,
            end,
            path,
            tables,
            lines: None,
            opened: false,
            odd: 0,
        });
    }

    /// Names a piece of memory.
    pub fn add_name(&mut self, address: u64, size: u64, name: &str) {
        if size > 0 && !name.is_empty() {
            self.named.push(Named { address, size, name: name.into() });
            self.sorted = false;
        }
    }

    /// The name of what lies at the address, with the distance from its begin.
    pub fn name(&mut self, address: u64) -> Option<String> {
        if !self.sorted {
            // Later names (those of the compiler pass) win over earlier ones (the symbol table's).
            self.named.sort_by_key(|named| named.address);
            self.sorted = true;
        }
        let of_modules = self.tables.iter().filter_map(|(base, tables)| {
            let named = containing(&tables.names, address.checked_sub(*base)?)?;
            Some((named.address + base, named))
        });
        let given = containing(&self.named, address).map(|named| (named.address, named));
        // The innermost; of several, the compiler pass's.
        let (begin, named) = of_modules.chain(given).max_by_key(|(begin, _)| *begin)?;
        Some(match address - begin {
            0 => named.name.to_string(),
            distance => format!("{}+{distance}", named.name),
        })
    }

    /// The source position of the call that returns to this program counter.
    pub fn site(&mut self, place: u64) -> Site {
        let mut site = Site { file: "".into(), line: 0, column: 0, function: "".into() };
        if let Some(stored) = &self.stored {
            return stored.sites.get(&place).cloned().unwrap_or(site);
        }
        let found = self.modules.iter_mut().find(|m| m.first <= place && place < m.end);
        let Some(module) = found else { return site };
        // What our runtime calls back (the routine of a `pthread_once`, a destructor of thread-local
        // data) was called by the program: its place is that of the call into the runtime.
        if module.path.file_name().is_some_and(|file| file == foretell_build::locate::RUNTIME) {
            return site;
        }
        let probe = place.wrapping_sub(module.base).wrapping_sub(1);
        let tables = Arc::clone(&module.tables);
        let known = || tables.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(site) = known().get(&probe) {
            return site.clone();
        }
        if !module.opened {
            module.opened = true;
            module.lines = addr2line::Loader::new(&module.path).ok();
            module.odd = u64::from(is_of_arm(&module.path));
        }
        let Some(lines) = &module.lines else { return site };
        let mut frames = lines.find_frames(probe).ok();
        let mut next = || frames.as_mut().and_then(|frames| frames.next().ok().flatten());
        let mut innermost = next();
        // What the language's library has inlined belongs to the program's own line.
        while innermost.as_ref().is_some_and(is_of_library)
            && let Some(outer) = next()
        {
            innermost = Some(outer);
        }
        if let Some(frame) = innermost {
            if let Some(location) = frame.location {
                site.file = location.file.unwrap_or_default().into();
                site.line = location.line.unwrap_or(0);
                site.column = location.column.unwrap_or(0);
            }
            if let Some(function) = &frame.function
                && let Ok(name) = function.demangle()
            {
                site.function = name.as_ref().into();
                names::shorten(&mut site);
            }
        }
        if site.function.is_empty()
            && let Some(symbol) = lines.find_symbol(probe | module.odd)
        {
            // A name of C may be a type in C++'s mangling: `w` is `wchar_t` there.
            let is_mangled = symbol.starts_with("_Z") || symbol.starts_with("_R");
            site.function = match is_mangled {
                true => addr2line::demangle_auto(symbol.into(), None).as_ref().into(),
                false => symbol.into(),
            };
        }
        if site.line == 0 {
            site.function = with_offset(module, lines, &site.function, probe).into();
        }
        known().insert(probe, site.clone());
        site
    }
}

/// Where there are no source positions, places are told by their distance from what has a name: the
/// function, or the file.
fn with_offset(module: &Module, lines: &addr2line::Loader, function: &str, probe: u64) -> String {
    let Module { path, odd, .. } = module;
    let begin = lines.find_symbol_info(probe | odd).map(|symbol| symbol.address() & !odd);
    match begin {
        Some(begin) if !function.is_empty() && begin == probe => function.to_owned(),
        Some(begin) if !function.is_empty() => format!("{function}+{:#x}", probe - begin),
        _ => {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            format!("{file}+{probe:#x}")
        }
    }
}

/// Whether the file is for 32-bit ARM.
fn is_of_arm(path: &Path) -> bool {
    let content = File::open(path).and_then(Mapped::of);
    content.is_ok_and(|content| {
        let file = object::File::parse(&*content);
        file.is_ok_and(|file| file.architecture() == object::Architecture::Arm)
    })
}

/// Whether the frame is of the language's own library.
fn is_of_library<R: addr2line::gimli::Reader>(frame: &addr2line::Frame<'_, R>) -> bool {
    let file = frame.location.as_ref().and_then(|location| location.file);
    file.is_some_and(foretell_wire::is_of_library)
}

/// What lies at the address, of a list that is sorted by address.
fn containing(sorted: &[Named], address: u64) -> Option<&Named> {
    let after = sorted.partition_point(|named| named.address <= address);
    let before = sorted[..after].iter().rev().take(8);
    before.into_iter().find(|named| address - named.address < named.size)
}

/// What the data of a module is called that was loaded at `base`; nothing if its file is not there.
pub fn data_symbols(base: u64, path: &Path) -> Vec<Named> {
    let Ok(content) = File::open(path).and_then(Mapped::of) else { return Vec::new() };
    let Ok(file) = object::File::parse(&*content) else { return Vec::new() };
    file.symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0)
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            let address = base.wrapping_add(symbol.address());
            Some(Named { address, size: symbol.size(), name: name.into() })
        })
        .collect()
}
