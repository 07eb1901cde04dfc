//! One self-contained HTML file that works offline: the findings, and for each a timeline with the
//! recorded order beside the predicted one, a stepper, the formula as a graph and the fix.
//!
//! What comes from the program under test (names, values, source lines, output) is data. It is
//! written as JSON into an element that browsers do not run, with every `<`, `>` and `&` escaped, and
//! the page puts it on the screen through `textContent` and a canvas only. A content security policy
//! forbids the network and every script and style but those below, which it names by their SHA-256:
//! nothing that is smuggled into the page can pretend to be one of them.

use std::io::{self, Write};

use foretell_guard::sha256;
use serde_json::json;

use crate::report::Report;
use crate::story;

const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");

/// Writes the page.
pub fn render(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let shown = story::entries(report);
    let entries: Vec<serde_json::Value> = shown
        .iter()
        .map(|entry| {
            let same = |finding: &&crate::report::Finding| std::ptr::eq(*finding, entry.finding);
            let others = entry.others.iter().filter(|other| other.group == entry.finding.group);
            json!({
                "finding": report.findings.iter().position(|finding| same(&finding)),
                "headline": story::headline(entry.finding),
                "certainty": story::certainty(entry.finding),
                "why": story::why(entry.finding),
                "branch": entry.finding.forced.as_ref().and_then(story::other_branch),
                "also": entry.also(),
                "threads": others.count(),
            })
        })
        .collect();
    let suppressed: Vec<String> = report
        .findings
        .iter()
        .filter_map(|finding| {
            let suppressed = finding.suppressed.as_ref()?;
            Some(format!(
                "{} [{}]: {}",
                story::headline(finding),
                finding.fingerprint,
                suppressed.reason
            ))
        })
        .collect();
    let data = json!({
        "report": report,
        "entries": entries,
        "count": story::count(&shown),
        "limits": story::limits(report),
        "suppressed": suppressed,
    });
    let style = format!("\n{STYLE}");
    let script = format!("\n{SCRIPT}");
    let (style_hash, script_hash) = (allowed(style.as_bytes()), allowed(script.as_bytes()));
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src {script_hash}; style-src {style_hash}; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>foretell report</title>\n<style>{style}</style>\n</head>\n\
         <body>\n<header></header>\n<div class=\"shell\"><nav aria-label=\"findings\"></nav>\
         <main></main></div>\n<noscript>This report needs JavaScript; `foretell report RESULT \
         --text FILE` writes plain text.</noscript>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n\
         <script>{script}</script>\n</body>\n</html>\n",
        as_data(&data)
    )
}

/// JSON that cannot end the element it stands in.
fn as_data(value: &serde_json::Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// The expression by which a content security policy allows an element with this content.
fn allowed(content: &[u8]) -> String {
    format!("'sha256-{}'", base64(&sha256::hash(content)))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | usize::from(*three.get(i).unwrap_or(&0)));
        for i in 0..4 {
            let letter = char::from(LETTERS[bits >> (18 - 6 * i) & 63]);
            text.push(if i <= three.len() { letter } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn a_policy_names_content_by_its_hash() {
        assert_eq!(allowed(b"abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
    }
}
