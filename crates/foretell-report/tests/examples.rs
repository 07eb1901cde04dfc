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
    assert!(files.len() >= 20, "{} examples", files.len());
    files
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
fn the_text_of_every_example_is_as_its_snapshot() {
    let mut different = Vec::new();
    for path in results() {
        let text = text(&read(&path), Look::default());
        let snapshot = path.with_extension("txt");
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
