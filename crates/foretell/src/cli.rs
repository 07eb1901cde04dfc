//! The command line: what can be typed, and the help texts that teach it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};

use foretell_predict::planner::Engine;
use foretell_record::Policy;

use crate::commands::cases::Plan;
use crate::output::OutputFormat;

/// Predicts concurrency bugs from one good run.
///
/// foretell takes the trace of one run of a multithreaded program, works out the other
/// interleavings of the same events that the program allows, and reports those that break it.
///
/// Exit codes: 0 nothing found, 10 a confirmed bug, 11 predicted but not confirmed, 12 incomplete,
/// 2 usage or bad input, 1 our own failure.
#[derive(Debug, Parser)]
#[command(name = "foretell", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// Text for people, or one JSON object on standard output.
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Human)]
    pub format: OutputFormat,

    /// Options for every run (default: the nearest foretell.toml from here upwards). Those that run
    /// commands or write files count only in your own ~/.config/foretell/config.toml.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Use no configuration file at all.
    #[arg(long, global = true, conflicts_with_all = ["config", "profile"])]
    pub no_config: bool,

    /// Use this profile of foretell.toml.
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,

    /// The events of a trace may take so much memory; a larger one, or a compressed file that would
    /// become one, is refused [default: half of the machine's].
    #[arg(long, global = true, value_name = "MIB")]
    pub max_memory: Option<u64>,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Look at, check and convert trace files.
    ///
    /// Every command reads all formats: what `foretell record` wrote (.ftrace, a recording's log or
    /// foretell's own binary trace), text (.ft), CTRC (.ctrc) and RAPID's STD (.std, .std.gz). The
    /// format is recognised by the content first, then by the file name's extension.
    Trace {
        /// What to do with the trace.
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Compile C so that the program can be recorded: clang 22 with foretell's plugin.
    ///
    /// Stands in for the compiler: CC="foretell cc" make. All arguments go to clang, but for --as-written:
    /// the optimiser keeps every access of the source to memory that another thread may see.
    #[command(disable_help_flag = true)]
    Cc(CompilerArguments),
    /// Compile C++ so that the program can be recorded: CXX="foretell c++" make.
    #[command(name = "c++", disable_help_flag = true)]
    Cxx(CompilerArguments),
    /// Build, run and test Rust packages: `cargo foretell test` is the same as `foretell cargo test`.
    ///
    /// Cargo builds with foretell's plugin, into target/foretell; build scripts and procedural macros are
    /// left alone. Needs a rustc whose LLVM is 22 (Rust 1.95).
    Cargo {
        /// What to do.
        #[command(subcommand)]
        command: CargoCommand,
    },
    /// Test each test of a CMake build as a program of its own.
    ///
    /// Asks `ctest` which tests there are, and gives each to `foretell test`, in its folder and with its
    /// environment. Test programs of GoogleTest, Catch2 and doctest are divided into their cases. Build with
    /// the file that `foretell cmake-toolchain` prints.
    Ctest(CtestArguments),
    /// Print a toolchain file for CMake: cmake -DCMAKE_TOOLCHAIN_FILE=FILE.
    CmakeToolchain,
    /// Run a program once and record what it does.
    ///
    /// The program keeps its input, output and exit status. Build it with `foretell cc` or
    /// `foretell c++`; of anything else only the synchronisation is seen, and the trace says so.
    ///
    /// A program that must not be disturbed is recorded in two steps: `--sync-only` on the program
    /// as it is, then `--replay LOG` on its instrumented build.
    ///
    /// With `--format json` standard output holds one object (what was written, how the run ended)
    /// and the program's own output goes to standard error.
    Record(RecordArguments),
    /// Say what could go wrong in another interleaving of a recorded run.
    ///
    /// Looks at every interleaving of the trace's events in which each thread stays on its recorded
    /// path, and reports those in which a block that should be atomic is torn, an assertion fails,
    /// the program crashes, deadlocks, or races. Every reported interleaving was executed by an
    /// independent validator; what could not be decided is reported as undecided.
    Predict(Box<PredictArguments>),
    /// Record a program, predict, force every prediction on it, and say what that does.
    ///
    /// The whole thing in one command. What the program was made to do is confirmed; blocks that
    /// only foretell takes for atomic and whose tearing nobody can see are counted and not shown.
    /// Every run gets the same arguments and, where standard input is a file, the same input.
    ///
    /// A test program of GoogleTest, Catch2 or doctest that is given without arguments is divided: each of its
    /// cases is tested as a program of its own, and a table says what came of them.
    Test(Box<TestArguments>),
    /// Make a program take the steps of a schedule, and say what happened.
    ///
    /// The schedule must be for this build and this input. Exit code 10 when the violation happened
    /// again, 0 when it happened and nobody can see it, 12 when the program did something else.
    Replay(ReplayArguments),
    /// Say why a trace can go wrong, and which synchronisation repairs it.
    ///
    /// Gives the bad interleavings as a formula over "this event comes before that one", the kind of
    /// bug, and locks, barriers or waits that remove it. A fix is verified: with it no bad
    /// interleaving is left and no deadlock is added, or it says that this could not be shown. For a
    /// recorded run, everything that `foretell predict` finds is explained.
    Explain(ExplainArguments),
    /// Patch the source: add the synchronisation that repairs what is predicted.
    ///
    /// Prints a unified diff (or applies it) that puts locks around the statements that must not be
    /// torn apart, using a lock the program already has where one fits. Only what is verified on the
    /// trace goes into the patch; what cannot be patched is said in words. Build the result, record
    /// it and predict again.
    Fix(FixArguments),
    /// Prove the assertions of a small concurrent program for all its executions, or give a
    /// counterexample.
    ///
    /// Reads C with pthreads (.c, through clang) or guarded commands (.cmd). What is proved can be
    /// written to a file. The counterexample of a C program is forced on the compiled program, and
    /// `foretell replay` does it again (exit code 11 when that fails, with the reason). What is not
    /// decided within the budget, or has no meaning here, is unknown (exit code 12), with the reason.
    Verify(VerifyArguments),
    /// Show a saved result again, or write it as HTML, SARIF, JUnit, Perfetto trace or text.
    ///
    /// A result is what `predict` and `test` print with `--format json`, or write with `--json`.
    Report(ReportArguments),
    /// Join the parts of an exploration that was divided with `foretell test --partition`.
    ///
    /// Each part is a result that was saved with `--json`. All of them must be there, of the same program,
    /// input and options. The exit code is that of one whole test.
    Merge(MergeArguments),
    /// Say which options hold here and where each comes from.
    Config {
        /// What to do.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Say what this machine has and lacks for foretell, or what of a program is not seen.
    ///
    /// With a program: runs it once and lists the functions that are not instrumented and are given memory of the
    /// program once it has a second thread, by library, with how often they are called, and whatever else a
    /// report would say that it did not see. The exit code is 0 if that is nothing, otherwise 12.
    Doctor {
        /// The program and its arguments. A C, C++ or Rust file is built first.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
        program: Vec<std::ffi::OsString>,
    },
    /// Print a completion script for your shell.
    ///
    /// For bash: foretell completions bash > ~/.local/share/bash-completion/completions/foretell
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the JSON Schema of everything `--format json` prints.
    Schema,
}

impl Command {
    /// Does the exit code say what was found, whoever reads the output?
    pub fn has_verdict(&self) -> bool {
        use Command::*;
        matches!(
            self,
            Predict(_)
                | Test(_)
                | Replay(_)
                | Explain(_)
                | Fix(_)
                | Verify(_)
                | Report(_)
                | Merge(_)
                | Record(_)
                | Cargo { .. }
                | Ctest(_)
        )
    }
}

/// The options of the command that were typed, as they can be typed again, without some.
pub fn typed_options(name: &str, without: &[&str]) -> Vec<OsString> {
    let commands = Cli::command();
    let typed = commands.clone().get_matches();
    let (Some(command), Some(matches)) =
        (commands.find_subcommand(name), typed.subcommand_matches(name))
    else {
        return Vec::new();
    };
    let mut words = Vec::new();
    for argument in commands.get_arguments().chain(command.get_arguments()) {
        let id = argument.get_id().as_str();
        let Some(long) = argument.get_long().filter(|long| !without.contains(long)) else {
            continue;
        };
        if matches.try_contains_id(id).is_err()
            || matches.value_source(id) != Some(ValueSource::CommandLine)
        {
            continue;
        }
        if matches!(argument.get_action(), ArgAction::SetTrue) {
            words.push(format!("--{long}").into());
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            let mut word = OsString::from(format!("--{long}="));
            word.push(value);
            words.push(word);
        }
    }
    words
}

/// What can be done with Rust packages.
#[derive(Debug, Subcommand)]
pub enum CargoCommand {
    /// Build so that the programs can be recorded. They are in target/foretell.
    Build {
        /// For `cargo build`: --release, --package, --features and so on.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Build the package's program and test it, as `foretell test` does.
    Run {
        /// For `cargo build`, before `--`.
        #[arg(allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
        /// For the program, after `--`.
        #[arg(last = true)]
        program: Vec<std::ffi::OsString>,
    },
    /// Build the package's tests, and test each of them as a program of its own.
    Test(CargoTestArguments),
}

/// Which tests of a package.
#[derive(Args, Debug)]
pub struct CargoTestArguments {
    /// Which tests, and how.
    #[command(flatten)]
    pub cases: CaseArguments,
    /// For `cargo test`, after `--`: --release, --package, --features, --test and so on.
    #[arg(last = true)]
    pub arguments: Vec<std::ffi::OsString>,
}

/// Which tests, and how.
#[derive(Args, Debug)]
pub struct CaseArguments {
    /// Only tests with this in their name.
    pub filter: Option<String>,
    /// Print the names of the tests, and do not run them.
    #[arg(long)]
    pub list: bool,
    /// Runs at the same time, as for `foretell test`.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Seconds for each test, as for `foretell test`.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub time_limit: u64,
    /// Only part M of N of the tests (from 1), so that several machines can share them.
    #[arg(long, value_name = "M/N", value_parser = partition)]
    pub partition: Option<(u32, u32)>,
    /// Write JUnit's XML, a test case for each test.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

impl CaseArguments {
    /// What is done with the tests; where the results and the schedules go.
    pub fn plan(&self, results: PathBuf, schedules: PathBuf) -> Plan<'_> {
        let mut options = vec![format!("--time-limit={}", self.time_limit)];
        options.extend(self.jobs.map(|jobs| format!("--jobs={jobs}")));
        Plan {
            filter: self.filter.as_deref(),
            list: self.list,
            partition: self.partition,
            junit: self.junit.as_deref(),
            json: None,
            results,
            schedules,
            options: options.into_iter().map(Into::into).collect(),
        }
    }
}

/// Which tests of a build that CMake made.
#[derive(Args, Debug)]
pub struct CtestArguments {
    /// Which tests, and how.
    #[command(flatten)]
    pub cases: CaseArguments,
    /// Where CMake built it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub test_dir: PathBuf,
    /// For `ctest`, after `--`: -L, -E, -C and so on.
    #[arg(last = true)]
    pub arguments: Vec<std::ffi::OsString>,
}

/// What can be done with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every option of every command: its value, and whether that is the default, from
    /// foretell.toml, or from one of its profiles.
    Show {
        /// Print the limits that no option sets instead: each with what a larger one costs, and what is lost
        /// where it is reached.
        #[arg(long)]
        limits: bool,
    },
}

/// A result to show.
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// The JSON file.
    pub result: PathBuf,
    /// What to suppress and what to write.
    #[command(flatten)]
    pub outputs: ReportOutputs,
}

/// Files to write from a result, and decisions about findings.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Reports")]
pub struct ReportOutputs {
    /// Write the result as JSON, to be shown again with `foretell report`.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write one self-contained HTML file with interactive timelines.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write SARIF 2.1.0, for code scanning services and editors.
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write JUnit's XML, for CI systems.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write Markdown, for merge requests and summaries of CI jobs.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a trace for the Perfetto UI.
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Write the text as it is printed, without colours.
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,
    /// Findings that this TOML file names by fingerprint are counted, and do not fail the run. Can be
    /// given again.
    #[arg(long, value_name = "FILE")]
    pub suppressions: Vec<PathBuf>,
    /// Write a suppression file with everything that was found.
    #[arg(long, value_name = "FILE")]
    pub write_baseline: Option<PathBuf>,
}

impl ReportOutputs {
    /// Is there no file to write?
    pub fn is_none(&self) -> bool {
        let files = [
            &self.json,
            &self.html,
            &self.sarif,
            &self.junit,
            &self.markdown,
            &self.perfetto,
            &self.text,
            &self.write_baseline,
        ];
        files.iter().all(|file| file.is_none())
    }
}

/// What can be done with a trace file.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Count events, threads, variables and locks. Reads as a stream: memory does not grow with
    /// the file (a recording's log is converted in memory first).
    Info(TraceFile),
    /// Print the trace as text, one event a line.
    ///
    /// What is printed is the text format itself: it can be edited and read back.
    Cat(TraceFile),
    /// Write the trace in another format.
    ///
    /// A format that cannot carry something refuses and names it: STD has no values, CTRC has no
    /// recorded order.
    Convert(ConvertArguments),
    /// Check that the trace makes sense: locks released by their holder, joins after ends, values
    /// consistent, blocks nested.
    ///
    /// Exit code 2 and one line for each fault when it does not.
    Validate(TraceFile),
}

/// A trace to read.
#[derive(Args, Debug)]
pub struct TraceFile {
    /// The trace file (.ftrace, .ft, .ctrc, .std, .std.gz).
    pub trace: PathBuf,
}

/// A trace to read and one to write.
#[derive(Args, Debug)]
pub struct ConvertArguments {
    /// The trace file to read.
    pub trace: PathBuf,
    /// The file to write. Nothing is left under this name when it cannot be completed.
    #[arg(short, long)]
    pub output: PathBuf,
    /// The format to write; by default the one of the output's file name extension.
    #[arg(long, value_enum)]
    pub to: Option<TargetFormat>,
}

/// The formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TargetFormat {
    /// foretell's binary format.
    Binary,
    /// foretell's text format.
    Text,
    /// TARA's format.
    Ctrc,
    /// RAPID's format.
    Std,
    /// The event table as Apache Parquet (needs a build with the feature `parquet`).
    Parquet,
}

fn properties() -> String {
    format!("What to look for, separated by commas: {}", foretell_predict::FindingKind::names())
}

/// What to predict, and how.
#[derive(Args, Debug)]
pub struct PredictArguments {
    /// The trace file.
    pub trace: PathBuf,
    #[arg(long, value_delimiter = ',', value_name = "KINDS", help = properties())]
    pub property: Vec<foretell_predict::FindingKind>,
    /// Who answers: formulas and a solver, the planner (runs in which every read returns what it
    /// did), lock-valid runs that ignore data (to be tried), planner and then lock-valid runs, or
    /// the order generator: patterns by fork, join, barriers and signals alone (to be tried).
    #[arg(
        long,
        value_name = "solver|planner|lockset|combined|orders",
        default_value_t = Engine::Solver
    )]
    pub engine: Engine,
    /// Look for runs with this goal instead, e.g. "F(e1 & X F(f & !O e2))", "deadlock(a, b)",
    /// "order(use, define)"; events are named by label or as THREAD#INDEX. Can be given again.
    #[arg(long, value_name = "FORMULA")]
    pub goal: Vec<String>,
    /// Write each atomicity finding and each goal as a planning problem in PDDL below this folder.
    #[arg(long, value_name = "DIR")]
    pub pddl: Option<PathBuf>,
    /// Ask this planner about each problem too; {domain}, {problem} and {plan} stand for the files.
    #[arg(long, value_name = "COMMAND", requires = "pddl")]
    pub planner_cmd: Option<String>,
    /// Which interleavings count: reads may see other values (symbolic), or every read returns what
    /// it did (causal).
    #[arg(long, value_enum, default_value_t = ModelName::Symbolic)]
    pub model: ModelName,
    /// Only interleavings in which all events take place; by default the erroneous prefix is
    /// enough, and what the threads do after it is left open.
    #[arg(long)]
    pub whole: bool,
    /// Only interleavings with at most so many context switches.
    #[arg(long, value_name = "N")]
    pub context_switches: Option<u32>,
    /// Which blocks should be atomic: those that the program marks, every function call, or the
    /// marked ones if there are any.
    #[arg(long, value_enum, default_value_t = RegionsName::Auto)]
    pub regions: RegionsName,
    /// Which patterns are left out.
    #[command(flatten)]
    pub filters: FilterArguments,
    /// Who decides: the solver inside foretell, or the z3 on the path.
    #[arg(long, value_enum, default_value_t = SolverName::Embedded)]
    pub solver: SolverName,
    /// Any SMT-LIB 2 solver that reads from standard input, e.g. "cvc5 --incremental".
    #[arg(long, value_name = "COMMAND", conflicts_with = "solver")]
    pub solver_cmd: Option<String>,
    /// Conflicts that the solver may spend on one question; beyond it the answer is "undecided".
    #[arg(long, value_name = "CONFLICTS")]
    pub budget: Option<u64>,
    /// Write every question to the solver into this folder as SMT-LIB 2, with comments that name
    /// the events.
    #[arg(long, value_name = "DIR")]
    pub dump_smt2: Option<PathBuf>,
    /// A trace with at most so many events is looked at as a whole; in a longer one, each question
    /// is asked about a window that grows as needed.
    #[arg(long, value_name = "EVENTS")]
    pub window: Option<usize>,
    /// No question is asked after so many seconds; what is left then is said and the exit code is 12.
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<u64>,
    /// Report at most so many places where a read can see something else, so that a thread may
    /// leave the path it took in the run; 0 does not look for them.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub divergences: usize,
    /// Questions that are asked at the same time where the trace is long; as many as there are cores when
    /// absent.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Only part M of N of the questions (from 1), so that several machines can share the work.
    #[arg(long, value_name = "M/N", value_parser = partition)]
    pub partition: Option<(u32, u32)>,
    /// Where to put a schedule for each prediction; created when there is one.
    #[arg(long, value_name = "DIR", default_value = "foretell-schedules")]
    pub schedules: PathBuf,
    /// What to suppress and what to write.
    #[command(flatten)]
    pub outputs: ReportOutputs,
}

fn partition(text: &str) -> Result<(u32, u32), String> {
    let numbers: Option<(u32, u32)> =
        text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((part, of)) if 1 <= part && part <= of => Ok((part - 1, of)),
        _ => Err("expected M/N with M from 1 to N, e.g. 2/4".into()),
    }
}

/// The names of the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// The concurrent trace program.
    Symbolic,
    /// The maximal causal model.
    Causal,
}

/// The names of the choices of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RegionsName {
    /// Marked ones if there are any, else function calls.
    Auto,
    /// Marked ones only.
    Marked,
    /// Function calls only.
    Inferred,
}

impl From<RegionsName> for foretell_predict::region::Regions {
    fn from(name: RegionsName) -> Self {
        match name {
            RegionsName::Auto => Self::Automatic,
            RegionsName::Marked => Self::Marked,
            RegionsName::Inferred => Self::Inferred,
        }
    }
}

/// The names of the solvers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SolverName {
    /// SAT with an ordering theory, inside foretell.
    Embedded,
    /// The z3 on the path.
    Z3,
}

/// What goes to the compiler.
#[derive(Args, Debug)]
pub struct CompilerArguments {
    /// As for clang.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<std::ffi::OsString>,
}

/// What to record, and how.
#[derive(Args, Debug)]
pub struct RecordArguments {
    /// The trace file to write (with --sync-only: the log) [default: run.ftrace, run.sync].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Which thread runs when: as the operating system has it, each in turn, or at random by seed: by
    /// turns, or by priorities. All but the first give the same run every time.
    #[arg(
        long,
        value_name = "os|round-robin[:EVENTS]|random[:SEED[:EVENTS]]|priorities[:SEED[:EVENTS]]",
        default_value = "os"
    )]
    pub schedule: Policy,
    /// The trace must have expressions: if any part of the program was not compiled for them, say
    /// so and end with exit code 12. With --binary, follow what the program's instructions compute.
    #[arg(long, conflicts_with = "concrete")]
    pub symbolic: bool,
    /// Leave expressions out, also where the program was compiled for them: faster and smaller, and
    /// predictions then are about runs in which every read returns what it did.
    #[arg(long)]
    pub concrete: bool,
    /// Convert what is recorded at once: takes longer, and gives a smaller file that other tools
    /// read. Without it the file is the log of raw events, which every command of foretell reads and
    /// `foretell trace convert` converts.
    #[arg(long)]
    pub compact: bool,
    /// Let an unmodified program run freely and only log the order of its synchronisation and its
    /// inputs; then --replay gets the memory accesses.
    #[arg(long, conflicts_with_all = ["schedule", "symbolic", "concrete", "compact", "replay"])]
    pub sync_only: bool,
    /// The program is an executable that was not compiled for foretell, for x86-64, AArch64 or 32-bit
    /// ARM: QEMU runs it (Debian's package qemu-user).
    #[arg(long, conflicts_with_all = ["sync_only"])]
    pub binary: bool,
    /// Follow a log of --sync-only: the instrumented build of the program, or with --binary the program
    /// itself, does its synchronisation in that order; the instrumented one gets those inputs, too. A program with data races may do something else all the
    /// same; where it is seen to, that is said and the exit code is 12.
    #[arg(long, value_name = "LOG", conflicts_with = "schedule")]
    pub replay: Option<PathBuf>,
    /// What talks to the program if it is a server, and how it ends.
    #[command(flatten)]
    pub clients: ClientArguments,
    /// The program is a server, and its clients do what this file says, which `foretell test --client`
    /// has written.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["binary", "sync_only"])]
    pub traffic: Option<PathBuf>,
    /// End the program when it has run for so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<u64>,
    /// End the program when so many mebibytes were recorded.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    pub size_limit: u64,
    /// What becomes of the program if foretell itself dies while it runs: it goes on without being
    /// recorded, or it is killed.
    #[arg(long, value_enum, default_value_t = OnRecorderDeathName::Continue)]
    pub on_recorder_death: OnRecorderDeathName,
    /// The program and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<std::ffi::OsString>,
}

/// Which paths of a program are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PathsName {
    /// Those that the threads can take under any schedule.
    All,
    /// Those of the recorded run.
    Recorded,
}

impl From<PathsName> for foretell_force::session::Paths {
    fn from(name: PathsName) -> Self {
        match name {
            PathsName::All => Self::All,
            PathsName::Recorded => Self::Recorded,
        }
    }
}

/// What a program does when its recorder dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnRecorderDeathName {
    /// It goes on.
    Continue,
    /// It is killed.
    End,
}

/// Which three-access patterns are left out; what they leave out is counted.
#[derive(Args, Clone, Debug)]
pub struct FilterArguments {
    /// Leave out patterns whose two accesses of one thread are the same instruction: a loop.
    #[arg(long)]
    pub no_loops: bool,
    /// Leave out patterns with more than so many events of the thread between its two accesses.
    #[arg(long, value_name = "EVENTS")]
    pub max_distance: Option<u32>,
    /// A trace of a run that is correct: patterns that took place in it are left out. Can be given
    /// again.
    #[arg(long, value_name = "TRACE")]
    pub known_good: Vec<PathBuf>,
}

/// What to test, and how much of it.
#[derive(Args, Clone, Debug)]
pub struct TestArguments {
    /// Test programs: only cases with this in their name.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Test programs: print the names of the cases, and do not run them.
    #[arg(long)]
    pub list: bool,
    #[arg(long, value_delimiter = ',', value_name = "KINDS", help = properties())]
    pub property: Vec<foretell_predict::FindingKind>,
    /// Which blocks should be atomic: those that the program marks, every function call, or the
    /// marked ones if there are any.
    #[arg(long, value_enum, default_value_t = RegionsName::Auto)]
    pub regions: RegionsName,
    /// Which patterns are left out.
    #[command(flatten)]
    pub filters: FilterArguments,
    /// Conflicts that the solver may spend on one question.
    #[arg(long, value_name = "CONFLICTS")]
    pub budget: Option<u64>,
    /// Which paths of the program are tested: all that its threads can take under any schedule, or only
    /// those of the recorded run.
    #[arg(long, value_enum, default_value_t = PathsName::All)]
    pub paths: PathsName,
    /// Runs of the program at most; as many as the time allows when absent. Where forced runs write
    /// other things, runs in which nothing is forced are held against them: some 240 at most, on top.
    #[arg(long, value_name = "N")]
    pub runs: Option<usize>,
    /// Runs at the same time; as many as there are cores when absent. One at a time if the program
    /// writes files that other runs would overwrite.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// No run is begun after so many seconds, and no question asked after half of them; what is left
    /// then is said and the exit code is 12.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub time_limit: u64,
    /// Begin with the run of this log of `foretell record --sync-only`: the program does its
    /// synchronisation in that order. The log may be of another machine on which the same binary ran. If
    /// the program does not follow it, that is said and the exit code is 12.
    #[arg(long, value_name = "LOG", requires = "binary", conflicts_with_all = ["resume", "partition"])]
    pub from: Option<PathBuf>,
    /// How the program is run.
    #[command(flatten)]
    pub run: RunArguments,
    /// What talks to the program if it is a server, and how it ends.
    #[command(flatten)]
    pub clients: ClientArguments,
    /// Keep every run in this folder, and go on from those that are there: after kill -9, after a time
    /// limit, with more runs. Created when it is not there; one process at a time.
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Only part M of N of the exploration (from 1), so that several machines can share it. Save each part
    /// with --json; `foretell merge` joins them. Of a test program: part M of N of its cases.
    #[arg(long, value_name = "M/N", value_parser = partition)]
    pub partition: Option<(u32, u32)>,
    /// Where to put a schedule for each finding; created when there is one.
    #[arg(long, value_name = "DIR", default_value = "foretell-schedules")]
    pub schedules: PathBuf,
    /// What to suppress and what to write.
    #[command(flatten)]
    pub outputs: ReportOutputs,
    /// The program and its arguments; options of foretell stand before it. A C, C++ or Rust file is built
    /// first, with -O1 -g -pthread.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "PROGRAM"
    )]
    pub program: Vec<std::ffi::OsString>,
}

/// Which parts are joined.
#[derive(Args, Debug)]
pub struct MergeArguments {
    /// The results of the parts, in any order.
    #[arg(required = true, value_name = "PART")]
    pub parts: Vec<PathBuf>,
    /// What to suppress and what to write.
    #[command(flatten)]
    pub outputs: ReportOutputs,
}

/// The clients of a server.
#[derive(Args, Clone, Debug, Default)]
pub struct ClientArguments {
    /// The program is a server: run this command (by a shell) when it accepts connections, once, and end the
    /// server when the command has ended. What it sends is sent again in every other run. Can be given
    /// again: all clients run at once.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["traffic", "binary"])]
    pub client: Vec<std::ffi::OsString>,
    /// When the clients are started: when the server accepts connections at this port, or has written
    /// a line with this text; when it accepts connections at all if absent.
    #[arg(long, value_name = "PORT|LINE", requires = "client")]
    pub ready: Option<String>,
    /// The signal that ends the server after its clients, by name or number.
    #[arg(long, value_name = "SIGNAL", default_value = "TERM", requires = "client", value_parser = signal)]
    pub stop: i32,
}

/// Reads the name or number of a signal.
fn signal(text: &str) -> Result<i32, String> {
    let names = [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("QUIT", libc::SIGQUIT),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("TERM", libc::SIGTERM),
    ];
    let upper = text.to_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let known = names.iter().find(|(known, _)| *known == name).map(|&(_, number)| number);
    let number = || name.parse().ok().filter(|number| (1..=64).contains(number));
    known.or_else(number).ok_or_else(|| {
        format!("`{text}` is none of HUP, INT, QUIT, USR1, USR2, TERM, or a number from 1 to 64")
    })
}

/// How a program is run again and again.
#[derive(Args, Clone, Debug)]
pub struct RunArguments {
    /// The program is an executable that was not compiled for foretell, for x86-64, AArch64 or 32-bit
    /// ARM: QEMU runs it (Debian's package qemu-user).
    #[arg(long)]
    pub binary: bool,
    /// Follow what the instructions of a binary compute, so that predictions go beyond runs in which every
    /// read returns what it did: slower. What is not followed is held.
    #[arg(long, requires = "binary")]
    pub symbolic: bool,
    /// The program is a test: a run that ends with another exit status than 0 has failed. Test programs of
    /// GoogleTest, Catch2 and doctest are known to be tests.
    #[arg(long)]
    pub is_test: bool,
    /// What happens when the steps of a schedule are over: the threads run as the operating system
    /// has it, each in turn, or at random: free, round-robin:EVENTS, random:SEED:EVENTS. When
    /// absent, each in turn without interruption: the same every time.
    #[arg(long, value_name = "POLICY")]
    pub after: Option<foretell_record::Policy>,
    /// End a run after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub run_limit: u64,
    /// The program is a server, and its clients do what this file says, which `foretell test --client`
    /// has written.
    #[arg(long, value_name = "FILE", conflicts_with = "binary")]
    pub traffic: Option<PathBuf>,
    /// A file that the program reads: part of its input. Can be given again.
    #[arg(long, value_name = "FILE")]
    pub input: Vec<PathBuf>,
    /// A file that the program writes: compared like its output, and as it was before every run.
    /// Can be given again. Other files are not compared.
    #[arg(long, value_name = "FILE")]
    pub writes: Vec<PathBuf>,
}

/// What to replay, and how.
#[derive(Args, Debug)]
pub struct ReplayArguments {
    /// The schedule file.
    pub schedule: PathBuf,
    /// Run the program in gdb, and stop at the violating event. The program keeps its standard
    /// streams, and foretell does not judge the run.
    #[arg(long)]
    pub gdb: bool,
    /// End after so many seconds, in the middle of a run as well; the exit code is then 12.
    #[arg(long, value_name = "SECONDS", conflicts_with = "gdb")]
    pub time_limit: Option<u64>,
    /// How the program is run.
    #[command(flatten)]
    pub run: RunArguments,
    /// The program and its arguments, after `--`. A C, C++ or Rust file is built first.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<std::ffi::OsString>,
}

/// What to patch, and where.
#[derive(Args, Debug)]
pub struct FixArguments {
    /// The trace file of a program that was built with `foretell cc` or `foretell c++`.
    pub trace: PathBuf,
    /// Only the finding whose id begins so.
    #[arg(long, value_name = "ID")]
    pub finding: Option<String>,
    /// Where the source files lie, besides the current directory. Can be given again.
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
    /// Print the patch and change nothing (the default).
    #[arg(long, conflicts_with = "apply")]
    pub diff: bool,
    /// Change the source files as well.
    #[arg(long)]
    pub apply: bool,
    /// End after so many seconds, with what there is by then; the exit code is then 12 unless something
    /// was found.
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<u64>,
}

/// What to explain, and how.
#[derive(Args, Debug)]
pub struct ExplainArguments {
    /// The trace file, of any format.
    pub trace: PathBuf,
    /// Compute exactly the bad interleavings (slower and longer); by default infeasible ones may be
    /// among them, good ones never.
    #[arg(long)]
    pub exact: bool,
    /// Do not look for synchronisation.
    #[arg(long)]
    pub no_fix: bool,
    /// Only the finding whose id begins so (`foretell predict` prints ids as names of schedules).
    #[arg(long, value_name = "ID")]
    pub finding: Option<String>,
    /// Draw the threads and the orders that must not be into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// End after so many seconds, with what there is by then; the exit code is then 12 unless something
    /// was found.
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<u64>,
}

/// What to verify, and how.
#[derive(Args, Debug)]
pub struct VerifyArguments {
    /// The program: C (.c) or guarded commands (.cmd).
    pub program: PathBuf,
    /// Where new predicates come from: the bad neighbourhood of an abstract counterexample, or the
    /// one trace.
    #[arg(long, value_enum, default_value_t = RefinementName::Neighbourhood)]
    pub refine: RefinementName,
    /// What becomes of predicates that a step leaves open: forgotten, or every value followed.
    #[arg(long, value_enum, default_value_t = AbstractionName::Cartesian)]
    pub abstraction: AbstractionName,
    /// Look at the steps of all threads in every state: no partial-order reduction.
    #[arg(long)]
    pub no_reduction: bool,
    /// Refinements to try before giving up.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub iterations: usize,
    /// States to look at: 2,000,000 concrete ones, or 50,000 abstract ones in one search.
    #[arg(long, value_name = "N")]
    pub states: Option<usize>,
    /// Questions to ask the solver.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub questions: u64,
    /// C: signed overflow wraps, as with -fwrapv (by default it is a violation).
    #[arg(long)]
    pub no_overflow: bool,
    /// C: what must never happen. `assertion` is a failed assertion, reach_error(), abort(), signed
    /// overflow, division by zero or a bad access; `deadlock` is a state in which no thread can go on, or in
    /// which threads wait for one another in a circle of mutexes and joins. Only what is named is looked
    /// for: `deadlock` alone does not look at assertions.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "KINDS",
        default_value = "assertion"
    )]
    pub property: Vec<PropertyName>,
    /// C: where to put the schedule of a counterexample and the program that it is for; created when
    /// there is one.
    #[arg(long, value_name = "DIR", default_value = "foretell-schedules")]
    pub schedules: PathBuf,
    /// C: end a run of the compiled program that is made to follow a counterexample after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub run_limit: u64,
    /// Write the proof here.
    #[arg(long, value_name = "FILE")]
    pub proof: Option<PathBuf>,
    /// C: write a witness of the proof or the violation here, in SV-COMP's format (GraphML).
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// Only check this proof of the program.
    #[arg(long, value_name = "FILE", conflicts_with = "proof")]
    pub check: Option<PathBuf>,
    /// End after so many seconds, with what there is by then; the exit code is then 12 unless something
    /// was found.
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<u64>,
}

/// What a verified program must never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PropertyName {
    /// Fail.
    Assertion,
    /// Stand still.
    Deadlock,
}

/// The refinements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RefinementName {
    /// Interpolants of the one spurious trace.
    Trace,
    /// Predicates that refute several traces of its bad neighbourhood at once.
    Neighbourhood,
}

/// The abstractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AbstractionName {
    /// Each predicate by itself.
    Cartesian,
    /// All predicates together.
    Boolean,
}
