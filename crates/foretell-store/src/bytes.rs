//! Numbers, texts and lists as bytes, and back.
//!
//! A [`Reader`] never panics and never allocates more than its input warrants: what is not there is
//! `None`.

/// Puts values one after the other.
#[derive(Clone, Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Everything that was put.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// A number, in as few bytes as it needs (LEB128).
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A yes or no.
    pub fn flag(&mut self, value: bool) {
        self.0.push(value.into());
    }

    /// Bytes, with their length before them.
    pub fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// A text.
    pub fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// Something that may be absent.
    pub fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            put(self, value);
        }
    }

    /// Several things.
    pub fn list<T>(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
        mut put: impl FnMut(&mut Self, T),
    ) {
        self.number(values.len() as u64);
        values.for_each(|value| put(self, value));
    }
}

/// Takes values in the order in which they were put.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Was everything taken?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// A number.
    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            value |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A number of a narrower type.
    pub fn narrow<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    /// A yes or no.
    pub fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.narrow()?;
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// A text.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Something that may be absent.
    pub fn option<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.flag()? {
            true => take(self).map(Some),
            false => Some(None),
        }
    }

    /// Several things, each of at least one byte.
    pub fn list<T>(&mut self, mut take: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length: usize = self.narrow()?;
        if length > self.0.len() {
            return None;
        }
        (0..length).map(|_| take(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_taken() {
        let mut writer = Writer::default();
        let numbers = [0, 1, 127, 128, 1 << 35, u64::MAX];
        writer.list(numbers.iter(), |writer, &number| writer.number(number));
        writer.option(Some("text"), Writer::text);
        writer.option(None, Writer::text);
        writer.flag(true);
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.list(Reader::number).unwrap(), numbers);
        assert_eq!(reader.option(Reader::text), Some(Some("text")));
        assert_eq!(reader.option(Reader::text), Some(None));
        assert_eq!((reader.flag(), reader.is_empty()), (Some(true), true));
        for end in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..end]);
            let all = (|| {
                reader.list(Reader::number)?;
                reader.option(Reader::text)?;
                reader.option(Reader::text)?;
                reader.flag()
            })();
            assert_eq!(all, None, "cut off after {end} bytes");
        }
    }

    #[test]
    fn numbers_that_are_too_long_are_none() {
        assert_eq!(Reader::new(&[0xff; 11]).number(), None);
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(Reader::new(&most).number(), Some(u64::MAX));
        most[9] = 2;
        assert_eq!(Reader::new(&most).number(), None);
        assert_eq!(Reader::new(&[0xff, 0xff, 3, 7]).list(Reader::flag), None, "more than there is");
    }
}
