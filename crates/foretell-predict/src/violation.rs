//! What a forced run has to show so that a finding is confirmed: a word in the schedule file.

use std::str::FromStr;

use crate::finding::Finding;

/// What goes wrong at the end of a schedule; a word in the schedule file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Violation {
    /// An access at which the program faults. It is the event that the thread stands before.
    Fault,
    /// An access of memory that was freed.
    UseAfterFree,
    /// An access beyond the end of a block.
    Overrun,
    /// A failing assertion.
    Assertion,
    /// Threads that wait for each other or for nobody.
    Deadlock,
    /// Two conflicting accesses, one right after the other.
    Race,
    /// As `Race`, in a binary: whether the source has atomic accesses there, machine code does not tell.
    MachineRace,
    /// A block that the user marked as atomic is torn.
    MarkedBlock,
    /// A block that should be atomic by our own guess is torn.
    InferredBlock,
    /// A use before the definition.
    Order,
    /// A lock or condition is misused.
    Misuse,
    /// A read sees another value than it did: the begin of another path.
    OtherPath,
}

impl Violation {
    const ALL: [(Violation, &'static str); 12] = [
        (Violation::Fault, "fault"),
        (Violation::UseAfterFree, "use-after-free"),
        (Violation::Overrun, "overrun"),
        (Violation::Assertion, "assertion"),
        (Violation::Deadlock, "deadlock"),
        (Violation::Race, "race"),
        (Violation::MachineRace, "machine-race"),
        (Violation::MarkedBlock, "marked-block"),
        (Violation::InferredBlock, "inferred-block"),
        (Violation::Order, "order"),
        (Violation::Misuse, "misuse"),
        (Violation::OtherPath, "other-path"),
    ];

    /// What a finding shows. `marked`: its blocks were marked by the user.
    pub fn of(finding: &Finding, marked: bool) -> Self {
        finding.kind.violation(&finding.accesses, marked)
    }

    /// The word in the schedule file.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(violation, _)| *violation == self).map_or("", |(_, name)| name)
    }

    /// The events that the threads stand before at the end have to happen too.
    pub fn forces_next(self) -> bool {
        matches!(self, Violation::Fault | Violation::Race | Violation::MachineRace)
    }
}

impl FromStr for Violation {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(_, name)| *name == word);
        known.map(|(violation, _)| *violation).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("unknown violation `{word}`; known are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_violations_are_read_back() {
        for (violation, name) in Violation::ALL {
            assert_eq!(violation.name(), name);
            assert_eq!(name.parse(), Ok(violation));
        }
        assert!("torn".parse::<Violation>().is_err());
    }
}
