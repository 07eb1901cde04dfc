//! What recording a binary costs: against the plain program, against plain QEMU, beside the instrumented
//! build and beside Valgrind's helgrind on the same program. Medians, ways in turn, so that what else
//! the machine does falls on all alike. And Table 6 of 002 on ARM: how few branches are stored.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foretell_record::{Form, Policy, record};

use crate::record::{build, ended_well, once, options, run};

/// How often each figure is taken.
const TIMES: usize = 5;

/// The compilers and emulators of other machines.
const OTHERS: [(&str, &str, &str, &str); 2] = [
    ("AArch64", "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"),
    ("ARM", "arm-linux-gnueabihf-gcc", "qemu-arm", "/usr/arm-linux-gnueabihf"),
];

/// Processor seconds of a run, the program's and ours.
type Way<'a> = (String, Box<dyn Fn() -> Result<String, String> + 'a>);

/// Runs the ways in turn; gives the medians of the wall clock and of all processor time, with a note.
fn medians(ways: &[Way<'_>]) -> Result<Vec<(f64, f64, String)>, String> {
    let mut taken = vec![(Vec::new(), Vec::new(), String::new()); ways.len()];
    for _ in 0..TIMES {
        for ((_, way), (walls, times, note)) in ways.iter().zip(&mut taken) {
            let ([wall, program, own], said) = once(way)?;
            walls.push(wall);
            times.push(program + own);
            *note = said;
        }
    }
    let median = |mut figures: Vec<f64>| {
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    Ok(taken.into_iter().map(|(walls, times, note)| (median(walls), median(times), note)).collect())
}

fn is_there(command: &str) -> bool {
    let mut command = Command::new(command);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn plain<'a>(name: &str, command: Vec<OsString>) -> Way<'a> {
    let way = move || {
        let (program, words) = command.split_first().ok_or("no command")?;
        run(Command::new(program).args(words).stderr(Stdio::null())).map(|()| String::new())
    };
    (name.to_owned(), Box::new(way))
}

fn recorded<'a>(
    name: &str,
    program: &'a Path,
    words: &[OsString],
    scratch: &Path,
    binary: bool,
) -> Way<'a> {
    let mut options = options(program, words, scratch.join("binary.ftrace"));
    (options.binary, options.form) = (binary, Form::Log);
    let way = move || {
        let outcome = record(&options).map_err(|error| error.to_string())?;
        ended_well(program, &outcome.end)?;
        let bytes = outcome.bytes as f64 / outcome.events.max(1) as f64;
        Ok(format!("{} events, {bytes:.1} bytes an event", outcome.events))
    };
    (name.to_owned(), Box::new(way))
}

fn command(words: &[&OsString], rest: &[OsString]) -> Vec<OsString> {
    words.iter().map(|word| (*word).clone()).chain(rest.iter().cloned()).collect()
}

/// Prints the tables, and whether the aim was reached.
pub fn table() -> Result<(), String> {
    const HELGRIND: &str = "helgrind";
    const BINARY: &str = "record --binary";
    let scratch = crate::scratch()?;
    for (name, rounds) in [("heapsort", "4"), ("locks", "20000")] {
        let words = [OsString::from(rounds)];
        let builds = build(name, &scratch)?;
        let mut others: Vec<(String, PathBuf)> = Vec::new();
        for (machine, compiler, emulator, _) in OTHERS {
            if !is_there(compiler) || !is_there(emulator) {
                println!("(no {compiler} or no {emulator} here: {machine} not measured)");
                continue;
            }
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("programs/{name}.c"));
            let other = scratch.join(format!("{name}-{machine}"));
            run(Command::new(compiler)
                .args(["-O1", "-g", "-pthread", "-o"])
                .args([&other, &source]))?;
            others.push((machine.to_owned(), other));
        }
        let program = builds.plain.clone().into_os_string();
        let mut ways = vec![
            plain("native", command(&[&program], &words)),
            plain("QEMU", command(&[&"qemu-x86_64".into(), &program], &words)),
            recorded(BINARY, &builds.plain, &words, &scratch, true),
            recorded("record, instrumented by gcc", &builds.concrete, &words, &scratch, false),
        ];
        if let Some(symbolic) = &builds.symbolic {
            ways.push(recorded("record, with expressions", symbolic, &words, &scratch, false));
        }
        if is_there("valgrind") {
            let words = command(&[&"valgrind".into(), &"--tool=helgrind".into(), &program], &words);
            ways.push(plain(HELGRIND, words));
        } else {
            println!("(no valgrind here: helgrind not measured)");
        }
        for (machine, program) in &others {
            let known = OTHERS.iter().find(|(name, ..)| name == machine);
            let Some((.., emulator, prefix)) = known else { continue };
            let prefix = ["-L", prefix].map(OsString::from);
            let emulator = OsString::from(emulator);
            let start = [&emulator, &prefix[0], &prefix[1], &program.clone().into_os_string()];
            ways.push(plain(&format!("QEMU, {machine}"), command(&start, &words)));
            ways.push(recorded(&format!("{BINARY}, {machine}"), program, &words, &scratch, true));
        }
        let figures = medians(&ways)?;
        let (native, emulated) = (figures[0].1, figures[1].1);
        println!("{name} {rounds}: medians of {TIMES}");
        println!(
            "  {:<28} {:>8} {:>8} {:>10} {:>9}",
            "", "wall s", "cpu s", "to native", "to QEMU"
        );
        for ((way, _), (wall, time, note)) in ways.iter().zip(&figures) {
            let (to_native, to_emulated) = (time / native, time / emulated);
            println!(
                "  {way:<28} {wall:>8.3} {time:>8.3} {to_native:>9.1}x {to_emulated:>8.1}x  {note}"
            );
        }
        let time = |wanted: &str| {
            let mut all = ways.iter().zip(&figures);
            all.find(|((name, _), _)| name == wanted).map(|(_, figures)| figures.1)
        };
        if let (Some(binary), Some(helgrind)) = (time(BINARY), time(HELGRIND)) {
            let ratio = binary / helgrind;
            let word = if ratio <= 1.5 { "reached" } else { "MISSED" };
            println!("  aim: {BINARY} at most 1.5 times helgrind: {ratio:.2}x: {word}");
        }
    }
    Ok(())
}

/// Programs of 002's Table 6, written anew in `examples/`, with their argument and the ratio there.
const PATHS: [(&str, &str, &str, f64); 3] = [
    ("FFT", "ok_fft", "1024", 6.3),
    ("Lu", "ok_lu", "96", 17.2),
    ("Pbzip", "ok_pack", "512", 15.7),
];

/// Prints how many branches 32-bit ARM binaries take, and how many of them are stored.
pub fn paths() -> Result<(), String> {
    let (machine, compiler, emulator, _) = OTHERS[1];
    if !is_there(compiler) || !is_there(emulator) {
        println!("(no {compiler} or no {emulator} here: branches not counted)");
        return Ok(());
    }
    let scratch = crate::scratch()?;
    println!("branches of {machine} binaries, and those that were stored because mispredicted");
    println!(
        "  {:<8} {:>10} {:>14} {:>13} {:>13} {:>7} {:>8}",
        "program", "branches", "mispredicted", "bytes of all", "stored bytes", "ratio", "thesis"
    );
    for (name, example, size, thesis) in PATHS {
        let program = build_for_arm(example, &scratch)?;
        let mut options = options(&program, &[size.into()], scratch.join("paths.ftrace"));
        (options.binary, options.path, options.policy) = (true, true, Policy::AFTER);
        let outcome = record(&options).map_err(|error| error.to_string())?;
        ended_well(&program, &outcome.end)?;
        let (branches, missed) = (outcome.path.branches(), outcome.path.mispredictions());
        // A branch takes as much as a misprediction: where, how it came out, how many came before.
        let each = 24;
        let ratio = branches as f64 / missed.max(1) as f64;
        println!(
            "  {name:<8} {branches:>10} {missed:>14} {:>13} {:>13} {ratio:>7.1} {thesis:>8.1}",
            branches * each,
            missed * each
        );
    }
    Ok(())
}

/// Builds an example for 32-bit ARM, as anybody would.
pub fn build_for_arm(example: &str, scratch: &Path) -> Result<PathBuf, String> {
    let (machine, compiler, ..) = OTHERS[1];
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/{example}/{example}.c"));
    let program = scratch.join(format!("{example}-{machine}"));
    let words = ["-O1", "-g", "-pthread", "-o"];
    run(Command::new(compiler).args(words).args([&program, &source]).arg("-lm"))?;
    Ok(program)
}
