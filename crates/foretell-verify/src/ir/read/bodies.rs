//! Bodies of functions: blocks, and which instruction is in which.

use std::collections::{HashMap, HashSet};

use super::Reader;
use super::line::{Because, Ending, Line};
use super::metadata::METADATA;
use crate::ir::alias::parts;
use crate::ir::declared::{Constness, Declared};
use crate::ir::lex::{Token, words};
use crate::ir::{Block, Declaration, Function, Instruction, Op, Place, Refusal, Register};

impl<'a> Reader<'a> {
    // ---- bodies ----

    pub(super) fn bodies(
        &mut self,
        lines: &[String],
        declared: &Declared<'_>,
    ) -> Result<(), Refusal> {
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
            let words = words(line).ok_or_else(|| format!("a line that cannot be read: {line}"))?;
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
}

/// What is known while a function is read.
pub(super) struct Body {
    pub(super) registers: HashMap<String, Register>,
    blocks: HashMap<String, u32>,
    function: Function,
}

impl Body {
    pub(super) fn block(&self, line: &mut Line<'_>) -> Because<u32> {
        match line.next()? {
            Token::Local(name) => {
                let block = self.blocks.get(&name).copied();
                block.ok_or_else(|| format!("the block `{name}` is not there"))
            }
            other => Err(format!("`{other}` is no block")),
        }
    }
}
