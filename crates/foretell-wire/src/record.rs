//! The records: one row for each kind, from which the type of its fields, its writer, its reader and its length come.

use std::convert::Infallible;

use crate::again;

mod details;

pub use details::{
    BY_TRY, ObjectKind, TERM_SHADOW, WIDE_OPERAND, ZEROED, access, await_mark, channel, gap,
    instrumented, lock, of_variable, wait,
};

/// The words of a record after its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Those that are always there.
    pub words: &'static [&'static str],
    /// One that is there only with this bit in the detail.
    pub optional: Option<(u8, &'static str)>,
    /// Texts, which come last.
    pub texts: &'static [&'static str],
}

impl Layout {
    /// How many words the record has before its texts.
    pub const fn fixed(&self, detail: u8) -> usize {
        let more = match self.optional {
            Some((flag, _)) => detail & flag != 0,
            None => false,
        };
        1 + self.words.len() + more as usize
    }
}

/// One row for each kind: its number in records, in parentheses the words after the first, after a plus one that is there only
/// with this bit in the detail, and then the texts. `[a]` is a number of 32 bits, `[a, b]` are two of them in one word, the
/// first in the lower half. Of a row come the [`Kind`], its [`Layout`] and a type in [`record`](self) with the fields, which
/// writes ([`Record`]) and reads them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal ($($word:tt),*)
        $(+ $optional:ident [$flag:path])? $($text:ident),*;)*) => {
        /// The kinds of records.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $name = $code,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Kind] = &[$(Kind::$name),*];

            /// From the number in a record.
            pub fn from_code(code: u8) -> Option<Kind> {
                match code {
                    $($code => Some(Kind::$name),)*
                    _ => None,
                }
            }

            /// The words after the first.
            #[inline]
            pub const fn layout(self) -> Layout {
                match self {
                    $(Kind::$name => Layout {
                        words: &[$(kinds!(@name $word)),*],
                        optional: kinds!(@optional $($flag, $optional)?),
                        texts: &[$(stringify!($text)),*],
                    },)*
                }
            }
        }

        $(fields! { $name [] [] [$($word)*] [$($optional $flag)?] [$($text)*] })*
    };
    (@name [$one:ident]) => { stringify!($one) };
    (@name [$low:ident, $high:ident]) => {
        concat!(stringify!($low), " and ", stringify!($high))
    };
    (@name $whole:ident) => { stringify!($whole) };
    (@optional) => { None };
    (@optional $flag:path, $name:ident) => { Some(($flag, stringify!($name))) };
}

/// The type of a kind's fields: collects them and the words that they are in, one word after the other.
macro_rules! fields {
    ($name:ident [$($field:tt)*] [$($done:tt)*] [[$low:ident, $high:ident] $($word:tt)*] $optional:tt $texts:tt) => {
        fields! { $name [$($field)* ($low u32) ($high u32)] [$($done)* ($low $high)] [$($word)*] $optional $texts }
    };
    ($name:ident [$($field:tt)*] [$($done:tt)*] [[$one:ident] $($word:tt)*] $optional:tt $texts:tt) => {
        fields! { $name [$($field)* ($one u32)] [$($done)* ([$one])] [$($word)*] $optional $texts }
    };
    ($name:ident [$($field:tt)*] [$($done:tt)*] [$whole:ident $($word:tt)*] $optional:tt $texts:tt) => {
        fields! { $name [$($field)* ($whole u64)] [$($done)* ($whole)] [$($word)*] $optional $texts }
    };
    // A record without texts.
    ($name:ident [$(($field:ident $type:ty))*] [$($done:tt)*] [] [$($optional:ident $flag:path)?] []) => {
        #[doc = concat!("The fields of [`Kind::", stringify!($name), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $(#[allow(missing_docs)] pub $field: $type,)*
            $(#[allow(missing_docs)] pub $optional: Option<u64>,)?
        }

        impl Record<{ 0 $(+ fields!(@count $done))* }> for $name {
            const KIND: Kind = Kind::$name;
            type Text = Infallible;

            #[inline(always)]
            fn words(&self) -> [u64; 0 $(+ fields!(@count $done))*] {
                #[allow(unused_variables)]
                let &Self { $($field,)* .. } = self;
                [$(fields!(@write $done)),*]
            }

            #[inline(always)]
            fn texts(&self) -> impl Iterator<Item = &Infallible> {
                std::iter::empty()
            }
        }

        impl $name {
            /// Reads what follows the first word.
            #[inline]
            #[allow(unused_variables)]
            pub fn from_words(detail: u8, words: &mut Words<'_>) -> Option<Self> {
                $(fields!(@read words $done);)*
                $(let $optional = if detail & $flag != 0 { Some(words.next()?) } else { None };)?
                Some(Self { $($field,)* $($optional,)? })
            }
        }
    };
    // One with texts: who writes borrows them, who reads owns them.
    ($name:ident [$(($field:ident $type:ty))*] [$($done:tt)*] [] [] [$($text:ident)+]) => {
        #[doc = concat!("The fields of [`Kind::", stringify!($name), "`].")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name<T> {
            $(#[allow(missing_docs)] pub $field: $type,)*
            $(#[allow(missing_docs)] pub $text: T,)+
        }

        impl<T: Text> Record<{ 0 $(+ fields!(@count $done))* }> for $name<T> {
            const KIND: Kind = Kind::$name;
            type Text = T;

            #[inline(always)]
            fn words(&self) -> [u64; 0 $(+ fields!(@count $done))*] {
                #[allow(unused_variables)]
                let &Self { $($field,)* .. } = self;
                [$(fields!(@write $done)),*]
            }

            fn texts(&self) -> impl Iterator<Item = &T> {
                [$(&self.$text),+].into_iter()
            }
        }

        impl $name<Vec<u8>> {
            /// Reads what follows the first word.
            pub fn from_words(words: &mut Words<'_>) -> Option<Self> {
                $(fields!(@read words $done);)*
                $(let $text = words.bytes()?;)+
                Some(Self { $($field,)* $($text,)+ })
            }
        }
    };
    (@count $done:tt) => { 1 };
    (@write ([$one:ident])) => { u64::from($one) };
    (@write ($low:ident $high:ident)) => { u64::from($low) | u64::from($high) << 32 };
    (@write ($whole:ident)) => { $whole };
    (@read $words:ident ([$one:ident])) => { let $one = u32::try_from($words.next()?).ok()?; };
    (@read $words:ident ($low:ident $high:ident)) => { let ($low, $high) = $words.pair()?; };
    (@read $words:ident ($whole:ident)) => { let $whole = $words.next()?; };
}

/// The fields of a record, which go into `N` words after its first, and texts. (A word that only some records of the kind have is
/// none of them.)
pub trait Record<const N: usize> {
    /// Its kind.
    const KIND: Kind;
    /// What its texts are.
    type Text: Text;

    /// The words.
    fn words(&self) -> [u64; N];

    /// The texts, in their order.
    fn texts(&self) -> impl Iterator<Item = &Self::Text>;
}

/// A text of a record.
pub trait Text {
    /// Its bytes.
    fn bytes(&self) -> &[u8];
}

impl<T: AsRef<[u8]> + ?Sized> Text for &T {
    fn bytes(&self) -> &[u8] {
        (*self).as_ref()
    }
}

impl Text for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Text for Infallible {
    fn bytes(&self) -> &[u8] {
        match *self {}
    }
}

/// The first word of a record.
#[inline(always)]
pub const fn head(kind: Kind, detail: u8, place: u64) -> u64 {
    kind as u64 | (detail as u64) << 8 | place << 16
}

/// Reads the words of records one after the other.
pub struct Words<'a> {
    /// All of them.
    pub words: &'a [u64],
    /// So many were read.
    pub at: usize,
}

impl<'a> Words<'a> {
    /// From the first word on.
    pub fn new(words: &'a [u64]) -> Self {
        Self { words, at: 0 }
    }

    /// The next one.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<u64> {
        let word = *self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    /// Two numbers of 32 bits, the lower half first.
    #[inline]
    pub fn pair(&mut self) -> Option<(u32, u32)> {
        self.next().map(|word| (word as u32, (word >> 32) as u32))
    }

    /// A text.
    pub fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.next()?).ok()?;
        let words = length.div_ceil(8);
        let part: &'a [u64] = self.words.get(self.at..self.at.checked_add(words)?)?;
        self.at += words;
        let mut bytes: Vec<u8> = part.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length);
        Some(bytes)
    }
}

/// Appends a text.
pub fn put_text(words: &mut Vec<u64>, text: &[u8]) {
    words.push(text.len() as u64);
    words.extend(text.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    }));
}

/// Appends a record.
pub fn put<const N: usize, R: Record<N>>(words: &mut Vec<u64>, detail: u8, place: u64, record: &R) {
    words.push(head(R::KIND, detail, place));
    words.extend(record.words());
    record.texts().for_each(|text| put_text(words, text.bytes()));
}

kinds! {
    /// `address, value`, and more: the address's shadow; detail: [`access`].
    Read = 1 (address, value) + address_shadow [access::MORE];
    /// `address, value`, and more: the old value; concrete.
    Write = 2 (address, value) + old [access::MORE];
    /// `address, value`, and more, always: `shadow | address shadow << 32`.
    WriteShadow = 3 (address, value) + shadows [access::MORE];
    /// `address, old, new, shadow | address shadow << 32`.
    ReadModifyWrite = 4 (address, old, new, [shadow, address_shadow]);
    /// `object | flags << 32`, see [`lock`].
    Acquire = 5 ([object, flags]);
    /// As `Acquire`.
    AcquireFailed = 6 ([object, flags]);
    /// As `Acquire`.
    Release = 7 ([object, flags]);
    /// `condition | mutex << 32`.
    WaitBegin = 8 ([condition, mutex]);
    /// `condition | mutex << 32`; detail 1: timed out.
    WaitEnd = 9 ([condition, mutex]);
    /// `condition`.
    Signal = 10 ([condition]);
    /// `condition`.
    Broadcast = 11 ([condition]);
    /// `semaphore`.
    SemaphoreWait = 12 ([semaphore]);
    /// `semaphore`.
    SemaphoreWaitFailed = 13 ([semaphore]);
    /// `semaphore`.
    SemaphorePost = 14 ([semaphore]);
    /// `barrier`.
    BarrierArrive = 15 ([barrier]);
    /// `barrier`.
    BarrierLeave = 16 ([barrier]);
    /// No words; detail: memory order as in [`access`].
    Fence = 17 ();
    /// `0, shadow`; detail: outcome.
    Branch = 18 (zero, [shadow]);
    /// `shadow`; detail: bit 0 whether it held, bit 1 whether the expression is to be negated.
    Assert = 19 ([shadow]);
    /// `shadow, value`; detail: width. The expression had to have this value.
    Pin = 20 ([shadow], value);
    /// Text.
    RegionBegin = 21 () name;
    /// No words.
    RegionEnd = 22 ();
    /// No words; the function is that of the place.
    Call = 23 ();
    /// No words.
    Return = 24 ();
    /// `address, size`.
    Alloc = 25 (address, size);
    /// `address`.
    Free = 26 (address);
    /// `value`, text: source.
    Input = 27 (value) source;
    /// No words.
    ThreadBegin = 28 ();
    /// No words.
    ThreadEnd = 29 ();
    /// `thread`.
    Fork = 30 ([thread]);
    /// `thread`.
    Join = 31 ([thread]);
    /// As `Acquire`.
    ReleaseFailed = 32 ([object, flags]);
    /// `channel, amount, content`.
    Send = 33 ([channel], amount, content);
    /// `channel, amount`; detail: [`channel`].
    Receive = 34 ([channel], amount);
    /// `channel`; detail: 1 if there was something, else 0.
    Poll = 35 ([channel]);
    /// `object`.
    Destroy = 36 ([object]);
    /// No words; detail: [`await_mark`]. A loop that waits.
    Await = 37 ();

    /// `thread`: the events that follow are this thread's.
    Turn = 64 ([thread]);
    /// `thread`, text: the creation path, eight bytes a step.
    DefineThread = 65 ([thread]) path;
    /// `object | kind << 32, address, initial count or parties`.
    DefineObject = 66 ([object, kind], address, amount);
    /// `line | column << 32`, text: file, text: function. Place: the site's address.
    DefineSite = 67 ([line, column]) file, function;
    /// `left | right << 32`; detail: operator of `foretell-abi`; place: width in bits 0..8, from
    /// bit 8 the value of a concrete operand. With [`WIDE_OPERAND`] in the detail that value is a
    /// word of its own. Defines the next term, as do the two below and
    /// [`Kind::DefineAddress`].
    DefineBinary = 68 ([left, right]) + value [WIDE_OPERAND];
    /// `shadow`; detail: operator; place: from | to << 8.
    DefineCast = 69 ([shadow]);
    /// `condition | then << 32, otherwise | condition value << 32, then value, otherwise value`;
    /// place: width.
    DefineSelect = 70 ([condition, then], [otherwise, condition_value], then_value, otherwise_value);
    /// `load address, first, end`, text: path of the file. An executable segment.
    DefineModule = 71 (load_address, first, end) file;
    /// `address, size`, text: name.
    DefineGlobal = 72 (address, size) name;
    /// `address`, text (bytes): what memory held before the first event.
    Image = 73 (address) bytes;
    /// `how often`, text: what the trace lacks, for people; detail: what follows from it, see [`gap`].
    Gap = 74 (count) what;
    /// `signal, address`; place: program counter. The program is about to die of it.
    Crash = 75 (signal, address);
    /// No words; detail: bits of [`instrumented`]. An instrumented module was loaded.
    Instrumented = 76 ();
    /// No words: the first event at this program counter comes next.
    DefinePlace = 77 ();
    /// `index, base`: the address `base + extended(index) * scale`; detail: operator of
    /// `foretell-abi` that extends; place: width | scale << 8.
    DefineAddress = 78 ([index], base);
    /// `address, size`: this memory is another one from now on: a new thread's stack and its
    /// thread-local variables.
    Renew = 79 (address, size);
    /// `outcome, branches predicted before`; place: the site. A branch that the predictor missed.
    Mispredicted = 80 (outcome, predicted_before);
    /// `thread, branches predicted since`. The thread takes no more branches.
    PathEnd = 81 ([thread], predicted_since);
    /// `thread | flags << 32, number`, text; detail: [`crate::outside::Cause`]; place: program counter or 0.
    Outside = 82 ([thread, flags], number) text;
    /// `thread | task << 32`: the kernel's number of the thread.
    Task = 83 ([thread, task]);
    /// No words; detail 1: a function of the language's library is entered, which will return to the
    /// place; detail 0: the last of them is left.
    Library = 84 ();
    /// `size`, text: name, text: function, text: layout. Place: that of a `foretell_abi::Described`.
    DefineDescription = 85 (size) name, function, layout;
    /// `address`: what begins there is as described at the place.
    Describe = 86 (address);
    /// Where a thread stands when the runtime ends the run: the index of its next event, and what it waits for
    /// ([`crate::standing::Awaited`]). `subject` is an address, a thread's number or a descriptor, and `more` who holds it (number + 1), or
    /// how many came to a barrier and how many it needs, as `Awaited` says.
    Stands = 87 ([thread, awaited], event, subject, more);
    /// A piece of the sentence that says why the run left its schedule; detail: [`crate::standing::piece`].
    Said = 88 () content;
    /// `thread`, text: what the program calls the thread.
    NameThread = 89 ([thread]) name;
}

impl Kind {
    /// Whether the record is an event of its thread.
    pub fn is_event(self) -> bool {
        (self as u8) < Kind::Turn as u8
    }

    /// Whether the record has a short form, see [`again`].
    pub fn can_be_short(self) -> bool {
        matches!(self, Kind::Read | Kind::Write | Kind::WriteShadow | Kind::Branch)
    }

    /// Whether the recorder outside wants to see the record at once, and not only who reads the
    /// trace: there are few of them.
    pub fn is_notable(self) -> bool {
        use Kind::*;
        matches!(
            self,
            DefineThread
                | DefineModule
                | DefinePlace
                | Gap
                | Crash
                | Instrumented
                | Outside
                | Task
                | Stands
                | Said
        )
    }

    /// The word that traces and schedules have for an event with this detail; empty for what is
    /// none.
    pub fn keyword(self, detail: u8) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write | Kind::WriteShadow => "write",
            Kind::ReadModifyWrite => "rmw",
            Kind::Acquire => "acquire",
            Kind::AcquireFailed => "acquire-failed",
            Kind::Release => "release",
            Kind::ReleaseFailed => "release-failed",
            Kind::WaitBegin => "wait-begin",
            Kind::WaitEnd if detail & wait::TIMED_OUT != 0 => "wait-timeout",
            Kind::WaitEnd => "wait-end",
            Kind::Signal => "signal",
            Kind::Broadcast => "broadcast",
            Kind::SemaphoreWait => "sem-wait",
            Kind::SemaphoreWaitFailed => "sem-wait-failed",
            Kind::SemaphorePost => "sem-post",
            Kind::BarrierArrive => "barrier-arrive",
            Kind::BarrierLeave => "barrier-leave",
            Kind::Send => "send",
            Kind::Receive => "receive",
            Kind::Poll if detail == 1 => "poll",
            Kind::Poll => "poll-empty",
            Kind::Destroy => "destroy",
            Kind::Fence => "fence",
            Kind::Branch | Kind::Pin => "branch",
            Kind::Assert => "assert",
            Kind::RegionBegin => "region",
            Kind::RegionEnd => "region-end",
            Kind::Call => "call",
            Kind::Return => "return",
            Kind::Await if detail == await_mark::ROUND => "await",
            Kind::Await if detail == await_mark::TEST => "await-test",
            Kind::Await if detail == await_mark::FAILED => "await-failed",
            Kind::Await => "await-again",
            Kind::Alloc => "alloc",
            Kind::Free => "free",
            Kind::Input => "input",
            Kind::ThreadBegin => "begin",
            Kind::ThreadEnd => "end",
            Kind::Fork => "fork",
            Kind::Join => "join",
            _ => "",
        }
    }
}

/// A record's kind, its detail and how many words it has; `None` when the words do not begin with
/// a whole record. The kind of a short form only its table knows: it is told as [`Kind::Read`].
pub fn measure(words: &[u64]) -> Option<(Kind, u8, usize)> {
    let &head = words.first()?;
    if let Some(short) = again::Short::from_word(head) {
        return (short.words() <= words.len()).then_some((Kind::Read, 0, short.words()));
    }
    let (kind, detail) = (Kind::from_code(head as u8)?, (head >> 8) as u8);
    let layout = kind.layout();
    let mut length = layout.fixed(detail);
    for _ in layout.texts {
        let bytes = usize::try_from(*words.get(length)?).ok()?;
        length = length.checked_add(1 + bytes.div_ceil(8))?;
    }
    (length <= words.len()).then_some((kind, detail, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_as_long_as_its_layout_says() {
        for &kind in Kind::ALL {
            let layout = kind.layout();
            let flag = layout.optional.map_or(0, |(flag, _)| flag);
            for detail in [0, flag] {
                let mut words = vec![u64::from(kind as u8) | u64::from(detail) << 8];
                words.resize(layout.fixed(detail), 0);
                for length in 0..layout.texts.len() as u64 {
                    words.push(9 * length);
                    words.resize(words.len() + (9 * length).div_ceil(8) as usize, 0);
                }
                assert_eq!(measure(&words), Some((kind, detail, words.len())), "{kind:?}");
                assert_eq!(measure(&words[..words.len() - 1]), None, "{kind:?}");
            }
        }
    }

    #[test]
    fn events_are_told_from_definitions() {
        for code in 0..=u8::MAX {
            if let Some(kind) = Kind::from_code(code) {
                assert_eq!(kind.is_event(), code < 64);
                assert_eq!(kind as u8, code);
            }
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let acquire = Acquire { object: 7, flags: lock::SHARED };
        let site =
            DefineSite { line: 12, column: 5, file: b"a.c".to_vec(), function: b"".to_vec() };
        let mut words = Vec::new();
        put(&mut words, 0, 0x1234, &acquire);
        let second = words.len();
        put(&mut words, 0, 0, &site);
        assert_eq!(measure(&words), Some((Kind::Acquire, 0, second)));
        assert_eq!(words[0] >> 16, 0x1234);
        assert_eq!(Acquire::from_words(0, &mut Words::new(&words[1..])), Some(acquire));
        assert_eq!(measure(&words[second..]), Some((Kind::DefineSite, 0, words.len() - second)));
        let mut reader = Words::new(&words[second + 1..]);
        assert_eq!(DefineSite::from_words(&mut reader), Some(site));
        assert_eq!(reader.at, words.len() - second - 1);
    }

    #[test]
    fn a_word_that_only_some_have_is_read_where_it_is() {
        let words = [3 | 4 << 32, 99];
        let narrow = DefineBinary { left: 3, right: 4, value: None };
        assert_eq!(DefineBinary::from_words(0, &mut Words::new(&words)), Some(narrow));
        let wide = DefineBinary { value: Some(99), ..narrow };
        assert_eq!(DefineBinary::from_words(WIDE_OPERAND, &mut Words::new(&words)), Some(wide));
        assert_eq!(DefineBinary::from_words(WIDE_OPERAND, &mut Words::new(&words[..1])), None);
    }

    #[test]
    fn a_number_that_is_too_large_and_a_text_that_is_cut_off_are_none() {
        assert_eq!(Turn::from_words(0, &mut Words::new(&[1 << 32])), None);
        assert_eq!(Words::new(&[9, 0]).bytes(), None);
        assert_eq!(Words::new(&[u64::MAX, 0]).bytes(), None);
    }
}
