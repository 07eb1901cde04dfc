//! Crashes that a trace's terms and allocations can tell: an address in the first page, an address
//! outside the block that its base lies in, an access behind the end of a block, an access after the block was
//! freed by another thread (or a step of a lock that lies in it), and a divisor of zero.
//!
//! An address or divisor that depends on no read cannot change and is not asked about. "Out of
//! bounds" needs a base that stands in the address term and lies in a block whose allocation was
//! recorded; pointers that were themselves read may legitimately lead elsewhere.

use std::collections::{BTreeMap, HashMap, HashSet};

use foretell_model::ctp::{Action, ConcurrentTraceProgram, Role};
use foretell_model::must_order::MustOrder;
use foretell_trace::{
    EventId, Op, Operator, SyncOp, Term, TermId, TermStore, ThreadId, Trace, Value, VariableId,
};

use crate::access::{Accesses, Location};
use crate::finding::{AccessInfo, Words};
use crate::goal::{Goal, GoalBuilder, Moment};
use crate::influence::Fixed;
use crate::planner::goal::Formula;
use crate::property::{FindingKind, Property, Search, Shape, Text};
use crate::question::{Instance, Question, Subject};
use crate::sample::by_location;
use crate::violation::Violation;

/// What kind of fault.
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

/// How the program crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrashShape {
    /// The term, one of the trace, has a bad value when the thread comes to the event.
    Fault(Fault, TermId),
    /// The access comes after the free. Events: the access and the free.
    UseAfterFree {
        /// So does everything that the thread does at that place right before it, which may be one step of the machine (a
        /// function that reads a text).
        step: bool,
    },
    /// The access ends behind the block. Events: the access and the allocation.
    Overrun,
}

/// The property.
#[derive(Debug)]
pub struct Crash;

impl Property for Crash {
    type Shape = CrashShape;

    const TEXT: Text = Text {
        name: "crash",
        headline: "crash",
        rule: "Crash",
        description: "The program can crash in another interleaving.",
    };
    const RANK: u8 = 0;

    fn questions(search: &mut Search<'_>) -> Vec<Question> {
        questions(search.trace, search.order, search.instances)
    }

    fn goal(subject: &Subject<'_>, shape: CrashShape, events: &[EventId]) -> Option<Goal> {
        match (shape, events) {
            (CrashShape::Fault(fault, term), &[event]) => fault_goal(subject, event, fault, term),
            (CrashShape::UseAfterFree { step }, &[access, free]) => {
                let begin = if step { step_begin(subject, access) } else { access };
                let allocations = allocations_at(subject, access);
                Some(access_after_goal(subject.ctp, begin, access, free, &allocations))
            }
            (CrashShape::Overrun, &[access, made]) => {
                Some(access_after_goal(subject.ctp, access, access, made, &[]))
            }
            _ => None,
        }
    }

    fn is_well(fixed: &Fixed<'_>, shape: CrashShape, event: EventId) -> bool {
        match shape {
            // The run itself may be out of bounds without a fault.
            CrashShape::Fault(Fault::OutOfBounds { base, size }, term) => {
                let variable = match &fixed.trace.event(event).op {
                    Op::Read(access) | Op::Write(access) => access.variable,
                    Op::ReadModifyWrite(step) => step.variable,
                    _ => return false,
                };
                let memory = fixed.trace.variables[variable.index()].memory;
                let block = base..base.saturating_add(size);
                memory.is_some_and(|memory| block.contains(&memory.address)) && fixed.is_fixed(term)
            }
            CrashShape::Fault(_, term) => fixed.is_fixed(term),
            CrashShape::UseAfterFree { .. } | CrashShape::Overrun => false,
        }
    }

    fn plan(shape: CrashShape, events: usize) -> Option<Formula> {
        match (shape, events) {
            (CrashShape::UseAfterFree { .. } | CrashShape::Overrun, 2) => {
                Formula::parse("F(1 & X F 0)").ok()
            }
            _ => None,
        }
    }

    fn describe(words: &Words<'_>, shape: CrashShape, accesses: &[AccessInfo]) -> Option<String> {
        match (shape, accesses) {
            (CrashShape::Fault(fault, _), [access]) => {
                let what = match fault {
                    Fault::NullPointer => "uses a null pointer",
                    Fault::OutOfBounds { .. } => "leaves the bounds of its block",
                    Fault::DivisionByZero => "divides by zero",
                };
                Some(format!("{} {what}{}", words.thread(access), words.place(access)))
            }
            (CrashShape::UseAfterFree { .. }, [access, free]) => Some(format!(
                "{} can come after {} has freed the block{}",
                words.access(access),
                words.thread(free),
                words.place(free)
            )),
            (CrashShape::Overrun, [access, made]) => Some(format!(
                "{} goes beyond the end of the block that {} allocated{}",
                words.access(access),
                words.thread(made),
                words.place(made)
            )),
            _ => None,
        }
    }

    fn fingerprint(shape: CrashShape) -> &'static str {
        match shape {
            CrashShape::Fault(Fault::NullPointer, _) => "null",
            CrashShape::Fault(Fault::OutOfBounds { .. }, _) => "bounds",
            CrashShape::Fault(Fault::DivisionByZero, _) => "division",
            CrashShape::UseAfterFree { .. } => "",
            CrashShape::Overrun => "overrun",
        }
    }

    fn violation(accesses: &[AccessInfo], _marked: bool) -> Violation {
        match accesses.last().map(|access| access.op) {
            Some("free") => Violation::UseAfterFree,
            Some("alloc") => Violation::Overrun,
            _ => Violation::Fault,
        }
    }
}

/// Addresses below are null or next to it. A block that begins at the border of a page may have been mapped,
/// and what is mapped there later is not always recorded.
const PAGE: u64 = 4096;

struct Block {
    size: u64,
    made: EventId,
    /// The last access of each thread at each location.
    accesses: HashMap<(ThreadId, Location), EventId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Fault(u8, Location),
    AfterFree(Location, Location),
    Overrun(Location, Location),
}

/// One question for each code location and kind of crash.
pub fn questions(trace: &Trace, order: &MustOrder, limit: usize) -> Vec<Question> {
    let accesses = Accesses::new(trace);
    let chains = trace.events_by_thread();
    let fixed = Fixed::new(trace, &chains, order);
    // One instance that is well whatever happens stands for all of its place; others come before it.
    let mut well: Vec<(Key, Instance)> = Vec::new();
    let mut places: HashSet<Key> = HashSet::new();
    let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
    let mut divisors = Divisors::default();
    let mut found: Vec<(Key, Instance)> = Vec::new();
    // What was freed and not allocated again: where it is used, the trace itself has the bug.
    let mut freed: BTreeMap<u64, (u64, EventId)> = BTreeMap::new();
    // The C library of a binary, or without terms, may have allocated somewhere, which is not seen.
    let sees_all = trace.metadata.symbolic && !trace.metadata.machine_code;
    for (position, event) in trace.events.iter().enumerate() {
        let id = EventId::from(position);
        let location = accesses.location(id);
        let mut fault = |number: u8, fault: Fault, term: TermId| {
            let instance =
                Instance { shape: Shape::Crash(CrashShape::Fault(fault, term)), events: vec![id] };
            let key = Key::Fault(number, location);
            match fixed.is_well(&instance) {
                true if places.insert(key) => well.push((key, instance)),
                true => {}
                false => found.push((key, instance)),
            }
        };
        let (place, terms) = match &event.op {
            Op::Read(access) | Op::Write(access) => {
                (Some((access.variable, access.address)), [access.term, access.address])
            }
            Op::ReadModifyWrite(step) => {
                (Some((step.variable, step.address)), [step.term, step.address])
            }
            Op::Branch(condition) | Op::Assert(condition) => (None, [condition.term, None]),
            op if op.object().is_some() => (None, [None, None]),
            Op::Alloc { address, size } => {
                let block = Block { size: *size, made: id, accesses: HashMap::new() };
                blocks.insert(*address, block);
                let end = address.saturating_add((*size).max(1));
                let gone = freed.range(..end).rev();
                let gone = gone.take_while(|&(&start, &(size, _))| start + size > *address);
                for start in gone.map(|(&start, _)| start).collect::<Vec<_>>() {
                    freed.remove(&start);
                }
                continue;
            }
            Op::Free { address } => {
                let block = blocks.remove(address);
                let size = block.as_ref().map_or(0, |block| block.size);
                let users = block.map(|block| block.accesses).unwrap_or_default();
                // The compiled part of Rust's library frees what nobody refers to any more; the counts by
                // which it knows that are not all seen.
                let file = event.site.map(|site| &*trace.sites[site.index()].file);
                if file.is_some_and(|file| file.starts_with("/rustc/")) {
                    continue;
                }
                if trace.metadata.knows_what_is_freed() && size > 0 && !address.is_multiple_of(PAGE)
                {
                    freed.insert(*address, (size, id));
                }
                let mut users: Vec<_> = users.into_iter().collect();
                users.sort_unstable_by_key(|&(_, access)| access);
                for ((thread, used_at), access) in users {
                    if thread != event.thread && !order.before(access, id) {
                        for step in [true, false] {
                            let shape = Shape::Crash(CrashShape::UseAfterFree { step });
                            let instance = Instance { shape, events: vec![access, id] };
                            found.push((Key::AfterFree(used_at, location), instance));
                        }
                    }
                }
                continue;
            }
            _ => continue,
        };
        for divisor in terms.into_iter().flatten().flat_map(|term| divisors.new_in(trace, term)) {
            fault(2, Fault::DivisionByZero, divisor);
        }
        if let Some(address) = place.and_then(|(_, address)| address) {
            fault(0, Fault::NullPointer, address);
            for base in summands(&trace.terms, address) {
                if let Some((base, size)) = block_of(&blocks, base) {
                    fault(1, Fault::OutOfBounds { base, size }, address);
                }
            }
        }
        for (address, length) in used_memory(trace, &event.op) {
            if let Some((&start, &(size, free))) = freed.range(..=address).next_back()
                && address - start < size
            {
                let shape = Shape::Crash(CrashShape::UseAfterFree { step: false });
                let key = Key::AfterFree(location, accesses.location(free));
                found.push((key, Instance { shape, events: vec![id, free] }));
                continue;
            }
            let Some((&start, block)) = blocks.range_mut(..=address).next_back() else { continue };
            if address - start < block.size {
                block.accesses.insert((event.thread, location), id);
            }
            if sees_all && is_overrun(start, block.size, address, length) {
                let shape = Shape::Crash(CrashShape::Overrun);
                let key = Key::Overrun(location, accesses.location(block.made));
                found.push((key, Instance { shape, events: vec![id, block.made] }));
            }
        }
    }
    let open: HashSet<Key> = found.iter().map(|(key, _)| *key).collect();
    well.retain(|(key, _)| !open.contains(key));
    let questions =
        by_location(found.into_iter().chain(well), limit).into_iter().map(|(_, sample)| {
            let unexamined = sample.dropped();
            let kind = FindingKind::Crash;
            Question { kind, instances: sample.kept, rest: Vec::new(), unexamined }
        });
    questions.collect()
}

/// The memory that the step uses: addresses and lengths.
pub(crate) fn used_memory(trace: &Trace, op: &Op) -> impl Iterator<Item = (u64, u64)> {
    let variable = match op {
        Op::Read(access) | Op::Write(access) => Some(access.variable),
        Op::ReadModifyWrite(step) => Some(step.variable),
        _ => None,
    };
    let memory = variable.and_then(|variable| trace.variables[variable.index()].memory);
    let memory = memory.map(|memory| (memory.address, memory.size.into()));
    let objects = object_addresses(trace, op).map(|address| (address, 1));
    memory.into_iter().chain(objects)
}

/// Where the objects lie that the step uses. A thread that was woken, or that has passed a barrier, needs
/// neither condition nor barrier any more.
fn object_addresses(trace: &Trace, op: &Op) -> impl Iterator<Item = u64> {
    let (first, second) = match *op {
        Op::Sync(condition, SyncOp::WaitBegin { mutex }) => (Some(condition), Some(mutex)),
        Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) => (Some(mutex), None),
        Op::Sync(_, SyncOp::BarrierLeave) => (None, None),
        ref op => (op.object(), None),
    };
    first.into_iter().chain(second).filter_map(|object| trace.objects[object.index()].address)
}

/// Does the access end behind the block, and before any other block can begin? (Further behind it is in
/// another one.)
fn is_overrun(start: u64, size: u64, address: u64, length: u64) -> bool {
    let end = start.saturating_add(size);
    let between = if start >= ARENA { ALIGNMENT } else { 0 };
    !start.is_multiple_of(PAGE)
        && address.saturating_add(length) > end
        && address < end.next_multiple_of(ALIGNMENT).saturating_add(between)
}

/// What every block is aligned to.
const ALIGNMENT: u64 = 16;
/// From here on the runtime allocates for the program (`foretell-runtime/arena`), and as much as [`ALIGNMENT`] lies
/// between two blocks.
const ARENA: u64 = 1 << 44;

fn block_of(blocks: &BTreeMap<u64, Block>, address: u64) -> Option<(u64, u64)> {
    let (&base, block) = blocks.range(..=address).next_back()?;
    (address - base < block.size).then_some((base, block.size))
}

/// The constants that are added up in an address.
fn summands(terms: &TermStore, address: TermId) -> Vec<u64> {
    let mut stack = vec![address];
    let mut constants = Vec::new();
    while let Some(term) = stack.pop() {
        match terms.term(term) {
            Term::Constant(Value::BitVec { bits, .. }) => constants.push(*bits),
            Term::Apply(Operator::BvAdd, parts) => stack.extend(parts.iter().copied()),
            _ => {}
        }
    }
    constants
}

/// Divisors that are not constant, each told once.
#[derive(Default)]
struct Divisors {
    visited: HashSet<TermId>,
}

impl Divisors {
    /// Those in parts of the term that are evaluated in any case (not in one arm of a choice).
    fn new_in(&mut self, trace: &Trace, term: TermId) -> Vec<TermId> {
        use Operator::{BvSdiv, BvSrem, BvUdiv, BvUrem, IntDiv, Ite, Mod};
        let mut stack = vec![term];
        let mut divisors = Vec::new();
        while let Some(term) = stack.pop() {
            let Term::Apply(operator, parts) = trace.terms.term(term) else { continue };
            if !self.visited.insert(term) {
                continue;
            }
            match operator {
                Ite => stack.push(parts[0]),
                _ => stack.extend(parts.iter().copied()),
            }
            if matches!(operator, BvUdiv | BvUrem | BvSdiv | BvSrem | IntDiv | Mod)
                && trace.terms.constant_value(parts[1]).is_none()
            {
                divisors.push(parts[1]);
            }
        }
        divisors
    }
}

/// The thread has come to the event, and the term has a bad value.
pub fn fault_goal(
    subject: &Subject<'_>,
    event: EventId,
    fault: Fault,
    term: TermId,
) -> Option<Goal> {
    let mut builder = GoalBuilder::new(subject.ctp);
    let value = trace_term(subject, &mut builder, event, term)?;
    let bad = match (fault, builder.terms.sort(value)) {
        (Fault::NullPointer, sort) => {
            let page = builder.terms.bit_vec(sort.width()?, PAGE);
            builder.terms.build(Operator::BvUlt, &[value, page])
        }
        (Fault::OutOfBounds { base, size }, sort) => {
            let base = builder.terms.bit_vec(sort.width()?, base);
            let size = builder.terms.bit_vec(sort.width()?, size);
            let offset = builder.terms.build(Operator::BvSub, &[value, base]);
            builder.terms.build(Operator::BvUle, &[size, offset])
        }
        (Fault::DivisionByZero, sort) => {
            let zero = builder.terms.constant(Value::zero(sort));
            builder.terms.build(Operator::Eq, &[value, zero])
        }
    };
    let next = builder.next(event);
    let formula = builder.terms.and(&[next, bad]);
    Some(builder.finish(formula))
}

/// A term of the trace over the results of reads, at the event.
fn trace_term(
    subject: &Subject<'_>,
    builder: &mut GoalBuilder<'_>,
    event: EventId,
    term: TermId,
) -> Option<TermId> {
    let (trace, ctp) = (subject.trace, subject.ctp);
    let mut cache = HashMap::new();
    for leaf in trace.terms.leaves(term) {
        let here = match *trace.terms.term(leaf) {
            Term::ReadValue(thread, index) => {
                let read = *subject.chains.get(thread.index())?.get(index as usize)?;
                match ctp.event_of(read) {
                    Some(read) => {
                        let variable = result_of(ctp, read)?;
                        builder.value(Moment::Before(event), variable)
                    }
                    None => {
                        let bits = match &trace.event(read).op {
                            Op::Read(access) => access.value?,
                            Op::ReadModifyWrite(step) => step.old?,
                            _ => return None,
                        };
                        let value = Value::from_bits(trace.terms.sort(leaf), bits)?;
                        builder.terms.constant(value)
                    }
                }
            }
            // Another thread may change a shared variable between here and the end.
            _ => return None,
        };
        if builder.terms.sort(here) != trace.terms.sort(leaf) {
            return None;
        }
        cache.insert(leaf, here);
    }
    let mut other = |terms: &mut TermStore, _: TermId| terms.bool(false);
    Some(builder.terms.import(&trace.terms, term, &mut cache, &mut other))
}

/// The variable that holds what the read returned.
fn result_of(ctp: &ConcurrentTraceProgram, read: EventId) -> Option<VariableId> {
    let Action::Guarded { assignments, .. } = &ctp.event(read).action else { return None };
    let result = |&&(variable, _): &&(VariableId, TermId)| {
        ctp.variables[variable.index()].role == Role::ReadValue
    };
    assignments.iter().find(result).map(|&(variable, _)| variable)
}

/// The first of the accesses that the thread makes at the same place right before this one, with nothing but decisions about
/// them in between.
fn step_begin(subject: &Subject<'_>, access: EventId) -> EventId {
    let event = |id: EventId| subject.trace.event(subject.ctp.event(id).origin);
    let (place, site) = (subject.ctp.event(access), event(access).site);
    let before = &subject.ctp.threads[place.thread.index()][..place.position as usize];
    let mut begin = access;
    for &id in before.iter().rev() {
        match event(id).op {
            Op::Branch(_) => {}
            Op::Read(_) if event(id).site == site => begin = id,
            _ => break,
        }
    }
    begin
}

/// With what the thread would read from the first event on at the end of the prefix, it comes to the last.
fn comes_from(builder: &mut GoalBuilder<'_>, first: EventId, last: EventId) -> Vec<TermId> {
    let ctp = builder.ctp();
    let (begin, end) = (ctp.event(first), ctp.event(last));
    let chain = &ctp.threads[begin.thread.index()];
    let mut known = HashMap::new();
    let mut parts = Vec::new();
    for &event in &chain[begin.position as usize..=end.position as usize] {
        for part in builder.local_parts(event) {
            parts.push(builder.at_with(Moment::End, part, &known));
        }
        if let Action::Guarded { assignments, .. } = &ctp.event(event).action {
            for &(variable, value) in assignments {
                let value = builder.at_with(Moment::End, value, &known);
                known.insert(variable, value);
            }
        }
    }
    parts
}

/// The allocations of memory that the access uses.
fn allocations_at(subject: &Subject<'_>, access: EventId) -> Vec<EventId> {
    let op = |event: EventId| &subject.trace.event(subject.ctp.event(event).origin).op;
    let used: Vec<_> = used_memory(subject.trace, op(access)).collect();
    let events = (0..subject.ctp.events.len()).map(EventId::from);
    let covers = |&event: &EventId| match *op(event) {
        Op::Alloc { address, size } => used
            .iter()
            .any(|&(at, length)| at < address.saturating_add(size) && address < at + length),
        _ => false,
    };
    events.filter(covers).collect()
}

/// The free (or the allocation) takes place, and the thread comes to its access of the block, or to the begin of the step
/// that it is part of, after that; none of these allocations has given the memory out again.
fn access_after_goal(
    ctp: &ConcurrentTraceProgram,
    begin: EventId,
    access: EventId,
    before: EventId,
    allocations: &[EventId],
) -> Goal {
    let mut builder = GoalBuilder::new(ctp);
    let mut parts = vec![builder.next(begin), builder.taken(before)];
    if begin == access {
        parts.push(builder.local_guard(access));
    } else {
        parts.extend(comes_from(&mut builder, begin, access));
    }
    for &allocation in allocations {
        let taken = builder.taken(allocation);
        let absent = builder.terms.not(taken);
        let earlier = builder.terms.before(allocation, before);
        parts.push(builder.terms.or(&[absent, earlier]));
    }
    let formula = builder.terms.and(&parts);
    builder.finish(formula)
}
