//! The limits of explorations that no option sets.

foretell_limits::limits! {
    /// configurations that are looked at to count the interleavings of a class of paths
    COUNTED: usize = 20_000, costs "time at the end",
        lost "the number is not said";
    /// values that are copied for that, whatever the number of threads and variables
    COPIED: usize = 300_000_000, costs "time at the end",
        lost "the number is not said";
    /// questions after which a run is a random walk
    WALK_AFTER: usize = 4, costs "later random walks",
        lost "earlier answers";
}
