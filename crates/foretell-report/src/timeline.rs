//! Recorded and predicted order side by side, and the few steps that tell the story.
//!
//! Values of the predicted order are computed from the trace's own expressions. They are for the
//! reader only: whether an interleaving is possible was decided, and checked, elsewhere. What
//! cannot be computed (overlapping memory, a trace without expressions whose reads changed) is left
//! out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foretell_predict::divergence::shown;
use foretell_predict::{AccessInfo, WitnessSchedule};
use foretell_trace::{
    EventId, ObjectId, Op, Sort, Term, ThreadId, Trace, Value, Variable, VariableId,
};

use crate::limits::{CONTEXT_EVENTS, FEWEST_TIMELINE_EVENTS, STORY_STEPS, TIMELINE_EVENTS};
use crate::report::{ReadsFrom, Timeline};

/// What is computed once for a trace.
pub struct Timelines<'t> {
    trace: &'t Trace,
    /// The events worth drawing, in recorded order.
    relevant: Vec<u32>,
    /// The events of each thread.
    chains: Vec<Vec<EventId>>,
    /// The writes of each variable.
    writes: HashMap<VariableId, Vec<EventId>>,
    /// Variables whose memory is also another variable's.
    overlapping: BTreeSet<VariableId>,
    budget: usize,
}

/// What a step touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Touched {
    Variable(VariableId),
    Object(ObjectId),
}

fn touched(op: &Op) -> Option<Touched> {
    Some(match op {
        Op::Read(access) | Op::Write(access) => Touched::Variable(access.variable),
        Op::ReadModifyWrite(step) => Touched::Variable(step.variable),
        Op::Guarded(guarded) => Touched::Variable(guarded.assignments.first()?.0),
        Op::Transition(transition) => Touched::Variable(*transition.changed.first()?),
        _ => Touched::Object(op.object()?),
    })
}

fn writes(op: &Op) -> Option<VariableId> {
    match op {
        Op::Write(access) => Some(access.variable),
        Op::ReadModifyWrite(step) => Some(step.variable),
        _ => None,
    }
}

fn reads(op: &Op) -> Option<VariableId> {
    match op {
        Op::Read(access) => Some(access.variable),
        Op::ReadModifyWrite(step) => Some(step.variable),
        _ => None,
    }
}

impl<'t> Timelines<'t> {
    /// `count` timelines are going to be made.
    pub fn new(trace: &'t Trace, count: usize) -> Self {
        let mut users: HashMap<VariableId, (ThreadId, bool)> = HashMap::new();
        let mut all_writes: HashMap<VariableId, Vec<EventId>> = HashMap::new();
        for (position, event) in trace.events.iter().enumerate() {
            if let Some(Touched::Variable(variable)) = touched(&event.op) {
                let user = users.entry(variable).or_insert((event.thread, false));
                user.1 |= user.0 != event.thread;
            }
            if let Some(variable) = writes(&event.op) {
                all_writes.entry(variable).or_default().push(EventId::from(position));
            }
        }
        let worth_drawing = |op: &Op| match op {
            Op::Call(_) | Op::Return | Op::Fence(_) | Op::Await(_) => false,
            Op::Branch(condition) => condition.term.is_some(),
            _ => match touched(op) {
                Some(Touched::Variable(variable)) => users[&variable].1,
                _ => true,
            },
        };
        let relevant = (0..trace.events.len() as u32)
            .filter(|&id| worth_drawing(&trace.events[id as usize].op))
            .collect();
        Self {
            trace,
            relevant,
            chains: trace.events_by_thread(),
            writes: all_writes,
            overlapping: overlapping(trace),
            budget: (TIMELINE_EVENTS / count.max(1)).max(FEWEST_TIMELINE_EVENTS),
        }
    }

    /// The timeline of one prediction.
    pub fn of(&self, accesses: &[AccessInfo], witness: &WitnessSchedule) -> Timeline {
        let order: Vec<u32> = witness.order.iter().map(|event| event.0).collect();
        let next: Vec<u32> = witness.next.iter().map(|event| event.0).collect();
        let taking_part: BTreeSet<u32> =
            accesses.iter().map(|access| access.event.0).chain(next.iter().copied()).collect();
        let run = self.run(witness);
        let steps = self.steps(accesses, witness, &run);
        let keep = |id: &u32| {
            self.relevant.binary_search(id).is_ok()
                || taking_part.contains(id)
                || steps.contains(id)
        };
        let first_moved = order.iter().chain(&taking_part).min().copied().unwrap_or(0);
        let shared = witness.recorded as u32;
        let context = self.relevant.partition_point(|&id| id < first_moved.min(shared));
        let start = context.saturating_sub(CONTEXT_EVENTS);
        let first = self.relevant.get(start).copied().unwrap_or(0);
        let mut predicted: Vec<u32> =
            (first..shared).chain(order.iter().copied()).filter(keep).collect();
        // The beginning is what both have in common; the end is what matters.
        let cut = predicted.len().saturating_sub(self.budget);
        predicted.drain(..cut);
        let here: BTreeSet<u32> = predicted.iter().copied().collect();
        let last = here.iter().chain(&taking_part).max().copied().unwrap_or(0);
        let lowest = here.iter().chain(&taking_part).min().copied().unwrap_or(0);
        let mut recorded: BTreeSet<u32> = (lowest..=last).filter(keep).take(self.budget).collect();
        recorded.extend(&here);
        recorded.extend(&taking_part);
        let mut lowest_after = next.iter().min().copied().unwrap_or(u32::MAX);
        let mut moved = Vec::new();
        for &id in predicted.iter().rev() {
            if lowest_after < id {
                moved.push(id);
            }
            lowest_after = lowest_after.min(id);
        }
        moved.reverse();
        let reads_from = recorded.iter().filter_map(|&read| {
            let variable = reads(&self.trace.event(EventId(read)).op)?;
            let within = |id: Option<EventId>| id.map(|id| id.0).filter(|id| recorded.contains(id));
            let recorded = within(self.last_write(variable, read));
            let predicted = match run.sources.get(&read) {
                Some(&source) => within(source),
                None if read < shared => recorded,
                None => None,
            };
            (recorded.is_some() || predicted.is_some()).then_some(ReadsFrom {
                read,
                recorded,
                predicted,
            })
        });
        let reads_from = reads_from.collect();
        let fails = |id: u32| {
            let is_assertion = matches!(self.trace.event(EventId(id)).op, Op::Assert(_));
            is_assertion && taking_part.contains(&id)
        };
        let mut values: BTreeMap<u32, String> = BTreeMap::new();
        for (&id, value) in run.values.iter().filter(|(id, _)| recorded.contains(id)) {
            let recorded = self.recorded_value(EventId(id));
            let value = match value {
                Some(value) => self.shown(value),
                // An assertion that takes part in a finding fails, whatever made it so.
                None if fails(id) => "false".to_owned(),
                None if recorded.is_some() => "?".to_owned(),
                None => continue,
            };
            if Some(&value) != recorded.as_ref() {
                values.insert(id, value);
            }
        }
        Timeline {
            omitted: start + cut,
            recorded: recorded.into_iter().collect(),
            predicted,
            next,
            moved,
            steps,
            values,
            reads_from,
        }
    }

    /// The recorded value of an event as people read it.
    pub fn recorded_value(&self, event: EventId) -> Option<String> {
        recorded_value(self.trace, event).map(|value| self.shown(&value))
    }

    /// A value for people: an address is shown as what is there.
    fn shown(&self, value: &Value) -> String {
        let text = shown(value);
        let pointed = match value {
            Value::BitVec { width: 64, bits } if text.starts_with("0x") => self.pointed(*bits),
            _ => None,
        };
        pointed.map_or(text, |name| format!("&{name}"))
    }

    /// What begins at the address, or else the part of a block of memory that it lies in.
    fn pointed(&self, address: u64) -> Option<String> {
        let there =
            |variable: &&Variable| variable.memory.is_some_and(|memory| memory.address == address);
        if let Some(variable) = self.trace.variables.iter().find(there) {
            return Some(variable.name.to_string());
        }
        let block = self.trace.events.iter().rev().find_map(|event| match event.op {
            // Where it ends belongs to it, too.
            Op::Alloc { address: begin, size } if (begin..=begin + size).contains(&address) => {
                Some((begin, self.trace.sites.get(event.site?.index())?))
            }
            _ => None,
        });
        let (begin, site) = block?;
        let file = site.file.rsplit('/').next().filter(|file| !file.is_empty())?;
        Some(format!("heap@{file}:{}+{}", site.line, address - begin))
    }

    fn last_write(&self, variable: VariableId, before: u32) -> Option<EventId> {
        let writes = self.writes.get(&variable)?;
        let count = writes.partition_point(|write| write.0 < before);
        count.checked_sub(1).map(|at| writes[at])
    }

    /// Carries the predicted order out on plain values.
    fn run(&self, witness: &WitnessSchedule) -> Run {
        let trace = self.trace;
        let mut run = Run::default();
        let mut last: HashMap<VariableId, EventId> = HashMap::new();
        // Of a trace without expressions: the threads whose reads all returned what they did.
        let mut strayed: BTreeSet<ThreadId> = BTreeSet::new();
        // A thread computes with what it has read, which stays what it was.
        let mut known = HashMap::new();
        for &event in &witness.order {
            let step = trace.event(event);
            if let Some(variable) = reads(&step.op) {
                let before = last.get(&variable).copied();
                let source = before.or_else(|| self.last_write(variable, witness.recorded as u32));
                run.sources.insert(event.0, source);
                let value = match source {
                    _ if self.overlapping.contains(&variable) => None,
                    Some(write) => match run.values.get(&write.0) {
                        Some(value) => value.clone(),
                        None => recorded_value(trace, write),
                    },
                    None => trace.variables[variable.index()].initial.clone(),
                };
                if value != recorded_read(trace, event) {
                    strayed.insert(step.thread);
                }
                run.reads.insert(event, value.clone());
                run.values.insert(event.0, value);
            }
            let environment = |leaf: &Term| match leaf {
                Term::ReadValue(thread, index) => {
                    let read = *self.chains.get(thread.index())?.get(*index as usize)?;
                    match run.reads.get(&read) {
                        Some(value) => value.clone(),
                        None => recorded_read(trace, read),
                    }
                }
                _ => None,
            };
            let mut computed = |term: Option<foretell_trace::TermId>| match term {
                Some(term) => trace.terms.evaluate_further(term, &environment, &mut known).ok(),
                None if trace.metadata.symbolic || !strayed.contains(&step.thread) => {
                    recorded_value(trace, event)
                }
                None => None,
            };
            match &step.op {
                Op::Write(access) => {
                    let value = computed(access.term);
                    run.values.insert(event.0, value);
                }
                Op::ReadModifyWrite(step) => {
                    let value = computed(step.term);
                    run.values.insert(event.0, value);
                }
                Op::Assert(condition) | Op::Branch(condition) => {
                    let value = computed(condition.term);
                    run.values.insert(event.0, value);
                }
                _ => {}
            }
            if let Some(variable) = writes(&step.op) {
                last.insert(variable, event);
            }
        }
        run
    }

    /// The steps that tell the story: what takes part, and what the threads do to the same
    /// variables and locks, and to those whose reads now return something else.
    fn steps(&self, accesses: &[AccessInfo], witness: &WitnessSchedule, run: &Run) -> Vec<u32> {
        let trace = self.trace;
        let taking_part: BTreeSet<u32> = accesses.iter().map(|access| access.event.0).collect();
        let mut about: BTreeSet<Touched> =
            accesses.iter().filter_map(|access| touched(&trace.event(access.event).op)).collect();
        for (&read, &source) in &run.sources {
            let op = &trace.event(EventId(read)).op;
            if let (Some(variable), Some(what)) = (reads(op), touched(op))
                && source != self.last_write(variable, read)
            {
                about.insert(what);
            }
        }
        let mut story: Vec<u32> = Vec::new();
        let recorded = witness.recorded as u32;
        story.extend(taking_part.range(..recorded));
        story.extend(witness.order.iter().map(|event| event.0).filter(|id| {
            let what = touched(&trace.event(EventId(*id)).op);
            taking_part.contains(id) || what.is_some_and(|what| about.contains(&what))
        }));
        story.extend(taking_part.iter().filter(|id| witness.next.contains(&EventId(**id))));
        let mut room = STORY_STEPS.saturating_sub(taking_part.len());
        let mut kept: Vec<u32> = Vec::new();
        for &id in story.iter().rev() {
            let needed = taking_part.contains(&id);
            if !needed && room == 0 || kept.contains(&id) {
                continue;
            }
            room -= usize::from(!needed);
            kept.push(id);
        }
        kept.reverse();
        kept
    }
}

/// What the predicted order does.
#[derive(Default)]
struct Run {
    /// What each read returns.
    reads: HashMap<EventId, Option<Value>>,
    /// What each event reads, writes or decides.
    values: BTreeMap<u32, Option<Value>>,
    /// The write that each read returns; none for the initial value.
    sources: BTreeMap<u32, Option<EventId>>,
}

fn overlapping(trace: &Trace) -> BTreeSet<VariableId> {
    let mut ranges: Vec<(u32, u64, u64, VariableId)> = Vec::new();
    for (number, variable) in trace.variables.iter().enumerate() {
        if let Some(memory) = variable.memory {
            let end = memory.address.saturating_add(memory.size.into());
            ranges.push((memory.generation, memory.address, end, VariableId::from(number)));
        }
    }
    ranges.sort_unstable_by_key(|&(generation, first, end, _)| (generation, first, end));
    let mut found = BTreeSet::new();
    let mut furthest: Option<(u32, u64, VariableId)> = None;
    for (generation, first, end, variable) in ranges {
        let same = furthest.filter(|&(other, ..)| other == generation);
        if let Some((_, reach, other)) = same
            && first < reach
        {
            found.extend([variable, other]);
        }
        if same.is_none_or(|(_, reach, _)| reach < end) {
            furthest = Some((generation, end, variable));
        }
    }
    found
}

fn with_sort(trace: &Trace, variable: VariableId, bits: Option<u64>) -> Option<Value> {
    Value::from_bits(trace.variables[variable.index()].sort, bits?)
}

/// What a read returned.
fn recorded_read(trace: &Trace, event: EventId) -> Option<Value> {
    match &trace.event(event).op {
        Op::Read(access) => with_sort(trace, access.variable, access.value),
        Op::ReadModifyWrite(step) => with_sort(trace, step.variable, step.old),
        _ => None,
    }
}

/// What was read, written or decided.
fn recorded_value(trace: &Trace, event: EventId) -> Option<Value> {
    match &trace.event(event).op {
        Op::Read(access) | Op::Write(access) => with_sort(trace, access.variable, access.value),
        Op::ReadModifyWrite(step) => with_sort(trace, step.variable, step.new),
        Op::Assert(condition) | Op::Branch(condition) => Some(Value::Bool(condition.outcome)),
        Op::Input { value, .. } => Value::from_bits(Sort::bit_vec(64), *value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_look_like_what_they_are() {
        assert_eq!(shown(&Value::bit_vec(32, 130)), "130");
        assert_eq!(shown(&Value::bit_vec(32, 0xffff_ffff)), "-1");
        assert_eq!(shown(&Value::bit_vec(64, 0x7f93_446d_36c0)), "0x7f93446d36c0");
        assert_eq!(shown(&Value::bit_vec(64, u64::MAX)), "-1");
        assert_eq!(shown(&Value::Bool(false)), "false");
    }
}
