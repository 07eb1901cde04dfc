//! What memory held when it was last seen: QEMU reports an atomic read-modify-write after the fact, and
//! what it replaced is nowhere else.

use rustc_hash::FxHashMap;

const PAGE: u64 = 4096;

struct Page {
    bytes: [u8; PAGE as usize],
    known: [u64; PAGE as usize / 64],
}

/// See the module's text.
#[derive(Default)]
pub struct Shadow {
    pages: FxHashMap<u64, Box<Page>>,
    /// The page that was used last.
    recent: Option<(u64, *mut Page)>,
}

impl Shadow {
    fn page(&mut self, number: u64) -> &mut Page {
        if let Some((recent, page)) = self.recent
            && recent == number
        {
            // SAFETY: pages are boxed and never removed, and this borrows them all.
            return unsafe { &mut *page };
        }
        let page = self.pages.entry(number).or_insert_with(|| {
            Box::new(Page { bytes: [0; PAGE as usize], known: [0; PAGE as usize / 64] })
        });
        self.recent = Some((number, &raw mut **page));
        page
    }

    /// The memory holds this now.
    #[inline]
    pub fn see(&mut self, address: u64, size: u8, value: u64) {
        for (offset, byte) in value.to_le_bytes()[..size.into()].iter().enumerate() {
            let at = address.wrapping_add(offset as u64);
            let page = self.page(at / PAGE);
            let place = (at % PAGE) as usize;
            page.bytes[place] = *byte;
            page.known[place / 64] |= 1 << (place % 64);
        }
    }

    /// The memory holds these bytes now.
    pub fn see_bytes(&mut self, address: u64, bytes: &[u8]) {
        for (at, &byte) in (address..).zip(bytes) {
            self.see(at, 1, byte.into());
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
    }
}
