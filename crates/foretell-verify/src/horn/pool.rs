//! The atoms among which a solution is sought.

use std::collections::{BTreeSet, HashMap, HashSet};

use foretell_trace::{Operator, Sort, Term, TermId, Value, VariableId};

use crate::limits::POOL;
use crate::path::constants;
use crate::program::{EdgeId, Program, VariableSet, bit};

pub(super) struct Pool {
    /// Atoms with what they cost.
    pub(super) atoms: Vec<(TermId, u32)>,
    pub(super) variables: Vec<VariableSet>,
}

impl Pool {
    pub(super) fn new(program: &mut Program, traces: &[Vec<EdgeId>], known: &[TermId]) -> Self {
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
pub(super) fn cone(program: &Program, traces: &[Vec<EdgeId>]) -> VariableSet {
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
