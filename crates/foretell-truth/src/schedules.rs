//! Runs a real program, in C or C++, under every schedule.
//!
//! The program is compiled by clang with the hooks of ThreadSanitizer and linked with `harness/`, which
//! defines the hooks and the functions of threads, makes a scheduling point of every access to shared
//! memory and of every operation on a synchronisation object, and goes every way from there. What the
//! search rests on stands in `harness/core.c`. It knows nothing of classes of paths, symbols or solvers.
//!
//! **What is reported**: the values that the program gives to `END_STATE` (of `explored.h`), lines of
//! assertions that fail, whether it can hang or crash; how many executions there are up to the order of
//! independent steps (Mazurkiewicz traces), and how many differ in what was read from where.
//! **What programs may not have**: more than 32 threads, processes, signals, time that matters, files that
//! are read and written.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The files of the harness.
const FILES: [(&str, &str); 5] = [
    ("copy.c", include_str!("../harness/copy.c")),
    ("core.c", include_str!("../harness/core.c")),
    ("hooks.c", include_str!("../harness/hooks.c")),
    ("memory.c", include_str!("../harness/memory.c")),
    ("threads.c", include_str!("../harness/threads.c")),
];

/// What a program includes to say what came out; the enumerator's own version of it.
const EXPLORED: &str = "#pragma once
#ifdef __cplusplus
#define EXPLORED extern \"C\"
#else
#define EXPLORED
#endif
EXPLORED void explored_state(long value);
#define END_STATE(value) explored_state(value)
EXPLORED void explored_give_up(void);
/* Of a loop that waits: executions in which it goes round more often are not followed. */
#define ROUNDS(most) int explored_rounds = (most)
#define NEXT_ROUND() ((void)(explored_rounds-- || (explored_give_up(), 0)))
";

/// Which schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedules {
    /// All, without those that differ from another only in the order of independent steps.
    UpToIndependence,
    /// All.
    All,
    /// So many runs in which every step is that of a random thread; with a seed.
    Random(u64, u64),
    /// So many runs with random priorities that change this often.
    Priorities(u64, u64, u32),
    /// So many runs by partial-order sampling.
    PartialOrder(u64, u64),
}

/// What a program can do, or did under the schedules that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviours {
    /// What it said at its end.
    pub states: BTreeSet<i64>,
    /// Lines of assertions that fail.
    pub assertions: BTreeSet<u32>,
    /// It can come to a state in which no thread goes on.
    pub hangs: bool,
    /// It can crash, or use memory that is freed.
    pub crashes: bool,
    /// Executions that were made.
    pub executions: u64,
    /// Executions that were given up because others stand for them.
    pub cut: u64,
    /// Different paths of all threads.
    pub paths: u64,
    /// Different relations of who read from whom, and of who followed whom in a lock.
    pub reads_from: u64,
    /// The execution, counted from 0, that was the first to fail, hang or crash.
    pub first_failure: Option<u64>,
    /// Nothing was left out.
    pub complete: bool,
}

impl Behaviours {
    /// How many different ends there are: states, and ways to fail.
    pub fn ends(&self) -> usize {
        self.states.len()
            + self.assertions.len()
            + usize::from(self.hangs)
            + usize::from(self.crashes)
    }

    /// Are the ends, and whether they are all, the same?
    pub fn same_ends(&self, other: &Self) -> bool {
        (&self.states, &self.assertions, self.hangs, self.crashes)
            == (&other.states, &other.assertions, other.hangs, other.crashes)
    }
}

/// The harness, compiled.
pub struct Enumerator {
    folder: PathBuf,
}

impl Enumerator {
    /// Compiles the harness in this folder, which exists.
    pub fn new(folder: &Path) -> Result<Self, String> {
        let write = |name: &str, text: &str| {
            std::fs::write(folder.join(name), text)
                .map_err(|error| format!("{}: {error}", folder.join(name).display()))
        };
        write("harness.h", include_str!("../harness/harness.h"))?;
        write("execution.h", include_str!("../harness/execution.h"))?;
        write("explored.h", EXPLORED)?;
        for (name, text) in FILES {
            write(name, text)?;
            let object = folder.join(name).with_extension("o");
            let words = ["-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", "-c", name, "-o"];
            clang("clang-22", folder, words.map(OsStr::new).into_iter().chain([object.as_ref()]))?;
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// Builds the program from its source.
    pub fn build(&self, source: &Path, program: &Path, options: &[&str]) -> Result<(), String> {
        let is_c = source.extension().is_some_and(|extension| extension == "c");
        let compiler = if is_c { "clang-22" } else { "clang++-22" };
        let object = program.with_extension("o");
        let compile = [
            "-O0",
            "-g",
            "-pthread",
            "-fsanitize=thread",
            "-fsanitize-coverage=trace-pc",
            "-mllvm",
            "-tsan-instrument-read-before-write=1",
            "-I.",
            "-c",
        ];
        let words = compile.iter().chain(options).map(OsStr::new);
        let files = [source.as_os_str(), OsStr::new("-o"), object.as_os_str()];
        clang(compiler, &self.folder, words.chain(files))?;
        // Variables must be where they can be copied as a whole.
        let link = ["-no-pie", "-Wl,-z,norelro", "-Wl,--wrap=main", "-Wl,--wrap=exit", "-lm"];
        let objects = FILES.map(|(name, _)| self.folder.join(name).with_extension("o"));
        let files = [object.as_os_str(), OsStr::new("-o"), program.as_os_str()];
        let objects = objects.iter().map(|object| object.as_os_str());
        clang(compiler, &self.folder, files.into_iter().chain(objects).chain(link.map(OsStr::new)))
    }

    /// Runs a program that was built here; `most` executions at most where all are asked for.
    pub fn run(
        &self,
        program: &Path,
        arguments: &[&str],
        schedules: Schedules,
        most: u64,
    ) -> Result<Behaviours, String> {
        let how = match schedules {
            Schedules::UpToIndependence => "sleep".to_owned(),
            Schedules::All => "all".to_owned(),
            Schedules::Random(runs, seed) => format!("random:{runs}:{seed}"),
            Schedules::Priorities(runs, seed, depth) => format!("pct:{runs}:{seed}:{depth}"),
            Schedules::PartialOrder(runs, seed) => format!("pos:{runs}:{seed}"),
        };
        let output = Command::new(program)
            .args(arguments)
            .current_dir(&self.folder)
            .env("SCHEDULES", how)
            .env("SCHEDULES_LIMIT", most.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        // The program may write to standard error, too.
        let said = String::from_utf8_lossy(&output.stderr);
        let mut behaviours = Behaviours::default();
        let mut ended = false;
        for line in said.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok());
            let (Some(&what), value) = (words.first(), number(1)) else { continue };
            match (what, value) {
                ("state", Some(value)) => _ = behaviours.states.insert(value),
                ("assertion", Some(line)) => _ = behaviours.assertions.insert(line as u32),
                ("hang", Some(_)) => behaviours.hangs = true,
                ("crash" | "abort", Some(_)) => behaviours.crashes = true,
                ("executions", Some(value)) => behaviours.executions = value as u64,
                ("cut", Some(value)) => behaviours.cut = value as u64,
                ("paths", Some(value)) => behaviours.paths = value as u64,
                ("reads", Some(value)) => behaviours.reads_from = value as u64,
                ("done", None) => (behaviours.complete, ended) = (true, true),
                ("limit", None) => ended = true,
                _ => {}
            }
            if let ("assertion" | "hang" | "crash" | "abort", Some(first)) = (what, number(5)) {
                let earlier = behaviours.first_failure.unwrap_or(u64::MAX);
                behaviours.first_failure = Some(earlier.min(first as u64));
            }
        }
        match ended {
            true => Ok(behaviours),
            false => Err(format!("{}: {}: {said}", program.display(), output.status)),
        }
    }
}

fn clang<'a>(
    compiler: &str,
    folder: &Path,
    words: impl Iterator<Item = &'a OsStr>,
) -> Result<(), String> {
    let output = Command::new(compiler)
        .args(words)
        .current_dir(folder)
        .output()
        .map_err(|error| format!("{compiler}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
