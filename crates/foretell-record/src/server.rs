//! Runs by `fork`: the program is started once, and a copy of it makes each run.
//!
//! Starting a program (`execve`, dynamic linking, the runtime's set-up) takes longer than most runs. See
//! `foretell_wire::server` for what the server is and what a copy of it has in common with a program
//! that was started. The copies are children of ours, so that everything that holds for a program that
//! we start ourselves (limits, signals, what it leaves behind) holds for them.
//!
//! The first run is always one by `execve`: only a program that has our runtime in it can serve, and any
//! other would simply run. Where there is no server (it cannot be started, a library's constructor
//! started threads or opened files before ours, the kernel refuses), runs are made by `execve`, too;
//! [`ForkServer::refusal`] says why.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use foretell_guard::descendants::Mark;
use foretell_guard::launch::{Launch, in_lasting_thread};
use foretell_guard::process::Owned;
use foretell_wire::environment;
use foretell_wire::server::{DESCRIPTORS, Hello, PACKET_BYTES, Request};

use crate::clients::Clients;
use crate::processor::{self, Processor, Seat};
use crate::recording::{Prepared, signals_of_program};
use crate::ring::Ring;
use crate::{RecordError, RecordOptions, layout};

/// A server that has not answered for so long does not.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program that is run again and again, always with the same arguments: a server for each processor.
#[derive(Debug)]
pub struct ForkServer {
    prepared: OnceLock<Prepared>,
    state: Mutex<State>,
    forked: AtomicUsize,
    processors: Vec<Processor>,
    /// For each of them, once a run was made there.
    servers: Vec<Mutex<Option<Server>>>,
}

impl Default for ForkServer {
    fn default() -> Self {
        let processors = processor::all();
        let servers = processors.iter().map(|_| Mutex::default()).collect();
        let (prepared, state, forked) = Default::default();
        Self { prepared, state, forked, processors, servers }
    }
}

#[derive(Debug, Default)]
enum State {
    /// Nobody knows whether the runtime gets into the program.
    #[default]
    Untried,
    /// It does.
    Possible,
    /// Why there is none.
    Refused(String),
}

#[derive(Debug)]
struct Server {
    socket: OwnedFd,
    /// Killed when it is dropped.
    _process: Owned,
}

impl ForkServer {
    /// How many runs it made.
    pub fn forked(&self) -> usize {
        self.forked.load(Ordering::Relaxed)
    }

    /// Why runs are made by `execve`, if they are.
    pub fn refusal(&self) -> Option<String> {
        match &*self.state() {
            State::Refused(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// From now on every run is made by `execve`.
    pub fn refuse(&self, why: &str) {
        *self.state() = State::Refused(why.into());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is the same in all runs.
    pub(crate) fn prepared(&self, options: &RecordOptions) -> Result<&Prepared, RecordError> {
        if let Some(prepared) = self.prepared.get() {
            return Ok(prepared);
        }
        let prepared = Prepared::new(options)?;
        Ok(self.prepared.get_or_init(|| prepared))
    }

    /// The runtime was in the program.
    pub(crate) fn has_run(&self) {
        let mut state = self.state();
        if matches!(*state, State::Untried) {
            *state = State::Possible;
        }
    }

    /// A run, if a server can make it, and the place of the calling thread until it is over.
    pub(crate) fn fork(
        &self,
        options: &RecordOptions,
        ring: &Ring,
        streams: &[Option<File>; 3],
        mark: Mark,
    ) -> Option<(Owned, Seat<'_>)> {
        let [Some(input), Some(output), Some(error)] = streams else { return None };
        // QEMU has threads of its own, which no copy has.
        if options.debugger.is_some()
            || options.replay.is_some()
            || options.binary
            || options.capture.is_none()
            || matches!(options.clients, Some(Clients::Live(_)))
        {
            return None;
        }
        let prepared = self.prepared.get()?;
        if !matches!(*self.state(), State::Possible) {
            return None;
        }
        let (at, seat) = processor::seat(&self.processors)?;
        let mut server = self.servers[at].lock().unwrap_or_else(PoisonError::into_inner);
        if server.is_none() {
            match Server::start(options, prepared, self.processors[at].number) {
                Ok(started) => *server = Some(started),
                Err(why) => self.refuse(&why),
            }
        }
        let server = server.as_ref()?;
        seat.take();
        let request = Request {
            mark: mark.value(),
            points: options.point_limit.unwrap_or(0),
            path: options.path,
            policy: options.policy.to_string(),
        };
        let files = [ring.file(), input.as_raw_fd(), output.as_raw_fd(), error.as_raw_fd()];
        match Owned::forked(|| server.fork(&request, files)) {
            Ok(child) => {
                self.forked.fetch_add(1, Ordering::Relaxed);
                Some((child, seat))
            }
            Err(error) => {
                self.refuse(&format!("the fork server failed: {error}"));
                None
            }
        }
    }
}

impl Server {
    /// Starts the program as a server; says why that is not possible.
    fn start(options: &RecordOptions, prepared: &Prepared, processor: u32) -> Result<Self, String> {
        let failed = |error: io::Error| format!("the fork server cannot be started: {error}");
        let (socket, theirs) = sockets().map_err(failed)?;
        let descriptors = 3 + inherited().map_err(failed)?;
        let mut command = prepared.command(options);
        command.env(environment::SERVER, theirs.as_raw_fd().to_string());
        command.env(environment::PROCESSOR, processor.to_string());
        layout::fix(&mut command, &options.program, &prepared.program);
        let called = options.program.clone();
        let nothing = || File::options().read(true).write(true).open("/dev/null").map(Some);
        let streams = [nothing(), nothing(), nothing()];
        let process = in_lasting_thread(move || {
            let [input, output, error] = streams;
            Owned::launch(&Launch {
                command: &command,
                called: Some(called.as_os_str()),
                streams: &[input?, output?, error?],
                leads_group: true,
                ends_with_us: true,
                fixed_addresses: true,
                mark: Mark::new(),
                inherits: Some(theirs.as_raw_fd()),
                signals: &signals_of_program(),
                serves: true,
            })
        });
        let server = Self { socket, _process: process.map_err(failed)? };
        let mut packet = [0; PACKET_BYTES];
        let length = server.receive(&mut packet).map_err(failed)?;
        match Hello::read(&packet[..length]) {
            Some(Hello { threads: 1, descriptors: open }) if open == descriptors => Ok(server),
            Some(Hello { threads: 1, .. }) => {
                Err("a library of the program opens files before it begins".into())
            }
            Some(_) => Err("a library of the program starts threads before it begins".into()),
            None => Err("the runtime is not in the program".into()),
        }
    }

    /// Has a copy made; gives its number.
    fn fork(&self, request: &Request, files: [i32; DESCRIPTORS]) -> io::Result<i32> {
        self.send(request.text().as_bytes(), files)?;
        let mut packet = [0; PACKET_BYTES];
        let length = self.receive(&mut packet)?;
        match packet[..length].try_into().map(i32::from_le_bytes) {
            Ok(number) if number > 0 => Ok(number),
            Ok(error) => Err(io::Error::from_raw_os_error(error.wrapping_neg())),
            Err(_) => Err(io::Error::other("it has ended")),
        }
    }

    fn send(&self, bytes: &[u8], files: [i32; DESCRIPTORS]) -> io::Result<()> {
        let mut control = [0u64; 8];
        let mut part =
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: zero is valid for it; what it points to lives here, and has room for the files.
        unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = &mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size_of_val(&files) as u32) as usize;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of_val(&files) as u32) as usize;
            libc::CMSG_DATA(header).cast::<[i32; DESCRIPTORS]>().write_unaligned(files);
            match libc::sendmsg(self.socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) {
                sent if sent as usize == bytes.len() => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// The next packet; empty when the server has ended.
    fn receive(&self, packet: &mut [u8]) -> io::Result<usize> {
        let (socket, room) = (self.socket.as_raw_fd(), packet.len());
        let mut ready = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
        loop {
            // SAFETY: structure and packet live here.
            let received = unsafe {
                match libc::poll(&mut ready, 1, PATIENCE.as_millis() as i32) {
                    0 => return Err(io::ErrorKind::TimedOut.into()),
                    1 => libc::recv(socket, packet.as_mut_ptr().cast(), room, 0),
                    _ => -1,
                }
            };
            match usize::try_from(received) {
                Ok(length) => return Ok(length),
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
    }
}

/// Our end and the server's.
fn sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut both = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the list has room for two, which are ours then.
    unsafe {
        match libc::socketpair(libc::AF_UNIX, kind, 0, both.as_mut_ptr()) {
            0 => Ok((OwnedFd::from_raw_fd(both[0]), OwnedFd::from_raw_fd(both[1]))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// How many files besides the standard streams a program gets from us that we got ourselves.
fn inherited() -> io::Result<u32> {
    let numbers = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    // SAFETY: asks only; a number that is not open any more is an error.
    let stays = |&number: &i32| unsafe { libc::fcntl(number, libc::F_GETFD) } == 0;
    Ok(numbers.filter(|&number| number > 2).filter(stays).count() as u32)
}
