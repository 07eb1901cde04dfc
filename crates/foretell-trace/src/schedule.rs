//! Schedules.

use std::fmt;
use std::str::FromStr;

/// Which thread, told by who created it: `0` is the main thread, `0.2` the third thread that it
/// created, `0.2.0` the first that this one created. Stays the same from run to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CreationPath(pub Vec<u32>);

impl fmt::Display for CreationPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0")?;
        self.0.iter().try_for_each(|child| write!(f, ".{child}"))
    }
}

/// A text that is not a creation path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotACreationPath;

impl FromStr for CreationPath {
    type Err = NotACreationPath;

    fn from_str(text: &str) -> Result<Self, NotACreationPath> {
        let mut parts = text.split('.').map(str::parse::<u32>);
        match parts.next() {
            Some(Ok(0)) => {
                parts.collect::<Result<_, _>>().map(CreationPath).map_err(|_| NotACreationPath)
            }
            _ => Err(NotACreationPath),
        }
    }
}
