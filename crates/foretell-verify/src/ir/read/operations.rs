//! Instructions: one arm for each word that is known.

use std::sync::Arc;

use super::Reader;
use super::bodies::Body;
use super::line::{Because, Line, step_into};
use crate::ir::alias::{number, parts};
use crate::ir::lex::Token;
use crate::ir::{
    Argument, Arithmetic, Cast, Change, Comparison, Constant, Copied, Flags, FloatOperation, Index,
    Manner, Op, Operand, Order, Type,
};

impl<'a> Reader<'a> {
    /// What a copy of a structure copies.
    pub(super) fn copied(&mut self, name: &str) -> Because<Arc<[Copied]>> {
        let odd = || "a copy of a structure whose parts are not known".to_owned();
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

    pub(super) fn integer(&mut self, line: &mut Line<'_>) -> Because<u32> {
        match self.kind(line, 0)? {
            Type::Integer(bits) => Ok(bits),
            other => Err(format!("the type {}", other.show())),
        }
    }

    pub(super) fn op(&mut self, body: &Body, line: &mut Line<'_>) -> Because<Op> {
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
                        return Err("a case that is not a number".into());
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
        let offset = i64::try_from(offset)
            .map_err(|_| "an address that is too far outside its object".to_owned())?;
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
