//! Temporary folders.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use crate::cleanup;

/// A temporary folder that only this user can enter. It has a random name and is new: one that is
/// already there is never taken over. It is removed with everything in it when the value is dropped
/// and when a signal ends the process.
#[derive(Debug)]
pub struct PrivateFolder {
    /// Only absent while it is being dropped.
    folder: Option<TempDir>,
}

impl PrivateFolder {
    /// A folder in the system's temporary folder.
    pub fn new() -> io::Result<Self> {
        Self::below(&std::env::temp_dir(), "foretell-")
    }

    /// A folder below another one, whose name begins like this.
    pub fn below(parent: &Path, prefix: &str) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(prefix).permissions(std::fs::Permissions::from_mode(0o700));
        let folder = cleanup::make(|| builder.tempdir_in(parent), TempDir::path)?;
        Ok(Self { folder: Some(folder) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.as_ref().map_or(Path::new(""), TempDir::path)
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take() {
            let path = folder.path().to_owned();
            // The system removes temporary files in the end, too.
            let _ = folder.close();
            cleanup::forget(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_private_new_and_gone_in_the_end() {
        let (one, other) = (PrivateFolder::new().unwrap(), PrivateFolder::new().unwrap());
        assert_ne!(one.path(), other.path());
        let mode = one.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let path = one.path().to_owned();
        std::fs::write(path.join("file"), "text").unwrap();
        drop(one);
        assert!(!path.exists());
    }
}
