//! What the runs of a program get as standard input: a file as it is; and what can be read once only (a pipe, a
//! socket, a file without a name) from a private copy, so that every run reads all of it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use foretell_guard::{PrivateFolder, say, stop};

use crate::exit::Failure;

/// A writer that has not closed its end is waited for so long after what it wrote last.
const PATIENCE: Duration = Duration::from_secs(1);
/// More than this is not read: an endless input would fill the disk.
const MOST: u64 = 256 << 20;

/// Standard input for the runs.
#[derive(Default)]
pub struct Given {
    /// The file that every run reads from its begin; nothing where that makes no sense (a terminal).
    pub file: Option<PathBuf>,
    /// What of it the runs do not get, and why.
    pub unread: Option<String>,
    /// Of the copy; removed when foretell ends.
    _folder: Option<PrivateFolder>,
}

/// Standard input for the runs, which is read at most once in the life of the process.
pub fn given() -> Result<&'static Given, Failure> {
    static GIVEN: OnceLock<Result<Given, String>> = OnceLock::new();
    let given = GIVEN.get_or_init(|| {
        let given = find().map_err(|error| format!("cannot read standard input: {error}"))?;
        if let Some(unread) = &given.unread {
            say!("foretell: {unread}");
        }
        Ok(given)
    });
    given.as_ref().map_err(|error| Failure::Input(error.clone()))
}

fn find() -> io::Result<Given> {
    // A standard input that is closed is none.
    let Ok(ours) = io::stdin().as_fd().try_clone_to_owned() else { return Ok(Given::default()) };
    let ours = File::from(ours);
    let about = ours.metadata()?;
    let kind = about.file_type();
    if kind.is_file() {
        // Our own descriptor would be another file in a process that we start.
        let named = std::fs::read_link("/proc/self/fd/0").ok();
        let is_it = |path: &PathBuf| {
            path.metadata()
                .is_ok_and(|there| (there.dev(), there.ino()) == (about.dev(), about.ino()))
        };
        if let Some(file) = named.filter(is_it) {
            return Ok(Given { file: Some(file), ..Given::default() });
        }
    }
    match kind.is_file() || kind.is_fifo() || kind.is_socket() {
        true => copied(ours),
        // A terminal is for people, and other devices for whoever knows them.
        false => Ok(Given::default()),
    }
}

/// Reads until the writer closes its end, writes no more, or has written too much.
fn copied(mut from: File) -> io::Result<Given> {
    let folder = PrivateFolder::new()?;
    let path = folder.path().join("standard-input");
    let mut copy = File::create_new(&path)?;
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    let unread = loop {
        if !is_ready(&from, PATIENCE)? {
            // Nobody writes: that of whoever started foretell.
            if bytes == 0 {
                return Ok(Given::default());
            }
            break Some(format!(
                "standard input was not closed by its writer: every run gets the {bytes} bytes that came \
                 until a second passed without more"
            ));
        }
        let count = match from.read(&mut buffer) {
            Ok(0) => break None,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        copy.write_all(&buffer[..count])?;
        bytes += count as u64;
        if bytes >= MOST || stop::is_over() {
            break Some(format!(
                "standard input has no end: every run gets its first {bytes} bytes"
            ));
        }
    };
    Ok(Given { file: Some(path), unread, _folder: Some(folder) })
}

/// Is there something to read, or the end, within that time?
fn is_ready(file: &File, time: Duration) -> io::Result<bool> {
    let mut asked = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, which lives here.
    match unsafe { libc::poll(&raw mut asked, 1, time.as_millis() as libc::c_int) } {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            error => Err(error),
        },
        ready => Ok(ready > 0),
    }
}
