//! The limits of prediction that no option sets. [`crate::Options`] has the others.

foretell_limits::limits! {
    /// instances of one question
    MOST_INSTANCES: usize = 1 << 16, costs "memory and questions to the solver",
        lost "further instances are not examined, which is said";
    /// instances of all questions, besides those that are asked about first
    MOST_KEPT: usize = 1 << 20, costs "memory",
        lost "further instances are not examined, which is said";
    /// instances of one question that are asked about exactly at once
    INSTANCES_AT_ONCE: usize = 256, costs "larger formulas",
        lost "nothing: the others are asked about afterwards";
    /// rounds in which a question's further instances are asked about
    MOST_ROUNDS: usize = 24, costs "questions to the solver",
        lost "further instances are not examined, which is said";
    /// accesses of one kind that are paired with those of another thread at least, for a race
    PAIRED_ACCESSES: usize = 16, costs "time, with the square",
        lost "pairs that are further apart are counted as not examined";
    /// locks in a cycle
    LONGEST_CYCLE: usize = 1_024, costs "stack: the search goes as deep",
        lost "longer cycles are not found, which is said";
    /// cycles of locks that are looked at
    MOST_CYCLES: usize = 4_096, costs "time",
        lost "further cycles are not found, which is said";
    /// instances of one cycle of locks
    MOST_CYCLE_INSTANCES: usize = 1 << 10, costs "questions to the solver",
        lost "further instances are not examined, which is said";
    /// acquires of a lock at one code location with the same locks held
    MOST_WISHES: usize = 4_096, costs "time for each cycle",
        lost "further cycles may not be found, which is said";
    /// lock states between two accesses that the lockset filter looks at
    MOST_LOCK_STATES: usize = 4_096, costs "time",
        lost "nothing: the filter lets the question pass";
    /// pairs of code locations that are looked at for effects of store buffers
    MOST_PAIRS: usize = 256, costs "time, with the square of the trace",
        lost "a delayed store may be left unsaid";
    /// ways of one question about another path
    MOST_WAYS: usize = 4_096, costs "memory and questions to the solver",
        lost "further ways to the same place are not tried";
    /// questions about other paths, for each that is reported
    QUESTIONS_PER_DIVERGENCE: usize = 8, costs "questions to the solver",
        lost "further places are not examined, which is said";
    /// conflicts of the solver for a question about another path
    DIVERGENCE_CONFLICTS: u64 = 20_000, costs "time",
        lost "the question is undecided";
    /// findings that are kept for a run that is ended early
    MOST_FOUND: usize = 1_000, costs "memory",
        lost "further findings are not listed if foretell is ended";
    /// snapshots of the planner's state
    MOST_SNAPSHOTS: usize = 64, costs "memory",
        lost "nothing: more of the run is repeated";
    /// events between two snapshots
    SNAPSHOT_EVENTS: usize = 4_096, costs "repeated work",
        lost "nothing";
    /// threads of a trace, for the planner
    MOST_PLANNER_THREADS: usize = 128, costs "memory of each state",
        lost "the planner refuses the trace; the solver has no such limit";
    /// numbers in the planner's table of what is necessary
    MOST_NECESSARY: usize = 1 << 26, costs "memory",
        lost "nothing: the planner searches without the table";
    /// states of a goal in temporal logic
    MOST_GOAL_STATES: usize = 4_096, costs "time",
        lost "the goal is refused";
    /// `next(...)` in a goal
    MOST_NEXT: usize = 4, costs "states, with two to the power of it",
        lost "the goal is refused";
    /// nesting of a goal
    DEEPEST_GOAL: usize = 200, costs "stack",
        lost "the goal is refused";
    /// threads that one broadcast wakes, in PDDL
    MOST_WOKEN: usize = 4, costs "actions, with two to the power of it",
        lost "the goal cannot be written as PDDL";
    /// seconds that a foreign planner has
    PLANNER_SECONDS: u64 = 300, costs "time",
        lost "the planner is ended, and its answer is an error";
    /// bytes that a foreign planner may print
    MOST_PLANNER_OUTPUT: usize = 1 << 26, costs "memory",
        lost "the planner is ended, and its answer is an error";
}
