//! The words of records, see `foretell_wire`: reading them, and writing those that the recorder
//! itself adds to a log.

use foretell_trace::Site;
use foretell_wire::Kind;

/// Reads the words of records one after the other.
pub struct Words<'a> {
    pub words: &'a [u64],
    pub at: usize,
}

impl<'a> Words<'a> {
    /// From the first word on.
    pub fn new(words: &'a [u64]) -> Self {
        Self { words, at: 0 }
    }

    pub fn next(&mut self) -> Option<u64> {
        let word = *self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    pub fn pair(&mut self) -> Option<(u32, u32)> {
        self.next().map(|word| (word as u32, (word >> 32) as u32))
    }

    pub fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.next()?).ok()?;
        let words = length.div_ceil(8);
        let part: &'a [u64] = self.words.get(self.at..self.at.checked_add(words)?)?;
        self.at += words;
        let mut bytes: Vec<u8> = part.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length);
        Some(bytes)
    }

    pub fn text(&mut self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What follows the first word of a [`Kind::DefineSite`].
    pub fn site(&mut self) -> Option<Site> {
        let (line, column) = self.pair()?;
        let (file, function) = (self.text()?, self.text()?);
        let file = if file == "?" { "" } else { &file };
        Some(Site { file: file.into(), line, column, function: function.into() })
    }
}

/// Appends the first word of a record.
pub fn put_head(words: &mut Vec<u64>, kind: Kind, detail: u8, place: u64) {
    words.push(u64::from(kind as u8) | u64::from(detail) << 8 | place << 16);
}

/// Appends a text.
pub fn put_text(words: &mut Vec<u64>, text: &str) {
    words.push(text.len() as u64);
    words.extend(text.as_bytes().chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    }));
}

/// Appends a [`Kind::DefineSite`].
pub fn put_site(words: &mut Vec<u64>, place: u64, site: &Site) {
    put_head(words, Kind::DefineSite, 0, place);
    words.push(u64::from(site.line) | u64::from(site.column) << 32);
    put_text(words, &site.file);
    put_text(words, &site.function);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_sites_are_read_as_they_were_written() {
        for text in ["", "1234567", "12345678", "ü and more than a word"] {
            let mut words = Vec::new();
            put_text(&mut words, text);
            let mut reader = Words::new(&words);
            assert_eq!(reader.text().as_deref(), Some(text));
            assert_eq!(reader.at, words.len());
        }
        let site = Site { file: "a.c".into(), line: 7, column: 9, function: "main".into() };
        let mut words = Vec::new();
        put_site(&mut words, 0x1234_5678_9abc, &site);
        let (kind, _, length) = foretell_wire::measure(&words).expect("a whole record");
        assert_eq!((kind, length), (Kind::DefineSite, words.len()));
        assert_eq!(words[0] >> 16, 0x1234_5678_9abc);
        assert_eq!(Words::new(&words[1..]).site(), Some(site));
    }

    #[test]
    fn a_text_that_is_cut_off_is_none() {
        assert_eq!(Words::new(&[9, 0]).text(), None);
        assert_eq!(Words::new(&[u64::MAX, 0]).text(), None);
    }
}
