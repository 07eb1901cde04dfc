//! What records have as bytes (`foretell_wire::record`), as the recorder uses it.

use foretell_trace::Site;
use foretell_wire::record::{DefineSite, put};

/// A text for people.
pub fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A creation path, eight bytes a step.
pub fn path(bytes: &[u8]) -> Vec<u32> {
    let step = |part: &[u8]| part.try_into().map_or(0, u64::from_le_bytes) as u32;
    bytes.chunks_exact(8).map(step).collect()
}

/// A source position.
pub fn site(record: DefineSite<Vec<u8>>) -> Site {
    let DefineSite { line, column, file, function } = record;
    let file = text(file);
    let file = if file == "?" { "" } else { &file };
    Site { file: file.into(), line, column, function: text(function).into() }
}

/// Appends the record of a source position.
pub fn put_site(words: &mut Vec<u64>, place: u64, site: &Site) {
    let Site { file, line, column, function } = site;
    let record = DefineSite { line: *line, column: *column, file: &**file, function: &**function };
    put(words, 0, place, &record);
}

#[cfg(test)]
mod tests {
    use foretell_wire::Kind;
    use foretell_wire::record::{Words, put_text};

    use super::*;

    #[test]
    fn texts_and_sites_are_read_as_they_were_written() {
        for said in ["", "1234567", "12345678", "ü and more than a word"] {
            let mut words = Vec::new();
            put_text(&mut words, said.as_bytes());
            let mut reader = Words::new(&words);
            assert_eq!(reader.bytes().map(text).as_deref(), Some(said));
            assert_eq!(reader.at, words.len());
        }
        let place = Site { file: "a.c".into(), line: 7, column: 9, function: "main".into() };
        let mut words = Vec::new();
        put_site(&mut words, 0x1234_5678_9abc, &place);
        let (kind, _, length) = foretell_wire::measure(&words).expect("a whole record");
        assert_eq!((kind, length), (Kind::DefineSite, words.len()));
        assert_eq!(words[0] >> 16, 0x1234_5678_9abc);
        assert_eq!(DefineSite::from_words(&mut Words::new(&words[1..])).map(site), Some(place));
    }
}
