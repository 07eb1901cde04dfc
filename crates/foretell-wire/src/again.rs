//! What happens at a place again and again, in one word.
//!
//! Most events are accesses at places that were met before, to memory near to where the place was
//! last looked up, with values of at most 32 bits. Both sides keep the same table of such places
//! ([`Again`]): a record of an access in its long form enters its first word and its neighbourhood,
//! and from then on a [`Short`] of one word names the entry, the distance and the value. A value
//! that is wider, and the one word more that some accesses have, follow it.

use foretell_abi::{OFFSET_AT, VALUE_AT, WINDOW};

/// Entries of the table, of which half are used: those whose number has [`SHORT`] set, so that a
/// short begins with the number as it is. Small enough for the processor's first cache.
const WAYS: usize = 1 << 11;

/// Set in a short, and in the first word of no record.
const SHORT: u64 = 1 << 7;
const WIDE: u64 = 1 << 11;
const MORE: u64 = 1 << 12;

/// The table, see the module's text.
pub struct Again {
    /// The first word of the long form, 0 for none, and the begin of its neighbourhood.
    entries: [(u64, u64); WAYS],
}

impl Default for Again {
    fn default() -> Self {
        Self::new()
    }
}

impl Again {
    /// Nothing was met yet.
    pub const fn new() -> Self {
        Self { entries: [(0, 0); WAYS] }
    }

    /// How many numbers there are.
    pub const WAYS: usize = WAYS;

    /// The number of the entry that a place has with this first word; its shorts begin with it.
    #[inline(always)]
    pub fn way(head: u64) -> usize {
        (head.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as usize | SHORT as usize
    }

    /// The short of an access with this first word, if its entry stands. `more`: one more word
    /// will follow.
    #[inline(always)]
    pub fn short(&self, head: u64, address: u64, value: u64, more: bool) -> Option<Short> {
        let way = Self::way(head);
        let (known, begin) = self.entries[way];
        let offset = address.wrapping_sub(begin);
        if (known ^ head) | (offset / WINDOW) != 0 {
            return None;
        }
        let mut word = way as u64 | offset << OFFSET_AT;
        if more {
            word |= MORE;
        }
        Some(Short(if value >> 32 == 0 { word | value << VALUE_AT } else { word | WIDE }))
    }

    /// The begin of the neighbourhood of the entry with this first word, if it stands.
    pub fn begin(&self, head: u64) -> Option<u64> {
        let (known, begin) = self.entries[Self::way(head)];
        (known == head).then_some(begin)
    }

    /// What shorts of the entry with this number begin with: all but distance and value, which has
    /// at most 32 bits.
    pub fn begin_of_short(way: usize, more: bool) -> u64 {
        way as u64 | if more { MORE } else { 0 }
    }

    /// Nothing was met. The other side may keep what it knows: it is told again.
    pub fn forget(&mut self) {
        self.entries.fill((0, 0));
    }

    /// Enters an access that is recorded in its long form.
    #[inline]
    pub fn enter(&mut self, head: u64, address: u64) {
        self.entries[Self::way(head)] = (head, address.saturating_sub(WINDOW / 2));
    }

    /// The first word and the address that a short stands for; `None` when there is no such entry.
    #[inline]
    pub fn long(&self, short: Short) -> Option<(u64, u64)> {
        let (head, begin) = self.entries[short.0 as usize % WAYS];
        let address = begin.wrapping_add((short.0 >> OFFSET_AT) % WINDOW);
        (head != 0).then_some((head, address))
    }
}

/// An access in one word, see the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short(u64);

impl Short {
    /// A record's first word, if it is a short.
    #[inline(always)]
    pub fn from_word(word: u64) -> Option<Short> {
        (word & SHORT != 0).then_some(Short(word))
    }

    /// As it is recorded.
    #[inline(always)]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The value; `None` when the next word has it.
    #[inline(always)]
    pub fn value(self) -> Option<u64> {
        (self.0 & WIDE == 0).then_some(self.0 >> VALUE_AT)
    }

    /// One more word follows, after the value.
    #[inline(always)]
    pub fn has_more(self) -> bool {
        self.0 & MORE != 0
    }

    /// Words that the record has.
    #[inline(always)]
    pub fn words(self) -> usize {
        1 + usize::from(self.0 & WIDE != 0) + usize::from(self.has_more())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, access};

    fn head(place: u64) -> u64 {
        u64::from(Kind::Read as u8) | u64::from(access::detail(4, 0)) << 8 | place << 16
    }

    #[test]
    fn a_place_that_was_met_needs_one_word() {
        let mut again = Again::new();
        assert_eq!(again.short(head(0x5000), 0x7fff_0000_1000, 7, false), None);
        again.enter(head(0x5000), 0x7fff_0000_1000);
        for (address, value, more, words) in [
            (0x7fff_0000_1000, 7, false, 1),
            (0x7fff_0000_0f00, u64::from(u32::MAX), true, 2),
            (0x7fff_0000_2000, 1 << 32, false, 2),
            (0x7fff_0000_2000, u64::MAX, true, 3),
        ] {
            let short = again.short(head(0x5000), address, value, more).expect("it was met");
            assert_eq!(Short::from_word(short.word()), Some(short));
            assert_eq!(again.long(short), Some((head(0x5000), address)));
            assert_eq!((short.has_more(), short.words()), (more, words));
            assert_eq!(short.value(), (value >> 32 == 0).then_some(value));
        }
    }

    #[test]
    fn what_lies_far_away_or_elsewhere_needs_its_long_form() {
        let mut again = Again::new();
        again.enter(head(0x5000), 0x7fff_0000_1000);
        assert_eq!(again.short(head(0x5000), 0x5555_0000_1000, 7, false), None);
        assert_eq!(again.short(head(0x5001), 0x7fff_0000_1000, 7, false), None);
        again.enter(head(0x5000), 8);
        let short = again.short(head(0x5000), 0, 1, false).expect("near to 8");
        assert_eq!(again.long(short), Some((head(0x5000), 0)));
    }

    #[test]
    fn no_kind_looks_like_a_short() {
        for code in 0..=255u8 {
            if Kind::from_code(code).is_some() {
                assert_eq!(Short::from_word(code.into()), None);
            }
        }
    }
}
