//! `foretell report`: a saved result, shown again; and what every command does with its report:
//! suppress, print, write files, and choose the exit code.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use foretell_guard::say;
use foretell_report::suppress::{self, SuppressionError, Suppressions};
use foretell_report::terminal::{self, Look};
use foretell_report::{Report, html, junit, markdown, perfetto, sarif};
use foretell_trace::format;

use crate::cli::{ReportArguments, ReportOutputs};
use crate::config::malformed;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// A larger file is no result of ours.
const LARGEST_RESULT: u64 = 1 << 30;

/// Shows a saved result.
pub fn run(arguments: &ReportArguments, output: &mut Output) -> Result<Exit, Failure> {
    let mut report = saved(&arguments.result)?;
    suppress(&mut report, &arguments.outputs)?;
    // With a file to write, there is nothing to print.
    if arguments.outputs.is_none() {
        print(&report, output)?;
    }
    write_files(&report, &arguments.outputs)?;
    Ok(report.conclusion().into())
}

/// A result that was saved.
pub fn saved(path: &Path) -> Result<Report, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::Input(format!("{}: {error}", path.display()));
    let size = fs::metadata(path).map_err(|error| failed(&error))?.len();
    if size > LARGEST_RESULT {
        return Err(failed(&"larger than 1 GiB: not a result of foretell"));
    }
    let bytes = fs::read(path).map_err(|error| failed(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| failed(&not_a_result(path)))?;
    if text.starts_with("foretell-") {
        return Err(failed(&not_a_result(path)));
    }
    Report::from_json(&text).map_err(|error| failed(&error))
}

/// What to do with a file that has no result in it.
fn not_a_result(path: &Path) -> &'static str {
    match foretell_record::read(path) {
        Ok(_) => {
            "this is a trace, and a result is expected: save one with `foretell test --json RESULT \
             PROGRAM` or `foretell predict --json RESULT TRACE`"
        }
        Err(_) => "not a result of foretell",
    }
}

/// Marks what the suppression files say.
pub fn suppress(report: &mut Report, outputs: &ReportOutputs) -> Result<(), Failure> {
    for path in &outputs.suppressions {
        let failed =
            |error: &dyn std::fmt::Display| Failure::Input(format!("{}: {error}", path.display()));
        let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
        let suppressions = Suppressions::parse(&text).map_err(|error| match &error {
            SuppressionError::Malformed(error) => Failure::Input(malformed(path, &text, error)),
            _ => failed(&error),
        })?;
        suppressions.apply(report, &path.display().to_string(), &today());
    }
    Ok(())
}

/// Are the suppression files what they should be? Asked before the work, so that none is done in vain.
pub fn check_suppressions(outputs: &ReportOutputs) -> Result<(), Failure> {
    suppress(&mut Report::default(), outputs)
}

/// A file that cannot be written changes the message, and the exit code only where nothing was found.
pub fn keep_verdict(exit: Exit, written: Result<(), Failure>) -> Result<Exit, Failure> {
    match written {
        Err(Failure::Input(why)) if matches!(exit, Exit::Confirmed | Exit::Predicted) => {
            say!("foretell: {why}");
            Ok(exit)
        }
        written => written.map(|()| exit),
    }
}

/// Prints in the format that was asked for.
pub fn print(report: &Report, output: &mut Output) -> Result<(), Failure> {
    if output.json() {
        output.object(report.to_json())?;
    } else {
        let look = output.look();
        // The renderer makes what comes from outside safe, and adds colours.
        terminal::render(&mut output.as_it_is(), look, report)?;
    }
    Ok(())
}

/// Writes the files that were asked for; each is complete or not there.
pub fn write_files(report: &Report, outputs: &ReportOutputs) -> Result<(), Failure> {
    type Render = fn(&mut dyn Write, &Report) -> io::Result<()>;
    let files: [(&Option<std::path::PathBuf>, Render); 8] = [
        (&outputs.json, |mut out, report| {
            serde_json::to_writer_pretty(&mut out, report)?;
            writeln!(out)
        }),
        (&outputs.html, |mut out, report| html::render(&mut out, report)),
        (&outputs.sarif, |mut out, report| sarif::render(&mut out, report)),
        (&outputs.junit, |mut out, report| junit::render(&mut out, report)),
        (&outputs.markdown, |mut out, report| markdown::render(&mut out, report)),
        (&outputs.perfetto, |mut out, report| perfetto::render(&mut out, report)),
        (&outputs.text, |mut out, report| terminal::render(&mut out, Look::default(), report)),
        (&outputs.write_baseline, |out, report| {
            out.write_all(suppress::baseline(report, &today()).as_bytes())
        }),
    ];
    for (path, render) in files {
        if let Some(path) = path {
            write_file(path, |out| render(out, report))?;
        }
    }
    Ok(())
}

/// Writes a file, which is complete or not there.
pub fn write_file(
    path: &Path,
    render: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    format::write_whole(path, |file| {
        let mut file = io::BufWriter::new(file);
        render(&mut file)
            .and_then(|()| file.flush())
            .map_err(|error| format::WriteError::Io { path: path.to_owned(), error })
    })
    .map_err(|error| Failure::Input(error.to_string()))
}

fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    suppress::date(now.as_secs())
}
