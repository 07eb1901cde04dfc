//! What `foretell test --resume` keeps besides the runs: what it is about, and the result once there is
//! nothing left to do.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foretell_force::program::Program;
use foretell_guard::say;
use foretell_report::{Report, sha256, shell_word};
use foretell_store::{Kind, Reader, Store, Writer};
use foretell_trace::schedule::Schedule;

use crate::cli::TestArguments;
use crate::commands::schedules;
use crate::exit::Failure;

/// What is tested and how: everything that the runs and their meaning depend on. Limits of the whole test
/// and what is written are not among it.
pub fn subject(
    arguments: &TestArguments,
    program: &Program,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let content = |path: &Path| {
        let bytes = std::fs::read(path)
            .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
        Ok::<_, Failure>(sha256::hex(&bytes)[..16].to_owned())
    };
    let contents = |paths: &[PathBuf]| {
        let contents: Result<Vec<String>, Failure> =
            paths.iter().map(|path| content(path)).collect();
        contents.map(|contents| contents.join(" "))
    };
    let binary = foretell_record::find_program(&program.path).ok_or_else(|| {
        Failure::Input(format!("there is no program `{}`", program.path.display()))
    })?;
    let words = |words: &mut dyn Iterator<Item = String>| words.collect::<Vec<_>>().join(" ");
    let shown = |word: &OsString| shell_word(&word.to_string_lossy());
    let filters = &arguments.filters;
    let runtime = foretell_record::runtime_library();
    Ok(vec![
        ("the program's digest", content(&binary)?),
        ("the arguments", words(&mut program.arguments.iter().map(shown))),
        ("the digest of standard input", contents(program.stdin.as_slice())?),
        ("the digest of --input", contents(&program.inputs)?),
        ("--writes", words(&mut program.writes.iter().map(|path| path.display().to_string()))),
        ("--is-test", if program.is_test { "given".into() } else { String::new() }),
        ("--property", words(&mut arguments.property.iter().map(ToString::to_string))),
        ("--regions", format!("{:?}", arguments.regions).to_lowercase()),
        ("--paths", format!("{:?}", arguments.paths).to_lowercase()),
        ("--no-loops", if filters.no_loops { "given".into() } else { String::new() }),
        ("--max-distance", filters.max_distance.map(|most| most.to_string()).unwrap_or_default()),
        ("the digest of --known-good", contents(&filters.known_good)?),
        ("--budget", arguments.budget.map(|budget| budget.to_string()).unwrap_or_default()),
        ("--after", arguments.run.after.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("--run-limit", arguments.run.run_limit.to_string()),
        ("the version of foretell", env!("CARGO_PKG_VERSION").into()),
        ("the digest of foretell's runtime", contents(runtime.as_slice())?),
    ])
}

/// The store of a test.
pub struct Kept {
    /// For the runs.
    pub store: Arc<Store>,
}

/// What a test said that had nothing left to do.
pub struct Said {
    /// Its report, as it was before anything was suppressed.
    pub report: Report,
    /// Its schedules, by the findings' ids.
    pub schedules: Vec<(String, Schedule)>,
}

impl Kept {
    /// The store that was asked for, if one was.
    pub fn open(
        arguments: &TestArguments,
        subject: &[(&'static str, String)],
    ) -> Result<Option<Self>, Failure> {
        let Some(folder) = &arguments.resume else { return Ok(None) };
        let mut subject = subject.to_vec();
        let part = arguments.partition.map(|(part, of)| format!("{}/{of}", part + 1));
        subject.push(("--partition", part.unwrap_or_default()));
        subject.push(("--schedules", arguments.schedules.display().to_string()));
        let store =
            Store::open(folder, &subject).map_err(|error| Failure::Input(error.to_string()))?;
        if let Some(note) = store.note() {
            say!("foretell: {note}");
        }
        Ok(Some(Self { store: Arc::new(store) }))
    }

    /// What the test said, if it had nothing left to do.
    pub fn said(&self) -> Option<Said> {
        let bytes = self.store.get(Kind::Result, &[])?;
        let mut reader = Reader::new(&bytes);
        let report = Report::from_json(reader.text()?).ok()?;
        let schedules = reader.list(|reader| {
            Some((reader.text()?.to_owned(), Schedule::parse(reader.text()?).ok()?))
        })?;
        Some(Said { report, schedules })
    }

    /// Keeps what the test said.
    pub fn finish(&self, said: &Said) {
        let Ok(json) = serde_json::to_string(&said.report) else { return };
        let mut writer = Writer::default();
        writer.text(&json);
        writer.list(said.schedules.iter(), |writer, (id, schedule)| {
            writer.text(id);
            writer.text(&schedule.to_string());
        });
        self.store.put(Kind::Result, &[], &writer.finish());
    }
}

impl Said {
    /// Writes the schedules, which somebody may have removed since.
    pub fn write_schedules(&self, folder: &Path) {
        let schedules = self.schedules.iter();
        let schedules = schedules.map(|(id, schedule)| (id.as_str(), schedule.clone()));
        schedules::write(folder, schedules, &mut BTreeMap::new());
    }
}

/// The folder that is proposed to keep the runs in.
const FOLDER: &str = "foretell-runs";

/// The command with which the test goes on: what was typed, with a folder to keep the runs in.
pub fn to_go_on(resume: Option<&Path>) -> String {
    let mut words: Vec<String> =
        std::env::args_os().skip(1).map(|word| shell_word(&word.to_string_lossy())).collect();
    if resume.is_none() {
        let place = words.iter().position(|word| word == "test").map_or(0, |place| place + 1);
        words.insert(place, format!("--resume {FOLDER}"));
    }
    format!("foretell {}", words.join(" "))
}
