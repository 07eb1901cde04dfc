//! What was found: findings, how they can be reproduced, and what was looked at.

use std::time::Duration;

use foretell_solve::Statistics as SolverStatistics;
use foretell_trace::schedule::Schedule;
use foretell_trace::{EventId, Op, SiteId, SyncOp, ThreadId, Trace};

use crate::divergence::Divergences;
use crate::filter::Filtered;
use crate::pattern::PatternKind;
use crate::property::FindingKind;
use crate::question::Instance;

/// The answer to [`crate::predict`].
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// What can go wrong, and what was not decided.
    pub findings: Vec<Finding>,
    /// How many of each kind were asked about, and what came out.
    pub properties: Vec<PropertySummary>,
    /// The columns of the papers' tables.
    pub statistics: Statistics,
    /// Where threads may leave the path of the run.
    pub divergences: Divergences,
    /// What was not looked at, one sentence each.
    pub unseen: Vec<String>,
    /// Answers of a solver that our own validator refused. Always empty, or foretell has a bug.
    pub internal_errors: Vec<String>,
}

/// Something that can go wrong, or may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stays the same as long as the code locations, the variable and the thread do.
    pub id: String,
    /// The same for findings that differ in the threads only.
    pub group: String,
    /// What kind.
    pub kind: FindingKind,
    /// For atomicity.
    pub pattern: Option<PatternKind>,
    /// How sure.
    pub status: Status,
    /// The events that take part.
    pub accesses: Vec<AccessInfo>,
    /// One sentence for people.
    pub detail: String,
    /// How to make it happen.
    pub schedule: Option<WitnessSchedule>,
}

/// How sure a finding is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is a validated schedule.
    Predicted,
    /// It was not decided, for this reason.
    Unknown(Reason),
}

/// Why a question is not decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The time was over ([`crate::Options::deadline`]).
    NotAsked,
    /// The solver's budget is spent.
    Budget,
    /// The planner's budget is spent.
    PlannerBudget,
    /// The solver cannot deal with something.
    Unsupported(String),
    /// A solver process gave a solution that is none.
    WrongSolution {
        /// Its command.
        solver: String,
        /// What is wrong with the solution.
        why: String,
    },
    /// It is not possible in a window of so many events, which is not the whole trace.
    Window(usize),
    /// The planner tried some of the instances only.
    SomeInstances {
        /// So many.
        tried: usize,
        /// Of so many.
        of: usize,
    },
    /// The plan runs through an assertion that fails.
    FailedAssertion,
    /// Our own validator refuses the plan or the solution.
    Refused,
    /// By locks alone it is possible; whether data allow it has to be tried.
    LocksOnly,
    /// By forks, joins, barriers and signals alone it is possible; the rest has to be tried.
    OrderOnly,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::NotAsked => f.write_str("not asked: the time was over"),
            Reason::Budget => f.write_str("the solver's budget is spent; raise --budget"),
            Reason::PlannerBudget => f.write_str("the planner's budget is spent; raise --budget"),
            Reason::Unsupported(what) => write!(f, "the solver does not support {what}"),
            Reason::WrongSolution { solver, why } => {
                write!(f, "`{solver}` gave a wrong solution: {why}")
            }
            Reason::Window(events) => {
                write!(f, "bounded window: not possible within {events} events")
            }
            Reason::SomeInstances { tried, of } => {
                write!(f, "only {tried} of {of} instances were planned")
            }
            Reason::FailedAssertion => f.write_str("the plan runs through an assertion that fails"),
            Reason::Refused => f.write_str("the validator refuses the solution"),
            Reason::LocksOnly => f.write_str("lock-valid only: to be tried by execution"),
            Reason::OrderOnly => f.write_str("by strong order only: to be tried by execution"),
        }
    }
}

/// One event of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessInfo {
    /// Who.
    pub thread: ThreadId,
    /// What: `read`, `write`, `acquire`, ...
    pub op: &'static str,
    /// Which event of the trace.
    pub event: EventId,
    /// Where, if known.
    pub site: Option<SiteId>,
    /// The variable or object.
    pub variable: Option<Box<str>>,
}

/// A validated interleaving that shows the violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessSchedule {
    /// So many events take place first, as recorded.
    pub recorded: usize,
    /// Then these events of the trace, in this order.
    pub order: Vec<EventId>,
    /// Then the threads stand before these events (a race, a deadlock, a crash).
    pub next: Vec<EventId>,
    /// How often the thread changes in `order`.
    pub context_switches: usize,
}

impl WitnessSchedule {
    /// All events in order, from the first of the trace.
    pub fn events(&self) -> impl Iterator<Item = EventId> + '_ {
        (0..self.recorded).map(EventId::from).chain(self.order.iter().copied())
    }

    /// The schedule file that makes it happen.
    pub fn to_schedule(&self, trace: &Trace, finding: &str) -> Schedule {
        let mut schedule = Schedule::of_trace(trace, self.events(), self.next.iter().copied());
        schedule.finding = Some(finding.into());
        schedule
    }
}

/// What came out for one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertySummary {
    /// Which kind.
    pub kind: FindingKind,
    /// So many code locations were asked about.
    pub questions: usize,
    /// So many can go wrong.
    pub predicted: usize,
    /// So many cannot.
    pub impossible: usize,
    /// So many are not decided.
    pub unknown: usize,
    /// Nothing can go wrong in any interleaving of the trace's events: every question was answered
    /// for the whole trace, all instances were examined, and no proof needed the bound on context
    /// switches.
    pub holds_in_all_interleavings: bool,
}

/// The columns of the papers' tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Threads.
    pub threads: usize,
    /// Variables that more than one thread accesses.
    pub shared_variables: usize,
    /// Length of the trace.
    pub events: usize,
    /// Length after slicing: of the whole trace, or of the largest window that was encoded.
    pub events_after_slicing: usize,
    /// Blocks that should be atomic.
    pub regions: usize,
    /// orig-pavs: three-access patterns.
    pub original_patterns: usize,
    /// hb-pavs: left by must-happens-before.
    pub after_must_order: usize,
    /// pavs: left by locksets and acquisition histories.
    pub after_locksets: usize,
    /// What the user's filters left out of these.
    pub filtered: Filtered,
    /// sym-avs: atomicity violations.
    pub atomicity_violations: usize,
    /// Time for filters and candidates.
    pub candidate_time: Duration,
    /// Time for encoding and solving.
    pub solve_time: Duration,
    /// What solving cost.
    pub solver: SolverStatistics,
}

/// ` at a.c:7`, if that is known.
pub fn at_place(trace: &Trace, event: EventId) -> String {
    let site = trace.event(event).site.map(|site| &trace.sites[site.index()]);
    let known = site.filter(|site| site.line > 0);
    known.map(|site| format!(" at {}:{}", site.file, site.line)).unwrap_or_default()
}

/// How people call what an event does, and to what.
pub fn access_info(trace: &Trace, event: EventId) -> AccessInfo {
    let described = trace.event(event);
    let variable = |id: foretell_trace::VariableId| trace.variables[id.index()].name.clone();
    let object = |id: foretell_trace::ObjectId| trace.objects[id.index()].name.clone();
    let thread = |id: ThreadId| trace.threads[id.index()].name.clone();
    let (op, name): (&'static str, Option<Box<str>>) = match &described.op {
        Op::Read(access) => ("read", Some(variable(access.variable))),
        Op::Write(access) => ("write", Some(variable(access.variable))),
        Op::ReadModifyWrite(step) => ("read-modify-write", Some(variable(step.variable))),
        Op::Sync(lock, SyncOp::Acquire(_) | SyncOp::AcquireFailed(_)) => {
            ("acquire", Some(object(*lock)))
        }
        Op::Sync(lock, SyncOp::Release(_)) => ("release", Some(object(*lock))),
        Op::Sync(condition, SyncOp::WaitBegin { .. } | SyncOp::WaitEnd { .. }) => {
            ("wait", Some(object(*condition)))
        }
        Op::Sync(condition, SyncOp::Signal) => ("signal", Some(object(*condition))),
        Op::Sync(condition, SyncOp::Broadcast) => ("broadcast", Some(object(*condition))),
        Op::Sync(semaphore, SyncOp::SemaphoreWait { .. } | SyncOp::SemaphoreWaitFailed) => {
            ("semaphore-wait", Some(object(*semaphore)))
        }
        Op::Sync(semaphore, SyncOp::SemaphorePost) => ("semaphore-post", Some(object(*semaphore))),
        Op::Sync(lock, SyncOp::ReleaseFailed(_)) => ("release", Some(object(*lock))),
        Op::Sync(channel, SyncOp::Send { .. }) => ("send", Some(object(*channel))),
        Op::Sync(channel, SyncOp::Receive { .. }) => ("receive", Some(object(*channel))),
        Op::Sync(channel, SyncOp::Poll { .. }) => ("poll", Some(object(*channel))),
        Op::Sync(destroyed, SyncOp::Destroy) => ("destroy", Some(object(*destroyed))),
        Op::Sync(barrier, SyncOp::BarrierArrive | SyncOp::BarrierLeave) => {
            ("barrier", Some(object(*barrier)))
        }
        Op::Fork(child) => ("fork", Some(thread(*child))),
        Op::Join(child) => ("join", Some(thread(*child))),
        Op::ThreadEnd => ("end", None),
        Op::Assert(_) => ("assert", None),
        Op::Branch(_) => ("branch", None),
        Op::Alloc { .. } => ("alloc", None),
        Op::Free { .. } => ("free", None),
        Op::Guarded(guarded) => match guarded.assignments.first() {
            Some(&(written, _)) => ("assign", Some(variable(written))),
            None => ("assume", None),
        },
        Op::Transition(transition) => {
            ("transition", transition.changed.first().map(|&changed| variable(changed)))
        }
        _ => ("step", None),
    };
    AccessInfo { thread: described.thread, op, event, site: described.site, variable: name }
}

/// One sentence about what happens.
pub fn detail(trace: &Trace, instance: &Instance) -> String {
    let accesses: Vec<AccessInfo> =
        instance.events.iter().map(|&event| access_info(trace, event)).collect();
    let sentence = instance.shape.describe(&Words { trace }, &accesses);
    sentence.unwrap_or_else(|| "a property can be violated".into())
}

/// The words of which the sentences about findings are made.
#[derive(Clone, Copy, Debug)]
pub struct Words<'t> {
    /// The names are this trace's.
    pub trace: &'t Trace,
}

impl Words<'_> {
    /// Who.
    pub fn thread(&self, access: &AccessInfo) -> &str {
        &self.trace.threads[access.thread.index()].name
    }

    /// Where, with a space before it.
    pub fn place(&self, access: &AccessInfo) -> String {
        place(self.trace, access)
    }

    /// Who does what to what, and where.
    pub fn access(&self, access: &AccessInfo) -> String {
        let variable = access.variable.as_deref().map(|name| format!(" of `{name}`"));
        let variable = variable.unwrap_or_default();
        format!("{} by {}{variable}{}", access.op, self.thread(access), self.place(access))
    }
}

/// Where an event stands, for people: with a space before it.
pub(crate) fn place(trace: &Trace, info: &AccessInfo) -> String {
    match info.site {
        Some(site) => {
            let site = &trace.sites[site.index()];
            match site.line {
                0 if !site.function.is_empty() => format!(" in {}", site.function),
                _ => format!(" at {}:{}", site.file, site.line),
            }
        }
        None => format!(" ({})", trace.event_name(info.event)),
    }
}

/// The fingerprints with and without threads.
pub fn fingerprints(trace: &Trace, kind: FindingKind, instance: &Instance) -> (String, String) {
    let mut places = String::new();
    let mut threads = String::new();
    places.push_str(kind.name());
    places.push_str(instance.shape.fingerprint());
    let asked = if instance.shape.is_about_end() { 1 } else { instance.events.len() };
    for &event in instance.events.iter().take(asked) {
        let info = access_info(trace, event);
        match info.site {
            Some(site) => {
                let site = &trace.sites[site.index()];
                places.push_str(&format!(
                    "|{}:{}:{}:{}",
                    site.file, site.line, site.column, site.function
                ));
            }
            None => places.push_str(&format!("|#{}", trace.event(event).index)),
        }
        places.push_str(info.op);
        places.push_str(info.variable.as_deref().unwrap_or(""));
        threads.push_str(&format!("|{:?}", trace.threads[info.thread.index()].path));
    }
    let group = fnv(&places);
    (format!("{:016x}", fnv(&(places + &threads))), format!("{group:016x}"))
}

/// FNV-1a, 64 bits: stable over versions of Rust, unlike the standard hasher.
pub fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
