//! A strict reader of the text of LLVM IR.
//!
//! Lines are read one by one. Everything that is not expected is a refusal: of the instruction where
//! that is enough, of the file otherwise. Attributes and flags are accepted by name: those that promise
//! something of a value are kept ([`Promises`], [`Manner`]), others are in lists of those that add no
//! behaviour. Metadata gives places, the types by which memory is accessed, and which loops end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::alias::{number, parts};
use super::declared::{Constness, Declared};
use super::lex::{Token, words};
use super::{
    Argument, Arithmetic, Block, Cast, Change, Comparison, Constant, Copied, Declaration, Flags,
    FloatOperation, Function, Global, Index, Instruction, Manner, Module, Op, Operand, Order,
    Parameter, Place, Promises, Refusal, Register, Struct, Type,
};
use crate::limits::DEEPEST_TYPES;
use crate::sha256;

/// Reads the IR of a source file.
pub fn read(source: &str, text: &str) -> Result<Module, Refusal> {
    let mut reader = Reader { source, ..Reader::default() };
    reader.module.files.push(source.into());
    let lines = logical_lines(text);
    reader.places(&lines);
    reader.promises(&lines);
    let declared = Declared::of(&lines);
    if let Some((name, line)) = declared.restricted() {
        let place = Place { line, ..Place::default() };
        let what = format!("the variable {name}: a restrict pointer that is no parameter");
        return Err(reader.refuse(place, what));
    }
    if let Some((name, line)) = declared.wide_bit_field() {
        let place = Place { line, ..Place::default() };
        let what = format!("the bit-field {name}, which is wider than int");
        return Err(reader.refuse(place, what));
    }
    reader.types(&lines)?;
    reader.declarations(&lines)?;
    reader.bodies(&lines, &declared)?;
    for (global, line) in
        reader.module.globals.iter_mut().zip(lines.iter().filter(|line| is_variable(line)))
    {
        let variable = line.rsplit_once("!dbg !").map(|(_, rest)| rest);
        let number = variable.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        global.padding = number.and_then(|number| declared.padding(number));
    }
    reader.module.aliases.find_padding(&declared);
    reader.module.whole_members = declared.whole_members();
    identify(&mut reader.module, text);
    Ok(reader.module)
}

fn is_variable(line: &str) -> bool {
    line.starts_with('@') && !line.starts_with("@llvm.")
}

/// Which program it is: by its IR without the lines that name folders.
fn identify(module: &mut Module, text: &str) {
    let names_folder = |line: &&str| {
        line.starts_with("; ModuleID")
            || line.starts_with("source_filename")
            || line.contains("!DIFile(")
    };
    let kept: Vec<&str> = text.lines().filter(|line| !names_folder(line)).collect();
    module.hash = sha256::hex(kept.join("\n").as_bytes());
    let quoted = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
    let begins = |start: &str| text.lines().find(|line| line.starts_with(start));
    module.target = begins("target triple = ").map(quoted).unwrap_or_default();
    let ident = begins("!llvm.ident = !{").and_then(|line| {
        let number = line.strip_prefix("!llvm.ident = !{")?.trim_end_matches('}');
        begins(&format!("{number} = "))
    });
    module.compiler = ident.map(quoted).unwrap_or_default();
}

/// Lines without comments; the cases of a `switch` are joined to its line.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match lines.last_mut() {
            Some(last) if open => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => lines.push(line.to_owned()),
        }
        let last = lines.last().map_or("", |line| line.trim());
        open = last.starts_with("switch ") && !last.contains(']');
    }
    lines
}

#[derive(Default)]
struct Reader<'a> {
    source: &'a str,
    module: Module,
    /// What the lines of named types say.
    type_lines: HashMap<String, Vec<Token>>,
    named_types: HashMap<String, Type>,
    globals: HashMap<String, u32>,
    functions: HashMap<String, u32>,
    /// Places by number of metadata.
    places: HashMap<String, Place>,
    /// What other metadata says, by number.
    metadata: HashMap<String, String>,
    /// Groups of attributes that promise that a function has no effect.
    no_effect: HashSet<String>,
}

/// What stands behind an instruction.
#[derive(Default)]
struct Ending {
    align: u64,
    /// Kinds and numbers.
    metadata: Vec<(String, String)>,
}

/// Why something is not read.
type Because<T> = Result<T, String>;

/// A cursor over the words of a line.
struct Line<'a> {
    words: &'a [Token],
    at: usize,
}

impl Line<'_> {
    fn peek(&self) -> Option<&Token> {
        self.words.get(self.at)
    }

    fn next(&mut self) -> Because<Token> {
        let token = self.words.get(self.at).cloned();
        self.at += 1;
        token.ok_or_else(|| "the line ends early".into())
    }

    /// Takes the word if it comes next.
    fn takes(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(found);
        found
    }

    fn takes_mark(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    fn mark(&mut self, mark: char) -> Because<()> {
        match self.takes_mark(mark) {
            true => Ok(()),
            false => Err(format!("`{mark}` is missing before {}", self.rest())),
        }
    }

    fn word(&mut self) -> Because<String> {
        match self.next()? {
            Token::Word(word) => Ok(word),
            other => Err(format!("`{other}` is not expected")),
        }
    }

    fn rest(&self) -> String {
        match self.peek() {
            Some(token) => format!("`{token}`"),
            None => "the end of the line".into(),
        }
    }

    fn number(&mut self) -> Because<u64> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("`{word}` is no number"))
    }

    /// What may stand at the end of an instruction: alignment, metadata, attribute groups.
    fn end(&mut self) -> Because<Ending> {
        let mut ending = Ending::default();
        loop {
            match self.peek() {
                None => return Ok(ending),
                Some(Token::Attributes(_)) => self.at += 1,
                Some(Token::Mark(',')) => {
                    self.at += 1;
                    match self.next()? {
                        Token::Word(word) if word == "align" => ending.align = self.number()?,
                        Token::Metadata(kind) => match self.next()? {
                            Token::Metadata(number) => ending.metadata.push((kind, number)),
                            other => return Err(format!("`{other}` is not expected")),
                        },
                        other => return Err(format!("`{other}` is not expected")),
                    }
                }
                Some(other) => return Err(format!("`{other}` is not expected")),
            }
        }
    }
}

/// Attributes of values and functions that add no behaviour, and promise nothing that a program of C
/// could break without doing something else that has no meaning.
const HARMLESS: [&str; 15] = [
    "writable",
    "dead_on_unwind",
    "signext",
    "zeroext",
    "returned",
    "nofree",
    "immarg",
    "unnamed_addr",
    "local_unnamed_addr",
    "dso_local",
    "dso_preemptable",
    "noreturn",
    "nounwind",
    "nobuiltin",
    "noext",
];

/// Kinds of metadata that are understood, or say nothing about what an instruction does.
const METADATA: [&str; 9] =
    ["dbg", "tbaa", "tbaa.struct", "range", "noundef", "llvm.loop", "srcloc", "nosanitize", "prof"];

impl<'a> Reader<'a> {
    fn refuse(&self, place: Place, what: impl Into<String>) -> Refusal {
        Refusal { place: self.module.show(place), what: what.into() }
    }

    fn file_refusal(&self, what: impl Into<String>) -> Refusal {
        self.refuse(Place::default(), what)
    }

    fn words(&self, line: &str) -> Result<Vec<Token>, Refusal> {
        words(line)
            .ok_or_else(|| self.file_refusal(format!("the IR has a line that is none: {line}")))
    }

    // ---- places ----

    /// The places that metadata stands for.
    fn places(&mut self, lines: &[String]) {
        let mut files: HashMap<&str, u32> = HashMap::new();
        let mut scopes: HashMap<&str, &str> = HashMap::new();
        let entries = || {
            lines.iter().filter_map(|line| {
                let (number, content) = line.strip_prefix('!')?.split_once(" = ")?;
                Some((number, content.strip_prefix("distinct ").unwrap_or(content)))
            })
        };
        for (number, content) in entries() {
            if let Some(rest) = content.strip_prefix("!DIFile(filename: \"") {
                let name = rest.split('"').next().unwrap_or_default();
                let file = match self.source.ends_with(name) || name.ends_with(self.source) {
                    true => 0,
                    false => {
                        self.module.files.push(name.into());
                        self.module.files.len() as u32 - 1
                    }
                };
                files.insert(number, file);
            } else if content.starts_with("!DISubprogram") || content.starts_with("!DILexicalBlock")
            {
                scopes.insert(number, content);
            }
        }
        for (number, content) in entries() {
            if !content.starts_with("!DILocation(") && !content.starts_with("!DISubprogram(") {
                continue;
            }
            let line = field(content, "line: ").and_then(|n| n.parse().ok()).unwrap_or(0);
            let column = field(content, "column: ").and_then(|n| n.parse().ok()).unwrap_or(0);
            let scope = field(content, "scope: !").and_then(|scope| scopes.get(scope).copied());
            let file = scope.or(Some(content)).and_then(|scope| field(scope, "file: !"));
            let file = file.and_then(|file| files.get(file).copied()).unwrap_or(0);
            self.places.insert(number.to_owned(), Place { file, line, column });
        }
    }

    /// Metadata of other kinds, and groups of attributes.
    fn promises(&mut self, lines: &[String]) {
        for line in lines {
            if let Some((number, content)) =
                line.strip_prefix('!').and_then(|l| l.split_once(" = "))
            {
                let content = content.strip_prefix("distinct ").unwrap_or(content);
                if content.starts_with("!{") {
                    self.metadata.insert(number.to_owned(), content.to_owned());
                }
            } else if let Some((group, content)) =
                line.strip_prefix("attributes #").and_then(|line| line.split_once(" = "))
                && (content.contains(" memory(") || content.contains(" willreturn "))
            {
                self.no_effect.insert(group.to_owned());
            }
        }
    }

    /// The place that the words of a line name.
    fn place(&self, words: &[Token]) -> Place {
        let named = words.windows(2).find_map(|pair| match pair {
            [Token::Metadata(kind), Token::Metadata(number)] if kind == "dbg" => Some(number),
            _ => None,
        });
        named.and_then(|number| self.places.get(number).copied()).unwrap_or_default()
    }

    /// Where the first of these symbols is defined as a function, or else used first.
    fn place_of_first(&self, lines: &[String], words: &[Token]) -> Place {
        let named = words.iter().find_map(|word| match word {
            Token::Global(name) => Some(format!("@{name}")),
            _ => None,
        });
        let Some(name) = named else { return Place::default() };
        let is_named = |line: &&String| {
            line.match_indices(&name).any(|(at, _)| {
                let behind = line[at + name.len()..].chars().next();
                behind.is_none_or(|c| !(c.is_alphanumeric() || "_.$".contains(c)))
            })
        };
        let define =
            |line: &&String| line.starts_with("define ") && line.contains(&format!("{name}("));
        let defined = lines.iter().find(define);
        let used = || lines.iter().filter(|line| line.starts_with(' ')).find(is_named);
        let found = defined.or_else(used).and_then(|line| super::lex::words(line));
        found.map(|words| self.place(&words)).unwrap_or_default()
    }

    // ---- types ----

    fn types(&mut self, lines: &[String]) -> Result<(), Refusal> {
        for line in lines.iter().filter(|line| line.starts_with('%')) {
            let words = self.words(line)?;
            match words.as_slice() {
                [Token::Local(name), Token::Mark('='), Token::Word(word), rest @ ..]
                    if word == "type" =>
                {
                    self.type_lines.insert(name.clone(), rest.to_vec());
                }
                _ => {
                    return Err(
                        self.file_refusal(format!("the IR has a line that is none: {line}"))
                    );
                }
            }
        }
        Ok(())
    }

    fn kind(&mut self, line: &mut Line<'_>, depth: usize) -> Because<Type> {
        if depth > DEEPEST_TYPES {
            return Err("types are nested too deeply".into());
        }
        Ok(match line.next()? {
            Token::Word(word) => match word.as_str() {
                "void" => Type::Void,
                "ptr" => Type::Pointer,
                "half" => Type::Float { size: 2, name: "half" },
                "bfloat" => Type::Float { size: 2, name: "bfloat" },
                "float" => Type::Float { size: 4, name: "float" },
                "double" => Type::Float { size: 8, name: "double" },
                "x86_fp80" => Type::Float { size: 16, name: "long double" },
                "fp128" => Type::Float { size: 16, name: "__float128" },
                "opaque" => Type::Refused("an incomplete type".into()),
                _ => match word.strip_prefix('i').and_then(|bits| bits.parse::<u32>().ok()) {
                    Some(bits @ 1..=128) => Type::Integer(bits),
                    Some(_) => {
                        Type::Refused(format!("an integer of more than 128 bits ({word})").into())
                    }
                    None => return Err(format!("`{word}` is no type that is known")),
                },
            },
            Token::Local(name) => {
                if let Some(known) = self.named_types.get(&name) {
                    return Ok(known.clone());
                }
                let Some(words) = self.type_lines.get(&name).cloned() else {
                    return Err(format!("`%{name}` is no type that is known"));
                };
                let mut inner = Line { words: &words, at: 0 };
                let kind = self.kind(&mut inner, depth + 1)?;
                inner.end()?;
                let kind = match kind {
                    Type::Struct(fields) => Type::Struct(Arc::new(Struct {
                        declared: name.starts_with("struct."),
                        ..(*fields).clone()
                    })),
                    other => other,
                };
                self.named_types.insert(name, kind.clone());
                kind
            }
            Token::Mark('[') => {
                let (length, element) = self.elements(line, depth, ']')?;
                Type::Array(length, Arc::new(element))
            }
            Token::Mark('{') => self.fields(line, false, depth)?,
            Token::Mark('<') if line.takes_mark('{') => {
                let kind = self.fields(line, true, depth)?;
                line.mark('>')?;
                kind
            }
            Token::Mark('<') => {
                let (length, element) = self.elements(line, depth, '>')?;
                Type::Refused(format!("a vector of {length} x {}", element.show()).into())
            }
            other => return Err(format!("`{other}` is no type that is known")),
        })
    }

    /// `4 x i32`, up to the mark that ends it.
    fn elements(&mut self, line: &mut Line<'_>, depth: usize, end: char) -> Because<(u64, Type)> {
        let length = line.number()?;
        if !line.takes("x") {
            return Err("elements without a type".into());
        }
        let element = self.kind(line, depth + 1)?;
        line.mark(end)?;
        Ok((length, element))
    }

    fn fields(&mut self, line: &mut Line<'_>, packed: bool, depth: usize) -> Because<Type> {
        let mut fields = Vec::new();
        while !line.takes_mark('}') {
            if !fields.is_empty() {
                line.mark(',')?;
            }
            fields.push(self.kind(line, depth + 1)?);
        }
        Ok(Type::Struct(Arc::new(Struct { fields, packed, declared: false })))
    }

    // ---- globals and signatures ----

    /// Names first: constants and calls may speak of what comes later.
    fn declarations(&mut self, lines: &[String]) -> Result<(), Refusal> {
        let mut globals = Vec::new();
        for line in lines {
            if line.starts_with('@') {
                let words = self.words(line)?;
                let Some(Token::Global(name)) = words.first() else {
                    return Err(self.file_refusal("a global without a name"));
                };
                match name.as_str() {
                    "llvm.used" | "llvm.compiler.used" => continue,
                    "llvm.global_ctors" => {
                        let place = self.place_of_first(lines, &words[1..]);
                        return Err(self.refuse(place, "a function with the attribute constructor"));
                    }
                    "llvm.global_dtors" => {
                        let place = self.place_of_first(lines, &words[1..]);
                        return Err(self.refuse(place, "a function with the attribute destructor"));
                    }
                    _ => {}
                }
                let id = globals.len() as u32;
                self.globals.insert(name.clone(), id);
                globals.push(words);
            } else if line.starts_with("define ") || line.starts_with("declare ") {
                let words = self.words(line)?;
                let mut cursor = Line { words: &words, at: 1 };
                let place = match self.place(&words) {
                    Place { line: 0, .. } => self.place_of_first(lines, &words),
                    place => place,
                };
                let function = self
                    .signature(&mut cursor)
                    .map_err(|why| self.refuse(place, format!("a function: {why}")))?;
                let id = self.module.functions.len() as u32;
                self.functions.insert(function.name.to_string(), id);
                self.module.functions.push(function);
            } else if line.starts_with("module asm") {
                return Err(self.file_refusal("assembly outside functions"));
            } else if line.starts_with("target ") {
                let ours = line.contains("e-m:e-") || line.contains("x86_64-");
                if !ours {
                    return Err(self.file_refusal(format!("another machine than x86-64: {line}")));
                }
            }
        }
        for words in globals {
            let mut cursor = Line { words: &words, at: 2 };
            let name = words[0].to_string();
            let global = self.global(&words[0], &mut cursor).map_err(|why| {
                let target = self.place_of_first(lines, &words[1..]);
                let place = match target.line {
                    0 => self.place_of_first(lines, &words),
                    _ => target,
                };
                self.refuse(place, format!("the variable or function {name}: {why}"))
            })?;
            self.module.globals.push(global);
        }
        Ok(())
    }

    fn global(&mut self, name: &Token, line: &mut Line<'_>) -> Because<Global> {
        let Token::Global(name) = name else { return Err("it has no name".into()) };
        let mut external = false;
        let (mut thread_local, mut unnamed) = (false, false);
        let constant = loop {
            match line.next()? {
                Token::Word(word) => match word.as_str() {
                    "global" => break false,
                    "constant" => break true,
                    "external" => external = true,
                    "private" | "internal" | "common" | "weak" | "weak_odr" | "linkonce"
                    | "linkonce_odr" | "dso_local" | "dso_preemptable" | "local_unnamed_addr"
                    | "hidden" | "protected" | "default" => {}
                    "unnamed_addr" => unnamed = true,
                    "thread_local" => {
                        thread_local = true;
                        if line.peek() == Some(&Token::Mark('(')) {
                            skip_parentheses(line)?;
                        }
                    }
                    "alias" | "ifunc" => return Err(format!("the attribute {word}")),
                    "extern_weak" => return Err("weak, and defined elsewhere".into()),
                    other => return Err(format!("`{other}`")),
                },
                other => return Err(format!("`{other}`")),
            }
        };
        let content = self.kind(line, 0)?;
        let initial = match external {
            true => None,
            false => Some(self.constant(&content, line, 0)?),
        };
        let name = name.as_str().into();
        let mergeable = unnamed && constant;
        let rest = line.words.get(line.at..).unwrap_or_default();
        let align = rest.windows(2).find_map(|pair| match pair {
            [Token::Word(word), Token::Word(number)] if word == "align" => number.parse().ok(),
            _ => None,
        });
        let align = align.unwrap_or(1);
        let padding = None;
        Ok(Global { name, content, initial, constant, thread_local, mergeable, align, padding })
    }

    /// What is passed by value, and what is promised.
    fn attributes(&mut self, line: &mut Line<'_>) -> Because<(Option<Type>, Promises)> {
        let mut by_value = None;
        let mut promises = Promises::default();
        let mut is_result = false;
        loop {
            let word = match line.peek() {
                Some(Token::Word(word)) => word.clone(),
                _ if is_result => return Ok((None, Promises::default())),
                _ => return Ok((by_value, promises)),
            };
            line.at += 1;
            match word.as_str() {
                "noundef" => promises.defined = true,
                "nonnull" => promises.not_null = true,
                "noalias" => promises.alone = true,
                "dereferenceable" => {
                    line.mark('(')?;
                    promises.bytes = line.number()?;
                    line.mark(')')?;
                }
                "align" => {
                    let parenthesis = line.takes_mark('(');
                    promises.align = line.number()?;
                    if parenthesis {
                        line.mark(')')?;
                    }
                }
                "byval" => {
                    line.mark('(')?;
                    by_value = Some(self.kind(line, 0)?);
                    line.mark(')')?;
                }
                "nocapture" | "readonly" | "readnone" | "writeonly" => promises.unchecked = true,
                "captures" => {
                    promises.unchecked = true;
                    skip_parentheses(line)?;
                }
                // clang's own promises, of a place for the result that it has chosen
                "sret" => {
                    skip_parentheses(line)?;
                    is_result = true;
                }
                word if HARMLESS.contains(&word) => {}
                _ => {
                    line.at -= 1;
                    return Ok((by_value, promises));
                }
            }
        }
    }

    /// From behind `define` or `declare` to the parameters.
    fn signature(&mut self, line: &mut Line<'_>) -> Because<Function> {
        loop {
            match line.peek() {
                Some(Token::Word(word)) if word == "extern_weak" => {
                    return Err("weak, and defined elsewhere".into());
                }
                // a declaration has its place in front
                Some(Token::Metadata(_)) => line.at += 1,
                Some(Token::Word(word))
                    if matches!(
                        word.as_str(),
                        "private"
                            | "internal"
                            | "weak"
                            | "weak_odr"
                            | "linkonce"
                            | "linkonce_odr"
                            | "hidden"
                            | "protected"
                            | "default"
                            | "external"
                    ) =>
                {
                    line.at += 1;
                }
                _ => break,
            }
        }
        let (_, first) = self.attributes(line)?;
        // `dso_local hidden`: visibility may stand behind
        while line.takes("hidden") || line.takes("protected") {}
        let (_, promises) = self.attributes(line)?;
        let result = self.kind(line, 0)?;
        let Token::Global(name) = line.next()? else { return Err("it has no name".into()) };
        line.mark('(')?;
        let mut function = Function {
            name: name.into(),
            parameters: Vec::new(),
            result,
            variadic: false,
            blocks: Vec::new(),
            registers: Vec::new(),
            promises: first.and(promises),
            no_effect: false,
            padding: HashMap::new(),
            declared: HashMap::new(),
        };
        while !line.takes_mark(')') {
            if !function.parameters.is_empty() {
                line.mark(',')?;
            }
            if line.peek() == Some(&Token::Dots) {
                line.at += 1;
                function.variadic = true;
                line.mark(')')?;
                break;
            }
            if matches!(line.peek(), Some(Token::Word(word)) if word == "metadata") {
                line.at += 1;
                continue;
            }
            let kind = self.kind(line, 0)?;
            let (by_value, promises) = self.attributes(line)?;
            let register = function.registers.len() as Register;
            let name = match line.peek() {
                Some(Token::Local(name)) => {
                    let name = name.clone();
                    line.at += 1;
                    name
                }
                _ => register.to_string(),
            };
            function.registers.push(name.into());
            function.parameters.push(Parameter { register, kind, by_value, promises });
        }
        for token in &line.words[line.at.min(line.words.len())..] {
            if let Token::Word(word) = token
                && matches!(word.as_str(), "gc" | "personality" | "prefix" | "prologue" | "section")
            {
                return Err(format!("`{word}`"));
            }
            function.no_effect |= self.promises_no_effect(token);
        }
        Ok(function)
    }

    fn promises_no_effect(&self, token: &Token) -> bool {
        matches!(token, Token::Attributes(group) if self.no_effect.contains(group))
    }

    // ---- constants ----

    fn constant(&mut self, kind: &Type, line: &mut Line<'_>, depth: usize) -> Because<Constant> {
        if depth > DEEPEST_TYPES {
            return Err("constants are nested too deeply".into());
        }
        Ok(match line.next()? {
            Token::Global(name) => self.address(&name)?,
            Token::Bytes(bytes) => Constant::Bytes(bytes.into()),
            Token::Mark(open @ ('[' | '{' | '<')) => {
                let mut close = vec![match open {
                    '[' => ']',
                    '{' => '}',
                    _ => '>',
                }];
                if open == '<' {
                    if !line.takes_mark('{') {
                        return Err("a constant vector".into());
                    }
                    close = vec!['}', '>'];
                }
                let mut parts = Vec::new();
                while !line.takes_mark(close[0]) {
                    if !parts.is_empty() {
                        line.mark(',')?;
                    }
                    let kind = self.kind(line, 0)?;
                    let part = self.constant(&kind, line, depth + 1)?;
                    parts.push((kind, part));
                }
                if let Some(&mark) = close.get(1) {
                    line.mark(mark)?;
                }
                Constant::Aggregate(parts.into())
            }
            Token::Word(word) => match word.as_str() {
                "null" | "zeroinitializer" => Constant::Zero,
                "true" => Constant::Integer(1),
                "false" => Constant::Integer(0),
                "undef" => Constant::Undefined,
                "poison" => Constant::Refused("a value that the compiler calls poison".into()),
                "getelementptr" => self.constant_address(line, depth)?,
                "sub" | "add" => self.constant_sum(&word, line, depth)?,
                "ptrtoint" | "inttoptr" | "bitcast" => {
                    line.mark('(')?;
                    let from = self.kind(line, 0)?;
                    let inner = self.constant(&from, line, depth + 1)?;
                    if !line.takes("to") {
                        return Err("a cast without a type".into());
                    }
                    let to = self.kind(line, 0)?;
                    line.mark(')')?;
                    match (from.size(), to.size()) {
                        // the offset of a member, as macros compute it
                        (Some(8), Some(8))
                            if word == "ptrtoint" && behind_null(&inner).is_some() =>
                        {
                            Constant::Integer(behind_null(&inner).unwrap_or(0) as u64 as u128)
                        }
                        (Some(8), Some(8)) => Constant::Same(Arc::new(inner)),
                        _ => {
                            Constant::Refused(format!("a constant {word} to {}", to.show()).into())
                        }
                    }
                }
                _ => match kind {
                    Type::Integer(bits) => {
                        let value: i128 = match word.strip_prefix('-') {
                            Some(_) => {
                                word.parse().map_err(|_| format!("`{word}` is no integer"))?
                            }
                            None => word
                                .parse::<u128>()
                                .map_err(|_| format!("`{word}` is no constant that is known"))?
                                as i128,
                        };
                        Constant::Integer(mask(value as u128, *bits))
                    }
                    Type::Float { size, .. } => float_constant(&word, *size),
                    _ => return Err(format!("`{word}` is no constant that is known")),
                },
            },
            other => return Err(format!("`{other}` is no constant that is known")),
        })
    }

    fn address(&self, name: &str) -> Because<Constant> {
        let global = self.globals.get(name).map(|&id| Constant::Global(id));
        let function = || self.functions.get(name).map(|&id| Constant::Function(id));
        global.or_else(function).ok_or_else(|| format!("`@{name}` is not declared"))
    }

    /// `sub (i64 0, i64 24)`
    fn constant_sum(&mut self, word: &str, line: &mut Line<'_>, depth: usize) -> Because<Constant> {
        while line.takes("nsw") || line.takes("nuw") {}
        line.mark('(')?;
        let mut values = [0_i128; 2];
        let mut bits = 0;
        for (place, value) in values.iter_mut().enumerate() {
            if place > 0 {
                line.mark(',')?;
            }
            bits = self.integer(line)?;
            match self.constant(&Type::Integer(bits), line, depth + 1)? {
                Constant::Integer(number) => *value = signed(number, bits),
                Constant::Zero => {}
                _ => return Err(format!("a constant `{word}` of addresses")),
            }
        }
        line.mark(')')?;
        let [a, b] = values;
        let result = if word == "sub" { a.wrapping_sub(b) } else { a.wrapping_add(b) };
        Ok(Constant::Integer(mask(result as u128, bits)))
    }

    /// `getelementptr inbounds (TYPE, ptr BASE, i64 1, ...)`
    fn constant_address(&mut self, line: &mut Line<'_>, depth: usize) -> Because<Constant> {
        while line.takes("inbounds") || line.takes("nuw") || line.takes("nusw") {}
        line.mark('(')?;
        let mut kind = self.kind(line, 0)?;
        line.mark(',')?;
        let pointer = self.kind(line, 0)?;
        let base = self.constant(&pointer, line, depth + 1)?;
        let mut offset: i128 = 0;
        let mut first = true;
        while line.takes_mark(',') {
            let index_kind = self.kind(line, 0)?;
            let Type::Integer(bits) = index_kind else {
                return Err("an index is no integer".into());
            };
            let Constant::Integer(index) = self.constant(&index_kind, line, depth + 1)? else {
                return Err("an index is no number".into());
            };
            let index = signed(index, bits);
            if std::mem::take(&mut first) {
                offset += index * i128::from(kind.size().ok_or("a type without a size")?);
                continue;
            }
            let (step, inner) = step_into(&kind, index)?;
            offset += step;
            kind = inner;
        }
        line.mark(')')?;
        let offset = i64::try_from(offset).map_err(|_| "an address far away".to_owned())?;
        Ok(match base {
            Constant::Behind(base, before) => Constant::Behind(base, before.wrapping_add(offset)),
            base => Constant::Behind(Arc::new(base), offset),
        })
    }

    // ---- bodies ----

    fn bodies(&mut self, lines: &[String], declared: &Declared<'_>) -> Result<(), Refusal> {
        let mut defined = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            if line.starts_with("define ") {
                let words = self.words(line)?;
                let name = words.iter().find_map(|word| match word {
                    Token::Global(name) => self.functions.get(name).copied(),
                    _ => None,
                });
                defined.push((number, name.unwrap_or_default(), self.place(&words)));
            }
        }
        for (first, id, place) in defined {
            let length = lines[first..].iter().position(|line| line == "}");
            let Some(length) = length else {
                return Err(self.refuse(place, "a function that does not end"));
            };
            let body = &lines[first + 1..first + length];
            let function = self.module.functions[id as usize].clone();
            let function = self
                .body(function, body, place, declared)
                .map_err(|why| self.refuse(place, format!("a function: {why}")))?;
            self.module.functions[id as usize] = function;
        }
        Ok(())
    }

    fn body(
        &mut self,
        function: Function,
        lines: &[String],
        place: Place,
        declared: &Declared<'_>,
    ) -> Because<Function> {
        let mut body = Body { registers: HashMap::new(), blocks: HashMap::new(), function };
        for (register, name) in body.function.registers.iter().enumerate() {
            body.registers.insert(name.to_string(), register as Register);
        }
        // names first
        let mut parsed: Vec<Vec<Vec<Token>>> = Vec::new();
        let mut constants: HashSet<String> = HashSet::new();
        let (mut paddings, mut declared_at) = (Vec::new(), Vec::new());
        for line in lines {
            let trimmed = line.trim();
            if let Some((local, rest)) =
                trimmed.strip_prefix("#dbg_declare(ptr %").and_then(|rest| rest.split_once(", !"))
            {
                let variable = rest.split(',').next().unwrap_or_default();
                let place = rest.rsplit_once('!').map(|(_, number)| number.trim_end_matches(')'));
                if let Some(place) = place.and_then(|number| self.places.get(number)) {
                    let before = parsed.last().map_or(0, Vec::len);
                    let declaration = Declaration {
                        spot: (place.line, place.column),
                        block: parsed.len().saturating_sub(1),
                        at: before,
                    };
                    declared_at.push((local.trim_matches('"').to_owned(), declaration));
                }
                if let Some(padding) = declared.padding(variable) {
                    paddings.push((local.trim_matches('"').to_owned(), padding));
                }
                match declared.constness(variable) {
                    Constness::No => {}
                    Constness::Scalar => {
                        constants.insert(local.trim_matches('"').to_owned());
                    }
                    Constness::Parts => self.module.constant_parts = true,
                }
            }
            if trimmed.is_empty() || trimmed.starts_with(';') || trimmed.starts_with("#dbg_") {
                continue;
            }
            let words = words(line).ok_or_else(|| format!("a line that is none: {line}"))?;
            let label = match words.as_slice() {
                [Token::Word(name) | Token::Text(name), Token::Mark(':')] => Some(name.clone()),
                _ => None,
            };
            if let Some(name) = label {
                body.blocks.insert(name, parsed.len() as u32);
                parsed.push(Vec::new());
                continue;
            }
            if parsed.is_empty() {
                // the entry has a number that nobody speaks of
                body.blocks.insert(body.function.registers.len().to_string(), 0);
                parsed.push(Vec::new());
            }
            if let [Token::Local(name), Token::Mark('='), ..] = words.as_slice() {
                let register = body.function.registers.len() as Register;
                body.registers.insert(name.clone(), register);
                body.function.registers.push(name.as_str().into());
            }
            parsed.last_mut().into_iter().for_each(|block| block.push(words.clone()));
        }
        let mut blocks = Vec::new();
        for block in &parsed {
            let mut instructions = Vec::new();
            for words in block {
                let place_of_words = self.place(words);
                let place = if place_of_words.line == 0 { place } else { place_of_words };
                let (result, words) = match words.as_slice() {
                    [Token::Local(name), Token::Mark('='), rest @ ..] => {
                        (body.registers.get(name).copied(), rest)
                    }
                    words => (None, words),
                };
                let mut line = Line { words, at: 0 };
                let mut must_end = false;
                let op = self.op(&body, &mut line).and_then(|mut op| {
                    let ending = line.end()?;
                    must_end = self.must_end(&ending);
                    self.complete(&mut op, &ending)?;
                    let name = result.map(|register| &*body.function.registers[register as usize]);
                    if let (Op::Allocate { constant, .. }, Some(name)) = (&mut op, name) {
                        *constant = constants.contains(name);
                    }
                    Ok(op)
                });
                let op = op.unwrap_or_else(|why| {
                    let name = words.first().map(ToString::to_string).unwrap_or_default();
                    Op::Refused(format!("the instruction {name}: {why}").into())
                });
                instructions.push(Instruction { op, result, place, must_end });
            }
            let ends = instructions.last().is_some_and(|last: &Instruction| {
                matches!(
                    last.op,
                    Op::Jump(_)
                        | Op::Branch { .. }
                        | Op::Switch { .. }
                        | Op::Return(_)
                        | Op::Unreachable
                        | Op::Refused(_)
                )
            });
            if !ends {
                return Err("a block that does not end".into());
            }
            blocks.push(Block { instructions });
        }
        body.function.blocks = blocks;
        for (local, declaration) in declared_at {
            if let Some(&register) = body.registers.get(&local) {
                body.function.declared.insert(register, declaration);
            }
        }
        for (local, padding) in paddings {
            if let Some(&register) = body.registers.get(&local) {
                body.function.padding.insert(register, padding);
            }
        }
        Ok(body.function)
    }

    /// Does C let compilers assume that the loop ends whose jump back this is?
    fn must_end(&self, ending: &Ending) -> bool {
        ending.metadata.iter().filter(|(kind, _)| kind == "llvm.loop").any(|(_, number)| {
            let said = self.metadata.get(number).map(|content| parts(content)).unwrap_or_default();
            said.iter().any(|part| {
                let part = part.strip_prefix('!').and_then(|part| self.metadata.get(part));
                part.is_some_and(|part| part.contains("llvm.loop.mustprogress"))
            })
        })
    }

    /// What stands behind an instruction belongs to it.
    fn complete(&mut self, op: &mut Op, ending: &Ending) -> Because<()> {
        let named = |kind: &str| ending.metadata.iter().find(|(name, _)| name == kind);
        let odd = ending.metadata.iter().find(|(kind, _)| !METADATA.contains(&kind.as_str()));
        if let Some((kind, _)) = odd {
            return Err(format!("metadata of the kind {kind}"));
        }
        match op {
            Op::Load { manner, .. } | Op::Store { manner, .. } => {
                manner.align = ending.align;
                if let Some((_, number)) = named("tbaa") {
                    manner.tag = self.module.aliases.tag(&self.metadata, number)?;
                    manner.character = manner.tag.is_none();
                }
                if let Some((_, number)) = named("range") {
                    manner.below = Some(self.range(number)?);
                }
            }
            Op::Allocate { align, .. } | Op::Modify { align, .. } | Op::Exchange { align, .. } => {
                *align = ending.align;
            }
            Op::Call { fields, .. } => {
                if let Some((_, number)) = named("tbaa.struct") {
                    *fields = Some(self.copied(number)?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// `!{i8 0, i8 2}`: from zero to below this.
    fn range(&self, number: &str) -> Because<u128> {
        let content = self.metadata.get(number).map(|content| parts(content)).unwrap_or_default();
        let value = |part: &str| part.split(' ').nth(1)?.parse::<u128>().ok();
        match content[..] {
            [low, high] if value(low) == Some(0) => value(high),
            _ => None,
        }
        .ok_or_else(|| "values of a range that does not begin with zero".to_owned())
    }

    /// What a copy of a structure copies.
    fn copied(&mut self, name: &str) -> Because<Arc<[Copied]>> {
        let odd = || "a copy of an odd structure".to_owned();
        let content = self.metadata.get(name).ok_or_else(odd)?.clone();
        let mut fields = Vec::new();
        for field in parts(&content).chunks(3) {
            let [offset, length, tag] = field else { return Err(odd()) };
            let tag = tag.strip_prefix('!').ok_or_else(odd)?;
            let tag = self.module.aliases.tag(&self.metadata, tag)?;
            fields.push((number(offset).ok_or_else(odd)?, number(length).ok_or_else(odd)?, tag));
        }
        Ok(fields.into())
    }

    fn operand(&mut self, body: &Body, kind: &Type, line: &mut Line<'_>) -> Because<Operand> {
        if let Some(Token::Local(name)) = line.peek() {
            let register = body.registers.get(name).copied();
            let register = register.ok_or_else(|| format!("`%{name}` is not defined"))?;
            line.at += 1;
            return Ok(Operand::Register(register));
        }
        Ok(Operand::Constant(self.constant(kind, line, 0)?))
    }

    /// A type and a value of it.
    fn typed(&mut self, body: &Body, line: &mut Line<'_>) -> Because<(Type, Operand)> {
        let kind = self.kind(line, 0)?;
        let value = self.operand(body, &kind, line)?;
        Ok((kind, value))
    }

    fn integer(&mut self, line: &mut Line<'_>) -> Because<u32> {
        match self.kind(line, 0)? {
            Type::Integer(bits) => Ok(bits),
            other => Err(format!("the type {}", other.show())),
        }
    }

    fn op(&mut self, body: &Body, line: &mut Line<'_>) -> Because<Op> {
        let mut name = line.word()?;
        while matches!(name.as_str(), "tail" | "musttail" | "notail") {
            name = line.word()?;
        }
        if let Some(operation) = arithmetic(&name) {
            let flags = flags(line);
            let bits = self.integer(line)?;
            let left = self.operand(body, &Type::Integer(bits), line)?;
            line.mark(',')?;
            let right = self.operand(body, &Type::Integer(bits), line)?;
            return Ok(Op::Binary { operation, bits, left, right, flags });
        }
        if let Some(operation) = float_operation(&name) {
            line.takes("nneg");
            let (from, first) = self.typed(body, line)?;
            let mut operands = vec![first];
            let to = match line.takes("to") {
                true => self.kind(line, 0)?,
                false => from.clone(),
            };
            while line.takes_mark(',') {
                if matches!(line.peek(), Some(Token::Metadata(_))) {
                    line.at -= 1;
                    break;
                }
                operands.push(self.operand(body, &from, line)?);
            }
            return Ok(Op::Float { operation, from, to, operands });
        }
        let cast = match name.as_str() {
            "trunc" => Some(Cast::Truncate),
            "zext" => Some(Cast::ZeroExtend),
            "sext" => Some(Cast::SignExtend),
            "ptrtoint" | "inttoptr" | "bitcast" => Some(Cast::Same),
            _ => None,
        };
        if let Some(cast) = cast {
            let flags = flags(line);
            let (from, value) = self.typed(body, line)?;
            if !line.takes("to") {
                return Err("a cast without a type".into());
            }
            let to = self.kind(line, 0)?;
            let whole = |kind: &Type| matches!(kind, Type::Integer(_) | Type::Pointer);
            if !whole(&from) || !whole(&to) || cast == Cast::Same && from.size() != to.size() {
                return Err(format!("from {} to {}", from.show(), to.show()));
            }
            return Ok(Op::Convert { cast, from, to, value, flags });
        }
        match name.as_str() {
            "alloca" => self.allocate(body, line),
            "load" => {
                let atomic = line.takes("atomic");
                let manner = Manner { volatile: line.takes("volatile"), ..Manner::default() };
                let kind = self.kind(line, 0)?;
                line.mark(',')?;
                let (_, from) = self.typed(body, line)?;
                let order = if atomic { Some(order(line)?) } else { None };
                Ok(Op::Load { kind, from, order, manner })
            }
            "store" => {
                let atomic = line.takes("atomic");
                let manner = Manner { volatile: line.takes("volatile"), ..Manner::default() };
                let (kind, value) = self.typed(body, line)?;
                line.mark(',')?;
                let (_, to) = self.typed(body, line)?;
                let order = if atomic { Some(order(line)?) } else { None };
                Ok(Op::Store { kind, value, to, order, manner })
            }
            "icmp" => {
                line.takes("samesign");
                let word = line.word()?;
                let comparison = comparison(&word).ok_or_else(|| format!("`{word}`"))?;
                let (kind, left) = self.typed(body, line)?;
                if !matches!(kind, Type::Integer(_) | Type::Pointer) {
                    return Err(format!("the type {}", kind.show()));
                }
                line.mark(',')?;
                let right = self.operand(body, &kind, line)?;
                Ok(Op::Compare { comparison, kind, left, right })
            }
            "fcmp" => {
                let word = line.word()?;
                let operation = float_comparison(&word).ok_or_else(|| format!("`{word}`"))?;
                let (from, left) = self.typed(body, line)?;
                line.mark(',')?;
                let right = self.operand(body, &from, line)?;
                let operands = vec![left, right];
                Ok(Op::Float { operation, from, to: Type::Integer(1), operands })
            }
            "getelementptr" => self.element(body, line),
            "select" => {
                let (_, condition) = self.typed(body, line)?;
                line.mark(',')?;
                let (kind, yes) = self.typed(body, line)?;
                line.mark(',')?;
                let (_, no) = self.typed(body, line)?;
                Ok(Op::Select { condition, kind, yes, no })
            }
            "phi" => {
                let kind = self.kind(line, 0)?;
                let mut incoming = Vec::new();
                loop {
                    line.mark('[')?;
                    let value = self.operand(body, &kind, line)?;
                    line.mark(',')?;
                    let block = body.block(line)?;
                    line.mark(']')?;
                    incoming.push((value, block));
                    if !matches!(
                        line.words.get(line.at..line.at + 2),
                        Some([Token::Mark(','), Token::Mark('[')])
                    ) {
                        break;
                    }
                    line.at += 1;
                }
                Ok(Op::Phi { kind, incoming })
            }
            "call" => self.call(body, line),
            "extractvalue" => {
                let (kind, value) = self.typed(body, line)?;
                line.mark(',')?;
                let index = line.number()? as u32;
                Ok(Op::Extract { kind, value, index })
            }
            "insertvalue" => {
                let (kind, value) = self.typed(body, line)?;
                line.mark(',')?;
                let (field_kind, field) = self.typed(body, line)?;
                line.mark(',')?;
                let index = line.number()? as u32;
                Ok(Op::Insert { kind, value, field_kind, field, index })
            }
            "atomicrmw" => {
                line.takes("volatile");
                let word = line.word()?;
                let change = change(&word).ok_or_else(|| format!("`{word}`"))?;
                let (_, at) = self.typed(body, line)?;
                line.mark(',')?;
                let (kind, value) = self.typed(body, line)?;
                let order = order(line)?;
                Ok(Op::Modify { change, kind, at, value, order, align: 1 })
            }
            "cmpxchg" => {
                let weak = line.takes("weak");
                line.takes("volatile");
                let (_, at) = self.typed(body, line)?;
                line.mark(',')?;
                let (kind, expected) = self.typed(body, line)?;
                line.mark(',')?;
                let (_, new) = self.typed(body, line)?;
                let orders = [order(line)?, order(line)?];
                let order = match orders.contains(&Order::Weaker) {
                    true => Order::Weaker,
                    false => Order::Sequential,
                };
                Ok(Op::Exchange { kind, at, expected, new, order, weak, align: 1 })
            }
            "fence" => Ok(Op::Fence(order(line)?)),
            "br" => {
                if line.takes("label") {
                    return Ok(Op::Jump(body.block(line)?));
                }
                let (_, condition) = self.typed(body, line)?;
                line.mark(',')?;
                if !line.takes("label") {
                    return Err("a branch without a label".into());
                }
                let yes = body.block(line)?;
                line.mark(',')?;
                if !line.takes("label") {
                    return Err("a branch without a label".into());
                }
                let no = body.block(line)?;
                Ok(Op::Branch { condition, yes, no })
            }
            "switch" => {
                let bits = self.integer(line)?;
                let value = self.operand(body, &Type::Integer(bits), line)?;
                line.mark(',')?;
                if !line.takes("label") {
                    return Err("a switch without a label".into());
                }
                let default = body.block(line)?;
                line.mark('[')?;
                let mut cases = Vec::new();
                while !line.takes_mark(']') {
                    let kind = self.kind(line, 0)?;
                    let Constant::Integer(case) = self.constant(&kind, line, 0)? else {
                        return Err("a case that is no number".into());
                    };
                    line.mark(',')?;
                    if !line.takes("label") {
                        return Err("a case without a label".into());
                    }
                    cases.push((case, body.block(line)?));
                }
                Ok(Op::Switch { value, bits, cases, default })
            }
            "ret" => {
                if line.takes("void") {
                    return Ok(Op::Return(None));
                }
                Ok(Op::Return(Some(self.typed(body, line)?)))
            }
            "unreachable" => Ok(Op::Unreachable),
            _ => Err("it has no meaning here".into()),
        }
    }

    fn allocate(&mut self, body: &Body, line: &mut Line<'_>) -> Because<Op> {
        let content = self.kind(line, 0)?;
        let mut count = (32, Operand::Constant(Constant::Integer(1)));
        if line.peek() == Some(&Token::Mark(','))
            && matches!(line.words.get(line.at + 1), Some(Token::Word(word)) if word != "align")
        {
            line.at += 1;
            let bits = self.integer(line)?;
            count = (bits, self.operand(body, &Type::Integer(bits), line)?);
        }
        let (bits, count) = count;
        Ok(Op::Allocate { content, count, bits, align: 1, constant: false })
    }

    fn element(&mut self, body: &Body, line: &mut Line<'_>) -> Because<Op> {
        let mut inbounds = false;
        loop {
            if line.takes("inbounds") {
                inbounds = true;
            } else if !(line.takes("nuw") || line.takes("nusw")) {
                break;
            }
        }
        let mut kind = self.kind(line, 0)?;
        line.mark(',')?;
        let (_, base) = self.typed(body, line)?;
        let mut offset: i128 = 0;
        let mut indices = Vec::new();
        let mut first = true;
        while matches!(line.words.get(line.at..line.at + 2), Some([Token::Mark(','), Token::Word(word)]) if word != "align")
        {
            line.at += 1;
            let bits = self.integer(line)?;
            let value = self.operand(body, &Type::Integer(bits), line)?;
            if std::mem::take(&mut first) {
                let stride = kind.size().ok_or_else(|| format!("{} has no size", kind.show()))?;
                indices.push(Index { value, bits, stride, length: None });
                continue;
            }
            match (&kind, &value) {
                (Type::Struct(_), Operand::Constant(Constant::Integer(index))) => {
                    let (step, inner) = step_into(&kind, *index as i128)?;
                    offset += step;
                    kind = inner;
                }
                (Type::Array(length, element), _) => {
                    let stride =
                        element.size().ok_or_else(|| format!("{} has no size", element.show()))?;
                    // an array of unknown length is declared with none
                    let length = (*length > 0).then_some(*length);
                    indices.push(Index { value, bits, stride, length });
                    kind = (**element).clone();
                }
                _ => return Err(format!("an index into {}", kind.show())),
            }
        }
        // clang adds indices of zero for the first step
        indices.retain(|index| {
            index.length.is_some() || index.value != Operand::Constant(Constant::Integer(0))
        });
        let offset = i64::try_from(offset).map_err(|_| "an address far away".to_owned())?;
        Ok(Op::Address { base, offset, indices, inbounds })
    }

    fn call(&mut self, body: &Body, line: &mut Line<'_>) -> Because<Op> {
        let (_, promises) = self.attributes(line)?;
        let result = self.kind(line, 0)?;
        // the type of a variadic function stands in full
        if line.takes_mark('(') {
            let mut depth = 1;
            while depth > 0 {
                match line.next()? {
                    Token::Mark('(') => depth += 1,
                    Token::Mark(')') => depth -= 1,
                    _ => {}
                }
            }
        }
        if line.takes("asm") {
            return barrier(line);
        }
        let callee = self.operand(body, &Type::Pointer, line)?;
        line.mark('(')?;
        let mut arguments = Vec::new();
        while !line.takes_mark(')') {
            if !arguments.is_empty() {
                line.mark(',')?;
            }
            let kind = self.kind(line, 0)?;
            let (by_value, promises) = self.attributes(line)?;
            let value = self.operand(body, &kind, line)?;
            arguments.push(Argument { kind, value, by_value, promises });
        }
        if line.peek() == Some(&Token::Mark('[')) {
            return Err("a call with operand bundles".into());
        }
        let no_effect = line.peek().is_some_and(|token| self.promises_no_effect(token));
        Ok(Op::Call { callee, arguments, result, promises, no_effect, fields: None })
    }
}

/// What is known while a function is read.
struct Body {
    registers: HashMap<String, Register>,
    blocks: HashMap<String, u32>,
    function: Function,
}

impl Body {
    fn block(&self, line: &mut Line<'_>) -> Because<u32> {
        match line.next()? {
            Token::Local(name) => {
                let block = self.blocks.get(&name).copied();
                block.ok_or_else(|| format!("the block `{name}` is not there"))
            }
            other => Err(format!("`{other}` is no block")),
        }
    }
}

/// A field or element: how many bytes further, and its type.
fn step_into(kind: &Type, index: i128) -> Because<(i128, Type)> {
    match kind {
        Type::Struct(fields) => {
            let at = usize::try_from(index).map_err(|_| "a field that is not there".to_owned())?;
            let offset = fields.offset(at).ok_or("a field that is not there")?;
            Ok((offset.into(), fields.fields[at].clone()))
        }
        Type::Array(_, element) => {
            let stride = element.size().ok_or_else(|| format!("{} has no size", element.show()))?;
            let step = index.checked_mul(stride.into()).ok_or("an address far away")?;
            Ok((step, (**element).clone()))
        }
        other => Err(format!("an index into {}", other.show())),
    }
}

/// How far behind null, if it is such an address.
fn behind_null(constant: &Constant) -> Option<i64> {
    match constant {
        Constant::Zero => Some(0),
        Constant::Behind(base, offset) => behind_null(base)?.checked_add(*offset),
        _ => None,
    }
}

fn skip_parentheses(line: &mut Line<'_>) -> Because<()> {
    line.mark('(')?;
    let mut depth = 1;
    while depth > 0 {
        match line.next()? {
            Token::Mark('(') => depth += 1,
            Token::Mark(')') => depth -= 1,
            _ => {}
        }
    }
    Ok(())
}

fn flags(line: &mut Line<'_>) -> Flags {
    let mut flags = Flags::default();
    loop {
        if line.takes("nsw") {
            flags.no_signed_wrap = true;
        } else if line.takes("nuw") {
            flags.no_unsigned_wrap = true;
        } else if line.takes("exact") {
            flags.exact = true;
        } else if line.takes("disjoint") {
            flags.disjoint = true;
        } else if line.takes("nneg") {
            flags.non_negative = true;
        } else {
            return flags;
        }
    }
}

fn order(line: &mut Line<'_>) -> Because<Order> {
    let word = line.word()?;
    match word.as_str() {
        "seq_cst" => Ok(Order::Sequential),
        "unordered" | "monotonic" | "acquire" | "release" | "acq_rel" => Ok(Order::Weaker),
        // among other things `syncscope`
        _ => Err(format!("the order `{word}`")),
    }
}

fn arithmetic(name: &str) -> Option<Arithmetic> {
    Some(match name {
        "add" => Arithmetic::Add,
        "sub" => Arithmetic::Subtract,
        "mul" => Arithmetic::Multiply,
        "udiv" => Arithmetic::DivideUnsigned,
        "sdiv" => Arithmetic::DivideSigned,
        "urem" => Arithmetic::RemainderUnsigned,
        "srem" => Arithmetic::RemainderSigned,
        "shl" => Arithmetic::ShiftLeft,
        "lshr" => Arithmetic::ShiftRight,
        "ashr" => Arithmetic::ShiftRightSigned,
        "and" => Arithmetic::And,
        "or" => Arithmetic::Or,
        "xor" => Arithmetic::Xor,
        _ => return None,
    })
}

fn comparison(name: &str) -> Option<Comparison> {
    let less = |signed, or_equal, swapped| Some(Comparison::Less { signed, or_equal, swapped });
    match name {
        "eq" => Some(Comparison::Equal),
        "ne" => Some(Comparison::NotEqual),
        "ult" => less(false, false, false),
        "ule" => less(false, true, false),
        "ugt" => less(false, false, true),
        "uge" => less(false, true, true),
        "slt" => less(true, false, false),
        "sle" => less(true, true, false),
        "sgt" => less(true, false, true),
        "sge" => less(true, true, true),
        _ => None,
    }
}

fn change(name: &str) -> Option<Change> {
    Some(match name {
        "xchg" => Change::Exchange,
        "nand" => Change::Nand,
        "max" => Change::Extreme { greater: true, signed: true },
        "min" => Change::Extreme { greater: false, signed: true },
        "umax" => Change::Extreme { greater: true, signed: false },
        "umin" => Change::Extreme { greater: false, signed: false },
        "add" | "sub" | "and" | "or" | "xor" => Change::Compute(arithmetic(name)?),
        _ => return None,
    })
}

/// `1.5e+00`, or the bits of a double. LLVM writes a decimal number only if it is exact.
fn float_constant(word: &str, size: u64) -> Constant {
    let value = match word.strip_prefix("0x") {
        Some(digits) if digits.len() == 16 => {
            u64::from_str_radix(digits, 16).ok().map(f64::from_bits)
        }
        Some(_) => None,
        None => word.parse::<f64>().ok(),
    };
    match (value.filter(|value| !value.is_nan()), size) {
        (Some(value), 8) => Constant::Integer(value.to_bits().into()),
        (Some(value), 4) => Constant::Integer((value as f32).to_bits().into()),
        _ => Constant::Refused(format!("the floating-point constant {word}").into()),
    }
}

/// Inline assembly that computes nothing: a barrier for the compiler, or for the machine.
fn barrier(line: &mut Line<'_>) -> Because<Op> {
    let refused = || "inline assembly".to_owned();
    line.takes("sideeffect");
    let (Token::Text(code), Token::Mark(','), Token::Text(clobbers)) =
        (line.next()?, line.next()?, line.next()?)
    else {
        return Err(refused());
    };
    let only_clobbers = clobbers.split(',').all(|word| word.is_empty() || word.starts_with("~{"));
    if !matches!(code.trim(), "" | "mfence" | "pause") || !only_clobbers {
        return Err(refused());
    }
    line.mark('(')?;
    line.mark(')')?;
    line.end()?;
    Ok(Op::Fence(Order::Sequential))
}

fn float_operation(name: &str) -> Option<FloatOperation> {
    Some(match name {
        "fadd" => FloatOperation::Add,
        "fsub" => FloatOperation::Subtract,
        "fmul" => FloatOperation::Multiply,
        "fdiv" => FloatOperation::Divide,
        "fneg" => FloatOperation::Negate,
        "sitofp" => FloatOperation::FromInteger { is_signed: true },
        "uitofp" => FloatOperation::FromInteger { is_signed: false },
        "fptosi" => FloatOperation::ToInteger { is_signed: true },
        "fptoui" => FloatOperation::ToInteger { is_signed: false },
        "fpext" | "fptrunc" => FloatOperation::Resize,
        _ => return None,
    })
}

/// `olt`: ordered and less; `une`: unordered or not equal.
fn float_comparison(word: &str) -> Option<FloatOperation> {
    let (unordered, rest) = match word {
        "ord" => (false, "all"),
        "uno" => (true, ""),
        _ => (word.starts_with('u'), word.strip_prefix(['o', 'u'])?),
    };
    let (less, equal, greater) = match rest {
        "eq" => (false, true, false),
        "ne" => (true, false, true),
        "lt" => (true, false, false),
        "le" => (true, true, false),
        "gt" => (false, false, true),
        "ge" => (false, true, true),
        "all" => (true, true, true),
        "" => (false, false, false),
        _ => return None,
    };
    Some(FloatOperation::Compare { less, equal, greater, unordered })
}

/// The lowest bits.
pub(crate) fn mask(value: u128, bits: u32) -> u128 {
    match bits {
        128.. => value,
        bits => value & ((1 << bits) - 1),
    }
}

/// The bits as a signed number.
pub(crate) fn signed(value: u128, bits: u32) -> i128 {
    let unused = 128 - bits.min(128);
    ((value << unused) as i128) >> unused
}

/// The text behind a key, up to a comma or parenthesis.
pub(super) fn field<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let from = text.find(key)? + key.len();
    let rest = &text[from..];
    Some(&rest[..rest.find([',', ')']).unwrap_or(rest.len())])
}
