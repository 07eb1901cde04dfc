//! Reading what was recorded, in whichever form it is.

use std::io;
use std::path::Path;

use foretell_guard::{Keep, Replacement};
use foretell_trace::Trace;
use foretell_trace::format::{self, Format, Mapped, Opened, ReadError};
use foretell_trace::info::TraceInfo;
use foretell_trace::validate::drop_stale_terms;

use crate::RecordError;
use crate::log::Log;
use crate::output::{TraceFile, TraceInMemory};
use crate::ring::memory_file;

/// Reads a trace of any format; a log is converted.
pub fn read(path: &Path) -> Result<Trace, ReadError> {
    read_opened(Opened::new(path)?, path)
}

/// As [`read`]; `path` is the one that was opened.
pub fn read_opened(opened: Opened, path: &Path) -> Result<Trace, ReadError> {
    match opened.format {
        Format::Log => {
            let bytes = opened.bytes().map_err(|error| ReadError::io(path, &error))?;
            read_log(&bytes).map_err(|error| error.in_file(path))
        }
        _ => opened.read(path).map(mended),
    }
}

/// What was recorded, without the expressions that contradict the values: a value is what happened.
/// What somebody else has written is left as it is.
pub fn mended(mut trace: Trace) -> Trace {
    let recorded = trace.metadata.observed_order && !trace.metadata.command.is_empty();
    if recorded && trace.metadata.symbolic {
        let dropped = drop_stale_terms(&mut trace);
        if dropped > 0 {
            trace.metadata.gaps.push(
                format!(
                    "the expressions of {dropped} events contradicted the recorded values and were \
                     dropped: uninstrumented code changed memory unseen"
                )
                .into(),
            );
        }
    }
    trace
}

/// Counts what is in a trace of any format; a log is converted.
pub fn info(path: &Path) -> Result<(Format, TraceInfo), ReadError> {
    let opened = Opened::new(path)?;
    match opened.format {
        Format::Log => {
            let bytes = opened.bytes().map_err(|error| ReadError::io(path, &error))?;
            let info = converted(&bytes).and_then(|trace| TraceInfo::of_binary(&trace));
            Ok((Format::Log, info.map_err(|error| error.in_file(path))?))
        }
        _ => TraceInfo::of_opened(opened, path),
    }
}

/// Reads a log that is in memory.
pub fn read_log(log: &[u8]) -> Result<Trace, ReadError> {
    Log::new(log)?.convert(TraceInMemory::default())?.map(mended)
}

/// The log as a binary trace, in memory.
fn converted(log: &[u8]) -> Result<Mapped, ReadError> {
    let log = Log::new(log)?;
    let memory = |error: io::Error| {
        let message = format!("cannot convert the log: {error}");
        ReadError::new(format::Position::None, message)
    };
    let file = memory_file().map_err(memory)?;
    let output = file.try_clone().and_then(TraceFile::new).map_err(memory)?;
    log.convert(output)?;
    Mapped::of(file).map_err(memory)
}

/// Writes a log as a binary trace, which appears under its name when it is whole; `path` is the one
/// that was opened. Memory does not grow with the log.
pub fn convert(log: Opened, path: &Path, output: &Path) -> Result<(), RecordError> {
    let read_error = |error: ReadError| RecordError::Read(error.in_file(path));
    let write_error = |error: io::Error| RecordError::Write(output.to_owned(), error);
    let bytes = log.bytes().map_err(|error| RecordError::Read(ReadError::io(path, &error)))?;
    let log = Log::new(&bytes).map_err(read_error)?;
    let partial = Replacement::new(output, Keep::Mode).map_err(write_error)?;
    let output = partial.file().try_clone().and_then(TraceFile::new).map_err(write_error)?;
    log.convert(output).map_err(read_error)?;
    partial.complete_without_sync().map_err(write_error)
}
