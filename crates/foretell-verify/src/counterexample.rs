//! A counterexample as a list of things that the compiled program does where others can see it. Both
//! engines give one, and [`compiled`](crate::compiled) forces it.

use foretell_trace::schedule::CreationPath;

use crate::program::Visible;

/// One thing that a thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Who.
    pub thread: CreationPath,
    /// What the thread is called.
    pub name: Box<str>,
    /// What.
    pub does: Visible,
    /// The global that is accessed; absent for locals and memory of `malloc`.
    pub variable: Option<Box<str>>,
    /// Line of the source.
    pub line: u32,
    /// `file:line`
    pub place: Box<str>,
    /// In words; empty when it is not worth a line.
    pub text: Box<str>,
    /// The value that the environment gives.
    pub input: Option<u64>,
}

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A failed assertion, `reach_error`, `abort`.
    Assertion,
    /// A trap or a bad access.
    Fault,
    /// Nobody can go on.
    Deadlock,
}

/// An execution that violates a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The source.
    pub file: Box<str>,
    /// What happens, in order.
    pub events: Vec<Event>,
    /// How it ends.
    pub ending: Ending,
    /// What SV-COMP calls the property, or what it would call it.
    pub specification: &'static str,
    /// Who violates the property; nobody in a deadlock.
    pub thread: CreationPath,
    /// What the thread is called.
    pub name: Box<str>,
    /// The violation, in words.
    pub violation: Box<str>,
    /// Where, as `file:line`.
    pub place: Box<str>,
    /// Line of the violation.
    pub line: u32,
}

impl Counterexample {
    /// For people, a line for every event.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for event in self.events.iter().filter(|event| !event.text.is_empty()) {
            text.push_str(&format!("  {:<10} {}: {}\n", event.name, event.place, event.text));
        }
        text.push_str(&format!("  {:<10} {}: {}\n", self.name, self.place, self.violation));
        text
    }

    /// Does a thread wait for a condition?
    pub fn waits(&self) -> bool {
        self.events.iter().any(|event| event.does == Visible::WaitEnd)
    }
}
