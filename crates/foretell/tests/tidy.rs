//! What ARCHITECTURE.md and CONTRIBUTING.md say of the sources holds: the direction of dependencies, the
//! length of files, use of what is public, what tests may leave out, and a fuzz target for every parser.
//!
//! The lists in this file may only shrink: an entry that no longer applies fails its test, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A longer file has several ideas, or a reason in its header (a line with `long because`).
const LONGEST: usize = 600;

/// Files that are too long and have yet to be split.
const TO_BE_SPLIT: &[&str] = &[
    "crates/foretell-abi/src/lib.rs",
    "crates/foretell-instrument/src/llvm.rs",
    "crates/foretell-instrument/tests/emitted.rs",
    "crates/foretell-runtime/src/channels.rs",
    "crates/foretell-runtime/src/hooks.rs",
    "crates/foretell-runtime/src/recorder.rs",
    "crates/foretell-runtime/src/scheduler.rs",
    "crates/foretell-runtime/src/sync_only.rs",
    "crates/foretell-runtime/src/thread.rs",
    "crates/foretell-runtime/src/wrappers/blocking.rs",
    "crates/foretell/src/cli.rs",
    "crates/foretell/tests/record.rs",
];

/// Every function that reads what others wrote, and its fuzz target (or why it needs none).
const PARSERS: &[(&str, &str, Target)] = &[
    (
        "crates/foretell-wire/src/server.rs",
        "read",
        Target::None("a message between foretell and the runtime that it started"),
    ),
    (
        "crates/foretell-force/src/stored.rs",
        "read_run",
        Target::None("a record of the store, whose checksum is checked first"),
    ),
    ("crates/foretell-predict/src/planner/goal.rs", "parse", Target::Fuzz("goal")),
    ("crates/foretell-predict/src/planner/pddl.rs", "parse_plan", Target::Fuzz("planner")),
    ("crates/foretell-record/src/read.rs", "read_log", Target::Fuzz("log")),
    ("crates/foretell-report/src/suppress.rs", "parse", Target::Fuzz("suppressions")),
    (
        "crates/foretell-runtime/src/policy.rs",
        "parse",
        Target::None("a word of the environment that the recorder writes"),
    ),
    ("crates/foretell-solve/src/reply.rs", "parse_replies", Target::Fuzz("solver")),
    ("crates/foretell-trace/src/format/binary/collect.rs", "read", Target::Fuzz("binary")),
    ("crates/foretell-trace/src/format/ctrc/read.rs", "read", Target::Fuzz("ctrc")),
    ("crates/foretell-trace/src/format/text/read.rs", "read", Target::Fuzz("text")),
    ("crates/foretell-trace/src/schedule.rs", "parse", Target::Fuzz("schedule")),
    ("crates/foretell-trace/src/sexpr/tree.rs", "read", Target::Fuzz("sexpr")),
    ("crates/foretell-trace/src/sexpr/tree.rs", "read_line", Target::Fuzz("text")),
    ("crates/foretell-verify/src/certificate.rs", "parse", Target::Fuzz("proof")),
    ("crates/foretell-verify/src/ir/read.rs", "read", Target::Fuzz("ir")),
    ("crates/foretell-verify/src/proof.rs", "parse", Target::Fuzz("proof")),
    ("crates/foretell-verify/src/text.rs", "parse", Target::Fuzz("cmd")),
    (
        "crates/foretell-wire/src/base.rs",
        "parse",
        Target::None("a word of the environment that the recorder writes"),
    ),
    ("crates/foretell-wire/src/schedule.rs", "parse_turns", Target::Fuzz("turns")),
    ("crates/foretell-wire/src/sync_log.rs", "parse", Target::Fuzz("sync_log")),
    ("crates/foretell-wire/src/traffic.rs", "parse", Target::Fuzz("traffic")),
];

enum Target {
    Fuzz(&'static str),
    None(&'static str),
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files under these folders of the repository with one of these endings, by path from its root.
fn files(folders: &[&str], endings: &[&str]) -> BTreeMap<String, String> {
    let root = root();
    let mut found = BTreeMap::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | "corpus" | "data" | "artifacts") {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                let path = path.strip_prefix(&root).expect("it is below the root");
                found.insert(path.to_string_lossy().into_owned(), text);
            }
        }
    }
    assert!(found.len() > 3, "no sources below {}", root.display());
    found
}

/// The crates in the order in which ARCHITECTURE.md describes them.
fn described_crates() -> Vec<String> {
    let text = read("ARCHITECTURE.md");
    let (_, section) = text.split_once("## The crates\n").expect("a section on the crates");
    let section = section.split("\n## ").next().unwrap_or(section);
    let headings = section.lines().filter_map(|line| line.strip_prefix("**")?.split_once("**"));
    let mut names = Vec::new();
    for (heading, _) in headings.filter(|(_, rest)| rest.contains('—')) {
        names.extend(
            heading.split(", ").filter(|name| name.starts_with("foretell")).map(str::to_owned),
        );
    }
    names
}

/// The crates of ours in a section of a manifest.
fn dependencies(manifest: &str, section: &str) -> Vec<String> {
    let heading = format!("[{section}]");
    let lines = manifest.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let name = |line: &str| line.split(['.', ' ', '=']).next().map(str::to_owned);
    lines.filter(|line| line.starts_with("foretell")).filter_map(name).collect()
}

/// The dependencies of product code follow the list; those of tests may not.
#[test]
fn dependencies_flow_one_way() {
    let order = described_crates();
    let place = |name: &str| order.iter().position(|other| other == name);
    let mut wrong = Vec::new();
    let manifests = files(&["crates"], &["Cargo.toml"]);
    for (path, manifest) in &manifests {
        let name = path.split('/').nth(1).expect("crates/NAME/Cargo.toml");
        let Some(own) = place(name) else {
            wrong.push(format!("ARCHITECTURE.md does not describe {name}"));
            continue;
        };
        for other in dependencies(manifest, "dependencies") {
            if place(&other).is_none_or(|other| other >= own) {
                wrong.push(format!(
                    "{name} depends on {other}, which ARCHITECTURE.md describes after it"
                ));
            }
            if matches!(other.as_str(), "foretell-testing" | "foretell-truth") {
                wrong.push(format!("{name} depends on {other}, which is for tests only"));
            }
        }
    }
    for name in &order {
        if !manifests.contains_key(&format!("crates/{name}/Cargo.toml")) {
            wrong.push(format!("ARCHITECTURE.md describes {name}, which is no crate"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_is_too_long() {
    let mut wrong = Vec::new();
    let sources = files(&["crates", "bench", "fuzz"], &[".rs"]);
    for (path, text) in &sources {
        let lines = text.lines().count();
        let header = || text.lines().take_while(|line| line.starts_with("//!"));
        let long = lines > LONGEST && !header().any(|line| line.contains("long because"));
        let listed = TO_BE_SPLIT.contains(&path.as_str());
        if long && !listed {
            wrong.push(format!("{path} has {lines} lines: split it by ideas"));
        }
        if !long && listed {
            wrong.push(format!("{path} has {lines} lines: take it off the list"));
        }
    }
    for path in TO_BE_SPLIT.iter().filter(|path| !sources.contains_key(**path)) {
        wrong.push(format!("{path} does not exist: take it off the list"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The words of a text, as identifiers are.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// A public item is named somewhere besides where it is defined. (By its name only: what shares its
/// name with something else is not seen. What C code or LLVM calls by name has `no_mangle`.)
#[test]
fn what_is_public_is_used() {
    let sources = files(&["crates", "bench", "fuzz"], &[".rs"]);
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for word in sources
        .iter()
        .filter(|(path, _)| !path.ends_with("tidy.rs"))
        .flat_map(|(_, text)| words(text))
    {
        *count.entry(word).or_default() += 1;
    }
    let mut unused = BTreeSet::new();
    for (path, text) in sources.iter().filter(|(path, _)| path.contains("/src/")) {
        let mut exported = false;
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("#[") {
                exported |= line.contains("no_mangle") || line.contains("export_name");
                continue;
            }
            if let Some(name) = public_item(line)
                && !exported
                && count.get(name) == Some(&1)
            {
                unused.insert((name, path));
            }
            exported &= line.starts_with("//") || line.is_empty();
        }
    }
    assert!(unused.is_empty(), "public, but named nowhere else: {unused:?}");
}

/// The name of the public item that a line defines.
fn public_item(line: &str) -> Option<&str> {
    let mut rest = words(line.strip_prefix("pub ")?)
        .skip_while(|word| matches!(*word, "const" | "unsafe" | "extern" | "C" | "async"));
    match rest.next()? {
        "fn" | "struct" | "enum" | "trait" | "static" | "type" => rest.next(),
        _ => None,
    }
}

/// Every test that may leave something out is in the table of CONTRIBUTING.md, with what it needs.
#[test]
fn every_skip_is_listed() {
    let table = read("CONTRIBUTING.md");
    let listed: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(path, _)| path)
        .filter(|path| path.contains('/'))
        .collect();
    let skips = |(path, text): &(&String, &String)| {
        !path.ends_with("tidy.rs")
            && text.lines().any(|line| line.contains("SKIPPED") && line.contains('"'))
    };
    let mut all = files(&["crates", "bench"], &[".rs"]);
    all.extend(files(&["scripts", "ci"], &[".sh"]));
    let skipping: BTreeSet<&str> =
        all.iter().filter(skips).map(|(path, _)| path.as_str()).collect();
    let missing: Vec<_> = skipping.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&skipping).collect();
    assert!(missing.is_empty(), "not in the table of CONTRIBUTING.md: {missing:?}");
    assert!(gone.is_empty(), "in the table of CONTRIBUTING.md, but skips nothing: {gone:?}");
}

/// The functions `pub fn parse…(text: &str)` and the like of a source: what may be given any input.
fn parsers(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("pub fn ") {
        let rest = &text[at + "pub fn ".len()..];
        let Some((signature, _)) = rest.split_once(')') else { continue };
        let Some((name, arguments)) = signature.split_once('(') else { continue };
        let name = name.split('<').next().unwrap_or(name);
        let reads = ["parse", "read", "decode"].iter().any(|verb| {
            name.strip_prefix(verb).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        });
        let arguments = arguments.trim_start().trim_start_matches("&self, ");
        let kind = arguments.split(',').next().and_then(|first| first.split_once(": "));
        let kind =
            kind.map_or("", |(_, kind)| kind.trim_start_matches("&'a ").trim_start_matches('&'));
        let path = arguments.starts_with("path");
        if reads && !path && matches!(kind.trim(), "str" | "[u8]" | "[u64]") {
            found.push(name);
        }
    }
    found
}

#[test]
fn every_parser_has_a_fuzz_target() {
    let targets = files(&["fuzz/fuzz_targets"], &[".rs"]);
    let (library, manifest) = (read("fuzz/src/lib.rs"), read("fuzz/Cargo.toml"));
    let in_make_test = read("crates/foretell/tests/safe/parsers.rs");
    let mut wrong = Vec::new();
    for path in targets.keys() {
        let name =
            path.rsplit('/').next().and_then(|file| file.strip_suffix(".rs")).expect("a target");
        let function = format!("pub fn {name}(data: &[u8])");
        if !library.contains(&function) {
            wrong.push(format!("fuzz/src/lib.rs has no `{function}`"));
        }
        if !manifest.contains(&format!("fuzz_targets/{name}.rs")) {
            wrong.push(format!("fuzz/Cargo.toml does not have {name}"));
        }
        if !words(&in_make_test).any(|word| word == name) {
            wrong.push(format!("make test does not run {name}"));
        }
    }
    let mut seen = BTreeSet::new();
    for (path, text) in
        files(&["crates"], &[".rs"]).iter().filter(|(path, _)| path.contains("/src/"))
    {
        for name in parsers(text) {
            seen.insert((path.clone(), name.to_owned()));
            match PARSERS.iter().find(|(file, function, _)| file == path && *function == name) {
                None => {
                    wrong.push(format!("{path}: `{name}` reads any input and has no fuzz target"))
                }
                Some((_, _, Target::Fuzz(target))) => {
                    if !targets.contains_key(&format!("fuzz/fuzz_targets/{target}.rs")) {
                        wrong.push(format!("there is no fuzz target {target}"));
                    }
                }
                Some((_, _, Target::None(reason))) => assert!(!reason.is_empty()),
            }
        }
    }
    for (path, name, _) in PARSERS {
        if !seen.contains(&((*path).to_owned(), (*name).to_owned())) {
            wrong.push(format!("{path} has no `{name}` any more: take it off the list"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Limits of work and size stand in their crate's `limits`, with what they cost and what is lost at them.
#[test]
fn limits_stand_in_their_table() {
    let sources = files(&["crates"], &[".rs"]);
    let mut wrong = Vec::new();
    // Nobody may link these two; their limits are in the contract.
    const IN_WIRE: [&str; 2] = ["crates/foretell-runtime/src/", "crates/foretell-qemu/src/"];
    let tables = sources.keys().filter(|path| path.ends_with("/src/limits.rs"));
    let mut tables: Vec<(&str, &str)> =
        tables.map(|table| (table.trim_end_matches("limits.rs"), table.as_str())).collect();
    assert!(tables.len() >= 8, "{tables:?}");
    tables.extend(IN_WIRE.map(|folder| (folder, "crates/foretell-wire/src/limits.rs")));
    for (folder, table) in tables {
        for (path, text) in sources.iter().filter(|(path, _)| path.starts_with(folder)) {
            for line in text.lines().filter(|_| path.as_str() != table) {
                let line = line.trim_start_matches("pub ").trim_start_matches("pub(super) ");
                let name = line.strip_prefix("const ").unwrap_or("");
                let is_limit = ["MOST", "MAX", "LONGEST", "LARGEST", "DEEPEST"]
                    .iter()
                    .any(|word| name.starts_with(word));
                if is_limit {
                    wrong.push(format!("{path}: `{line}` belongs into {table}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files that look for words in texts, and whose texts these are.
const READERS_OF_TEXTS: &[(&str, &str)] = &[
    ("crates/foretell-instrument/src/rust_names.rs", "names of Rust"),
    ("crates/foretell-instrument/src/varying.rs", "assembler"),
    ("crates/foretell-neighbourhood/src/text.rs", "its own, in the same function"),
    ("crates/foretell-record/src/names.rs", "names of C++"),
    ("crates/foretell-report/src/sarif.rs", "unified diffs"),
    ("crates/foretell-trace/src/trace.rs", "names of C++ functions"),
    ("crates/foretell-verify/src/certificate.rs", "its own file format"),
    ("crates/foretell-verify/src/checker/mod.rs", "the certificate's file format"),
    ("crates/foretell-verify/src/ir/alias.rs", "LLVM IR"),
    ("crates/foretell-verify/src/ir/clang.rs", "clang's"),
    ("crates/foretell-verify/src/ir/declared.rs", "LLVM IR"),
    ("crates/foretell-verify/src/ir/macros.rs", "C"),
    ("crates/foretell-verify/src/ir/read/bodies.rs", "LLVM IR"),
    ("crates/foretell-verify/src/ir/read/declarations.rs", "LLVM IR"),
    ("crates/foretell-verify/src/ir/read/line.rs", "LLVM IR"),
    ("crates/foretell-verify/src/ir/read/metadata.rs", "LLVM IR"),
    ("crates/foretell-verify/src/ir/syntax.rs", "clang's"),
    ("crates/foretell-wire/src/traffic.rs", "its own file format"),
    ("crates/foretell/src/commands/cargo.rs", "cargo's"),
    ("crates/foretell/src/commands/frameworks.rs", "doctest's"),
];

/// No part of foretell finds out from a sentence what another part meant: sentences are for people.
#[test]
fn no_sentence_is_a_protocol() {
    const LOOKS: [&str; 7] = [
        "starts_with",
        "contains",
        "ends_with",
        "strip_prefix",
        "strip_suffix",
        "split",
        "split_once",
    ];
    let mut looking = BTreeSet::new();
    for (path, text) in
        files(&["crates"], &[".rs"]).iter().filter(|(path, _)| path.contains("/src/"))
    {
        let product = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let is_test = path.ends_with("/tests.rs") || path.starts_with("crates/foretell-testing/");
        let looks = LOOKS.iter().flat_map(|look| {
            let call = format!(".{look}(\"");
            let calls: Vec<&str> = product.split(call.as_str()).skip(1).collect();
            calls
        });
        let words = looks.filter_map(|rest| rest.split('"').next());
        if !is_test
            && words.into_iter().any(|words| words.trim().contains(' ') || words.ends_with(' '))
        {
            looking.insert(path.clone());
        }
    }
    let listed: BTreeSet<String> =
        READERS_OF_TEXTS.iter().map(|(path, _)| (*path).to_owned()).collect();
    let new: Vec<&String> = looking.difference(&listed).collect();
    let gone: Vec<&String> = listed.difference(&looking).collect();
    assert!(new.is_empty(), "these look for words in a sentence; make it data: {new:#?}");
    assert!(gone.is_empty(), "take off the list: {gone:#?}");
}
