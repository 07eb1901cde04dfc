//! A file's bytes, mapped into memory where the operating system can do that.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;

/// The bytes of a file. A pipe, which cannot be mapped, is read to its end.
#[derive(Debug)]
pub struct Mapped(Bytes);

#[derive(Debug)]
enum Bytes {
    Map(memmap2::Mmap),
    Read(Vec<u8>),
}

impl Mapped {
    /// Maps a regular file, from its begin whatever was read from it.
    pub fn of(file: File) -> io::Result<Self> {
        Self::new(Vec::new(), file)
    }

    /// Maps the file; `first` are the bytes that have been read from it already. What another
    /// process appends later is not seen; as with every mapped file, one that is cut short while
    /// it is read ends the reading process (`SIGBUS`).
    pub(super) fn new(first: Vec<u8>, mut file: File) -> io::Result<Self> {
        if file.metadata()?.is_file() {
            // SAFETY: the map is only read. Recorders only append to trace files and other writers
            // replace them by renaming, so the mapped bytes do not change.
            return Ok(Self(Bytes::Map(unsafe { memmap2::Mmap::map(&file) }?)));
        }
        let mut bytes = first;
        file.read_to_end(&mut bytes)?;
        Ok(Self(Bytes::Read(bytes)))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Map(map) => map,
            Bytes::Read(bytes) => bytes,
        }
    }
}
