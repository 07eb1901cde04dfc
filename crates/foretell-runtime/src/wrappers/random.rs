//! Random numbers: an input that is the same in every run.
//!
//! Each thread draws from a stream that its creation path decides, so that a forced run gets what the
//! recorded one got, whichever thread asks first. Covered are `getrandom`, `getentropy`, `arc4random`,
//! reads of `/dev/random` and `/dev/urandom` by `read`, and `std::random_device`. Not covered are the
//! instructions `rdrand` and `rdseed` and streams of the C library that are opened on those files.

use libc::{c_int, c_void, size_t};

use super::blocking::written;
use super::time::input;
use crate::real::{interpose, real};
use crate::sys;
use crate::thread::{Session, Thread};

/// The next number of the thread's stream.
fn next(me: &mut Thread) -> u64 {
    // SplitMix64, from a beginning that differs between threads.
    if me.random == 0 {
        let mix = |hash: u64, &child: &u32| {
            (hash ^ (u64::from(child) + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
        };
        me.random = me.path.iter().fold(0x2545_f491_4f6c_dd1d, mix);
    }
    me.random = me.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = me.random;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Fills memory of the program with random bytes and records that.
///
/// # Safety
/// The program may write there.
pub unsafe fn fill(session: &mut Session, source: &str, buffer: *mut c_void, count: size_t) {
    let mut at = 0;
    while at < count {
        let bytes = next(session.me).to_le_bytes();
        let part = bytes.len().min(count - at);
        // SAFETY: the caller's promise.
        unsafe { buffer.cast::<u8>().add(at).copy_from_nonoverlapping(bytes.as_ptr(), part) };
        at += part;
    }
    input(session, source, count as u64);
    written(session, buffer as u64, count);
    session.point();
}

/// A random number as a result.
fn number(session: &mut Session, source: &str) -> u32 {
    let number = (next(session.me) >> 32) as u32;
    input(session, source, number.into());
    session.point();
    number
}

/// Whether the file is the kernel's source of random numbers.
pub fn is_source(file: c_int) -> bool {
    const SOURCES: [u64; 2] = [libc::makedev(1, 8), libc::makedev(1, 9)];
    // SAFETY: `status` is writable; any number may be asked about.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let asked = sys::call(libc::SYS_fstat, [file as u64, (&raw mut status) as u64, 0, 0, 0, 0]);
        asked == 0
            && status.st_mode & libc::S_IFMT == libc::S_IFCHR
            && SOURCES.contains(&status.st_rdev)
    }
}

interpose! {
    fn getentropy(buffer: *mut c_void, count: size_t) -> c_int {
        match Session::begin() {
            Some(mut session) if count <= 256 => {
                fill(&mut session, "getentropy", buffer, count);
                0
            }
            _ => real!(getentropy(buffer: *mut c_void, count: size_t) -> c_int),
        }
    }

    fn arc4random() -> u32 {
        match Session::begin() {
            Some(mut session) => number(&mut session, "arc4random"),
            None => real!(arc4random() -> u32),
        }
    }

    fn arc4random_buf(buffer: *mut c_void, count: size_t) -> () {
        match Session::begin() {
            Some(mut session) => fill(&mut session, "arc4random_buf", buffer, count),
            None => real!(arc4random_buf(buffer: *mut c_void, count: size_t) -> ()),
        }
    }

    fn arc4random_uniform(bound: u32) -> u32 {
        match Session::begin() {
            Some(mut session) => {
                let number = number(&mut session, "arc4random_uniform");
                ((u64::from(number) * u64::from(bound)) >> 32) as u32
            }
            None => real!(arc4random_uniform(bound: u32) -> u32),
        }
    }

    fn _ZNSt13random_device9_M_getvalEv(device: *mut c_void) -> u32 {
        match Session::begin() {
            Some(mut session) => number(&mut session, "std::random_device"),
            None => real!(_ZNSt13random_device9_M_getvalEv(device: *mut c_void) -> u32),
        }
    }
}
