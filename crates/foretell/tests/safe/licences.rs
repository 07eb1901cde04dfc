//! Every dependency may be used in a program under the MIT licence.

use std::process::Command;

use serde_json::Value;

use crate::common::finish;

/// Licences whose terms are met by naming them, in the spelling of SPDX.
const ALLOWED: [&str; 12] = [
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

#[test]
fn every_dependency_has_a_licence_that_fits() {
    let metadata = |offline: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(offline)
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        finish(cargo)
    };
    // Crates that this machine never needed may not be in its cache.
    let mut output = metadata(&["--offline"]);
    if !output.status.success() {
        output = metadata(&[]);
    }
    assert!(output.status.success(), "{}", crate::common::text(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 50, "all of them are there");
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !is_allowed(package["license"].as_str().unwrap_or_default()))
        .map(|package| {
            format!("{} {}: {}", package["name"], package["version"], package["license"])
        })
        .collect();
    assert_eq!(refused, [] as [String; 0]);
}
