//! Where the threads of a run stood that the runtime ended, with names in place of numbers: as data, and as sentences.

use std::fmt;

use foretell_trace::schedule::CreationPath;
pub use foretell_wire::standing::Awaited;
use foretell_wire::standing::{self, Piece, Sentence};
use foretell_wire::{of_variable, record};

use crate::sink::Sink;

/// A thread of a run that cannot go on, or did not come to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The thread.
    pub thread: CreationPath,
    /// The index of its next event.
    pub event: u32,
    /// What it waits for.
    pub on: Awaited,
    /// What people call that; descriptors of files are separated by commas. Empty if nothing is known of it.
    pub name: String,
    /// Who holds it, or the thread whose end it waits for.
    pub holder: Option<CreationPath>,
    /// How many threads came to the barrier, and how many it needs.
    pub came: Option<(u32, u32)>,
}

impl Blocked {
    /// What it waits for, for people.
    pub fn awaited(&self) -> Sentence {
        let holder = self.holder.as_ref().map(|holder| &*holder.0);
        standing::awaited(self.on, Piece::Text(self.name.clone()), holder, self.came)
    }
}

/// Says of a run in which no thread can run who waits for what.
pub fn standstill(threads: &[Blocked]) -> Sentence {
    standing::standstill(threads.iter().map(|blocked| (&*blocked.thread.0, blocked.awaited())))
}

/// Says of a run that did not come to an end where its threads are.
pub fn endless(threads: &[Blocked]) -> Sentence {
    let begin = Sentence::from("the run did not end within its limit of scheduling points");
    threads.iter().fold(begin, |sentence, blocked| {
        let at = format!(" is at event {}", blocked.event);
        let sentence = sentence.text("; ").thread(&blocked.thread.0).text(&at);
        match blocked.on {
            Awaited::Nothing => sentence,
            _ => sentence.text(" and waits for ").then(blocked.awaited()),
        }
    })
}

/// The sentence with threads as in schedules.
pub struct InSchedules<'a>(pub &'a Sentence);

impl fmt::Display for InSchedules<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.said(|path| CreationPath(path.to_vec()).to_string()))
    }
}

/// The threads of a run that the runtime ended, with the names of what they wait for.
pub fn threads(sink: &mut Sink) -> Vec<Blocked> {
    let stands = sink.account().standing().to_vec();
    let on = |stands: &record::Stands| stands.on().unwrap_or(Awaited::Nothing);
    // A channel is known by a key, and what belongs to a variable is called like it.
    let address = |stands: &record::Stands| match on(stands) {
        Awaited::Mutex | Awaited::Condition => stands.subject & !of_variable::ANY,
        _ => stands.subject,
    };
    let at_address: Vec<u64> =
        stands.iter().filter(|stands| on(stands).is_at_address()).map(address).collect();
    let mut names = sink.names(&at_address).into_iter();
    let account = sink.account();
    let path = |number: u32| CreationPath(account.path(number).to_vec());
    let mut threads: Vec<Blocked> = Vec::new();
    for stands in &stands {
        let on = on(stands);
        let name = match on {
            Awaited::File => stands.subject.to_string(),
            _ if on.is_at_address() => names.next().unwrap_or_default(),
            _ => String::new(),
        };
        let thread = path(stands.thread);
        if let Some(last) = threads.last_mut()
            && (&last.thread, last.on, on) == (&thread, Awaited::File, Awaited::File)
        {
            last.name += &format!(", {name}");
            continue;
        }
        threads.push(Blocked {
            thread,
            event: stands.event as u32,
            on,
            name,
            holder: stands.holder().map(path),
            came: stands.came(),
        });
    }
    threads
}

/// Why the run left its schedule, with names in place of addresses.
pub fn why_it_left(sink: &mut Sink) -> Sentence {
    let sentence = sink.account().why_it_left().clone();
    let address = |piece: &Piece| match piece {
        Piece::Address(address) => Some(*address),
        _ => None,
    };
    let addresses: Vec<u64> = sentence.0.iter().filter_map(address).collect();
    let mut names = sink.names(&addresses).into_iter();
    sentence.0.into_iter().fold(Sentence::default(), |said, piece| match piece {
        Piece::Address(_) => said.text(&names.next().unwrap_or_default()),
        piece => said.then(Sentence(vec![piece])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(thread: &[u32], on: Awaited, name: &str, holder: Option<&[u32]>) -> Blocked {
        let path = |path: &[u32]| CreationPath(path.to_vec());
        let (thread, holder) = (path(thread), holder.map(path));
        Blocked { thread, event: 7, on, name: name.into(), holder, came: None }
    }

    #[test]
    fn who_waits_for_what_is_said_with_the_names_that_the_reader_has() {
        let threads = [
            blocked(&[], Awaited::Thread, "", Some(&[0])),
            blocked(&[0], Awaited::Mutex, "m", Some(&[])),
            Blocked { came: Some((1, 2)), ..blocked(&[1], Awaited::Barrier, "b", None) },
        ];
        let stands = standstill(&threads);
        assert_eq!(
            InSchedules(&stands).to_string(),
            "no thread can run; thread 0 waits for the end of thread 0.0; thread 0.0 waits for mutex m held by \
             thread 0; thread 0.1 waits for barrier b (1 of 2 came)"
        );
        let named = |path: &[u32]| if path.is_empty() { "main".into() } else { "worker".into() };
        assert!(stands.said(named).contains("thread worker waits for mutex m held by thread main"));
        let threads =
            [blocked(&[], Awaited::Nothing, "", None), blocked(&[0], Awaited::Time, "", None)];
        assert_eq!(
            InSchedules(&endless(&threads)).to_string(),
            "the run did not end within its limit of scheduling points; thread 0 is at event 7; thread 0.0 is at \
             event 7 and waits for time to pass"
        );
    }
}
