//! Where a trace goes that is being made: into a file, or into memory.
//!
//! [`TraceFile`]: compressing and writing is the work of a thread of its own, so that records are
//! converted meanwhile: each takes about as long as the other. What is in a chunk that was written
//! stays, whatever happens. When a chunk cannot be written (the disk is full), everything from there
//! on is lost, and the file says so.
//!
//! [`TraceInMemory`]: the trace that the file would give when it is read, without the file.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use foretell_trace::format::ReadError;
use foretell_trace::format::binary::{
    ChunkEncoder, ChunkSealer, Compression, FILE_HEADER, Name, Properties, Record, Step,
    TermDefinition, TraceBuilder,
};
use foretell_trace::{
    Access, Condition, Event, Object, ObjectId, Op, Operator, Site, SiteId, Sort, TermId, Thread,
    ThreadId, Trace, Unseen, Value, Variable, VariableId,
};

/// What takes the events and definitions of a trace.
pub trait Output {
    /// What there is in the end.
    type Made;

    /// Events so far.
    fn events(&self) -> u64;
    /// The next event, a read.
    fn read(&mut self, at: Step, access: Access);
    /// The next event, a write.
    fn write(&mut self, at: Step, access: Access);
    /// The next event, a branch.
    fn branch(&mut self, at: Step, condition: Condition);
    /// The next event, a call.
    fn call(&mut self, at: Step, name: Name<'_>);
    /// The next event, of any kind.
    fn event(&mut self, sequence: u64, event: Event);
    /// Defines a thread.
    fn thread(&mut self, id: ThreadId, name: &str, path: &[u32]);
    /// Defines a synchronisation object.
    fn object(&mut self, id: ObjectId, object: Object);
    /// Defines a source position.
    fn site(&mut self, id: SiteId, site: &Site);
    /// Defines a variable.
    fn variable(&mut self, id: VariableId, variable: Variable);
    /// Defines a constant.
    fn constant(&mut self, id: TermId, value: Value);
    /// Defines a term of others.
    fn apply(&mut self, id: TermId, operator: Operator, arguments: &[TermId]);
    /// Defines the term for what a read returned.
    fn read_value(&mut self, id: TermId, thread: ThreadId, index: u32, sort: Sort);
    /// Ends the trace.
    fn finish(self, ending: &Ending<'_>) -> io::Result<(Written, Self::Made)>;
}

/// What is said at the end of a trace.
pub struct Ending<'a> {
    /// It has expressions.
    pub symbolic: bool,
    /// See [`foretell_trace::Metadata::machine_code`].
    pub machine_code: bool,
    /// See [`foretell_trace::Metadata::unseen`].
    pub unseen: Unseen,
    /// The program and its arguments.
    pub command: &'a [String],
    /// The program's build.
    pub build_id: Option<&'a str>,
    /// What it lacks.
    pub gaps: &'a [String],
    /// What was held at its recorded value.
    pub restrictions: &'a [String],
}

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

/// See the module's text.
pub struct TraceFile {
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

impl TraceFile {
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

    /// Appends the next event.
    #[inline]
    fn next(&mut self, encode: impl FnOnce(&mut ChunkEncoder, &mut Vec<u8>)) {
        if !self.stopped {
            self.events += 1;
            self.add(encode);
        }
    }

    /// Appends what is no event.
    #[inline]
    fn add(&mut self, encode: impl FnOnce(&mut ChunkEncoder, &mut Vec<u8>)) {
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
}

impl Output for TraceFile {
    type Made = ();

    #[inline]
    fn events(&self) -> u64 {
        self.events
    }

    #[inline]
    fn read(&mut self, at: Step, access: Access) {
        self.next(|encoder, records| encoder.read(at, &access, records));
    }

    #[inline]
    fn write(&mut self, at: Step, access: Access) {
        self.next(|encoder, records| encoder.write(at, &access, records));
    }

    #[inline]
    fn branch(&mut self, at: Step, condition: Condition) {
        self.next(|encoder, records| encoder.branch(at, condition, records));
    }

    fn call(&mut self, at: Step, name: Name<'_>) {
        self.next(|encoder, records| encoder.call(at, name, records));
    }

    fn event(&mut self, sequence: u64, event: Event) {
        self.next(|encoder, records| encoder.event(sequence, &event, records));
    }

    fn thread(&mut self, id: ThreadId, name: &str, path: &[u32]) {
        self.add(|encoder, records| encoder.thread(id, name, path, records));
    }

    fn object(&mut self, id: ObjectId, object: Object) {
        self.add(|encoder, records| encoder.object(id, &object, records));
    }

    fn site(&mut self, id: SiteId, site: &Site) {
        let Site { file, line, column, function } = site;
        self.add(|encoder, records| encoder.site(id, file, *line, *column, function, records));
    }

    fn variable(&mut self, id: VariableId, variable: Variable) {
        let Variable { name, sort, scope, memory, initial } = variable;
        self.add(|encoder, records| {
            encoder.variable(id, &name, sort, scope, memory, initial.as_ref(), records);
        });
    }

    #[inline]
    fn constant(&mut self, id: TermId, value: Value) {
        self.add(|encoder, records| encoder.constant_term(id, &value, records));
    }

    #[inline]
    fn apply(&mut self, id: TermId, operator: Operator, arguments: &[TermId]) {
        self.add(|encoder, records| encoder.apply_term(id, operator, arguments, records));
    }

    #[inline]
    fn read_value(&mut self, id: TermId, thread: ThreadId, index: u32, sort: Sort) {
        self.add(|encoder, records| encoder.read_value_term(id, thread, index, sort, records));
    }

    /// When the disk is full, chunks are given up until there is room.
    fn finish(mut self, ending: &Ending<'_>) -> io::Result<(Written, ())> {
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
            ending.write(&mut chunk.encoder, &mut chunk.records);
            if let Some(lost) = &lost {
                chunk.encoder.gap(lost, &mut chunk.records);
            }
            chunk.encoder.end(events, &mut chunk.records);
            let Err(error) = writer.end(&mut chunk) else {
                return Ok((Written { events, bytes: writer.bytes, lost }, ()));
            };
            let Some((at, events)) = writer.chunks.pop() else { return Err(error) };
            writer.bytes = at;
            let first = writer.lost.take().map_or(error, |(_, first)| first);
            writer.lost = Some((events, first));
        }
    }
}

impl Ending<'_> {
    fn properties(&self) -> Properties {
        let &Self { symbolic, machine_code, unseen, .. } = self;
        Properties { symbolic, observed_order: true, machine_code, unseen }
    }

    fn write(&self, encoder: &mut ChunkEncoder, records: &mut Vec<u8>) {
        encoder.properties(self.properties(), records);
        encoder.command(self.command.iter().map(String::as_str), records);
        if let Some(build_id) = self.build_id {
            encoder.build_id(build_id, records);
        }
        for gap in self.gaps {
            encoder.gap(gap, records);
        }
        for restriction in self.restrictions {
            encoder.restriction(restriction, records);
        }
    }
}

/// See the module's text.
#[derive(Default)]
pub struct TraceInMemory {
    builder: TraceBuilder,
    events: u64,
    /// Why nothing more is taken.
    failed: Option<ReadError>,
}

impl TraceInMemory {
    fn add(&mut self, record: Record) {
        if self.failed.is_none() {
            self.failed = self.builder.add(record).err();
        }
    }

    fn next(&mut self, at: Step, op: Op) {
        let event = Event { thread: at.thread, index: at.index, site: at.site, op };
        self.event(at.sequence, event);
    }
}

impl Output for TraceInMemory {
    type Made = Result<Trace, ReadError>;

    fn events(&self) -> u64 {
        self.events
    }

    fn read(&mut self, at: Step, access: Access) {
        self.next(at, Op::Read(access));
    }

    fn write(&mut self, at: Step, access: Access) {
        self.next(at, Op::Write(access));
    }

    fn branch(&mut self, at: Step, condition: Condition) {
        self.next(at, Op::Branch(condition));
    }

    fn call(&mut self, at: Step, name: Name<'_>) {
        self.next(at, Op::Call(name.text.into()));
    }

    fn event(&mut self, sequence: u64, event: Event) {
        self.events += 1;
        self.add(Record::Event(sequence, event));
    }

    fn thread(&mut self, id: ThreadId, name: &str, path: &[u32]) {
        self.add(Record::Thread(id, Thread { name: name.into(), path: path.into() }));
    }

    fn object(&mut self, id: ObjectId, object: Object) {
        self.add(Record::Object(id, object));
    }

    fn site(&mut self, id: SiteId, site: &Site) {
        self.add(Record::Site(id, site.clone()));
    }

    fn variable(&mut self, id: VariableId, variable: Variable) {
        self.add(Record::Variable(id, variable));
    }

    fn constant(&mut self, id: TermId, value: Value) {
        self.add(Record::Term(id, TermDefinition::Constant(value)));
    }

    fn apply(&mut self, id: TermId, operator: Operator, arguments: &[TermId]) {
        self.add(Record::Term(id, TermDefinition::Apply(operator, arguments.into())));
    }

    fn read_value(&mut self, id: TermId, thread: ThreadId, index: u32, sort: Sort) {
        self.add(Record::Term(id, TermDefinition::ReadValue(thread, index, sort)));
    }

    fn finish(mut self, ending: &Ending<'_>) -> io::Result<(Written, Self::Made)> {
        self.add(Record::Properties(ending.properties()));
        self.add(Record::Command(ending.command.iter().map(|word| word.as_str().into()).collect()));
        if let Some(build_id) = ending.build_id {
            self.add(Record::BuildId(build_id.into()));
        }
        for gap in ending.gaps {
            self.add(Record::Gap(gap.as_str().into()));
        }
        for restriction in ending.restrictions {
            self.add(Record::Restriction(restriction.as_str().into()));
        }
        self.add(Record::End(self.events));
        let written = Written { events: self.events, bytes: 0, lost: None };
        let made = match self.failed {
            Some(error) => Err(error),
            None => self.builder.into_trace(),
        };
        Ok((written, made))
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
