//! Where results go: people's text or one JSON object on standard output, nothing else.
//!
//! Whether anybody reads the output does not change what was found. So writing never fails here: the
//! first error is kept, what follows is dropped, and [`Output::close`] says what happened.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;

use foretell_guard::text::{bytes_for_terminal, json_for_terminal};
use foretell_report::terminal::Look;

/// Standard output in one of the two shapes.
pub struct Output {
    stdout: BufWriter<Box<dyn Write>>,
    format: OutputFormat,
    colour: bool,
    /// The configuration files that were used, for the JSON object.
    config: Vec<String>,
    failed: Option<io::Error>,
    /// The end of what was written, as far as it is not a whole character yet.
    rest: Vec<u8>,
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
    pub fn new(format: OutputFormat, config: Vec<String>) -> Self {
        Self::to(Box::new(io::stdout().lock()), format, config)
    }

    /// Another one, for a thread that cannot wait until the first is dropped.
    pub fn beside(format: OutputFormat, config: Vec<String>) -> io::Result<Self> {
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self::to(Box::new(stdout), format, config))
    }

    fn to(stdout: Box<dyn Write>, format: OutputFormat, config: Vec<String>) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = io::stdout().is_terminal() && !plain && format == OutputFormat::Human;
        Self {
            stdout: BufWriter::new(stdout),
            format,
            colour,
            config,
            failed: None,
            rest: Vec::new(),
        }
    }

    /// The shape.
    pub fn format(&self) -> OutputFormat {
        self.format
    }

    /// Is JSON wanted?
    pub fn json(&self) -> bool {
        self.format == OutputFormat::Json
    }

    /// The configuration files that were used.
    pub fn config(&self) -> &[String] {
        &self.config
    }

    /// How a report may look here: as wide as the terminal is, or 100 characters.
    pub fn look(&self) -> Look {
        let width = match io::stdout().is_terminal() {
            true => terminal_width().unwrap_or(100).clamp(40, 160),
            false => 100,
        };
        Look { colour: self.colour, width }
    }

    /// Prints the one object of a JSON run.
    pub fn object(&mut self, mut object: serde_json::Value) -> io::Result<()> {
        if !self.config.is_empty() && object.get("config").is_none() {
            object["config"] = serde_json::json!({"files": self.config});
        }
        let text = serde_json::to_string_pretty(&object)?;
        self.raw(json_for_terminal(&text).as_bytes());
        self.raw(b"\n");
        Ok(())
    }

    /// Writes bytes as they are: documents for programs, and text that is safe already.
    pub fn raw(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.stdout.write_all(bytes).err();
        }
    }

    /// A writer that passes everything on as it is: for what [`Output::raw`] is for.
    pub fn as_it_is(&mut self) -> AsItIs<'_> {
        AsItIs(self)
    }

    /// Writes a document for programs: as it is, unless a terminal shows it.
    pub fn document(&mut self, text: &str) {
        match io::stdout().is_terminal() {
            true => self.raw(bytes_for_terminal(text.as_bytes()).as_bytes()),
            false => self.raw(text.as_bytes()),
        }
    }

    /// Writes out what is left; why not everything could be written.
    pub fn close(&mut self) -> Option<io::Error> {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            self.raw(bytes_for_terminal(&rest).as_bytes());
        }
        if self.failed.is_none() {
            self.failed = self.stdout.flush().err();
        }
        self.failed.take()
    }
}

/// Text for people: whatever a terminal would obey is spelled out (see [`foretell_guard::text`]).
/// Never fails, see the module's text.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        // A character may come in parts.
        let whole = match std::str::from_utf8(&self.rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.rest.len(),
        };
        let text = bytes_for_terminal(&self.rest[..whole]);
        self.rest.drain(..whole);
        self.raw(text.as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failed.is_none() {
            self.failed = self.stdout.flush().err();
        }
        Ok(())
    }
}

/// See [`Output::as_it_is`].
pub struct AsItIs<'o>(&'o mut Output);

impl Write for AsItIs<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.raw(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Columns of the terminal that standard output is.
fn terminal_width() -> Option<usize> {
    // SAFETY: an all-zero winsize is a value of the type.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes one winsize, to one that lives here.
    let answer = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}
