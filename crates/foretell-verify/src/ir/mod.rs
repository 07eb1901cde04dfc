//! C as LLVM's intermediate representation, which is what the engines give a meaning to.
//!
//! The file is compiled by clang without optimisation, and the text of its IR is read ([`read`]).
//! Conversions, tentative definitions, typedef names, bit-fields, initialisers and
//! calling conventions are clang's work: no C semantics is left for us to get wrong. IR of `-O0` has
//! few kinds of instructions, each with a short definition, and keeps what optimisation would use
//! up: `nsw` marks every signed operation, and no access is moved or dropped.
//!
//! *Refusal.* What the reader does not know is refused. A construct of a whole file (constructors,
//! aliases, assembly) refuses the file; an instruction that has no meaning
//! becomes [`Op::Refused`], and an engine that comes to it gives up with its place.
//!
//! What C leaves undefined must not hide in unoptimised code. So the front end runs as for optimised code
//! and no pass does: the IR then says by which type memory is accessed (`!tbaa`), which values a load can
//! give (`!range`), which loops end (`!llvm.loop`) and what parameters promise (`noalias`, `nonnull`,
//! `dereferenceable`). Metadata of a kind that is not known is refused. What only the source says comes
//! from the debug information (`restrict` and `const` variables). The engines refuse what breaks such a
//! promise.
//!
//! What C leaves open is not in the IR, which has one order of evaluation: clang's syntax tree says which
//! operands have no order, and which block a compound literal belongs to ([`syntax`]). `docs/src/verify-c.md`
//! goes through annex J of C17.
//!
//! *Assumed*: sizes and alignments of x86-64. A signed number that is shifted to the left has the bits that it has on
//! the machine: gcc documents that, clang does it, C17 leaves it undefined.

pub mod alias;
pub mod clang;
mod declared;
pub mod files;
mod lex;
mod macros;
mod read;
mod scopes;
pub mod syntax;
mod types;
mod unions;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use alias::{Aliases, TagId};
pub use read::read;
pub(crate) use read::{mask, signed};
pub use types::{Padding, Struct, Type};

/// The number of a register in its function.
pub type Register = u32;

/// The number of a global in its module.
pub type GlobalId = u32;

/// The number of a function in its module.
pub type FunctionId = u32;

/// A place in the source; line 0 when unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Into [`Module::files`].
    pub file: u32,
    /// From 1.
    pub line: u32,
    /// From 1; 0 when unknown.
    pub column: u32,
}

/// A file that cannot be verified, with the place and the construct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `file:line`, or the file.
    pub place: String,
    /// The construct.
    pub what: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl std::error::Error for Refusal {}

/// A compiled file.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Source files by number; the first is the one that was compiled.
    pub files: Vec<Arc<str>>,
    /// All variables of static lifetime.
    pub globals: Vec<Global>,
    /// All functions, declared or defined.
    pub functions: Vec<Function>,
    /// SHA-256 of the IR without the lines that name folders: the identity of the program.
    pub hash: String,
    /// Who made the IR, as it says itself.
    pub compiler: String,
    /// For which machine.
    pub target: String,
    /// Signed overflow is a violation.
    pub overflow: bool,
    /// By which types memory is accessed.
    pub aliases: Aliases,
    /// A local structure or array is `const`, as a whole or in part.
    pub constant_parts: bool,
    /// Members of unions that are as large as their union: the union's name, or its line as `@12`, and
    /// the member's.
    pub whole_members: HashSet<(String, String)>,
    /// What the syntax of each function says; absent if only IR was read.
    pub shapes: Vec<syntax::Shape>,
}

impl Module {
    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<FunctionId> {
        self.functions.iter().position(|f| &*f.name == name).map(|at| at as FunctionId)
    }

    /// `file:line`.
    pub fn show(&self, place: Place) -> String {
        let file = self.files.get(place.file as usize).map_or("?", |file| &**file);
        match place.line {
            0 => file.to_owned(),
            line => format!("{file}:{line}"),
        }
    }

    /// The name of a file without its folder.
    pub fn file_name(&self, file: u32) -> &str {
        let file = self.files.get(file as usize).map_or("?", |file| &**file);
        file.rsplit('/').next().unwrap_or(file)
    }

    /// `file:line` without folders, as proofs name places.
    pub fn show_short(&self, place: Place) -> String {
        format!("{}:{}", self.file_name(place.file), place.line)
    }

    /// Does the program speak of SV-COMP's functions? Then `abort` ends an execution and violates
    /// nothing.
    pub fn speaks_sv_comp(&self) -> bool {
        self.functions.iter().any(|function| {
            function.name.starts_with("__VERIFIER_")
                || matches!(&*function.name, "reach_error" | "assume_abort_if_not")
        })
    }
}

/// An operation of floating point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatOperation {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// The other sign.
    Negate,
    /// Without its sign.
    Absolute,
    /// True when the operands are one of these; unordered if one is not a number.
    Compare {
        /// The first is less.
        less: bool,
        /// They are equal.
        equal: bool,
        /// The first is greater.
        greater: bool,
        /// One is not a number.
        unordered: bool,
    },
    /// The nearest number of an integer.
    FromInteger {
        /// Of a signed one.
        is_signed: bool,
    },
    /// The integer in the direction of zero.
    ToInteger {
        /// A signed one.
        is_signed: bool,
    },
    /// Of the other precision.
    Resize,
}

/// A variable of static lifetime.
#[derive(Clone, Debug)]
pub struct Global {
    /// As the IR calls it; a static local has its function's name in front.
    pub name: Box<str>,
    /// What it holds.
    pub content: Type,
    /// Its first value; absent when it is defined elsewhere.
    pub initial: Option<Constant>,
    /// Never written.
    pub constant: bool,
    /// Each thread has its own.
    pub thread_local: bool,
    /// A constant whose address may be that of another.
    pub mergeable: bool,
    /// Its address is a multiple of this.
    pub align: u64,
    /// What of it has no value.
    pub padding: Option<Arc<Padding>>,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: Box<str>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// What it gives.
    pub result: Type,
    /// Takes more arguments than it names.
    pub variadic: bool,
    /// Empty when it is only declared; the first is the entry.
    pub blocks: Vec<Block>,
    /// Names of the registers.
    pub registers: Vec<Box<str>>,
    /// What is promised of its result.
    pub promises: Promises,
    /// It is declared to have no effect (`const`, `pure`): calls may be left out.
    pub no_effect: bool,
    /// What of its locals has no value.
    pub padding: HashMap<Register, Arc<Padding>>,
    /// Where its locals are declared.
    pub declared: HashMap<Register, Declaration>,
}

/// Where a local is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Its name in the source.
    pub spot: syntax::Spot,
    /// The declaration is reached in this block,
    pub block: usize,
    /// before this instruction.
    pub at: usize,
}

impl Function {
    /// Is its body here?
    pub fn is_defined(&self) -> bool {
        !self.blocks.is_empty()
    }
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Where its value is.
    pub register: Register,
    /// Its type.
    pub kind: Type,
    /// A copy of so much memory is passed, and the register points to it.
    pub by_value: Option<Type>,
    /// What is promised of it.
    pub promises: Promises,
}

/// What a declaration promises of a value; C gives no meaning to a call that does not keep it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// It has a value.
    pub defined: bool,
    /// It is not null.
    pub not_null: bool,
    /// `restrict`: what is accessed through it is accessed through it only. Of a result: nobody
    /// else has it.
    pub alone: bool,
    /// So many bytes can be accessed.
    pub bytes: u64,
    /// A multiple of this.
    pub align: u64,
    /// Something that nobody checks.
    pub unchecked: bool,
}

impl Promises {
    /// What both promise.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            defined: self.defined || other.defined,
            not_null: self.not_null || other.not_null,
            alone: self.alone || other.alone,
            bytes: self.bytes.max(other.bytes),
            align: self.align.max(other.align),
            unchecked: self.unchecked || other.unchecked,
        }
    }
}

/// How memory is accessed, beside what is read or written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// The address is a multiple of this.
    pub align: u64,
    /// By which type; none if it may be any.
    pub tag: Option<TagId>,
    /// The value is below this (a truth value is 0 or 1).
    pub below: Option<u128>,
    /// Seen from outside.
    pub volatile: bool,
    /// By a type of characters, or as a member of a union.
    pub character: bool,
}

/// Instructions that run one after the other.
#[derive(Clone, Debug)]
pub struct Block {
    /// The last one is a jump or a return.
    pub instructions: Vec<Instruction>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// Where its result goes.
    pub result: Option<Register>,
    /// Where in the source.
    pub place: Place,
    /// Goes back in a loop of which C lets compilers assume that it ends (C17 6.8.5, 6).
    pub must_end: bool,
}

/// Something that an instruction uses.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The value of a register.
    Register(Register),
    /// A constant.
    Constant(Constant),
}

/// A constant; its type is said where it is used.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// An integer, as bits.
    Integer(u128),
    /// All bytes zero.
    Zero,
    /// No value.
    Undefined,
    /// The address of a global.
    Global(GlobalId),
    /// The address of a function.
    Function(FunctionId),
    /// Bytes of a string.
    Bytes(Arc<[u8]>),
    /// Fields or elements.
    Aggregate(Arc<[(Type, Constant)]>),
    /// So many bytes behind an address.
    Behind(Arc<Constant>, i64),
    /// The same bits as an integer or as a pointer.
    Same(Arc<Constant>),
    /// Has no meaning here; what it is.
    Refused(Arc<str>),
}

/// How an atomic operation orders others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Sequentially consistent.
    Sequential,
    /// Anything weaker.
    Weaker,
}

/// An operation of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient of unsigned numbers.
    DivideUnsigned,
    /// Quotient of signed numbers, towards zero.
    DivideSigned,
    /// Remainder of unsigned numbers.
    RemainderUnsigned,
    /// Remainder of signed numbers, with the sign of the dividend.
    RemainderSigned,
    /// To the left.
    ShiftLeft,
    /// To the right, zeros come in.
    ShiftRight,
    /// To the right, the sign stays.
    ShiftRightSigned,
    /// Bits of both.
    And,
    /// Bits of any.
    Or,
    /// Bits of one.
    Xor,
}

/// What must hold of an operation, or its result has no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The result is right as a signed number.
    pub no_signed_wrap: bool,
    /// The result is right as an unsigned number.
    pub no_unsigned_wrap: bool,
    /// Nothing is lost (quotients and shifts to the right).
    pub exact: bool,
    /// No bit is set in both (`or`).
    pub disjoint: bool,
    /// Not negative (`zext`).
    pub non_negative: bool,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less, as unsigned or signed numbers.
    Less {
        /// As signed numbers.
        signed: bool,
        /// Or equal.
        or_equal: bool,
        /// With the operands exchanged.
        swapped: bool,
    },
}

/// A change of type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cast {
    /// Upper bits go.
    Truncate,
    /// Zeros come in front.
    ZeroExtend,
    /// Copies of the sign come in front.
    SignExtend,
    /// Pointer to integer, integer to pointer, or nothing at all.
    Same,
}

/// An index of an address computation.
#[derive(Clone, Debug)]
pub struct Index {
    /// The index.
    pub value: Operand,
    /// Its width.
    pub bits: u32,
    /// Bytes from one element to the next.
    pub stride: u64,
    /// Elements of the array; absent for a plain pointer.
    pub length: Option<u64>,
}

/// What is read, changed and written in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The operand is written.
    Exchange,
    /// The result of an operation is written.
    Compute(Arithmetic),
    /// The complement of `and`.
    Nand,
    /// The greater or smaller one.
    Extreme {
        /// The greater.
        greater: bool,
        /// As signed numbers.
        signed: bool,
    },
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its type.
    pub kind: Type,
    /// Its value.
    pub value: Operand,
    /// A copy of so much memory is passed.
    pub by_value: Option<Type>,
    /// What is promised of it.
    pub promises: Promises,
}

/// A member that is copied with its structure: offset, length, type.
pub type Copied = (u64, u64, Option<TagId>);

/// What an instruction does.
#[derive(Clone, Debug)]
pub enum Op {
    /// Memory until the function returns.
    Allocate {
        /// Of this type
        content: Type,
        /// so many times.
        count: Operand,
        /// Width of the count.
        bits: u32,
        /// Its address is a multiple of this.
        align: u64,
        /// A `const` variable of one value: it is written once.
        constant: bool,
    },
    /// Reads memory.
    Load {
        /// What is read.
        kind: Type,
        /// Where.
        from: Operand,
        /// If it is atomic.
        order: Option<Order>,
        /// How.
        manner: Manner,
    },
    /// Writes memory.
    Store {
        /// What is written.
        kind: Type,
        /// Its value.
        value: Operand,
        /// Where.
        to: Operand,
        /// If it is atomic.
        order: Option<Order>,
        /// How.
        manner: Manner,
    },
    /// An operation of two integers.
    Binary {
        /// Which.
        operation: Arithmetic,
        /// Their width.
        bits: u32,
        /// The first.
        left: Operand,
        /// The second.
        right: Operand,
        /// What must hold.
        flags: Flags,
    },
    /// A truth value.
    Compare {
        /// Which.
        comparison: Comparison,
        /// Type of both.
        kind: Type,
        /// The first.
        left: Operand,
        /// The second.
        right: Operand,
    },
    /// A change of type.
    Convert {
        /// Which.
        cast: Cast,
        /// From this type
        from: Type,
        /// to that.
        to: Type,
        /// The value.
        value: Operand,
        /// What must hold.
        flags: Flags,
    },
    /// Floating point.
    Float {
        /// Which.
        operation: FloatOperation,
        /// Type of the operands.
        from: Type,
        /// Type of the result.
        to: Type,
        /// One or two.
        operands: Vec<Operand>,
    },
    /// An address.
    Address {
        /// From here
        base: Operand,
        /// so many bytes further,
        offset: i64,
        /// and further by these.
        indices: Vec<Index>,
        /// It stays within what `base` points into.
        inbounds: bool,
    },
    /// One of two values.
    Select {
        /// True for the first.
        condition: Operand,
        /// Type of both.
        kind: Type,
        /// The first.
        yes: Operand,
        /// The second.
        no: Operand,
    },
    /// The value that belongs to the block we come from.
    Phi {
        /// Type of all.
        kind: Type,
        /// Values and blocks.
        incoming: Vec<(Operand, u32)>,
    },
    /// A call.
    Call {
        /// What is called.
        callee: Operand,
        /// With these.
        arguments: Vec<Argument>,
        /// What it gives.
        result: Type,
        /// What is promised of that.
        promises: Promises,
        /// It is declared to have no effect.
        no_effect: bool,
        /// What a copy of a structure copies. None for any other call.
        fields: Option<Arc<[Copied]>>,
    },
    /// A field of an aggregate.
    Extract {
        /// Type of the aggregate.
        kind: Type,
        /// The aggregate.
        value: Operand,
        /// Which field.
        index: u32,
    },
    /// An aggregate with another field.
    Insert {
        /// Type of the aggregate.
        kind: Type,
        /// The aggregate.
        value: Operand,
        /// Type of the field.
        field_kind: Type,
        /// The field.
        field: Operand,
        /// Which field.
        index: u32,
    },
    /// Reads, changes and writes memory in one step; gives the old value.
    Modify {
        /// How.
        change: Change,
        /// What is changed.
        kind: Type,
        /// Where.
        at: Operand,
        /// By what.
        value: Operand,
        /// How others are ordered.
        order: Order,
        /// The address is a multiple of this.
        align: u64,
    },
    /// Writes if the old value is the expected one; gives the old value and whether it was.
    Exchange {
        /// What is changed.
        kind: Type,
        /// Where.
        at: Operand,
        /// The expected value.
        expected: Operand,
        /// The new one.
        new: Operand,
        /// How others are ordered.
        order: Order,
        /// May fail without a reason.
        weak: bool,
        /// The address is a multiple of this.
        align: u64,
    },
    /// Orders other accesses.
    Fence(Order),
    /// To another block.
    Jump(u32),
    /// To one of two blocks.
    Branch {
        /// True for the first.
        condition: Operand,
        /// The first.
        yes: u32,
        /// The second.
        no: u32,
    },
    /// To one of several blocks.
    Switch {
        /// The value that decides.
        value: Operand,
        /// Its width.
        bits: u32,
        /// The others.
        cases: Vec<(u128, u32)>,
        /// If no case fits.
        default: u32,
    },
    /// Back to the caller.
    Return(Option<(Type, Operand)>),
    /// Cannot be reached, says the compiler.
    Unreachable,
    /// Has no meaning here; what it is.
    Refused(Box<str>),
}

impl Op {
    /// All operands.
    pub fn operands(&self) -> Vec<&Operand> {
        match self {
            Op::Allocate { count, .. } => vec![count],
            Op::Load { from, .. } => vec![from],
            Op::Store { value, to, .. } => vec![value, to],
            Op::Binary { left, right, .. } | Op::Compare { left, right, .. } => vec![left, right],
            Op::Convert { value, .. } | Op::Extract { value, .. } => vec![value],
            Op::Address { base, indices, .. } => {
                [base].into_iter().chain(indices.iter().map(|index| &index.value)).collect()
            }
            Op::Float { operands, .. } => operands.iter().collect(),
            Op::Select { condition, yes, no, .. } => vec![condition, yes, no],
            Op::Phi { incoming, .. } => incoming.iter().map(|(value, _)| value).collect(),
            Op::Call { callee, arguments, .. } => {
                [callee].into_iter().chain(arguments.iter().map(|a| &a.value)).collect()
            }
            Op::Insert { value, field, .. } => vec![value, field],
            Op::Modify { at, value, .. } => vec![at, value],
            Op::Exchange { at, expected, new, .. } => vec![at, expected, new],
            Op::Branch { condition, .. } => vec![condition],
            Op::Switch { value, .. } => vec![value],
            Op::Return(Some((_, value))) => vec![value],
            Op::Fence(_) | Op::Jump(_) | Op::Return(None) | Op::Unreachable | Op::Refused(_) => {
                Vec::new()
            }
        }
    }

    /// The blocks it may jump to.
    pub fn targets(&self) -> Vec<u32> {
        match self {
            Op::Jump(to) => vec![*to],
            Op::Branch { yes, no, .. } => vec![*yes, *no],
            Op::Switch { cases, default, .. } => {
                cases.iter().map(|(_, to)| *to).chain([*default]).collect()
            }
            _ => Vec::new(),
        }
    }
}
