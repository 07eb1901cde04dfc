//! What names stand for.

use std::collections::HashMap;

use crate::id::{EventId, ObjectId, TermId, ThreadId, VariableId};
use crate::sexpr::{Atom, Quote, Refusal};
use crate::term::Sort;

/// A name and who has it. Two of one name must be told apart by their numbers.
#[derive(Clone, Copy)]
pub(super) enum Named {
    One(u32),
    Several,
}

/// What names stand for; everything but the trace's terms, which are being built.
pub(super) struct Names {
    pub(super) threads: HashMap<Box<str>, Named>,
    /// By name and, for locals, thread.
    pub(super) variables: HashMap<(Box<str>, Option<ThreadId>), Named>,
    pub(super) objects: HashMap<Box<str>, Named>,
    pub(super) labels: HashMap<Box<str>, Named>,
    pub(super) definitions: HashMap<Box<str>, TermId>,
    /// The result of a read by the name that the text gives it.
    pub(super) results: HashMap<(ThreadId, Box<str>), u32>,
    /// The sort and scope of each variable.
    pub(super) variable_table: Vec<Sort>,
    pub(super) thread_count: usize,
    pub(super) object_count: usize,
    pub(super) symbols: Vec<TermId>,
    /// What each event of each thread returns, `None` for those that read nothing.
    pub(super) reads: Vec<Vec<Option<Sort>>>,
    /// The events of each thread.
    pub(super) events: Vec<Vec<EventId>>,
    /// The highest event number named in a term, and where.
    pub(super) highest_event: Option<(u32, usize)>,
}

/// A reference split into name, number (`x$3`) and prime (`x'`).
pub(super) struct Reference<'n> {
    name: &'n str,
    number: Option<u32>,
    pub(super) primed: bool,
}

pub(super) fn reference<'n>(atom: &'n Atom<'_>) -> Reference<'n> {
    let (mut name, mut rest) = match atom.quote {
        Quote::Bare => (atom.name.as_ref(), atom.name.as_ref()),
        _ => (atom.name.as_ref(), atom.suffix),
    };
    let mut primed = false;
    if let Some(before) = rest.strip_suffix('\'') {
        (rest, primed) = (before, true);
    }
    let mut number = None;
    if let Some((before, digits)) = rest.rsplit_once('$')
        && let Ok(parsed) = digits.parse()
    {
        (rest, number) = (before, Some(parsed));
    }
    match atom.quote {
        Quote::Bare => name = rest,
        _ if !rest.is_empty() => name = "", // something else follows the quote: nothing is so called
        _ => {}
    }
    Reference { name, number, primed }
}

impl Names {
    pub(super) fn new() -> Self {
        Self {
            threads: HashMap::new(),
            variables: HashMap::new(),
            objects: HashMap::new(),
            labels: HashMap::new(),
            definitions: HashMap::new(),
            results: HashMap::new(),
            variable_table: Vec::new(),
            thread_count: 0,
            object_count: 0,
            symbols: Vec::new(),
            reads: Vec::new(),
            events: Vec::new(),
            highest_event: None,
        }
    }

    fn resolve(
        reference: &Reference<'_>,
        what: &str,
        declare: &str,
        count: usize,
        found: Option<&Named>,
    ) -> Result<u32, Refusal> {
        let name = reference.name;
        match (reference.number, found) {
            (Some(number), _) if (number as usize) < count => Ok(number),
            (Some(number), _) => Err(Refusal {
                message: format!("there is no {what} number {number}"),
                help: format!("{what}s are numbered from 0 in the order of their declarations"),
            }),
            (None, Some(Named::One(number))) => Ok(*number),
            (None, Some(Named::Several)) => Err(Refusal {
                message: format!("there are several {what}s called `{name}`"),
                help: format!("write `{name}$N`, N its number among the {what}s from 0"),
            }),
            (None, None) => Err(Refusal {
                message: format!("unknown {what} `{name}`"),
                help: format!("declare it before: `{declare} {name}`"),
            }),
        }
    }

    pub(super) fn thread(&self, atom: &Atom<'_>) -> Result<ThreadId, Refusal> {
        let reference = reference(atom);
        let found = self.threads.get(reference.name);
        Self::resolve(&reference, "thread", "thread", self.thread_count, found).map(ThreadId)
    }

    pub(super) fn object(&self, atom: &Atom<'_>) -> Result<ObjectId, Refusal> {
        let reference = reference(atom);
        let found = self.objects.get(reference.name);
        Self::resolve(&reference, "object", "mutex", self.object_count, found).map(ObjectId)
    }

    pub(super) fn visible(&self, name: &str, thread: Option<ThreadId>) -> Option<&Named> {
        let local = thread.and_then(|_| self.variables.get(&(name.into(), thread)));
        local.or_else(|| self.variables.get(&(name.into(), None)))
    }

    pub(super) fn variable(
        &self,
        atom: &Atom<'_>,
        thread: Option<ThreadId>,
    ) -> Result<VariableId, Refusal> {
        let reference = reference(atom);
        let found = self.visible(reference.name, thread);
        Self::resolve(&reference, "variable", "var", self.variable_table.len(), found)
            .map(VariableId)
    }

    /// What event `index` of the thread read.
    pub(super) fn read_sort(&self, thread: ThreadId, index: u32) -> Option<Sort> {
        *self.reads.get(thread.index())?.get(index as usize)?
    }
}

pub(super) fn add_name<K: std::hash::Hash + Eq>(
    names: &mut HashMap<K, Named>,
    name: K,
    number: usize,
) {
    names
        .entry(name)
        .and_modify(|named| *named = Named::Several)
        .or_insert(Named::One(number as u32));
}
