//! The program as a fork server, see `foretell_wire::server`.
//!
//! The server stands in the runtime's constructor, with one thread. A copy differs from a program that
//! was just started in its number only: it gets its own standard streams, process group, mark and
//! parent, and what the C library knows of its thread (its number, its list of robust mutexes) is put
//! right, as `fork` of the C library does.
//!
//! The server ends when the recorder closes the socket, or dies.

use foretell_wire::server::{DESCRIPTORS, Hello, PACKET_BYTES, Request};
use libc::{c_int, c_void};

use crate::real;
use crate::start::Wishes;
use crate::sys;

/// Makes copies of this process until the recorder has had enough. Returns in each copy.
pub fn serve(socket: c_int) -> Wishes {
    let hello = Hello { threads: entries(b"/proc/self/task\0"), descriptors: descriptors(socket) };
    send(socket, &hello.bytes());
    let recorder = parent();
    real::look_up_all();
    loop {
        let Some((request, files)) = receive(socket) else { sys::exit(0) };
        let number = copy();
        if number == 0 {
            sys::close(socket);
            begin(&request, files);
            if parent() != recorder {
                sys::exit(0); // it died before we could be killed with it
            }
            return Wishes {
                ring: Some(files[0]),
                policy: request.policy,
                points: Some(request.points).filter(|&points| points > 0),
                path: request.path,
            };
        }
        files.into_iter().for_each(sys::close);
        send(socket, &(number as i32).to_le_bytes());
    }
}

fn parent() -> i64 {
    // SAFETY: always allowed.
    unsafe { sys::call(libc::SYS_getppid, [0; 6]) }
}

fn send(socket: c_int, bytes: &[u8]) {
    let arguments =
        [socket as u64, bytes.as_ptr() as u64, bytes.len() as u64, libc::MSG_NOSIGNAL as u64, 0, 0];
    // SAFETY: the bytes are readable. A recorder that is gone is noticed at the next request.
    unsafe { sys::call(libc::SYS_sendto, arguments) };
}

/// The next request with its files; `None` when there will be none.
fn receive(socket: c_int) -> Option<(Request, [c_int; DESCRIPTORS])> {
    let mut bytes = [0u8; PACKET_BYTES];
    // A header of 16 bytes, then the descriptors.
    let mut control = [0u64; 8];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: zero is valid for it.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast::<c_void>();
    message.msg_controllen = size_of_val(&control);
    let length = loop {
        // SAFETY: everything that the kernel writes to lives here.
        let got = unsafe {
            sys::call(libc::SYS_recvmsg, [socket as u64, (&raw mut message) as u64, 0, 0, 0, 0])
        };
        if got != -i64::from(libc::EINTR) {
            break usize::try_from(got).ok().filter(|&length| length > 0)?;
        }
    };
    let request = Request::read(bytes.get(..length)?)?;
    // SAFETY: the kernel wrote a whole header, or none.
    let files = unsafe {
        let header = libc::CMSG_FIRSTHDR(&message).as_ref()?;
        let whole = libc::CMSG_LEN((DESCRIPTORS * size_of::<c_int>()) as u32) as usize;
        if header.cmsg_type != libc::SCM_RIGHTS || header.cmsg_len != whole {
            return None;
        }
        libc::CMSG_DATA(header).cast::<[c_int; DESCRIPTORS]>().read_unaligned()
    };
    Some((request, files))
}

/// Copies this process. The copy is a child of our parent; 0 in it, else its number or an error.
fn copy() -> i64 {
    // What the kernel knows of this thread, to be told to it again in the copy.
    let (mut number, mut robust, mut length) = (0u64, 0u64, 0u64);
    let robust_list = [0, (&raw mut robust) as u64, (&raw mut length) as u64, 0, 0, 0];
    let address = [libc::PR_GET_TID_ADDRESS as u64, (&raw mut number) as u64, 0, 0, 0, 0];
    // SAFETY: asks only.
    let failed = unsafe {
        match sys::call(libc::SYS_prctl, address) {
            0 => sys::call(libc::SYS_get_robust_list, robust_list),
            error => error,
        }
    };
    if failed != 0 {
        return failed;
    }
    let flags =
        libc::CLONE_PARENT | libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
    // SAFETY: there is one thread, which goes on on a copy of its stack; the number of the thread lies
    // where the C library keeps it.
    unsafe {
        let copy = sys::call(libc::SYS_clone, [flags as u64, 0, 0, number, 0, 0]);
        if copy == 0 {
            sys::call(libc::SYS_set_robust_list, [robust, length, 0, 0, 0, 0]);
        }
        copy
    }
}

/// In the copy: what is different for every run.
fn begin(request: &Request, files: [c_int; DESCRIPTORS]) {
    // SAFETY: plain system calls on ourselves.
    unsafe {
        sys::call(libc::SYS_setpgid, [0; 6]);
        let signal = libc::SIGKILL as u64;
        sys::call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as u64, signal, 0, 0, 0, 0]);
        // Where the server has no mark there is a limit in force that must stay.
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let resource = libc::RLIMIT_RTTIME as u64;
        let ask = [0, resource, 0, (&raw mut limit) as u64, 0, 0];
        let known = sys::call(libc::SYS_prlimit64, ask) == 0;
        if known && limit.rlim_cur >= 1 << 62 && limit.rlim_cur != libc::RLIM_INFINITY {
            limit.rlim_cur = request.mark;
            sys::call(libc::SYS_prlimit64, [0, resource, (&raw const limit) as u64, 0, 0, 0]);
        }
        for (number, file) in files.into_iter().skip(1).enumerate() {
            sys::call(libc::SYS_dup2, [file as u64, number as u64, 0, 0, 0, 0]);
            sys::close(file);
        }
    }
}

/// How many open files this process has, without the socket.
fn descriptors(socket: c_int) -> u32 {
    let folder = sys::open(b"/proc/self/fd\0", libc::O_RDONLY | libc::O_DIRECTORY);
    let count = entries_of(folder);
    sys::close(folder);
    // The folder itself is one.
    count.saturating_sub(1 + u32::from(socket >= 0))
}

/// How many entries the folder has.
fn entries(path: &[u8]) -> u32 {
    let folder = sys::open(path, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
    let count = entries_of(folder);
    sys::close(folder);
    count
}

fn entries_of(folder: c_int) -> u32 {
    let mut count = 0u32;
    let mut buffer = [0u64; 512];
    loop {
        let arguments =
            [folder as u64, buffer.as_mut_ptr() as u64, size_of_val(&buffer) as u64, 0, 0, 0];
        // SAFETY: the buffer is ours.
        let bytes = unsafe { sys::call(libc::SYS_getdents64, arguments) };
        if bytes <= 0 {
            return count.saturating_sub(2); // itself and the one above
        }
        let mut at = 0;
        while at < bytes as usize {
            count += 1;
            // SAFETY: the kernel wrote whole entries; their length is a number of 16 bits at 16.
            at += unsafe {
                buffer.as_ptr().byte_add(at + 16).cast::<u16>().read_unaligned() as usize
            };
        }
    }
}
