//! What is known of functions by their names: intrinsics of LLVM, and functions of the C library
//! that are never instrumented.

use crate::llvm::{Opcode, TypeKind, Value};
use crate::locals::is_pointer;
use crate::rust;
use foretell_abi::summaries::{Effect, Place, SUMMARIES, number_of};
use foretell_abi::{CHANGES, ENDS, FLUSHES, LOOKS};

/// Functions of the C library that are not instrumented, so that no shadows need be handed over.
const FOREIGN: &[&str] = &[
    "__assert_fail",
    "__ctype_b_loc",
    "__errno_location",
    "_Exit",
    "_exit",
    "abort",
    "calloc",
    "close",
    "exit",
    "fclose",
    "fflush",
    "fopen",
    "fprintf",
    "fputc",
    "fputs",
    "fread",
    "free",
    "fseek",
    "fwrite",
    "getenv",
    "malloc",
    "memchr",
    "memcmp",
    "nanosleep",
    "open",
    "perror",
    "printf",
    "pthread_cond_broadcast",
    "pthread_cond_signal",
    "pthread_cond_wait",
    "pthread_create",
    "pthread_exit",
    "pthread_join",
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pthread_self",
    "putc",
    "putchar",
    "puts",
    "qsort",
    "qsort_r",
    "quick_exit",
    "read",
    "realloc",
    "sched_yield",
    "sem_post",
    "sem_wait",
    "sleep",
    "snprintf",
    "sprintf",
    "strcmp",
    "strlen",
    "strncmp",
    "thrd_exit",
    "time",
    "usleep",
    "write",
];

/// Beginnings of names of functions of the runtime that report by themselves what they do to an object that they are given
/// a pointer to: locks, and memory that is freed (`operator delete`).
const OF_OBJECTS: &[&str] = &["_Zda", "_Zdl", "cnd_", "mtx_", "pthread_", "sem_", "thrd_"];
/// Functions of the runtime that report by themselves what they read.
const REPORTING: &[&str] = &[
    "getline", "pwrite", "pwrite64", "qsort", "qsort_r", "send", "sendmsg", "sendto", "strdup",
    "strndup", "write", "writev",
];

/// Whether the runtime reports what the function reads, or does to an object, before it is known that nobody took its
/// arguments.
pub fn reports(callee: Value) -> bool {
    let function = callee.as_function().filter(|function| function.is_declaration());
    function.is_some_and(|function| {
        let name = function.name();
        REPORTING.contains(&&*name) || OF_OBJECTS.iter().any(|begin| name.starts_with(begin))
    })
}

/// Functions of the runtime that leave an expression for their result, where the program looks at it.
const EXPRESSED: &[&str] = &["pthread_barrier_wait"];

/// Whether the runtime leaves an expression for the result of this function.
pub fn is_expressed(name: &str) -> bool {
    EXPRESSED.contains(&name)
}

/// Functions whose only effect is output: the rest of the run does not depend on what they were
/// given, as long as nobody looks at their result.
const OUTPUT_ONLY: &[&str] = &[
    "__fprintf_chk",
    "__printf_chk",
    "fflush",
    "fprintf",
    "fputc",
    "fputs",
    "fwrite",
    "perror",
    "printf",
    "putc",
    "putchar",
    "puts",
];

/// Functions that end the program because something is wrong; reaching one under a condition is a
/// failed assertion.
const FAILING: &[&str] = &[
    "_ZSt9terminatev",
    "_ZSt21__glibcxx_assert_failPKciS0_S0_",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "abort",
    "llvm.debugtrap",
    "llvm.trap",
    "llvm.ubsantrap",
];

/// Functions of the C library that keep something between their calls which is no memory of the program:
/// what it is (empty: the stream that is the argument at the position), and what they do to it.
const STATES: &[(&str, &str, u32, u32)] = &[
    ("clearenv", "the environment", 0, CHANGES),
    ("getenv", "the environment", 0, LOOKS),
    ("putenv", "the environment", 0, CHANGES),
    ("secure_getenv", "the environment", 0, LOOKS),
    ("setenv", "the environment", 0, CHANGES),
    ("unsetenv", "the environment", 0, CHANGES),
    ("rand", "rand", 0, LOOKS | CHANGES),
    ("srand", "rand", 0, CHANGES),
    ("random", "random", 0, LOOKS | CHANGES),
    ("srandom", "random", 0, CHANGES),
    ("drand48", "drand48", 0, LOOKS | CHANGES),
    ("lrand48", "drand48", 0, LOOKS | CHANGES),
    ("mrand48", "drand48", 0, LOOKS | CHANGES),
    ("srand48", "drand48", 0, CHANGES),
    ("strtok", "strtok", 0, LOOKS | CHANGES),
    ("getopt", "getopt", 0, LOOKS | CHANGES),
    ("getopt_long", "getopt", 0, LOOKS | CHANGES),
    ("hcreate", "the hash table", 0, CHANGES),
    ("hdestroy", "the hash table", 0, CHANGES),
    ("hsearch", "the hash table", 0, LOOKS | CHANGES),
    ("pthread_getname_np", "names of threads", 0, LOOKS),
    ("pthread_setname_np", "names of threads", 0, CHANGES),
    ("getpriority", "priorities", 0, LOOKS),
    ("nice", "priorities", 0, LOOKS | CHANGES),
    ("pthread_getschedparam", "priorities", 0, LOOKS),
    ("pthread_setschedparam", "priorities", 0, CHANGES),
    ("pthread_setschedprio", "priorities", 0, CHANGES),
    ("sched_getparam", "priorities", 0, LOOKS),
    ("sched_getscheduler", "priorities", 0, LOOKS),
    ("sched_setparam", "priorities", 0, CHANGES),
    ("sched_setscheduler", "priorities", 0, CHANGES),
    ("setpriority", "priorities", 0, CHANGES),
    ("tdelete", "the search trees", 0, LOOKS | CHANGES),
    ("tfind", "the search trees", 0, LOOKS),
    ("tsearch", "the search trees", 0, LOOKS | CHANGES),
    ("twalk", "the search trees", 0, LOOKS),
    ("closedir", "open directories", 0, CHANGES),
    ("readdir", "open directories", 0, LOOKS | CHANGES),
    ("readdir64", "open directories", 0, LOOKS | CHANGES),
    ("rewinddir", "open directories", 0, CHANGES),
    ("seekdir", "open directories", 0, CHANGES),
    ("telldir", "open directories", 0, LOOKS),
    ("getgrgid", "getgrgid and getgrnam", 0, LOOKS | CHANGES),
    ("getgrnam", "getgrgid and getgrnam", 0, LOOKS | CHANGES),
    ("gethostbyname", "gethostbyname", 0, LOOKS | CHANGES),
    ("getpwnam", "getpwnam and getpwuid", 0, LOOKS | CHANGES),
    ("getpwuid", "getpwnam and getpwuid", 0, LOOKS | CHANGES),
    ("localeconv", "the locale", 0, LOOKS),
    ("bind", "the names of sockets", 0, LOOKS | CHANGES),
    ("connect", "the names of sockets", 0, LOOKS),
    ("listen", "the names of sockets", 0, CHANGES),
    ("__isoc23_fscanf", "", 0, LOOKS | CHANGES),
    ("__isoc99_fscanf", "", 0, LOOKS | CHANGES),
    ("fclose", "", 0, CHANGES | FLUSHES | ENDS),
    ("fflush", "", 0, FLUSHES),
    ("fgetc", "", 0, LOOKS | CHANGES),
    ("fgets", "", 2, LOOKS | CHANGES),
    ("fprintf", "", 0, CHANGES),
    ("fputc", "", 1, CHANGES),
    ("fputs", "", 1, CHANGES),
    ("fread", "", 3, LOOKS | CHANGES),
    ("fscanf", "", 0, LOOKS | CHANGES),
    ("fseek", "", 0, LOOKS | CHANGES | FLUSHES),
    ("fseeko", "", 0, LOOKS | CHANGES | FLUSHES),
    ("ftell", "", 0, LOOKS),
    ("ftello", "", 0, LOOKS),
    ("fwrite", "", 3, CHANGES),
    ("getc", "", 0, LOOKS | CHANGES),
    ("getdelim", "", 3, LOOKS | CHANGES),
    ("getline", "", 2, LOOKS | CHANGES),
    ("putc", "", 1, CHANGES),
    ("rewind", "", 0, LOOKS | CHANGES | FLUSHES),
    ("vfprintf", "", 0, CHANGES),
];

/// What the library's function of this name keeps between its calls: its name, where the stream is
/// handed over, and the effect.
pub fn state_of(name: &str) -> Option<(&'static str, u32, u32)> {
    let found = STATES.iter().find(|(function, ..)| *function == name);
    found.map(|&(_, state, position, effect)| (state, position, effect))
}

/// Mangled beginnings of members of strings and streams that the C++ library has compiled.
const MEMBERS: &[&str] = &["_ZNSt7__cxx11", "_ZNKSt7__cxx11", "_ZNSo", "_ZNSi", "_ZNSs", "_ZNKSs"];

/// Whether the function changes an object of the C++ library, its first argument, in compiled code.
pub fn is_member_of_library(name: &str) -> bool {
    starts(name, MEMBERS) || is_stream_output(name)
}

/// Whether the function is the C++ library's output to a stream.
pub fn is_stream_output(name: &str) -> bool {
    starts(name, STREAM_OUTPUT)
}

/// Whether the callee is a declaration of a C library function that is not instrumented.
pub fn is_foreign(callee: Value) -> bool {
    callee.as_function().is_some_and(|function| {
        function.is_declaration() && FOREIGN.contains(&function.name().as_str())
    })
}

/// Mangled beginnings of what the C++ library has for formatted output to a stream. The result is
/// the stream again, so it may well be used.
const STREAM_OUTPUT: &[&str] = &[
    "_ZNSolsE",
    "_ZNSo3putEc",
    "_ZNSo5flushEv",
    "_ZNSo5writeEPKcl",
    "_ZNSo9_M_insertI",
    "_ZSt16__ostream_insertI",
    "_ZStlsISt11char_traitsI",
];

/// The streams of which nobody reads what they are given.
const STANDARD_STREAMS: &[&str] = &["_ZSt4cout", "_ZSt4cerr", "_ZSt4clog"];

/// Whether the value is one of the standard streams, as it is or as what output to it gives back.
fn is_standard_stream(stream: Value) -> bool {
    if matches!(stream.instruction_opcode(), Some(Opcode::LLVMCall | Opcode::LLVMInvoke)) {
        let callee = stream.callee().as_function().map(Value::name).unwrap_or_default();
        return (is_stream_output(&callee)
            || callee.starts_with("_ZSt4endl")
            || callee.starts_with("_ZSt5flush"))
            && is_standard_stream(stream.operand(0));
    }
    STANDARD_STREAMS.contains(&stream.name().as_str())
}

/// Whether the call only writes output.
pub fn is_output_only(call: Value) -> bool {
    call.callee().as_function().is_some_and(|function| {
        let name = function.name();
        function.is_declaration()
            && (is_stream_output(&name) && is_standard_stream(call.operand(0))
                || rust::is_output_only(&name)
                || (!call.is_used() && OUTPUT_ONLY.contains(&name.as_str())))
    })
}

/// Whether reaching the function means that an assertion failed.
pub fn is_failing(function: &str) -> bool {
    FAILING.contains(&function) || rust::panics(function)
}

/// Whether the function is what the macro `assert` calls: it stands where the assertion does.
pub fn is_assertion(function: &str) -> bool {
    ["__assert", "__assert_fail", "__assert_perror_fail"].contains(&function)
}

/// The result and the parameters of functions whose arguments the pass relies on: a pointer, an
/// integer or nothing.
const SIGNATURES: &[(&str, &str)] = &[
    ("memcpy", "pppi"),
    ("memmove", "pppi"),
    ("__memcpy_chk", "pppii"),
    ("__memmove_chk", "pppii"),
    ("memset", "ppii"),
    ("__memset_chk", "ppiii"),
];

/// The number of the summary for a call of the function with this name, where it is made as the library
/// declares it.
pub fn summary_of(call: Value, name: &str) -> Option<usize> {
    let number = number_of(name)?;
    // Nobody changes a text that is a constant.
    let is_variable = |position| {
        is_pointer(call.operand(position)) && !call.operand(position).is_constant_global()
    };
    let mut positions = 0..call.argument_count();
    let matters = SUMMARIES[number].effects.iter().any(|effect| match effect {
        Effect::Reads(Place::Argument(position), _) => {
            u32::from(*position) < call.argument_count() && is_variable((*position).into())
        }
        Effect::Reads(..) | Effect::Formats(..) => positions.any(is_variable),
        _ => true,
    });
    (matters && fits(call, SUMMARIES[number].signature)).then_some(number)
}

/// Whether the call hands over what the library's function of this name expects. A program can
/// declare such a function in its own way; then nothing is known about the call.
pub fn is_called_as_declared(call: Value, name: &str) -> bool {
    let Some((_, signature)) = SIGNATURES.iter().find(|(known, _)| *known == name) else {
        return false;
    };
    fits(call, signature)
}

/// Whether result and arguments are as the signature has them.
fn fits(call: Value, signature: &str) -> bool {
    let arguments = (0..call.argument_count()).map(|position| call.operand(position).ty());
    let mut types = std::iter::once(call.ty()).chain(arguments).map(|ty| letter(ty.kind()));
    match signature.strip_suffix('.') {
        Some(fixed) => types.by_ref().take(fixed.len()).eq(fixed.chars()),
        None => types.eq(signature.chars()),
    }
}

fn letter(kind: TypeKind) -> char {
    match kind {
        TypeKind::LLVMPointerTypeKind => 'p',
        TypeKind::LLVMIntegerTypeKind => 'i',
        TypeKind::LLVMVoidTypeKind => 'v',
        TypeKind::LLVMFloatTypeKind | TypeKind::LLVMDoubleTypeKind => 'f',
        _ => '?',
    }
}

/// A call of `memcpy` or `memmove` by name rather than by intrinsic.
pub fn is_named_copy(name: &str) -> bool {
    matches!(name, "memcpy" | "memmove" | "__memcpy_chk" | "__memmove_chk")
}

/// A call of `memset` by name rather than by intrinsic.
pub fn is_named_fill(name: &str) -> bool {
    matches!(name, "memset" | "__memset_chk")
}

/// Intrinsics (without `llvm.`) that give their first argument.
pub fn is_identity(name: &str) -> bool {
    starts(
        name,
        &[
            "expect.",
            "launder.invariant.group",
            "strip.invariant.group",
            "ssa.copy",
            "annotation.",
            "ptr.annotation",
        ],
    )
}

/// Intrinsics that do not compute anything.
pub fn is_ignored(name: &str) -> bool {
    starts(
        name,
        &[
            "dbg.",
            "lifetime.",
            "assume",
            "donothing",
            "prefetch",
            "stacksave",
            "stackrestore",
            "invariant.",
            "sideeffect",
            "var.annotation",
            "va_",
            "eh.",
            "experimental.noalias",
            "pseudoprobe",
            "trap",
            "debugtrap",
            "ubsantrap",
            "threadlocal.address",
            "frameaddress",
            "returnaddress",
            "is.constant",
            "objectsize",
        ],
    )
}

/// Intrinsics that `expression` turns into expressions.
pub fn has_expression(name: &str) -> bool {
    starts(
        name,
        &[
            "umin.",
            "umax.",
            "smin.",
            "smax.",
            "abs.",
            "usub.sat.",
            "fshl.",
            "fshr.",
            "uadd.with.overflow.",
            "usub.with.overflow.",
            "umul.with.overflow.",
            "sadd.with.overflow.",
            "ssub.with.overflow.",
            "smul.with.overflow.",
        ],
    )
}

fn starts(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}
