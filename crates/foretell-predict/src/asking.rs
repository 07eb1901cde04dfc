//! Asks about a trace: as a whole, or, where it is long, in windows that grow as needed.
//!
//! What is asked about is a [`Way`] to reach something; several ways to reach the same are asked
//! about together. All questions are asked in small windows first; for those that are open then, windows grow
//! up to the whole trace, those whose events are nearest to each other first, until a number of events is used
//! up ([`crate::options::Window::further`]). Guaranteed: what a window shows is real; what a window does not
//! show is told as unknown, unless the window is the whole trace.

use foretell_model::ctp::ConcurrentTraceProgram;
use foretell_model::must_order::MustOrder;
use foretell_model::replay::Replay;
use foretell_solve::Statistics as SolverStatistics;
use foretell_solve::encode::Mode;
use foretell_trace::{Event, EventId, Op, Trace};

use crate::engine::{Engine, Setting, Verdict};
use crate::goal::Goal;
use crate::options::{NOT_ASKED, Options};
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
    dyn Fn(ConcurrentTraceProgram) -> Result<ConcurrentTraceProgram, PredictError> + 'a;

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
    pub fn ask<W: Way>(
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
                            Verdict::Unknown(NOT_ASKED.into())
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

    /// Asks each question in small windows first; windows grow as long as a question is open.
    fn ask_in_windows<W: Way>(
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
            for (number, before) in open {
                let mut answered = |answer: Answered<'_>| answered(number, answer);
                let Some(open) = self.ask_in_window(questions[number], radius, &mut answered)?
                else {
                    continue;
                };
                let open = open.after(before);
                if open.can_be_wider {
                    wider.push((number, open));
                    continue;
                }
                let reason = open.reason.unwrap_or_else(|| {
                    format!("bounded window: not possible within {} events", open.size)
                });
                let ctp = ConcurrentTraceProgram::build_window(&Replay::new(self.trace)?, &[])?;
                let verdict = Verdict::Unknown(reason);
                answered(Answered { ctp: &ctp, ways: &[], verdict, recorded: 0 });
            }
            open = wider;
            radius = radius.saturating_mul(4);
        }
        Ok(())
    }

    /// Asks about the nearest ways, each in a window of its own. What is open then is returned.
    fn ask_in_window<W: Way>(
        &mut self,
        ways: &[W],
        radius: usize,
        answered: &mut dyn FnMut(Answered<'_>),
    ) -> Result<Option<Open>, PredictError> {
        let Place::Windows(checkpoints) = &mut self.place else {
            unreachable!("only asked in windows")
        };
        let limits = self.options.window;
        let late = || Open { reason: Some(NOT_ASKED.into()), ..Open::default() };
        let mut open = Open::default();
        // Each way was looked at in the whole trace.
        let mut proved = ways.len() <= limits.instances;
        for (number, way) in ways.iter().enumerate().take(limits.instances) {
            if self.options.is_late() {
                return Ok(Some(late()));
            }
            let Some((from, to)) = around(self.trace, way.window(), radius) else {
                proved = false;
                continue;
            };
            let from = from.min(self.last_start);
            let size = to.index() - from.index() + 1;
            let is_whole = size == self.trace.events.len();
            if size > limits.most {
                match self.further.checked_sub(size) {
                    Some(left) => self.further = left,
                    None => {
                        proved = false;
                        continue;
                    }
                }
            }
            open.size = open.size.max(size);
            open.can_be_wider |= !is_whole;
            proved &= is_whole;
            let ctp = (self.prepare)(checkpoints.window(from, to)?)?;
            let subject = Subject::new(self.trace, self.chains, &ctp, self.order);
            let Some(goal) = way.goal(&subject) else { continue };
            let setting = setting(self.trace, self.options);
            let goals = std::iter::once(&goal);
            let mut engine = match Engine::new(&ctp, self.order, goals, &setting) {
                Err(_) if self.options.is_late() => return Ok(Some(late())),
                engine => engine?,
            };
            self.longest = self.longest.max(engine.events());
            let verdict = engine.ask(&[&goal]);
            add(&mut self.cost, engine.statistics());
            match verdict {
                Verdict::Possible(..) | Verdict::Refused(_) => {
                    let recorded = from.index();
                    answered(Answered { ctp: &ctp, ways: &[number], verdict, recorded });
                    return Ok(None);
                }
                Verdict::Unknown(why) => {
                    open.reason = Some(why);
                    proved = false;
                }
                Verdict::Impossible { in_all_interleavings } => proved &= in_all_interleavings,
            }
        }
        if !proved {
            return Ok(Some(open));
        }
        let ctp = ConcurrentTraceProgram::build_window(&Replay::new(self.trace)?, &[])?;
        let verdict = Verdict::Impossible { in_all_interleavings: true };
        answered(Answered { ctp: &ctp, ways: &[], verdict, recorded: 0 });
        Ok(None)
    }
}

/// A question that windows of one size leave open.
#[derive(Default)]
struct Open {
    /// Larger windows may still be tried.
    can_be_wider: bool,
    /// Events of the largest window that was tried.
    size: usize,
    /// Why there is no answer, if it is not for the size.
    reason: Option<String>,
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
