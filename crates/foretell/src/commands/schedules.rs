//! Schedule files: written for what was predicted and for what was confirmed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use foretell_guard::say;
use foretell_trace::format;
use foretell_trace::schedule::Schedule;

/// Writes each schedule into a folder, which is made when there is one; adds its path by its id. A
/// finding whose schedule cannot be written is a finding all the same.
pub fn write<'s>(
    directory: &Path,
    schedules: impl IntoIterator<Item = (&'s str, Schedule)>,
    paths: &mut BTreeMap<String, PathBuf>,
) {
    for (id, schedule) in schedules {
        match write_one(directory, id, &schedule) {
            Ok(path) => drop(paths.insert(id.to_owned(), path)),
            Err(why) => return say!("foretell: schedules cannot be written: {why}"),
        }
    }
}

fn write_one(directory: &Path, id: &str, schedule: &Schedule) -> Result<PathBuf, String> {
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    let path = directory.join(format!("{id}.schedule"));
    let written = format::write_whole(&path, |file| {
        write!(file, "{schedule}")
            .map_err(|error| format::WriteError::Io { path: path.clone(), error })
    });
    written.map_err(|error| error.to_string())?;
    Ok(path)
}
