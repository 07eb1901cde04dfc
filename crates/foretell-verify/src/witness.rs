//! Witnesses in the exchange format of SV-COMP (GraphML, version 1.0), for other tools to validate.
//!
//! A violation witness is the counterexample as a path: an edge for every event, with its line, its
//! thread, and the thread that it creates. A correctness witness says that the program is correct and
//! gives what holds where threads stand as comments: its format has no place for several threads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use foretell_guard::sha256;

use crate::certificate::Property;
use crate::counterexample::Counterexample;
use crate::explore::shown::Summary;
use crate::program::Visible;

/// The witness of a violation. `source`: the bytes of the program.
pub fn violation(found: &Counterexample, source: &[u8]) -> String {
    let mut text = head("violation_witness", &found.file, source, found.specification);
    text.push_str("  <node id=\"n0\"><data key=\"entry\">true</data></node>\n");
    // threads are numbered as they are created; `main` is 0
    let mut numbers =
        BTreeMap::from([(found.events.first().map(|_| Vec::new()).unwrap_or_default(), 0)]);
    let mut children: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    let mut node = 0;
    let mut edge = |text: &mut String, line: u32, data: String, violation: bool| {
        let ends = if violation { "<data key=\"violation\">true</data>" } else { "" };
        let _ = write!(
            text,
            "  <node id=\"n{next}\">{ends}</node>\n  <edge source=\"n{node}\" target=\"n{next}\">\n    \
             <data key=\"startline\">{line}</data>\n{data}  </edge>\n",
            next = node + 1
        );
        node += 1;
    };
    for event in &found.events {
        let thread = numbers.get(&event.thread.0).copied().unwrap_or(0);
        let mut data = format!("    <data key=\"threadId\">{thread}</data>\n");
        if event.does == Visible::Fork {
            let child = children.entry(event.thread.0.clone()).or_default();
            let path = [&event.thread.0[..], &[*child]].concat();
            *child += 1;
            let number = numbers.len();
            numbers.insert(path, number);
            let _ = writeln!(data, "    <data key=\"createThread\">{number}</data>");
        }
        if let Some(value) = event.input {
            let value = value as i64;
            let _ = writeln!(data, "    <data key=\"assumption\">\\result == {value}</data>");
        }
        edge(&mut text, event.line, data, false);
    }
    let thread = numbers.get(&found.thread.0).copied().unwrap_or(0);
    let data = format!("    <data key=\"threadId\">{thread}</data>\n");
    edge(&mut text, found.line, data, true);
    text.push_str("</graph></graphml>\n");
    text
}

/// The witness of a proof; one witness is of one property, and assertions come first.
pub fn correctness(
    summary: &Summary,
    properties: &BTreeSet<Property>,
    file: &str,
    source: &[u8],
) -> String {
    let property = match properties.contains(&Property::Assertion) {
        true => "! call(reach_error())",
        false => "! deadlock",
    };
    let mut text = head("correctness_witness", file, source, property);
    text.push_str("  <node id=\"n0\"><data key=\"entry\">true</data></node>\n");
    for line in summary.print().lines() {
        let _ = writeln!(text, "  <!-- {} -->", line.replace("--", "- -"));
    }
    text.push_str("</graph></graphml>\n");
    text
}

fn head(kind: &str, file: &str, source: &[u8], property: &str) -> String {
    let hash = sha256::hex(source);
    let property = format!("CHECK( init(main()), LTL(G {property}) )");
    let mut keys = String::new();
    for (name, kind, of) in KEYS {
        let _ = writeln!(
            keys,
            "<key id=\"{name}\" attr.name=\"{name}\" attr.type=\"{kind}\" for=\"{of}\"/>"
        );
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n{keys}\
         <graph edgedefault=\"directed\">\n  <data key=\"witness-type\">{kind}</data>\n  \
         <data key=\"sourcecodelang\">C</data>\n  <data key=\"producer\">foretell {}</data>\n  \
         <data key=\"specification\">{}</data>\n  <data key=\"programfile\">{}</data>\n  \
         <data key=\"programhash\">{hash}</data>\n  <data key=\"architecture\">64bit</data>\n  \
         <data key=\"creationtime\">{}</data>\n",
        env!("CARGO_PKG_VERSION"),
        escaped(&property),
        escaped(file),
        now()
    )
}

/// Keys of the format: name, type, and what has it. GraphML wants every key declared.
const KEYS: [(&str, &str, &str); 14] = [
    ("witness-type", "string", "graph"),
    ("sourcecodelang", "string", "graph"),
    ("producer", "string", "graph"),
    ("specification", "string", "graph"),
    ("programfile", "string", "graph"),
    ("programhash", "string", "graph"),
    ("architecture", "string", "graph"),
    ("creationtime", "string", "graph"),
    ("entry", "boolean", "node"),
    ("violation", "boolean", "node"),
    ("startline", "int", "edge"),
    ("threadId", "int", "edge"),
    ("createThread", "int", "edge"),
    ("assumption", "string", "edge"),
];

/// The time as ISO 8601 has it, in UTC.
fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let (days, time) = (seconds / 86400, seconds % 86400);
    // civil date of a day number: years begin in March, so that a leap day is the last
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    let year = 400 * era + year + later;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
