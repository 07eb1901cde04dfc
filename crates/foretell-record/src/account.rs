//! What is to be said about a recording as a whole: what it lacks, what was held fixed, whether it
//! has expressions.

use std::collections::BTreeMap;

use foretell_trace::Site;
use foretell_wire::outside::Cause;
use foretell_wire::{HELD_FIXED, Kind, format_path, instrumented};

use crate::outside::{Noted, Outside};
use crate::words::{Words, put_head, put_text};

/// Where the records of a program stop making sense.
pub const NO_SENSE: &str =
    "everything after records that make no sense: the program destroyed them";

/// See the module's text.
#[derive(Default)]
pub struct Account {
    gaps: BTreeMap<String, u64>,
    restrictions: BTreeMap<String, u64>,
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
    paths: Vec<String>,
    /// The kernel's numbers of the threads, with ours.
    tasks: BTreeMap<u32, u32>,
    /// The run was ended while it waited.
    ended_waiting: bool,
}

/// So many functions that are not instrumented are named one by one.
const MOST_FUNCTIONS: usize = 2;

impl Account {
    /// Notes something that the scheduler did not control.
    pub fn outside(&mut self, noted: Noted) {
        if !self.closed {
            *self.noted.entry(noted).or_insert(0) += 1;
        }
    }

    /// A thread has this creation path, eight bytes a step; the next number is its.
    pub fn thread(&mut self, path: &[u8]) {
        let step = |part: &[u8]| part.try_into().map_or(0, u64::from_le_bytes) as u32;
        let path: Vec<u32> = path.chunks_exact(8).map(step).collect();
        self.paths.push(if path.is_empty() { "main".into() } else { format_path(&path) });
    }

    /// A [`Kind::Task`]: what follows its first word.
    pub fn task_record(&mut self, words: &mut Words) -> Option<()> {
        let (thread, task) = words.pair()?;
        self.tasks.insert(task, thread);
        Some(())
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
            let thread = self.paths.get(noted.thread as usize).cloned().unwrap_or_default();
            let place = if noted.place == 0 { None } else { site(noted.place) };
            let outside = noted.named(thread, place, times);
            match outside.cause {
                Cause::HeldOutcome => {
                    let once = Outside { times: 1, ..outside.clone() };
                    self.count(HELD_FIXED, once.to_string(), times);
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
        self.count(0, what.to_owned(), 1);
    }

    /// A [`Kind::Gap`]: what follows its first word.
    pub fn gap_record(&mut self, detail: u8, words: &mut Words) -> Option<()> {
        let count = words.next()?;
        let what = words.text()?;
        if !self.closed {
            self.count(detail, what, count);
        }
        Some(())
    }

    /// A [`Kind::Instrumented`].
    pub fn instrumented_record(&mut self, detail: u8) {
        if !self.closed {
            self.modules += 1;
            self.concrete_modules += u32::from(detail & instrumented::SYMBOLIC == 0);
            self.machine_code |= detail & instrumented::MACHINE_CODE != 0;
        }
    }

    fn count(&mut self, detail: u8, what: String, count: u64) {
        let sentences = match detail {
            HELD_FIXED => &mut self.restrictions,
            _ => &mut self.gaps,
        };
        let so_far = sentences.entry(what).or_insert(0);
        *so_far = so_far.saturating_add(count);
    }

    /// Records that come from now on say nothing new.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Appends records that say the same.
    pub fn put(&self, words: &mut Vec<u64>) {
        for (detail, sentences) in [(0, &self.gaps), (HELD_FIXED, &self.restrictions)] {
            for (what, &count) in sentences {
                put_head(words, Kind::Gap, detail, 0);
                words.push(count);
                put_text(words, what);
            }
        }
        for number in 0..self.modules {
            let symbolic = match number < self.concrete_modules {
                true => 0,
                false => instrumented::SYMBOLIC,
            };
            let binary = if self.machine_code { instrumented::MACHINE_CODE } else { 0 };
            put_head(words, Kind::Instrumented, symbolic | binary, 0);
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
    use foretell_wire::measure;

    #[test]
    fn what_a_binary_lacks_is_the_same_sentence_on_both_sides() {
        assert_eq!(foretell_wire::FREED_IN_USE, foretell_trace::FREED_IN_USE);
    }

    /// Takes the records of an account.
    fn read(words: &[u64]) -> Account {
        let mut account = Account::default();
        let mut at = 0;
        while at < words.len() {
            let (kind, detail, length) = measure(&words[at..]).expect("a whole record");
            let mut rest = Words::new(&words[at + 1..at + length]);
            match kind {
                Kind::Gap => account.gap_record(detail, &mut rest).expect("whole"),
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
        account.count(HELD_FIXED, "b".into(), 1);
        account.instrumented_record(instrumented::SYMBOLIC | instrumented::MACHINE_CODE);
        assert!(account.is_symbolic());
        account.instrumented_record(0);
        let mut words = Vec::new();
        account.put(&mut words);
        let mut back = read(&words);
        for _ in 0..2 {
            assert_eq!(back.gaps(), ["a (2 times)"]);
            assert_eq!(back.restrictions(), ["b"]);
            assert!(back.is_instrumented() && !back.is_symbolic() && back.is_machine_code());
            back.close();
            back.gap_record(0, &mut Words::new(&words[1..])).expect("whole");
        }
        back.gap("c");
        assert_eq!(back.gaps(), ["a (2 times)", "c"], "what the reader itself finds still counts");
    }

    #[test]
    fn without_an_instrumented_module_that_is_said() {
        assert!(Account::default().gaps()[0].starts_with("no module was compiled"));
    }
}
