//! Where results go: people's text or one JSON object on standard output, nothing else.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use foretell_report::terminal::Look;

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

    /// How a report may look here: as wide as the terminal is, or 100 characters.
    pub fn look(&self) -> Look {
        let width = match io::stdout().is_terminal() {
            true => terminal_width().unwrap_or(100).clamp(40, 160),
            false => 100,
        };
        Look { colour: self.colour, width }
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

/// Columns of the terminal that standard output is.
fn terminal_width() -> Option<usize> {
    // SAFETY: an all-zero winsize is a value of the type.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes one winsize, to one that lives here.
    let answer = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}
