//! The limits of what a report shows.

foretell_limits::limits! {
    /// events that all timelines of a report have together
    TIMELINE_EVENTS: usize = 50_000, costs "size of reports, and time to open them",
        lost "later timelines show the events around the violation only";
    /// events that each timeline has in any case
    FEWEST_TIMELINE_EVENTS: usize = 300, costs "size of reports",
        lost "nothing";
    /// events of context before the first that a schedule moves
    CONTEXT_EVENTS: usize = 40, costs "size of reports",
        lost "earlier events are counted, not shown";
    /// steps of the story of a finding
    STORY_STEPS: usize = 16, costs "length of the text",
        lost "steps that matter less are left out; the timeline has them";
    /// bytes of a source file that is quoted
    LARGEST_SOURCE: u64 = 16 << 20, costs "memory",
        lost "no lines of a larger file are shown";
    /// characters of a source line
    LONGEST_LINE: usize = 400, costs "size of reports",
        lost "the rest of the line";
}
