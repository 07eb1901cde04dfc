//! The program under test and what it is given: the same in every run, or the runs say nothing
//! about each other.
//!
//! The *input digest* in a schedule covers the arguments, the content of standard input, and the files
//! that the user declares as input. Not covered: the environment, the clock (which is virtual in a
//! forced run), the network, and files that are not declared.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A program, its arguments and its input.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Looked up as a shell does.
    pub path: PathBuf,
    /// How the user calls it, where that is not its path (a source file that was built).
    pub called: Option<PathBuf>,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What it reads from standard input; nothing when absent.
    pub stdin: Option<PathBuf>,
    /// What of standard input it does not get, in a sentence.
    pub unread: Option<String>,
    /// Files that it reads, for the digest.
    pub inputs: Vec<PathBuf>,
    /// It is a test: a run that ends with another exit status than 0 has failed.
    pub is_test: bool,
    /// It was not compiled for foretell: QEMU runs it.
    pub binary: bool,
    /// As a binary, it is recorded with what its instructions compute.
    pub terms: bool,
    /// A log of `foretell record --sync-only` that the first run follows.
    pub follows: Option<PathBuf>,
    /// What its clients do, if it is a server: a script that is played in every run.
    pub traffic: Option<PathBuf>,
    /// Files that it writes: compared as its output is, and as they were before every run.
    pub writes: Vec<PathBuf>,
}

impl Program {
    /// A program with arguments and nothing else.
    pub fn new(path: impl Into<PathBuf>, arguments: Vec<OsString>) -> Self {
        Self { path: path.into(), arguments, ..Self::default() }
    }

    /// The digest of what it is given.
    pub fn digest(&self) -> io::Result<InputDigest> {
        let content = |path: &Path| {
            std::fs::read(path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })
        };
        let mut digest = InputDigest::of_arguments(&self.arguments);
        if let Some(stdin) = &self.stdin {
            digest.stdin = Some(crc32fast::hash(&content(stdin)?));
        }
        if !self.inputs.is_empty() || self.traffic.is_some() {
            let mut hasher = crc32fast::Hasher::new();
            for path in self.inputs.iter().chain(&self.traffic) {
                hasher.update(&content(path)?);
            }
            digest.files = Some(hasher.finalize());
        }
        Ok(digest)
    }
}

/// What a program was given, in a word: `a01234567-s89abcdef-f00112233` (CRC-32 of the arguments,
/// of standard input and of the declared files; what is not known is absent).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputDigest {
    arguments: Option<u32>,
    stdin: Option<u32>,
    files: Option<u32>,
}

impl InputDigest {
    /// When nothing but the arguments is known.
    pub fn of_arguments(arguments: &[impl AsRef<OsStr>]) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        for word in arguments {
            hasher.update(word.as_ref().as_bytes());
            hasher.update(&[0]);
        }
        Self { arguments: Some(hasher.finalize()), ..Self::default() }
    }

    /// What differs from the digest in a schedule, if anything that both know does.
    pub fn difference(&self, expected: &InputDigest) -> Option<&'static str> {
        let parts = [
            ("the arguments", self.arguments, expected.arguments),
            ("standard input", self.stdin, expected.stdin),
            ("a declared input file", self.files, expected.files),
        ];
        parts.into_iter().find_map(|(what, found, expected)| match (found, expected) {
            (Some(found), Some(expected)) if found != expected => Some(what),
            // What the schedule was made with must be there again.
            (None, Some(_)) => Some(what),
            _ => None,
        })
    }
}

impl fmt::Display for InputDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [('a', self.arguments), ('s', self.stdin), ('f', self.files)];
        let known = parts.iter().filter_map(|&(letter, part)| Some((letter, part?)));
        for (place, (letter, part)) in known.enumerate() {
            let dash = if place == 0 { "" } else { "-" };
            write!(f, "{dash}{letter}{part:08x}")?;
        }
        Ok(())
    }
}

/// A text that is not an input digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotADigest;

impl FromStr for InputDigest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let mut digest = Self::default();
        for part in text.split('-') {
            let number = part.get(1..).and_then(|hex| u32::from_str_radix(hex, 16).ok());
            let place = match part.as_bytes().first() {
                Some(b'a') => &mut digest.arguments,
                Some(b's') => &mut digest.stdin,
                Some(b'f') => &mut digest.files,
                _ => return Err(NotADigest),
            };
            *place = Some(number.ok_or(NotADigest)?);
        }
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_its_text() {
        let digest = InputDigest { arguments: Some(7), stdin: None, files: Some(u32::MAX) };
        assert_eq!(digest.to_string(), "a00000007-fffffffff");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for text in ["", "a", "x12345678", "a1-", "s0000000g"] {
            assert_eq!(text.parse::<InputDigest>(), Err(NotADigest), "{text}");
        }
    }

    #[test]
    fn other_arguments_are_another_input() {
        let made_with = InputDigest::of_arguments(&["ab", "c"]);
        assert_eq!(InputDigest::of_arguments(&["ab", "c"]).difference(&made_with), None);
        let moved = InputDigest::of_arguments(&["a", "bc"]);
        assert_eq!(moved.difference(&made_with), Some("the arguments"));
    }

    #[test]
    fn what_the_schedule_does_not_know_is_not_compared_and_what_it_knows_must_be_there() {
        let plain = InputDigest::of_arguments(&["x"]);
        let with_stdin = InputDigest { stdin: Some(1), ..plain };
        assert_eq!(with_stdin.difference(&plain), None);
        assert_eq!(plain.difference(&with_stdin), Some("standard input"));
    }
}
