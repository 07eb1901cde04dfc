//! `foretell trace`: look at, check and convert trace files.

use std::io::{IsTerminal, Write};
use std::path::Path;

use foretell_trace::format::{self, Format, Opened, WriteError, text};
use foretell_trace::info::TraceInfo;
use foretell_trace::validate::validate;
use serde_json::json;

use crate::cli::{ConvertArguments, TargetFormat, TraceCommand, TraceFile};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Runs one of the trace commands.
pub fn run(command: &TraceCommand, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        TraceCommand::Info(file) => info(file, output),
        TraceCommand::Cat(file) => cat(file, output),
        TraceCommand::Convert(arguments) => convert(arguments, output),
        TraceCommand::Validate(file) => validate_file(file, output),
    }
}

fn info(file: &TraceFile, output: &mut Output) -> Result<Exit, Failure> {
    let (format, info) = foretell_record::info(&file.trace)?;
    if output.json() {
        output.object(json!({"version": 1, "trace": info_json(format, &info)}))?;
        return Ok(Exit::NothingFound);
    }
    writeln!(output, "{}: {format} format, {} events", file.trace.display(), info.events)?;
    let rows = [
        ("threads", info.threads.len() as u64),
        ("variables", info.variables),
        ("locks", info.locks),
        ("other objects", info.other_objects),
        ("source positions", info.sites),
        ("symbolic terms", info.terms),
    ];
    for (name, count) in rows {
        writeln!(output, "  {name:<20}{count:>12}")?;
    }
    for (kind, count) in &info.kinds {
        writeln!(output, "  {:<20}{count:>12}", kind.name())?;
    }
    for thread in &info.threads {
        writeln!(output, "  thread {:<13}{:>12}", thread.name, thread.events)?;
    }
    for gap in &info.gaps {
        writeln!(output, "  not seen: {gap}")?;
    }
    for restriction in &info.restrictions {
        writeln!(output, "  not varied: {restriction}")?;
    }
    Ok(Exit::NothingFound)
}

/// The `trace` member of the JSON object.
pub fn info_json(format: Format, info: &TraceInfo) -> serde_json::Value {
    let kinds: serde_json::Map<String, serde_json::Value> =
        info.kinds.iter().map(|(kind, count)| (kind.name().to_owned(), (*count).into())).collect();
    json!({
        "format": format.to_string(),
        "threads": info.threads.len(),
        "events": info.events,
        "variables": info.variables,
        "locks": info.locks,
        "symbolic": info.symbolic,
        "kinds": kinds,
        "gaps": info.gaps,
        "restrictions": info.restrictions,
    })
}

fn cat(file: &TraceFile, output: &mut Output) -> Result<Exit, Failure> {
    let trace = foretell_record::read(&file.trace)?;
    if output.json() {
        return Err(Failure::Input(
            "`trace cat` prints the text format; for tables use `trace convert --to parquet`"
                .into(),
        ));
    }
    // It is a document that can be read back; only a terminal is spared what it would obey.
    match std::io::stdout().is_terminal() {
        true => text::write(&trace, output)?,
        false => text::write(&trace, &mut output.as_it_is())?,
    }
    Ok(Exit::NothingFound)
}

fn convert(arguments: &ConvertArguments, output: &mut Output) -> Result<Exit, Failure> {
    let target = arguments.to.map_or_else(|| target_of(&arguments.output), Ok)?;
    let opened = Opened::new(&arguments.trace)?;
    if opened.format == Format::Log && target == TargetFormat::Binary {
        foretell_record::convert(opened, &arguments.trace, &arguments.output)
            .map_err(|error| Failure::Input(error.to_string()))?;
    } else {
        let trace = foretell_record::read_opened(opened, &arguments.trace)?;
        let write = |format| format::write_path(&trace, &arguments.output, format);
        let written = match target {
            TargetFormat::Parquet => parquet(&trace, &arguments.output),
            TargetFormat::Binary => write(Format::Binary),
            TargetFormat::Text => write(Format::Text),
            TargetFormat::Ctrc => write(Format::Ctrc),
            TargetFormat::Std => write(Format::Std),
        };
        written.map_err(|error| Failure::Input(error.to_string()))?;
    }
    if output.json() {
        output.object(json!({"version": 1, "written": arguments.output.display().to_string()}))?;
    }
    Ok(Exit::NothingFound)
}

fn target_of(path: &Path) -> Result<TargetFormat, Failure> {
    let is_parquet = path.extension().is_some_and(|extension| extension == "parquet");
    match Format::of_name(path) {
        _ if is_parquet => Ok(TargetFormat::Parquet),
        Some(Format::Binary) => Ok(TargetFormat::Binary),
        Some(Format::Text) => Ok(TargetFormat::Text),
        Some(Format::Ctrc) => Ok(TargetFormat::Ctrc),
        Some(Format::Std) => Ok(TargetFormat::Std),
        Some(Format::Log) | None => Err(Failure::Input(format!(
            "{}: the ending does not tell the format; say --to binary, text, ctrc, std or parquet",
            path.display()
        ))),
    }
}

#[cfg(feature = "parquet")]
fn parquet(trace: &foretell_trace::Trace, path: &Path) -> Result<(), WriteError> {
    format::write_whole(path, |file| format::parquet::write(trace, file))
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &foretell_trace::Trace, path: &Path) -> Result<(), WriteError> {
    Err(WriteError::Io {
        path: path.to_owned(),
        error: std::io::Error::other(
            "this foretell was built without Parquet; build it with `cargo build --features parquet`",
        ),
    })
}

fn validate_file(file: &TraceFile, output: &mut Output) -> Result<Exit, Failure> {
    let trace = foretell_record::read(&file.trace)?;
    let faults = validate(&trace);
    if output.json() {
        let faults: Vec<String> = faults.iter().map(|fault| fault.to_string()).collect();
        output.object(json!({
            "version": 1,
            "valid": faults.is_empty(),
            "faults": faults,
            "unseen": trace.metadata.gaps,
        }))?;
    } else if faults.is_empty() {
        writeln!(output, "{}: {} events, valid", file.trace.display(), trace.events.len())?;
    }
    if !output.json() {
        for fault in &faults {
            writeln!(output, "{}: {fault}", file.trace.display())?;
        }
        for gap in &trace.metadata.gaps {
            writeln!(output, "  not seen: {gap}")?;
        }
    }
    Ok(if faults.is_empty() { Exit::NothingFound } else { Exit::BadInput })
}
