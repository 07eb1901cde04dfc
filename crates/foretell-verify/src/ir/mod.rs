//! C as LLVM's intermediate representation, which is what the engines give a meaning to.
//!
//! The file is compiled by clang without optimisation, and the text of its IR is read ([`read`]).
//! Conversions, tentative definitions, typedef names, bit-fields, initialisers and
//! calling conventions are clang's work: no C semantics is left for us to get wrong. IR of `-O0` has
//! few kinds of instructions, each with a short definition, and keeps what optimisation would use
//! up: `nsw` marks every signed operation, and no access is moved or dropped.
//!
//! *Refusal.* What the reader does not know is refused. Because of a construct that concerns the whole
//! file (constructors, aliases, assembly) the file is refused; an instruction that has no meaning
//! becomes [`Op::Refused`], and an engine that reaches it gives up and names its place.
//!
//! What C leaves undefined must not hide in unoptimised code. So the front end runs as for optimised
//! code and no pass does: the IR then says by which type memory is accessed (`!tbaa`), which values a
//! load can give (`!range`), which loops end (`!llvm.loop`) and what parameters promise (`noalias`,
//! `nonnull`, `dereferenceable`). Metadata of an unknown kind is refused. What only the source says
//! comes from the debug information (`restrict` and `const` variables). The engines refuse what breaks
//! such a promise.
//!
//! What C leaves open is not in the IR, which has one order of evaluation: clang's syntax tree says which
//! operands have no order, and which block a compound literal belongs to ([`syntax`]). `docs/src/verify-c.md`
//! goes through annex J of C17.
//!
//! *Assumed*: sizes and alignments of x86-64. Shifting a signed number to the left gives the bits that
//! the machine gives: gcc documents that, clang does it, C17 leaves it undefined.

pub mod alias;
pub mod clang;
mod declared;
pub mod files;
mod lex;
mod macros;
mod op;
mod read;
mod scopes;
pub mod syntax;
mod types;
mod unions;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use alias::{Aliases, TagId};
pub use op::{
    Argument, Arithmetic, Cast, Change, Comparison, Copied, Flags, FloatOperation, Index, Op, Order,
};
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
