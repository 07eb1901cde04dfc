//! A question about a trace: can this go wrong here? Its instances are asked one after the other,
//! or all at once.

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_trace::{EventId, TermId, Trace};

use crate::counters::Counters;
use crate::dependence::{ComputedFrom, pattern_goal};
use crate::exclusion::Exclusion;
use crate::goal::Goal;
use crate::misuse::Misuse;
use crate::pattern::PatternKind;
use crate::{assertion, crash, deadlock, misuse, order, race};

/// What kind of thing goes wrong (closed list, the JSON contract's `kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// A block that should be atomic is not.
    Atomicity,
    /// An assertion fails.
    Assertion,
    /// The program crashes: null, out of bounds, after free, division by zero.
    Crash,
    /// Threads wait for each other or for nobody.
    Deadlock,
    /// A thread goes round in a loop for ever, waiting for what nobody will do. Looked for together with
    /// deadlocks, and called so once it has happened.
    Livelock,
    /// Two conflicting accesses at the same time.
    Race,
    /// A use before the definition.
    Order,
    /// A lock or condition used in a way that POSIX forbids.
    Misuse,
}

impl FindingKind {
    /// All kinds that can be asked for.
    pub const ALL: [FindingKind; 7] = [
        FindingKind::Atomicity,
        FindingKind::Assertion,
        FindingKind::Crash,
        FindingKind::Deadlock,
        FindingKind::Race,
        FindingKind::Order,
        FindingKind::Misuse,
    ];

    /// The name in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Atomicity => "atomicity",
            FindingKind::Assertion => "assertion",
            FindingKind::Crash => "crash",
            FindingKind::Deadlock => "deadlock",
            FindingKind::Livelock => "livelock",
            FindingKind::Race => "race",
            FindingKind::Order => "order",
            FindingKind::Misuse => "misuse",
        }
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
        let known = FindingKind::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| {
            let names: Vec<&str> = FindingKind::ALL.iter().map(|kind| kind.name()).collect();
            format!("unknown property `{name}`; known are {}", names.join(", "))
        })
    }
}

/// What exactly goes wrong; with the events of an instance it makes a [`Goal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Three accesses form the pattern. Events: first, remote, second.
    Pattern(PatternKind),
    /// The assertion does not hold. Events: the assertion.
    Assertion,
    /// The term, one of the trace, has a bad value when the thread comes to the event.
    Fault(Fault, TermId),
    /// Every thread waits for a lock that the next one holds. Events: the acquires.
    LockCycle,
    /// Nobody can go on, and at least one thread waits at one of the events.
    Stuck,
    /// Both can be next. Events: two accesses.
    Race,
    /// The read comes before every write of its variable. Events: the read and the first write.
    UseBeforeDefinition,
    /// The access comes after the free. Events: the access and the free.
    UseAfterFree,
    /// A lock or condition is misused. Events: as [`Misuse`] says.
    Misuse(Misuse),
    /// A goal that was given as text ([`crate::planner::goal`]). Events: those it names.
    Goal,
}

/// What kind of crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The address is in the first page.
    NullPointer,
    /// The address is outside the block that its base lies in.
    OutOfBounds {
        /// First address of the block.
        base: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// The divisor is zero.
    DivisionByZero,
}

/// One way in which it can go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// What.
    pub shape: Shape,
    /// The trace's events that take part, as [`Shape`] says.
    pub events: Vec<EventId>,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What kind of thing.
    pub kind: FindingKind,
    /// The ways, the most promising first.
    pub instances: Vec<Instance>,
    /// Further ways, asked about when none of the first is possible.
    pub rest: Vec<Instance>,
    /// How many more ways there are at least that are not asked about.
    pub unexamined: u64,
}

/// A CTP and what is derived from it once for all goals.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// The CTP of the trace or a window of it.
    pub ctp: &'a ConcurrentTraceProgram,
    /// The trace's events by thread.
    pub chains: &'a [Vec<EventId>],
    /// Data flow through locals.
    pub computed_from: ComputedFrom,
    /// What locks and flags exclude.
    pub exclusion: Exclusion<'a>,
    /// What variables that are only added to can be.
    pub counters: Counters<'a>,
}

impl<'a> Subject<'a> {
    /// Prepares for goals.
    pub fn new(
        trace: &'a Trace,
        chains: &'a [Vec<EventId>],
        ctp: &'a ConcurrentTraceProgram,
        order: &'a MustOrder,
    ) -> Self {
        let (computed_from, exclusion) = (ComputedFrom::new(ctp), Exclusion::new(ctp));
        let counters = Counters::new(ctp, order);
        Self { trace, chains, ctp, computed_from, exclusion, counters }
    }

    /// The instance's goal; `None` when the CTP lacks an event or cannot express it, or when locks,
    /// flags or counters exclude it.
    pub fn goal(&self, instance: &Instance) -> Option<Goal> {
        let goal = (!self.is_excluded(instance)).then(|| self.unfiltered_goal(instance))?;
        goal.filter(|goal| !self.counters.refute(goal))
    }

    /// Do locks and flags alone keep the instance from happening?
    pub fn is_excluded(&self, instance: &Instance) -> bool {
        let events: Option<Vec<EventId>> =
            instance.events.iter().map(|&event| self.ctp.event_of(event)).collect();
        match (instance.shape, events.as_deref()) {
            (Shape::Pattern(_), Some(&[first, remote, second])) => {
                self.exclusion.keeps_out(first, remote, second)
            }
            (Shape::Race, Some(&[one, two])) => self.exclusion.keeps_apart(one, two),
            _ => false,
        }
    }

    /// The instance's goal; `None` when the CTP lacks an event or cannot express it.
    pub fn unfiltered_goal(&self, instance: &Instance) -> Option<Goal> {
        let events: Option<Vec<EventId>> =
            instance.events.iter().map(|&event| self.ctp.event_of(event)).collect();
        let goal = match (instance.shape, events.as_deref()) {
            (Shape::Stuck, _) => deadlock::stuck_goal(self, instance),
            (Shape::Pattern(kind), Some(&[first, remote, second])) => {
                pattern_goal(self.ctp, &self.computed_from, [first, remote, second], kind)
            }
            (Shape::Assertion, Some(&[event])) => assertion::goal(self.ctp, event),
            (Shape::Fault(fault, term), Some(&[event])) => {
                crash::fault_goal(self, event, fault, term)
            }
            (Shape::LockCycle, Some(events)) => Some(deadlock::cycle_goal(self.ctp, events)),
            (Shape::Race, Some(&[one, two])) => Some(race::goal(self.ctp, one, two)),
            (Shape::UseBeforeDefinition, Some(&[read, _])) => order::goal(self, read),
            (Shape::UseAfterFree, Some(&[access, free])) => {
                Some(crash::after_free_goal(self.ctp, access, free))
            }
            (Shape::Misuse(_), Some(events)) => misuse::goal(self.ctp, events),
            _ => None,
        };
        goal.filter(|goal| !goal.is_impossible())
    }
}
