//! Suppressions and baselines: findings that somebody has decided about.
//!
//! ```toml
//! [[suppress]]
//! fingerprint = "362af82fb8424d69"
//! reason = "the counter is for statistics only"
//! expires = "2027-01-31"        # optional: from the next day on it counts again
//! ```
//!
//! A baseline is the same file, written by `--write-baseline`: everything that is known today, so
//! that only new findings fail a build. Suppressed findings are still counted and shown as such, and
//! entries that no longer match anything are named, so that the file does not rot.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::report::{Report, Status, Suppressed};
use crate::story;

/// The content of a suppression file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suppressions {
    /// The entries.
    #[serde(default)]
    pub suppress: Vec<Suppression>,
}

/// One decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suppression {
    /// The finding's fingerprint.
    pub fingerprint: String,
    /// Why it need not be shown.
    pub reason: String,
    /// The last day on which that holds, `YYYY-MM-DD`.
    #[serde(default)]
    pub expires: Option<String>,
}

/// Why a suppression file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SuppressionError {
    /// Not TOML, or not of this shape.
    #[error("{}", .0.to_string().trim_end())]
    Malformed(toml::de::Error),
    /// An entry without a reason.
    #[error("the suppression of {0} has no reason; say why it is no bug")]
    NoReason(String),
    /// Not a date.
    #[error("`{0}` is not a date; write expires = \"YYYY-MM-DD\"")]
    NotADate(String),
}

/// A day, `YYYY-MM-DD`; days compare as their texts do.
pub fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |text: &str, digits: usize| {
        (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse::<u32>().ok())
            .flatten()
    };
    match parts.as_slice() {
        [year, month, day] => {
            number(year, 4).is_some()
                && number(month, 2).is_some_and(|month| (1..=12).contains(&month))
                && number(day, 2).is_some_and(|day| (1..=31).contains(&day))
        }
        _ => false,
    }
}

/// The day, in UTC, of a time in seconds since 1970.
pub fn date(seconds: u64) -> String {
    // Days since 0000-03-01 in eras of 400 years, after Hinnant's `civil_from_days`.
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

impl Suppressions {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self, SuppressionError> {
        let read: Suppressions = toml::from_str(text).map_err(SuppressionError::Malformed)?;
        for entry in &read.suppress {
            if entry.reason.trim().is_empty() {
                return Err(SuppressionError::NoReason(entry.fingerprint.clone()));
            }
            if let Some(date) = entry.expires.as_ref().filter(|date| !is_date(date)) {
                return Err(SuppressionError::NotADate(date.clone()));
            }
        }
        Ok(read)
    }

    /// Marks what is suppressed, and names what no longer matches. `file` is where the entries
    /// stand, `today` a day as [`date`] gives it.
    pub fn apply(&self, report: &mut Report, file: &str, today: &str) {
        let mut used: BTreeSet<usize> = BTreeSet::new();
        for finding in &mut report.findings {
            let matching = self.suppress.iter().enumerate();
            for (number, entry) in
                matching.filter(|(_, entry)| entry.fingerprint == finding.fingerprint)
            {
                used.insert(number);
                let over = entry.expires.as_deref().is_some_and(|expires| expires < today);
                if !over && finding.suppressed.is_none() {
                    finding.suppressed = Some(Suppressed {
                        reason: entry.reason.clone(),
                        file: Some(file.to_owned()),
                        expires: entry.expires.clone(),
                    });
                }
            }
        }
        for (number, entry) in self.suppress.iter().enumerate() {
            let what = match &entry.expires {
                Some(date) if date.as_str() < today => format!("expired on {date}"),
                _ if !used.contains(&number) => "matches no finding".to_owned(),
                _ => continue,
            };
            report
                .stale_suppressions
                .push(format!("{file}: {} ({}) {what}", entry.fingerprint, entry.reason));
        }
    }
}

/// The text of a baseline: every finding that counts today, each with its headline.
pub fn baseline(report: &Report, today: &str) -> String {
    let mut text = format!(
        "# Known findings, written by foretell on {today}. They are still counted, and no longer\n\
         # fail a run. Remove an entry when its bug is fixed; foretell names those that match nothing.\n"
    );
    let mut written: BTreeSet<&str> = BTreeSet::new();
    for finding in &report.findings {
        let counts = finding.status != Status::Refuted && !finding.fingerprint.is_empty();
        if !counts || !written.insert(&finding.fingerprint) {
            continue;
        }
        let reason = match &finding.suppressed {
            Some(suppressed) => suppressed.reason.clone(),
            None => format!("known on {today}: {}", story::headline(finding)),
        };
        text += &format!(
            "\n[[suppress]]\nfingerprint = {}\nreason = {}\n",
            quoted(&finding.fingerprint),
            quoted(&reason)
        );
        if let Some(expires) = finding.suppressed.as_ref().and_then(|it| it.expires.as_ref()) {
            text += &format!("expires = {}\n", quoted(expires));
        }
    }
    text
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut result = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => result += "\\\"",
            '\\' => result += "\\\\",
            c if c.is_control() => result += &format!("\\u{:04x}", c as u32),
            c => result.push(c),
        }
    }
    result + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Finding, FindingKind};

    fn report() -> Report {
        let mut report = Report::default();
        for fingerprint in ["aa", "bb"] {
            let mut finding = Finding::new(fingerprint, FindingKind::Race, Status::Predicted);
            finding.fingerprint = fingerprint.into();
            report.findings.push(finding);
        }
        report
    }

    fn apply(text: &str, today: &str) -> Report {
        let mut report = report();
        Suppressions::parse(text).unwrap().apply(&mut report, "s.toml", today);
        report
    }

    #[test]
    fn a_suppressed_finding_is_still_there_and_no_longer_counts() {
        let report =
            apply("[[suppress]]\nfingerprint = \"aa\"\nreason = \"statistics\"\n", "2026-11-16");
        assert_eq!(report.findings.len(), 2);
        assert_eq!(report.active().count(), 1);
        assert_eq!(report.findings[0].suppressed.as_ref().unwrap().reason, "statistics");
        assert!(report.stale_suppressions.is_empty());
    }

    #[test]
    fn an_entry_holds_until_its_day_is_over_and_is_then_named() {
        let text = "[[suppress]]\nfingerprint = \"aa\"\nreason = \"r\"\nexpires = \"2026-11-16\"";
        assert_eq!(apply(text, "2026-11-16").active().count(), 1);
        let later = apply(text, "2026-11-17");
        assert_eq!(later.active().count(), 2);
        assert_eq!(later.stale_suppressions, ["s.toml: aa (r) expired on 2026-11-16"]);
    }

    #[test]
    fn an_entry_that_matches_nothing_is_named() {
        let report = apply("[[suppress]]\nfingerprint = \"zz\"\nreason = \"old\"", "2026-11-16");
        assert_eq!(report.stale_suppressions, ["s.toml: zz (old) matches no finding"]);
    }

    #[test]
    fn a_baseline_suppresses_all_that_it_was_written_from_and_nothing_else() {
        let mut old = report();
        old.findings[0].detail = "says \"hello\\\"\n".into();
        old.findings[0].suppressed = Some(Suppressed {
            reason: "a \"quoted\\ \u{7f}\nreason".into(),
            ..Suppressed::default()
        });
        let text = baseline(&old, "2026-11-16");
        let read = Suppressions::parse(&text).unwrap();
        assert_eq!(read.suppress[0].reason, "a \"quoted\\ \u{7f}\nreason");
        let mut new = report();
        let mut fresh = Finding::new("cc", FindingKind::Race, Status::Predicted);
        fresh.fingerprint = "cc".into();
        new.findings.push(fresh);
        read.apply(&mut new, "b.toml", "2026-11-17");
        let counting: Vec<&str> = new.active().map(|finding| finding.id.as_str()).collect();
        assert_eq!(counting, ["cc"]);
    }

    #[test]
    fn what_is_no_suppression_is_refused_with_its_place() {
        let error = |text: &str| Suppressions::parse(text).unwrap_err().to_string();
        assert!(error("[[suppress]]\nfingerprint = \"a\"").contains("reason"));
        assert!(error("[[suppress]]\nfingerprint = \"a\"\nreason = \" \"").contains("say why"));
        assert!(error("[[supress]]").contains("line 1"));
        let expires = "[[suppress]]\nfingerprint = \"a\"\nreason = \"r\"\nexpires = \"soon\"";
        assert!(error(expires).contains("YYYY-MM-DD"));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_794_787_200 - 1), "2026-11-15");
        assert_eq!(date(1_794_787_200), "2026-11-16");
        assert!(is_date("2026-11-16") && !is_date("2026-13-01") && !is_date("26-1-1"));
    }
}
