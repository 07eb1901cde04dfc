//! The limits of `foretell verify` that no option sets.

foretell_limits::limits! {
    /// instructions of one step
    LONGEST_STEP: usize = 20_000, costs "time between two states",
        lost "nothing: the thread goes on in the next step";
    /// calls inside calls
    DEEPEST_CALLS: usize = 200, costs "memory for each state",
        lost "the program is refused";
    /// local variables of one call
    MOST_LOCALS: usize = 1000, costs "memory for each state",
        lost "the program is refused";
    /// threads at the same time
    MOST_THREADS: usize = 32, costs "states, exponentially",
        lost "the program is refused";
    /// facts about inputs that a state may have
    MOST_FACTS: usize = 200, costs "time for each question to Z3",
        lost "the answer is unknown";
    /// values of a term that are tried one by one
    MOST_VALUES: usize = 64, costs "states",
        lost "the answer is unknown";
    /// bits of inputs of which all values are tried without Z3
    FEW_BITS: u32 = 8, costs "time",
        lost "nothing: Z3 is asked";
    /// bits of inputs of which all values are tried where Z3 gives up
    SOME_BITS: u32 = 16, costs "time",
        lost "the answer is unknown";
    /// resources of Z3 for a question about inputs
    INPUT_RESOURCES: u64 = 20_000_000, costs "time",
        lost "the answer is unknown";
    /// resources of Z3 for a question about predicates
    RESOURCES: u64 = 20_000_000, costs "time",
        lost "the answer is unknown";
    /// states of a certificate that are checked
    CHECKED_STATES: usize = 200_000, costs "time and memory",
        lost "the certificate is not accepted";
    /// instructions between two steps of a certificate
    CHECKED_INSTRUCTIONS: usize = 20_000, costs "time",
        lost "the certificate is not accepted";
    /// calls inside calls of a certificate
    CHECKED_CALLS: usize = 100, costs "memory",
        lost "the certificate is not accepted";
    /// bytes of one object of a certificate
    CHECKED_BYTES: u64 = 1 << 20, costs "memory",
        lost "the certificate is not accepted";
    /// nesting of guarded commands
    DEEPEST_COMMANDS: usize = 200, costs "stack",
        lost "the program is refused";
    /// nesting of types and constants in LLVM IR
    DEEPEST_TYPES: usize = 64, costs "stack",
        lost "the program is refused";
    /// bytes of a type
    LARGEST_TYPE: u64 = 1 << 20, costs "memory for each state",
        lost "the program is refused";
    /// atoms that a predicate may be made of, with their negations
    POOL: usize = 360, costs "time",
        lost "predicates of further atoms are not found";
    /// traces that are refuted together, with the counterexample
    SAMPLES: usize = 3, costs "larger questions to Z3",
        lost "more rounds";
    /// traces of a neighbourhood that are refuted before the whole program is looked at again
    NEIGHBOURS: usize = 40, costs "time in one neighbourhood",
        lost "more rounds";
    /// events by which a counterexample is continued
    RUN_ON: usize = 60, costs "time",
        lost "more rounds";
    /// points of a neighbourhood that are looked at for a trace that remains
    LATTICE: usize = 4_000, costs "time",
        lost "more rounds";
    /// events of a thread that runs alone while a counterexample is forced
    LONGEST_TURN: u32 = 50_000, costs "time for each run",
        lost "the counterexample is not confirmed";
    /// scheduling points of a run that forces a counterexample
    POINTS: u64 = 1_000_000, costs "time for each run",
        lost "the counterexample is not confirmed";
    /// bytes that a program may allocate at once
    LARGEST_ALLOCATION: u64 = 1 << 20, costs "memory for each state",
        lost "the program is refused";
}
