//! Types, globals, and what attributes and signatures of functions promise.

use std::collections::HashMap;
use std::sync::Arc;

use super::Reader;
use super::line::{Because, Line, skip_parentheses};
use crate::ir::lex::Token;
use crate::ir::{Function, Global, Parameter, Place, Promises, Refusal, Register, Struct, Type};
use crate::limits::DEEPEST_TYPES;

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

impl<'a> Reader<'a> {
    /// Metadata of other kinds, and groups of attributes.
    pub(super) fn promises(&mut self, lines: &[String]) {
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

    // ---- types ----

    pub(super) fn types(&mut self, lines: &[String]) -> Result<(), Refusal> {
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
                        self.file_refusal(format!("the IR has a line that cannot be read: {line}"))
                    );
                }
            }
        }
        Ok(())
    }

    pub(super) fn kind(&mut self, line: &mut Line<'_>, depth: usize) -> Because<Type> {
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
                    None => return Err(format!("`{word}` is not a known type")),
                },
            },
            Token::Local(name) => {
                if let Some(known) = self.named_types.get(&name) {
                    return Ok(known.clone());
                }
                let Some(words) = self.type_lines.get(&name).cloned() else {
                    return Err(format!("`%{name}` is not a known type"));
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
            other => return Err(format!("`{other}` is not a known type")),
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
    pub(super) fn declarations(&mut self, lines: &[String]) -> Result<(), Refusal> {
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
                    return Err(self.file_refusal(format!("a machine other than x86-64: {line}")));
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
    pub(super) fn attributes(&mut self, line: &mut Line<'_>) -> Because<(Option<Type>, Promises)> {
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

    pub(super) fn promises_no_effect(&self, token: &Token) -> bool {
        matches!(token, Token::Attributes(group) if self.no_effect.contains(group))
    }
}
