//! Where results go: people's text or one JSON object on standard output, nothing else.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

/// Standard output in one of the two shapes.
pub struct Output {
    stdout: BufWriter<StdoutLock<'static>>,
    format: OutputFormat,
    colour: bool,
}

/// The shapes of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// Text for people.
    #[default]
    Human,
    /// One versioned JSON object (its schema: `foretell schema`).
    Json,
}

impl Output {
    /// Colours only on a terminal, and never when `NO_COLOR` is set to anything.
    pub fn new(format: OutputFormat) -> Self {
        let stdout = io::stdout();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = stdout.is_terminal() && !plain && format == OutputFormat::Human;
        Self { stdout: BufWriter::new(stdout.lock()), format, colour }
    }

    /// Is JSON wanted?
    pub fn json(&self) -> bool {
        self.format == OutputFormat::Json
    }

    /// May the text be coloured?
    pub fn colour(&self) -> bool {
        self.colour
    }

    /// Prints the one object of a JSON run.
    pub fn object(&mut self, object: serde_json::Value) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.stdout, &object)?;
        writeln!(self.stdout)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stdout.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}
