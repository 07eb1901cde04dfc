//! What has to go when the process ends: temporary files and folders, and the processes that we
//! started.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::descendants;

#[derive(Default)]
pub(crate) struct Registry {
    /// The process is ending: nothing new may appear.
    closed: bool,
    paths: Vec<PathBuf>,
    children: Vec<Started>,
    /// So many processes are just being made for us: children of ours, and not yet in the list.
    coming: usize,
}

impl Registry {
    /// Processes that we started ourselves and have not waited for.
    pub fn children(&self) -> &[Started] {
        &self.children
    }

    /// Whether a child that is not in the list can be one that we start.
    pub fn is_incomplete(&self) -> bool {
        self.coming > 0
    }
}

/// A process that we started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub process: i32,
    /// It leads a process group of its own, which is killed as a whole.
    pub leads_group: bool,
    /// It only makes programs by `fork`, and is none itself.
    pub serves: bool,
}

impl Started {
    /// Kills it. Only while it has not been waited for: afterwards the number may be somebody else's.
    pub fn kill(self) {
        let target = if self.leads_group { -self.process } else { self.process };
        // SAFETY: a plain system call; a process that has ended in the meantime is not found.
        unsafe { libc::kill(target, libc::SIGKILL) };
    }
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { closed: false, paths: Vec::new(), children: Vec::new(), coming: 0 });

pub(crate) fn registry() -> MutexGuard<'static, Registry> {
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

/// Makes a temporary file or folder that is removed when the process ends. Between its making and
/// its entry in the list the process cannot be ended by a signal.
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

/// Starts a process that is killed when ours ends. Nobody takes it for an adopted one meanwhile.
pub fn start<T>(
    start: impl FnOnce() -> std::io::Result<T>,
    started: impl FnOnce(&T) -> Started,
) -> std::io::Result<T> {
    let mut registry = registry();
    let new = start()?;
    let started = started(&new);
    registry.children.push(started);
    Ok(new)
}

/// As [`start`], for a process that another one makes for us: that takes its time, and the list is not held
/// meanwhile. If our process ends before the new one is in the list, it must end by itself.
pub fn start_elsewhere<T>(
    start: impl FnOnce() -> std::io::Result<T>,
    started: impl FnOnce(&T) -> Started,
) -> std::io::Result<T> {
    registry().coming += 1;
    let new = start();
    let mut registry = registry();
    registry.coming -= 1;
    let new = new?;
    registry.children.push(started(&new));
    Ok(new)
}

/// The process has been waited for.
pub fn forget_process(process: i32) {
    registry().children.retain(|known| known.process != process);
}

/// Kills the processes and removes the files. Nothing new appears after it: every other thread that
/// asks for something stays where it is.
pub fn everything() {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    registry.closed = true;
    registry.children.iter().for_each(|child| child.kill());
    descendants::end_all();
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
