//! The first of the two steps of 002: an unmodified program runs freely, only the order of its
//! synchronisation is logged. The second step is [`crate::record`] with
//! [`crate::RecordOptions::replay`].

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use foretell_wire::environment;
use foretell_wire::sync_log::{self, ThreadLog};

use crate::{Partial, RecordError, RecordOptions, RunEnd, SignalsPassOn, find, prepare, redirect};

/// What a sync-only recording gave.
#[derive(Clone, Debug)]
pub struct SyncOutcome {
    /// How the run ended.
    pub end: RunEnd,
    /// Threads in the log.
    pub threads: usize,
    /// Operations and inputs in the log.
    pub entries: usize,
    /// Bytes of the log.
    pub bytes: usize,
}

/// The logs while the program runs; removed with all that is in it.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // nobody minds if it stays
    }
}

/// Runs the program and logs the order of its synchronisation and its inputs into
/// [`RecordOptions::output`]. The policy and the turns mean nothing here: the threads run freely.
pub fn record_sync_only(options: &RecordOptions) -> Result<SyncOutcome, RecordError> {
    let program = find::program(&options.program)
        .ok_or_else(|| RecordError::NoProgram(options.program.clone()))?;
    let write_error = |error| RecordError::Write(options.output.clone(), error);
    let directory = Directory(crate::beside(&options.output, "logs").map_err(write_error)?);
    fs::create_dir_all(&directory.0).map_err(write_error)?;
    let place = directory.0.canonicalize().map_err(write_error)?;
    let mut command = Command::new(&options.program);
    command.args(&options.arguments);
    prepare(&mut command, options.library.as_deref(), &program, "sync-only")?;
    command.env(environment::LOG, &place);
    redirect(&mut command, options)?;
    let end = run(&mut command, &program, options.time_limit)?;
    let threads = collect(&place).map_err(write_error)?;
    if threads.is_empty() {
        return Err(RecordError::NotAttached { program, end });
    }
    let mut partial = Partial::new(&options.output).map_err(write_error)?;
    let mut bytes = 0;
    for piece in sync_log::format(&threads) {
        let piece = bytes_of(&piece);
        partial.file.write_all(piece).map_err(write_error)?;
        bytes += piece.len();
    }
    partial.complete(&options.output).map_err(write_error)?;
    let entries = threads.iter().map(|thread| count(&thread.words)).sum();
    Ok(SyncOutcome { end, threads: threads.len(), entries, bytes })
}

fn count(words: &[u64]) -> usize {
    let mut at = 0;
    let mut entries = 0;
    while let Some(&word) = words.get(at) {
        at += sync_log::words_of(word).unwrap_or(1);
        entries += 1;
    }
    entries
}

fn run(
    command: &mut Command,
    program: &Path,
    limit: Option<Duration>,
) -> Result<RunEnd, RecordError> {
    let start_error = |error| RecordError::Start(program.to_owned(), error);
    let mut child = command.spawn().map_err(start_error)?;
    let _signals = SignalsPassOn::to(child.id() as i32);
    let begin = Instant::now();
    let status = match limit {
        None => child.wait().map_err(start_error)?,
        Some(limit) => loop {
            if let Some(status) = child.try_wait().map_err(start_error)? {
                break status;
            }
            if begin.elapsed() > limit {
                child.kill().map_err(start_error)?;
                child.wait().map_err(start_error)?;
                return Ok(RunEnd::Hang);
            }
            thread::sleep(Duration::from_millis(5));
        },
    };
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => RunEnd::Exit(code),
        (None, signal) => RunEnd::Signal(signal.unwrap_or(0)),
    })
}

/// Puts the files of all threads together: what was written out, then the window.
fn collect(directory: &Path) -> io::Result<Vec<ThreadLog>> {
    let mut threads = Vec::new();
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(thread) = name.strip_suffix(".log") else { continue };
        let steps = match thread {
            "-" => Ok(Vec::new()),
            thread => thread.split('.').map(str::parse).collect::<Result<_, _>>(),
        };
        let Ok(steps) = steps else { continue };
        let mut words = read_words(&path)?;
        words.truncate(sync_log::window_entries(&words).len());
        // A thread that was just being born when the program ended has a file and no window yet.
        let window = match read_words(&path.with_file_name(format!("{thread}.tail"))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            window => window?,
        };
        words.extend_from_slice(sync_log::window_entries(&window));
        threads.push(ThreadLog { path: steps, words });
    }
    threads.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(threads)
}

fn read_words(path: &Path) -> io::Result<Vec<u64>> {
    let mut file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len() / 8).unwrap_or(0);
    let mut words = vec![0u64; length];
    // SAFETY: the words' own memory, and any bytes make words. (The log is this machine's: both
    // sides run on it, in its order of bytes.)
    let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), length * 8) };
    file.read_exact(bytes)?;
    Ok(words)
}

/// The memory of the words.
fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 8) }
}

/// Checks that a file is a log that can be followed.
pub fn check_log(path: &Path) -> Result<(), RecordError> {
    let bad = |reason: String| RecordError::BadLog(path.to_owned(), reason);
    let words = read_words(path).map_err(|error| bad(error.to_string()))?;
    match sync_log::parse(&words) {
        Ok(_) => Ok(()),
        Err(0) => Err(bad("it is no log of `foretell record --sync-only`".into())),
        Err(at) => Err(bad(format!("damaged at offset {}", at * 8))),
    }
}
