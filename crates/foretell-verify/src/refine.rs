//! New predicates from a spurious counterexample (001 sections 5.1 to 5.3).
//!
//! [`trace`] interpolates the one counterexample. [`neighbourhood`] looks at all interleavings of its
//! events: their abstract steps, as transition predicates, form a concurrent trace whose bad
//! neighbourhood is the happens-before formula φ_B ([`foretell_neighbourhood`]). Traces are sampled
//! from its disjuncts, those that the abstraction does not exclude are kept, and one set of
//! predicates is sought that refutes them all.
//!
//! *Sampling* (5.2): for two disjuncts φ₁ ∧ a < b and φ₂ ∧ b < a that otherwise agree, the two
//! traces with a common prefix and suffix in which the events up to a and up to b are swapped. Where
//! fewer pairs exist than traces are wanted, each disjunct gives the trace that is nearest to the
//! counterexample and those in which one thread runs as early as it can.
//!
//! A sampled trace that is possible is a counterexample of the program, and is returned as such.

use std::collections::{BTreeSet, HashMap};

use foretell_neighbourhood::{Atom, Limits, Properties, explain};
use foretell_trace::{
    Condition, Event, EventId, Op, Scope, Sort, TermId, Trace, Transition, Value, Variable,
    VariableId,
};

use crate::abstraction::{Abstraction, Cube};
use crate::check::Reduction;
use crate::horn::{self, Clauses};
use crate::limits::{LATTICE, NEIGHBOURS, RUN_ON, SAMPLES};
use crate::path::{Choices, feasible};
use crate::program::{EdgeId, Location, Program};
use crate::solver::{Solver, Trouble};

/// What a refinement gives.
pub enum Refined {
    /// Predicates that refute the counterexample, and how many other traces with it.
    Predicates {
        /// The predicates.
        predicates: Vec<TermId>,
        /// Sampled traces beside the counterexample.
        samples: usize,
    },
    /// A sampled trace is possible: a real counterexample.
    Feasible(Vec<EdgeId>, Choices),
}

/// Refines by the one trace: α₀ = true, αₙ = false, αᵢ₋₁ ∧ eᵢ → αᵢ′.
pub fn trace(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &Abstraction,
    counterexample: &[EdgeId],
) -> Result<Refined, Trouble> {
    let predicates = of_trace(program, solver, abstraction, counterexample)?;
    Ok(Refined::Predicates { predicates, samples: 0 })
}

fn of_trace(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &Abstraction,
    trace: &[EdgeId],
) -> Result<Vec<TermId>, Trouble> {
    let known: Vec<TermId> = abstraction.predicates.iter().map(|p| p.term).collect();
    let clauses = Clauses::of_trace(trace);
    let traces = [trace.to_vec()];
    if let Some(predicates) = horn::atoms(program, solver, &clauses, &traces, &known)? {
        return Ok(predicates);
    }
    Ok(horn::spacer(program, solver, trace)?.unwrap_or_default())
}

/// Refines by the bad neighbourhood of the counterexample, until none of its traces is left in the
/// abstraction. The predicates are added to it.
pub fn neighbourhood(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &mut Abstraction,
    reduction: &Reduction,
    counterexample: &[EdgeId],
) -> Result<Refined, Trouble> {
    let mut next = Some(counterexample.to_vec());
    let (mut refuted, mut found) = (0, Vec::new());
    let events = run_on(program, solver, abstraction, counterexample)?;
    while let Some(whole) = next {
        let current = needed(program, &whole);
        let mut traces = vec![current.clone()];
        // what remains of the neighbourhood after that is looked for, not sampled
        let orders = match refuted {
            0 => sample(program, solver, abstraction, &current)?,
            _ => Vec::new(),
        };
        for order in orders {
            let trace: Vec<EdgeId> = order.iter().map(|&event| current[event]).collect();
            if traces.contains(&trace) || !allowed(program, solver, abstraction, &trace)? {
                continue;
            }
            traces.push(trace);
            if traces.len() == SAMPLES {
                break;
            }
        }
        // the counterexample itself is known to be impossible
        let known = refuted == 0 && current.len() == whole.len();
        for trace in traces.iter().skip(usize::from(known)) {
            if let Some(choices) = feasible(program, solver, trace)? {
                return Ok(Refined::Feasible(trace.clone(), choices));
            }
        }
        let predicates = together(program, solver, abstraction, &traces)?;
        refuted += traces.len();
        let before = abstraction.predicates.len();
        for &predicate in &predicates {
            abstraction.add(program, predicate);
        }
        found.extend(predicates);
        if abstraction.predicates.len() == before && current.len() < whole.len() {
            // a thread that was left out makes the abstraction forget something
            for predicate in together(program, solver, abstraction, &[whole])? {
                abstraction.add(program, predicate);
                found.push(predicate);
            }
        }
        if abstraction.predicates.len() == before || refuted > NEIGHBOURS {
            break;
        }
        next = remaining(program, solver, abstraction, reduction, &events)?;
    }
    Ok(Refined::Predicates { predicates: found, samples: refuted - 1 })
}

/// The trace without the threads on which its violation does not depend. They can as well run behind it:
/// it is of the same neighbourhood, and shorter.
fn needed(program: &Program, trace: &[EdgeId]) -> Vec<EdgeId> {
    let mut threads = vec![false; program.threads.len()];
    if let Some(&violation) = trace.last() {
        threads[program.edges[violation].thread] = true;
    }
    loop {
        let before = threads.clone();
        let mut variables = program.variables_of(program.initially);
        let own = trace.iter().filter(|&&edge| threads[program.edges[edge].thread]);
        for &edge in own {
            variables |= program.reads(edge) | program.writes(edge);
        }
        for &edge in trace {
            let there = &program.edges[edge];
            let starts = there.starts.is_some_and(|thread| threads[thread]);
            threads[there.thread] |= starts || program.writes(edge) & variables != 0;
            if let Some(other) = there.awaits.filter(|_| threads[there.thread]) {
                threads[other] = true;
            }
        }
        if threads == before {
            return trace
                .iter()
                .copied()
                .filter(|&edge| threads[program.edges[edge].thread])
                .collect();
        }
    }
}

/// Predicates that refute all the traces, by one solution of all their clauses if there is one.
fn together(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &Abstraction,
    traces: &[Vec<EdgeId>],
) -> Result<Vec<TermId>, Trouble> {
    let known: Vec<TermId> = abstraction.predicates.iter().map(|p| p.term).collect();
    let clauses = Clauses::of_traces(program, traces);
    if let Some(predicates) = horn::atoms(program, solver, &clauses, traces, &known)? {
        return Ok(predicates);
    }
    let mut predicates = BTreeSet::new();
    for trace in traces {
        predicates.extend(of_trace(program, solver, abstraction, trace)?);
    }
    Ok(predicates.into_iter().collect())
}

/// The events of each thread in the counterexample, with its violation left out and every thread run
/// on as far as the abstraction allows and no loop is entered again: a trace whose neighbourhood also
/// has the violations that lie behind.
fn run_on(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &mut Abstraction,
    counterexample: &[EdgeId],
) -> Result<Vec<Vec<EdgeId>>, Trouble> {
    let mut events: Vec<Vec<EdgeId>> = vec![Vec::new(); program.threads.len()];
    let mut control = program.first_control();
    let mut cube = abstraction.first(program, solver)?.first().copied().unwrap_or_default();
    let mut visits: HashMap<(usize, Location), usize> = HashMap::new();
    let (violation, prefix) = counterexample.split_last().expect("a counterexample has an event");
    for &edge in prefix {
        let Some(&after) = abstraction.post(program, solver, edge, cube)?.first() else {
            return Ok(events); // cannot be: the search came along here
        };
        let thread = program.edges[edge].thread;
        events[thread].push(edge);
        *visits.entry((thread, program.edges[edge].to)).or_default() += 1;
        control = program.after(&control, edge);
        cube = after;
    }
    let count = program.threads.len();
    let first = program.edges[*violation].thread;
    let (mut thread, mut waiting, mut steps) = (first, 0, 0);
    while waiting < count && steps < RUN_ON {
        let mut taken = None;
        for edge in program.possible(&control) {
            let there = &program.edges[edge];
            let often = visits.get(&(thread, there.to)).copied().unwrap_or(0);
            if there.thread != thread || program.is_error(edge) || often >= 2 {
                continue;
            }
            if taken.is_some_and(|(_, _, other)| other <= often) {
                continue;
            }
            if let Some(&after) = abstraction.post(program, solver, edge, cube)?.first() {
                taken = Some((edge, after, often));
            }
        }
        match taken {
            Some((edge, after, _)) => {
                events[thread].push(edge);
                *visits.entry((thread, program.edges[edge].to)).or_default() += 1;
                control = program.after(&control, edge);
                cube = after;
                (waiting, steps) = (0, steps + 1);
            }
            None => {
                thread = (thread + 1) % count;
                waiting += 1;
            }
        }
    }
    Ok(events)
}

/// A trace of the neighbourhood, up to a violation, that the abstraction still has. In depth first: the
/// nearest violation would need the answers about everything that is nearer. As in the search of the
/// whole program, a persistent set of threads is enough, if one of them has an event left.
fn remaining(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &mut Abstraction,
    reduction: &Reduction,
    events: &[Vec<EdgeId>],
) -> Result<Option<Vec<EdgeId>>, Trouble> {
    struct Node {
        /// Events that each thread has taken.
        places: Vec<usize>,
        control: Vec<Location>,
        cube: Cube,
        parent: Option<(usize, EdgeId)>,
    }
    let start = vec![0; events.len()];
    let control = program.first_control();
    let mut nodes: Vec<Node> = Vec::new();
    for cube in abstraction.first(program, solver)? {
        let (places, control) = (start.clone(), control.clone());
        nodes.push(Node { places, control, cube, parent: None });
    }
    let mut open: Vec<usize> = (0..nodes.len()).collect();
    let mut seen: HashMap<Vec<usize>, Vec<Cube>> = HashMap::new();
    let mut looked = 0;
    while let Some(at) = open.pop() {
        let Node { places, control, cube, .. } = &nodes[at];
        let (places, control, cube) = (places.clone(), control.clone(), *cube);
        let known = seen.entry(places.clone()).or_default();
        if looked == LATTICE || known.iter().any(|&other| cube.implies(other)) {
            continue;
        }
        known.push(cube);
        looked += 1;
        let has_next = |thread: usize| places[thread] < events[thread].len();
        let threads = reduction.threads(program, &control);
        let reduced = threads.iter().any(|&thread| has_next(thread));
        for edge in program.possible(&control) {
            let thread = program.edges[edge].thread;
            let next = events[thread].get(places[thread]) == Some(&edge);
            if !next && !program.is_error(edge) || reduced && !threads.contains(&thread) {
                continue;
            }
            for cube in abstraction.post(program, solver, edge, cube)? {
                if program.is_error(edge) {
                    let (mut path, mut at) = (vec![edge], at);
                    while let Some((parent, edge)) = nodes[at].parent {
                        path.push(edge);
                        at = parent;
                    }
                    path.reverse();
                    return Ok(Some(path));
                }
                let mut places = places.clone();
                places[thread] += 1;
                open.push(nodes.len());
                let control = program.after(&control, edge);
                nodes.push(Node { places, control, cube, parent: Some((at, edge)) });
            }
        }
    }
    Ok(None)
}

/// Is the trace one of the abstract program, control included?
fn allowed(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &mut Abstraction,
    trace: &[EdgeId],
) -> Result<bool, Trouble> {
    let mut control = program.first_control();
    let mut cubes = abstraction.first(program, solver)?;
    for &edge in trace {
        if !program.possible(&control).contains(&edge) {
            return Ok(false);
        }
        let mut after: Vec<Cube> = Vec::new();
        for cube in cubes {
            after.extend(abstraction.post(program, solver, edge, cube)?);
        }
        if after.is_empty() {
            return Ok(false);
        }
        after.sort_unstable();
        after.dedup();
        cubes = after;
        control = program.after(&control, edge);
    }
    Ok(true)
}

/// Orders of the counterexample's events, sampled from its bad neighbourhood.
fn sample(
    program: &mut Program,
    solver: &mut Solver,
    abstraction: &mut Abstraction,
    counterexample: &[EdgeId],
) -> Result<Vec<Vec<usize>>, Trouble> {
    // inside an atomic section nothing can be moved
    let moves = counterexample.iter().all(|&edge| {
        let edge = &program.edges[edge];
        !program.threads[edge.thread].atomic[edge.to]
    });
    let threads: BTreeSet<usize> =
        counterexample.iter().map(|&edge| program.edges[edge].thread).collect();
    if !moves || threads.len() < 2 {
        return Ok(Vec::new());
    }
    let first = abstraction.first(program, solver)?;
    let first = first.first().copied().unwrap_or_default();
    let (trace, fixed) = abstract_trace(program, abstraction, counterexample, first);
    let options = foretell_neighbourhood::Options {
        synthesis: false,
        properties: Properties::default(),
        limits: Limits { states_per_search: 2_000, steps: 5_000, disjuncts: 40 },
        verification_states: 1,
        ..foretell_neighbourhood::Options::default()
    };
    let Ok(explanation) = explain(&trace, &options) else { return Ok(Vec::new()) };
    let disjuncts = explanation.bad.clauses();
    let order = Order { fixed, count: counterexample.len() };
    let mut orders: Vec<Vec<usize>> = Vec::new();
    let mut add = |order: Option<Vec<usize>>| {
        if let Some(order) = order
            && !orders.contains(&order)
        {
            orders.push(order);
        }
    };
    for (place, one) in disjuncts.iter().enumerate() {
        for two in &disjuncts[place + 1..] {
            let Some(swap) = swapped(one, two) else { continue };
            let rest: Vec<Atom> = one
                .iter()
                .chain(two)
                .copied()
                .filter(|a| *a != swap && *a != swap.negated())
                .collect();
            if let Some((first, second)) = order.swap(&rest, swap) {
                add(Some(first));
                add(Some(second));
            }
        }
    }
    for disjunct in disjuncts {
        let nearest: Vec<usize> = (0..counterexample.len()).collect();
        add(order.linear(disjunct, &nearest));
        for &early in &threads {
            let mut priority = nearest.clone();
            priority.sort_by_key(|&event| program.edges[counterexample[event]].thread != early);
            add(order.linear(disjunct, &priority));
        }
    }
    Ok(orders)
}

/// The atom of the first disjunct whose negation is in the second, if there is exactly one.
fn swapped(one: &[Atom], two: &[Atom]) -> Option<Atom> {
    let mut opposite = one.iter().filter(|atom| two.contains(&atom.negated()));
    match (opposite.next(), opposite.next()) {
        (Some(atom), None) => Some(*atom),
        _ => None,
    }
}

/// Program order and what control fixes, over places of the counterexample.
struct Order {
    fixed: Vec<(usize, usize)>,
    count: usize,
}

impl Order {
    /// All events in an order that obeys the atoms, earliest in `priority` first.
    fn linear(&self, atoms: &[Atom], priority: &[usize]) -> Option<Vec<usize>> {
        self.extend(atoms, priority, &vec![true; self.count])
    }

    fn edges(&self, atoms: &[Atom]) -> Vec<(usize, usize)> {
        let atoms = atoms.iter().map(|atom| (atom.before.index(), atom.after.index()));
        self.fixed.iter().copied().chain(atoms).collect()
    }

    /// The chosen events in an order; `None` when there is a cycle. A chosen event whose predecessor
    /// is not chosen is taken to come after it.
    fn extend(&self, atoms: &[Atom], priority: &[usize], chosen: &[bool]) -> Option<Vec<usize>> {
        let edges = self.edges(atoms);
        let mut done: Vec<bool> = chosen.iter().map(|chosen| !chosen).collect();
        let wanted = chosen.iter().filter(|chosen| **chosen).count();
        let mut order = Vec::with_capacity(wanted);
        while order.len() < wanted {
            let next = priority.iter().copied().find(|&event| {
                !done[event] && edges.iter().all(|&(before, after)| after != event || done[before])
            })?;
            done[next] = true;
            order.push(next);
        }
        Some(order)
    }

    /// Events at or below an event.
    fn below(&self, atoms: &[Atom], event: usize) -> Vec<bool> {
        let edges = self.edges(atoms);
        let mut below = vec![false; self.count];
        let mut stack = vec![event];
        while let Some(top) = stack.pop() {
            if !std::mem::replace(&mut below[top], true) {
                stack.extend(edges.iter().filter(|edge| edge.1 == top).map(|edge| edge.0));
            }
        }
        below
    }

    /// The two traces that differ in the order of the swapped events and what leads to them only.
    fn swap(&self, atoms: &[Atom], swap: Atom) -> Option<(Vec<usize>, Vec<usize>)> {
        let (a, b) = (swap.before.index(), swap.after.index());
        let (below_a, below_b) = (self.below(atoms, a), self.below(atoms, b));
        if below_a[b] || below_b[a] {
            return None;
        }
        let all: Vec<usize> = (0..self.count).collect();
        let part = |test: &dyn Fn(usize) -> bool| {
            let chosen: Vec<bool> = all.iter().map(|&event| test(event)).collect();
            self.extend(atoms, &all, &chosen)
        };
        let prefix = part(&|e| below_a[e] && below_b[e])?;
        let first = part(&|e| below_a[e] && !below_b[e])?;
        let second = part(&|e| below_b[e] && !below_a[e])?;
        let suffix = part(&|e| !below_a[e] && !below_b[e])?;
        Some((
            [prefix.clone(), first.clone(), second.clone(), suffix.clone()].concat(),
            [prefix, second, first, suffix].concat(),
        ))
    }
}

/// The counterexample as a trace of abstract events, and the orders that hold anyway.
///
/// Of each predicate two Boolean variables say whether it is known to hold and known not to hold;
/// an abstract event is the transition predicate that sets them by the implicants of the weakest
/// preconditions found so far. The last event asserts that it is impossible.
fn abstract_trace(
    program: &Program,
    abstraction: &Abstraction,
    counterexample: &[EdgeId],
    first: Cube,
) -> (Trace, Vec<(usize, usize)>) {
    let mut trace = Trace::new();
    trace.metadata.symbolic = true;
    let mut variables: Vec<[VariableId; 2]> = Vec::new();
    for place in 0..abstraction.predicates.len() {
        let mut make = |what: &str, value: bool| {
            trace.add_variable(Variable {
                name: format!("{what}{place}").into(),
                sort: Sort::BOOL,
                scope: Scope::Shared,
                initial: Some(Value::Bool(value)),
                memory: None,
            })
        };
        let yes = make("yes", first.yes >> place & 1 == 1);
        let no = make("no", first.no >> place & 1 == 1);
        variables.push([yes, no]);
    }
    for thread in &program.threads {
        trace.add_thread(&thread.name, Vec::new());
    }
    let mut indices = vec![0; program.threads.len()];
    let mut last_of: Vec<Option<usize>> = vec![None; program.threads.len()];
    let mut started_by: Vec<Option<usize>> = vec![None; program.threads.len()];
    let mut fixed = Vec::new();
    for (place, &id) in counterexample.iter().enumerate() {
        let edge = &program.edges[id];
        let formula_of = |trace: &mut Trace, cube: Cube| {
            let literals: Vec<TermId> = cube
                .literals()
                .map(|(predicate, value)| {
                    let variable = variables[predicate][usize::from(!value)];
                    trace.terms.variable(variable, Sort::BOOL)
                })
                .collect();
            trace.terms.and(&literals)
        };
        let any_of = |trace: &mut Trace, cubes: &[Cube]| {
            let cubes: Vec<TermId> = cubes.iter().map(|&cube| formula_of(trace, cube)).collect();
            trace.terms.or(&cubes)
        };
        let impossible = any_of(&mut trace, abstraction.impossible(id));
        let op = if place + 1 == counterexample.len() {
            Op::Assert(Condition { term: Some(impossible), outcome: false })
        } else {
            let mut parts = vec![trace.terms.not(impossible)];
            let mut changed = Vec::new();
            for (predicate, known) in variables.iter().enumerate() {
                if !abstraction.touches(id, predicate) {
                    continue;
                }
                for value in [true, false] {
                    let variable = known[usize::from(!value)];
                    let implied = abstraction.implicants(id, predicate, value);
                    let mut becomes = any_of(&mut trace, implied);
                    if !abstraction.assigns(id, predicate) {
                        let was = trace.terms.variable(variable, Sort::BOOL);
                        becomes = trace.terms.or(&[becomes, was]);
                    }
                    let after = trace.terms.primed(variable, Sort::BOOL);
                    parts.push(trace.terms.build(foretell_trace::Operator::Eq, &[after, becomes]));
                    changed.push(variable);
                }
            }
            let predicate = trace.terms.and(&parts);
            Op::Transition(Box::new(Transition { predicate, changed }))
        };
        trace.push(Event {
            thread: edge.thread.into(),
            index: indices[edge.thread],
            site: None,
            op,
        });
        indices[edge.thread] += 1;
        let mut order = |before: usize| fixed.push((before, place));
        if let Some(last) = last_of[edge.thread] {
            order(last);
        } else if let Some(start) = started_by[edge.thread] {
            order(start);
        }
        if let Some(last) = edge.awaits.and_then(|other| last_of[other]) {
            order(last);
        }
        last_of[edge.thread] = Some(place);
        if let Some(started) = edge.starts {
            started_by[started] = Some(place);
        }
    }
    trace.orders = fixed
        .iter()
        .filter(|(a, b)| {
            program.edges[counterexample[*a]].thread != program.edges[counterexample[*b]].thread
        })
        .map(|&(a, b)| (EventId::from(a), EventId::from(b)))
        .collect();
    (trace, fixed)
}
