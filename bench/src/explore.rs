//! What exploring costs and what it reaches, beside enumeration and random testing.
//!
//! [`families`]: programs on which partial-order reduction is known to explode, each in three sizes and one
//! that no enumerator finishes. Beside our classes and runs stand the Mazurkiewicz traces and the
//! reads-from relations (counted by the enumerator of `foretell-truth`, which runs the program under every
//! schedule) and how many different ends 10,000 random walks, and as many runs of PCT, come to.
//! [`first_finding`]: how many runs it takes to the first confirmed finding with an effect, over the buggy
//! programs of `examples/`, beside random walks, PCT and partial-order sampling.
//!
//! What was claimed and does not hold is printed with the word MISSED.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foretell_truth::schedules::{Behaviours, Enumerator, Schedules};
use serde_json::Value;

/// A family of programs.
struct Family {
    name: &'static str,
    /// Three sizes, and one for which enumeration is hopeless.
    sizes: [u32; 4],
    /// It has one class whatever the size.
    one_class: bool,
}

const fn family(name: &'static str, sizes: [u32; 4], one_class: bool) -> Family {
    Family { name, sizes, one_class }
}

const FAMILIES: [Family; 9] = [
    family("counters", [3, 5, 6, 24], true),
    family("philosophers", [3, 4, 5, 24], true),
    family("lastzero", [3, 5, 7, 20], false),
    family("buffer", [1, 2, 3, 12], false),
    family("stack", [1, 2, 3, 6], false),
    family("maximum", [3, 4, 5, 12], false),
    family("readers", [3, 4, 6, 20], false),
    family("indexer", [5, 6, 7, 12], false),
    family("filesystem", [3, 5, 7, 21], false),
];

/// The enumerator gives up after so many executions; of the largest size it only shows that it would.
const MOST: u64 = 50_000;
const HOPELESS: u64 = 200;
/// Runs of random testing in the table of families.
const WALKS: u64 = 10_000;
/// Runs of random testing until the first failure, and how often that is tried.
const ATTEMPTS: u64 = 1_000;
const SEEDS: u64 = 5;
/// Changes of priorities in PCT.
const DEPTH: u32 = 3;

/// The programs, the enumerator, and `foretell` beside this program.
struct Bench {
    folder: PathBuf,
    enumerator: Enumerator,
    foretell: PathBuf,
    missed: usize,
}

impl Bench {
    fn new(name: &str) -> Result<Self, String> {
        let folder = crate::scratch()?.join(name);
        let harness = folder.join("harness");
        std::fs::create_dir_all(&harness)
            .map_err(|error| format!("cannot make {}: {error}", harness.display()))?;
        // For foretell, the end of a program says nothing.
        std::fs::write(folder.join("explored.h"), "#define END_STATE(value) ((void)(value))\n")
            .map_err(|error| error.to_string())?;
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let foretell = own.with_file_name("foretell");
        if !foretell.exists() {
            return Err(format!("{} is missing: cargo build --release", foretell.display()));
        }
        let folder = folder.canonicalize().map_err(|error| error.to_string())?;
        let enumerator = Enumerator::new(&folder.join("harness"))?;
        Ok(Self { folder, enumerator, foretell, missed: 0 })
    }

    /// A command of foretell; what it prints.
    fn foretell(&self, words: &[&str]) -> Result<Vec<u8>, String> {
        let output = Command::new(&self.foretell)
            .args(words)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.foretell.display()))?;
        match output.status.code() {
            Some(0 | 10 | 11 | 12) => Ok(output.stdout),
            code => Err(format!(
                "foretell {}: {code:?}\n{}",
                words.join(" "),
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }

    /// Builds the program and tests it; the report.
    fn test(&self, source: &Path, options: &[&str], arguments: &[&str]) -> Result<Value, String> {
        let name = source.display().to_string();
        let compiler = if name.ends_with(".c") { "cc" } else { "c++" };
        let mut words = vec![compiler, "-O1", "-g", "-pthread", "-I.", &name, "-o", "p", "-lm"];
        words.extend(options);
        self.foretell(&words)?;
        let mut words = vec!["--format", "json", "test", "--jobs", "1", "--time-limit", "60"];
        words.push("./p");
        words.extend(arguments);
        let said = self.foretell(&words)?;
        serde_json::from_slice(&said).map_err(|error| format!("{name}: {error}"))
    }

    /// Random runs of a program that the enumerator has built.
    fn walk(
        &self,
        program: &Path,
        arguments: &[&str],
        schedules: Schedules,
    ) -> Result<Behaviours, String> {
        self.enumerator.run(program, arguments, schedules, 0)
    }

    fn claim(&mut self, holds: bool, what: &str) {
        if !holds {
            self.missed += 1;
            println!("  MISSED: {what}");
        }
    }

    fn row(&mut self, family: &Family, size: u32) -> Result<(), String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("programs/explore/{}.c", family.name));
        let source = source.canonicalize().map_err(|error| error.to_string())?;
        let define = format!("-DN={size}");
        let report = self.test(&source, &[&define], &[])?;
        let exploration = &report["exploration"];
        let count = |field: &str| exploration[field].as_u64().unwrap_or_default();
        let (classes, questions, open) = (count("classes"), count("questions"), count("open"));
        let covered = exploration["covered"] == true;
        let runs = report["statistics"]["runs"].as_u64();
        let program = self.folder.join("enumerated");
        self.enumerator.build(&source, &program, &[&define])?;
        let most = if size == family.sizes[3] { HOPELESS } else { MOST };
        let all = self.enumerator.run(&program, &[], Schedules::UpToIndependence, most)?;
        let random = self.walk(&program, &[], Schedules::Random(WALKS, 1))?;
        let priorities = self.walk(&program, &[], Schedules::Priorities(WALKS, 1, DEPTH))?;
        let more = if all.complete { ' ' } else { '+' };
        let left = if covered { String::new() } else { format!(" {open} open") };
        println!(
            "{:<14} {size:>3} {classes:>8} {:>6} {questions:>9} {:>8}{more} {:>9}{more} {:>6}{more} {:>7} {:>6}{left}",
            family.name,
            runs.map_or("-".into(), |runs| runs.to_string()),
            all.executions,
            all.reads_from,
            all.ends(),
            random.ends(),
            priorities.ends(),
        );
        let one = !family.one_class || (classes == 1 && covered);
        self.claim(one, "one class whatever the size");
        let few = !all.complete || classes <= all.reads_from;
        self.claim(few, "no more classes than reads-from relations");
        let known = random.states.union(&priorities.states).count();
        self.claim(!all.complete || known <= all.states.len(), "the enumerator finds every end");
        Ok(())
    }
}

/// Prints the table of families, or the rows of one.
pub fn families(only: Option<&str>) -> Result<(), String> {
    if let Some(name) = only
        && FAMILIES.iter().all(|family| family.name != name)
    {
        let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        return Err(format!("no family `{name}`; there are {}", names.join(", ")));
    }
    let mut bench = Bench::new("explore")?;
    println!(
        "family           n  classes   runs questions    traces reads-from    ends random    PCT   \
         (+: given up after {MOST} traces, of the largest size after {HOPELESS}; random and PCT: ends in {WALKS} runs)"
    );
    for family in FAMILIES.iter().filter(|family| only.is_none_or(|name| family.name == name)) {
        for size in family.sizes {
            bench.row(family, size)?;
        }
    }
    println!("{} MISSED", bench.missed);
    Ok(())
}

/// Runs until the first failure: the mean over seeds, and how many seeds saw none (those count as one run
/// more than was made).
fn until_failure(
    bench: &Bench,
    program: &Path,
    arguments: &[&str],
    schedules: impl Fn(u64) -> Schedules,
) -> Result<(f64, u64), String> {
    let (mut sum, mut never) = (0, 0);
    for seed in 1..=SEEDS {
        let walked = bench.walk(program, arguments, schedules(seed))?;
        never += u64::from(walked.first_failure.is_none());
        sum += walked.first_failure.unwrap_or(ATTEMPTS) + 1;
    }
    Ok((sum as f64 / SEEDS as f64, never))
}

/// Prints the table of first findings.
pub fn first_finding() -> Result<(), String> {
    let mut bench = Bench::new("first-finding")?;
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let examples = examples.canonicalize().map_err(|error| error.to_string())?;
    let text = std::fs::read(examples.join("expected.json")).map_err(|error| error.to_string())?;
    let expected: Vec<Value> = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    println!(
        "runs until the first failure: assertion, crash or hang (mean of {SEEDS} seeds, {ATTEMPTS} runs at most; xN: N seeds saw none)"
    );
    println!("program              foretell     random        PCT  partial order");
    let mut logs = [0.0; 4];
    let (mut rows, mut most) = (0, 0);
    for example in expected.iter().filter(|example| example["test"]["exit"] == 10) {
        let word = |field: &str| example[field].as_str().unwrap_or_default();
        let source = examples.join(word("name")).join(word("source"));
        let arguments = example["arguments"].as_array().into_iter().flatten();
        let arguments: Vec<&str> = arguments.filter_map(Value::as_str).collect();
        let report = bench.test(&source, &[], &arguments)?;
        let findings = report["findings"].as_array().into_iter().flatten();
        let effect = |finding: &&Value| {
            finding["status"] == "confirmed"
                && matches!(finding["effect"].as_str(), Some("assertion" | "crash" | "hang"))
        };
        let before = findings.filter(effect);
        let ours = before.filter_map(|finding| finding["forced"]["runs_before"].as_u64()).min();
        let Some(ours) = ours.map(|before| before + 1) else {
            println!("{:<20} no assertion, crash or hang: not counted", word("name"));
            continue;
        };
        let program = bench.folder.join("enumerated");
        bench.enumerator.build(&source, &program, &[])?;
        let random = |seed| Schedules::Random(ATTEMPTS, seed);
        let priorities = |seed| Schedules::Priorities(ATTEMPTS, seed, DEPTH);
        let sampled = |seed| Schedules::PartialOrder(ATTEMPTS, seed);
        let others = [
            until_failure(&bench, &program, &arguments, random)?,
            until_failure(&bench, &program, &arguments, priorities)?,
            until_failure(&bench, &program, &arguments, sampled)?,
        ];
        let shown = others.map(|(mean, never)| match never {
            0 => format!("{mean:.1}"),
            never => format!("{mean:.1} x{never}"),
        });
        println!(
            "{:<20} {ours:>8} {:>10} {:>10} {:>14}",
            word("name"),
            shown[0],
            shown[1],
            shown[2]
        );
        rows += 1;
        most = most.max(ours);
        let means = [ours as f64, others[0].0, others[1].0, others[2].0];
        logs.iter_mut().zip(means).for_each(|(log, mean)| *log += mean.ln());
    }
    let [ours, random, priorities, sampled] = logs.map(|log| (log / f64::from(rows.max(1))).exp());
    println!(
        "geometric mean       {ours:>8.2} {random:>10.1} {priorities:>10.1} {sampled:>14.1}   ({rows} programs, ours at most {most})"
    );
    bench.claim(ours < 2.005, &format!("a geometric mean of at most 2 runs (it is {ours:.2})"));
    bench.claim(most <= 6, &format!("nowhere more than 6 runs (it is {most})"));
    println!("{} MISSED", bench.missed);
    Ok(())
}
