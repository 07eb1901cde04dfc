//! Where the kernel puts a program's arguments and environment: the same place in every run.
//!
//! The kernel copies three things to the top of the new stack, the highest first: the path of the
//! executable, the environment, the arguments; the program's own stack begins below them. So the
//! length of a variable moves every address on the stack, and a run that is started by another shell,
//! or whose schedule lies in another file, would not be the same run. Variables of no meaning fill the
//! block up to a round size; the runtime removes them before the program can see them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use foretell_wire::environment;

use crate::limits::LARGEST_ENVIRONMENT;

/// The block has a multiple of so many bytes, and at least [`LEAST_BYTES`].
const BYTES: usize = 16 << 10;
const LEAST_BYTES: usize = 32 << 10;
/// The environment has a multiple of so many variables, and at least [`LEAST_VARIABLES`].
const VARIABLES: usize = 64;
const LEAST_VARIABLES: usize = 128;

/// Fills up the environment of a command that runs the file `executable` under the name `called`.
pub fn fix(command: &mut Command, called: &Path, executable: &Path) {
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => variables.insert(name.into(), value.into()),
            None => variables.remove(name),
        };
    }
    let arguments = command.get_args().map(OsStr::len);
    let paths = [called, executable].map(|path| path.as_os_str().len());
    let variable = |(name, value): (&OsString, &OsString)| name.len() + 1 + value.len();
    // Each string has a NUL at its end.
    let strings = arguments.chain(paths).chain(variables.iter().map(variable));
    let bytes: usize = strings.map(|length| length + 1).sum();
    for (name, value) in filling(bytes, variables.len()) {
        command.env(name, value);
    }
}

/// Variables that fill up a block with so many bytes and variables.
fn filling(bytes: usize, variables: usize) -> Vec<(String, String)> {
    if bytes > LARGEST_ENVIRONMENT {
        return Vec::new();
    }
    // One at least, which takes the bytes that are missing.
    let count = (variables + 1).next_multiple_of(VARIABLES).max(LEAST_VARIABLES) - variables;
    let names = (0..count).map(|number| format!("{}{number:03}", environment::FILLING));
    let mut filling: Vec<(String, String)> = names.map(|name| (name, String::new())).collect();
    let bytes = bytes + filling.iter().map(|(name, _)| name.len() + 2).sum::<usize>();
    let missing = bytes.next_multiple_of(BYTES).max(LEAST_BYTES) - bytes;
    if let Some((_, value)) = filling.last_mut() {
        *value = ".".repeat(missing);
    }
    filling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_different_lengths_become_the_same() {
        let shape = |bytes: usize, variables: usize| {
            let filling = filling(bytes, variables);
            let more: usize =
                filling.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
            (bytes + more, variables + filling.len())
        };
        for bytes in 0..3000 {
            assert_eq!(shape(bytes, 20), (LEAST_BYTES, LEAST_VARIABLES), "{bytes}");
        }
        for variables in 0..128 {
            assert_eq!(shape(5000, variables), (LEAST_BYTES, LEAST_VARIABLES), "{variables}");
        }
        assert_eq!(shape(5000, 128), (LEAST_BYTES, 192));
        assert_eq!(shape(40_000, 20).0, 48 << 10);
    }

    #[test]
    fn a_block_that_is_too_large_is_left_as_it_is() {
        assert_eq!(filling(LARGEST_ENVIRONMENT + 1, 3), []);
    }

    #[test]
    fn longer_variables_and_paths_are_made_up_for() {
        let of = |command: &Command| {
            command
                .get_envs()
                .filter_map(|(name, value)| Some(name.len() + value?.len() + 2))
                .sum::<usize>()
        };
        let mut plain = Command::new("x");
        plain.env("NAME", "");
        let mut long = Command::new("x");
        long.env("NAME", "a long value");
        fix(&mut plain, Path::new("x"), Path::new("/x"));
        fix(&mut long, Path::new("x"), Path::new("/folder/x"));
        assert_eq!(of(&plain), of(&long) + "/folder".len());
    }
}
