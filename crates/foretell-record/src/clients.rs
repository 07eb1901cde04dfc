//! The clients of a server that is recorded: live ones, which are started when it is ready and whose end ends
//! it, or a script of what they did, which the runtime plays.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foretell_guard::PrivateFolder;
use foretell_guard::process::Guarded;
use foretell_wire::traffic::{Script, Seen, script};

use crate::RecordOptions;
use crate::process_end::has_ended;

/// Who talks to a server.
#[derive(Clone, Debug)]
pub enum Clients {
    /// These programs.
    Live(LiveClients),
    /// The runtime, as the script in this file says.
    Played(PathBuf),
}

/// Programs that are the clients of a server.
#[derive(Clone, Debug)]
pub struct LiveClients {
    /// What a shell runs for each; all at once.
    pub commands: Vec<OsString>,
    /// When they are started.
    pub ready: Ready,
    /// The signal that ends the server when all have ended.
    pub stop: i32,
}

/// When a server is ready for its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// When it accepts connections.
    Listens,
    /// When it accepts connections at this port.
    Port(u16),
    /// When it has written a line with this text.
    Line(String),
}

/// What came of live clients.
#[derive(Clone, Debug)]
pub struct Served {
    /// What they did.
    pub script: Script,
    /// Whether the server was ever ready for them.
    pub was_ready: bool,
    /// Commands that did not end well, and how.
    pub failed: Vec<(OsString, String)>,
    /// They had all ended, and the server was told to.
    pub is_over: bool,
}

/// Checks that the file is a script of what clients do.
pub fn check_traffic(path: &Path) -> Result<(), String> {
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| in_file(&error))?;
    let script = Script::parse(&text).map_err(|line| {
        in_file(&format!(
            "line {line} does not say what a client does; `foretell test --client` writes such files"
        ))
    })?;
    match script.connections() {
        0 => Err(in_file(&"there is no connection in it")),
        _ => Ok(()),
    }
}

/// A server that does not end after the signal is killed after so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(2);

/// Live clients, beside the run of their server.
pub(crate) struct Serving {
    folder: PrivateFolder,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Served>>>,
}

impl Serving {
    /// Readies the file to which the runtime writes what the clients do.
    pub fn new() -> io::Result<Self> {
        let folder = PrivateFolder::new()?;
        let serving = Self { folder, over: Arc::default(), thread: None };
        File::create(serving.file())?;
        Ok(serving)
    }

    /// That file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("seen")
    }

    /// The server runs, with this number.
    pub fn begin(
        &mut self,
        live: &LiveClients,
        server: u32,
        options: &RecordOptions,
    ) -> io::Result<()> {
        // SAFETY: a child that was not waited for; the file is ours.
        let server = unsafe {
            let file = libc::syscall(libc::SYS_pidfd_open, server, 0) as i32;
            if file < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(file)
        };
        let streams = options.capture.as_ref();
        let streams =
            streams.map(|capture| [Arc::clone(&capture.stdout), Arc::clone(&capture.stderr)]);
        let beside = Beside {
            live: live.clone(),
            server,
            seen: Vec::new(),
            file: File::open(self.file())?,
            rest: String::new(),
            streams,
            over: Arc::clone(&self.over),
        };
        let thread = std::thread::Builder::new().name("clients".into());
        self.thread = Some(thread.spawn(move || beside.serve())?);
        Ok(())
    }

    /// The server has ended.
    pub fn finish(mut self) -> io::Result<Option<Served>> {
        self.over.store(true, Ordering::Relaxed);
        let served = self.thread.take().map(JoinHandle::join);
        served.map(|served| served.unwrap_or_else(|_| Err(io::Error::other("a panic")))).transpose()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // the run has failed already
        }
    }
}

/// What the thread beside the run has.
struct Beside {
    live: LiveClients,
    server: OwnedFd,
    seen: Vec<Seen>,
    file: File,
    rest: String,
    streams: Option<[Arc<File>; 2]>,
    over: Arc<AtomicBool>,
}

impl Beside {
    fn serve(mut self) -> io::Result<Served> {
        let mut clients: Vec<Guarded> = Vec::new();
        let mut groups = Vec::new();
        let mut failed = Vec::new();
        let mut told: Option<Instant> = None;
        while !self.over.load(Ordering::Relaxed) {
            self.read()?;
            if groups.is_empty() && self.is_ready() {
                for command in &self.live.commands {
                    let mut shell = Command::new("/bin/sh");
                    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::null());
                    let mut client = Guarded::start(&mut shell)?;
                    groups.push(client.child().id());
                    clients.push(client);
                }
            }
            let all = clients.iter_mut().all(|client| has_ended(client.child().id() as i32));
            if !groups.is_empty() && all {
                match told {
                    None => {
                        told = Some(Instant::now());
                        self.signal(self.live.stop);
                    }
                    Some(since) if since.elapsed() > PATIENCE => self.signal(libc::SIGKILL),
                    Some(_) => {}
                }
            }
            std::thread::sleep(LOOK);
        }
        self.read()?;
        for (client, command) in clients.iter_mut().zip(&self.live.commands) {
            let ended = has_ended(client.child().id() as i32);
            if !ended {
                failed.push((command.clone(), "the server ended before it".into()));
                continue;
            }
            let status = client.wait()?;
            if !status.success() {
                failed.push((command.clone(), status.to_string()));
            }
        }
        let script = script(&self.seen, &groups, self.live.stop);
        Ok(Served { script, was_ready: !groups.is_empty(), failed, is_over: told.is_some() })
    }

    /// Reads what the runtime has written since.
    fn read(&mut self) -> io::Result<()> {
        self.file.read_to_string(&mut self.rest)?;
        while let Some((line, rest)) = self.rest.split_once('\n') {
            self.seen.extend(Seen::parse(line));
            self.rest = rest.to_owned();
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        let listens = |wanted: Option<&str>| {
            self.seen.iter().any(|seen| {
                matches!(seen, Seen::Listening(name) if wanted.is_none_or(|wanted| wanted == name))
            })
        };
        match &self.live.ready {
            Ready::Listens => listens(None),
            Ready::Port(port) => listens(Some(&format!("port {port}"))),
            Ready::Line(text) => self.streams.iter().flatten().any(|stream| {
                let mut bytes = vec![0; stream.metadata().map_or(0, |data| data.len()) as usize];
                stream.read_exact_at(&mut bytes, 0).is_ok()
                    && String::from_utf8_lossy(&bytes).contains(text.as_str())
            }),
        }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: our own child's file.
        unsafe {
            let information = std::ptr::null::<libc::siginfo_t>();
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.server.as_raw_fd(),
                signal,
                information,
                0,
            );
        }
    }
}
