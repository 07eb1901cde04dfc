//! Past the recorded path: steps after which a thread may leave the path that it took in the run.
//!
//! A prediction is about the events of one run. Two threads that both look whether something is
//! there and of which only the first inserts it show no second insertion to predict. So this asks
//! which reads that feed a branch or an address can return something else in another interleaving,
//! and gives a validated prefix that ends right after the read. What comes then is unknown: the
//! prefix is to be forced on the program (002 chapter 5 forces patterns the same way).
//!
//! What is asked:
//! - with terms: the branch comes out differently, or the address is another one, whatever the reason
//!   (all instances of a code location are decided); and where that is possible, also by the writes
//!   before and after the read one by one, because other runs come of it;
//! - without: the read, which a branch of its thread follows, returns another value. Its recorded
//!   value is demanded by the thread's next event instead of the read itself (`delay`), so every
//!   thread may end with a read of something else and none goes on after it;
//! - a try of a lock or semaphore, a condition over shared variables, or (without terms) an atomic
//!   read-modify-write comes out differently;
//! - without any recorded access: locks are taken in another order.
//!
//! A read that comes before the write it saw is asked about twice: with the writing thread right
//! before its write, or before it takes the lock that both use (so that both have looked before
//! either changes), and without.
//!
//! Which reads another thread can have an influence on at all is found first (`influence`);
//! a value may go through memory of the thread's own before it comes to the branch.
//!
//! Guaranteed: the prefix is feasible and its last step sees what is told. Missed: values that
//! need more than one read of another value on a path without terms, and what the limits leave
//! out, which is counted.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use foretell_model::assertions::Assertions;
use foretell_model::ctp::{Action, ConcurrentTraceProgram, CtpVariable, Role};
use foretell_model::must_order::MustOrder;
use foretell_model::validate::validate;
use foretell_solve::Budget;
use foretell_solve::encode::Mode;
use foretell_trace::sexpr::print_value;
use foretell_trace::{
    EventId, ObjectId, Op, Scope, Sort, SyncOp, Term, TermId, ThreadId, Trace, Value, VariableId,
};

use crate::access::{Accesses, Cell, Location};
use crate::asking::{Answered, Asker, Prepare, Way, in_windows};
use crate::engine::Verdict;
use crate::finding::{WitnessSchedule, access_info, fnv, place};
use crate::goal::{Goal, GoalBuilder, Moment};
use crate::influence::influenced_reads;
use crate::limits::{DIVERGENCE_CONFLICTS, MOST_WAYS, QUESTIONS_PER_DIVERGENCE};
use crate::options::{Model, Options, Window};
use crate::predict::{PredictError, constrained, retain_part};
use crate::question::Subject;
use crate::sample::by_location;
use crate::witness::context_switches;

/// What [`divergences`] found.
#[derive(Clone, Debug, Default)]
pub struct Divergences {
    /// Prefixes after which a thread may leave its path, the most promising first.
    pub found: Vec<Divergence>,
    /// So many code locations were asked about.
    pub asked: usize,
    /// So many cannot see anything else in any interleaving.
    pub impossible: usize,
    /// So many are not decided.
    pub undecided: usize,
    /// So many code locations were left out by the limits.
    pub left_out: usize,
    /// So many further steps at code locations that cannot see anything else, as far as they were
    /// asked about, were not asked about.
    pub same_places: usize,
    /// What was not looked at or not decided, one sentence each.
    pub unseen: Vec<String>,
    /// Answers of a solver that our own validator refused. Always empty, or foretell has a bug.
    pub internal_errors: Vec<String>,
}

/// A feasible prefix whose last step sees something else than in the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Stays the same as long as the code locations and the threads do.
    pub id: String,
    /// The step: a read, a try, an acquire.
    pub event: EventId,
    /// What it decides.
    pub feeds: Feeds,
    /// The value that the step saw in the run and the one that it sees in the prefix, where known.
    pub values: Option<(Value, Value)>,
    /// The write that the step sees now; `None` is the initial value, or no value is read.
    pub source: Option<EventId>,
    /// The thread of the write that the step saw in the run stands right before it.
    pub overlapping: bool,
    /// How to make it happen. The step is the last of the order where it is a read, and among the
    /// next steps where its kind depends on how it comes out.
    pub schedule: WitnessSchedule,
    /// One sentence for people.
    pub detail: String,
}

/// What depends on what the step sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feeds {
    /// This branch comes out differently.
    Branch(EventId),
    /// This access is of another location.
    Address(EventId),
    /// The step itself: a try, or a condition over shared variables.
    Itself,
    /// The thread's path, one does not know how: the trace has no terms.
    Path,
    /// What the thread does under the lock was not recorded.
    Unrecorded,
}

/// How a step comes to see something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Relation {
    /// It comes before the other event while the other's thread stands as near to it as locks let.
    BothBefore,
    /// It comes before all that the other event's thread need not have done.
    First,
    /// It comes before the other event.
    Before,
    /// It comes after the other event.
    After,
    /// Nothing more is asked.
    Anyhow,
}

/// One way to make a step see something else.
#[derive(Clone, Debug)]
struct OtherWay {
    event: EventId,
    /// The last step of the prefix.
    until: EventId,
    feeds: Feeds,
    relation: Relation,
    /// What the relation is about.
    other: Option<EventId>,
    /// The write (or acquire) that the step saw in the run or sees now.
    write: Option<EventId>,
    /// All of them, and what is fed.
    events: Vec<EventId>,
}

/// How many ways of one question are asked about at first, and then at once.
const WAYS: usize = 4;
const WAYS_AGAIN: usize = 64;
/// Events in a window of a long trace at most.
const WINDOW: usize = 1024;
/// A branch over more reads than this is asked about the last ones only.
const READS: usize = 8;

/// Which steps can see something else than in the run, so that the thread may leave its path?
/// At most [`Options::divergences`] are reported.
pub fn divergences(trace: &Trace, options: &Options) -> Result<Divergences, PredictError> {
    let mut result = Divergences::default();
    if options.divergences == 0 {
        return Ok(result);
    }
    if !trace.metadata.observed_order {
        result.unseen.push(
            "what reads could see instead is not looked for: the trace has no recorded order"
                .into(),
        );
        return Ok(result);
    }
    let options = Options {
        mode: Mode::Prefix,
        budget: Budget { conflicts: options.budget.conflicts.min(DIVERGENCE_CONFLICTS) },
        window: Window { most: options.window.most.min(WINDOW), further: 0, ..options.window },
        ..options.clone()
    };
    let by_value = !trace.metadata.symbolic || options.model == Model::Causal;
    let order = MustOrder::new(trace)?;
    let chains = trace.events_by_thread();
    let search = Search { trace, chains: &chains, order: &order, by_value };
    let (anyhow, mut others) = search.questions(in_windows(trace, &options));
    let prepare = |ctp: ConcurrentTraceProgram| match by_value {
        true => Ok(delay(trace, constrained(ctp, options.model)?)),
        false => constrained(ctp.with_assertions(Assertions::Hold), options.model),
    };
    let accesses = Accesses::new(trace);
    let mut asking = Asking {
        search: &search,
        options: &options,
        asker: None,
        accesses: &accesses,
        known: HashSet::new(),
        result,
    };
    // Where nothing else can be seen whatever the reason, it need not be asked about one by one.
    let mut possible: HashSet<Location> = HashSet::new();
    asking.ask(anyhow, &prepare, &mut |location| _ = possible.insert(location))?;
    others.retain(|asked| {
        let fed = matches!(asked.ways[0].feeds, Feeds::Branch(_) | Feeds::Address(_));
        !fed || possible.contains(&accesses.location(asked.ways[0].until))
    });
    asking.ask(others, &prepare, &mut |_| {})?;
    let mut result = asking.result;
    if result.same_places > 0 {
        result.unseen.push(format!(
            "{} further instances of reads at the same code locations were not examined",
            result.same_places
        ));
    }
    result.found.sort_by_key(|found| !found.overlapping);
    if result.found.len() > options.divergences {
        result.left_out += result.found.len() - options.divergences;
        result.unseen.push(format!(
            "{} further places where a read sees something else are not reported",
            result.found.len() - options.divergences
        ));
        result.found.truncate(options.divergences);
    }
    if result.undecided > 0 {
        result.unseen.push(format!(
            "whether {} reads could see something else was not decided",
            result.undecided
        ));
    }
    Ok(result)
}

/// One question: ways to make the steps at one place see something else.
struct Asked {
    /// The first of them.
    ways: Vec<OtherWay>,
    /// The others: asked about when none of the first is possible.
    rest: Vec<OtherWay>,
    /// So many more were not kept.
    dropped: u64,
}

/// Asks, and keeps what is found.
struct Asking<'s, 'a> {
    search: &'s Search<'a>,
    options: &'s Options,
    asker: Option<Asker<'s>>,
    accesses: &'s Accesses<'a>,
    known: HashSet<(Location, &'static str, Option<Location>, bool)>,
    result: Divergences,
}

impl<'s> Asking<'s, '_> {
    /// Asks until each question is decided for all its ways; tells the last reads of those that are
    /// possible.
    fn ask(
        &mut self,
        mut questions: Vec<Asked>,
        prepare: &'s Prepare<'s>,
        possible: &mut dyn FnMut(Location),
    ) -> Result<(), PredictError> {
        let most = self.options.divergences * QUESTIONS_PER_DIVERGENCE;
        if questions.len() > most {
            let over = questions.len() - most;
            self.result.left_out += over;
            self.result.unseen.push(format!(
                "{over} further places where a read might see something else were not examined"
            ));
            questions.truncate(most);
        }
        retain_part(&mut questions, self.options);
        // Questions about the state at the end make an encoding larger for all.
        let at_end = |asked: &Asked| asked.ways[0].feeds == Feeds::Itself;
        questions.sort_by_key(at_end);
        while !questions.is_empty() {
            let mut again = Vec::new();
            for group in questions.chunk_by_mut(|one, two| at_end(one) == at_end(two)) {
                again.extend(self.ask_group(group, prepare, possible)?);
            }
            questions = again;
        }
        Ok(())
    }

    /// Asks about the first ways; gives the questions whose rest is to be asked about next.
    fn ask_group(
        &mut self,
        group: &mut [Asked],
        prepare: &'s Prepare<'s>,
        possible: &mut dyn FnMut(Location),
    ) -> Result<Vec<Asked>, PredictError> {
        let Search { trace, chains, order, .. } = *self.search;
        let mut asker = match self.asker.take() {
            Some(asker) => asker,
            None => Asker::new(trace, chains, order, self.options, prepare)?,
        };
        let ways: Vec<&[OtherWay]> = group.iter().map(|asked| asked.ways.as_slice()).collect();
        let mut next: Vec<bool> = vec![false; group.len()];
        asker.ask(&ways, &mut |number, answer| {
            let asked = &group[number];
            if let Verdict::Impossible { .. } = answer.verdict {
                self.result.same_places += usize::try_from(asked.dropped).unwrap_or(usize::MAX);
                if !asked.rest.is_empty() {
                    match self.options.is_late() {
                        true => self.result.same_places += asked.rest.len(),
                        false => next[number] = true,
                    }
                }
                if next[number] {
                    return;
                }
            }
            let found = self.search.found(&asked.ways, answer, &mut self.result);
            let Some(divergence) = found else { return };
            possible(self.accesses.location(asked.ways[0].until));
            let source = divergence.source.map(|source| self.accesses.location(source));
            let location = self.accesses.location(divergence.event);
            let key = (location, divergence.feeds_kind(), source, divergence.overlapping);
            if self.known.insert(key) {
                self.result.found.push(divergence);
            }
        })?;
        self.asker = Some(asker);
        let next = group.iter_mut().zip(next).filter(|(_, next)| *next);
        let again = next.map(|(asked, _)| {
            let mut ways = std::mem::take(&mut asked.rest);
            let rest = ways.split_off(ways.len().min(WAYS_AGAIN));
            Asked { ways, rest, dropped: 0 }
        });
        Ok(again.collect())
    }
}

impl Divergence {
    /// The word for what is fed.
    pub fn feeds_kind(&self) -> &'static str {
        match self.feeds {
            Feeds::Branch(_) => "branch",
            Feeds::Address(_) => "address",
            Feeds::Itself => "outcome",
            Feeds::Path => "path",
            Feeds::Unrecorded => "unrecorded",
        }
    }
}

/// A value for people: numbers that look negative are, and those that look like addresses are in
/// hexadecimal.
pub fn shown(value: &Value) -> String {
    match value {
        Value::BitVec { width: 2.., bits } => {
            let shift = 64 - u32::from(value.sort().width().unwrap_or(64).min(64));
            let number = ((bits << shift) as i64) >> shift;
            match number.unsigned_abs() >> 32 {
                0 => number.to_string(),
                _ => format!("{bits:#x}"),
            }
        }
        Value::BitVec { bits, .. } => bits.to_string(),
        other => print_value(other),
    }
}

/// Reads demand nothing themselves; the thread's next event demands that they saw what they saw in
/// the run. The last assignment of such a read says whether it did.
fn delay(trace: &Trace, mut ctp: ConcurrentTraceProgram) -> ConcurrentTraceProgram {
    for chain in ctp.threads.clone() {
        let mut demand: Option<TermId> = None;
        for event in chain {
            let delayed = matches!(trace.event(ctp.event(event).origin).op, Op::Read(_));
            let variable = VariableId::from(ctp.variables.len());
            let described = &mut ctp.events[event.index()];
            let (thread, terms) = (described.thread, &mut ctp.terms);
            if let Action::Assert { .. } = described.action {
                // Nothing is asked about assertions here, but a thread may not come to one by
                // another path.
                let guard = terms.bool(true);
                described.action = Action::Guarded { guard, assignments: Vec::new() };
            }
            let before = demand.take();
            match &mut described.action {
                Action::Guarded { guard, assignments } => {
                    if delayed && !terms.is_true(*guard) {
                        assignments.push((variable, *guard));
                        *guard = terms.bool(true);
                        demand = Some(terms.variable(variable, Sort::BOOL));
                        ctp.variables.push(CtpVariable {
                            name: format!("as recorded@{}", event.0).into(),
                            sort: Sort::BOOL,
                            scope: Scope::Local(thread),
                            initial: Some(Value::Bool(true)),
                            role: Role::ReadValue,
                        });
                    }
                    *guard = terms.and(&[*guard, before.unwrap_or(*guard)]);
                }
                Action::Transition { predicate, .. } => {
                    *predicate = terms.and(&[*predicate, before.unwrap_or(*predicate)]);
                }
                Action::Assert { .. } => unreachable!("turned into a guarded step above"),
            }
        }
    }
    ctp
}

impl Way for OtherWay {
    fn goal(&self, subject: &Subject<'_>) -> Option<Goal> {
        let ctp = subject.ctp;
        let in_ctp = |event: EventId| ctp.event_of(event);
        let (event, until) = (in_ctp(self.event)?, in_ctp(self.until)?);
        let mut builder = GoalBuilder::new(ctp);
        let mut parts = Vec::new();
        match self.feeds {
            Feeds::Itself => {
                let Action::Guarded { guard, .. } = ctp.event(event).action else { return None };
                let comes_out = builder.at(Moment::End, guard, None);
                parts.push(builder.next(event));
                parts.push(builder.terms.not(comes_out));
            }
            Feeds::Unrecorded => parts.push(builder.taken(until)),
            Feeds::Path => {
                let Action::Guarded { assignments, .. } = &ctp.event(event).action else {
                    return None;
                };
                let &(_, as_recorded) = assignments.last()?;
                let seen = builder.at(Moment::Before(event), as_recorded, None);
                parts.push(builder.taken(until));
                parts.push(builder.terms.not(seen));
            }
            Feeds::Branch(fed) | Feeds::Address(fed) => {
                let Action::Guarded { assignments, .. } = &ctp.event(until).action else {
                    return None;
                };
                let result = assignments
                    .iter()
                    .find(|(variable, _)| ctp.variables[variable.index()].role == Role::ReadValue);
                let &(result, value) = result?;
                let here = Moment::Before(until);
                let value = builder.at(here, value, None);
                let demands = builder.local_parts(in_ctp(fed)?);
                let demands: Vec<TermId> = demands
                    .into_iter()
                    .map(|part| builder.at(here, part, Some((result, value))))
                    .collect();
                let same = builder.terms.and(&demands);
                parts.push(builder.taken(until));
                parts.push(builder.terms.not(same));
            }
        }
        if let Some(other) = self.other {
            let other = in_ctp(other)?;
            parts.push(match self.relation {
                Relation::After => builder.terms.before(other, event),
                _ => builder.terms.before(event, other),
            });
            if self.relation == Relation::BothBefore {
                let done = stands_before(ctp, event, other)?;
                parts.push(builder.terms.before(done, event));
                parts.push(builder.terms.before(until, other));
            }
        }
        let formula = builder.terms.and(&parts);
        let goal = builder.finish(formula);
        (!goal.is_impossible()).then_some(goal)
    }

    fn window(&self) -> &[EventId] {
        &self.events
    }
}

/// The last event that the other's thread can have done when it stands before the other event, or
/// before the first lock around it that the event's thread holds as well. `None`: it has none.
fn stands_before(ctp: &ConcurrentTraceProgram, event: EventId, other: EventId) -> Option<EventId> {
    let around = |event: EventId| {
        let here = ctp.event(event);
        let position = |event: EventId| ctp.event(event).position;
        ctp.sections.iter().filter(move |section| {
            section.thread == here.thread
                && section.acquire.is_some_and(|acquire| position(acquire) <= here.position)
                && section.release.is_none_or(|release| here.position <= position(release))
        })
    };
    let held: HashSet<ObjectId> = around(event).map(|section| section.lock).collect();
    let common = around(other).filter(|section| held.contains(&section.lock));
    let border = common.filter_map(|section| section.acquire);
    let described = ctp.event(other);
    let first = border.map(|acquire| ctp.event(acquire).position).min();
    let position = first.unwrap_or(described.position).checked_sub(1)?;
    Some(ctp.threads[described.thread.index()][position as usize])
}

/// What is looked through for questions, and how answers are told.
struct Search<'a> {
    trace: &'a Trace,
    chains: &'a [Vec<EventId>],
    order: &'a MustOrder,
    by_value: bool,
}

/// The questions (by the first half of the key), each with [`WAYS`] ways first. These are of
/// different places (the second half) as far as there are any, and for each place of another time: in
/// a loop, what is computed from a read may come out the same at one place every time and differ at
/// the next, and the first read may have no other value to see. At most `most` ways are kept for a
/// place.
fn from_different_places<Q: Copy + Eq + Hash, P: Copy + Eq + Hash>(
    ways: impl Iterator<Item = ((Q, P), OtherWay)>,
    most: usize,
) -> Vec<Asked> {
    let by_question = by_location(ways, most).into_iter().map(|((question, _), sample)| {
        let dropped = sample.dropped();
        (question, (sample.kept, dropped))
    });
    let mut questions = Vec::new();
    for (_, places) in by_location(by_question, usize::MAX) {
        let dropped = places.kept.iter().map(|(_, dropped)| dropped).sum();
        let total: usize = places.kept.iter().map(|(ways, _)| ways.len()).sum();
        let turn = |(place, (mut ways, _)): (usize, (Vec<OtherWay>, u64))| {
            // A few that lie far apart come first.
            let step = ways.len().div_ceil(WAYS);
            let mut number = 0;
            ways.sort_by_cached_key(|_| {
                number += 1;
                (number - 1) % step
            });
            let first = place % ways.len().min(WAYS);
            ways.rotate_left(first);
            ways.into_iter()
        };
        let mut places: Vec<_> = places.kept.into_iter().enumerate().map(turn).collect();
        let mut ways = Vec::with_capacity(total);
        while ways.len() < total {
            ways.extend(places.iter_mut().filter_map(Iterator::next));
        }
        let rest = ways.split_off(WAYS.min(total));
        questions.push(Asked { ways, rest, dropped });
    }
    questions
}

/// The last writes of a variable by different threads or at different places, the latest first.
type Writers = Vec<(ThreadId, Location, EventId)>;

/// How many of them are remembered for each variable. (That a branch can come out differently at all
/// is asked without them.)
const WRITERS: usize = 8;

fn remember(writers: &mut Writers, thread: ThreadId, location: Location, event: EventId) {
    writers.retain(|&(other, place, _)| (other, place) != (thread, location));
    writers.insert(0, (thread, location, event));
    writers.truncate(WRITERS);
}

impl Search<'_> {
    /// One question for each place where something else can be seen whatever the reason; and one
    /// for each place, what it may see instead, and how. One pass forward for what was written before
    /// a read, one backward for what was written after.
    fn questions(&self, in_windows: bool) -> (Vec<Asked>, Vec<Asked>) {
        let feeding = self.feeding();
        let mut accesses = Accesses::new(self.trace);
        let mut ways: Vec<OtherWay> = Vec::new();
        let mut here = Vec::new();
        for forward in [true, false] {
            let mut writers: HashMap<Cell, Writers> = HashMap::new();
            let total = self.trace.events.len();
            for step in 0..total {
                let event = EventId::from(if forward { step } else { total - 1 - step });
                let thread = self.trace.event(event).thread;
                accesses.of(event, &mut here);
                for &(until, feeds) in feeding.get(&event).into_iter().flatten() {
                    for access in here.iter().filter(|access| !access.writes) {
                        let known = writers.get(&access.cell).into_iter().flatten();
                        for (rank, &(writer, _, write)) in known.enumerate() {
                            if writer == thread || self.sees_the_same(event, write, forward) {
                                continue;
                            }
                            let relations: &[Relation] = match (forward, rank) {
                                // What it saw in the run: it can come before that.
                                (true, 0) => {
                                    &[Relation::BothBefore, Relation::First, Relation::Before]
                                }
                                _ => &[Relation::After],
                            };
                            ways.extend(self.ways(event, until, feeds, write, relations));
                        }
                    }
                }
                let location = accesses.location(event);
                for access in here.iter().filter(|access| access.writes) {
                    remember(writers.entry(access.cell).or_default(), thread, location, event);
                }
            }
        }
        ways.extend(self.outcomes());
        ways.extend(self.lock_orders());
        let asked = ways.into_iter().map(|way| {
            let write = way.write.map(|write| accesses.location(write));
            // The plain order is only asked for where the other thread cannot be left out.
            let relation = match way.relation {
                Relation::First => Relation::Before,
                other => other,
            };
            let key: (Location, Option<Location>, Relation) =
                (accesses.location(way.event), write, relation);
            let fed = match way.feeds {
                Feeds::Branch(fed) | Feeds::Address(fed) => Some(accesses.location(fed)),
                _ => None,
            };
            ((key, fed), way)
        });
        let most = if in_windows { WAYS } else { MOST_WAYS };
        let mut questions = from_different_places(asked, most);
        questions.sort_by_key(|asked| asked.ways[0].relation);
        let anyhow = self.anyhow(&feeding).into_iter().map(|way| {
            let fed = match way.feeds {
                Feeds::Branch(fed) | Feeds::Address(fed) => Some(accesses.location(fed)),
                _ => None,
            };
            (((accesses.location(way.until), fed), ()), way)
        });
        let anyhow = from_different_places(anyhow, most);
        (anyhow, questions)
    }

    /// For each branch and address that other threads can have an influence on: it comes out
    /// differently, whatever the reason.
    fn anyhow(&self, feeding: &HashMap<EventId, Vec<(EventId, Feeds)>>) -> Vec<OtherWay> {
        if self.by_value {
            return Vec::new();
        }
        let influenced = influenced_reads(self.trace, self.chains, self.order);
        let mut fed: Vec<(EventId, EventId, Feeds)> = Vec::new();
        for (&read, all) in feeding.iter().filter(|(read, _)| influenced.contains(*read)) {
            fed.extend(all.iter().filter_map(|&(until, feeds)| match feeds {
                Feeds::Branch(event) | Feeds::Address(event) => Some((event, until, feeds)),
                _ => None,
            }));
            debug_assert!(matches!(
                self.trace.event(read).op,
                Op::Read(_) | Op::ReadModifyWrite(_)
            ));
        }
        fed.sort_unstable_by_key(|&(event, until, _)| (event, until));
        fed.dedup_by_key(|&mut (event, until, _)| (event, until));
        fed.into_iter()
            .map(|(event, until, feeds)| OtherWay {
                event: until,
                until,
                feeds,
                relation: Relation::Anyhow,
                other: None,
                write: None,
                events: vec![until, event],
            })
            .collect()
    }

    fn ways(
        &self,
        event: EventId,
        until: EventId,
        feeds: Feeds,
        write: EventId,
        relations: &[Relation],
    ) -> Vec<OtherWay> {
        let mut events = vec![event, until, write];
        if let Feeds::Branch(fed) | Feeds::Address(fed) = feeds {
            events.push(fed);
        }
        let possible = |relation: &&Relation| match relation {
            Relation::After => !self.order.before(event, write),
            _ => !self.order.before(write, event),
        };
        let way = |&relation: &Relation| {
            let other = match relation {
                Relation::First => {
                    let thread = self.trace.event(write).thread;
                    self.chains[thread.index()][self.order.count_before(thread, event) as usize]
                }
                _ => write,
            };
            let (other, write, events) = (Some(other), Some(write), events.clone());
            OtherWay { event, until, feeds, relation, other, write, events }
        };
        relations.iter().filter(possible).map(way).collect()
    }

    /// Would the read see the same value from this write as it did? Only asked where the written
    /// value cannot change.
    fn sees_the_same(&self, read: EventId, write: EventId, forward: bool) -> bool {
        let bits = |event: EventId| match &self.trace.event(event).op {
            Op::Read(access) | Op::Write(access) => {
                Some((access.variable, access.value?, access.term))
            }
            _ => None,
        };
        match (bits(read), bits(write)) {
            (Some((x, seen, _)), Some((y, written, term))) => {
                !forward && x == y && seen == written && (self.by_value || term.is_none())
            }
            _ => false,
        }
    }

    /// For each read: the last read of what it feeds, and what that is.
    fn feeding(&self) -> HashMap<EventId, Vec<(EventId, Feeds)>> {
        match self.by_value {
            true => self.followed_by_branches(),
            false => self.fed(),
        }
    }

    /// Without terms: each read that a branch of its thread follows. Where no branch is recorded
    /// at all, each read may be looked at.
    fn followed_by_branches(&self) -> HashMap<EventId, Vec<(EventId, Feeds)>> {
        let is_branch = |event: &EventId| matches!(self.trace.event(*event).op, Op::Branch(_));
        let any = self.chains.iter().flatten().any(is_branch);
        let mut feeding = HashMap::new();
        for chain in self.chains {
            let last = chain.iter().rposition(is_branch);
            let until = if any { last.unwrap_or(0) } else { chain.len() };
            for &event in &chain[..until] {
                if let Op::Read(_) = self.trace.event(event).op {
                    feeding.insert(event, vec![(event, Feeds::Path)]);
                }
            }
        }
        feeding
    }

    /// With terms: the reads that branches and addresses are made of.
    fn fed(&self) -> HashMap<EventId, Vec<(EventId, Feeds)>> {
        let mut feeding: HashMap<EventId, Vec<(EventId, Feeds)>> = HashMap::new();
        let mut leaves: HashMap<TermId, Vec<u32>> = HashMap::new();
        for (position, event) in self.trace.events.iter().enumerate() {
            let id = EventId::from(position);
            let (term, feeds) = match &event.op {
                Op::Branch(condition) => (condition.term, Feeds::Branch(id)),
                Op::Read(access) | Op::Write(access) => (access.address, Feeds::Address(id)),
                Op::ReadModifyWrite(step) => (step.address, Feeds::Address(id)),
                _ => continue,
            };
            let Some(term) = term else { continue };
            let reads = leaves.entry(term).or_insert_with(|| {
                let leaves = self.trace.terms.leaves(term);
                let mut reads: Vec<u32> = leaves
                    .into_iter()
                    .filter_map(|leaf| match *self.trace.terms.term(leaf) {
                        Term::ReadValue(_, index) => Some(index),
                        _ => None,
                    })
                    .collect();
                reads.sort_unstable();
                reads.drain(..reads.len().saturating_sub(READS));
                reads
            });
            let chain = &self.chains[event.thread.index()];
            let Some(until) = reads.last().and_then(|&last| chain.get(last as usize)) else {
                continue;
            };
            for &read in reads.iter() {
                feeding.entry(chain[read as usize]).or_default().push((*until, feeds));
            }
        }
        feeding
    }

    /// Steps that tell by themselves how they come out.
    fn outcomes(&self) -> Vec<OtherWay> {
        let terms = &self.trace.terms;
        let mentions_shared = |term: TermId| {
            terms.leaves(term).iter().any(|&leaf| match *terms.term(leaf) {
                Term::Variable(variable) => {
                    self.trace.variables[variable.index()].scope == Scope::Shared
                }
                _ => false,
            })
        };
        let events = self.trace.events.iter().enumerate().filter(|(_, event)| match &event.op {
            Op::Sync(
                _,
                SyncOp::AcquireFailed(_)
                | SyncOp::SemaphoreWaitFailed
                | SyncOp::Poll { ready: false, .. },
            ) => true,
            Op::Sync(_, SyncOp::Acquire(step)) => step.by_try,
            Op::Sync(_, SyncOp::SemaphoreWait { by_try, .. }) => *by_try,
            Op::ReadModifyWrite(_) => self.by_value,
            Op::Branch(condition) => condition.term.is_some_and(mentions_shared),
            Op::Guarded(step) => mentions_shared(step.guard),
            _ => false,
        });
        events
            .map(|(position, _)| {
                let event = EventId::from(position);
                let (feeds, relation) = (Feeds::Itself, Relation::Anyhow);
                let (until, events) = (event, vec![event]);
                OtherWay { event, until, feeds, relation, other: None, write: None, events }
            })
            .collect()
    }

    /// Where no access was recorded, nobody knows what a thread sees under a lock: it can take it
    /// before the one that had it before.
    fn lock_orders(&self) -> Vec<OtherWay> {
        let is_access = |op: &Op| {
            matches!(op, Op::Read(_) | Op::Write(_) | Op::ReadModifyWrite(_) | Op::Guarded(_))
        };
        if self.trace.events.iter().any(|event| is_access(&event.op)) {
            return Vec::new();
        }
        let accesses = Accesses::new(self.trace);
        let mut holders: HashMap<ObjectId, Writers> = HashMap::new();
        let mut ways = Vec::new();
        for (position, event) in self.trace.events.iter().enumerate() {
            let (Op::Sync(lock, SyncOp::Acquire(_)), id) = (&event.op, EventId::from(position))
            else {
                continue;
            };
            let known = holders.entry(*lock).or_default();
            let before = known.iter().find(|&&(thread, ..)| thread != event.thread);
            if let Some(&(.., before)) = before {
                let relations = [Relation::BothBefore];
                ways.extend(self.ways(id, id, Feeds::Unrecorded, before, &relations));
            }
            remember(known, event.thread, accesses.location(id), id);
        }
        ways
    }

    /// The divergence that an answer shows.
    fn found(
        &self,
        ways: &[OtherWay],
        answer: Answered<'_>,
        result: &mut Divergences,
    ) -> Option<Divergence> {
        result.asked += 1;
        let (number, mut witness) = match answer.verdict {
            Verdict::Possible(number, witness) => (number, witness),
            Verdict::Impossible { .. } => {
                result.impossible += 1;
                return None;
            }
            Verdict::Unknown(_) => {
                result.undecided += 1;
                return None;
            }
            Verdict::Refused(why) => {
                let about = place(self.trace, &access_info(self.trace, ways[0].event));
                result.internal_errors.push(format!("what the read{about} can see: {why}"));
                return None;
            }
        };
        let way = &ways[answer.ways[number]];
        let ctp = answer.ctp;
        let (event, until) = (ctp.event_of(way.event)?, ctp.event_of(way.until)?);
        if let Some(last) = witness.order.iter().position(|&taken| taken == until) {
            witness.order.truncate(last + 1);
        }
        let run = match validate(ctp, &witness) {
            Ok(run) => run,
            Err(rejection) => {
                result.internal_errors.push(format!("a prefix is refused: {rejection}"));
                return None;
            }
        };
        let step = witness.order.iter().position(|&taken| taken == event);
        let values = step.and_then(|step| self.values(ctp, event, &run.values_after(step)));
        let mut order: Vec<EventId> =
            witness.order.iter().map(|&event| ctp.event(event).origin).collect();
        let switches = context_switches(ctp, &witness.order);
        let source = self.source(way, answer.recorded, &order);
        let mut next = Vec::new();
        match self.trace.event(way.event).op {
            _ if way.feeds != Feeds::Itself => {}
            Op::ReadModifyWrite(_) => order.push(way.event),
            _ => next.push(way.event),
        }
        if let (Relation::BothBefore, Some(write)) = (way.relation, way.write) {
            let other = self.trace.event(write);
            let done =
                order.iter().rev().find(|&&done| self.trace.event(done).thread == other.thread);
            let after = done.map_or(0, |&done| self.trace.event(done).index as usize + 1);
            next.extend(self.chains[other.thread.index()].get(after));
        }
        let schedule =
            WitnessSchedule { recorded: answer.recorded, order, next, context_switches: switches };
        let overlapping = way.relation == Relation::BothBefore;
        let feeds = way.feeds;
        let detail = self.detail(way, values.as_ref(), source);
        let id = self.id(way, source);
        let event = way.event;
        Some(Divergence { id, event, feeds, values, source, overlapping, schedule, detail })
    }

    /// Recorded and new value of a read.
    fn values(
        &self,
        ctp: &ConcurrentTraceProgram,
        event: EventId,
        state: &[Value],
    ) -> Option<(Value, Value)> {
        let recorded = match &self.trace.event(ctp.event(event).origin).op {
            Op::Read(access) => access.value?,
            Op::ReadModifyWrite(step) => step.old?,
            _ => return None,
        };
        let Action::Guarded { assignments, .. } = &ctp.event(event).action else { return None };
        let &(result, value) = assignments
            .iter()
            .find(|(variable, _)| ctp.variables[variable.index()].role == Role::ReadValue)?;
        let leaf = |leaf: &Term| match leaf {
            Term::Variable(variable) => state.get(variable.index()).cloned(),
            _ => None,
        };
        let value = ctp.terms.evaluate(value, &leaf).ok()?;
        let recorded = Value::from_bits(ctp.variables[result.index()].sort, recorded)?;
        (value != recorded).then_some((recorded, value))
    }

    /// The write that the step sees.
    fn source(&self, way: &OtherWay, recorded: usize, order: &[EventId]) -> Option<EventId> {
        let mut accesses = Accesses::new(self.trace);
        let mut here = Vec::new();
        accesses.of(way.event, &mut here);
        let cells: Vec<Cell> = here.iter().map(|access| access.cell).collect();
        let until = order.iter().position(|&event| event == way.event).unwrap_or(order.len());
        let before = order[..until].iter().rev().copied();
        let earlier = (0..recorded).rev().map(EventId::from);
        before.chain(earlier).find(|&event| {
            accesses.of(event, &mut here);
            here.iter().any(|access| access.writes && cells.contains(&access.cell))
        })
    }

    fn detail(
        &self,
        way: &OtherWay,
        values: Option<&(Value, Value)>,
        source: Option<EventId>,
    ) -> String {
        let told = |event: EventId| {
            let info = access_info(self.trace, event);
            let thread = &self.trace.threads[info.thread.index()].name;
            let of = info.variable.as_deref().map(|name| format!(" of `{name}`"));
            format!("{} by {thread}{}{}", info.op, of.unwrap_or_default(), place(self.trace, &info))
        };
        let step = told(way.event);
        let sees = match (values, way.write) {
            (Some((recorded, value)), _) => {
                format!("can see {} instead of {}", shown(value), shown(recorded))
            }
            (None, Some(before)) if way.feeds == Feeds::Unrecorded => {
                format!("can come before {}", told(before))
            }
            (None, _) => "can come out differently".into(),
        };
        let from = match (values, source) {
            (Some(_), Some(source)) => format!(", from {}", told(source)),
            (Some(_), None) => ", the initial value".into(),
            _ => String::new(),
        };
        let fed = match way.feeds {
            Feeds::Branch(fed) => format!("; then the {} goes the other way", told(fed)),
            Feeds::Address(fed) => format!("; then the {} is of another location", told(fed)),
            Feeds::Itself | Feeds::Path | Feeds::Unrecorded => String::new(),
        };
        let both = match (way.relation, way.write) {
            (Relation::BothBefore, Some(write)) if way.feeds != Feeds::Unrecorded => {
                format!("; {} is then still to come", told(write))
            }
            _ => String::new(),
        };
        format!("{step} {sees}{from}{fed}{both}")
    }

    fn id(&self, way: &OtherWay, source: Option<EventId>) -> String {
        let mut told = format!("divergence{:?}", way.relation);
        for event in [Some(way.event), source].into_iter().flatten() {
            let info = access_info(self.trace, event);
            let thread = &self.trace.threads[info.thread.index()];
            told.push_str(&place(self.trace, &info));
            told.push_str(&format!("|{}|{:?}", info.op, thread.path));
        }
        format!("{:016x}", fnv(&told))
    }
}
