//! Memory of the program that the C library goes on using after the call that got it: the buffers of streams and the
//! texts of the environment. Each later use is an event, so that who frees it has to come after the last one.

use std::collections::BTreeMap;

use libc::{FILE, c_char, c_int, size_t};

use crate::channels;
use crate::hooks;
use crate::real::{interpose, real};
use crate::thread::Session;
use crate::turn::TurnCell;

/// By stream: its buffer.
static BUFFERS: TurnCell<BTreeMap<u64, u64>> = TurnCell::new(BTreeMap::new());

/// The texts that were given to `putenv`.
static TEXTS: TurnCell<Vec<u64>> = TurnCell::new(Vec::new());

/// The stream is about to be used; for the last time, if it `ends`.
pub fn stream_used(session: &mut Session, stream: u64, ends: bool) {
    // SAFETY: callers have the turn.
    let buffers = unsafe { BUFFERS.get() };
    if let Some(&buffer) = buffers.get(&stream) {
        channels::buffer_used(session, buffer);
        if ends {
            buffers.remove(&stream);
        }
    }
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The environment is about to be searched: as far as its texts are the program's.
pub fn environment_used(session: &mut Session) {
    // SAFETY: callers have the turn.
    let texts = unsafe { TEXTS.get() };
    if texts.is_empty() {
        return;
    }
    // SAFETY: the C library's list, which ends in null.
    let is_there = |text: u64| unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            if *at as u64 == text {
                return true;
            }
            at = at.add(1);
        }
        false
    };
    texts.retain(|&text| is_there(text));
    for &text in texts.iter() {
        hooks::held(session, text, 1);
    }
}

fn has_buffer(stream: *mut FILE, buffer: *mut c_char) {
    if let Some(_session) = Session::begin() {
        // SAFETY: a session has the turn.
        let buffers = unsafe { BUFFERS.get() };
        match buffer.is_null() {
            true => buffers.remove(&(stream as u64)),
            false => buffers.insert(stream as u64, buffer as u64),
        };
    }
}

interpose! {
    fn setvbuf(stream: *mut FILE, buffer: *mut c_char, mode: c_int, size: size_t) -> c_int {
        let result = real!(setvbuf(
            stream: *mut FILE, buffer: *mut c_char, mode: c_int, size: size_t) -> c_int);
        if result == 0 {
            has_buffer(stream, buffer);
        }
        result
    }

    fn setbuf(stream: *mut FILE, buffer: *mut c_char) -> () {
        real!(setbuf(stream: *mut FILE, buffer: *mut c_char) -> ());
        has_buffer(stream, buffer);
    }

    fn setbuffer(stream: *mut FILE, buffer: *mut c_char, size: size_t) -> () {
        real!(setbuffer(stream: *mut FILE, buffer: *mut c_char, size: size_t) -> ());
        has_buffer(stream, buffer);
    }

    fn putenv(text: *mut c_char) -> c_int {
        let result = real!(putenv(text: *mut c_char) -> c_int);
        if result == 0 && let Some(_session) = Session::begin() {
            TEXTS.get().push(text as u64);
        }
        result
    }
}
