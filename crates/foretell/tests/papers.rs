//! The page `docs/src/papers.md` names everything that the five papers have, and its places exist.
//!
//! A place is a file from the root of the repository and items that are defined in it:
//! `` `crates/x/src/y.rs` `Item`, `Type::method`; `bench/src/main.rs` `foretell-bench planner` ``. An item
//! that begins with `--` is an option of the command line.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What a paper has, in its order: sections, definitions, theorems, algorithms, rules, tables, figures, and
/// what it names inside a section without a number.
struct Paper {
    number: &'static str,
    rows: &'static [&'static str],
}

const PAPERS: [Paper; 5] = [
    Paper {
        number: "004",
        rows: &[
            "section 1",
            "section 2",
            "Figure 1",
            "Figure 2",
            "section 3",
            "section 3.1",
            "section 3.2",
            "Definition 1",
            "section 4",
            "section 4.1",
            "Definition 2",
            "Figure 3",
            "semantics of π-functions",
            "section 4.2",
            "path conditions",
            "program order (Φ_PO)",
            "variable definitions (Φ_VD)",
            "π-functions (Φ_PI)",
            "assertion property (Φ_PRP)",
            "Figure 4",
            "size of the formula",
            "section 4.3",
            "Theorem 1",
            "section 5",
            "section 5.1",
            "section 5.2",
            "Theorem 2",
            "section 5.3",
            "section 6",
            "Figure 5",
            "Figure 6",
            "section 7",
            "Table 1",
            "section 8",
            "section 9",
        ],
    },
    Paper {
        number: "000",
        rows: &[
            "section 1",
            "Figure 1",
            "Figure 2",
            "section 2",
            "programs and traces",
            "synchronization primitives",
            "Figure 3",
            "Definition 1",
            "feasible linearizations",
            "section 3",
            "atomicity violations",
            "potential violations (PAV)",
            "simultaneous reachability",
            "Definition 2",
            "rule 1",
            "rule 2",
            "rule 3",
            "rule 4a",
            "rule 4b",
            "rule 4c",
            "section 4",
            "section 4.1",
            "Definition 3",
            "Figure 4",
            "section 4.2",
            "section 4.3",
            "difference logic with the constant -1",
            "Figure 5",
            "simplifying locks",
            "Theorem 1",
            "section 5",
            "Figure 6",
            "feasible prefixes (FeaPfx)",
            "Theorem 2",
            "section 6",
            "Table 1",
            "section 7",
            "section 8",
        ],
    },
    Paper {
        number: "003",
        rows: &[
            "section 1",
            "section 2",
            "Figure 1",
            "Figure 2",
            "section 3",
            "section 3.1",
            "lock-valid words",
            "data-valid words",
            "Definition 1",
            "Definition 2",
            "Theorem 1",
            "section 3.2",
            "section 4",
            "section 4.1",
            "section 4.2",
            "section 4.3",
            "events and program order",
            "write events",
            "read events",
            "lock events",
            "violation and goal",
            "initial state",
            "Proposition 1",
            "Lemma 1",
            "section 4.4",
            "section 5",
            "Table 1",
            "Theorem 2",
            "section 6",
            "section 7",
        ],
    },
    Paper {
        number: "001",
        rows: &[
            "section 1",
            "Figure 1",
            "section 2",
            "section 2.1",
            "guarded actions",
            "transition predicates",
            "section 2.2",
            "Remark 2.1",
            "section 2.3",
            "Example 2.2",
            "encoding of bad executions (Φ_CTP)",
            "Theorem 2.3",
            "Algorithm 1",
            "Algorithm 2",
            "data-flow analysis (DF, ADF)",
            "unsatisfiable cores",
            "Theorem 2.4",
            "section 2.4",
            "Table 1",
            "section 3",
            "wait-notify",
            "locks",
            "barriers",
            "shared-exclusive locks",
            "Figure 2",
            "rule ADD.LOCK",
            "rule ADD.WAITNOTIFY",
            "rule ADD.BARRIER",
            "rule MULTITHREAD.LOCK",
            "rule MERGE.LOCKS",
            "rule MERGE.LOCKS.DEADLOCKS",
            "rule MULTITHREAD.BARRIER",
            "rule ADD.SHAREDEXCLUSIVELOCK",
            "Theorem 3.1",
            "Example 3.2",
            "Example 3.3",
            "Example 3.4",
            "section 3.1",
            "Table 2",
            "section 4",
            "section 4.1",
            "Figure 3",
            "Figure 4",
            "rule DATARACE.1",
            "rule DATARACE.2",
            "rule ATOMICITYVIOLATION.1",
            "rule ATOMICITYVIOLATION.2",
            "rule TWOSTAGEACCESSBUG.1",
            "rule TWOSTAGEACCESSBUG.2",
            "rule DEFINEUSE",
            "Example 4.1",
            "Example 4.2",
            "Example 4.3",
            "section 4.2",
            "Table 3",
            "section 5",
            "section 5.1",
            "section 5.2",
            "section 5.3",
            "Table 4",
            "section 5.4",
            "section 6",
            "section 7",
        ],
    },
    Paper {
        number: "002",
        rows: &[
            "chapter 1",
            "Figure 1(a)",
            "Figure 1(b)",
            "chapter 2",
            "chapter 3",
            "Figure 2",
            "Figure 3(a)",
            "Figure 3(b)",
            "Figure 3(c)",
            "distance of accesses",
            "remote distance",
            "chapter 4",
            "Figure 4",
            "chapter 5",
            "Figure 5",
            "Figure 6",
            "Record-Replay",
            "Figure 7",
            "Table 1",
            "Happen-before analysis",
            "Figure 8(a)",
            "Figure 8(b)",
            "Figure 9",
            "Figure 10",
            "Binary Instrumentation",
            "Figure 11",
            "Figure 12",
            "Order Generation",
            "Figure 13",
            "Figure 14",
            "Analysis",
            "filter: loop",
            "filter: local distance",
            "code debug",
            "filter: known good",
            "case 1",
            "case 2",
            "Execution Path Analysis",
            "chapter 6",
            "Table 2",
            "Table 3",
            "Table 4",
            "Table 5",
            "Table 6",
            "chapter 7",
            "Figure 15",
            "chapter 8",
        ],
    },
];

/// What the last column says where foretell does less than the paper.
const LESS: &str = "**Less:**";

/// A row of a table.
struct Row<'p> {
    name: &'p str,
    places: &'p str,
    differs: &'p str,
}

/// The rows of a paper's table; `Err` is a line that is no row.
fn rows<'p>(page: &'p str, number: &str) -> Result<Vec<Row<'p>>, String> {
    let heading = format!("## {number}: ");
    let section = page.lines().skip_while(|line| !line.starts_with(&heading)).skip(1);
    let table = section.take_while(|line| !line.starts_with("## "));
    let table = table.filter(|line| line.starts_with('|')).skip(2); // without the head
    let row = |line: &'p str| {
        let cells = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
        let cells: Vec<&str> = cells.map_or_else(Vec::new, |cells| cells.split(" | ").collect());
        match cells[..] {
            [name, what, places, differs] if !what.is_empty() && !differs.is_empty() => {
                Ok(Row { name, places, differs })
            }
            _ => Err(format!("{number}: not four cells: {line}")),
        }
    };
    table.map(row).collect()
}

/// A file and what is defined there.
#[derive(Debug, PartialEq)]
struct Place<'p> {
    path: &'p str,
    items: Vec<&'p str>,
}

/// The text between the only two backquotes, which are its first and its last character.
fn quoted(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('`')?.strip_suffix('`')?;
    (!inner.is_empty() && !inner.contains('`')).then_some(inner)
}

/// The places of a cell; `None` where it is not written as it should be.
fn places(cell: &str) -> Option<Vec<Place<'_>>> {
    let place = |text| {
        let (path, items) = match str::split_once(text, "` `") {
            Some((path, _)) => {
                let items = &text[path.len() + 2..];
                (&text[..=path.len()], items.split(", ").map(quoted).collect::<Option<_>>()?)
            }
            None => (text, Vec::new()),
        };
        quoted(path).filter(|path| path.contains('/')).map(|path| Place { path, items })
    };
    cell.split("; ").map(place).collect()
}

/// The words of a text, as identifiers are.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// What a line defines: the keyword and the name, or for `impl` all names of its head.
fn definition(line: &str) -> Option<(&str, Vec<&str>)> {
    let line = line.trim_start();
    if line.starts_with("//") {
        return None;
    }
    let narrow = line.strip_prefix("pub(in ").and_then(|rest| rest.split_once(") "));
    let line = narrow.map_or(line, |(_, rest)| rest);
    let visibility = ["pub", "crate", "super", "unsafe", "async", "extern", "C"];
    let mut rest = words(line).skip_while(|word| visibility.contains(word)).peekable();
    match rest.next()? {
        // A function or a constant.
        "const" if rest.peek() == Some(&"fn") => Some(("fn", rest.skip(1).take(1).collect())),
        "impl" => Some(("impl", rest.collect())),
        keyword @ ("fn" | "struct" | "enum" | "trait" | "mod" | "const" | "static" | "type"
        | "macro_rules" | "define") => Some((keyword, rest.take(1).collect())),
        _ => None,
    }
}

/// Does an implementation of the type, or the trait itself, have this function or constant?
fn has_member(text: &str, owner: &str, member: &str) -> bool {
    let mut inside = false;
    text.lines().any(|line| {
        match definition(line) {
            Some(("impl" | "trait", names)) => inside = names.contains(&owner),
            Some(("fn" | "const", names)) => return inside && names.contains(&member),
            _ => inside &= line != "}",
        }
        false
    })
}

/// Has the enumeration this variant?
fn has_variant(text: &str, owner: &str, variant: &str) -> bool {
    let is_head = |line: &&str| definition(line).is_some_and(|d| d == ("enum", vec![owner]));
    let body = text.lines().skip_while(|line| !is_head(line)).skip(1);
    body.take_while(|line| *line != "}").any(|line| {
        let rest = line.strip_prefix("    ").and_then(|line| line.strip_prefix(variant));
        rest.is_some_and(|rest| rest.starts_with([',', ' ', '(', '{']))
    })
}

/// Is the item defined in the text of a file?
fn is_defined(text: &str, item: &str) -> bool {
    if let Some(option) = item.strip_prefix("--") {
        let field = format!("pub {}:", option.replace('-', "_"));
        return text.lines().any(|line| line.trim_start().starts_with(&field));
    }
    if let Some(bench) = item.strip_prefix("foretell-bench ") {
        return text.contains(&format!("[\"{bench}\"] =>"));
    }
    match item.split_once("::") {
        Some((owner, member)) => {
            has_member(text, owner, member) || has_variant(text, owner, member)
        }
        None => text
            .lines()
            .filter_map(definition)
            .any(|(keyword, names)| keyword != "impl" && names.contains(&item)),
    }
}

/// What is wrong with a table.
fn complaints(page: &str, paper: &Paper, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let number = paper.number;
    let rows = match rows(page, number) {
        Ok(rows) => rows,
        Err(why) => return vec![why],
    };
    let mut wrong = Vec::new();
    let there: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let missing = paper.rows.iter().filter(|row| !there.contains(row));
    wrong.extend(missing.map(|row| format!("{number}: no row `{row}`")));
    let foreign = there.iter().filter(|row| !paper.rows.contains(row));
    wrong.extend(foreign.map(|row| format!("{number}: `{row}` is not in the paper's list")));
    if wrong.is_empty() && there != paper.rows {
        wrong.push(format!("{number}: the rows are not in the paper's order"));
    }
    for Row { name, places: cell, differs } in rows {
        let mut say = |what: String| wrong.push(format!("{number}, {name}: {what}"));
        if let Some(reason) = cell.strip_prefix("not built: ") {
            if reason.is_empty() || !differs.contains(LESS) {
                say(format!("what is not built has a reason and says {LESS}"));
            }
            continue;
        }
        if cell.strip_prefix("nothing to build: ").is_some_and(|reason| !reason.is_empty()) {
            continue;
        }
        let Some(places) = places(cell) else {
            say(format!("not a list of places: {cell}"));
            continue;
        };
        for Place { path, items } in places {
            let Some(text) = read(path) else {
                say(format!("there is no {path}"));
                continue;
            };
            if path.ends_with(".rs") && items.is_empty() {
                say(format!("no item of {path} is named"));
            }
            for item in items.iter().filter(|item| !is_defined(&text, item)) {
                say(format!("{path} does not define `{item}`"));
            }
        }
        // Files that the last column mentions.
        for path in differs.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs")) {
            if read(path).is_none() {
                say(format!("there is no {path}"));
            }
        }
    }
    wrong
}

fn read(path: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).ok()
}

#[test]
fn every_part_of_the_papers_has_a_row_and_every_place_exists() {
    let page = read("docs/src/papers.md").expect("the page");
    let headings: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("## ")?.split(':').next()).collect();
    assert_eq!(headings, PAPERS.iter().map(|paper| paper.number).collect());
    let wrong: Vec<String> =
        PAPERS.iter().flat_map(|paper| complaints(&page, paper, &read)).collect();
    assert!(wrong.is_empty(), "docs/src/papers.md:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_wrong_with_a_page_is_said() {
    const PAPER: Paper = Paper { number: "009", rows: &["section 1", "Theorem 1", "Table 1"] };
    let read = |path: &str| (path == "a/b.rs").then(|| "pub fn there() {}\n".to_owned());
    let page = |rows: [&str; 3]| {
        let rows = rows.join(" |\n| ");
        format!(
            "## 009: A paper\n\n| in | what | where | differs |\n|---|---|---|---|\n| {rows} |\n"
        )
    };
    let good = [
        "section 1 | x | `a/b.rs` `there` | Nothing.",
        "Theorem 1 | x | nothing to build: it sums up | Nothing.",
        "Table 1 | x | not built: nobody did | **Less:** all of it.",
    ];
    let said = |rows| complaints(&page(rows), &PAPER, &read).join("\n");
    assert_eq!(said(good), "");
    for (number, row, what) in [
        (0, "section 2 | x | `a/b.rs` `there` | Nothing.", "no row `section 1`"),
        (0, "section 1 | x | `a/c.rs` `there` | Nothing.", "there is no a/c.rs"),
        (0, "section 1 | x | `a/b.rs` `gone` | Nothing.", "a/b.rs does not define `gone`"),
        (0, "section 1 | x | `a/b.rs` | Nothing.", "no item of a/b.rs is named"),
        (0, "section 1 | x | somewhere | Nothing.", "not a list of places"),
        (0, "section 1 | x | `a/b.rs` `there` | See `a/d.rs`.", "there is no a/d.rs"),
        (0, "section 1 | x | `a/b.rs` `there`", "not four cells"),
        (2, "Table 1 | x | not built: nobody did | Nothing.", "what is not built"),
    ] {
        let mut rows = good;
        rows[number] = row;
        let said = said(rows);
        assert!(said.contains(what), "{row}: {said}");
    }
    assert!(said([good[1], good[0], good[2]]).contains("not in the paper's order"));
}

#[test]
fn items_are_found_where_they_are_defined_and_not_where_they_are_used() {
    let text = "// fn told() {}\nuse x::Used;\npub(crate) const fn counted() { used() }\n\
                pub enum Way {\n    Lock(u32),\n    Wait,\n}\nimpl<'a> Show for Way {\n    \
                fn show(&self) {}\n}\npub context_switches: Option<u32>,\n\
                pub(in crate::planner) struct State {\n}\n\
                match word {\n    [\"planner\"] => 1,\n}\n";
    for item in [
        "counted",
        "State",
        "Way",
        "Way::Lock",
        "Way::Wait",
        "Way::show",
        "show",
        "--context-switches",
    ] {
        assert!(is_defined(text, item), "{item}");
    }
    assert!(is_defined(text, "foretell-bench planner"));
    for item in ["told", "Used", "used", "Show", "Way::Loc", "Way::counter", "Show::gone", "--gone"]
    {
        assert!(!is_defined(text, item), "{item}");
    }
    assert!(!is_defined(text, "foretell-bench plan"));
    let cell = "`a/b.rs` `X`, `y`; `a/c.ft`";
    let expected =
        [Place { path: "a/b.rs", items: vec!["X", "y"] }, Place { path: "a/c.ft", items: vec![] }];
    assert_eq!(places(cell).as_deref(), Some(&expected[..]));
    assert_eq!(places("`a/b.rs` X"), None);
}
