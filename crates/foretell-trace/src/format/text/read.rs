//! Text to trace.

mod declarations;
mod events;
mod line;
mod names;
mod terms;

use std::collections::HashMap;

use super::DECLARATIONS;
use crate::format::ReadError;
use crate::id::{ObjectId, SiteId, TermId, ThreadId, VariableId};
use crate::sexpr::{Comments, NodeId, Quote, SyntaxError, TermReader, Tree};
use crate::term::Sort;
use crate::trace::{Site, Trace};
use line::{Line, refuse};
use names::Names;
use terms::EventScope;

/// The trace that a text describes.
pub fn read(text: &str) -> Result<Trace, ReadError> {
    Reader::new().read(text).map_err(|error| error.locate(text))
}

struct Reader {
    trace: Trace,
    names: Names,
    terms: TermReader,
    sites: HashMap<Site, SiteId>,
    declared_sites: bool,
}

type Result1<T> = Result<T, SyntaxError>;

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

    /// `FILE:LINE:COLUMN [FUNCTION]`, which ends the line.
    fn site(&self, line: &mut Line<'_, '_>) -> Result1<Site> {
        let _ = line.peek().ok_or_else(|| line.missing("a source position"))?;
        let site = parse_site(line.tree, &line.nodes[line.next..])?;
        line.next = line.nodes.len();
        Ok(site)
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
