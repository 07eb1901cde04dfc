//! Where a recording goes: into a log, or through the converter into a trace.

use std::fs::File;
use std::io;

use foretell_trace::Trace;
use foretell_trace::format::ReadError;

use crate::account::Account;
use crate::convert::{Converter, Summary};
use crate::forced::Comparison;
use crate::log::About;
use crate::logger::Logger;
use crate::output::{TraceFile, TraceInMemory};
use crate::path::ExecutionPath;
use crate::ring::Chunk;
use crate::symbols::Symbols;

/// What a recording becomes.
pub enum Destination {
    /// A log; the file is empty and can be read, too.
    Log(File),
    /// A binary trace; the file is empty.
    File(File),
    /// A trace in memory.
    Memory,
}

/// See the module's text.
pub struct Sink {
    about: About,
    form: Written,
    taken: u64,
}

enum Written {
    Memory(Box<Converter<TraceInMemory>>),
    File(Box<Converter<TraceFile>>),
    Log(Box<Logger>),
}

/// A recording that is whole.
pub struct Finished {
    pub summary: Summary,
    /// The branches that were taken.
    pub path: ExecutionPath,
    /// The trace, if it is in memory.
    pub trace: Option<Result<Trace, ReadError>>,
}

/// The same of a converter of either kind.
macro_rules! either {
    ($sink:expr, $converter:ident => $trace:expr, $logger:ident => $log:expr) => {
        match $sink {
            Written::Memory($converter) => $trace,
            Written::File($converter) => $trace,
            Written::Log($logger) => $log,
        }
    };
}

impl Sink {
    /// Nothing has been recorded yet.
    pub fn new(destination: Destination, about: About) -> io::Result<Self> {
        let (executable, symbols) = (about.executable.clone(), Symbols::default());
        let form = match destination {
            Destination::Log(file) => Written::Log(Logger::new(file, &about)?.into()),
            Destination::File(file) => {
                let output = TraceFile::new(file)?;
                Written::File(Converter::new(output, executable, symbols).into())
            }
            Destination::Memory => {
                let output = TraceInMemory::default();
                Written::Memory(Converter::new(output, executable, symbols).into())
            }
        };
        Ok(Self { about, form, taken: 0 })
    }

    /// A run that follows these steps is compared with them; a log is not.
    pub fn compare(&mut self, comparison: Comparison) {
        either!(&mut self.form,
            converter => converter.schedule = Some(comparison),
            _logger => ());
    }

    /// Takes a full chunk.
    pub fn chunk(&mut self, chunk: &Chunk) {
        self.taken += size_of_val(&chunk.words[..]) as u64;
        either!(&mut self.form,
            converter => converter.chunk(&chunk.words),
            logger => logger.chunk(chunk));
    }

    /// Takes the chunk that is not full, once the program is gone.
    pub fn rest(&mut self, words: &[u64]) {
        either!(&mut self.form,
            converter => converter.chunk(words),
            logger => logger.rest(words));
    }

    /// Bytes of records so far.
    pub fn bytes(&self) -> u64 {
        self.taken
    }

    /// The events so far.
    pub fn events(&self) -> u64 {
        either!(&self.form, converter => converter.events(), logger => logger.events())
    }

    /// What people call the memory at these addresses.
    pub fn names(&mut self, addresses: &[u64]) -> Vec<String> {
        let names = match addresses {
            [] => Some(Vec::new()),
            _ => either!(&mut self.form,
                converter => Some(addresses.iter().map(|&address| converter.name(address)).collect()),
                logger => logger.names(addresses)),
        };
        names.unwrap_or_else(|| addresses.iter().map(|address| format!("{address:#x}")).collect())
    }

    /// The schedule that the run is to obey.
    pub fn schedule(&self) -> Option<&Comparison> {
        either!(&self.form, converter => converter.schedule.as_ref(), _logger => None)
    }

    /// What is to be said about the recording.
    pub fn account(&mut self) -> &mut Account {
        either!(&mut self.form, converter => &mut converter.account, logger => logger.account())
    }

    /// Notes something that the trace lacks.
    pub fn gap(&mut self, what: &str) {
        either!(&mut self.form,
            converter => converter.account.gap(what),
            logger => logger.gap(what));
    }

    /// Ends it.
    pub fn finish(self) -> io::Result<Finished> {
        let About { command, build_id, .. } = &self.about;
        let build_id = build_id.as_deref();
        Ok(match self.form {
            Written::Memory(mut converter) => {
                let path = std::mem::take(&mut converter.path);
                let (summary, trace) = converter.finish(command, build_id)?;
                Finished { summary, path, trace: Some(trace) }
            }
            Written::File(mut converter) => {
                let path = std::mem::take(&mut converter.path);
                let (summary, ()) = converter.finish(command, build_id)?;
                Finished { summary, path, trace: None }
            }
            Written::Log(logger) => {
                let path = ExecutionPath::default();
                Finished { summary: logger.finish()?, path, trace: None }
            }
        })
    }
}
