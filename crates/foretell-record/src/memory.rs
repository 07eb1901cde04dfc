//! The program's memory as the events showed it: which variable an access is of, what it held at
//! first, and whether somebody wrote behind our back.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::limits::MOST_ZEROS;

/// Eight bytes of memory.
#[derive(Clone, Copy, Default)]
struct Granule {
    /// What the events have left there, byte by byte.
    current: u64,
    /// What was there before the first event.
    initial: u64,
    /// The first variable that begins in each half: number plus 1, 0 for none yet. Two, because
    /// most memory is accessed in words of eight or of four bytes.
    variables: [u32; 2],
    /// How often this memory became another location.
    generation: u32,
    /// Which bytes of `current` are known, one bit each.
    known: u8,
    /// Which bytes of `initial` are known.
    initially: u8,
    /// Offset and size of each of `variables` in bits 0..4 and 4..8.
    shapes: [u8; 2],
}

impl Granule {
    /// The variable of accesses to this address of this size, if it is one of the two at hand.
    #[inline]
    fn variable(&self, address: u64, size: u8) -> Option<u32> {
        let half = half(address);
        let number = self.variables[half];
        (number != 0 && self.shapes[half] == shape(address, size)).then(|| number - 1)
    }
}

const GRANULES: usize = 512;
type Page = [Granule; GRANULES];

/// See the module's text.
#[derive(Default)]
pub struct Memory {
    pages: Vec<Box<Page>>,
    by_number: FxHashMap<u64, u32>,
    /// Pages used lately, by the low bits of their number: number plus 1, and where they are.
    recent: Recent,
    /// Variables that are not their granule's: by address, size and generation.
    others: FxHashMap<(u64, u8, u32), u32>,
    /// How many reads returned what no event had written.
    pub unseen: u64,
    /// Who uses which memory, where that is asked for.
    users: Option<Users>,
}

/// Which thread uses each granule, and how many reads of it returned what no event had written.
#[derive(Default)]
struct Users {
    /// `None` where several do.
    by_granule: BTreeMap<u64, (Option<u32>, u64)>,
    /// What was found of memory that several used and that was freed.
    shared: u64,
}

impl Users {
    fn touch(&mut self, address: u64, size: u8, thread: u32) {
        for granule in address >> 3..=(address + u64::from(size.max(1)) - 1) >> 3 {
            let (user, _) = self.by_granule.entry(granule).or_insert((Some(thread), 0));
            if *user != Some(thread) {
                *user = None;
            }
        }
    }

    fn free(&mut self, freed: Range<u64>) {
        let over = freed.start >> 3..freed.end.div_ceil(8);
        let over: Vec<u64> = self.by_granule.range(over).map(|(granule, _)| *granule).collect();
        for granule in over {
            if let Some((None, unseen)) = self.by_granule.remove(&granule) {
                self.shared += unseen;
            }
        }
    }
}

/// See [`Memory`].
struct Recent([(u64, u32); Recent::WAYS]);

impl Recent {
    const WAYS: usize = 1024;
}

impl Default for Recent {
    fn default() -> Self {
        Self([(0, 0); Self::WAYS])
    }
}

/// What is known about a location before its first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// How often the memory had become another location.
    pub generation: u32,
    /// What it held at first.
    pub initial: Option<u64>,
}

/// Bits of the bytes `offset .. offset + size` of a granule.
#[inline]
fn mask(offset: u64, size: u8) -> u8 {
    (((1u32 << size) - 1) << offset) as u8
}

/// The same as a mask of the granule's 64 bits.
#[inline]
fn wide(mask: u8) -> u64 {
    /// Made once: this is asked several times an event.
    static MASKS: [u64; 256] = {
        let mut masks = [0; 256];
        let mut mask = 0;
        while mask < 256 {
            let mut bit = 0;
            while bit < 8 {
                if mask >> bit & 1 == 1 {
                    masks[mask] |= 0xff << (8 * bit);
                }
                bit += 1;
            }
            mask += 1;
        }
        masks
    };
    MASKS[mask as usize]
}

/// The half of its granule that the address lies in.
#[inline]
fn half(address: u64) -> usize {
    (address >> 2 & 1) as usize
}

/// Offset and size of an access, see [`Granule::shapes`].
#[inline]
fn shape(address: u64, size: u8) -> u8 {
    (address % 8) as u8 | size << 4
}

impl Memory {
    #[inline]
    fn page(&mut self, number: u64) -> usize {
        let way = number as usize % Recent::WAYS;
        let (recent, index) = self.recent.0[way];
        if recent == number + 1 { index as usize } else { self.find_page(number, way) }
    }

    #[cold]
    #[inline(never)]
    fn find_page(&mut self, number: u64, way: usize) -> usize {
        let next = self.pages.len() as u32;
        let index = *self.by_number.entry(number).or_insert(next);
        if index == next {
            self.pages.push(Box::new([Granule::default(); GRANULES]));
        }
        self.recent.0[way] = (number + 1, index);
        index as usize
    }

    #[inline]
    fn granule(&mut self, address: u64) -> &mut Granule {
        let page = self.page(address >> 12);
        &mut self.pages[page][(address >> 3) as usize % GRANULES]
    }

    /// The parts of an access in each granule it touches: address, size, and how far to shift.
    fn parts(address: u64, size: u8) -> impl Iterator<Item = (u64, u8, u32)> {
        let first = (8 - address % 8).min(size.into()) as u8;
        let rest = (first < size).then(|| (address + u64::from(first), size - first));
        std::iter::once((address, first, 0))
            .chain(rest.map(|(address, size)| (address, size, u32::from(first) * 8)))
    }

    /// The variable of a read that brings no news: the memory was accessed in this shape before and
    /// `value` is what the events have left there. By far the most common read.
    #[inline]
    pub fn read_again(&mut self, address: u64, size: u8, value: u64) -> Option<u32> {
        let granule = self.granule(address);
        let touched = mask(address % 8, size);
        let same = granule.known & touched == touched
            && (granule.current ^ value << (address % 8 * 8)) & wide(touched) == 0
            && address % 8 + u64::from(size) <= 8;
        if same { granule.variable(address, size) } else { None }
    }

    /// The variable of a write to memory that was accessed in this shape before and whose content
    /// is known: by far the most common write. Notes what it left.
    #[inline]
    pub fn written_again(&mut self, address: u64, size: u8, value: u64) -> Option<u32> {
        let granule = self.granule(address);
        let touched = mask(address % 8, size);
        if granule.known & touched != touched || address % 8 + u64::from(size) > 8 {
            return None;
        }
        let variable = granule.variable(address, size)?;
        let bits = wide(touched);
        granule.current = (granule.current & !bits) | (value << (address % 8 * 8) & bits);
        Some(variable)
    }

    /// What the memory held before any event, from outside knowledge.
    pub fn know(&mut self, address: u64, bytes: &[u8]) {
        if bytes.len() <= 8 && address % 8 + bytes.len() as u64 <= 8 {
            let mut value = [0; 8];
            value[..bytes.len()].copy_from_slice(bytes);
            let granule = self.granule(address);
            let new = mask(address % 8, bytes.len() as u8) & !granule.known & !granule.initially;
            let bits = u64::from_le_bytes(value) << (address % 8 * 8) & wide(new);
            granule.initially |= new;
            granule.known |= new;
            granule.initial |= bits;
            granule.current |= bits;
            return;
        }
        for (at, &byte) in (address..).zip(bytes) {
            let granule = self.granule(at);
            let bit = mask(at % 8, 1);
            if granule.initially & bit == 0 && granule.known & bit == 0 {
                let shift = at % 8 * 8;
                granule.initially |= bit;
                granule.known |= bit;
                granule.initial |= u64::from(byte) << shift;
                granule.current |= u64::from(byte) << shift;
            }
        }
    }

    /// New memory holds zeros. Not noted of more than [`MOST_ZEROS`], which would take as much memory here.
    pub fn know_zeros(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size.min(MOST_ZEROS));
        let mut at = address;
        while at < end {
            let bytes = (8 - at % 8).min(end - at);
            self.know(at, &[0; 8][..bytes as usize]);
            at += bytes;
        }
    }

    /// An access found `value` there. Says whether that is no news; if it contradicts what the
    /// events left, the memory becomes another location.
    pub fn found(&mut self, address: u64, size: u8, value: u64) {
        let granule = self.granule(address);
        let touched = mask(address % 8, size);
        if address % 8 + u64::from(size) <= 8
            && granule.known & touched == touched
            && (granule.current ^ value << (address % 8 * 8)) & wide(touched) == 0
        {
            return; // no news: by far the most common case
        }
        let mut contradicted = false;
        for (address, size, shift) in Self::parts(address, size) {
            let granule = self.granule(address);
            let touched = mask(address % 8, size);
            let known = wide(touched & granule.known);
            let bits = value >> shift << (address % 8 * 8);
            contradicted |= (granule.current ^ bits) & known != 0;
        }
        if contradicted {
            self.unseen += 1;
            if let Some(users) = &mut self.users {
                users.by_granule.entry(address >> 3).or_insert((None, 0)).1 += 1;
            }
        }
        for (address, size, shift) in Self::parts(address, size) {
            if contradicted {
                self.renew(address);
            }
            let granule = self.granule(address);
            let touched = mask(address % 8, size);
            let bits = value >> shift << (address % 8 * 8);
            let new = wide(touched & !granule.known);
            granule.current |= bits & new;
            let initially = touched & !granule.known & !granule.initially;
            granule.initial |= bits & wide(initially);
            granule.initially |= initially;
            granule.known |= touched;
        }
    }

    /// A thread accesses the memory: from the first call on it is kept who uses what.
    pub fn touch(&mut self, address: u64, size: u8, thread: u32) {
        self.users.get_or_insert_default().touch(address, size, thread);
    }

    /// How many of the unseen reads are of memory that several threads use; of all, where nobody asked
    /// who does.
    pub fn unseen_and_shared(&self) -> u64 {
        let Some(users) = &self.users else { return self.unseen };
        let now = users.by_granule.values().filter(|(user, _)| user.is_none());
        users.shared + now.map(|(_, unseen)| unseen).sum::<u64>()
    }

    /// The bytes of the granule are another location from now on.
    fn renew(&mut self, address: u64) {
        let granule = self.granule(address);
        let generation = granule.generation + 1;
        *granule = Granule { generation, ..Granule::default() };
    }

    /// An access left `value` there.
    pub fn left(&mut self, address: u64, size: u8, value: u64) {
        if address % 8 + u64::from(size) <= 8 {
            let granule = self.granule(address);
            let touched = wide(mask(address % 8, size));
            let bits = value << (address % 8 * 8);
            granule.current = (granule.current & !touched) | (bits & touched);
            granule.known |= mask(address % 8, size);
            return;
        }
        for (address, size, shift) in Self::parts(address, size) {
            let granule = self.granule(address);
            let touched = mask(address % 8, size);
            let bits = value >> shift << (address % 8 * 8);
            granule.current = (granule.current & !wide(touched)) | (bits & wide(touched));
            granule.known |= touched;
        }
    }

    /// The memory is freed: it becomes another location.
    pub fn free(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        if let Some(users) = &mut self.users {
            users.free(address..end);
        }
        let numbers = address >> 12..=end.saturating_sub(1) >> 12;
        if numbers.end().saturating_sub(*numbers.start()) < self.pages.len() as u64 {
            for number in numbers {
                if let Some(&page) = self.by_number.get(&number) {
                    free_in(&mut self.pages[page as usize], number, address..end);
                }
            }
        } else {
            // More pages than were ever accessed.
            for (&number, &page) in self.by_number.iter().filter(|(at, _)| numbers.contains(at)) {
                free_in(&mut self.pages[page as usize], number, address..end);
            }
        }
    }

    /// The number of the variable that the access is of; `define` makes a new one.
    pub fn variable(
        &mut self,
        address: u64,
        size: u8,
        define: impl FnOnce(Location) -> u32,
    ) -> u32 {
        let half = half(address);
        let granule = self.granule(address);
        if let Some(number) = granule.variable(address, size) {
            return number;
        }
        let generation = granule.generation;
        if granule.variables[half] == 0 {
            let location = Location { generation, initial: self.initial(address, size) };
            let number = define(location);
            let granule = self.granule(address);
            granule.variables[half] = number + 1;
            granule.shapes[half] = shape(address, size);
            return number;
        }
        let key = (address, size, generation);
        if let Some(&number) = self.others.get(&key) {
            return number;
        }
        let location = Location { generation, initial: self.initial(address, size) };
        let number = define(location);
        self.others.insert(key, number);
        number
    }

    fn initial(&mut self, address: u64, size: u8) -> Option<u64> {
        let mut value = 0;
        for (address, size, shift) in Self::parts(address, size) {
            let granule = self.granule(address);
            let touched = mask(address % 8, size);
            if granule.initially & touched != touched {
                return None;
            }
            value |= (granule.initial & wide(touched)) >> (address % 8 * 8) << shift;
        }
        Some(value)
    }
}

/// What lies in the freed part of a page becomes another location.
fn free_in(page: &mut Page, number: u64, freed: Range<u64>) {
    for (index, granule) in page.iter_mut().enumerate() {
        let at = (number << 12) + 8 * index as u64;
        if at.saturating_add(8) > freed.start
            && at < freed.end
            && (granule.known != 0 || granule.variables != [0; 2])
        {
            let generation = granule.generation + 1;
            *granule = Granule { generation, ..Granule::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(memory: &mut Memory, address: u64, size: u8, next: u32) -> (u32, Option<Location>) {
        let mut made = None;
        let number = memory.variable(address, size, |location| {
            made = Some(location);
            next
        });
        (number, made)
    }

    #[test]
    fn the_first_read_tells_the_initial_value() {
        let mut memory = Memory::default();
        memory.found(0x1000, 4, 7);
        let (number, made) = variable(&mut memory, 0x1000, 4, 0);
        assert_eq!((number, made), (0, Some(Location { generation: 0, initial: Some(7) })));
        memory.left(0x1000, 4, 8);
        memory.found(0x1000, 4, 8);
        assert_eq!(variable(&mut memory, 0x1000, 4, 1), (0, None));
        assert_eq!(memory.unseen, 0);
    }

    #[test]
    fn a_wider_view_takes_its_parts_initial_values() {
        let mut memory = Memory::default();
        memory.found(0x1000, 4, 0x11);
        memory.left(0x1000, 4, 0x22);
        memory.found(0x1000, 8, 0x33_0000_0022);
        let (_, made) = variable(&mut memory, 0x1000, 8, 0);
        assert_eq!(made, Some(Location { generation: 0, initial: Some(0x33_0000_0011) }));
    }

    #[test]
    fn new_memory_may_be_zero() {
        let mut memory = Memory::default();
        memory.left(19, 1, 7);
        memory.free(19, 10);
        memory.know_zeros(19, 10);
        let mut initial = |address, size| {
            let mut made = None;
            memory.variable(address, size, |location| {
                made = Some(location);
                0
            });
            made.and_then(|location| location.initial)
        };
        assert_eq!([initial(19, 1), initial(20, 4), initial(24, 4)], [Some(0); 3]);
        assert_eq!([initial(18, 1), initial(28, 2)], [None; 2], "what lies around it is not known");
    }

    #[test]
    fn a_write_without_a_look_has_no_initial_value() {
        let mut memory = Memory::default();
        memory.left(0x1000, 8, 1);
        assert_eq!(
            variable(&mut memory, 0x1000, 8, 0).1,
            Some(Location { generation: 0, initial: None })
        );
    }

    #[test]
    fn freed_memory_and_unseen_writes_make_new_locations() {
        let mut memory = Memory::default();
        memory.found(0x1000, 8, 1);
        variable(&mut memory, 0x1000, 8, 0);
        memory.free(0x1000, 16);
        memory.found(0x1000, 8, 5);
        assert_eq!(
            variable(&mut memory, 0x1000, 8, 1),
            (1, Some(Location { generation: 1, initial: Some(5) }))
        );
        memory.found(0x1000, 8, 6);
        assert_eq!(memory.unseen, 1);
        assert_eq!(
            variable(&mut memory, 0x1000, 8, 2),
            (2, Some(Location { generation: 2, initial: Some(6) }))
        );
    }

    #[test]
    fn what_is_unseen_counts_where_several_threads_use_the_memory() {
        let mut memory = Memory::default();
        let mut read = |address, value, thread| {
            memory.touch(address, 8, thread);
            memory.found(address, 8, value);
            memory.unseen_and_shared()
        };
        assert_eq!(read(0x1000, 1, 0), 0);
        assert_eq!(read(0x1000, 2, 0), 0, "it is the thread's own");
        assert_eq!(read(0x1000, 2, 1), 1, "it is not any more");
        assert_eq!(read(0x2000, 1, 1), 1);
        memory.free(0x1000, 0x2000);
        assert_eq!(memory.unseen_and_shared(), 1, "what was counted stays");
        memory.touch(0x1000, 8, 2);
        memory.found(0x1000, 8, 3);
        memory.found(0x1000, 8, 4);
        assert_eq!((memory.unseen, memory.unseen_and_shared()), (2, 1), "it is another location");
    }

    #[test]
    fn a_block_larger_than_all_memory_is_freed_at_once() {
        let mut memory = Memory::default();
        memory.found(0x1000, 8, 1);
        memory.free(8, u64::MAX);
        assert_eq!(
            variable(&mut memory, 0x1000, 8, 0).1.map(|location| location.generation),
            Some(1)
        );
    }

    #[test]
    fn accesses_across_two_granules_are_kept_whole() {
        let mut memory = Memory::default();
        memory.left(0x1006, 4, 0xaabb_ccdd);
        memory.found(0x1006, 4, 0xaabb_ccdd);
        memory.found(0x1008, 2, 0xaabb);
        memory.found(0x1004, 4, 0xccdd_0000);
        assert_eq!(memory.unseen, 0);
    }
}
