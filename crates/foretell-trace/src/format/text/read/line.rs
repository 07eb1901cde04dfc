//! One line of the text, read part by part.

use super::Result1;
use crate::sexpr::{Atom, NodeId, Quote, Refusal, SyntaxError, Tree};

/// The statement on one line.
pub(super) struct Line<'t, 'a> {
    pub(super) tree: &'t Tree<'a>,
    pub(super) nodes: Vec<NodeId>,
    pub(super) next: usize,
    /// Behind the last word.
    pub(super) end: usize,
}

impl<'a> Line<'_, 'a> {
    pub(super) fn peek(&self) -> Option<NodeId> {
        self.nodes.get(self.next).copied()
    }

    pub(super) fn take(&mut self, what: &str) -> Result1<NodeId> {
        let node = self.peek().ok_or_else(|| self.missing(what))?;
        self.next += 1;
        Ok(node)
    }

    pub(super) fn missing(&self, what: &str) -> SyntaxError {
        SyntaxError::new(self.end, format!("expected {what} here"))
    }

    fn next_is(&self, word: &str) -> bool {
        self.peek().is_some_and(|node| self.tree.source(node) == word)
    }

    pub(super) fn take_if(&mut self, word: &str) -> bool {
        let found = self.next_is(word);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Result1<()> {
        if self.take_if(word) {
            return Ok(());
        }
        let at = self.peek().map_or(self.end, |node| self.tree.start(node));
        Err(SyntaxError::new(at, format!("expected `{word}` here")))
    }

    pub(super) fn atom(&mut self, what: &str) -> Result1<(Atom<'a>, NodeId)> {
        let node = self.take(what)?;
        match self.tree.atom(node) {
            Some(atom) => Ok((atom, node)),
            None => Err(self.tree.error(node, format!("expected {what}, not a list"))),
        }
    }

    /// A name that is being given.
    pub(super) fn new_name(&mut self, what: &str) -> Result1<Box<str>> {
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

    pub(super) fn string(&mut self, what: &str) -> Result1<Box<str>> {
        Ok(self.atom(what)?.0.name.into())
    }

    pub(super) fn number(&mut self, what: &str) -> Result1<u64> {
        let node = self.take(what)?;
        let source = self.tree.source(node);
        let number = match source.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => source.parse(),
        };
        number.map_err(|_| self.tree.error(node, format!("expected {what}, a number of 64 bits")))
    }

    pub(super) fn number_32(&mut self, what: &str) -> Result1<u32> {
        let at = self.peek();
        let number = self.number(what)?;
        u32::try_from(number).map_err(|_| {
            let at = at.map_or(self.end, |node| self.tree.start(node));
            SyntaxError::new(at, format!("{what} is larger than 32 bits"))
        })
    }

    pub(super) fn finish(&self) -> Result1<()> {
        match self.peek() {
            None => Ok(()),
            Some(node) => Err(self
                .tree
                .error(node, format!("`{}` is unexpected here", self.tree.source(node)))),
        }
    }
}

pub(super) fn refuse(tree: &Tree<'_>, node: NodeId, refusal: Refusal) -> SyntaxError {
    tree.error(node, refusal.message).help(refusal.help)
}
