//! Temporally extended goals: linear temporal logic over finite runs, compiled to an automaton
//! that runs beside the search (003 section 4.1 names the idea; the paper compiles one pattern by
//! hand).
//!
//! ```text
//! formula := or ('->' formula)?          or   := and ('|' and)*      and := bind ('&' bind)*
//! bind    := unary (('U' | 'S') bind)?   unary := ('!' | X | F | G | Y | O | H) unary | primary
//! primary := '(' formula ')' | true | false | next(EVENT) | EVENT | PATTERN '(' EVENT, ... ')'
//! ```
//! `EVENT` holds at the step in which the event takes place; `next(EVENT)` holds where it is the
//! next event of its thread. `X`, `F`, `G`, `U` look ahead (and `X` demands that there is a next
//! step), `Y`, `O`, `H`, `S` look back; nothing may look ahead inside an operator that looks back.
//! An event whose name is an operator or has special characters is quoted: `'F'`.
//!
//! The patterns are abbreviations (a, b of one thread, c, d of another):
//!
//! | pattern | means |
//! |---|---|
//! | `three(a, c, b)` | c between a and b: `F(a & X F(c & !O b))` |
//! | `twovars(a, c, d, b)` | c, then d (two variables) between a and b |
//! | `cross(a, c, b, d)` | a, c, b, d in this order: each thread is torn by the other |
//! | `order(use, define)` | use without define before it |
//! | `deadlock(a, c)` | both are the next events of their threads at once |

use std::collections::HashMap;

use crate::limits::DEEPEST_GOAL;

/// A formula as written, with events by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Always or never.
    Constant(bool),
    /// The event takes place in this step.
    Event(String),
    /// The event is the next one of its thread after this step.
    Next(String),
    /// Not.
    Not(Box<Formula>),
    /// All of them.
    And(Vec<Formula>),
    /// One of them.
    Or(Vec<Formula>),
    /// An operator with one operand.
    Unary(Unary, Box<Formula>),
    /// The second holds some time, the first until then.
    Until(Box<Formula>, Box<Formula>),
    /// The second held some time, the first since then.
    Since(Box<Formula>, Box<Formula>),
}

/// Temporal operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// There is a next step, and it holds there.
    Next,
    /// Now or later.
    Finally,
    /// Now and ever after.
    Globally,
    /// There was a step before, and it held there.
    Yesterday,
    /// Now or before.
    Once,
    /// Now and ever before.
    Historically,
}

/// Why a goal cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalError {
    /// Column from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for GoalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "goal, column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for GoalError {}

impl Formula {
    /// Reads a goal.
    pub fn parse(text: &str) -> Result<Formula, GoalError> {
        let tokens = tokens(text)?;
        let mut parser = Parser { tokens: &tokens, at: 0, end: text.chars().count() + 1, depth: 0 };
        let formula = parser.formula()?;
        match parser.tokens.get(parser.at) {
            Some((column, token)) => Err(GoalError {
                column: *column,
                message: format!("`{token}` is not expected here; join parts with & or |"),
            }),
            None => Ok(formula),
        }
    }

    /// A three-access atomicity violation.
    pub fn three_accesses(first: &str, remote: &str, second: &str) -> Formula {
        sequence(&[first, remote], &[second])
    }

    /// The names of the events it speaks of, in order of appearance.
    pub fn events(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.visit(&mut |formula| {
            if let Formula::Event(name) | Formula::Next(name) = formula
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        });
        names
    }

    /// The steps of a sequence `F(s1 & X F(s2 & ... & !O z))` and the events that must not come
    /// before its end.
    pub fn as_sequence(&self) -> Option<(Vec<&str>, Vec<&str>)> {
        let Formula::Unary(Unary::Finally, body) = self else { return None };
        let parts = match &**body {
            Formula::And(parts) => parts.as_slice(),
            single => std::slice::from_ref(single),
        };
        let (Formula::Event(step), rest) = parts.split_first()? else { return None };
        if let [Formula::Unary(Unary::Next, inner)] = rest {
            let (mut steps, forbidden) = inner.as_sequence()?;
            steps.insert(0, step);
            return Some((steps, forbidden));
        }
        let forbidden: Option<Vec<&str>> = rest.iter().map(Formula::never_before).collect();
        Some((vec![step], forbidden?))
    }

    /// The event of `!O event`.
    fn never_before(&self) -> Option<&str> {
        let Formula::Not(inner) = self else { return None };
        let Formula::Unary(Unary::Once, event) = &**inner else { return None };
        let Formula::Event(name) = &**event else { return None };
        Some(name)
    }

    fn visit<'a>(&'a self, visitor: &mut impl FnMut(&'a Formula)) {
        visitor(self);
        match self {
            Formula::Constant(_) | Formula::Event(_) | Formula::Next(_) => {}
            Formula::Not(inner) | Formula::Unary(_, inner) => inner.visit(visitor),
            Formula::And(parts) | Formula::Or(parts) => {
                parts.iter().for_each(|part| part.visit(visitor));
            }
            Formula::Until(left, right) | Formula::Since(left, right) => {
                left.visit(visitor);
                right.visit(visitor);
            }
        }
    }
}

/// `F(s1 & X F(s2 & ... X F(sn & !O forbidden)))`
fn sequence(steps: &[&str], forbidden: &[&str]) -> Formula {
    let (first, rest) = steps.split_first().expect("a sequence has a step");
    let mut parts = vec![Formula::Event((*first).into())];
    if rest.is_empty() {
        parts.extend(forbidden.iter().map(|name| {
            let once = Formula::Unary(Unary::Once, Box::new(Formula::Event((*name).into())));
            Formula::Not(Box::new(once))
        }));
    } else {
        parts.push(Formula::Unary(Unary::Next, Box::new(sequence(rest, forbidden))));
    }
    Formula::Unary(Unary::Finally, Box::new(Formula::And(parts)))
}

fn tokens(text: &str) -> Result<Vec<(usize, String)>, GoalError> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let start = at;
        match characters[at] {
            white if white.is_whitespace() => {
                at += 1;
                continue;
            }
            '(' | ')' | '&' | '|' | '!' | ',' => at += 1,
            '-' if characters.get(at + 1) == Some(&'>') => at += 2,
            '\'' => {
                at += 1;
                while characters.get(at).is_some_and(|&character| character != '\'') {
                    at += 1;
                }
                if at == characters.len() {
                    let message = "the quoted name does not end; add a '".into();
                    return Err(GoalError { column: start + 1, message });
                }
                at += 1;
            }
            _ => {
                while characters.get(at).is_some_and(|character| {
                    !character.is_whitespace() && !"()&|!,'".contains(*character)
                }) {
                    at += 1;
                }
            }
        }
        tokens.push((start + 1, characters[start..at].iter().collect()));
    }
    Ok(tokens)
}

struct Parser<'a> {
    tokens: &'a [(usize, String)],
    at: usize,
    end: usize,
    depth: usize,
}

impl Parser<'_> {
    fn error<T>(&self, message: impl Into<String>) -> Result<T, GoalError> {
        let column = self.tokens.get(self.at).map_or(self.end, |(column, _)| *column);
        Err(GoalError { column, message: message.into() })
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |(_, token)| token)
    }

    fn take(&mut self, token: &str) -> bool {
        let taken = self.peek() == token;
        self.at += usize::from(taken);
        taken
    }

    fn expect(&mut self, token: &str) -> Result<(), GoalError> {
        if self.take(token) { Ok(()) } else { self.error(format!("`{token}` is missing")) }
    }

    fn formula(&mut self) -> Result<Formula, GoalError> {
        self.depth += 1;
        if self.depth > DEEPEST_GOAL {
            return self.error("the goal is nested too deeply");
        }
        let premise =
            self.list("|", Formula::Or, |parser| parser.list("&", Formula::And, Parser::binding))?;
        let formula = match self.take("->") {
            true => Formula::Or(vec![Formula::Not(Box::new(premise)), self.formula()?]),
            false => premise,
        };
        self.depth -= 1;
        Ok(formula)
    }

    fn list(
        &mut self,
        separator: &str,
        join: fn(Vec<Formula>) -> Formula,
        mut part: impl FnMut(&mut Self) -> Result<Formula, GoalError>,
    ) -> Result<Formula, GoalError> {
        let mut parts = vec![part(self)?];
        while self.take(separator) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
    }

    fn binding(&mut self) -> Result<Formula, GoalError> {
        let left = Box::new(self.unary()?);
        if self.take("U") {
            Ok(Formula::Until(left, Box::new(self.unary()?)))
        } else if self.take("S") {
            Ok(Formula::Since(left, Box::new(self.unary()?)))
        } else {
            Ok(*left)
        }
    }

    fn unary(&mut self) -> Result<Formula, GoalError> {
        let operator = match self.peek() {
            "X" => Unary::Next,
            "F" => Unary::Finally,
            "G" => Unary::Globally,
            "Y" => Unary::Yesterday,
            "O" => Unary::Once,
            "H" => Unary::Historically,
            "!" => {
                self.at += 1;
                return Ok(Formula::Not(Box::new(self.nested()?)));
            }
            _ => return self.primary(),
        };
        self.at += 1;
        Ok(Formula::Unary(operator, Box::new(self.nested()?)))
    }

    fn nested(&mut self) -> Result<Formula, GoalError> {
        self.depth += 1;
        if self.depth > DEEPEST_GOAL {
            return self.error("the goal is nested too deeply");
        }
        let formula = self.unary();
        self.depth -= 1;
        formula
    }

    fn primary(&mut self) -> Result<Formula, GoalError> {
        if self.take("(") {
            let formula = self.formula()?;
            self.expect(")")?;
            return Ok(formula);
        }
        let is_pattern = self.tokens.get(self.at + 1).is_some_and(|(_, token)| token == "(");
        match self.peek() {
            "" => self.error("the goal ends too early"),
            ")" | "&" | "|" | "," | "->" | "U" | "S" => {
                self.error(format!("an event or operator is missing before `{}`", self.peek()))
            }
            "true" | "false" => {
                let value = self.peek() == "true";
                self.at += 1;
                Ok(Formula::Constant(value))
            }
            _ if is_pattern => self.pattern(),
            _ => Ok(Formula::Event(self.name()?)),
        }
    }

    fn name(&mut self) -> Result<String, GoalError> {
        let token = self.peek();
        if token.is_empty() || "()&|!,".contains(token) {
            return self.error("the name of an event is missing");
        }
        let name = token.trim_matches('\'').to_owned();
        self.at += 1;
        Ok(name)
    }

    fn pattern(&mut self) -> Result<Formula, GoalError> {
        let start = self.at;
        let pattern = self.name()?;
        self.expect("(")?;
        let mut names = vec![self.name()?];
        while self.take(",") {
            names.push(self.name()?);
        }
        self.expect(")")?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let next = |name: &str| Formula::Next(name.into());
        Ok(match (pattern.as_str(), names.as_slice()) {
            ("next", [event]) => next(event),
            ("three", [first, remote, second]) => Formula::three_accesses(first, remote, second),
            ("twovars", [first, remote, other, second]) => {
                sequence(&[first, remote, other], &[second])
            }
            ("cross", [first, remote, second, other]) => {
                sequence(&[first, remote, second, other], &[])
            }
            ("order", [user, definition]) => sequence(&[user], &[definition]),
            ("deadlock", [one, other]) => {
                Formula::Unary(Unary::Finally, Box::new(Formula::And(vec![next(one), next(other)])))
            }
            (name, events) => {
                self.at = start;
                return self.error(format!(
                    "there is no pattern `{name}` of {} events; there are three(a, c, b), \
                     twovars(a, c, d, b), cross(a, c, b, d), order(use, define), deadlock(a, c) \
                     and next(a)",
                    events.len()
                ));
            }
        })
    }
}

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

    /// Can no continuation make it hold?
    pub fn is_dead(&self, state: GoalState) -> bool {
        self.states[state.0 as usize].0 == FALSE
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the automaton over event names and says whether it accepts.
    fn accepts(goal: &str, run: &[&str]) -> bool {
        let mut automaton = Automaton::new(&Formula::parse(goal).unwrap()).unwrap();
        let mut state = automaton.initial();
        for event in run {
            let letter = automaton.atoms().iter().enumerate().fold(0, |letter, (bit, atom)| {
                letter | u64::from(*atom == Atom::Event((*event).into())) << bit
            });
            state = automaton.step(state, letter);
        }
        automaton.accepts(state)
    }

    #[test]
    fn the_three_access_pattern_wants_the_remote_event_in_between() {
        for goal in ["F(e1 & X F(f & !O e2))", "three(e1, f, e2)"] {
            assert!(accepts(goal, &["e1", "f"]));
            assert!(accepts(goal, &["z", "e1", "z", "f", "e2"]));
            assert!(!accepts(goal, &["f", "e1", "e2"]));
            assert!(!accepts(goal, &["e1", "e2", "f"]));
            assert!(!accepts(goal, &["e1"]));
            assert!(!accepts(goal, &[]));
        }
    }

    #[test]
    fn operators_have_their_meaning_on_finite_runs() {
        assert!(accepts("X b", &["a", "b"]));
        assert!(!accepts("X true", &["a"]));
        assert!(accepts("!X true", &["a"]));
        assert!(accepts("a U b", &["a", "a", "b", "c"]));
        assert!(!accepts("a U b", &["a", "c", "b"]));
        assert!(accepts("G !b", &["a", "c"]));
        assert!(!accepts("G !b", &["a", "b"]));
        assert!(accepts("F(c & Y b)", &["b", "c"]));
        assert!(!accepts("F(c & Y b)", &["b", "a", "c"]));
        assert!(!accepts("Y true", &["a"]));
        assert!(accepts("F(c & (!a S b))", &["a", "b", "d", "c"]));
        assert!(!accepts("F(c & (!a S b))", &["b", "a", "c"]));
        assert!(accepts("F(c & H !a)", &["b", "c", "a"]));
        assert!(!accepts("F(c & H !a)", &["a", "c"]));
        assert!(accepts("F a -> F b", &["a", "b"]));
        assert!(!accepts("F a -> F b", &["a"]));
        assert!(accepts("F(d & Y Y b)", &["b", "c", "d"]));
    }

    #[test]
    fn errors_name_the_column_and_what_to_do() {
        let error = |goal: &str| Formula::parse(goal).unwrap_err().to_string();
        assert_eq!(error("F(a"), "goal, column 4: `)` is missing");
        assert_eq!(error(""), "goal, column 1: the goal ends too early");
        assert_eq!(
            error("a b"),
            "goal, column 3: `b` is not expected here; join parts with & or |"
        );
        assert_eq!(error("'a"), "goal, column 1: the quoted name does not end; add a '");
        assert!(
            error("three(a, b)").starts_with("goal, column 1: there is no pattern `three` of 2")
        );
        assert!(error(&"!".repeat(100_000)).contains("nested too deeply"));
        assert!(error(&"(".repeat(100_000)).contains("nested too deeply"));
        let ahead = Automaton::new(&Formula::parse("F(a & O F b)").unwrap()).unwrap_err();
        assert!(ahead.message.contains("cannot stand inside"));
    }
}
