//! The limits of explanations that no option sets. [`crate::Options`] has the others.

foretell_limits::limits! {
    /// events of a trace that is explained as a whole
    LARGEST_WHOLE: usize = 5_000, costs "time and memory, more than linear",
        lost "a longer trace is explained in windows around the finding";
    /// states that are visited for one question whether a use can come before its definition
    DEFINE_USE_STATES: u64 = 200_000, costs "time",
        lost "that summary is left out";
    /// instances of a finding that are looked at for an explanation
    MOST_INSTANCES: usize = 6, costs "time",
        lost "the explanation is about these instances only";
    /// clauses of a formula that are shown
    CLAUSES_SHOWN: usize = 40, costs "length of the text",
        lost "a longer formula is shown by lines only";
}
