//! The limits of tests that no option sets. [`crate::session::Options`] has the others.

foretell_limits::limits! {
    /// scheduling points of a run
    MOST_POINTS: u64 = 20_000_000, costs "memory: a run's events have to fit into it",
        lost "the run is ended, and what it would have done is not covered";
    /// events of a run for each second that a test may take
    EVENTS_PER_SECOND: u64 = 20_000, costs "time: what is recorded has to be converted, checked and asked about, too",
        lost "the run is ended, and what it would have done is not covered";
    /// conflicts of the solver for a question about the recorded run
    CONFLICTS: u64 = 100_000, costs "time: of about a hundred runs",
        lost "the question is undecided; --budget sets another limit";
    /// runs that are predicted from, where a recording has no expressions
    MOST_CLASSES: usize = 16, costs "questions and runs for each",
        lost "nothing is predicted from further runs";
    /// steps of all threads that are looked at for the pair that decides a bad run
    DECISIVE_STEPS: usize = 400, costs "runs of the program",
        lost "the decisive turn is not named";
    /// events of a run that is shortened
    LONGEST_SHORTENED: usize = 200_000, costs "runs of the program, each as long",
        lost "the whole run is shown";
    /// bytes of each stream and file that are kept and compared
    MOST_OUTPUT: u64 = 16 << 20, costs "memory for each run",
        lost "output behind them is not compared";
    /// rounds of loops that wait that are looked at
    MOST_CUTS: usize = 16, costs "questions",
        lost "what is not covered then stays an open question";
    /// events of all runs that are cut short at such a round
    MOST_CUT_EVENTS: usize = 1_000_000, costs "memory: each is a copy",
        lost "what is not covered then stays an open question";
    /// values on the way of an update that are looked at for whether it was lost
    MOST_VALUES: usize = 1_000, costs "time",
        lost "the update does not count as lost";
}
