//! Files that appear under their final name only when they are complete.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::cleanup;

/// What the new file takes over from one that has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Its mode, where that can be done. A symbolic link is replaced and not followed.
    Mode,
    /// Its mode and its owner, or nothing is written. A symbolic link stays, and the file that it
    /// leads to is replaced.
    ModeAndOwner,
}

/// A file that is being written beside its final place, under a random hidden name that nobody had
/// before. It is removed unless it is put in its place, also when a signal ends the process.
#[derive(Debug)]
pub struct Replacement {
    /// Absent once it is in its place.
    file: Option<NamedTempFile>,
    target: PathBuf,
}

impl Replacement {
    /// Begins to replace `path`. Devices, pipes and folders are never replaced.
    pub fn new(path: &Path, keep: Keep) -> io::Result<Self> {
        let refused = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        let target = match keep {
            Keep::ModeAndOwner => path.canonicalize()?,
            Keep::Mode => path.to_owned(),
        };
        let name = target.file_name().ok_or_else(|| refused("not a file name"))?;
        let there = target.metadata().ok();
        if there.as_ref().is_some_and(|there| !there.is_file()) {
            return Err(refused("not a regular file"));
        }
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        // The file is made with O_EXCL: what is there already is neither opened nor followed. The
        // mode is what a new file would have; the process's mask applies.
        builder.prefix(&prefix).suffix(".partial").permissions(Permissions::from_mode(0o666));
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = cleanup::make(|| builder.tempfile_in(folder), NamedTempFile::path)?;
        let replacement = Self { file: Some(file), target };
        if let Some(there) = there {
            replacement.take_over(&there, keep)?;
        }
        Ok(replacement)
    }

    /// Owner first: a change of the owner clears bits of the mode.
    fn take_over(&self, there: &Metadata, keep: Keep) -> io::Result<()> {
        let ours = self.file().metadata()?;
        let mode = Permissions::from_mode(there.mode() & 0o7777);
        if keep == Keep::Mode {
            // A mode that makes no sense for another owner's file is not taken over.
            if ours.uid() == there.uid() {
                self.file().set_permissions(Permissions::from_mode(there.mode() & 0o777))?;
            }
            return Ok(());
        }
        if (ours.uid(), ours.gid()) != (there.uid(), there.gid()) {
            fchown(self.file(), Some(there.uid()), Some(there.gid())).map_err(|error| {
                io::Error::new(error.kind(), format!("its owner cannot be kept: {error}"))
            })?;
        }
        self.file().set_permissions(mode)
    }

    /// The file to write to; it can be read as well.
    pub fn file(&self) -> &File {
        self.file.as_ref().expect("only `complete` takes it, with the value").as_file()
    }

    /// Where the file is until it is complete.
    pub fn path(&self) -> &Path {
        self.file.as_ref().map_or(Path::new(""), NamedTempFile::path)
    }

    /// Puts the file in its place.
    pub fn complete(mut self) -> io::Result<()> {
        self.persist()
    }

    fn persist(&mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let path = file.path().to_owned();
        let persisted = file.persist(&self.target).map(drop).map_err(|error| error.error);
        cleanup::forget(&path);
        persisted
    }

    /// The same, with what was there moved out of the way first: some file systems (ext4) write a
    /// file that replaces another one out to the disk at once, and that can take longer than to
    /// make it. If this fails, what was there is put back.
    pub fn complete_without_sync(mut self) -> io::Result<()> {
        let away = Self::new(&self.target.with_extension("old"), Keep::Mode)?;
        let there = std::fs::rename(&self.target, away.path()).is_ok();
        let target = self.target.clone();
        let completed = self.persist();
        if there && completed.is_err() {
            std::fs::rename(away.path(), &target)?;
        }
        completed
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let path = file.path().to_owned();
            drop(file); // removes it; the first error is the one to report
            cleanup::forget(&path);
        }
    }
}

/// Replaces the content of a file in one step.
pub fn replace_file(path: &Path, content: &[u8], keep: Keep) -> io::Result<()> {
    let replacement = Replacement::new(path, keep)?;
    replacement.file().write_all(content)?;
    replacement.complete()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::PrivateFolder;

    #[test]
    fn a_file_is_complete_or_not_there() {
        let folder = PrivateFolder::new().unwrap();
        let path = folder.path().join("out");
        let begun = Replacement::new(&path, Keep::Mode).unwrap();
        begun.file().write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(begun);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing is left");
        replace_file(&path, b"whole", Keep::Mode).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert!(replace_file(folder.path(), b"", Keep::Mode).is_err(), "a folder stays a folder");
        assert!(replace_file(Path::new("/dev/null"), b"", Keep::Mode).is_err());
    }

    #[test]
    fn the_mode_stays_and_a_link_stays_a_link_where_the_file_is_somebody_s_own() {
        let folder = PrivateFolder::new().unwrap();
        let (path, link) = (folder.path().join("source.c"), folder.path().join("link.c"));
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
        symlink(&path, &link).unwrap();
        replace_file(&link, b"new", Keep::ModeAndOwner).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o751);
        // A result goes where it was asked for, and not where a link leads.
        replace_file(&link, b"result", Keep::Mode).unwrap();
        assert!(!link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }
}
