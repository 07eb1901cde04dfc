//! What recording costs against the plain program, ThreadSanitizer beside it in the same run.
//!
//! The slowdown is by the wall clock, until the recording is there: what a user waits for. Processor
//! time of the program and of the recorder beside it are columns of their own. The ways are run in
//! turn, several times, and the smallest figure counts, so that what else the machine does falls on
//! all of them alike. At the end stands which of the aims were reached.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foretell_record::{Capture, Form, RecordOptions, RunEnd, record, record_sync_only};

/// How often each figure is taken.
const TIMES: usize = 5;

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

/// Seconds of one run: by the wall clock, processor time of the program, and our own.
pub fn once<T>(run: impl FnOnce() -> Result<T, String>) -> Result<([f64; 3], T), String> {
    let before = (processor_time(libc::RUSAGE_CHILDREN), processor_time(libc::RUSAGE_SELF));
    let begin = Instant::now();
    let result = run()?;
    let wall = begin.elapsed();
    let program = processor_time(libc::RUSAGE_CHILDREN) - before.0;
    let own = processor_time(libc::RUSAGE_SELF) - before.1;
    Ok(([wall, program, own].map(|time| time.as_secs_f64()), result))
}

/// The smallest processor times of the program and of ourselves over several runs.
pub fn measure<T>(mut run: impl FnMut() -> Result<T, String>) -> Result<(f64, f64, T), String> {
    let mut best: Option<(f64, f64, T)> = None;
    for _ in 0..TIMES {
        let ([_, program, own], result) = once(&mut run)?;
        if best.as_ref().is_none_or(|&(least, ..)| program < least) {
            best = Some((program, own, result));
        }
    }
    best.ok_or_else(|| "nothing measured".to_owned())
}

/// A way to run a program; what it does gives a note.
struct Way<'a> {
    name: &'static str,
    /// A file that is not to be there before.
    writes: Option<PathBuf>,
    run: Box<dyn Fn() -> Result<String, String> + 'a>,
}

/// The smallest seconds over several runs.
struct Cost {
    name: &'static str,
    wall: f64,
    program: f64,
    recorder: f64,
}

/// Runs the ways in turn and prints a table, the first way being the plain program.
fn compare(title: &str, ways: &[Way]) -> Result<Vec<Cost>, String> {
    let mut costs: Vec<(Cost, String)> = ways
        .iter()
        .map(|way| {
            let never = f64::INFINITY;
            let cost = Cost { name: way.name, wall: never, program: never, recorder: never };
            (cost, String::new())
        })
        .collect();
    for _ in 0..TIMES {
        for (way, (cost, note)) in ways.iter().zip(&mut costs) {
            if let Some(file) = &way.writes {
                let _ = std::fs::remove_file(file); // to be rid of an old file costs time, too
            }
            let ([wall, program, recorder], said) = once(&way.run)?;
            cost.wall = cost.wall.min(wall);
            cost.program = cost.program.min(program);
            cost.recorder = cost.recorder.min(recorder);
            *note = said;
        }
    }
    println!("{title}");
    println!(
        "  {:<28} {:>8} {:>9} {:>12} {:>12}",
        "", "wall s", "slowdown", "program cpu", "recorder cpu"
    );
    let plain = costs.first().map_or(1.0, |(cost, _)| cost.wall);
    for (cost, note) in &costs {
        println!(
            "  {:<28} {:>8.3} {:>8.2}x {:>12.3} {:>12.3}  {note}",
            cost.name,
            cost.wall,
            cost.wall / plain,
            cost.program,
            cost.recorder
        );
    }
    Ok(costs.into_iter().map(|(cost, _)| cost).collect())
}

pub fn run(command: &mut Command) -> Result<(), String> {
    let status = command
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}

/// The builds of one of our programs.
pub struct Builds {
    pub plain: PathBuf,
    /// With ThreadSanitizer, by gcc and by clang.
    sanitizers: [Option<PathBuf>; 2],
    /// With the hooks of ThreadSanitizer's ABI and our runtime.
    pub concrete: PathBuf,
    pub symbolic: Option<PathBuf>,
    /// The same with every access of the source.
    as_written: Option<PathBuf>,
}

/// Builds one of our programs in every way.
pub fn build(name: &str, scratch: &Path) -> Result<Builds, String> {
    build_source(&format!("programs/{name}.c"), name, scratch)
}

/// The same for any source, by its path from here.
pub fn build_source(source: &str, name: &str, scratch: &Path) -> Result<Builds, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
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
        let mut words = compiler.split(' ');
        run(Command::new(words.next().unwrap_or_default())
            .args(words)
            .args(["-O1", "-g", "-c", "-o"])
            .args([&object, &source])
            .args(flags))?;
        let linker = compiler.rsplit(' ').next().unwrap_or_default();
        run(Command::new(linker).arg("-o").args([&program, &object]).args(link).arg("-pthread"))?;
        Ok::<_, String>(program)
    };
    let sanitize = ["-fsanitize=thread".to_owned()];
    let plugin = directory.join("libforetell_instrument.so");
    let instrumented = |what: &str, as_written: bool| {
        let flag = [format!("-fpass-plugin={}", plugin.display())];
        // The plugin is asked as `foretell cc --as-written` asks it.
        let compiler = if as_written { "env FORETELL_AS_WRITTEN=1 clang-22" } else { "clang-22" };
        plugin.is_file().then(|| compile(compiler, what, &flag, &link).ok()).flatten()
    };
    Ok(Builds {
        plain: compile("gcc", "plain", &[], &[])?,
        sanitizers: [
            compile("gcc", "tsan", &sanitize, &sanitize).ok(),
            compile("clang-22", "tsan-clang", &sanitize, &sanitize).ok(),
        ],
        concrete: compile("gcc", "concrete", &sanitize, &link)?,
        symbolic: instrumented("symbolic", false),
        as_written: instrumented("as-written", true),
    })
}

/// The builds of a program in Rust: plain, with ThreadSanitizer, and with our plugin.
fn build_rust(name: &str, scratch: &Path) -> Result<[PathBuf; 3], String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("programs/{name}.rs"));
    let program = |what: &str| scratch.join(format!("{name}-rust-{what}"));
    let compile = |what: &str, flags: &[&str]| {
        let (bootstrap, on) = foretell_build::rust::BOOTSTRAP;
        let mut command = Command::new(foretell_build::rust::compiler());
        command.env(bootstrap, on).args(["--edition=2024", "-Copt-level=1", "-g"]).args(flags);
        run(command.arg("-o").arg(program(what)).arg(&source)).map(|()| program(what))
    };
    // The standard library comes without ThreadSanitizer.
    let sanitizer = ["-Zsanitizer=thread", "-Cunsafe-allow-abi-mismatch=sanitizer"];
    let ours = program("ours");
    let mut command =
        foretell_build::rust::command(&source, &ours).map_err(|error| error.to_string())?;
    run(&mut command)?;
    Ok([compile("plain", &[])?, compile("tsan", &sanitizer)?, ours])
}

/// Recording beside ThreadSanitizer on a program in Rust.
fn rust_aims(scratch: &Path) -> Result<Vec<Aim>, String> {
    const NAMES: [&str; 4] = ["plain", "ThreadSanitizer of rustc", "record --concrete", "record"];
    let words = [OsString::from("1000000")];
    let [program, sanitized, ours] = build_rust("locks", scratch)?;
    // It reports races of the library's locks, which it does not see. The time is without these reports.
    let sanitizer = || {
        let mut command = Command::new(&sanitized);
        run(command.args(&words).env("TSAN_OPTIONS", "report_bugs=0")).map(|()| String::new())
    };
    let ways = [
        plain(NAMES[0], &program, &words),
        Way { name: NAMES[1], writes: None, run: Box::new(sanitizer) },
        recorded(NAMES[2], &ours, &words, scratch, (true, Form::Log)),
        recorded(NAMES[3], &ours, &words, scratch, (false, Form::Log)),
    ];
    let costs = compare("locks of std::sync::Mutex in Rust, 1000000", &ways)?;
    let aims = [
        aim("Rust: concrete recording, ThreadSanitizer".into(), &costs, NAMES[2], NAMES[1], 1.0),
        aim("Rust: symbolic recording, ThreadSanitizer".into(), &costs, NAMES[3], NAMES[1], 3.0),
    ];
    Ok(aims.into_iter().flatten().collect())
}

/// What to record, with the program's streams out of the way.
pub fn options(program: &Path, words: &[OsString], output: PathBuf) -> RecordOptions {
    let mut options = RecordOptions::new(program, output);
    options.arguments = words.to_vec();
    let nowhere = PathBuf::from("/dev/null");
    let written = File::options().write(true).open(&nowhere).expect("there is /dev/null");
    let written = Arc::new(written);
    options.capture =
        Some(Capture { stdin: nowhere, stdout: Arc::clone(&written), stderr: written });
    options
}

pub fn ended_well(program: &Path, end: &RunEnd) -> Result<(), String> {
    match end {
        RunEnd::Exit(0) => Ok(()),
        end => Err(format!("{} ended with {end:?}", program.display())),
    }
}

fn plain<'a>(name: &'static str, program: &'a Path, words: &'a [OsString]) -> Way<'a> {
    let run = move || run(Command::new(program).args(words)).map(|()| String::new());
    Way { name, writes: None, run: Box::new(run) }
}

fn recorded<'a>(
    name: &'static str,
    program: &'a Path,
    words: &[OsString],
    scratch: &Path,
    (concrete, form): (bool, Form),
) -> Way<'a> {
    let mut options = options(program, words, scratch.join("record.ftrace"));
    options.concrete = concrete;
    options.form = form;
    let writes = Some(options.output.clone());
    let run = move || {
        let outcome = record(&options).map_err(|error| error.to_string())?;
        ended_well(program, &outcome.end)?;
        let bytes = outcome.bytes as f64 / outcome.events.max(1) as f64;
        Ok(format!("{} events, {bytes:.1} bytes an event", outcome.events))
    };
    Way { name, writes, run: Box::new(run) }
}

fn sync_only<'a>(program: &'a Path, words: &[OsString], scratch: &Path) -> Way<'a> {
    let options = options(program, words, scratch.join("record.sync"));
    let writes = Some(options.output.clone());
    let run = move || {
        let outcome = record_sync_only(&options).map_err(|error| error.to_string())?;
        ended_well(program, &outcome.end)?;
        let bytes = outcome.bytes as f64 / outcome.entries.max(1) as f64;
        Ok(format!("{} entries, {bytes:.1} bytes an entry", outcome.entries))
    };
    Way { name: "record --sync-only", writes, run: Box::new(run) }
}

/// What was aimed at and what came out.
struct Aim {
    what: String,
    ratio: f64,
    most: f64,
}

fn aim(what: String, costs: &[Cost], way: &str, against: &str, most: f64) -> Option<Aim> {
    let wall = |name: &str| costs.iter().find(|cost| cost.name == name).map(|cost| cost.wall);
    Some(Aim { what, ratio: wall(way)? / wall(against)?, most })
}

/// Prints the tables and the aims.
pub fn table() -> Result<(), String> {
    const PLAIN: &str = "plain";
    const SANITIZERS: [&str; 2] = ["ThreadSanitizer of gcc", "ThreadSanitizer of clang"];
    const HOOKS: &str = "record, gcc's hooks of it";
    const COMPACT: &str = "record --compact, the same";
    const CONCRETE: &str = "record --concrete";
    const SYMBOLIC: &str = "record";
    const WRITTEN: [&str; 2] = ["--concrete, --as-written", "record, --as-written"];
    const SYNC: &str = "record --sync-only";
    let scratch = crate::scratch()?;
    let mut aims = Vec::new();
    for (name, rounds, storm) in [("heapsort", "4", "40"), ("locks", "20000", "2000000")] {
        let words = [OsString::from(rounds)];
        let builds = build(name, &scratch)?;
        let mut ways = vec![plain(PLAIN, &builds.plain, &words)];
        for (name, program) in SANITIZERS.into_iter().zip(&builds.sanitizers) {
            ways.extend(program.as_ref().map(|program| plain(name, program, &words)));
        }
        let hooks = &builds.concrete;
        ways.push(recorded(HOOKS, hooks, &words, &scratch, (false, Form::Log)));
        ways.push(recorded(COMPACT, hooks, &words, &scratch, (false, Form::Trace)));
        if let Some(program) = &builds.symbolic {
            ways.push(recorded(CONCRETE, program, &words, &scratch, (true, Form::Log)));
            ways.push(recorded(SYMBOLIC, program, &words, &scratch, (false, Form::Log)));
            for (way, concrete) in WRITTEN.into_iter().zip([true, false]) {
                let program = builds.as_written.as_deref();
                let way = |program| recorded(way, program, &words, &scratch, (concrete, Form::Log));
                ways.extend(program.map(way));
            }
        } else {
            println!("(no plugin beside the runtime: symbolic recording not measured)");
        }
        let costs = compare(&format!("{name} {rounds}"), &ways)?;
        for sanitizer in SANITIZERS {
            let what = format!("{name}: concrete recording, {sanitizer}");
            aims.extend(aim(what, &costs, CONCRETE, sanitizer, 1.0));
        }
        let what = format!("{name}: symbolic recording, the concrete one");
        aims.extend(aim(what, &costs, SYMBOLIC, CONCRETE, 3.0));
        // A longer run: little is to be seen against the start of a process.
        let words = [OsString::from(storm)];
        let ways =
            [plain(PLAIN, &builds.plain, &words), sync_only(&builds.plain, &words, &scratch)];
        let costs = compare(&format!("{name} {storm}"), &ways)?;
        let what = format!("{name}: sync-only, the plain program");
        aims.extend(aim(what, &costs, SYNC, PLAIN, 2.5));
    }
    aims.extend(rust_aims(&scratch)?);
    let words = real_program(&scratch)?;
    let program = Path::new("xz");
    let ways = [plain(PLAIN, program, &words), sync_only(program, &words, &scratch)];
    let costs = compare("xz -T2 -1, 24 MB: Debian's own, two threads", &ways)?;
    aims.extend(aim("xz: sync-only, the plain program".into(), &costs, SYNC, PLAIN, 1.3));
    println!("aims: what, against what, by the wall clock");
    for Aim { what, ratio, most } in aims {
        let word = if ratio <= most { "reached" } else { "MISSED" };
        println!("  {what:<56} {ratio:>6.2}x, at most {most:.1}x: {word}");
    }
    Ok(())
}

/// The arguments of a real program that nobody here built, with data for it.
fn real_program(scratch: &Path) -> Result<Vec<OsString>, String> {
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
    Ok(["-T2", "-1", "-k", "-f", "-q", "--block-size=1MiB"]
        .iter()
        .map(OsString::from)
        .chain([data.into_os_string()])
        .collect())
}
