//! As much of C and C++ as is needed to put a call between two statements: tokens, blocks,
//! statements. No types, no macros; what looks unusual is refused by the caller.

use std::ops::Range;

/// So deep are statements nested at most, blocks not counted.
const DEEPEST: u32 = 200;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or keyword.
    Word,
    /// One character of punctuation.
    Mark(char),
    /// A number, string or character.
    Literal,
}

/// A token of the text.
#[derive(Clone, Debug)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where, in bytes.
    pub range: Range<usize>,
}

/// A source text and its tokens; comments and preprocessor lines have none.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text.
    pub text: String,
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// By token: the token that closes or opens the same bracket.
    partner: Vec<Option<usize>>,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl Source {
    /// Reads the text; `None` when brackets do not match.
    pub fn new(text: String) -> Option<Self> {
        let tokens = tokens(&text);
        let mut partner = vec![None; tokens.len()];
        let mut open: Vec<usize> = Vec::new();
        for (number, token) in tokens.iter().enumerate() {
            match token.kind {
                Kind::Mark('(' | '[' | '{') => open.push(number),
                Kind::Mark(close @ (')' | ']' | '}')) => {
                    let begin = open.pop()?;
                    let fits = matches!(
                        (tokens[begin].kind, close),
                        (Kind::Mark('('), ')') | (Kind::Mark('['), ']') | (Kind::Mark('{'), '}')
                    );
                    if !fits {
                        return None;
                    }
                    partner[begin] = Some(number);
                    partner[number] = Some(begin);
                }
                _ => {}
            }
        }
        let lines =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        open.is_empty().then_some(Self { text, tokens, partner, lines })
    }

    /// The token's text.
    pub fn word(&self, token: usize) -> &str {
        self.tokens.get(token).map_or("", |token| &self.text[token.range.clone()])
    }

    fn is_mark(&self, token: usize, mark: char) -> bool {
        self.tokens.get(token).is_some_and(|token| token.kind == Kind::Mark(mark))
    }

    /// The number of the line, from 1, that the byte lies in.
    pub fn line_of(&self, byte: usize) -> usize {
        self.lines.partition_point(|&begin| begin <= byte)
    }

    /// Where the line with this number, from 1, begins.
    pub fn line_begin(&self, line: usize) -> usize {
        self.lines.get(line - 1).copied().unwrap_or(self.text.len())
    }

    /// The tokens between the braces of the function with this name around the line, if known.
    pub fn body(&self, function: &str, line: Option<u32>) -> Option<Range<usize>> {
        let name = function.rsplit("::").next().unwrap_or(function);
        let name = name.split(['(', '<']).next().unwrap_or(name);
        let mut found = None;
        for at in 0..self.tokens.len() {
            if self.word(at) != name || !self.is_mark(at + 1, '(') {
                continue;
            }
            let mut after = self.partner[at + 1]? + 1;
            while matches!(self.word(after), "const" | "noexcept" | "override" | "final") {
                after += 1;
            }
            if !self.is_mark(after, '{') {
                continue;
            }
            let body = after + 1..self.partner[after]?;
            let lines = self.line_of(self.tokens[at].range.start)
                ..=self.line_of(self.tokens[body.end].range.start);
            let around = line.is_none_or(|line| lines.contains(&(line as usize)));
            if around && found.replace(body).is_some() {
                return None; // two functions of one name
            }
        }
        found
    }

    /// The tokens of the line within the range.
    pub fn tokens_of_line(&self, within: &Range<usize>, line: u32) -> Range<usize> {
        let of_line =
            |token: &usize| self.line_of(self.tokens[*token].range.start) == line as usize;
        let first = within.clone().find(of_line);
        match first {
            None => within.end..within.end,
            Some(first) => {
                let last = within.clone().rev().find(of_line).unwrap_or(first);
                first..last + 1
            }
        }
    }

    /// The calls of the function within the range.
    pub fn calls(&self, within: &Range<usize>, function: &str) -> Vec<usize> {
        let name = function.rsplit("::").next().unwrap_or(function);
        let name = name.split(['(', '<']).next().unwrap_or(name);
        within.clone().filter(|&at| self.word(at) == name && self.is_mark(at + 1, '(')).collect()
    }

    /// The statements of the innermost block in the range that has both tokens in it; the first
    /// and the last of those that contain one of the two.
    pub fn statements_around(
        &self,
        body: &Range<usize>,
        first: usize,
        last: usize,
    ) -> Option<(Range<usize>, Range<usize>)> {
        let mut block = body.clone();
        loop {
            let statements = self.statements(&block)?;
            let with = |token: usize| statements.iter().find(|range| range.contains(&token));
            let (one, two) = (with(first)?.clone(), with(last)?.clone());
            if one != two {
                return Some((one, two));
            }
            // both in one statement: a block inside it that has both
            let inner = one
                .clone()
                .filter(|&at| self.is_mark(at, '{'))
                .filter_map(|at| Some(at + 1..self.partner[at]?))
                .find(|range| range.contains(&first) && range.contains(&last));
            match inner {
                Some(inner) => block = inner,
                None => return Some((one, two)),
            }
        }
    }

    /// The outermost loop in the range with both tokens in it.
    pub fn loop_around(
        &self,
        body: &Range<usize>,
        first: usize,
        last: usize,
    ) -> Option<Range<usize>> {
        body.clone()
            .filter(|&at| matches!(self.word(at), "for" | "while" | "do"))
            .filter_map(|at| Some(at..self.statement_end(at, body.end)?))
            .find(|range| range.contains(&first) && range.contains(&last))
    }

    /// The statements of a block; a label is a statement of its own.
    fn statements(&self, block: &Range<usize>) -> Option<Vec<Range<usize>>> {
        let mut statements = Vec::new();
        let mut at = block.start;
        while at < block.end {
            let end = self.statement_end(at, block.end)?;
            statements.push(at..end);
            at = end;
        }
        Some(statements)
    }

    /// The token after the statement that begins here; `None` where there is none, or where statements
    /// are nested deeper than anybody writes them.
    pub fn statement_end(&self, begin: usize, limit: usize) -> Option<usize> {
        self.end_of_nested(begin, limit, 0)
    }

    fn end_of_nested(&self, mut begin: usize, limit: usize, depth: u32) -> Option<usize> {
        let after_brackets = |at: usize| match self.is_mark(at, '(') {
            true => self.partner[at].map(|end| end + 1),
            false => None,
        };
        if depth > DEEPEST {
            return None;
        }
        // A statement that ends with another one goes on with that.
        loop {
            if begin >= limit {
                return None;
            }
            if self.is_mark(begin, '{') {
                return Some(self.partner[begin]? + 1);
            }
            match self.word(begin) {
                "if" => {
                    let condition = if self.word(begin + 1) == "constexpr" { 2 } else { 1 };
                    let then = after_brackets(begin + condition)?;
                    let then = self.end_of_nested(then, limit, depth + 1)?;
                    match self.word(then) {
                        "else" if then < limit => begin = then + 1,
                        _ => return Some(then),
                    }
                }
                "for" | "while" | "switch" => begin = after_brackets(begin + 1)?,
                "do" => {
                    let body = self.end_of_nested(begin + 1, limit, depth + 1)?;
                    let end = after_brackets(body + 1)?;
                    return (self.word(body) == "while" && self.is_mark(end, ';'))
                        .then_some(end + 1);
                }
                "try" => {
                    let mut end = self.end_of_nested(begin + 1, limit, depth + 1)?;
                    while self.word(end) == "catch" {
                        end = self.end_of_nested(after_brackets(end + 1)?, limit, depth + 1)?;
                    }
                    return Some(end);
                }
                "case" | "default" => {
                    let colon = (begin..limit).find(|&at| self.is_mark(at, ':'));
                    return colon.map(|colon| colon + 1);
                }
                _ if self.tokens[begin].kind == Kind::Word
                    && self.is_mark(begin + 1, ':')
                    && !self.is_mark(begin + 2, ':') =>
                {
                    return Some(begin + 2);
                }
                _ => return self.end_of_plain(begin, limit),
            }
        }
    }

    /// The token after the semicolon.
    fn end_of_plain(&self, begin: usize, limit: usize) -> Option<usize> {
        let mut at = begin;
        while at < limit {
            match self.tokens[at].kind {
                Kind::Mark(';') => return Some(at + 1),
                Kind::Mark('(' | '[' | '{') => at = self.partner[at]? + 1,
                _ => at += 1,
            }
        }
        None
    }

    /// A word that leaves the tokens before their end: `return`, `goto`, or a `break` or `continue`
    /// of a loop around them.
    pub fn leaves(&self, range: &Range<usize>) -> Option<&str> {
        let inside = |at: usize, keywords: &[&str]| {
            range.clone().any(|begin| {
                keywords.contains(&self.word(begin))
                    && self
                        .statement_end(begin, range.end)
                        .is_some_and(|end| (begin + 1..end).contains(&at))
            })
        };
        let leaving = range.clone().find(|&at| match self.word(at) {
            "return" | "goto" | "throw" | "longjmp" | "pthread_exit" | "co_return" => true,
            "break" => !inside(at, &["for", "while", "do", "switch"]),
            "continue" => !inside(at, &["for", "while", "do"]),
            _ => false,
        });
        leaving.map(|at| self.word(at))
    }

    /// A call among the tokens that waits for another thread: inside a region, it would wait with
    /// the region's lock held.
    pub fn waits(&self, range: &Range<usize>) -> Option<&str> {
        const WAITS: [&str; 12] = [
            "wait",
            "wait_for",
            "wait_until",
            "pthread_cond_wait",
            "pthread_cond_timedwait",
            "pthread_cond_clockwait",
            "pthread_barrier_wait",
            "arrive_and_wait",
            "cnd_wait",
            "sem_wait",
            "pthread_join",
            "join",
        ];
        let is_call = |at: usize| range.contains(&(at + 1)) && self.word(at + 1) == "(";
        let at = range.clone().find(|&at| WAITS.contains(&self.word(at)) && is_call(at));
        at.map(|at| self.word(at))
    }

    /// Whether a directive to the compiler stands right before the token: it is for the statement that begins
    /// there.
    pub fn follows_pragma(&self, token: usize) -> bool {
        let before = token.checked_sub(1).map_or(0, |before| self.tokens[before].range.end);
        let between = &self.text[before..self.tokens[token].range.start];
        let directives = between.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
        directives.map(str::trim_start).any(|directive| directive.starts_with("pragma"))
    }

    /// The bytes of some tokens.
    pub fn bytes(&self, tokens: &Range<usize>) -> Range<usize> {
        self.tokens[tokens.start].range.start..self.tokens[tokens.end - 1].range.end
    }

    /// The tokens' text without white space: `pthread_mutex_lock(&lock);`.
    pub fn squeezed(&self, tokens: &Range<usize>) -> String {
        tokens.clone().map(|at| self.word(at)).collect()
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut line_is_empty = true;
    let find = |from: usize, what: &str| text[from..].find(what).map(|found| from + found);
    while at < bytes.len() {
        let rest = &text[at..];
        let first = bytes[at];
        if first == b'\n' {
            line_is_empty = true;
            at += 1;
        } else if first.is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with("//") {
            at = find(at, "\n").unwrap_or(bytes.len());
        } else if rest.starts_with("/*") {
            at = find(at + 2, "*/").map_or(bytes.len(), |end| end + 2);
        } else if first == b'#' && line_is_empty {
            // to the end of the logical line
            loop {
                let end = find(at, "\n").unwrap_or(bytes.len());
                let continued = text[at..end].trim_end().ends_with('\\');
                at = end;
                if !continued || at >= bytes.len() {
                    break;
                }
                at += 1;
            }
        } else {
            line_is_empty = false;
            let start = at;
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
            let kind = match first {
                b'"' | b'\'' => {
                    at += 1;
                    while at < bytes.len() && bytes[at] != first && bytes[at] != b'\n' {
                        at += if bytes[at] == b'\\' { 2 } else { 1 };
                    }
                    at = (at + 1).min(bytes.len());
                    while !text.is_char_boundary(at) {
                        at += 1;
                    }
                    Kind::Literal
                }
                byte if byte.is_ascii_digit() => {
                    while at < bytes.len()
                        && (is_word(bytes[at]) || bytes[at] == b'.' || bytes[at] == b'\'')
                    {
                        at += 1;
                    }
                    Kind::Literal
                }
                byte if is_word(byte) => {
                    while at < bytes.len() && is_word(bytes[at]) {
                        at += 1;
                    }
                    Kind::Word
                }
                byte => {
                    at += 1;
                    Kind::Mark(char::from(byte))
                }
            };
            tokens.push(Token { kind, range: start..at });
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#define X {\nint f(int a) { // {\n  if (a)\n    g(\"}\");\n  else { h(); }\n  \
                        for (;;) { if (a) break; i(); }\n  while (a) j();\n  return 0;\n}\n";

    fn statement(source: &Source, body: &Range<usize>, name: &str) -> Range<usize> {
        let at = source.calls(body, name)[0];
        source.statements_around(body, at, at).expect("a statement").0
    }

    #[test]
    fn statements_end_where_c_ends_them() {
        let source = Source::new(TEXT.into()).expect("brackets match");
        let body = source.body("f", Some(3)).expect("a function");
        let text = |range: Range<usize>| &source.text[source.bytes(&range)];
        assert_eq!(text(statement(&source, &body, "g")), "if (a)\n    g(\"}\");\n  else { h(); }");
        assert_eq!(text(statement(&source, &body, "h")), "h();");
        assert_eq!(text(statement(&source, &body, "i")), "i();");
        assert_eq!(text(statement(&source, &body, "j")), "while (a) j();");
    }

    #[test]
    fn a_break_leaves_only_what_does_not_contain_its_loop() {
        let source = Source::new(TEXT.into()).expect("brackets match");
        let body = source.body("f", None).expect("a function");
        let (g, j) = (source.calls(&body, "g")[0], source.calls(&body, "j")[0]);
        let (first, last) = source.statements_around(&body, g, j).expect("two statements");
        assert_eq!(source.leaves(&(first.start..last.end)), None);
        assert_eq!(source.leaves(&body), Some("return"));
        let i = statement(&source, &body, "i");
        assert_eq!(source.leaves(&(i.start - 6..i.end)), Some("break"));
    }

    #[test]
    fn a_pragma_is_for_the_statement_after_it() {
        let source = Source::new("int f() { a();\n#pragma omp atomic\n b();\n c(); }".into());
        let source = source.expect("brackets match");
        let body = source.body("f", None).expect("f");
        let after: Vec<bool> = ["a", "b", "c"]
            .map(|name| source.follows_pragma(statement(&source, &body, name).start))
            .into();
        assert_eq!(after, [false, true, false]);
    }

    #[test]
    fn brackets_that_do_not_match_are_refused() {
        assert!(Source::new("int f() { (a; }".into()).is_none());
    }
}
