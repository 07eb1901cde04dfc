//! The text format (`.ft`): what a person writes in a test and reads with `foretell trace cat`. It
//! says everything that a [`Trace`](crate::trace::Trace) holds.
//!
//! ```text
//! foretell-trace 1
//! symbolic                       # absent terms depend on no read
//! observed                       # the order of the events was observed in a run
//! thread main, T1, T2            # creation paths 0, 0.0, 0.1 unless given: `thread T1 path 0.4`
//! var balance = 100, y : bv32 = 5, flags : (Array int bool)
//! var count : bv32 = 0 at 0x1000 size 4 generation 2
//! local a of T1 : bool
//! mutex m at 0x2000
//! cond c
//! sem s = 1
//! barrier b 2
//! pre (> balance 0)
//!
//! main fork T1
//! T1 acquire m
//! T1 old = read balance = 100 @ bank.c:12:5 deposit
//! T1 branch (> old 0) true
//! w1: T1 write balance = 101 := (+ r1 1) @ bank.c:13:5 deposit
//! T1 release m
//! T1 assert (= old 100)
//! T2 assign balance := (+ balance 1), y := 3
//! T2 assume (> balance 0) assign y := 4
//! T2 transition (> balance' balance) changes balance
//! order w1 < T2#0                # holds in every interleaving
//! atomic T1#0 T1#4               # runs without interruption
//! ```
//!
//! One statement a line; a line goes on while a parenthesis is open. `#` starts a comment. Values
//! and sorts may be left out: the sort is then `int`, the value not known.
//!
//! **Declarations**, before the events (comma-separated lists; things are declared before they are
//! used): `command "prog" "arg" ...`, `build-id HEX`, `symbolic`, `observed`, `machine-code`, `unknown-library`,
//! `unknown-locks`, `freed-in-use` (see [`crate::Unseen`]), `gap "sentence"`,
//! `restriction "sentence"`, `thread NAME [path 0.1.2]`, `var NAME [: SORT] [= VALUE] [at ADDRESS size N [generation N]]`,
//! `local NAME of THREAD ...` (the rest as `var`), `mutex`, `recursive`, `errorcheck`, `rwlock`,
//! `cond` `NAME`, `sem NAME = COUNT`, `barrier NAME PARTIES`, `channel NAME queue|state|interrupt` (each may end with `at ADDRESS`), `site FILE:LINE:COLUMN [FUNCTION]`,
//! `symbol NAME : SORT`, `pre TERM`. Anywhere: `define %NAME := TERM` gives a term a name.
//!
//! **Events**: `[LABEL:] THREAD OPERATION [@ FILE:LINE[:COLUMN] [FUNCTION]]` with one of
//!
//! | operation | |
//! |---|---|
//! | `begin`, `end` | of the thread |
//! | `fork THREAD`, `join THREAD` | |
//! | `[NAME =] read VAR [= VALUE] [at TERM]` | `read.acquire` etc. for an atomic read; `at` gives the address as a term |
//! | `write VAR [= VALUE] [:= TERM] [at TERM]` | `write.release` etc. |
//! | `[NAME =] rmw VAR [= OLD] [-> NEW] [:= TERM] [at TERM]` | atomic; `rmw.relaxed` etc., else `seq_cst` |
//! | `acquire`, `release` `LOCK` | `.shared` for readers, `try-acquire` by a try that succeeded |
//! | `acquire-failed`, `try-acquire-failed` `LOCK` | found the lock taken |
//! | `wait-begin`, `wait-end`, `wait-timeout` `COND MUTEX [timed]` | `timed`: the wait had a time limit |
//! | `signal`, `broadcast` `COND` | |
//! | `sem-wait SEM [try]`, `sem-wait-failed SEM`, `sem-post SEM` | `try`: it would have failed rather than waited for ever |
//! | `barrier-arrive`, `barrier-leave` `BARRIER` | |
//! | `send CHANNEL AMOUNT [= CONTENT]` | bytes or messages; equal numbers for equal content |
//! | `receive CHANNEL AMOUNT [drained] [try]` | drained: took all there was; try: would not have waited |
//! | `poll`, `poll-empty` `CHANNEL` | looked, and there was something or nothing |
//! | `destroy OBJECT` | |
//! | `fence ORDER` | relaxed, acquire, release, acq_rel, seq_cst |
//! | `branch`, `assert` `[TERM] [true\|false]` | without a term: depends on no read; without an outcome: true |
//! | `region NAME`, `region-end` | a block that should be atomic |
//! | `call NAME`, `return` | |
//! | `alloc ADDRESS SIZE`, `free ADDRESS` | |
//! | `input SOURCE = VALUE` | |
//! | `assume TERM [assign ...]`, `assign VAR := TERM, ...` | a guarded assignment |
//! | `transition TERM [changes VAR ...]` | without `changes`: the primed variables |
//!
//! and, after the events, `order EVENT < EVENT` and `atomic EVENT EVENT`, where an event is its
//! label, `THREAD#INDEX`, or `eN` (the N-th event of the file, from 0).
//!
//! **Terms** are SMT-LIB (see [`crate::sexpr`]). `x` is a variable, `x'` its value after the step,
//! `rN` what event N of the same thread (counted from 0) read, as is the name given to the result;
//! `(read T2 4)` the same of another thread; `(before e1 e2)`, `(symbol 0)`, and
//! `(array SORT DEFAULT (INDEX ELEMENT) ...)`. A thread's local hides a shared variable of that
//! name. `(as r3 bv32)` gives a sort where it cannot be known.
//!
//! **Names** with other characters than letters, digits and `_.:/[]<>&*+-~` stand between bars:
//! `|operator new(int)|`. Two things of one name are told apart by their number: `x$3` is the
//! fourth variable.

mod read;
mod write;

pub(crate) use read::parse_site;
pub use read::read;
pub(crate) use write::print_site;
pub use write::write;

use crate::event::MemoryOrder;
use crate::sexpr;

/// Words that begin a declaration; a thread of such a name stands between bars.
const DECLARATIONS: [&str; 28] = [
    "foretell-trace",
    "command",
    "build-id",
    "symbolic",
    "observed",
    "machine-code",
    "unknown-library",
    "unknown-locks",
    "freed-in-use",
    "gap",
    "restriction",
    "thread",
    "var",
    "local",
    "mutex",
    "recursive",
    "errorcheck",
    "rwlock",
    "cond",
    "sem",
    "barrier",
    "channel",
    "site",
    "symbol",
    "pre",
    "define",
    "order",
    "atomic",
];

/// Words that have a meaning behind a name.
const KEYWORDS: [&str; 12] = [
    "at",
    "size",
    "generation",
    "of",
    "path",
    "assign",
    "changes",
    "true",
    "false",
    "drained",
    "try",
    "timed",
];

const MEMORY_ORDERS: [(&str, MemoryOrder); 5] = [
    ("relaxed", MemoryOrder::Relaxed),
    ("acquire", MemoryOrder::Acquire),
    ("release", MemoryOrder::Release),
    ("acq_rel", MemoryOrder::AcquireRelease),
    ("seq_cst", MemoryOrder::SequentiallyConsistent),
];

/// The name as it stands in a file: between bars unless it can do without.
fn word(name: &str) -> String {
    let plain =
        |character: char| character.is_alphanumeric() || "_.:/[]<>&*+-~".contains(character);
    let number = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let bare = name.starts_with(|first: char| first.is_alphanumeric() || first == '_')
        && name.chars().all(plain)
        && !name.ends_with(':')
        && !number
        && numbered(name, 'r').is_none()
        && numbered(name, 'e').is_none()
        && !DECLARATIONS.contains(&name)
        && !KEYWORDS.contains(&name);
    if bare { name.to_owned() } else { sexpr::quoted(name, '|') }
}

/// The number N of `rN` or `eN`.
fn numbered(name: &str, prefix: char) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    let canonical = digits == "0" || !digits.starts_with('0');
    let digits_only = digits.bytes().all(|byte| byte.is_ascii_digit());
    (canonical && digits_only).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests;
