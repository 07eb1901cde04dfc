//! Sealing a chunk: header, compression, checksums.

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::encode::ChunkEncoder;

/// A chunk is never longer than this after decompression, so that a hostile header cannot make a
/// reader allocate more. Recorders seal at 64 to 256 KiB.
pub const MAX_CHUNK_BYTES: usize = 1 << 24;

pub(super) const FILE_MAGIC: [u8; 8] = *b"\x89FTRACE\n";
pub(super) const VERSION: u32 = 1;
pub(super) const FILE_HEADER_BYTES: usize = 16;
pub(super) const CHUNK_MAGIC: [u8; 4] = *b"FTCK";
pub(super) const CHUNK_HEADER_BYTES: usize = 48;
/// Where the header checksum lies, and how many bytes it covers.
pub(super) const HEADER_CHECKSUM_AT: usize = CHUNK_HEADER_BYTES - 4;

/// The first bytes of every file; write them before the first chunk.
pub const FILE_HEADER: [u8; FILE_HEADER_BYTES] = file_header();

const fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    let mut at = 0;
    while at < FILE_MAGIC.len() {
        header[at] = FILE_MAGIC[at];
        at += 1;
    }
    let version = VERSION.to_le_bytes();
    let checksum = FILE_HEADER_CHECKSUM.to_le_bytes();
    let mut byte = 0;
    while byte < 4 {
        header[8 + byte] = version[byte];
        header[12 + byte] = checksum[byte];
        byte += 1;
    }
    header
}

/// CRC-32 of the first 12 bytes of [`FILE_HEADER`]; a test compares it with the computed one.
const FILE_HEADER_CHECKSUM: u32 = 0x6950_46fc;

/// Whether chunks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As they are.
    Stored,
    /// LZ4 blocks.
    Lz4,
}

/// Turns what a [`ChunkEncoder`] wrote into a chunk. Owns the compressor's table and the output,
/// so that sealing allocates only until the buffers have grown to the size of the chunks.
pub struct ChunkSealer {
    compression: Compression,
    table: CompressTable,
    chunk: Vec<u8>,
}

impl ChunkSealer {
    /// A sealer.
    pub fn new(compression: Compression) -> Self {
        Self { compression, table: CompressTable::large(), chunk: Vec::new() }
    }

    /// Seals the records that `encoder` appended to `records` since the last seal: returns the
    /// bytes of the chunk, to be appended to the file in one `write`; empties `records` and resets
    /// the encoder for the next chunk. Without records there is nothing to write.
    ///
    /// Seal long before `records` has [`MAX_CHUNK_BYTES`]: readers refuse longer chunks.
    pub fn seal(&mut self, encoder: &mut ChunkEncoder, records: &mut Vec<u8>) -> &[u8] {
        self.chunk.clear();
        if !records.is_empty() {
            self.fill(encoder, records);
        }
        records.clear();
        encoder.reset();
        &self.chunk
    }

    fn fill(&mut self, encoder: &ChunkEncoder, records: &[u8]) {
        let room = match self.compression {
            Compression::Stored => records.len(),
            Compression::Lz4 => get_maximum_output_size(records.len()).max(records.len()),
        };
        self.chunk.resize(CHUNK_HEADER_BYTES + room, 0);
        let (header, payload) = self.chunk.split_at_mut(CHUNK_HEADER_BYTES);
        let compressed = match self.compression {
            Compression::Stored => None,
            Compression::Lz4 => compress_into_with_table(records, payload, &mut self.table)
                .ok()
                .filter(|&length| length < records.len()),
        };
        let (method, stored) = match compressed {
            Some(length) => (1, length),
            None => {
                payload[..records.len()].copy_from_slice(records);
                (0, records.len())
            }
        };
        let payload = &payload[..stored];
        header[0..4].copy_from_slice(&CHUNK_MAGIC);
        header[4] = method;
        header[8..12].copy_from_slice(&(stored as u32).to_le_bytes());
        header[12..16].copy_from_slice(&(records.len() as u32).to_le_bytes());
        header[16..20].copy_from_slice(&encoder.events().to_le_bytes());
        header[20..24].copy_from_slice(&encoder.definitions().to_le_bytes());
        let (first, last) = encoder.sequence_range().unwrap_or((0, 0));
        header[24..32].copy_from_slice(&first.to_le_bytes());
        header[32..40].copy_from_slice(&last.to_le_bytes());
        header[40..44].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        let checksum = crc32fast::hash(&header[..HEADER_CHECKSUM_AT]);
        header[HEADER_CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        self.chunk.truncate(CHUNK_HEADER_BYTES + stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_header_carries_its_own_checksum() {
        assert_eq!(FILE_HEADER[12..], crc32fast::hash(&FILE_HEADER[..12]).to_le_bytes());
    }
}
