//! Accesses of the C library's functions, as the table in `foretell-abi` has them.

use foretell_abi::summaries::{Effect, Extent, Goes, Place, SUMMARIES, TOLD};
use foretell_abi::{COPY_HELD, COPY_SYMBOLIC, Site};
use foretell_wire::limits::MOST_IN_ARRAY;
use libc::{c_char, c_int, size_t};

use crate::foreign;
use crate::hooks::{copy, read_range, write_range};
use crate::thread::{Session, peek};
use crate::wrappers::memory;

/// A call of a function in the table.
#[derive(Clone, Copy)]
pub struct Call {
    /// Its number there.
    pub number: usize,
    /// It has returned.
    pub is_over: bool,
    /// The caller was compiled for expressions.
    pub is_symbolic: bool,
    /// The program looks at its result.
    pub is_used: bool,
    /// What it was given; 0 where that is no pointer or integer.
    pub arguments: [u64; TOLD],
    /// What it gave.
    pub result: u64,
    /// Who called it.
    pub site: *const Site,
}

/// Reports what the function does before or after this moment.
pub fn report(session: &mut Session, call: &Call) {
    let Some(summary) = SUMMARIES.get(call.number) else { return };
    let is_output = match summary.goes {
        Goes::Back => false,
        Goes::Out => !call.is_used,
        Goes::ToStream => foreign::is_standard(call.argument(0)),
        Goes::ToDescriptor => is_looked_at(call.argument(0) as c_int),
    };
    // A read without an expression is not held.
    let call = &Call { is_symbolic: call.is_symbolic && !is_output, ..*call };
    let gives_pointer = summary.signature.starts_with('p');
    for &effect in summary.effects {
        match effect {
            Effect::Takes(text, kept) => call.take_token(session, text, kept),
            effect if effect.is_before() == call.is_over => {}
            Effect::Reads(place, extent) => call.read(session, call.at(place), extent),
            // One that fails has written nothing.
            Effect::Writes(..) if gives_pointer && call.result == 0 => {}
            Effect::Writes(place, extent) => {
                let at = call.at(place);
                call.write(session, at, call.size(at, extent));
            }
            Effect::Gives(place) => memory::given(session, call.at(place), call.site),
            Effect::Copies(to, from, most) => call.copy_text(session, to, from, most),
            Effect::Appends(to, from, most) => call.append_text(session, to, from, most),
            Effect::Scans(format, first) => call.write_scanned(session, format, first),
            Effect::Formats(format, first) => {
                // The format of output is a constant almost always; its reads would only be more events.
                if !is_output {
                    call.read(session, call.argument(format), Extent::Text);
                }
                call.read_texts(session, format, first);
            }
        }
    }
}

/// Does what is written there go to a person, or nowhere?
pub fn is_looked_at(descriptor: c_int) -> bool {
    if descriptor == libc::STDOUT_FILENO || descriptor == libc::STDERR_FILENO {
        return true;
    }
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `fstat` fills it, or says that it does not.
    unsafe {
        libc::fstat(descriptor, status.as_mut_ptr()) == 0
            && status.assume_init().st_mode & libc::S_IFMT == libc::S_IFCHR
    }
}

/// The length of a text of which at most so many bytes are looked at.
fn length(text: u64, most: Option<u64>) -> u64 {
    let text = text as *const c_char;
    // SAFETY: the program gave it to a function that looks at it.
    match most {
        Some(most) => unsafe { libc::strnlen(text, most as size_t) as u64 },
        None => unsafe { libc::strlen(text) as u64 },
    }
}

impl Call {
    fn argument(&self, position: u8) -> u64 {
        self.arguments.get(usize::from(position)).copied().unwrap_or(0)
    }

    /// Where the access begins; 0: nowhere.
    fn at(&self, place: Place) -> u64 {
        match place {
            Place::Argument(position) => self.argument(position),
            Place::Pointed(position) => match self.argument(position) {
                0 => 0,
                // SAFETY: the function uses the pointer there.
                at => unsafe { peek(at, 8) },
            },
            Place::Returned => self.result,
        }
    }

    /// How many bytes from there on are accessed.
    fn size(&self, at: u64, extent: Extent) -> u64 {
        if at == 0 {
            return 0;
        }
        // A count below zero is a failure.
        let told = u64::try_from(self.result as i64).ok();
        let end = |length: u64, most: Option<u64>| match most {
            Some(most) => (length + 1).min(most),
            None => length + 1,
        };
        match extent {
            Extent::Fixed(size) => size,
            Extent::Bytes(position) => self.argument(position),
            Extent::Counted(position) => match self.argument(position) {
                0 => 0,
                // SAFETY: the function has written the number there.
                count => unsafe { peek(count, 4) },
            },
            Extent::Times(one, other) => self.argument(one).saturating_mul(self.argument(other)),
            Extent::Array(count, size) => self.argument(count).min(MOST_IN_ARRAY) * size,
            Extent::Text => end(length(at, None), None),
            Extent::Wide => {
                // SAFETY: the program gave it to a function that looks at it.
                let length = unsafe { libc::wcslen(at as *const libc::wchar_t) };
                (length as u64 + 1) * size_of::<libc::wchar_t>() as u64
            }
            Extent::TextWithin(position) => {
                let most = Some(self.argument(position));
                end(length(at, most), most)
            }
            Extent::Shorter(other, limit) => {
                let most = limit.map(|position| self.argument(position));
                let shorter = length(at, most).min(length(self.argument(other), most));
                end(shorter, most)
            }
            Extent::ResultText => told.map_or(0, |length| length + 1),
            Extent::ResultWithin(position) => {
                told.map_or(0, |length| end(length, Some(self.argument(position))))
            }
            Extent::ResultTimes(position) => {
                told.map_or(0, |count| count.saturating_mul(self.argument(position)))
            }
            Extent::Found(limit) => match self.result {
                0 => limit.map_or_else(|| end(length(at, None), None), |at| self.argument(at)),
                found => found.saturating_sub(at) + 1,
            },
            Extent::Family(_) if self.is_over && self.result != 1 => 0,
            Extent::Family(position) => match self.argument(position) as i32 {
                libc::AF_INET => 4,
                libc::AF_INET6 => 16,
                _ => 0,
            },
        }
    }

    fn read(&self, session: &mut Session, at: u64, extent: Extent) {
        read_range(session, self.site as u64, at, self.size(at, extent), self.is_symbolic);
    }

    fn read_bytes(&self, session: &mut Session, at: u64, size: u64) {
        read_range(session, self.site as u64, at, size, self.is_symbolic);
    }

    fn write(&self, session: &mut Session, at: u64, size: u64) {
        write_range(session, self.site as u64, at, size);
    }

    /// A text was copied: how much that was depends on what it is.
    fn copy(&self, session: &mut Session, to: u64, from: u64, size: u64) {
        let flags = if self.is_symbolic { COPY_SYMBOLIC | COPY_HELD } else { 0 };
        copy::<true>(session, self.site as u64, to, from, size, flags);
    }

    fn copy_text(&self, session: &mut Session, to: u8, from: u8, limit: Option<u8>) {
        let (to, from) = (self.argument(to), self.argument(from));
        let most = limit.map(|position| self.argument(position));
        let copied = length(from, most) + 1;
        match most {
            Some(most) => {
                let copied = copied.min(most);
                self.copy(session, to, from, copied);
                self.write(session, to + copied, most - copied);
            }
            None => self.copy(session, to, from, copied),
        }
    }

    fn append_text(&self, session: &mut Session, to: u8, from: u8, limit: Option<u8>) {
        let (to, from) = (self.argument(to), self.argument(from));
        let most = limit.map(|position| self.argument(position));
        let appended = length(from, most);
        let before = length(to, None).saturating_sub(appended);
        // Its end is not there any more; what stands before it is as it was.
        self.read_bytes(session, to, before);
        self.copy(session, to + before, from, appended);
        if most.is_none_or(|most| appended < most) {
            self.read_bytes(session, from + appended, 1);
        }
        self.write(session, to + before + appended, 1);
    }

    /// The text is looked at before; then the delimiter behind the token becomes its end, and what follows is
    /// remembered.
    fn take_token(&self, session: &mut Session, text: Option<u8>, kept: u8) {
        let place = match text.map(|position| self.argument(position)) {
            Some(text) if text != 0 => text,
            _ => self.at(Place::Pointed(kept)),
        };
        if !self.is_over {
            if text.is_none_or(|position| self.argument(position) == 0) {
                self.read_bytes(session, self.argument(kept), 8);
            }
            return self.read(session, place, Extent::Text);
        }
        let next = self.at(Place::Pointed(kept));
        if self.result != 0 && next == self.result + length(self.result, None) + 1 {
            self.write(session, next - 1, 1);
        }
        self.write(session, self.argument(kept), 8);
    }

    /// What a format of `scanf` has stored: as many conversions as the result says, and what counts characters
    /// among them.
    fn write_scanned(&self, session: &mut Session, format: u8, first: u8) {
        let mut left = self.result as i32;
        let mut at = self.argument(format);
        let mut position = usize::from(first);
        // SAFETY: the format is a text, and nothing behind its end is looked at.
        let mut byte = || unsafe {
            let byte = peek(at, 1) as u8;
            at += u64::from(byte != 0);
            byte
        };
        loop {
            match byte() {
                0 => return,
                b'%' => {}
                _ => continue,
            }
            let (mut is_stored, mut width, mut size) = (true, 0, 4);
            let conversion = loop {
                match byte() {
                    b'*' => is_stored = false,
                    digit @ b'0'..=b'9' => width = width * 10 + u64::from(digit - b'0'),
                    b'h' => size = if size == 2 { 1 } else { 2 },
                    b'l' | b'q' | b'j' | b'z' | b't' => size = 8,
                    b'L' => size = 16,
                    b'm' => size = 0,
                    other => break other,
                }
            };
            match conversion {
                0 => return,
                b'%' => continue,
                // The first bracket stands for itself.
                b'[' => {
                    let mut inside = byte();
                    if inside == b'^' {
                        inside = byte();
                    }
                    if inside != 0 {
                        while !matches!(byte(), 0 | b']') {}
                    }
                }
                _ => {}
            }
            let counts = conversion != b'n';
            if !is_stored {
                continue;
            }
            if counts && left <= 0 {
                return;
            }
            left -= i32::from(counts);
            let to = self.arguments.get(position).copied().unwrap_or(0);
            position += 1;
            let bytes = match conversion {
                _ if to == 0 => 0,
                _ if size == 0 => 8,
                b'c' => width.max(1),
                b's' | b'[' => length(to, None) + 1,
                b'p' => 8,
                _ => size,
            };
            self.write(session, to, bytes);
            if size == 0 && bytes > 0 {
                // SAFETY: the function has stored a pointer there.
                let text = unsafe { peek(to, 8) };
                memory::given(session, text, self.site);
                self.write(session, text, length(text, None) + 1);
            }
        }
    }

    /// The texts that a format of `printf` asks for.
    fn read_texts(&self, session: &mut Session, format: u8, first: u8) {
        let mut at = self.argument(format);
        if at == 0 {
            return;
        }
        let mut position = usize::from(first);
        let mut next = || {
            position += 1;
            self.arguments.get(position - 1).copied().unwrap_or(0)
        };
        // SAFETY: the format is a text, and nothing behind its end is looked at.
        let mut byte = || unsafe {
            let byte = peek(at, 1) as u8;
            at += u64::from(byte != 0);
            byte
        };
        loop {
            match byte() {
                0 => return,
                b'%' => {}
                _ => continue,
            }
            let (mut precision, mut in_precision) = (None, false);
            let text = loop {
                match byte() {
                    0 => return,
                    b'.' => (precision, in_precision) = (Some(0), true),
                    b'*' if in_precision => precision = u64::try_from(next() as i32).ok(),
                    b'*' => _ = next(),
                    digit @ b'0'..=b'9' if in_precision => {
                        precision =
                            precision.map(|digits: u64| digits * 10 + u64::from(digit - b'0'));
                    }
                    b'-' | b'+' | b' ' | b'#' | b'\'' | b'I' | b'0'..=b'9' => {}
                    b'h' | b'l' | b'L' | b'q' | b'j' | b'z' | b't' => {}
                    b'%' | b'm' => break 0,
                    b's' => break next(),
                    _ => {
                        break {
                            _ = next();
                            0
                        };
                    }
                }
            };
            if text != 0 {
                let size = length(text, precision);
                let with_end = precision.map_or(size + 1, |most| (size + 1).min(most));
                self.read_bytes(session, text, with_end);
            }
        }
    }
}
