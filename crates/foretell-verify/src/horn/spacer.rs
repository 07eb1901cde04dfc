//! Clauses that no conjunction of simple atoms solves, solved by Z3's Spacer.

use std::collections::HashMap;

use foretell_solve::Sexpr;
use foretell_trace::{Operator, Sort, Term, TermId, VariableId};

use super::Clauses;
use super::pool::cone;
use crate::abstraction::{initial_facts, positive};
use crate::program::{EdgeId, Program, bit};
use crate::solver::{Solver, Trouble, print};

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
