//! The reading end of the memory that is shared with the program.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use foretell_wire::{
    ATTACHED, CHUNK_BYTES, CHUNKS, CONTRACT, End, HEADER_BYTES, Header, MAGIC, OTHER_BUILD,
    RING_BYTES, VERSION,
};

/// A chunk that is full.
pub struct Chunk<'a> {
    pub words: &'a [u64],
    /// Events up to its end, as the program counts them.
    pub events: u64,
    /// It has records of a kind that [`foretell_wire::Kind::is_notable`].
    pub notable: bool,
}

/// The shared memory. Everything in it comes from another process and is not to be trusted.
pub struct Ring {
    file: File,
    memory: *mut u8,
}

// SAFETY: the header's fields are atomic; chunks are only read after the writer gave them away.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// Fresh memory.
    pub fn new() -> io::Result<Ring> {
        let file = memory_file()?;
        // SAFETY: a plain call on our file.
        if unsafe { libc::ftruncate(file.as_raw_fd(), RING_BYTES as i64) } != 0 {
            return Err(io::Error::last_os_error());
        }
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
        }
        Ok(Ring { file, memory: memory.cast() })
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
        self.header().attached.load(Relaxed) == ATTACHED
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

    /// The next full chunk, if there is one.
    pub fn full_chunk(&self) -> Option<Chunk<'_>> {
        let header = self.header();
        let consumed = header.consumed.load(Relaxed);
        let slot = consumed as usize % CHUNKS;
        (header.produced.load(Acquire) != consumed).then(|| Chunk {
            words: self.chunk(consumed, header.used[slot].load(Relaxed) as usize),
            events: header.events[slot].load(Relaxed),
            notable: header.notable[slot].load(Relaxed) != 0,
        })
    }

    /// What has been written of the chunk that is not full. Only once the writer is gone.
    pub fn rest(&self) -> &[u64] {
        self.chunk(self.header().produced.load(Acquire), self.filled())
    }

    /// Bytes of the chunk that is not full.
    fn filled(&self) -> usize {
        let header = self.header();
        match header.base.load(Acquire) {
            0 => 0,
            base => header.cursor[0].load(Acquire).saturating_sub(base) as usize,
        }
    }

    fn chunk(&self, number: u32, used: usize) -> &[u64] {
        let slot = number as usize % CHUNKS;
        let words = used.min(CHUNK_BYTES) / 8;
        // SAFETY: within the mapping; the writer does not touch these words any more.
        unsafe {
            let first = self.memory.add(HEADER_BYTES + slot * CHUNK_BYTES);
            std::slice::from_raw_parts(first.cast::<u64>(), words)
        }
    }

    /// Gives the chunk back to the writer.
    pub fn release_chunk(&self) {
        let header = self.header();
        let consumed = header.consumed.load(Relaxed).wrapping_add(1);
        header.consumed.store(consumed, Release);
        futex(header.consumed.as_ptr(), libc::FUTEX_WAKE, 1, None);
    }

    /// Sleeps until a chunk is full, somebody calls [`Ring::wake_reader`], or the time is over.
    pub fn wait(&self, limit: Duration) {
        let header = self.header();
        let consumed = header.consumed.load(Relaxed);
        futex(header.produced.as_ptr(), libc::FUTEX_WAIT, consumed, Some(limit));
    }

    /// Wakes the reader.
    pub fn wake_reader(&self) {
        futex(self.header().produced.as_ptr(), libc::FUTEX_WAKE, 1, None);
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
    // SAFETY: the name ends in NUL.
    let file = unsafe { libc::memfd_create(c"foretell".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: we own what we opened.
    Ok(unsafe { File::from_raw_fd(file) })
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
