//! Trace to text.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{MEMORY_ORDERS, word};
use crate::event::{Access, Condition, MemoryOrder, Op};
use crate::id::{EventId, ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::schedule::CreationPath;
use crate::sexpr::{print_sort, print_term, print_value, quoted};
use crate::term::{ScalarSort, Sort, Term, Value};
use crate::trace::{ChannelKind, ObjectKind, Scope, Site, Trace, Unseen};

/// Terms of more nodes get a name when they are used more than once, so that the text does not
/// grow beyond the trace.
const LARGE: u64 = 40;

/// Writes the trace as text. Everything is carried: what [`super::read`] gives back differs at most
/// in the numbers of terms and in terms that nothing refers to.
pub fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = Writer::new(trace);
    writer.declarations(out)?;
    for (position, event) in trace.events.iter().enumerate() {
        writer.event(out, EventId::from(position), event.thread)?;
    }
    writer.constraints(out)
}

struct Writer<'t> {
    trace: &'t Trace,
    /// Which names more than one thread, variable or object has.
    thread_names: HashMap<&'t str, u32>,
    variable_names: HashMap<(&'t str, Option<ThreadId>), u32>,
    object_names: HashMap<&'t str, u32>,
    label_names: HashMap<&'t str, u32>,
    /// Sites are not in the order of their first use and are therefore declared.
    declared_sites: bool,
    /// Which terms get a name.
    named: Vec<bool>,
    definitions: HashMap<TermId, usize>,
    /// What each event so far returns, as the reader sees it.
    reads: Vec<Vec<Option<Sort>>>,
}

fn count<K: std::hash::Hash + Eq>(names: impl Iterator<Item = K>) -> HashMap<K, u32> {
    let mut counts = HashMap::new();
    for name in names {
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

impl<'t> Writer<'t> {
    fn new(trace: &'t Trace) -> Self {
        Self {
            trace,
            thread_names: count(trace.threads.iter().map(|thread| &*thread.name)),
            variable_names: count(
                trace.variables.iter().map(|variable| (&*variable.name, owner(variable.scope))),
            ),
            object_names: count(trace.objects.iter().map(|object| &*object.name)),
            label_names: count(trace.labels.values().map(|label| &**label)),
            declared_sites: !sites_in_order_of_use(trace),
            named: large_shared_terms(trace),
            definitions: HashMap::new(),
            reads: vec![Vec::new(); trace.threads.len()],
        }
    }

    fn declarations(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let trace = self.trace;
        writeln!(out, "foretell-trace 1")?;
        let metadata = &trace.metadata;
        if !metadata.command.is_empty() {
            write!(out, "command")?;
            for word in &metadata.command {
                write!(out, " {}", quoted(word, '"'))?;
            }
            writeln!(out)?;
        }
        if let Some(build_id) = &metadata.build_id {
            writeln!(out, "build-id {}", quoted(build_id, '"'))?;
        }
        if metadata.symbolic {
            writeln!(out, "symbolic")?;
        }
        if metadata.observed_order {
            writeln!(out, "observed")?;
        }
        if metadata.machine_code {
            writeln!(out, "machine-code")?;
        }
        for (word, is) in Unseen::WORDS.into_iter().zip(metadata.unseen.flags()) {
            if is {
                writeln!(out, "{word}")?;
            }
        }
        for gap in &metadata.gaps {
            writeln!(out, "gap {}", quoted(gap, '"'))?;
        }
        for restriction in &metadata.restrictions {
            writeln!(out, "restriction {}", quoted(restriction, '"'))?;
        }
        for thread in &trace.threads {
            writeln!(
                out,
                "thread {} path {}",
                word(&thread.name),
                CreationPath(thread.path.clone())
            )?;
        }
        for variable in &trace.variables {
            match variable.scope {
                Scope::Shared => write!(out, "var {}", word(&variable.name))?,
                Scope::Local(thread) => {
                    write!(out, "local {} of {}", word(&variable.name), self.thread(thread))?;
                }
            }
            if variable.sort != Sort::INT {
                write!(out, " : {}", print_sort(variable.sort))?;
            }
            if let Some(initial) = &variable.initial {
                write!(out, " = {}", self.value(initial))?;
            }
            if let Some(memory) = variable.memory {
                write!(out, " at {:#x} size {}", memory.address, memory.size)?;
                if memory.generation != 0 {
                    write!(out, " generation {}", memory.generation)?;
                }
            }
            writeln!(out)?;
        }
        for object in &trace.objects {
            let name = word(&object.name);
            match object.kind {
                ObjectKind::Mutex => write!(out, "mutex {name}")?,
                ObjectKind::RecursiveMutex => write!(out, "recursive {name}")?,
                ObjectKind::ErrorCheckingMutex => write!(out, "errorcheck {name}")?,
                ObjectKind::ReaderWriterLock => write!(out, "rwlock {name}")?,
                ObjectKind::Condition => write!(out, "cond {name}")?,
                ObjectKind::Semaphore { initial } => write!(out, "sem {name} = {initial}")?,
                ObjectKind::Barrier { parties } => write!(out, "barrier {name} {parties}")?,
                ObjectKind::Channel(kind) => {
                    let kind = match kind {
                        ChannelKind::Queue => "queue",
                        ChannelKind::State => "state",
                        ChannelKind::Interrupt => "interrupt",
                    };
                    write!(out, "channel {name} {kind}")?;
                }
            }
            if let Some(address) = object.address {
                write!(out, " at {address:#x}")?;
            }
            writeln!(out)?;
        }
        for symbol in trace.terms.symbols() {
            writeln!(out, "symbol {} : {}", word(&symbol.name), print_sort(symbol.sort))?;
        }
        if self.declared_sites {
            for site in &trace.sites {
                writeln!(out, "site {}", print_site(site))?;
            }
        }
        if let Some(precondition) = trace.precondition {
            self.define(out, precondition)?;
            writeln!(out, "pre {}", self.term(precondition, None))?;
        }
        writeln!(out)
    }

    fn constraints(&self, out: &mut dyn Write) -> io::Result<()> {
        for &(first, second) in &self.trace.orders {
            writeln!(out, "order {} < {}", self.event_name(first), self.event_name(second))?;
        }
        for &(first, last) in &self.trace.atomic_sections {
            writeln!(out, "atomic {} {}", self.event_name(first), self.event_name(last))?;
        }
        Ok(())
    }

    fn event_name(&self, id: EventId) -> String {
        match self.trace.labels.get(&id) {
            Some(label) if self.label_names[&**label] == 1 => word(label),
            _ => format!("e{}", id.0),
        }
    }

    fn numbered(&self, name: &str, uses: u32, number: u32) -> String {
        match uses {
            1 => word(name),
            _ => format!("{}${number}", word(name)),
        }
    }

    fn thread(&self, id: ThreadId) -> String {
        let name = &*self.trace.threads[id.index()].name;
        self.numbered(name, self.thread_names[name], id.0)
    }

    fn object(&self, id: ObjectId) -> String {
        let name = &*self.trace.objects[id.index()].name;
        self.numbered(name, self.object_names[name], id.0)
    }

    /// The variable as `thread` names it.
    fn variable(&self, id: VariableId, thread: Option<ThreadId>) -> String {
        let variable = &self.trace.variables[id.index()];
        let owner = owner(variable.scope);
        let name = &*variable.name;
        let hidden = match owner {
            Some(_) => owner != thread,
            None => thread.is_some() && self.variable_names.contains_key(&(name, thread)),
        };
        let uses = if hidden { 2 } else { self.variable_names[&(name, owner)] };
        self.numbered(name, uses, id.0)
    }

    /// Writes the definitions that `root` needs and that do not stand above.
    fn define(&mut self, out: &mut dyn Write, root: TermId) -> io::Result<()> {
        enum Work {
            Enter(TermId),
            Write(TermId),
        }
        let mut seen = std::collections::HashSet::new();
        let mut work = vec![Work::Enter(root)];
        while let Some(next) = work.pop() {
            match next {
                Work::Enter(term) => {
                    if self.definitions.contains_key(&term) || !seen.insert(term) {
                        continue;
                    }
                    if self.named[term.index()] {
                        work.push(Work::Write(term));
                    }
                    if let Term::Apply(_, arguments) = self.trace.terms.term(term) {
                        work.extend(arguments.iter().map(|&argument| Work::Enter(argument)));
                    }
                }
                Work::Write(term) => {
                    let body = self.term(term, None);
                    let number = self.definitions.len();
                    self.definitions.insert(term, number);
                    writeln!(out, "define %{number} := {body}")?;
                }
            }
        }
        Ok(())
    }

    fn value(&self, value: &Value) -> String {
        match value {
            Value::BitVec { bits, .. } => bits.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Array(array) => {
                let scalar = |value: &Value| match value {
                    Value::BitVec { bits, .. } => bits.to_string(),
                    other => print_value(other),
                };
                let mut text = format!(
                    "(array {} {}",
                    print_sort(value.sort()),
                    scalar(array.default_element())
                );
                for (index, element) in array.entries() {
                    text.push_str(&format!(" ({} {})", scalar(index), scalar(element)));
                }
                text.push(')');
                text
            }
            other => print_value(other),
        }
    }

    /// The term as an event of `thread` writes it.
    fn term(&self, root: TermId, thread: Option<ThreadId>) -> String {
        print_term(&self.trace.terms, root, &mut |term| {
            if let Some(number) = self.definitions.get(&term) {
                return Some(format!("%{number}"));
            }
            let sort = self.trace.terms.sort(term);
            let (name, known) = match self.trace.terms.term(term) {
                Term::Apply(..) => return None,
                Term::Constant(value @ Value::Array(_)) => return Some(self.value(value)),
                Term::Constant(_) => return None,
                Term::Variable(variable) => {
                    let sort = self.trace.variables[variable.index()].sort;
                    (self.variable(*variable, thread), Some(sort))
                }
                Term::Primed(variable) => {
                    let sort = self.trace.variables[variable.index()].sort;
                    (format!("{}'", self.variable(*variable, thread)), Some(sort))
                }
                Term::ReadValue(reader, index) => {
                    let reads = &self.reads[reader.index()];
                    (
                        self.read(*reader, *index, thread),
                        reads.get(*index as usize).copied().flatten(),
                    )
                }
                Term::Before(first, second) => {
                    return Some(format!("(before e{} e{})", first.0, second.0));
                }
                Term::Symbol(symbol) => return Some(format!("(symbol {})", symbol.0)),
            };
            Some(if known == Some(sort) {
                name
            } else {
                format!("(as {name} {})", print_sort(sort))
            })
        })
    }

    fn read(&self, reader: ThreadId, index: u32, thread: Option<ThreadId>) -> String {
        if thread != Some(reader) {
            return format!("(read {} {index})", self.thread(reader));
        }
        let short = format!("r{index}");
        let hidden = |owner| self.variable_names.contains_key(&(short.as_str(), owner));
        if hidden(None) || hidden(thread) { format!("(read {index})") } else { short }
    }

    fn event(&mut self, out: &mut dyn Write, id: EventId, thread: ThreadId) -> io::Result<()> {
        let event = self.trace.event(id);
        for term in event.op.terms() {
            self.define(out, term)?;
        }
        let returned = match &event.op {
            Op::Read(access) => Some(access.variable),
            Op::ReadModifyWrite(step) => Some(step.variable),
            _ => None,
        };
        let sort = returned.map(|variable| self.trace.variables[variable.index()].sort);
        if matches!(event.op, Op::ReadModifyWrite(_)) {
            self.reads[thread.index()].push(sort);
        }
        if let Some(label) = self.trace.labels.get(&id) {
            write!(out, "{}: ", word(label))?;
        }
        write!(out, "{} {}", self.thread(thread), self.op(&event.op, thread))?;
        if !matches!(event.op, Op::ReadModifyWrite(_)) {
            self.reads[thread.index()].push(sort);
        }
        match event.site {
            Some(site) if self.declared_sites => writeln!(out, " @ ${}", site.0),
            Some(SiteId(site)) => {
                writeln!(out, " @ {}", print_site(&self.trace.sites[site as usize]))
            }
            None => writeln!(out),
        }
    }

    fn op(&self, op: &Op, thread: ThreadId) -> String {
        match op {
            Op::ThreadBegin => "begin".into(),
            Op::ThreadEnd => "end".into(),
            Op::Fork(other) => format!("fork {}", self.thread(*other)),
            Op::Join(other) => format!("join {}", self.thread(*other)),
            Op::Read(access) => self.access("read", access, thread),
            Op::Write(access) => self.access("write", access, thread),
            Op::ReadModifyWrite(step) => {
                let mut text = format!("rmw{}", order_suffix(Some(step.order)));
                text.push_str(&format!(" {}", self.variable(step.variable, Some(thread))));
                let sort = self.trace.variables[step.variable.index()].sort;
                if let Some(old) = step.old {
                    text.push_str(&format!(" = {}", print_bits(sort, old)));
                }
                if let Some(new) = step.new {
                    text.push_str(&format!(" -> {}", print_bits(sort, new)));
                }
                text + &self.access_terms(step.term, step.address, thread)
            }
            Op::Sync(id, step) => {
                let (mut text, after) = step.text();
                for id in [Some(*id), step.mutex()].into_iter().flatten() {
                    text.push_str(&format!(" {}", self.object(id)));
                }
                text + &after
            }
            Op::Fence(order) => format!("fence {}", order_name(*order)),
            Op::Branch(condition) => self.condition("branch", condition, thread),
            Op::Assert(condition) => self.condition("assert", condition, thread),
            Op::RegionBegin(name) => format!("region {}", word(name)),
            Op::RegionEnd => "region-end".into(),
            Op::Call(function) => format!("call {}", word(function)),
            Op::Return => "return".into(),
            Op::Await(mark) => mark.keyword().into(),
            Op::Alloc { address, size } => format!("alloc {address:#x} {size}"),
            Op::Free { address } => format!("free {address:#x}"),
            Op::Input { source, value } => format!("input {} = {value}", word(source)),
            Op::Guarded(guarded) => {
                let assignments: Vec<String> = guarded
                    .assignments
                    .iter()
                    .map(|&(variable, term)| {
                        let name = self.variable(variable, Some(thread));
                        format!("{name} := {}", self.term(term, Some(thread)))
                    })
                    .collect();
                let assign = match assignments.as_slice() {
                    [] => String::new(),
                    _ => format!("assign {}", assignments.join(", ")),
                };
                if self.trace.terms.is_true(guarded.guard) && !assign.is_empty() {
                    return assign;
                }
                let guard = self.term(guarded.guard, Some(thread));
                format!("assume {guard} {assign}").trim_end().into()
            }
            Op::Transition(transition) => {
                let predicate = transition.predicate;
                let mut text = format!("transition {}", self.term(predicate, Some(thread)));
                if transition.changed != self.trace.terms.primed_variables(predicate) {
                    text.push_str(" changes");
                    for &variable in &transition.changed {
                        text.push_str(&format!(" {}", self.variable(variable, Some(thread))));
                    }
                }
                text
            }
        }
    }

    fn access(&self, operation: &str, access: &Access, thread: ThreadId) -> String {
        let mut text = format!(
            "{operation}{} {}",
            order_suffix(access.order),
            self.variable(access.variable, Some(thread))
        );
        if let Some(value) = access.value {
            let sort = self.trace.variables[access.variable.index()].sort;
            text.push_str(&format!(" = {}", print_bits(sort, value)));
        }
        text + &self.access_terms(access.term, access.address, thread)
    }

    fn access_terms(
        &self,
        term: Option<TermId>,
        address: Option<TermId>,
        thread: ThreadId,
    ) -> String {
        let mut text = String::new();
        if let Some(term) = term {
            text.push_str(&format!(" := {}", self.term(term, Some(thread))));
        }
        if let Some(address) = address {
            text.push_str(&format!(" at {}", self.term(address, Some(thread))));
        }
        text
    }

    fn condition(&self, operation: &str, condition: &Condition, thread: ThreadId) -> String {
        match condition.term {
            None => format!("{operation} {}", condition.outcome),
            Some(term) => {
                format!("{operation} {} {}", self.term(term, Some(thread)), condition.outcome)
            }
        }
    }
}

fn owner(scope: Scope) -> Option<ThreadId> {
    match scope {
        Scope::Shared => None,
        Scope::Local(thread) => Some(thread),
    }
}

fn print_bits(sort: Sort, bits: u64) -> String {
    match (sort, bits) {
        (Sort::BOOL, 0) => "false".into(),
        (Sort::BOOL, 1) => "true".into(),
        (Sort::Scalar(ScalarSort::Int), bits) => (bits as i64).to_string(),
        (_, bits) => bits.to_string(),
    }
}

/// `FILE:LINE[:COLUMN] [FUNCTION]`
pub(crate) fn print_site(site: &Site) -> String {
    let file = match site.file.contains(':') {
        true => quoted(&site.file, '|'),
        false => word(&site.file),
    };
    let place = match site.column {
        0 => site.line.to_string(),
        column => format!("{}:{column}", site.line),
    };
    match &*site.function {
        "" => format!("{file}:{place}"),
        function => format!("{file}:{place} {}", word(function)),
    }
}

fn order_name(order: MemoryOrder) -> &'static str {
    let found = MEMORY_ORDERS.iter().find(|(_, known)| *known == order);
    found.expect("every order has a name").0
}

fn order_suffix(order: Option<MemoryOrder>) -> String {
    order.map_or_else(String::new, |order| format!(".{}", order_name(order)))
}

/// Would a reader that numbers sites as it meets them give each its number?
fn sites_in_order_of_use(trace: &Trace) -> bool {
    let mut numbers: HashMap<&Site, SiteId> = HashMap::new();
    for event in &trace.events {
        if let Some(id) = event.site {
            let next = SiteId::from(numbers.len());
            if *numbers.entry(&trace.sites[id.index()]).or_insert(next) != id {
                return false;
            }
        }
    }
    numbers.len() == trace.sites.len()
}

/// Which terms are large and used more than once.
fn large_shared_terms(trace: &Trace) -> Vec<bool> {
    let terms = &trace.terms;
    let mut uses = vec![0_u32; terms.len()];
    let mut sizes = vec![1_u64; terms.len()];
    for event in &trace.events {
        for term in event.op.terms() {
            uses[term.index()] += 1;
        }
    }
    if let Some(precondition) = trace.precondition {
        uses[precondition.index()] += 1;
    }
    // Arguments are older than the terms that use them.
    for id in (0..terms.len()).rev() {
        if uses[id] > 0
            && let Term::Apply(_, arguments) = terms.term(TermId::from(id))
        {
            arguments.iter().for_each(|argument| uses[argument.index()] += 1);
        }
    }
    for id in 0..terms.len() {
        if let Term::Apply(_, arguments) = terms.term(TermId::from(id)) {
            let below = arguments.iter().map(|argument| sizes[argument.index()]);
            sizes[id] = below.fold(1, u64::saturating_add);
        }
    }
    uses.iter().zip(&sizes).map(|(&uses, &size)| uses > 1 && size > LARGE).collect()
}
