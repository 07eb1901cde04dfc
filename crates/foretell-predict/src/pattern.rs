//! The five three-access patterns that are not serialisable (000 section 3, after AVIO).
//!
//! A thread accesses a variable twice in a block that should be atomic, and another thread accesses
//! it in between. Of the eight combinations of reads and writes, RRR, RRW and WRR are equivalent to
//! a serial run; the others are not.

use foretell_trace::EventId;

/// Which of the five; named by the local, the remote and the second local access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PatternKind {
    /// Two reads see different values.
    Rwr,
    /// A write overwrites one that the thread has not seen.
    Rww,
    /// A read does not see what its thread wrote.
    Wwr,
    /// Another thread sees an intermediate value.
    Wrw,
    /// A write of another thread is lost between two.
    Www,
}

impl PatternKind {
    /// All five.
    pub const ALL: [PatternKind; 5] =
        [PatternKind::Rwr, PatternKind::Rww, PatternKind::Wwr, PatternKind::Wrw, PatternKind::Www];

    /// The pattern of three accesses, `None` when they are serialisable.
    pub fn of(first_writes: bool, remote_writes: bool, second_writes: bool) -> Option<Self> {
        match (first_writes, remote_writes, second_writes) {
            (false, true, false) => Some(PatternKind::Rwr),
            (false, true, true) => Some(PatternKind::Rww),
            (true, true, false) => Some(PatternKind::Wwr),
            (true, false, true) => Some(PatternKind::Wrw),
            (true, true, true) => Some(PatternKind::Www),
            _ => None,
        }
    }

    /// Whether the local, the remote and the second local access write.
    pub fn writes(self) -> [bool; 3] {
        match self {
            PatternKind::Rwr => [false, true, false],
            PatternKind::Rww => [false, true, true],
            PatternKind::Wwr => [true, true, false],
            PatternKind::Wrw => [true, false, true],
            PatternKind::Www => [true, true, true],
        }
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            PatternKind::Rwr => "RWR",
            PatternKind::Rww => "RWW",
            PatternKind::Wwr => "WWR",
            PatternKind::Wrw => "WRW",
            PatternKind::Www => "WWW",
        }
    }
}

impl std::fmt::Display for PatternKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A potential atomicity violation `⟨t_c, t_r, t_c'⟩` (000 section 3): trace events, all of one
/// variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessPattern {
    /// First access of the thread that should not be interrupted.
    pub first: EventId,
    /// The access of another thread in between.
    pub remote: EventId,
    /// Second access of the first thread.
    pub second: EventId,
    /// Which of the five.
    pub kind: PatternKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_of_eight_combinations_are_patterns_and_names_tell_reads_from_writes() {
        let mut found = Vec::new();
        for bits in 0..8u8 {
            let writes = [bits & 4 != 0, bits & 2 != 0, bits & 1 != 0];
            if let Some(kind) = PatternKind::of(writes[0], writes[1], writes[2]) {
                assert_eq!(kind.writes(), writes);
                let name: String = writes.map(|w| if w { 'W' } else { 'R' }).iter().collect();
                assert_eq!(kind.name(), name);
                found.push(kind);
            }
        }
        found.sort();
        assert_eq!(found, PatternKind::ALL);
    }
}
