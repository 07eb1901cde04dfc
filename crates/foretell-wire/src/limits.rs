//! The limits inside the program: of the runtime, of the plugin for QEMU and of the ring, which no option sets.
//!
//! They stand here as nobody may link the runtime to look at them.

foretell_limits::limits! {
    /// times that a thread that sleeps on a futex and is to run next is woken without an event
    MOST_WAKES: u32 = 64, costs "time in runs that leave their schedule",
        lost "the run counts as one that left its schedule";
    /// events after which a thread asks again whether it may go on
    LONGEST_TURN: u32 = 1 << 16, costs "threads that are back from system calls wait longer",
        lost "nothing";
    /// scheduling points of the other threads when a thread is about to end the process
    POINTS_AT_END: u64 = 100_000, costs "time at the end of programs whose threads never end",
        lost "what threads would still have done before the end is not recorded";
    /// nanoseconds that threads in system calls have at the end of the process
    PATIENCE_AT_END: u64 = 1_000_000_000, costs "time at the end of programs that are blocked",
        lost "what they would still have done is not recorded";
    /// nanoseconds that a schedule waits for what has to come from outside the program
    PATIENCE_OUTSIDE: u64 = 10_000_000_000, costs "time in runs that leave their schedule",
        lost "the run counts as one that left its schedule";
    /// nanoseconds of processor time without an event after which a thread counts as spinning
    SPINNING: u64 = 300_000_000, costs "other threads wait longer",
        lost "the schedule of such a thread is not controlled, which is said";
    /// the same while other threads are in system calls
    SPINNING_BESIDE_SLEEPERS: u64 = 3_000_000_000, costs "other threads wait longer",
        lost "the schedule of such a thread is not controlled, which is said";
    /// records of a loop that counts as one that waits
    LONGEST_LOOP: usize = 16, costs "time at each look",
        lost "longer loops run on until the limit of scheduling points";
    /// descriptors in a list of the program
    MOST_IN_ARRAY: u64 = 1 << 16, costs "events for each call",
        lost "what is behind them is not seen";
    /// bytes of what is sent through a pipe or a socket that are compared
    SENT_COMPARED: usize = 4096, costs "time for each call",
        lost "longer messages count as different from all others";
    /// free blocks of one size from other threads that a thread keeps
    MOST_KEPT_BLOCKS: u32 = 4096, costs "memory of the program",
        lost "nothing: further blocks go back to the other thread";
    /// times that time may pass before a client makes its next step anyway
    MOST_WAITS: u32 = 50, costs "time in runs with clients",
        lost "the client comes earlier than it would have";
    /// bytes of a line in which it is shown what a client got
    LONGEST_CLIENT_LINE: usize = 4096, costs "longer lines",
        lost "the line is broken";
    /// bytes of a mapping that counts as memory of the program
    MOST_MAPPED: usize = 64 << 20, costs "time and memory for each mapping",
        lost "a larger one counts as address space: accesses after munmap are not found";
    /// threads of a binary at the same time
    MOST_THREADS_OF_BINARY: usize = 4096, costs "memory",
        lost "the run is refused, with a message";
    /// nanoseconds that the thread whose turn it is may be in a system call before another may help
    PATIENCE_FOR_CALL: u64 = 1_000_000_000, costs "time in forced runs of binaries",
        lost "the run may leave its schedule";
    /// bytes of a block of a binary that are noted to be zero
    MOST_NOTED_ZERO: u64 = 1 << 20, costs "time for each calloc",
        lost "later bytes have no known value before the first access";
    /// depth of an expression of a binary before the recorder gets it
    DEEPEST_EXPRESSION: u32 = 64, costs "memory in the program",
        lost "nothing: a part is recorded by itself";
    /// values that something which is not understood may depend on
    MOST_PARTS: usize = 32, costs "memory in the program",
        lost "the values are held fixed at once";
    /// bytes of a text in a record
    MAX_TEXT: usize = 4096, costs "a larger ring",
        lost "the text is cut";
}
