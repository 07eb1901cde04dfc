//! What the clients of a server do: as it was seen in a run with live clients, and as a script that the
//! runtime plays to the server in every later run.
//!
//! The runtime writes down what it sees of the clients ([`Seen`], a line each): connections, what came over
//! them, and how much the server had sent by then. [`script`] makes of it what each client does and *after
//! what*: a client may have sent something because of everything that it had received, on all its
//! connections, so none of that may be missing when it is sent again. Nothing else is kept: what one client
//! sends does not wait for another one.

use std::collections::BTreeMap;
use std::fmt;

/// The first word of a script.
const TITLE: &str = "foretell-traffic 1";

/// Something that a server's runtime saw. Connections are numbered as they were accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The server's process.
    Process(u32),
    /// It accepts connections there.
    Listening(String),
    /// A connection waits to be accepted there.
    Waiting(String),
    /// A connection was accepted; the process group of whoever asked for it, 0 if that is not known.
    Accepted {
        /// Its number.
        connection: u32,
        /// Where.
        listener: String,
        /// Whose it is.
        group: u32,
    },
    /// Something that was not read yet has come.
    Arrived(u32),
    /// The server read this.
    Read(u32, Vec<u8>),
    /// The client sends no more.
    Ended(u32),
    /// The server sent so many bytes; its closing counts as one.
    Sent(u32, u64),
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Seen::Process(number) => write!(f, "process {number}"),
            Seen::Listening(name) => write!(f, "listening {}", Hex(name.as_bytes())),
            Seen::Waiting(name) => write!(f, "waiting {}", Hex(name.as_bytes())),
            Seen::Accepted { connection, listener, group } => {
                write!(f, "accepted {connection} {} {group}", Hex(listener.as_bytes()))
            }
            Seen::Arrived(connection) => write!(f, "arrived {connection}"),
            Seen::Read(connection, bytes) => write!(f, "read {connection} {}", Hex(bytes)),
            Seen::Ended(connection) => write!(f, "ended {connection}"),
            Seen::Sent(connection, amount) => write!(f, "sent {connection} {amount}"),
        }
    }
}

impl Seen {
    /// Reads a line.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = Words(line.split(' '));
        let seen = match words.0.next()? {
            "process" => Seen::Process(words.number()?),
            "listening" => Seen::Listening(words.name()?),
            "waiting" => Seen::Waiting(words.name()?),
            "accepted" => Seen::Accepted {
                connection: words.number()?,
                listener: words.name()?,
                group: words.number()?,
            },
            "arrived" => Seen::Arrived(words.number()?),
            "read" => Seen::Read(words.number()?, words.bytes()?),
            "ended" => Seen::Ended(words.number()?),
            "sent" => Seen::Sent(words.number()?, words.number()?),
            _ => return None,
        };
        words.0.next().is_none().then_some(seen)
    }
}

/// What all clients do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The signal that ends the server when they are done.
    pub stop: i32,
    /// In the order in which it was seen.
    pub steps: Vec<Step>,
}

/// Something that a client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which one.
    pub client: u32,
    /// On which connection.
    pub connection: u32,
    /// What it does.
    pub act: Act,
    /// It does so when the server has sent so many bytes on these connections.
    pub after: Vec<(u32, u64)>,
}

/// What a client does on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Asks for it, there.
    Connect(String),
    /// Sends this.
    Send(Vec<u8>),
    /// Sends no more.
    End,
}

/// The script of what was seen. `groups` are the process groups of the clients; all others together count
/// as one more.
pub fn script(seen: &[Seen], groups: &[u32], stop: i32) -> Script {
    let mut script = Script { stop, steps: Vec::new() };
    let mut owner: BTreeMap<u32, u32> = BTreeMap::new();
    let mut sent: BTreeMap<u32, u64> = BTreeMap::new();
    // What had been sent when something came that was not taken yet.
    let mut waiting: BTreeMap<&str, BTreeMap<u32, u64>> = BTreeMap::new();
    let mut arrived: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
    for one in seen {
        let (connection, act, then) = match one {
            Seen::Process(_) | Seen::Listening(_) => continue,
            Seen::Waiting(name) => {
                waiting.entry(name).or_insert_with(|| sent.clone());
                continue;
            }
            Seen::Arrived(connection) => {
                arrived.entry(*connection).or_insert_with(|| sent.clone());
                continue;
            }
            Seen::Sent(connection, amount) => {
                let total = sent.entry(*connection).or_default();
                *total = total.saturating_add(*amount);
                continue;
            }
            Seen::Accepted { connection, listener, group } => {
                let client = groups.iter().position(|known| known == group);
                owner.insert(*connection, client.unwrap_or(groups.len()) as u32);
                (*connection, Act::Connect(listener.clone()), waiting.remove(listener.as_str()))
            }
            Seen::Read(connection, bytes) => {
                (*connection, Act::Send(bytes.clone()), arrived.remove(connection))
            }
            Seen::Ended(connection) => (*connection, Act::End, arrived.remove(connection)),
        };
        let Some(&client) = owner.get(&connection) else { continue };
        let after = then.as_ref().unwrap_or(&sent).iter();
        let own = |&(other, _): &(&u32, &u64)| owner.get(other) == Some(&client);
        let after = after.filter(own).map(|(&other, &amount)| (other, amount)).collect();
        script.steps.push(Step { client, connection, act, after });
    }
    script
}

impl Script {
    /// Reads what [`Script`] prints. The error is the number of the offending line, from 1.
    pub fn parse(text: &str) -> Result<Self, usize> {
        let mut lines = text.lines();
        let first = lines.next().and_then(|line| line.strip_prefix(TITLE)?.strip_prefix(" stop "));
        let stop =
            first.and_then(|number| number.parse().ok()).filter(|stop| (1..=64).contains(stop));
        let mut script = Script { stop: stop.ok_or(1usize)?, steps: Vec::new() };
        for (number, line) in lines.enumerate() {
            script.steps.push(Step::parse(line).ok_or(number + 2)?);
        }
        Ok(script)
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.act, Act::Connect(_))).count()
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TITLE} stop {}", self.stop)?;
        for Step { client, connection, act, after } in &self.steps {
            match act {
                Act::Connect(name) => {
                    write!(f, "connect {client} {connection} {}", Hex(name.as_bytes()))?;
                }
                Act::Send(bytes) => write!(f, "send {client} {connection} {}", Hex(bytes))?,
                Act::End => write!(f, "end {client} {connection}")?,
            }
            for (other, amount) in after {
                write!(f, " {other}:{amount}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Step {
    fn parse(line: &str) -> Option<Self> {
        let mut words = Words(line.split(' '));
        let what = words.0.next()?;
        let (client, connection) = (words.number()?, words.number()?);
        let act = match what {
            "connect" => Act::Connect(words.name()?),
            "send" => Act::Send(words.bytes()?),
            "end" => Act::End,
            _ => return None,
        };
        let mut after = Vec::new();
        for word in words.0 {
            let (other, amount) = word.split_once(':')?;
            after.push((other.parse().ok()?, amount.parse().ok()?));
        }
        Some(Step { client, connection, act, after })
    }
}

/// Bytes as a word: two digits each, after an `x`.
struct Hex<'b>(&'b [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

struct Words<'t>(std::str::Split<'t, char>);

impl Words<'_> {
    fn number<N: std::str::FromStr>(&mut self) -> Option<N> {
        self.0.next()?.parse().ok()
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let digits = self.0.next()?.strip_prefix('x')?.as_bytes();
        let pair = |pair: &[u8]| {
            let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
            u8::from_str_radix(text, 16).ok()
        };
        digits.chunks(2).map(pair).collect()
    }

    fn name(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(connection: u32, group: u32) -> Seen {
        Seen::Accepted { connection, listener: "port 7000".into(), group }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all = [
            Seen::Process(12),
            Seen::Listening("a b\n".into()),
            Seen::Waiting("port 7000".into()),
            accepted(3, 77),
            Seen::Arrived(3),
            Seen::Read(3, b"get x\r\n\0".to_vec()),
            Seen::Ended(3),
            Seen::Sent(3, 9),
        ];
        for seen in &all {
            assert_eq!(Seen::parse(&seen.to_string()).as_ref(), Some(seen), "{seen}");
        }
        let script = script(&all, &[77], 15);
        assert_eq!(Script::parse(&script.to_string()), Ok(script));
        assert_eq!(Script::parse("foretell-traffic 1 stop 15\nend 1\n"), Err(2));
        assert_eq!(Script::parse("foretell-traffic 1 stop 99\n"), Err(1));
    }

    #[test]
    fn a_client_sends_after_what_it_had_received_and_not_after_what_others_received() {
        let seen = [
            accepted(0, 10),
            accepted(1, 20),
            Seen::Read(0, b"a".to_vec()),
            Seen::Sent(0, 5),
            Seen::Read(1, b"b".to_vec()),
            Seen::Sent(1, 7),
            Seen::Read(0, b"c".to_vec()),
        ];
        let after = |script: &Script, at: usize| script.steps[at].after.clone();
        let script = script(&seen, &[10, 20], 15);
        assert_eq!((after(&script, 3), after(&script, 4)), (vec![], vec![(0, 5)]));
    }

    #[test]
    fn connections_of_one_client_wait_for_each_other_unless_it_had_sent_before() {
        let request = Seen::Read(1, b"b".to_vec());
        let mut seen = vec![
            accepted(0, 10),
            accepted(1, 10),
            Seen::Read(0, b"a".to_vec()),
            Seen::Sent(0, 5),
            request,
        ];
        assert_eq!(script(&seen, &[10], 15).steps[3].after, vec![(0, 5)]);
        seen.insert(3, Seen::Arrived(1));
        assert_eq!(script(&seen, &[10], 15).steps[3].after, vec![]);
    }
}
