//! Our own failures: a panic anywhere becomes exit code 1, with a message, what was found until then,
//! and where to report it. Only a confirmed bug weighs more: the program has done it, whatever
//! happened to us afterwards.

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

/// Runs the whole command. A panic in any thread makes the exit code 1, unless a bug was confirmed.
pub fn guarded(command: impl FnOnce() -> Exit) -> Exit {
    std::panic::set_hook(Box::new(report));
    match catch_unwind(AssertUnwindSafe(command)) {
        Ok(exit) if !PANICKED.load(Ordering::Relaxed) => exit,
        Ok(Exit::Confirmed) => Exit::Confirmed,
        // What was missed could have been a bug.
        Ok(_) => Exit::OurFailure,
        Err(_) => without_report(),
    }
}

/// Prints what was found by a command that did not come to its report.
fn without_report() -> Exit {
    let found = progress::found_so_far();
    if !found.is_empty() {
        say!("foretell: found before the error (there is no full report):");
        found.iter().for_each(|found| say!("foretell:   {found}"));
    }
    match found.iter().any(|found| found.confirmed) {
        true => Exit::Confirmed,
        false => Exit::OurFailure,
    }
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
    use foretell_predict::FindingKind;
    use foretell_predict::progress::{Found, Progress};

    use super::*;

    #[test]
    fn a_panic_in_any_thread_is_our_failure_unless_a_bug_was_confirmed() {
        let in_a_thread = |exit: Exit| {
            guarded(move || {
                let _ = std::thread::spawn(|| panic!("a test")).join();
                exit
            })
        };
        assert_eq!(in_a_thread(Exit::NothingFound), Exit::OurFailure);
        assert_eq!(in_a_thread(Exit::Predicted), Exit::OurFailure);
        assert_eq!(in_a_thread(Exit::Confirmed), Exit::Confirmed);
        let progress = Progress::default();
        let _line = progress::Line::show(&progress);
        let found = |confirmed| {
            let about = "bank.c:46".into();
            progress.found(Found { confirmed, kind: FindingKind::Assertion, about });
        };
        found(false);
        assert_eq!(guarded(|| panic!("a test")), Exit::OurFailure);
        found(true);
        assert_eq!(guarded(|| panic!("a test")), Exit::Confirmed);
        let _ = std::panic::take_hook();
    }
}
