//! Lines that say something about the whole trace: threads, variables, objects, definitions of terms.

use super::line::{Line, refuse};
use super::names::{Named, add_name};
use super::{Reader, Result1};
use crate::format::text::numbered;
use crate::id::EventId;
use crate::schedule::CreationPath;
use crate::sexpr::{Atom, Quote, SyntaxError};
use crate::term::Sort;
use crate::trace::{ChannelKind, MemoryRange, ObjectKind, Scope, Variable};

impl Reader {
    pub(super) fn declaration(&mut self, keyword: &str, line: &mut Line<'_, '_>) -> Result1<()> {
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
}
