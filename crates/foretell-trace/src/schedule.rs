//! Schedules: which thread takes which step when, as a text that a person can read and a replayer
//! obeys.
//!
//! ```text
//! foretell-schedule 1
//! program "./bank" "3"
//! build-id 8f1c02aa
//! input 5feceb66
//! finding A1
//! violation race
//! thread 0 "main"
//! thread 0.0 "worker#1"
//! step 0 17 read bank.c:12:5
//! step 0.0 3 write bank.c:13:9
//! next 0 18 write bank.c:13:9
//! end 2 29004a25
//! ```
//!
//! A step is named by its thread's creation path and its index in that thread, never by an address,
//! so it means the same in every run. What it does and where it stands are there for people, and
//! for the replayer to say what it expected when the program does something else, as are the names
//! of the threads (`thread` lines, which need not be there). `next` lines say
//! before which events threads stand when the schedule ends (a race, a deadlock), `violation` what
//! goes wrong there, and `runner qemu` that the program is a binary that QEMU runs. The last line has the number of steps and the CRC-32 of everything above: a cut
//! or edited schedule is refused, as is one for another build or other input ([`Schedule::check`]).

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use crate::format::text::{parse_site, print_site};
use crate::format::{Position, ReadError};
use crate::id::EventId;
use crate::sexpr::{Comments, NodeId, SyntaxError, Tree, quoted};
use crate::trace::{Site, Trace};

/// Which thread, named by who created it: `0` is the main thread, `0.2` the third thread that it
/// created, `0.2.0` the first that this one created. Stays the same from run to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CreationPath(pub Vec<u32>);

impl fmt::Display for CreationPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0")?;
        self.0.iter().try_for_each(|child| write!(f, ".{child}"))
    }
}

/// A text that is not a creation path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotACreationPath;

impl FromStr for CreationPath {
    type Err = NotACreationPath;

    fn from_str(text: &str) -> Result<Self, NotACreationPath> {
        let mut parts = text.split('.').map(str::parse::<u32>);
        match parts.next() {
            Some(Ok(0)) => {
                parts.collect::<Result<_, _>>().map(CreationPath).map_err(|_| NotACreationPath)
            }
            _ => Err(NotACreationPath),
        }
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The thread.
    pub thread: CreationPath,
    /// How many events the thread has before.
    pub index: u32,
    /// What it does: a word of the text format, see [`crate::event::Op::keyword`].
    pub operation: Box<str>,
    /// Where in the source, when known.
    pub site: Option<Site>,
}

/// An order of steps, and what it was made for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The program and its arguments.
    pub program: Vec<Box<str>>,
    /// The program's build id in hexadecimal.
    pub build_id: Option<Box<str>>,
    /// A digest of what the program read from outside, in hexadecimal.
    pub input: Option<Box<str>>,
    /// The finding that the schedule shows.
    pub finding: Option<Box<str>>,
    /// What goes wrong, in a word.
    pub violation: Option<Box<str>>,
    /// What runs the program, where that is not the processor: [`Schedule::QEMU`] or
    /// [`Schedule::QEMU_SYMBOLIC`].
    pub runner: Option<Box<str>>,
    /// What people call the threads.
    pub threads: Vec<(CreationPath, Box<str>)>,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// What threads are about to do when the steps are done.
    pub next: Vec<Step>,
}

/// Why a text is not a schedule that can be obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// A line is not what it should be.
    Malformed(ReadError),
    /// The file is of a later (or no) version.
    UnknownVersion(String),
    /// The last line is missing.
    CutOff,
    /// The last line belongs to other steps.
    Edited,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::Malformed(error) => error.fmt(f),
            ScheduleError::UnknownVersion(version) => {
                write!(f, "schedule version `{version}` is not known; this program reads version 1")
            }
            ScheduleError::CutOff => {
                f.write_str("the schedule is cut off: its `end` line is missing; predict again")
            }
            ScheduleError::Edited => f.write_str(
                "the schedule was changed after it was written: number of steps or checksum in its \
                 `end` line differ; predict again",
            ),
        }
    }
}

impl std::error::Error for ScheduleError {}

/// Why a schedule cannot be obeyed by this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What differs: `build id` or `input`.
    pub what: &'static str,
    /// What the schedule was made for.
    pub expected: Box<str>,
    /// What there is.
    pub found: Box<str>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { what, expected, found } = self;
        write!(
            f,
            "the schedule is for {what} {expected}, this is {found}; record and predict again"
        )
    }
}

impl std::error::Error for Mismatch {}

impl Step {
    /// An operation that stands for any.
    pub const ANY: &str = "any";
}

impl Schedule {
    /// The program is a binary that was not compiled for foretell.
    pub const QEMU: &str = "qemu";
    /// As [`Schedule::QEMU`]; steps are counted with what its instructions branch on and hold.
    pub const QEMU_SYMBOLIC: &str = "qemu-symbolic";

    /// A schedule of a trace's events; `next` are those that threads stand before at the end.
    pub fn of_trace(
        trace: &Trace,
        order: impl IntoIterator<Item = EventId>,
        next: impl IntoIterator<Item = EventId>,
    ) -> Self {
        let step = |id: EventId| {
            let event = trace.event(id);
            Step {
                thread: CreationPath(trace.threads[event.thread.index()].path.clone()),
                index: event.index,
                operation: event.op.keyword().into(),
                site: event.site.map(|site| trace.sites[site.index()].clone()),
            }
        };
        let steps: Vec<Step> = order.into_iter().map(step).collect();
        let next: Vec<Step> = next.into_iter().map(step).collect();
        let takes_part = |path: &[u32]| steps.iter().chain(&next).any(|one| one.thread.0 == path);
        let threads = trace.threads.iter().zip(trace.thread_names());
        let threads = threads
            .filter(|(thread, _)| takes_part(&thread.path))
            .map(|(thread, name)| (CreationPath(thread.path.clone()), name))
            .collect();
        Self {
            program: trace.metadata.command.clone(),
            build_id: trace.metadata.build_id.clone(),
            input: None,
            finding: None,
            violation: None,
            runner: None,
            threads,
            steps,
            next,
        }
    }

    /// Was the schedule made for this build and this input? What either side does not know is not
    /// compared.
    pub fn check(&self, build_id: Option<&str>, input: Option<&str>) -> Result<(), Mismatch> {
        let sides = [("build id", &self.build_id, build_id), ("input", &self.input, input)];
        for (what, expected, found) in sides {
            if let (Some(expected), Some(found)) = (expected, found)
                && **expected != *found
            {
                let (expected, found) = (expected.clone(), found.into());
                return Err(Mismatch { what, expected, found });
            }
        }
        Ok(())
    }

    /// The schedule that a text describes.
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        let mut schedule = Self::default();
        let mut at = 0;
        let mut header = false;
        while at < text.len() {
            let line_start = at;
            let malformed = |error: SyntaxError| ScheduleError::Malformed(error.locate(text));
            let tree = Tree::read_line(text, &mut at, Comments::BetweenWords).map_err(malformed)?;
            let nodes = tree.roots();
            let Some((&keyword, rest)) = nodes.split_first() else { continue };
            if !header {
                header = true;
                match (tree.source(keyword), rest) {
                    ("foretell-schedule", &[version]) if tree.source(version) == "1" => continue,
                    ("foretell-schedule", _) => {
                        let words: Vec<&str> = rest.iter().map(|&word| tree.source(word)).collect();
                        return Err(ScheduleError::UnknownVersion(words.join(" ")));
                    }
                    _ => {
                        let error = tree.error(keyword, "not a schedule");
                        return Err(malformed(
                            error.help("the first line is `foretell-schedule 1`"),
                        ));
                    }
                }
            }
            if tree.source(keyword) == "end" {
                let stated: Vec<&str> = rest.iter().map(|&word| tree.source(word)).collect();
                let above = &text[..line_start];
                let expected = [schedule.steps.len().to_string(), checksum(above)];
                if stated != expected {
                    return Err(ScheduleError::Edited);
                }
                return match text[at..].trim().is_empty() {
                    true => Ok(schedule),
                    false => Err(ScheduleError::Edited),
                };
            }
            schedule.line(&tree, keyword, rest).map_err(malformed)?;
        }
        match header {
            true => Err(ScheduleError::CutOff),
            false => {
                let error = ReadError::new(Position::None, "the schedule is empty");
                Err(ScheduleError::Malformed(error))
            }
        }
    }

    fn line(
        &mut self,
        tree: &Tree<'_>,
        keyword: NodeId,
        rest: &[NodeId],
    ) -> Result<(), SyntaxError> {
        let word = |node: NodeId| match tree.atom(node) {
            Some(atom) => Ok(Box::<str>::from(atom.name)),
            None => Err(tree.error(node, "expected a word, not a list")),
        };
        let only = || match rest {
            [only] => word(*only).map(Some),
            _ => Err(tree.error(keyword, "expected one word here")),
        };
        match tree.source(keyword) {
            "program" => {
                self.program = rest.iter().map(|&node| word(node)).collect::<Result<_, _>>()?;
            }
            "build-id" => self.build_id = only()?,
            "input" => self.input = only()?,
            "finding" => self.finding = only()?,
            "violation" => self.violation = only()?,
            "runner" => self.runner = only()?,
            "thread" => match rest {
                &[path, name] => self.threads.push((creation_path(tree, path)?, word(name)?)),
                _ => return Err(tree.error(keyword, "expected a thread and its name")),
            },
            "step" => self.steps.push(step(tree, keyword, rest)?),
            "next" => self.next.push(step(tree, keyword, rest)?),
            other => {
                return Err(tree.error(keyword, format!("unknown line `{other}`")).help(
                    "lines are program, build-id, input, finding, violation, runner, thread, step, next and end",
                ));
            }
        }
        Ok(())
    }
}

fn creation_path(tree: &Tree<'_>, thread: NodeId) -> Result<CreationPath, SyntaxError> {
    tree.source(thread).parse().map_err(|_| {
        tree.error(thread, "not a creation path").help("threads are `0`, `0.1`, `0.1.0`, ...")
    })
}

/// `THREAD INDEX OPERATION [SITE [FUNCTION]]`
fn step(tree: &Tree<'_>, keyword: NodeId, rest: &[NodeId]) -> Result<Step, SyntaxError> {
    let &[thread, index, operation, ref site @ ..] = rest else {
        return Err(tree
            .error(keyword, "a step lacks something")
            .help("write `step THREAD INDEX OPERATION FILE:LINE:COLUMN`"));
    };
    Ok(Step {
        thread: creation_path(tree, thread)?,
        index: tree
            .source(index)
            .parse()
            .map_err(|_| tree.error(index, "expected the index of the step in its thread"))?,
        operation: tree.source(operation).into(),
        site: match site {
            [] => None,
            _ => Some(parse_site(tree, site)?),
        },
    })
}

fn checksum(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from("foretell-schedule 1\n");
        if !self.program.is_empty() {
            text.push_str("program");
            for word in &self.program {
                write!(text, " {}", quoted(word, '"'))?;
            }
            text.push('\n');
        }
        let facts = [
            ("build-id", &self.build_id),
            ("input", &self.input),
            ("finding", &self.finding),
            ("violation", &self.violation),
            ("runner", &self.runner),
        ];
        for (keyword, value) in facts {
            if let Some(value) = value {
                let plain = !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric());
                let value = if plain { value.to_string() } else { quoted(value, '"') };
                writeln!(text, "{keyword} {value}")?;
            }
        }
        for (path, name) in &self.threads {
            writeln!(text, "thread {path} {}", quoted(name, '"'))?;
        }
        for (keyword, steps) in [("step", &self.steps), ("next", &self.next)] {
            for step in steps {
                write!(text, "{keyword} {} {} {}", step.thread, step.index, step.operation)?;
                match &step.site {
                    Some(site) => writeln!(text, " {}", print_site(site))?,
                    None => text.push('\n'),
                }
            }
        }
        let checksum = checksum(&text);
        writeln!(f, "{text}end {} {checksum}", self.steps.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    fn example() -> Schedule {
        let trace = text::read(
            "foretell-trace 1
             command \"./bank\" \"3 4\"
             build-id 8f1c02aa
             thread main, T1
             var x
             main read x @ bank.c:12:5 deposit
             T1 write x @ |my bank.c|:13
             main write x",
        )
        .unwrap();
        let mut schedule = Schedule::of_trace(&trace, [EventId(1), EventId(0)], [EventId(2)]);
        schedule.finding = Some("A1".into());
        schedule.input = Some("5feceb66".into());
        schedule
    }

    #[test]
    fn a_schedule_is_read_as_it_was_written() {
        let schedule = example();
        let text = schedule.to_string();
        assert_eq!(
            text,
            "foretell-schedule 1\nprogram \"./bank\" \"3 4\"\nbuild-id 8f1c02aa\ninput 5feceb66\n\
             finding A1\nthread 0 \"main\"\nthread 0.0 \"T1\"\nstep 0.0 0 write |my bank.c|:13\n\
             step 0 0 read bank.c:12:5 deposit\nnext 0 1 write\nend 2 e8ad1557\n"
        );
        assert_eq!(Schedule::parse(&text), Ok(schedule));
        let empty = Schedule::default();
        assert_eq!(Schedule::parse(&empty.to_string()), Ok(empty));
    }

    #[test]
    fn every_change_of_a_character_is_found() {
        let text = example().to_string();
        for at in 0..text.len() - 1 {
            for replacement in ["", "7", " ", "x"] {
                if &text[at..at + 1] == replacement {
                    continue;
                }
                let changed = format!("{}{replacement}{}", &text[..at], &text[at + 1..]);
                assert!(Schedule::parse(&changed).is_err(), "{changed}");
            }
            assert!(Schedule::parse(&text[..at]).is_err(), "{}", &text[..at]);
        }
    }

    #[test]
    fn another_build_or_input_is_refused() {
        let schedule = example();
        assert_eq!(schedule.check(Some("8f1c02aa"), None), Ok(()));
        let mismatch = schedule.check(Some("00"), Some("5feceb66")).unwrap_err();
        assert_eq!(
            mismatch.to_string(),
            "the schedule is for build id 8f1c02aa, this is 00; record and predict again"
        );
        assert_eq!(schedule.check(None, Some("11")).unwrap_err().what, "input");
    }

    #[test]
    fn faults_are_told_apart() {
        let error = |text: &str| Schedule::parse(text).unwrap_err();
        let message = |body: &str| error(&format!("foretell-schedule 1\n{body}\n")).to_string();
        assert_eq!(error("foretell-schedule 2\n"), ScheduleError::UnknownVersion("2".into()));
        assert_eq!(error("foretell-schedule 1\nstep 0 1 read"), ScheduleError::CutOff);
        assert_eq!(error("foretell-schedule 1\nend 0 00000000"), ScheduleError::Edited);
        assert!(message("step 1 1 read").starts_with("2:6: not a creation path"));
        assert!(message("step 0 x read").starts_with("2:8: expected the index"));
        assert!(message("step 0").starts_with("2:1: a step lacks something"));
        assert!(message("step 0 1 read bank.c").starts_with("2:15: not a source position"));
        assert!(message("thread 0").starts_with("2:1: expected a thread and its name"));
        assert!(message("jump 0").starts_with("2:1: unknown line `jump`"));
        assert!(error("hello").to_string().starts_with("1:1: not a schedule"));
        assert!(error("").to_string().contains("empty"));
    }

    #[test]
    fn creation_paths_are_read_as_they_are_written() {
        for path in ["0", "0.1", "0.0.7"] {
            assert_eq!(path.parse::<CreationPath>().unwrap().to_string(), path);
        }
        for wrong in ["", "1", "0.", "0.x", "0.4294967296"] {
            assert_eq!(wrong.parse::<CreationPath>(), Err(NotACreationPath));
        }
    }
}
