//! What a run depends on that the scheduler does not control, as data: a [`Kind::Outside`] record
//! names one of these causes, the thread, the call and the place. Sentences are made of it where a
//! person reads them.
//!
//! [`Kind::Outside`]: crate::Kind::Outside

/// In the flags of a record: nobody could run, and this might still have woken a thread. It counts
/// only if the run was ended while it waited.
pub const AWAITED: u32 = 1;

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// The causes (closed list, the JSON contract's `cause`). What `number` and `text` of the
        /// record are depends on the cause.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {
            $($(#[$doc])* $name = $code,)*
        }

        impl Cause {
            /// All of them.
            pub const ALL: &[Cause] = &[$(Cause::$name),*];

            /// From the number in a record.
            pub fn from_code(code: u8) -> Option<Cause> {
                match code {
                    $($code => Some(Cause::$name),)*
                    _ => None,
                }
            }

            /// The name in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Cause::$name => $text,)*
                }
            }
        }
    };
}

causes! {
    /// The thread was blocked in a system call that is not wrapped, while it had the turn. Number:
    /// of the system call.
    BlockedCall = 1, "blocked-call";
    /// The thread ran for long without an event, while it had the turn.
    Spinning = 2, "spinning";
    /// The call was made outside the scheduler. Text: the function.
    PassedCall = 3, "passed-call";
    /// A signal arrived from a timer or another process. Number: the signal.
    Signal = 4, "signal";
    /// A handler of the program is installed. Number: the signal.
    Handler = 5, "handler";
    /// An interval timer (`alarm`, `setitimer`) is running. Number: which.
    Alarm = 6, "alarm";
    /// A POSIX timer (`timer_create`) is running, or fired.
    Timer = 7, "timer";
    /// Input or output of `aio` is under way, or was.
    AsynchronousIo = 8, "aio";
    /// A child process lives, or was started. Number: its id, if known. Text: the function.
    Process = 9, "process";
    /// The object is shared with other processes. Text: what it is.
    SharedObject = 10, "shared-object";
    /// The process has a task that is no thread of the program. Number: its id.
    Task = 11, "task";
    /// The program is replaced by another one. Text: its file.
    Image = 12, "exec";
    /// A thread was cancelled asynchronously; it ended at its next call.
    AsynchronousCancellation = 13, "asynchronous-cancellation";
    /// A runtime library synchronises threads by its own means. Text: which.
    Library = 14, "library";
    /// The thread was in a system call when the run was ended. Number: of the system call.
    StillInCall = 15, "still-in-call";
    /// The recording reached its limit of size. Number: the limit in bytes.
    SizeLimit = 16, "size-limit";
    /// Threads were still busy when the scheduling points were used up, and another one slept.
    BusyBesideSleepers = 17, "busy";
    /// A call that may time out, or fail because it does not wait, came out one way, and the trace does
    /// not say that it could come out the other. Text: the function.
    HeldOutcome = 18, "held-outcome";
    /// A value that differs from run to run and is not replayed was used. Text: where it comes from.
    Varying = 19, "varying-input";
    /// Inline assembly accesses memory or makes system calls by itself. Text: which.
    Assembler = 20, "assembler";
    /// A thread was interrupted by a handler of a signal that another one sent: it could have been
    /// anywhere else. Number: the signal.
    Interruption = 21, "interruption";
    /// A function that is not instrumented was given memory of the program, or may change what belongs to the
    /// process. Text: which, and its file, with a tabulator between them.
    Foreign = 22, "foreign";
    /// The content of a file was accessed in more than one way, one of which is its memory. Text: which.
    MappedFile = 23, "mapped-file";
    /// A file was read that functions for output (`fprintf`) had written: what they were given may be something
    /// else in another interleaving.
    PrintedFile = 24, "printed-file";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_survive_their_numbers() {
        for &cause in Cause::ALL {
            assert_eq!(Cause::from_code(cause as u8), Some(cause));
        }
        assert_eq!(Cause::from_code(0), None);
    }
}
