//! What a fork server and the recorder say to each other, over a socket of packets.
//!
//! A fork server is the program under test, stopped in the constructor of the runtime: loaded and
//! linked, but nothing of its own has run. It says hello ([`Hello`]), and for every [`Request`] it makes
//! a copy of itself that goes on as a program that was just started. The copy is a child of the recorder
//! (`CLONE_PARENT`), not of the server. The answer is its number, or a negative error.

/// The descriptors that come with a request: the ring, standard input, output, error.
pub const DESCRIPTORS: usize = 4;

/// The longest packet.
pub const PACKET_BYTES: usize = 256;

/// What the server says first. Both numbers tell whether a library's constructor did something before
/// the runtime's that a copy would not have, or would share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Threads of the process.
    pub threads: u32,
    /// Its open descriptors, without the socket.
    pub descriptors: u32,
}

impl Hello {
    /// As a packet.
    pub fn bytes(self) -> [u8; 8] {
        (u64::from(self.threads) | u64::from(self.descriptors) << 32).to_le_bytes()
    }

    /// From a packet.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let word = u64::from_le_bytes(bytes.try_into().ok()?);
        Some(Self { threads: word as u32, descriptors: (word >> 32) as u32 })
    }
}

/// A run to make. What else concerns it (switching, expressions) is the same for all runs of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the run's descendants can be told by: its soft limit on RLIMIT_RTTIME.
    pub mark: u64,
    /// As [`crate::environment::POINTS`]; 0 for none.
    pub points: u64,
    /// As [`crate::environment::PATH`].
    pub path: bool,
    /// As [`crate::environment::POLICY`].
    pub policy: String,
}

impl Request {
    /// As a packet.
    pub fn text(&self) -> String {
        let Self { mark, points, path, policy } = self;
        format!("{mark} {points} {} {policy}", u8::from(*path))
    }

    /// From a packet.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(bytes).ok()?.splitn(4, ' ');
        Some(Self {
            mark: words.next()?.parse().ok()?,
            points: words.next()?.parse().ok()?,
            path: words.next()? == "1",
            policy: words.next()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written() {
        let hello = Hello { threads: 1, descriptors: 3 };
        assert_eq!(Hello::read(&hello.bytes()), Some(hello));
        let policy = "random:1:20".to_owned();
        let request = Request { mark: 1 << 62, points: 7, path: true, policy };
        assert!(request.text().len() < PACKET_BYTES);
        assert_eq!(Request::read(request.text().as_bytes()), Some(request));
        assert_eq!(Request::read(b"1 2"), None);
    }
}
