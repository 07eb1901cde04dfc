//! Synchronisation that removes the bad neighbourhood (001 section 3).
//!
//! The good neighbourhood in conjunctive form is rewritten into primitives by the rules of Fig. 2:
//! [`lock`] (add, merge, merge what could deadlock, several threads), [`wait_notify`], [`barrier`]
//! and [`shared_exclusive`]. [`choose`] picks one primitive for each conjunct by cost, [`insert`]
//! puts them into the program as guarded assignments, and [`verify`] explores the result: a fix is
//! called verified only if no bad interleaving is left, a good one is, and no deadlock was added.

pub mod barrier;
pub mod choose;
pub mod insert;
pub mod lock;
pub mod shared_exclusive;
pub mod verify;
pub mod wait_notify;

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_trace::EventId;

use crate::engine::inputs::SolverFactory;
use crate::engine::system::System;
use crate::formula::HbFormula;
use crate::lines::Lines;

/// Consecutive events of one thread, both ends included: the paper's `T[ℓ:ℓ']`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region {
    /// The thread's number.
    pub thread: usize,
    /// First event.
    pub first: EventId,
    /// Last event.
    pub last: EventId,
}

/// A synchronisation primitive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Primitive {
    /// `Lk(T₁[L₁], …, Tₙ[Lₙ])`: one mutex around every region. A thread may have several.
    Lock {
        /// The regions, sorted.
        regions: Vec<Region>,
    },
    /// `WaitNotify(waiter, notifier)`: the waiter waits until the notifier has happened.
    WaitNotify {
        /// Comes after.
        waiter: EventId,
        /// Comes before.
        notifier: EventId,
    },
    /// `Barrier(T₁[ℓ₁], …)`: nobody passes its event until all have come to theirs.
    Barrier {
        /// One event of each thread, sorted.
        events: Vec<EventId>,
    },
    /// `ShExLock`: a readers-writer lock.
    SharedExclusiveLock {
        /// Regions that may run together.
        shared: Vec<Region>,
        /// Regions that run alone.
        exclusive: Vec<Region>,
    },
}

impl Primitive {
    /// Does it only keep others out, so that no thread has to run before another?
    pub fn is_lock(&self) -> bool {
        matches!(self, Primitive::Lock { .. } | Primitive::SharedExclusiveLock { .. })
    }
}

/// Was the fix checked?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// No bad interleaving is left, a good one is, no deadlock was added.
    Verified,
    /// Not shown to be right, and why.
    Unverified(String),
}

/// A proposed fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synthesis {
    /// What to add.
    pub primitives: Vec<Primitive>,
    /// Whether it is known to work.
    pub verification: Verification,
    /// How many plans were tried before this one was found.
    pub plans_tried: usize,
}

impl Primitive {
    /// The same over other names of the events.
    fn map_events(self, name: impl Fn(EventId) -> EventId) -> Self {
        let regions = |regions: Vec<Region>| -> Vec<Region> {
            regions
                .into_iter()
                .map(|region| Region {
                    thread: region.thread,
                    first: name(region.first),
                    last: name(region.last),
                })
                .collect()
        };
        match self {
            Primitive::Lock { regions: all } => Primitive::Lock { regions: regions(all) },
            Primitive::WaitNotify { waiter, notifier } => {
                Primitive::WaitNotify { waiter: name(waiter), notifier: name(notifier) }
            }
            Primitive::Barrier { events } => {
                Primitive::Barrier { events: events.into_iter().map(name).collect() }
            }
            Primitive::SharedExclusiveLock { shared, exclusive } => {
                let (shared, exclusive) = (regions(shared), regions(exclusive));
                Primitive::SharedExclusiveLock { shared, exclusive }
            }
        }
    }
}

impl Synthesis {
    /// The same over the events of the trace.
    pub(crate) fn of_trace(self, origin: impl Fn(EventId) -> EventId) -> Self {
        let primitives = self.primitives.into_iter();
        Self {
            primitives: primitives.map(|primitive| primitive.map_events(&origin)).collect(),
            ..self
        }
    }
}

/// States that the verification of one plan may visit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) states: u64,
    pub(crate) plans: usize,
}

/// The cheapest verified set of primitives for a good neighbourhood in conjunctive form; `weaker`
/// gives another form of it that is tried when no plan from the first is right.
pub(crate) fn synthesise(
    ctp: &ConcurrentTraceProgram,
    system: &System,
    good: &HbFormula,
    weaker: &mut dyn FnMut() -> Option<HbFormula>,
    lines: &Lines,
    factory: SolverFactory,
    budget: Budget,
) -> Option<Synthesis> {
    let mut tried = 0;
    let mut fallback: Option<Synthesis> = None;
    let sections = lock::HeldSections::new(ctp);
    for attempt in 0..2 {
        let formula = match attempt {
            0 => Some(good.clone()),
            _ => weaker(),
        };
        let Some(formula) = formula else { break };
        let plans = choose::plans(system, &sections, &formula, lines, budget.plans);
        let mut earlier_waits = Vec::new();
        for plan in plans {
            tried += 1;
            let verification = verify::verify(ctp, system, &plan, factory, budget.states);
            if verification == Verification::Verified {
                return Some(Synthesis { primitives: plan, verification, plans_tried: tried });
            }
            if verification == verify::deadlock() {
                earlier_waits.extend(wait_notify::hoisted(system, &plan));
            }
            fallback.get_or_insert(Synthesis {
                primitives: plan,
                verification,
                plans_tried: tried,
            });
        }
        for plan in earlier_waits.into_iter().take(budget.plans) {
            tried += 1;
            let verification = verify::verify(ctp, system, &plan, factory, budget.states);
            if verification == Verification::Verified {
                return Some(Synthesis { primitives: plan, verification, plans_tried: tried });
            }
        }
    }
    if let Some(fallback) = &mut fallback {
        fallback.plans_tried = tried;
    }
    fallback
}
