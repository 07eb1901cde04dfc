//! Appends records to the ring that the recorder outside reads, as `foretell-runtime` does.
//!
//! Only the thread that has the turn writes. A record is complete before the cursor moves on, so
//! whatever kills the process, the reader finds whole records.

use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use foretell_wire::again::Again;
pub use foretell_wire::record::head;
use foretell_wire::record::{self, Record, Text};
use foretell_wire::standing::Sentence;
use foretell_wire::{
    ATTACHED, CHUNK_BYTES, CHUNKS, CONTRACT, End, HEADER_BYTES, Header, Kind, MAGIC, MAX_TEXT,
    MESSAGE_BYTES, OTHER_BUILD, RECORD_BYTES, RING_BYTES, VERSION, gap,
};
use rustc_hash::FxHashSet;

/// The writing end.
pub struct Ring {
    header: *mut Header,
    next: *mut u64,
    base: *mut u64,
    chunk: usize,
    again: Again,
    places: FxHashSet<u64>,
    /// All events so far.
    pub events: u64,
    /// The thread that the last `Turn` named.
    turn: u32,
    recorder: u32,
    on: bool,
    ended: bool,
}

impl Ring {
    /// Takes hold of the ring in the file, which is closed; with the text that lies behind it. The error
    /// says why not.
    pub fn attach(file: i32) -> Result<(Ring, String), &'static str> {
        // SAFETY: a descriptor that was inherited for us alone.
        let file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(file) });
        let size = file.metadata().map_err(|_| "the ring is not there")?.len() as usize;
        if size < RING_BYTES {
            return Err("the ring is too small: it is of another build of foretell");
        }
        let mut behind = vec![0; size - RING_BYTES];
        file.read_exact_at(&mut behind, RING_BYTES as u64).map_err(|_| "the ring is unreadable")?;
        let behind = String::from_utf8(behind).map_err(|_| "the schedule is no text")?;
        // SAFETY: a new mapping of a file that is as large.
        let memory = unsafe {
            use std::os::fd::AsRawFd;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let null = std::ptr::null_mut();
            libc::mmap(null, RING_BYTES, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err("the ring cannot be mapped");
        }
        let header = memory.cast::<Header>();
        // SAFETY: the mapping is as large as a ring and lives as long as the process.
        let recorder = unsafe {
            let known = (*header).magic == MAGIC && (*header).version == VERSION;
            if !known || (*header).contract != CONTRACT {
                (*header).attached.store(OTHER_BUILD, Relaxed);
                return Err("the plugin and foretell are of different builds");
            }
            if (*header).attached.swap(ATTACHED, Relaxed) != 0 {
                return Err("another program is being recorded already");
            }
            (*header).writer.store(std::process::id(), Relaxed);
            (*header).recorder.load(Relaxed)
        };
        let mut ring = Ring {
            header,
            next: std::ptr::null_mut(),
            base: std::ptr::null_mut(),
            chunk: 0,
            again: Again::new(),
            places: FxHashSet::default(),
            events: 0,
            turn: u32::MAX,
            recorder,
            on: true,
            ended: false,
        };
        ring.open_chunk();
        Ok((ring, behind))
    }

    /// Stops for good: in a forked child, or when the reader is gone.
    pub fn stop(&mut self) {
        self.on = false;
    }

    fn header(&self) -> &Header {
        // SAFETY: it lives as long as the process, and what is shared is atomic.
        unsafe { &*self.header }
    }

    fn open_chunk(&mut self) {
        let at = HEADER_BYTES + self.chunk % CHUNKS * CHUNK_BYTES;
        // SAFETY: within the mapping.
        self.base = unsafe { self.header.cast::<u8>().add(at).cast() };
        self.advance(self.base);
        self.header().base.store(self.base as u64, Release);
    }

    /// All words before `next` can be read.
    #[inline(always)]
    fn advance(&mut self, next: *mut u64) {
        self.next = next;
        self.header().cursor[0].store(next as u64, Release);
    }

    /// Makes room for the longest record. Says whether it is wanted at all.
    #[inline(always)]
    fn has_room(&mut self) -> bool {
        // SAFETY: within the chunk.
        let full = unsafe { self.base.byte_add(CHUNK_BYTES - RECORD_BYTES) };
        if self.on && self.next >= full {
            self.change_chunk();
        }
        self.on
    }

    #[cold]
    fn change_chunk(&mut self) {
        let slot = self.chunk % CHUNKS;
        // SAFETY: both are in the chunk.
        let used = unsafe { self.next.byte_offset_from(self.base) } as u32;
        let header = self.header();
        header.used[slot].store(used, Relaxed);
        header.events[slot].store(self.events, Relaxed);
        header.base.store(0, Release); // no chunk is being filled
        let produced = header.produced.load(Relaxed).wrapping_add(1);
        header.produced.store(produced, Release);
        futex_wake(&header.produced, 1, true);
        loop {
            let consumed = header.consumed.load(Acquire);
            if (produced.wrapping_sub(consumed) as usize) < CHUNKS {
                break;
            }
            futex_wait(&header.consumed, consumed, Some(1_000_000_000), true);
            // SAFETY: asks whether there is such a process.
            if unsafe { libc::kill(self.recorder as i32, 0) } != 0 {
                return self.stop();
            }
        }
        self.chunk = self.chunk.wrapping_add(1);
        self.header().notable[self.chunk % CHUNKS].store(0, Relaxed);
        self.open_chunk();
    }

    fn write(&mut self, words: &[u64]) {
        // SAFETY: whoever calls has asked for room.
        unsafe {
            self.next.copy_from_nonoverlapping(words.as_ptr(), words.len());
            self.advance(self.next.add(words.len()));
        }
    }

    /// Appends a record of fixed size.
    pub fn put(&mut self, words: &[u64]) {
        if self.has_room() {
            self.note(words[0]);
            self.write(words);
        }
    }

    /// Appends a record; its texts are cut at [`MAX_TEXT`].
    pub fn record<const N: usize, R: Record<N>>(&mut self, detail: u8, place: u64, record: &R) {
        if !self.has_room() {
            return;
        }
        let head = head(R::KIND, detail, place);
        self.note(head);
        let mut texts = record.texts().peekable();
        if texts.peek().is_none() {
            // SAFETY: there is room for the longest record.
            unsafe {
                self.next.write(head);
                self.next.add(1).copy_from_nonoverlapping(record.words().as_ptr(), N);
                self.advance(self.next.add(1 + N));
            }
            return;
        }
        let mut words = vec![head];
        words.extend(record.words());
        for text in texts {
            let bytes = text.bytes();
            record::put_text(&mut words, &bytes[..bytes.len().min(MAX_TEXT)]);
        }
        self.write(&words);
    }

    /// Why the run leaves its schedule: with threads and addresses as data, as the recorder has their names.
    pub fn why_it_left(&mut self, why: &Sentence) {
        for piece in &why.0 {
            let (detail, content) = piece.record();
            self.record(detail, 0, &record::Said { content });
        }
    }

    /// Some records the reader wants to see at once.
    fn note(&self, head: u64) {
        if Kind::from_code(head as u8).is_some_and(Kind::is_notable) {
            self.header().notable[self.chunk % CHUNKS].store(1, Relaxed);
        }
    }

    /// Appends a read or a write, in one word if it can be.
    #[inline(always)]
    pub fn put_access(&mut self, head: u64, address: u64, value: u64) {
        if !self.has_room() {
            return;
        }
        match self.again.short(head, address, value, false) {
            Some(short) if short.value().is_some() => self.write(&[short.word()]),
            Some(short) => self.write(&[short.word(), value]),
            None => {
                self.again.enter(head, address);
                self.write(&[head, address, value]);
            }
        }
    }

    /// Appends a read or a write with one word more, in its long form.
    pub fn put_access_with(&mut self, head: u64, address: u64, value: u64, more: u64) {
        if self.has_room() {
            self.again.enter(head, address);
            self.write(&[head, address, value, more]);
        }
    }

    /// Whether the place is new. If so it is announced.
    pub fn is_new_place(&mut self, place: u64) -> bool {
        place != 0 && self.on && self.places.insert(place)
    }

    /// The events that follow are this thread's.
    pub fn turn(&mut self, thread: u32) {
        if self.turn != thread {
            self.turn = thread;
            self.record(0, 0, &record::Turn { thread });
        }
        let turns = &self.header().turns;
        turns.store(turns.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// A sentence on what the trace lacks.
    pub fn gap(&mut self, what: &str) {
        self.lacks(gap::ANY, what);
    }

    /// The same, with what follows from it: one of [`gap`].
    pub fn lacks(&mut self, detail: u8, what: &str) {
        self.record(detail, 0, &record::Gap { count: 1, what });
    }

    /// A sentence on what was taken as it is.
    pub fn restriction(&mut self, what: &str) {
        self.lacks(gap::HELD_FIXED, what);
    }

    /// Says how the run will have ended if nothing more is heard, or takes that back.
    pub fn announce(&mut self, end: End, message: &str) {
        if !self.on || self.ended {
            return;
        }
        let length = message.len().min(MESSAGE_BYTES);
        // SAFETY: the header lives as long as the process, and nobody else writes the message.
        unsafe {
            let target = (&raw mut (*self.header).message).cast::<u8>();
            target.copy_from_nonoverlapping(message.as_ptr(), length);
        }
        let header = self.header();
        header.message_length.store(length as u32, Relaxed);
        header.end.store(end as u32, Release);
        futex_wake(&header.produced, 1, true);
    }

    /// Says how the run ends; the first word counts.
    pub fn end(&mut self, end: End, message: &str) {
        self.announce(end, message);
        self.ended = true;
    }
}

/// Sleeps while the word holds `expected`, at most `limit` nanoseconds; may end early.
pub fn futex_wait(word: &AtomicU32, expected: u32, limit: Option<u64>, shared: bool) {
    let timeout = limit.map(|limit| libc::timespec {
        tv_sec: (limit / 1_000_000_000) as i64,
        tv_nsec: (limit % 1_000_000_000) as i64,
    });
    let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let operation = libc::FUTEX_WAIT | if shared { 0 } else { libc::FUTEX_PRIVATE_FLAG };
    // SAFETY: word and timeout outlive the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, expected, pointer) };
}

/// Wakes up to `count` sleepers.
pub fn futex_wake(word: &AtomicU32, count: u32, shared: bool) {
    let operation = libc::FUTEX_WAKE | if shared { 0 } else { libc::FUTEX_PRIVATE_FLAG };
    // SAFETY: the kernel only uses the address as a key.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, count) };
}
