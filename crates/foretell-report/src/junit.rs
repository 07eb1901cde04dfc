//! JUnit's XML, for CI systems that show test results: a failure for each confirmed or predicted
//! finding, a skipped test for each undecided or suppressed one, a passed test for each kind of bug of
//! which there is none. `schema/junit.xsd` is what other tools agree on.

use std::io::{self, Write};

use crate::report::{Finding, Report, Status};
use crate::story;
use crate::terminal::{self, Look, shown};

/// Writes one test suite.
pub fn render(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let entries = story::entries(report);
    let suppressed: Vec<&Finding> =
        report.findings.iter().filter(|finding| finding.suppressed.is_some()).collect();
    let failed = |finding: &Finding| {
        matches!(finding.status, Status::Confirmed | Status::Predicted)
            && finding.suppressed.is_none()
    };
    let passed: Vec<&str> = report
        .properties
        .iter()
        .filter(|property| property.predicted == 0 && property.unknown == 0)
        // past the recorded path there may be one although these events allow none
        .filter(|property| report.findings.iter().all(|finding| finding.kind != property.kind))
        .map(|property| property.kind.name())
        .collect();
    let failures = entries.iter().filter(|entry| failed(entry.finding)).count();
    let skipped = suppressed.len()
        + entries.iter().filter(|entry| entry.finding.status == Status::Unknown).count();
    let tests = entries.len() + suppressed.len() + passed.len();
    let seconds = report.statistics.candidate_seconds + report.statistics.solve_seconds;
    let name = report.program.command.first().map_or("foretell", String::as_str);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites>")?;
    writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" \
         skipped=\"{skipped}\" time=\"{seconds:.3}\">",
        escaped(name)
    )?;
    for entry in &entries {
        let finding = entry.finding;
        open(out, finding)?;
        let certainty = escaped(&story::certainty(finding));
        match finding.status {
            Status::Confirmed | Status::Predicted => {
                let mut text = Vec::new();
                terminal::entry(&mut text, Look::default(), report, entry, false)?;
                let text = escaped_text(&String::from_utf8_lossy(&text));
                writeln!(
                    out,
                    "      <failure type=\"{}\" message=\"{certainty}\">{text}</failure>",
                    finding.kind.name()
                )?;
            }
            Status::Unknown => writeln!(out, "      <skipped message=\"{certainty}\"/>")?,
            Status::Refuted => {}
        }
        writeln!(out, "    </testcase>")?;
    }
    for finding in suppressed {
        open(out, finding)?;
        let reason = finding.suppressed.as_ref().map_or("", |suppressed| &suppressed.reason);
        writeln!(out, "      <skipped message=\"suppressed: {}\"/>", escaped(reason))?;
        writeln!(out, "    </testcase>")?;
    }
    for kind in passed {
        writeln!(out, "    <testcase classname=\"foretell.{kind}\" name=\"no {kind} found\"/>")?;
    }
    let stale = report.stale_suppressions.iter();
    let stale = stale.map(|sentence| format!("stale suppression: {sentence}"));
    let said: Vec<String> = story::limits(report).into_iter().chain(stale).collect();
    if !said.is_empty() {
        writeln!(out, "    <system-out>{}</system-out>", escaped_text(&said.join("\n")))?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

fn open(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    writeln!(
        out,
        "    <testcase classname=\"foretell.{}\" name=\"{} [{}]\">",
        finding.kind.name(),
        escaped(&story::headline(finding)),
        escaped(&finding.fingerprint)
    )
}

/// For an attribute. What XML cannot carry is written out, as on the terminal.
/// A program that was tested, as one test among others.
pub struct Case<'a> {
    /// The executable that it is in.
    pub class: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What came of it.
    pub outcome: Outcome<'a>,
    /// How long it took.
    pub seconds: f64,
}

/// What came of a test.
pub enum Outcome<'a> {
    /// Nothing was found.
    Passed,
    /// Something was found: headlines.
    Failed(&'a [String]),
    /// It was not decided, and why.
    Skipped(&'a str),
    /// It could not be tested, and why.
    Error(&'a str),
}

/// Writes one test suite of several programs.
pub fn render_cases(out: &mut impl Write, suite: &str, cases: &[Case<'_>]) -> io::Result<()> {
    let count =
        |is_it: fn(&Outcome<'_>) -> bool| cases.iter().filter(|case| is_it(&case.outcome)).count();
    let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let errors = count(|outcome| matches!(outcome, Outcome::Error(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites>")?;
    writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" \
         skipped=\"{skipped}\" time=\"{seconds:.3}\">",
        escaped(suite),
        cases.len()
    )?;
    for case in cases {
        writeln!(
            out,
            "    <testcase name=\"{}\" classname=\"{}\" time=\"{:.3}\">",
            escaped(case.name),
            escaped(case.class),
            case.seconds
        )?;
        match case.outcome {
            Outcome::Passed => {}
            Outcome::Failed(findings) => {
                let first = findings.first().map_or("", String::as_str);
                let text = escaped_text(&findings.join("\n"));
                let message = escaped(first);
                writeln!(
                    out,
                    "      <failure type=\"finding\" message=\"{message}\">{text}</failure>"
                )?;
            }
            Outcome::Skipped(why) => {
                writeln!(out, "      <skipped message=\"{}\"/>", escaped(why))?;
            }
            Outcome::Error(why) => {
                let why = escaped(why);
                writeln!(out, "      <error type=\"foretell\" message=\"{why}\"/>")?;
            }
        }
        writeln!(out, "    </testcase>")?;
    }
    writeln!(out, "  </testsuite>")?;
    writeln!(out, "</testsuites>")
}

fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for character in shown(text).chars() {
        match character {
            '<' => result += "&lt;",
            '>' => result += "&gt;",
            '&' => result += "&amp;",
            '"' => result += "&quot;",
            '\u{fffe}' | '\u{ffff}' => result.extend(character.escape_unicode()),
            other => result.push(other),
        }
    }
    result
}

/// For the text of an element: lines stay lines.
fn escaped_text(text: &str) -> String {
    text.lines().map(|line| escaped(line) + "\n").collect()
}
