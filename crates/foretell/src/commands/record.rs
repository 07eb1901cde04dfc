//! `foretell record`: one run, recorded.

use std::time::Duration;

use foretell_record::{Policy, RecordError, RecordOptions, RunEnd, record};

use crate::cli::{RecordArguments, ScheduleName};
use crate::exit::{Exit, Failure};

/// Events of a turn when foretell chooses who runs.
const TURN: u32 = 20;

/// Records; what foretell has to say goes to standard error, for standard output is the program's.
pub fn run(arguments: &RecordArguments) -> Result<Exit, Failure> {
    let (program, rest) = arguments.program.split_first().expect("clap demands a program");
    let mut options = RecordOptions::new(program, &arguments.output);
    options.arguments = rest.to_vec();
    options.policy = match arguments.schedule {
        ScheduleName::Os => Policy::Os,
        ScheduleName::RoundRobin => Policy::RoundRobin { quantum: TURN },
        ScheduleName::Random => Policy::Random { seed: arguments.seed, mean: TURN },
    };
    options.time_limit = arguments.time_limit.map(Duration::from_secs);
    let outcome = record(&options).map_err(|error| match error {
        RecordError::Memory(_) => Failure::Internal(error.to_string()),
        _ => Failure::Input(error.to_string()),
    })?;
    eprintln!(
        "foretell: recorded {} events of {} threads in {}",
        outcome.events,
        outcome.threads,
        arguments.output.display()
    );
    for gap in &outcome.gaps {
        eprintln!("foretell: not seen: {gap}");
    }
    for restriction in &outcome.restrictions {
        eprintln!("foretell: not varied: {restriction}");
    }
    Ok(match outcome.end {
        RunEnd::Exit(status) => Exit::OfProgram(u8::try_from(status & 0xff).unwrap_or(1)),
        // As a shell says it.
        RunEnd::Signal(signal) => Exit::OfProgram(u8::try_from(128 + signal).unwrap_or(255)),
        RunEnd::Deadlock(who) | RunEnd::Livelock(who) => {
            eprintln!("foretell: the program can not go on: {who}");
            Exit::Incomplete
        }
        RunEnd::Hang => {
            eprintln!("foretell: the program was ended by the time limit");
            Exit::Incomplete
        }
        RunEnd::Diverged(why) => return Err(Failure::Input(why.to_string())),
        RunEnd::Refused(why) => return Err(Failure::Input(why)),
    })
}
