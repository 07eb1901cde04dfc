//! An exploration that several processes share, on as many machines, without a word between them.
//!
//! What is divided is neither classes nor questions but the **executions** of the program, by how some threads
//! decide at some places: *points*, which are choices of the recorded run's class, the first of each thread
//! first. At a point a thread either stays on the path of the recorded run, or it leaves it there or has left it
//! before. So m points make up to 2^m regions, and each region belongs to one part ([`Region`]).
//!
//! A part explores as everybody does, but asks only for prefixes of which nothing says that all their
//! executions lie in regions of others. Where a thread of the class that is asked about decides at a point as
//! the region does not, it has not come to that decision in the prefix: one literal. What runs find outside
//! the region is kept: it may be on the way to a class inside.
//!
//! **Why nothing is lost.** Take any execution E. Its threads decide at each point one way or the other, or
//! never come there; so some part's region has E in it. Let D be a class of that part which covers the longest
//! prefix of E. If that is not all of E, the next step is a deviation of D (`lib.rs`), a prefix of E that no class
//! of the part covers. Nothing in it contradicts the region of E, as it is a prefix of E. So the part asked for it,
//! and the answer was not no. Hence each part covers the executions of its regions, and all parts cover all
//! executions. (A question that is left out because it was asked about an earlier class, "Fewer questions",
//! has the same prefixes, and whether a prefix fits a region does not depend on the class.)
//!
//! **What must hold** is that the parts mean the same regions: that they begin with the same class. Whoever joins
//! the parts checks that; `foretell merge` compares digests of the first classes. How even the division is depends
//! on the program; a part whose region no execution lies in has little to do.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use foretell_predict::goal::GoalBuilder;
use foretell_trace::{EventId, TermId};

use crate::class::{Class, Kind, Paths};
use crate::question::Choice;

/// Which part of the exploration is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 0.
    pub number: u32,
    /// How many parts there are.
    pub of: u32,
}

/// The executions that a part has to cover.
pub(crate) struct Region {
    /// The class of the recorded run.
    first: Rc<Paths>,
    /// Thread and choice of the first class.
    points: Vec<(usize, usize)>,
    /// For each region of the part: which points are left.
    left: Vec<Vec<bool>>,
}

/// Whether a thread has left the path of the first class by a point, in a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decided {
    /// In every prefix that is asked for.
    Always(bool),
    /// In the prefixes with this event.
    With(EventId, bool),
    /// Not said.
    Open,
}

impl Region {
    /// The regions of a part of an exploration that begins with this class.
    pub fn new(part: Part, first: &Class) -> Self {
        let wanted = u32::BITS - (part.of - 1).leading_zeros();
        let mut of_thread: Vec<Vec<usize>> = vec![Vec::new(); first.threads.len()];
        for choice in first.choices() {
            if let Some((thread, number)) = choice.place() {
                of_thread[thread].push(number);
            }
        }
        let most = of_thread.iter().map(Vec::len).max().unwrap_or(0);
        let in_turn = (0..most).flat_map(|turn| {
            let of_thread = of_thread.iter().enumerate();
            of_thread.filter_map(move |(thread, choices)| Some((thread, *choices.get(turn)?)))
        });
        let points: Vec<(usize, usize)> = in_turn.take(wanted as usize).collect();
        let ours = (0..1u64 << points.len())
            .filter(|region| region % u64::from(part.of) == u64::from(part.number));
        let left = |region: u64| (0..points.len()).map(|point| region >> point & 1 == 1).collect();
        Self { first: first.paths(), left: ours.map(left).collect(), points }
    }

    /// What must hold of a prefix of the class that ends before the choice, for it to be of interest here:
    /// `None` if no such prefix is, and an empty term if all are.
    pub fn holds(
        &self,
        builder: &mut GoalBuilder<'_>,
        class: &Class,
        choice: Choice,
    ) -> Option<Option<TermId>> {
        let decided: Vec<Decided> =
            self.points.iter().map(|&point| self.decided(class, choice, point)).collect();
        let mut regions = Vec::new();
        for left in &self.left {
            let against = |(decided, left): (&Decided, &bool)| match *decided {
                Decided::Always(has_left) => (has_left != *left).then_some(None),
                Decided::With(event, has_left) => (has_left != *left).then_some(Some(event)),
                Decided::Open => None,
            };
            // What stands against the prefix being in the region; nothing can be done about some of it.
            let against: Option<Vec<EventId>> =
                decided.iter().zip(left).filter_map(against).collect();
            match against {
                None => {}
                Some(events) if events.is_empty() => return Some(None),
                Some(events) => {
                    let not_yet: Vec<TermId> = events
                        .into_iter()
                        .map(|event| {
                            let taken = builder.taken(event);
                            builder.terms.not(taken)
                        })
                        .collect();
                    regions.push(builder.terms.and(&not_yet));
                }
            }
        }
        (!regions.is_empty()).then(|| Some(builder.terms.or(&regions)))
    }

    fn decided(&self, class: &Class, choice: Choice, (thread, point): (usize, usize)) -> Decided {
        let first = &self.first.threads[thread];
        let Some(here) = class.threads.iter().position(|path| path.creation == first.creation)
        else {
            return Decided::Open;
        };
        let path = &class.threads[here];
        let same = path.agreement(&first.events);
        if let Some(number) = choice.of_thread(here) {
            return match number {
                // It has left, or passed the point, before it comes to the choice.
                _ if same < number.min(point + 1) => Decided::Always(true),
                _ if number > point => Decided::Always(false),
                // Up to here it is on the path, and now it does something else.
                _ if !choice.is_cut() && same > number => Decided::Always(true),
                _ => Decided::Open,
            };
        }
        if same > point {
            let event = &path.events[point];
            let step = match event.kind {
                Kind::Try => Some(event.id),
                _ => path.step_before(point),
            };
            return step.map_or(Decided::Open, |step| Decided::With(step, false));
        }
        // A thread that only ends earlier has not left the path.
        match path.first_uncovered(same) {
            Some(step) => Decided::With(step, true),
            None => Decided::Open,
        }
    }
}

/// A number that is the same for the same value in every process of one build of foretell.
pub(crate) fn digest(value: &impl Hash) -> u64 {
    // With fixed keys, unlike the hasher of a map.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
