//! Other programs: those that replace this one (`exec`) and those that it starts.
//!
//! The recorded run ends where the program is replaced, and that is said; what other processes do is
//! not recorded.

use foretell_wire::End;
use foretell_wire::outside::Cause;
use libc::{c_char, c_int, c_void};

use crate::outside;
use crate::processor::with_all;
use crate::real::{interpose, real};
use crate::thread::Session;
use std::sync::atomic::Ordering::Relaxed;

type Strings = *const *const c_char;

/// The program is about to be replaced by the file. `call` returns only if that fails.
unsafe fn replace(file: *const c_char, call: impl FnOnce() -> c_int) -> c_int {
    let session = super::process::in_recorded_process().then(Session::begin).flatten();
    let Some(mut session) = session else { return with_all(call) };
    session.point();
    let name = match file.is_null() {
        true => "another program".into(),
        // SAFETY: the program passes a string.
        false => unsafe { std::ffi::CStr::from_ptr(file) }.to_string_lossy(),
    };
    session.recorder().announce_end(End::Replaced, &name);
    let result = with_all(call);
    session.recorder().announce_end(End::Unsaid, "");
    result
}

/// Starts another process by this function.
unsafe fn start<R>(name: &str, call: impl FnOnce() -> R) -> R {
    if let Some(mut session) = Session::begin() {
        session.point();
        outside::FORKED.store(true, Relaxed);
        outside::note(session.me.number, Cause::Process, 0, name, session.place);
    }
    with_all(call)
}

interpose! {
    fn execve as execute(file: *const c_char, arguments: Strings, environment: Strings) -> c_int {
        replace(file, || real!(execve(
            file: *const c_char, arguments: Strings, environment: Strings) -> c_int))
    }

    fn execv(file: *const c_char, arguments: Strings) -> c_int {
        replace(file, || real!(execv(file: *const c_char, arguments: Strings) -> c_int))
    }

    fn execvp as execute_found(file: *const c_char, arguments: Strings) -> c_int {
        replace(file, || real!(execvp(file: *const c_char, arguments: Strings) -> c_int))
    }

    fn execvpe(file: *const c_char, arguments: Strings, environment: Strings) -> c_int {
        replace(file, || real!(execvpe(
            file: *const c_char, arguments: Strings, environment: Strings) -> c_int))
    }

    fn fexecve(file: c_int, arguments: Strings, environment: Strings) -> c_int {
        replace(std::ptr::null(), || real!(fexecve(
            file: c_int, arguments: Strings, environment: Strings) -> c_int))
    }

    fn execveat(
        folder: c_int, file: *const c_char, arguments: Strings, environment: Strings, flags: c_int,
    ) -> c_int {
        replace(file, || real!(execveat(folder: c_int, file: *const c_char, arguments: Strings,
            environment: Strings, flags: c_int) -> c_int))
    }

    fn posix_spawn(
        process: *mut libc::pid_t, file: *const c_char, actions: *const c_void,
        attributes: *const c_void, arguments: Strings, environment: Strings,
    ) -> c_int {
        start("posix_spawn", || real!(posix_spawn(process: *mut libc::pid_t, file: *const c_char,
            actions: *const c_void, attributes: *const c_void, arguments: Strings,
            environment: Strings) -> c_int))
    }

    fn posix_spawnp(
        process: *mut libc::pid_t, file: *const c_char, actions: *const c_void,
        attributes: *const c_void, arguments: Strings, environment: Strings,
    ) -> c_int {
        start("posix_spawnp", || real!(posix_spawnp(process: *mut libc::pid_t, file: *const c_char,
            actions: *const c_void, attributes: *const c_void, arguments: Strings,
            environment: Strings) -> c_int))
    }

    fn popen(command: *const c_char, mode: *const c_char) -> *mut libc::FILE {
        start("popen", || real!(popen(
            command: *const c_char, mode: *const c_char) -> *mut libc::FILE))
    }

    fn system(command: *const c_char) -> c_int {
        start("system", || ());
        let Some(session) = Session::begin() else {
            return with_all(|| real!(system(command: *const c_char) -> c_int));
        };
        let (mut session, result) = super::blocking::outside(session,
            || with_all(|| real!(system(command: *const c_char) -> c_int)));
        super::time::input(&mut session, "system", result as u64);
        session.point();
        result
    }
}

/// Functions with any number of arguments: the words of a call, those in registers first.
struct Words {
    registers: *const u64,
    stack: *const u64,
    at: usize,
}

impl Words {
    unsafe fn next(&mut self) -> u64 {
        let at = self.at;
        self.at += 1;
        // SAFETY: the caller of the function passes as many as are read.
        unsafe {
            match at {
                0..6 => *self.registers.add(at),
                _ => *self.stack.add(at - 6),
            }
        }
    }

    /// The list of strings that ends in null.
    unsafe fn strings(&mut self) -> Vec<*const c_char> {
        let mut all = Vec::new();
        loop {
            // SAFETY: as above.
            let word = unsafe { self.next() } as *const c_char;
            all.push(word);
            if word.is_null() {
                return all;
            }
        }
    }
}

/// Defines a function whose body gets the [`Words`] of its call.
macro_rules! with_words {
    ($(fn $name:ident($words:ident) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[allow(missing_docs, clippy::missing_safety_doc)] // as libc's function
        pub unsafe extern "C-unwind" fn $name() -> c_int {
            unsafe extern "C-unwind" fn body(registers: *const u64, stack: *const u64) -> c_int {
                #[allow(unused_mut)]
                let mut $words = Words { registers, stack, at: 0 };
                // SAFETY: called as libc's function would be.
                unsafe { $body }
            }
            core::arch::naked_asm!(
                "mov r11, qword ptr [rsp]",
                "mov r10, qword ptr [rip + foretell_caller@gottpoff]",
                "mov qword ptr fs:[r10], r11",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                "mov rdi, rsp",
                "lea rsi, [rsp + 56]",
                "sub rsp, 8",
                "call {body}",
                "add rsp, 56",
                "ret",
                body = sym body,
            )
        }
    )*};
}

unsafe extern "C" {
    static environ: Strings;
}

with_words! {
    fn execl(words) {
        let file = words.next() as *const c_char;
        let arguments = words.strings();
        execute(file, arguments.as_ptr(), environ)
    }

    fn execlp(words) {
        let file = words.next() as *const c_char;
        let arguments = words.strings();
        execute_found(file, arguments.as_ptr())
    }

    fn execle(words) {
        let file = words.next() as *const c_char;
        let arguments = words.strings();
        let environment = words.next() as Strings;
        execute(file, arguments.as_ptr(), environment)
    }
}
