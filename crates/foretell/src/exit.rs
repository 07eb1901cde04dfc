//! The exit codes: the one place where they stand (the book's page `exit-codes.md` repeats them,
//! and a test keeps the two alike).

use foretell_report::report::Conclusion;

/// How a run of foretell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything was looked at and nothing was found.
    NothingFound,
    /// A bug was found and the program was made to do it.
    Confirmed,
    /// A bug was predicted and not (yet) forced on the program.
    Predicted,
    /// Nothing was found, but not everything could be decided or seen.
    Incomplete,
    /// The command line or an input file is wrong.
    BadInput,
    /// A fault of foretell itself.
    OurFailure,
    /// `foretell record` ends as the program did.
    OfProgram(u8),
}

impl Exit {
    /// All of them, with code and meaning.
    pub const TABLE: [(Exit, u8, &'static str); 6] = [
        (Exit::NothingFound, 0, "nothing found"),
        (Exit::Confirmed, 10, "a confirmed bug"),
        (Exit::Predicted, 11, "predicted, not confirmed"),
        (Exit::Incomplete, 12, "incomplete: budget spent, undecided, or code not seen"),
        (Exit::BadInput, 2, "usage error or bad input"),
        (Exit::OurFailure, 1, "a fault of foretell itself"),
    ];

    /// The exit with this number.
    pub fn of_code(code: u8) -> Option<Self> {
        Self::TABLE.iter().find(|(_, known, _)| *known == code).map(|(exit, ..)| *exit)
    }

    /// The number that the process returns.
    pub fn code(self) -> u8 {
        if let Exit::OfProgram(status) = self {
            return status;
        }
        Self::TABLE.iter().find(|(exit, ..)| *exit == self).map_or(1, |(_, code, _)| *code)
    }
}

impl From<Conclusion> for Exit {
    fn from(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Confirmed => Exit::Confirmed,
            Conclusion::Predicted => Exit::Predicted,
            Conclusion::Failed => Exit::OurFailure,
            Conclusion::Incomplete => Exit::Incomplete,
            Conclusion::NothingFound => Exit::NothingFound,
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The user can mend it; exit code 2.
    Input(String),
    /// We must mend it; exit code 1.
    Internal(String),
}

impl From<foretell_trace::format::ReadError> for Failure {
    fn from(error: foretell_trace::format::ReadError) -> Self {
        Failure::Input(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    /// Files that the user named are reported with their names where they are opened, and standard
    /// output never fails (see `output`).
    fn from(error: std::io::Error) -> Self {
        Failure::Input(format!("cannot write the output: {error}"))
    }
}
