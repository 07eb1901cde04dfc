//! System calls without libc.
//!
//! The runtime stands in front of libc's functions; what it needs for itself it asks the kernel
//! for, so that it never meets its own wrappers and never disturbs `errno`.

use core::arch::asm;
use core::ffi::c_void;
use std::sync::atomic::AtomicU32;

/// A system call with up to six arguments; errors are negative numbers.
///
/// # Safety
/// As the call itself.
#[inline(always)]
pub unsafe fn call(number: i64, arguments: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the kernel keeps all registers but these.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _,
            options(nostack));
    }
    result
}

/// Sleeps while the word holds `expected`, at most so long. `shared`: with another process. False when a signal handler
/// that does not restart calls cut it short. The limit is a constant: whether a thread has to wait depends on the
/// machine, and on its stack, which the program uses next, nothing may be left that tells.
pub fn futex_wait(
    word: &AtomicU32,
    expected: u32,
    limit: Option<&'static libc::timespec>,
    shared: bool,
) -> bool {
    let pointer = limit.map_or(std::ptr::null(), std::ptr::from_ref);
    let operation = libc::FUTEX_WAIT | if shared { 0 } else { libc::FUTEX_PRIVATE_FLAG };
    // SAFETY: word and limit outlive the call.
    unsafe {
        let word = word.as_ptr() as u64;
        let arguments = [word, operation as u64, expected.into(), pointer as u64, 0, 0];
        call(libc::SYS_futex, arguments) != -i64::from(libc::EINTR)
    }
}

/// Wakes up to `count` sleepers.
pub fn futex_wake(word: &AtomicU32, count: u32, shared: bool) {
    let operation = libc::FUTEX_WAKE | if shared { 0 } else { libc::FUTEX_PRIVATE_FLAG };
    // SAFETY: the kernel only uses the address as a key.
    unsafe {
        call(libc::SYS_futex, [word.as_ptr() as u64, operation as u64, count.into(), 0, 0, 0]);
    }
}

/// Fresh zeroed memory; null when there is none.
pub fn map(bytes: usize) -> *mut u8 {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
    // SAFETY: a new mapping harms nobody.
    let result = unsafe { call(libc::SYS_mmap, [0, bytes as u64, protection, flags, u64::MAX, 0]) };
    if result < 0 { std::ptr::null_mut() } else { result as *mut u8 }
}

/// Reserves zeroed memory at an address where nothing is; says whether it could.
pub fn map_at(address: u64, bytes: usize, protection: i32) -> bool {
    let flags =
        (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE)
            as u64;
    // SAFETY: a new mapping harms nobody.
    let result = unsafe {
        call(libc::SYS_mmap, [address, bytes as u64, protection as u64, flags, u64::MAX, 0])
    };
    if result >= 0 && result as u64 != address {
        unmap(result as u64, bytes as u64); // an old kernel takes the address for a wish
    }
    result as u64 == address
}

/// Gives memory back.
pub fn unmap(address: u64, bytes: u64) {
    // SAFETY: the caller owns the memory.
    unsafe { call(libc::SYS_munmap, [address, bytes, 0, 0, 0, 0]) };
}

/// Sets what may be done with memory of ours.
pub fn protect(address: u64, bytes: u64, protection: i32) {
    // SAFETY: the caller owns the memory.
    unsafe { call(libc::SYS_mprotect, [address, bytes, protection as u64, 0, 0, 0]) };
}

/// Forgets what is in memory of ours: it is zero then.
pub fn discard(address: u64, bytes: u64) {
    // SAFETY: the caller owns the memory.
    unsafe { call(libc::SYS_madvise, [address, bytes, libc::MADV_DONTNEED as u64, 0, 0, 0]) };
}

/// Maps a file for reading and writing, shared; null on failure.
pub fn map_file(file: i32, bytes: usize) -> *mut u8 {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    // SAFETY: a new mapping harms nobody.
    let result = unsafe {
        call(libc::SYS_mmap, [0, bytes as u64, protection, libc::MAP_SHARED as u64, file as u64, 0])
    };
    if result < 0 { std::ptr::null_mut() } else { result as *mut u8 }
}

/// How long a file is; 0 when it is none.
pub fn file_size(file: i32) -> u64 {
    // SAFETY: moves a position that nobody uses.
    let size = unsafe { call(libc::SYS_lseek, [file as u64, 0, libc::SEEK_END as u64, 0, 0, 0]) };
    size.try_into().unwrap_or(0)
}

/// What follows the place in the file; `None` when it cannot be read.
pub fn read_from(file: i32, mut at: u64) -> Option<Vec<u8>> {
    let mut content = vec![0; file_size(file).saturating_sub(at) as usize];
    let mut rest = &mut content[..];
    while !rest.is_empty() {
        let arguments = [file as u64, rest.as_mut_ptr() as u64, rest.len() as u64, at, 0, 0];
        // SAFETY: the buffer is ours.
        match unsafe { call(libc::SYS_pread64, arguments) } {
            count if count > 0 => {
                at += count as u64;
                rest = rest.split_at_mut(count as usize).1;
            }
            _ => return None,
        }
    }
    Some(content)
}

/// Closes a file.
pub fn close(file: i32) {
    // SAFETY: the caller owns it.
    unsafe { call(libc::SYS_close, [file as u64, 0, 0, 0, 0, 0]) };
}

/// Opens a file (NUL-terminated path); negative on failure.
pub fn open(path: &[u8], flags: i32) -> i32 {
    debug_assert_eq!(path.last(), Some(&0));
    let at = libc::AT_FDCWD as u64;
    // SAFETY: the path ends in NUL.
    unsafe { call(libc::SYS_openat, [at, path.as_ptr() as u64, flags as u64, 0o644, 0, 0]) as i32 }
}

/// Reads into the buffer; negative on failure.
pub fn read(file: i32, buffer: &mut [u8]) -> isize {
    let pointer = buffer.as_mut_ptr() as u64;
    // SAFETY: the buffer is ours.
    unsafe { call(libc::SYS_read, [file as u64, pointer, buffer.len() as u64, 0, 0, 0]) as isize }
}

/// Writes the bytes; negative on failure.
pub fn write(file: i32, bytes: &[u8]) -> isize {
    let pointer = bytes.as_ptr() as u64;
    // SAFETY: the bytes are readable.
    unsafe { call(libc::SYS_write, [file as u64, pointer, bytes.len() as u64, 0, 0, 0]) as isize }
}

/// Writes the words at a place in the file; says whether all were written.
pub fn write_at(file: i32, words: &[u64], at: u64) -> bool {
    let (pointer, bytes) = (words.as_ptr() as u64, size_of_val(words) as u64);
    let mut done = 0;
    while done < bytes {
        let rest = [file as u64, pointer + done, bytes - done, at + done, 0, 0];
        // SAFETY: the words are readable.
        match unsafe { call(libc::SYS_pwrite64, rest) } {
            written if written > 0 => done += written as u64,
            _ => return false,
        }
    }
    true
}

/// The whole content of a file (NUL-terminated path); `None` when it cannot be read.
pub fn read_file(path: &[u8]) -> Option<Vec<u8>> {
    let file = open(path, libc::O_RDONLY | libc::O_CLOEXEC);
    if file < 0 {
        return None;
    }
    let mut content = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = read(file, &mut buffer);
        if count <= 0 {
            close(file);
            return (count == 0).then_some(content);
        }
        content.extend_from_slice(&buffer[..count as usize]);
    }
}

/// When the file (NUL-terminated path) was changed last, in seconds since 1970; 0 if that is not
/// known.
pub fn modified(path: &[u8]) -> u64 {
    debug_assert_eq!(path.last(), Some(&0));
    // SAFETY: the path ends in NUL, `status` is writable.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let arguments = [path.as_ptr() as u64, (&raw mut status) as u64, 0, 0, 0, 0];
        call(libc::SYS_stat, arguments);
        status.st_mtime.max(0) as u64
    }
}

/// The kernel's clock in nanoseconds.
pub fn clock(which: i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe {
        call(libc::SYS_clock_gettime, [which as u64, (&raw mut time) as u64, 0, 0, 0, 0]);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Waits until one of the files is ready, at most `limit` nanoseconds; says how many are.
pub fn poll(files: &mut [libc::pollfd], limit: u64) -> i64 {
    let time = libc::timespec {
        tv_sec: (limit / 1_000_000_000) as i64,
        tv_nsec: (limit % 1_000_000_000) as i64,
    };
    let (first, count) = (files.as_mut_ptr() as u64, files.len() as u64);
    // SAFETY: the list is ours; no signal mask.
    unsafe { call(libc::SYS_ppoll, [first, count, (&raw const time) as u64, 0, 8, 0]) }
}

/// Sleeps in real time.
pub fn sleep(nanoseconds: u64) {
    let time = libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as i64,
    };
    // SAFETY: `time` is readable.
    unsafe { call(libc::SYS_nanosleep, [(&raw const time) as u64, 0, 0, 0, 0, 0]) };
}

/// Whether the process has a child, running or not yet waited for.
pub fn has_child() -> bool {
    const ALL: u64 = 0; // P_ALL
    let options = (libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) as u64;
    let mut information = [0u64; 16];
    // SAFETY: the kernel writes at most 128 bytes there.
    let asked =
        unsafe { call(libc::SYS_waitid, [ALL, 0, information.as_mut_ptr() as u64, options, 0, 0]) };
    asked != -i64::from(libc::ECHILD)
}

/// The kernel's number of this thread.
pub fn task() -> u32 {
    // SAFETY: always allowed.
    unsafe { call(libc::SYS_gettid, [0; 6]) as u32 }
}

/// Process id.
pub fn process() -> u32 {
    // SAFETY: always allowed.
    unsafe { call(libc::SYS_getpid, [0; 6]) as u32 }
}

/// Whether a process that started us, itself or through a debugger, is gone. A parent that died is
/// seen even before anybody has waited for it: it is not our parent any more.
pub fn is_gone(process: u32) -> bool {
    // SAFETY: asks only; signal 0 is not sent.
    unsafe {
        if call(libc::SYS_getppid, [0; 6]) == i64::from(process) {
            return false;
        }
        if call(libc::SYS_kill, [process.into(), 0, 0, 0, 0, 0]) == -i64::from(libc::ESRCH) {
            return true;
        }
    }
    // A process that nobody has waited for yet is still found.
    let status = read_file(format!("/proc/{process}/stat\0").as_bytes()).unwrap_or_default();
    let state = status.iter().rposition(|&byte| byte == b')').and_then(|end| status.get(end + 2));
    matches!(state, None | Some(b'Z' | b'X'))
}

/// Ends the process at once.
pub fn exit(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { call(libc::SYS_exit_group, [status as u64, 0, 0, 0, 0, 0]) };
    }
}

/// The time-stamp counter: cheap and good enough to see that a while has passed.
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Where this thread's stack lies, with its thread-local variables, and how large it is. (Not the main
/// thread's, whose variables lie elsewhere.)
pub fn stack() -> Option<(u64, u64)> {
    // SAFETY: asks about ourselves; the structure is filled in before it is used.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut address, mut size) = (std::ptr::null_mut(), 0);
        let found = libc::pthread_attr_getstack(&attributes, &mut address, &mut size) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        found.then_some((address as u64, size as u64))
    }
}

/// The kernel is to give on no mutex of this thread any more when it ends.
pub fn forget_robust_mutexes() {
    let (mut head, mut size) = (std::ptr::null_mut::<*mut c_void>(), 0usize);
    let arguments = [0, (&raw mut head) as u64, (&raw mut size) as u64, 0, 0, 0];
    // SAFETY: the thread's own list, whose first word leads to its first entry, and to itself where it is empty.
    unsafe {
        if call(libc::SYS_get_robust_list, arguments) == 0 && !head.is_null() {
            head.write(head.cast());
        }
    }
}
