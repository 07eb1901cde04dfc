//! From one run to every behaviour.
//!
//! A concurrent trace program stands for every interleaving in which each thread takes the same
//! choices, and the solver decides all of them at once. So what is enumerated here is not
//! interleavings but **classes of paths**: for each thread the sequence of its choices.
//!
//! - A *choice* is whatever a thread's later events depend on and the trace holds fixed: the outcome of
//!   a branch, an address that was computed from what was read, the outcome of a try or of a wait with a
//!   time limit.
//! - A *step* is an event together with all choices that follow it up to the thread's next event: who
//!   has read a value has also decided by it. Prefixes consist of whole steps.
//! - A *deviation* of a class at a choice of thread t is a feasible prefix in which t stands right
//!   before that choice and it comes out differently.
//! - A class *covers* a prefix if each thread's steps in the prefix are the first steps of that thread
//!   in the class.
//!
//! [`explore`] asks of each choice of each known class for a deviation that no known class covers, runs
//! what it finds, and adds the class of that run, until every question is answered with no.
//!
//! **Covering is one clause.** A class D can only cover the prefix if its t has the same choices up to
//! e *and* the outcome that is asked for; and then only as long as no other thread u makes a step that
//! D's u does not make. So the clause is: some u has taken the first step in which C and D differ.
//! Where the difference is a choice, that is the step **before** the choice, and C's outcome is demanded
//! from that same step on. Both must hang on that same step: two threads that each decide, by what they
//! read, to wait for the other deadlock only together, and neither has a step after its choice.
//!
//! **Why it is complete.** Take any execution E, with every choice right after the step before it. Let D
//! be a known class that covers the longest prefix of E. If that is not all of E, the next step of E is
//! by a thread t that has done the same in D so far. Either D's t is cut there (its run ended), which is
//! asked about as well; or D's t took it, and a choice after it comes out differently: a deviation. No
//! known class covers the prefix with that step, or D would not cover the longest. So some question was
//! not answered with no.
//!
//! **Loops that wait.** A round of a loop that is followed by another and leaves nothing behind can be left
//! out of any execution ([`foretell_trace::waiting`]), so it is enough to cover executions without such
//! rounds: that the branch by which a round leaves the loop comes out differently is not asked, unless a
//! read-modify-write of the round could then leave something behind. A prefix may contain the begin of a
//! round that then does not leave. Its run has that round left out, and its class may be known; then the
//! run is also taken as one in which the thread never went on (a *cut*), which covers the prefix. Of such a
//! thread it is asked whether its last access could have come out so that it leaves. That a thread goes
//! round for ever is a property, decided with what it would read at the end of a prefix. A round that takes locks
//! and gives them back is left out as well, and so is a try by which it decides. Only who tries such a lock elsewhere
//! can tell that it was held: where a lock is taken in rounds and tried elsewhere, in whatever classes, that is a doubt.
//!
//! **What must hold for the claim** is checked, and what does not hold is a [`Doubt`]: nothing but
//! scheduling differs between runs, a forced prefix does what was forced, every question is decided, a
//! thread that a failure has cut off is followed further, and nothing times out or fails to wait but
//! what is a choice.
//!
//! **Threads that were cut off.** What such a thread stands before is what it did next in another class
//! (`pending.rs`), and it is asked for a prefix in which that is possible. As long as no class says so, it is
//! asked for any prefix, so no is a no here as well; a run in which the thread then has to wait shows
//! nothing, and the question stays unsettled. It is asked again when no other question is left and no class
//! comes late any more; what no class says something about even then is a doubt.
//!
//! **What is asked first.** A place in the code at which a thread decides is met again and again, in loops, in
//! threads that do the same and in every class. What the other outcome leads to is mostly the same, so
//! each place is probed once before any is probed again, in whatever class it is met; then four times,
//! sixteen times, and so on. A class is done when every question about it is answered with no, so that the
//! order decides only when a behaviour is seen, not whether.
//!
//! **Random walks.** Where more questions are open than [`Limits::walks_from`], every fifth run is one at
//! random. A class that is found so is a class like any other, and nothing is concluded from what
//! is not found: what is complete without walks is complete with them.
//!
//! **Fewer questions.** A choice that no other thread can have an influence on is not asked about
//! ([`foretell_predict::influence`]); nor is one of C for which a class that is done has the thread's
//! choices before it and all that C's other threads do: every prefix that would be asked for was asked for
//! there.
//!
//! **Cheaper questions.** A choice on a sum of what was added under a lock is settled by counting
//! ([`foretell_predict::counters`]), without a solver. What all questions about a class have in common is encoded once
//! (`question.rs`), and the first question of a visit is whether any of its choices can come out
//! differently: no answers all of them. Of the clauses of the known classes only those are given from which
//! the others follow. A thread that has taken a step has taken all before it; so where another class has at
//! least as many steps of every thread in common with C, its clause implies that of the one with fewer.
//!
//! **Beside it.** [`Program::found`] may decide the properties of a class later, in other threads: nothing
//! here depends on them but further runs, which it may give with a later class, or when no question is left
//! ([`Program::found_late`]). Then the order in which classes are found depends on timing. What is covered
//! does not: a class that came to its end is a path of every thread that some execution takes to its end, and
//! no other class covers that execution; so a complete exploration has all of them, and no others.

mod class;
pub mod limits;
mod outcome;
mod part;
mod pending;
mod question;

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

use foretell_model::count::interleavings;
use foretell_solve::Budget;
use foretell_trace::schedule::{Schedule, Step};
use foretell_trace::{EventId, Op, Trace};

use class::{Class, Kept, Label, Labels, Paths};
pub use outcome::{Doubt, Exploration};
pub use part::Part;
use part::Region;
use pending::Pending;
use question::{Answer, Asked, Choice, Place, Questions, Shared};

use crate::limits::{COPIED, COUNTED, WALK_AFTER};

/// How much may be asked.
#[derive(Clone, Debug)]
pub struct Limits {
    /// For each question.
    pub budget: Budget,
    /// A run with more events is not asked about.
    pub events: usize,
    /// No question is asked after it.
    pub deadline: Option<Instant>,
    /// So many bytes of known classes are kept, about; no question is asked when there are more.
    pub bytes: usize,
    /// There are random walks while more questions are open.
    pub walks_from: usize,
    /// Only these executions are covered here, the others by others (`part.rs`).
    pub part: Option<Part>,
}

impl Default for Limits {
    fn default() -> Self {
        let budget = Budget { conflicts: 100_000 };
        let bytes = 1 << 30;
        Self { budget, events: 65_536, deadline: None, bytes, walks_from: 100, part: None }
    }
}

/// A run that was made.
#[derive(Clone, Debug)]
pub struct Executed {
    /// What it did.
    pub trace: Trace,
    /// Every step that was forced took place as forced.
    pub followed: bool,
    /// The program came to its end by itself.
    pub ended: bool,
    /// The address that an access crashed at, if that ended the run.
    pub fault: Option<u64>,
    /// So many calls may time out, or fail rather than wait, without the trace saying so.
    pub held: usize,
    /// What the run would have been if a thread had not gone on after a round of a loop that waits: it
    /// read too early.
    pub cuts: Vec<Trace>,
}

/// A prefix of a class after which a thread does something that no known class does there.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The class, by its number.
    pub class: usize,
    /// The events of the prefix, of the class's trace.
    pub prefix: Vec<EventId>,
    /// The choice that comes out differently; `None`: a thread goes on where its run was cut off.
    pub choice: Option<EventId>,
    /// What is forced: the prefix, and the step that comes out differently where it is a try.
    pub steps: Vec<Step>,
}

/// The program that is explored, and what is done with what is found.
pub trait Program {
    /// How many probes are made at once.
    fn at_once(&self) -> usize {
        1
    }

    /// May another run be made?
    fn goes_on(&self) -> bool {
        true
    }

    /// For each probe: forces its steps, then lets the program go on by itself. `class` is the trace of
    /// the probes' class.
    fn execute(&mut self, class: &Trace, probes: Vec<Probe>) -> Vec<Result<Executed, Doubt>>;

    /// A class that was not known, and whether its run came to its end. May give further runs, whose
    /// classes are added.
    fn found(&mut self, number: usize, class: &Trace, ended: bool) -> Vec<Executed>;

    /// A run that nothing is asked of, at random: the one with this number. `None`: there are none.
    fn walk(&mut self, number: u64) -> Option<Result<Executed, Doubt>> {
        let _ = number;
        None
    }

    /// Runs that came of classes that were told before, and that [`Program::found`] did not give yet. Asked
    /// for when no question is left; none: there will be no more.
    fn found_late(&mut self) -> Vec<Executed> {
        Vec::new()
    }

    /// How far the exploration is: classes that are known, and questions about them that are open.
    fn progress(&mut self, classes: usize, open: usize) {
        let _ = (classes, open);
    }
}

/// Explores from one run of the program.
pub fn explore(first: Executed, program: &mut dyn Program, limits: &Limits) -> Exploration {
    let mut explorer = Explorer {
        program,
        limits,
        labels: Labels::default(),
        classes: Vec::new(),
        bytes: 0,
        numbers: HashMap::new(),
        todo: Vec::new(),
        result: Exploration::default(),
        region: None,
        waiting: 0,
        unsettled: Vec::new(),
        probes: 0,
        places: HashMap::new(),
        polled: HashSet::new(),
        tried: HashSet::new(),
    };
    explorer.add(first);
    if let (Some(part), Some(first)) = (limits.part, explorer.classes.first()) {
        explorer.region = Some(Region::new(part, &first.open()));
        explorer.result.doubt(Doubt::OtherPart, usize::from(part.of > 1));
    }
    loop {
        while let Some(number) = explorer.next() {
            explorer.ask_about(number);
        }
        let late = explorer.program.found_late();
        // Classes that come late may say what a stopped thread stands before.
        if late.is_empty() && !explorer.settle() {
            break;
        }
        for run in late {
            explorer.add(run);
        }
    }
    let both = explorer.polled.intersection(&explorer.tried).count();
    explorer.result.doubt(Doubt::HeldOutcome, both);
    explorer.result.classes = explorer.classes.len();
    if explorer.result.is_complete() && limits.deadline.is_none_or(|end| Instant::now() < end) {
        explorer.result.interleavings = explorer.interleavings();
    }
    explorer.result
}

/// What every thread did.
type Identity = Vec<(Vec<u32>, Vec<Label>)>;

struct Explorer<'a> {
    program: &'a mut dyn Program,
    limits: &'a Limits,
    labels: Labels,
    classes: Vec<Kept>,
    /// So many they take, about.
    bytes: usize,
    numbers: HashMap<Identity, usize>,
    /// For each class.
    todo: Vec<Todo>,
    result: Exploration,
    /// What is covered here, where others cover the rest.
    region: Option<Region>,
    /// Questions about classes that nothing was asked about yet.
    waiting: usize,
    /// Threads of classes, by their numbers, that were stopped and of which no class said what they
    /// stand before.
    unsettled: Vec<(usize, Choice)>,
    /// Probes since the last random walk.
    probes: usize,
    /// How often a choice at a place in the code was probed, by that place and how it came out.
    places: HashMap<Place, usize>,
    /// Locks that loops that wait take, by their names.
    polled: HashSet<Box<str>>,
    /// Locks that are tried, but for those that such a loop decides by.
    tried: HashSet<Box<str>>,
}

/// What is left to ask about a class.
#[derive(Default)]
struct Todo {
    /// So often it was asked about.
    visits: u32,
    /// The choices that had another deviation when they were last asked about; before the first visit
    /// not known.
    open: Option<Vec<Open>>,
    /// Every question was asked.
    is_done: bool,
}

/// A choice that is asked about, and the addresses at which the program is known to crash there.
pub(crate) struct Open {
    choice: Choice,
    faults: Vec<u64>,
}

impl Explorer<'_> {
    /// The class that is asked about next: one that was asked about least, and of those the latest. So
    /// what a deviation leads to is seen before all that one choice can lead to.
    fn next(&self) -> Option<usize> {
        let open = self.todo.iter().enumerate().filter(|(_, todo)| !todo.is_done);
        open.min_by_key(|&(number, todo)| (todo.visits, std::cmp::Reverse(number)))
            .map(|(number, _)| number)
    }

    /// How many interleavings the classes stand for.
    fn interleavings(&self) -> Option<f64> {
        let mut left = COUNTED;
        let mut copies = COPIED;
        let mut all = self.classes.iter();
        all.try_fold(0.0, |sum, class| {
            let class = class.open();
            // Every step of a thread begins with a copy of the configuration.
            let threads = class.ctp.threads.len();
            let size = (threads * (threads + class.ctp.variables.len())).max(1);
            let allowed = left.min(copies / size);
            let mut rest = allowed;
            let count = interleavings(&class.ctp, &mut rest)?;
            left -= allowed - rest;
            copies -= (allowed - rest) * size;
            Some(sum + count)
        })
    }

    /// How many questions wait, besides those about the class that is asked about.
    fn waiting(&self) -> usize {
        let visited = self.todo.iter().filter_map(|todo| todo.open.as_ref());
        self.waiting + visited.map(Vec::len).sum::<usize>()
    }

    /// May another question be asked?
    fn goes_on(&self) -> bool {
        self.program.goes_on() && self.bytes < self.limits.bytes
    }

    /// The number of the run's class, which is added if it is new.
    fn add(&mut self, run: Executed) -> Option<usize> {
        let mut runs = VecDeque::from([run]);
        let mut first = None;
        while let Some(run) = runs.pop_front() {
            let Some(class) = Class::new(run.trace, run.ended, &mut self.labels) else {
                self.result.doubt(Doubt::NoRun, 1);
                continue;
            };
            let next = self.classes.len();
            let number = *self.numbers.entry(class.identity()).or_insert(next);
            first = first.or(Some(number));
            if number == next {
                self.result.doubt(Doubt::HeldOutcome, run.held + class.held_outcomes());
                let (polled, tried) = class.polled_and_tried();
                self.polled.extend(polled.into_iter().map(Box::from));
                self.tried.extend(tried.into_iter().map(Box::from));
                self.result.digests.push(class.digest(&self.labels));
                let kept = Kept::new(&class);
                self.waiting += kept.choices;
                self.bytes += kept.bytes();
                self.classes.push(kept);
                self.todo.push(Todo::default());
                runs.extend(self.program.found(number, &class.trace, run.ended));
            }
        }
        first
    }

    /// Asks every question about a class until it is answered with no, or its place in the code has been
    /// probed as often as this visit allows: then it waits for the next one.
    fn ask_about(&mut self, number: usize) {
        let share = 1 << (2 * self.todo[number].visits).min(60);
        self.todo[number].visits += 1;
        if self.todo[number].open.as_ref().is_some_and(|open| self.all_probed(number, open, share))
        {
            return;
        }
        let open = self.todo[number].open.take();
        let choices = self.classes[number].choices;
        if open.is_none() {
            self.waiting -= choices;
        }
        if !self.goes_on() {
            // To look at what is not asked would take as long again.
            self.todo[number].is_done = true;
            return self.result.doubt(Doubt::Limit, open.map_or(choices, |open| open.len()));
        }
        let class = self.classes[number].open();
        let open = open.unwrap_or_else(|| self.choices(&class));
        if !open.is_empty() && self.all_probed(number, &open, share) {
            self.todo[number].open = Some(open);
            return;
        }
        self.todo[number].is_done = true;
        if open.is_empty() {
            return;
        }
        if class.trace.events.len() > self.limits.events {
            return self.result.doubt(Doubt::LongRun, open.len());
        }
        let mut open = VecDeque::from(open);
        let pending = self.pending(&class, &mut open);
        let operations: Vec<(usize, Op)> = pending
            .iter()
            .filter_map(|(thread, pending)| match pending {
                Pending::Waits(op) => Some((*thread, op.clone())),
                _ => None,
            })
            .collect();
        let model = match operations.is_empty() {
            true => None,
            false => class.with_pending(&operations),
        };
        let asked = Asked::new(&class, model.as_ref());
        let all = open.len();
        asked.retain_possible(&mut open);
        self.result.asked += all - open.len();
        if open.is_empty() {
            return;
        }
        let choices: Vec<Choice> = open.iter().map(|open| open.choice).collect();
        let Ok(mut questions) = Questions::new(asked, &choices, self.limits) else {
            return self.result.doubt(Doubt::Undecided, open.len());
        };
        let mut shared = Vec::new();
        self.share(number, &class, &mut shared);
        if open.len() > 1 {
            let asked = open.iter().map(|open| (open.choice, open.faults.as_slice()));
            if questions.is_settled(asked, &shared, self.region.as_ref()) {
                self.result.asked += open.len();
                return;
            }
        }
        let mut later: Vec<Open> = Vec::new();
        while !open.is_empty() {
            if !self.goes_on() {
                return self.result.doubt(Doubt::Limit, open.len() + later.len());
            }
            let known = self.classes.len();
            self.share(number, &class, &mut shared);
            self.program.progress(known, open.len() + later.len() + self.waiting());
            let mut asked = Vec::new();
            let mut probes = Vec::new();
            while probes.len() < self.program.at_once().max(1)
                && self.program.goes_on()
                && let Some(next) = open.pop_front()
            {
                if self.probed(&class, next.choice) >= share {
                    later.push(next);
                    continue;
                }
                self.result.asked += 1;
                match questions.ask(next.choice, &shared, &next.faults, self.region.as_ref()) {
                    Answer::No => {}
                    Answer::Unknown => self.result.doubt(Doubt::Undecided, 1),
                    Answer::Refused => self.result.doubt(Doubt::Refused, 1),
                    Answer::Yes(prefix) => {
                        let mut steps = Schedule::of_trace(&class.trace, prefix.clone(), []).steps;
                        steps.extend(class.other_outcome(next.choice));
                        if next.choice.is_cut() {
                            let thread = next.choice.thread();
                            let known =
                                model.as_ref().and_then(|model| model.steps[thread].clone());
                            steps.push(known.unwrap_or_else(|| class.any_step(thread)));
                        }
                        let choice = class.chosen(next.choice);
                        *self.places.entry(class.place(next.choice)).or_default() += 1;
                        probes.push(Probe { class: number, prefix, choice, steps });
                        asked.push(next);
                    }
                }
            }
            if probes.is_empty() {
                continue;
            }
            self.probes += probes.len();
            let runs = self.program.execute(&class.trace, probes);
            // Where one was found, the same choice may have another deviation.
            for (mut asked, run) in asked.into_iter().zip(runs).rev() {
                match self.learn(number, known, &mut asked, run) {
                    Ok(()) => open.push_front(asked),
                    Err(Doubt::CutOff)
                        if pending.get(&asked.choice.thread()) == Some(&Pending::Unknown) =>
                    {
                        self.unsettled.push((number, asked.choice));
                    }
                    Err(doubt) => self.result.doubt(doubt, 1),
                }
            }
            self.walk(open.len() + later.len() + self.waiting());
        }
        self.todo[number].is_done = later.is_empty();
        self.todo[number].open = Some(later);
    }

    /// Were the places of all these choices probed so often?
    fn all_probed(&self, number: usize, open: &[Open], share: usize) -> bool {
        let paths = &self.classes[number].paths;
        open.iter().all(|open| self.probed(paths, open.choice) >= share)
    }

    /// How often the place in the code at which the thread chooses was probed, in all classes.
    fn probed(&self, class: &Paths, choice: Choice) -> usize {
        self.places.get(&class.place(choice)).copied().unwrap_or_default()
    }

    /// Adds what the class has in common with those that are not among `shared` yet: all others, and nothing
    /// with itself.
    fn share(&self, number: usize, class: &Class, shared: &mut Vec<Shared>) {
        let known = shared.len() + usize::from(shared.len() > number);
        for (other, there) in self.classes.iter().enumerate().skip(known) {
            if other != number {
                shared.push(Shared::new(class, &there.paths));
            }
        }
    }

    /// Makes a run at random from time to time, if there is much that is not known: `open` questions.
    fn walk(&mut self, open: usize) {
        if self.probes < WALK_AFTER || open <= self.limits.walks_from || !self.program.goes_on() {
            return;
        }
        self.probes = 0;
        if let Some(run) = self.program.walk(self.result.walks as u64) {
            self.result.walks += 1;
            // What a walk does not show is asked for all the same.
            if let Ok(run) = run {
                self.add(run);
            }
        }
    }

    /// What is to be asked about a class. Branches first: other addresses are mostly other data. Threads that
    /// were created last first: they came last in the first run, and what they do before the others is most
    /// unlike it.
    fn choices(&self, class: &Class) -> Vec<Open> {
        let done = self.classes.iter().zip(&self.todo).filter(|(_, todo)| todo.is_done);
        let done: Vec<Shared> = done.map(|(other, _)| Shared::new(class, &other.paths)).collect();
        let new = |choice: &Choice| !done.iter().any(|other| class.was_asked_in(*choice, other));
        let mut choices: Vec<Choice> = class.choices().into_iter().filter(new).collect();
        choices
            .sort_by_key(|choice| (class.is_address(*choice), std::cmp::Reverse(choice.thread())));
        choices.into_iter().map(|choice| Open { choice, faults: Vec::new() }).collect()
    }

    /// Adds what came of a probe of a class; `known` classes were known when it was asked for.
    fn learn(
        &mut self,
        number: usize,
        known: usize,
        asked: &mut Open,
        run: Result<Executed, Doubt>,
    ) -> Result<(), Doubt> {
        let mut run = run?;
        let (followed, fault) = (run.followed, run.fault);
        if asked.choice.is_cut() && !followed {
            // The thread had to wait where it was to go on.
            return Err(Doubt::CutOff);
        }
        let cuts = std::mem::take(&mut run.cuts);
        let found = self.add(run).ok_or(Doubt::NoRun)?;
        let mut new = found >= known && found != number;
        // Rounds that the prefix had begun were left out.
        for trace in cuts.into_iter().filter(|_| followed && fault.is_none()) {
            if new {
                break;
            }
            let cut =
                Executed { trace, followed, ended: false, fault: None, held: 0, cuts: Vec::new() };
            new = self.add(cut).is_some_and(|found| found >= known && found != number);
        }
        match (followed, fault) {
            (false, _) => Err(Doubt::LeftTheSchedule),
            (true, _) if new && fault.is_none() => Ok(()),
            // A crash leaves no event behind, so that its class may be a known one.
            (true, Some(address)) if !asked.faults.contains(&address) => {
                asked.faults.push(address);
                Ok(())
            }
            (true, _) if new => Ok(()),
            (true, _) if asked.choice.is_cut() => Err(Doubt::CutOff),
            (true, _) => Err(Doubt::NothingNew),
        }
    }
}
