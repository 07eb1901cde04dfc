//! Is the bug gone from the patched program?
//!
//! A repair that removes every bad interleaving of the recorded events need not do so in the program:
//! the patch may be placed otherwise than it was meant, other paths may fail, and a deadlock may be
//! new. So where foretell has built the program itself, from one source file, the patched text is
//! built and tested too, and only then is the repair called verified.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use foretell_force::effect::Effect;
use foretell_force::session::{Options, Session, Tested, test};
use foretell_predict::progress::Progress;
use foretell_predict::{Finding, FindingKind};
use foretell_trace::{SiteId, Trace};

use crate::cli::TestArguments;
use crate::commands::explained::Repair;
use crate::commands::program::prepare_text;
use crate::exit::Failure;

/// Patched texts that are built and tested at most.
const MOST_TRIALS: usize = 4;

/// The patched programs that were tried so far.
pub struct Trials<'a> {
    arguments: &'a TestArguments,
    options: &'a Options,
    /// When the whole test began.
    started: Instant,
    /// By patched text: the session, or why there is none.
    sessions: HashMap<String, Result<Session, String>>,
}

impl<'a> Trials<'a> {
    /// Of a test with these options.
    pub fn new(arguments: &'a TestArguments, options: &'a Options, started: Instant) -> Self {
        Self { arguments, options, started, sessions: HashMap::new() }
    }

    /// Tests the program with the repair, and says in it what came of that. A patch that leaves the
    /// finding, or makes a program hang that did not, is taken away.
    pub fn check(&mut self, finding: &Tested, before: &Session, repair: &mut Repair) {
        let [file] = &*repair.files else { return };
        let typed = Path::new(&self.arguments.program[0]);
        if !same_file(&file.path, typed) {
            return;
        }
        if !self.sessions.contains_key(&file.new) {
            let session = self.session(&file.new);
            self.sessions.insert(file.new.clone(), session);
        }
        let fix = &mut repair.fix;
        match &self.sessions[&file.new] {
            Err(why) => fix.reason = Some(format!("the patched program was not tested: {why}")),
            Ok(after) => match what_is_left(finding, before, after) {
                Left::Nothing => (fix.verified, fix.reason) = (true, None),
                Left::Undecided => {
                    let why = "testing the patched program decided nothing within the limits";
                    fix.reason = Some(why.to_owned());
                }
                Left::Bug(what) => {
                    (fix.on_trace, fix.diff) = (false, None);
                    fix.reason = Some(format!("the patched program was tested, and {what}"));
                }
            },
        }
    }

    /// What is left of the time for the whole test.
    pub fn time_left(&self) -> Duration {
        self.options.time.saturating_sub(self.started.elapsed())
    }

    fn session(&self, text: &str) -> Result<Session, String> {
        let left = self.time_left();
        if left < Duration::from_secs(1) {
            return Err("the time limit was reached".to_owned());
        }
        if self.sessions.len() >= MOST_TRIALS {
            return Err(format!("{MOST_TRIALS} other patches were tested already"));
        }
        let prepared = prepare_text(&self.arguments.program, &self.arguments.run, text)
            .map_err(|failure| match failure {
                Failure::Input(why) | Failure::Internal(why) => why,
            })?
            .ok_or("it was not built from one source file")?;
        let mut options = self.options.clone();
        options.time = left / 2;
        (options.store, options.part) = (None, None);
        options.predict.progress = Progress::default();
        test(&prepared.program, &options).map_err(|error| error.to_string())
    }
}

enum Left {
    Nothing,
    Undecided,
    Bug(String),
}

fn what_is_left(finding: &Tested, before: &Session, after: &Session) -> Left {
    let wanted = About::new(&before.bases[finding.base], &finding.finding);
    let same = |tested: &&Tested| About::new(&after.bases[tested.base], &tested.finding) == wanted;
    let hangs = |session: &Session| {
        let hang =
            |tested: &Tested| tested.counts() && tested.verdict.difference.effect == Effect::Hang;
        session.tested.iter().any(hang)
    };
    if after.tested.iter().filter(same).any(Tested::counts) {
        return Left::Bug("the bug is still there".to_owned());
    }
    if hangs(after) && !hangs(before) {
        return Left::Bug("it can hang".to_owned());
    }
    let open = after.tested.iter().filter(same).any(|tested| tested.verdict.is_open())
        || after
            .open
            .iter()
            .any(|open| About::new(&after.bases[open.base], &open.finding) == wanted);
    match open {
        true => Left::Undecided,
        false => Left::Nothing,
    }
}

/// What makes two findings of different texts the same: the kind, the functions and the variables.
/// Lines are others in a patched text.
#[derive(PartialEq, Eq)]
struct About {
    kind: FindingKind,
    /// Function and variable of each access.
    places: BTreeSet<[Option<Box<str>>; 2]>,
}

impl About {
    fn new(trace: &Trace, finding: &Finding) -> Self {
        // Who brings it about that an assertion fails does not matter.
        let matters = |op: &str| finding.kind != FindingKind::Assertion || op == "assert";
        let accesses = finding.accesses.iter().filter(|access| matters(access.op));
        let function = |site: SiteId| trace.sites[site.index()].function.clone();
        let places =
            accesses.map(|access| [access.site.map(function), access.variable.clone()]).collect();
        Self { kind: finding.kind, places }
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
