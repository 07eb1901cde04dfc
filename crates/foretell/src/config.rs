//! `foretell.toml`: options for every run, with profiles.
//!
//! ```toml
//! [predict]
//! property = ["atomicity", "assertion"]
//! suppressions = ["known.toml"]          # paths are relative to the file
//!
//! [profile.ci.predict]                   # used with `--profile ci`
//! budget = 1000000
//! ```
//!
//! Each table is a command, each key one of its long options. There are two files:
//!
//! - the **project's**: the nearest `foretell.toml` from the working folder upwards, or the one that
//!   `--config` names. Whoever enters a folder has not read what is in it, so this file may only set
//!   options that neither run a command nor write a file ([`HARMLESS`]), and it must belong to the
//!   user or to root;
//! - the **user's own**: `$XDG_CONFIG_HOME/foretell/config.toml` (or `~/.config/...`), which may set
//!   everything.
//!
//! What is typed wins over the project's file, that over the user's, that over the defaults; in each
//! file the profile wins over the rest.

use std::any::TypeId;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::{Table, Value};

/// The name of the file.
pub const FILE: &str = "foretell.toml";

/// Commands whose options can stand in the file.
const COMMANDS: [&str; 8] =
    ["record", "predict", "test", "replay", "explain", "fix", "verify", "report"];

/// Options that make no sense for every run.
const NOT_HERE: [&str; 7] =
    ["help", "version", "format", "config", "no-config", "profile", "max-memory"];

/// What is wrong with a TOML file, as compilers say it: `file:line:column: message`.
pub fn malformed(path: &Path, text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let message = error.message().replace('\n', ", ");
    format!("{}:{line}:{column}: {message}", path.display())
}

/// Options that a project's file may set: they neither run a command nor write a file. An option
/// that is new is not among them until somebody has thought about it.
const HARMLESS: [&str; 52] = [
    "abstraction",
    "after",
    "binary",
    "budget",
    "check",
    "compact",
    "concrete",
    "context-switches",
    "diff",
    "divergences",
    "engine",
    "exact",
    "filter",
    "finding",
    "from",
    "goal",
    "input",
    "is-test",
    "iterations",
    "jobs",
    "known-good",
    "list",
    "max-distance",
    "model",
    "no-fix",
    "no-loops",
    "no-overflow",
    "no-reduction",
    "on-recorder-death",
    "partition",
    "paths",
    "property",
    "questions",
    "ready",
    "refine",
    "regions",
    "replay",
    "run-limit",
    "runs",
    "schedule",
    "size-limit",
    "solver",
    "source",
    "states",
    "stop",
    "suppressions",
    "symbolic",
    "sync-only",
    "time-limit",
    "traffic",
    "whole",
    "window",
];

/// The files and the profile chosen in them.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The project's file first.
    layers: Vec<Layer>,
    profile: Option<String>,
}

/// One file.
#[derive(Clone, Debug)]
struct Layer {
    path: PathBuf,
    table: Table,
    /// It is the user's own and may set everything.
    own: bool,
}

/// One option and where its value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The command.
    pub command: String,
    /// The long option.
    pub key: String,
    /// Its value; none if it has none.
    pub value: Option<String>,
    /// `default`, or the file and the table.
    pub source: String,
}

impl Config {
    /// Reads the project's file (`given`, or the nearest `foretell.toml` from `folder` upwards) and
    /// the user's own, as far as they are there.
    pub fn find(
        given: Option<&Path>,
        folder: &Path,
        own: Option<&Path>,
        profile: Option<&str>,
        commands: &Command,
    ) -> Result<Self, String> {
        let nearest = || {
            let found = folder.ancestors().map(|at| at.join(FILE));
            found.into_iter().find(|path| path.symlink_metadata().is_ok())
        };
        let project = given.map(Path::to_owned).or_else(nearest);
        let own = own.filter(|path| path.exists()).map(Path::to_owned);
        let same = |one: &Path, other: &Path| {
            one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
        };
        let project = project.filter(|path| own.as_ref().is_none_or(|own| !same(path, own)));
        let mut layers = Vec::new();
        for (path, own) in [(project, false), (own, true)] {
            if let Some(path) = path {
                layers.push(Layer::read(path, own, commands)?);
            }
        }
        let config = Self { layers, profile: profile.map(str::to_owned) };
        config.check_profile()?;
        Ok(config)
    }

    fn check_profile(&self) -> Result<(), String> {
        let Some(profile) = &self.profile else { return Ok(()) };
        if self.layers.is_empty() {
            return Err(format!("there is no {FILE} that could have a profile `{profile}`"));
        }
        let tables = self.layers.iter().filter_map(|layer| layer.table.get("profile")?.as_table());
        let known: Vec<&str> = tables.flat_map(|table| table.keys()).map(String::as_str).collect();
        if known.contains(&profile.as_str()) {
            return Ok(());
        }
        let path = self.layers.first().map(|layer| layer.path.display().to_string());
        Err(format!(
            "{}: there is no profile `{profile}`; there are: {}",
            path.unwrap_or_default(),
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        ))
    }

    /// The files that are used.
    pub fn files(&self) -> Vec<String> {
        self.layers.iter().map(|layer| layer.path.display().to_string()).collect()
    }

    /// The project's file.
    pub fn project(&self) -> Option<&Path> {
        self.layers.iter().find(|layer| !layer.own).map(|layer| layer.path.as_path())
    }

    /// The value of an option, the file it stands in, and the table.
    fn value(&self, command: &str, key: &str) -> Option<(&Value, &Layer, String)> {
        self.layers.iter().find_map(|layer| {
            if let Some(profile) = &self.profile {
                let profiles = layer.table.get("profile");
                let table = profiles.and_then(|all| all.get(profile)?.get(command));
                if let Some(value) = table.and_then(|table| table.get(key)) {
                    return Some((value, layer, format!("profile.{profile}.{command}")));
                }
            }
            let value = layer.table.get(command)?.get(key)?;
            Some((value, layer, command.to_owned()))
        })
    }

    /// The words to add to a command line: an option of the file that was not typed.
    pub fn additions(&self, commands: &Command, name: &str, typed: &ArgMatches) -> Vec<OsString> {
        let Some(command) = configurable(commands, name) else { return Vec::new() };
        let mut words = Vec::new();
        for argument in options(command) {
            let key = argument.get_long().unwrap_or_default();
            let by_hand = typed.value_source(argument.get_id().as_str());
            let conflicts = command.get_arg_conflicts_with(argument);
            let excluded = conflicts.iter().any(|other| {
                typed.value_source(other.get_id().as_str()) == Some(ValueSource::CommandLine)
            });
            if by_hand == Some(ValueSource::CommandLine) || excluded {
                continue;
            }
            let Some((value, layer, _)) = self.value(name, key) else { continue };
            words.extend(layer.words(argument, key, value).into_iter().map(OsString::from));
        }
        words
    }

    /// Every option of every command, with its value and where that comes from.
    pub fn settings(&self, commands: &Command) -> Vec<Setting> {
        let mut settings = Vec::new();
        for name in COMMANDS {
            let Some(command) = configurable(commands, name) else { continue };
            for argument in options(command) {
                let key = argument.get_long().unwrap_or_default();
                let defaults = argument.get_default_values();
                let (value, source) = match self.value(name, key) {
                    Some((value, layer, table)) => {
                        let text = match value {
                            Value::Array(items) => {
                                let items = items.iter().map(|item| layer.text(argument, item));
                                items.collect::<Vec<_>>().join(",")
                            }
                            value => layer.text(argument, value),
                        };
                        (Some(text), format!("{} [{table}]", layer.path.display()))
                    }
                    None => {
                        let all: Vec<String> =
                            defaults.iter().map(|value| value.to_string_lossy().into()).collect();
                        let flag = matches!(argument.get_action(), ArgAction::SetTrue);
                        let value = match (all.is_empty(), flag) {
                            (_, true) => Some("false".to_owned()),
                            (true, false) => None,
                            (false, false) => Some(all.join(",")),
                        };
                        (value, "default".to_owned())
                    }
                };
                settings.push(Setting { command: name.into(), key: key.into(), value, source });
            }
        }
        settings
    }
}

impl Layer {
    fn read(path: PathBuf, own: bool, commands: &Command) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| {
            format!("{}: {}", path.display(), error.to_string().trim_end())
        };
        let text = read_trusted(&path).map_err(|error| failed(&error))?;
        let table: Table = text.parse().map_err(|error| malformed(&path, &text, &error))?;
        let layer = Self { path: path.clone(), table, own };
        layer.check(commands).map_err(|error| failed(&error))?;
        Ok(layer)
    }

    /// Every table is a command and every key one of its options that this file may set, in all
    /// profiles.
    fn check(&self, commands: &Command) -> Result<(), String> {
        for (name, value) in &self.table {
            if name == "profile" {
                let all = value.as_table().ok_or("`profile` is not a table")?;
                for (profile, value) in all {
                    let tables = value.as_table();
                    let tables = tables.ok_or(format!("profile `{profile}` is not a table"))?;
                    for (name, value) in tables {
                        let place = format!("profile.{profile}.{name}");
                        self.check_command(commands, &place, name, value)?;
                    }
                }
            } else {
                self.check_command(commands, name, name, value)?;
            }
        }
        Ok(())
    }

    fn check_command(
        &self,
        commands: &Command,
        place: &str,
        name: &str,
        value: &Value,
    ) -> Result<(), String> {
        check_command(commands, place, name, value)?;
        let keys = value.as_table().into_iter().flat_map(|table| table.keys());
        match keys.into_iter().find(|key| !self.own && !HARMLESS.contains(&key.as_str())) {
            Some(key) => Err(format!(
                "[{place}] {key}: it runs a command or writes files, so that a project's file may \
                 not set it; give it on the command line or in your own configuration, \
                 ~/.config/foretell/config.toml"
            )),
            None => Ok(()),
        }
    }

    fn words(&self, argument: &Arg, key: &str, value: &Value) -> Vec<String> {
        match value {
            Value::Boolean(true) => vec![format!("--{key}")],
            Value::Boolean(false) => Vec::new(),
            Value::Array(items) => {
                items.iter().map(|item| format!("--{key}={}", self.text(argument, item))).collect()
            }
            value => vec![format!("--{key}={}", self.text(argument, value))],
        }
    }

    /// A value as it would be typed; paths are relative to the file.
    fn text(&self, argument: &Arg, value: &Value) -> String {
        let text = plain(value);
        let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        match self.path.parent() {
            Some(folder) if is_path => folder.join(text).display().to_string(),
            _ => text,
        }
    }
}

/// Where the user's own configuration is, if anywhere.
pub fn own_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("foretell/config.toml"))
}

/// Reads a file that belongs to the user or to root and that not everybody can write to. The same
/// goes for a link that leads to it.
fn read_trusted(path: &Path) -> Result<String, String> {
    let link = path.symlink_metadata().map_err(|error| error.to_string())?;
    // A pipe would make us wait for somebody who writes to it.
    let mut file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| error.to_string())?;
    let there = file.metadata().map_err(|error| error.to_string())?;
    if !there.is_file() {
        return Err("not a regular file".into());
    }
    // SAFETY: always allowed.
    let us = unsafe { libc::geteuid() };
    let help = "remove it, or use `--no-config`";
    for owner in [link.uid(), there.uid()] {
        if owner != us && owner != 0 {
            return Err(format!("it belongs to another user (number {owner}): refused; {help}"));
        }
    }
    if there.mode() & 0o002 != 0 {
        return Err(format!("everybody can write to it: refused; `chmod o-w` it, or {help}"));
    }
    if there.len() > LARGEST {
        return Err("larger than 1 MiB: not a configuration".into());
    }
    let mut text = String::new();
    file.by_ref().take(LARGEST).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// A configuration is much smaller.
const LARGEST: u64 = 1 << 20;

/// Checks the text of a project's configuration, as a run would.
pub fn check_text(text: &str, commands: &Command) -> Result<(), String> {
    let path = PathBuf::from(FILE);
    let table: Table = text.parse().map_err(|error| malformed(&path, text, &error))?;
    let layer = Layer { path, table, own: false };
    layer.check(commands)?;
    let config = Config { layers: vec![layer], profile: None };
    config.settings(commands);
    Ok(())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        // [`Config::check`] lets nothing else pass.
        _ => String::new(),
    }
}

fn configurable<'c>(commands: &'c Command, name: &str) -> Option<&'c Command> {
    if COMMANDS.contains(&name) { commands.find_subcommand(name) } else { None }
}

fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|argument| argument.get_long().is_some_and(|long| !NOT_HERE.contains(&long)))
}

fn check_command(commands: &Command, place: &str, name: &str, value: &Value) -> Result<(), String> {
    let command = configurable(commands, name)
        .ok_or(format!("[{place}]: no such command; there are {}", COMMANDS.join(", ")))?;
    let table = value.as_table().ok_or(format!("`{place}` is not a table"))?;
    for (key, value) in table {
        let known: Vec<&str> = options(command).filter_map(Arg::get_long).collect();
        let argument = options(command)
            .find(|argument| argument.get_long() == Some(key))
            .ok_or(format!("[{place}] {key}: no such option; there are {}", known.join(", ")))?;
        let fits = match (argument.get_action(), value) {
            (ArgAction::SetTrue, value) => value.is_bool(),
            (ArgAction::Append, Value::Array(items)) => {
                items.iter().all(|item| item.is_str() || item.is_integer())
            }
            (_, value) => value.is_str() || value.is_integer(),
        };
        if !fits {
            let wanted = match argument.get_action() {
                ArgAction::SetTrue => "true or false",
                ArgAction::Append => "a text, a number, or a list of them",
                _ => "a text or a number",
            };
            return Err(format!("[{place}] {key}: expected {wanted}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// Options that run a command or write a file. With [`HARMLESS`] these are all options: whoever
    /// adds one has to think about it.
    const DANGEROUS: [&str; 22] = [
        "apply",
        "client",
        "dump-smt2",
        "gdb",
        "html",
        "json",
        "junit",
        "markdown",
        "output",
        "pddl",
        "perfetto",
        "planner-cmd",
        "proof",
        "resume",
        "sarif",
        "schedules",
        "solver-cmd",
        "svg",
        "text",
        "witness",
        "write-baseline",
        "writes",
    ];

    #[test]
    fn every_option_is_harmless_or_dangerous() {
        let commands = Cli::command();
        let mut all: Vec<&str> = COMMANDS
            .iter()
            .filter_map(|name| configurable(&commands, name))
            .flat_map(|command| options(command).filter_map(Arg::get_long))
            .collect();
        all.sort_unstable();
        all.dedup();
        let mut known: Vec<&str> = HARMLESS.into_iter().chain(DANGEROUS).collect();
        known.sort_unstable();
        assert_eq!(all, known);
    }
}
