//! Trace to CTRC.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use super::read::step_of_predicate;
use super::{KEYWORDS, is_name_character};
use crate::event::{Op, Transition};
use crate::format::{Format, WriteError};
use crate::id::{EventId, TermId, ThreadId, VariableId};
use crate::info::OpKind;
use crate::sexpr::{print_term, print_value};
use crate::term::{Operator, ScalarSort, Sort, Term, TermStore};
use crate::trace::{Scope, Trace, Unseen};

/// Formulas of more nodes are refused: CTRC has no names for parts that occur more than once.
const MAX_NODES: u64 = 1_000_000;

/// The trace as CTRC text, or the first thing that CTRC cannot say.
pub fn write(trace: &Trace) -> Result<String, WriteError> {
    Writer::new(trace)?.write()
}

fn cannot<T>(what: impl Into<String>) -> Result<T, WriteError> {
    Err(WriteError::cannot_carry(Format::Ctrc, what))
}

struct Writer<'t> {
    trace: &'t Trace,
    /// For classifying predicates, which builds terms.
    terms: TermStore,
    variables: HashMap<(&'t str, Option<ThreadId>), VariableId>,
    /// What each event is called and how many are called so.
    event_names: Vec<String>,
    name_uses: HashMap<String, u32>,
}

impl<'t> Writer<'t> {
    fn new(trace: &'t Trace) -> Result<Self, WriteError> {
        let metadata = &trace.metadata;
        if metadata.observed_order {
            return cannot("the observed order of events");
        }
        if metadata.machine_code || metadata.unseen != Unseen::default() {
            return cannot("that it was recorded from a binary");
        }
        if !metadata.command.is_empty() || metadata.build_id.is_some() {
            return cannot("the command that was recorded");
        }
        if let Some(gap) = metadata.gaps.first() {
            return cannot(format!("the gap `{gap}`"));
        }
        if let Some(restriction) = metadata.restrictions.first() {
            return cannot(format!("the restriction `{restriction}`"));
        }
        if !metadata.symbolic && !trace.events.is_empty() {
            return cannot("a trace without terms");
        }
        if let Some(object) = trace.objects.first() {
            return cannot(format!("the synchronisation object `{}`", object.name));
        }
        let mut variables = HashMap::new();
        for (number, variable) in trace.variables.iter().enumerate() {
            let name = &*variable.name;
            check_name("variable", name)?;
            if variable.memory.is_some() {
                return cannot(format!("the address of `{name}`"));
            }
            let owner = match variable.scope {
                Scope::Shared => None,
                Scope::Local(thread) => Some(thread),
            };
            if owner.is_some() && variable.initial.is_some() {
                return cannot(format!("the initial value of the local `{name}`"));
            }
            if variables.insert((name, owner), VariableId::from(number)).is_some() {
                return cannot(format!("two variables called `{name}`"));
            }
        }
        let mut threads = BTreeSet::new();
        for thread in &trace.threads {
            check_name("thread", &thread.name)?;
            if !threads.insert(&*thread.name) {
                return cannot(format!("two threads called `{}`", thread.name));
            }
        }
        let mut event_names = Vec::with_capacity(trace.events.len());
        let mut name_uses = HashMap::new();
        for (position, event) in trace.events.iter().enumerate() {
            let name = match trace.labels.get(&EventId::from(position)) {
                Some(label) => label.to_string(),
                None => format!("{}{}", trace.threads[event.thread.index()].name, event.index + 1),
            };
            *name_uses.entry(name.clone()).or_insert(0) += 1;
            event_names.push(name);
        }
        Ok(Self { trace, terms: trace.terms.clone(), variables, event_names, name_uses })
    }

    fn write(mut self) -> Result<String, WriteError> {
        let trace = self.trace;
        let mut text = String::from("global:");
        self.declare(&mut text, Scope::Shared);
        text.push('\n');
        if let Some(precondition) = self.precondition()? {
            let _ = write!(text, "\npre: {precondition}\n");
        }
        for (number, events) in trace.events_by_thread().into_iter().enumerate() {
            let thread = ThreadId::from(number);
            let _ = write!(text, "\nthread {}", trace.threads[number].name);
            let mut locals = String::new();
            self.declare(&mut locals, Scope::Local(thread));
            if !locals.is_empty() {
                let _ = write!(text, " {{{locals} }}");
            }
            text.push_str(":\n");
            for event in events {
                if let Some(label) = self.label(event)? {
                    let _ = write!(text, "{label} : ");
                }
                let step = self.step(event)?;
                text.push_str(&step);
                text.push('\n');
            }
        }
        if !trace.atomic_sections.is_empty() {
            text.push_str("\natomic:");
            for &(first, last) in &trace.atomic_sections {
                let (first, last) = (self.event_name(first)?, self.event_name(last)?);
                let _ = write!(text, " [{first} {last}]");
            }
            text.push('\n');
        }
        if !trace.orders.is_empty() {
            text.push_str("\norder:");
            for &(first, second) in &trace.orders {
                let (first, second) = (self.event_name(first)?, self.event_name(second)?);
                let _ = write!(text, " {first} < {second}");
            }
            text.push('\n');
        }
        Ok(text)
    }

    fn declare(&self, text: &mut String, scope: Scope) {
        for variable in self.trace.variables.iter().filter(|variable| variable.scope == scope) {
            let _ = write!(text, " {}", variable.name);
            let _ = match variable.sort {
                Sort::INT => Ok(()),
                Sort::BOOL => write!(text, ":bool"),
                Sort::REAL => write!(text, ":real"),
                Sort::Scalar(ScalarSort::BitVec(width @ (16 | 32 | 64))) => {
                    write!(text, ":bv{width}")
                }
                sort => write!(text, ":{sort}"),
            };
        }
    }

    /// The precondition and the initial values that it does not state.
    fn precondition(&mut self) -> Result<Option<String>, WriteError> {
        let trace = self.trace;
        let stated: BTreeSet<TermId> = match trace.precondition {
            None => BTreeSet::new(),
            Some(precondition) => match trace.terms.term(precondition) {
                Term::Apply(Operator::And, parts) => parts.iter().copied().collect(),
                _ => BTreeSet::from([precondition]),
            },
        };
        let mut conjuncts = Vec::new();
        for &conjunct in &stated {
            conjuncts.push(self.term(conjunct, None, "the precondition")?);
        }
        for (number, variable) in trace.variables.iter().enumerate() {
            let Some(initial) = &variable.initial else { continue };
            let leaf = self.terms.variable(VariableId::from(number), variable.sort);
            let value = self.terms.constant(initial.clone());
            if !stated.contains(&self.terms.build(Operator::Eq, &[leaf, value])) {
                conjuncts.push(format!("(= {} {})", symbol(&variable.name), print_value(initial)));
            }
        }
        Ok(match conjuncts.as_slice() {
            [] => None,
            [only] => Some(parenthesised(only)),
            _ => Some(format!("(and {})", conjuncts.join(" "))),
        })
    }

    /// The label and line in front of an event.
    fn label(&self, id: EventId) -> Result<Option<String>, WriteError> {
        let event = self.trace.event(id);
        let label = self.trace.labels.get(&id);
        let (name, bracket) = match label.and_then(|label| label.strip_suffix(']')?.split_once('['))
        {
            Some((name, bracket)) => (Some(name), Some(bracket)),
            None => (label.map(|label| &**label), None),
        };
        if let Some(name) = name {
            check_name("label", name)?;
        }
        if let Some(bracket) = bracket
            && !is_name(bracket)
        {
            return cannot(format!("the label `{}`", self.event_names[id.index()]));
        }
        if let Some(site) = event.site {
            let site = &self.trace.sites[site.index()];
            let stated = bracket.and_then(|bracket| bracket.parse().ok()) == Some(site.line);
            if !site.file.is_empty() || !site.function.is_empty() || site.column != 0 || !stated {
                return cannot(format!("the source position of {}", self.trace.event_name(id)));
            }
        }
        if name.is_some() && self.name_uses[&self.event_names[id.index()]] > 1 {
            return cannot(format!("two events called `{}`", self.event_names[id.index()]));
        }
        Ok(name.map(|name| match bracket {
            Some(bracket) => format!("{name} [{bracket}]"),
            None => name.to_owned(),
        }))
    }

    fn event_name(&self, id: EventId) -> Result<&str, WriteError> {
        let name = &self.event_names[id.index()];
        match self.name_uses[name] {
            1 => Ok(name),
            _ => cannot(format!("an order or section of `{name}`, which two events are called")),
        }
    }

    fn step(&mut self, id: EventId) -> Result<String, WriteError> {
        let event = self.trace.event(id);
        let name = self.trace.event_name(id);
        let thread = Some(event.thread);
        match &event.op {
            Op::Assert(condition) => match condition.term {
                Some(term) if condition.outcome => {
                    Ok(format!("assert{}", parenthesised(&self.term(term, thread, &name)?)))
                }
                Some(_) => cannot(format!("event {name}: an assertion that failed")),
                None => cannot(format!("event {name}: an assertion without a term")),
            },
            Op::Guarded(guarded) if guarded.assignments.is_empty() => {
                let guard = self.term(guarded.guard, thread, &name)?;
                Ok(format!("assume{}", parenthesised(&guard)))
            }
            Op::Guarded(guarded) => {
                let mut conjuncts = Vec::new();
                if !self.trace.terms.is_true(guarded.guard) {
                    conjuncts.push(self.term(guarded.guard, thread, &name)?);
                }
                let mut assigned = BTreeSet::new();
                for &(variable, value) in &guarded.assignments {
                    if !assigned.insert(variable) {
                        return cannot(format!("event {name}: two assignments of one variable"));
                    }
                    let target = self.variable(variable, thread, true, &name)?;
                    let value = self.term(value, thread, &name)?;
                    conjuncts.push(format!("(= {target} {value})"));
                }
                Ok(match conjuncts.as_slice() {
                    [only] => only.clone(),
                    _ => format!("(and {})", conjuncts.join(" ")),
                })
            }
            Op::Transition(transition) => self.transition(transition, event.thread, &name),
            other => cannot(format!("event {name}: a {}", OpKind::of(other).name())),
        }
    }

    fn transition(
        &mut self,
        transition: &Transition,
        thread: ThreadId,
        name: &str,
    ) -> Result<String, WriteError> {
        let changed: BTreeSet<VariableId> = transition.changed.iter().copied().collect();
        let primed: BTreeSet<VariableId> =
            self.terms.primed_variables(transition.predicate).into_iter().collect();
        if let Some(&variable) = primed.difference(&changed).next() {
            let variable = &self.trace.variables[variable.index()].name;
            return cannot(format!("event {name}: `{variable}` is primed but does not change"));
        }
        // A predicate that would be read as assignments is kept a transition by `havok`.
        let assigns = matches!(
            step_of_predicate(&mut self.terms, transition.predicate, &primed),
            Op::Guarded(_)
        );
        let mut havocked = Vec::new();
        for &variable in &changed {
            if assigns || !primed.contains(&variable) {
                let _ = self.variable(variable, Some(thread), false, name)?;
                havocked.push(&*self.trace.variables[variable.index()].name);
            }
        }
        let predicate = parenthesised(&self.term(transition.predicate, Some(thread), name)?);
        Ok(match havocked.as_slice() {
            [] => predicate,
            _ => format!("havok({}) {predicate}", havocked.join(", ")),
        })
    }

    /// The variable in a formula of the thread.
    fn variable(
        &self,
        id: VariableId,
        thread: Option<ThreadId>,
        primed: bool,
        place: &str,
    ) -> Result<String, WriteError> {
        let name = &*self.trace.variables[id.index()].name;
        let local = thread.and_then(|_| self.variables.get(&(name, thread)));
        if local.or_else(|| self.variables.get(&(name, None))) != Some(&id) {
            return cannot(format!("{place}: `{name}`, which is hidden or of another thread"));
        }
        Ok(if primed { symbol(&format!("{name}.")) } else { symbol(name) })
    }

    fn term(
        &self,
        root: TermId,
        thread: Option<ThreadId>,
        place: &str,
    ) -> Result<String, WriteError> {
        if nodes(&self.trace.terms, root) > MAX_NODES {
            return cannot(format!("{place}: a formula of more than {MAX_NODES} nodes"));
        }
        let mut refused = None;
        let text = print_term(&self.trace.terms, root, &mut |term| {
            let name = match *self.trace.terms.term(term) {
                Term::Apply(..) | Term::Constant(_) => return None,
                Term::Variable(variable) => self.variable(variable, thread, false, place),
                Term::Primed(variable) => self.variable(variable, thread, true, place),
                Term::ReadValue(..) => cannot(format!("{place}: what a read returned")),
                Term::Before(..) => cannot(format!("{place}: the order of two events")),
                Term::Symbol(_) => cannot(format!("{place}: a symbol")),
            };
            match name {
                Ok(name) => Some(name),
                Err(error) => {
                    refused.get_or_insert(error);
                    Some(String::new())
                }
            }
        });
        match refused {
            Some(error) => Err(error),
            None => Ok(text),
        }
    }
}

/// How many nodes the term has as a tree, which can be far more than it has parts.
fn nodes(terms: &TermStore, root: TermId) -> u64 {
    let mut sizes: HashMap<TermId, u64> = HashMap::new();
    let mut stack = vec![root];
    while let Some(&top) = stack.last() {
        let mut size = 1_u64;
        if let Term::Apply(_, parts) = terms.term(top) {
            let before = stack.len();
            stack.extend(parts.iter().filter(|part| !sizes.contains_key(part)));
            if stack.len() > before {
                continue;
            }
            size = parts.iter().map(|part| sizes[part]).fold(1, u64::saturating_add);
        }
        sizes.insert(top, size);
        stack.pop();
    }
    sizes[&root]
}

fn check_name(what: &str, name: &str) -> Result<(), WriteError> {
    let fine = is_name(name) && !name.ends_with('.') && !KEYWORDS.contains(&name);
    if fine { Ok(()) } else { cannot(format!("the {what} name `{name}`")) }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.split("::").all(|part| !part.is_empty() && part.chars().all(is_name_character))
}

/// The name in a formula: between bars unless SMT-LIB takes it without.
fn symbol(name: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_.".contains(character);
    let number = name.starts_with(|first: char| first.is_ascii_digit());
    match name.chars().all(plain) && !number && name != "true" && name != "false" {
        true => name.to_owned(),
        false => format!("|{name}|"),
    }
}

/// CTRC wants a list where SMT-LIB takes a word: `assert(x)`.
fn parenthesised(formula: &str) -> String {
    match formula.starts_with('(') {
        true => formula.to_owned(),
        false => format!("({formula})"),
    }
}
