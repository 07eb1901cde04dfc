//! From one run to every behaviour.
//!
//! A concurrent trace program stands for every interleaving in which each thread takes the same
//! choices, and the solver decides all of them at once. So what is enumerated here is not
//! interleavings but **classes of paths**: for each thread the sequence of its choices.
//!
//! - A *choice* is whatever a thread's later events depend on and the trace holds fixed: the outcome of
//!   a branch, an address that was computed from what was read, the outcome of a try.
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
//! **What must hold for the claim** is checked, and what does not hold is a [`Doubt`]: nothing but
//! scheduling differs between runs, a forced prefix does what was forced, every question is decided, and
//! a thread that a failure has cut off is followed further.
//!
//! Not checked yet: the trace does not tell a successful `sem_trywait` from a wait, and a timed wait that
//! was woken is not asked to time out. Programs with either may be called complete too early.

mod class;
mod question;

use std::fmt;
use std::rc::Rc;
use std::time::Instant;

use foretell_solve::Budget;
use foretell_trace::schedule::{Schedule, Step};
use foretell_trace::{EventId, Trace};

use class::Class;
use question::{Answer, Choice, Questions};

/// How much may be done.
#[derive(Clone, Debug)]
pub struct Limits {
    /// For each question.
    pub budget: Budget,
    /// Classes at most.
    pub classes: usize,
    /// A run with more events is not asked about.
    pub events: usize,
    /// Nothing is begun after it.
    pub deadline: Option<Instant>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            budget: Budget { conflicts: 100_000 },
            classes: 1_000,
            events: 4_096,
            deadline: None,
        }
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
}

/// Makes runs of the program.
pub trait Execute {
    /// Forces the steps, then lets the program go on by itself; `None` if there was no run.
    fn execute(&mut self, steps: Vec<Step>) -> Option<Executed>;
}

/// Why the classes may not be all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// A limit on time or on the number of classes was reached.
    Limit,
    /// A run has more events than are asked about.
    LongRun,
    /// A question was not decided.
    Undecided,
    /// A forced run did not do what was forced.
    LeftTheSchedule,
    /// A forced run belongs to a class that was known.
    NothingNew,
    /// A thread whose run was cut off could not be followed further.
    CutOff,
    /// A run could not be made, or its trace not be modelled.
    NoRun,
    /// The solver's answer was refused by the validator: a fault of ours.
    Refused,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doubt::Limit => "a limit was reached",
            Doubt::LongRun => "a run is too long",
            Doubt::Undecided => "the solver did not decide",
            Doubt::LeftTheSchedule => "a forced run left its schedule",
            Doubt::NothingNew => "a forced run did what was known",
            Doubt::CutOff => "a thread that was cut off could not be followed further",
            Doubt::NoRun => "a run could not be made",
            Doubt::Refused => "the validator refused a solver's answer",
        })
    }
}

/// What an exploration came to.
#[derive(Debug, Default)]
pub struct Exploration {
    /// A run of each class, in the order in which they were found.
    pub classes: Vec<Trace>,
    /// Questions that were asked.
    pub asked: usize,
    /// Questions that are open, and why.
    pub open: Vec<Doubt>,
}

impl Exploration {
    /// Do the classes cover every behaviour of the program with this input?
    pub fn is_complete(&self) -> bool {
        self.open.is_empty()
    }
}

/// Explores from one run of the program.
pub fn explore(first: Executed, program: &mut dyn Execute, limits: &Limits) -> Exploration {
    let mut explorer =
        Explorer { program, limits, classes: Vec::new(), asked: 0, open: Vec::new() };
    explorer.add(first);
    let mut number = 0;
    while number < explorer.classes.len() {
        explorer.ask_about(number);
        number += 1;
    }
    let Explorer { classes, asked, open, .. } = explorer;
    let classes = classes.into_iter().map(|class| class.trace.clone()).collect();
    Exploration { classes, asked, open }
}

struct Explorer<'a> {
    program: &'a mut dyn Execute,
    limits: &'a Limits,
    classes: Vec<Rc<Class>>,
    asked: usize,
    open: Vec<Doubt>,
}

impl Explorer<'_> {
    /// Adds the class of a run; false if it is known.
    fn add(&mut self, run: Executed) -> bool {
        match Class::new(run.trace, run.ended) {
            Some(class) => {
                let known = self.classes.iter().any(|known| known.is_same(&class));
                if !known {
                    self.classes.push(Rc::new(class));
                }
                !known
            }
            None => {
                self.open.push(Doubt::NoRun);
                true
            }
        }
    }

    /// Asks every question about a class until it is answered with no.
    fn ask_about(&mut self, number: usize) {
        if self.classes[number].trace.events.len() > self.limits.events {
            self.open.push(Doubt::LongRun);
            return;
        }
        let class = Rc::clone(&self.classes[number]);
        let Ok(mut questions) = Questions::new(&class, self.limits) else {
            return self.open.push(Doubt::Undecided);
        };
        for choice in class.choices() {
            let mut faults = Vec::new();
            while self.goes_on() {
                self.asked += 1;
                let known = self.classes.iter().enumerate();
                let known = known.filter(|(other, _)| *other != number).map(|(_, known)| &**known);
                match questions.ask(choice, known, &faults) {
                    Answer::No => break,
                    Answer::Unknown => {
                        self.open.push(Doubt::Undecided);
                        break;
                    }
                    Answer::Refused => {
                        self.open.push(Doubt::Refused);
                        break;
                    }
                    Answer::Yes(prefix) => {
                        let run = self.run(&class, choice, prefix);
                        if let Ok(Some(address)) = run {
                            // The same crash again is nothing new.
                            if faults.contains(&address) {
                                self.open.push(Doubt::NothingNew);
                                break;
                            }
                            faults.push(address);
                        } else if let Err(doubt) = run {
                            self.open.push(doubt);
                            break;
                        }
                    }
                }
            }
        }
    }

    /// False when a limit is reached, which is noted.
    fn goes_on(&mut self) -> bool {
        let late = self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let over = late || self.classes.len() >= self.limits.classes;
        if over && !self.open.contains(&Doubt::Limit) {
            self.open.push(Doubt::Limit);
        }
        !over
    }

    /// Forces a prefix of a class and adds what came of it; gives the address at which it crashed.
    fn run(
        &mut self,
        class: &Class,
        choice: Choice,
        prefix: Vec<EventId>,
    ) -> Result<Option<u64>, Doubt> {
        let mut steps = Schedule::of_trace(&class.trace, prefix, []).steps;
        steps.extend(class.other_outcome(choice));
        let run = self.program.execute(steps).ok_or(Doubt::NoRun)?;
        let (followed, fault) = (run.followed, run.fault);
        let same =
            Class::new(run.trace.clone(), run.ended).is_some_and(|found| found.is_same(class));
        let new = !same && self.add(run);
        match (followed, new, choice.is_cut()) {
            (false, ..) => Err(Doubt::LeftTheSchedule),
            (true, true, _) => Ok(fault),
            (true, false, false) if fault.is_some() => Ok(fault),
            (true, false, true) => Err(Doubt::CutOff),
            (true, false, false) => Err(Doubt::NothingNew),
        }
    }
}
