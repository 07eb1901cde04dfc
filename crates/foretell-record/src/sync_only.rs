//! The first of the two steps of 002: an unmodified program runs freely, only the order of its
//! synchronisation is logged. The second step is [`crate::record`] with
//! [`crate::RecordOptions::replay`].

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use foretell_guard::PrivateFolder;
use foretell_guard::descendants::{self, Mark};
use foretell_guard::launch::Launch;
use foretell_guard::process::Owned;
use foretell_wire::environment;
use foretell_wire::sync_log::{self, BLOCK_HEAD, BLOCK_WORDS, FIRST_BLOCK, Window};

use crate::find;
use crate::limits::LARGEST_WINDOW;
use crate::recording::{library, preload, streams};
use crate::signals::{Requests, SignalsPassOn};
use crate::{OnRecorderDeath, RecordError, RecordOptions, RunEnd};

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

/// Runs the program and logs the order of its synchronisation and its inputs into
/// [`RecordOptions::output`]. The policy and the turns mean nothing here: the threads run freely.
pub fn record_sync_only(options: &RecordOptions) -> Result<SyncOutcome, RecordError> {
    let program = find::program(&options.program)
        .ok_or_else(|| RecordError::NoProgram(options.program.clone()))?;
    let write_error = |error| RecordError::Write(options.output.clone(), error);
    let refused = |why| write_error(io::Error::new(io::ErrorKind::InvalidInput, why));
    let name = options.output.file_name().ok_or_else(|| refused("not a file name"))?;
    if options.output.metadata().is_ok_and(|there| !there.is_file()) {
        return Err(refused("not a regular file"));
    }
    let beside = match options.output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let prefix = format!(".{}.", name.to_string_lossy());
    let directory = PrivateFolder::below(beside, &prefix).map_err(write_error)?;
    let place = directory.path().canonicalize().map_err(write_error)?;
    let mut command = Command::new(&options.program);
    command.args(&options.arguments);
    preload(&mut command, &library(options)?, &program, "sync-only");
    command.env(environment::LOG, &place);
    let streams = streams(options)?;
    let launch = Launch {
        command: &command,
        called: None,
        streams: &streams,
        leads_group: options.capture.is_some(),
        ends_with_us: options.capture.is_some()
            || options.on_recorder_death == OnRecorderDeath::End,
        fixed_addresses: false,
        mark: Mark::new(),
        inherits: None,
        signals: &[],
        serves: false,
    };
    let end = run(&launch, &program, options.time_limit)?;
    let windows = windows(&place).map_err(write_error)?;
    if windows.is_empty() {
        return Err(RecordError::NotAttached { program, end, binary: false });
    }
    let log = place.join(sync_log::BLOCKS_NAME);
    let (entries, bytes) = complete(&log, &windows).map_err(write_error)?;
    fs::rename(&log, &options.output).map_err(write_error)?;
    Ok(SyncOutcome { end, threads: windows.len(), entries, bytes })
}

/// Puts what is missing into the file with the blocks. Gives the number of entries and of bytes.
fn complete(log: &Path, windows: &[Window]) -> io::Result<(usize, usize)> {
    let file = File::options().read(true).write(true).open(log)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let blocks = (length / 8).saturating_sub(FIRST_BLOCK).div_ceil(BLOCK_WORDS);
    let mut entries = 0;
    let mut written: BTreeMap<u32, u64> = BTreeMap::new();
    let mut block = 0;
    while block < blocks {
        let mut head = [0; 16];
        file.read_exact_at(&mut head, place_of(block))?;
        let head = u128::from_le_bytes(head);
        let Some((thread, count, further)) = sync_log::block_parts(head as u64) else {
            block += 1;
            continue;
        };
        block += 1 + further;
        let sequence = written.entry(thread).or_default();
        if *sequence == (head >> 64) as u64 {
            *sequence += 1;
            entries += count;
        }
    }
    for window in windows {
        if window.sequence == written.get(&window.thread).copied().unwrap_or(0) {
            entries += sync_log::count(&window.words);
        }
    }
    let end = sync_log::format_windows(windows);
    let bytes = place_of(blocks) as usize + end.len() * 8;
    // What was cut off in the last block is missing, not something else.
    file.set_len(place_of(blocks))?;
    file.write_all_at(bytes_of(&end), place_of(blocks))?;
    file.write_all_at(bytes_of(&sync_log::format_begin(blocks)), 0)?;
    Ok((entries, bytes))
}

/// Where the block begins, in bytes.
fn place_of(block: usize) -> u64 {
    8 * (FIRST_BLOCK as u64 + block as u64 * BLOCK_WORDS as u64)
}

fn run(
    launch: &Launch<'_>,
    program: &Path,
    limit: Option<Duration>,
) -> Result<RunEnd, RecordError> {
    let start_error = |error| RecordError::Start(program.to_owned(), error);
    let mut requests = Requests::new(false, false);
    let mut child = Owned::launch(launch).map_err(start_error)?;
    let mut passing = SignalsPassOn::begin();
    passing.pass_to(child.id() as i32);
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(start_error)? {
            break status;
        }
        let end = match requests.must_end() {
            true => Some(RunEnd::Stopped),
            false if limit.is_some_and(|limit| begin.elapsed() > limit) => Some(RunEnd::Hang),
            false => None,
        };
        if let Some(end) = end {
            child.kill();
            child.wait().map_err(start_error)?;
            descendants::end_those_of(launch.mark);
            return Ok(end);
        }
        descendants::reap();
        thread::sleep(Duration::from_millis(5));
    };
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => RunEnd::Exit(code),
        (None, signal) => RunEnd::Signal(signal.unwrap_or(0)),
    })
}

/// The windows that the threads left.
fn windows(directory: &Path) -> io::Result<Vec<Window>> {
    let mut windows = Vec::new();
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(thread) = name.strip_suffix(sync_log::WINDOW_ENDING) else { continue };
        let Some((number, steps)) = thread.split_once(sync_log::NAME_MARK) else { continue };
        let steps = match steps {
            "-" => Ok(Vec::new()),
            steps => steps.split('.').map(str::parse).collect::<Result<_, _>>(),
        };
        let (Ok(thread), Ok(path_of_thread)) = (number.parse(), steps) else { continue };
        if fs::metadata(&path)?.len() > LARGEST_WINDOW {
            continue; // the program wrote into it: its thread is missing in the log
        }
        // A thread that was just being born when the program ended has an empty window.
        let words = read_words(&path)?;
        let (sequence, entries) = match words.split_at_checked(BLOCK_HEAD) {
            Some((head, entries)) => (head[1], sync_log::window_entries(entries).to_vec()),
            None => (0, Vec::new()),
        };
        windows.push(Window { thread, path: path_of_thread, sequence, words: entries });
    }
    windows.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(windows)
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
