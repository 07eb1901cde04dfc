//! Initialisers of unions whose member is smaller than the union: the other bytes are unspecified (C17
//! 6.2.6.1, 7), and gcc 15 leaves them as they were. clang 22 writes zeros, which nothing may rely on.

use super::syntax::Member;
use super::{Constant, Module, Op, Operand, Place, Refusal};

/// Refuses the instructions that initialise such a member, or the program where there are none.
///
/// What a static variable is initialised with is zero beside the member with gcc, too (it documents that).
pub(super) fn refuse(module: &mut Module) -> Result<(), Refusal> {
    let is_write: Vec<bool> = module
        .functions
        .iter()
        .map(|f| f.name.starts_with("llvm.memset.") || f.name.starts_with("llvm.memcpy."))
        .collect();
    let mut nowhere = None;
    for (function, shape) in module.functions.iter_mut().zip(&module.shapes) {
        for Member { spots, union, name } in &shape.members {
            if module.whole_members.contains(&(union.clone(), name.clone())) {
                continue;
            }
            let what = format!(
                "an initialiser of the member {name} of a larger union, whose other bytes are unspecified"
            );
            let mut found = false;
            for instruction in function.blocks.iter_mut().flat_map(|block| &mut block.instructions)
            {
                let is_there = spots.contains(&(instruction.place.line, instruction.place.column));
                if let Op::Call { callee: Operand::Constant(Constant::Function(id)), .. } =
                    &instruction.op
                    && is_there
                    && is_write[*id as usize]
                {
                    instruction.op = Op::Refused(what.as_str().into());
                    found = true;
                }
                // a member that was refused already
                found |= is_there && matches!(instruction.op, Op::Refused(_));
            }
            if !found {
                let mut places = function.blocks.iter().flat_map(|block| &block.instructions);
                let file = places.next().map_or(0, |instruction| instruction.place.file);
                let line = spots.first().map_or(0, |spot| spot.0);
                nowhere = Some((Place { file, line, column: 0 }, what));
            }
        }
    }
    match nowhere {
        Some((place, what)) => Err(Refusal { place: module.show(place), what }),
        None => Ok(()),
    }
}
