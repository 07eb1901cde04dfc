//! Lines of events.

use super::line::Line;
use super::names::add_name;
use super::{Reader, Result1};
use crate::event::{
    Access, AwaitMark, Condition, Event, Guarded, MemoryOrder, Op, ReadModifyWrite, Transition,
};
use crate::format::text::MEMORY_ORDERS;
use crate::id::{SiteId, TermId, ThreadId, VariableId};
use crate::sexpr::{self, Atom, NodeId, Quote, SyntaxError};
use crate::sync::{Number, Parts, SyncKind, SyncOp, Written};
use crate::term::Value;

impl Reader {
    pub(super) fn event(&mut self, line: &mut Line<'_, '_>) -> Result1<()> {
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

fn memory_order(name: &str) -> Option<MemoryOrder> {
    MEMORY_ORDERS.iter().find(|(word, _)| *word == name).map(|(_, order)| *order)
}
