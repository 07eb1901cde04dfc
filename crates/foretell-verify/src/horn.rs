//! Simultaneous refinement as recursion-free Horn clauses (001 section 5.3).
//!
//! Unknown predicates stand at the nodes of a graph, events at its clauses: what holds before an
//! event implies, over the event, what holds after; the first node is the beginning of the program,
//! and a clause without conclusion must be impossible. One chain of clauses is the refinement of one
//! trace; several traces that pass through the same cut share a node.
//!
//! As the paper (after Albarghouthi and McMillan, "Beautiful interpolants") we prefer solutions that
//! are conjunctions of simple atoms, also where several clauses have the same conclusion: a solution
//! is sought among a pool of linear atoms over the variables and constants of the events. From the
//! beginning on, each node keeps the atoms that all its clauses imply; from the impossible clauses
//! backwards, each node keeps what is needed, cheap atoms first. Where no such solution exists, Z3's
//! Spacer solves the clauses of each trace; its solutions may have disjunctions.

mod pool;
mod spacer;

use std::collections::{BTreeSet, HashMap, HashSet};

use foretell_trace::{Sort, Term, TermId, Value, VariableId};

use crate::abstraction::{evaluate, initial_facts, positive};
use crate::program::{EdgeId, Program};
use crate::solver::{Answer, Solver, Trouble};
use pool::Pool;
pub use spacer::spacer;

/// What holds at `from` and the event imply what holds at `to`, or false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Clause {
    /// Premise.
    pub from: usize,
    /// Event.
    pub edge: EdgeId,
    /// Conclusion.
    pub to: Option<usize>,
}

/// Clauses over nodes `0..nodes`; node 0 is the beginning, and a clause leads to a later node.
#[derive(Clone, Debug, Default)]
pub struct Clauses {
    /// Number of unknown predicates.
    pub nodes: usize,
    /// All clauses, in order of their premises.
    pub clauses: Vec<Clause>,
}

impl Clauses {
    /// The clauses of one trace.
    pub fn of_trace(trace: &[EdgeId]) -> Self {
        let last = trace.len() - 1;
        let clauses = trace.iter().enumerate().map(|(place, &edge)| Clause {
            from: place,
            edge,
            to: (place < last).then_some(place + 1),
        });
        Self { nodes: trace.len(), clauses: clauses.collect() }
    }

    /// The clauses of several traces with the same events of each thread: traces that have taken
    /// equally many events of every thread share a node.
    pub fn of_traces(program: &Program, traces: &[Vec<EdgeId>]) -> Self {
        let mut cuts: BTreeSet<(usize, Vec<usize>)> = BTreeSet::new();
        let mut steps: HashSet<(Vec<usize>, EdgeId, Option<Vec<usize>>)> = HashSet::new();
        for trace in traces {
            let mut cut = vec![0; program.threads.len()];
            for (place, &edge) in trace.iter().enumerate() {
                cuts.insert((place, cut.clone()));
                let mut next = cut.clone();
                next[program.edges[edge].thread] += 1;
                let to = (place + 1 < trace.len()).then(|| next.clone());
                steps.insert((cut, edge, to));
                cut = next;
            }
        }
        let numbers: HashMap<&Vec<usize>, usize> =
            cuts.iter().enumerate().map(|(number, (_, cut))| (cut, number)).collect();
        let mut clauses: Vec<Clause> = steps
            .iter()
            .map(|(from, edge, to)| Clause {
                from: numbers[from],
                edge: *edge,
                to: to.as_ref().map(|to| numbers[to]),
            })
            .collect();
        clauses.sort_unstable();
        Self { nodes: cuts.len(), clauses }
    }
}

/// Predicates that solve the clauses as conjunctions of atoms; `None` when the pool has no solution.
pub fn atoms(
    program: &mut Program,
    solver: &mut Solver,
    clauses: &Clauses,
    traces: &[Vec<EdgeId>],
    known: &[TermId],
) -> Result<Option<Vec<TermId>>, Trouble> {
    let pool = Pool::new(program, traces, known);
    let Some(forward) = forward(program, solver, clauses, &pool)? else { return Ok(None) };
    backward(program, solver, clauses, &pool, &forward)
}

/// What the forward pass found.
struct Forward {
    /// For each node: the atoms that hold; `None` where it cannot be reached.
    holds: Vec<Option<Vec<usize>>>,
    /// For each clause: its event is impossible after its premise.
    impossible: Vec<bool>,
}

/// A concrete state: values of the leaves.
type Exact = HashMap<TermId, Value>;

/// The only state in which a run can begin, if there is one.
fn only_beginning(program: &mut Program) -> Option<Exact> {
    let mut values = Exact::new();
    for index in 0..program.variables.len() {
        let leaf = program.terms.variable(VariableId::from(index), Sort::INT);
        values.insert(leaf, Value::Int(program.variables[index].initial?));
    }
    Some(values)
}

/// The only state after the edge; `None` when there is none or more than one.
fn only_successor(program: &mut Program, edge: EdgeId, before: &Exact) -> Option<Exact> {
    let mut after = before.clone();
    for &(variable, value) in &program.edges[edge].assignments {
        let value = evaluate(program, value, before)?;
        after.insert(program.terms.find(&Term::Variable(variable))?, value);
    }
    Some(after)
}

/// The atoms that hold at each node. Where only one state is possible (no inputs, and all traces that
/// meet have come to the same values), they are read off that state; elsewhere the solver is asked.
fn forward(
    program: &mut Program,
    solver: &mut Solver,
    clauses: &Clauses,
    pool: &Pool,
) -> Result<Option<Forward>, Trouble> {
    let everything: Vec<usize> = (0..pool.atoms.len()).collect();
    let mut holds: Vec<Option<Vec<usize>>> = vec![None; clauses.nodes];
    let mut exact: Vec<Option<Exact>> = vec![None; clauses.nodes];
    let mut impossible = vec![false; clauses.clauses.len()];
    let read_off = |program: &Program, state: &Exact| -> Vec<usize> {
        let holds =
            |atom: &usize| evaluate(program, pool.atoms[*atom].0, state) == Some(Value::Bool(true));
        everything.iter().copied().filter(holds).collect()
    };
    exact[0] = only_beginning(program).filter(|_| program.terms.is_true(program.initially));
    holds[0] = Some(match &exact[0] {
        Some(state) => read_off(program, state),
        None => {
            let facts = initial_facts(program);
            implied(program, solver, &facts, None, &everything, pool)?
        }
    });
    for (number, clause) in clauses.clauses.iter().enumerate() {
        let Some(before) = holds[clause.from].clone() else { continue };
        let guard = program.edges[clause.edge].guard;
        let state = exact[clause.from].clone();
        let enabled = match state.as_ref().map(|state| evaluate(program, guard, state)) {
            Some(Some(Value::Bool(enabled))) => Some(enabled),
            _ => None,
        };
        let facts: Vec<TermId> =
            before.iter().map(|&atom| pool.atoms[atom].0).chain([guard]).collect();
        let excluded = match enabled {
            Some(enabled) => !enabled,
            None => solver.refutes(&program.terms, &facts)?,
        };
        if excluded {
            impossible[number] = true;
            continue;
        }
        let Some(to) = clause.to else { return Ok(None) };
        let after = state.and_then(|state| only_successor(program, clause.edge, &state));
        if let Some(after) = after {
            match (&holds[to], &exact[to]) {
                (None, _) => {
                    holds[to] = Some(read_off(program, &after));
                    exact[to] = Some(after);
                    continue;
                }
                (Some(_), Some(already)) if *already == after => continue,
                (Some(already), _) => {
                    let true_here = read_off(program, &after);
                    let both = already.iter().copied();
                    let both = both.filter(|atom| true_here.binary_search(atom).is_ok()).collect();
                    holds[to] = Some(both);
                    exact[to] = None;
                    continue;
                }
            }
        }
        exact[to] = None;
        // what nobody touches stays
        let touched = program.writes(clause.edge) | program.variables_of(guard);
        let candidates: Vec<usize> = match &holds[to] {
            Some(already) => already.clone(),
            None => everything.clone(),
        };
        let (open, kept): (Vec<usize>, Vec<usize>) =
            candidates.into_iter().partition(|&atom| pool.variables[atom] & touched != 0);
        let mut after: Vec<usize> =
            kept.into_iter().filter(|atom| before.binary_search(atom).is_ok()).collect();
        after.extend(implied(program, solver, &facts, Some(clause.edge), &open, pool)?);
        after.sort_unstable();
        holds[to] = Some(after);
    }
    Ok(Some(Forward { holds, impossible }))
}

/// Those of the atoms that the facts imply (after the edge): each refuted guess brings a state that
/// refutes others as well.
fn implied(
    program: &mut Program,
    solver: &mut Solver,
    facts: &[TermId],
    edge: Option<EdgeId>,
    atoms: &[usize],
    pool: &Pool,
) -> Result<Vec<usize>, Trouble> {
    let mut open: Vec<(usize, TermId)> = Vec::new();
    for &atom in atoms {
        let term = pool.atoms[atom].0;
        let term = match edge {
            Some(edge) => program.before_edge(edge, term),
            None => term,
        };
        if !program.terms.is_false(term) {
            open.push((atom, term));
        }
    }
    loop {
        let guesses: Vec<TermId> = open.iter().map(|&(_, term)| term).collect();
        let all = program.terms.and(&guesses);
        let some_fails = program.terms.not(all);
        if program.terms.is_false(some_fails) {
            break;
        }
        let question = [facts, &[some_fails]].concat();
        match solver.check(&program.terms, &question, &[])? {
            Answer::Unsatisfiable(_) => break,
            Answer::Satisfiable(mut values) => {
                for index in 0..program.variables.len() {
                    let leaf = program.terms.variable(VariableId::from(index), Sort::INT);
                    values.entry(leaf).or_insert(Value::Int(0));
                }
                let before = open.len();
                open.retain(|&(_, term)| {
                    evaluate(program, term, &values) == Some(Value::Bool(true))
                });
                if open.len() == before {
                    return Err(Trouble::Failed("a model that refutes nothing".into()));
                }
            }
        }
    }
    let mut kept: Vec<usize> = open.into_iter().map(|(atom, _)| atom).collect();
    kept.sort_unstable();
    Ok(kept)
}

fn backward(
    program: &mut Program,
    solver: &mut Solver,
    clauses: &Clauses,
    pool: &Pool,
    forward: &Forward,
) -> Result<Option<Vec<TermId>>, Trouble> {
    let mut needed: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); clauses.nodes];
    let mut learned: Vec<(EdgeId, Option<usize>, Vec<usize>)> = Vec::new();
    for (number, clause) in clauses.clauses.iter().enumerate().rev() {
        let Some(before) = &forward.holds[clause.from] else { continue };
        let goals: Vec<Option<usize>> = match (forward.impossible[number], clause.to) {
            (true, _) => vec![None],
            (false, Some(to)) => needed[to].iter().map(|&atom| Some(atom)).collect(),
            (false, None) => unreachable!("the forward pass refuses such clauses"),
        };
        for goal in goals {
            if let Some(atom) = goal
                && pool.variables[atom] & program.writes(clause.edge) == 0
                && before.binary_search(&atom).is_ok()
            {
                needed[clause.from].insert(atom);
                continue;
            }
            // another event like this one may have the same reason
            let reason = learned.iter().find(|(edge, of, reason)| {
                *edge == clause.edge
                    && *of == goal
                    && reason.iter().all(|atom| before.binary_search(atom).is_ok())
            });
            if let Some((_, _, reason)) = reason {
                needed[clause.from].extend(reason);
                continue;
            }
            let wanted = match goal {
                Some(atom) => {
                    let after = program.before_edge(clause.edge, pool.atoms[atom].0);
                    program.terms.not(after)
                }
                None => program.terms.bool(true),
            };
            let facts = [program.edges[clause.edge].guard, wanted];
            let prefer: Vec<usize> = needed[clause.from].iter().copied().collect();
            let reason = cheapest(program, solver, &facts, before, &prefer, pool)?;
            let Some(reason) = reason else { return Ok(None) };
            needed[clause.from].extend(&reason);
            learned.push((clause.edge, goal, reason));
        }
    }
    let mut predicates: Vec<TermId> =
        needed.into_iter().flatten().map(|atom| positive(program, pool.atoms[atom].0).0).collect();
    predicates.sort_unstable();
    predicates.dedup();
    Ok(Some(predicates))
}

/// A small set of atoms, cheap ones first, that contradicts the facts; `None` if all do not.
fn cheapest(
    program: &Program,
    solver: &mut Solver,
    facts: &[TermId],
    available: &[usize],
    prefer: &[usize],
    pool: &Pool,
) -> Result<Option<Vec<usize>>, Trouble> {
    let cost = |atom: usize| if prefer.contains(&atom) { 0 } else { pool.atoms[atom].1 };
    let touched = facts.iter().fold(0, |all, &fact| all | program.variables_of(fact));
    let mut core: Option<Vec<usize>> = None;
    // atoms about the variables of the facts first, then all
    for (limit, near) in [(1, true), (3, true), (4, true), (4, false)] {
        let affordable: Vec<usize> = available
            .iter()
            .copied()
            .filter(|&atom| cost(atom) <= limit)
            .filter(|&atom| !near || pool.variables[atom] & touched != 0)
            .collect();
        let terms: Vec<TermId> = affordable.iter().map(|&atom| pool.atoms[atom].0).collect();
        if let Answer::Unsatisfiable(found) = solver.check(&program.terms, facts, &terms)? {
            core = Some(found.into_iter().map(|place| affordable[place]).collect());
            break;
        }
    }
    let Some(mut core) = core else { return Ok(None) };
    // dear ones are tried to be dropped first, and negations before what they negate
    let negative = |atom: usize| !positive(program, pool.atoms[atom].0).1;
    core.sort_by_key(|&atom| std::cmp::Reverse((cost(atom), negative(atom), atom)));
    let mut place = 0;
    while place < core.len() && core.len() > 1 {
        let mut fewer = core.clone();
        fewer.remove(place);
        let terms: Vec<TermId> = fewer.iter().map(|&atom| pool.atoms[atom].0).collect();
        match solver.check(&program.terms, facts, &terms)? {
            Answer::Unsatisfiable(found) => {
                core = fewer
                    .iter()
                    .enumerate()
                    .filter(|(place, _)| found.contains(place))
                    .map(|(_, &atom)| atom)
                    .collect();
            }
            Answer::Satisfiable(_) => place += 1,
        }
    }
    Ok(Some(core))
}
