//! Tables 4, 5 and 6 of 002: the seven programs, written anew in `examples/`. What is predicted and
//! confirmed, what it does, and how few branches are stored behind the branch predictor.
//!
//! `thesis binary` prints the same of 32-bit ARM binaries that gcc made, and what the thesis' order generator and
//! its filters give for them.
//!
//! The thesis counted predictions by pairs of instructions on the original SPLASH-2 and pbzip2; ours
//! are small kernels of the same kind, so the verdicts are to be compared, not the counts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use foretell_build::Language;
use foretell_force::effect::Effect;
use foretell_force::program::Program;
use foretell_force::session::{Options, Session, Tested, test};
use foretell_predict::planner::{self, Engine, PlannerOptions};
use foretell_predict::{Filters, FindingKind, Status};
use foretell_record::{ExecutionPath, Policy, RecordOptions, RunEnd, record};
use foretell_trace::Trace;

/// A row of the tables.
struct Row {
    /// As the thesis calls it.
    name: &'static str,
    /// The folder in `examples/`.
    example: &'static str,
    /// The argument for testing, and a larger one for counting branches.
    sizes: Option<(&'static str, &'static str)>,
    /// Predicted and actual violations in Table 4.
    thesis: (u32, u32),
    /// The compression ratio in Table 6.
    ratio: Option<f64>,
}

const ROWS: [Row; 7] = [
    Row {
        name: "FFT",
        example: "ok_fft",
        sizes: Some(("16", "1024")),
        thesis: (0, 0),
        ratio: Some(6.3),
    },
    Row {
        name: "FFT with inserted bug",
        example: "fft_work",
        sizes: Some(("16", "1024")),
        thesis: (12, 1),
        ratio: None,
    },
    Row {
        name: "Lu",
        example: "ok_lu",
        sizes: Some(("4", "96")),
        thesis: (0, 0),
        ratio: Some(17.2),
    },
    Row {
        name: "Barnes",
        example: "ok_barnes",
        sizes: Some(("8", "256")),
        thesis: (11, 0),
        ratio: Some(16.1),
    },
    Row {
        name: "Pbzip",
        example: "ok_pack",
        sizes: Some(("2", "512")),
        thesis: (23, 0),
        ratio: Some(15.7),
    },
    Row { name: "Banking", example: "bank", sizes: None, thesis: (12, 1), ratio: None },
    Row { name: "Load_Script", example: "load_script", sizes: None, thesis: (1, 1), ratio: None },
];

/// How the programs are built and run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Built {
    /// By `foretell cc`.
    Instrumented,
    /// By gcc, for 32-bit ARM.
    Binary,
}

/// Prints the three tables.
pub fn tables(built: Built) -> Result<(), String> {
    let scratch = crate::scratch()?;
    let mut results = Vec::new();
    for row in &ROWS {
        let program = match built {
            Built::Instrumented => build(row.example, &scratch)?,
            Built::Binary => crate::binary::build_for_arm(row.example, &scratch)?,
        };
        let words = |size: &'static str| vec![OsString::from(size)];
        let tested = row.sizes.map_or_else(Vec::new, |(small, _)| words(small));
        let options = Options { time: Duration::from_secs(60), ..Options::default() };
        let mut under_test = Program::new(&program, tested);
        under_test.binary = built == Built::Binary;
        let session =
            test(&under_test, &options).map_err(|error| format!("{}: {error}", row.example))?;
        let counted = row.sizes.map_or_else(Vec::new, |(_, large)| words(large));
        results.push((row, session, branches(&program, counted, &scratch, built)?));
    }
    println!("Table 4: atomicity violations (in brackets: the thesis on the originals)");
    println!("{:<22} {:>7} {:>16} {:>16}", "program", "threads", "predicted", "confirmed");
    for (row, session, _) in &results {
        let predicted = session.prediction.findings.iter().filter(|finding| {
            finding.kind == FindingKind::Atomicity && finding.status == Status::Predicted
        });
        let confirmed = violations(session).count();
        println!(
            "{:<22} {:>7} {:>16} {:>16}",
            row.name,
            session.recorded.trace.threads.len() - 1,
            format!("{} ({})", predicted.count(), row.thesis.0),
            format!("{confirmed} ({})", row.thesis.1)
        );
    }
    println!("\nTable 5: what the confirmed violations do");
    println!("{:<22} {:>9} {:>9} {:>9}  pattern", "program", "path", "output", "crash");
    for (row, session, _) in &results {
        let said = |does: &dyn Fn(&Tested) -> bool| match violations(session).next() {
            None => "-",
            Some(_) if violations(session).any(does) => "yes",
            Some(_) => "no",
        };
        // A failed assertion is this project's way to say that the final output is wrong.
        let output = |tested: &Tested| {
            tested.verdict.difference.output.is_some()
                || tested.verdict.effect() == Some(Effect::Assertion)
        };
        let pattern = violations(session).find_map(|tested| tested.finding.pattern);
        println!(
            "{:<22} {:>9} {:>9} {:>9}  {}",
            row.name,
            said(&|tested| tested.verdict.difference.branch.is_some()),
            said(&output),
            said(&|tested| tested.verdict.effect() == Some(Effect::Crash)),
            pattern.map_or("-", |pattern| pattern.name())
        );
    }
    orders(results.iter().map(|(row, session, _)| (row.name, &session.recorded.trace)))?;
    println!("\nTable 6: branches against mispredictions stored");
    println!(
        "{:<22} {:>9} {:>14} {:>8} {:>8}",
        "program", "branches", "mispredictions", "ratio", "thesis"
    );
    for (row, _, path) in results.iter().filter(|(row, ..)| row.sizes.is_some()) {
        let ratio = path.branches() as f64 / path.mispredictions().max(1) as f64;
        let thesis = row.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}"));
        println!(
            "{:<22} {:>9} {:>14} {ratio:>8.1} {thesis:>8}",
            row.name,
            path.branches(),
            path.mispredictions()
        );
    }
    Ok(())
}

/// What the order generator gives, and what its filters leave of that: patterns whose two local accesses are
/// one instruction, and those with more than ten events between them.
fn orders<'t>(traces: impl Iterator<Item = (&'static str, &'t Trace)>) -> Result<(), String> {
    println!("\norder generator: patterns by the strong order, and what each filter leaves out");
    println!("{:<22} {:>9} {:>7} {:>9} {:>6}", "program", "patterns", "loops", "distant", "left");
    for (name, trace) in traces {
        let count = |filters: Filters| {
            let common = foretell_predict::Options { filters, ..Default::default() };
            let options = PlannerOptions { engine: Engine::Orders, common, ..Default::default() };
            let prediction =
                planner::predict(trace, &options).map_err(|error| error.to_string())?;
            Ok::<_, String>((prediction.findings.len(), prediction.statistics.filtered))
        };
        let (all, _) = count(Filters::default())?;
        let (left, filtered) =
            count(Filters { loops: true, distance: Some(10), ..Filters::default() })?;
        let (loops, distant) = (filtered.loops, filtered.distant);
        println!("{name:<22} {all:>9} {loops:>7} {distant:>9} {left:>6}");
    }
    Ok(())
}

/// The atomicity violations that the program did, with something to see.
fn violations(session: &Session) -> impl Iterator<Item = &Tested> {
    session
        .tested
        .iter()
        .filter(|tested| tested.finding.kind == FindingKind::Atomicity && tested.counts())
}

/// Builds an example as `foretell cc` does.
fn build(example: &str, scratch: &Path) -> Result<PathBuf, String> {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/{example}/{example}.c"));
    let program = scratch.join(example);
    let words = ["-O1", "-g", "-pthread", "-lm", "-o"].map(OsString::from);
    let words = words.into_iter().chain([program.clone().into(), source.into()]);
    let status = foretell_build::command(Language::C, words)
        .map_err(|error| error.to_string())?
        .status()
        .map_err(|error| format!("cannot compile {example}: {error}"))?;
    if status.success() { Ok(program) } else { Err(format!("{example} does not compile")) }
}

/// The branches of a run.
fn branches(
    program: &Path,
    arguments: Vec<OsString>,
    scratch: &Path,
    built: Built,
) -> Result<ExecutionPath, String> {
    let mut options = RecordOptions::new(program, scratch.join("thesis.ftrace"));
    options.arguments = arguments;
    (options.path, options.binary) = (true, built == Built::Binary);
    options.policy = Policy::AFTER;
    let outcome = record(&options).map_err(|error| error.to_string())?;
    match outcome.end {
        RunEnd::Exit(0) => Ok(outcome.path),
        end => Err(format!("{} ended with {end:?}", program.display())),
    }
}
