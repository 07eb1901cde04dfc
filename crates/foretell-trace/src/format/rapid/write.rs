//! A trace as RAPID writes it, whether it can be, and what of it this format can say.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::lines::{Line, Operation};
use super::{Builder, MAX_LINE_BYTES};
use crate::event::{Access, Event, Op};
use crate::format::{Format, WriteError};
use crate::id::{EventId, ObjectId, VariableId};
use crate::sync::SyncOp;
use crate::trace::Trace;

/// Says whether the format can carry the trace without loss; the error names the first thing that
/// it cannot. See [`project`] for traces that have more.
pub fn check(trace: &Trace) -> Result<(), WriteError> {
    let refuse = |what: String| Err(WriteError::cannot_carry(Format::Std, what));
    if !trace.orders.is_empty() || !trace.atomic_sections.is_empty() {
        return refuse("orders and atomic sections".into());
    }
    if !trace.labels.is_empty() || trace.precondition.is_some() || !trace.terms.is_empty() {
        return refuse("labels, a precondition or terms".into());
    }
    // What a reader would make of the lines must be the trace.
    let mut builder = Builder::new();
    for (place, event) in trace.events.iter().enumerate() {
        let said = match line_of(trace, event) {
            Some(line) if sayable(&line) => builder.add(&line).is_ok(),
            _ => false,
        };
        if !said || builder.trace.events.pop().as_ref() != Some(event) {
            let name = trace.event_name(EventId::from(place));
            return refuse(format!("event {name}: {}", described(event)));
        }
    }
    let understood = &builder.trace;
    if understood.metadata != trace.metadata {
        return refuse("metadata of a recorded run".into());
    }
    if understood.threads != trace.threads {
        return refuse("threads without events or with other creation paths".into());
    }
    if understood.variables != trace.variables {
        return refuse("what is known about variables".into());
    }
    if understood.objects != trace.objects {
        return refuse("what is known about synchronisation objects".into());
    }
    if understood.sites != trace.sites {
        return refuse("files, columns and functions of sites".into());
    }
    Ok(())
}

fn described(event: &Event) -> &'static str {
    match &event.op {
        Op::Read(_) | Op::Write(_) => "an access with a value, a term or a memory order",
        Op::Sync(_, SyncOp::Acquire(_) | SyncOp::Release(_)) => "a reader-writer lock or a try",
        Op::Fork(_) | Op::Join(_) | Op::RegionBegin(_) | Op::RegionEnd => "its names",
        _ => "an operation other than r, w, acq, rel, fork, join, begin, end",
    }
}

/// The event as a line, as far as the operation goes.
fn line_of<'a>(trace: &'a Trace, event: &'a Event) -> Option<Line<'a>> {
    let variable = |access: &Access| &*trace.variables[access.variable.index()].name;
    let object = |lock: &ObjectId| &*trace.objects[lock.index()].name;
    let (operation, name) = match &event.op {
        Op::Read(access) => (Operation::Read, variable(access)),
        Op::Write(access) => (Operation::Write, variable(access)),
        Op::Sync(lock, SyncOp::Acquire(_)) => (Operation::Acquire, object(lock)),
        Op::Sync(lock, SyncOp::Release(_)) => (Operation::Release, object(lock)),
        Op::Fork(thread) => (Operation::Fork, &*trace.threads[thread.index()].name),
        Op::Join(thread) => (Operation::Join, &*trace.threads[thread.index()].name),
        Op::RegionBegin(name) => (Operation::Begin, &**name),
        Op::RegionEnd => (Operation::End, ""),
        _ => return None,
    };
    Some(Line {
        thread: trace.threads[event.thread.index()].name.as_bytes(),
        operation,
        name: name.as_bytes(),
        location: event.site.map_or(0, |site| trace.sites[site.index()].line),
    })
}

/// Names that RAPID and we read back as they are.
fn sayable(line: &Line<'_>) -> bool {
    let fine = |name: &[u8]| {
        name.len() < MAX_LINE_BYTES / 4
            && name.iter().all(|&byte| byte > b' ' && !matches!(byte, b'|' | b'(' | b')' | 0x7f))
    };
    let unnamed = matches!(line.operation, Operation::Begin | Operation::End);
    fine(line.thread)
        && fine(line.name)
        && !line.thread.is_empty()
        && (unnamed || !line.name.is_empty())
}

/// Writes a trace that passes [`check`].
///
/// # Errors
/// When `out` fails, or at the first event that the format has no line for.
pub fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    for event in &trace.events {
        let Some(line) = line_of(trace, event) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, described(event)));
        };
        out.write_all(line.thread)?;
        let operation: &[u8] = match line.operation {
            Operation::Read => b"|r(",
            Operation::Write => b"|w(",
            Operation::Acquire => b"|acq(",
            Operation::Release => b"|rel(",
            Operation::Fork => b"|fork(",
            Operation::Join => b"|join(",
            Operation::Begin if line.name.is_empty() => b"|begin",
            Operation::Begin => b"|begin(",
            Operation::End => b"|end",
        };
        out.write_all(operation)?;
        if operation.ends_with(b"(") {
            out.write_all(line.name)?;
            out.write_all(b")")?;
        }
        writeln!(out, "|{}", line.location)?;
    }
    out.flush()
}

/// Like [`write`], compressed with gzip where the file is to be called `.gz`.
pub(in crate::format) fn write_path(
    trace: &Trace,
    path: &Path,
    out: &mut dyn Write,
) -> io::Result<()> {
    if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("gz")) {
        return write(trace, out);
    }
    let mut gzip = GzEncoder::new(out, Compression::default());
    write(trace, &mut BufWriter::new(&mut gzip))?;
    gzip.finish()?;
    Ok(())
}

/// What of the trace the format can carry: accesses lose values, terms and memory orders; a
/// read-modify-write becomes a read and a write; a condition wait becomes a release and an acquire;
/// readers lock like writers; all other events, and all that is known beside names and lines, is
/// left out. Names are made unique and free of the format's own characters.
pub fn project(trace: &Trace) -> Trace {
    let mut builder = Builder::new();
    let threads = plain_names(trace.threads.iter().map(|thread| &*thread.name));
    let variables = plain_names(trace.variables.iter().map(|variable| &*variable.name));
    let objects = plain_names(trace.objects.iter().map(|object| &*object.name));
    for event in &trace.events {
        let variable = |variable: VariableId| variables[variable.index()].as_str();
        let object = |object: ObjectId| objects[object.index()].as_str();
        let region;
        let (operation, name) = match &event.op {
            Op::Read(access) => (Operation::Read, variable(access.variable)),
            Op::Write(access) => (Operation::Write, variable(access.variable)),
            Op::ReadModifyWrite(update) => (Operation::Read, variable(update.variable)),
            Op::Sync(lock, SyncOp::Acquire(_)) => (Operation::Acquire, object(*lock)),
            Op::Sync(lock, SyncOp::Release(_)) => (Operation::Release, object(*lock)),
            Op::Sync(_, SyncOp::WaitBegin { mutex, .. }) => (Operation::Release, object(*mutex)),
            Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) => (Operation::Acquire, object(*mutex)),
            Op::Fork(thread) => (Operation::Fork, threads[thread.index()].as_str()),
            Op::Join(thread) => (Operation::Join, threads[thread.index()].as_str()),
            Op::RegionBegin(name) => {
                region = plain_name(name);
                (Operation::Begin, region.as_str())
            }
            Op::RegionEnd => (Operation::End, ""),
            _ => continue,
        };
        let mut line = Line {
            thread: threads[event.thread.index()].as_bytes(),
            operation,
            name: name.as_bytes(),
            location: event.site.map_or(0, |site| trace.sites[site.index()].line),
        };
        let mut complete = builder.add(&line).is_ok();
        if matches!(event.op, Op::ReadModifyWrite(_)) {
            line.operation = Operation::Write;
            complete &= builder.add(&line).is_ok();
        }
        if !complete {
            break; // more events than can be numbered
        }
    }
    builder.trace
}

fn plain_name(name: &str) -> String {
    let plain = |letter: char| {
        if letter <= ' ' || matches!(letter, '|' | '(' | ')' | '\x7f') { '_' } else { letter }
    };
    name.chars().take(1000).map(plain).collect()
}

/// The names without what the format cannot say; where two would be equal, or one empty, they get
/// their number.
fn plain_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    names
        .enumerate()
        .map(|(number, name)| {
            let mut plain = plain_name(name);
            while plain.is_empty() || !taken.insert(plain.clone()) {
                plain = format!("{plain}_{number}");
            }
            plain
        })
        .collect()
}
