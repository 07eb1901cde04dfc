//! The log of sync-only recording: for each thread, its operations on synchronisation objects with
//! their place in the order of each object, and the inputs it got.
//!
//! An entry is a word: [`Kind`] in bits 56..64, a number in bits 0..32 (the operation's place in the
//! order of its object, a result, or for inputs the length of what follows in bytes). Each object
//! counts by itself, so threads that do not meet do not disturb each other.
//!
//! While the program runs, a thread keeps its last entries in a window of [`WINDOW_WORDS`] words
//! that is mapped from a file and appended to a second file when it is full; the window ends at the
//! first head that is zero. Afterwards all threads are put in one file: [`MAGIC`], then per thread
//! the length of the creation path, the path, the number of words, and the words.

use std::borrow::Cow;

/// First word of a log file; the last byte is the version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FT-SYNC\x01");
/// Words of a window.
pub const WINDOW_WORDS: usize = 8192;

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

/// How many words the entry takes with what follows it.
pub fn words_of(word: u64) -> Option<usize> {
    Some(match parts(word)? {
        (Kind::Input, bytes) => 1 + (bytes as usize).div_ceil(8),
        _ => 1,
    })
}

/// The log of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLog {
    /// Creation path.
    pub path: Vec<u32>,
    /// Its entries.
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

/// All threads' logs as the words of a file, in pieces: logs can be long.
pub fn format(threads: &[ThreadLog]) -> impl Iterator<Item = Cow<'_, [u64]>> {
    let thread = |thread: &ThreadLog| {
        let path = thread.path.iter().map(|&step| u64::from(step));
        let mut head = vec![thread.path.len() as u64];
        head.extend(path.chain([thread.words.len() as u64]));
        head
    };
    std::iter::once(Cow::Owned(vec![MAGIC])).chain(
        threads.iter().flat_map(move |log| [Cow::Owned(thread(log)), Cow::Borrowed(&*log.words)]),
    )
}

/// Reads what [`format()`] made. The error is the number of the offending word.
pub fn parse(words: &[u64]) -> Result<Vec<ThreadLog>, usize> {
    if words.first() != Some(&MAGIC) {
        return Err(0);
    }
    let mut at = 1;
    let take = |at: &mut usize| -> Result<Vec<u64>, usize> {
        let begin = *at;
        let length = words.get(begin).and_then(|&length| usize::try_from(length).ok());
        let end = length.and_then(|length| begin.checked_add(1)?.checked_add(length));
        let part = end.and_then(|end| words.get(begin + 1..end)).ok_or(begin)?;
        *at = begin + 1 + part.len();
        Ok(part.to_vec())
    };
    let mut threads = Vec::new();
    while at < words.len() {
        let begin = at;
        let path = take(&mut at)?;
        let path = path.into_iter().map(u32::try_from).collect::<Result<_, _>>();
        let path = path.map_err(|_| begin)?;
        let begin = at;
        let words = take(&mut at)?;
        if window_entries(&words).len() != words.len() {
            return Err(begin);
        }
        threads.push(ThreadLog { path, words });
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_survive_their_file_and_damage_is_found() {
        let input = entry(Kind::Input, 9);
        let threads = vec![
            ThreadLog { path: vec![], words: vec![entry(Kind::Lock, 0), input, 1, 0] },
            ThreadLog { path: vec![0, 3], words: vec![entry(Kind::Barrier, 1)] },
        ];
        let words: Vec<u64> = format(&threads).flat_map(Cow::into_owned).collect();
        assert_eq!(parse(&words), Ok(threads));
        for cut in 1..words.len() {
            let shorter = parse(&words[..cut]);
            assert!(shorter.is_err() || shorter.is_ok_and(|threads| threads.len() < 2));
        }
        assert_eq!(parse(&[1, 2]), Err(0));
    }

    #[test]
    fn a_window_ends_at_its_first_empty_word() {
        let window = [entry(Kind::Input, 8), 0, entry(Kind::Lock, 1), 0, 0];
        assert_eq!(window_entries(&window).len(), 3);
        assert_eq!(window_entries(&[entry(Kind::Input, 8)]).len(), 0);
    }
}
