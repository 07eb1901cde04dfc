//! Witnesses are what the exchange format of SV-COMP (GraphML, version 1.0) demands: read here by a reader
//! of their own, which knows tags and attributes and nothing of foretell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use foretell_verify::certificate::Property;
use foretell_verify::explore::search::{Options, Verdict, explore};
use foretell_verify::ir::clang;
use foretell_verify::witness;

/// The witness of an example; `None` where there is no clang, said aloud.
fn witness_of(name: &str) -> Option<String> {
    witness_of_file(
        &PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/verify").join(name),
    )
}

fn witness_of_file(file: &Path) -> Option<String> {
    let name = file.file_name().and_then(|name| name.to_str()).expect("it has a name");
    let source = std::fs::read(file).expect("it can be read");
    let module = match clang::compile(file, clang::Options::default()) {
        Ok(module) => module,
        Err(refusal) => {
            assert!(std::env::var_os("CI").is_none(), "CI has clang: {refusal}");
            eprintln!("SKIPPED: {refusal}");
            return None;
        }
    };
    Some(match explore(&module, &Options::default()).verdict {
        Verdict::Proved(summary) => {
            let properties = BTreeSet::from([Property::Assertion]);
            witness::correctness(&summary, &properties, name, &source)
        }
        Verdict::Violated(found) => witness::violation(&found, &source),
        Verdict::Unknown(why) => panic!("{name}: {why}"),
    })
}

/// A tag: its name, its attributes, the text behind it; closing tags begin with `/`.
type Tag = (String, BTreeMap<String, String>, String);

fn tags(text: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            let end = comment.find("--").expect("a comment ends");
            assert!(comment[end..].starts_with("-->"), "a comment has no -- inside");
            rest = &comment[end + 3..];
            continue;
        }
        let end = rest.find('>').expect("a tag ends");
        let (inside, behind) = (&rest[..end], &rest[end + 1..]);
        let text = behind[..behind.find('<').unwrap_or(behind.len())].trim().to_owned();
        rest = behind;
        if inside.starts_with('?') {
            continue;
        }
        let whole = inside.trim_end_matches('/');
        let name = whole.split_whitespace().next().expect("a tag has a name").to_owned();
        let mut attributes = BTreeMap::new();
        let mut words = whole[name.len()..].trim();
        while let Some((key, value)) = words.split_once("=\"") {
            let (value, further) = value.split_once('"').expect("an attribute ends");
            attributes.insert(key.trim().to_owned(), value.to_owned());
            words = further;
        }
        assert!(words.trim().is_empty(), "`{inside}` has a rest: {words}");
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "tags are nested"),
            None if !inside.ends_with('/') => open.push(name.clone()),
            None => {}
        }
        tags.push((name, attributes, text));
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    tags
}

fn check(text: &str, kind: &str) -> Vec<Tag> {
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"));
    let tags = tags(text);
    let all = |name: &'static str| tags.iter().filter(move |tag| tag.0 == name);
    let declared: BTreeSet<&String> = all("key").map(|tag| &tag.1["id"]).collect();
    assert!(all("key").all(|tag| tag.1.contains_key("attr.name") && tag.1.contains_key("for")));
    for (_, attributes, _) in all("data") {
        assert!(declared.contains(&attributes["key"]), "{attributes:?} is not declared");
    }
    let value = |key: &str| {
        let found = all("data").find(|tag| tag.1["key"] == key);
        found.unwrap_or_else(|| panic!("{key} is missing")).2.clone()
    };
    assert_eq!(value("witness-type"), kind);
    assert_eq!((value("sourcecodelang"), value("architecture")), ("C".into(), "64bit".into()));
    assert!(value("producer").starts_with("foretell "));
    assert!(value("specification").starts_with("CHECK( init(main()), LTL(G "));
    assert_eq!(value("programhash").len(), 64, "SHA-256");
    let time = value("creationtime");
    let digits = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
    assert_eq!(digits.collect::<String>(), "0000-00-00T00:00:00Z", "{time}");
    assert!(time.as_str() > "2025", "{time}");
    let nodes: BTreeSet<&String> = all("node").map(|tag| &tag.1["id"]).collect();
    assert_eq!(nodes.len(), all("node").count(), "a node has an id of its own");
    for (_, attributes, _) in all("edge") {
        assert!(nodes.contains(&attributes["source"]) && nodes.contains(&attributes["target"]));
    }
    let entries = all("data").filter(|tag| tag.1["key"] == "entry" && tag.2 == "true");
    assert_eq!(entries.count(), 1);
    tags
}

#[test]
fn a_violation_witness_is_a_path_to_the_violation() {
    for name in ["lazy01.c", "choice_bad.c", "counter_race.c"] {
        let Some(text) = witness_of(name) else { return };
        let tags = check(&text, "violation_witness");
        let data = |key: &str| -> Vec<String> {
            let found = tags.iter().filter(|tag| tag.0 == "data" && tag.1["key"] == key);
            found.map(|tag| tag.2.clone()).collect()
        };
        assert_eq!(data("violation"), ["true"], "{name}");
        let edges = tags.iter().filter(|tag| tag.0 == "edge").count();
        // a path: every edge leads to the next node, has a line and a thread that was created
        assert_eq!(tags.iter().filter(|tag| tag.0 == "node").count(), edges + 1, "{name}");
        assert_eq!((data("startline").len(), data("threadId").len()), (edges, edges), "{name}");
        assert!(
            data("startline").iter().all(|line| line.parse::<u32>().is_ok_and(|line| line > 0))
        );
        let created: BTreeSet<String> =
            data("createThread").into_iter().chain(["0".to_owned()]).collect();
        assert!(data("threadId").iter().all(|thread| created.contains(thread)), "{name}");
    }
}

#[test]
fn a_correctness_witness_names_the_program() {
    let Some(text) = witness_of("lazy01_safe.c") else { return };
    let tags = check(&text, "correctness_witness");
    assert!(tags.iter().all(|tag| tag.0 != "edge"));
    assert!(text.contains("lazy01_safe.c:25 in thread3: data in {0, 1, 2, 3}"));
}

/// A witness names the property that is violated.
#[test]
fn a_witness_names_its_property() {
    let programs = [
        ("overflow", "int x = 2147483647; int main(void) { x++; return 0; }", "! overflow"),
        ("deref", "int main(void) { int *p = 0; return *p; }", "valid-deref"),
        (
            "free",
            "#include <stdlib.h>\nint main(void) { int *p = malloc(4); free(p); free(p); return 0; }",
            "valid-free",
        ),
        ("division", "int x; int main(void) { return 1 / x; }", "! division-by-zero"),
        (
            "error",
            "void reach_error(void) {}\nint main(void) { reach_error(); return 0; }",
            "! call(reach_error())",
        ),
    ];
    for (name, code, property) in programs {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("witness_{name}.c"));
        std::fs::write(&file, code).expect("the folder of tests can be written");
        let Some(text) = witness_of_file(&file) else { return };
        let wanted = format!("CHECK( init(main()), LTL(G {property}) )");
        assert!(text.contains(&wanted), "{name}: {text}");
    }
}
