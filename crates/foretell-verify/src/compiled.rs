//! A counterexample on the compiled program: the same C file, built with foretell's compiler driver,
//! is made to take the steps of the counterexample and to fail (the validation of 001 section 5 that
//! a user can see; the rescheduling is that of 003).
//!
//! The environment of the counterexample is a *companion* C file: `__VERIFIER_nondet_*` give its
//! values in its order, `__VERIFIER_atomic_begin` takes a recursive mutex, `__VERIFIER_assume` ends
//! the run if it does not hold, `reach_error` aborts. The program itself is not changed; signed
//! overflow and indices outside arrays trap (clang's sanitizers).
//!
//! The counterexample is a list of steps of the model; a schedule is a list of events of the program.
//! They are matched turn by turn: the schedule so far is forced, then the thread whose turn it is runs
//! alone, so that its events are the ones that it has in this interleaving whatever they depend on.
//! The steps of its turn are found among them by kind, order and variable, and the schedule grows by
//! the events up to the last one.
//!
//! *Guaranteed*: what is forced has happened in a run of the compiled program, judged as `foretell
//! replay` judges. *Can be missed*: counterexamples that depend on the value of an uninitialised
//! variable, and steps that the compiler left out; the reason is given.

use std::ffi::OsString;
use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use foretell_build::{BuildError, Language};
use foretell_force::forced::Violation;
use foretell_force::judge::Outcome;
use foretell_force::program::Program as Compiled;
use foretell_force::replay::{ReplayError, replay};
use foretell_force::run::{Limits, Run, RunError, Runner};
use foretell_force::session::UNINTERRUPTED;
use foretell_guard::process;
use foretell_record::RunEnd;
use foretell_trace::schedule::{CreationPath, Schedule, Step};
use foretell_trace::{Event as TraceEvent, EventId, Op, SyncOp, Trace, VariableId};
use foretell_wire::is_local;

use crate::counterexample::{Counterexample, Ending, Event};
use crate::ir::clang::Options;
use crate::limits::{LONGEST_TURN, POINTS};
use crate::program::Visible;

/// The companion's variable that counts the values given; a write of it is the step that takes one.
const INPUTS_TAKEN: &str = "foretell_inputs_taken";

/// The companion's mutex for atomic sections.
const ATOMIC_MUTEX: &str = "foretell_atomic_section";

/// Stands for `pthread_cond_wait` where the counterexample wakes up without a signal.
const WAKES_BY_ITSELF: &str = "foretell_cond_wait";

/// A counterexample that happened.
#[derive(Debug)]
pub struct Forced {
    /// The compiled program.
    pub program: PathBuf,
    /// The generated file that was compiled with it.
    pub companion: PathBuf,
    /// How to make it happen again.
    pub schedule: Schedule,
    /// How the run ended.
    pub ended: String,
    /// Runs that it took.
    pub runs: usize,
    /// A wait for a condition ended without a signal (which POSIX allows and the C library here does
    /// not do by itself).
    pub woken: bool,
}

/// Why a counterexample was not forced.
#[derive(Debug)]
pub enum NotForced {
    /// Foretell's compiler driver cannot be used.
    Driver(BuildError),
    /// The program was not compiled; what the compiler said.
    Compiler(String),
    /// A file cannot be written.
    File(PathBuf, std::io::Error),
    /// The program cannot be run.
    Run(RunError),
    /// The program did not come to a step of the counterexample.
    Step {
        /// The step.
        step: String,
        /// What it did instead.
        why: String,
    },
    /// There was no time left; which.
    Over(String),
    /// Every step was taken, and the violation did not happen.
    Held(String),
    /// The finished schedule was not followed again.
    Replay(ReplayError),
}

impl fmt::Display for NotForced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotForced::Driver(error) => write!(f, "the program cannot be compiled: {error}"),
            NotForced::Compiler(said) => write!(f, "the program was not compiled: {said}"),
            NotForced::File(path, error) => write!(f, "{}: {error}", path.display()),
            NotForced::Run(error) => error.fmt(f),
            NotForced::Step { step, why } => {
                write!(f, "the compiled program did not come to `{step}`: {why}")
            }
            NotForced::Over(why) => f.write_str(why),
            NotForced::Held(why) => {
                write!(f, "the compiled program took every step and did not fail: {why}")
            }
            NotForced::Replay(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotForced {}

/// Compiles the program with the environment of the counterexample into a folder, and forces the
/// counterexample on it.
///
/// `called`: where the compiled program will lie; the schedule calls it so. `limit`: how long a single run
/// may take; one that takes longer is ended.
pub fn force(
    counterexample: &Counterexample,
    source: &Path,
    folder: &Path,
    called: &Path,
    options: Options,
    limit: Duration,
) -> Result<Forced, NotForced> {
    let limits = Limits { time: limit, points: POINTS };
    let plain = attempt(counterexample, source, folder, called, options, limits, false);
    match plain {
        Err(NotForced::Step { .. }) if counterexample.waits() => {
            attempt(counterexample, source, folder, called, options, limits, true).or(plain)
        }
        _ => plain,
    }
}

fn attempt(
    counterexample: &Counterexample,
    source: &Path,
    folder: &Path,
    called: &Path,
    options: Options,
    limits: Limits,
    woken: bool,
) -> Result<Forced, NotForced> {
    let stem = source.file_stem().unwrap_or(source.as_os_str());
    let binary = folder.join(stem);
    let companion = folder.join(stem).with_added_extension("companion.c");
    std::fs::write(&companion, companion_of(counterexample))
        .map_err(|error| NotForced::File(companion.clone(), error))?;
    compile(source, &companion, &binary, options, woken)?;
    let mut compiled = Compiled::new(&binary, Vec::new());
    compiled.called = Some(called.to_owned());
    let runner = Runner::new(&compiled).map_err(NotForced::Run)?;
    let (trace, mut steps) = follow(counterexample, &runner, limits)?;
    let confirm = |steps: &[Step]| {
        let mut schedule = Schedule::of_trace(&trace, [], []);
        schedule.steps = steps.to_vec();
        let input = compiled.digest().map_err(|error| NotForced::File(binary.clone(), error))?;
        schedule.input = Some(input.to_string().into());
        schedule.violation = Some(violation(counterexample.ending).name().into());
        let replayed = replay(&schedule, &compiled, &UNINTERRUPTED, limits.time);
        let replayed = replayed.map_err(NotForced::Replay)?;
        let ended = match &replayed.run.end {
            // a trap has no line of its own
            RunEnd::Signal(libc::SIGILL) => {
                format!("trap at {}: {}", counterexample.place, counterexample.violation)
            }
            _ => replayed.run.ended(),
        };
        match replayed.verdict.outcome {
            Outcome::Confirmed(_) if replayed.counts() => Ok((schedule, ended)),
            Outcome::Refuted(why) | Outcome::NotForced(why) => Err(NotForced::Held(why)),
            _ => Err(NotForced::Held(ended)),
        }
    };
    let mut confirmed = confirm(&steps);
    // a thread of which nobody sees more than that it begins may sleep, and others go on before it fails
    if matches!(confirmed, Err(NotForced::Held(_)))
        && steps.pop_if(|last| &*last.operation == "begin").is_some()
        && !steps.is_empty()
        && let Ok(other) = confirm(&steps)
    {
        confirmed = Ok(other);
    }
    let (schedule, ended) = confirmed?;
    let runs = runner.runs() + 1;
    Ok(Forced { program: binary, companion, schedule, ended, runs, woken })
}

fn violation(ending: Ending) -> Violation {
    match ending {
        Ending::Assertion => Violation::Assertion,
        Ending::Fault => Violation::Fault,
        Ending::Deadlock => Violation::Deadlock,
    }
}

/// What the environment does, as C.
fn companion_of(counterexample: &Counterexample) -> String {
    let inputs = counterexample.events.iter().filter_map(|event| event.input);
    // a value of unsigned 64 bits is the same bits
    let inputs: Vec<String> = inputs.map(|value| format!("{value}ull")).collect();
    let mut text = format!(
        "/* Made by `foretell verify {}`: what the environment does in its counterexample. */\n\
         #include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\n\
         #define WEAK __attribute__((weak))\n\n\
         static const unsigned long long inputs[] = {{{}}};\n\
         unsigned {INPUTS_TAKEN} = 0;\n\n\
         static unsigned long long next_input(void) {{\n\
         \x20 unsigned n = {INPUTS_TAKEN}++;\n\
         \x20 return n < {} ? inputs[n] : 0;\n}}\n\n",
        counterexample.file,
        if inputs.is_empty() { "0".to_owned() } else { inputs.join(", ") },
        inputs.len(),
    );
    for (name, kind) in NONDET {
        let _ =
            writeln!(text, "WEAK {kind} __VERIFIER_nondet_{name}(void) {{ return next_input(); }}");
    }
    // functions of the C library, only where the counterexample has their values
    for (name, kind, parameters) in
        [("rand", "int", "void"), ("random", "long", "void"), ("time", "long", "long *to")]
    {
        let given = format!("{name}() = ");
        if counterexample.events.iter().any(|event| event.text.starts_with(&given)) {
            let _ = writeln!(text, "{kind} {name}({parameters}) {{ return next_input(); }}");
        }
    }
    let _ = write!(
        text,
        "\npthread_mutex_t {ATOMIC_MUTEX} = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;\n\
         WEAK void __VERIFIER_atomic_begin(void) {{ pthread_mutex_lock(&{ATOMIC_MUTEX}); }}\n\
         WEAK void __VERIFIER_atomic_end(void) {{ pthread_mutex_unlock(&{ATOMIC_MUTEX}); }}\n\n\
         WEAK void __VERIFIER_assume(int holds) {{\n\
         \x20 if (holds) return;\n\
         \x20 fputs(\"foretell: an assumption does not hold in this run\\n\", stderr);\n\
         \x20 _exit(77);\n}}\n\
         WEAK void assume_abort_if_not(int holds) {{ __VERIFIER_assume(holds); }}\n\
         WEAK void reach_error(void) {{ abort(); }}\n\
         WEAK void __VERIFIER_error(void) {{ abort(); }}\n\n\
         /* POSIX allows a wait to end without a signal. */\n\
         int {WAKES_BY_ITSELF}(pthread_cond_t *condition, pthread_mutex_t *mutex) {{\n\
         \x20 (void)condition;\n\
         \x20 pthread_mutex_unlock(mutex);\n\
         \x20 return pthread_mutex_lock(mutex);\n}}\n",
    );
    text
}

/// The functions of SV-COMP that give a value, and their types.
const NONDET: [(&str, &str); 22] = [
    ("int", "int"),
    ("uint", "unsigned"),
    ("unsigned", "unsigned"),
    ("unsigned_int", "unsigned"),
    ("u32", "unsigned"),
    ("U32", "unsigned"),
    ("bool", "_Bool"),
    ("_Bool", "_Bool"),
    ("char", "signed char"),
    ("schar", "signed char"),
    ("uchar", "unsigned char"),
    ("u8", "unsigned char"),
    ("U8", "unsigned char"),
    ("short", "short"),
    ("ushort", "unsigned short"),
    ("u16", "unsigned short"),
    ("U16", "unsigned short"),
    ("long", "long"),
    ("longlong", "long long"),
    ("ulong", "unsigned long"),
    ("ulonglong", "unsigned long long"),
    ("size_t", "unsigned long"),
];

fn compile(
    source: &Path,
    companion: &Path,
    binary: &Path,
    options: Options,
    woken: bool,
) -> Result<(), NotForced> {
    // Unoptimised, so that every access of the source is one of the program.
    let words = ["-O0", "-g", "-w", "-Wno-everything", "-pthread", "-D_GNU_SOURCE"];
    let mut words: Vec<OsString> = words.map(OsString::from).into();
    let checked: &[&str] = match options.overflow {
        true => &[
            "-fsanitize=signed-integer-overflow,array-bounds",
            "-fsanitize-trap=signed-integer-overflow,array-bounds",
        ],
        false => &["-fwrapv", "-fsanitize=array-bounds", "-fsanitize-trap=array-bounds"],
    };
    words.extend(checked.iter().map(OsString::from));
    if woken {
        words.push(format!("-Dpthread_cond_wait={WAKES_BY_ITSELF}").into());
    }
    words.extend(["-o".into(), binary.into(), source.into(), companion.into()]);
    let mut command = foretell_build::command(Language::C, words).map_err(NotForced::Driver)?;
    // What the compiler leaves when it is ended goes with the folder.
    if let Some(folder) = binary.parent() {
        command.env("TMPDIR", folder);
    }
    let output =
        process::output(&mut command).map_err(|error| NotForced::Compiler(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| line.contains("error")).unwrap_or("it fails");
            Err(NotForced::Compiler(first.to_owned()))
        }
    }
}

/// The schedule of the counterexample, and a trace of the program that it is for.
fn follow(
    counterexample: &Counterexample,
    runner: &Runner<'_>,
    limits: Limits,
) -> Result<(Trace, Vec<Step>), NotForced> {
    let seen: Vec<&Event> =
        counterexample.events.iter().filter(|event| event.does != Visible::No).collect();
    let mut turns: Vec<(CreationPath, Vec<&Event>)> = seen
        .chunk_by(|a, b| a.thread == b.thread)
        .map(|turn| (turn[0].thread.clone(), turn.to_vec()))
        .collect();
    let hangs = counterexample.ending == Ending::Deadlock;
    if !hangs && turns.last().is_none_or(|(thread, _)| *thread != counterexample.thread) {
        turns.push((counterexample.thread.clone(), Vec::new()));
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut trace = None;
    let last = turns.len() - 1;
    for (number, (thread, turn)) in turns.iter().enumerate() {
        let (run, events) = alone(runner, &steps, thread, limits)?;
        let mut at = 0;
        for event in turn {
            let is_it = |(found, _): &(EventId, Step)| is(event, &run.trace, *found);
            let Some(further) = events[at..].iter().position(is_it) else {
                let step = format!("{} at {}: {}", event.name, event.place, event.text);
                return Err(NotForced::Step { step, why: ended(&run) });
            };
            let site = run.trace.event(events[at + further].0).site;
            at += further + 1;
            // a copy is several accesses of one place
            while event.does == Visible::Copy
                && let Some((next, _)) = events.get(at)
                && run.trace.event(*next).site == site
            {
                at += 1;
            }
        }
        if number == last && !hangs {
            if !matches!(run.end, RunEnd::Signal(_)) {
                return Err(NotForced::Held(ended(&run)));
            }
            // up to the end, in case that it does more before it fails (it prints); with the assertion, so
            // that no other one fails before
            let seen = events
                .iter()
                .rposition(|(_, step)| !is_local(&step.operation) || &*step.operation == "assert");
            // with its beginning, if there is nothing else: the turn is to be this thread's
            at = seen.map_or(at, |last| at.max(last + 1)).max(events.len().min(1));
        }
        steps.extend(events.into_iter().take(at).map(|(_, step)| step));
        trace = Some(run.trace);
    }
    match trace {
        Some(trace) if !steps.is_empty() => Ok((trace, steps)),
        // the thread fails by itself, before anybody can see it
        _ => {
            let run = runner.run(Vec::new(), UNINTERRUPTED, limits).map_err(NotForced::Run)?;
            let first = (!run.trace.events.is_empty()).then(|| EventId::from(0));
            let steps = Schedule::of_trace(&run.trace, first, []).steps;
            Ok((run.trace, steps))
        }
    }
}

/// How the run of a thread alone ended, for people.
fn ended(run: &Run) -> String {
    match &run.end {
        RunEnd::LeftSchedule(divergence) => divergence.reason.to_string(),
        _ => run.ended(),
    }
}

/// Forces the steps, then lets the thread run alone for as long as it can: the run, and the thread's
/// events behind the steps.
fn alone(
    runner: &Runner<'_>,
    steps: &[Step],
    thread: &CreationPath,
    limits: Limits,
) -> Result<(Run, Vec<(EventId, Step)>), NotForced> {
    let before = steps.iter().filter(|step| step.thread == *thread).count();
    let mut forced = steps.to_vec();
    // A step that is too far away to be taken: until then the turn is the thread's.
    forced.push(Step {
        thread: thread.clone(),
        index: before as u32 + LONGEST_TURN,
        operation: "end".into(),
        site: None,
    });
    let run = runner.run(forced, UNINTERRUPTED, limits).map_err(NotForced::Run)?;
    if let Some(why) = foretell_guard::stop::why() {
        return Err(NotForced::Over(why));
    }
    if run.steps_taken < steps.len() {
        let step = &steps[run.steps_taken];
        let step = format!("step {} of thread {}", step.index, step.thread);
        return Err(NotForced::Step { step, why: ended(&run) });
    }
    let trace = &run.trace;
    let own = trace.threads.iter().position(|other| other.path == thread.0);
    let own = own.map(|own| trace.events_by_thread().swap_remove(own)).unwrap_or_default();
    let behind = &own[before.min(own.len())..];
    let behind_steps = Schedule::of_trace(trace, behind.iter().copied(), []).steps;
    let events = behind.iter().copied().zip(behind_steps).collect();
    Ok((run, events))
}

/// Is it the event of the counterexample?
fn is(wanted: &Event, trace: &Trace, event: EventId) -> bool {
    let event = trace.event(event);
    let of_section =
        |lock: &foretell_trace::ObjectId| &*trace.objects[lock.index()].name == ATOMIC_MUTEX;
    match (wanted.does, &event.op) {
        (Visible::Read, Op::Read(access)) | (Visible::Write, Op::Write(access)) => {
            accesses(wanted, trace, event, access.variable)
        }
        (Visible::Copy, Op::Read(_) | Op::Write(_)) => {
            event.site.is_some_and(|site| trace.sites[site.index()].line == wanted.line)
        }
        // a compare-and-swap that fails only reads
        (Visible::Modify, Op::Read(access)) => accesses(wanted, trace, event, access.variable),
        (Visible::Modify, Op::ReadModifyWrite(_)) => true,
        (Visible::Input, Op::Write(access)) => {
            &*trace.variables[access.variable.index()].name == INPUTS_TAKEN
        }
        (
            Visible::Lock | Visible::TryLock | Visible::WaitEnd,
            Op::Sync(lock, SyncOp::Acquire(_)),
        )
        | (Visible::TryLock, Op::Sync(lock, SyncOp::AcquireFailed(_)))
        | (Visible::Unlock | Visible::WaitBegin, Op::Sync(lock, SyncOp::Release(_))) => {
            !of_section(lock)
        }
        (Visible::AtomicEnd, Op::Sync(lock, SyncOp::Release(_))) => of_section(lock),
        (Visible::WaitBegin, Op::Sync(_, SyncOp::WaitBegin { .. }))
        | (Visible::WaitEnd, Op::Sync(_, SyncOp::WaitEnd { .. }))
        | (Visible::Signal, Op::Sync(_, SyncOp::Signal | SyncOp::Broadcast))
        | (
            Visible::SemaphoreWait,
            Op::Sync(_, SyncOp::SemaphoreWait { .. } | SyncOp::SemaphoreWaitFailed),
        )
        | (Visible::SemaphorePost, Op::Sync(_, SyncOp::SemaphorePost))
        | (Visible::BarrierArrive, Op::Sync(_, SyncOp::BarrierArrive))
        | (Visible::BarrierLeave, Op::Sync(_, SyncOp::BarrierLeave))
        | (Visible::Fork, Op::Fork(_))
        | (Visible::Join, Op::Join(_))
        | (Visible::End, Op::ThreadEnd) => true,
        _ => false,
    }
}

/// Is it the variable of the event? Globals have names; locals that others see and memory of
/// `malloc` have none in a trace, there the line decides.
fn accesses(wanted: &Event, trace: &Trace, event: &TraceEvent, variable: VariableId) -> bool {
    let found = &*trace.variables[variable.index()].name;
    match &wanted.variable {
        // a static variable of a function has the function's name in front in one of them only, a member its
        // path behind the variable's name in the other
        Some(name) => {
            let (found, name) = (base_name(found), base_name(name));
            let variable = found.split('.').next().unwrap_or(found);
            let own = name.rsplit('.').next().unwrap_or(name);
            [found, variable].iter().any(|found| *found == name || *found == own)
        }
        None => {
            let line = event.site.map_or(0, |site| trace.sites[site.index()].line);
            line == wanted.line
        }
    }
}

/// `cells` of `cells[3]`
fn base_name(name: &str) -> &str {
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
    &name[..end.unwrap_or(name.len())]
}
