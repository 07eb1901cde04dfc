//! `foretell replay`: a schedule, forced on the program once more.

use std::io::Write;
use std::time::Duration;

use foretell_force::judge::Outcome;
use foretell_force::replay::{ReplayError, Replayed, debug, replay};
use foretell_force::session::UNINTERRUPTED;
use foretell_guard::say;
use foretell_guard::text::bytes_for_terminal;
use foretell_record::RunEnd;
use foretell_trace::schedule::Schedule;
use serde_json::{Value, json};

use crate::cli::ReplayArguments;
use crate::commands::explaining::come_to_a_close;
use crate::commands::program::prepare;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Replays and prints.
pub fn run(arguments: &ReplayArguments, output: &mut Output) -> Result<Exit, Failure> {
    come_to_a_close(arguments.time_limit);
    let in_file =
        |error: &dyn std::fmt::Display| format!("{}: {error}", arguments.schedule.display());
    let text = std::fs::read_to_string(&arguments.schedule)
        .map_err(|error| Failure::Input(in_file(&error)))?;
    let schedule = Schedule::parse(&text).map_err(|error| Failure::Input(in_file(&error)))?;
    let mut how = arguments.run.clone();
    let runner = schedule.runner.as_deref();
    how.symbolic |= runner == Some(Schedule::QEMU_SYMBOLIC);
    how.binary |= how.symbolic || runner == Some(Schedule::QEMU);
    let prepared = prepare(&arguments.program, &how)?;
    let after = arguments.run.after.clone().unwrap_or(UNINTERRUPTED);
    let limit = Duration::from_secs(arguments.run.run_limit);
    let failed = |error: ReplayError| match error {
        ReplayError::Run(_) => Failure::Input(error.to_string()),
        _ => Failure::Input(in_file(&error)),
    };
    if arguments.gdb {
        return match debug(&schedule, &prepared.program, &after).map_err(failed)? {
            RunEnd::LeftSchedule(divergence) => {
                say!("foretell: the program left the schedule: {divergence}");
                Ok(Exit::Incomplete)
            }
            RunEnd::Refused(why) => {
                say!("foretell: the run was ended: {why}");
                Ok(Exit::Incomplete)
            }
            _ => Ok(Exit::NothingFound),
        };
    }
    let replayed = replay(&schedule, &prepared.program, &after, limit).map_err(failed)?;
    if output.json() {
        output.object(json!({
            "version": 1,
            "program": {"command": schedule.program, "build_id": schedule.build_id},
            "replay": to_json(arguments, &schedule, &replayed),
        }))?;
    } else {
        output.write_all(&replayed.run.written.stdout)?;
        output.flush()?;
        let stderr = bytes_for_terminal(&replayed.run.written.stderr);
        let _ = std::io::stderr().write_all(stderr.as_bytes()); // nobody reads it: no matter
        writeln!(output, "replay: {}", told(&replayed))?;
        writeln!(output, "  the run ended: {}", replayed.run.ended())?;
        if let Some(sentence) = &replayed.verdict.difference.other_path {
            writeln!(output, "  {sentence}")?;
        }
        if let Some(difference) = &replayed.verdict.difference.output {
            write!(output, "  the output differs:\n{difference}")?;
        }
    }
    Ok(match replayed.verdict.outcome {
        Outcome::Refuted(_) | Outcome::NotForced(_) => Exit::Incomplete,
        Outcome::Confirmed(_) | Outcome::Benign if replayed.counts() => Exit::Confirmed,
        Outcome::Confirmed(_) | Outcome::Benign => Exit::NothingFound,
    })
}

fn told(replayed: &Replayed) -> String {
    let sentence = &replayed.verdict.difference.sentence;
    match &replayed.verdict.outcome {
        Outcome::Confirmed(effect) => format!("it happened again, effect {effect}: {sentence}"),
        Outcome::Benign => "it happened again, and nothing came of it".into(),
        Outcome::Refuted(why) => format!("it did not happen: {why}"),
        Outcome::NotForced(why) => format!("it could not be tried: {why}"),
    }
}

fn to_json(arguments: &ReplayArguments, schedule: &Schedule, replayed: &Replayed) -> Value {
    let (status, reason) = match &replayed.verdict.outcome {
        Outcome::Confirmed(_) | Outcome::Benign => ("confirmed", None),
        Outcome::Refuted(why) => ("refuted", Some(why)),
        Outcome::NotForced(why) => ("predicted", Some(why)),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let written = &replayed.run.written;
    json!({
        "schedule": arguments.schedule.display().to_string(),
        "finding": schedule.finding,
        "violation": replayed.violation.name(),
        "status": status,
        "reason": reason,
        "effect": replayed.verdict.effect().map(|effect| effect.name()),
        "detail": replayed.verdict.difference.sentence,
        "ended": replayed.run.ended(),
        "steps": schedule.steps.len(),
        "steps_taken": replayed.run.steps_taken,
        "stdout": text(&written.stdout),
        "stderr": text(&written.stderr),
    })
}
