//! foretell's own binary format (`.ftrace`), version 1.
//!
//! Made for a recorder inside the program under test: threads fill buffers of their own, seal each
//! into a chunk and append it with one `write(2)` to a file opened with `O_APPEND`. Nothing in the
//! file points forwards or is filled in later, so whatever a `kill -9` leaves is readable up to the
//! last whole chunk.
//!
//! # Layout
//! All fixed-width integers are little-endian; *number* means LEB128, *step* means the
//! zigzag-folded difference to the previous number of the same kind in the chunk.
//!
//! | file header | bytes | |
//! |---|---|---|
//! | magic | 8 | `\x89FTRACE\n` |
//! | version | 4 | 1 |
//! | checksum | 4 | CRC-32 of the 12 bytes before |
//!
//! Then chunks until the end of the file:
//!
//! | chunk header | bytes | |
//! |---|---|---|
//! | magic | 4 | `FTCK` |
//! | compression | 1 | 0 stored, 1 LZ4 block |
//! | reserved | 3 | 0 |
//! | stored length | 4 | bytes that follow the header |
//! | length | 4 | bytes after decompression, at most [`MAX_CHUNK_BYTES`] |
//! | events | 4 | how many event records |
//! | definitions | 4 | how many other records |
//! | first, last | 8 + 8 | smallest and largest sequence number; 0 when there are no events |
//! | payload checksum | 4 | CRC-32 of the stored bytes |
//! | header checksum | 4 | CRC-32 of the 44 bytes before |
//!
//! The header has a checksum of its own so that a cut-off chunk (good header, too few bytes: the
//! recorder was killed) can be told from a damaged one.
//!
//! # Records
//! A chunk is a sequence of records and decodes without any other chunk. An event record is
//!
//! ```text
//! tag         bits 0-4 operation, 5 site changed, 6 sequence number jumps, 7 attributes follow
//! attributes  1 byte, only if bit 7: memory order, lock mode, outcome, which fields are present
//! jump        step from (previous sequence number + 1), only if bit 6
//! site        0 for none, else 1 + step from the previous site; only if bit 5
//! fields      of the operation: variable, object and term ids as steps; values as the difference
//!             to the last value of the same variable (a table of 256 entries)
//! ```
//!
//! The thread and the index in it come from the last *switch* record, the index counting up with
//! every event; the encoder writes a switch when either does not fit. A plain access of a known
//! variable takes 3 to 6 bytes before compression.
//!
//! Everything else is a definition record: thread, variable, object, site, term, metadata,
//! precondition, orders, atomic sections, labels. Definitions carry the recorder's own ids and
//! may stand anywhere in the file, also behind their first use (another thread's chunk may reach
//! the file first). Orders, sections, labels and `Before` terms name events by sequence number. An
//! *end* record with the number of events says that the recorder finished.
//!
//! # What a reader guarantees
//! The events are put in the order of their sequence numbers. A recorder takes the numbers from
//! one counter, so a number that is missing from a file without an end record is an event that
//! was not written before the kill: the reader keeps the events before the first such hole (a true
//! prefix of the run) and says in [`crate::Metadata::gaps`] what it left out. Recorders that want
//! to lose little seal the buffers of all threads now and then. Anything else that is wrong is an
//! error that names the offset.
//!
//! # Why LZ4 and CRC-32
//! The encoder runs inside a program that may itself link zstd or zlib. `lz4_flex` is pure safe
//! Rust, so there are no C symbols to collide with; it is fast enough to run in that program's
//! threads; and varints and deltas have removed much of the redundancy before it. `crc32fast`
//! comes with the gzip reader anyway.

mod chunk;
mod codes;
mod collect;
mod decode;
mod encode;
mod stream;
mod varint;
mod write;

pub use chunk::{ChunkSealer, Compression, FILE_HEADER, MAX_CHUNK_BYTES};
pub use collect::{TraceBuilder, read};
pub use decode::{Properties, Record, TermDefinition};
pub use encode::{ChunkEncoder, MAX_STEP_BYTES, Name, Step};
pub use stream::Records;
pub use write::write;
