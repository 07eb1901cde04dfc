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

use std::collections::{BTreeSet, HashMap, HashSet};

use foretell_solve::Sexpr;
use foretell_trace::{Operator, Sort, Term, TermId, Value, VariableId};

use crate::abstraction::{evaluate, initial_facts, positive};
use crate::limits::POOL;
use crate::path::constants;
use crate::program::{EdgeId, Program, VariableSet, bit};
use crate::solver::{Answer, Solver, Trouble, print};

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

struct Pool {
    /// Atoms with what they cost.
    atoms: Vec<(TermId, u32)>,
    variables: Vec<VariableSet>,
}

/// What the forward pass found.
struct Forward {
    /// For each node: the atoms that hold; `None` where it cannot be reached.
    holds: Vec<Option<Vec<usize>>>,
    /// For each clause: its event is impossible after its premise.
    impossible: Vec<bool>,
}

impl Pool {
    fn new(program: &mut Program, traces: &[Vec<EdgeId>], known: &[TermId]) -> Self {
        let cone = cone(program, traces);
        let mut found: HashMap<TermId, u32> = HashMap::new();
        let mut order: Vec<TermId> = Vec::new();
        let add = |program: &mut Program,
                   order: &mut Vec<TermId>,
                   found: &mut HashMap<TermId, u32>,
                   term: TermId,
                   cost: u32| {
            if program.terms.constant_value(term).is_some() || order.len() >= POOL {
                return;
            }
            for term in [term, program.terms.not(term)] {
                let entry = found.entry(term).or_insert_with(|| {
                    order.push(term);
                    cost
                });
                *entry = cost.min(*entry);
            }
        };
        for &term in known {
            if program.variables_of(term) & cone != 0 {
                add(program, &mut order, &mut found, term, 0);
            }
        }
        let written = written_constants(program);
        let mut ordered: VariableSet = 0; // variables that are compared by size
        let mut pairs: BTreeSet<(VariableId, VariableId)> = BTreeSet::new();
        let edges: BTreeSet<EdgeId> = traces.iter().flatten().copied().collect();
        for &edge in &edges {
            for atom in comparisons(program, program.edges[edge].guard) {
                let Some(atom) = about_state(program, edge, atom) else { continue };
                let variables = program.variables_of(atom);
                if matches!(program.terms.term(atom), Term::Apply(Operator::Le, _)) {
                    ordered |= variables;
                }
                add(program, &mut order, &mut found, atom, 1);
                add_pairs(variables & cone, &mut pairs);
            }
            for &(variable, value) in &program.edges[edge].assignments.clone() {
                let variables = program.variables_of(value);
                if bit(variable) & cone != 0 && variables.count_ones() <= 3 {
                    add_pairs(variables | bit(variable), &mut pairs);
                }
            }
        }
        let mut values: BTreeSet<(VariableId, i128)> = BTreeSet::new();
        for trace in traces {
            values.extend(constants(program, trace));
        }
        for (variable, value) in values {
            if bit(variable) & cone == 0 {
                continue;
            }
            let x = program.terms.variable(variable, Sort::INT);
            let c = program.terms.int(value);
            let equal = program.terms.build(Operator::Eq, &[x, c]);
            let cost = if written.contains(&(variable, value)) { 1 } else { 4 };
            add(program, &mut order, &mut found, equal, cost);
            if ordered & bit(variable) != 0 {
                for sides in [[x, c], [c, x]] {
                    let bound = program.terms.build(Operator::Le, &sides);
                    add(program, &mut order, &mut found, bound, 3);
                }
            }
        }
        // the same variable of the source, e.g. a ticket and the counter it was drawn from
        let by_size: Vec<VariableId> = (0..program.variables.len())
            .map(VariableId::from)
            .filter(|&v| bit(v) & cone & ordered != 0)
            .collect();
        if by_size.len() <= 5 {
            for (place, &a) in by_size.iter().enumerate() {
                pairs.extend(by_size[place + 1..].iter().map(|&b| (a, b)));
            }
        }
        for (a, b) in pairs {
            let (x, y) =
                (program.terms.variable(a, Sort::INT), program.terms.variable(b, Sort::INT));
            let equal = program.terms.build(Operator::Eq, &[x, y]);
            add(program, &mut order, &mut found, equal, 2);
            for sides in [[x, y], [y, x]] {
                let bound = program.terms.build(Operator::Le, &sides);
                add(program, &mut order, &mut found, bound, 3);
            }
        }
        // comparisons of later events, said in terms of what came before
        for trace in traces {
            let mut wanted: BTreeSet<TermId> = BTreeSet::new();
            for &edge in trace.iter().rev() {
                let pulled: Vec<TermId> =
                    wanted.iter().map(|&atom| program.before_edge(edge, atom)).collect();
                let guards = comparisons(program, program.edges[edge].guard);
                wanted = pulled
                    .into_iter()
                    .chain(guards)
                    .filter_map(|atom| without_inputs(program, atom))
                    .flat_map(|atom| comparisons(program, atom))
                    .filter(|&atom| program.terms.leaves(atom).len() <= 4)
                    .collect();
                for &atom in &wanted {
                    add(program, &mut order, &mut found, atom, 3);
                }
            }
        }
        let atoms: Vec<(TermId, u32)> = order.iter().map(|&term| (term, found[&term])).collect();
        let variables = atoms.iter().map(|&(term, _)| program.variables_of(term)).collect();
        Self { atoms, variables }
    }
}

fn add_pairs(variables: VariableSet, pairs: &mut BTreeSet<(VariableId, VariableId)>) {
    let members: Vec<VariableId> = (0..VariableSet::BITS as usize)
        .filter(|&i| variables >> i & 1 == 1)
        .map(VariableId::from)
        .collect();
    for (place, &a) in members.iter().enumerate() {
        pairs.extend(members[place + 1..].iter().map(|&b| (a, b)));
    }
}

/// Variables on which the guards of the traces depend.
fn cone(program: &Program, traces: &[Vec<EdgeId>]) -> VariableSet {
    let edges: BTreeSet<EdgeId> = traces.iter().flatten().copied().collect();
    let mut cone =
        edges.iter().fold(0, |all, &edge| all | program.variables_of(program.edges[edge].guard));
    loop {
        let mut wider = cone;
        for &edge in &edges {
            for &(variable, value) in &program.edges[edge].assignments {
                if cone & bit(variable) != 0 {
                    wider |= program.variables_of(value);
                }
            }
        }
        if wider == cone {
            return cone;
        }
        cone = wider;
    }
}

/// Constants that the program's text gives to variables.
fn written_constants(program: &Program) -> HashSet<(VariableId, i128)> {
    let mut written = HashSet::new();
    for (index, variable) in program.variables.iter().enumerate() {
        written.extend(variable.initial.map(|value| (VariableId::from(index), value)));
    }
    for edge in &program.edges {
        for &(variable, value) in &edge.assignments {
            if let Some(&Value::Int(value)) = program.terms.constant_value(value) {
                written.insert((variable, value));
            }
        }
    }
    written
}

/// The comparisons that a formula is made of, without negations.
fn comparisons(program: &Program, formula: TermId) -> Vec<TermId> {
    let mut found = Vec::new();
    let mut stack = vec![formula];
    while let Some(top) = stack.pop() {
        if program.terms.sort(top) != Sort::BOOL {
            continue;
        }
        match program.terms.term(top) {
            Term::Apply(Operator::Eq | Operator::Lt | Operator::Le, parts)
                if program.terms.sort(parts[0]) != Sort::BOOL =>
            {
                found.push(top)
            }
            Term::Apply(_, parts) => stack.extend(parts.iter().copied()),
            _ => {}
        }
    }
    found
}

/// `None` for an atom about inputs: they are not part of a state.
fn without_inputs(program: &Program, atom: TermId) -> Option<TermId> {
    let inputs = program.terms.leaves(atom).into_iter();
    let mut inputs = inputs.filter(|&leaf| matches!(program.terms.term(leaf), Term::Symbol(_)));
    inputs.next().is_none().then_some(atom)
}

/// An atom of an edge's guard as one about the state after it: an input that a variable keeps is
/// called by that variable.
fn about_state(program: &mut Program, edge: EdgeId, atom: TermId) -> Option<TermId> {
    if without_inputs(program, atom).is_some() {
        return Some(atom);
    }
    let mut kept: HashMap<TermId, TermId> = HashMap::new();
    for (variable, value) in program.edges[edge].assignments.clone() {
        if without_inputs(program, value).is_none() {
            kept.insert(value, program.terms.variable(variable, Sort::INT));
        }
    }
    let atom = program.terms.substitute(atom, &mut kept, &mut |_, _| None);
    without_inputs(program, atom)
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

/// Predicates from Z3's Spacer for the clauses of one trace; `None` when it has no solution to offer.
pub fn spacer(
    program: &mut Program,
    solver: &mut Solver,
    trace: &[EdgeId],
) -> Result<Option<Vec<TermId>>, Trouble> {
    let cone = cone(program, std::slice::from_ref(&trace.to_vec()));
    let variables: Vec<VariableId> = (0..program.variables.len())
        .map(VariableId::from)
        .filter(|&variable| cone & bit(variable) != 0)
        .collect();
    if variables.is_empty() {
        return Ok(None);
    }
    let clauses = Clauses::of_trace(trace);
    let ints = vec!["Int"; variables.len()].join(" ");
    let names: Vec<String> = variables.iter().map(|v| format!("v{}", v.0)).collect();
    let mut text = String::new();
    for node in 0..clauses.nodes {
        text.push_str(&format!("(declare-fun P{node} ({ints}) Bool)\n"));
    }
    let mut bound: String = names.iter().map(|name| format!("({name} Int)")).collect();
    for &edge in trace {
        for &input in &program.edges[edge].inputs {
            let name = print(&program.terms, input);
            if !bound.contains(&format!("({name} ")) {
                bound.push_str(&format!("({name} Int)"));
            }
        }
    }
    let facts: Vec<String> = initial_facts(program)
        .into_iter()
        .filter(|&fact| program.variables_of(fact) & !cone == 0)
        .map(|fact| print(&program.terms, fact))
        .collect();
    let arguments = names.join(" ");
    text.push_str(&format!(
        "(assert (forall ({bound}) (=> (and true {}) (P0 {arguments}))))\n",
        facts.join(" ")
    ));
    for clause in &clauses.clauses {
        let edge = &program.edges[clause.edge];
        let guard = print(&program.terms, edge.guard);
        let after: Vec<String> = variables
            .iter()
            .zip(&names)
            .map(|(variable, name)| {
                let assigned = edge.assignments.iter().find(|(other, _)| other == variable);
                assigned.map_or(name.clone(), |&(_, value)| print(&program.terms, value))
            })
            .collect();
        let conclusion = match clause.to {
            Some(to) => format!("(P{to} {})", after.join(" ")),
            None => String::from("false"),
        };
        text.push_str(&format!(
            "(assert (forall ({bound}) (=> (and (P{} {arguments}) {guard}) {conclusion})))\n",
            clause.from
        ));
    }
    let Some(model) = solver.horn(&text)? else { return Ok(None) };
    let mut predicates = Vec::new();
    for definition in &model {
        let Some([keyword, _, parameters, _, body]) = definition.list() else { continue };
        if keyword.atom() != Some("define-fun") {
            continue;
        }
        let mut scope: HashMap<String, TermId> = HashMap::new();
        for (parameter, &variable) in parameters.list().unwrap_or_default().iter().zip(&variables) {
            if let Some([name, _]) = parameter.list()
                && let Some(name) = name.atom()
            {
                scope.insert(name.to_string(), program.terms.variable(variable, Sort::INT));
            }
        }
        let Some(solution) = term_of(program, body, &scope) else { return Ok(None) };
        let conjuncts = match program.terms.term(solution) {
            Term::Apply(Operator::And, parts) => parts.to_vec(),
            _ => vec![solution],
        };
        for conjunct in conjuncts {
            if program.terms.constant_value(conjunct).is_none() {
                predicates.push(positive(program, conjunct).0);
            }
        }
    }
    predicates.sort_unstable();
    predicates.dedup();
    Ok(Some(predicates))
}

/// The term of a solver's reply; `None` when it has a construct that programs do not have.
fn term_of(program: &mut Program, text: &Sexpr, scope: &HashMap<String, TermId>) -> Option<TermId> {
    let parts = match text {
        Sexpr::Atom(word) => {
            return match word.as_str() {
                "true" => Some(program.terms.bool(true)),
                "false" => Some(program.terms.bool(false)),
                _ => match word.parse::<i128>() {
                    Ok(number) => Some(program.terms.int(number)),
                    Err(_) => scope.get(word).copied(),
                },
            };
        }
        Sexpr::List(parts) => parts,
    };
    let head = parts.first()?.atom()?;
    if head == "let" {
        let mut inner = scope.clone();
        for binding in parts.get(1)?.list()? {
            let [name, value] = binding.list()? else { return None };
            inner.insert(name.atom()?.to_string(), term_of(program, value, scope)?);
        }
        return term_of(program, parts.get(2)?, &inner);
    }
    let arguments: Option<Vec<TermId>> =
        parts[1..].iter().map(|part| term_of(program, part, scope)).collect();
    let mut arguments = arguments?;
    let operator = match head {
        "and" => Operator::And,
        "or" => Operator::Or,
        "not" => Operator::Not,
        "=>" => Operator::Implies,
        "=" => Operator::Eq,
        "+" => Operator::Add,
        "-" if arguments.len() == 1 => Operator::Neg,
        "-" => Operator::Sub,
        "*" => Operator::Mul,
        "div" => Operator::IntDiv,
        "mod" => Operator::Mod,
        "ite" => Operator::Ite,
        "<=" => Operator::Le,
        "<" => Operator::Lt,
        ">=" | ">" => {
            arguments.reverse();
            if head == ">" { Operator::Lt } else { Operator::Le }
        }
        _ => return None,
    };
    program.terms.apply(operator, &arguments).ok()
}
