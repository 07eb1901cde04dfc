//! Proofs: the predicates and the invariant, written out, and the pass that checks them.
//!
//! ```text
//! foretell-proof 1
//! program "peterson.cmd" 5feceb66
//! reduction persistent-sets
//! predicate (= turn 1)
//! state 1 1 : 0 -1
//! end
//! ```
//!
//! A `state` line has a location of every thread and what is known there: `k` says that predicate k
//! holds, `-k` (`-0` too) that it does not. The invariant is the disjunction of all lines.
//!
//! *The check* reads the file and the program, and asks a solver of its own: the beginning is in the
//! invariant; every step from a state of it stays in it; no step from it violates a property. With
//! the reduction, steps of some threads may be left out in a control state where the others form a
//! persistent set; the check computes by itself, from the edges alone, whether they do. It shares
//! the meaning of programs with the search ([`Program`]), and nothing else.

use std::collections::{BTreeSet, HashMap};

use foretell_trace::sexpr::{Atom, Comments, Refusal, Scope, TermReader, Tree, quoted};
use foretell_trace::{Operator, Sort, TermId, TermStore, VariableId};

use crate::abstraction::Cube;
use crate::check::State;
use crate::program::{EdgeId, Location, Program};
use crate::solver::{Solver, Trouble};

/// A proof that a program violates nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The file of the program.
    pub file: Box<str>,
    /// A digest of the program.
    pub digest: u64,
    /// Whether persistent sets were used.
    pub reduction: bool,
    /// The predicates, in SMT-LIB over the names of the program.
    pub predicates: Vec<String>,
    /// The invariant.
    pub states: Vec<State>,
}

/// Why a proof is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofError {
    /// A line of the file is not what it should be.
    Malformed(usize, String),
    /// It is the proof of another program.
    OtherProgram,
    /// The first states are not in the invariant.
    Initiation,
    /// A step leads out of the invariant; which.
    Consecution(String),
    /// A step from the invariant violates a property; which.
    Safety(String),
    /// Steps were left out that may matter; in which control state.
    Reduction(String),
    /// The solver could not say.
    Undecided(Trouble),
}

impl std::fmt::Display for ProofError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProofError::Malformed(line, what) => write!(f, "line {line} of the proof: {what}"),
            ProofError::OtherProgram => {
                f.write_str("the proof is for another program; verify again")
            }
            ProofError::Initiation => {
                f.write_str("the invariant does not hold when the program begins")
            }
            ProofError::Consecution(step) => write!(f, "a step leaves the invariant: {step}"),
            ProofError::Safety(step) => write!(f, "a step violates a property: {step}"),
            ProofError::Reduction(where_) => write!(f, "steps were left out: {where_}"),
            ProofError::Undecided(trouble) => write!(f, "not checked: {trouble}"),
        }
    }
}

impl std::error::Error for ProofError {}

impl From<Trouble> for ProofError {
    fn from(trouble: Trouble) -> Self {
        ProofError::Undecided(trouble)
    }
}

impl Proof {
    /// The proof of a program of joined edges.
    pub fn new(
        program: &Program,
        predicates: &[TermId],
        states: Vec<State>,
        reduction: bool,
    ) -> Self {
        Self {
            file: program.file.clone(),
            digest: digest(program),
            reduction,
            predicates: predicates.iter().map(|&term| program.show(term)).collect(),
            states,
        }
    }

    /// The text of the proof.
    pub fn print(&self) -> String {
        let mut text = format!(
            "foretell-proof 1\nprogram {} {:x}\nreduction {}\n",
            quoted(&self.file, '"'),
            self.digest,
            if self.reduction { "persistent-sets" } else { "none" }
        );
        for predicate in &self.predicates {
            text.push_str(&format!("predicate {predicate}\n"));
        }
        for state in &self.states {
            text.push_str("state");
            for location in &state.control {
                text.push_str(&format!(" {location}"));
            }
            text.push_str(" :");
            for (predicate, value) in state.cube.literals() {
                text.push_str(&format!(" {}{predicate}", if value { "" } else { "-" }));
            }
            text.push('\n');
        }
        text.push_str("end\n");
        text
    }

    /// Reads what [`Proof::print`] wrote.
    pub fn parse(text: &str) -> Result<Self, ProofError> {
        let mut proof = Proof {
            file: "".into(),
            digest: 0,
            reduction: false,
            predicates: Vec::new(),
            states: Vec::new(),
        };
        let mut ended = false;
        for (number, line) in text.lines().enumerate() {
            let malformed = |what: &str| ProofError::Malformed(number + 1, what.to_string());
            let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
            match keyword {
                "foretell-proof" if number == 0 && rest == "1" => {}
                _ if number == 0 => return Err(malformed("expected `foretell-proof 1`")),
                _ if ended => return Err(malformed("nothing may follow `end`")),
                "program" => {
                    let (file, digest) =
                        rest.rsplit_once(' ').ok_or_else(|| malformed("a digest is missing"))?;
                    proof.file = file.trim_matches('"').into();
                    proof.digest = u64::from_str_radix(digest, 16)
                        .map_err(|_| malformed("the digest is not a hexadecimal number"))?;
                }
                "reduction" => {
                    proof.reduction = match rest {
                        "persistent-sets" => true,
                        "none" => false,
                        _ => return Err(malformed("no such reduction")),
                    }
                }
                "predicate" => proof.predicates.push(rest.to_string()),
                "state" => {
                    let (control, literals) =
                        rest.split_once(':').ok_or_else(|| malformed("`:` is missing"))?;
                    let control: Result<Vec<Location>, _> =
                        control.split_whitespace().map(str::parse).collect();
                    let control = control.map_err(|_| malformed("a location is not a number"))?;
                    let mut cube = Cube::default();
                    for word in literals.split_whitespace() {
                        let (value, digits) = match word.strip_prefix('-') {
                            Some(digits) => (false, digits),
                            None => (true, word),
                        };
                        let predicate = digits.parse::<usize>().ok();
                        let predicate = predicate
                            .filter(|&predicate| predicate < proof.predicates.len().min(128))
                            .ok_or_else(|| malformed("there is no such predicate"))?;
                        cube = cube.with(predicate, value);
                    }
                    proof.states.push(State { control, cube });
                }
                "end" => ended = true,
                _ => return Err(malformed("unknown keyword")),
            }
        }
        match ended {
            true => Ok(proof),
            false => Err(ProofError::Malformed(text.lines().count(), "`end` is missing".into())),
        }
    }

    /// Checks the proof against a program of small edges.
    pub fn check(&self, program: &Program) -> Result<(), ProofError> {
        let mut program = program.in_large_blocks();
        if digest(&program) != self.digest {
            return Err(ProofError::OtherProgram);
        }
        let mut predicates = Vec::new();
        for (place, text) in self.predicates.iter().enumerate() {
            let term = read_formula(&mut program, text).map_err(|why| {
                ProofError::Malformed(0, format!("predicate {place} is no formula: {why}"))
            })?;
            predicates.push(term);
        }
        let mut invariant: HashMap<&[Location], Vec<TermId>> = HashMap::new();
        for state in &self.states {
            let fits = state.control.len() == program.threads.len()
                && state.control.iter().zip(&program.threads).all(|(&at, t)| at < t.locations);
            if !fits {
                return Err(ProofError::Malformed(0, "a state of another program".into()));
            }
            let literals: Vec<TermId> = state
                .cube
                .literals()
                .map(|(place, value)| match value {
                    true => predicates[place],
                    false => program.terms.not(predicates[place]),
                })
                .collect();
            let formula = program.terms.and(&literals);
            invariant.entry(&state.control).or_default().push(formula);
        }
        let mut solver = Solver::start(u64::MAX)?;
        let outside = |program: &mut Program, control: &[Location]| {
            let inside = invariant.get(control).cloned().unwrap_or_default();
            let inside = program.terms.or(&inside);
            program.terms.not(inside)
        };
        // initiation
        let mut facts = vec![program.initially];
        for index in 0..program.variables.len() {
            if let Some(value) = program.variables[index].initial {
                let variable = program.terms.variable(VariableId::from(index), Sort::INT);
                let value = program.terms.int(value);
                facts.push(program.terms.build(Operator::Eq, &[variable, value]));
            }
        }
        let first = program.first_control();
        facts.push(outside(&mut program, &first));
        if !solver.refutes(&program.terms, &facts)? {
            return Err(ProofError::Initiation);
        }
        // consecution and safety
        for (control, formulas) in &invariant {
            let steps = self.steps(&mut program, &mut solver, control)?;
            for edge in steps {
                let after = program.after(control, edge);
                let error = program.is_error(edge);
                let bad = match error {
                    true => program.terms.bool(true),
                    false => {
                        let outside = outside(&mut program, &after);
                        program.before_edge(edge, outside)
                    }
                };
                if program.terms.is_false(bad) {
                    continue;
                }
                let inside = program.terms.or(formulas);
                let facts = [inside, program.edges[edge].guard, bad];
                if !solver.refutes(&program.terms, &facts)? {
                    let step = program.describe(edge);
                    return Err(match error {
                        true => ProofError::Safety(step),
                        false => ProofError::Consecution(step),
                    });
                }
            }
        }
        Ok(())
    }

    /// The steps that must be looked at in a control state of the invariant: all, or those of a
    /// persistent set that can always go on.
    fn steps(
        &self,
        program: &mut Program,
        solver: &mut Solver,
        control: &[Location],
    ) -> Result<Vec<EdgeId>, ProofError> {
        let all = program.possible(control);
        if !self.reduction {
            return Ok(all);
        }
        let atomic = (0..control.len()).any(|t| program.threads[t].atomic[control[t]]);
        if atomic {
            return Ok(all);
        }
        // the search's choice is only a hint: what it leaves out must be shown to be harmless
        let hint = crate::check::Reduction::new(program, true).threads(program, control);
        if hint.len() == control.len() {
            return Ok(all);
        }
        let describe = || format!("in control state {control:?}");
        let mut goes_on = false;
        for &thread in &hint {
            let leaving = program.threads[thread].outgoing[control[thread]].clone();
            if leaving.iter().any(|&edge| program.edges[edge].awaits.is_some()) {
                continue;
            }
            let guards: Vec<TermId> =
                leaving.iter().map(|&edge| program.edges[edge].guard).collect();
            let some = program.terms.or(&guards);
            let none = program.terms.not(some);
            goes_on |= solver.refutes(&program.terms, &[none])?;
        }
        if !goes_on {
            return Err(ProofError::Reduction(describe()));
        }
        for &thread in &hint {
            if program.threads[thread].loop_head[control[thread]] {
                return Err(ProofError::Reduction(describe()));
            }
        }
        for other in (0..control.len()).filter(|other| !hint.contains(other)) {
            for later in reachable(program, other, control[other]) {
                for &thread in &hint {
                    for &now in &program.threads[thread].outgoing[control[thread]] {
                        if !commute(program, now, later) {
                            return Err(ProofError::Reduction(describe()));
                        }
                    }
                }
                if program.edges[later].starts.is_some_and(|started| hint.contains(&started)) {
                    return Err(ProofError::Reduction(describe()));
                }
            }
        }
        Ok(all.into_iter().filter(|&edge| hint.contains(&program.edges[edge].thread)).collect())
    }
}

/// Edges that a thread may take from a location on; of a thread that is not started, all.
fn reachable(program: &Program, thread: usize, from: Location) -> Vec<EdgeId> {
    let automaton = &program.threads[thread];
    let mut seen: BTreeSet<Location> = BTreeSet::new();
    let mut stack = vec![if from == automaton.idle { automaton.entry } else { from }];
    let mut edges = Vec::new();
    while let Some(location) = stack.pop() {
        if !seen.insert(location) {
            continue;
        }
        for &edge in &automaton.outgoing[location] {
            edges.push(edge);
            stack.push(program.edges[edge].to);
        }
    }
    edges
}

/// Can two edges of different threads be swapped, and does neither decide whether the other is
/// possible?
fn commute(program: &Program, a: EdgeId, b: EdgeId) -> bool {
    let ends = |edge: EdgeId, of: usize| {
        let edge = &program.edges[edge];
        edge.starts == Some(of) || edge.awaits == Some(of)
    };
    let (thread_a, thread_b) = (program.edges[a].thread, program.edges[b].thread);
    if ends(a, thread_b) || ends(b, thread_a) {
        // a thread that waits for the other's end has not met it: the waiting edge is impossible
        // until the other has no edge left, so only the order "end, then wait" exists
        return program.edges[b].awaits == Some(thread_a) && program.edges[a].awaits.is_none();
    }
    let (read_a, write_a) = (program.reads(a), program.writes(a));
    let (read_b, write_b) = (program.reads(b), program.writes(b));
    write_a & (read_b | write_b) == 0 && write_b & read_a == 0
}

/// A number that is the same for programs with the same meaning of locations and variables.
fn digest(program: &Program) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for variable in &program.variables {
        add(&format!("{variable:?}"));
    }
    add(&program.show(program.initially));
    for edge in &program.edges {
        add(&format!(
            "{} {} {} {:?} {:?}",
            edge.thread, edge.from, edge.to, edge.starts, edge.awaits
        ));
        add(&program.show(edge.guard));
        for &(variable, value) in &edge.assignments {
            add(&format!("{variable:?} {}", program.show(value)));
        }
    }
    hash
}

/// Reads a formula over the names of the program.
fn read_formula(program: &mut Program, text: &str) -> Result<TermId, String> {
    struct Names(HashMap<String, VariableId>);
    impl Scope for Names {
        fn name(&mut self, terms: &mut TermStore, atom: &Atom<'_>) -> Result<TermId, Refusal> {
            match self.0.get(&*atom.name) {
                Some(&variable) => Ok(terms.variable(variable, Sort::INT)),
                None => Err(Refusal {
                    message: format!("no variable `{}`", atom.name),
                    help: "verify again".into(),
                }),
            }
        }
    }
    let names = program
        .variables
        .iter()
        .enumerate()
        .map(|(index, variable)| (variable.name.to_string(), VariableId::from(index)))
        .collect();
    let mut at = 0;
    let shown = |error: foretell_trace::sexpr::SyntaxError| error.locate(text).to_string();
    let tree = Tree::read(text, &mut at, Comments::BetweenWords).map_err(shown)?;
    let root = *tree.roots().first().ok_or_else(|| String::from("it is empty"))?;
    let mut names = Names(names);
    TermReader::default()
        .term_of_sort(&mut program.terms, &mut names, &tree, root, Sort::BOOL)
        .map_err(shown)
}
