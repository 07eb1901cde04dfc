//! Which differences in the output a correct run may have.
//!
//! Two runs of a correct program may write different things: addresses, thread ids, times, the order
//! of lines, one more line of a log because a thread had to wait. Such a difference says nothing about
//! a block that nobody marked as atomic. So a forced run is held against *control runs*, in which
//! nothing is forced:
//!
//! - in *serial* runs no thread is interrupted, so every block is atomic whatever its borders are;
//!   they differ in the order of the threads;
//! - in *mixed* runs all threads take short turns.
//!
//! What a forced run wrote is evidence only if
//! - it ended with an exit status other than 0 that no serial run ended with, or
//! - a number that is the same in all serial runs is another one in a line that is otherwise the same
//!   (`130 lines` became `110 lines`), or
//! - a line that all serial runs write was replaced by one that no control run writes.
//!
//! Lines are compared as multisets, with addresses masked. Missed: a bug whose only trace is one more
//! line, one fewer, or a line that mixed runs write as well.
//!
//! Where the exit status is 0, even that is not enough for a block that nobody marked, or if a thread took
//! another path: a program may print how many of its threads were in a room at once, how often it had to
//! try again, or what it found in a cache. It is *unclear* then, which is said, unless a lost update is
//! behind it (`lost.rs`).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use foretell_record::{Policy, RunEnd};

use crate::effect::{Change, Effect, fatal};
use crate::judge::{Outcome, Verdict};
use crate::run::{Limits, Run, RunError, Runner, Written};

/// Events of a turn that is not interrupted.
pub const LONG_TURN: u32 = 10_000;
/// Serial runs besides the recorded policy's at most. Who goes first is random in each.
const SERIAL: u64 = 40;
/// So many serial runs in a row that write nothing new are enough.
const NOTHING_NEW: usize = 16;
/// Serial runs beyond those, before other output on another path is believed: no torn block is behind it
/// for all that is known, so that a serial run which was not tried is the more likely reason.
const MORE_SERIAL: u64 = 200;
/// Turns of mixed runs, in events.
const MIXED: [u32; 4] = [1, 2, 3, 7];
/// Digits from which on a decimal number is taken for an address.
const ADDRESS_DIGITS: usize = 12;
/// Hexadecimal digits from which on a number with `0x` is taken for an address.
const HEX_ADDRESS_DIGITS: usize = 5;

/// What is behind a difference in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An update was lost.
    LostUpdate,
    /// What nobody means to do: a race, a use before a definition, a block that was marked.
    Undefined,
    /// Only the borders of a block that nobody marked.
    Unmarked,
}

/// The runs that others are held against; made when they are first needed.
#[derive(Debug)]
pub struct Controls<'a> {
    runner: &'a Runner<'a>,
    recorded: &'a Run,
    base: &'a Policy,
    limits: Limits,
    made: OnceLock<Made>,
    /// More serial runs; none if the time was over.
    more: OnceLock<Option<Vec<Output>>>,
}

#[derive(Debug, Default)]
struct Made {
    serial: Vec<Output>,
    mixed: Vec<Output>,
    /// The time was over before all were made: nothing is known of what varies.
    late: bool,
}

impl<'a> Controls<'a> {
    /// About a recorded run, and how it was recorded.
    pub fn new(
        runner: &'a Runner<'a>,
        recorded: &'a Run,
        base: &'a Policy,
        limits: Limits,
    ) -> Self {
        Self { runner, recorded, base, limits, made: OnceLock::new(), more: OnceLock::new() }
    }

    /// Takes back what was made of the output of the forced run, unless it is evidence. `cause`: what is known
    /// to be behind it.
    pub fn apply(&self, verdict: &mut Verdict, forced: &Run, cause: Cause) {
        if verdict.outcome != Outcome::Confirmed(Effect::Output) {
            return;
        }
        let is_evidence = self.is_evidence(forced);
        let difference = &mut verdict.difference;
        let says_so = !matches!(forced.end, RunEnd::Exit(0));
        let is_certain = match cause {
            Cause::LostUpdate => true,
            Cause::Undefined => difference.branch.is_none(),
            Cause::Unmarked => false,
        };
        if is_evidence && (says_so || is_certain) {
            return;
        }
        verdict.is_unclear = is_evidence;
        difference.effect = match difference.branch {
            Some(_) => Effect::Path,
            None => Effect::None,
        };
        difference.change = if is_evidence { Change::UnclearOutput } else { Change::LawfulOutput };
        difference.sentence = difference.change.sentence(forced);
        verdict.outcome = match difference.effect {
            Effect::None => Outcome::Benign,
            effect => Outcome::Confirmed(effect),
        };
    }

    /// Can no correct run have written this?
    pub fn is_evidence(&self, forced: &Run) -> bool {
        // After a recorded run that failed, one that ends well shows nothing.
        let Some(forced) = Output::of(forced).filter(|_| fatal(self.recorded).is_none()) else {
            return false;
        };
        let made = self.made.get_or_init(|| self.make());
        !made.late && is_evidence(&made.serial, &made.mixed, &forced)
    }

    /// The same, after many more runs.
    pub fn is_strong_evidence(&self, forced: &Run) -> bool {
        if !self.is_evidence(forced) {
            return false;
        }
        let Some(forced) = Output::of(forced) else { return false };
        let made = self.made.get_or_init(|| self.make());
        let more = self.more.get_or_init(|| {
            let mut more: Vec<Output> = Vec::new();
            for seed in SERIAL + 1..=SERIAL + MORE_SERIAL {
                let policy = Policy::Random { seed, mean: LONG_TURN };
                let output = match self.runner.run(Vec::new(), policy, self.limits) {
                    Err(RunError::Late) => return None,
                    run => run.ok().and_then(|run| Output::of(&run)),
                };
                more.extend(output.filter(|output| !more.contains(output)));
            }
            Some(more)
        });
        let Some(more) = more else { return false };
        let serial: Vec<Output> = made.serial.iter().chain(more).cloned().collect();
        is_evidence(&serial, &made.mixed, &forced)
    }

    fn make(&self) -> Made {
        let late = Cell::new(false);
        let run = |policy| match self.runner.run(Vec::new(), policy, self.limits) {
            Err(RunError::Late) => {
                late.set(true);
                None
            }
            run => run.ok(),
        };
        let outputs = |policies: &mut dyn Iterator<Item = Policy>| -> Vec<Output> {
            policies.filter_map(run).filter_map(|run| Output::of(&run)).collect()
        };
        let orders = (1..=SERIAL).map(|seed| Policy::Random { seed, mean: LONG_TURN });
        let mut serial: Vec<Output> = Output::of(self.recorded).into_iter().collect();
        let mut nothing_new = 0;
        for policy in std::iter::once(self.base.clone()).chain(orders) {
            let Some(output) = run(policy).and_then(|run| Output::of(&run)) else { continue };
            nothing_new = if serial.contains(&output) { nothing_new + 1 } else { 0 };
            serial.push(output);
            if nothing_new >= NOTHING_NEW {
                break;
            }
        }
        let turns = MIXED.map(|quantum| Policy::RoundRobin { quantum });
        let mixed = outputs(&mut turns.into_iter());
        Made { serial, mixed, late: late.get() }
    }
}

/// What a run that ended by itself wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Output {
    status: i32,
    /// By stream or file, and by what its lines are without their numbers.
    lines: BTreeMap<(usize, String), Vec<Line>>,
}

/// The numbers of a line.
type Line = Vec<String>;

impl Output {
    fn of(run: &Run) -> Option<Self> {
        match run.end {
            RunEnd::Exit(status) => Some(Self { status, lines: lines(&run.written) }),
            _ => None,
        }
    }

    fn of_shape(&self, shape: &(usize, String)) -> &[Line] {
        self.lines.get(shape).map_or(&[], Vec::as_slice)
    }

    /// Has the other run a line of this shape that this one has not (or not so often)?
    fn lacks(&self, shape: &(usize, String), line: &Line, times: usize) -> bool {
        self.of_shape(shape).iter().filter(|known| *known == line).count() < times
    }
}

fn is_evidence(serial: &[Output], mixed: &[Output], forced: &Output) -> bool {
    // One run shows nothing about what varies.
    if serial.len() < 2 {
        return false;
    }
    if forced.status != 0 && serial.iter().all(|run| run.status != forced.status) {
        return true;
    }
    if serial.iter().any(|run| run.status != serial[0].status) || forced.status != serial[0].status
    {
        return false;
    }
    let shapes: BTreeSet<_> =
        serial.iter().chain([forced]).flat_map(|run| run.lines.keys()).collect();
    if shapes.iter().any(|shape| another_number(serial, forced, shape)) {
        return true;
    }
    // Lines that every serial run has, as often, and this one has not; and the other way round.
    let (mut missing, mut new) = (0, 0);
    for shape in shapes {
        let gone = |line: &&Line| {
            let times = serial[0].of_shape(shape).iter().filter(|other| other == line).count();
            serial.iter().all(|run| !run.lacks(shape, line, times))
                && forced.lacks(shape, line, times)
        };
        missing += usize::from(serial[0].of_shape(shape).iter().any(|line| gone(&line)));
        let unknown = serial.iter().chain(mixed).all(|run| run.of_shape(shape).is_empty());
        new += usize::from(unknown && !forced.of_shape(shape).is_empty());
    }
    missing > 0 && new > 0
}

/// In as many lines of this shape as all serial runs have, a number is another one that is the same
/// in all of them.
fn another_number(serial: &[Output], forced: &Output, shape: &(usize, String)) -> bool {
    let first = serial[0].of_shape(shape);
    let lines = forced.of_shape(shape);
    let alike = |run: &Output| run.of_shape(shape).len() == lines.len();
    if lines.is_empty() || !serial.iter().all(alike) {
        return false;
    }
    let column = |lines: &[Line], number: usize| {
        let mut column: Vec<String> = lines.iter().map(|line| line[number].clone()).collect();
        column.sort_unstable();
        column
    };
    (0..lines[0].len()).any(|number| {
        let known = column(first, number);
        serial.iter().all(|run| column(run.of_shape(shape), number) == known)
            && column(lines, number) != known
    })
}

/// The lines of everything that was written. What is not text is one line.
fn lines(written: &Written) -> BTreeMap<(usize, String), Vec<Line>> {
    let files = written.files.iter().map(|file| file.as_deref().unwrap_or_default());
    let mut all: BTreeMap<(usize, String), Vec<Line>> = BTreeMap::new();
    for (place, bytes) in [&*written.stdout, &*written.stderr].into_iter().chain(files).enumerate()
    {
        for line in String::from_utf8_lossy(bytes).lines() {
            let (shape, numbers) = split(line);
            all.entry((place, shape)).or_default().push(numbers);
        }
    }
    all
}

/// A line without its numbers, and those. Addresses belong to neither.
fn split(line: &str) -> (String, Line) {
    let mut shape = String::with_capacity(line.len());
    let mut numbers = Vec::new();
    let mut rest = line;
    while let Some(next) = rest.chars().next() {
        let hex = rest
            .strip_prefix("0x")
            .map_or(0, |digits| digits.bytes().take_while(u8::is_ascii_hexdigit).count());
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let taken = match (hex, digits) {
            (HEX_ADDRESS_DIGITS.., _) => hex + 2,
            (1.., _) => {
                numbers.push(rest[..hex + 2].to_owned());
                hex + 2
            }
            (0, 0) => {
                shape.push(next);
                rest = &rest[next.len_utf8()..];
                continue;
            }
            (0, ADDRESS_DIGITS..) => digits,
            (0, _) => {
                numbers.push(rest[..digits].to_owned());
                digits
            }
        };
        shape.push('\u{0}');
        rest = &rest[taken..];
    }
    (shape, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> Output {
        let (status, stdout) = match text.split_once('!') {
            Some((status, stdout)) => (status.parse().expect("a status"), stdout),
            None => (0, text),
        };
        let written = Written { stdout: stdout.replace(';', "\n").into(), ..Written::default() };
        Output { status, lines: lines(&written) }
    }

    /// Serial runs, mixed runs, the forced run; lines end with `;`, and a status comes before `!`.
    fn evidence(serial: &[&str], mixed: &[&str], forced: &str) -> bool {
        let all =
            |texts: &[&str]| -> Vec<Output> { texts.iter().map(|text| output(text)).collect() };
        is_evidence(&all(serial), &all(mixed), &output(forced))
    }

    #[test]
    fn what_a_correct_run_may_write_is_no_evidence() {
        for (serial, mixed, forced, why) in [
            (["go;", "go;"], "go;", "go;waiting;", "one more line"),
            (["go;done;", "go;done;"], "go;done;", "go;", "one fewer"),
            (["a;b;", "b;a;"], "a;b;", "b;a;", "another order"),
            (["at 0x7ffd12340;", "at 0x7ffd12340;"], "", "at 0x7ffd99990;", "an address"),
            (
                ["id 140737349920512;", "id 140737349920512;"],
                "",
                "id 140737341527808;",
                "a thread id",
            ),
            (["took 12 ms;", "took 14 ms;"], "", "took 99 ms;", "a time"),
            (["pid 311;", "pid 312;"], "", "pid 313;", "a process id"),
            (["first 1;", "first 2;"], "", "first 3;", "who comes first"),
            (["fast;fast;", "fast;fast;"], "fast;slow;", "fast;slow;", "another path"),
            (["1!x;", "1!x;"], "", "0!y;", "the recorded run failed, this one does not"),
            (["1!", "2!"], "", "2!", "a status that varies"),
            (["x 1;", "x 1;"], "", "x 1;x 1;", "a line twice"),
        ] {
            assert!(!evidence(&serial, &[mixed], forced), "{why}");
        }
    }

    #[test]
    fn what_no_correct_run_can_write_is_evidence() {
        for (serial, mixed, forced, why) in [
            (["130;", "130;"], "110;", "110;", "a lost update, which short turns show too"),
            (["2 lines, 38 bytes;", "2 lines, 38 bytes;"], "", "2 lines, 20 bytes;", "a number"),
            (["log;n=2;", "log;log;n=2;"], "", "log;n=1;", "a number below a log that varies"),
            (["0!", "0!"], "", "3!", "an exit status"),
            (["fine;", "fine;"], "fine;", "lost;", "another line instead"),
            (["sum 3 of 1;", "sum 3 of 2;"], "", "sum 4 of 1;", "the number that does not vary"),
        ] {
            assert!(evidence(&serial, &[mixed], forced), "{why}");
        }
    }

    #[test]
    fn one_run_shows_nothing_about_what_varies() {
        assert!(!evidence(&["130;"], &[], "110;"));
    }
}
