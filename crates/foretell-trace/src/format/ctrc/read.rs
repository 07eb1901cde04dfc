//! CTRC to trace.

mod formulas;

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{KEYWORDS, is_name_character};
use crate::event::{Condition, Op, Transition};
use crate::format::ReadError;
use crate::id::{EventId, SiteId, TermId, ThreadId, VariableId};
use crate::sexpr::{
    self, Comments, NodeId, Scope as TermScope, SyntaxError, TermReader, Tree, skip_blank,
};
use crate::term::{ArrayValue, Sort, Term, TermStore, Value};
use crate::trace::{Indexer, Scope, Site, Trace, Variable};
pub(super) use formulas::step_of_predicate;
use formulas::{Names, conjuncts, equation, undeclared};

/// The trace that a CTRC text describes.
pub fn read(text: &str) -> Result<Trace, ReadError> {
    Reader::new(text).read().map_err(|error| error.locate(text))
}

type Result1<T> = Result<T, SyntaxError>;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    trace: Trace,
    terms: TermReader,
    globals: HashMap<&'a str, VariableId>,
    thread_names: HashSet<&'a str>,
    indexer: Indexer,
    /// Events by full name (`w1[15]`) and by plain label (`w1`).
    full_names: HashMap<String, Named>,
    plain_names: HashMap<&'a str, Named>,
    sites: HashMap<u32, SiteId>,
}

#[derive(Clone, Copy)]
enum Named {
    One(EventId),
    Several,
}

/// A label: `w1` or `w1 [15]`.
struct Location<'a> {
    name: &'a str,
    bracket: Option<&'a str>,
    at: usize,
}

impl Location<'_> {
    fn full_name(&self) -> String {
        match self.bracket {
            Some(bracket) => format!("{}[{bracket}]", self.name),
            None => self.name.to_owned(),
        }
    }
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            trace: Trace::new(),
            terms: TermReader::default(),
            globals: HashMap::new(),
            thread_names: HashSet::new(),
            indexer: Indexer::default(),
            full_names: HashMap::new(),
            plain_names: HashMap::new(),
            sites: HashMap::new(),
        }
    }

    fn read(mut self) -> Result1<Trace> {
        self.trace.metadata.symbolic = true;
        if self.peek_name() != Some("global") {
            let help = "a CTRC file begins with `global: x y z`";
            return Err(self.error("expected `global`").help(help));
        }
        self.name()?;
        self.expect(':')?;
        self.globals = self.variables(Scope::Shared)?;
        if matches!(self.peek_name(), Some("pre" | "precondition")) {
            self.name()?;
            self.expect(':')?;
            self.precondition()?;
        }
        if self.peek_name() != Some("thread") {
            return Err(self.error("expected `thread`").help("a trace has at least one thread"));
        }
        while self.peek_name() == Some("thread") {
            self.name()?;
            self.thread()?;
        }
        loop {
            match self.peek_name() {
                Some("atomic") => self.atomic_sections()?,
                Some("order") => self.orders()?,
                None if self.at == self.text.len() => return Ok(self.trace),
                _ => return Err(self.error("expected `atomic`, `order` or the end of the file")),
            }
        }
    }

    fn error(&mut self, message: &str) -> SyntaxError {
        skip_blank(self.text, &mut self.at);
        SyntaxError::new(self.at, message)
    }

    fn peek(&mut self) -> Option<char> {
        skip_blank(self.text, &mut self.at);
        self.text[self.at..].chars().next()
    }

    fn take_if(&mut self, character: char) -> bool {
        let found = self.peek() == Some(character);
        if found {
            self.at += character.len_utf8();
        }
        found
    }

    fn expect(&mut self, character: char) -> Result1<()> {
        match self.take_if(character) {
            true => Ok(()),
            false => Err(self.error(&format!("expected `{character}` here"))),
        }
    }

    /// The name or keyword that stands next.
    fn peek_name(&mut self) -> Option<&'a str> {
        skip_blank(self.text, &mut self.at);
        let rest = &self.text[self.at..];
        let mut end = 0;
        loop {
            let tail = &rest[end..];
            match tail.chars().next() {
                Some(character) if is_name_character(character) => end += 1,
                Some(':') if end > 0 && tail.starts_with("::") => end += 2,
                _ => break,
            }
        }
        let name = rest[..end].trim_end_matches(':'); // `thread a::` ends in one colon too many
        name.starts_with(|first: char| first.is_ascii_alphanumeric()).then_some(name)
    }

    fn name(&mut self) -> Result1<&'a str> {
        let name = self.peek_name().ok_or_else(|| {
            self.error("expected a name here")
                .help("names are letters, digits, `_`, `'`, `.` and `::`, a letter or digit first")
        })?;
        self.at += name.len();
        Ok(name)
    }

    /// A name that is not a keyword.
    fn new_name(&mut self) -> Result1<&'a str> {
        let name = self.name()?;
        let at = self.at - name.len();
        if KEYWORDS.contains(&name) {
            return Err(SyntaxError::new(at, format!("`{name}` is a keyword, not a name")));
        }
        if name.ends_with('.') {
            return Err(SyntaxError::new(at, format!("the name `{name}` ends with a dot"))
                .help("`x.` is the value of `x` after an instruction"));
        }
        Ok(name)
    }

    /// Declarations up to something that is none.
    fn variables(&mut self, scope: Scope) -> Result1<HashMap<&'a str, VariableId>> {
        let mut names = HashMap::new();
        while let Some(word) = self.peek_name() {
            if scope == Scope::Shared && KEYWORDS.contains(&word) {
                break;
            }
            let name = self.new_name()?;
            let at = self.at - name.len();
            let mut sort = Sort::INT;
            if self.take_if(':') {
                skip_blank(self.text, &mut self.at);
                let start = self.at;
                sort = match self.peek_name() {
                    Some(_) => {
                        let word = self.name()?;
                        Tree::read(word, &mut 0, Comments::Anywhere)
                            .and_then(|tree| tree.sort(tree.roots()[0]))
                            .map_err(|error| SyntaxError { at: start + error.at, ..error })?
                    }
                    None => {
                        let tree = self.formula()?;
                        tree.sort(tree.roots()[0])?
                    }
                };
            }
            let id = self.trace.add_variable(Variable {
                name: name.into(),
                sort,
                scope,
                memory: None,
                initial: None,
            });
            if names.insert(name, id).is_some() {
                return Err(SyntaxError::new(at, format!("`{name}` is declared twice")));
            }
        }
        Ok(names)
    }

    /// One parenthesised formula, not yet understood.
    fn formula(&mut self) -> Result1<Tree<'a>> {
        if self.peek() != Some('(') {
            return Err(self.error("expected a formula in parentheses here"));
        }
        Tree::read(self.text, &mut self.at, Comments::Anywhere)
    }

    fn precondition(&mut self) -> Result1<()> {
        let tree = self.formula()?;
        let mut scope = Names::new(&self.globals, None, &self.trace.variables);
        scope.no_dots = Some("a precondition speaks of initial values: write the name without dot");
        let (terms, root) = (&mut self.trace.terms, tree.roots()[0]);
        let precondition = self.terms.term_of_sort(terms, &mut scope, &tree, root, Sort::BOOL)?;
        self.trace.precondition = Some(precondition);
        let mut initial: HashMap<VariableId, Option<Value>> = HashMap::new();
        for conjunct in conjuncts(&self.trace.terms, precondition) {
            let equation = equation(&mut self.trace.terms, conjunct, |term| match term {
                Term::Variable(variable) => Some(*variable),
                _ => None,
            });
            let Some((variable, value)) = equation else { continue };
            let Some(value) = self.trace.terms.constant_value(value).cloned() else { continue };
            initial
                .entry(variable)
                // Two different values: nothing satisfies the precondition.
                .and_modify(|known| *known = known.take().filter(|known| *known == value))
                .or_insert(Some(value.clone()));
        }
        for (variable, value) in initial {
            self.trace.variables[variable.index()].initial = value;
        }
        Ok(())
    }

    fn thread(&mut self) -> Result1<()> {
        let name = self.new_name()?;
        let at = self.at - name.len();
        if !self.thread_names.insert(name) {
            return Err(SyntaxError::new(at, format!("thread `{name}` is given twice")));
        }
        let number = self.trace.threads.len();
        let thread = self.trace.add_thread(name, vec![number as u32]);
        let mut locals = HashMap::new();
        if self.take_if('{') {
            locals = self.variables(Scope::Local(thread))?;
            self.expect('}')?;
        }
        self.expect(':')?;
        loop {
            match self.peek_name() {
                Some("thread" | "atomic" | "order") => return Ok(()),
                None if self.peek() != Some('(') => return Ok(()),
                _ => self.instruction(thread, &locals)?,
            }
        }
    }

    fn location(&mut self) -> Result1<Location<'a>> {
        let name = self.new_name()?;
        let at = self.at - name.len();
        let mut bracket = None;
        if self.take_if('[') {
            bracket = Some(self.name()?);
            self.expect(']')?;
        }
        Ok(Location { name, bracket, at })
    }

    fn instruction(
        &mut self,
        thread: ThreadId,
        locals: &HashMap<&'a str, VariableId>,
    ) -> Result1<()> {
        let mut label = None;
        if self.peek_name().is_some_and(|word| !KEYWORDS.contains(&word)) {
            label = Some(self.location()?);
            self.expect(':')?;
        }
        let op = self.step(locals)?;
        let site = label.as_ref().and_then(|label| label.bracket?.parse().ok());
        let site = site.map(|line: u32| {
            *self.sites.entry(line).or_insert_with(|| {
                let nameless = Site { file: "".into(), line, column: 0, function: "".into() };
                self.trace.add_site(nameless)
            })
        });
        let event = self.indexer.event(thread, site, op);
        let index = event.index;
        let id = self.trace.push(event);
        let name = match &label {
            Some(label) => label.full_name(),
            None => format!("{}{}", self.trace.threads[thread.index()].name, index + 1),
        };
        if let Some(label) = &label {
            self.plain_names
                .entry(label.name)
                .and_modify(|named| *named = Named::Several)
                .or_insert(Named::One(id));
        }
        let repeated = self.full_names.contains_key(&name);
        match label {
            Some(label) if repeated => {
                return Err(SyntaxError::new(
                    label.at,
                    format!("the label `{name}` is given twice"),
                )
                .help("an instruction without a label is called by thread and number"));
            }
            _ if repeated => self.full_names.insert(name.clone(), Named::Several),
            _ => self.full_names.insert(name.clone(), Named::One(id)),
        };
        self.trace.labels.insert(id, name.into());
        Ok(())
    }

    fn step(&mut self, locals: &HashMap<&'a str, VariableId>) -> Result1<Op> {
        let mut havocked = BTreeSet::new();
        let mut has_havoc = false;
        let start = self.at;
        if self.peek_name() == Some("havok") {
            has_havoc = true;
            self.name()?;
            self.expect('(')?;
            while !self.take_if(')') {
                let name = self.name()?;
                let variable = locals.get(name).or_else(|| self.globals.get(name));
                havocked.insert(*variable.ok_or_else(|| {
                    SyntaxError::new(self.at - name.len(), undeclared(name).message)
                        .help(undeclared(name).help)
                })?);
                let _ = self.take_if(',');
            }
        }
        let kind = match self.peek_name() {
            Some(word @ ("assert" | "assume")) => {
                self.name()?;
                Some(word)
            }
            _ => None,
        };
        if kind == Some("assert") && has_havoc {
            return Err(SyntaxError::new(start, "`havok` and `assert` in one instruction")
                .help("make them two instructions"));
        }
        let tree = self.formula()?;
        let mut scope = Names::new(&self.globals, Some(locals), &self.trace.variables);
        if kind.is_some() && !has_havoc {
            scope.no_dots = Some("assume and assert speak of the values before the instruction");
        }
        let (terms, root) = (&mut self.trace.terms, tree.roots()[0]);
        let predicate = self.terms.term_of_sort(terms, &mut scope, &tree, root, Sort::BOOL)?;
        let primed = scope.primed;
        Ok(match kind {
            Some("assert") => Op::Assert(Condition { term: Some(predicate), outcome: true }),
            _ if has_havoc => {
                havocked.extend(primed);
                let changed = havocked.into_iter().collect();
                Op::Transition(Box::new(Transition { predicate, changed }))
            }
            _ => step_of_predicate(terms, predicate, &primed),
        })
    }

    fn resolve(&self, location: &Location<'a>) -> Result1<EventId> {
        let name = location.full_name();
        let plain = location.bracket.is_none().then(|| self.plain_names.get(location.name));
        match self.full_names.get(&name).or(plain.flatten()) {
            Some(Named::One(event)) => Ok(*event),
            Some(Named::Several) => Err(SyntaxError::new(
                location.at,
                format!("several instructions are called `{name}`"),
            )
            .help("give each its own label")),
            None => {
                Err(SyntaxError::new(location.at, format!("no instruction is called `{name}`"))
                    .help("name the label, with the line in brackets: `w1[15]`"))
            }
        }
    }

    fn atomic_sections(&mut self) -> Result1<()> {
        self.name()?;
        self.expect(':')?;
        while self.take_if('[') {
            let (first_name, last_name) = (self.location()?, self.location()?);
            self.expect(']')?;
            let (first, last) = (self.resolve(&first_name)?, self.resolve(&last_name)?);
            let thread = |event: EventId| self.trace.event(event).thread;
            if thread(first) != thread(last) {
                return Err(SyntaxError::new(
                    last_name.at,
                    format!(
                        "an atomic section from `{}` to `{}`, which is in another thread",
                        first_name.full_name(),
                        last_name.full_name()
                    ),
                )
                .help("both ends of a section lie in one thread"));
            }
            if first > last {
                return Err(SyntaxError::new(first_name.at, "the section ends before it begins")
                    .help("name the earlier instruction first"));
            }
            self.trace.atomic_sections.push((first, last));
        }
        Ok(())
    }

    fn orders(&mut self) -> Result1<()> {
        self.name()?;
        self.expect(':')?;
        while self.peek_name().is_some_and(|word| !KEYWORDS.contains(&word)) {
            let first = self.location()?;
            self.expect('<')?;
            let second = self.location()?;
            self.trace.orders.push((self.resolve(&first)?, self.resolve(&second)?));
        }
        Ok(())
    }
}

impl<'n, 'a> Names<'n, 'a> {
    fn new(
        globals: &'n HashMap<&'a str, VariableId>,
        locals: Option<&'n HashMap<&'a str, VariableId>>,
        variables: &'n [Variable],
    ) -> Self {
        Self { globals, locals, variables, no_dots: None, primed: BTreeSet::new() }
    }

    fn variable(&self, name: &str) -> Option<VariableId> {
        let local = self.locals.and_then(|locals| locals.get(name));
        local.or_else(|| self.globals.get(name)).copied()
    }

    /// `(forall ((i Int)) (= (select a i) 0))` says that the array is constant, which is an
    /// equation between arrays.
    fn constant_array(
        &mut self,
        terms: &mut TermStore,
        tree: &Tree<'_>,
        list: NodeId,
    ) -> Result1<Option<TermId>> {
        let parts = |node: NodeId| tree.children(node).collect::<Vec<_>>();
        let &[_, bindings, body] = parts(list).as_slice() else { return Ok(None) };
        let &[binding] = parts(bindings).as_slice() else { return Ok(None) };
        let &[bound, bound_sort] = parts(binding).as_slice() else { return Ok(None) };
        let &[equals, left, right] = parts(body).as_slice() else { return Ok(None) };
        if tree.source(equals) != "=" {
            return Ok(None);
        }
        for (selection, constant) in [(left, right), (right, left)] {
            let &[select, array, index] = parts(selection).as_slice() else { continue };
            if tree.source(select) != "select" || tree.source(index) != tree.source(bound) {
                continue;
            }
            let Some(atom) = tree.atom(array) else { continue };
            let Some(value) = sexpr::literal(tree, constant)? else { continue };
            let array = self
                .name(terms, &atom)
                .map_err(|refusal| tree.error(array, refusal.message).help(refusal.help))?;
            let Sort::Array { index, element } = terms.sort(array) else { continue };
            let value = sexpr::coerce_value(value, element.into());
            if tree.sort(bound_sort)? != index.into() || value.sort() != element.into() {
                continue;
            }
            let value = Value::Array(Box::new(ArrayValue::constant(index, value)));
            let constant = terms.constant(value);
            return Ok(Some(terms.eq(array, constant)));
        }
        Ok(None)
    }
}
