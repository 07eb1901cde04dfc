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
//! Each table is a command, each key one of its long options. What is typed wins over the profile,
//! the profile over the rest of the file, the file over the defaults. The file is looked for in the
//! working folder and those above it.

use std::any::TypeId;
use std::ffi::OsString;
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
const NOT_HERE: [&str; 5] = ["help", "version", "format", "config", "profile"];

/// What is wrong with a TOML file, as compilers say it: `file:line:column: message`.
pub fn malformed(path: &Path, text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let message = error.message().replace('\n', ", ");
    format!("{}:{line}:{column}: {message}", path.display())
}

/// A file and the profile chosen in it.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Where it was found.
    pub path: Option<PathBuf>,
    table: Table,
    profile: Option<String>,
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
    /// Reads `given`, or the nearest `foretell.toml` from `folder` upwards, if there is one.
    pub fn find(
        given: Option<&Path>,
        folder: &Path,
        profile: Option<&str>,
        commands: &Command,
    ) -> Result<Self, String> {
        let nearest = || folder.ancestors().map(|at| at.join(FILE)).find(|path| path.is_file());
        let Some(path) = given.map(Path::to_owned).or_else(nearest) else {
            return match profile {
                Some(profile) => {
                    Err(format!("there is no {FILE} that could have a profile `{profile}`"))
                }
                None => Ok(Self::default()),
            };
        };
        let failed = |error: &dyn std::fmt::Display| {
            format!("{}: {}", path.display(), error.to_string().trim_end())
        };
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
        let table: Table = text.parse().map_err(|error| malformed(&path, &text, &error))?;
        let config = Self { path: Some(path.clone()), table, profile: profile.map(str::to_owned) };
        config.check(commands).map_err(|error| failed(&error))?;
        Ok(config)
    }

    /// Every table is a command and every key one of its options, in all profiles.
    fn check(&self, commands: &Command) -> Result<(), String> {
        let mut profiles = Vec::new();
        for (name, value) in &self.table {
            if name == "profile" {
                let all = value.as_table().ok_or("`profile` is not a table")?;
                for (profile, value) in all {
                    let tables = value.as_table();
                    let tables = tables.ok_or(format!("profile `{profile}` is not a table"))?;
                    profiles.push(profile.as_str());
                    for (name, value) in tables {
                        check_command(commands, &format!("profile.{profile}.{name}"), name, value)?;
                    }
                }
            } else {
                check_command(commands, name, name, value)?;
            }
        }
        match &self.profile {
            Some(profile) if !profiles.contains(&profile.as_str()) => Err(format!(
                "there is no profile `{profile}`; there are: {}",
                if profiles.is_empty() { "none".to_owned() } else { profiles.join(", ") }
            )),
            _ => Ok(()),
        }
    }

    /// The value of an option in the file, and the table it stands in.
    fn value(&self, command: &str, key: &str) -> Option<(&Value, String)> {
        if let Some(profile) = &self.profile {
            let table = self.table.get("profile").and_then(|all| all.get(profile)?.get(command));
            if let Some(value) = table.and_then(|table| table.get(key)) {
                return Some((value, format!("profile.{profile}.{command}")));
            }
        }
        let value = self.table.get(command)?.get(key)?;
        Some((value, command.to_owned()))
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
            let Some((value, _)) = self.value(name, key) else { continue };
            words.extend(self.words(argument, key, value).into_iter().map(OsString::from));
        }
        words
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
        match self.path.as_ref().and_then(|path| path.parent()) {
            Some(folder) if is_path => folder.join(text).display().to_string(),
            _ => text,
        }
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
                    Some((value, table)) => {
                        let file = self.path.as_ref().map(|path| path.display().to_string());
                        let text = match value {
                            Value::Array(items) => {
                                let items = items.iter().map(|item| self.text(argument, item));
                                items.collect::<Vec<_>>().join(",")
                            }
                            value => self.text(argument, value),
                        };
                        (Some(text), format!("{} [{table}]", file.unwrap_or_default()))
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
