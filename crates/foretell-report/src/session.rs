//! A [`Report`] from a session of `foretell test`: what was predicted, what the forced runs did, how much was
//! covered. Explanations and fixes are added by whoever makes them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use foretell_explore::Doubt;
use foretell_force::judge::Outcome;
use foretell_force::session::{Session, Tested};
use foretell_guard::sha256;
use foretell_predict::finding::access_info;
use foretell_predict::{Prediction, WitnessSchedule};
use foretell_trace::{EventId, Op, Trace};

use crate::report::{
    Exploration, Finding, ForcedRun, OpenQuestions, Outside, Place, Report, Status, TestStatistics,
};

impl Report {
    /// What `foretell test` found. What nobody can see is counted and left out. `schedules` are the files that were
    /// written, by the finding's id.
    pub fn from_session(session: &Session, schedules: &BTreeMap<String, PathBuf>) -> Self {
        let of_base = |base: usize| {
            let shown = session.tested.iter().filter(move |tested| tested.base == base);
            let open = session.open.iter().filter(move |open| open.base == base);
            shown
                .filter(|tested| !tested.is_folded() && in_its_own_run(tested).is_none())
                .map(|tested| tested.finding.clone())
                .chain(open.map(|open| open.finding.clone()))
        };
        let mut prediction = session.prediction.clone();
        prediction.unseen.clone_from(&session.unseen);
        prediction.findings = of_base(0).collect();
        let mut report = Report::from_prediction(&session.bases[0], "", &prediction, schedules);
        for (base, trace) in session.bases.iter().enumerate().skip(1) {
            let findings: Vec<_> = of_base(base).collect();
            if !findings.is_empty() {
                let prediction = Prediction { findings, ..Prediction::default() };
                report.absorb(Report::from_prediction(trace, "", &prediction, schedules));
            }
        }
        for (trace, finding) in session.tested.iter().filter_map(in_its_own_run) {
            let prediction = Prediction { findings: vec![finding], ..Prediction::default() };
            report.absorb(Report::from_prediction(trace, "", &prediction, schedules));
        }
        for finding in &mut report.findings {
            // A question that is open here stays open where the same happened on another path, unseen.
            let seen = session
                .tested
                .iter()
                .filter(|tested| !tested.is_folded() && tested.finding.id == finding.id);
            // Of several, the first that counts.
            if let Some(tested) = seen.min_by_key(|tested| !tested.counts()) {
                judged(finding, tested);
            }
        }
        let place = |finding: &Finding| {
            session.tested.iter().position(|tested| tested.finding.id == finding.id)
        };
        report.findings.sort_by_key(|finding| place(finding).unwrap_or(usize::MAX));
        report.exploration = Some(exploration(session));
        report.trace.outside = session.recorded.outside.iter().map(outside).collect();
        report.errors.clone_from(&session.errors);
        report.statistics.test = Some(statistics(session));
        report
    }
}

fn statistics(session: &Session) -> TestStatistics {
    let counts = &session.counts;
    let of = |is: fn(&Tested) -> bool| session.tested.iter().filter(|tested| is(tested)).count();
    TestStatistics {
        recorded_end: session.recorded.ended(),
        recorded_end_kind: Some((&session.recorded.end).into()),
        runs: counts.runs,
        runs_made: counts.runs_made,
        behaviours: counts.behaviours,
        paths: session.exploration.classes,
        forced: session.tested.len(),
        confirmed: of(Tested::counts),
        refuted: of(|tested| tested.verdict.is_refuted()),
        open: of(Tested::is_open) + counts.untried,
        folded: of(Tested::is_folded),
        untried: counts.untried,
        branches: session.recorded.path.branches(),
        branches_stored: session.recorded.path.mispredictions(),
    }
}

/// How much was covered, for the report.
fn exploration(session: &Session) -> Exploration {
    let explored = &session.exploration;
    let reason = |(doubt, &questions): (&Doubt, &usize)| OpenQuestions {
        kind: Some(*doubt),
        reason: doubt.to_string(),
        questions,
    };
    let mut reasons: Vec<OpenQuestions> = explored.open.iter().map(reason).collect();
    if session.counts.undecided > 0 {
        reasons.push(OpenQuestions {
            kind: Some(Doubt::Undecided),
            reason: "the solver did not decide whether something goes wrong on another path".into(),
            questions: session.counts.undecided,
        });
    }
    Exploration {
        covered: session.is_covered(),
        classes: explored.classes,
        interleavings: explored.interleavings.filter(|_| session.is_covered()),
        questions: explored.asked,
        walks: explored.walks,
        open: reasons.iter().map(|open| open.questions).sum(),
        reasons,
        digest: (!explored.digests.is_empty())
            .then(|| class_digest(explored.digests.iter().map(|class| format!("{class:016x}")))),
        ..Exploration::default()
    }
}

/// What the recorded run depended on, for the report.
fn outside(outside: &foretell_record::Outside) -> Outside {
    let site = outside.site.as_ref().filter(|site| site.line > 0);
    Outside {
        cause: outside.cause.name().into(),
        thread: outside.thread.clone(),
        subject: outside.subject.clone(),
        file: site.map(|site| site.file.to_string()),
        line: site.map(|site| site.line),
        awaited: outside.awaited,
        times: outside.times,
    }
}

fn judged(finding: &mut Finding, tested: &Tested) {
    let difference = &tested.verdict.difference;
    (finding.status, finding.reason) = match &tested.verdict.outcome {
        _ if tested.is_recorded() => (Status::Confirmed, Some("in the recorded run".to_owned())),
        Outcome::Confirmed(_) | Outcome::Benign => (Status::Confirmed, None),
        Outcome::Refuted(why) => (Status::Refuted, Some(why.clone())),
        Outcome::NotForced(why) => (Status::Predicted, Some(why.clone())),
    };
    finding.effect = tested.verdict.effect();
    let branch = difference.branch.as_ref();
    finding.forced = Some(ForcedRun {
        ended: tested.ended.clone(),
        end: Some(tested.end),
        blocked: tested.blocked.clone(),
        runs: None,
        runs_before: Some(tested.runs_before),
        first_differing_branch: branch.map(|branch| {
            let taken = branch.second.as_ref().or(branch.first.as_ref());
            let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Place {
                file: taken.and_then(|taken| known(&taken.site.file)),
                line: taken.map(|taken| taken.site.line).filter(|&line| line > 0),
                function: taken.and_then(|taken| known(&taken.site.function)),
                text: difference.other_path.clone(),
            }
        }),
        ended_before_branch: branch.is_some_and(|branch| branch.second.is_none()),
        output_difference: difference.output.clone(),
        stderr: Some(tested.stderr.clone()).filter(|text| !text.is_empty()),
    });
}

/// The finding with the events of its own run in the order in which they happened; `None` where the
/// run did not take the steps that the finding is about.
fn in_its_own_run(tested: &Tested) -> Option<(&Trace, foretell_predict::Finding)> {
    let past = tested.past.as_ref()?;
    if past.accesses.len() != tested.finding.accesses.len() {
        return None;
    }
    let trace = &past.trace;
    let mut events = past.accesses.clone();
    let failed = |event: &&EventId| matches!(trace.event(**event).op, Op::Assert(condition) if !condition.outcome);
    let all: Vec<EventId> = (0..trace.events.len()).map(EventId::from).collect();
    let (first, second) = past.switch.unzip();
    for event in first.into_iter().chain(second).chain(all.iter().rev().find(failed).copied()) {
        if !events.contains(&event) {
            events.push(event);
        }
    }
    let thread = |event: EventId| trace.event(event).thread;
    let switches = all.windows(2).filter(|pair| thread(pair[0]) != thread(pair[1])).count();
    let finding = foretell_predict::Finding {
        accesses: events.into_iter().map(|event| access_info(trace, event)).collect(),
        schedule: Some(WitnessSchedule {
            recorded: 0,
            order: all,
            next: Vec::new(),
            context_switches: switches,
        }),
        ..tested.finding.clone()
    };
    Some((trace, finding))
}

/// A digest of a set of classes.
pub fn class_digest(classes: impl Iterator<Item = String>) -> String {
    let classes: BTreeSet<String> = classes.collect();
    let text: String = classes.into_iter().collect();
    sha256::hex(text.as_bytes())[..16].to_owned()
}
