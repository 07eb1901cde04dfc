//! A [`Report`] from a trace and what was predicted of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use foretell_model::lockset::Locksets;
use foretell_predict::divergence::shown;
use foretell_predict::finding::access_info;
use foretell_predict::{AccessInfo, Feeds, Prediction, WitnessSchedule};
use foretell_trace::{EventId, LockMode, Op, Site, Trace};

use crate::fingerprint;
use crate::report::{
    Access, Divergence, Event, Finding, Frame, Interleaving, Program, Property, Report, StackFrame,
    Statistics, Status, TraceSummary, VERSION,
};
use crate::source::Sources;
use crate::timeline::Timelines;

/// Lines shown before and after an access.
const AROUND: u32 = 4;

impl Report {
    /// What `foretell predict` found. `schedules` are the files that were written, by the finding's
    /// id. `foretell test` adds what the forced runs did.
    pub fn from_prediction(
        trace: &Trace,
        file: &str,
        prediction: &Prediction,
        schedules: &BTreeMap<String, PathBuf>,
    ) -> Self {
        let with_schedule = prediction.findings.iter().filter(|found| found.schedule.is_some());
        let timelines = Timelines::new(trace, with_schedule.count());
        let mut assembly = Assembly {
            trace,
            sources: Sources::new(),
            locksets: Locksets::new(trace),
            calls: Calls::of(trace),
            timelines,
        };
        let mut report = Report {
            version: VERSION,
            program: Program {
                command: trace.metadata.command.iter().map(ToString::to_string).collect(),
                build_id: trace.metadata.build_id.as_deref().map(str::to_owned),
            },
            trace: TraceSummary {
                file: file.to_owned(),
                threads: trace.threads.len(),
                events: trace.events.len(),
                symbolic: trace.metadata.symbolic,
                gaps: trace.metadata.gaps.iter().map(ToString::to_string).collect(),
                restrictions: trace.metadata.restrictions.iter().map(ToString::to_string).collect(),
                outside: Vec::new(),
                thread_names: trace.threads.iter().map(|thread| thread.name.to_string()).collect(),
            },
            properties: prediction.properties.iter().map(property).collect(),
            unseen: prediction.unseen.clone(),
            statistics: statistics(prediction),
            ..Report::default()
        };
        for found in &prediction.findings {
            let schedule = schedules.get(&found.id).map(|path| path.display().to_string());
            let finding = assembly.finding(found, schedule, &report.program.command);
            report.findings.push(finding);
        }
        for found in &prediction.divergences.found {
            let schedule = schedules.get(&found.id).map(|path| path.display().to_string());
            report.divergences.push(assembly.divergence(found, schedule));
        }
        assembly.events(&mut report);
        assembly.source_lines(&mut report);
        fingerprint::assign(&mut report);
        report
    }

    /// Takes over the findings of a report on another run of the same program. Their events get
    /// numbers after ours; threads with the same name are the same.
    pub fn absorb(&mut self, other: Report) {
        let first = self.events.last().map_or(0, |event| event.id + 1);
        let frames = self.frames.len() as u32;
        let names = &mut self.trace.thread_names;
        let threads: Vec<u32> = other
            .trace
            .thread_names
            .into_iter()
            .map(|name| match names.iter().position(|known| *known == name) {
                Some(known) => known as u32,
                None => {
                    names.push(name);
                    names.len() as u32 - 1
                }
            })
            .collect();
        self.frames.extend(other.frames.into_iter().map(|mut frame| {
            frame.caller = frame.caller.map(|caller| caller + frames);
            frame
        }));
        self.events.extend(other.events.into_iter().map(|mut event| {
            event.id += first;
            event.thread = threads.get(event.thread as usize).copied().unwrap_or(event.thread);
            event.frame = event.frame.map(|frame| frame + frames);
            event
        }));
        for mut finding in other.findings {
            // A schedule in numbers of events is for whoever has the trace.
            finding.interleaving = None;
            for event in finding.accesses.iter_mut().filter_map(|access| access.event.as_mut()) {
                *event += first;
            }
            if let Some(timeline) = &mut finding.timeline {
                timeline.renumber(first);
            }
            self.findings.push(finding);
        }
        for (file, lines) in other.sources {
            self.sources.entry(file).or_default().extend(lines);
        }
    }

    /// Spells files in what forced runs and explanations say as everywhere in the report.
    pub fn respell(&mut self) {
        let sources = Sources::new();
        let text = |text: &mut String| *text = sources.respelled(text);
        for finding in &mut self.findings {
            if let Some(forced) = &mut finding.forced {
                text(&mut forced.ended);
                if let Some(place) = &mut forced.first_differing_branch {
                    place.file.iter_mut().chain(&mut place.text).for_each(text);
                }
            }
            if let Some(explanation) = &mut finding.explanation {
                let formula = explanation.formula.iter_mut().flat_map(|found| &mut found.clauses);
                let edges = formula.flatten().chain(&mut explanation.edge);
                let names = edges.flat_map(|edge| [&mut edge.before, &mut edge.after]);
                names.filter_map(|name| name.file.as_mut()).for_each(text);
            }
        }
    }
}

struct Assembly<'t> {
    trace: &'t Trace,
    sources: Sources,
    locksets: Locksets,
    calls: Calls,
    timelines: Timelines<'t>,
}

impl Assembly<'_> {
    fn finding(
        &mut self,
        found: &foretell_predict::Finding,
        schedule: Option<String>,
        command: &[String],
    ) -> Finding {
        let (status, reason) = match &found.status {
            foretell_predict::Status::Predicted => (Status::Predicted, None),
            foretell_predict::Status::Unknown(reason) => {
                (Status::Unknown, Some(reason.to_string()))
            }
        };
        let witness = found.schedule.as_ref();
        let replay = schedule.as_ref().filter(|_| !command.is_empty()).map(|schedule| {
            let words: Vec<String> = command.iter().map(|word| shell_word(word)).collect();
            format!("foretell replay {} -- {}", shell_word(schedule), words.join(" "))
        });
        Finding {
            group: found.group.clone(),
            pattern: found.pattern.map(|pattern| pattern.name().to_owned()),
            reason,
            detail: self.respelled(&found.detail, &found.accesses),
            accesses: found.accesses.iter().map(|access| self.access(access)).collect(),
            schedule,
            replay,
            context_switches: witness.map(|witness| witness.context_switches),
            interleaving: witness.map(interleaving),
            timeline: witness.map(|witness| self.timelines.of(&found.accesses, witness)),
            ..Finding::new(&found.id, found.kind, status)
        }
    }

    fn divergence(
        &self,
        found: &foretell_predict::Divergence,
        schedule: Option<String>,
    ) -> Divergence {
        let access = |event| self.access(&access_info(self.trace, event));
        let values = found.values.as_ref();
        Divergence {
            id: found.id.clone(),
            access: access(found.event),
            feeds: found.feeds_kind().to_owned(),
            fed: match found.feeds {
                Feeds::Branch(event) | Feeds::Address(event) => Some(access(event)),
                Feeds::Itself | Feeds::Path | Feeds::Unrecorded => None,
            },
            recorded: values.map(|(recorded, _)| shown(recorded)),
            seen: values.map(|(_, seen)| shown(seen)),
            source: found.source.map(access),
            overlapping: found.overlapping,
            detail: found.detail.clone(),
            schedule,
            context_switches: Some(found.schedule.context_switches),
            interleaving: interleaving(&found.schedule),
        }
    }

    fn access(&self, access: &AccessInfo) -> Access {
        let site = access.site.map(|site| &self.trace.sites[site.index()]);
        let (file, line, function) = self.place(site);
        Access {
            thread: self.trace.threads[access.thread.index()].name.to_string(),
            op: access.op.to_owned(),
            event: Some(access.event.0),
            file,
            line,
            column: site.map(|site| site.column).filter(|&column| column > 0),
            function,
            variable: access.variable.as_deref().map(str::to_owned),
            value: self.timelines.recorded_value(access.event),
            stack: self.stack(access.event, site),
            locks: self.locks(access.event),
        }
    }

    /// The sentence with its files spelled as everywhere in the report.
    fn respelled(&self, text: &str, accesses: &[AccessInfo]) -> String {
        let files: BTreeSet<&str> = accesses
            .iter()
            .filter_map(|access| Some(&*self.trace.sites[access.site?.index()].file))
            .filter(|file| !file.is_empty())
            .collect();
        files.into_iter().rev().fold(text.to_owned(), |text, file| {
            text.replace(&format!(" {file}:"), &format!(" {}:", self.sources.spelling(file)))
        })
    }

    fn place(&self, site: Option<&Site>) -> (Option<String>, Option<u32>, Option<String>) {
        let Some(site) = site else { return (None, None, None) };
        let file = (!site.file.is_empty()).then(|| self.sources.spelling(&site.file));
        let function = (!site.function.is_empty()).then(|| site.function.to_string());
        (file, Some(site.line).filter(|&line| line > 0), function)
    }

    /// The innermost frame is where the event is; of its callers the recorder knows where they
    /// begin.
    fn stack(&self, event: EventId, site: Option<&Site>) -> Vec<StackFrame> {
        let mut stack = Vec::new();
        let (file, line, function) = self.place(site);
        let mut at = self.calls.frame[event.index()];
        let own = at.map(|frame| self.calls.frames[frame as usize].function.as_ref());
        let function = function.or_else(|| own.map(str::to_owned)).unwrap_or_default();
        if own.is_none() && function.is_empty() {
            return stack;
        }
        if own == Some(function.as_str()) {
            at = at.and_then(|frame| self.calls.frames[frame as usize].caller);
        }
        stack.push(StackFrame { function, file, line });
        while let Some(frame) = at {
            let frame = &self.calls.frames[frame as usize];
            let site = frame.site.map(|site| &self.trace.sites[site.index()]);
            let (file, line, _) = self.place(site);
            stack.push(StackFrame { function: frame.function.to_string(), file, line });
            at = frame.caller;
        }
        stack
    }

    fn locks(&self, event: EventId) -> Vec<String> {
        let state = self.locksets.before(self.trace, event);
        let name = |(lock, mode): (foretell_trace::ObjectId, LockMode)| {
            let name = &self.trace.objects[lock.index()].name;
            match mode {
                LockMode::Exclusive => name.to_string(),
                LockMode::Shared => format!("{name} (shared)"),
            }
        };
        self.locksets.locks(state).map(name).collect()
    }

    /// Fills the tables of events and frames.
    fn events(&self, report: &mut Report) {
        let timelines = report.findings.iter().filter_map(|finding| finding.timeline.as_ref());
        let ids: BTreeSet<u32> = timelines
            .flat_map(|timeline| timeline.recorded.iter().chain(&timeline.steps))
            .copied()
            .collect();
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        let mut frames: Vec<Frame> = Vec::new();
        for &id in &ids {
            let event = self.trace.event(EventId(id));
            let info = access_info(self.trace, EventId(id));
            let site = event.site.map(|site| &self.trace.sites[site.index()]);
            let (file, line, function) = self.place(site);
            let object = match &event.op {
                Op::RegionBegin(name) => Some(name.to_string()),
                Op::Input { source, .. } => Some(source.to_string()),
                _ => info.variable.as_deref().map(str::to_owned),
            };
            report.events.push(Event {
                id,
                thread: event.thread.0,
                op: event.op.keyword().to_owned(),
                object,
                value: self.timelines.recorded_value(EventId(id)),
                file,
                line,
                function,
                frame: self.calls.frame[id as usize]
                    .map(|frame| self.frame(frame, &mut numbers, &mut frames)),
                locks: self.locks(EventId(id)),
            });
        }
        report.frames = frames;
    }

    /// The frame's number in the report; callers are numbered first.
    fn frame(&self, frame: u32, numbers: &mut BTreeMap<u32, u32>, frames: &mut Vec<Frame>) -> u32 {
        let mut path = vec![frame];
        while let Some(caller) = self.calls.frames[path[path.len() - 1] as usize].caller
            && !numbers.contains_key(&path[path.len() - 1])
        {
            path.push(caller);
        }
        for frame in path.into_iter().rev() {
            if numbers.contains_key(&frame) {
                continue;
            }
            let call = &self.calls.frames[frame as usize];
            let site = call.site.map(|site| &self.trace.sites[site.index()]);
            let (file, line, _) = self.place(site);
            numbers.insert(frame, frames.len() as u32);
            let caller = call.caller.map(|caller| numbers[&caller]);
            frames.push(Frame { caller, function: call.function.to_string(), file, line });
        }
        numbers[&frame]
    }

    fn source_lines(&mut self, report: &mut Report) {
        let mut wanted: BTreeMap<(String, u32), u32> = BTreeMap::new();
        let mut want = |file: &Option<String>, line: Option<u32>, around: u32| {
            if let (Some(file), Some(line)) = (file, line) {
                let known = wanted.entry((file.clone(), line)).or_default();
                *known = around.max(*known);
            }
        };
        for access in report.findings.iter().flat_map(|finding| &finding.accesses) {
            want(&access.file, access.line, AROUND);
            access.stack.iter().for_each(|frame| want(&frame.file, frame.line, 0));
        }
        report.events.iter().for_each(|event| want(&event.file, event.line, 0));
        for ((file, line), around) in wanted {
            self.sources.keep(&mut report.sources, &file, line, around);
        }
    }
}

/// The call that each event is in.
struct Calls {
    frame: Vec<Option<u32>>,
    frames: Vec<Call>,
}

struct Call {
    caller: Option<u32>,
    function: Box<str>,
    site: Option<foretell_trace::SiteId>,
}

impl Calls {
    fn of(trace: &Trace) -> Self {
        let mut frames: Vec<Call> = Vec::new();
        let mut current: Vec<Option<u32>> = vec![None; trace.threads.len()];
        let mut frame = Vec::with_capacity(trace.events.len());
        for event in &trace.events {
            let at = &mut current[event.thread.index()];
            if let Op::Call(function) = &event.op {
                frames.push(Call { caller: *at, function: function.clone(), site: event.site });
                *at = Some(frames.len() as u32 - 1);
            }
            frame.push(*at);
            if event.op == Op::Return {
                *at = at.and_then(|call| frames[call as usize].caller);
            }
        }
        Self { frame, frames }
    }
}

/// A word as a shell reads it back.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn interleaving(witness: &WitnessSchedule) -> Interleaving {
    let numbers = |events: &[EventId]| events.iter().map(|event| event.0).collect();
    Interleaving {
        recorded: witness.recorded,
        order: numbers(&witness.order),
        next: numbers(&witness.next),
    }
}

fn property(summary: &foretell_predict::PropertySummary) -> Property {
    Property {
        kind: summary.kind,
        questions: summary.questions,
        predicted: summary.predicted,
        impossible: summary.impossible,
        unknown: summary.unknown,
        holds_in_all_interleavings: summary.holds_in_all_interleavings,
    }
}

fn statistics(prediction: &Prediction) -> Statistics {
    let statistics = &prediction.statistics;
    Statistics {
        shared_variables: statistics.shared_variables,
        events_after_slicing: statistics.events_after_slicing,
        regions: statistics.regions,
        original_patterns: statistics.original_patterns,
        after_must_order: statistics.after_must_order,
        after_locksets: statistics.after_locksets,
        filtered_loops: statistics.filtered.loops,
        filtered_distant: statistics.filtered.distant,
        filtered_known_good: statistics.filtered.known_good,
        atomicity_violations: statistics.atomicity_violations,
        divergence_questions: prediction.divergences.asked,
        divergences_impossible: prediction.divergences.impossible,
        divergences_undecided: prediction.divergences.undecided,
        candidate_seconds: statistics.candidate_time.as_secs_f64(),
        solve_seconds: statistics.solve_time.as_secs_f64(),
        solver_checks: statistics.solver.checks,
        solver_conflicts: statistics.solver.conflicts,
        test: None,
    }
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn a_shell_reads_back_what_was_written() {
        assert_eq!(shell_word("./bank"), "./bank");
        assert_eq!(shell_word("3 4"), "'3 4'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
