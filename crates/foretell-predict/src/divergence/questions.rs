//! Which steps could come out in another way, and what is asked of each.

use std::collections::HashMap;
use std::hash::Hash;

use foretell_model::ctp::{Action, ConcurrentTraceProgram, Role};
use foretell_model::must_order::MustOrder;
use foretell_model::validate::validate;
use foretell_trace::{EventId, ObjectId, Op, Scope, SyncOp, Term, TermId, ThreadId, Trace, Value};

use super::way::{OtherWay, Relation};
use super::{Asked, Divergence, Divergences, Feeds, READS, WAYS, shown};
use crate::access::{Accesses, Cell, Location};
use crate::asking::Answered;
use crate::engine::Verdict;
use crate::finding::{WitnessSchedule, access_info, fnv, place};
use crate::influence::influenced_reads;
use crate::limits::MOST_WAYS;
use crate::sample::by_location;
use crate::witness::context_switches;

/// What is looked through for questions, and how answers are reported.
pub(super) struct Search<'a> {
    pub(super) trace: &'a Trace,
    pub(super) chains: &'a [Vec<EventId>],
    pub(super) order: &'a MustOrder,
    pub(super) by_value: bool,
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
    pub(super) fn questions(&self, in_windows: bool) -> (Vec<Asked>, Vec<Asked>) {
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

    /// Steps whose outcome is part of the record: tries, conditions, atomic updates.
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
    pub(super) fn found(
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
        let described = |event: EventId| {
            let info = access_info(self.trace, event);
            let thread = &self.trace.threads[info.thread.index()].name;
            let of = info.variable.as_deref().map(|name| format!(" of `{name}`"));
            format!("{} by {thread}{}{}", info.op, of.unwrap_or_default(), place(self.trace, &info))
        };
        let step = described(way.event);
        let sees = match (values, way.write) {
            (Some((recorded, value)), _) => {
                format!("can see {} instead of {}", shown(value), shown(recorded))
            }
            (None, Some(before)) if way.feeds == Feeds::Unrecorded => {
                format!("can come before {}", described(before))
            }
            (None, _) => "can come out differently".into(),
        };
        let from = match (values, source) {
            (Some(_), Some(source)) => format!(", from {}", described(source)),
            (Some(_), None) => ", the initial value".into(),
            _ => String::new(),
        };
        let fed = match way.feeds {
            Feeds::Branch(fed) => format!("; then the {} goes the other way", described(fed)),
            Feeds::Address(fed) => format!("; then the {} is of another location", described(fed)),
            Feeds::Itself | Feeds::Path | Feeds::Unrecorded => String::new(),
        };
        let both = match (way.relation, way.write) {
            (Relation::BothBefore, Some(write)) if way.feeds != Feeds::Unrecorded => {
                format!("; {} is then still to come", described(write))
            }
            _ => String::new(),
        };
        format!("{step} {sees}{from}{fed}{both}")
    }

    fn id(&self, way: &OtherWay, source: Option<EventId>) -> String {
        let mut described = format!("divergence{:?}", way.relation);
        for event in [Some(way.event), source].into_iter().flatten() {
            let info = access_info(self.trace, event);
            let thread = &self.trace.threads[info.thread.index()];
            described.push_str(&place(self.trace, &info));
            described.push_str(&format!("|{}|{:?}", info.op, thread.path));
        }
        format!("{:016x}", fnv(&described))
    }
}
