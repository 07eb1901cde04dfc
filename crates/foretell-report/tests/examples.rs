//! What `foretell test` found in the programs of `examples/`, as it was saved with `--json`, rendered
//! in every format. The text is compared with the snapshot beside it; `FORETELL_BLESS=1` writes the
//! snapshots anew. Saved results, because what is compared here is how a result looks, not what is
//! found: that is `crates/foretell/tests/examples.rs`.

mod common;

use std::path::{Path, PathBuf};

use foretell_report::terminal::{self, Look};
use foretell_report::{Report, html, junit, perfetto, sarif};
use serde_json::Value;

fn results() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    files.sort();
    files
}

/// `examples/expected.json`: what the tests of the command line demand of real runs.
fn expected() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../examples/expected.json")).unwrap()
}

fn read(path: &Path) -> Report {
    let text = std::fs::read_to_string(path).unwrap();
    Report::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(report: &Report, look: Look) -> String {
    let mut text = Vec::new();
    terminal::render(&mut text, look, report).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn every_example_has_a_result_that_says_what_is_expected_of_real_runs() {
    let names: Vec<String> =
        results().iter().map(|path| path.file_stem().unwrap().to_string_lossy().into()).collect();
    let mut wanted: Vec<String> =
        expected().iter().map(|one| one["name"].as_str().unwrap().into()).collect();
    wanted.sort();
    assert_eq!(names, wanted);
    for (path, one) in results().iter().map(|path| (path, expected())).flat_map(|(path, all)| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        all.into_iter().filter(move |one| one["name"] == *name).map(move |one| (path, one))
    }) {
        let saved = read(path).to_json();
        for finding in one["test"]["findings"].as_array().unwrap() {
            let same = |other: &Value| {
                let fields = ["kind", "pattern", "status", "effect"].iter();
                fields
                    .filter(|name| finding.get(*name).is_some())
                    .all(|name| finding[name] == other[name])
            };
            let found = saved["findings"].as_array().unwrap().iter().any(same);
            assert!(found, "{}: {finding}", path.display());
        }
        let clean = saved["findings"].as_array().unwrap().is_empty();
        let quiet = one["test"]["exit"] == 0 || one["test"]["exit"] == 12;
        assert_eq!(clean, quiet, "{}", path.display());
        let covered = saved["exploration"]["covered"] == true;
        assert!(covered || one["test"]["exit"] != 0, "{}: 0 without coverage", path.display());
    }
}

#[test]
fn the_text_of_every_example_is_as_its_snapshot() {
    let plain = |path: PathBuf| (path, Look::default(), "txt");
    let bank = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples/bank.json");
    let looks = [
        (bank.clone(), Look { width: 80, ..Look::default() }, "80.txt"),
        (bank.clone(), Look { width: 120, ..Look::default() }, "120.txt"),
        (bank, Look { colour: true, ..Look::default() }, "colour.txt"),
    ];
    let mut different = Vec::new();
    for (path, look, ending) in results().into_iter().map(plain).chain(looks) {
        let text = text(&read(&path), look);
        let snapshot = path.with_extension(ending);
        if std::env::var_os("FORETELL_BLESS").is_some() {
            std::fs::write(&snapshot, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&snapshot).unwrap_or_default();
        if text != expected {
            let lines = text.lines().zip(expected.lines());
            let first = lines.enumerate().find(|(_, (now, then))| now != then);
            different.push(format!("{}: {first:?}", snapshot.display()));
        }
    }
    assert!(different.is_empty(), "FORETELL_BLESS=1 renews snapshots: {different:#?}");
}

#[test]
fn colours_only_add_colours_and_a_narrow_terminal_still_shows_every_finding() {
    for path in results() {
        let report = read(&path);
        let plain = text(&report, Look::default());
        assert!(!plain.contains('\u{1b}'), "{}", path.display());
        let colourful = text(&report, Look { colour: true, ..Look::default() });
        let mut rest = colourful.as_str();
        let mut stripped = String::new();
        while let Some(at) = rest.find("\u{1b}[") {
            stripped += &rest[..at];
            let end = rest[at..].find('m').expect("only colours");
            rest = &rest[at + end + 1..];
        }
        stripped += rest;
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&stripped), words(&plain), "{}", path.display());
        let narrow = text(&report, Look { width: 50, ..Look::default() });
        for finding in foretell_report::story::entries(&report) {
            let headline = foretell_report::story::headline(finding.finding);
            assert!(narrow.contains(&headline), "{}: {headline}", path.display());
        }
    }
}

#[test]
fn every_example_fits_every_schema_and_renders_in_every_format() {
    let own: Value = serde_json::from_str(foretell_report::SCHEMA).unwrap();
    let published: Value =
        serde_json::from_str(include_str!("../schema/sarif-2.1.0.schema.json")).unwrap();
    for path in results() {
        let report = read(&path);
        let name = path.display();
        let faults = common::schema::faults(&own, &report.to_json());
        assert!(faults.is_empty(), "{name}: {faults:?}");
        let mut log = Vec::new();
        sarif::render(&mut log, &report).unwrap();
        let log: Value = serde_json::from_slice(&log).unwrap();
        let faults = common::schema::faults(&published, &log);
        assert!(faults.is_empty(), "{name}: {faults:?}");
        html::render(&mut Vec::new(), &report).unwrap();
        junit::render(&mut Vec::new(), &report).unwrap();
        perfetto::render(&mut Vec::new(), &report).unwrap();
    }
}
