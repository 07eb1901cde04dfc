//! Terms inside an event, where the values that it reads have names.

use super::Result1;
use super::line::refuse;
use super::names::{Names, reference};
use crate::format::text::numbered;
use crate::id::{EventId, TermId, ThreadId};
use crate::sexpr::{self, Atom, NodeId, Quote, Refusal, Scope as TermScope, Tree};
use crate::term::{ArrayValue, Sort, Term, TermStore, Value};

/// Names as an event of `thread` sees them.
pub(super) struct EventScope<'n> {
    pub(super) names: &'n mut Names,
    pub(super) thread: Option<ThreadId>,
}

impl EventScope<'_> {
    /// A leaf; its sort is the one given, or the one that the read or variable has.
    fn leaf(
        &self,
        terms: &mut TermStore,
        leaf: Term,
        given: Option<Sort>,
    ) -> Result<TermId, Refusal> {
        let known = match &leaf {
            Term::Variable(variable) | Term::Primed(variable) => {
                Some(self.names.variable_table[variable.index()])
            }
            Term::ReadValue(thread, index) => self.names.read_sort(*thread, *index),
            _ => None,
        };
        let Some(sort) = given.or(known) else {
            let Term::ReadValue(_, index) = leaf else { unreachable!("variables have a sort") };
            return Err(Refusal {
                message: format!("event {index} of the thread is not a read before this line"),
                help: "events of a thread are numbered from 0; name the result, `T1 a = read x`, \
                       or give its sort, `(as r3 int)`"
                    .into(),
            });
        };
        if let Some(id) = terms.find(&leaf)
            && terms.sort(id) != sort
        {
            let (one, other) = (sexpr::print_sort(terms.sort(id)), sexpr::print_sort(sort));
            return Err(Refusal {
                message: format!("used as {one} before and as {other} here"),
                help: "give one sort to one thing".into(),
            });
        }
        Ok(match leaf {
            Term::Variable(variable) => terms.variable(variable, sort),
            Term::Primed(variable) => terms.primed(variable, sort),
            Term::ReadValue(thread, index) => terms.read_value(thread, index, sort),
            _ => unreachable!("only these leaves have names"),
        })
    }

    /// The leaf that a word names.
    fn leaf_name(&self, atom: &Atom<'_>) -> Result<Term, Refusal> {
        let name = atom.name.as_ref();
        if let Some(thread) = self.thread
            && atom.quote == Quote::Bare
        {
            if let Some(&index) = self.names.results.get(&(thread, name.into())) {
                return Ok(Term::ReadValue(thread, index));
            }
            if let Some(index) = numbered(name, 'r') {
                if self.names.visible(name, self.thread).is_some() {
                    return Err(Refusal {
                        message: format!("`{name}` is both a variable and a read"),
                        help: format!("write `|{name}|` for the variable, `(read {index})` else"),
                    });
                }
                return Ok(Term::ReadValue(thread, index));
            }
        }
        let variable = self.names.variable(atom, self.thread)?;
        Ok(if reference(atom).primed { Term::Primed(variable) } else { Term::Variable(variable) })
    }

    /// `(read 3)` or `(read T1 3)`.
    fn read_leaf(&self, tree: &Tree<'_>, list: NodeId) -> Result1<Term> {
        let parts: Vec<NodeId> = tree.children(list).skip(1).collect();
        let wrong = || tree.error(list, "malformed read").help("write `(read THREAD INDEX)`");
        let (thread, index) = match *parts.as_slice() {
            [index] => (self.thread.ok_or_else(wrong)?, index),
            [thread, index] => {
                let atom = tree.atom(thread).ok_or_else(wrong)?;
                let found = self.names.thread(&atom);
                (found.map_err(|refusal| refuse(tree, thread, refusal))?, index)
            }
            _ => return Err(wrong()),
        };
        Ok(Term::ReadValue(thread, tree.source(index).parse().map_err(|_| wrong())?))
    }
}

impl TermScope for EventScope<'_> {
    fn name(&mut self, terms: &mut TermStore, atom: &Atom<'_>) -> Result<TermId, Refusal> {
        if atom.quote == Quote::Bare && atom.name.starts_with('%') {
            return self.names.definitions.get(atom.name.as_ref()).copied().ok_or_else(|| {
                Refusal {
                    message: format!("unknown term `{}`", atom.name),
                    help: format!("define it before: `define {} := ...`", atom.name),
                }
            });
        }
        let leaf = self.leaf_name(atom)?;
        self.leaf(terms, leaf, None)
    }

    fn form(
        &mut self,
        terms: &mut TermStore,
        tree: &Tree<'_>,
        list: NodeId,
        head: &str,
    ) -> Result1<Option<TermId>> {
        let parts: Vec<NodeId> = match head {
            "read" | "as" | "before" | "symbol" | "array" => tree.children(list).skip(1).collect(),
            _ => return Ok(None),
        };
        let wrong = |help: &str| tree.error(list, format!("malformed `{head}`")).help(help);
        let number = |node: NodeId| tree.source(node).parse::<u32>().ok();
        let term = match (head, parts.as_slice()) {
            ("read", _) => {
                let leaf = self.read_leaf(tree, list)?;
                self.leaf(terms, leaf, None).map_err(|refusal| refuse(tree, list, refusal))?
            }
            ("as", &[inner, sort]) => {
                let sort = tree.sort(sort)?;
                let leaf = match tree.atom(inner) {
                    Some(atom) => {
                        self.leaf_name(&atom).map_err(|refusal| refuse(tree, inner, refusal))?
                    }
                    None => self.read_leaf(tree, inner)?,
                };
                let leaf = self.leaf(terms, leaf, Some(sort));
                leaf.map_err(|refusal| refuse(tree, list, refusal))?
            }
            ("before", &[first, second]) => {
                let mut event = |node: NodeId| {
                    let event = numbered(tree.source(node), 'e')
                        .ok_or_else(|| wrong("events are `e0`, `e1`, ... here"))?;
                    if self.names.highest_event.is_none_or(|(highest, _)| highest < event) {
                        self.names.highest_event = Some((event, tree.start(node)));
                    }
                    Ok(EventId(event))
                };
                let (first, second) = (event(first)?, event(second)?);
                terms.before(first, second)
            }
            ("symbol", &[index]) => {
                let symbol = number(index)
                    .and_then(|index| self.names.symbols.get(index as usize))
                    .ok_or_else(|| wrong("symbols are numbered from 0 as they are declared"))?;
                *symbol
            }
            ("array", &[sort, default, ref entries @ ..]) => {
                let Sort::Array { index, element } = tree.sort(sort)? else {
                    return Err(tree.error(sort, "expected an array sort"));
                };
                let value = |node: NodeId, sort: Sort| {
                    let value = constant(tree, node, sort)?;
                    value.ok_or_else(|| tree.error(node, "expected a constant of the array's sort"))
                };
                let mut array = ArrayValue::constant(index, value(default, element.into())?);
                for &entry in entries {
                    let pair: Vec<NodeId> = tree.children(entry).collect();
                    let &[at, element_node] = pair.as_slice() else {
                        return Err(tree.error(entry, "expected `(INDEX ELEMENT)`"));
                    };
                    let at = value(at, index.into())?;
                    array = array.store(at, value(element_node, element.into())?);
                }
                terms.constant(Value::Array(Box::new(array)))
            }
            _ => return Err(wrong("see the text format's description")),
        };
        Ok(Some(term))
    }
}

/// A scalar constant of that sort.
fn constant(tree: &Tree<'_>, node: NodeId, sort: Sort) -> Result1<Option<Value>> {
    let mut value = sexpr::literal(tree, node)?;
    let parts: Vec<NodeId> = tree.children(node).collect();
    if let &[slash, numerator, denominator] = parts.as_slice()
        && tree.source(slash) == "/"
    {
        let numerator = sexpr::literal(tree, numerator)?;
        let denominator = sexpr::literal(tree, denominator)?;
        value = match (numerator, denominator) {
            (Some(Value::Real(a)), Some(Value::Real(b))) => a.checked_div(b).map(Value::Real),
            _ => None,
        };
    }
    let value = value.map(|value| sexpr::coerce_value(value, sort));
    Ok(value.filter(|value| value.sort() == sort))
}
