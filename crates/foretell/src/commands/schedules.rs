//! Schedule files: written for what was predicted and for what was confirmed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use foretell_trace::format;
use foretell_trace::schedule::Schedule;

use crate::exit::Failure;

/// Writes each schedule into a folder, which is made when there is one; adds its path by its id.
pub fn write<'s>(
    directory: &Path,
    schedules: impl IntoIterator<Item = (&'s str, Schedule)>,
    paths: &mut BTreeMap<String, PathBuf>,
) -> Result<(), Failure> {
    for (id, schedule) in schedules {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::Input(format!("{}: {error}", directory.display())))?;
        let path = directory.join(format!("{id}.schedule"));
        format::write_whole(&path, |file| {
            write!(file, "{schedule}")
                .map_err(|error| format::WriteError::Io { path: path.clone(), error })
        })
        .map_err(|error| Failure::Input(error.to_string()))?;
        paths.insert(id.to_owned(), path);
    }
    Ok(())
}
