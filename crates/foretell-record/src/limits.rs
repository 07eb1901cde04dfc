//! The limits of recordings that no option sets. [`crate::RecordOptions`] has the others.

foretell_limits::limits! {
    /// bytes of a thread's window of a log of synchronisation that are read
    LARGEST_WINDOW: u64 = 1 << 26, costs "memory",
        lost "a larger one is not read: the program itself wrote into it";
    /// branches of a run that were not predicted and are kept
    MOST_MISPREDICTIONS: usize = 1 << 22, costs "memory for each run",
        lost "the path of the run is not known behind them";
    /// functions that are not instrumented and are named one by one
    MOST_FUNCTIONS: usize = 2, costs "longer reports",
        lost "their number is said, and `foretell doctor` names them";
    /// bytes of a recording, unless --size-limit says otherwise
    SIZE_LIMIT: u64 = 4 << 30, costs "disk and memory",
        lost "the run is ended there";
    /// bytes of a new block that are known to be zero
    MOST_ZEROS: u64 = 1 << 20, costs "memory",
        lost "later bytes have no known value before the first access";
    /// names of data that a log takes along
    MOST_NAMES: usize = 1 << 16, costs "a larger log",
        lost "further data is called by its address";
    /// bytes that become other memory at once
    MOST_RENEWED: u64 = 1 << 28, costs "time",
        lost "what is behind them counts as the same memory as before";
    /// bytes of arguments and environment that are brought to a fixed size
    LARGEST_ENVIRONMENT: usize = 1 << 20, costs "stack: the kernel takes no more than a quarter of it",
        lost "stacks may begin elsewhere in the next run";
}
