//! Asks about a trace: as a whole, or, where it is long, in windows that grow as needed.
//!
//! What is asked about is a [`Way`] to reach something; several ways to reach the same are asked
//! about together. All questions are asked in small windows first; for those that are open then, windows grow
//! up to the whole trace, those whose events are nearest to each other first, until a number of events is used
//! up ([`crate::options::Window::further`]). Guaranteed: what a window shows is real; what a window does not
//! show is told as unknown, unless the window is the whole trace.

use std::sync::atomic::{AtomicUsize, Ordering};

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_model::replay::Replay;
use foretell_solve::Statistics as SolverStatistics;
use foretell_solve::encode::Mode;
use foretell_trace::{Event, EventId, Op, Trace};

use crate::engine::{Engine, Setting, Verdict};
use crate::finding::Reason;
use crate::goal::Goal;
use crate::options::Options;
use crate::predict::PredictError;
use crate::question::Subject;
use crate::window::{Checkpoints, around};

/// One way to reach what is asked about.
pub(crate) trait Way {
    /// The goal; `None` when the CTP lacks an event or cannot express it.
    fn goal(&self, subject: &Subject<'_>) -> Option<Goal>;

    /// The events that a window has to contain.
    fn window(&self) -> &[EventId];
}

/// The answer to one question.
pub(crate) struct Answered<'a> {
    /// The CTP that it was asked about.
    pub ctp: &'a ConcurrentTraceProgram,
    /// The ways that the CTP can express; [`Verdict::Possible`] gives an index here.
    pub ways: &'a [usize],
    /// The answer.
    pub verdict: Verdict,
    /// So many events before the CTP took place as recorded.
    pub recorded: usize,
}

/// Prepares the CTP of a trace or window for the questions.
pub(crate) type Prepare<'a> =
    dyn Fn(ConcurrentTraceProgram) -> Result<ConcurrentTraceProgram, PredictError> + Sync + 'a;

/// Asks questions about one trace.
pub(crate) struct Asker<'a> {
    trace: &'a Trace,
    chains: &'a [Vec<EventId>],
    order: &'a MustOrder,
    options: &'a Options,
    prepare: &'a Prepare<'a>,
    place: Place<'a>,
    /// No window begins behind it: the first assertion that failed, after which nothing more takes place.
    last_start: EventId,
    /// Events that larger windows may still have.
    further: usize,
    /// What solving cost so far.
    pub cost: SolverStatistics,
    /// The most events that were encoded at once.
    pub longest: usize,
}

enum Place<'a> {
    Whole(Box<ConcurrentTraceProgram>),
    Windows(Checkpoints<'a>),
}

impl<'a> Asker<'a> {
    /// For questions about this trace.
    pub fn new(
        trace: &'a Trace,
        chains: &'a [Vec<EventId>],
        order: &'a MustOrder,
        options: &'a Options,
        prepare: &'a Prepare<'a>,
    ) -> Result<Self, PredictError> {
        let place = match in_windows(trace, options) {
            false => Place::Whole(Box::new(prepare(ConcurrentTraceProgram::build(trace)?)?)),
            true => Place::Windows(Checkpoints::new(trace)?),
        };
        let failed =
            |event: &Event| matches!(event.op, Op::Assert(condition) if !condition.outcome);
        let last_start = trace.events.iter().position(failed).unwrap_or(trace.events.len());
        Ok(Self {
            trace,
            chains,
            order,
            options,
            prepare,
            place,
            last_start: EventId::from(last_start),
            further: options.window.further,
            cost: SolverStatistics::default(),
            longest: 0,
        })
    }

    /// Asks each question of the group; they share an encoding. `answered` gets their numbers.
    pub fn ask<W: Way + Sync>(
        &mut self,
        questions: &[&[W]],
        answered: &mut dyn FnMut(usize, Answered<'_>),
    ) -> Result<(), PredictError> {
        match &mut self.place {
            Place::Whole(ctp) => {
                let subject = Subject::new(self.trace, self.chains, ctp, self.order);
                let goals: Vec<(Vec<usize>, Vec<Goal>)> = questions
                    .iter()
                    .map(|ways| {
                        let ways = ways.iter().enumerate();
                        ways.filter_map(|(way, asked)| Some((way, asked.goal(&subject)?))).unzip()
                    })
                    .collect();
                let mut engine = None;
                if goals.iter().any(|(_, goals)| !goals.is_empty()) {
                    let all = goals.iter().flat_map(|(_, goals)| goals);
                    let setting = setting(self.trace, self.options);
                    engine = match Engine::new(ctp, self.order, all, &setting) {
                        // When the time is over no solver is started any more.
                        Err(_) if self.options.is_late() => None,
                        encoded => Some(encoded?),
                    };
                    let events = engine.as_ref().map_or(0, Engine::events);
                    self.longest = self.longest.max(events);
                }
                for (number, (ways, goals)) in goals.iter().enumerate() {
                    let verdict = match &mut engine {
                        _ if !goals.is_empty() && self.options.is_late() => {
                            Verdict::Unknown(Reason::NotAsked)
                        }
                        Some(engine) if !goals.is_empty() => {
                            engine.ask(&goals.iter().collect::<Vec<_>>())
                        }
                        _ => Verdict::Impossible { in_all_interleavings: true },
                    };
                    answered(number, Answered { ctp, ways, verdict, recorded: 0 });
                }
                if let Some(engine) = engine {
                    add(&mut self.cost, engine.statistics());
                }
            }
            Place::Windows(_) => self.ask_in_windows(questions, answered)?,
        }
        Ok(())
    }

    /// Asks each question in small windows first; windows grow as long as a question is open. Several
    /// questions are asked at once; the answers do not depend on how many.
    fn ask_in_windows<W: Way + Sync>(
        &mut self,
        questions: &[&[W]],
        answered: &mut dyn FnMut(usize, Answered<'_>),
    ) -> Result<(), PredictError> {
        let distance = |way: &W| {
            let events = || way.window().iter();
            events().max().map_or(0, |last| last.0) - events().min().map_or(0, |first| first.0)
        };
        let mut open: Vec<(usize, Open)> =
            (0..questions.len()).map(|number| (number, Open::default())).collect();
        open.sort_by_key(|(number, _)| questions[*number].iter().map(distance).min());
        let mut radius = self.options.window.first.max(1);
        while !open.is_empty() {
            let mut wider = Vec::new();
            let mut left = open.into_iter();
            loop {
                let some: Vec<(usize, Open)> = left.by_ref().take(AT_ONCE).collect();
                if some.is_empty() {
                    break;
                }
                let asked: Vec<(&[W], Vec<bool>)> = some
                    .iter()
                    .map(|(number, _)| {
                        let ways = questions[*number];
                        (ways, self.allowed(ways, radius))
                    })
                    .collect();
                let answers = self.ask_at_once(&asked, radius);
                for ((number, before), answer) in some.into_iter().zip(answers) {
                    let answer = answer?;
                    self.further += answer.left;
                    self.longest = self.longest.max(answer.longest);
                    add(&mut self.cost, answer.cost);
                    if let Some(found) = answer.found {
                        let Shown { ctp, ways, verdict, recorded } = found;
                        let ways = ways.as_slice();
                        answered(number, Answered { ctp: &ctp, ways, verdict, recorded });
                        continue;
                    }
                    let open = answer.open.after(before);
                    if open.can_be_wider {
                        wider.push((number, open));
                        continue;
                    }
                    let reason = open.reason.unwrap_or(Reason::Window(open.size));
                    let Shown { ctp, verdict, .. } =
                        self.about_nothing(Verdict::Unknown(reason))?;
                    answered(number, Answered { ctp: &ctp, ways: &[], verdict, recorded: 0 });
                }
            }
            open = wider;
            radius = radius.saturating_mul(4);
        }
        Ok(())
    }

    /// Which of the ways may be asked about in windows of this size; what they take is taken.
    fn allowed<W: Way>(&mut self, ways: &[W], radius: usize) -> Vec<bool> {
        let limits = self.options.window;
        let ways = ways.iter().take(limits.instances);
        ways.map(|way| match self.borders(way, radius) {
            Some((_, _, size)) if size > limits.most => match self.further.checked_sub(size) {
                Some(left) => {
                    self.further = left;
                    true
                }
                None => false,
            },
            Some(_) => true,
            None => false,
        })
        .collect()
    }

    /// The window around a way, and its size.
    fn borders<W: Way>(&self, way: &W, radius: usize) -> Option<(EventId, EventId, usize)> {
        let (from, to) = around(self.trace, way.window(), radius)?;
        let from = from.min(self.last_start);
        Some((from, to, to.index() - from.index() + 1))
    }

    /// Asks all of the questions, as many at a time as there are jobs.
    fn ask_at_once<W: Way + Sync>(
        &self,
        asked: &[(&[W], Vec<bool>)],
        radius: usize,
    ) -> Vec<Result<InWindow, PredictError>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut answers = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some((ways, allowed)) = asked.get(number) else { return answers };
                answers.push((number, self.ask_in_window(ways, allowed, radius)));
            }
        };
        let mut answers = std::thread::scope(|scope| {
            let others = 1..self.options.jobs.min(asked.len());
            let others: Vec<_> = others.map(|_| scope.spawn(work)).collect();
            let mut answers = work();
            for other in others {
                match other.join() {
                    Ok(theirs) => answers.extend(theirs),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            answers
        });
        answers.sort_by_key(|(number, _)| *number);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Asks about the nearest ways that are allowed, each in a window of its own.
    fn ask_in_window<W: Way>(
        &self,
        ways: &[W],
        allowed: &[bool],
        radius: usize,
    ) -> Result<InWindow, PredictError> {
        let Place::Windows(checkpoints) = &self.place else {
            unreachable!("only asked in windows")
        };
        let limits = self.options.window;
        let mut answer = InWindow::default();
        let mut open = Open::default();
        // Each way was looked at in the whole trace.
        let mut proved = ways.len() <= limits.instances;
        let mut is_late = false;
        for (number, (way, &allowed)) in ways.iter().zip(allowed).enumerate() {
            let Some((from, to, size)) = self.borders(way, radius).filter(|_| allowed) else {
                proved = false;
                continue;
            };
            let unused = if size > limits.most { size } else { 0 };
            is_late |= self.options.is_late();
            if is_late || answer.found.is_some() {
                answer.left += unused;
                continue;
            }
            let is_whole = size == self.trace.events.len();
            open.size = open.size.max(size);
            open.can_be_wider |= !is_whole;
            proved &= is_whole;
            let ctp = (self.prepare)(checkpoints.window(from, to)?)?;
            let subject = Subject::new(self.trace, self.chains, &ctp, self.order);
            let Some(goal) = way.goal(&subject) else { continue };
            let setting = setting(self.trace, self.options);
            let goals = std::iter::once(&goal);
            let mut engine = match Engine::new(&ctp, self.order, goals, &setting) {
                Err(_) if self.options.is_late() => {
                    is_late = true;
                    continue;
                }
                engine => engine?,
            };
            answer.longest = answer.longest.max(engine.events());
            let verdict = engine.ask(&[&goal]);
            add(&mut answer.cost, engine.statistics());
            match verdict {
                Verdict::Possible(..) | Verdict::Refused(_) => {
                    drop(engine);
                    let recorded = from.index();
                    answer.found = Some(Shown { ctp, ways: vec![number], verdict, recorded });
                }
                Verdict::Unknown(why) => {
                    open.reason = Some(why);
                    proved = false;
                }
                Verdict::Impossible { in_all_interleavings } => proved &= in_all_interleavings,
            }
        }
        if answer.found.is_some() {
            return Ok(answer);
        }
        answer.open = match is_late {
            true => Open { reason: Some(Reason::NotAsked), ..Open::default() },
            false => open,
        };
        if proved && !is_late {
            let verdict = Verdict::Impossible { in_all_interleavings: true };
            answer.found = Some(self.about_nothing(verdict)?);
        }
        Ok(answer)
    }

    /// An answer that needs no events.
    fn about_nothing(&self, verdict: Verdict) -> Result<Shown, PredictError> {
        let ctp = ConcurrentTraceProgram::build_window(&Replay::new(self.trace)?, &[])?;
        Ok(Shown { ctp, ways: Vec::new(), verdict, recorded: 0 })
    }
}

/// So many questions are asked before their answers are given away, whatever the number of jobs: what larger
/// windows may have is divided among these first.
const AT_ONCE: usize = 16;

/// What came of a question in windows of one size.
#[derive(Default)]
struct InWindow {
    /// Its answer, if there is one.
    found: Option<Shown>,
    /// Otherwise.
    open: Open,
    /// Events of larger windows that were allowed and not needed.
    left: usize,
    cost: SolverStatistics,
    longest: usize,
}

/// As [`Answered`], with what it is about.
struct Shown {
    ctp: ConcurrentTraceProgram,
    ways: Vec<usize>,
    verdict: Verdict,
    recorded: usize,
}

/// A question that windows of one size leave open.
#[derive(Default)]
struct Open {
    /// Larger windows may still be tried.
    can_be_wider: bool,
    /// Events of the largest window that was tried.
    size: usize,
    /// Why there is no answer, if it is not for the size.
    reason: Option<Reason>,
}

impl Open {
    /// What smaller windows left open, and then these.
    fn after(self, before: Open) -> Open {
        Open { size: self.size.max(before.size), reason: self.reason.or(before.reason), ..self }
    }
}

/// Is the trace too long to be taken as a whole?
pub(crate) fn in_windows(trace: &Trace, options: &Options) -> bool {
    trace.events.len() > options.window.whole
        && options.mode == Mode::Prefix
        && trace.metadata.observed_order
}

/// How to ask about the trace.
pub(crate) fn setting<'s>(trace: &'s Trace, options: &'s Options) -> Setting<'s> {
    Setting {
        mode: options.mode,
        backend: &options.backend,
        budget: options.budget,
        context_switches: options.context_switches,
        deadline: options.deadline,
        dump: options.dump_smt2.as_deref().map(|directory| (directory, trace)),
    }
}

/// Adds to what solving cost.
pub(crate) fn add(total: &mut SolverStatistics, cost: SolverStatistics) {
    total.checks += cost.checks;
    total.conflicts += cost.conflicts;
    total.decisions += cost.decisions;
    total.cycles += cost.cycles;
    total.order_propagations += cost.order_propagations;
}
