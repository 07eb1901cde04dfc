//! How a run that the runtime ended stands, as data: where each thread is and what it waits for ([`Kind::Stands`]), and why it
//! left its schedule, with threads and addresses that only the recorder has names for ([`Kind::Said`]).
//!
//! [`Kind::Stands`]: crate::Kind::Stands
//! [`Kind::Said`]: crate::Kind::Said

use std::fmt;

use crate::format_path;
use crate::record;

macro_rules! awaited {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// What a thread waits for (closed list, the JSON contract's `waits_for`).
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Awaited {
            $($(#[$doc])* $name = $code,)*
        }

        impl Awaited {
            /// All of them.
            pub const ALL: &[Awaited] = &[$(Awaited::$name),*];

            /// From the number in a record.
            pub fn from_code(code: u32) -> Option<Awaited> {
                Awaited::ALL.iter().copied().find(|&known| known as u32 == code)
            }

            /// The name in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Awaited::$name => $text,)*
                }
            }
        }
    };
}

awaited! {
    /// Nothing: it can run.
    Nothing = 0, "nothing";
    /// Subject: its address. More: the thread that holds it, number + 1.
    Mutex = 1, "mutex";
    /// As `Mutex`.
    ReaderWriterLock = 2, "reader-writer-lock";
    /// Subject: its address.
    Condition = 3, "condition";
    /// Subject: its address.
    Semaphore = 4, "semaphore";
    /// Subject: its address. More: how many came, and in the upper half how many it needs; 0 where that is not known.
    Barrier = 5, "barrier";
    /// A pipe, a socket, ... Subject: its key.
    Channel = 6, "channel";
    /// The end of a thread. Subject: its number.
    Thread = 7, "thread";
    /// What another thread initialises. Subject: the address of the control variable.
    Once = 8, "initialisation";
    /// Subject: its address.
    Futex = 9, "futex";
    /// Something to happen to a file. Subject: the descriptor. Of several there is a record each.
    File = 10, "file";
    /// A message queue, a semaphore or a lock of the kernel.
    Kernel = 11, "kernel";
    /// Time to pass.
    Time = 12, "time";
    /// A change of what it reads again and again.
    Change = 13, "change";
    /// A change of the file that it looks at again and again.
    FileChange = 14, "file-change";
    /// The other threads, to end the process.
    Others = 15, "other-threads";
}

impl Awaited {
    /// Whether the subject is an address.
    pub fn is_at_address(self) -> bool {
        use Awaited::*;
        matches!(
            self,
            Mutex | ReaderWriterLock | Condition | Semaphore | Barrier | Channel | Once | Futex
        )
    }
}

impl record::Stands {
    /// The thread is at this event and waits for this.
    pub fn new(thread: u32, event: u32, on: Awaited, subject: u64) -> Self {
        Self { thread, awaited: on as u32, event: event.into(), subject, more: 0 }
    }

    /// Held by this thread.
    pub fn held_by(self, holder: Option<u32>) -> Self {
        Self { more: holder.map_or(0, |number| u64::from(number) + 1), ..self }
    }

    /// What it waits for; `None` if the number is none.
    pub fn on(&self) -> Option<Awaited> {
        Awaited::from_code(self.awaited)
    }

    /// So many threads came to the barrier, and it needs so many.
    pub fn of_whom(self, came: u32, all: u32) -> Self {
        Self { more: u64::from(came) | u64::from(all) << 32, ..self }
    }

    /// The thread that holds what it waits for, or whose end that is.
    pub fn holder(&self) -> Option<u32> {
        match self.on()? {
            Awaited::Thread => u32::try_from(self.subject).ok(),
            Awaited::Mutex | Awaited::ReaderWriterLock => {
                u32::try_from(self.more.checked_sub(1)?).ok()
            }
            _ => None,
        }
    }

    /// How many threads came to the barrier, and how many it needs.
    pub fn came(&self) -> Option<(u32, u32)> {
        let (came, all) = (self.more as u32, (self.more >> 32) as u32);
        (self.on() == Some(Awaited::Barrier) && all > 0).then_some((came, all))
    }
}

/// What a thread waits for, for people: it has this name, is held by this thread (or is this thread), and so many of so many came.
pub fn awaited(
    on: Awaited,
    name: Piece,
    holder: Option<&[u32]>,
    came: Option<(u32, u32)>,
) -> Sentence {
    let named = |kind: &str| Sentence::from(kind).text(" ").then(Sentence(vec![name.clone()]));
    let held = |sentence: Sentence| match holder {
        Some(holder) => sentence.text(" held by ").thread(holder),
        None => sentence,
    };
    match on {
        Awaited::Nothing => "nothing".into(),
        Awaited::Mutex => held(named("mutex")),
        Awaited::ReaderWriterLock => held(named("reader-writer lock")),
        Awaited::Condition => named("condition"),
        Awaited::Semaphore => named("semaphore"),
        Awaited::Channel => named("channel"),
        Awaited::Barrier => match came {
            Some((came, all)) => named("barrier").text(&format!(" ({came} of {all} came)")),
            None => named("barrier"),
        },
        Awaited::Thread => match holder {
            Some(thread) => Sentence::from("the end of ").thread(thread),
            None => "the end of a thread".into(),
        },
        Awaited::Once => named("the initialisation at"),
        Awaited::Futex => named("the futex at"),
        Awaited::File => named("something to happen to file"),
        Awaited::Kernel => "a message queue, a semaphore or a lock of the kernel".into(),
        Awaited::Time => "time to pass".into(),
        Awaited::Change => "a change of what it reads again and again".into(),
        Awaited::FileChange => "a change of the file that it looks at again and again".into(),
        Awaited::Others => "the other threads, to end the process".into(),
    }
}

/// Says of a run in which no thread can run who waits for what.
pub fn standstill<'a>(threads: impl IntoIterator<Item = (&'a [u32], Sentence)>) -> Sentence {
    let begin = Sentence::from("no thread can run");
    threads.into_iter().fold(begin, |sentence, (path, awaited)| {
        sentence.text("; ").thread(path).text(" waits for ").then(awaited)
    })
}

/// The detail of [`crate::Kind::Said`].
pub mod piece {
    /// Words.
    pub const TEXT: u8 = 0;
    /// A thread: its creation path, four bytes a step.
    pub const THREAD: u8 = 1;
    /// An address, of eight bytes.
    pub const ADDRESS: u8 = 2;
}

/// A part of a [`Sentence`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words.
    Text(String),
    /// A thread, by its creation path.
    Thread(Vec<u32>),
    /// Something at this address.
    Address(u64),
}

impl Piece {
    /// Detail and content of its record.
    pub fn record(&self) -> (u8, Vec<u8>) {
        match self {
            Piece::Text(text) => (piece::TEXT, text.as_bytes().to_vec()),
            Piece::Thread(path) => {
                (piece::THREAD, path.iter().flat_map(|step| step.to_le_bytes()).collect())
            }
            Piece::Address(address) => (piece::ADDRESS, address.to_le_bytes().to_vec()),
        }
    }

    /// From its record.
    pub fn from_record(detail: u8, content: &[u8]) -> Option<Piece> {
        Some(match detail {
            piece::TEXT => Piece::Text(String::from_utf8_lossy(content).into_owned()),
            piece::THREAD => {
                let step = |part: &[u8]| part.try_into().map_or(0, u32::from_le_bytes);
                Piece::Thread(content.chunks_exact(4).map(step).collect())
            }
            piece::ADDRESS => Piece::Address(u64::from_le_bytes(content.try_into().ok()?)),
            _ => return None,
        })
    }
}

/// A sentence for people, in which threads and addresses are still data: who knows their names puts them in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence(pub Vec<Piece>);

impl Sentence {
    /// Goes on with words.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        match self.0.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
        self
    }

    /// Goes on with `thread` and its name.
    #[must_use]
    pub fn thread(mut self, path: &[u32]) -> Self {
        self = self.text("thread ");
        self.0.push(Piece::Thread(path.to_vec()));
        self
    }

    /// Goes on with what is at the address.
    #[must_use]
    pub fn address(mut self, address: u64) -> Self {
        self.0.push(Piece::Address(address));
        self
    }

    /// Goes on with another one.
    #[must_use]
    pub fn then(mut self, other: Sentence) -> Self {
        for piece in other.0 {
            match piece {
                Piece::Text(text) => self = self.text(&text),
                piece => self.0.push(piece),
            }
        }
        self
    }

    /// Nothing is said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, with these names of threads; addresses are numbers.
    pub fn said(&self, thread: impl Fn(&[u32]) -> String) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Thread(path) => thread(path),
            Piece::Address(address) => format!("{address:#x}"),
        };
        self.0.iter().map(piece).collect()
    }
}

impl From<&str> for Sentence {
    fn from(text: &str) -> Self {
        Sentence::default().text(text)
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said(format_path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_what_is_awaited_are_read_again() {
        for &on in Awaited::ALL {
            assert_eq!(Awaited::from_code(on as u32), Some(on));
        }
        assert_eq!(Awaited::from_code(99), None);
        let stands = record::Stands::new(1, 5, Awaited::Mutex, 0x10).held_by(Some(0));
        assert_eq!((stands.on(), stands.holder()), (Some(Awaited::Mutex), Some(0)));
        let stands = record::Stands { awaited: Awaited::Barrier as u32, ..stands };
        assert_eq!((stands.holder(), stands.came()), (None, None));
        assert_eq!(stands.of_whom(1, 3).came(), Some((1, 3)));
    }

    #[test]
    fn a_sentence_survives_its_records() {
        let sentence = Sentence::from("event 3 of ")
            .thread(&[0, 1])
            .text(" is at ")
            .address(0x2a)
            .then(Sentence::from(", and not").text(" here"));
        let pieces = sentence.0.iter().map(|piece| {
            let (detail, content) = piece.record();
            Piece::from_record(detail, &content).expect("a piece")
        });
        let back = Sentence(pieces.collect());
        assert_eq!(back, sentence);
        assert_eq!(back.to_string(), "event 3 of thread 0.1 is at 0x2a, and not here");
        assert_eq!(back.said(|_| "b".into()), "event 3 of thread b is at 0x2a, and not here");
        assert_eq!(Piece::from_record(piece::ADDRESS, &[1]), None);
    }
}
