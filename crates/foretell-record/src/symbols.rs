//! Source positions of program counters and names of addresses, from the modules' own tables.

use std::collections::HashMap;
use std::path::PathBuf;

use foretell_trace::Site;
use object::{Object, ObjectSymbol, SymbolKind};

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
struct Named {
    address: u64,
    size: u64,
    name: Box<str>,
}

/// All modules of the program.
#[derive(Default)]
pub struct Symbols {
    modules: Vec<Module>,
    /// Sorted by address when `sorted`.
    named: Vec<Named>,
    sorted: bool,
    with_symbols: HashMap<PathBuf, ()>,
}

impl Symbols {
    /// Adds an executable segment of the module that was loaded at `base`.
    pub fn add_module(&mut self, base: u64, first: u64, end: u64, path: PathBuf) {
        if self.with_symbols.insert(path.clone(), ()).is_none() {
            self.add_data_symbols(base, &path);
        }
        self.modules.push(Module { base, first, end, path, lines: None, opened: false });
    }

    /// Names a piece of memory.
    pub fn add_name(&mut self, address: u64, size: u64, name: &str) {
        if size > 0 && !name.is_empty() {
            self.named.push(Named { address, size, name: name.into() });
            self.sorted = false;
        }
    }

    fn add_data_symbols(&mut self, base: u64, path: &std::path::Path) {
        let Ok(content) = std::fs::read(path) else { return };
        let Ok(file) = object::File::parse(&*content) else { return };
        for symbol in file.symbols() {
            if symbol.kind() == SymbolKind::Data
                && let Ok(name) = symbol.name()
            {
                self.add_name(base.wrapping_add(symbol.address()), symbol.size(), name);
            }
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
