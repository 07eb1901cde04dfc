//! Lifetimes that clang does not write: a compound literal ends with its block (C17 6.5.2.5, 5), and so does
//! a variable whose declaration a jump may pass by. Each time the declaration of such a variable is reached,
//! its value is indeterminate again (C17 6.2.4, 6).
//!
//! clang keeps its memory until the function returns. Here it begins where the literal is evaluated and
//! ends where control leaves the block, by the places of the instructions.

use std::collections::{HashMap, HashSet};

use super::syntax::{Range, Spot};
use super::{
    Argument, Block, Constant, Function, FunctionId, Instruction, Module, Op, Operand, Promises,
    Register, Type,
};

/// Begins and ends the lifetimes of compound literals and of variables.
pub(super) fn bound(module: &mut Module) {
    for id in 0..module.functions.len() {
        let Some(shape) = module.shapes.get(id) else { return };
        let without = without_lifetime(module, &module.functions[id]);
        let bypassed = blocks(&module.functions[id], &without, &shape.variables);
        let is_variable = |spot: &Spot| shape.variables.contains_key(spot);
        let declared = &module.functions[id].declared;
        let mut reached: Vec<(usize, usize, Register)> = without
            .iter()
            .filter_map(|local| Some((*local, declared.get(local)?)))
            .filter(|(_, declaration)| is_variable(&declaration.spot))
            .map(|(local, declaration)| (declaration.block, declaration.at, local))
            .collect();
        let nested: Vec<(Range, Range)> = shape
            .literals
            .iter()
            .filter_map(|literal| Some((literal.whole, literal.block?)))
            .collect();
        if nested.is_empty() && bypassed.is_empty() && reached.is_empty() {
            continue;
        }
        let function = &module.functions[id];
        let names = function.registers.iter().enumerate();
        let locals: Vec<(Register, Range, Range)> = names
            .filter(|(_, name)| name.starts_with(".compoundliteral"))
            .filter_map(|(register, _)| {
                let spot = first_use(function, register as Register)?;
                // the innermost one: its block is the innermost, too
                let literals = nested.iter().filter(|(whole, _)| whole.contains(spot));
                let (whole, block) = literals.max_by_key(|(whole, _)| whole.begin)?;
                Some((register as Register, *whole, *block))
            })
            .collect();
        let start = intrinsic(module, "llvm.lifetime.start.p0");
        let end = intrinsic(module, "llvm.lifetime.end.p0");
        let function = &mut module.functions[id];
        // the last ones first, so that the places of the others stay
        reached.sort_unstable();
        for (block, at, local) in reached.into_iter().rev() {
            let instructions = &mut function.blocks[block].instructions;
            let at = at.min(instructions.len() - 1);
            let start = call(start, local, &instructions[at]);
            instructions.insert(at, start);
        }
        for (local, block) in bypassed {
            begin(function, local, block, start);
            mark(function, local, block, end, |before, now| before && !now);
        }
        for (local, whole, block) in locals {
            mark(function, local, whole, start, |before, now| !before && now);
            mark(function, local, block, end, |before, now| before && !now);
        }
    }
}

/// Variables whose lifetimes the IR does not say.
fn without_lifetime(module: &Module, function: &Function) -> Vec<Register> {
    let mut known = HashSet::new();
    for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
        if let Op::Call { callee: Operand::Constant(Constant::Function(id)), arguments, .. } =
            &instruction.op
            && module.functions[*id as usize].name.starts_with("llvm.lifetime.")
            && let Some(Operand::Register(local)) = arguments.last().map(|a| &a.value)
        {
            known.insert(*local);
        }
    }
    let entry = function.blocks.iter().take(1).flat_map(|block| &block.instructions);
    let locals = entry.filter(|instruction| matches!(instruction.op, Op::Allocate { .. }));
    locals
        .filter_map(|instruction| instruction.result)
        .filter(|local| !known.contains(local))
        .collect()
}

/// Those of the variables that are inside blocks, with their blocks.
fn blocks(
    function: &Function,
    locals: &[Register],
    variables: &HashMap<Spot, (String, Option<Range>)>,
) -> Vec<(Register, Range)> {
    let block = |&local: &Register| {
        if let Some(declaration) = function.declared.get(&local) {
            return Some((local, variables.get(&declaration.spot)?.1?));
        }
        // a declaration that is never executed has no place in the IR, but the variable a name; of
        // several variables of that name, the smallest block ends first
        let name = &*function.registers[local as usize];
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let named = variables.values().filter(|(called, _)| called == name || called == plain);
        let blocks: Option<Vec<Range>> = named.map(|(_, block)| *block).collect();
        let smallest =
            blocks?.into_iter().min_by_key(|block| (block.end.0 - block.begin.0, block.begin))?;
        Some((local, smallest))
    };
    locals.iter().filter_map(block).collect()
}

/// Calls an intrinsic where control is about to come into the range.
fn begin(function: &mut Function, local: Register, range: Range, callee: FunctionId) {
    let flags: Vec<Vec<bool>> = function.blocks.iter().map(|block| inside(block, range)).collect();
    let starts: Vec<bool> = function
        .blocks
        .iter()
        .zip(&flags)
        .map(|(block, flags)| {
            let first = block.instructions.iter().position(|i| !matches!(i.op, Op::Phi { .. }));
            first.is_some_and(|first| flags[first])
        })
        .collect();
    for (block, flags) in function.blocks.iter_mut().zip(&flags) {
        let old = std::mem::take(&mut block.instructions);
        let last = old.len().saturating_sub(1);
        let mut before = None;
        for (at, (instruction, &flag)) in old.into_iter().zip(flags).enumerate() {
            let enters = instruction.op.targets().iter().any(|&target| starts[target as usize]);
            let is_before = before == Some(false) && flag || at == last && !flag && enters;
            if is_before {
                block.instructions.push(call(callee, local, &instruction));
            }
            if !matches!(instruction.op, Op::Phi { .. } | Op::Allocate { .. }) {
                before = Some(flag);
            }
            block.instructions.push(instruction);
        }
    }
}

fn spot(instruction: &Instruction) -> Option<Spot> {
    let place = instruction.place;
    (place.column > 0).then_some((place.line, place.column))
}

/// Where the register is used first.
fn first_use(function: &Function, register: Register) -> Option<Spot> {
    let mut instructions = function.blocks.iter().flat_map(|block| &block.instructions);
    instructions.find_map(|instruction| {
        let mut operands = instruction.op.operands().into_iter();
        spot(instruction)
            .filter(|_| operands.any(|operand| *operand == Operand::Register(register)))
    })
}

/// The function of that name, declared if it was not.
fn intrinsic(module: &mut Module, name: &str) -> FunctionId {
    if let Some(id) = module.function(name) {
        return id;
    }
    module.functions.push(Function {
        name: name.into(),
        parameters: Vec::new(),
        result: Type::Void,
        variadic: false,
        blocks: Vec::new(),
        registers: Vec::new(),
        promises: Promises::default(),
        no_effect: false,
        padding: HashMap::new(),
        declared: HashMap::new(),
    });
    module.shapes.push(super::syntax::Shape::default());
    module.functions.len() as FunctionId - 1
}

/// Is each instruction inside the range? One without a place is where the one before it is.
fn inside(block: &Block, range: Range) -> Vec<bool> {
    let mut last = false;
    let of = |instruction: &Instruction| {
        if let Some(spot) = spot(instruction) {
            last = range.contains(spot);
        }
        last
    };
    block.instructions.iter().map(of).collect()
}

/// Calls an intrinsic where control comes into the range, or out of it.
fn mark(
    function: &mut Function,
    local: Register,
    range: Range,
    callee: FunctionId,
    is_border: impl Fn(bool, bool) -> bool,
) {
    let flags: Vec<Vec<bool>> = function.blocks.iter().map(|block| inside(block, range)).collect();
    // from where control may come to each block: from inside or not
    let mut comes: Vec<Vec<bool>> = vec![Vec::new(); function.blocks.len()];
    comes[0].push(false);
    for (block, flags) in function.blocks.iter().zip(&flags) {
        let (Some(last), Some(&flag)) = (block.instructions.last(), flags.last()) else { continue };
        for target in last.op.targets() {
            comes[target as usize].push(flag);
        }
    }
    for ((block, flags), mut before) in function.blocks.iter_mut().zip(&flags).zip(comes) {
        let old = std::mem::take(&mut block.instructions);
        for (instruction, &flag) in old.into_iter().zip(flags) {
            if !matches!(instruction.op, Op::Phi { .. } | Op::Allocate { .. }) {
                if before.iter().any(|&before| is_border(before, flag)) {
                    block.instructions.push(call(callee, local, &instruction));
                }
                before = vec![flag];
            }
            block.instructions.push(instruction);
        }
    }
}

fn call(callee: FunctionId, local: Register, before: &Instruction) -> Instruction {
    let argument = Argument {
        kind: Type::Pointer,
        value: Operand::Register(local),
        by_value: None,
        promises: Promises::default(),
    };
    let op = Op::Call {
        callee: Operand::Constant(Constant::Function(callee)),
        arguments: vec![argument],
        result: Type::Void,
        promises: Promises::default(),
        no_effect: false,
        fields: None,
    };
    Instruction { op, result: None, place: before.place, must_end: false }
}
