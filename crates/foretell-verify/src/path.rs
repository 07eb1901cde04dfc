//! Is a sequence of edges possible? By symbolic execution: values stay constants as long as possible,
//! so that most questions need no solver.

use std::collections::HashMap;

use foretell_trace::{Operator, Sort, Term, TermId, Value, VariableId};

use crate::program::{EdgeId, Program};
use crate::solver::{Answer, Solver, Trouble};

/// Terms with more leaves than this get a name of their own.
const LEAVES: usize = 4;

/// Choices that make a path possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// First values of all variables.
    pub initial: Vec<i128>,
    /// For each edge of the path, values of its inputs.
    pub inputs: Vec<Vec<i128>>,
}

/// Can the edges be taken one after the other from the beginning? Gives choices, or `None`.
pub fn feasible(
    program: &mut Program,
    solver: &mut Solver,
    path: &[EdgeId],
) -> Result<Option<Choices>, Trouble> {
    let mut facts = Vec::new();
    let mut values: HashMap<VariableId, TermId> = HashMap::new();
    for index in 0..program.variables.len() {
        let variable = VariableId::from(index);
        if let Some(value) = program.variables[index].initial {
            values.insert(variable, program.terms.int(value));
        }
    }
    let initially = program.initially;
    facts.push(crate::program::replace_variables(&mut program.terms, initially, &values));
    let mut renamed_inputs = Vec::new();
    for &edge in path {
        let edge = program.edges[edge].clone();
        let fresh: HashMap<TermId, TermId> = edge
            .inputs
            .iter()
            .map(|&input| (input, program.terms.fresh_symbol("choice", Sort::INT)))
            .collect();
        renamed_inputs.push(edge.inputs.iter().map(|input| fresh[input]).collect::<Vec<_>>());
        let mut cache = HashMap::new();
        let mut instance = |program: &mut Program, term: TermId| {
            program.terms.substitute(term, &mut cache, &mut |terms, leaf| match leaf {
                Term::Variable(variable) => values.get(variable).copied(),
                Term::Symbol(_) => fresh.get(&terms.find(leaf)?).copied(),
                _ => None,
            })
        };
        let guard = instance(program, edge.guard);
        if program.terms.is_false(guard) {
            return Ok(None);
        }
        facts.push(guard);
        let mut new = Vec::new();
        for &(variable, value) in &edge.assignments {
            let mut value = instance(program, value);
            if program.terms.leaves(value).len() > LEAVES {
                let name = program.terms.fresh_symbol("value", Sort::INT);
                facts.push(program.terms.build(Operator::Eq, &[name, value]));
                value = name;
            }
            new.push((variable, value));
        }
        values.extend(new);
    }
    facts.retain(|&fact| !program.terms.is_true(fact));
    let model = if facts.is_empty() {
        HashMap::new()
    } else {
        match solver.check(&program.terms, &facts, &[])? {
            Answer::Unsatisfiable(_) => return Ok(None),
            Answer::Satisfiable(model) => model,
        }
    };
    let value = |leaf: Option<TermId>| match leaf.and_then(|leaf| model.get(&leaf)) {
        Some(Value::Int(value)) => *value,
        _ => 0,
    };
    let initial = (0..program.variables.len())
        .map(|index| {
            let leaf = program.terms.find(&Term::Variable(VariableId::from(index)));
            program.variables[index].initial.unwrap_or_else(|| value(leaf))
        })
        .collect();
    let inputs = renamed_inputs
        .iter()
        .map(|inputs| inputs.iter().map(|&input| value(Some(input))).collect())
        .collect();
    Ok(Some(Choices { initial, inputs }))
}

/// Constants that variables are known to have along a path: each place with variable and value, the
/// beginning included.
pub fn constants(program: &mut Program, path: &[EdgeId]) -> Vec<(VariableId, i128)> {
    let mut known: HashMap<VariableId, TermId> = HashMap::new();
    let mut found = Vec::new();
    for index in 0..program.variables.len() {
        if let Some(value) = program.variables[index].initial {
            known.insert(VariableId::from(index), program.terms.int(value));
            found.push((VariableId::from(index), value));
        }
    }
    for &edge in path {
        let assignments = program.edges[edge].assignments.clone();
        let mut new = Vec::new();
        for (variable, value) in assignments {
            let value = crate::program::replace_variables(&mut program.terms, value, &known);
            new.push((variable, value));
        }
        for (variable, value) in new {
            match program.terms.constant_value(value) {
                Some(&Value::Int(constant)) => {
                    found.push((variable, constant));
                    known.insert(variable, value);
                }
                _ => {
                    known.remove(&variable);
                }
            }
        }
    }
    found.sort_unstable_by_key(|&(variable, value)| (variable.0, value));
    found.dedup();
    found
}
