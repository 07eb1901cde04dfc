//! All questions about a trace at once: what an exploration asks of every class of paths that it finds.
//!
//! [`crate::predict()`] has an encoding for each kind of property, and asks one question after the other.
//! In an exploration nearly every answer is no, and there are thousands of classes. So here all goals
//! share an encoding, and the question is whether *any* of them can be reached: one no answers all.
//! After a yes, the question that the answer is to is done, and the others are asked again. What is known to
//! be possible at the same code locations, from another class, need not be asked at all.
//!
//! The findings are those of [`crate::predict()`], which is asked instead where this does not decide, or
//! where the questions are of a kind that goes step by step (long traces in windows, more instances of a
//! code location than are asked about first).

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use foretell_model::assertions::Assertions;
use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::lockset::Locksets;
use foretell_model::must_order::MustOrder;
use foretell_solve::encode::Mode;
use foretell_trace::{TermId, Trace};

use crate::asking::{self, Answered, in_windows, setting};
use crate::engine::{Engine, Verdict};
use crate::finding::{Prediction, fingerprints};
use crate::goal::Goal;
use crate::options::Options;
use crate::predict::{
    PredictError, Recorder, collect, constrained, count_violations, first_words, predict,
};
use crate::property::FindingKind;
use crate::question::{Question, Subject};

/// What can go wrong in another interleaving of the trace's events? `settled` are the groups of findings
/// ([`crate::Finding::group`]) that are of no interest any more.
pub fn predict_together(
    trace: &Trace,
    options: &Options,
    settled: &HashSet<String>,
) -> Result<Prediction, PredictError> {
    let step_by_step = in_windows(trace, options)
        || options.mode != Mode::Prefix
        || options.partition.is_some()
        || options.context_switches.is_some()
        || options.dump_smt2.is_some();
    if step_by_step {
        return predict(trace, options);
    }
    match decided(trace, options, settled)? {
        Some(prediction) => Ok(prediction),
        None => predict(trace, options),
    }
}

/// One way to answer a question.
struct Asked<'q> {
    question: &'q Question,
    /// By its number among the question's instances.
    way: usize,
    goal: Goal,
}

/// Would every finding that the question can give be of a settled group?
fn is_settled(trace: &Trace, question: &Question, settled: &HashSet<String>) -> bool {
    let all = || question.instances.iter().chain(&question.rest);
    // The place where somebody is stuck is known with the answer only.
    !settled.is_empty()
        && question.unexamined == 0
        && all().all(|instance| !instance.shape.is_about_end())
        && all().all(|instance| settled.contains(&fingerprints(trace, question.kind, instance).1))
}

/// `None`: ask one by one.
fn decided(
    trace: &Trace,
    options: &Options,
    settled: &HashSet<String>,
) -> Result<Option<Prediction>, PredictError> {
    let order = MustOrder::new(trace)?;
    let locks = Locksets::new(trace);
    let mut prediction = first_words(trace);
    let mut questions = collect(trace, &order, &locks, options, &mut prediction);
    questions.retain(|question| !is_settled(trace, question, settled));
    if questions.iter().any(|question| !question.rest.is_empty()) {
        return Ok(None);
    }
    let solving = Instant::now();
    let chains = trace.events_by_thread();
    let mut recorder = Recorder {
        trace,
        origin: None,
        options,
        prediction,
        all: true,
        unexamined: BTreeMap::new(),
    };
    let (about_assertions, others): (Vec<&Question>, Vec<&Question>) =
        questions.iter().partition(|question| question.kind == FindingKind::Assertion);
    let parts = [(others, Assertions::Hold), (about_assertions, Assertions::EndTheirThread)];
    for (questions, assertions) in parts {
        if questions.is_empty() {
            continue;
        }
        let ctp = ConcurrentTraceProgram::build(trace)?.with_assertions(assertions);
        let ctp = constrained(ctp, options.model)?;
        let subject = Subject::new(trace, &chains, &ctp, &order);
        let mut open: Vec<Asked<'_>> = Vec::new();
        for &question in &questions {
            let ways = question.instances.iter().enumerate();
            let goals = ways.filter_map(|(way, instance)| Some((way, subject.goal(instance)?)));
            open.extend(goals.map(|(way, goal)| Asked { question, way, goal }));
        }
        let mut possible: Vec<&Question> = Vec::new();
        if !open.is_empty() {
            let goals = open.iter().map(|asked| &asked.goal);
            let engine = Engine::new(&ctp, &order, goals, &setting(trace, options));
            let mut engine = match engine {
                Err(_) if options.is_late() => return Ok(None),
                engine => engine?,
            };
            let mut formulas: Vec<TermId> =
                open.iter().map(|asked| engine.formula(&asked.goal)).collect();
            loop {
                let goals: Vec<&Goal> = open.iter().map(|asked| &asked.goal).collect();
                match engine.ask_together(&goals, &formulas) {
                    Verdict::Possible(number, witness) => {
                        let Asked { question, way, .. } = open[number];
                        let verdict = Verdict::Possible(0, witness);
                        let answer = Answered { ctp: &ctp, ways: &[way], verdict, recorded: 0 };
                        recorder.record(question, &question.instances, answer);
                        possible.push(question);
                        let others = |asked: &Asked<'_>| !std::ptr::eq(asked.question, question);
                        let keep: Vec<bool> = open.iter().map(others).collect();
                        let mut kept = keep.iter().copied();
                        open.retain(|_| kept.next().expect("one for each"));
                        let mut kept = keep.into_iter();
                        formulas.retain(|_| kept.next().expect("one for each"));
                    }
                    Verdict::Impossible { .. } => break,
                    Verdict::Unknown(_) | Verdict::Refused(_) => return Ok(None),
                }
            }
            let statistics = &mut recorder.prediction.statistics;
            asking::add(&mut statistics.solver, engine.statistics());
            statistics.events_after_slicing = engine.events().max(statistics.events_after_slicing);
        }
        let is_open =
            |question: &&Question| !possible.iter().any(|&one| std::ptr::eq(one, *question));
        for question in questions.iter().copied().filter(is_open) {
            let verdict = Verdict::Impossible { in_all_interleavings: true };
            let answer = Answered { ctp: &ctp, ways: &[], verdict, recorded: 0 };
            recorder.record(question, &question.instances, answer);
        }
    }
    recorder.count_unexamined();
    recorder.summarise_empty();
    let mut prediction = recorder.prediction;
    prediction.statistics.solve_time = solving.elapsed();
    count_violations(&mut prediction);
    Ok(Some(prediction))
}
