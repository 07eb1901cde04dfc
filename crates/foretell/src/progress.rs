//! A line on standard error that says how far the work has come: only on a terminal, and only when
//! it takes longer than a moment.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foretell_predict::progress::{Explored, Found, Phase, Progress};

/// The work that was begun last.
static CURRENT: Mutex<Option<Progress>> = Mutex::new(None);

/// What was found so far, for the case that there will be no report.
pub fn found_so_far() -> Vec<Found> {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    current.as_ref().map(Progress::found_so_far).unwrap_or_default()
}

const EVERY: Duration = Duration::from_millis(200);

/// Shows progress until it is dropped; the line is gone then.
pub struct Line {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Line {
    /// Shows it if standard error is a terminal.
    pub fn show(progress: &Progress) -> Self {
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress.clone());
        if !std::io::stderr().is_terminal() {
            return Self { running: None };
        }
        let progress = progress.clone();
        let (stop, stopped) = channel::<()>();
        let watch = move || {
            let mut begun = (Phase::Idle, Instant::now());
            let mut explored = None;
            let mut before = progress.state();
            let mut shown = false;
            let mut stderr = std::io::stderr();
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let state = progress.state();
                let (phase, done, total) = state;
                if phase != begun.0 {
                    begun = (phase, Instant::now());
                }
                // A program that is recorded may ask its user something on the same line.
                let waits = phase == Phase::Recording && done > 0 && state == before;
                before = state;
                let now = progress.exploration().filter(|_| phase != Phase::Explaining);
                let text = match now {
                    Some(now) => {
                        let (since, before) = *explored.get_or_insert((Instant::now(), now.runs));
                        let found = progress.found_so_far().len();
                        Some(exploring(
                            now,
                            now.runs.saturating_sub(before),
                            since.elapsed(),
                            found,
                        ))
                    }
                    None => text(phase, done, total, begun.1.elapsed()),
                };
                if let Some(text) = text.filter(|_| !waits) {
                    // Nobody can be told if that fails.
                    let _ = write!(stderr, "\r\x1b[K{text}");
                    let _ = stderr.flush();
                    shown = true;
                }
            }
            if shown {
                let _ = write!(stderr, "\r\x1b[K");
            }
        };
        // Without a thread there is no line, and the work is done all the same.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(watch).ok();
        Self { running: thread.map(|thread| (stop, thread)) }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// `exploring: 37 classes, 112 questions open, 240 runs, 81 a second, 2 findings`
fn exploring(now: Explored, runs: usize, time: Duration, found: usize) -> String {
    let counted = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    };
    let classes = counted(now.classes, "class", "classes");
    let open = counted(now.open, "question", "questions");
    let mut text = format!("foretell: exploring: {classes}, {open} open, ");
    text += &counted(now.runs, "run", "runs");
    let seconds = time.as_secs_f64();
    if seconds > 0.5 {
        text += &format!(", {:.0} a second", runs as f64 / seconds);
    }
    text + ", " + &counted(found, "finding", "findings")
}

/// `solving 12 of 80, 34 a second, 2 s left`
fn text(phase: Phase, done: u64, total: u64, time: Duration) -> Option<String> {
    let word = match phase {
        Phase::Idle => return None,
        Phase::Recording => "recording",
        Phase::Candidates => "looking for candidates",
        Phase::Solving => "solving",
        Phase::Forcing => "forcing",
        Phase::Exploring => "exploring",
        Phase::Explaining => "explaining",
        Phase::Verifying => "verifying",
    };
    let seconds = time.as_secs_f64();
    if phase == Phase::Recording && done > 0 {
        let mut text = format!("foretell: recording, {done} events");
        if seconds > 0.5 {
            text += &format!(", {:.0} a second", done as f64 / seconds);
        }
        return Some(text);
    }
    if total == 0 {
        return Some(format!("foretell: {word}, {seconds:.0} s"));
    }
    let mut text = format!("foretell: {word} {done} of {total}");
    if done > 0 && seconds > 0.5 {
        let rate = done as f64 / seconds;
        let left = total.saturating_sub(done) as f64 / rate;
        text += &format!(", {rate:.1} a second, {left:.0} s left");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exploration_says_what_it_has_and_how_fast_it_is() {
        let now = Explored { classes: 37, open: 112, runs: 240 };
        assert_eq!(
            exploring(now, 162, Duration::from_secs(2), 1),
            "foretell: exploring: 37 classes, 112 questions open, 240 runs, 81 a second, 1 finding"
        );
        let first = Explored { classes: 1, open: 1, runs: 1 };
        assert_eq!(
            exploring(first, 0, Duration::ZERO, 0),
            "foretell: exploring: 1 class, 1 question open, 1 run, 0 findings"
        );
    }

    #[test]
    fn rate_and_rest_are_told_once_they_are_known() {
        let after = |seconds| Duration::from_secs(seconds);
        assert_eq!(text(Phase::Idle, 0, 0, after(9)), None);
        assert_eq!(text(Phase::Recording, 0, 0, after(3)).unwrap(), "foretell: recording, 3 s");
        assert_eq!(
            text(Phase::Recording, 9_000, 0, after(3)).unwrap(),
            "foretell: recording, 9000 events, 3000 a second"
        );
        assert_eq!(text(Phase::Verifying, 0, 0, after(3)).unwrap(), "foretell: verifying, 3 s");
        assert_eq!(text(Phase::Solving, 0, 80, after(3)).unwrap(), "foretell: solving 0 of 80");
        assert_eq!(
            text(Phase::Solving, 20, 80, after(10)).unwrap(),
            "foretell: solving 20 of 80, 2.0 a second, 30 s left"
        );
    }
}
