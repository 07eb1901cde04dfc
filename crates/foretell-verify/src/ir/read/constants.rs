//! Constants, and addresses that are computed from them.

use std::sync::Arc;

use super::line::{Because, Line, behind_null, step_into};
use super::{Reader, mask, signed};
use crate::ir::lex::Token;
use crate::ir::{Constant, Type};
use crate::limits::DEEPEST_TYPES;

impl<'a> Reader<'a> {
    // ---- constants ----

    pub(super) fn constant(
        &mut self,
        kind: &Type,
        line: &mut Line<'_>,
        depth: usize,
    ) -> Because<Constant> {
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
                                word.parse().map_err(|_| format!("`{word}` is not an integer"))?
                            }
                            None => word
                                .parse::<u128>()
                                .map_err(|_| format!("`{word}` is not a known constant"))?
                                as i128,
                        };
                        Constant::Integer(mask(value as u128, *bits))
                    }
                    Type::Float { size, .. } => float_constant(&word, *size),
                    _ => return Err(format!("`{word}` is not a known constant")),
                },
            },
            other => return Err(format!("`{other}` is not a known constant")),
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
                return Err("an index is not an integer".into());
            };
            let Constant::Integer(index) = self.constant(&index_kind, line, depth + 1)? else {
                return Err("an index is not a number".into());
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
        let offset = i64::try_from(offset)
            .map_err(|_| "an address that is too far outside its object".to_owned())?;
        Ok(match base {
            Constant::Behind(base, before) => Constant::Behind(base, before.wrapping_add(offset)),
            base => Constant::Behind(Arc::new(base), offset),
        })
    }
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
