//! Where a recording goes: into a log, or through the converter into a trace.

use std::fs::File;
use std::io;

use crate::Form;
use crate::account::Account;
use crate::convert::{Converter, Summary};
use crate::forced::Comparison;
use crate::log::About;
use crate::logger::Logger;
use crate::path::ExecutionPath;
use crate::ring::Chunk;
use crate::symbols::Symbols;

/// See the module's text.
pub struct Sink {
    about: About,
    form: Written,
    taken: u64,
}

enum Written {
    Trace(Box<Converter>),
    Log(Box<Logger>),
}

impl Sink {
    /// Writes to the file, which is empty and can be read, too.
    pub fn new(form: Form, file: File, about: About) -> io::Result<Self> {
        let form = match form {
            Form::Log => Written::Log(Logger::new(file, &about)?.into()),
            Form::Trace => {
                let executable = about.executable.clone();
                Written::Trace(Converter::new(file, executable, Symbols::default())?.into())
            }
        };
        Ok(Self { about, form, taken: 0 })
    }

    /// A run that follows these steps is compared with them; a log is not.
    pub fn compare(&mut self, comparison: Comparison) {
        if let Written::Trace(converter) = &mut self.form {
            converter.schedule = Some(comparison);
        }
    }

    /// Takes a full chunk.
    pub fn chunk(&mut self, chunk: &Chunk) {
        self.taken += size_of_val(&chunk.words[..]) as u64;
        match &mut self.form {
            Written::Trace(converter) => converter.chunk(&chunk.words),
            Written::Log(logger) => logger.chunk(chunk),
        }
    }

    /// Takes the chunk that is not full, once the program is gone.
    pub fn rest(&mut self, words: &[u64]) {
        match &mut self.form {
            Written::Trace(converter) => converter.chunk(words),
            Written::Log(logger) => logger.rest(words),
        }
    }

    /// Bytes of records so far.
    pub fn bytes(&self) -> u64 {
        self.taken
    }

    /// The events so far.
    pub fn events(&self) -> u64 {
        match &self.form {
            Written::Trace(converter) => converter.events(),
            Written::Log(logger) => logger.events(),
        }
    }

    /// The text with names in place of the addresses that have one.
    pub fn with_names(&mut self, text: &str) -> String {
        match &mut self.form {
            Written::Trace(converter) => converter.with_names(text),
            Written::Log(logger) => logger.with_names(text),
        }
    }

    /// The schedule that the run is to obey.
    pub fn schedule(&self) -> Option<&Comparison> {
        match &self.form {
            Written::Trace(converter) => converter.schedule.as_ref(),
            Written::Log(_) => None,
        }
    }

    /// What is to be said about the recording.
    pub fn account(&mut self) -> &mut Account {
        match &mut self.form {
            Written::Trace(converter) => &mut converter.account,
            Written::Log(logger) => logger.account(),
        }
    }

    /// Notes something that the trace lacks.
    pub fn gap(&mut self, what: &str) {
        match &mut self.form {
            Written::Trace(converter) => converter.account.gap(what),
            Written::Log(logger) => logger.gap(what),
        }
    }

    /// Ends the file and gives the account, and the branches that were taken.
    pub fn finish(self) -> io::Result<(Summary, ExecutionPath)> {
        match self.form {
            Written::Trace(mut converter) => {
                let path = std::mem::take(&mut converter.path);
                let About { command, build_id, .. } = &self.about;
                Ok((converter.finish(command, build_id.as_deref())?, path))
            }
            Written::Log(logger) => Ok((logger.finish()?, ExecutionPath::default())),
        }
    }
}
