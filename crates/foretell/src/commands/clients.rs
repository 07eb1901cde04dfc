//! The run of a server with live clients that comes before all others: what they do is written to a file, which
//! is played in every run that follows.

use std::path::PathBuf;
use std::time::Duration;

use foretell_force::limits::MOST_POINTS;
use foretell_force::program::Program;
use foretell_force::run::{Limits, Runner};
use foretell_guard::say;
use foretell_record::{LiveClients, Ready, Served};

use crate::cli::{ClientArguments, TestArguments};
use crate::exit::Failure;

/// The file beside the schedules.
const FILE: &str = "clients.traffic";

/// The clients that were asked for.
pub fn live(given: &ClientArguments) -> LiveClients {
    let ready = match given.ready.as_deref() {
        None => Ready::Listens,
        Some(text) => text.parse().map_or_else(|_| Ready::Line(text.into()), Ready::Port),
    };
    LiveClients { commands: given.client.clone(), ready, stop: given.stop }
}

/// Says which of the clients did not end well.
pub fn say_failed(served: &Served) {
    for (command, how) in &served.failed {
        say!("foretell: the client `{}` did not end well: {how}", command.display());
    }
}

/// Runs server and clients; gives the file with what the clients did.
pub fn serve(arguments: &TestArguments, program: &Program) -> Result<PathBuf, Failure> {
    let live = live(&arguments.clients);
    let limits = Limits { time: Duration::from_secs(arguments.run.run_limit), points: MOST_POINTS };
    let input = |error: &dyn std::fmt::Display| Failure::Input(error.to_string());
    let runner = Runner::new(program).map_err(|error| input(&error))?;
    let served = runner.serve(live, limits).map_err(|error| input(&error))?;
    say_failed(&served);
    if served.script.connections() == 0 {
        let advice = "give clients that do, and --ready if they came too early";
        return Err(Failure::Input(format!("no client connected to the server; {advice}")));
    }
    let file = arguments.schedules.join(FILE);
    let written = std::fs::create_dir_all(&arguments.schedules)
        .and_then(|()| std::fs::write(&file, served.script.to_string()));
    written.map_err(|error| Failure::Input(format!("{}: {error}", file.display())))?;
    Ok(file)
}
