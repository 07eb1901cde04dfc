//! Random numbers: an input that is the same in every run.
//!
//! Each thread draws from a stream that its creation path decides, so that a forced run gets what the
//! recorded one got, whichever thread asks first. Covered are `getrandom`, `getentropy`, `arc4random`,
//! `/dev/random` and `/dev/urandom` by `read` or `fopen`, the kernel's source of UUIDs, the names of
//! temporary files, the 16 bytes that the kernel gives every program (`AT_RANDOM`),
//! `std::random_device`, and the instructions `rdrand` and `rdseed` in code of our compiler. Those in
//! inline assembly are said.

use libc::{c_char, c_int, c_void, size_t};

use super::blocking::written;
use super::time::input;
use crate::channels;
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

/// So many random bytes.
fn bytes(me: &mut Thread, count: usize) -> Vec<u8> {
    let words = std::iter::repeat_with(|| next(me).to_le_bytes());
    words.take(count.div_ceil(8)).flatten().take(count).collect()
}

/// What a stream on `/dev/urandom` can give: libc reads ahead by itself, so all of it is there at once.
const STREAM: usize = 1 << 20;

/// For a source of random numbers that is opened as a file: a file with what it gives. `stream`: by
/// libc's streams, whose reads are not seen.
pub fn opened(session: &mut Session, path: *const c_char, stream: bool) -> Option<c_int> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the program's text.
    let content = match unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes() {
        b"/dev/urandom" | b"/dev/random" if stream => bytes(session.me, STREAM),
        b"/proc/sys/kernel/random/uuid" => uuid(session.me).into_bytes(),
        _ => return None,
    };
    // SAFETY: the name ends in NUL.
    let file = unsafe { libc::memfd_create(c"random".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return None;
    }
    sys::write(file, &content);
    // SAFETY: our own file.
    unsafe { libc::lseek(file, 0, libc::SEEK_SET) };
    Some(file)
}

/// A random UUID as the kernel writes it.
fn uuid(me: &mut Thread) -> String {
    let (high, low) = (next(me), next(me));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}\n",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        0x8000 | low >> 48 & 0x3fff,
        low & 0xffff_ffff_ffff
    )
}

/// Fills in what the kernel gave this run only, before the program looks.
pub fn initialise() {
    // SAFETY: the kernel's 16 bytes on the stack, which belong to the program.
    unsafe {
        let bytes = libc::getauxval(libc::AT_RANDOM) as *mut u8;
        if !bytes.is_null() {
            (0..16)
                .for_each(|at| bytes.add(at).write((at as u8).wrapping_mul(37).wrapping_add(11)));
        }
    }
}

/// Replaces the `XXXXXX` that ends a name, but for `suffix` bytes, until `create` finds it free.
///
/// # Safety
/// The template is the program's, and can be written.
unsafe fn named(
    session: &mut Session,
    template: *mut c_char,
    suffix: c_int,
    create: impl Fn(*const c_char) -> i64,
) -> c_int {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    session.point();
    // SAFETY: the caller's promise.
    let length = unsafe { libc::strlen(template) };
    let Some(at) = length.checked_sub(6 + suffix.max(0) as usize) else {
        return super::fail(libc::EINVAL);
    };
    // SAFETY: as above.
    let place = unsafe { std::slice::from_raw_parts_mut(template.add(at).cast::<u8>(), 6) };
    if place != b"XXXXXX" {
        return super::fail(libc::EINVAL);
    }
    for _ in 0..libc::TMP_MAX {
        for (letter, byte) in place.iter_mut().zip(bytes(session.me, 6)) {
            *letter = LETTERS[usize::from(byte) % LETTERS.len()];
        }
        let made = create(template);
        if made == -i64::from(libc::EEXIST) {
            continue;
        }
        written(session, place.as_ptr() as u64, place.len());
        if made < 0 {
            return super::fail(-made as c_int);
        }
        let name = channels::name_of(libc::AT_FDCWD, template);
        channels::renamed(session, name);
        session.point();
        return made as c_int;
    }
    super::fail(libc::EEXIST)
}

/// A new file, for this user only.
fn create_file(flags: c_int) -> impl Fn(*const c_char) -> i64 {
    move |path| {
        let flags = flags & !libc::O_ACCMODE | libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        let arguments = [libc::AT_FDCWD as u64, path as u64, flags as u64, 0o600, 0, 0];
        // SAFETY: the path is a text of the program.
        unsafe { sys::call(libc::SYS_openat, arguments) }
    }
}

/// A random number as a result.
fn number(session: &mut Session, source: &str) -> u32 {
    let number = (next(session.me) >> 32) as u32;
    input(session, source, number.into());
    session.point();
    number
}

/// What an instruction gives.
pub fn instruction(session: &mut Session) -> u64 {
    let number = next(session.me);
    input(session, "rdrand", number);
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

macro_rules! temporary_files {
    ($($name:ident($($argument:ident : $type:ty),*) $suffix:expr, $flags:expr;)*) => {
        interpose! {$(
            fn $name(template: *mut c_char $(, $argument: $type)*) -> c_int {
                match Session::begin() {
                    Some(mut session) => {
                        named(&mut session, template, $suffix, create_file($flags))
                    }
                    None => real!($name(template: *mut c_char $(, $argument: $type)*) -> c_int),
                }
            }
        )*}
    };
}

temporary_files! {
    mkstemp() 0, 0;
    mkstemp64() 0, 0;
    mkostemp(flags: c_int) 0, flags;
    mkostemp64(flags: c_int) 0, flags;
    mkstemps(suffix: c_int) suffix, 0;
    mkstemps64(suffix: c_int) suffix, 0;
}

interpose! {
    fn mkdtemp(template: *mut c_char) -> *mut c_char {
        let Some(mut session) = Session::begin() else {
            return real!(mkdtemp(template: *mut c_char) -> *mut c_char);
        };
        let made = named(&mut session, template, 0, |path| {
            sys::call(libc::SYS_mkdir, [path as u64, 0o700, 0, 0, 0, 0])
        });
        if made < 0 { std::ptr::null_mut() } else { template }
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
