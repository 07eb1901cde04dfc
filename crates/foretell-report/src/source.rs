//! Source lines for a report: which file a site means, and what stood there.
//!
//! A trace names files as the compiler had them, so one file can come in two spellings
//! (`../src/a.c` and `/home/me/p/build/../src/a.c`). Paths are made alike without asking the file
//! system, relative to the working folder where they lie below it.
//!
//! Only files that look like source are opened: a trace from a stranger must not be able to put
//! lines of other files into a report that is then passed on.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

use crate::limits::{LARGEST_SOURCE, LONGEST_LINE};

const ENDINGS: [&str; 17] = [
    "c", "cc", "cpp", "cxx", "c++", "C", "h", "hh", "hpp", "hxx", "inc", "inl", "ipp", "tpp", "rs",
    "m", "mm",
];

/// Reads source files, each once.
#[derive(Debug)]
pub struct Sources {
    folder: PathBuf,
    files: HashMap<String, Option<Vec<String>>>,
}

impl Sources {
    /// Relative paths are taken from the working folder.
    pub fn new() -> Self {
        Self::below(std::env::current_dir().unwrap_or_default())
    }

    /// Relative paths are taken from `folder`.
    pub fn below(folder: PathBuf) -> Self {
        Self { folder, files: HashMap::new() }
    }

    /// The one spelling of a path: without `.` and `..`, relative where it lies below the folder.
    pub fn spelling(&self, file: &str) -> String {
        let mut parts: Vec<Component> = Vec::new();
        let whole = self.folder.join(file);
        for part in whole.components() {
            match (part, parts.last()) {
                (Component::CurDir, _) => {}
                (Component::ParentDir, Some(Component::Normal(_))) => {
                    parts.pop();
                }
                (Component::ParentDir, Some(Component::RootDir)) => {}
                _ => parts.push(part),
            }
        }
        let whole: PathBuf = parts.iter().collect();
        let shown = whole.strip_prefix(&self.folder).unwrap_or(&whole);
        shown.display().to_string()
    }

    /// A text without the folder before the files that it names.
    pub fn respelled(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder.display()), "")
    }

    /// A line of a file, from 1.
    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        let folder = &self.folder;
        let lines = self
            .files
            .entry(file.to_owned())
            .or_insert_with(|| read(&folder.join(file)))
            .as_ref()?;
        lines.get(line.checked_sub(1)? as usize).map(String::as_str)
    }

    /// Copies the lines `around` a line into `kept`.
    pub fn keep(
        &mut self,
        kept: &mut BTreeMap<String, BTreeMap<u32, String>>,
        file: &str,
        line: u32,
        around: u32,
    ) {
        for number in line.saturating_sub(around).max(1)..=line.saturating_add(around) {
            if let Some(text) = self.line(file, number) {
                kept.entry(file.to_owned()).or_default().insert(number, text.to_owned());
            }
        }
    }
}

impl Default for Sources {
    fn default() -> Self {
        Self::new()
    }
}

fn read(path: &Path) -> Option<Vec<String>> {
    let ending = path.extension()?.to_str()?;
    let data = std::fs::metadata(path).ok()?;
    if !ENDINGS.contains(&ending) || !data.is_file() || data.len() > LARGEST_SOURCE {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.lines().map(|line| line.chars().take(LONGEST_LINE).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_spellings_of_a_file_are_one() {
        let sources = Sources::below("/home/me/p".into());
        assert_eq!(sources.spelling("src/a.c"), "src/a.c");
        assert_eq!(sources.spelling("/home/me/p/build/../src/./a.c"), "src/a.c");
        assert_eq!(sources.spelling("../q/a.c"), "/home/me/q/a.c");
        assert_eq!(sources.spelling("../../../../../a.c"), "/a.c");
        assert_eq!(sources.respelled("at /home/me/p/a.c:3 or /b.c:4"), "at a.c:3 or /b.c:4");
    }

    #[test]
    fn a_trace_cannot_have_other_files_copied_into_a_report() {
        let mut sources = Sources::below("/".into());
        assert_eq!(sources.line("/etc/passwd", 1), None);
        assert_eq!(sources.line("/dev/zero", 1), None);
        let own = file!().rsplit('/').next().unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut sources = Sources::below(folder);
        assert!(sources.line(own, 1).unwrap().starts_with("//! Source lines"));
        assert_eq!(sources.line(own, 0), None);
        assert_eq!(sources.line(own, u32::MAX), None);
    }
}
