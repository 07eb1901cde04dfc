//! What functions of the C library read and write in the program's memory.
//!
//! They are not instrumented. The pass tells the runtime of each call of one that is in this table, before and
//! after it, and the runtime reports the accesses. What is read is held at the values that it had, because what
//! the function makes of it is not seen; copies have the values that they were made of.
//!
//! What functions read that only write output (`printf` and its kin, `write` to a terminal) is not held, unless the
//! program looks at their result: nothing else depends on it. Not here are those that the runtime replaces and that report by themselves (`read`, `memcpy`, `strdup` and
//! so on); of others that it replaces (`nanosleep`, `poll`) the structures that they are given are.

use Effect::{Appends, Copies, Formats, Gives, Reads, Scans, Takes, Writes};
use Extent::{
    Array, Bytes, Counted, Family, Fixed, Found, ResultText, ResultTimes, ResultWithin, Shorter,
    Text, TextWithin, Times, Wide,
};
use Place::{Argument, Pointed, Returned};

/// So many arguments of a call are told; those that follow are not.
pub const TOLD: usize = 10;

/// Flag of the hook: the function has returned.
pub const IS_OVER: u32 = 1;
/// Flag of the hook: the caller was compiled for expressions.
pub const IS_SYMBOLIC: u32 = 2;
/// Flag of the hook: the program looks at the function's result.
pub const IS_USED: u32 = 4;

/// In the place of a position in [`SUMMARIES`]: the function has none.
pub const NO_SUMMARY: u32 = u32::MAX;

/// Where an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the argument points to.
    Argument(u8),
    /// Where the pointer points to that the argument points to.
    Pointed(u8),
    /// Where the result points to.
    Returned,
}

/// How many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many.
    Fixed(u64),
    /// As the argument says.
    Bytes(u8),
    /// As many as the argument says, each of so many bytes.
    Array(u8, u64),
    /// The product of two arguments.
    Times(u8, u8),
    /// As the 32-bit number says that the argument points to.
    Counted(u8),
    /// A text with its end.
    Text,
    /// A text of wide characters with its end.
    Wide,
    /// A text with its end, of which at most as many bytes are looked at as the argument says.
    TextWithin(u8),
    /// No more than the shorter of two texts with its end; the limit is an argument.
    Shorter(u8, Option<u8>),
    /// One more than the result says: a text with its end.
    ResultText,
    /// One more than the result says, and at most as the argument says.
    ResultWithin(u8),
    /// The result times an argument.
    ResultTimes(u8),
    /// Up to where the result points to; if that is nowhere, as many as the argument says, or a text with its end.
    Found(Option<u8>),
    /// An Internet address of the family that the argument says.
    Family(u8),
}

/// What a function does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reads it.
    Reads(Place, Extent),
    /// Writes it.
    Writes(Place, Extent),
    /// Copies a text with its end to an argument from another one; with a limit, it fills up to that.
    Copies(u8, u8, Option<u8>),
    /// Appends a text to that of an argument from another one, with a limit on the bytes appended.
    Appends(u8, u8, Option<u8>),
    /// Reads the texts that a format asks for: the format, and the first argument for it.
    Formats(u8, u8),
    /// Writes what a format of `scanf` asks for, as far as the result says: the format, and the first argument for it.
    Scans(u8, u8),
    /// Allocates memory that is the program's from now on, to be freed by it; where it is, a pointer says. Where that leads
    /// to memory that was there before, nothing was allocated.
    Gives(Place),
    /// Takes the next token of the text, or of the one that is remembered at the second argument.
    Takes(Option<u8>, u8),
}

/// A function: its name, its result and parameters (`p` a pointer, `i` an integer, `f` a floating-point number,
/// `v` nothing; `.`: more may follow), and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// As the linker knows it.
    pub name: &'static str,
    /// Result and parameters.
    pub signature: &'static str,
    /// In the order in which they are reported.
    pub effects: &'static [Effect],
    /// Where what it reads goes.
    pub goes: Goes,
}

/// Where what a function reads goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// Into its result, or into what it writes.
    Back,
    /// To somebody who looks at it: it may be something else in another interleaving.
    Out,
    /// Into the stream of C++ that is the first argument.
    ToStream,
    /// To whatever the first argument is a descriptor of. The program may read it again.
    ToDescriptor,
}

const fn summary(
    name: &'static str,
    signature: &'static str,
    effects: &'static [Effect],
) -> Summary {
    Summary { name, signature, effects, goes: Goes::Back }
}

const fn output(
    name: &'static str,
    signature: &'static str,
    effects: &'static [Effect],
) -> Summary {
    Summary { name, signature, effects, goes: Goes::Out }
}

const fn sends(name: &'static str, signature: &'static str, effects: &'static [Effect]) -> Summary {
    Summary { name, signature, effects, goes: Goes::ToDescriptor }
}

const fn puts_out(
    name: &'static str,
    signature: &'static str,
    effects: &'static [Effect],
) -> Summary {
    Summary { name, signature, effects, goes: Goes::ToStream }
}

/// `struct timespec`.
const TIME: Extent = Fixed(16);
/// Three `fd_set`, and a time.
const SETS: &[Effect] = &[
    Reads(Argument(1), Fixed(128)),
    Reads(Argument(2), Fixed(128)),
    Reads(Argument(3), Fixed(128)),
    Reads(Argument(4), TIME),
];
const COPIED_TEXT: &[Effect] = &[Reads(Argument(1), Text)];
/// A `std::string` is a pointer, a length, and what the pointer may point to.
const COPIED_STRING: &[Effect] = &[Reads(Argument(1), Fixed(16)), Reads(Pointed(1), Text)];
/// `struct tm`.
const BROKEN_DOWN: Extent = Fixed(56);
const LINE: &[Effect] = &[
    Writes(Argument(0), Fixed(8)),
    Writes(Argument(1), Fixed(8)),
    Gives(Pointed(0)),
    Writes(Pointed(0), ResultText),
];
const SOCKET_ADDRESS: &[Effect] = &[Writes(Argument(2), Fixed(4)), Writes(Argument(1), Counted(2))];
const NUMBER: &[Effect] = &[Reads(Argument(0), Text)];
const NUMBER_AND_END: &[Effect] = &[Reads(Argument(0), Text), Writes(Argument(1), Fixed(8))];
const COMPARED: &[Effect] =
    &[Reads(Argument(0), Shorter(1, None)), Reads(Argument(1), Shorter(0, None))];
const COMPARED_WITHIN: &[Effect] =
    &[Reads(Argument(0), Shorter(1, Some(2))), Reads(Argument(1), Shorter(0, Some(2)))];
const SCANNED: &[Effect] = &[Reads(Argument(0), Text), Reads(Argument(1), Text), Scans(1, 2)];
const BOTH_TEXTS: &[Effect] = &[Reads(Argument(0), Text), Reads(Argument(1), Text)];

/// All of them, by name.
pub const SUMMARIES: &[Summary] = &[
    output("__fprintf_chk", "ipip.", &[Formats(2, 3)]),
    summary("__getdelim", "ippip", LINE),
    summary("__isoc23_strtol", "ippi", NUMBER_AND_END),
    summary("__isoc23_strtoll", "ippi", NUMBER_AND_END),
    summary("__isoc23_strtoul", "ippi", NUMBER_AND_END),
    summary("__isoc23_strtoull", "ippi", NUMBER_AND_END),
    summary("__isoc23_strtoimax", "ippi", NUMBER_AND_END),
    summary("__isoc23_strtoumax", "ippi", NUMBER_AND_END),
    summary("__isoc23_sscanf", "ipp.", SCANNED),
    summary("__isoc99_sscanf", "ipp.", SCANNED),
    summary("__isoc23_fscanf", "ipp.", &[Scans(1, 2)]),
    summary("__isoc23_scanf", "ip.", &[Scans(0, 1)]),
    summary("__isoc99_fscanf", "ipp.", &[Scans(1, 2)]),
    summary("__isoc99_scanf", "ip.", &[Scans(0, 1)]),
    output("__printf_chk", "iip.", &[Formats(1, 2)]),
    summary("__snprintf_chk", "ipiiip.", &[Formats(4, 5), Writes(Argument(0), ResultWithin(1))]),
    summary("__sprintf_chk", "ipiip.", &[Formats(3, 4), Writes(Argument(0), ResultText)]),
    summary("__strcat_chk", "pppi", &[Appends(0, 1, None)]),
    summary("__strcpy_chk", "pppi", &[Copies(0, 1, None)]),
    summary("__strncat_chk", "pppii", &[Appends(0, 1, Some(2))]),
    summary("__strtok_r", "pppp", &[Takes(Some(0), 2)]),
    summary("__strncpy_chk", "pppii", &[Copies(0, 1, Some(2))]),
    summary("a64l", "ip", NUMBER),
    summary("access", "ipi", NUMBER),
    summary("asctime", "pp", &[Reads(Argument(0), BROKEN_DOWN), Writes(Returned, Text)]),
    summary("asctime_r", "ppp", &[Reads(Argument(0), BROKEN_DOWN), Writes(Argument(1), Text)]),
    summary(
        "asprintf",
        "ipp.",
        &[
            Formats(1, 2),
            Writes(Argument(0), Fixed(8)),
            Gives(Pointed(0)),
            Writes(Pointed(0), ResultText),
        ],
    ),
    summary("atof", "fp", NUMBER),
    summary("atoi", "ip", NUMBER),
    summary("atol", "ip", NUMBER),
    summary("atoll", "ip", NUMBER),
    summary("bcmp", "ippi", &[Reads(Argument(0), Bytes(2)), Reads(Argument(1), Bytes(2))]),
    summary("bzero", "vpi", &[Writes(Argument(0), Bytes(1))]),
    summary("clock_nanosleep", "iiipp", &[Reads(Argument(2), TIME)]),
    summary("cnd_timedwait", "ippp", &[Reads(Argument(2), TIME)]),
    summary("ctime", "pp", &[Reads(Argument(0), Fixed(8)), Writes(Returned, Text)]),
    summary("ctime_r", "ppp", &[Reads(Argument(0), Fixed(8)), Writes(Argument(1), Text)]),
    summary("epoll_ctl", "iiiip", &[Reads(Argument(3), Fixed(12))]),
    summary("explicit_bzero", "vpi", &[Writes(Argument(0), Bytes(1))]),
    summary("fgets", "ppip", &[Writes(Returned, Text)]),
    output("fprintf", "ipp.", &[Formats(1, 2)]),
    output("fputs", "ipp", &[Reads(Argument(0), Text)]),
    summary("fnmatch", "ippi", BOTH_TEXTS),
    summary("fopen", "ppp", BOTH_TEXTS),
    summary("fread", "ipiip", &[Writes(Argument(0), ResultTimes(1))]),
    output("fwrite", "ipiip", &[Reads(Argument(0), Times(1, 2))]),
    summary("fscanf", "ipp.", &[Scans(1, 2)]),
    summary("getcwd", "ppi", &[Gives(Returned), Writes(Returned, Text)]),
    summary("getdelim", "ippip", LINE),
    summary("getenv", "pp", NUMBER),
    summary("gethostname", "ipi", &[Writes(Argument(0), TextWithin(1))]),
    summary("getline", "ippp", LINE),
    summary("getpeername", "iipp", SOCKET_ADDRESS),
    summary("getsockname", "iipp", SOCKET_ADDRESS),
    summary("gmtime", "pp", &[Reads(Argument(0), Fixed(8)), Writes(Returned, BROKEN_DOWN)]),
    summary("gmtime_r", "ppp", &[Reads(Argument(0), Fixed(8)), Writes(Argument(1), BROKEN_DOWN)]),
    summary("inet_addr", "ip", NUMBER),
    summary("inet_aton", "ipp", &[Reads(Argument(0), Text), Writes(Argument(1), Fixed(4))]),
    summary("inet_ntop", "pippi", &[Reads(Argument(1), Family(0)), Writes(Returned, Text)]),
    summary("inet_pton", "iipp", &[Reads(Argument(1), Text), Writes(Argument(2), Family(0))]),
    summary("lfind", "ppppip", &[Reads(Argument(2), Fixed(8))]),
    summary("localtime", "pp", &[Reads(Argument(0), Fixed(8)), Writes(Returned, BROKEN_DOWN)]),
    summary(
        "localtime_r",
        "ppp",
        &[Reads(Argument(0), Fixed(8)), Writes(Argument(1), BROKEN_DOWN)],
    ),
    summary("memchr", "ppii", &[Reads(Argument(0), Found(Some(2)))]),
    summary("memcmp", "ippi", &[Reads(Argument(0), Bytes(2)), Reads(Argument(1), Bytes(2))]),
    summary("memmem", "ppipi", &[Reads(Argument(0), Bytes(1)), Reads(Argument(2), Bytes(3))]),
    summary("memrchr", "ppii", &[Reads(Argument(0), Bytes(2))]),
    summary("mktime", "ip", &[Reads(Argument(0), BROKEN_DOWN), Writes(Argument(0), BROKEN_DOWN)]),
    summary("mkdir", "ipi", NUMBER),
    summary("mtx_timedlock", "ipp", &[Reads(Argument(1), TIME)]),
    summary("nanosleep", "ipp", &[Reads(Argument(0), TIME)]),
    summary("open", "ipi.", NUMBER),
    summary("poll", "ipii", &[Reads(Argument(0), Array(1, 8))]),
    summary("ppoll", "ipipp", &[Reads(Argument(0), Array(1, 8)), Reads(Argument(2), TIME)]),
    output("printf", "ip.", &[Formats(0, 1)]),
    summary("pselect", "iippppp", SETS),
    summary("pthread_cond_clockwait", "ippip", &[Reads(Argument(3), TIME)]),
    summary("pthread_cond_timedwait", "ippp", &[Reads(Argument(2), TIME)]),
    summary("pthread_mutex_clocklock", "ipip", &[Reads(Argument(2), TIME)]),
    summary("pthread_mutex_timedlock", "ipp", &[Reads(Argument(1), TIME)]),
    summary("pthread_rwlock_timedrdlock", "ipp", &[Reads(Argument(1), TIME)]),
    summary("pthread_rwlock_timedwrlock", "ipp", &[Reads(Argument(1), TIME)]),
    summary("putenv", "ip", NUMBER),
    output("puts", "ip", &[Reads(Argument(0), Text)]),
    sends("pwrite", "iipii", &[Reads(Argument(1), Bytes(2))]),
    sends("pwrite64", "iipii", &[Reads(Argument(1), Bytes(2))]),
    summary("rand_r", "ip", &[Reads(Argument(0), Fixed(4)), Writes(Argument(0), Fixed(4))]),
    summary("scanf", "ip.", &[Scans(0, 1)]),
    summary("select", "iipppp", SETS),
    summary("sem_timedwait", "ipp", &[Reads(Argument(1), TIME)]),
    summary("semop", "iipi", &[Reads(Argument(1), Array(2, 6))]),
    sends("send", "iipii", &[Reads(Argument(1), Bytes(2))]),
    sends("sendto", "iipiipi", &[Reads(Argument(1), Bytes(2)), Reads(Argument(4), Bytes(5))]),
    summary(
        "realpath",
        "ppp",
        &[Reads(Argument(0), Text), Gives(Returned), Writes(Returned, Text)],
    ),
    summary("remove", "ip", NUMBER),
    summary("rename", "ipp", BOTH_TEXTS),
    summary("rmdir", "ip", NUMBER),
    summary("setenv", "ippi", BOTH_TEXTS),
    summary("setitimer", "iipp", &[Reads(Argument(1), Fixed(32))]),
    summary("snprintf", "ipip.", &[Formats(2, 3), Writes(Argument(0), ResultWithin(1))]),
    summary("sprintf", "ipp.", &[Formats(1, 2), Writes(Argument(0), ResultText)]),
    summary("sscanf", "ipp.", SCANNED),
    summary("stpcpy", "ppp", &[Copies(0, 1, None)]),
    summary("stpncpy", "pppi", &[Copies(0, 1, Some(2))]),
    summary("strcasecmp", "ipp", COMPARED),
    summary("strcasestr", "ppp", BOTH_TEXTS),
    summary("strcat", "ppp", &[Appends(0, 1, None)]),
    summary("strchr", "ppi", &[Reads(Argument(0), Found(None))]),
    summary("strchrnul", "ppi", &[Reads(Argument(0), Found(None))]),
    summary("strcmp", "ipp", COMPARED),
    summary("strcoll", "ipp", BOTH_TEXTS),
    summary("strcpy", "ppp", &[Copies(0, 1, None)]),
    summary("strcspn", "ipp", BOTH_TEXTS),
    summary(
        "strftime",
        "ipipp",
        &[Reads(Argument(3), BROKEN_DOWN), Writes(Argument(0), ResultWithin(1))],
    ),
    summary("strlen", "ip", &[Reads(Argument(0), ResultText)]),
    summary("strncasecmp", "ippi", COMPARED_WITHIN),
    summary("strncat", "pppi", &[Appends(0, 1, Some(2))]),
    summary("strncmp", "ippi", COMPARED_WITHIN),
    summary("strncpy", "pppi", &[Copies(0, 1, Some(2))]),
    summary("strnlen", "ipi", &[Reads(Argument(0), ResultWithin(1))]),
    summary("strpbrk", "ppp", BOTH_TEXTS),
    summary("strrchr", "ppi", NUMBER),
    summary("strsep", "ppp", &[Takes(None, 0)]),
    summary("strspn", "ipp", BOTH_TEXTS),
    summary("strstr", "ppp", BOTH_TEXTS),
    summary("strtod", "fpp", NUMBER_AND_END),
    summary("strtof", "fpp", NUMBER_AND_END),
    summary("strtoimax", "ippi", NUMBER_AND_END),
    summary("strtok_r", "pppp", &[Takes(Some(0), 2)]),
    summary("strtol", "ippi", NUMBER_AND_END),
    summary("strtoll", "ippi", NUMBER_AND_END),
    summary("strtoul", "ippi", NUMBER_AND_END),
    summary("strtoull", "ippi", NUMBER_AND_END),
    summary("strtoumax", "ippi", NUMBER_AND_END),
    summary("strverscmp", "ipp", BOTH_TEXTS),
    summary("strxfrm", "ippi", &[Reads(Argument(1), Text), Writes(Argument(0), ResultWithin(2))]),
    summary("swab", "vppi", &[Reads(Argument(0), Bytes(2)), Writes(Argument(1), Bytes(2))]),
    summary("thrd_sleep", "ipp", &[Reads(Argument(0), TIME)]),
    summary(
        "tempnam",
        "ppp",
        &[
            Reads(Argument(0), Text),
            Reads(Argument(1), Text),
            Gives(Returned),
            Writes(Returned, Text),
        ],
    ),
    summary("timegm", "ip", &[Reads(Argument(0), BROKEN_DOWN), Writes(Argument(0), BROKEN_DOWN)]),
    summary("timerfd_settime", "iiipp", &[Reads(Argument(2), Fixed(32))]),
    summary("unlink", "ip", NUMBER),
    summary("unsetenv", "ip", NUMBER),
    summary("wcsdup", "pp", &[Reads(Argument(0), Wide), Gives(Returned), Writes(Returned, Wide)]),
    sends("write", "iipi", &[Reads(Argument(1), Bytes(2))]),
    // What `std::hash` of a string calls.
    summary("_ZSt11_Hash_bytesPKvmm", "ipii", &[Reads(Argument(0), Bytes(1))]),
    // The thread's state is taken out of its `unique_ptr`; the handle of a detached thread becomes zero.
    summary(
        "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
        "vppp",
        &[Writes(Argument(1), Fixed(8))],
    ),
    summary("_ZNSt6thread6detachEv", "vp", &[Writes(Argument(0), Fixed(8))]),
    puts_out("_ZNSo5writeEPKcl", "pppi", &[Reads(Argument(1), Bytes(2))]),
    puts_out(
        "_ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l",
        "pppi",
        &[Reads(Argument(1), Bytes(2))],
    ),
    puts_out("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", "ppp", COPIED_TEXT),
    // Exceptions keep a copy of their text.
    summary(
        "_ZNSt13runtime_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt13runtime_errorC1EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt13runtime_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt13runtime_errorC2EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt11logic_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt11logic_errorC1EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt11logic_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt11logic_errorC2EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt16invalid_argumentC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt16invalid_argumentC1EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt16invalid_argumentC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt16invalid_argumentC2EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt12out_of_rangeC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt12out_of_rangeC1EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt12out_of_rangeC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt12out_of_rangeC2EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt12domain_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt12domain_errorC1EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt12domain_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt12domain_errorC2EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt12length_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt12length_errorC1EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt12length_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt12length_errorC2EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt11range_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt11range_errorC1EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt11range_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt11range_errorC2EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt14overflow_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt14overflow_errorC1EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt14overflow_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt14overflow_errorC2EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt15underflow_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt15underflow_errorC1EPKc", "vpp", COPIED_TEXT),
    summary(
        "_ZNSt15underflow_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "vpp",
        COPIED_STRING,
    ),
    summary("_ZNSt15underflow_errorC2EPKc", "vpp", COPIED_TEXT),
];

impl Effect {
    /// Is something to be reported before the call?
    pub fn is_any_before(self) -> bool {
        self.is_before() || matches!(self, Takes(..))
    }

    /// Is it reported before the call? What depends on the result, or is about what the function leaves, is
    /// reported after it.
    pub fn is_before(self) -> bool {
        match self {
            Reads(_, extent) => {
                !matches!(extent, ResultText | ResultWithin(_) | ResultTimes(_) | Found(_))
            }
            Formats(..) => true,
            // The text is read before, the end of the token written after.
            Writes(..) | Copies(..) | Appends(..) | Gives(_) | Scans(..) | Takes(..) => false,
        }
    }
}

/// The position of a function in [`SUMMARIES`].
pub fn number_of(name: &str) -> Option<usize> {
    SUMMARIES.iter().position(|summary| summary.name == name)
}
