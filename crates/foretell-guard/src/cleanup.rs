//! What has to go when the process is ended by a signal: temporary files and folders, and the
//! processes that we started.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Registry {
    /// The process is ending: nothing new may appear.
    closed: bool,
    paths: Vec<PathBuf>,
    processes: Vec<i32>,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { closed: false, paths: Vec::new(), processes: Vec::new() });

fn registry() -> MutexGuard<'static, Registry> {
    let registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    if registry.closed {
        drop(registry);
        // Another thread is removing everything and ends the process.
        loop {
            std::thread::park();
        }
    }
    registry
}

/// Makes a temporary file or folder that is removed when the process is ended. Between its making and
/// its entry in the list the process cannot be ended.
pub fn make<T>(
    make: impl FnOnce() -> std::io::Result<T>,
    path: impl FnOnce(&T) -> &Path,
) -> std::io::Result<T> {
    let mut registry = registry();
    let made = make()?;
    let path = path(&made).to_owned();
    registry.paths.push(path);
    Ok(made)
}

/// The path is in its final place, or gone.
pub fn forget(path: &Path) {
    registry().paths.retain(|known| known != path);
}

/// Starts a process that is killed when ours is ended; the number is negative for a whole group.
pub fn start<T>(
    start: impl FnOnce() -> std::io::Result<T>,
    number: impl FnOnce(&T) -> i32,
) -> std::io::Result<T> {
    let mut registry = registry();
    let started = start()?;
    let number = number(&started);
    registry.processes.push(number);
    Ok(started)
}

/// The process has ended.
pub fn forget_process(number: i32) {
    registry().processes.retain(|known| *known != number);
}

/// Kills the processes and removes the files. Nothing new appears after it: every other thread that
/// asks for something stays where it is.
pub fn everything() {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    registry.closed = true;
    for &process in &registry.processes {
        // SAFETY: a plain system call; a process that has ended in the meantime is not found.
        unsafe { libc::kill(process, libc::SIGKILL) };
    }
    for path in &registry.paths {
        // A process that is dying may still write into the folder.
        for _ in 0..50 {
            let removed = match path.symlink_metadata() {
                Ok(there) if there.is_dir() => std::fs::remove_dir_all(path),
                Ok(_) => std::fs::remove_file(path),
                Err(_) => break,
            };
            if removed.is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
