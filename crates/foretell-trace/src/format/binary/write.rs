//! A whole trace as a file: the definitions, then the events, numbered by their place.

use std::collections::HashMap;
use std::io::{self, Write};

use super::chunk::{ChunkSealer, Compression, FILE_HEADER};
use super::encode::{ChunkEncoder, Name, Step};
use crate::event::{Event, Op};
use crate::id::{ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::trace::Trace;

/// Chunks are sealed when their records reach this many bytes.
const CHUNK_BYTES: usize = 1 << 18;

/// Writes everything that is in the trace.
pub fn write(trace: &Trace, mut out: impl Write) -> io::Result<()> {
    out.write_all(&FILE_HEADER)?;
    let mut chunks = Chunks {
        out,
        encoder: Box::new(ChunkEncoder::new()),
        sealer: ChunkSealer::new(Compression::Lz4),
        records: Vec::with_capacity(CHUNK_BYTES + (CHUNK_BYTES >> 3)),
    };
    chunks.add(|encoder, records| encoder.metadata(&trace.metadata, records))?;
    for (id, thread) in trace.threads.iter().enumerate() {
        chunks.add(|encoder, records| {
            encoder.thread(ThreadId::from(id), &thread.name, &thread.path, records);
        })?;
    }
    for (id, variable) in trace.variables.iter().enumerate() {
        chunks.add(|encoder, records| {
            encoder.variable(
                VariableId::from(id),
                &variable.name,
                variable.sort,
                variable.scope,
                variable.memory,
                variable.initial.as_ref(),
                records,
            );
        })?;
    }
    for (id, object) in trace.objects.iter().enumerate() {
        chunks.add(|encoder, records| {
            encoder.object(ObjectId::from(id), object, records);
        })?;
    }
    for (id, site) in trace.sites.iter().enumerate() {
        chunks.add(|encoder, records| {
            let id = SiteId::from(id);
            encoder.site(id, &site.file, site.line, site.column, &site.function, records);
        })?;
    }
    for id in 0..trace.terms.len() {
        chunks.add(|encoder, records| encoder.term(TermId::from(id), &trace.terms, records))?;
    }
    if let Some(precondition) = trace.precondition {
        chunks.add(|encoder, records| encoder.precondition(precondition, records))?;
    }
    for &(first, second) in &trace.orders {
        chunks.add(|encoder, records| {
            encoder.order(u64::from(first.0), u64::from(second.0), records);
        })?;
    }
    for &(first, last) in &trace.atomic_sections {
        chunks.add(|encoder, records| {
            encoder.atomic_section(u64::from(first.0), u64::from(last.0), records);
        })?;
    }
    for (event, label) in &trace.labels {
        chunks.add(|encoder, records| encoder.label(u64::from(event.0), label, records))?;
    }
    let mut keys = HashMap::new();
    for (place, event) in trace.events.iter().enumerate() {
        chunks.add(|encoder, records| {
            add_event(encoder, place as u64, event, &mut keys, records);
        })?;
    }
    chunks.add(|encoder, records| encoder.end(trace.events.len() as u64, records))?;
    chunks.seal()?;
    chunks.out.flush()
}

fn add_event<'a>(
    encoder: &mut ChunkEncoder,
    sequence: u64,
    event: &'a Event,
    keys: &mut HashMap<&'a str, u64>,
    records: &mut Vec<u8>,
) {
    let at = Step { sequence, thread: event.thread, index: event.index, site: event.site };
    let mut name = |text: &'a str| {
        let next = keys.len() as u64;
        Name { key: *keys.entry(text).or_insert(next), text }
    };
    match &event.op {
        Op::Call(function) => encoder.call(at, name(function), records),
        Op::RegionBegin(region) => encoder.region_begin(at, name(region), records),
        Op::Input { source, value } => encoder.input(at, name(source), *value, records),
        _ => encoder.event(sequence, event, records),
    }
}

struct Chunks<W> {
    out: W,
    encoder: Box<ChunkEncoder>,
    sealer: ChunkSealer,
    records: Vec<u8>,
}

impl<W: Write> Chunks<W> {
    fn add(&mut self, encode: impl FnOnce(&mut ChunkEncoder, &mut Vec<u8>)) -> io::Result<()> {
        encode(&mut self.encoder, &mut self.records);
        if self.records.len() >= CHUNK_BYTES { self.seal() } else { Ok(()) }
    }

    fn seal(&mut self) -> io::Result<()> {
        self.out.write_all(self.sealer.seal(&mut self.encoder, &mut self.records))
    }
}
