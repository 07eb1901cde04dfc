//! Predicate abstraction (001 section 5.1): an abstract state knows of some predicates that they hold,
//! of some that they do not, and nothing about the others.
//!
//! The abstract step of an edge makes ρᵢ true where the state implies the weakest precondition of ρᵢ
//! (the paper's β̂ᵢ) and false where it implies that of ¬ρᵢ (γ̂ᵢ). The paper's Boolean combinations
//! are never written out: the solver is asked for the states that are met, each implication is
//! generalised to an unsatisfiable core (a cube of β̂ᵢ), each refusal to the concrete step that
//! refutes it, and both answer later questions. What an undetermined predicate becomes is forgotten
//! (Cartesian) or followed for every value that is possible (Boolean).

use std::collections::HashMap;

use foretell_trace::{Operator, Sort, Term, TermId, Value, VariableId};

use crate::program::{EdgeId, Program, VariableSet};
use crate::solver::{Answer, Solver, Trouble};

/// More predicates than this are not tracked: a state is two words of as many bits.
pub const PREDICATES: usize = 128;

/// What is known of the predicates: a conjunction of literals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cube {
    /// Predicates that hold.
    pub yes: u128,
    /// Predicates that do not.
    pub no: u128,
}

impl Cube {
    /// Does this say everything that `weaker` says?
    pub fn implies(self, weaker: Cube) -> bool {
        weaker.yes & !self.yes == 0 && weaker.no & !self.no == 0
    }

    /// Are all literals true under this valuation?
    pub fn holds(self, valuation: u128) -> bool {
        self.yes & !valuation == 0 && self.no & valuation == 0
    }

    /// With one more literal.
    pub fn with(mut self, predicate: usize, value: bool) -> Cube {
        *(if value { &mut self.yes } else { &mut self.no }) |= 1 << predicate;
        self
    }

    /// Its literals.
    pub fn literals(self) -> impl Iterator<Item = (usize, bool)> {
        (0..PREDICATES).filter_map(move |place| {
            let yes = self.yes >> place & 1 == 1;
            (yes || self.no >> place & 1 == 1).then_some((place, yes))
        })
    }
}

/// A predicate over program variables.
#[derive(Clone, Copy, Debug)]
pub struct Predicate {
    /// The formula.
    pub term: TermId,
    /// Its variables.
    pub variables: VariableSet,
}

/// A concrete step of an edge.
struct Step {
    before: HashMap<TermId, Value>,
    after: HashMap<TermId, Value>,
    /// The predicates' values before and after.
    bits: (u128, u128),
    /// Predicates that `bits` covers.
    known: usize,
}

/// What the solver has said about an edge.
#[derive(Default)]
struct Learned {
    steps: Vec<Step>,
    /// States in which the guard cannot hold.
    disabled: Vec<Cube>,
    /// States that make a predicate true (false).
    implied: HashMap<(usize, bool), Vec<Cube>>,
}

/// The predicates and what is known about the abstract steps.
pub struct Abstraction {
    /// The predicates ρ₁ … ρₘ.
    pub predicates: Vec<Predicate>,
    /// Follow every value of an undetermined predicate.
    pub boolean: bool,
    negations: Vec<TermId>,
    /// What is known of the first predicates when a run begins, and of how many.
    beginning: (usize, Cube),
    learned: Vec<Learned>,
    /// States of cubes that were asked for; none where there is none.
    models: HashMap<Cube, Option<HashMap<TermId, Value>>>,
    reads: Vec<VariableSet>,
    guards: Vec<VariableSet>,
    writes: Vec<VariableSet>,
}

impl Abstraction {
    /// The abstraction without predicates.
    pub fn new(program: &Program, boolean: bool) -> Self {
        let edges = 0..program.edges.len();
        Self {
            predicates: Vec::new(),
            boolean,
            negations: Vec::new(),
            beginning: (0, Cube::default()),
            learned: edges.clone().map(|_| Learned::default()).collect(),
            models: HashMap::new(),
            reads: edges.clone().map(|edge| program.reads(edge)).collect(),
            guards: edges
                .clone()
                .map(|edge| program.variables_of(program.edges[edge].guard))
                .collect(),
            writes: edges.map(|edge| program.writes(edge)).collect(),
        }
    }

    /// Adds a predicate unless it (or its negation) is there; returns whether it is new.
    pub fn add(&mut self, program: &mut Program, term: TermId) -> bool {
        let (term, _) = positive(program, term);
        let known = self.predicates.iter().any(|predicate| predicate.term == term);
        if known || program.terms.constant_value(term).is_some() {
            return false;
        }
        if self.predicates.len() == PREDICATES {
            return false;
        }
        let variables = program.variables_of(term);
        self.predicates.push(Predicate { term, variables });
        self.negations.push(program.terms.not(term));
        true
    }

    /// The formula of a literal.
    pub fn literal(&self, predicate: usize, value: bool) -> TermId {
        if value { self.predicates[predicate].term } else { self.negations[predicate] }
    }

    /// What is known when a run begins; several cubes when the abstraction is Boolean.
    pub fn first(
        &mut self,
        program: &mut Program,
        solver: &mut Solver,
    ) -> Result<Vec<Cube>, Trouble> {
        while self.beginning.0 < self.predicates.len() {
            let place = self.beginning.0;
            let facts = initial_facts(program);
            for value in [true, false] {
                let opposite = self.literal(place, !value);
                if solver.refutes(&program.terms, &[facts.as_slice(), &[opposite]].concat())? {
                    self.beginning.1 = self.beginning.1.with(place, value);
                    break;
                }
            }
            self.beginning.0 += 1;
        }
        let cube = self.beginning.1;
        if !self.boolean {
            return Ok(vec![cube]);
        }
        let facts = initial_facts(program);
        let mut cubes = Vec::new();
        self.split(program, solver, &facts, cube, None, &mut cubes)?;
        Ok(cubes)
    }

    /// The literals of a cube that can have to do with these variables.
    fn relevant(&self, cube: Cube, mut variables: VariableSet) -> Vec<(usize, bool)> {
        let mut rest: Vec<(usize, bool)> = cube.literals().collect();
        let mut found = Vec::new();
        loop {
            let before = found.len();
            rest.retain(|&(place, value)| {
                let touches = self.predicates[place].variables & variables != 0;
                if touches {
                    variables |= self.predicates[place].variables;
                    found.push((place, value));
                }
                !touches
            });
            if found.len() == before {
                return found;
            }
        }
    }

    /// The abstract states after the edge; none when it is impossible.
    pub fn post(
        &mut self,
        program: &mut Program,
        solver: &mut Solver,
        edge: EdgeId,
        cube: Cube,
    ) -> Result<Vec<Cube>, Trouble> {
        self.refresh(program, edge);
        if self.implied(program, solver, edge, cube, None)? {
            return Ok(Vec::new());
        }
        let mut after = Cube::default();
        for place in 0..self.predicates.len() {
            let predicate = self.predicates[place];
            let value = match (cube.yes >> place & 1, cube.no >> place & 1) {
                (1, _) => Some(true),
                (_, 1) => Some(false),
                _ => None,
            };
            let assigned = predicate.variables & self.writes[edge] != 0;
            if !assigned {
                let constrained = predicate.variables & self.guards[edge] != 0;
                if let Some(value) = value {
                    after = after.with(place, value);
                    continue;
                }
                if !constrained {
                    continue;
                }
            }
            for value in [true, false] {
                if self.implied(program, solver, edge, cube, Some((place, value)))? {
                    after = after.with(place, value);
                    break;
                }
            }
        }
        if !self.boolean {
            return Ok(vec![after]);
        }
        let mut facts: Vec<TermId> =
            cube.literals().map(|(place, value)| self.literal(place, value)).collect();
        facts.push(program.edges[edge].guard);
        let mut cubes = Vec::new();
        self.split(program, solver, &facts, after, Some(edge), &mut cubes)?;
        Ok(cubes)
    }

    /// All complete valuations that a step can lead to.
    fn split(
        &self,
        program: &mut Program,
        solver: &mut Solver,
        facts: &[TermId],
        cube: Cube,
        edge: Option<EdgeId>,
        found: &mut Vec<Cube>,
    ) -> Result<(), Trouble> {
        let open = (0..self.predicates.len()).find(|place| (cube.yes | cube.no) >> place & 1 == 0);
        let Some(place) = open else {
            found.push(cube);
            return Ok(());
        };
        for value in [true, false] {
            let literal = self.literal(place, value);
            let literal = match edge {
                Some(edge) => program.before_edge(edge, literal),
                None => literal,
            };
            let facts = [facts, &[literal]].concat();
            if !solver.refutes(&program.terms, &facts)? {
                self.split(program, solver, &facts, cube.with(place, value), edge, found)?;
            }
        }
        Ok(())
    }

    /// Does the cube make the literal true after the edge? Without one: is the edge impossible?
    fn implied(
        &mut self,
        program: &mut Program,
        solver: &mut Solver,
        edge: EdgeId,
        cube: Cube,
        literal: Option<(usize, bool)>,
    ) -> Result<bool, Trouble> {
        let learned = &self.learned[edge];
        let refuted = learned.steps.iter().any(|step| {
            cube.holds(step.bits.0)
                && literal.is_none_or(|(place, value)| (step.bits.1 >> place & 1 == 1) != value)
        });
        if refuted {
            return Ok(false);
        }
        let cores = match literal {
            None => Some(&learned.disabled),
            Some(key) => learned.implied.get(&key),
        };
        if cores.is_some_and(|cores| cores.iter().any(|&core| cube.implies(core))) {
            return Ok(true);
        }
        let goal = match literal {
            Some((place, value)) => program.before_edge(edge, self.literal(place, value)),
            None => program.terms.bool(false),
        };
        let touched = self.guards[edge] | program.variables_of(goal) | self.reads[edge];
        let relevant = self.relevant(cube, touched);
        let assumptions: Vec<TermId> =
            relevant.iter().map(|&(place, value)| self.literal(place, value)).collect();
        let facts = [program.edges[edge].guard, program.terms.not(goal)];
        match solver.check(&program.terms, &facts, &assumptions)? {
            Answer::Unsatisfiable(core) => {
                let core = core.into_iter().fold(Cube::default(), |cube, assumption| {
                    let (place, value) = relevant[assumption];
                    cube.with(place, value)
                });
                let learned = &mut self.learned[edge];
                match literal {
                    None => learned.disabled.push(core),
                    Some(key) => learned.implied.entry(key).or_default().push(core),
                }
                Ok(true)
            }
            Answer::Satisfiable(values) => {
                // the literals that were left out share no variable with the question, but need a
                // model of their own for the step to count as one of the cube
                let others = cube.literals().filter(|literal| !relevant.contains(literal));
                let others = others.fold(Cube::default(), |all, (p, v)| all.with(p, v));
                let mut before = values;
                if others != Cube::default() {
                    match self.model(program, solver, others)? {
                        Some(more) => before.extend(more),
                        None => {
                            // no concrete state has this cube
                            self.learned[edge].disabled.push(cube);
                            return Ok(true);
                        }
                    }
                }
                let step = self.step(program, edge, before);
                self.learned[edge].steps.push(step);
                self.refresh(program, edge);
                Ok(false)
            }
        }
    }

    /// A state in which the cube holds, if there is one.
    fn model(
        &mut self,
        program: &Program,
        solver: &mut Solver,
        cube: Cube,
    ) -> Result<Option<HashMap<TermId, Value>>, Trouble> {
        if let Some(known) = self.models.get(&cube) {
            return Ok(known.clone());
        }
        let facts: Vec<TermId> =
            cube.literals().map(|(place, value)| self.literal(place, value)).collect();
        let model = match solver.check(&program.terms, &facts, &[])? {
            Answer::Satisfiable(values) => Some(values),
            Answer::Unsatisfiable(_) => None,
        };
        self.models.insert(cube, model.clone());
        Ok(model)
    }

    fn step(&self, program: &mut Program, edge: EdgeId, before: HashMap<TermId, Value>) -> Step {
        let mut before = before;
        for index in 0..program.variables.len() {
            let leaf = program.terms.variable(VariableId::from(index), Sort::INT);
            before.entry(leaf).or_insert(Value::Int(0));
        }
        for &input in &program.edges[edge].inputs {
            before.entry(input).or_insert(Value::Int(0));
        }
        let mut after = before.clone();
        for &(variable, value) in &program.edges[edge].assignments {
            let leaf = program.terms.find(&Term::Variable(variable)).expect("made above");
            if let Some(value) = evaluate(program, value, &before) {
                after.insert(leaf, value);
            }
        }
        Step { before, after, bits: (0, 0), known: 0 }
    }

    /// Evaluates new predicates in the old steps.
    fn refresh(&mut self, program: &Program, edge: EdgeId) {
        for step in &mut self.learned[edge].steps {
            while step.known < self.predicates.len() {
                let term = self.predicates[step.known].term;
                let holds = |values| evaluate(program, term, values) == Some(Value::Bool(true));
                step.bits.0 |= u128::from(holds(&step.before)) << step.known;
                step.bits.1 |= u128::from(holds(&step.after)) << step.known;
                step.known += 1;
            }
        }
    }

    /// The cubes of β̂ and γ̂ that were needed so far: each makes the predicate have the value after
    /// the edge.
    pub fn implicants(&self, edge: EdgeId, predicate: usize, value: bool) -> &[Cube] {
        self.learned[edge].implied.get(&(predicate, value)).map_or(&[], Vec::as_slice)
    }

    /// The cubes under which the edge was found to be impossible.
    pub fn impossible(&self, edge: EdgeId) -> &[Cube] {
        &self.learned[edge].disabled
    }

    /// Can the edge change what is known about the predicate?
    pub fn touches(&self, edge: EdgeId, predicate: usize) -> bool {
        let variables = self.predicates[predicate].variables;
        variables & (self.writes[edge] | self.guards[edge]) != 0
    }

    /// Does the edge assign a variable of the predicate?
    pub fn assigns(&self, edge: EdgeId, predicate: usize) -> bool {
        self.predicates[predicate].variables & self.writes[edge] != 0
    }
}

/// The formula without a negation in front, and whether there was none.
pub fn positive(program: &Program, term: TermId) -> (TermId, bool) {
    match program.terms.term(term) {
        Term::Apply(Operator::Not, parts) => (parts[0], false),
        _ => (term, true),
    }
}

/// The value of a term; `None` when it has none.
pub fn evaluate(program: &Program, term: TermId, values: &HashMap<TermId, Value>) -> Option<Value> {
    program
        .terms
        .evaluate(term, &|leaf: &Term| values.get(&program.terms.find(leaf)?).cloned())
        .ok()
}

/// What holds of the variables when a run begins.
pub fn initial_facts(program: &mut Program) -> Vec<TermId> {
    let mut facts = vec![program.initially];
    for index in 0..program.variables.len() {
        if let Some(value) = program.variables[index].initial {
            let variable = program.terms.variable(VariableId::from(index), Sort::INT);
            let value = program.terms.int(value);
            facts.push(program.terms.build(Operator::Eq, &[variable, value]));
        }
    }
    facts
}
