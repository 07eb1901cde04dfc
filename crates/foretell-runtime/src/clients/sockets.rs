//! The sockets of clients, and who has the other end.

use libc::c_int;

use crate::channels;
use crate::sys;

/// Our descriptors are out of the program's way.
pub const OUR_DESCRIPTORS: u64 = 800;
/// How long the kernel may take from one end of a connection to the other, in steps of a millisecond.
pub const PATIENCE: u32 = 1_000;

/// The descriptor, with a number that the program does not come to.
pub fn move_away(file: c_int) -> c_int {
    // SAFETY: calls on our own descriptor.
    unsafe {
        let arguments = [file as u64, libc::F_DUPFD_CLOEXEC as u64, OUR_DESCRIPTORS, 0, 0, 0];
        let moved = sys::call(libc::SYS_fcntl, arguments) as c_int;
        if moved < 0 {
            return file;
        }
        sys::close(file);
        moved
    }
}

/// Which of these events are there.
pub fn look(file: c_int, events: i16) -> i16 {
    let mut files = [libc::pollfd { fd: file, events, revents: 0 }];
    sys::poll(&mut files, 0);
    files[0].revents
}

/// Whether there is something to read or accept.
pub fn is_ready(file: c_int) -> bool {
    look(file, libc::POLLIN) != 0
}

/// How many bytes can be read.
pub fn readable(file: c_int) -> u64 {
    let mut count: c_int = 0;
    // SAFETY: the number is writable.
    let asked = unsafe {
        sys::call(libc::SYS_ioctl, [file as u64, libc::FIONREAD, (&raw mut count) as u64, 0, 0, 0])
    };
    if asked == 0 { count as u64 } else { u64::MAX }
}

/// Waits for the kernel, which does at once what is asked of it here unless it is busy.
pub fn await_that(is_so: impl Fn() -> bool) {
    let mut waited = 0;
    while !is_so() && waited < PATIENCE {
        waited += 1;
        sys::sleep(1_000_000);
    }
}

/// The address at which this host reaches a socket that is bound to this one.
pub fn reachable(mut address: Vec<u8>) -> Vec<u8> {
    match c_int::from(u16::from_le_bytes([address[0], address[1]])) {
        libc::AF_INET if address[4..8] == [0; 4] => {
            address[4..8].copy_from_slice(&[127, 0, 0, 1]);
        }
        libc::AF_INET6 if address.get(8..24) == Some(&[0; 16]) => address[23] = 1,
        _ => {}
    }
    address
}

/// A socket of ours that is connected with the address.
pub fn connect(address: &[u8]) -> Option<c_int> {
    let family = u64::from(u16::from_le_bytes(*address.first_chunk::<2>()?));
    let kind = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u64;
    // SAFETY: the address is readable.
    unsafe {
        let socket = sys::call(libc::SYS_socket, [family, kind, 0, 0, 0, 0]) as c_int;
        if socket < 0 {
            return None;
        }
        let socket = move_away(socket);
        let arguments = [socket as u64, address.as_ptr() as u64, address.len() as u64, 0, 0, 0];
        if sys::call(libc::SYS_connect, arguments) < 0 {
            sys::close(socket);
            return None;
        }
        Some(socket)
    }
}

/// The process that has the other end of the connection.
pub fn peer_of(socket: c_int) -> Option<u32> {
    let (local, remote) =
        (channels::address_of(socket, false)?, channels::address_of(socket, true)?);
    let family = c_int::from(u16::from_le_bytes(*local.first_chunk::<2>()?));
    if family == libc::AF_UNIX {
        return channels::peer_process(socket);
    }
    let port = |address: &[u8]| Some(u16::from_be_bytes([*address.get(2)?, *address.get(3)?]));
    let (ours, theirs) = (port(&local)?, port(&remote)?);
    let inode = ["/proc/net/tcp\0", "/proc/net/tcp6\0"].iter().find_map(|path| {
        let text = String::from_utf8(sys::read_file(path.as_bytes())?).ok()?;
        text.lines().skip(1).find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let port = |word: &str| u16::from_str_radix(word.rsplit(':').next()?, 16).ok();
            let is_theirs = port(words.get(1)?)? == theirs && port(words.get(2)?)? == ours;
            is_theirs.then(|| words.get(9)?.parse::<u64>().ok()).flatten()
        })
    })?;
    let wanted = format!("socket:[{inode}]");
    crate::outside::numbers_in(b"/proc\0")?.into_iter().find(|&process| {
        let folder = format!("/proc/{process}/fd\0");
        let files = crate::outside::numbers_in(folder.as_bytes()).unwrap_or_default();
        files.into_iter().any(|file| {
            crate::outside::link_at(&format!("/proc/{process}/fd/{file}\0"))
                .is_some_and(|link| link == wanted.as_bytes())
        })
    })
}

/// The process group of a process.
pub fn group_of(process: u32) -> Option<u32> {
    let status = sys::read_file(format!("/proc/{process}/stat\0").as_bytes())?;
    let text = String::from_utf8_lossy(&status).into_owned();
    // After the name: state, parent, group.
    text.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}
