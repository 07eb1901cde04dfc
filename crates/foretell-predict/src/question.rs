//! A question about a trace: can this go wrong here? Its instances are asked one after the other,
//! or all at once.

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_trace::{EventId, Trace};

use crate::counters::Counters;
use crate::dependence::ComputedFrom;
use crate::exclusion::Exclusion;
use crate::goal::Goal;
use crate::property::{FindingKind, Shape};

/// One way in which it can go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// What.
    pub shape: Shape,
    /// The trace's events that take part, as the property says.
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
        let events = self.events(instance);
        events.is_some_and(|events| instance.shape.is_excluded(self, &events))
    }

    /// The instance's goal; `None` when the CTP lacks an event or cannot express it.
    pub fn unfiltered_goal(&self, instance: &Instance) -> Option<Goal> {
        let goal = match instance.shape.is_about_end() {
            true => instance.shape.goal_at_end(self, instance),
            false => instance.shape.goal(self, &self.events(instance)?),
        };
        goal.filter(|goal| !goal.is_impossible())
    }

    /// The instance's events in the CTP, if it has them all.
    fn events(&self, instance: &Instance) -> Option<Vec<EventId>> {
        instance.events.iter().map(|&event| self.ctp.event_of(event)).collect()
    }
}
