//! The log of sync-only recording: for each thread, its operations on synchronisation objects with
//! their place in the order of each object, and the inputs it got.
//!
//! An entry is a word: [`Kind`] in bits 56..64, a number in bits 0..32 (the operation's place in the
//! order of its object, a result, or for inputs the length of what follows in bytes). Each object
//! counts by itself, so threads that do not meet do not disturb each other. Two locks that follow
//! each other share a word if their numbers are small, see [`pair`].
//!
//! # The file
//! The runtime writes into the file that will be the log, so that nothing is copied at the end.
//! While the program runs, a thread keeps its last entries in a window of [`BLOCK_WORDS`] words that
//! is mapped from a file of its own. A full window becomes a block of the log, anywhere after those
//! that are there. When the program is over, the recorder puts the windows at the end. So the file
//! is: [`MAGIC`], how many blocks there are, zeros up to [`FIRST_BLOCK`], the blocks, and then for
//! each thread its number, the length of its creation path, the path, the sequence number of its
//! window, the number of words, and the words.
//!
//! A block begins with two words: [`block_head`], and how many blocks the thread had before. Its
//! entries end at the first head that is zero. A thread's log ends where a block is missing: the
//! disk was full, or the program was killed while it wrote. The window counts if it comes next.
//!
//! Version 1, which is still read: [`MAGIC_1`], then per thread the length of the creation path, the
//! path, the number of words, and the words.

use std::collections::BTreeMap;

use crate::standing::Sentence;

/// First word of a log file; the last byte is the version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FT-SYNC\x02");
/// First word of a log file of the first version.
pub const MAGIC_1: u64 = u64::from_le_bytes(*b"FT-SYNC\x01");
/// Words of a window and of a block.
pub const BLOCK_WORDS: usize = 8192;
/// Words before the first entry of a window or block.
pub const BLOCK_HEAD: usize = 2;
/// The word at which the first block begins; a page, so that blocks are whole pages.
pub const FIRST_BLOCK: usize = 512;
/// The name of the file with the blocks, while the program runs.
pub const BLOCKS_NAME: &str = "blocks";
/// How the names of the files with the windows end, while the program runs. Before it come the
/// thread's number and its creation path, with a [`NAME_MARK`] between them.
pub const WINDOW_ENDING: &str = ".window";
/// See [`WINDOW_ENDING`].
pub const NAME_MARK: char = '_';

/// What an entry is about.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Took a mutex or spin lock; place in its order.
    Lock = 1,
    /// A try or timed lock failed; the result.
    LockFailed = 2,
    /// A condition wait ended (the lock follows); 1 if by its time limit.
    Wait = 3,
    /// Decremented a semaphore; place in its order.
    SemaphoreWait = 4,
    /// A try or timed wait failed; `errno`.
    SemaphoreFailed = 5,
    /// Incremented a semaphore; place in its order.
    SemaphorePost = 6,
    /// Took a reader-writer lock in either way; place in its order.
    ReaderWriter = 7,
    /// A try or timed lock of one failed; the result.
    ReaderWriterFailed = 8,
    /// Left a barrier; 1 if as the serial thread.
    Barrier = 9,
    /// Came to an initialisation; 1 if this thread ran it.
    Once = 10,
    /// Got an input: so many bytes follow, the first eight are the result. What was read from a
    /// plain file is not kept: a replay reads the file again.
    Input = 11,
}

impl Kind {
    /// All kinds, by code less 1.
    pub const ALL: [Kind; 11] = [
        Kind::Lock,
        Kind::LockFailed,
        Kind::Wait,
        Kind::SemaphoreWait,
        Kind::SemaphoreFailed,
        Kind::SemaphorePost,
        Kind::ReaderWriter,
        Kind::ReaderWriterFailed,
        Kind::Barrier,
        Kind::Once,
        Kind::Input,
    ];
}

/// An entry.
#[inline(always)]
pub fn entry(kind: Kind, number: u32) -> u64 {
    u64::from(kind as u8) << 56 | u64::from(number)
}

/// The parts of an entry; `None` when it is none.
pub fn parts(word: u64) -> Option<(Kind, u32)> {
    let code = (word >> 56) as usize;
    Some((*Kind::ALL.get(code.checked_sub(1)?)?, word as u32))
}

/// In bits 56..64 of a word with two locks.
const PAIR: u64 = 12;
/// Bits of a number in a pair.
const PAIR_BITS: u32 = 28;

/// The word for a lock's entry and the place of the lock that follows it; `None` if a number is too
/// large. A program that does little but lock writes half as much then.
#[inline(always)]
pub fn pair(lock: u64, second: u32) -> Option<u64> {
    let first = lock as u32;
    let small = (first | second) >> PAIR_BITS == 0;
    small.then(|| PAIR << 56 | u64::from(second) << PAIR_BITS | u64::from(first))
}

/// The entries of two locks in one word.
fn unpaired(word: u64) -> Option<[u64; 2]> {
    let mask = (1 << PAIR_BITS) - 1;
    let place = |bits: u64| entry(Kind::Lock, (bits & mask) as u32);
    (word >> 56 == PAIR).then(|| [place(word), place(word >> PAIR_BITS)])
}

/// How many entries there are, of whole words of entries.
pub fn count(words: &[u64]) -> usize {
    let mut at = 0;
    let mut entries = 0;
    while let Some(&word) = words.get(at) {
        at += words_of(word).unwrap_or(1);
        entries += if unpaired(word).is_some() { 2 } else { 1 };
    }
    entries
}

/// Appends whole entries, each in words of its own.
fn unpack(entries: &[u64], words: &mut Vec<u64>) {
    let mut at = 0;
    while let Some(&word) = entries.get(at) {
        let end = entries.len().min(at + words_of(word).unwrap_or(1));
        match unpaired(word) {
            Some(two) => words.extend(two),
            None => words.extend_from_slice(&entries[at..end]),
        }
        at = end;
    }
}

/// How many words the entry takes with what follows it.
pub fn words_of(word: u64) -> Option<usize> {
    if unpaired(word).is_some() {
        return Some(1);
    }
    Some(match parts(word)? {
        (Kind::Input, bytes) => 1 + (bytes as usize).div_ceil(8),
        _ => 1,
    })
}

/// The first word of a block: the thread's number plus 1 in bits 0..32, its entries in bits 32..46,
/// and in bits 46..64 how many blocks after it hold its words, too (an input can be long).
pub fn block_head(thread: u32, entries: usize, further: usize) -> u64 {
    (u64::from(thread) + 1) | (entries as u64) << 32 | (further as u64) << 46
}

/// The thread's number, the number of entries and of further blocks; `None` where no block is.
pub fn block_parts(head: u64) -> Option<(u32, usize, usize)> {
    let thread = (head as u32).checked_sub(1)?;
    Some((thread, (head >> 32 & 0x3fff) as usize, (head >> 46) as usize))
}

/// The log of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLog {
    /// Creation path.
    pub path: Vec<u32>,
    /// Its entries.
    pub words: Vec<u64>,
}

/// Where a thread stands in its log, for whoever follows it.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    words: Vec<u64>,
    at: usize,
}

impl Cursor {
    /// At the begin of the log of the thread with this creation path, which is taken out of the logs;
    /// where there is none, it is over at once.
    pub fn new(logs: &mut Vec<ThreadLog>, path: &[u32]) -> Cursor {
        let position = logs.iter().position(|log| log.path == path);
        let words = position.map_or_else(Vec::new, |position| logs.swap_remove(position).words);
        Cursor { words, at: 0 }
    }

    /// The next entry; `None` past the end of the log.
    pub fn next(&self) -> Option<(Kind, u32)> {
        parts(*self.words.get(self.at)?)
    }

    /// Passes the next entry.
    pub fn pass(&mut self) {
        if let Some(&word) = self.words.get(self.at) {
            self.at += words_of(word).unwrap_or(1);
        }
    }

    /// Passes the next entry, which is an input, and gives its bytes.
    pub fn input(&mut self, length: u32) -> Vec<u8> {
        let first = self.at + 1;
        self.pass();
        let words = self.words.get(first..self.at).unwrap_or_default();
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length as usize);
        bytes
    }

    /// Why the thread with this creation path, which comes to `wanted` at its event `index`, does not
    /// follow the log.
    pub fn strays(&self, path: &[u32], wanted: Kind, index: u32) -> Sentence {
        let next = self.next().map_or_else(|| "nothing".into(), |(kind, _)| format!("{kind:?}"));
        let at = self.at;
        Sentence::default().thread(path).text(&format!(
            " came to {wanted:?} at its event {index}, but its log has {next} next (entry {at}); the run has \
             a data race or another input"
        ))
    }
}

/// How many operations each object has had, by its number, while a log is followed.
#[derive(Clone, Debug, Default)]
pub struct Places(Vec<u32>);

impl Places {
    /// An empty table.
    pub const fn new() -> Places {
        Places(Vec::new())
    }

    /// Whether the operation with this place in the object's order may happen now.
    pub fn is_due(&self, object: u32, place: u32) -> bool {
        self.0.get(object as usize).copied().unwrap_or(0) == place
    }

    /// The operation that was due has happened.
    pub fn done(&mut self, object: u32) {
        let index = object as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += 1;
    }
}

/// A thread and the window that it had at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The thread's number.
    pub thread: u32,
    /// Its creation path.
    pub path: Vec<u32>,
    /// How many blocks came before.
    pub sequence: u64,
    /// The entries.
    pub words: Vec<u64>,
}

/// The entries of a window: up to the first zero head or the first entry that is cut off.
pub fn window_entries(window: &[u64]) -> &[u64] {
    let mut at = 0;
    while let Some(&head) = window.get(at) {
        match words_of(head) {
            Some(words) if at + words <= window.len() => at += words,
            _ => break,
        }
    }
    &window[..at]
}

/// What the file begins with, for so many blocks.
pub fn format_begin(blocks: usize) -> [u64; 2] {
    [MAGIC, blocks as u64]
}

/// What comes after the blocks.
pub fn format_windows(windows: &[Window]) -> Vec<u64> {
    let mut words = Vec::new();
    for window in windows {
        words.extend([u64::from(window.thread), window.path.len() as u64]);
        words.extend(window.path.iter().map(|&step| u64::from(step)));
        words.extend([window.sequence, window.words.len() as u64]);
        words.extend_from_slice(&window.words);
    }
    words
}

/// Reads the words of a file one after the other. The error is the number of the offending word.
struct Reader<'a> {
    words: &'a [u64],
    at: usize,
}

impl<'a> Reader<'a> {
    fn word(&mut self) -> Result<u64, usize> {
        let word = *self.words.get(self.at).ok_or(self.at)?;
        self.at += 1;
        Ok(word)
    }

    /// A length and as many words.
    fn list(&mut self) -> Result<&'a [u64], usize> {
        let begin = self.at;
        let length = usize::try_from(self.word()?).map_err(|_| begin)?;
        let end = self.at.checked_add(length).ok_or(begin)?;
        let part = self.words.get(self.at..end).ok_or(begin)?;
        self.at = end;
        Ok(part)
    }

    fn path(&mut self) -> Result<Vec<u32>, usize> {
        let begin = self.at;
        let path: Result<_, _> = self.list()?.iter().map(|&step| u32::try_from(step)).collect();
        path.map_err(|_| begin)
    }

    /// A list of whole entries.
    fn entries(&mut self) -> Result<&'a [u64], usize> {
        let begin = self.at;
        let words = self.list()?;
        if window_entries(words).len() == words.len() { Ok(words) } else { Err(begin) }
    }
}

/// Reads a log file. The error is the number of the offending word.
pub fn parse(words: &[u64]) -> Result<Vec<ThreadLog>, usize> {
    match words.first() {
        Some(&MAGIC) => parse_blocks(words),
        Some(&MAGIC_1) => {
            let mut reader = Reader { words, at: 1 };
            let mut threads = Vec::new();
            while reader.at < words.len() {
                let path = reader.path()?;
                threads.push(ThreadLog { path, words: reader.entries()?.to_vec() });
            }
            Ok(threads)
        }
        _ => Err(0),
    }
}

fn parse_blocks(words: &[u64]) -> Result<Vec<ThreadLog>, usize> {
    let count = words.get(1).and_then(|&count| usize::try_from(count).ok()).ok_or(1usize)?;
    let end = count.checked_mul(BLOCK_WORDS).and_then(|length| length.checked_add(FIRST_BLOCK));
    let (Some(end), true) = (end, count <= words.len() / BLOCK_WORDS) else { return Err(1) };
    let blocks = words.get(FIRST_BLOCK..end).ok_or(1usize)?;
    let mut reader = Reader { words, at: end };
    let mut threads = Vec::new();
    let mut by_number = BTreeMap::new();
    let mut windows = Vec::new();
    while reader.at < words.len() {
        let begin = reader.at;
        let number = u32::try_from(reader.word()?).map_err(|_| begin)?;
        if by_number.insert(number, threads.len()).is_some() {
            return Err(begin);
        }
        threads.push(ThreadLog { path: reader.path()?, words: Vec::new() });
        windows.push((reader.word()?, reader.entries()?));
    }
    let mut sequence = vec![0; threads.len()];
    let mut at = 0;
    while at < blocks.len() {
        let begin = at;
        let Some((thread, _, further)) = block_parts(blocks[begin]) else {
            at += BLOCK_WORDS; // never written
            continue;
        };
        at = begin + BLOCK_WORDS.saturating_mul(1 + further).min(blocks.len() - begin);
        let &index = by_number.get(&thread).ok_or(FIRST_BLOCK + begin)?;
        if blocks[begin + 1] == sequence[index] {
            sequence[index] += 1;
            let entries = window_entries(&blocks[begin + BLOCK_HEAD..at]);
            unpack(entries, &mut threads[index].words);
        }
    }
    for ((thread, before), (own, entries)) in threads.iter_mut().zip(sequence).zip(windows) {
        if own == before {
            unpack(entries, &mut thread.words);
        }
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(thread: u32, sequence: u64, entries: &[u64]) -> Vec<u64> {
        let mut words = vec![block_head(thread, entries.len(), 0), sequence];
        words.extend(entries);
        words.resize(BLOCK_WORDS, 0);
        words
    }

    fn window(thread: u32, path: &[u32], sequence: u64, words: &[u64]) -> Window {
        Window { thread, path: path.to_vec(), sequence, words: words.to_vec() }
    }

    fn locks(places: std::ops::Range<u32>) -> Vec<u64> {
        places.map(|place| entry(Kind::Lock, place)).collect()
    }

    fn file(blocks: &[Vec<u64>], windows: &[Window]) -> Vec<u64> {
        let mut words = format_begin(blocks.len()).to_vec();
        words.resize(FIRST_BLOCK, 0);
        words.extend(blocks.iter().flatten());
        words.extend(format_windows(windows));
        words
    }

    #[test]
    fn blocks_and_windows_of_threads_are_put_together_and_damage_is_found() {
        let blocks =
            [block(0, 0, &locks(0..5)), block(1, 0, &locks(5..7)), block(0, 1, &locks(7..9))];
        let windows = [
            window(0, &[], 2, &locks(9..10)),
            window(1, &[0, 3], 1, &[entry(Kind::Input, 9), 1, 0]),
        ];
        let words = file(&blocks, &windows);
        let main: Vec<u64> = locks(0..5).into_iter().chain(locks(7..10)).collect();
        let mut child = locks(5..7);
        child.extend([entry(Kind::Input, 9), 1, 0]);
        let threads = vec![
            ThreadLog { path: vec![], words: main },
            ThreadLog { path: vec![0, 3], words: child },
        ];
        assert_eq!(parse(&words), Ok(threads));
        for cut in 1..words.len() {
            let shorter = parse(&words[..cut]);
            assert!(shorter.is_err() || shorter.is_ok_and(|threads| threads.len() < 2), "{cut}");
        }
        assert_eq!(parse(&[1, 2]), Err(0));
        assert_eq!(parse(&[MAGIC, u64::MAX]), Err(1));
    }

    #[test]
    fn a_log_ends_where_a_block_is_missing() {
        let blocks = [block(0, 0, &locks(0..5)), vec![0; BLOCK_WORDS], block(0, 2, &locks(7..9))];
        let words = file(&blocks, &[window(0, &[], 3, &locks(9..10))]);
        assert_eq!(parse(&words), Ok(vec![ThreadLog { path: vec![], words: locks(0..5) }]));
    }

    #[test]
    fn a_window_that_was_written_out_when_the_program_was_killed_counts_once() {
        let blocks = [block(0, 0, &locks(0..5))];
        let words = file(&blocks, &[window(0, &[], 0, &locks(0..5))]);
        assert_eq!(parse(&words), Ok(vec![ThreadLog { path: vec![], words: locks(0..5) }]));
    }

    #[test]
    fn a_long_input_takes_several_blocks() {
        let bytes = 2 * BLOCK_WORDS as u32 * 8;
        let mut long = vec![block_head(0, 1, 2), 0, entry(Kind::Input, bytes)];
        long.resize(BLOCK_HEAD + 1 + 2 * BLOCK_WORDS, 7);
        let entries = long[BLOCK_HEAD..].to_vec();
        long.resize(3 * BLOCK_WORDS, 0);
        let blocks: Vec<Vec<u64>> = long.chunks(BLOCK_WORDS).map(<[u64]>::to_vec).collect();
        let words = file(&blocks, &[window(0, &[], 1, &[])]);
        assert_eq!(parse(&words), Ok(vec![ThreadLog { path: vec![], words: entries }]));
    }

    #[test]
    fn two_locks_in_a_word_are_two_entries() {
        let most = (1 << PAIR_BITS) - 1;
        let two = |first, second| pair(entry(Kind::Lock, first), second);
        assert_eq!(two(most + 1, 0), None);
        assert_eq!(two(0, most + 1), None);
        // What an input holds is none, whatever it looks like.
        let input = [entry(Kind::Input, 8), two(1, 2).unwrap()];
        let packed: Vec<u64> = [two(most, 3).unwrap(), entry(Kind::Lock, 4)]
            .into_iter()
            .chain(input)
            .chain([two(0, most).unwrap()])
            .collect();
        assert_eq!((window_entries(&packed).len(), count(&packed)), (5, 6));
        let mut entries: Vec<u64> = [most, 3, 4].map(|place| entry(Kind::Lock, place)).to_vec();
        entries.extend(input);
        entries.extend([0, most].map(|place| entry(Kind::Lock, place)));
        let words = file(&[block(0, 0, &packed)], &[window(0, &[], 1, &packed)]);
        let twice = [&entries[..], &entries[..]].concat();
        assert_eq!(parse(&words), Ok(vec![ThreadLog { path: vec![], words: twice }]));
    }

    #[test]
    fn logs_of_the_first_version_are_read() {
        let words = [MAGIC_1, 0, 1, entry(Kind::Lock, 0), 2, 0, 3, 1, entry(Kind::Barrier, 1)];
        let threads = vec![
            ThreadLog { path: vec![], words: vec![entry(Kind::Lock, 0)] },
            ThreadLog { path: vec![0, 3], words: vec![entry(Kind::Barrier, 1)] },
        ];
        assert_eq!(parse(&words), Ok(threads));
    }

    #[test]
    fn a_window_ends_at_its_first_empty_word() {
        let window = [entry(Kind::Input, 8), 0, entry(Kind::Lock, 1), 0, 0];
        assert_eq!(window_entries(&window).len(), 3);
        assert_eq!(window_entries(&[entry(Kind::Input, 8)]).len(), 0);
    }
}
