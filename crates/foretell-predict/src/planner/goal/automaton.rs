//! A goal as an automaton. A state holds what is still to come, and what the operators that look back
//! remember.

use std::collections::HashMap;

use super::{Formula, GoalError, Unary};

/// The letters of the automaton: which of the formula's atoms hold in a step.
pub type Letter = u64;

/// A state of the automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoalState(u32);

/// A deterministic automaton that accepts the runs on which a formula holds. States are made when
/// they are first needed, by formula progression.
#[derive(Clone, Debug)]
pub struct Automaton {
    atoms: Vec<Atom>,
    nodes: Vec<Node>,
    node_ids: HashMap<Node, u32>,
    /// Sub-formulas that look back, inner ones first.
    past: Vec<Past>,
    states: Vec<(u32, u64)>,
    state_ids: HashMap<(u32, u64), GoalState>,
    steps: HashMap<(GoalState, Letter), GoalState>,
}

/// What a letter's bit stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// The event takes place.
    Event(String),
    /// The event is next in its thread.
    Next(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Node {
    Constant(bool),
    /// An atom or its negation.
    Atom(u32, bool),
    /// A sub-formula that looks back, or its negation.
    Past(u32, bool),
    /// There is a step now (or: there is none).
    Exists(bool),
    And(Vec<u32>),
    Or(Vec<u32>),
    Next(u32),
    WeakNext(u32),
    Until(u32, u32),
    Release(u32, u32),
}

#[derive(Clone, Debug)]
enum Past {
    /// The formula's truth in this step, kept for the next.
    Now(u32),
    /// What the entry with this number was one step before.
    Previous(u32),
    Since(u32, u32),
}

const TRUE: u32 = 0;

const FALSE: u32 = 1;

impl Automaton {
    /// Compiles a formula.
    pub fn new(formula: &Formula) -> Result<Self, GoalError> {
        let mut automaton = Automaton {
            atoms: Vec::new(),
            nodes: Vec::new(),
            node_ids: HashMap::new(),
            past: Vec::new(),
            states: Vec::new(),
            state_ids: HashMap::new(),
            steps: HashMap::new(),
        };
        automaton.node(Node::Constant(true));
        automaton.node(Node::Constant(false));
        let root = automaton.compile(formula, true)?;
        if automaton.past.len() > 64 || automaton.atoms.len() > 64 {
            let message = "the goal has more than 64 atoms or operators that look back".into();
            return Err(GoalError { column: 1, message });
        }
        automaton.state(root, 0);
        Ok(automaton)
    }

    /// The atoms; bit `i` of a [`Letter`] is atom `i`.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// The state before the first step.
    pub fn initial(&self) -> GoalState {
        GoalState(0)
    }

    /// Does the formula hold on the run so far?
    pub fn accepts(&self, state: GoalState) -> bool {
        self.holds_at_end(self.states[state.0 as usize].0)
    }

    /// The state after a step with this letter.
    pub fn step(&mut self, state: GoalState, letter: Letter) -> GoalState {
        if let Some(&next) = self.steps.get(&(state, letter)) {
            return next;
        }
        let (node, memory) = self.states[state.0 as usize];
        let memory = self.remember(memory, letter);
        let node = self.progress(node, letter, memory);
        let next = self.state(node, memory);
        self.steps.insert((state, letter), next);
        next
    }

    fn state(&mut self, node: u32, memory: u64) -> GoalState {
        // A finished formula needs no memory: one state for true and one for false.
        let memory = if node <= FALSE { 0 } else { memory };
        let next = GoalState(u32::try_from(self.states.len()).expect("fewer than 2^32 states"));
        *self.state_ids.entry((node, memory)).or_insert_with(|| {
            self.states.push((node, memory));
            next
        })
    }

    fn node(&mut self, node: Node) -> u32 {
        if let Some(&id) = self.node_ids.get(&node) {
            return id;
        }
        let id = u32::try_from(self.nodes.len()).expect("fewer than 2^32 formulas");
        self.nodes.push(node.clone());
        self.node_ids.insert(node, id);
        id
    }

    fn join(&mut self, parts: Vec<u32>, conjunction: bool) -> u32 {
        let (neutral, absorbing) = if conjunction { (TRUE, FALSE) } else { (FALSE, TRUE) };
        let mut flat = Vec::new();
        for part in parts {
            match &self.nodes[part as usize] {
                Node::And(inner) if conjunction => flat.extend(inner.iter().copied()),
                Node::Or(inner) if !conjunction => flat.extend(inner.iter().copied()),
                _ if part == absorbing => return absorbing,
                _ if part == neutral => {}
                _ => flat.push(part),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        match flat.as_slice() {
            [] => neutral,
            [only] => *only,
            _ => self.node(if conjunction { Node::And(flat) } else { Node::Or(flat) }),
        }
    }

    fn atom(&mut self, atom: Atom) -> u32 {
        let known = self.atoms.iter().position(|other| *other == atom);
        let index = known.unwrap_or_else(|| {
            self.atoms.push(atom);
            self.atoms.len() - 1
        });
        u32::try_from(index).expect("few atoms")
    }

    /// The formula in negation normal form (its negation when not `positive`).
    fn compile(&mut self, formula: &Formula, positive: bool) -> Result<u32, GoalError> {
        Ok(match formula {
            Formula::Constant(value) => {
                if *value == positive {
                    TRUE
                } else {
                    FALSE
                }
            }
            Formula::Event(name) => {
                let atom = self.atom(Atom::Event(name.clone()));
                self.node(Node::Atom(atom, positive))
            }
            Formula::Next(name) => {
                let atom = self.atom(Atom::Next(name.clone()));
                self.node(Node::Atom(atom, positive))
            }
            Formula::Not(inner) => self.compile(inner, !positive)?,
            Formula::And(parts) | Formula::Or(parts) => {
                let compiled = parts
                    .iter()
                    .map(|part| self.compile(part, positive))
                    .collect::<Result<_, _>>()?;
                self.join(compiled, matches!(formula, Formula::And(_)) == positive)
            }
            Formula::Unary(Unary::Next, inner) => {
                let inner = self.compile(inner, positive)?;
                self.node(if positive { Node::Next(inner) } else { Node::WeakNext(inner) })
            }
            Formula::Unary(operator @ (Unary::Finally | Unary::Globally), inner) => {
                let inner = self.compile(inner, positive)?;
                if (*operator == Unary::Finally) == positive {
                    self.node(Node::Until(TRUE, inner))
                } else {
                    self.node(Node::Release(FALSE, inner))
                }
            }
            Formula::Until(left, right) => {
                let (left, right) = (self.compile(left, positive)?, self.compile(right, positive)?);
                self.node(if positive {
                    Node::Until(left, right)
                } else {
                    Node::Release(left, right)
                })
            }
            Formula::Unary(Unary::Yesterday, inner) => {
                let inner = self.looking_back(inner, true)?;
                let kept = u32::try_from(self.past.len()).expect("few operators");
                self.past.push(Past::Now(inner));
                self.past_node(Past::Previous(kept), positive)
            }
            Formula::Unary(Unary::Once, inner) => {
                let inner = self.looking_back(inner, true)?;
                self.past_node(Past::Since(TRUE, inner), positive)
            }
            Formula::Unary(Unary::Historically, inner) => {
                let inner = self.looking_back(inner, false)?;
                self.past_node(Past::Since(TRUE, inner), !positive)
            }
            Formula::Since(left, right) => {
                let (left, right) =
                    (self.looking_back(left, true)?, self.looking_back(right, true)?);
                self.past_node(Past::Since(left, right), positive)
            }
        })
    }

    fn looking_back(&mut self, formula: &Formula, positive: bool) -> Result<u32, GoalError> {
        let mut looks_ahead = false;
        formula.visit(&mut |part| {
            looks_ahead |= matches!(
                part,
                Formula::Unary(Unary::Next | Unary::Finally | Unary::Globally, _)
                    | Formula::Until(..)
            );
        });
        if looks_ahead {
            let message = "X, F, G and U cannot stand inside Y, O, H or S".into();
            return Err(GoalError { column: 1, message });
        }
        self.compile(formula, positive)
    }

    fn past_node(&mut self, past: Past, positive: bool) -> u32 {
        self.past.push(past);
        let index = u32::try_from(self.past.len() - 1).expect("few operators");
        self.node(Node::Past(index, positive))
    }

    /// The truth of each sub-formula that looks back, after a step.
    fn remember(&self, before: u64, letter: Letter) -> u64 {
        let mut now = 0;
        for (index, past) in self.past.iter().enumerate() {
            let holds = match *past {
                Past::Now(inner) => self.holds_now(inner, letter, now),
                Past::Previous(kept) => before >> kept & 1 != 0,
                Past::Since(left, right) => {
                    self.holds_now(right, letter, now)
                        || before >> index & 1 != 0 && self.holds_now(left, letter, now)
                }
            };
            now |= u64::from(holds) << index;
        }
        now
    }

    /// The truth of a formula that does not look ahead; `memory` is that of this step, filled as
    /// far as inner formulas need it.
    fn holds_now(&self, node: u32, letter: Letter, memory: u64) -> bool {
        match &self.nodes[node as usize] {
            Node::Constant(value) => *value,
            Node::Atom(atom, positive) => (letter >> atom & 1 != 0) == *positive,
            Node::Past(index, positive) => (memory >> index & 1 != 0) == *positive,
            Node::Exists(value) => *value,
            Node::And(parts) => parts.iter().all(|&part| self.holds_now(part, letter, memory)),
            Node::Or(parts) => parts.iter().any(|&part| self.holds_now(part, letter, memory)),
            Node::Next(_) | Node::WeakNext(_) | Node::Until(..) | Node::Release(..) => {
                unreachable!("checked when compiled")
            }
        }
    }

    fn progress(&mut self, node: u32, letter: Letter, memory: u64) -> u32 {
        let truth = |value: bool| if value { TRUE } else { FALSE };
        match self.nodes[node as usize].clone() {
            Node::Constant(value) => truth(value),
            Node::Atom(atom, positive) => truth((letter >> atom & 1 != 0) == positive),
            Node::Past(index, positive) => truth((memory >> index & 1 != 0) == positive),
            Node::Exists(value) => truth(value),
            Node::And(parts) | Node::Or(parts) => {
                let conjunction = matches!(self.nodes[node as usize], Node::And(_));
                let parts = parts.iter().map(|&part| self.progress(part, letter, memory)).collect();
                self.join(parts, conjunction)
            }
            // What cannot hold at the end demands a next step by itself, and what holds at the end
            // allows that there is none: one state instead of two.
            Node::Next(inner) if !self.holds_at_end(inner) => inner,
            Node::WeakNext(inner) if self.holds_at_end(inner) => inner,
            Node::Next(inner) => {
                let exists = self.node(Node::Exists(true));
                self.join(vec![inner, exists], true)
            }
            Node::WeakNext(inner) => {
                let ended = self.node(Node::Exists(false));
                self.join(vec![inner, ended], false)
            }
            Node::Until(left, right) => {
                let (left, right) =
                    (self.progress(left, letter, memory), self.progress(right, letter, memory));
                let wait = self.join(vec![left, node], true);
                self.join(vec![right, wait], false)
            }
            Node::Release(left, right) => {
                let (left, right) =
                    (self.progress(left, letter, memory), self.progress(right, letter, memory));
                let wait = self.join(vec![left, node], false);
                self.join(vec![right, wait], true)
            }
        }
    }

    fn holds_at_end(&self, node: u32) -> bool {
        match &self.nodes[node as usize] {
            Node::Constant(value) => *value,
            Node::Exists(value) => !value,
            Node::And(parts) => parts.iter().all(|&part| self.holds_at_end(part)),
            Node::Or(parts) => parts.iter().any(|&part| self.holds_at_end(part)),
            Node::Release(..) | Node::WeakNext(_) => true,
            Node::Atom(..) | Node::Past(..) | Node::Next(_) | Node::Until(..) => false,
        }
    }
}
