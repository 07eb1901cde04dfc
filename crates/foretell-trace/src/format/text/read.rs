//! Text to trace.

use std::collections::HashMap;

use super::{DECLARATIONS, MEMORY_ORDERS, numbered};
use crate::event::{
    Access, AwaitMark, Condition, Event, Guarded, MemoryOrder, Op, ReadModifyWrite, Transition,
};
use crate::format::ReadError;
use crate::id::{EventId, ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::schedule::CreationPath;
use crate::sexpr::{
    self, Atom, Comments, NodeId, Quote, Refusal, Scope as TermScope, SyntaxError, TermReader, Tree,
};
use crate::sync::{Number, Parts, SyncKind, SyncOp, Written};
use crate::term::{ArrayValue, Sort, Term, TermStore, Value};
use crate::trace::{ChannelKind, MemoryRange, ObjectKind, Scope, Site, Trace, Variable};

/// The trace that a text describes.
pub fn read(text: &str) -> Result<Trace, ReadError> {
    Reader::new().read(text).map_err(|error| error.locate(text))
}

/// A name and who has it. Two of one name must be told apart by their numbers.
#[derive(Clone, Copy)]
enum Named {
    One(u32),
    Several,
}

/// What names stand for; everything but the trace's terms, which are being built.
struct Names {
    threads: HashMap<Box<str>, Named>,
    /// By name and, for locals, thread.
    variables: HashMap<(Box<str>, Option<ThreadId>), Named>,
    objects: HashMap<Box<str>, Named>,
    labels: HashMap<Box<str>, Named>,
    definitions: HashMap<Box<str>, TermId>,
    /// The result of a read by the name that the text gives it.
    results: HashMap<(ThreadId, Box<str>), u32>,
    /// The sort and scope of each variable.
    variable_table: Vec<Sort>,
    thread_count: usize,
    object_count: usize,
    symbols: Vec<TermId>,
    /// What each event of each thread returns, `None` for those that read nothing.
    reads: Vec<Vec<Option<Sort>>>,
    /// The events of each thread.
    events: Vec<Vec<EventId>>,
    /// The highest event number named in a term, and where.
    highest_event: Option<(u32, usize)>,
}

struct Reader {
    trace: Trace,
    names: Names,
    terms: TermReader,
    sites: HashMap<Site, SiteId>,
    declared_sites: bool,
}

/// The statement on one line.
struct Line<'t, 'a> {
    tree: &'t Tree<'a>,
    nodes: Vec<NodeId>,
    next: usize,
    /// Behind the last word.
    end: usize,
}

type Result1<T> = Result<T, SyntaxError>;

impl<'a> Line<'_, 'a> {
    fn peek(&self) -> Option<NodeId> {
        self.nodes.get(self.next).copied()
    }

    fn take(&mut self, what: &str) -> Result1<NodeId> {
        let node = self.peek().ok_or_else(|| self.missing(what))?;
        self.next += 1;
        Ok(node)
    }

    fn missing(&self, what: &str) -> SyntaxError {
        SyntaxError::new(self.end, format!("expected {what} here"))
    }

    fn next_is(&self, word: &str) -> bool {
        self.peek().is_some_and(|node| self.tree.source(node) == word)
    }

    fn take_if(&mut self, word: &str) -> bool {
        let found = self.next_is(word);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result1<()> {
        if self.take_if(word) {
            return Ok(());
        }
        let at = self.peek().map_or(self.end, |node| self.tree.start(node));
        Err(SyntaxError::new(at, format!("expected `{word}` here")))
    }

    fn atom(&mut self, what: &str) -> Result1<(Atom<'a>, NodeId)> {
        let node = self.take(what)?;
        match self.tree.atom(node) {
            Some(atom) => Ok((atom, node)),
            None => Err(self.tree.error(node, format!("expected {what}, not a list"))),
        }
    }

    /// A name that is being given.
    fn new_name(&mut self, what: &str) -> Result1<Box<str>> {
        let (atom, node) = self.atom(what)?;
        let wrong = |message: &str| {
            self.tree.error(node, message).help("put the name between bars: |like this|")
        };
        if !atom.suffix.is_empty() {
            return Err(wrong("a name ends at the closing quote"));
        }
        if atom.quote == Quote::Bare && atom.name.contains(['\'', '$', '%', '#', '=', ',']) {
            return Err(wrong("names without bars have no `'$%#=,`"));
        }
        Ok(atom.name.into())
    }

    fn string(&mut self, what: &str) -> Result1<Box<str>> {
        Ok(self.atom(what)?.0.name.into())
    }

    fn number(&mut self, what: &str) -> Result1<u64> {
        let node = self.take(what)?;
        let source = self.tree.source(node);
        let number = match source.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => source.parse(),
        };
        number.map_err(|_| self.tree.error(node, format!("expected {what}, a number of 64 bits")))
    }

    fn number_32(&mut self, what: &str) -> Result1<u32> {
        let at = self.peek();
        let number = self.number(what)?;
        u32::try_from(number).map_err(|_| {
            let at = at.map_or(self.end, |node| self.tree.start(node));
            SyntaxError::new(at, format!("{what} is larger than 32 bits"))
        })
    }

    fn finish(&self) -> Result1<()> {
        match self.peek() {
            None => Ok(()),
            Some(node) => Err(self
                .tree
                .error(node, format!("`{}` is unexpected here", self.tree.source(node)))),
        }
    }
}

/// A reference split into name, number (`x$3`) and prime (`x'`).
struct Reference<'n> {
    name: &'n str,
    number: Option<u32>,
    primed: bool,
}

fn reference<'n>(atom: &'n Atom<'_>) -> Reference<'n> {
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
    fn new() -> Self {
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

    fn thread(&self, atom: &Atom<'_>) -> Result<ThreadId, Refusal> {
        let reference = reference(atom);
        let found = self.threads.get(reference.name);
        Self::resolve(&reference, "thread", "thread", self.thread_count, found).map(ThreadId)
    }

    fn object(&self, atom: &Atom<'_>) -> Result<ObjectId, Refusal> {
        let reference = reference(atom);
        let found = self.objects.get(reference.name);
        Self::resolve(&reference, "object", "mutex", self.object_count, found).map(ObjectId)
    }

    fn visible(&self, name: &str, thread: Option<ThreadId>) -> Option<&Named> {
        let local = thread.and_then(|_| self.variables.get(&(name.into(), thread)));
        local.or_else(|| self.variables.get(&(name.into(), None)))
    }

    fn variable(&self, atom: &Atom<'_>, thread: Option<ThreadId>) -> Result<VariableId, Refusal> {
        let reference = reference(atom);
        let found = self.visible(reference.name, thread);
        Self::resolve(&reference, "variable", "var", self.variable_table.len(), found)
            .map(VariableId)
    }

    /// What event `index` of the thread read.
    fn read_sort(&self, thread: ThreadId, index: u32) -> Option<Sort> {
        *self.reads.get(thread.index())?.get(index as usize)?
    }
}

fn add_name<K: std::hash::Hash + Eq>(names: &mut HashMap<K, Named>, name: K, number: usize) {
    names
        .entry(name)
        .and_modify(|named| *named = Named::Several)
        .or_insert(Named::One(number as u32));
}

/// Names as an event of `thread` sees them.
struct EventScope<'n> {
    names: &'n mut Names,
    thread: Option<ThreadId>,
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

fn refuse(tree: &Tree<'_>, node: NodeId, refusal: Refusal) -> SyntaxError {
    tree.error(node, refusal.message).help(refusal.help)
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

impl Reader {
    fn new() -> Self {
        Self {
            trace: Trace::new(),
            names: Names::new(),
            terms: TermReader::default(),
            sites: HashMap::new(),
            declared_sites: false,
        }
    }

    fn read(mut self, text: &str) -> Result1<Trace> {
        let mut at = 0;
        let mut header = false;
        while at < text.len() {
            let tree = Tree::read_line(text, &mut at, Comments::BetweenWords)?;
            let nodes = tree.roots();
            let Some((&first, &last)) = nodes.first().zip(nodes.last()) else { continue };
            let end = tree.end(last);
            let mut line = Line { tree: &tree, nodes, next: 0, end };
            if !header {
                header = true;
                if !line.take_if("foretell-trace") {
                    return Err(tree
                        .error(first, "not a text trace")
                        .help("the first line is `foretell-trace 1`"));
                }
                let version = line.take("the version")?;
                if tree.source(version) != "1" {
                    let message = format!("version `{}` is not known", tree.source(version));
                    return Err(tree.error(version, message).help("this program reads version 1"));
                }
                line.finish()?;
                continue;
            }
            let keyword = tree.source(first);
            if DECLARATIONS.contains(&keyword) {
                line.next = 1;
                self.declaration(keyword, &mut line)?;
            } else {
                self.event(&mut line)?;
            }
            line.finish()?;
        }
        if !header {
            return Err(SyntaxError::new(0, "the text is empty")
                .help("the first line is `foretell-trace 1`"));
        }
        if let Some((highest, at)) = self.names.highest_event
            && highest as usize >= self.trace.events.len()
        {
            return Err(SyntaxError::new(at, format!("there is no event e{highest}")));
        }
        Ok(self.trace)
    }

    fn declaration(&mut self, keyword: &str, line: &mut Line<'_, '_>) -> Result1<()> {
        match keyword {
            "foretell-trace" => Err(SyntaxError::new(line.end, "a second header")),
            "symbolic" => {
                self.trace.metadata.symbolic = true;
                Ok(())
            }
            "observed" => {
                self.trace.metadata.observed_order = true;
                Ok(())
            }
            "machine-code" => {
                self.trace.metadata.machine_code = true;
                Ok(())
            }
            "unknown-library" => {
                self.trace.metadata.unseen.library = true;
                Ok(())
            }
            "unknown-locks" => {
                self.trace.metadata.unseen.locks = true;
                Ok(())
            }
            "freed-in-use" => {
                self.trace.metadata.unseen.freed = true;
                Ok(())
            }
            "command" => {
                while line.peek().is_some() {
                    let word = line.string("a word of the command")?;
                    self.trace.metadata.command.push(word);
                }
                Ok(())
            }
            "build-id" => {
                self.trace.metadata.build_id = Some(line.string("the build id")?);
                Ok(())
            }
            "gap" => {
                self.trace.metadata.gaps.push(line.string("a sentence in quotes")?);
                Ok(())
            }
            "restriction" => {
                self.trace.metadata.restrictions.push(line.string("a sentence in quotes")?);
                Ok(())
            }
            "pre" => {
                let node = line.take("a formula")?;
                self.trace.precondition = Some(self.condition(line, node, None)?);
                Ok(())
            }
            "define" => {
                let (atom, node) = line.atom("a name")?;
                if atom.quote != Quote::Bare || !atom.name.starts_with('%') {
                    return Err(line.tree.error(node, "defined names begin with `%`"));
                }
                line.expect(":=")?;
                let body = line.take("a term")?;
                let term = self.term(line, body, None)?;
                self.names.definitions.insert(atom.name.into(), term);
                Ok(())
            }
            "order" => {
                let first = self.event_reference(line)?;
                line.expect("<")?;
                let second = self.event_reference(line)?;
                self.trace.orders.push((first, second));
                Ok(())
            }
            "atomic" => {
                let at = line.peek();
                let first = self.event_reference(line)?;
                let last = self.event_reference(line)?;
                let thread = |event| self.trace.event(event).thread;
                if thread(first) != thread(last) || first > last {
                    let at = at.map_or(line.end, |node| line.tree.start(node));
                    return Err(SyntaxError::new(
                        at,
                        "not the first and last event of a thread's \
                                                     section",
                    )
                    .help("name two events of one thread, the earlier first"));
                }
                self.trace.atomic_sections.push((first, last));
                Ok(())
            }
            "site" => {
                let site = self.site(line)?;
                self.declared_sites = true;
                let id = self.trace.add_site(site.clone());
                self.sites.entry(site).or_insert(id);
                Ok(())
            }
            _ => loop {
                self.declare(keyword, line)?;
                if !line.take_if(",") {
                    return Ok(());
                }
            },
        }
    }

    /// One item of a comma-separated list.
    fn declare(&mut self, keyword: &str, line: &mut Line<'_, '_>) -> Result1<()> {
        let name = line.new_name("a name")?;
        let kind = match keyword {
            "thread" => {
                let number = self.trace.threads.len();
                let path = if line.take_if("path") {
                    let (atom, node) = line.atom("a creation path")?;
                    let path: CreationPath = atom.name.parse().map_err(|_| {
                        line.tree.error(node, "not a creation path").help("write e.g. `0.1.2`")
                    })?;
                    path.0
                } else {
                    // The first thread is the main thread, which creates the others.
                    number.checked_sub(1).map(|child| child as u32).into_iter().collect()
                };
                add_name(&mut self.names.threads, name.clone(), number);
                self.names.thread_count += 1;
                self.names.reads.push(Vec::new());
                self.names.events.push(Vec::new());
                self.trace.add_thread(&name, path);
                return Ok(());
            }
            "var" | "local" => return self.declare_variable(keyword, name, line),
            "symbol" => {
                line.expect(":")?;
                let node = line.take("a sort")?;
                let sort = line.tree.sort(node)?;
                self.names.symbols.push(self.trace.terms.fresh_symbol(name, sort));
                return Ok(());
            }
            "mutex" => ObjectKind::Mutex,
            "recursive" => ObjectKind::RecursiveMutex,
            "errorcheck" => ObjectKind::ErrorCheckingMutex,
            "rwlock" => ObjectKind::ReaderWriterLock,
            "cond" => ObjectKind::Condition,
            "sem" => {
                let counted = line.take_if("=");
                let initial = if counted { line.number_32("the initial count")? } else { 0 };
                ObjectKind::Semaphore { initial }
            }
            "channel" => {
                let (kind, node) = line.atom("a kind of channel")?;
                ObjectKind::Channel(match &*kind.name {
                    "queue" => ChannelKind::Queue,
                    "state" => ChannelKind::State,
                    "interrupt" => ChannelKind::Interrupt,
                    other => {
                        return Err(line
                            .tree
                            .error(node, format!("unknown kind of channel `{other}`"))
                            .help("write queue, state or interrupt"));
                    }
                })
            }
            "barrier" => ObjectKind::Barrier { parties: line.number_32("the number of parties")? },
            _ => unreachable!("every declaration is handled"),
        };
        add_name(&mut self.names.objects, name.clone(), self.trace.objects.len());
        self.names.object_count += 1;
        let address = line.take_if("at").then(|| line.number("an address")).transpose()?;
        let object = self.trace.add_object(&name, kind);
        self.trace.objects[object.index()].address = address;
        Ok(())
    }

    fn declare_variable(
        &mut self,
        keyword: &str,
        name: Box<str>,
        line: &mut Line<'_, '_>,
    ) -> Result1<()> {
        let scope = if keyword == "local" {
            line.expect("of")?;
            Scope::Local(self.thread(line)?)
        } else {
            Scope::Shared
        };
        let mut sort = Sort::INT;
        if line.take_if(":") {
            let node = line.take("a sort")?;
            sort = line.tree.sort(node)?;
        }
        let initial = if line.take_if("=") {
            let node = line.take("a value")?;
            let term = self.term_of_sort(line, node, None, sort)?;
            let value = self.trace.terms.constant_value(term).cloned();
            Some(value.ok_or_else(|| line.tree.error(node, "an initial value is a constant"))?)
        } else {
            None
        };
        let memory = if line.take_if("at") {
            let address = line.number("an address")?;
            line.expect("size")?;
            let at = line.peek();
            let size = line.number("a size")?;
            let size = u8::try_from(size).ok().filter(|size| (1..=8).contains(size));
            let size = size.ok_or_else(|| {
                let at = at.map_or(line.end, |node| line.tree.start(node));
                SyntaxError::new(at, "a location has 1 to 8 bytes")
            })?;
            let generation =
                if line.take_if("generation") { line.number_32("a number")? } else { 0 };
            Some(MemoryRange { address, size, generation })
        } else {
            None
        };
        let owner = match scope {
            Scope::Shared => None,
            Scope::Local(thread) => Some(thread),
        };
        let number = self.trace.variables.len();
        add_name(&mut self.names.variables, (name.clone(), owner), number);
        self.names.variable_table.push(sort);
        self.trace.add_variable(Variable { name, sort, scope, memory, initial });
        Ok(())
    }

    fn thread(&self, line: &mut Line<'_, '_>) -> Result1<ThreadId> {
        let (atom, node) = line.atom("a thread")?;
        self.names.thread(&atom).map_err(|refusal| refuse(line.tree, node, refusal))
    }

    fn object(&self, line: &mut Line<'_, '_>) -> Result1<ObjectId> {
        let (atom, node) = line.atom("a synchronisation object")?;
        self.names.object(&atom).map_err(|refusal| refuse(line.tree, node, refusal))
    }

    fn variable(&self, line: &mut Line<'_, '_>, thread: ThreadId) -> Result1<VariableId> {
        let (atom, node) = line.atom("a variable")?;
        self.names.variable(&atom, Some(thread)).map_err(|refusal| refuse(line.tree, node, refusal))
    }

    fn term(
        &mut self,
        line: &Line<'_, '_>,
        node: NodeId,
        thread: Option<ThreadId>,
    ) -> Result1<TermId> {
        let scope = &mut EventScope { names: &mut self.names, thread };
        self.terms.term(&mut self.trace.terms, scope, line.tree, node)
    }

    fn term_of_sort(
        &mut self,
        line: &Line<'_, '_>,
        node: NodeId,
        thread: Option<ThreadId>,
        sort: Sort,
    ) -> Result1<TermId> {
        let scope = &mut EventScope { names: &mut self.names, thread };
        self.terms.term_of_sort(&mut self.trace.terms, scope, line.tree, node, sort)
    }

    fn condition(
        &mut self,
        line: &Line<'_, '_>,
        node: NodeId,
        thread: Option<ThreadId>,
    ) -> Result1<TermId> {
        self.term_of_sort(line, node, thread, Sort::BOOL)
    }

    fn event_reference(&self, line: &mut Line<'_, '_>) -> Result1<EventId> {
        let (atom, node) = line.atom("an event")?;
        let name = atom.name.as_ref();
        let unknown = || {
            line.tree
                .error(node, format!("unknown event `{name}`"))
                .help("name an event above by its label, `THREAD#INDEX`, or `eN`")
        };
        if atom.quote == Quote::Bare {
            if let Some(number) = numbered(name, 'e') {
                let exists = (number as usize) < self.trace.events.len();
                return exists.then_some(EventId(number)).ok_or_else(unknown);
            }
            if let Some((thread, index)) = name.rsplit_once('#') {
                let atom = Atom { name: thread.into(), quote: Quote::Bare, suffix: "" };
                let thread = self.names.thread(&atom);
                let thread = thread.map_err(|refusal| refuse(line.tree, node, refusal))?;
                let index: usize = index.parse().map_err(|_| unknown())?;
                return self.names.events[thread.index()].get(index).copied().ok_or_else(unknown);
            }
        }
        match self.names.labels.get(name) {
            Some(Named::One(number)) => Ok(EventId(*number)),
            Some(Named::Several) => {
                Err(line.tree.error(node, format!("several events are called `{name}`")))
            }
            None => Err(unknown()),
        }
    }

    /// `FILE:LINE:COLUMN [FUNCTION]`, which ends the line.
    fn site(&self, line: &mut Line<'_, '_>) -> Result1<Site> {
        let _ = line.peek().ok_or_else(|| line.missing("a source position"))?;
        let site = parse_site(line.tree, &line.nodes[line.next..])?;
        line.next = line.nodes.len();
        Ok(site)
    }

    fn event(&mut self, line: &mut Line<'_, '_>) -> Result1<()> {
        let (first, first_node) = line.atom("a thread")?;
        let label: Option<Box<str>> = match first.quote {
            Quote::Bare => first.name.strip_suffix(':').map(Box::from),
            _ => (first.suffix == ":").then(|| first.name.as_ref().into()),
        };
        if label.is_none() {
            line.next -= 1;
        }
        let thread = self.thread(line).map_err(|error| match label {
            None if error.at == line.tree.start(first_node) => SyntaxError {
                help: Some(
                    "a line is a declaration or `[LABEL:] THREAD OPERATION ...`; threads \
                            are declared with `thread NAME`"
                        .into(),
                ),
                ..error
            },
            _ => error,
        })?;
        // The site ends the line; what stands before it is the operation.
        let all = line.nodes.clone();
        let site_at = (line.next..all.len()).find(|&index| line.tree.source(all[index]) == "@");
        let whole_end = line.end;
        if let Some(index) = site_at {
            line.nodes.truncate(index);
            line.end = line.tree.start(all[index]);
        }
        let index = self.names.reads[thread.index()].len() as u32;
        let result = match line.nodes.get(line.next + 1) {
            Some(&node) if line.tree.source(node) == "=" => {
                let name = line.new_name("a name for the result")?;
                line.next += 1;
                Some(name)
            }
            _ => None,
        };
        let (operation, operation_node) = line.atom("an operation")?;
        let named = result.is_some();
        if let Some(name) = result {
            self.names.results.insert((thread, name), index); // a read-modify-write's term uses it
        }
        let op = self.operation(line, thread, &operation, operation_node)?;
        if named && !matches!(op, Op::Read(_) | Op::ReadModifyWrite(_)) {
            return Err(line.tree.error(operation_node, "only reads have a result to name"));
        }
        line.finish()?;
        let site = match site_at {
            Some(at) => {
                line.nodes = all;
                line.end = whole_end;
                line.next = at + 1;
                Some(self.event_site(line)?)
            }
            None => None,
        };
        // Read-modify-writes have entered theirs, because their own term can use it.
        let reads = &mut self.names.reads[thread.index()];
        if reads.len() == index as usize {
            let sort = match &op {
                Op::Read(access) => Some(self.names.variable_table[access.variable.index()]),
                _ => None,
            };
            reads.push(sort);
        }
        let id = self.trace.push(Event { thread, index, site, op });
        self.names.events[thread.index()].push(id);
        if let Some(label) = label {
            add_name(&mut self.names.labels, label.clone(), id.index());
            self.trace.labels.insert(id, label);
        }
        Ok(())
    }

    /// The site behind an `@`: a position, or `$N` for the N-th declared site.
    fn event_site(&mut self, line: &mut Line<'_, '_>) -> Result1<SiteId> {
        if let Some(node) = line.peek()
            && let Some(number) = line.tree.source(node).strip_prefix('$')
        {
            line.next += 1;
            let site = number.parse().ok().filter(|&site: &usize| site < self.trace.sites.len());
            return site
                .map(SiteId::from)
                .ok_or_else(|| line.tree.error(node, "there is no declared site of that number"));
        }
        let site = self.site(line)?;
        if let Some(&id) = self.sites.get(&site) {
            return Ok(id);
        }
        let id = self.trace.add_site(site.clone());
        self.sites.insert(site, id);
        Ok(id)
    }

    /// A step on a synchronisation object, of which the keyword has been read.
    fn step(&mut self, line: &mut Line<'_, '_>, kind: SyncKind, attributes: u8) -> Result1<Op> {
        let shape = kind.shape();
        let mut parts = Parts::new(attributes);
        let object = self.object(line)?;
        if shape.mutex {
            parts.mutex = Some(self.object(line)?);
        }
        for number in shape.numbers {
            parts.push(match number {
                Number::Always(what) => line.number(what)?,
                Number::UnlessZero(what) if line.take_if("=") => line.number(what)?,
                Number::UnlessZero(_) => 0,
            });
        }
        for &(bit, written) in shape.flags {
            if let Written::Word(word) = written
                && line.take_if(word)
            {
                parts.attributes |= bit;
            }
        }
        Ok(Op::Sync(object, SyncOp::from_parts(kind, parts)))
    }

    fn operation(
        &mut self,
        line: &mut Line<'_, '_>,
        thread: ThreadId,
        operation: &Atom<'_>,
        node: NodeId,
    ) -> Result1<Op> {
        let unknown = || {
            line.tree
                .error(node, format!("unknown operation `{}`", operation.name))
                .help("operations are read, write, rmw, acquire, release, branch, assert, ...")
        };
        if operation.quote != Quote::Bare {
            return Err(unknown());
        }
        let (base, suffix) = match operation.name.split_once('.') {
            Some((base, suffix)) => (base, Some(suffix)),
            None => (operation.name.as_ref(), None),
        };
        if let Some((kind, attributes)) = SyncKind::of_word(&operation.name) {
            return self.step(line, kind, attributes);
        }
        let order = match suffix {
            None => None,
            Some(suffix) if matches!(base, "read" | "write" | "rmw") => {
                Some(memory_order(suffix).ok_or_else(unknown)?)
            }
            Some(_) => return Err(unknown()),
        };
        Ok(match base {
            "begin" => Op::ThreadBegin,
            "end" => Op::ThreadEnd,
            "fork" => Op::Fork(self.thread(line)?),
            "join" => Op::Join(self.thread(line)?),
            "read" => Op::Read(self.access(line, thread, order)?),
            "write" => Op::Write(self.access(line, thread, order)?),
            "rmw" => self.read_modify_write(line, thread, order)?,
            "fence" => {
                let (order, node) = line.atom("a memory order")?;
                let order = memory_order(&order.name).ok_or_else(|| {
                    line.tree
                        .error(node, format!("unknown memory order `{}`", order.name))
                        .help("write relaxed, acquire, release, acq_rel or seq_cst")
                })?;
                Op::Fence(order)
            }
            "branch" => Op::Branch(self.outcome(line, thread)?),
            "assert" => Op::Assert(self.outcome(line, thread)?),
            "region" => Op::RegionBegin(line.string("a name")?),
            "region-end" => Op::RegionEnd,
            "call" => Op::Call(line.string("a function")?),
            "return" => Op::Return,
            "await" => Op::Await(AwaitMark::Round),
            "await-test" => Op::Await(AwaitMark::Test),
            "await-failed" => Op::Await(AwaitMark::Failed),
            "await-again" => Op::Await(AwaitMark::Again),
            "alloc" => {
                Op::Alloc { address: line.number("an address")?, size: line.number("a size")? }
            }
            "free" => Op::Free { address: line.number("an address")? },
            "input" => {
                let source = line.string("a source")?;
                line.expect("=")?;
                Op::Input { source, value: self.bits(line)? }
            }
            "assume" => {
                let node = line.take("a formula")?;
                let guard = self.condition(line, node, Some(thread))?;
                let assignments = match line.take_if("assign") {
                    true => self.assignments(line, thread)?,
                    false => Vec::new(),
                };
                Op::Guarded(Box::new(Guarded { guard, assignments }))
            }
            "assign" => {
                let assignments = self.assignments(line, thread)?;
                let guard = self.trace.terms.bool(true);
                Op::Guarded(Box::new(Guarded { guard, assignments }))
            }
            "transition" => {
                let node = line.take("a formula")?;
                let predicate = self.condition(line, node, Some(thread))?;
                let changed = if line.take_if("changes") {
                    let mut changed = Vec::new();
                    while line.peek().is_some() {
                        changed.push(self.variable(line, thread)?);
                    }
                    changed
                } else {
                    self.trace.terms.primed_variables(predicate)
                };
                Op::Transition(Box::new(Transition { predicate, changed }))
            }
            _ => return Err(unknown()),
        })
    }

    fn access(
        &mut self,
        line: &mut Line<'_, '_>,
        thread: ThreadId,
        order: Option<MemoryOrder>,
    ) -> Result1<Access> {
        let variable = self.variable(line, thread)?;
        let value = if line.take_if("=") { Some(self.bits(line)?) } else { None };
        let (term, address) = self.access_terms(line, thread, variable)?;
        Ok(Access { variable, value, term, address, order })
    }

    /// `[:= TERM] [at TERM]`
    fn access_terms(
        &mut self,
        line: &mut Line<'_, '_>,
        thread: ThreadId,
        variable: VariableId,
    ) -> Result1<(Option<TermId>, Option<TermId>)> {
        let mut written = None;
        if line.take_if(":=") {
            let node = line.take("a term")?;
            let term = self.term(line, node, Some(thread))?;
            let sort = self.names.variable_table[variable.index()];
            written = Some(sexpr::coerce(&mut self.trace.terms, term, sort));
        }
        let mut address = None;
        if line.take_if("at") {
            let node = line.take("a term")?;
            address = Some(self.term(line, node, Some(thread))?);
        }
        Ok((written, address))
    }

    fn read_modify_write(
        &mut self,
        line: &mut Line<'_, '_>,
        thread: ThreadId,
        order: Option<MemoryOrder>,
    ) -> Result1<Op> {
        let variable = self.variable(line, thread)?;
        let old = if line.take_if("=") { Some(self.bits(line)?) } else { None };
        let new = if line.take_if("->") { Some(self.bits(line)?) } else { None };
        let sort = self.names.variable_table[variable.index()];
        self.names.reads[thread.index()].push(Some(sort)); // its own term can use what it read
        let (term, address) = self.access_terms(line, thread, variable)?;
        let order = order.unwrap_or(MemoryOrder::SequentiallyConsistent);
        Ok(Op::ReadModifyWrite(Box::new(ReadModifyWrite {
            variable,
            old,
            new,
            term,
            address,
            order,
        })))
    }

    /// A value as the bits of memory.
    fn bits(&mut self, line: &mut Line<'_, '_>) -> Result1<u64> {
        let node = line.take("a value")?;
        let hexadecimal = line.tree.source(node).strip_prefix("0x");
        let value = match hexadecimal {
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from).map(Value::Int),
            None => sexpr::literal(line.tree, node)?,
        };
        let bits = match value {
            Some(Value::Bool(value)) => Some(u64::from(value)),
            Some(Value::BitVec { bits, .. }) => Some(bits),
            Some(Value::Int(number)) if number < 0 => i64::try_from(number).ok().map(|n| n as u64),
            Some(Value::Int(number)) => u64::try_from(number).ok(),
            _ => None,
        };
        bits.ok_or_else(|| {
            line.tree
                .error(node, format!("`{}` is not a value of 64 bits", line.tree.source(node)))
                .help("write a number, true, false or #x1f")
        })
    }

    /// `[TERM] [true|false]`
    fn outcome(&mut self, line: &mut Line<'_, '_>, thread: ThreadId) -> Result1<Condition> {
        let first = line.take("a condition or an outcome")?;
        let truth = |node: NodeId| match line.tree.source(node) {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        let second = line.peek();
        if let (Some(outcome), None) = (truth(first), second) {
            return Ok(Condition { term: None, outcome });
        }
        let outcome = match second {
            Some(node) => truth(node)
                .ok_or_else(|| line.tree.error(node, "expected the outcome, true or false"))?,
            None => true,
        };
        line.next += usize::from(second.is_some());
        Ok(Condition { term: Some(self.condition(line, first, Some(thread))?), outcome })
    }

    fn assignments(
        &mut self,
        line: &mut Line<'_, '_>,
        thread: ThreadId,
    ) -> Result1<Vec<(VariableId, TermId)>> {
        let mut assignments = Vec::new();
        loop {
            let variable = self.variable(line, thread)?;
            line.expect(":=")?;
            let node = line.take("a term")?;
            let sort = self.names.variable_table[variable.index()];
            assignments.push((variable, self.term_of_sort(line, node, Some(thread), sort)?));
            if !line.take_if(",") {
                return Ok(assignments);
            }
        }
    }
}

/// `FILE:LINE[:COLUMN] [FUNCTION]`: one or two words.
pub(crate) fn parse_site(tree: &Tree<'_>, words: &[NodeId]) -> Result1<Site> {
    let (&place, function) = words.split_first().expect("the caller saw a word");
    let wrong = |node: NodeId| {
        let help = "write `FILE:LINE` or `FILE:LINE:COLUMN`, then the function";
        tree.error(node, "not a source position").help(help)
    };
    let atom = tree.atom(place).ok_or_else(|| wrong(place))?;
    let (file, numbers) = match atom.quote {
        Quote::Bare => atom.name.split_once(':').unwrap_or((&atom.name, "")),
        _ => (atom.name.as_ref(), atom.suffix.strip_prefix(':').unwrap_or("")),
    };
    let (line, column) = numbers.split_once(':').unwrap_or((numbers, "0"));
    let (Ok(line), Ok(column)) = (line.parse(), column.parse()) else { return Err(wrong(place)) };
    let function = match function {
        [] => "".into(),
        &[name] => tree.atom(name).ok_or_else(|| wrong(name))?.name.into(),
        &[_, other, ..] => return Err(wrong(other)),
    };
    Ok(Site { file: file.into(), line, column, function })
}

fn memory_order(name: &str) -> Option<MemoryOrder> {
    MEMORY_ORDERS.iter().find(|(word, _)| *word == name).map(|(_, order)| *order)
}
