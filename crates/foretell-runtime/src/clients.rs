//! The clients of a server.
//!
//! In a run with live clients, what they do is written down as it is seen ([`watch`]). In every other run a
//! script of it is played ([`play`], see `foretell_wire::traffic`): the runtime itself asks the server for
//! connections, over sockets of the kernel, and sends what the clients sent, each step as soon as the server
//! has sent what came before it. A step is made by the thread that has the turn, in the call that makes it
//! possible, and is there when the call returns. So what is ready when, and in which order, is decided by
//! the schedule alone, and runs at the same time do not meet: each listens to a port of its own.
//!
//! When nobody can go on, a step is made although the server has not sent what it should come after: its
//! answer was another, or none, and a client that waits for nothing is not the server's concern. When no step
//! is left, the server is told to end.
//!
//! What the clients get is written to standard output, a line for each of theirs: it is what a server gives.
//!
//! Not played: datagrams. Not seen: what is sent without a copy (`sendfile`, `splice`).

mod ending;
mod sockets;

use std::collections::{BTreeMap, VecDeque};

use foretell_wire::ObjectKind;
use foretell_wire::limits::{LONGEST_CLIENT_LINE, MOST_WAITS};
use foretell_wire::traffic::{Act, Script, Seen, Step};
use libc::c_int;

use crate::channels;
use crate::recorder::recorder;
use crate::sys;
use crate::thread::{Session, Thread};
use crate::turn::TurnCell;
pub use ending::end;
use ending::tell;
use sockets::{
    OUR_DESCRIPTORS, PATIENCE, await_that, connect, group_of, is_ready, look, move_away, peer_of,
    reachable, readable,
};

/// What is known of clients; nothing unless the recorder asks for it.
static CLIENTS: TurnCell<Option<Clients>> = TurnCell::new(None);

/// See the top of this file.
struct Clients {
    mode: Mode,
    /// The program's descriptors that accept connections.
    listeners: BTreeMap<c_int, Listener>,
    /// By number.
    connections: BTreeMap<u32, Connection>,
    /// The program's ends of them.
    accepted: BTreeMap<c_int, u32>,
}

enum Mode {
    /// What clients do is appended to this file.
    Watch(c_int),
    /// They do what this says.
    Play(Play),
}

struct Play {
    stop: c_int,
    /// Those of each client that it has not made yet.
    steps: BTreeMap<u32, VecDeque<Step>>,
    /// The server was told to end.
    told: bool,
    /// So often time passed in vain since a step was made.
    waited: u32,
    /// The run's standard output, wherever the program puts its own.
    output: c_int,
}

struct Listener {
    /// What the program wanted: its port, or the name of a local socket.
    name: String,
    /// Connections that were asked for and not accepted, the oldest first.
    asking: VecDeque<u32>,
    /// So many of them may be.
    room: usize,
}

#[derive(Default)]
struct Connection {
    /// The program's end.
    server: Option<c_int>,
    /// Ours.
    client: Option<c_int>,
    /// Bytes that were sent to the server, and that it has read.
    given: u64,
    read: u64,
    /// Bytes that the server has sent; that it closed counts as one.
    answered: u64,
    closed: bool,
    /// What it sent of a line.
    line: Vec<u8>,
}

/// Ports that programs wanted, by descriptor, until they listen.
static WANTED: TurnCell<BTreeMap<c_int, u16>> = TurnCell::new(BTreeMap::new());

/// # Safety
/// Only for the thread that has the turn.
unsafe fn clients() -> Option<&'static mut Clients> {
    // SAFETY: the caller's promise.
    unsafe { CLIENTS.get() }.as_mut()
}

/// Whether a script is played: nothing comes from outside.
pub fn are_played() -> bool {
    // SAFETY: callers have the turn.
    unsafe { clients() }.is_some_and(|clients| matches!(clients.mode, Mode::Play(_)))
}

/// Writes what clients do to this file from now on.
pub fn watch(path: &str) -> Result<(), String> {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC;
    let file = sys::open(format!("{path}\0").as_bytes(), flags);
    if file < 0 {
        return Err("cannot write what the clients do".into());
    }
    begin(Mode::Watch(move_away(file)));
    // SAFETY: there is no other thread yet.
    if let Some(clients) = unsafe { clients() } {
        clients.saw(&Seen::Process(sys::process()));
    }
    Ok(())
}

/// Plays the script in this file.
pub fn play(path: &str) -> Result<(), String> {
    let content = sys::read_file(format!("{path}\0").as_bytes());
    let text = content.and_then(|content| String::from_utf8(content).ok());
    let script = Script::parse(&text.ok_or("cannot read what the clients do")?)
        .map_err(|line| format!("line {line} of what the clients do makes no sense"))?;
    let mut steps: BTreeMap<u32, VecDeque<Step>> = BTreeMap::new();
    for step in script.steps {
        steps.entry(step.client).or_default().push_back(step);
    }
    // SAFETY: a call on our own descriptor.
    let output = unsafe {
        let arguments = [1, libc::F_DUPFD_CLOEXEC as u64, OUR_DESCRIPTORS, 0, 0, 0];
        sys::call(libc::SYS_fcntl, arguments) as c_int
    };
    begin(Mode::Play(Play { stop: script.stop, steps, told: false, waited: 0, output }));
    Ok(())
}

fn begin(mode: Mode) {
    let clients = Clients {
        mode,
        listeners: BTreeMap::new(),
        connections: BTreeMap::new(),
        accepted: BTreeMap::new(),
    };
    // SAFETY: there is no other thread yet.
    unsafe { *CLIENTS.get() = Some(clients) };
}

/// In a forked child the clients are the parent's.
pub fn after_fork() {
    // SAFETY: the only thread.
    unsafe { *CLIENTS.get() = None };
}

/// The address that the program's socket is bound to: with a port of its own where a script is played.
pub fn bound(file: c_int, address: &[u8]) -> Option<Vec<u8>> {
    let family = c_int::from(u16::from_le_bytes(*address.first_chunk::<2>()?));
    if !matches!(family, libc::AF_INET | libc::AF_INET6) {
        return None;
    }
    let port = u16::from_be_bytes([*address.get(2)?, *address.get(3)?]);
    // SAFETY: callers have the turn.
    unsafe { clients() }?;
    // SAFETY: as above.
    unsafe { WANTED.get() }.insert(file, port);
    if !are_played() {
        return None;
    }
    let mut other = address.to_vec();
    other[2..4].fill(0);
    Some(other)
}

/// The program asks for the address of its socket: where a script is played, it hears the port that it
/// wanted.
pub fn named(file: c_int, address: &mut [u8]) {
    // SAFETY: callers have the turn.
    let wanted = unsafe { WANTED.get() }.get(&file).copied().filter(|&port| port != 0);
    if let (Some(port), true) = (wanted, are_played())
        && let Some(bytes) = address.get_mut(2..4)
    {
        bytes.copy_from_slice(&port.to_be_bytes());
    }
}

/// The program accepts connections with the socket.
pub fn listening(session: &mut Session, file: c_int, room: c_int) {
    // SAFETY: callers have the turn.
    let Some(clients) = (unsafe { clients() }) else { return };
    let Some(address) = channels::address_of(file, false) else { return };
    // SAFETY: as above.
    let name = match unsafe { WANTED.get() }.get(&file) {
        Some(port) => format!("port {port}"),
        None => match address.get(2..) {
            Some([0, name @ ..]) => format!("@{}", String::from_utf8_lossy(name)),
            Some(name) => {
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                String::from_utf8_lossy(name).into_owned()
            }
            None => return,
        },
    };
    let room = usize::try_from(room).unwrap_or(1).clamp(1, 128);
    clients.saw(&Seen::Listening(name.clone()));
    clients.listeners.insert(file, Listener { name, asking: VecDeque::new(), room });
    advance(session);
}

/// `accept` gave the program this socket.
pub fn accepted(session: &mut Session, listening: c_int, socket: c_int) {
    // SAFETY: callers have the turn.
    let Some(clients) = (unsafe { clients() }) else { return };
    let Some(listener) = clients.listeners.get_mut(&listening).filter(|_| socket >= 0) else {
        return;
    };
    let name = listener.name.clone();
    let number = match clients.mode {
        Mode::Watch(_) => clients.connections.len() as u32,
        Mode::Play(_) => match listener.asking.pop_front() {
            Some(number) => number,
            None => return,
        },
    };
    if let Mode::Watch(_) = clients.mode {
        let group = peer_of(socket).and_then(group_of).unwrap_or(0);
        clients.saw(&Seen::Accepted { connection: number, listener: name, group });
    }
    clients.accepted.insert(socket, number);
    let connection = clients.connections.entry(number).or_default();
    connection.server = Some(socket);
    connection.await_given();
    advance(session);
}

/// The program read `got` from the descriptor; nothing if its input has ended.
pub fn read(file: c_int, got: &[&[u8]], result: isize) {
    // SAFETY: callers have the turn.
    let Some(clients) = (unsafe { clients() }) else { return };
    let Some(&number) = clients.accepted.get(&file) else { return };
    let Ok(mut left) = usize::try_from(result) else { return };
    if let Some(connection) = clients.connections.get_mut(&number) {
        connection.read += left as u64;
    }
    if let Mode::Watch(_) = clients.mode {
        let mut bytes = Vec::with_capacity(left);
        for piece in got {
            let piece = &piece[..piece.len().min(left)];
            bytes.extend_from_slice(piece);
            left -= piece.len();
        }
        match bytes.is_empty() {
            true => clients.saw(&Seen::Ended(number)),
            false => clients.saw(&Seen::Read(number, bytes)),
        }
    }
}

/// The program is about to send: what clients have done before does not depend on it.
pub fn sends(file: c_int) {
    // SAFETY: callers have the turn.
    let Some(clients) = (unsafe { clients() }) else { return };
    if !clients.accepted.contains_key(&file) || !matches!(clients.mode, Mode::Watch(_)) {
        return;
    }
    let arrived: Vec<u32> =
        clients.accepted.iter().filter(|&(&file, _)| is_ready(file)).map(|(_, &n)| n).collect();
    arrived.into_iter().for_each(|number| clients.saw(&Seen::Arrived(number)));
    let waiting = clients.listeners.iter().filter(|&(&file, _)| is_ready(file));
    let waiting: Vec<String> = waiting.map(|(_, listener)| listener.name.clone()).collect();
    waiting.into_iter().for_each(|name| clients.saw(&Seen::Waiting(name)));
}

/// The program sent `result` bytes of the pieces.
pub fn sent(session: &mut Session, file: c_int, pieces: &[&[u8]], result: isize) {
    // SAFETY: callers have the turn.
    let Some(clients) = (unsafe { clients() }) else { return };
    let Some(&number) = clients.accepted.get(&file) else { return };
    let Some(amount) = usize::try_from(result).ok().filter(|&amount| amount > 0) else { return };
    clients.saw(&Seen::Sent(number, amount as u64));
    let Mode::Play(play) = &clients.mode else { return };
    let Some(connection) = clients.connections.get_mut(&number) else { return };
    connection.answered += amount as u64;
    connection.empty();
    let mut left = amount;
    for piece in pieces {
        let piece = &piece[..piece.len().min(left)];
        connection.show(number, piece, play.output);
        left -= piece.len();
    }
    note_answer(session, number);
    advance(session);
}

/// The program closes the descriptor, or sends no more.
pub fn closes(session: &mut Session, file: c_int, is_gone: bool) {
    // SAFETY: callers have the turn.
    let Some(clients) = (unsafe { clients() }) else { return };
    if is_gone {
        clients.listeners.remove(&file);
        // SAFETY: as above.
        unsafe { WANTED.get() }.remove(&file);
    }
    let known = match is_gone {
        true => clients.accepted.remove(&file),
        false => clients.accepted.get(&file).copied(),
    };
    let Some(number) = known else { return };
    let Some(connection) = clients.connections.get_mut(&number) else { return };
    if is_gone {
        connection.server = None;
    }
    if std::mem::replace(&mut connection.closed, true) {
        return;
    }
    connection.answered += 1;
    clients.saw(&Seen::Sent(number, 1));
    let Mode::Play(play) = &clients.mode else { return };
    if let Some(connection) = clients.connections.get_mut(&number) {
        connection.show_rest(number, play.output);
    }
    note_answer(session, number);
    advance(session);
}

impl Clients {
    /// Writes it down, if that is wanted.
    fn saw(&self, seen: &Seen) {
        if let Mode::Watch(file) = self.mode {
            sys::write(file, format!("{seen}\n").as_bytes());
        }
    }

    /// Whether the step can be made: the server has sent what comes before it, and is there.
    fn is_due(&self, step: &Step) -> bool {
        let answered = |&(other, amount): &(u32, u64)| {
            self.connections.get(&other).is_some_and(|other| other.answered >= amount)
        };
        self.is_possible(step) && step.after.iter().all(answered)
    }

    /// Whether the step can be made at all by now.
    fn is_possible(&self, step: &Step) -> bool {
        match &step.act {
            Act::Connect(name) => self
                .listeners
                .values()
                .any(|listener| listener.name == *name && listener.asking.len() < listener.room),
            _ => self.connections.contains_key(&step.connection),
        }
    }

    /// The next step of somebody that is possible, whether it is due or not.
    fn next(&self, is: impl Fn(&Self, &Step) -> bool) -> Option<u32> {
        let Mode::Play(play) = &self.mode else { return None };
        let first = play.steps.iter().filter_map(|(&client, steps)| Some((client, steps.front()?)));
        first.filter(|(_, step)| is(self, step)).map(|(client, _)| client).next()
    }

    /// Makes the next step of the client. Gives our end of the connection and what is to be told of it.
    fn make(&mut self, client: u32) -> Option<Made> {
        let Mode::Play(play) = &mut self.mode else { return None };
        let step = play.steps.get_mut(&client)?.pop_front()?;
        play.waited = 0;
        let number = step.connection;
        match step.act {
            Act::Connect(name) => {
                let room = |listener: &Listener| listener.asking.len() < listener.room;
                let (&file, listener) = self
                    .listeners
                    .iter_mut()
                    .find(|(_, listener)| listener.name == name && room(listener))?;
                let address = channels::address_of(file, false)?;
                let address = reachable(address);
                let socket = connect(&address)?;
                listener.asking.push_back(number);
                self.connections
                    .insert(number, Connection { client: Some(socket), ..Connection::default() });
                await_that(|| is_ready(file));
                Some(Made::Connected(socket, address))
            }
            Act::Send(bytes) => {
                let connection = self.connections.get_mut(&number)?;
                let socket = connection.client?;
                let whole = connection.give(socket, &bytes);
                connection.await_given();
                whole.then_some(Made::Sent(socket, bytes))
            }
            Act::End => {
                let connection = self.connections.get_mut(&number)?;
                let socket = connection.client?;
                // SAFETY: our own socket.
                unsafe {
                    let arguments = [socket as u64, libc::SHUT_WR as u64, 0, 0, 0, 0];
                    sys::call(libc::SYS_shutdown, arguments);
                }
                if let Some(server) = connection.server {
                    await_that(|| look(server, libc::POLLRDHUP) & libc::POLLRDHUP != 0);
                }
                Some(Made::Ended(socket))
            }
        }
    }

    /// Whether the client has several connections.
    fn has_several(&self, client: u32) -> bool {
        let Mode::Play(play) = &self.mode else { return false };
        let steps = play.steps.get(&client).into_iter().flatten();
        let mut others: Vec<u32> = steps.map(|step| step.connection).collect();
        others.dedup();
        others.len() > 1
    }
}

/// What a step did, with our end.
enum Made {
    Connected(c_int, Vec<u8>),
    Sent(c_int, Vec<u8>),
    Ended(c_int),
}

impl Connection {
    /// Sends everything; says whether it could.
    fn give(&mut self, socket: c_int, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        let mut waited = 0;
        while !rest.is_empty() {
            let flags = (libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) as u64;
            let arguments = [socket as u64, rest.as_ptr() as u64, rest.len() as u64, flags, 0, 0];
            // SAFETY: the bytes are readable.
            let sent = unsafe { sys::call(libc::SYS_sendto, arguments) };
            match usize::try_from(sent) {
                Ok(sent) => rest = &rest[sent..],
                Err(_) if sent == -i64::from(libc::EAGAIN) && waited < PATIENCE => {
                    waited += 1;
                    sys::sleep(1_000_000);
                }
                Err(_) => return false, // closed by the server
            }
        }
        self.given += bytes.len() as u64;
        true
    }

    /// Waits until what was given is at the server's end.
    fn await_given(&self) {
        if let Some(server) = self.server {
            let there = self.given.saturating_sub(self.read);
            await_that(|| readable(server) >= there);
        }
    }

    /// Takes what the server has sent: its content is known.
    fn empty(&self) {
        let Some(socket) = self.client else { return };
        let mut buffer = [0u8; 4096];
        loop {
            let flags = libc::MSG_DONTWAIT as u64;
            let room = buffer.len() as u64;
            let arguments = [socket as u64, buffer.as_mut_ptr() as u64, room, flags, 0, 0];
            // SAFETY: the buffer is ours.
            if unsafe { sys::call(libc::SYS_recvfrom, arguments) } <= 0 {
                return;
            }
        }
    }

    /// Shows the lines of what the server sent.
    fn show(&mut self, number: u32, bytes: &[u8], output: c_int) {
        for &byte in bytes {
            match byte {
                b'\n' => self.show_rest(number, output),
                byte => self.line.push(byte),
            }
            if self.line.len() >= LONGEST_CLIENT_LINE {
                self.show_rest(number, output);
            }
        }
    }

    fn show_rest(&mut self, number: u32, output: c_int) {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if !line.is_empty() {
            let text = format!("connection {number} got: {}\n", line.escape_ascii());
            sys::write(output, text.as_bytes());
        }
    }
}

/// Makes every step that is due, in the name of the thread that has the turn.
fn advance(session: &mut Session) {
    loop {
        // SAFETY: callers have the turn.
        let Some(clients) = (unsafe { clients() }) else { return };
        let Some(client) = clients.next(Clients::is_due) else { return };
        if clients.has_several(client) {
            channels::heard_as_client(session, client);
        }
        match clients.make(client) {
            Some(Made::Connected(socket, address)) => {
                channels::connecting(session, socket, &address);
            }
            Some(Made::Sent(socket, bytes)) => {
                channels::sent(session, socket, &[&bytes], bytes.len() as isize, None);
            }
            Some(Made::Ended(socket)) => channels::closing(session, socket),
            None => {}
        }
    }
}

/// The server has answered on the connection: a client with several may act on all answers together.
fn note_answer(session: &mut Session, connection: u32) {
    // SAFETY: callers have the turn.
    let Some(clients) = (unsafe { clients() }) else { return };
    let Mode::Play(play) = &clients.mode else { return };
    let of = |steps: &VecDeque<Step>| {
        let needs = |step: &Step| step.after.iter().any(|&(other, _)| other == connection);
        steps.iter().any(needs)
    };
    let waiting = play.steps.iter().find(|(_, steps)| of(steps)).map(|(&client, _)| client);
    if let Some(client) = waiting.filter(|&client| clients.has_several(client)) {
        channels::told_client(session, client);
    }
}

/// Nobody can go on, or only if time passes: the clients do what they still have to do, and then the
/// server is told to end. Says whether something was done about it.
pub fn when_idle(threads: &[*mut Thread], time_can_pass: bool) -> bool {
    // SAFETY: callers have the turn.
    let Some(clients) = (unsafe { clients() }) else { return false };
    let next = clients.next(Clients::is_possible);
    let Mode::Play(play) = &mut clients.mode else { return false };
    if clients.listeners.is_empty() && !play.told {
        return false; // it has not begun to be a server
    }
    let has_left = play.steps.values().any(|steps| !steps.is_empty());
    if has_left && time_can_pass && play.waited < MOST_WAITS {
        play.waited += 1;
        return false;
    }
    if let Some(client) = next {
        // SAFETY: as above.
        unsafe { recorder() }.gap(1, ANSWERED_OTHERWISE);
        clients.make(client);
        return true;
    }
    if !play.told {
        play.told = true;
        return tell(threads, play.stop);
    }
    false
}

/// What a trace lacks in which the server's answers were not those that the clients once got.
const ANSWERED_OTHERWISE: &str = "what a client would have sent after an answer that was another than in the run with live clients";

/// Whether the server was told to end, and nobody goes on.
pub fn was_told() -> bool {
    // SAFETY: callers have the turn.
    unsafe { clients() }
        .is_some_and(|clients| matches!(&clients.mode, Mode::Play(play) if play.told))
}

/// How a client that has several connections is called.
pub fn name_of(client: u32) -> (String, ObjectKind) {
    (format!("answers to client {}", client + 1), ObjectKind::State)
}
