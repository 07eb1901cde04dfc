//! What recording costs: processor time of the program under each way of recording against the
//! plain program, ThreadSanitizer beside it in the same run. The recorder's own time, which it
//! spends outside the program, is a column of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use foretell_record::{RecordOptions, RunEnd, record, record_sync_only};

/// How often each figure is taken; the smallest counts.
const TIMES: usize = 3;

/// Processor time of this process, or of the children it has waited for.
fn processor_time(of: libc::c_int) -> Duration {
    // SAFETY: `usage` is writable.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(of, &mut usage);
        usage
    };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// The smallest times of the program and of ourselves over several runs.
pub fn measure<T>(mut run: impl FnMut() -> Result<T, String>) -> Result<(f64, f64, T), String> {
    let mut best: Option<(f64, f64, T)> = None;
    for _ in 0..TIMES {
        let before = (processor_time(libc::RUSAGE_CHILDREN), processor_time(libc::RUSAGE_SELF));
        let result = run()?;
        let program = (processor_time(libc::RUSAGE_CHILDREN) - before.0).as_secs_f64();
        let own = (processor_time(libc::RUSAGE_SELF) - before.1).as_secs_f64();
        if best.as_ref().is_none_or(|&(least, ..)| program < least) {
            best = Some((program, own, result));
        }
    }
    best.ok_or_else(|| "nothing measured".to_owned())
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}

/// The builds of one of our programs.
pub struct Builds {
    plain: PathBuf,
    sanitizer: Option<PathBuf>,
    /// With the hooks of ThreadSanitizer's ABI and our runtime.
    pub concrete: PathBuf,
    symbolic: Option<PathBuf>,
}

/// Builds one of our programs in every way.
pub fn build(name: &str, scratch: &Path) -> Result<Builds, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("programs/{name}.c"));
    let library = foretell_record::runtime_library()
        .ok_or("build the runtime first: cargo build --release -p foretell-runtime")?;
    let directory = library.parent().ok_or("the runtime lies nowhere")?.to_owned();
    let link = [
        format!("-L{}", directory.display()),
        format!("-Wl,-rpath,{}", directory.display()),
        "-lforetell_runtime".into(),
    ];
    let compile = |compiler: &str, what: &str, flags: &[String], link: &[String]| {
        let object = scratch.join(format!("{name}-{what}.o"));
        let program = scratch.join(format!("{name}-{what}"));
        run(Command::new(compiler)
            .args(["-O1", "-g", "-c", "-o"])
            .args([&object, &source])
            .args(flags))?;
        run(Command::new(compiler).arg("-o").args([&program, &object]).args(link).arg("-pthread"))?;
        Ok::<_, String>(program)
    };
    let sanitize = ["-fsanitize=thread".to_owned()];
    let plugin = directory.join("libforetell_instrument.so");
    let symbolic = if plugin.is_file() {
        let flag = [format!("-fpass-plugin={}", plugin.display())];
        compile("clang-22", "symbolic", &flag, &link).ok()
    } else {
        None
    };
    Ok(Builds {
        plain: compile("gcc", "plain", &[], &[])?,
        sanitizer: compile("gcc", "tsan", &sanitize, &sanitize).ok(),
        concrete: compile("gcc", "concrete", &sanitize, &link)?,
        symbolic,
    })
}

fn row(way: &str, program: f64, own: Option<f64>, plain: f64, note: &str) {
    let own = own.map_or_else(|| "-".to_owned(), |own| format!("{own:.2}"));
    println!("  {way:<22} {program:>8.2} {:>7.1}x {own:>9}  {note}", program / plain);
}

fn recorded(
    program: &Path,
    words: &[OsString],
    scratch: &Path,
) -> Result<(f64, f64, String), String> {
    let mut options = RecordOptions::new(program, scratch.join("record.ftrace"));
    options.arguments = words.to_vec();
    let (time, own, outcome) = measure(|| record(&options).map_err(|error| error.to_string()))?;
    if outcome.end != RunEnd::Exit(0) {
        return Err(format!("{} ended with {:?}", program.display(), outcome.end));
    }
    let bytes = outcome.bytes as f64 / outcome.events.max(1) as f64;
    Ok((time, own, format!("{} events, {bytes:.1} bytes an event", outcome.events)))
}

fn sync_only(
    program: &Path,
    words: &[OsString],
    scratch: &Path,
) -> Result<(f64, f64, String), String> {
    let mut options = RecordOptions::new(program, scratch.join("record.sync"));
    options.arguments = words.to_vec();
    let (time, own, outcome) =
        measure(|| record_sync_only(&options).map_err(|error| error.to_string()))?;
    if outcome.end != RunEnd::Exit(0) {
        return Err(format!("{} ended with {:?}", program.display(), outcome.end));
    }
    Ok((time, own, format!("{} entries", outcome.entries)))
}

fn header(what: &str) {
    println!("{what}");
    println!("  {:<22} {:>8} {:>8} {:>9}", "", "seconds", "slowdown", "recorder");
}

/// Prints the table.
pub fn table() -> Result<(), String> {
    let scratch = crate::scratch()?;
    for (name, rounds, storm) in [("heapsort", "4", "40"), ("locks", "20000", "2000000")] {
        let words = [OsString::from(rounds)];
        let builds = build(name, &scratch)?;
        header(&format!("{name} {rounds}"));
        let plain = measure(|| run(Command::new(&builds.plain).args(&words)))?.0;
        row("plain", plain, None, plain, "");
        if let Some(program) = &builds.sanitizer {
            let time = measure(|| run(Command::new(program).args(&words)))?.0;
            row("ThreadSanitizer", time, None, plain, "");
        }
        let (time, own, note) = recorded(&builds.concrete, &words, &scratch)?;
        row("record, concrete", time, Some(own), plain, &note);
        match &builds.symbolic {
            Some(program) => {
                let (time, own, note) = recorded(program, &words, &scratch)?;
                row("record, symbolic", time, Some(own), plain, &note);
            }
            None => println!("  (no plugin beside the runtime: symbolic recording not measured)"),
        }
        // A longer run: little is to be seen against the start of a process.
        let words = [OsString::from(storm)];
        header(&format!("{name} {storm}"));
        let plain = measure(|| run(Command::new(&builds.plain).args(&words)))?.0;
        row("plain", plain, None, plain, "");
        let (time, own, note) = sync_only(&builds.plain, &words, &scratch)?;
        row("record --sync-only", time, Some(own), plain, &note);
    }
    real_program(&scratch)
}

/// Debian's own xz, two threads: a real program that nobody here built.
fn real_program(scratch: &Path) -> Result<(), String> {
    let data = scratch.join("record.data");
    let mut seed = 1u32;
    let text: Vec<u8> = (0..24_000_000u32)
        .map(|at| {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            b"etaoin shrdlu cmfwyp vbgkqj xz\n"
                [(seed >> 16) as usize % if at % 7 == 0 { 31 } else { 6 }]
        })
        .collect();
    std::fs::write(&data, text).map_err(|error| format!("cannot write test data: {error}"))?;
    let words: Vec<OsString> = ["-T2", "-1", "-k", "-f", "-q", "--block-size=1MiB"]
        .iter()
        .map(OsString::from)
        .chain([data.into_os_string()])
        .collect();
    header("xz -T2 -1, 24 MB");
    let plain = measure(|| run(Command::new("xz").args(&words)))?.0;
    row("plain", plain, None, plain, "");
    let (time, own, note) = sync_only(Path::new("xz"), &words, scratch)?;
    row("record --sync-only", time, Some(own), plain, &note);
    Ok(())
}
