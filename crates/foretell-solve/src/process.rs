//! Any SMT-LIB 2.6 solver as a process that is talked to over pipes.
//!
//! Formulas are sent once; a question is one `check-sat-assuming` over names of the assumptions, so
//! the solver keeps what it learned. Two threads drain its output, so neither side can block the
//! other. What is not understood, an error, or the end of the process make the answer unknown with
//! the reason, never wrong; the next question starts a new process.
//!
//! The budget is a resource limit that the solver counts itself (Z3's `rlimit`). A solver that
//! ignores `:reproducible-resource-limit` is killed after `QUESTION`, as is one that hangs; how much
//! it may say is limited, too. Whatever it says is data: a model is checked by whoever asked for it.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foretell_guard::process::Guarded;
use foretell_trace::{EventId, Term, TermId, TermStore, Value};

use crate::problem::OrderProblem;
use crate::reply::{Sexpr, parse_value, read_sexpr};
use crate::smtlib::{Logic, Writer};
use crate::solver::{Answer, Budget, Model, OrderSolver, SolveError, Statistics, UnknownReason};

/// What Z3 4.8 spends on a conflict of these formulas, roughly.
const RESOURCES_PER_CONFLICT: u64 = 10_000;

/// A program that does not even say its name for so long is no solver.
const SILENCE: Duration = Duration::from_secs(60);

/// A solver that takes longer than this for one question is killed.
const QUESTION: Duration = Duration::from_secs(600);

/// How Z3 is started.
pub(crate) const Z3: &str = "z3 -in";

/// Z3 from the PATH.
pub fn z3(problem: OrderProblem) -> Result<SmtLibSolver, SolveError> {
    SmtLibSolver::command(problem, Z3)
}

/// A solver process.
pub struct SmtLibSolver {
    problem: OrderProblem,
    command: String,
    writer: Writer,
    logic: Logic,
    session: Option<Session>,
    /// The session knows the logic and the events.
    opened: bool,
    /// The first formulas that the session knows, of `asserted`.
    sent: usize,
    asserted: Vec<TermId>,
    literals: HashMap<TermId, String>,
    statistics: Statistics,
    /// A formula that cannot be written.
    broken: Option<SolveError>,
}

impl SmtLibSolver {
    /// Starts the command (words separated by blanks), which must read SMT-LIB from its standard
    /// input.
    pub fn command(problem: OrderProblem, command: &str) -> Result<Self, SolveError> {
        let mut problem = problem;
        let writer = Writer::new(&problem)?;
        let mut terms = std::mem::take(&mut problem.terms);
        let asserted = writer.formulas(&problem, &mut terms)?.into_iter().map(|f| f.1).collect();
        problem.terms = terms;
        Ok(Self {
            problem,
            command: command.to_string(),
            writer,
            logic: Logic::default(),
            session: Some(Session::start(command)?),
            opened: false,
            sent: 0,
            asserted,
            literals: HashMap::new(),
            statistics: Statistics::default(),
            broken: None,
        })
    }

    /// Sends what the session does not know yet, asks, and reads the answer.
    fn ask(&mut self, assumptions: &[TermId], budget: Budget) -> Result<Answer, Trouble> {
        let mut wider = false;
        for &formula in self.asserted[self.sent..].iter().chain(assumptions) {
            wider |= self.logic.look_at(&self.problem.terms, formula);
        }
        if self.session.is_none() || (wider && self.opened) {
            self.session = None; // ends the old process first
            self.session = Some(Session::start(&self.command)?);
            self.writer.restart();
            self.literals.clear();
            self.sent = 0;
            self.opened = false;
        }
        let mut text = String::new();
        if !self.opened {
            self.opened = true;
            text.push_str(&format!("(set-logic {})\n", self.logic.name()));
            text.push_str(&self.writer.declare_events(&self.problem));
        }
        for &formula in &self.asserted[self.sent..] {
            let formula = self.writer.term(&self.problem.terms, formula)?;
            text.push_str(&std::mem::take(&mut self.writer.definitions));
            text.push_str(&format!("(assert {formula})\n"));
        }
        self.sent = self.asserted.len();
        let mut names = Vec::with_capacity(assumptions.len());
        for &assumption in assumptions {
            if let Some(name) = self.literals.get(&assumption) {
                names.push(name.clone());
                continue;
            }
            let formula = self.writer.term(&self.problem.terms, assumption)?;
            text.push_str(&std::mem::take(&mut self.writer.definitions));
            let name = format!("a{}", assumption.0);
            text.push_str(&format!("(declare-const {name} Bool)\n(assert (= {name} {formula}))\n"));
            self.literals.insert(assumption, name.clone());
            names.push(name);
        }
        let session = self.session.as_mut().expect("started above");
        let limit = budget.conflicts.saturating_mul(RESOURCES_PER_CONFLICT);
        let limit = if limit > u64::from(u32::MAX) { 0 } else { limit.max(1) };
        if session.limit != Some(limit) {
            text.push_str(&format!("(set-option {} {limit})\n", session.limit_option));
            session.limit = Some(limit);
        }
        text.push_str(&format!("(check-sat-assuming ({}))\n", names.join(" ")));
        let replies = session.exchange(&text)?;
        match replies.as_slice() {
            [answer] if answer.atom() == Some("sat") => self.model().map(Answer::Satisfiable),
            [answer] if answer.atom() == Some("unsat") => {
                Ok(Answer::Unsatisfiable { core: self.core(assumptions, &names)? })
            }
            [answer] if answer.atom() == Some("unknown") => {
                let reason = session.exchange("(get-info :reason-unknown)\n")?;
                let reason = reason.first().map(|r| format!("{r}")).unwrap_or_default();
                let spent = ["resource", "cancel", "limit"].iter().any(|w| reason.contains(w));
                Ok(Answer::Unknown(match spent && limit > 0 {
                    true => UnknownReason::Budget,
                    false => UnknownReason::Unsupported(format!(
                        "`{}` says unknown: {reason}",
                        self.command
                    )),
                }))
            }
            other => Err(Trouble::Garbage(other.iter().map(|r| format!("{r} ")).collect())),
        }
    }

    fn core(&mut self, assumptions: &[TermId], names: &[String]) -> Result<Vec<TermId>, Trouble> {
        let session = self.session.as_mut().expect("it just answered");
        let replies = match session.exchange("(get-unsat-assumptions)\n") {
            Ok(replies) => replies,
            // all assumptions are a core, too
            Err(Trouble::Error(_)) => return Ok(assumptions.to_vec()),
            Err(other) => return Err(other),
        };
        let Some(failed) = replies.first().and_then(Sexpr::list) else {
            return Err(Trouble::Garbage(replies.iter().map(|r| format!("{r} ")).collect()));
        };
        let failed: Vec<&str> = failed.iter().filter_map(Sexpr::atom).collect();
        let mut core: Vec<TermId> = assumptions
            .iter()
            .zip(names)
            .filter(|(_, name)| failed.contains(&name.as_str()))
            .map(|(&assumption, _)| assumption)
            .collect();
        core.sort_unstable();
        core.dedup();
        Ok(core)
    }

    fn model(&mut self) -> Result<Model, Trouble> {
        let session = self.session.as_mut().expect("it just answered");
        let terms = &self.problem.terms;
        let events = self.writer.must().events();
        let symbols = &self.writer.symbols;
        if events.is_empty() && symbols.is_empty() {
            return Ok(Model::default());
        }
        let mut text = String::from("(get-value (");
        for event in events {
            text.push_str(&format!("{event:?} "));
        }
        for &symbol in symbols {
            text.push_str(self.writer.name(symbol));
            text.push(' ');
        }
        text.push_str("))\n");
        let replies = session.exchange(&text)?;
        let strange = || Trouble::Garbage(String::from("a model that is not one"));
        let pairs = replies.first().and_then(Sexpr::list).ok_or_else(strange)?;
        if pairs.len() != events.len() + symbols.len() {
            return Err(strange());
        }
        let value = |pair: &Sexpr, sort| {
            let Some([_, value]) = pair.list() else { return Err(strange()) };
            parse_value(sort, value)
                .ok_or_else(|| Trouble::Garbage(format!("a value of sort {sort}: {value}")))
        };
        let mut places: Vec<(i128, EventId)> = Vec::with_capacity(events.len());
        for (pair, &event) in pairs.iter().zip(events) {
            match value(pair, foretell_trace::Sort::INT)? {
                Value::Int(place) => places.push((place, event)),
                _ => return Err(strange()),
            }
        }
        // equal values: the larger number comes first, see smtlib.rs
        places.sort_unstable_by_key(|&(place, event)| (place, std::cmp::Reverse(event)));
        let mut model =
            Model { order: places.into_iter().map(|p| p.1).collect(), ..Model::default() };
        for (pair, &symbol) in pairs[events.len()..].iter().zip(symbols) {
            let Term::Symbol(id) = terms.term(symbol) else {
                unreachable!("only symbols are kept")
            };
            model.values.insert(*id, value(pair, terms.sort(symbol))?);
        }
        Ok(model)
    }
}

impl OrderSolver for SmtLibSolver {
    fn terms(&mut self) -> &mut TermStore {
        &mut self.problem.terms
    }

    fn assert(&mut self, formula: TermId) {
        self.asserted.push(formula);
    }

    fn check(&mut self, assumptions: &[TermId], budget: Budget) -> Answer {
        self.statistics.checks += 1;
        if let Some(error) = &self.broken {
            return Answer::Unknown(UnknownReason::Unsupported(error.to_string()));
        }
        self.ask(assumptions, budget).unwrap_or_else(|trouble| {
            self.session = None;
            let reason = match trouble {
                Trouble::Error(message) => format!("`{}` reports {message}", self.command),
                Trouble::Died(message) => format!("`{}` ended: {message}", self.command),
                Trouble::Garbage(said) => {
                    format!("`{}` said something other than an answer: {said}", self.command)
                }
                Trouble::Ours(error) => {
                    self.broken = Some(error.clone());
                    error.to_string()
                }
            };
            Answer::Unknown(UnknownReason::Unsupported(reason))
        })
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }
}

/// Why there is no answer.
enum Trouble {
    /// The solver reported an error.
    Error(String),
    /// The process ended or closed its input.
    Died(String),
    /// It said something that is no answer.
    Garbage(String),
    /// The question cannot be written, or the process cannot be started.
    Ours(SolveError),
}

impl From<SolveError> for Trouble {
    fn from(error: SolveError) -> Self {
        Trouble::Ours(error)
    }
}

/// A solver process for questions that are not about orders (crate `foretell-verify`): SMT-LIB
/// text in, replies out.
pub struct Dialogue(Session);

impl Dialogue {
    /// Starts the command (words separated by blanks).
    pub fn start(command: &str) -> Result<Self, SolveError> {
        Session::start(command).map(Self)
    }

    /// Sends the text and returns everything that is said about it (16 replies at most). After an
    /// error the process may know anything: start another.
    pub fn exchange(&mut self, text: &str) -> Result<Vec<Sexpr>, String> {
        self.0.exchange(text).map_err(|trouble| match trouble {
            Trouble::Error(said) => format!("the solver reports {said}"),
            Trouble::Died(said) => format!("the solver ended: {said}"),
            Trouble::Garbage(said) => format!("the solver said something else: {said}"),
            Trouble::Ours(error) => error.to_string(),
        })
    }
}

/// A running process.
struct Session {
    process: Guarded,
    input: Option<ChildStdin>,
    replies: Receiver<Result<Sexpr, String>>,
    complaints: Arc<Mutex<String>>,
    exchanges: u64,
    limit: Option<u64>,
    limit_option: &'static str,
}

impl Session {
    fn start(command: &str) -> Result<Self, SolveError> {
        let start_error = |error: std::io::Error| SolveError::Start {
            command: command.to_string(),
            reason: error.to_string(),
        };
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default();
        let mut process = Guarded::start(
            Command::new(program)
                .args(words)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        )
        .map_err(start_error)?;
        let child = process.child();
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let (Some(output), Some(errors)) = (output, errors) else {
            unreachable!("both were asked to be pipes")
        };
        // The reader waits while nobody takes what it has read.
        let (sender, replies) = sync_channel(4);
        let reader = std::thread::Builder::new().spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let reply = read_sexpr(&mut output);
                let end = !matches!(reply, Ok(Some(_)));
                if let Some(reply) = reply.transpose()
                    && sender.send(reply).is_err()
                {
                    // nobody listens any more; keep draining so that the process can end
                    let _ = std::io::copy(&mut output, &mut std::io::sink());
                    return;
                }
                if end {
                    return;
                }
            }
        });
        reader.map_err(start_error)?;
        let complaints = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&complaints);
        let listener = std::thread::Builder::new().spawn(move || {
            let mut first = Vec::new();
            let mut errors = errors;
            let _ = errors.by_ref().take(1000).read_to_end(&mut first);
            if let Ok(mut kept) = kept.lock() {
                *kept = String::from_utf8_lossy(&first).trim().to_string();
            }
            let _ = std::io::copy(&mut errors, &mut std::io::sink());
        });
        listener.map_err(start_error)?;
        let mut session = Self {
            input: child.stdin.take(),
            process,
            replies,
            complaints,
            exchanges: 0,
            limit: None,
            limit_option: ":reproducible-resource-limit",
        };
        let hello = "(set-option :print-success false)\n\
                     (set-option :produce-models true)\n\
                     (set-option :produce-unsat-assumptions true)\n\
                     (get-info :name)\n";
        let strange =
            |reason: String| SolveError::NoSolver { command: command.to_string(), reason };
        match session.exchange(hello) {
            Ok(replies) => match replies.as_slice() {
                [Sexpr::List(info)] if info.first().and_then(Sexpr::atom) == Some(":name") => {
                    if info.get(1).and_then(Sexpr::atom) == Some("Z3") {
                        session.limit_option = ":rlimit";
                    }
                    Ok(session)
                }
                other => Err(strange(other.iter().map(|reply| format!("{reply} ")).collect())),
            },
            Err(Trouble::Error(text) | Trouble::Died(text) | Trouble::Garbage(text)) => {
                Err(strange(text))
            }
            Err(Trouble::Ours(error)) => Err(error),
        }
    }

    /// Sends the text and returns everything that is said up to an echo behind it.
    fn exchange(&mut self, text: &str) -> Result<Vec<Sexpr>, Trouble> {
        self.exchanges += 1;
        let mark = format!("foretell-{}", self.exchanges);
        // When the time is over the process is killed, which ends both writing and reading.
        let time = if self.exchanges == 1 { SILENCE } else { QUESTION };
        self.process.allow(Some(time));
        let sent = match &mut self.input {
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
            Some(input) => input
                .write_all(text.as_bytes())
                .and_then(|()| writeln!(input, "(echo \"{mark}\")"))
                .and_then(|()| input.flush()),
        };
        let mut replies = Vec::new();
        loop {
            match self.replies.recv() {
                Ok(Ok(reply)) if reply.atom() == Some(&mark) => break,
                Ok(Ok(reply)) => match reply.list() {
                    Some([head, rest @ ..]) if head.atom() == Some("error") => {
                        let text: Vec<String> = rest.iter().map(|r| format!("{r}")).collect();
                        return Err(Trouble::Error(text.join(" ")));
                    }
                    Some([_, last]) if last.atom() == Some(&mark) => {
                        return Err(Trouble::Garbage(String::from("what it was sent")));
                    }
                    // what a solver says to an option that it does not have
                    _ if reply.atom() == Some("unsupported") => {}
                    _ if replies.len() >= 16 => {
                        return Err(Trouble::Garbage(format!("{reply} and more")));
                    }
                    _ => replies.push(reply),
                },
                Ok(Err(garbage)) => return Err(Trouble::Garbage(garbage)),
                Err(_) if self.process.is_expired() => {
                    return Err(Trouble::Garbage(format!("nothing within {} s", time.as_secs())));
                }
                Err(_) => {
                    let status = self.process.wait().map(|status| status.to_string());
                    let complaint = self.complaints.lock().map(|c| c.clone()).unwrap_or_default();
                    let mut reason = status.unwrap_or_else(|error| error.to_string());
                    if let Err(error) = sent {
                        reason = format!("{reason} ({error})");
                    }
                    return Err(Trouble::Died(format!("{reason} {complaint}").trim().to_string()));
                }
            }
        }
        self.process.allow(None);
        sent.map_err(|error| Trouble::Died(error.to_string()))?;
        Ok(replies)
    }
}
