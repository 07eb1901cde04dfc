//! The contract between code that `foretell cc` compiled (crate `foretell-instrument`) and the
//! library it is linked with (crate `foretell-runtime`).
//!
//! # When hooks run
//! Every memory hook is called **right after** its access, by the thread that did it, with the
//! value. Under a serialising scheduler this is enough for an exact order: the hook records the
//! event and then, at its end, may hand the turn to another thread, so that a turn always begins
//! with the access and ends in its hook. (A switch after event *i* is a switch before event *i + 1*;
//! a thread's start is a scheduling point of its own.) A faulting access thus has no event: the
//! fault itself is what the runtime sees. Hooks must not unwind and must not touch `errno`.
//!
//! # Shadows
//! A shadow is a 32-bit name that the runtime gives to a symbolic expression. **0 means concrete**:
//! the value depends on no read. Shadows belong to the thread that made them and are never freed by
//! instrumented code. A value that is a pointer has a 64-bit shadow, a `float` or `double` that is
//! only moved has the shadow of its bits, a comparison's result has a 1-bit shadow. An operand whose
//! shadow is 0 stands for the constant given beside it, zero-extended to 64 bits. Single operations
//! whose operands all have shadow 0 are skipped inline; inside a composite one (an address with
//! several indices, a minimum) a builder may be called with such operands and **must give 0**. A
//! builder may also give 0 where the result is a constant after all.
//!
//! Operations without a builder (floating point, vectors, integers wider than 64 bits, arguments of
//! functions that are not instrumented) go on with concrete results. Before that, [`Hook::Pin`] says that the operand had to be what it was.
//!
//! A pin, and the address of an access, hold a value at what it was. Code that runs only after it
//! gives that value, and those from which it was computed injectively, the shadow 0. So whoever
//! evaluates shadows must demand of every access its recorded address.
//!
//! # Memory
//! *Local* memory is a stack variable whose address never leaves its function: it has no events, and
//! its shadows live in SSA values, in the frame, or in the runtime's map behind the
//! `__foretell_local_*` hooks. Everything else is an event, and a load's shadow names what that
//! read returned. Accesses of constants are not reported.
//!
//! # Accesses without a call
//! Most accesses are like the last one of the same instruction. Instrumented code keeps a [`Met`] for
//! each, and while the runtime says that the instruction was met, the address is near to where it
//! was, the value (and, for a store, its shadow) needs no more room and [`Cursor::limit`] is not
//! reached, it appends the record itself: before it looks at any of this it sets
//! [`CallSlots::entered`] to [`RECORDING`], then it writes the word, moves [`Cursor::next`], counts
//! the event in [`CallSlots::index`] and sets `entered` to the same. In all other cases it sets
//! `entered` back and calls the hook. The word is made of [`Met::word`], the distance from
//! [`Met::begin`] shifted by [`OFFSET_AT`], and the value shifted by [`VALUE_AT`]. A signal handler
//! that interrupts this sees that `entered` and `index` differ: `enter` then gives it slots with
//! nothing below their limit. Terms are built in the same way, see [`record`].
//!
//! # Calls
//! Shadows of arguments and results travel through the calling thread's [`CallSlots`]:
//! 1. The caller writes `arguments`, then `callee` (the address it calls), and sets `returned_by`
//!    to 0.
//! 2. An instrumented callee takes the shadows if `callee` is its own address, then sets `callee`
//!    to 0. Any other address means that an uninstrumented function called it: all concrete.
//! 3. Before it returns it writes `results` and, in `returned_by`, its own address. If it was called back, it
//!    restores `callee`: nobody took what was left for who called it back.
//! 4. The caller takes `results` if `returned_by` is what it called. If `callee` still stands, the
//!    callee is not instrumented and the shadowed arguments are pinned.
//!
//! # The stack of calls
//! `frame` is the value of the stack pointer's canonical frame address; stacks grow down, so calls
//! whose frame is lower than the current one's are over (they were left by an exception or by
//! `longjmp`).
#![no_std]

use core::ffi::c_char;
use core::sync::atomic::{AtomicU32, AtomicU64};

pub mod summaries;

/// The version of this contract; a module says which one it was compiled for.
pub const ABI_VERSION: u32 = 15;

/// A place in the source. Sites are constants in the instrumented module; one site has one address
/// for the life of the process, which serves as its identity.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// As given to the compiler, `?` when unknown. Ends in NUL, as do all strings here.
    pub file: *const c_char,
    /// Demangled.
    pub function: *const c_char,
    /// 1-based; 0 when unknown.
    pub line: u32,
    /// 1-based; 0 when unknown.
    pub column: u32,
}

/// A global variable of a module.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Global {
    /// First byte.
    pub address: *const u8,
    /// Bytes.
    pub size: u64,
    /// As in the source where debug information knows it, else the demangled symbol.
    pub name: *const c_char,
    /// Where it is declared, `?` when unknown.
    pub file: *const c_char,
    /// 1-based; 0 when unknown.
    pub line: u32,
    /// Explicit padding.
    pub reserved: u32,
    /// As [`Described::layout`].
    pub layout: *const c_char,
}

/// What a piece of memory is called.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// A variable's name; for what `new` makes, that of its type.
    pub name: *const c_char,
    /// The function that declares the variable, demangled; empty where there is none.
    pub function: *const c_char,
    /// What it consists of, empty where it is one piece: `foretell-record`'s `described` says how.
    pub layout: *const c_char,
    /// Bytes; 0 for all of the block that `new` made.
    pub size: u64,
}

/// What a module tells about itself when it is loaded.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// [`ABI_VERSION`] of the pass that made it.
    pub abi_version: u32,
    /// [`MODULE_SYMBOLIC`] or 0.
    pub flags: u32,
    /// The main source file.
    pub name: *const c_char,
    /// Its global variables, without constants and thread-locals.
    pub globals: *const Global,
    /// How many.
    pub global_count: u64,
    /// Functions that may be signal handlers and wake nobody: they, and all that they call, only compute,
    /// access memory, write output and end the program.
    pub quiet: *const *const u8,
    /// How many.
    pub quiet_count: u64,
}

/// The module keeps shadows; without it, it only reports concrete accesses and calls.
pub const MODULE_SYMBOLIC: u32 = 1;
/// The module was written in Rust.
pub const MODULE_RUST: u32 = 2;

/// How many leading arguments travel with a shadow; later ones are pinned.
pub const ARGUMENT_SLOTS: usize = 12;
/// How many scalars of a result travel with a shadow (a small struct is returned in parts).
pub const RESULT_SLOTS: usize = 4;

/// Where instrumented code appends records, see the module's text.
#[repr(C)]
#[derive(Debug)]
pub struct Cursor {
    /// Where the next word goes.
    pub next: *mut u64,
    /// From here on the hooks are to be called; null to call them always.
    pub limit: *mut u64,
    /// How many terms were defined.
    pub terms: u64,
}

/// What the runtime tells an instruction that accesses memory, see the module's text. All accesses
/// of a module with the same site, kind, size and order share one.
#[repr(C)]
#[derive(Debug)]
pub struct Met {
    /// The begin of the [`WINDOW`] that the address must be in; [`NEVER`] at first.
    pub begin: u64,
    /// What the record begins with.
    pub word: u64,
}

/// Bytes that an instruction's addresses may be apart.
pub const WINDOW: u64 = 1 << 19;
/// Where in a word the distance from the window's begin is.
pub const OFFSET_AT: u32 = 13;
/// Where in a word the value is.
pub const VALUE_AT: u32 = 32;
/// In [`CallSlots::entered`]: instrumented code records something. No index is as large.
pub const RECORDING: u32 = u32::MAX;
/// A window that no address is in.
pub const NEVER: u64 = 1 << 63;

/// The records of terms that instrumented code writes by itself. A first word has one of these in
/// bits 0..8, the operator in bits 8..16 and the rest above; the words after it are as the hook's
/// arguments.
pub mod record {
    /// Width in bits 16..24, above it the value of a concrete operand, of at most 32 bits; then
    /// `left | right << 32`.
    pub const DEFINE_BINARY: u64 = 68;
    /// Width before in bits 16..24, after in 24..32; then the operand.
    pub const DEFINE_CAST: u64 = 69;
    /// Width in bits 16..24; then `condition | then << 32`, `otherwise | condition's value << 32`,
    /// and the values of both.
    pub const DEFINE_SELECT: u64 = 70;
    /// Width of the index in bits 16..24, scale above; then the index, then the base.
    pub const DEFINE_ADDRESS: u64 = 78;
    /// Shadows of terms have this bit; the rest is the term's number.
    pub const TERM_SHADOW: u32 = 1 << 31;

    /// The first word of a record, with a width and what stands above it.
    pub const fn head(define: u64, operator: u32, width: u32, rest: u64) -> u64 {
        define | (operator as u64) << 8 | (width as u64) << 16 | rest << 24
    }
}

/// A thread's mailbox for shadows, see the module's text, and what it needs to append records.
/// Starts all zero but for `cursor`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CallSlots {
    /// Where records go while the thread has the turn.
    pub cursor: *mut Cursor,
    /// How many events the thread has had.
    pub index: u32,
    /// Something else than `index` while something is being recorded; else the same.
    pub entered: u32,
    /// Which bits of a read's shadow count: all, or none where expressions are left out.
    pub shadow_mask: u32,
    /// Not 0: the `path` hooks are to be called.
    pub path: u32,
    /// The function for which `arguments` are meant, 0 for none.
    pub callee: usize,
    /// The function that was called and may not be instrumented, 0 for none. Who is entered and is not the
    /// callee was called back by it.
    pub outside: usize,
    /// The function that left `results`, 0 for none.
    pub returned_by: usize,
    /// Shadows by position of the argument.
    pub arguments: [u32; ARGUMENT_SLOTS],
    /// Shadows of the result's scalars in order.
    pub results: [u32; RESULT_SLOTS],
    /// How many bytes of local memory of this thread have a shadow; while 0, the
    /// `__foretell_local_*` hooks are not called for concrete values.
    pub local_shadows: u32,
    /// Explicit padding.
    pub reserved: u32,
}

/// The packed description of an access: size in bits 0..8, order in bits 8..16, flags from 16, kind
/// of read-modify-write in bits 24..32.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessInfo(pub u32);

impl AccessInfo {
    /// The access is `volatile`.
    pub const VOLATILE: u32 = 1 << 16;
    /// The shadow that the hook returns is used; without it the hook may return 0.
    pub const SYMBOLIC: u32 = 1 << 17;
    /// The value is a `float` or `double`.
    pub const FLOAT: u32 = 1 << 18;

    /// Bytes: 1, 2, 4 or 8.
    pub const fn size(self) -> u32 {
        self.0 & 0xff
    }

    /// The memory order's number, as [`Order`] has it; 0 for a plain access.
    pub const fn order_code(self) -> u32 {
        (self.0 >> 8) & 7
    }

    /// Whether all bits of `flag` are set.
    pub const fn has(self, flag: u32) -> bool {
        self.0 & flag == flag
    }

    /// What a read-modify-write computes.
    pub const fn rmw(self) -> RmwKind {
        RmwKind::from_code(self.0 >> 24)
    }
}

/// Memory orders of atomic accesses; code 0 is a plain access.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `memory_order_relaxed`
    Relaxed = 1,
    /// `memory_order_acquire` and consume
    Acquire = 2,
    /// `memory_order_release`
    Release = 3,
    /// `memory_order_acq_rel`
    AcquireRelease = 4,
    /// `memory_order_seq_cst`
    SequentiallyConsistent = 5,
}

impl Order {
    /// From the number in [`AccessInfo`] or given to `__foretell_fence`.
    pub const fn from_code(code: u32) -> Option<Order> {
        match code {
            1 => Some(Order::Relaxed),
            2 => Some(Order::Acquire),
            3 => Some(Order::Release),
            4 => Some(Order::AcquireRelease),
            5 => Some(Order::SequentiallyConsistent),
            _ => None,
        }
    }
}

/// What an atomic read-modify-write stores, from the old value and the operand.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmwKind {
    /// Not one of the others (floating point, wrapping increments): the runtime reads the new value
    /// from memory and takes it as concrete, so it pins the old value.
    Other = 0,
    /// The operand.
    Exchange = 1,
    /// old + operand
    Add = 2,
    /// old - operand
    Sub = 3,
    /// old & operand
    And = 4,
    /// !(old & operand)
    Nand = 5,
    /// old | operand
    Or = 6,
    /// old ^ operand
    Xor = 7,
    /// Signed maximum.
    Max = 8,
    /// Signed minimum.
    Min = 9,
    /// Unsigned maximum.
    UMax = 10,
    /// Unsigned minimum.
    UMin = 11,
}

impl RmwKind {
    /// Unknown codes are [`RmwKind::Other`].
    pub const fn from_code(code: u32) -> RmwKind {
        match code {
            1 => RmwKind::Exchange,
            2 => RmwKind::Add,
            3 => RmwKind::Sub,
            4 => RmwKind::And,
            5 => RmwKind::Nand,
            6 => RmwKind::Or,
            7 => RmwKind::Xor,
            8 => RmwKind::Max,
            9 => RmwKind::Min,
            10 => RmwKind::UMax,
            11 => RmwKind::UMin,
            _ => RmwKind::Other,
        }
    }
}

/// Operators of `__foretell_expr_binary`. Meaning is LLVM's; comparisons give one bit.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // LLVM's own names
pub enum BinaryOp {
    Add = 0,
    Sub = 1,
    Mul = 2,
    UDiv = 3,
    SDiv = 4,
    URem = 5,
    SRem = 6,
    And = 7,
    Or = 8,
    Xor = 9,
    Shl = 10,
    LShr = 11,
    AShr = 12,
    Eq = 13,
    Ne = 14,
    Ult = 15,
    Ule = 16,
    Ugt = 17,
    Uge = 18,
    Slt = 19,
    Sle = 20,
    Sgt = 21,
    Sge = 22,
}

impl BinaryOp {
    /// All operators, by code.
    pub const ALL: [BinaryOp; 23] = {
        use BinaryOp::*;
        [
            Add, Sub, Mul, UDiv, SDiv, URem, SRem, And, Or, Xor, Shl, LShr, AShr, Eq, Ne, Ult, Ule,
            Ugt, Uge, Slt, Sle, Sgt, Sge,
        ]
    };

    /// The operator with this code.
    pub const fn from_code(code: u32) -> Option<BinaryOp> {
        if (code as usize) < Self::ALL.len() { Some(Self::ALL[code as usize]) } else { None }
    }

    /// Whether the result is one bit.
    pub const fn is_comparison(self) -> bool {
        self as u32 >= BinaryOp::Eq as u32
    }
}

/// Conversions of `__foretell_expr_cast`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastOp {
    /// Keeps the low bits.
    Truncate = 0,
    /// Fills with zeros.
    ZeroExtend = 1,
    /// Fills with the sign.
    SignExtend = 2,
}

impl CastOp {
    /// The conversion with this code.
    pub const fn from_code(code: u32) -> Option<CastOp> {
        match code {
            0 => Some(CastOp::Truncate),
            1 => Some(CastOp::ZeroExtend),
            2 => Some(CastOp::SignExtend),
            _ => None,
        }
    }
}

/// Why an expression was concretised; the runtime counts by reason.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinReason {
    /// Any operation that has no builder.
    Other = 0,
    /// Floating point.
    Float = 1,
    /// A vector, or an integer of more than 64 bits.
    Wide = 2,
    /// An argument of a function that is not instrumented, or of inline assembly.
    External = 3,
    /// Address or length of a memory copy, an alloca's size, an indirect callee.
    Address = 4,
    /// An argument beyond [`ARGUMENT_SLOTS`] or a variadic one.
    Argument = 5,
}

impl PinReason {
    /// How many reasons there are.
    pub const COUNT: usize = 6;
}

/// Instructions whose results differ from run to run.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `rdrand` and `rdseed`.
    Random = 0,
    /// `rdtsc`, `rdtscp` and other counters of cycles.
    Cycles = 1,
}

/// The call depends on the state.
pub const LOOKS: u32 = 1;
/// The call changes it.
pub const CHANGES: u32 = 2;
/// What a stream has buffered becomes the content of its file.
pub const FLUSHES: u32 = 4;
/// What the call gives to the stream may be something else in another interleaving, and is not held.
pub const VARIES: u32 = 16;
/// Nobody may use the state after the call.
pub const ENDS: u32 = 32;
/// The stream is one of C++, to which something is put out: how it does that is looked at.
pub const FORMATS: u32 = 8;

/// What a lock of Rust's is and how it is asked for: flags of the hooks `rust_acquire` and
/// `rust_release`.
pub mod rust_lock {
    /// A reader-writer lock; otherwise a mutex.
    pub const READER_WRITER: u32 = 1;
    /// For a reader.
    pub const SHARED: u32 = 2;
    /// Without waiting.
    pub const TRY: u32 = 4;
    /// The word is a byte; otherwise it has 32 bits.
    pub const BYTE: u32 = 8;
    /// It is given back by a subtraction.
    pub const SUBTRACT: u32 = 16;
}

/// What is done to a channel of Rust's standard library: for the hooks `rust_channel_begin` and
/// `rust_channel_end`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelCall {
    /// A message is sent.
    Send = 0,
    /// A message is sent, if there is room for it.
    TrySend = 1,
    /// A message is received.
    Receive = 2,
    /// A message is received, if there is one.
    TryReceive = 3,
    /// There is another sender.
    AddSender = 4,
    /// A sender goes.
    DropSender = 5,
    /// The receiver goes.
    DropReceiver = 6,
}

impl ChannelCall {
    /// All of them, by their numbers.
    pub const ALL: [ChannelCall; 7] = [
        ChannelCall::Send,
        ChannelCall::TrySend,
        ChannelCall::Receive,
        ChannelCall::TryReceive,
        ChannelCall::AddSender,
        ChannelCall::DropSender,
        ChannelCall::DropReceiver,
    ];
    /// The nanoseconds of a call without a time limit.
    pub const NO_LIMIT: u32 = 1_000_000_000;
}

/// What an `unseen` hook is about.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// A value that differs from run to run; the text says where it comes from.
    Varying = 0,
    /// Inline assembly that accesses memory or makes system calls; the text says which.
    Assembler = 1,
    /// A call of compiled code that synchronises threads; the text says which.
    Call = 2,
    /// A comparison with what a clock shows.
    Clock = 3,
}

/// In the flags of `__foretell_memcpy` and `__foretell_memset`: the destination is local memory.
pub const LOCAL_DESTINATION: u32 = 1;
/// In the flags of `__foretell_memcpy`: the source is local memory.
pub const LOCAL_SOURCE: u32 = 2;
/// In the flags of `__foretell_memcpy` and `__foretell_memset`: the module keeps shadows.
pub const COPY_SYMBOLIC: u32 = 4;
/// For the runtime's own copies: where the copy ended depends on what was copied, so that had to be what it was.
pub const COPY_HELD: u32 = 8;

/// The hooks: what instrumented code calls and the runtime exports, each an `extern "C"` function. `bool`s are
/// `u32` 0 or 1. The name of a macro is given, which gets the table; [`Hook`] is made of it here, and the
/// runtime compares its functions with it.
#[macro_export]
macro_rules! hooks {
    ($given:ident) => {
        $given! {
            /// Called by a constructor of each instrumented module (with priority 100, before the
            /// program's own constructors).
            Module = __foretell_module(module: *const Module);

            /// A scalar of 1, 2, 4 or 8 bytes was read. Gives the shadow that names this read.
            /// `value` is zero-extended; `address_shadow` is the shadow of the address; `met` may be null.
            Load = __foretell_load(
                address: *const u8,
                info: AccessInfo,
                value: u64,
                address_shadow: u32,
                site: *const Site,
                met: *mut Met,
            ) -> u32;

            /// A scalar was written; `shadow` is the value's.
            Store = __foretell_store(
                address: *const u8,
                info: AccessInfo,
                value: u64,
                shadow: u32,
                address_shadow: u32,
                site: *const Site,
                met: *mut Met,
            );

            /// An atomic read-modify-write of the kind in `info` read `old`. Gives the shadow that
            /// names what it read.
            Rmw = __foretell_rmw(
                address: *const u8,
                info: AccessInfo,
                old: u64,
                operand: u64,
                operand_shadow: u32,
                address_shadow: u32,
                site: *const Site,
            ) -> u32;

            /// A compare-and-swap read `old`; it stored `desired` if `success` is 1. Gives the
            /// shadow that names what it read. (The shadow of `success` is built by the caller.)
            Cmpxchg = __foretell_cmpxchg(
                address: *const u8,
                info: AccessInfo,
                old: u64,
                expected: u64,
                desired: u64,
                success: u32,
                expected_shadow: u32,
                desired_shadow: u32,
                address_shadow: u32,
                site: *const Site,
            ) -> u32;

            /// Takes a lock of Rust's standard library instead of a compare-and-swap of its word.
            /// Gives the word as it was: what was expected, if the lock was taken. `flags` as in
            /// [`rust_lock`].
            RustAcquire = __foretell_rust_acquire(
                word: *const AtomicU32,
                expected: u32,
                desired: u32,
                flags: u32,
                site: *const Site,
            ) -> u32;

            /// Gives it back instead of an exchange (mutexes) or a subtraction (reader-writer
            /// locks). Gives the word as it was.
            RustRelease = __foretell_rust_release(
                word: *const AtomicU32,
                operand: u32,
                flags: u32,
                site: *const Site,
            ) -> u32;

            /// Gives a thread the token that `park` takes, instead of an exchange of its word. Gives
            /// the word as it was.
            RustUnpark = __foretell_rust_unpark(
                word: *const AtomicU32,
                operand: u32,
                site: *const Site,
            ) -> u32;

            /// The place of the call that follows, of a function of Rust's standard library that the
            /// runtime stands in for.
            RustPlace = __foretell_rust_place(site: *const Site);

            /// Waits for the threads of a scope, of which the word counts those that run, instead
            /// of reading it. Gives what the word is then.
            RustScopeWait = __foretell_rust_scope_wait(
                word: *const AtomicU64,
                site: *const Site,
            ) -> u64;

            /// Code that handles panics begins (1) or ends (0).
            RustCatch = __foretell_rust_catch(begins: u32);

            /// The library is about to do something to a channel, see
            /// [`ChannelCall`]; whether it has a bound, and until when it may take (`CLOCK_MONOTONIC`).
            RustChannelBegin = __foretell_rust_channel_begin(
                call: u32,
                channel: *const u8,
                bounded: u32,
                seconds: u64,
                nanoseconds: u32,
            );

            /// It has done so.
            RustChannelEnd = __foretell_rust_channel_end(call: u32, channel: *const u8);

            /// A memory fence; `order` as in [`Order`].
            Fence = __foretell_fence(order: u32, site: *const Site);

            /// An atomic access of 16 bytes is about to be made (`begins` is 1), or was made: what it read and
            /// wrote is told in between.
            WideAtomic = __foretell_wide_atomic(object: *const u8, begins: u32, site: *const Site);

            /// Bytes were read in a way that keeps no shadows (vectors, wide floats, structs
            /// passed by value): in a symbolic module the values read are pinned (`symbolic` is 1).
            ReadRange = __foretell_read_range(
                address: *const u8,
                size: u64,
                symbolic: u32,
                site: *const Site,
            );

            /// Bytes were written, all concrete.
            WriteRange = __foretell_write_range(address: *const u8, size: u64, site: *const Site);

            /// `length` bytes were copied (`memcpy` and `memmove`; may overlap, so the values are
            /// to be taken from the destination). See [`LOCAL_DESTINATION`] for `flags`. Shadows of
            /// local sources go to the destination and those of reads to local destinations.
            Memcpy = __foretell_memcpy(
                destination: *const u8,
                source: *const u8,
                length: u64,
                flags: u32,
                site: *const Site,
            );

            /// `length` bytes were set to `byte`, whose shadow is `shadow` (8 bits).
            Memset = __foretell_memset(
                destination: *const u8,
                byte: u32,
                shadow: u32,
                length: u64,
                flags: u32,
                site: *const Site,
            );

            /// The shadow of `size` bytes (1, 2, 4, 8) of local memory; the runtime joins and
            /// cuts byte-wise where they were not stored as one. `value` is what the bytes hold.
            LocalLoad = __foretell_local_load(address: *const u8, size: u32, value: u64) -> u32;

            /// Gives local memory a shadow (0: none). Keeps [`CallSlots::local_shadows`].
            LocalStore = __foretell_local_store(address: *const u8, size: u64, shadow: u32);

            /// Operator as in [`BinaryOp`]; `width` is that of the operands (1..=64).
            ExprBinary = __foretell_expr_binary(
                op: u32,
                width: u32,
                left: u32,
                left_value: u64,
                right: u32,
                right_value: u64,
            ) -> u32;

            /// Operator as in [`CastOp`], between widths in bits.
            ExprCast = __foretell_expr_cast(op: u32, from: u32, to: u32, shadow: u32) -> u32;

            /// `base + extended(index) * scale`, an address with one index of `width` bits;
            /// `op` is the [`CastOp`] that extends it to 64 bits, `scale` is below 2^32.
            ExprAddress = __foretell_expr_address(
                op: u32,
                width: u32,
                index: u32,
                scale: u32,
                base: u64,
            ) -> u32;

            /// If-then-else over values of `width` bits.
            ExprSelect = __foretell_expr_select(
                width: u32,
                condition: u32,
                condition_value: u32,
                then: u32,
                then_value: u64,
                otherwise: u32,
                otherwise_value: u64,
            ) -> u32;

            /// The path went on because the 1-bit expression evaluated to `outcome`.
            Branch = __foretell_branch(shadow: u32, outcome: u32, site: *const Site, met: *mut Met);

            /// A conditional branch went this way; called for all of them, before `branch`, where
            /// [`CallSlots::path`] asks for it.
            Path = __foretell_path(outcome: u32, site: *const Site);

            /// A multi-way branch on `value` goes on; called for all, before `switch`.
            PathSwitch = __foretell_path_switch(
                value: u64,
                cases: *const u64,
                count: u64,
                site: *const Site,
            );

            /// A multi-way branch on `value`: taken by its case if it is among the `count` cases,
            /// else by default (the expression then differs from all).
            Switch = __foretell_switch(
                shadow: u32,
                width: u32,
                value: u64,
                cases: *const u64,
                count: u64,
                site: *const Site,
            );

            /// A branch one side of which reaches `abort`, `__assert_fail` or a trap. The
            /// assertion is that the 1-bit expression evaluates to `wanted`; it evaluated to `outcome`.
            /// Called also where the expression is concrete (`shadow` 0).
            Assert = __foretell_assert(shadow: u32, outcome: u32, wanted: u32, site: *const Site);

            /// The expression is used as the constant `value` (of `width` bits) from here on; reason
            /// as in [`PinReason`]. Shadow 0 is to be ignored.
            Pin = __foretell_pin(
                shadow: u32,
                width: u32,
                value: u64,
                reason: u32,
                site: *const Site,
            );

            /// A function was entered; `site` is its declaration. Gives the thread's slots, whose
            /// address stays the same for the life of the thread.
            Enter = __foretell_enter(site: *const Site, frame: *const u8) -> *mut CallSlots;

            /// As `enter`, for a function of the language's own library, which will return to
            /// `caller`. It is no call of the program's: what it does belongs to the line that called it.
            EnterLibrary = __foretell_enter_library(
                frame: *const u8,
                caller: *const u8,
            ) -> *mut CallSlots;

            /// What is at the address is a variable of the function that was entered, or a block that
            /// `new` made.
            Describe = __foretell_describe(address: *const u8, what: *const Described);

            /// The function with this frame is left, by return or by an exception passing on.
            Exit = __foretell_exit(frame: *const u8);

            /// Control arrived in the function with this frame from an exception or `longjmp`:
            /// all calls inside it are over.
            Unwind = __foretell_unwind(frame: *const u8);

            /// An instruction gave something that differs from run to run ([`Source`]). Gives
            /// what the program is to see instead: the same in every run, or `given` where nobody records.
            Value = __foretell_value(source: u32, given: u64, site: *const Site) -> u64;

            /// What follows depends on something that is neither seen nor replayed
            /// ([`Unseen`]).
            Unseen = __foretell_unseen(what: u32, text: *const c_char, site: *const Site);

            /// A loop that waits may be entered next: whatever was known of the last one is over.
            AwaitEnter = __foretell_await_enter();

            /// A round of a loop that waits begins, the first one or another. Of a round that is
            /// followed by another nothing is left: it wrote nothing that another thread can see, and nothing
            /// that it computed is used later.
            AwaitRound = __foretell_await_round(site: *const Site);

            /// Called after `branch` of a branch one side of which goes straight to the next round;
            /// `leaves`: it took the other one. `index` is the number of the thread's events before the branch.
            AwaitTest = __foretell_await_test(index: u32, leaves: u32, site: *const Site);

            /// The function that is called next looks at something, and a loop that waits goes round
            /// again if the comparison of its result with the constant has this outcome. `comparison`: 0 to 5 for
            /// equal, not equal, less, not greater, greater, not less. `alone`: a round does nothing else, so that
            /// the call may be made when the loop is left.
            AwaitLook = __foretell_await_look(
                comparison: u32, constant: u64, again: u32, alone: u32,
            );

            /// The position in [`summaries::SUMMARIES`] of a function that is called by its address,
            /// [`summaries::NO_SUMMARY`] for all others.
            SummaryOf = __foretell_summary_of(function: *const u8) -> u32;

            /// The C library is about to be called, and keeps something between its calls: a stream, or
            /// (`stream` is null) what `name` says. `effect` is a sum of [`LOOKS`] and its kin.
            State = __foretell_state(
                stream: *const u8,
                name: *const c_char,
                effect: u32,
                site: *const Site,
            );

            /// A function that is not instrumented has returned. `object`: of which object of the C++
            /// library it is a member; null otherwise. `given`: so many of its arguments point to memory that may change.
            Foreign = __foretell_foreign(
                function: *const u8,
                name: *const c_char,
                object: *const u8,
                given: u32,
                site: *const Site,
            );

            /// A function of [`summaries`] is about to be called, or has returned; `flags` is a sum of
            /// [`summaries::IS_OVER`] and [`summaries::IS_SYMBOLIC`].
            Library = __foretell_library(
                number: u32,
                flags: u32,
                first: u64,
                second: u64,
                third: u64,
                fourth: u64,
                fifth: u64,
                sixth: u64,
                seventh: u64,
                eighth: u64,
                ninth: u64,
                tenth: u64,
                result: u64,
                site: *const Site,
            );

            /// The user's mark (`FORETELL_ATOMIC_BEGIN` in `foretell.h`).
            RegionBegin = __foretell_region_begin(name: *const c_char, site: *const Site);

            /// The end of the innermost marked region.
            RegionEnd = __foretell_region_end(site: *const Site);
        }
    };
}

macro_rules! make_hooks {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident($($argument:ident: $ty:ty),* $(,)?)
        $(-> $result:ty)?;)*) => {
        /// A hook, see [`hooks!`].
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Hook {
            $($(#[$doc])* $name,)*
        }

        impl Hook {
            /// All of them.
            pub const ALL: &[Hook] = &[$(Hook::$name),*];

            /// The name of the function.
            pub const fn symbol(self) -> &'static str {
                match self { $(Hook::$name => stringify!($symbol)),* }
            }

            /// What it is given.
            pub const fn arguments(self) -> &'static [Scalar] {
                match self { $(Hook::$name => &[$(<$ty as Passed>::AS),*]),* }
            }

            /// What it gives.
            pub const fn result(self) -> Option<Scalar> {
                match self { $(Hook::$name => make_hooks!(@result $($result)?)),* }
            }
        }
    };
    (@result) => { None };
    (@result $result:ty) => { Some(<$result as Passed>::AS) };
}

hooks!(make_hooks);

/// How a value goes to a hook or comes from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scalar {
    /// 32 bits.
    Int32,
    /// 64 bits.
    Int64,
    /// An address.
    Pointer,
}

trait Passed {
    const AS: Scalar;
}

impl Passed for u32 {
    const AS: Scalar = Scalar::Int32;
}

impl Passed for AccessInfo {
    const AS: Scalar = Scalar::Int32;
}

impl Passed for u64 {
    const AS: Scalar = Scalar::Int64;
}

impl<T> Passed for *const T {
    const AS: Scalar = Scalar::Pointer;
}

impl<T> Passed for *mut T {
    const AS: Scalar = Scalar::Pointer;
}
