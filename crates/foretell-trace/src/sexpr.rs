//! S-expressions and SMT-LIB terms: the one place where they are read and printed.
//!
//! Reading has two steps. [`Tree`] turns text into nodes with positions; [`TermReader`] turns a
//! node into a term of a [`TermStore`], asking a [`Scope`] what names stand for. Both work with
//! explicit stacks, so nesting is bounded by memory only. A budget bounds what terms take beyond
//! what is written (flattening conjunctions of conjunctions can square a hostile file's size).
//!
//! The language is that of SMT-LIB 2.6 for the core, integers, reals, bit-vectors and arrays:
//! `let`, chained `=` and `<`, `distinct`, indexed operators, `((as const (Array Int Int)) 0)`.
//! Beyond SMT-LIB, as TARA's files and people's habits need it: an integer is taken for a real or
//! (when it is a literal) for a bit-vector where the other arguments ask for it, `-5` is a
//! numeral, and `(x)` is `x`. Quantifiers are refused.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use crate::format::{Position, ReadError};
use crate::id::TermId;
use crate::term::{ArrayValue, Operator, Rational, ScalarSort, Sort, Term, TermStore, Value};

/// What is wrong in a text, and at which byte of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte offset in the text.
    pub at: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl SyntaxError {
    /// An error at a byte of the text.
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: None }
    }

    /// The same error with what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same error with line and column.
    pub fn locate(self, text: &str) -> ReadError {
        let error = ReadError::new(Position::in_text(text, self.at), self.message);
        match self.help {
            Some(help) => error.help(help),
            None => error,
        }
    }
}

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
    fn head(&self, node: NodeId) -> Option<&'a str> {
        let first = self.children(node).next()?;
        (!self.is_list(first)).then(|| self.source(first))
    }

    /// An error at the node.
    pub fn error(&self, node: NodeId, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.start(node), message)
    }

    /// The sort: `int`, `bool`, `real`, `bv32`, `(_ BitVec 8)`, `(Array Int Int)`.
    pub fn sort(&self, node: NodeId) -> Result<Sort, SyntaxError> {
        let children: Vec<NodeId> = self.children(node).collect();
        let sort = match *children.as_slice() {
            [array, index, element] if self.source(array) == "Array" => {
                let scalars = self.scalar_sort(index).zip(self.scalar_sort(element));
                scalars.map(|(index, element)| Sort::Array { index, element })
            }
            _ => self.scalar_sort(node).map(Sort::from),
        };
        sort.ok_or_else(|| {
            self.error(node, format!("unknown sort `{}`", self.source(node))).help(
                "write int, bool, real, bv1 to bv64, or (Array I E) with I and E one of those",
            )
        })
    }

    fn scalar_sort(&self, node: NodeId) -> Option<ScalarSort> {
        let words: Vec<&str> = self.children(node).map(|child| self.source(child)).collect();
        match *words.as_slice() {
            ["_", "BitVec", width] => bit_vec_sort(width),
            [] => scalar_sort(self.source(node)),
            _ => None,
        }
    }
}

fn scalar_sort(word: &str) -> Option<ScalarSort> {
    match word {
        "int" | "Int" => Some(ScalarSort::Int),
        "bool" | "Bool" => Some(ScalarSort::Bool),
        "real" | "Real" => Some(ScalarSort::Real),
        _ => bit_vec_sort(word.strip_prefix("bv")?),
    }
}

fn bit_vec_sort(width: &str) -> Option<ScalarSort> {
    let width = width.parse().ok()?;
    (1..=64).contains(&width).then_some(ScalarSort::BitVec(width))
}

/// The sort as people write it: `int`, `bv32`, `(Array int bv8)`.
pub fn print_sort(sort: Sort) -> String {
    let scalar = |sort: ScalarSort| match sort {
        ScalarSort::Bool => "bool".to_owned(),
        ScalarSort::Int => "int".to_owned(),
        ScalarSort::Real => "real".to_owned(),
        ScalarSort::BitVec(width) => format!("bv{width}"),
    };
    match sort {
        Sort::Scalar(sort) => scalar(sort),
        Sort::Array { index, element } => format!("(Array {} {})", scalar(index), scalar(element)),
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

/// The text between two `quote` characters, with what needs it escaped.
pub fn quoted(text: &str, quote: char) -> String {
    let mut result = String::with_capacity(text.len() + 2);
    result.push(quote);
    for character in text.chars() {
        match character {
            '\n' => result.push_str("\\n"),
            '\t' => result.push_str("\\t"),
            '\r' => result.push_str("\\r"),
            '\\' => result.push_str("\\\\"),
            _ if character == quote => {
                result.push('\\');
                result.push(quote);
            }
            _ if character.is_control() => {
                let _ = write!(result, "\\u{{{:x}}}", u32::from(character));
            }
            _ => result.push(character),
        }
    }
    result.push(quote);
    result
}

/// Says what names stand for.
pub trait Scope {
    /// The term for a name.
    fn name(&mut self, terms: &mut TermStore, atom: &Atom<'_>) -> Result<TermId, Refusal>;

    /// The term for a list that only this language has, e.g. `(read T1 3)`; `None` when it is none.
    fn form(
        &mut self,
        terms: &mut TermStore,
        tree: &Tree<'_>,
        list: NodeId,
        head: &str,
    ) -> Result<Option<TermId>, SyntaxError> {
        let _ = (terms, tree, list, head);
        Ok(None)
    }
}

/// Why a name is refused, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// Builds terms from trees. One reader serves a whole file, so that its budget bounds the file.
#[derive(Debug)]
pub struct TermReader {
    budget: usize,
}

impl Default for TermReader {
    fn default() -> Self {
        Self { budget: Self::BUDGET }
    }
}

enum Head<'a> {
    Named(&'a str),
    Indexed(Operator),
    ConstantArray(Sort),
    /// `(x)`
    Parentheses,
    Let {
        names: Vec<Cow<'a, str>>,
    },
}

struct Frame<'a> {
    node: NodeId,
    head: Head<'a>,
    /// What is still to be read, last first.
    pending: Vec<NodeId>,
    arguments: Vec<TermId>,
}

enum Entered<'a> {
    Term(TermId),
    List(Frame<'a>),
}

impl TermReader {
    /// How many arguments all terms of a file may have together beyond those that are written.
    const BUDGET: usize = 1 << 22;
    /// What an entry of a constant array costs of the budget.
    const ENTRY_COST: usize = 16;

    /// The term at `node`.
    pub fn term(
        &mut self,
        terms: &mut TermStore,
        scope: &mut dyn Scope,
        tree: &Tree<'_>,
        node: NodeId,
    ) -> Result<TermId, SyntaxError> {
        let mut reading = Reading { reader: self, terms, scope, tree, bound: HashMap::new() };
        reading.term(node)
    }

    /// The term at `node`, which must have this sort; integers are taken for reals or bit-vectors.
    pub fn term_of_sort(
        &mut self,
        terms: &mut TermStore,
        scope: &mut dyn Scope,
        tree: &Tree<'_>,
        node: NodeId,
        sort: Sort,
    ) -> Result<TermId, SyntaxError> {
        let term = self.term(terms, scope, tree, node)?;
        let term = coerce(terms, term, sort);
        if terms.sort(term) != sort {
            let found = print_sort(terms.sort(term));
            let message = format!("expected {}, this is {found}", print_sort(sort));
            return Err(tree.error(node, message));
        }
        Ok(term)
    }
}

/// The constant at `node`: a literal, or `(- literal)`.
pub fn literal(tree: &Tree<'_>, node: NodeId) -> Result<Option<Value>, SyntaxError> {
    if tree.is_list(node) {
        let children: Vec<NodeId> = tree.children(node).collect();
        return match *children.as_slice() {
            [minus, number] if tree.source(minus) == "-" && !tree.is_list(number) => {
                number_literal(tree, number, true)
            }
            [underscore, value, width]
                if tree.source(underscore) == "_" && tree.source(value).starts_with("bv") =>
            {
                bit_vec_literal(tree, node, &tree.source(value)[2..], tree.source(width)).map(Some)
            }
            _ => Ok(None),
        };
    }
    let source = tree.source(node);
    match source.as_bytes() {
        b"true" => Ok(Some(Value::Bool(true))),
        b"false" => Ok(Some(Value::Bool(false))),
        [b'#', base, digits @ ..] => {
            let bits_per_digit = if *base == b'x' { 4 } else { 1 };
            let width = digits.len() * bits_per_digit;
            if width > 64 {
                return Err(tree.error(node, "bit-vectors have at most 64 bits"));
            }
            let bits = u64::from_str_radix(&source[2..], 1 << bits_per_digit);
            let bits = bits.map_err(|_| tree.error(node, "not a bit-vector literal"))?;
            Ok(Some(Value::bit_vec(width as u16, bits)))
        }
        _ => number_literal(tree, node, false),
    }
}

fn bit_vec_literal(
    tree: &Tree<'_>,
    node: NodeId,
    bits: &str,
    width: &str,
) -> Result<Value, SyntaxError> {
    match (bit_vec_sort(width), bits.parse::<u64>()) {
        (Some(ScalarSort::BitVec(width)), Ok(bits)) if width == 64 || bits >> width == 0 => {
            Ok(Value::bit_vec(width, bits))
        }
        _ => Err(tree.error(node, "not a bit-vector of 1 to 64 bits")),
    }
}

/// A numeral or decimal; `None` when the word is a name.
fn number_literal(
    tree: &Tree<'_>,
    node: NodeId,
    negated: bool,
) -> Result<Option<Value>, SyntaxError> {
    let source = tree.source(node);
    let (digits, negative) = match source.strip_prefix('-') {
        Some(digits) => (digits, !negated),
        None => (source, negated),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let real = whole.len() < digits.len();
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || digits.ends_with('.') {
        return Ok(None);
    }
    let too_large = || tree.error(node, "numbers of more than 128 bits are not handled");
    let fraction = fraction.trim_end_matches('0');
    let sign = if negative { "-" } else { "" };
    let numerator: i128 = format!("{sign}{whole}{fraction}").parse().map_err(|_| too_large())?;
    if !real {
        return Ok(Some(Value::Int(numerator)));
    }
    let denominator = 10_i128.checked_pow(fraction.len() as u32).ok_or_else(too_large)?;
    Rational::new(numerator, denominator).map(Value::Real).map(Some).ok_or_else(too_large)
}

/// The value as one of that sort: an integer as a real, or as a bit-vector when it fits, signed or
/// unsigned. Other values stay as they are.
pub fn coerce_value(value: Value, sort: Sort) -> Value {
    match (&value, sort) {
        (Value::Int(number), Sort::REAL) => Value::Real(Rational::integer(*number)),
        (&Value::Int(number), Sort::Scalar(ScalarSort::BitVec(width))) => {
            let fits = -(1_i128 << (width - 1)) <= number && number < 1_i128 << width;
            if fits { Value::bit_vec(width, number as u64) } else { value }
        }
        _ => value,
    }
}

/// The term as one of that sort: an integer as a real, an integer constant also as a bit-vector that
/// it fits. Other terms stay as they are.
pub fn coerce(terms: &mut TermStore, term: TermId, sort: Sort) -> TermId {
    if terms.sort(term) != Sort::INT || sort == Sort::INT {
        return term;
    }
    match terms.constant_value(term) {
        Some(value) => {
            let value = coerce_value(value.clone(), sort);
            terms.constant(value)
        }
        None if sort == Sort::REAL => terms.build(Operator::ToReal, &[term]),
        None => term,
    }
}

struct Reading<'r, 'a> {
    reader: &'r mut TermReader,
    terms: &'r mut TermStore,
    scope: &'r mut dyn Scope,
    tree: &'r Tree<'a>,
    /// What `let` binds each name to, innermost last.
    bound: HashMap<String, Vec<TermId>>,
}

impl<'a> Reading<'_, 'a> {
    fn term(&mut self, root: NodeId) -> Result<TermId, SyntaxError> {
        let mut frames: Vec<Frame<'a>> = Vec::new();
        let mut next = Some(root);
        let mut done: Option<TermId> = None;
        loop {
            if let Some(node) = next.take() {
                match self.enter(node)? {
                    Entered::Term(term) => done = Some(term),
                    Entered::List(frame) => frames.push(frame),
                }
            }
            let Some(frame) = frames.last_mut() else {
                return Ok(done.expect("the last frame left a term"));
            };
            frame.arguments.extend(done.take());
            next = frame.pending.pop();
            match (&frame.head, next) {
                (Head::Let { names }, Some(_)) if frame.pending.is_empty() => {
                    for (name, value) in names.iter().zip(&frame.arguments) {
                        self.bound.entry(name.to_string()).or_default().push(*value);
                    }
                }
                (_, Some(_)) => {}
                (_, None) => {
                    let frame = frames.pop().expect("it is the last");
                    done = Some(self.leave(&frame)?);
                }
            }
        }
    }

    fn enter(&mut self, node: NodeId) -> Result<Entered<'a>, SyntaxError> {
        let tree = self.tree;
        if let Some(value) = literal(tree, node)? {
            return Ok(Entered::Term(self.terms.constant(value)));
        }
        if let Some(atom) = tree.atom(node) {
            let bound = self.bound.get(atom.name.as_ref()).and_then(|values| values.last());
            return match bound {
                Some(&term) => Ok(Entered::Term(term)),
                None => self
                    .scope
                    .name(self.terms, &atom)
                    .map(Entered::Term)
                    .map_err(|refusal| tree.error(node, refusal.message).help(refusal.help)),
            };
        }
        let mut children: Vec<NodeId> = tree.children(node).collect();
        let Some(&first) = children.first() else {
            return Err(tree.error(node, "`()` is not a formula"));
        };
        let head = match tree.head(node) {
            None => self.indexed(first)?,
            Some("let") => return self.enter_let(node, &children),
            Some(word @ ("forall" | "exists")) => {
                if let Some(term) = self.scope.form(self.terms, tree, node, word)? {
                    return Ok(Entered::Term(term));
                }
                return Err(tree.error(node, "quantifiers are not handled").help(
                    "state it for each index, or `(forall ((i Int)) (= (select a i) 0))` for a \
                     constant array",
                ));
            }
            Some(word) => {
                if let Some(term) = self.scope.form(self.terms, tree, node, word)? {
                    return Ok(Entered::Term(term));
                }
                if is_function(word) {
                    Head::Named(word)
                } else if children.len() == 1 {
                    Head::Parentheses
                } else {
                    return Err(tree.error(first, format!("unknown function `{word}`")));
                }
            }
        };
        if !matches!(head, Head::Parentheses) {
            children.remove(0);
        }
        children.reverse();
        Ok(Entered::List(Frame { node, head, pending: children, arguments: Vec::new() }))
    }

    /// `(_ extract 7 0)` and the like, `(as const S)`, or a parenthesised formula.
    fn indexed(&mut self, node: NodeId) -> Result<Head<'a>, SyntaxError> {
        let tree = self.tree;
        let parts: Vec<NodeId> = tree.children(node).collect();
        let words: Vec<&str> = parts.iter().map(|&part| tree.source(part)).collect();
        let number = |index: usize| words[index].parse::<u16>().ok();
        let operator = match words.as_slice() {
            ["as", "const", _] => return Ok(Head::ConstantArray(tree.sort(parts[2])?)),
            ["_", "extract", _, _] => {
                number(2).zip(number(3)).map(|(high, low)| Operator::Extract { high, low })
            }
            ["_", "zero_extend", _] => number(2).map(Operator::ZeroExtend),
            ["_", "sign_extend", _] => number(2).map(Operator::SignExtend),
            ["_", ..] => None,
            _ => return Ok(Head::Parentheses),
        };
        let unknown = || tree.error(node, format!("unknown function `{}`", tree.source(node)));
        operator.map(Head::Indexed).ok_or_else(unknown)
    }

    fn enter_let(&mut self, node: NodeId, children: &[NodeId]) -> Result<Entered<'a>, SyntaxError> {
        let tree = self.tree;
        let malformed = || tree.error(node, "malformed `let`").help("write (let ((x e)) body)");
        let &[_, bindings, body] = children else { return Err(malformed()) };
        let mut names = Vec::new();
        let mut pending = Vec::new();
        for binding in tree.children(bindings) {
            let parts: Vec<NodeId> = tree.children(binding).collect();
            let &[name, value] = parts.as_slice() else { return Err(malformed()) };
            names.push(tree.atom(name).ok_or_else(malformed)?.name);
            pending.push(value);
        }
        pending.push(body);
        pending.reverse();
        if names.is_empty() {
            return Err(malformed());
        }
        let head = Head::Let { names };
        Ok(Entered::List(Frame { node, head, pending, arguments: Vec::new() }))
    }

    fn leave(&mut self, frame: &Frame<'a>) -> Result<TermId, SyntaxError> {
        let arguments = frame.arguments.as_slice();
        match &frame.head {
            Head::Named(name) => self.apply_named(frame.node, name, arguments),
            Head::Indexed(operator) => self.apply(frame.node, *operator, arguments),
            Head::Parentheses => match arguments {
                [only] => Ok(*only),
                _ => Err(self.tree.error(frame.node, "this list is not a formula")),
            },
            Head::ConstantArray(sort) => {
                let &Sort::Array { index, element } = sort else {
                    return Err(self.tree.error(frame.node, "`as const` needs an array sort"));
                };
                let value = match arguments {
                    [only] => {
                        let term = coerce(self.terms, *only, element.into());
                        self.terms.constant_value(term).cloned()
                    }
                    _ => None,
                };
                match value {
                    Some(value) if value.sort() == element.into() => {
                        let array = ArrayValue::constant(index, value);
                        Ok(self.terms.constant(Value::Array(Box::new(array))))
                    }
                    _ => Err(self.tree.error(frame.node, "a constant array needs one constant")),
                }
            }
            Head::Let { names } => {
                for name in names {
                    if let Some(values) = self.bound.get_mut(name.as_ref()) {
                        values.pop();
                        if values.is_empty() {
                            self.bound.remove(name.as_ref());
                        }
                    }
                }
                Ok(*arguments.last().expect("the body is an argument"))
            }
        }
    }

    fn apply_named(
        &mut self,
        node: NodeId,
        name: &str,
        arguments: &[TermId],
    ) -> Result<TermId, SyntaxError> {
        let swapped = || arguments.iter().rev().copied().collect::<Vec<_>>();
        match name {
            "true" | "false" => Err(self.tree.error(node, "a truth value takes no arguments")),
            "and" => self.apply(node, Operator::And, arguments),
            "or" => self.apply(node, Operator::Or, arguments),
            "-" if arguments.len() == 1 => self.apply(node, Operator::Neg, arguments),
            "+" | "*" if arguments.len() == 1 => Ok(arguments[0]),
            "distinct" => {
                self.pay(node, arguments.len().saturating_mul(arguments.len()))?;
                let mut pairs = Vec::new();
                for (index, &left) in arguments.iter().enumerate() {
                    for &right in &arguments[index + 1..] {
                        let equal = self.apply(node, Operator::Eq, &[left, right])?;
                        pairs.push(self.terms.not(equal));
                    }
                }
                Ok(self.terms.and(&pairs))
            }
            "=" => self.chain(node, Operator::Eq, arguments),
            "<" => self.chain(node, Operator::Lt, arguments),
            "<=" => self.chain(node, Operator::Le, arguments),
            ">" => self.chain(node, Operator::Lt, &swapped()),
            ">=" => self.chain(node, Operator::Le, &swapped()),
            "bvugt" => self.apply(node, Operator::BvUlt, &swapped()),
            "bvuge" => self.apply(node, Operator::BvUle, &swapped()),
            "bvsgt" => self.apply(node, Operator::BvSlt, &swapped()),
            "bvsge" => self.apply(node, Operator::BvSle, &swapped()),
            "bvnand" | "bvnor" | "bvxnor" => {
                let operator = match name {
                    "bvnand" => Operator::BvAnd,
                    "bvnor" => Operator::BvOr,
                    _ => Operator::BvXor,
                };
                let term = self.apply(node, operator, arguments)?;
                self.apply(node, Operator::BvNot, &[term])
            }
            "=>" => match arguments {
                [premises @ .., last] if !premises.is_empty() => {
                    let mut term = *last;
                    for &premise in premises.iter().rev() {
                        term = self.apply(node, Operator::Implies, &[premise, term])?;
                    }
                    Ok(term)
                }
                _ => self.apply(node, Operator::Implies, arguments),
            },
            _ => {
                let operator = function(name).expect("checked when the list was entered");
                let folds = matches!(
                    operator,
                    Operator::Xor
                        | Operator::IntDiv
                        | Operator::RealDiv
                        | Operator::Concat
                        | Operator::BvAdd
                        | Operator::BvMul
                        | Operator::BvAnd
                        | Operator::BvOr
                        | Operator::BvXor
                );
                let (left, rest) = match arguments {
                    [first, second, rest @ ..] if folds => ([*first, *second], rest),
                    _ => return self.apply(node, operator, arguments),
                };
                let mut term = self.apply(node, operator, &left)?;
                for &argument in rest {
                    term = self.apply(node, operator, &[term, argument])?;
                }
                Ok(term)
            }
        }
    }

    /// `(< a b c)` is `(and (< a b) (< b c))`.
    fn chain(
        &mut self,
        node: NodeId,
        operator: Operator,
        arguments: &[TermId],
    ) -> Result<TermId, SyntaxError> {
        if arguments.len() <= 2 {
            return self.apply(node, operator, arguments);
        }
        let mut links = Vec::with_capacity(arguments.len() - 1);
        for pair in arguments.windows(2) {
            links.push(self.apply(node, operator, pair)?);
        }
        let conjunction = self.terms.and(&links);
        self.charge(node, conjunction, arguments.len())
    }

    fn apply(
        &mut self,
        node: NodeId,
        operator: Operator,
        arguments: &[TermId],
    ) -> Result<TermId, SyntaxError> {
        let mut ids = arguments.to_vec();
        self.unify(operator, &mut ids);
        let term = self.terms.apply(operator, &ids).map_err(|error| {
            let arithmetic = matches!(
                operator,
                Operator::Add | Operator::Sub | Operator::Mul | Operator::Lt | Operator::Le
            );
            let vectors = error.arguments.iter().any(|sort| sort.width().is_some());
            let error = self.tree.error(node, error.to_string());
            match arithmetic && vectors {
                true => error.help("for bit-vectors write bvadd, bvsub, bvmul, bvslt, bvule, ..."),
                false => error,
            }
        })?;
        self.charge(node, term, arguments.len())
    }

    /// Takes integers for reals or bit-vectors where the other arguments ask for it.
    fn unify(&mut self, operator: Operator, arguments: &mut [TermId]) {
        use Operator::*;
        match (operator, &*arguments) {
            (Select | Store, &[array, ..]) => {
                if let Sort::Array { index, element } = self.terms.sort(array) {
                    for (argument, sort) in arguments[1..].iter_mut().zip([index, element]) {
                        *argument = coerce(self.terms, *argument, sort.into());
                    }
                }
            }
            (RealDiv | ToInt, _) => {
                for argument in arguments {
                    *argument = coerce(self.terms, *argument, Sort::REAL);
                }
            }
            (Not | And | Or | Xor | Implies | IntDiv | Mod | ToReal | Concat, _) => {}
            _ => {
                let branches = if operator == Ite { 1.min(arguments.len()) } else { 0 };
                let arguments = &mut arguments[branches..];
                let asked = arguments.iter().map(|&argument| self.terms.sort(argument));
                if let Some(sort) = asked.clone().find(|&sort| sort != Sort::INT) {
                    for argument in arguments {
                        *argument = coerce(self.terms, *argument, sort);
                    }
                }
            }
        }
    }

    /// Pays for a term of which `written` arguments stand in the file.
    fn charge(
        &mut self,
        node: NodeId,
        term: TermId,
        written: usize,
    ) -> Result<TermId, SyntaxError> {
        let cost = match self.terms.term(term) {
            Term::Apply(_, arguments) => arguments.len().saturating_sub(written),
            Term::Constant(Value::Array(array)) => array.entries().count() * TermReader::ENTRY_COST,
            _ => 0,
        };
        self.pay(node, cost)?;
        Ok(term)
    }

    fn pay(&mut self, node: NodeId, cost: usize) -> Result<(), SyntaxError> {
        let left = self.reader.budget.checked_sub(cost);
        let too_large = || self.tree.error(node, "the formulas of this file are too large");
        self.reader.budget = left.ok_or_else(too_large)?;
        Ok(())
    }
}

/// The operators without indices.
const OPERATORS: [Operator; 38] = {
    use Operator::*;
    [
        Not, And, Or, Xor, Implies, Ite, Eq, Add, Sub, Mul, IntDiv, Mod, Abs, RealDiv, ToReal,
        ToInt, Lt, Le, BvNot, BvNeg, BvAnd, BvOr, BvXor, BvAdd, BvSub, BvMul, BvUdiv, BvUrem,
        BvSdiv, BvSrem, BvShl, BvLshr, BvAshr, BvUlt, BvUle, BvSlt, BvSle, Concat,
    ]
};

fn function(name: &str) -> Option<Operator> {
    match name {
        "select" => Some(Operator::Select),
        "store" => Some(Operator::Store),
        _ => OPERATORS.into_iter().find(|operator| operator.smtlib_name() == name),
    }
}

fn is_function(name: &str) -> bool {
    const DERIVED: [&str; 10] =
        [">", ">=", "distinct", "bvugt", "bvuge", "bvsgt", "bvsge", "bvnand", "bvnor", "bvxnor"];
    DERIVED.contains(&name) || function(name).is_some()
}

/// The term in SMT-LIB. `name` says how a term is called (leaves must have a name; any other term
/// may, and is then not spelled out).
pub fn print_term(
    terms: &TermStore,
    root: TermId,
    name: &mut dyn FnMut(TermId) -> Option<String>,
) -> String {
    enum Work {
        Term(TermId),
        Close,
    }
    let mut text = String::new();
    let mut work = vec![Work::Term(root)];
    while let Some(next) = work.pop() {
        let Work::Term(term) = next else {
            text.push(')');
            continue;
        };
        if !text.is_empty() && !text.ends_with('(') {
            text.push(' ');
        }
        if let Some(name) = name(term) {
            text.push_str(&name);
            continue;
        }
        match terms.term(term) {
            Term::Constant(value) => print_value_into(&mut text, value),
            Term::Apply(operator, arguments) => {
                text.push('(');
                match operator {
                    Operator::Extract { high, low } => {
                        let _ = write!(text, "(_ extract {high} {low})");
                    }
                    Operator::ZeroExtend(by) | Operator::SignExtend(by) => {
                        let _ = write!(text, "(_ {} {by})", operator.smtlib_name());
                    }
                    _ => text.push_str(operator.smtlib_name()),
                }
                work.push(Work::Close);
                work.extend(arguments.iter().rev().map(|&argument| Work::Term(argument)));
            }
            leaf => {
                let _ = write!(text, "<{leaf:?}>"); // a caller's mistake, made visible
            }
        }
    }
    text
}

/// The value in SMT-LIB.
pub fn print_value(value: &Value) -> String {
    let mut text = String::new();
    print_value_into(&mut text, value);
    text
}

fn print_value_into(text: &mut String, value: &Value) {
    let _ = match value {
        Value::Bool(value) => write!(text, "{value}"),
        Value::Int(number) if *number < 0 => write!(text, "(- {})", number.unsigned_abs()),
        Value::Int(number) => write!(text, "{number}"),
        Value::Real(real) => {
            let magnitude = real.numerator().unsigned_abs();
            let whole = if real.numerator() < 0 {
                format!("(- {magnitude}.0)")
            } else {
                format!("{magnitude}.0")
            };
            match real.denominator() {
                1 => write!(text, "{whole}"),
                denominator => write!(text, "(/ {whole} {denominator}.0)"),
            }
        }
        Value::BitVec { width, bits } if width % 4 == 0 => {
            write!(text, "#x{bits:0digits$x}", digits = usize::from(width / 4))
        }
        Value::BitVec { width, bits } => {
            write!(text, "#b{bits:0digits$b}", digits = usize::from(*width))
        }
        Value::Array(array) => {
            let entries: Vec<_> = array.entries().collect();
            for _ in &entries {
                text.push_str("(store ");
            }
            let _ = write!(text, "((as const {}) ", value.sort());
            print_value_into(text, array.default_element());
            text.push(')');
            for (index, element) in entries {
                text.push(' ');
                print_value_into(text, index);
                text.push(' ');
                print_value_into(text, element);
                text.push(')');
            }
            Ok(())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::VariableId;

    /// `a` to `e` are integers, `p` to `t` Booleans, `u` to `z` bit-vectors of 8 bits.
    struct Letters;

    impl Scope for Letters {
        fn name(&mut self, terms: &mut TermStore, atom: &Atom<'_>) -> Result<TermId, Refusal> {
            let letter = atom.name.bytes().next().unwrap_or(b'?');
            let sort = match letter {
                b'a'..=b'e' if atom.name.len() == 1 => Sort::INT,
                b'p'..=b't' if atom.name.len() == 1 => Sort::BOOL,
                b'u'..=b'z' if atom.name.len() == 1 => Sort::bit_vec(8),
                _ => return Err(Refusal { message: "unknown".into(), help: "a letter".into() }),
            };
            Ok(terms.variable(VariableId(u32::from(letter)), sort))
        }
    }

    fn read(terms: &mut TermStore, source: &str) -> Result<TermId, SyntaxError> {
        let tree = Tree::read(source, &mut 0, Comments::Anywhere)?;
        TermReader::default().term(terms, &mut Letters, &tree, tree.roots()[0])
    }

    fn printed(terms: &TermStore, term: TermId) -> String {
        print_term(terms, term, &mut |id| match terms.term(id) {
            Term::Variable(variable) => Some(char::from(variable.0 as u8).to_string()),
            _ => None,
        })
    }

    fn assert_same(one: &str, other: &str) {
        let mut terms = TermStore::default();
        let term = read(&mut terms, one).unwrap_or_else(|error| panic!("{one}: {error:?}"));
        assert_eq!(read(&mut terms, other), Ok(term), "{one} and {other}");
        let back = printed(&terms, term);
        assert_eq!(read(&mut terms, &back), Ok(term), "{one} and {back}");
    }

    #[test]
    fn abbreviations_mean_what_smt_lib_says() {
        for (short, long) in [
            ("(< a b c)", "(and (< a b) (< b c))"),
            ("(>= a b c)", "(and (<= b a) (<= c b))"),
            ("(= a b c)", "(and (= a b) (= b c))"),
            ("(distinct a b c)", "(and (not (= a b)) (not (= a c)) (not (= b c)))"),
            ("(=> p q r)", "(=> p (=> q r))"),
            ("(- a b c)", "(- a b c)"),
            ("(div a b c)", "(div (div a b) c)"),
            ("(xor p q r)", "(xor (xor p q) r)"),
            ("(bvadd u v w)", "(bvadd (bvadd u v) w)"),
            ("(bvsgt u v)", "(bvslt v u)"),
            ("(bvnand u v)", "(bvnot (bvand u v))"),
            (
                "(concat ((_ extract 3 0) u) ((_ extract 7 4) u))",
                "(concat ((_ extract 3 0) u) ((_ extract 7 4) u))",
            ),
            ("((_ zero_extend 8) u)", "((_ zero_extend 8) u)"),
            ("(let ((a b) (b a)) (- a b))", "(- b a)"),
            ("(let ((c 1)) (let ((c (+ c 1))) c))", "2"),
            ("(a)", "a"),
            ("((and p q))", "(and q p)"),
            ("|a|", "a"),
            ("(- 5)", "-5"),
            (
                "(select (store ((as const (Array Int Int)) 0) 1 7) a)",
                "(select (store ((as const (Array Int Int)) 0) 1 7) a)",
            ),
        ] {
            assert_same(short, long);
        }
    }

    #[test]
    fn integers_stand_for_reals_and_bit_vectors() {
        assert_same("(= u 5)", "(= u #x05)");
        assert_same("(= u (- 1))", "(= u #xff)");
        assert_same("(/ a 2)", "(/ (to_real a) 2.0)");
        assert_same("(+ a 0.5)", "(+ (to_real a) (/ 1.0 2.0))");
        assert_same("(ite p 1 0.5)", "(ite p 1.0 0.5)");
        let mut terms = TermStore::default();
        assert!(read(&mut terms, "(= u 256)").is_err());
        assert!(read(&mut terms, "(= u a)").is_err());
        assert!(read(&mut terms, "(+ u 1)").unwrap_err().help.unwrap().contains("bvadd"));
    }

    #[test]
    fn the_smallest_numbers_come_back() {
        for value in [
            Value::Int(i128::MIN),
            Value::Int(i128::MAX),
            Value::Real(Rational::new(i128::MIN, 1).unwrap()),
            Value::Real(Rational::new(i128::MIN, 3).unwrap()),
            Value::Real(Rational::new(1, i128::MAX).unwrap()),
            Value::bit_vec(64, u64::MAX),
            Value::bit_vec(3, 5),
        ] {
            let mut terms = TermStore::default();
            let term = read(&mut terms, &print_value(&value)).unwrap();
            assert_eq!(terms.constant_value(term), Some(&value));
        }
    }

    #[test]
    fn hostile_formulas_are_refused_in_time() {
        let mut terms = TermStore::default();
        let many = |count: usize| "a ".repeat(count);
        let error = read(&mut terms, &format!("(distinct {})", many(10_000))).unwrap_err();
        assert!(error.message.contains("too large"), "{error:?}");
        let stores: String = (0..50_000).map(|index| format!(" {index} 1)")).collect();
        let opening = "(store ".repeat(50_000);
        let array = format!("{opening}((as const (Array Int Int)) 0){stores}");
        assert!(read(&mut terms, &array).unwrap_err().message.contains("too large"));
        let deep = format!("{}p{}", "(not (xor q ".repeat(50_000), "))".repeat(50_000));
        let term = read(&mut terms, &deep).unwrap();
        let back = printed(&terms, term);
        assert_eq!(read(&mut terms, &back), Ok(term));
    }

    #[test]
    fn escapes_in_quoted_names_come_back() {
        for name in ["", "a|b", "a\\", "\u{7}\n\r\t", "\"", "\\n", "ü→", "\\u{41}"] {
            for quote in ['|', '"'] {
                let text = quoted(name, quote);
                let tree = Tree::read(&text, &mut 0, Comments::BetweenWords).unwrap();
                assert_eq!(tree.atom(tree.roots()[0]).unwrap().name, name, "{text}");
            }
        }
    }
}
