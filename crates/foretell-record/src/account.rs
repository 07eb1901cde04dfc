//! What is to be said about a recording as a whole: what it lacks, what was held fixed, whether it
//! has expressions.

use std::collections::BTreeMap;

use foretell_trace::{Site, Unseen};
use foretell_wire::outside::Cause;
use foretell_wire::record::{self, put};
use foretell_wire::standing::{Piece, Sentence};
use foretell_wire::{format_path, gap, instrumented};

use crate::limits::MOST_FUNCTIONS;
use crate::outside::{Noted, Outside};
use crate::words::text;

/// Where the records of a program stop making sense.
pub const NO_SENSE: &str =
    "everything after records that make no sense: the program destroyed them";

/// See the module's text.
#[derive(Default)]
pub struct Account {
    /// Sentences on what the trace lacks and on what was held fixed, each with how often.
    gaps: BTreeMap<String, u64>,
    restrictions: BTreeMap<String, u64>,
    /// What the analysis has to know of the gaps.
    unseen: Unseen,
    /// Instrumented modules, and those of them that have no expressions.
    modules: u32,
    concrete_modules: u32,
    /// They are of a binary.
    machine_code: bool,
    /// Everything that records have to say was said already: a log tells it at its end.
    closed: bool,
    /// What the scheduler did not control, with how often.
    noted: BTreeMap<Noted, u64>,
    /// Creation paths of the threads, by number.
    paths: Vec<Vec<u32>>,
    /// Where the threads of a run stood that the runtime ended.
    stands: Vec<record::Stands>,
    /// Why it left its schedule.
    said: Sentence,
    /// The kernel's numbers of the threads, with ours.
    tasks: BTreeMap<u32, u32>,
    /// The run was ended while it waited.
    ended_waiting: bool,
}

impl Account {
    /// Notes something that the scheduler did not control.
    pub fn outside(&mut self, noted: Noted) {
        if !self.closed {
            *self.noted.entry(noted).or_insert(0) += 1;
        }
    }

    /// A thread has this creation path; the next number is its.
    pub fn thread(&mut self, path: &[u32]) {
        self.paths.push(path.to_vec());
    }

    /// The creation path of the thread with this number.
    pub fn path(&self, thread: u32) -> &[u32] {
        self.paths.get(thread as usize).map_or(&[], Vec::as_slice)
    }

    /// The kernel's number of a thread.
    pub fn task(&mut self, task: record::Task) {
        self.tasks.insert(task.task, task.thread);
    }

    /// Where a thread stands at the end.
    pub fn stands(&mut self, stands: record::Stands) -> Option<()> {
        stands.on()?;
        self.stands.push(stands);
        Some(())
    }

    /// Where the threads stood when the runtime ended the run.
    pub fn standing(&self) -> &[record::Stands] {
        &self.stands
    }

    /// A piece of the sentence that says why the run left its schedule.
    pub fn said(&mut self, detail: u8, said: record::Said<Vec<u8>>) -> Option<()> {
        self.said.0.push(Piece::from_record(detail, &said.content)?);
        Some(())
    }

    /// Why the run left its schedule.
    pub fn why_it_left(&self) -> &Sentence {
        &self.said
    }

    /// The thread with this number in the kernel.
    pub fn thread_of_task(&self, task: u32) -> Option<u32> {
        self.tasks.get(&task).copied()
    }

    /// The run was ended while it waited for the world: what could have woken it counts.
    pub fn was_ended_waiting(&mut self) {
        self.ended_waiting = true;
    }

    /// Gives what the scheduler did not control, and notes it among the gaps or the restrictions.
    pub fn settle(&mut self, mut site: impl FnMut(u64) -> Option<Site>) -> Vec<Outside> {
        let mut all = Vec::new();
        let mut foreign: Vec<Outside> = Vec::new();
        for (noted, times) in std::mem::take(&mut self.noted) {
            if noted.awaited && !self.ended_waiting {
                continue;
            }
            let thread = match self.paths.get(noted.thread as usize) {
                Some(path) if path.is_empty() => "main".into(),
                Some(path) => format_path(path),
                None => String::new(),
            };
            let place = if noted.place == 0 { None } else { site(noted.place) };
            let outside = noted.named(thread, place, times);
            match outside.cause {
                Cause::HeldOutcome => {
                    let once = Outside { times: 1, ..outside.clone() };
                    self.count(gap::HELD_FIXED, once.to_string(), times);
                }
                Cause::Foreign => foreign.push(outside.clone()),
                _ => self.gap(&outside.to_string()),
            }
            all.push(outside);
        }
        not_instrumented(&foreign).iter().for_each(|sentence| self.gap(sentence));
        all
    }

    /// Notes something that the trace lacks.
    pub fn gap(&mut self, what: &str) {
        self.count(gap::ANY, what.to_owned(), 1);
    }

    /// The runtime says what the trace lacks, or what was held fixed.
    pub fn gap_record(&mut self, detail: u8, gap: record::Gap<Vec<u8>>) {
        if !self.closed {
            self.count(detail, text(gap.what), gap.count);
        }
    }

    /// An instrumented module was loaded.
    pub fn instrumented_record(&mut self, detail: u8) {
        if !self.closed {
            self.modules += 1;
            self.concrete_modules += u32::from(detail & instrumented::SYMBOLIC == 0);
            self.machine_code |= detail & instrumented::MACHINE_CODE != 0;
        }
    }

    fn count(&mut self, detail: u8, what: String, count: u64) {
        match detail {
            gap::UNKNOWN_LIBRARY => (self.unseen.library, self.unseen.locks) = (true, true),
            gap::UNKNOWN_LOCKS => self.unseen.locks = true,
            gap::FREED_IN_USE => self.unseen.freed = true,
            _ => {}
        }
        let sentences = match detail {
            gap::HELD_FIXED => &mut self.restrictions,
            _ => &mut self.gaps,
        };
        if count > 0 {
            let so_far = sentences.entry(what).or_insert(0);
            *so_far = so_far.saturating_add(count);
        }
    }

    /// Records that come from now on say nothing new.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Appends records that say the same.
    pub fn put(&self, words: &mut Vec<u64>) {
        let mut put_gap = |detail: u8, count: u64, what: &str| {
            put(words, detail, 0, &record::Gap { count, what });
        };
        for (detail, sentences) in [(gap::ANY, &self.gaps), (gap::HELD_FIXED, &self.restrictions)] {
            sentences.iter().for_each(|(what, &count)| put_gap(detail, count, what));
        }
        // Their sentences are among the gaps.
        let Unseen { library, locks, freed } = self.unseen;
        let unseen = [
            (library, gap::UNKNOWN_LIBRARY),
            (locks, gap::UNKNOWN_LOCKS),
            (freed, gap::FREED_IN_USE),
        ];
        unseen.into_iter().filter(|(is, _)| *is).for_each(|(_, detail)| put_gap(detail, 0, ""));
        for number in 0..self.modules {
            let symbolic = match number < self.concrete_modules {
                true => 0,
                false => instrumented::SYMBOLIC,
            };
            let binary = if self.machine_code { instrumented::MACHINE_CODE } else { 0 };
            put(words, symbolic | binary, 0, &record::Instrumented {});
        }
    }

    /// Instrumented modules were there.
    pub fn is_instrumented(&self) -> bool {
        self.modules > 0
    }

    /// The trace has expressions.
    pub fn is_symbolic(&self) -> bool {
        self.modules > 0 && self.concrete_modules == 0
    }

    /// The recording is of a binary that nobody compiled for it.
    pub fn is_machine_code(&self) -> bool {
        self.machine_code
    }

    /// What the analysis has to know of what it lacks.
    pub fn unseen(&self) -> Unseen {
        self.unseen
    }

    /// What the trace lacks, each with how often.
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = self.gaps.clone();
        if self.modules == 0 {
            let unseen = "no module was compiled with `foretell cc` or `foretell c++`: memory \
                          accesses are seen only where ThreadSanitizer's hooks are compiled in";
            gaps.insert(unseen.into(), 1);
        }
        sentences(&gaps)
    }

    /// What was held at its recorded value, each with how often.
    pub fn restrictions(&self) -> Vec<String> {
        sentences(&self.restrictions)
    }
}

/// What is said of functions that are not instrumented ([`Cause::Foreign`]): each is named, or their number.
pub fn not_instrumented(outside: &[Outside]) -> Vec<String> {
    let foreign: Vec<&Outside> =
        outside.iter().filter(|outside| outside.cause == Cause::Foreign).collect();
    match &*foreign {
        few if few.len() <= MOST_FUNCTIONS => few.iter().map(ToString::to_string).collect(),
        many => vec![format!(
            "{} functions are not instrumented, such as {}: what they read and write, and what they \
             change of the process, is not seen (`foretell doctor PROGRAM` lists them)",
            many.len(),
            many[0].subject
        )],
    }
}

fn sentences(counted: &BTreeMap<String, u64>) -> Vec<String> {
    let sentence = |(what, &count): (&String, &u64)| match count {
        1 => what.clone(),
        _ => format!("{what} ({count} times)"),
    };
    counted.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretell_wire::record::Words;
    use foretell_wire::{Kind, measure};

    /// Takes the records of an account.
    fn read(words: &[u64]) -> Account {
        let mut account = Account::default();
        let mut at = 0;
        while at < words.len() {
            let (kind, detail, length) = measure(&words[at..]).expect("a whole record");
            let mut rest = Words::new(&words[at + 1..at + length]);
            match kind {
                Kind::Gap => {
                    account.gap_record(detail, record::Gap::from_words(&mut rest).expect("whole"))
                }
                Kind::Instrumented => account.instrumented_record(detail),
                other => panic!("{other:?}"),
            }
            at += length;
        }
        account
    }

    #[test]
    fn an_account_survives_its_records_and_is_not_told_twice() {
        let mut account = Account::default();
        account.gap("a");
        account.gap("a");
        account.count(gap::HELD_FIXED, "b".into(), 1);
        account.count(gap::UNKNOWN_LIBRARY, "d".into(), 1);
        account.instrumented_record(instrumented::SYMBOLIC | instrumented::MACHINE_CODE);
        assert!(account.is_symbolic());
        account.instrumented_record(0);
        let mut words = Vec::new();
        account.put(&mut words);
        let mut back = read(&words);
        for _ in 0..2 {
            assert_eq!(back.gaps(), ["a (2 times)", "d"]);
            assert_eq!(back.unseen(), Unseen { library: true, locks: true, freed: false });
            assert_eq!(back.restrictions(), ["b"]);
            assert!(back.is_instrumented() && !back.is_symbolic() && back.is_machine_code());
            back.close();
            let first = record::Gap::from_words(&mut Words::new(&words[1..])).expect("whole");
            back.gap_record(gap::ANY, first);
        }
        back.gap("c");
        assert_eq!(
            back.gaps(),
            ["a (2 times)", "c", "d"],
            "what the reader itself finds still counts"
        );
    }

    #[test]
    fn without_an_instrumented_module_that_is_said() {
        assert!(Account::default().gaps()[0].starts_with("no module was compiled"));
    }
}
