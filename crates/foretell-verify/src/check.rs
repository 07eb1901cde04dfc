//! The model checker of the abstract program: breadth first, with persistent sets.
//!
//! *Reduction.* In a control state it is enough to look at the steps of a set of threads T if one of
//! them can always go on, none of them stands at a loop head, and no other thread can ever take a
//! step that touches what the next steps of T touch ([`Reduction::threads`]). The choice depends on
//! the locations only, so the abstract search follows every concrete run of the reduced program; the
//! checker of proofs ([`crate::proof`]) verifies the condition anew. A loop head in every cycle makes
//! sure that nobody is ignored for ever.
//!
//! A state that says more than one seen before (same locations, more literals) is not looked at.

use std::collections::{HashMap, VecDeque};

use crate::abstraction::{Abstraction, Cube};
use crate::program::{EdgeId, Location, Program, VariableSet};
use crate::solver::{Solver, Trouble};

/// What the search found.
pub enum Found {
    /// Edges from the beginning to a violation.
    Counterexample(Vec<EdgeId>),
    /// No violation: all states, with the threads that were looked at.
    Invariant(Vec<State>),
    /// More states than allowed.
    TooMany,
}

/// A set of states: locations and what is known of the predicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// A location of every thread.
    pub control: Vec<Location>,
    /// What is known.
    pub cube: Cube,
}

/// What the partial-order reduction needs to know of a program.
pub struct Reduction {
    /// For each thread and location: variables that it may touch from there on (all, assigned).
    future: Vec<Vec<(VariableSet, VariableSet)>>,
    /// For each edge: shared variables (all, assigned).
    touched: Vec<(VariableSet, VariableSet)>,
    /// For each thread: who starts it.
    creators: Vec<Option<usize>>,
    enabled: bool,
}

impl Reduction {
    /// Looks at the program; with `enabled` false every thread is always chosen.
    pub fn new(program: &Program, enabled: bool) -> Self {
        let shared = program.shared();
        let touched: Vec<(VariableSet, VariableSet)> = (0..program.edges.len())
            .map(|edge| {
                let writes = program.writes(edge) & shared;
                (program.reads(edge) & shared | writes, writes)
            })
            .collect();
        let future = program
            .threads
            .iter()
            .map(|thread| {
                let mut sets = vec![(0, 0); thread.locations];
                let mut changed = true;
                while changed {
                    changed = false;
                    for location in 0..thread.locations {
                        let mut set: (VariableSet, VariableSet) = sets[location];
                        for &edge in &thread.outgoing[location] {
                            let behind = sets[program.edges[edge].to];
                            set.0 |= touched[edge].0 | behind.0;
                            set.1 |= touched[edge].1 | behind.1;
                        }
                        changed |= set != sets[location];
                        sets[location] = set;
                    }
                }
                sets[thread.idle] = sets[thread.entry];
                sets
            })
            .collect();
        let mut creators = vec![None; program.threads.len()];
        for edge in &program.edges {
            if let Some(started) = edge.starts {
                creators[started] = Some(edge.thread);
            }
        }
        Self { future, touched, creators, enabled }
    }

    /// A persistent set of threads for the control state; smaller is better.
    pub fn threads(&self, program: &Program, control: &[Location]) -> Vec<usize> {
        let all: Vec<usize> = (0..control.len()).collect();
        if !self.enabled || all.iter().any(|&t| program.threads[t].atomic[control[t]]) {
            return all;
        }
        let mut best = all;
        for seed in 0..control.len() {
            if !program.threads[seed].total[control[seed]] {
                continue;
            }
            let Some(set) = self.closure(program, control, seed) else { continue };
            if set.len() < best.len() {
                best = set;
            }
        }
        best
    }

    fn closure(&self, program: &Program, control: &[Location], seed: usize) -> Option<Vec<usize>> {
        let mut set = vec![seed];
        let mut next = 0;
        while next < set.len() {
            let thread = set[next];
            next += 1;
            let location = control[thread];
            if program.threads[thread].loop_head[location] {
                return None;
            }
            let mut add = |other: usize| {
                if !set.contains(&other) {
                    set.push(other);
                }
            };
            if location == program.threads[thread].idle
                && let Some(creator) = self.creators[thread]
            {
                add(creator);
            }
            for &edge in &program.threads[thread].outgoing[location] {
                if let Some(other) = program.edges[edge].starts.or(program.edges[edge].awaits) {
                    add(other);
                }
                let (all, assigned) = self.touched[edge];
                for (other, &location) in control.iter().enumerate() {
                    let (other_all, other_assigned) = self.future[other][location];
                    if other != thread && (assigned & other_all | all & other_assigned) != 0 {
                        add(other);
                    }
                }
            }
        }
        set.sort_unstable();
        Some(set)
    }
}

/// Looks at all abstract states, at most `limit`.
pub fn search(
    program: &mut Program,
    reduction: &Reduction,
    abstraction: &mut Abstraction,
    solver: &mut Solver,
    limit: usize,
) -> Result<Found, Trouble> {
    struct Node {
        state: State,
        parent: Option<(usize, EdgeId)>,
    }
    let mut nodes: Vec<Node> = Vec::new();
    let mut seen: HashMap<Vec<Location>, Vec<Cube>> = HashMap::new();
    let mut queue = VecDeque::new();
    let first = program.first_control();
    for cube in abstraction.first(program, solver)? {
        queue.push_back(nodes.len());
        seen.entry(first.clone()).or_default().push(cube);
        nodes.push(Node { state: State { control: first.clone(), cube }, parent: None });
    }
    let path = |nodes: &[Node], mut at: usize, last: EdgeId| {
        let mut edges = vec![last];
        while let Some((parent, edge)) = nodes[at].parent {
            edges.push(edge);
            at = parent;
        }
        edges.reverse();
        edges
    };
    while let Some(at) = queue.pop_front() {
        let State { control, cube } = nodes[at].state.clone();
        // a weaker state may have come since
        let covered = seen[&control].iter().any(|&other| other != cube && cube.implies(other));
        if covered {
            continue;
        }
        let threads = reduction.threads(program, &control);
        for edge in program.possible(&control) {
            if !threads.contains(&program.edges[edge].thread) {
                continue;
            }
            for after in abstraction.post(program, solver, edge, cube)? {
                if program.is_error(edge) {
                    return Ok(Found::Counterexample(path(&nodes, at, edge)));
                }
                let control = program.after(&control, edge);
                let known = seen.entry(control.clone()).or_default();
                if known.iter().any(|&other| after.implies(other)) {
                    continue;
                }
                known.retain(|&other| !other.implies(after));
                known.push(after);
                if nodes.len() == limit {
                    return Ok(Found::TooMany);
                }
                queue.push_back(nodes.len());
                nodes
                    .push(Node { state: State { control, cube: after }, parent: Some((at, edge)) });
            }
        }
    }
    let mut states: Vec<State> = Vec::new();
    for (control, cubes) in seen {
        states.extend(cubes.into_iter().map(|cube| State { control: control.clone(), cube }));
    }
    states.sort_by(|a, b| (&a.control, a.cube).cmp(&(&b.control, b.cube)));
    Ok(Found::Invariant(states))
}
