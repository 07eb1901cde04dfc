//! `foretell record`: one run, recorded.

use std::path::Path;
use std::time::Duration;

use foretell_force::run::BlockedThread;
use foretell_guard::{descendants, say, stop};
use foretell_predict::progress::{Phase, Progress};
use foretell_record::{
    Blocked, Clients, Form, InSchedules, OnRecorderDeath, Ready, RecordError, RecordOptions,
    RecordOutcome, RunEnd, SyncOutcome, check_traffic, endless, record, record_sync_only,
    standstill,
};
use foretell_trace::format::Format;
use foretell_trace::schedule::CreationPath;
use serde_json::{Value, json};

use crate::cli::{OnRecorderDeathName, RecordArguments};
use crate::commands::clients::{live, say_failed};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::Line;

/// Records. What foretell has to say to people goes to standard error, for standard output is the
/// program's; with `--format json` it is the other way round.
pub fn run(arguments: &RecordArguments, output: &mut Output) -> Result<Exit, Failure> {
    // While the program runs, signals are passed on to it; afterwards the file is completed first.
    stop::come_to_a_close_first();
    // A program that is only recorded may leave a daemon behind, as it would without us.
    descendants::leave_alone();
    let (program, rest) = arguments.program.split_first().expect("clap demands a program");
    let default = if arguments.sync_only { "run.sync" } else { "run.ftrace" };
    let file = arguments.output.as_deref().unwrap_or(Path::new(default));
    let mut options = RecordOptions::new(program, file);
    options.arguments = rest.to_vec();
    options.policy = arguments.schedule.clone();
    options.replay = arguments.replay.clone();
    options.concrete = arguments.concrete;
    options.binary = arguments.binary;
    options.terms = arguments.binary && arguments.symbolic;
    options.form = if arguments.compact { Form::Trace } else { Form::Log };
    options.time_limit = arguments.time_limit.map(Duration::from_secs);
    options.size_limit = Some(arguments.size_limit.saturating_mul(1 << 20));
    options.output_to_error = output.json();
    options.on_recorder_death = match arguments.on_recorder_death {
        OnRecorderDeathName::Continue => OnRecorderDeath::Continue,
        OnRecorderDeathName::End => OnRecorderDeath::End,
    };
    options.clients = clients(arguments)?;
    let failure = |error: RecordError| Failure::Input(error.to_string());
    if arguments.sync_only {
        let outcome = record_sync_only(&options).map_err(failure)?;
        if output.json() {
            output.object(logged(&options, &outcome))?;
        } else {
            say!(
                "foretell: logged {} operations of {} threads in {}",
                outcome.entries,
                outcome.threads,
                file.display()
            );
        }
        return end(&outcome.end);
    }
    let progress = Progress::default();
    progress.begin(Phase::Recording, 0);
    options.events = progress.counter();
    let line = Line::show(&progress);
    let outcome = record(&options).map_err(failure)?;
    drop(line);
    if let Some(served) = &outcome.served {
        say_failed(served);
    }
    if output.json() {
        output.object(recorded(&options, &outcome))?;
    } else {
        say!(
            "foretell: recorded {} events of {} threads in {}",
            outcome.events,
            outcome.threads,
            file.display()
        );
        for gap in &outcome.gaps {
            say!("foretell: not seen: {gap}");
        }
        for restriction in &outcome.restrictions {
            say!("foretell: not varied: {restriction}");
        }
    }
    let exit = end(&outcome.end)?;
    if let Some(lost) = &outcome.lost {
        say!("foretell: {} is not complete: {lost}; make room and record again", file.display());
        return Ok(Exit::Incomplete);
    }
    if arguments.symbolic && !outcome.symbolic {
        say!(
            "foretell: the trace has no expressions for all of the program: compile it with \
             `foretell cc` or `foretell c++` (without -fforetell=concrete)"
        );
        return Ok(Exit::Incomplete);
    }
    Ok(exit)
}

/// Who talks to the program.
fn clients(arguments: &RecordArguments) -> Result<Option<Clients>, Failure> {
    if let Some(file) = &arguments.traffic {
        check_traffic(file).map_err(Failure::Input)?;
        return Ok(Some(Clients::Played(file.clone())));
    }
    if arguments.clients.client.is_empty() {
        return Ok(None);
    }
    let live = live(&arguments.clients);
    match live.ready {
        _ if arguments.sync_only => {
            Err(Failure::Input("--sync-only takes no --client; start the clients yourself".into()))
        }
        Ready::Line(_) => Err(Failure::Input(
            "`foretell record` does not look at what the program writes; give --ready a port"
                .into(),
        )),
        _ => Ok(Some(Clients::Live(live))),
    }
}

/// The exit code for the way the run ended, with a word where the program did not end by itself.
fn end(end: &RunEnd) -> Result<Exit, Failure> {
    Ok(match end {
        RunEnd::Exit(status) => Exit::OfProgram(u8::try_from(status & 0xff).unwrap_or(1)),
        // As a shell says it.
        RunEnd::Signal(signal) => Exit::OfProgram(u8::try_from(128 + signal).unwrap_or(255)),
        RunEnd::Deadlock(threads) => {
            say!("foretell: the program cannot go on: {}", InSchedules(&standstill(threads)));
            Exit::Incomplete
        }
        RunEnd::Livelock(threads) => {
            say!("foretell: the program was ended: {}", InSchedules(&endless(threads)));
            Exit::Incomplete
        }
        RunEnd::Hang => {
            say!("foretell: the program was ended by the time limit");
            Exit::Incomplete
        }
        RunEnd::Stopped => {
            say!("foretell: the recording was ended by a signal");
            Exit::Incomplete
        }
        RunEnd::LeftSchedule(why) => {
            say!("foretell: the program did not follow the log: {why}");
            Exit::Incomplete
        }
        RunEnd::Refused(why) => return Err(Failure::Input(why.clone())),
    })
}

/// The result of a recording, as in the schema.
fn recorded(options: &RecordOptions, outcome: &RecordOutcome) -> Value {
    let format = match options.form {
        Form::Log => Format::Log,
        Form::Trace => Format::Binary,
    };
    json!({
        "version": 1,
        "program": program(options),
        "trace": {
            "format": format.to_string(),
            "file": options.output.display().to_string(),
            "threads": outcome.threads,
            "events": outcome.events,
            "bytes": outcome.bytes,
            "symbolic": outcome.symbolic,
            "gaps": outcome.gaps,
            "restrictions": outcome.restrictions,
        },
        "end": ended(&outcome.end),
    })
}

/// The result of a recording of synchronisation only.
fn logged(options: &RecordOptions, outcome: &SyncOutcome) -> Value {
    json!({
        "version": 1,
        "program": program(options),
        "log": {
            "file": options.output.display().to_string(),
            "threads": outcome.threads,
            "entries": outcome.entries,
            "bytes": outcome.bytes,
        },
        "end": ended(&outcome.end),
    })
}

fn program(options: &RecordOptions) -> Value {
    let command: Vec<String> = std::iter::once(options.program.as_os_str())
        .chain(options.arguments.iter().map(AsRef::as_ref))
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    json!({ "command": command })
}

fn blocked(threads: &[Blocked]) -> Vec<BlockedThread> {
    threads.iter().map(|blocked| BlockedThread::of(blocked, CreationPath::to_string)).collect()
}

fn ended(end: &RunEnd) -> Value {
    match end {
        RunEnd::Exit(status) => json!({"kind": "exit", "status": status}),
        RunEnd::Signal(signal) => json!({"kind": "signal", "signal": signal}),
        RunEnd::Deadlock(threads) => json!({"kind": "deadlock",
            "message": InSchedules(&standstill(threads)).to_string(), "blocked": blocked(threads)}),
        RunEnd::Livelock(threads) => json!({"kind": "livelock",
            "message": InSchedules(&endless(threads)).to_string(), "blocked": blocked(threads)}),
        RunEnd::Hang => json!({"kind": "hang"}),
        RunEnd::Stopped => json!({"kind": "stopped"}),
        RunEnd::LeftSchedule(why) => json!({"kind": "diverged", "message": why.to_string()}),
        RunEnd::Refused(why) => json!({"kind": "refused", "message": why}),
    }
}
