//! Why a finding of the predictor can happen, and what to do about it.
//!
//! Each kind of finding becomes assertions over flags (`crate::property::Editor`): a torn block, a
//! failing assertion, a crash, a use before the definition or after the free. Then everything that
//! holds of assertions holds of it: formulas, summaries, verified synchronisation. Two kinds need
//! none of that. A data race has no bad order: the two steps can be next at the same time, and one
//! lock over both is the fix. A cycle of locks is one conjunction (every lock of the cycle is taken
//! before it is asked for), and the fix is one lock around, or one order.
//!
//! Long traces are cut: a window around the finding in which the recorded run leads to its start, and
//! in it only the events that the property can depend on. The largest window that is small enough to be
//! explored is taken; what it does not show is reported as unknown, never as correct.

mod locks;
mod question;
mod windows;

use std::time::Instant;

use foretell_predict::{Finding, FindingKind};
use foretell_trace::{EventId, Trace};
use serde_json::{Value as Json, json};

use crate::explain::{ExplainError, Explanation, Options, Phases, Verdict, frame_of};
use crate::succinct::Limits;
use crate::summary::{BugKind, BugSummary};
use crate::synthesis::Verification;
use crate::text::Names;
use question::Question;
use windows::Windows;

/// The explanation of one finding.
#[derive(Clone, Debug)]
pub struct FindingExplanation {
    /// In source terms: what must not be. At least one clause.
    pub reasons: Vec<String>,
    /// In source terms: what to do about it, and whether that is verified.
    pub advice: Vec<String>,
    /// All that is known: formulas, summaries, synchronisation.
    pub explanation: Explanation,
    /// The part of the trace that was looked at, first and last event; `None`: all of it.
    pub window: Option<(EventId, EventId)>,
}

impl FindingExplanation {
    fn new(
        trace: &Trace,
        finding: &Finding,
        explanation: Explanation,
        window: Option<(EventId, EventId)>,
    ) -> Self {
        let names = Names::new(trace, &explanation);
        let (reasons, advice) =
            (reasons(finding, &explanation, &names), advice(&explanation, &names));
        Self { reasons, advice, explanation, window }
    }

    /// One sentence for people: the reasons, then the advice.
    pub fn sentence(&self) -> String {
        let clauses: Vec<&str> =
            self.reasons.iter().chain(&self.advice).map(String::as_str).collect();
        clauses.join("; ")
    }

    /// The `explanation` field of a finding.
    pub fn to_json(&self, trace: &Trace) -> Json {
        let mut json = crate::json::to_json(trace, &self.explanation);
        json["text"] = json!(self.sentence());
        json["window"] = match self.window {
            Some((first, last)) => json!([first.index(), last.index()]),
            None => Json::Null,
        };
        json
    }
}

/// Options for explaining findings: the work is bounded to a few seconds.
pub fn finding_options() -> Options {
    Options {
        limits: Limits { states_per_search: 100_000, steps: 1_000_000, disjuncts: 200 },
        verification_states: 200_000,
        plans: 12,
        ..Options::default()
    }
}

/// So many combinations of places are explored at most.
const EXPLORED: u64 = 4_000_000;

/// Explains a finding of [`foretell_predict::predict`] on the same trace.
pub fn explain_finding(
    trace: &Trace,
    finding: &Finding,
    options: &Options,
) -> Result<FindingExplanation, ExplainError> {
    let started = Instant::now();
    let events: Vec<EventId> = finding.accesses.iter().map(|access| access.event).collect();
    let mut last = None;
    for (window, ctp) in Windows::new(trace, finding, &events) {
        let ctp = ctp?;
        let Some(question) = Question::of(trace, &ctp, finding, &events) else { continue };
        let (mut explanation, small) = question.answer(trace, &ctp, options, started)?;
        if explanation.verdict == Verdict::Depends
            && let Some(summary) = summary_of(finding, &events, &explanation)
        {
            explanation.summaries = vec![summary];
        }
        // 001 calls every read and write that are torn apart a data race; accesses under locks and
        // atomic ones are none, and predict looks for those that are.
        if finding.kind != FindingKind::Race {
            for summary in &mut explanation.summaries {
                if summary.kind == BugKind::DataRace {
                    summary.kind = BugKind::AtomicityViolation;
                }
            }
        }
        let shown =
            matches!(explanation.verdict, Verdict::Depends | Verdict::AllBad | Verdict::Deadlock);
        let found = FindingExplanation::new(trace, finding, explanation, window);
        if shown && small {
            return Ok(found);
        }
        if last.is_none() || shown {
            last = Some(found);
        }
    }
    match last {
        Some(found) => Ok(found),
        None => {
            let reason = "this kind of finding has no explanation".to_string();
            let explanation = frame_of(trace, Verdict::Unknown(reason), Phases::default());
            Ok(FindingExplanation::new(trace, finding, explanation, None))
        }
    }
}

/// The kinds of findings that are kinds of bugs.
fn summary_of(
    finding: &Finding,
    events: &[EventId],
    explanation: &Explanation,
) -> Option<BugSummary> {
    let (kind, first, second) = match (finding.kind, finding.accesses.as_slice(), events) {
        (FindingKind::Atomicity, _, &[first, remote, second]) => {
            (BugKind::AtomicityViolation, vec![first, second], vec![remote])
        }
        (FindingKind::Race, _, &[one, two]) => (BugKind::DataRace, vec![one], vec![two]),
        (FindingKind::Order, _, &[read, write]) => (BugKind::DefineUse, vec![read], vec![write]),
        (FindingKind::Crash, [_, other], &[access, free]) if other.op == "free" => {
            (BugKind::OrderViolation, vec![free], vec![access])
        }
        _ => return None,
    };
    let name = finding.accesses.first().and_then(|access| access.variable.as_deref());
    let variables = explanation.variables.iter().position(|other| Some(other.as_ref()) == name);
    Some(BugSummary {
        kind,
        first,
        second,
        variables: variables.into_iter().collect(),
        atoms: Vec::new(),
        count: 1,
    })
}

fn reasons(finding: &Finding, explanation: &Explanation, names: &Names<'_>) -> Vec<String> {
    let reason = match &explanation.verdict {
        Verdict::Unknown(reason) => {
            format!("{}; why was not worked out: {reason}", finding.detail)
        }
        Verdict::Deadlock if explanation.bad.clauses().is_empty() => {
            names.stuck(finding.accesses.iter().map(|access| access.event))
        }
        Verdict::Deadlock => names.lock_cycle(),
        Verdict::AllBad => format!("{}; in this trace in every order", finding.detail),
        Verdict::AllGood | Verdict::Infeasible => {
            format!("{}; the part of the trace that was explored does not show it", finding.detail)
        }
        Verdict::Depends => {
            return explanation.summaries.iter().map(|summary| names.summary(summary)).collect();
        }
    };
    vec![reason]
}

fn advice(explanation: &Explanation, names: &Names<'_>) -> Vec<String> {
    let Some(synthesis) = &explanation.synthesis else { return Vec::new() };
    let mut advice: Vec<String> =
        synthesis.primitives.iter().map(|primitive| names.primitive(primitive)).collect();
    if let Verification::Unverified(reason) = &synthesis.verification {
        advice.push(format!("this fix is not verified: {reason}"));
    }
    advice
}
