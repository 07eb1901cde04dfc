//! An explanation in words, by source line: "line 9 of thread `closer` must not come between lines
//! 14 and 18 of `loader`; hold one mutex over lines 14-18".

use std::fmt::Write;

use foretell_trace::{EventId, Trace};

use crate::explain::{Explanation, Verdict};
use crate::frames::{End, Frames};
use crate::limits::CLAUSES_SHOWN;
use crate::summary::{BugKind, BugSummary};
use crate::synthesis::{Primitive, Region, Verification};

/// Names events and threads for people.
pub struct Names<'a> {
    trace: &'a Trace,
    explanation: &'a Explanation,
    frames: Frames,
}

impl<'a> Names<'a> {
    /// For this trace and what was found out about it.
    pub fn new(trace: &'a Trace, explanation: &'a Explanation) -> Self {
        Self { trace, explanation, frames: Frames::new(trace) }
    }

    /// `w1[15]`, or `thread#3` where an event has no label.
    pub fn event(&self, event: EventId) -> String {
        self.trace.event_name(event)
    }

    /// The name of the event's thread.
    pub fn thread(&self, event: EventId) -> &str {
        self.frames.thread(self.trace.event(event).thread)
    }

    fn line_number(&self, event: EventId) -> Option<u32> {
        let site = self.trace.event(event).site?;
        Some(self.trace.sites[site.index()].line).filter(|&line| line > 0)
    }

    /// `line 9`, or the event's label where it has no source line.
    pub fn place(&self, event: EventId) -> String {
        match self.line_number(event) {
            Some(line) => format!("line {line}"),
            None => self.short(event),
        }
    }

    /// The label; of a loop's event with its iterations, `ar1 … ar8`.
    fn short(&self, event: EventId) -> String {
        let events = self.explanation.lines.events(self.explanation.lines.line(event));
        match events {
            [first, .., last] if self.line_number(event).is_none() => {
                format!("`{}`…`{}`", self.event(*first), self.event(*last))
            }
            _ => format!("`{}`", self.event(event)),
        }
    }

    /// `lines 14-18`, `line 9`, or labels.
    pub fn stretch(&self, first: EventId, last: EventId) -> String {
        match (self.line_number(first), self.line_number(last)) {
            (Some(a), Some(b)) if a == b => format!("line {a}"),
            (Some(a), Some(b)) => format!("lines {}-{}", a.min(b), a.max(b)),
            _ if first == last => self.short(first),
            _ => format!("{} to {}", self.short(first), self.short(last)),
        }
    }

    fn two_places(&self, events: &[EventId]) -> String {
        match events {
            [first, last] => match (self.line_number(*first), self.line_number(*last)) {
                (Some(a), Some(b)) => format!("lines {a} and {b}"),
                _ => format!("{} and {}", self.short(*first), self.short(*last)),
            },
            _ => events.iter().map(|&event| self.place(event)).collect::<Vec<_>>().join(", "),
        }
    }

    fn variables(&self, summary: &BugSummary) -> String {
        let names: Vec<String> = summary
            .variables
            .iter()
            .filter_map(|&variable| self.explanation.variables.get(variable))
            .map(|name| format!("`{name}`"))
            .collect();
        names.join(", ")
    }

    /// One sentence about a bug.
    pub fn summary(&self, summary: &BugSummary) -> String {
        let kind = kind_name(summary.kind);
        let variables = self.variables(summary);
        let on = if variables.is_empty() { String::new() } else { format!(" on {variables}") };
        let thread = |events: &[EventId]| self.thread(events[0]).to_string();
        if summary.first.is_empty() || summary.second.is_empty() {
            return format!("{kind}: every interleaving fails");
        }
        let sentence = match (summary.kind, summary.second.as_slice()) {
            (BugKind::DataRace, [one]) if summary.first.len() == 1 => format!(
                "{} of thread `{}` and {} of `{}` can run at the same time",
                self.place(summary.first[0]),
                thread(&summary.first),
                self.place(*one),
                self.thread(*one),
            ),
            (BugKind::DataRace | BugKind::AtomicityViolation, [one]) => format!(
                "{} of thread `{}` must not come between {} of `{}`",
                self.place(*one),
                self.thread(*one),
                self.two_places(&summary.first),
                thread(&summary.first),
            ),
            (BugKind::DataRace | BugKind::AtomicityViolation, _) => format!(
                "{} of thread `{}` and {} of `{}` must each be one atomic step",
                self.stretch(summary.first[0], summary.first[summary.first.len() - 1]),
                thread(&summary.first),
                self.stretch(summary.second[0], summary.second[summary.second.len() - 1]),
                thread(&summary.second),
            ),
            (BugKind::TwoStageAccess, _) => format!(
                "{} of thread `{}` must not run between {} of `{}`",
                self.stretch(summary.second[0], summary.second[summary.second.len() - 1]),
                thread(&summary.second),
                self.two_places(&summary.first),
                thread(&summary.first),
            ),
            (BugKind::DefineUse, [define, ..]) => format!(
                "{} of thread `{}` uses {variables} before {} of `{}` defines it",
                self.place(summary.first[0]),
                thread(&summary.first),
                self.place(*define),
                self.thread(*define),
            ),
            _ => format!(
                "{} of thread `{}` must not come before {} of `{}`",
                self.place(summary.first[0]),
                thread(&summary.first),
                self.place(summary.second[0]),
                thread(&summary.second),
            ),
        };
        let times = match summary.count {
            1 => String::new(),
            count => format!(" ({count} times, by iteration)"),
        };
        format!("{kind}{on}: {sentence}{times}")
    }

    /// Regions of one lock: iterations of a loop and threads that run the same code said once.
    fn regions(&self, regions: &[Region]) -> String {
        let mut said: Vec<(String, Vec<&str>)> = Vec::new();
        for region in regions {
            let place = self.region(*region);
            let thread = self.thread(region.first);
            match said.iter_mut().find(|(other, _)| *other == place) {
                Some((_, threads)) if threads.contains(&thread) => {}
                Some((_, threads)) => threads.push(thread),
                None => said.push((place, vec![thread])),
            }
        }
        let mut text = String::new();
        for (place, threads) in said {
            match text.is_empty() {
                true => text = place,
                false => {
                    text.push_str(" and ");
                    text.push_str(place.strip_prefix("over ").unwrap_or(&place));
                }
            }
            text.push(' ');
            text.push_str(&and_names(&threads));
        }
        text
    }

    /// `over lines 14-18 of`, or where the ends lie in different calls, the calls.
    fn region(&self, region: Region) -> String {
        let placement = self.frames.placement(region);
        let end = |end: &End| match end {
            End::Here(event) => self.place(*event),
            End::CallOf { function, .. } => format!("its call of `{function}`"),
        };
        if self.frames.crosses_iterations(self.trace, region) {
            let begin = match &placement.begin {
                End::Here(event) | End::CallOf { event, .. } => self.place(*event),
            };
            return format!("over all iterations of the loop around {begin} of");
        }
        match (&placement.function, &placement.begin, &placement.end) {
            (None, ..) | (_, End::Here(_), End::Here(_)) => {
                format!("over {} of", self.stretch(region.first, region.last))
            }
            (Some(function), begin, last) if begin == last => {
                format!("in `{function}` around {}, in", end(begin))
            }
            (Some(function), begin, last) => {
                format!("in `{function}` from {} to {}, in", end(begin), end(last))
            }
        }
    }

    /// Who waits for which lock while holding which.
    pub(crate) fn lock_cycle(&self) -> String {
        let waits: Vec<String> = self
            .explanation
            .deadlock
            .iter()
            .flatten()
            .map(|&event| {
                format!(
                    "{} of thread `{}` waits for {}",
                    self.place(event),
                    self.thread(event),
                    self.object(event)
                )
            })
            .collect();
        let locks: Vec<String> =
            self.explanation.deadlock.iter().flatten().map(|&event| self.object(event)).collect();
        format!(
            "deadlock: {}, each while it holds what another waits for; take {} in one order \
             everywhere",
            waits.join(", "),
            locks.join(" and "),
        )
    }

    /// Who waits for ever, where no cycle of locks is the reason.
    pub(crate) fn stuck(&self, events: impl Iterator<Item = EventId>) -> String {
        let waits: Vec<String> = events
            .map(|event| {
                format!(
                    "{} of thread `{}` waits for {}",
                    self.place(event),
                    self.thread(event),
                    self.object(event)
                )
            })
            .collect();
        format!(
            "{}, and nobody is left who could end the wait: what is waited for must be remembered \
             in a variable that is tested, under the same mutex, before each wait",
            waits.join(", ")
        )
    }

    /// The lock, condition or thread that an event is about.
    fn object(&self, event: EventId) -> String {
        let info = foretell_predict::finding::access_info(self.trace, event);
        info.variable.map_or("it".to_string(), |name| format!("`{name}`"))
    }

    /// What to do for one primitive.
    pub fn primitive(&self, primitive: &Primitive) -> String {
        match primitive {
            Primitive::Lock { regions } => format!("hold one mutex {}", self.regions(regions)),
            Primitive::WaitNotify { waiter, notifier } => format!(
                "make {} of `{}` wait until {} of `{}` has run (wait-notify)",
                self.place(*waiter),
                self.thread(*waiter),
                self.place(*notifier),
                self.thread(*notifier),
            ),
            Primitive::Barrier { events } => {
                let places: Vec<String> = events
                    .iter()
                    .map(|&event| format!("{} of `{}`", self.place(event), self.thread(event)))
                    .collect();
                format!("meet at one barrier before {}", places.join(" and "))
            }
            Primitive::SharedExclusiveLock { shared, exclusive } => format!(
                "hold one readers-writer lock, shared {}, exclusive {}",
                self.regions(shared),
                self.regions(exclusive)
            ),
        }
    }
}

/// `a`, `b` and `c`.
fn and_names(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The kind in words.
pub fn kind_name(kind: BugKind) -> &'static str {
    match kind {
        BugKind::DataRace => "data race",
        BugKind::AtomicityViolation => "atomicity violation",
        BugKind::TwoStageAccess => "two-stage access",
        BugKind::DefineUse => "use before definition",
        BugKind::OrderViolation => "order violation",
    }
}

/// The whole explanation.
pub fn render(trace: &Trace, explanation: &Explanation) -> String {
    let names = Names::new(trace, explanation);
    let mut text = String::new();
    let mut say = |line: &str| {
        let _ = writeln!(text, "{line}"); // writing to a string cannot fail
    };
    say(&match &explanation.verdict {
        Verdict::AllGood => {
            "no assertion fails and no marked block is torn, in any interleaving that can happen"
                .to_string()
        }
        Verdict::AllBad => "every interleaving that can happen is bad".to_string(),
        Verdict::Depends => "the order decides: some interleavings are bad".to_string(),
        Verdict::Deadlock => {
            "no assertion can fail, but threads can wait for each other".to_string()
        }
        Verdict::Infeasible => "no interleaving runs to completion".to_string(),
        Verdict::Unknown(reason) => format!("not decided: {reason}"),
    });
    for &event in explanation.deadlock.iter().flatten() {
        say(&format!("  {} of `{}` waits forever", names.place(event), names.thread(event)));
    }
    if !explanation.bad.clauses().is_empty() {
        let kind = if explanation.exact { "exactly" } else { "and no good one" };
        if explanation.bad.clauses().len() <= CLAUSES_SHOWN {
            say(&format!("bad interleavings ({kind}):"));
            say(&indent(&explanation.bad.to_text(|event| names.event(event))));
            say("good interleavings:");
            say(&indent(&explanation.good.to_text(|event| names.event(event))));
        }
        if explanation.by_line.len() < explanation.bad.clauses().len() {
            say(&format!(
                "by source line, {} patterns for {} disjuncts:",
                explanation.by_line.len(),
                explanation.bad.clauses().len()
            ));
            for pattern in explanation.by_line.iter().take(CLAUSES_SHOWN) {
                let atoms: Vec<String> = pattern
                    .atoms
                    .iter()
                    .map(|atom| {
                        format!(
                            "hb({}#{},{}#{})",
                            names.event(atom.before),
                            iteration_name(atom.before_mark),
                            names.event(atom.after),
                            iteration_name(atom.after_mark)
                        )
                    })
                    .collect();
                say(&format!("  {} ({} times)", atoms.join(" ∧ "), pattern.count));
            }
        }
    }
    for summary in &explanation.summaries {
        say(&names.summary(summary));
    }
    if let Some(synthesis) = &explanation.synthesis {
        say(&match &synthesis.verification {
            Verification::Verified => {
                "fix (verified: no bad interleaving left, no deadlock added):".to_string()
            }
            Verification::Unverified(reason) => format!("fix (unverified: {reason}):"),
        });
        for primitive in &synthesis.primitives {
            say(&format!("  {}", names.primitive(primitive)));
        }
    }
    text
}

fn iteration_name(mark: u32) -> char {
    char::from(b'i' + (mark % 18) as u8)
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
