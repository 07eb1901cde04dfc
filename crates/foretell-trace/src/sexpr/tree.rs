//! Text as a tree of words and lists, each with its place.

use std::borrow::Cow;

use super::SyntaxError;

/// Where a `#` starts a comment. `#x1f` and `#b01` are literals in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comments {
    /// Anywhere, also within a word (CTRC).
    Anywhere,
    /// Only where a word could begin, so that `T1#3` is one word (our text format).
    BetweenWords,
}

/// A node of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(usize);

#[derive(Clone, Copy, Debug)]
struct Node {
    start: usize,
    end: usize,
    list: bool,
    /// The first node that is not below this one; nodes are kept in pre-order.
    after: usize,
}

/// S-expressions with their places in the text.
#[derive(Clone, Debug)]
pub struct Tree<'a> {
    text: &'a str,
    nodes: Vec<Node>,
}

/// How a word was quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quote {
    /// Not at all.
    Bare,
    /// `|like this|`
    Bars,
    /// `"like this"`
    Double,
}

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom<'a> {
    /// Without quotes and escapes.
    pub name: Cow<'a, str>,
    /// How it was quoted.
    pub quote: Quote,
    /// What follows a closing quote without a space, e.g. the `'` of `|a b|'`.
    pub suffix: &'a str,
}

impl Atom<'_> {
    /// Is it this word, without quotes?
    pub fn is(&self, word: &str) -> bool {
        self.quote == Quote::Bare && self.name == word
    }
}

impl<'a> Tree<'a> {
    /// Reads one word or list from `at`, which then stands behind it.
    pub fn read(text: &'a str, at: &mut usize, comments: Comments) -> Result<Self, SyntaxError> {
        let mut tree = Self { text, nodes: Vec::new() };
        tree.fill(at, comments, false)?;
        Ok(tree)
    }

    /// Reads the words and lists up to the end of the line at `at`, which then stands behind it. A
    /// line goes on while a parenthesis is open; a comma is a word of its own.
    pub fn read_line(
        text: &'a str,
        at: &mut usize,
        comments: Comments,
    ) -> Result<Self, SyntaxError> {
        let mut tree = Self { text, nodes: Vec::new() };
        tree.fill(at, comments, true)?;
        Ok(tree)
    }

    fn fill(
        &mut self,
        at: &mut usize,
        comments: Comments,
        whole_line: bool,
    ) -> Result<(), SyntaxError> {
        let bytes = self.text.as_bytes();
        let mut open: Vec<usize> = Vec::new();
        loop {
            let Some(&byte) = bytes.get(*at) else {
                return match open.last() {
                    Some(&list) => Err(SyntaxError::new(
                        self.nodes[list].start,
                        "this parenthesis is never closed",
                    )),
                    None if whole_line => Ok(()),
                    None => Err(SyntaxError::new(*at, "the file ends where a formula should be")),
                };
            };
            match byte {
                b'\n' if whole_line && open.is_empty() => {
                    *at += 1;
                    return Ok(());
                }
                b' ' | b'\t' | b'\r' | b'\n' => *at += 1,
                b'#' if self.nodes.is_empty() && whole_line => skip_line(bytes, at),
                b'#' if !is_bit_literal(bytes, *at) => skip_line(bytes, at),
                b'(' => {
                    open.push(self.nodes.len());
                    self.nodes.push(Node { start: *at, end: 0, list: true, after: 0 });
                    *at += 1;
                }
                b')' => {
                    let Some(list) = open.pop() else {
                        return Err(SyntaxError::new(*at, "`)` without `(`"));
                    };
                    *at += 1;
                    let after = self.nodes.len();
                    self.nodes[list] = Node { end: *at, after, ..self.nodes[list] };
                }
                _ => {
                    let start = *at;
                    skip_word(bytes, at, comments)?;
                    let after = self.nodes.len() + 1;
                    self.nodes.push(Node { start, end: *at, list: false, after });
                }
            }
            if !whole_line && open.is_empty() && !self.nodes.is_empty() {
                return Ok(());
            }
        }
    }

    /// The nodes that lie in no list.
    pub fn roots(&self) -> Vec<NodeId> {
        self.siblings(0, self.nodes.len()).collect()
    }

    /// The nodes of a list; none for a word.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.siblings(node.0 + 1, self.nodes[node.0].after)
    }

    fn siblings(&self, first: usize, end: usize) -> impl Iterator<Item = NodeId> + '_ {
        let mut next = first;
        std::iter::from_fn(move || {
            let node = (next < end).then_some(NodeId(next))?;
            next = self.nodes[next].after;
            Some(node)
        })
    }

    /// Where the node begins in the text.
    pub fn start(&self, node: NodeId) -> usize {
        self.nodes[node.0].start
    }

    /// The byte behind the node.
    pub fn end(&self, node: NodeId) -> usize {
        self.nodes[node.0].end
    }

    /// The node as it was written.
    pub fn source(&self, node: NodeId) -> &'a str {
        &self.text[self.start(node)..self.end(node)]
    }

    /// Is the node a list?
    pub fn is_list(&self, node: NodeId) -> bool {
        self.nodes[node.0].list
    }

    /// The word, unless the node is a list.
    pub fn atom(&self, node: NodeId) -> Option<Atom<'a>> {
        if self.is_list(node) {
            return None;
        }
        let source = self.source(node);
        let quote = match source.as_bytes()[0] {
            b'|' => Quote::Bars,
            b'"' => Quote::Double,
            _ => return Some(Atom { name: source.into(), quote: Quote::Bare, suffix: "" }),
        };
        let mut end = 0;
        skip_quoted(source.as_bytes(), &mut end).expect("checked when the tree was read");
        let name = unescape(&source[1..end - 1]);
        Some(Atom { name, quote, suffix: &source[end..] })
    }

    /// The list's first node, when that is an unquoted word.
    pub(super) fn head(&self, node: NodeId) -> Option<&'a str> {
        let first = self.children(node).next()?;
        (!self.is_list(first)).then(|| self.source(first))
    }

    /// An error at the node.
    pub fn error(&self, node: NodeId, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.start(node), message)
    }
}

fn skip_line(bytes: &[u8], at: &mut usize) {
    while bytes.get(*at).is_some_and(|&byte| byte != b'\n') {
        *at += 1;
    }
}

/// Moves behind white space, line ends and comments.
pub fn skip_blank(text: &str, at: &mut usize) {
    let bytes = text.as_bytes();
    loop {
        match bytes.get(*at) {
            Some(b' ' | b'\t' | b'\r' | b'\n') => *at += 1,
            Some(b'#') => skip_line(bytes, at),
            _ => return,
        }
    }
}

fn ends_word(byte: Option<&u8>) -> bool {
    matches!(byte, None | Some(b' ' | b'\t' | b'\r' | b'\n' | b'(' | b')' | b',' | b'|' | b'"'))
}

fn is_bit_literal(bytes: &[u8], at: usize) -> bool {
    let rest = &bytes[at + 1..];
    let digits: fn(&u8) -> bool = match rest.first() {
        Some(b'x') => u8::is_ascii_hexdigit,
        Some(b'b') => |byte| matches!(byte, b'0' | b'1'),
        _ => return false,
    };
    let count = rest[1..].iter().take_while(|byte| digits(byte)).count();
    count > 0 && ends_word(rest.get(1 + count))
}

fn skip_word(bytes: &[u8], at: &mut usize, comments: Comments) -> Result<(), SyntaxError> {
    if bytes[*at] == b',' {
        *at += 1;
        return Ok(());
    }
    let quoted = matches!(bytes[*at], b'|' | b'"');
    if quoted {
        skip_quoted(bytes, at)?;
    } else {
        *at += 1;
    }
    let comments_end_words = comments == Comments::Anywhere;
    while !ends_word(bytes.get(*at)) && (bytes[*at] != b'#' || !comments_end_words) {
        *at += 1;
    }
    Ok(())
}

fn skip_quoted(bytes: &[u8], at: &mut usize) -> Result<(), SyntaxError> {
    let start = *at;
    let quote = bytes[start];
    *at += 1;
    while let Some(&byte) = bytes.get(*at) {
        *at += 1;
        match byte {
            b'\\' if *at < bytes.len() => *at += 1,
            _ if byte == quote => return Ok(()),
            _ => {}
        }
    }
    Err(SyntaxError::new(start, format!("this `{}` is never closed", char::from(quote))))
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let code = rest.strip_prefix("u{").and_then(|tail| {
            let (digits, tail) = tail.split_once('}')?;
            Some((u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?, tail))
        });
        let mut characters = rest.chars();
        let (character, tail) = match (code, characters.next()) {
            (Some(decoded), _) => decoded,
            (None, Some('n')) => ('\n', characters.as_str()),
            (None, Some('t')) => ('\t', characters.as_str()),
            (None, Some('r')) => ('\r', characters.as_str()),
            (None, Some(other)) => (other, characters.as_str()),
            (None, None) => break,
        };
        plain.push(character);
        rest = tail;
    }
    plain.push_str(rest);
    plain.into()
}
