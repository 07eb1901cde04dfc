//! A file as a stream of records, chunk by chunk, in memory that does not grow with the file.

use std::borrow::Cow;

use super::chunk::{
    CHUNK_HEADER_BYTES, CHUNK_MAGIC, FILE_HEADER_BYTES, FILE_MAGIC, HEADER_CHECKSUM_AT,
    MAX_CHUNK_BYTES, VERSION,
};
use super::decode::{ChunkDecoder, Record};
use crate::format::{Position, ReadError};

/// The records of a file in the order of the file, which is not the order of the events: use
/// their sequence numbers. A cut-off end of the file comes as a last [`Record::Gap`]; after an
/// error the stream ends.
pub struct Records<'a> {
    file: &'a [u8],
    /// Start of the chunk after the current one.
    next: usize,
    current: Option<Chunk<'a>>,
    ended: bool,
    finished: bool,
}

struct Chunk<'a> {
    header: ChunkHeader,
    content: Cow<'a, [u8]>,
    decoder: ChunkDecoder,
    events: u32,
    definitions: u32,
    range: Option<(u64, u64)>,
}

/// What a chunk's header says.
struct ChunkHeader {
    /// Where the chunk starts in the file.
    at: usize,
    compressed: bool,
    stored: usize,
    length: usize,
    events: u32,
    definitions: u32,
    first: u64,
    last: u64,
    payload_checksum: u32,
}

/// What lies at a place in the file.
enum Found {
    Header(ChunkHeader),
    /// The rest of the file is too short for the header or for what it announces.
    CutOff,
}

impl<'a> Records<'a> {
    /// Starts to read; fails when the file has no header of a known version.
    pub fn new(file: &'a [u8]) -> Result<Self, ReadError> {
        let fault = |at, message: &str| Err(ReadError::new(Position::Byte(at), message));
        if !file.starts_with(&FILE_MAGIC) {
            return fault(0, "not a binary trace of foretell");
        }
        if file.len() < FILE_HEADER_BYTES {
            return fault(file.len() as u64, "the file ends in its header");
        }
        let version = u32_at(file, 8);
        if u32_at(file, 12) != crc32fast::hash(&file[..12]) {
            return fault(8, "the file header is damaged: wrong checksum");
        }
        if version != VERSION {
            let message = format!("version {version} of the binary format is not known");
            return Err(ReadError::new(Position::Byte(8), message)
                .help(format!("this foretell reads version {VERSION}; use a newer one")));
        }
        Ok(Self { file, next: FILE_HEADER_BYTES, current: None, ended: false, finished: false })
    }

    fn advance(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            if let Some(chunk) = &mut self.current {
                if let Some(record) = chunk.next()? {
                    self.ended |= matches!(record, Record::End(_));
                    return Ok(Some(record));
                }
                self.current = None;
            }
            if self.finished {
                return Ok(None);
            }
            let rest = self.file.len() - self.next;
            if rest == 0 {
                self.finished = true;
                if self.ended {
                    return Ok(None);
                }
                return Ok(Some(Record::Gap(
                    "the recording has no end mark: the last events may be missing".into(),
                )));
            }
            match find_chunk(self.file, self.next)? {
                Found::Header(header) => {
                    self.next = header.at + CHUNK_HEADER_BYTES + header.stored;
                    self.current = Some(Chunk::open(self.file, header)?);
                }
                Found::CutOff => {
                    self.finished = true;
                    let sentence = format!(
                        "the file is cut off in the chunk at byte {}: its {rest} bytes were left out",
                        self.next
                    );
                    return Ok(Some(Record::Gap(sentence.into())));
                }
            }
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.advance();
        if record.is_err() {
            self.current = None;
            self.finished = true;
        }
        record.transpose()
    }
}

fn find_chunk(file: &[u8], at: usize) -> Result<Found, ReadError> {
    let fault = |message: &str| ReadError::new(Position::Byte(at as u64), message);
    let rest = &file[at..];
    let magic = rest.len().min(CHUNK_MAGIC.len());
    if rest[..magic] != CHUNK_MAGIC[..magic] {
        return Err(fault("the file is damaged: no chunk starts here"));
    }
    if rest.len() < CHUNK_HEADER_BYTES {
        return Ok(Found::CutOff);
    }
    let header = &rest[..CHUNK_HEADER_BYTES];
    if u32_at(header, HEADER_CHECKSUM_AT) != crc32fast::hash(&header[..HEADER_CHECKSUM_AT]) {
        return Err(fault("the file is damaged: wrong checksum of a chunk header"));
    }
    let compressed = match header[4..8] {
        [0, 0, 0, 0] => false,
        [1, 0, 0, 0] => true,
        _ => return Err(fault("the chunk is compressed in an unknown way")),
    };
    let found = ChunkHeader {
        at,
        compressed,
        stored: u32_at(header, 8) as usize,
        length: u32_at(header, 12) as usize,
        events: u32_at(header, 16),
        definitions: u32_at(header, 20),
        first: u64_at(header, 24),
        last: u64_at(header, 32),
        payload_checksum: u32_at(header, 40),
    };
    if found.length > MAX_CHUNK_BYTES || (!compressed && found.length != found.stored) {
        return Err(fault("the chunk has an impossible length"));
    }
    if rest.len() - CHUNK_HEADER_BYTES < found.stored {
        return Ok(Found::CutOff);
    }
    Ok(Found::Header(found))
}

impl<'a> Chunk<'a> {
    fn open(file: &'a [u8], header: ChunkHeader) -> Result<Self, ReadError> {
        let fault = |message: &str| ReadError::new(Position::Byte(header.at as u64), message);
        let start = header.at + CHUNK_HEADER_BYTES;
        let payload = &file[start..start + header.stored];
        if crc32fast::hash(payload) != header.payload_checksum {
            return Err(fault("the file is damaged: wrong checksum of a chunk"));
        }
        let content = if header.compressed {
            let mut content = vec![0; header.length];
            match lz4_flex::block::decompress_into(payload, &mut content) {
                Ok(length) if length == header.length => Cow::Owned(content),
                _ => return Err(fault("the chunk cannot be decompressed")),
            }
        } else {
            Cow::Borrowed(payload)
        };
        let decoder = ChunkDecoder::new();
        Ok(Self { header, content, decoder, events: 0, definitions: 0, range: None })
    }

    fn next(&mut self) -> Result<Option<Record>, ReadError> {
        let record = self.decoder.next(&self.content).map_err(|malformed| {
            self.fault(format!("{} at byte {} of the chunk", malformed.what, malformed.at))
        })?;
        match &record {
            Some(Record::Event(sequence, _)) => {
                self.events += 1;
                let (first, last) = self.range.unwrap_or((*sequence, *sequence));
                self.range = Some((first.min(*sequence), last.max(*sequence)));
            }
            Some(_) => self.definitions += 1,
            None => {
                let header = &self.header;
                if (self.events, self.definitions) != (header.events, header.definitions)
                    || self.range.unwrap_or((0, 0)) != (header.first, header.last)
                {
                    return Err(self.fault("the chunk does not hold what its header says".into()));
                }
            }
        }
        Ok(record)
    }

    fn fault(&self, message: String) -> ReadError {
        ReadError::new(Position::Byte(self.header.at as u64), message)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}
