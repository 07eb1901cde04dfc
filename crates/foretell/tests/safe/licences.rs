//! Every dependency may be used in a program under the MIT licence.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::finish;

/// Licences whose terms are met by naming them, in the spelling of SPDX.
const ALLOWED: [&str; 13] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unlicense",
    "Unicode-3.0",
    "BSL-1.0",
    "NCSA",
];

/// Is there a way to fulfil the expression with allowed licences only?
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let expression = expression.trim();
    if ALLOWED.contains(&expression) {
        return true;
    }
    // Split at the outermost operator; OR binds less than AND.
    for (operator, all) in [(" OR ", false), (" AND ", true)] {
        let parts = split_outside(expression, operator);
        if parts.len() > 1 {
            return match all {
                true => parts.iter().all(|part| is_allowed(part)),
                false => parts.iter().any(|part| is_allowed(part)),
            };
        }
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_allowed(inner),
        None => false,
    }
}

fn split_outside<'t>(text: &'t str, operator: &str) -> Vec<&'t str> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && at >= begin && text[at..].starts_with(operator) => {
                parts.push(&text[begin..at]);
                begin = at + operator.len();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

#[test]
fn expressions_are_understood() {
    assert!(is_allowed("MIT OR Apache-2.0") && is_allowed("MIT/Apache-2.0"));
    assert!(is_allowed("(MIT OR GPL-3.0-only) AND Unicode-3.0"));
    assert!(!is_allowed("GPL-3.0-only") && !is_allowed("MIT AND GPL-2.0-only") && !is_allowed(""));
}

/// The packages of a workspace, with all of their dependencies. `--locked` fails where the lock file is
/// not up to date.
fn packages(folder: &str) -> Vec<Value> {
    let metadata = |offline: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(offline)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
        finish(cargo)
    };
    // Crates that this machine never needed may not be in its cache.
    let mut output = metadata(&["--offline"]);
    if !output.status.success() {
        output = metadata(&[]);
    }
    assert!(output.status.success(), "{folder}: {}", crate::common::text(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    match metadata["packages"].take() {
        Value::Array(packages) => packages,
        other => panic!("{folder}: {other}"),
    }
}

#[test]
fn every_dependency_has_a_licence_that_fits() {
    // Fuzzing is a workspace of its own, with dependencies of its own.
    for folder in [".", "../../fuzz"] {
        let packages = packages(folder);
        assert!(packages.len() > 50, "all of them are there");
        let licence = |package: &Value| package["license"].as_str().unwrap_or_default().to_owned();
        let refused: Vec<String> = packages
            .iter()
            .filter(|package| package["source"].is_string() && !is_allowed(&licence(package)))
            .map(|package| {
                format!("{} {}: {}", package["name"], package["version"], package["license"])
            })
            .collect();
        assert_eq!(refused, [] as [String; 0], "{folder}");
    }
}
