//! Atomicity violations (000 section 3): an access of another thread between two accesses of a block that
//! should be atomic, in a pattern that no serial order has. [`crate::candidates`] finds the patterns,
//! [`crate::dependence`] says when they take place.

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_trace::{EventId, TermId, Trace};

use crate::candidates::{Candidate, Candidates, Limits, candidates};
use crate::dependence::pattern_goal;
use crate::finding::{AccessInfo, Prediction, Words};
use crate::goal::{Goal, GoalBuilder};
use crate::options::Options;
use crate::pattern::{AccessPattern, PatternKind};
use crate::planner::goal::Formula;
use crate::predict::summary;
use crate::property::{FindingKind, Planned, Property, Search, Shape, Text};
use crate::question::{Instance, Question, Subject};
use crate::violation::Violation;

/// The property.
#[derive(Debug)]
pub struct Atomicity;

impl Property for Atomicity {
    /// Three accesses form the pattern. Events: first, remote, second.
    type Shape = PatternKind;

    const TEXT: Text = Text {
        name: "atomicity",
        headline: "atomicity violation",
        rule: "AtomicityViolation",
        description: "Another thread's access can come between two accesses that belong together.",
    };
    const RANK: u8 = 5;
    const PLANNED: Planned = Planned::Yes;
    const ORDERED: bool = true;

    fn questions(search: &mut Search<'_>) -> Vec<Question> {
        let pairs = if search.nearest { Limits::default().pairs } else { search.instances };
        let limits = Limits { instances: search.instances, pairs };
        let (trace, options) = (search.trace, search.options);
        let found = candidates(trace, search.order, search.locks, options.regions, limits);
        pattern_questions(trace, found, options, search.prediction)
    }

    fn goal(subject: &Subject<'_>, kind: PatternKind, events: &[EventId]) -> Option<Goal> {
        let &[first, remote, second] = events else { return None };
        pattern_goal(subject.ctp, &subject.computed_from, [first, remote, second], kind)
    }

    fn is_excluded(subject: &Subject<'_>, _: PatternKind, events: &[EventId]) -> bool {
        let &[first, remote, second] = events else { return false };
        subject.exclusion.keeps_out(first, remote, second)
    }

    fn order(
        builder: &mut GoalBuilder<'_>,
        _: PatternKind,
        events: &[EventId],
    ) -> Option<Vec<TermId>> {
        let &[first, remote, second] = events else { return None };
        Some(vec![
            builder.terms.before(first, remote),
            builder.terms.before(remote, second),
            builder.taken(second),
        ])
    }

    fn is_in(
        _: &ConcurrentTraceProgram,
        place: &dyn Fn(EventId) -> Option<usize>,
        _: PatternKind,
        events: &[EventId],
    ) -> bool {
        let &[first, remote, second] = events else { return false };
        match (place(first), place(remote), place(second)) {
            (Some(first), Some(remote), Some(second)) => first < remote && remote < second,
            _ => false,
        }
    }

    fn plan(_: PatternKind, events: usize) -> Option<Formula> {
        (events == 3).then(|| Formula::three_accesses("0", "1", "2"))
    }

    fn describe(words: &Words<'_>, kind: PatternKind, accesses: &[AccessInfo]) -> Option<String> {
        let [first, remote, second] = accesses else { return None };
        Some(format!(
            "{kind}: {} comes between {} and {} of one atomic block",
            words.access(remote),
            words.access(first),
            words.access(second)
        ))
    }

    fn fingerprint(kind: PatternKind) -> &'static str {
        kind.name()
    }

    fn pattern(kind: PatternKind) -> Option<PatternKind> {
        Some(kind)
    }

    fn violation(_: &[AccessInfo], marked: bool) -> Violation {
        match marked {
            true => Violation::MarkedBlock,
            false => Violation::InferredBlock,
        }
    }
}

/// The questions about candidates that the user's filters leave, and the columns of the table.
pub(crate) fn pattern_questions(
    trace: &Trace,
    mut found: Candidates,
    options: &Options,
    prediction: &mut Prediction,
) -> Vec<Question> {
    let statistics = &mut prediction.statistics;
    statistics.regions = found.regions;
    statistics.original_patterns = found.original;
    statistics.after_must_order = found.after_must_order;
    statistics.after_locksets = found.after_locksets;
    statistics.filtered = options.filters.apply(trace, &mut found.candidates);
    if statistics.filtered.total() > 0 {
        summary(prediction, FindingKind::Atomicity).holds_in_all_interleavings = false;
    }
    let instance = |pattern: &AccessPattern| Instance {
        shape: Shape::Atomicity(pattern.kind),
        events: vec![pattern.first, pattern.remote, pattern.second],
    };
    let question = |candidate: Candidate| Question {
        kind: FindingKind::Atomicity,
        unexamined: candidate.unexamined,
        rest: Vec::new(),
        instances: candidate.instances.iter().map(instance).collect(),
    };
    found.candidates.into_iter().map(question).collect()
}
