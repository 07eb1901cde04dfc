//! What memory held when it was last seen: QEMU reports an atomic read-modify-write after the fact, and
//! what it replaced is nowhere else. And what is known of a page, so that it is found out once.

use rustc_hash::FxHashMap;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// A page of memory.
pub struct Page {
    bytes: [u8; PAGE as usize],
    known: [u64; PAGE as usize / 64],
    /// What may be recorded of it was looked up so recently (`accesses::EPOCH`), and whether that is all.
    pub looked: (u32, bool),
}

impl Page {
    /// The memory holds this now. Only within the page.
    #[inline(always)]
    fn see(&mut self, place: usize, bytes: &[u8]) {
        self.bytes[place..place + bytes.len()].copy_from_slice(bytes);
        let mask = (1 << bytes.len()) - 1;
        let (word, bit) = (place / 64, place % 64);
        self.known[word] |= mask << bit;
        if bit + bytes.len() > 64 {
            self.known[word + 1] |= mask >> (64 - bit);
        }
    }
}

/// Pages that are found at once.
const WAYS: usize = 1 << 10;

/// See the module's text.
pub struct Shadow {
    pages: FxHashMap<u64, Box<Page>>,
    /// Pages that were used lately, by the end of their number.
    recent: Box<[(u64, *mut Page); WAYS]>,
}

impl Default for Shadow {
    fn default() -> Self {
        Self {
            pages: FxHashMap::default(),
            recent: Box::new([(u64::MAX, std::ptr::null_mut()); WAYS]),
        }
    }
}

impl Shadow {
    /// The page with this number.
    #[inline(always)]
    pub fn page(&mut self, number: u64) -> &mut Page {
        let (recent, page) = self.recent[number as usize % WAYS];
        if recent == number {
            // SAFETY: pages are boxed and never removed, and this borrows them all.
            return unsafe { &mut *page };
        }
        self.find(number)
    }

    #[cold]
    fn find(&mut self, number: u64) -> &mut Page {
        let page = self.pages.entry(number).or_insert_with(|| {
            Box::new(Page {
                bytes: [0; PAGE as usize],
                known: [0; PAGE as usize / 64],
                looked: (0, false),
            })
        });
        self.recent[number as usize % WAYS] = (number, &raw mut **page);
        page
    }

    /// The memory holds this now.
    #[inline(always)]
    pub fn see(&mut self, address: u64, size: u8, value: u64) {
        let place = (address % PAGE) as usize;
        let bytes = value.to_le_bytes();
        if place + usize::from(size) <= PAGE as usize {
            let page = self.page(address / PAGE);
            return match size {
                8 => page.see(place, &bytes),
                4 => page.see(place, &bytes[..4]),
                _ => page.see(place, &bytes[..size.into()]),
            };
        }
        self.see_bytes(address, &bytes[..size.into()]);
    }

    /// The memory holds these bytes now.
    pub fn see_bytes(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            self.page(at / PAGE).see((at % PAGE) as usize, std::slice::from_ref(byte));
        }
    }

    /// What the memory held, where that was seen.
    pub fn value(&mut self, address: u64, size: u8) -> Option<u64> {
        let mut value = [0; 8];
        for (offset, byte) in value[..size.into()].iter_mut().enumerate() {
            let at = address.wrapping_add(offset as u64);
            let page = self.page(at / PAGE);
            let place = (at % PAGE) as usize;
            if page.known[place / 64] >> (place % 64) & 1 == 0 {
                return None;
            }
            *byte = page.bytes[place];
        }
        Some(u64::from_le_bytes(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_known_and_nothing_else() {
        let mut shadow = Shadow::default();
        shadow.see(PAGE - 2, 4, 0x1122_3344);
        assert_eq!(shadow.value(PAGE - 2, 4), Some(0x1122_3344));
        assert_eq!(shadow.value(PAGE, 2), Some(0x1122));
        assert_eq!(shadow.value(PAGE, 4), None);
        shadow.see_bytes(PAGE + 1, &[7, 8, 9]);
        assert_eq!(shadow.value(PAGE, 4), Some(0x0908_0722));
        // Across two words of what is known.
        shadow.see(61, 8, 0x1122_3344_5566_7788);
        assert_eq!(shadow.value(61, 8), Some(0x1122_3344_5566_7788));
        assert_eq!((shadow.value(60, 1), shadow.value(69, 1)), (None, None));
        // Pages that are found at the same place.
        shadow.see(WAYS as u64 * PAGE, 1, 5);
        assert_eq!((shadow.value(0, 1), shadow.value(WAYS as u64 * PAGE, 1)), (None, Some(5)));
    }
}
