//! The trace file that is being written. Compressing and writing is the work of a thread of its own,
//! so that records are converted meanwhile: each takes about as long as the other.
//!
//! What is in a chunk that was written stays, whatever happens. When a chunk cannot be written (the
//! disk is full), everything from there on is lost, and the file says so.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use foretell_trace::format::binary::{ChunkEncoder, ChunkSealer, Compression, FILE_HEADER};

/// Chunks are sealed when their records reach this many bytes.
const CHUNK_BYTES: usize = 1 << 18;
/// Chunks there are, with the one that is being filled.
const CHUNKS: usize = 4;

/// A chunk that is being filled or waits to be written.
struct Chunk {
    encoder: Box<ChunkEncoder>,
    records: Vec<u8>,
    /// Events in the chunks before it.
    before: u64,
}

impl Chunk {
    fn new() -> Self {
        let records = Vec::with_capacity(CHUNK_BYTES * 2);
        Self { encoder: Box::new(ChunkEncoder::new()), records, before: 0 }
    }
}

/// Where chunks go.
pub struct Output {
    open: Chunk,
    /// Events so far.
    events: u64,
    /// Nothing more can be written.
    stopped: bool,
    failed: Arc<AtomicBool>,
    full: SyncSender<Chunk>,
    empty: Receiver<Chunk>,
    writer: JoinHandle<Writer>,
}

/// What was written.
pub struct Written {
    /// Events in the file.
    pub events: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Events were lost: how many are left, and why.
    pub lost: Option<String>,
}

impl Output {
    /// Writes to the file, which is empty.
    pub fn new(mut file: File) -> io::Result<Self> {
        file.write_all(&FILE_HEADER)?;
        let failed = Arc::new(AtomicBool::new(false));
        let mut writer = Writer {
            file,
            sealer: ChunkSealer::new(Compression::Lz4),
            chunks: Vec::new(),
            bytes: FILE_HEADER.len() as u64,
            lost: None,
        };
        // Neither channel can be full when a chunk goes in: there are no more chunks than that.
        let (full, to_write) = sync_channel::<Chunk>(CHUNKS);
        let (written, empty) = sync_channel(CHUNKS);
        for _ in 1..CHUNKS {
            let _ = written.send(Chunk::new()); // we have the other end
        }
        let has_failed = Arc::clone(&failed);
        let writer = thread::Builder::new().name("trace".into()).spawn(move || {
            for mut chunk in to_write {
                writer.write(&mut chunk);
                has_failed.store(writer.lost.is_some(), Relaxed);
                let _ = written.send(chunk); // the last ones are not needed any more
            }
            writer
        })?;
        let open = Chunk::new();
        Ok(Self { open, events: 0, stopped: false, failed, full, empty, writer })
    }

    /// Events so far.
    #[inline]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Appends the next event.
    #[inline]
    pub fn event(&mut self, encode: impl FnOnce(&mut ChunkEncoder, &mut Vec<u8>)) {
        if !self.stopped {
            self.events += 1;
            self.add(encode);
        }
    }

    /// Appends what is no event.
    #[inline]
    pub fn add(&mut self, encode: impl FnOnce(&mut ChunkEncoder, &mut Vec<u8>)) {
        if !self.stopped {
            encode(&mut self.open.encoder, &mut self.open.records);
            if self.open.records.len() >= CHUNK_BYTES {
                self.seal();
            }
        }
    }

    /// Has the open chunk written.
    #[inline(never)]
    fn seal(&mut self) {
        self.stopped |= self.failed.load(Relaxed);
        // The writer has gone only if it panicked; the end of the file says so.
        match self.empty.recv() {
            Ok(mut next) => {
                next.before = self.events;
                let chunk = std::mem::replace(&mut self.open, next);
                self.stopped |= self.full.send(chunk).is_err();
            }
            Err(_) => self.stopped = true,
        }
    }

    /// Ends the file: `last` writes what is to be said at the end. When the disk is full, chunks
    /// are given up until there is room.
    pub fn finish(
        mut self,
        mut last: impl FnMut(&mut ChunkEncoder, &mut Vec<u8>),
    ) -> io::Result<Written> {
        if !self.stopped {
            self.seal();
        }
        drop(self.full);
        let mut writer =
            self.writer.join().map_err(|_| io::Error::other("the writer of the trace failed"))?;
        let mut chunk = Chunk::new();
        loop {
            let (events, lost) = match &writer.lost {
                None => (self.events, None),
                Some((events, error)) => {
                    (*events, Some(format!("events after number {events} were lost: {error}")))
                }
            };
            last(&mut chunk.encoder, &mut chunk.records);
            if let Some(lost) = &lost {
                chunk.encoder.gap(lost, &mut chunk.records);
            }
            chunk.encoder.end(events, &mut chunk.records);
            let Err(error) = writer.end(&mut chunk) else {
                return Ok(Written { events, bytes: writer.bytes, lost });
            };
            let Some((at, events)) = writer.chunks.pop() else { return Err(error) };
            writer.bytes = at;
            let first = writer.lost.take().map_or(error, |(_, first)| first);
            writer.lost = Some((events, first));
        }
    }
}

/// Compresses and writes.
struct Writer {
    file: File,
    sealer: ChunkSealer,
    /// Where the chunks begin that are in the file, with the number of events before each.
    chunks: Vec<(u64, u64)>,
    bytes: u64,
    /// How many events are kept, and why no more.
    lost: Option<(u64, io::Error)>,
}

impl Writer {
    /// Writes the chunk and empties it. If that fails, everything from there on is lost.
    fn write(&mut self, chunk: &mut Chunk) {
        let sealed = self.sealer.seal(&mut chunk.encoder, &mut chunk.records);
        if self.lost.is_some() {
            return;
        }
        match self.file.write_all(sealed) {
            Ok(()) => {
                self.chunks.push((self.bytes, chunk.before));
                self.bytes += sealed.len() as u64;
            }
            Err(error) => self.lost = Some((chunk.before, error)),
        }
    }

    /// Writes the last chunk after those that are in the file.
    fn end(&mut self, chunk: &mut Chunk) -> io::Result<()> {
        let sealed = self.sealer.seal(&mut chunk.encoder, &mut chunk.records);
        self.file.set_len(self.bytes)?;
        self.file.seek(SeekFrom::Start(self.bytes))?;
        self.file.write_all(sealed)?;
        self.file.flush()?;
        self.bytes += sealed.len() as u64;
        Ok(())
    }
}
