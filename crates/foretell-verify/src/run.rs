//! The interpreter: runs a counterexample step by step over the small edges, with concrete values.
//!
//! It shares nothing with the abstraction, the solver or the joining of edges but the evaluation of
//! terms: what it does not accept is never shown as a counterexample.

use std::collections::HashMap;

use foretell_trace::{Term, TermId, Value, VariableId};

use crate::path::Choices;
use crate::program::{EdgeId, Program};

/// One step of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The small edge.
    pub edge: EdgeId,
    /// What it assigned.
    pub assigned: Vec<(VariableId, i128)>,
    /// Inputs it was given, in order.
    pub inputs: Vec<i128>,
}

/// An execution that violates a property in its last step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// First values of the variables.
    pub initial: Vec<i128>,
    /// Steps over small edges.
    pub steps: Vec<Step>,
}

/// Runs a path over joined edges of `joined` on the program of small edges; the error says which
/// step is impossible, and why.
pub fn run(
    program: &Program,
    joined: &Program,
    path: &[EdgeId],
    choices: &Choices,
) -> Result<Execution, String> {
    let mut values: Vec<i128> = choices.initial.clone();
    let holds = |term: TermId, values: &[i128], inputs: &HashMap<TermId, i128>| {
        value_of(program, term, values, inputs) == Some(Value::Bool(true))
    };
    for (variable, &value) in program.variables.iter().zip(&values) {
        if variable.initial.is_some_and(|initial| initial != value) {
            return Err(format!("{} does not begin with {value}", variable.name));
        }
    }
    if !holds(program.initially, &values, &HashMap::new()) {
        return Err("the first values are not allowed".into());
    }
    let mut control = program.first_control();
    let mut steps = Vec::new();
    for (place, &edge) in path.iter().enumerate() {
        let joined = &joined.edges[edge];
        let given: HashMap<TermId, i128> =
            joined.inputs.iter().copied().zip(choices.inputs[place].iter().copied()).collect();
        // inputs that the joined edge forgot do not matter
        let parts = joined.parts.iter().flat_map(|&part| &program.edges[part].inputs);
        let inputs: HashMap<TermId, i128> =
            parts.map(|&input| (input, given.get(&input).copied().unwrap_or(0))).collect();
        for &part in &joined.parts {
            let refuse = |why: &str| Err(format!("step {}: {why}", program.describe(part)));
            let edge = &program.edges[part];
            if !program.possible(&control).contains(&part) {
                return refuse("its thread does not stand there or must wait");
            }
            if !holds(edge.guard, &values, &inputs) {
                return refuse("its guard does not hold");
            }
            let mut assigned = Vec::new();
            for &(variable, value) in &edge.assignments {
                match value_of(program, value, &values, &inputs) {
                    Some(Value::Int(value)) => assigned.push((variable, value)),
                    _ => return refuse("a value leaves the range of 128 bits"),
                }
            }
            for &(variable, value) in &assigned {
                values[variable.index()] = value;
            }
            control = program.after(&control, part);
            let inputs = edge.inputs.iter().map(|input| inputs[input]).collect();
            steps.push(Step { edge: part, assigned, inputs });
        }
    }
    match steps.last() {
        Some(step) if program.is_error(step.edge) => {
            Ok(Execution { initial: choices.initial.clone(), steps })
        }
        _ => Err("the last step violates nothing".into()),
    }
}

fn value_of(
    program: &Program,
    term: TermId,
    values: &[i128],
    inputs: &HashMap<TermId, i128>,
) -> Option<Value> {
    let leaf = |leaf: &Term| match leaf {
        Term::Variable(variable) => values.get(variable.index()).map(|&value| Value::Int(value)),
        leaf => inputs.get(&program.terms.find(leaf)?).map(|&value| Value::Int(value)),
    };
    program.terms.evaluate(term, &leaf).ok()
}

impl Execution {
    /// The execution for people, a line a step.
    pub fn render(&self, program: &Program) -> String {
        let mut text = String::new();
        for (variable, value) in program.variables.iter().zip(&self.initial) {
            if variable.initial.is_none() {
                text.push_str(&format!("  initially {} = {value}\n", variable.name));
            }
        }
        for step in &self.steps {
            let edge = &program.edges[step.edge];
            if edge.text.is_empty() {
                continue;
            }
            let values: Vec<String> = step
                .assigned
                .iter()
                .map(|(variable, value)| {
                    format!("{} = {value}", program.variables[variable.index()].name)
                })
                .collect();
            let line = edge.place.line;
            let name = &program.threads[edge.thread].name;
            text.push_str(&format!("  {name:<10} {}:{line}: {}", program.file, edge.text));
            if !values.is_empty() {
                text.push_str(&format!("   [{}]", values.join(", ")));
            }
            text.push('\n');
        }
        text
    }
}
