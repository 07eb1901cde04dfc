//! What foretell looks for: one [`Property`] for each kind of finding, and the table of them.
//!
//! A new property is a file that implements [`Property`] and a line in the table below. Everything else
//! (questions, goals, sentences, fingerprints, ranks, rules of SARIF, the words of the command line) asks
//! the table.

use std::fmt::Debug;
use std::hash::Hash;

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::lockset::Locksets;
use foretell_model::must_order::MustOrder;
use foretell_trace::{EventId, TermId, Trace};

use crate::finding::{AccessInfo, Prediction, Words};
use crate::goal::{Goal, GoalBuilder};
use crate::influence::Fixed;
use crate::options::Options;
use crate::pattern::PatternKind;
use crate::planner::goal::Formula;
use crate::question::{Instance, Question, Subject};
use crate::violation::Violation;
use crate::{assertion, atomicity, crash, deadlock, livelock, misuse, order, race};

/// Something that can go wrong: where it may, when it does, and what is said of it.
pub trait Property {
    /// The ways in which it goes wrong, where there are several.
    type Shape: Copy + Debug + Eq + Hash;

    /// What people and programs are told of the property itself.
    const TEXT: Text;

    /// How bad it is: of two findings that show the same bug, the one with the smaller rank is shown.
    const RANK: u8;

    /// Can be asked for. (A livelock cannot: it is what a deadlock turns out to be.)
    const ASKED: bool = true;

    /// Has its line in the summary also if there was nothing to ask.
    const LISTED: bool = true;

    /// Needs an order of events ([`Property::order`]).
    const ORDERED: bool = false;

    /// What the planner can say of it.
    const PLANNED: Planned = Planned::No;

    /// The questions that cheap filters leave.
    fn questions(search: &mut Search<'_>) -> Vec<Question>;

    /// When it goes wrong, over the events of the program; `None` if that cannot be said.
    fn goal(subject: &Subject<'_>, shape: Self::Shape, events: &[EventId]) -> Option<Goal>;

    /// As [`Property::goal`], for shapes that may have events outside the program ([`Property::is_about_end`]).
    fn goal_at_end(_: &Subject<'_>, _: &Instance) -> Option<Goal> {
        None
    }

    /// Is it about the state at the end of a prefix? Then the events are places where a thread may be at that
    /// end, and one of them is enough.
    fn is_about_end(_: Self::Shape) -> bool {
        false
    }

    /// Do locks and flags alone keep it from happening?
    fn is_excluded(_: &Subject<'_>, _: Self::Shape, _: &[EventId]) -> bool {
        false
    }

    /// Does it go well in all interleavings because it did in the run and depends on nothing that varies?
    fn is_well(_: &Fixed<'_>, _: Self::Shape, _: EventId) -> bool {
        false
    }

    /// The order of events that it needs, whatever values are. Where there is one, questions with many
    /// instances are first asked about it alone.
    fn order(_: &mut GoalBuilder<'_>, _: Self::Shape, _: &[EventId]) -> Option<Vec<TermId>> {
        None
    }

    /// Does a witness have that order? `place` is where an event of the trace stands in it.
    fn is_in(
        _: &ConcurrentTraceProgram,
        _: &dyn Fn(EventId) -> Option<usize>,
        _: Self::Shape,
        _: &[EventId],
    ) -> bool {
        false
    }

    /// As a formula over `0`, `1`, ..., the events of the instance, for the planner.
    fn plan(_: Self::Shape, _events: usize) -> Option<Formula> {
        None
    }

    /// One sentence about what happens.
    fn describe(words: &Words<'_>, shape: Self::Shape, accesses: &[AccessInfo]) -> Option<String>;

    /// What of the shape is part of fingerprints.
    fn fingerprint(_: Self::Shape) -> &'static str {
        ""
    }

    /// Of an atomicity violation, which pattern.
    fn pattern(_: Self::Shape) -> Option<PatternKind> {
        None
    }

    /// What a forced run has to show. `marked`: the user marked the blocks.
    fn violation(accesses: &[AccessInfo], marked: bool) -> Violation;
}

/// What people and programs are told of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// The name in reports and on the command line.
    pub name: &'static str,
    /// What goes wrong, in a few words for a headline.
    pub headline: &'static str,
    /// The name of the rule in SARIF.
    pub rule: &'static str,
    /// What the rule is about, in a sentence.
    pub description: &'static str,
}

/// What the planner can say of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// It decides it.
    Yes,
    /// It looks at these only.
    Only(&'static str),
    /// Nothing.
    No,
}

/// Where questions are looked for.
#[derive(Debug)]
pub struct Search<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Must-happens-before.
    pub order: &'a MustOrder,
    /// Who holds what.
    pub locks: &'a Locksets,
    /// What the user asked for.
    pub options: &'a Options,
    /// So many instances of a question are kept at most.
    pub instances: usize,
    /// Only the nearest instances are wanted, because questions are asked in windows.
    pub nearest: bool,
    /// Takes counts, and what was not looked at.
    pub prediction: &'a mut Prediction,
}

macro_rules! properties {
    ($($(#[$doc:meta])* $kind:ident: $property:ty,)*) => {
        /// What kind of thing goes wrong (closed list, the JSON contract's `kind`).
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        #[serde(rename_all = "lowercase")]
        pub enum FindingKind {
            $($(#[$doc])* $kind,)*
        }

        /// What exactly goes wrong; with the events of an instance it makes a [`Goal`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Shape {
            $($(#[$doc])* $kind(<$property as Property>::Shape),)*
            /// A goal that was given as text ([`crate::planner::goal`]). Events: those it names.
            Goal,
        }

        impl FindingKind {
            /// All kinds.
            pub const ALL: &'static [FindingKind] = &[$(FindingKind::$kind,)*];

            /// What people and programs are told of it.
            pub fn text(self) -> Text {
                match self {
                    $(FindingKind::$kind => <$property as Property>::TEXT,)*
                }
            }

            /// How bad it is, the worst first.
            pub fn rank(self) -> u8 {
                match self {
                    $(FindingKind::$kind => <$property as Property>::RANK,)*
                }
            }

            /// Can it be asked for?
            pub fn is_asked(self) -> bool {
                match self {
                    $(FindingKind::$kind => <$property as Property>::ASKED,)*
                }
            }

            pub(crate) fn is_listed(self) -> bool {
                match self {
                    $(FindingKind::$kind => <$property as Property>::LISTED,)*
                }
            }

            pub(crate) fn planned(self) -> Planned {
                match self {
                    $(FindingKind::$kind => <$property as Property>::PLANNED,)*
                }
            }

            pub(crate) fn questions(self, search: &mut Search<'_>) -> Vec<Question> {
                match self {
                    $(FindingKind::$kind => <$property as Property>::questions(search),)*
                }
            }

            /// What a forced run has to show. `marked`: the user marked the blocks.
            pub fn violation(self, accesses: &[AccessInfo], marked: bool) -> Violation {
                match self {
                    $(FindingKind::$kind => <$property as Property>::violation(accesses, marked),)*
                }
            }
        }

        impl Shape {
            pub(crate) fn goal(self, subject: &Subject<'_>, events: &[EventId]) -> Option<Goal> {
                match self {
                    $(Shape::$kind(shape) => <$property as Property>::goal(subject, shape, events),)*
                    Shape::Goal => None,
                }
            }

            pub(crate) fn goal_at_end(self, subject: &Subject<'_>, instance: &Instance) -> Option<Goal> {
                match self {
                    $(Shape::$kind(_) => <$property as Property>::goal_at_end(subject, instance),)*
                    Shape::Goal => None,
                }
            }

            /// See [`Property::is_about_end`].
            pub fn is_about_end(self) -> bool {
                match self {
                    $(Shape::$kind(shape) => <$property as Property>::is_about_end(shape),)*
                    Shape::Goal => false,
                }
            }

            pub(crate) fn is_excluded(self, subject: &Subject<'_>, events: &[EventId]) -> bool {
                match self {
                    $(Shape::$kind(shape) => {
                        <$property as Property>::is_excluded(subject, shape, events)
                    })*
                    Shape::Goal => false,
                }
            }

            pub(crate) fn is_well(self, fixed: &Fixed<'_>, event: EventId) -> bool {
                match self {
                    $(Shape::$kind(shape) => <$property as Property>::is_well(fixed, shape, event),)*
                    Shape::Goal => false,
                }
            }

            /// Does it need an order of events?
            pub(crate) fn has_order(self) -> bool {
                match self {
                    $(Shape::$kind(_) => <$property as Property>::ORDERED,)*
                    Shape::Goal => false,
                }
            }

            pub(crate) fn order(
                self,
                builder: &mut GoalBuilder<'_>,
                events: &[EventId],
            ) -> Option<Vec<TermId>> {
                match self {
                    $(Shape::$kind(shape) => <$property as Property>::order(builder, shape, events),)*
                    Shape::Goal => None,
                }
            }

            pub(crate) fn is_in(
                self,
                ctp: &ConcurrentTraceProgram,
                place: &dyn Fn(EventId) -> Option<usize>,
                events: &[EventId],
            ) -> bool {
                match self {
                    $(Shape::$kind(shape) => {
                        <$property as Property>::is_in(ctp, place, shape, events)
                    })*
                    Shape::Goal => false,
                }
            }

            pub(crate) fn plan(self, events: usize) -> Option<Formula> {
                match self {
                    $(Shape::$kind(shape) => <$property as Property>::plan(shape, events),)*
                    Shape::Goal => None,
                }
            }

            pub(crate) fn describe(self, words: &Words<'_>, accesses: &[AccessInfo]) -> Option<String> {
                match self {
                    $(Shape::$kind(shape) => {
                        <$property as Property>::describe(words, shape, accesses)
                    })*
                    Shape::Goal => None,
                }
            }

            pub(crate) fn fingerprint(self) -> &'static str {
                match self {
                    $(Shape::$kind(shape) => <$property as Property>::fingerprint(shape),)*
                    Shape::Goal => "",
                }
            }

            pub(crate) fn pattern(self) -> Option<PatternKind> {
                match self {
                    $(Shape::$kind(shape) => <$property as Property>::pattern(shape),)*
                    Shape::Goal => None,
                }
            }
        }
    };
}

properties! {
    /// A block that should be atomic is not.
    Atomicity: atomicity::Atomicity,
    /// An assertion fails.
    Assertion: assertion::Assertion,
    /// The program crashes: null, out of bounds, after free, division by zero.
    Crash: crash::Crash,
    /// Threads wait for each other or for nobody.
    Deadlock: deadlock::Deadlock,
    /// A thread goes round in a loop for ever, waiting for what nobody will do. Looked for together with
    /// deadlocks, and called so once it has happened.
    Livelock: livelock::Livelock,
    /// Two conflicting accesses at the same time.
    Race: race::Race,
    /// A use before the definition.
    Order: order::Order,
    /// A lock or condition used in a way that POSIX forbids.
    Misuse: misuse::Misused,
}

impl FindingKind {
    /// The kinds that can be asked for.
    pub fn asked() -> impl Iterator<Item = FindingKind> {
        FindingKind::ALL.iter().copied().filter(|kind| kind.is_asked())
    }

    /// The name in reports and on the command line.
    pub fn name(self) -> &'static str {
        self.text().name
    }

    /// What goes wrong, in a few words for a headline.
    pub fn headline(self) -> &'static str {
        self.text().headline
    }

    /// The names of the kinds that can be asked for, separated by commas.
    pub fn names() -> String {
        FindingKind::asked().map(FindingKind::name).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Display for FindingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for FindingKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = FindingKind::asked().find(|kind| kind.name() == name);
        known
            .ok_or_else(|| format!("unknown property `{name}`; known are {}", FindingKind::names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_those_of_the_json_contract() {
        for kind in FindingKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn names_and_rules_are_unique() {
        let unique = |words: Vec<&str>| words.iter().collect::<BTreeSet<_>>().len() == words.len();
        assert!(unique(FindingKind::ALL.iter().map(|kind| kind.name()).collect()));
        assert!(unique(FindingKind::ALL.iter().map(|kind| kind.text().rule).collect()));
    }

    #[test]
    fn only_what_can_be_asked_for_has_a_word_on_the_command_line() {
        assert_eq!("race".parse(), Ok(FindingKind::Race));
        let refused = "livelock".parse::<FindingKind>().unwrap_err();
        assert!(refused.ends_with("atomicity, assertion, crash, deadlock, race, order, misuse"));
    }
}
