//! What `explain` and `fix` have in common: what is predicted from a trace, and why each of it goes
//! wrong, as far as the time goes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foretell_force::bounded::{Lost, bounded};
use foretell_guard::stop;
use foretell_neighbourhood::{FindingExplanation, Options, Verdict, explain_finding};
use foretell_predict::progress::Phase;
use foretell_predict::{Finding, Prediction, Status, predict};
use foretell_trace::Trace;
use foretell_trace::validate::validate;

use crate::exit::Failure;
use crate::progress::Line;

/// Only [`stop`] ends an explanation.
pub const UNLIMITED: Duration = Duration::from_secs(u32::MAX as u64);

/// From now on a signal ends the work and not the report, and so does the end of the time.
pub fn come_to_a_close(time_limit: Option<u64>) {
    stop::come_to_a_close_first();
    let limit = time_limit.map(Duration::from_secs);
    if let Some(deadline) = limit.and_then(|limit| Instant::now().checked_add(limit)) {
        stop::set_deadline(deadline);
    }
}

/// Reads a trace that makes sense.
pub fn read(path: &Path) -> Result<Arc<Trace>, Failure> {
    let mut trace = foretell_record::read(path)?;
    if let Some(fault) = validate(&trace).first() {
        return Err(Failure::Input(format!("{}: {fault}", path.display())));
    }
    trace.name_threads_by_function();
    Ok(Arc::new(trace))
}

/// Predictions with explanations.
pub struct Explained {
    /// Everything that was predicted.
    pub prediction: Prediction,
    /// Those that were asked for and explained.
    pub findings: Vec<(Finding, FindingExplanation)>,
    /// What was not done, one sentence each.
    pub unseen: Vec<String>,
}

/// Predicts, and explains those findings that are `wanted`, which is asked with those explained so far.
pub fn explain_each(
    path: &Path,
    trace: &Arc<Trace>,
    options: Options,
    wanted: impl Fn(&Finding, &[(Finding, FindingExplanation)]) -> bool,
) -> Result<Explained, Failure> {
    let in_file =
        |error: &dyn std::fmt::Display| Failure::Input(format!("{}: {error}", path.display()));
    let asked = foretell_predict::Options::default();
    let _line = Line::show(&asked.progress);
    let prediction = predict(trace, &asked).map_err(|error| in_file(&error))?;
    asked.progress.begin(Phase::Explaining, prediction.findings.len());
    let mut findings = Vec::new();
    let mut unseen = Vec::new();
    let mut left = 0;
    for finding in &prediction.findings {
        asked.progress.advance();
        if finding.status != Status::Predicted || !wanted(finding, &findings) {
            continue;
        }
        if stop::is_over() {
            left += 1;
            continue;
        }
        let (of, about) = (Arc::clone(trace), finding.clone());
        match bounded(UNLIMITED, move || explain_finding(&of, &about, &options)) {
            // Questions that were cut short leave an explanation without an answer.
            Ok(Ok(found)) if stop::is_over() && is_unknown(&found) => left += 1,
            Ok(Ok(found)) => findings.push((finding.clone(), found)),
            Err(Lost::Late) => left += 1,
            Ok(Err(_)) if stop::is_over() => left += 1,
            Ok(Err(error)) => return Err(in_file(&error)),
            Err(Lost::Panicked(why)) => {
                unseen.push(format!("{} {}: a fault of foretell: {why}", finding.kind, finding.id));
            }
        }
    }
    if let Some(why) = stop::why() {
        unseen.push(match left {
            0 => format!("what else could be predicted: {why}"),
            _ => format!("{left} findings were not explained: {why}"),
        });
    }
    Ok(Explained { prediction, findings, unseen })
}

fn is_unknown(found: &FindingExplanation) -> bool {
    matches!(found.explanation.verdict, Verdict::Unknown(_))
}
