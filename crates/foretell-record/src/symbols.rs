//! Source positions of program counters and names of addresses, from the modules' own tables or from
//! a log that brings along what its recorder found in them.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use foretell_trace::Site;
use foretell_trace::format::Mapped;
use object::{Object, ObjectSymbol, SymbolKind};

use crate::hash::FastMap;

/// A loaded executable or library.
struct Module {
    base: u64,
    first: u64,
    end: u64,
    path: PathBuf,
    lines: Option<addr2line::Loader>,
    opened: bool,
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
    pub sites: FastMap<u64, Site>,
}

/// All modules of the program.
#[derive(Default)]
pub struct Symbols {
    modules: Vec<Module>,
    /// Sorted by address when `sorted`.
    named: Vec<Named>,
    sorted: bool,
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
            let names = match &mut self.stored {
                Some(stored) => stored.names.remove(&path).unwrap_or_default(),
                None => data_symbols(base, &path),
            };
            self.named.extend(names);
            self.sorted = false;
        }
        self.add_segment(base, first, end, path);
    }

    /// As [`Symbols::add_module`], without the names.
    pub fn add_segment(&mut self, base: u64, first: u64, end: u64, path: PathBuf) {
        self.modules.push(Module { base, first, end, path, lines: None, opened: false });
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
        let after = self.named.partition_point(|named| named.address <= address);
        let named = self.named[..after]
            .iter()
            .rev()
            .take(8)
            .find(|named| address - named.address < named.size)?;
        Some(match address - named.address {
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
        if !module.opened {
            module.opened = true;
            module.lines = addr2line::Loader::new(&module.path).ok();
        }
        let Some(lines) = &module.lines else { return site };
        let probe = place.wrapping_sub(module.base).wrapping_sub(1);
        if let Ok(mut frames) = lines.find_frames(probe)
            && let Ok(Some(frame)) = frames.next()
        {
            if let Some(location) = frame.location {
                site.file = location.file.unwrap_or_default().into();
                site.line = location.line.unwrap_or(0);
                site.column = location.column.unwrap_or(0);
            }
            if let Some(function) = &frame.function
                && let Ok(name) = function.demangle()
            {
                site.function = name.as_ref().into();
            }
        }
        if site.function.is_empty()
            && let Some(symbol) = lines.find_symbol(probe)
        {
            site.function = addr2line::demangle_auto(symbol.into(), None).as_ref().into();
        }
        site
    }
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
