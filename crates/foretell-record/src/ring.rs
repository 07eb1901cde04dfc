//! The reading end of the memory that is shared with the program.
//!
//! The program can write anything there, at any time. So chunks are copied before they are looked at,
//! positions are kept on this side, and every number of the program is checked against them. What does
//! not fit is damage: nothing that comes later is believed, and the program is no longer made to wait
//! for us. The file is sealed, so that its size cannot change under the mapping: no read of it is a SIGBUS
//! (the program can only make holes, which read as zeros).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Duration;

use foretell_wire::{
    ATTACHED, CHUNK_BYTES, CHUNKS, CONTRACT, End, HEADER_BYTES, Header, MAGIC, OTHER_BUILD,
    RING_BYTES, VERSION,
};

/// What a damaged recording lacks.
pub const DAMAGED: &str =
    "everything after the program overwrote the memory in which it is recorded";

/// A chunk that is full.
pub struct Chunk {
    pub words: Vec<u64>,
    /// Events up to its end, as the program counts them.
    pub events: u64,
    /// It has records of a kind that [`foretell_wire::Kind::is_notable`].
    pub notable: bool,
}

/// The shared memory. Everything in it comes from another process and is not to be trusted.
pub struct Ring {
    file: File,
    memory: *mut u8,
    /// Chunks that were taken. The program has a copy, which it may have overwritten.
    consumed: AtomicU32,
    /// Events up to there.
    events: AtomicU64,
    /// The program was seen to write here.
    attached: AtomicBool,
    damaged: AtomicBool,
}

// SAFETY: the header's fields are atomic; chunks are only read after the writer gave them away.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// Fresh memory, with the text behind it in its file.
    pub fn new(behind: &str) -> io::Result<Ring> {
        let file = memory_file()?;
        file.set_len((RING_BYTES + behind.len()) as u64)?;
        file.write_all_at(behind.as_bytes(), RING_BYTES as u64)?;
        seal(&file)?;
        // SAFETY: a new mapping.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                RING_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let header = memory.cast::<Header>();
        // SAFETY: nobody else has the memory yet.
        unsafe {
            (*header).magic = MAGIC;
            (*header).version = VERSION;
            (*header).contract = CONTRACT;
            (*header).recorder.store(std::process::id(), Relaxed);
        }
        Ok(Ring {
            file,
            memory: memory.cast(),
            consumed: AtomicU32::new(0),
            events: AtomicU64::new(0),
            attached: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
        })
    }

    /// The file that the program inherits.
    pub fn file(&self) -> i32 {
        self.file.as_raw_fd()
    }

    fn header(&self) -> &Header {
        // SAFETY: mapped as long as we live, and its shared fields are atomic.
        unsafe { &*self.memory.cast::<Header>() }
    }

    /// Whether a program took hold of it.
    pub fn is_attached(&self) -> bool {
        if self.header().attached.load(Relaxed) == ATTACHED {
            self.attached.store(true, Relaxed);
        }
        self.attached.load(Relaxed)
    }

    /// Whether the program overwrote what it must not.
    pub fn is_damaged(&self) -> bool {
        let header = self.header();
        // The library only refuses what it does not know; nothing else changes these.
        // SAFETY: plain numbers in the mapping, which the program may change at any time.
        let ours = unsafe {
            (&raw const header.magic).read_volatile() == MAGIC
                && (&raw const header.version).read_volatile() == VERSION
                && (&raw const header.contract).read_volatile() == CONTRACT
        };
        let attached = header.attached.load(Relaxed);
        let sensible = [0, ATTACHED, OTHER_BUILD].contains(&attached);
        let lost = attached == 0 && (self.attached.load(Relaxed) || header.base.load(Relaxed) != 0);
        if !ours || !sensible || lost {
            self.damaged.store(true, Relaxed);
        }
        self.damaged.load(Relaxed)
    }

    /// Whether a library of another build refused it.
    pub fn is_refused(&self) -> bool {
        self.header().attached.load(Relaxed) == OTHER_BUILD
    }

    /// Whether recording ended because a handler left the runtime by `longjmp`.
    pub fn is_left(&self) -> bool {
        self.header().left.load(Relaxed) != 0
    }

    /// Something that changes while the program does something visible.
    pub fn progress(&self) -> (u64, u32, u32) {
        let header = self.header();
        let produced = header.produced.load(Relaxed);
        (header.turns.load(Relaxed), produced, self.filled() as u32)
    }

    /// The next full chunk, if there is one and nothing is damaged.
    pub fn full_chunk(&self) -> Option<Chunk> {
        if self.is_damaged() {
            return None;
        }
        self.is_attached();
        let header = self.header();
        let consumed = self.consumed.load(Relaxed);
        let slot = consumed as usize % CHUNKS;
        let full = header.produced.load(Acquire).wrapping_sub(consumed) as usize;
        if full == 0 {
            return None;
        }
        let used = header.used[slot].load(Relaxed) as usize;
        let words = used / 8;
        let (events, before) = (header.events[slot].load(Relaxed), self.events.load(Relaxed));
        // An event has at least a word.
        let plausible = full <= CHUNKS
            && header.consumed.load(Relaxed) == consumed
            && used <= CHUNK_BYTES
            && used.is_multiple_of(8)
            && events >= before
            && events - before <= words as u64;
        if !plausible {
            self.damaged.store(true, Relaxed);
            return None;
        }
        self.events.store(events, Relaxed);
        let notable = header.notable[slot].load(Relaxed) != 0;
        Some(Chunk { words: self.copy(consumed, words), events, notable })
    }

    /// What has been written of the chunk that is not full, if nothing is damaged. Only once the
    /// writer is gone.
    pub fn rest(&self) -> Option<Vec<u64>> {
        let produced = self.header().produced.load(Acquire);
        let filled = self.filled();
        if self.is_damaged() || produced != self.consumed.load(Relaxed) || filled > CHUNK_BYTES {
            self.damaged.store(true, Relaxed);
            return None;
        }
        Some(self.copy(produced, filled / 8))
    }

    /// Bytes of the chunk that is not full.
    fn filled(&self) -> usize {
        let header = self.header();
        match header.base.load(Acquire) {
            0 => 0,
            base => header.cursor[0].load(Acquire).saturating_sub(base) as usize,
        }
    }

    /// A copy of the words, which nobody can change any more.
    fn copy(&self, number: u32, words: usize) -> Vec<u64> {
        let slot = number as usize % CHUNKS;
        let mut copy: Vec<u64> = Vec::with_capacity(words);
        // SAFETY: within the mapping, and any bits are words. A program that goes on writing there
        // gets what it wrote, or garbage; nobody here reads the same word twice.
        unsafe {
            let first = self.memory.add(HEADER_BYTES + slot * CHUNK_BYTES).cast::<u64>();
            std::ptr::copy_nonoverlapping(first, copy.as_mut_ptr(), words);
            copy.set_len(words);
        }
        copy
    }

    /// Gives the chunk back to the writer.
    pub fn release_chunk(&self) {
        let header = self.header();
        let consumed = self.consumed.load(Relaxed).wrapping_add(1);
        self.consumed.store(consumed, Relaxed);
        header.consumed.store(consumed, Release);
        futex(header.consumed.as_ptr(), libc::FUTEX_WAKE, 1, None);
    }

    /// Sleeps until a chunk is full, the program says that it ends, or the time is over. From
    /// a damaged ring nothing is read: whatever the program writes there is taken as read.
    pub fn wait(&self, limit: Duration) {
        let header = self.header();
        if self.is_damaged() {
            header.consumed.store(header.produced.load(Relaxed), Release);
            futex(header.consumed.as_ptr(), libc::FUTEX_WAKE, i32::MAX as u32, None);
            std::thread::sleep(limit.min(Duration::from_millis(5)));
            return;
        }
        let consumed = self.consumed.load(Relaxed);
        futex(header.produced.as_ptr(), libc::FUTEX_WAIT, consumed, Some(limit));
    }

    /// Whether the program has said that it ends: only its process is to be waited for.
    pub fn has_ended(&self) -> bool {
        !self.is_damaged() && self.header().end.load(Acquire) != End::Unsaid as u32
    }

    /// What the runtime said about the end, and its message.
    pub fn end(&self) -> (End, String) {
        let header = self.header();
        let end = End::from_code(header.end.load(Acquire)).unwrap_or(End::Unsaid);
        let length = header.message_length.load(Relaxed) as usize;
        let message = &header.message[..length.min(header.message.len())];
        (end, String::from_utf8_lossy(message).into_owned())
    }
}

/// A file that is only in memory.
pub fn memory_file() -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name ends in NUL.
    let file = unsafe { libc::memfd_create(c"foretell".as_ptr(), flags) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: we own what we opened.
    Ok(unsafe { File::from_raw_fd(file) })
}

/// The size stays as it is: a mapping whose file shrinks is a fatal signal for whoever reads it.
fn seal(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: a plain call on our file.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.memory.cast(), RING_BYTES) };
    }
}

fn futex(word: *mut u32, operation: i32, value: u32, limit: Option<Duration>) {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: limit.subsec_nanos().into(),
    });
    let pointer = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is in our mapping, the time on our stack.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, value, pointer, 0, 0) };
}
