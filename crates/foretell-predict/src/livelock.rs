//! Livelocks: a thread goes round in a loop for ever. Nobody asks for them: they are looked for as deadlocks, and
//! called so once one has happened.

use std::convert::Infallible;

use foretell_trace::EventId;

use crate::deadlock::Deadlock;
use crate::finding::{AccessInfo, Words};
use crate::goal::Goal;
use crate::property::{Property, Search, Text};
use crate::question::{Question, Subject};
use crate::violation::Violation;

/// What a deadlock is called when it has happened, and a thread went round in a loop.
#[derive(Debug)]
pub struct Livelock;

impl Property for Livelock {
    type Shape = Infallible;

    const TEXT: Text = Text {
        name: "livelock",
        headline: "livelock",
        rule: "Livelock",
        description: "A thread can go round in a loop for ever.",
    };
    const RANK: u8 = Deadlock::RANK;
    const ASKED: bool = false;

    fn questions(_: &mut Search<'_>) -> Vec<Question> {
        Vec::new()
    }

    fn goal(_: &Subject<'_>, shape: Infallible, _: &[EventId]) -> Option<Goal> {
        match shape {}
    }

    fn describe(_: &Words<'_>, shape: Infallible, _: &[AccessInfo]) -> Option<String> {
        match shape {}
    }

    fn violation(accesses: &[AccessInfo], marked: bool) -> Violation {
        Deadlock::violation(accesses, marked)
    }
}
