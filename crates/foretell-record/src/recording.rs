//! One run, recorded: started, followed to its end, and what is to be said about it.
//!
//! Nothing but the program and what it wrote stays behind, whatever ends the run.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use foretell_guard::descendants::{self, Mark};
use foretell_guard::launch::Launch;
use foretell_guard::process::Owned;
use foretell_guard::{Keep, Replacement};
use foretell_trace::Trace;
use foretell_trace::format::ReadError;
use foretell_wire::standing::Sentence;
use foretell_wire::{End, environment, format_turns};

use crate::blocked::{self, InSchedules};
use crate::clients::{Clients, Serving};
use crate::emulator::Emulator;
use crate::forced::{self, Comparison, LeftSchedule};
use crate::log::About;
use crate::outside::{Cause, Noted};
use crate::process_end::ProcessEnd;
use crate::processor::Seat;
use crate::ring::{DAMAGED, Ring};
use crate::server::ForkServer;
use crate::signals::{self, Requests, SignalsPassOn};
use crate::sink::{Destination, Finished, Sink};
use crate::{
    Form, OnRecorderDeath, RecordError, RecordOptions, RecordOutcome, RunEnd, Switching, Times,
    find, layout, runtime_library, standstill, sync_only,
};

/// What is the same in every run of a program.
#[derive(Debug)]
pub struct Prepared {
    /// The executable.
    pub program: PathBuf,
    /// What gets into it.
    controlled: Controlled,
    build_id: Option<String>,
}

/// How a program is controlled.
#[derive(Debug)]
enum Controlled {
    /// By the runtime library in it.
    Runtime(PathBuf),
    /// By the plugin in the QEMU that runs it.
    Emulator(Emulator),
}

impl Prepared {
    pub fn new(options: &RecordOptions) -> Result<Self, RecordError> {
        let program = find::program(&options.program)
            .ok_or_else(|| RecordError::NoProgram(options.program.clone()))?;
        let controlled = match options.binary {
            true => Controlled::Emulator(Emulator::new(&program, options.debugger.as_ref())?),
            false => Controlled::Runtime(library(options)?),
        };
        let build_id = find::build_id(&program);
        Ok(Self { program, controlled, build_id })
    }

    /// The program with what is the same in every run that these options describe.
    pub fn command(&self, options: &RecordOptions) -> Command {
        // The path of the executable is among what the kernel puts on the stack.
        let mut command = Command::new(&self.program);
        command.args(&options.arguments);
        if let Controlled::Runtime(library) = &self.controlled {
            preload(&mut command, library, &self.program, "record");
        }
        // To name the frames of a panic of Rust takes longer than most runs, and no finding needs them.
        command.env("RUST_BACKTRACE", "0");
        // A user can ask for fibers in the environment, too.
        if options.debugger.is_some() {
            command.env(environment::SWITCH, "futex");
        } else if options.switching == Switching::Fiber {
            command.env(environment::SWITCH, "fiber");
        }
        if options.concrete {
            command.env(environment::CONCRETE, "1");
        }
        if let Some(Clients::Played(script)) = &options.clients {
            command.env(environment::CLIENTS, script);
        }
        command
    }
}

/// Runs the program and records it.
///
/// The file appears under its name when it is whole. A program that fails is no error: see
/// [`RecordOutcome::end`].
pub fn record(options: &RecordOptions) -> Result<RecordOutcome, RecordError> {
    let prepared = Prepared::new(options)?;
    let write_error = |error| RecordError::Write(options.output.clone(), error);
    let partial = Replacement::new(&options.output, Keep::Mode).map_err(write_error)?;
    let file = partial.file().try_clone().map_err(write_error)?;
    let destination = match options.form {
        Form::Log if options.steps.is_empty() && !options.path => Destination::Log(file),
        _ => Destination::File(file),
    };
    let (outcome, _) = recorded(options, &prepared, destination, None)?;
    partial.complete_without_sync().map_err(write_error)?;
    Ok(outcome)
}

/// Runs the program and gives its trace, without a file in between ([`RecordOptions::output`] counts
/// for nothing). What [`record`] writes and [`crate::read`] reads is the same. The server makes the run
/// if it can; it must serve no other program, arguments, switching or expressions.
pub fn record_in_memory(
    options: &RecordOptions,
    server: &ForkServer,
) -> Result<(RecordOutcome, Trace), RecordError> {
    let prepared = server.prepared(options)?;
    let (outcome, trace) = recorded(options, prepared, Destination::Memory, Some(server))?;
    match trace {
        Some(Ok(trace)) => Ok((outcome, crate::mended(trace))),
        Some(Err(error)) => Err(RecordError::Read(error)),
        None => unreachable!("it was to be in memory"),
    }
}

/// One run.
fn recorded(
    options: &RecordOptions,
    prepared: &Prepared,
    destination: Destination,
    server: Option<&ForkServer>,
) -> Result<(RecordOutcome, Option<Result<Trace, ReadError>>), RecordError> {
    let begin = Instant::now();
    let program = &prepared.program;
    let write_error = |error| RecordError::Write(options.output.clone(), error);
    let turns = match options.steps.as_slice() {
        [] => String::new(),
        steps => format_turns(&forced::turns(steps)),
    };
    let ring = Ring::new(&turns).map_err(RecordError::Memory)?;
    let streams = streams(options)?;
    let captured = options.capture.is_some();
    let about = About {
        executable: program.clone(),
        build_id: prepared.build_id.clone(),
        command: std::iter::once(options.program.to_string_lossy().into_owned())
            .chain(options.arguments.iter().map(|word| word.to_string_lossy().into_owned()))
            .collect(),
    };
    let mut sink = Sink::new(destination, about).map_err(write_error)?;
    if !options.steps.is_empty() {
        sink.compare(Comparison::new(options.steps.clone()));
    }
    let mark = Mark::new();
    // Signals are taken before the program is there, so that none is lost in between.
    let requests = Requests::new(captured, options.debugger.is_some());
    let mut passing = options.capture.is_none().then(SignalsPassOn::begin);
    let mut serving = match &options.clients {
        Some(Clients::Live(live)) => Some((live, Serving::new().map_err(RecordError::Clients)?)),
        _ => None,
    };
    let watched = serving.as_ref().map(|(_, serving)| serving.file());
    let forked = server.and_then(|server| server.fork(options, &ring, &streams, mark));
    let was_forked = forked.is_some();
    let (child, seat) = match forked {
        Some((child, seat)) => (child, Some(seat)),
        None => (launch(options, prepared, &ring, &streams, mark, watched.as_deref())?, None),
    };
    let beside = launch_debugger(options, prepared, &streams, &child, mark)?;
    drop(streams);
    if let Some(passing) = &mut passing {
        passing.pass_to(child.id() as i32);
    }
    if let Some((live, serving)) = &mut serving {
        serving.begin(live, child.id(), options).map_err(RecordError::Clients)?;
    }
    let start = begin.elapsed();
    let convert = Duration::ZERO;
    let mut running =
        Running { options, mark, requests, ring: &ring, seat: seat.as_ref(), convert };
    let (status, ended) = running.follow(child, &mut sink)?;
    if let Some(mut debugger) = beside {
        let _ = debugger.wait(); // the run is over, and how gdb ends is the user's choice
    }
    let served = serving.map(|(_, serving)| serving.finish()).transpose();
    let served = served.map_err(RecordError::Clients)?.flatten();
    // It ended as it was told to.
    let was_told = |signal: i32| {
        served.as_ref().is_some_and(|served| served.is_over && served.script.stop == signal)
    };
    let (run, convert) = (begin.elapsed() - start - running.convert, running.convert);
    drop(seat);
    drop(passing);
    let converting = Instant::now();
    let (said, message) = ring.end();
    let (threads, why_it_left) = (blocked::threads(&mut sink), blocked::why_it_left(&mut sink));
    let diverged = |reason: Option<Sentence>, over: bool| {
        sink.schedule().and_then(|schedule| schedule.divergence(reason, over))
    };
    let unscheduled = |reason: Sentence| {
        RunEnd::LeftSchedule(Box::new(LeftSchedule {
            step: None,
            expected: None,
            found: None,
            reason,
        }))
    };
    let own_end = match (said, status.code(), status.signal()) {
        _ if matches!(ended, Some(Ended::Late(_) | Ended::TooLarge(_) | Ended::TooLong(_))) => {
            RunEnd::Hang
        }
        _ if matches!(ended, Some(Ended::Asked)) => RunEnd::Stopped,
        (End::Busy, ..) => RunEnd::Hang,
        (End::Deadlock, ..) if options.replay.is_some() => {
            let why = Sentence::from("the log cannot be followed: ");
            unscheduled(why.then(blocked::standstill(&threads)))
        }
        (End::Deadlock, ..) => RunEnd::Deadlock(threads),
        (End::Livelock, ..) => RunEnd::Livelock(threads),
        (End::LeftSchedule, ..) => unscheduled(why_it_left.clone()),
        (End::Refused, ..) => RunEnd::Refused(message.clone()),
        (_, Some(code), _) => RunEnd::Exit(code),
        (_, None, Some(signal)) if was_told(signal) => RunEnd::Exit(0),
        (_, None, Some(signal)) => RunEnd::Signal(signal),
        (_, None, None) => RunEnd::Exit(-1),
    };
    let over = matches!(own_end, RunEnd::Exit(_)) && options.debugger.is_none();
    let end =
        match diverged((said == End::LeftSchedule && ended.is_none()).then_some(why_it_left), over)
        {
            Some(divergence) => RunEnd::LeftSchedule(Box::new(divergence)),
            None => own_end,
        };
    if ring.is_refused() {
        return Err(RecordError::OtherBuild(program.clone()));
    }
    if ring.is_damaged() {
        sink.gap(DAMAGED);
    } else if !ring.is_attached() {
        return Err(RecordError::NotAttached {
            program: program.clone(),
            end,
            binary: options.binary,
        });
    }
    if ring.is_left() {
        sink.gap(
            "everything after a signal handler that had interrupted the recording left it by longjmp",
        );
    }
    if said == End::Replaced && ended.is_none() {
        sink.account().outside(Noted::of_process(Cause::Image, 0, message));
    }
    match ended {
        Some(Ended::TooLarge(limit)) => {
            sink.account().outside(Noted::of_process(Cause::SizeLimit, limit, String::new()));
        }
        Some(Ended::TooLong(limit)) => sink.gap(&format!(
            "the run was ended after {limit} events: more cannot be looked at within the time limit"
        )),
        Some(Ended::Late(asleep)) => {
            sink.account().was_ended_waiting();
            standstill::note(asleep, sink.account());
            sink.gap("the run was ended by its time limit");
        }
        Some(Ended::Asked) | None => {}
    }
    match &end {
        RunEnd::Hang => {}
        RunEnd::Stopped => sink.gap("the recording was ended by a signal before the program ended"),
        RunEnd::Signal(signal) => sink.gap(&format!(
            "the run ended by signal {signal}: nothing is known of what would have followed"
        )),
        RunEnd::Deadlock(threads) => {
            let who = blocked::standstill(threads);
            sink.gap(&format!("the run itself came to a stand: {}", InSchedules(&who)));
        }
        RunEnd::Livelock(threads) => {
            let who = blocked::endless(threads);
            sink.gap(&format!("the run was ended: {}", InSchedules(&who)));
        }
        RunEnd::Exit(_) | RunEnd::LeftSchedule(_) | RunEnd::Refused(_) => {}
    }
    if let Some(server) = server {
        server.has_run();
    }
    let steps_taken = sink.schedule().map_or(0, Comparison::taken);
    let Finished { summary, path, trace } = sink.finish().map_err(write_error)?;
    let outcome = RecordOutcome {
        end,
        crash: summary.crash,
        events: summary.events,
        threads: summary.threads,
        bytes: summary.bytes,
        symbolic: summary.symbolic,
        instrumented: summary.instrumented,
        gaps: summary.gaps,
        outside: summary.outside,
        restrictions: summary.restrictions,
        lost: summary.lost,
        steps_taken,
        path,
        times: Times { start, run, convert: convert + converting.elapsed() },
        forked: was_forked,
        served,
    };
    Ok((outcome, trace))
}

/// Starts the program by `execve`.
fn launch(
    options: &RecordOptions,
    prepared: &Prepared,
    ring: &Ring,
    streams: &[Option<File>; 3],
    mark: Mark,
    watched: Option<&Path>,
) -> Result<Owned, RecordError> {
    let (command, called) = match &prepared.controlled {
        Controlled::Emulator(emulator) => {
            options.replay.as_deref().map_or(Ok(()), sync_only::check_log)?;
            (emulator.command(&prepared.program, options, ring.file()), None)
        }
        Controlled::Runtime(_) => {
            let called = options.debugger.is_none().then_some(options.program.as_os_str());
            (with_runtime(options, prepared, ring, watched)?, called)
        }
    };
    let captured = options.capture.is_some();
    let launch = Launch {
        command: &command,
        called,
        streams,
        leads_group: captured,
        ends_with_us: captured || options.on_recorder_death == OnRecorderDeath::End,
        // Programs sort and hash by addresses.
        fixed_addresses: true,
        mark,
        inherits: Some(ring.file()),
        signals: &signals_of_program(),
        serves: false,
    };
    let started = options.debugger.as_ref().map_or(&prepared.program, |debugger| &debugger.program);
    Owned::launch(&launch).map_err(|error| RecordError::Start(started.clone(), error))
}

/// Starts the debugger that a program in an emulator has beside it.
fn launch_debugger(
    options: &RecordOptions,
    prepared: &Prepared,
    streams: &[Option<File>; 3],
    emulator: &Owned,
    mark: Mark,
) -> Result<Option<Owned>, RecordError> {
    let Controlled::Emulator(controls) = &prepared.controlled else { return Ok(None) };
    let Some(command) = controls.debugger(&prepared.program, options, emulator.id()) else {
        return Ok(None);
    };
    let launch = Launch {
        command: &command,
        called: None,
        streams,
        leads_group: false,
        ends_with_us: true,
        fixed_addresses: false,
        mark,
        inherits: None,
        signals: &signals_of_program(),
        serves: false,
    };
    let name = PathBuf::from(command.get_program());
    Owned::launch(&launch).map(Some).map_err(|error| RecordError::Start(name, error))
}

/// The command for a program with the runtime in it.
fn with_runtime(
    options: &RecordOptions,
    prepared: &Prepared,
    ring: &Ring,
    watched: Option<&Path>,
) -> Result<Command, RecordError> {
    let mut command = prepared.command(options);
    command
        .env(environment::RING, ring.file().to_string())
        .env(environment::POLICY, options.policy.to_string());
    if options.path {
        command.env(environment::PATH, "1");
    }
    if let Some(file) = watched {
        command.env(environment::WATCH_CLIENTS, file);
    }
    if let Some(limit) = options.point_limit {
        command.env(environment::POINTS, limit.to_string());
    }
    if let Some(log) = &options.replay {
        sync_only::check_log(log)?;
        command.env(environment::REPLAY, log);
    }
    match &options.debugger {
        // gdb has an environment of its own.
        Some(debugger) => command = debugger.command(&prepared.program, &command),
        None => layout::fix(&mut command, &options.program, &prepared.program),
    }
    Ok(command)
}

/// What signals do in a program that do something else in us.
pub fn signals_of_program() -> Vec<(i32, libc::sigaction)> {
    let mut signals = SignalsPassOn::before();
    signals.push((libc::SIGXFSZ, signals::survive_full_files()));
    signals
}

/// Where the options want the program's standard streams.
pub fn streams(options: &RecordOptions) -> Result<[Option<File>; 3], RecordError> {
    if let Some(capture) = &options.capture {
        return capture.streams();
    }
    let mut streams = [None, None, None];
    if options.output_to_error {
        let error = io::stderr().as_fd().try_clone_to_owned().map_err(RecordError::Memory)?;
        streams[1] = Some(error.into());
    }
    Ok(streams)
}

/// The runtime library that the options want, which must be of this build.
pub fn library(options: &RecordOptions) -> Result<PathBuf, RecordError> {
    let library = match &options.library {
        Some(path) => path.clone(),
        None => runtime_library().ok_or(RecordError::NoLibrary)?,
    };
    if !find::is_of_this_build(&library) {
        return Err(RecordError::OtherBuild(library));
    }
    // The loader splits the list at both.
    if library.to_str().is_none_or(|path| path.contains([':', ' '])) {
        return Err(RecordError::BadPath(library));
    }
    Ok(library)
}

/// Puts the runtime into the program's environment.
pub fn preload(command: &mut Command, library: &Path, program: &Path, mode: &str) {
    let before = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let mut preload = library.as_os_str().to_owned();
    if !before.is_empty() {
        preload.push(":");
        preload.push(&before);
    }
    command
        .env("LD_PRELOAD", preload)
        .env(environment::PRELOAD, before)
        .env(environment::MODE, mode)
        .env(environment::EXECUTABLE, program);
}

/// Why we ended the program.
enum Ended {
    /// It did nothing for too long, or ran too long; what its threads were doing.
    Late(Vec<standstill::Asleep>),
    /// The recording has reached this many bytes.
    TooLarge(u64),
    /// It has recorded this many events.
    TooLong(u64),
    /// Somebody asked us to end.
    Asked,
}

/// A program that runs.
struct Running<'r> {
    options: &'r RecordOptions,
    mark: Mark,
    requests: Requests,
    ring: &'r Ring,
    /// Our thread keeps to the processor of the run.
    seat: Option<&'r Seat<'r>>,
    /// What converting took meanwhile.
    convert: Duration,
}

/// How long we wait before we look after a program that does nothing visible.
const LOOK: Duration = Duration::from_millis(20);

impl Running<'_> {
    /// Follows the program to its end and takes what it records. Says why it was ended, if it was.
    fn follow(
        &mut self,
        mut child: Owned,
        sink: &mut Sink,
    ) -> Result<(ExitStatus, Option<Ended>), RecordError> {
        let (ring, options) = (self.ring, self.options);
        let process = child.id() as i32;
        let end = ProcessEnd::of(process);
        let begin = Instant::now();
        let mut moved = (ring.progress(), begin);
        let mut why = None;
        while !end.is_reached() {
            self.take(sink, why.is_some(), begin);
            match ring.has_ended() {
                true => end.wait(LOOK),
                false => ring.wait(LOOK),
            }
            descendants::reap();
            let now = Instant::now();
            let progress = ring.progress();
            if progress != moved.0 {
                moved = (progress, now);
            }
            let idle = options.hang_limit.is_some_and(|limit| now - moved.1 > limit);
            if why.is_none() && (idle || self.must_end(sink, begin)) {
                why = Some(match options.size_limit {
                    _ if self.requests.must_end() => Ended::Asked,
                    Some(limit) if sink.bytes() > limit => Ended::TooLarge(limit),
                    _ if self.is_too_long(sink) => {
                        Ended::TooLong(options.event_limit.unwrap_or_default())
                    }
                    _ => Ended::Late(standstill::asleep(process)),
                });
                child.kill();
            }
        }
        if options.capture.is_some() {
            // SAFETY: the leader was not waited for, so that the number is still the group's.
            unsafe { libc::kill(-process, libc::SIGKILL) };
        }
        let started = options.debugger.as_ref().map(|debugger| debugger.program.clone());
        let started = || started.unwrap_or_else(|| options.program.clone());
        let status = child.wait().map_err(|error| RecordError::Start(started(), error))?;
        if options.capture.is_some() || why.is_some() {
            descendants::end_those_of(self.mark);
        }
        self.take(sink, true, begin);
        if let Some(rest) = ring.rest() {
            let converting = Instant::now();
            sink.rest(&rest);
            self.convert += converting.elapsed();
        }
        Ok((status, why))
    }

    /// Takes the chunks that are full. `all` of them: else no more when the program is to be ended, as
    /// one that writes faster than we read is never done.
    fn take(&mut self, sink: &mut Sink, all: bool, begin: Instant) {
        while let Some(chunk) = self.ring.full_chunk() {
            if let Some(seat) = self.seat.take() {
                seat.leave();
            }
            let converting = Instant::now();
            sink.chunk(&chunk);
            self.convert += converting.elapsed();
            self.ring.release_chunk();
            self.options.events.store(sink.events(), Ordering::Relaxed);
            if !all && self.must_end(sink, begin) {
                break;
            }
        }
    }

    /// Whether a limit is reached, or somebody asks for the end.
    fn must_end(&mut self, sink: &Sink, begin: Instant) -> bool {
        self.options.time_limit.is_some_and(|limit| begin.elapsed() > limit)
            || self.options.size_limit.is_some_and(|limit| sink.bytes() > limit)
            || self.is_too_long(sink)
            || self.requests.must_end()
    }

    fn is_too_long(&self, sink: &Sink) -> bool {
        self.options.event_limit.is_some_and(|limit| sink.events() > limit)
    }
}
