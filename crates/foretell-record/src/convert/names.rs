//! Source positions of places, and what people call a piece of memory: as the program describes it, by a symbol, by where it
//! was allocated, or by its address.

use std::collections::{BTreeMap, HashMap, HashSet};

use foretell_trace::{Site, SiteId};
use rustc_hash::FxHashMap;

use crate::described::Description;
use crate::symbols::Symbols;

/// Places whose sites are at hand.
const RECENT_SITES: usize = 1024;

/// See the module's text.
pub struct Names {
    pub symbols: Symbols,
    sites: FxHashMap<u64, (SiteId, Box<str>)>,
    /// All sites in the file, with their places.
    defined: HashMap<(u64, Site), SiteId>,
    /// Sites met lately, by the low bits of their place.
    recent_sites: [(u64, SiteId); RECENT_SITES],
    /// All sites by their numbers, and those that are in the language's library.
    written_sites: Vec<Site>,
    of_library: HashSet<SiteId>,
    /// Allocated blocks: size and where they came from.
    blocks: BTreeMap<u64, (u64, SiteId)>,
    /// What variables and the things that `new` makes are called, by the place of the description.
    descriptions: FxHashMap<u64, Description>,
    /// The place of the description of what begins at an address, and its number where it is on the heap.
    described: BTreeMap<u64, (u64, u32)>,
    /// How many things of each type `new` has made.
    made: HashMap<Box<str>, u32>,
}

impl Names {
    pub fn new(symbols: Symbols) -> Self {
        Self {
            symbols,
            sites: FxHashMap::default(),
            defined: HashMap::new(),
            recent_sites: [(0, SiteId(0)); RECENT_SITES],
            written_sites: Vec::new(),
            of_library: HashSet::new(),
            blocks: BTreeMap::new(),
            descriptions: FxHashMap::default(),
            described: BTreeMap::new(),
            made: HashMap::new(),
        }
    }

    /// The site at a place: one that the pass defined, or one found by its program counter. What the
    /// language's library does belongs to the line of the program that called it: `callers` are where open calls of it
    /// return to. `write` is given every site that is new.
    #[inline]
    pub fn site(
        &mut self,
        place: u64,
        callers: &[u64],
        mut write: impl FnMut(SiteId, &Site),
    ) -> Option<SiteId> {
        if place == 0 {
            return None;
        }
        let site = self.own_site(place, &mut write);
        if !self.of_library.contains(&site) {
            return Some(site);
        }
        for &caller in callers.iter().rev() {
            let caller = self.own_site(caller, &mut write);
            if !self.of_library.contains(&caller) {
                return Some(caller);
            }
        }
        Some(site)
    }

    /// The site at a place, whatever it belongs to.
    #[inline]
    fn own_site(&mut self, place: u64, write: &mut impl FnMut(SiteId, &Site)) -> SiteId {
        let way = way(place);
        if self.recent_sites[way].0 == place {
            return self.recent_sites[way].1;
        }
        let known = self.sites.get(&place).map(|&(site, _)| site);
        let site = known.unwrap_or_else(|| {
            let site = self.symbols.site(place);
            self.define_site(place, site, write)
        });
        self.recent_sites[way] = (place, site);
        site
    }

    /// The site at a place. Where a library was unloaded, another one's may take the place of one.
    pub fn define_site(
        &mut self,
        place: u64,
        site: Site,
        mut write: impl FnMut(SiteId, &Site),
    ) -> SiteId {
        let next = SiteId(self.defined.len() as u32);
        // Nothing tells places apart of which nothing is known.
        let is_known = !site.file.is_empty() || !site.function.is_empty();
        let by_place = if is_known { place } else { 0 };
        let id = *self.defined.entry((by_place, site.clone())).or_insert(next);
        self.recent_sites[way(place)] = (place, id);
        if id != next {
            self.sites.insert(place, (id, site.function));
            return id;
        }
        // A place without a line is no place of the program, either.
        if foretell_wire::is_of_library(&site.file) || site.line == 0 {
            self.of_library.insert(id);
        }
        write(id, &site);
        self.written_sites.push(site.clone());
        self.sites.insert(place, (id, site.function));
        id
    }

    /// The function at a place whose site is known.
    pub fn function(&self, place: u64) -> &str {
        self.sites.get(&place).map_or("", |(_, function)| function)
    }

    /// A block was allocated.
    pub fn allocated(&mut self, address: u64, size: u64, site: Option<SiteId>) {
        self.described.remove(&address);
        self.blocks.insert(address, (size, site.unwrap_or(SiteId(u32::MAX))));
    }

    /// A block is no more; gives its size.
    pub fn freed(&mut self, address: u64) -> Option<u64> {
        self.blocks.remove(&address).map(|(size, _)| size)
    }

    /// The program describes what it will have at addresses.
    pub fn define_description(&mut self, place: u64, description: Description) {
        self.descriptions.insert(place, description);
    }

    /// What begins at the address is as described at the place. Gives its size where another variable was there before:
    /// that of another function, where the stack is used again.
    pub fn describe(&mut self, address: u64, place: u64) -> Option<Option<u64>> {
        let what = self.descriptions.get(&place)?;
        let mut number = 0;
        if self.blocks.contains_key(&address) {
            let made = self.made.entry(what.name.clone()).or_default();
            *made += 1;
            number = *made;
        }
        let before = self.described.insert(address, (place, number));
        Some(before.filter(|&(before, _)| before != place).map(|_| what.size))
    }

    /// How people may call the memory.
    pub fn of_memory(&mut self, address: u64) -> String {
        let block = self.blocks.range(..=address).next_back();
        let block = block.map(|(&first, &(size, site))| (first, size, site));
        let block = block.filter(|&(first, size, _)| address - first < size);
        if let Some((&first, &(place, number))) = self.described.range(..=address).next_back()
            && let Some(what) = self.descriptions.get(&place)
        {
            match block {
                Some((begin, _, site)) if begin == first && number > 0 => {
                    let place =
                        self.line_of(site).map_or(String::new(), |place| format!(" ({place})"));
                    return format!("{}{place}", what.numbered(number, address - first));
                }
                None if address - first < what.size => {
                    let part = what.part(address - first);
                    return match what.function.is_empty() {
                        true => part,
                        false => format!("{part} in {}", what.function),
                    };
                }
                _ => {}
            }
        }
        if let Some(name) = self.symbols.name(address) {
            return name;
        }
        match block.and_then(|(first, _, site)| Some((first, self.line_of(site)?))) {
            Some((first, line)) => format!("heap@{line}+{}", address - first),
            None => format!("{address:#x}"),
        }
    }

    /// File and line of a site, where it has one.
    fn line_of(&self, id: SiteId) -> Option<String> {
        let site = self.written_sites.get(id.index())?;
        let file = site.file.rsplit('/').next().filter(|file| !file.is_empty())?;
        Some(format!("{file}:{}", site.line))
    }
}

/// Where a place is among the recent sites.
#[inline]
fn way(place: u64) -> usize {
    (place as usize ^ (place >> 10) as usize) % RECENT_SITES
}
