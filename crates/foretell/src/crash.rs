//! Our own failures: a panic anywhere becomes exit code 1, with a message, what was found until then,
//! and where to report it.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use foretell_guard::say;

use crate::exit::Exit;
use crate::progress;

/// What to do about an internal error.
pub const WHERE_TO_REPORT: &str = "please report it to the project's issue tracker, with the input \
                                   and the output of `foretell --version`";

/// Some thread panicked.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Runs the whole command. A panic in any thread makes the exit code 1, whatever else came out.
pub fn guarded(command: impl FnOnce() -> Exit) -> Exit {
    std::panic::set_hook(Box::new(report));
    let exit = catch_unwind(AssertUnwindSafe(command));
    if !PANICKED.load(Ordering::Relaxed) {
        return exit.unwrap_or(Exit::OurFailure);
    }
    let found = progress::found_so_far();
    if exit.is_err() && !found.is_empty() {
        say!("foretell: found before that, and not reported any more:");
        found.iter().for_each(|line| say!("foretell:   {line}"));
    }
    Exit::OurFailure
}

fn report(panic: &PanicHookInfo<'_>) {
    PANICKED.store(true, Ordering::Relaxed);
    let said = panic.payload_as_str().unwrap_or("a panic without a message");
    let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
    let place = place.unwrap_or_default();
    say!("foretell: internal error: {said}{place}; {WHERE_TO_REPORT}");
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        say!("{trace}");
    }
}

#[cfg(test)]
mod tests {
    use foretell_predict::progress::Progress;

    use super::*;

    #[test]
    fn a_panic_in_any_thread_is_our_failure_and_keeps_what_was_found() {
        let progress = Progress::default();
        progress.found("confirmed[assertion]: bank.c:46".into());
        let _line = progress::Line::show(&progress);
        assert_eq!(guarded(|| panic!("a test")), Exit::OurFailure);
        assert_eq!(progress::found_so_far(), ["confirmed[assertion]: bank.c:46"]);
        let in_a_thread = guarded(|| {
            let _ = std::thread::spawn(|| panic!("another test")).join();
            Exit::NothingFound
        });
        assert_eq!(in_a_thread, Exit::OurFailure, "what was missed could have been a bug");
        let _ = std::panic::take_hook();
    }
}
