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
//! Guaranteed: the prefix is feasible and its last step sees the value that is reported. Missed: values
//! that need more than one read of another value on a path without terms, and what the limits leave
//! out, which is counted.

mod questions;
mod way;

use std::collections::HashSet;
use std::hash::Hash;

use foretell_model::assertions::Assertions;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_solve::Budget;
use foretell_solve::encode::Mode;
use foretell_trace::sexpr::print_value;
use foretell_trace::{EventId, Trace, Value};

use crate::access::{Accesses, Location};
use crate::asking::{Asker, Prepare, in_windows};
use crate::engine::Verdict;
use crate::finding::WitnessSchedule;
use crate::limits::{DIVERGENCE_CONFLICTS, QUESTIONS_PER_DIVERGENCE};
use crate::options::{Model, Options, Window};
use crate::predict::{PredictError, constrained, retain_part};
use questions::Search;
use way::{OtherWay, delay};

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
