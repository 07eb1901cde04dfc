//! A strict reader of the text of LLVM IR.
//!
//! Lines are read one by one. Everything that is not expected is a refusal: of the instruction where
//! that is enough, of the file otherwise. Attributes and flags are accepted by name: those that promise
//! something of a value are kept ([`Promises`], [`Manner`]), others are in lists of those that add no
//! behaviour. Metadata gives places, the types by which memory is accessed, and which loops end.

mod bodies;
mod constants;
mod declarations;
mod line;
mod metadata;
mod operations;

use std::collections::{HashMap, HashSet};

use super::declared::Declared;
use super::lex::{Token, words};
use super::{Module, Place, Refusal, Type};
use line::{identify, logical_lines};

/// Reads the IR of a source file.
pub fn read(source: &str, text: &str) -> Result<Module, Refusal> {
    let mut reader = Reader { source, ..Reader::default() };
    reader.module.files.push(source.into());
    let lines = logical_lines(text);
    reader.places(&lines);
    reader.promises(&lines);
    let declared = Declared::of(&lines);
    if let Some((name, line)) = declared.restricted() {
        let place = Place { line, ..Place::default() };
        let what = format!("the variable {name}: a restrict pointer that is not a parameter");
        return Err(reader.refuse(place, what));
    }
    if let Some((name, line)) = declared.wide_bit_field() {
        let place = Place { line, ..Place::default() };
        let what = format!("the bit-field {name}, which is wider than int");
        return Err(reader.refuse(place, what));
    }
    reader.types(&lines)?;
    reader.declarations(&lines)?;
    reader.bodies(&lines, &declared)?;
    for (global, line) in
        reader.module.globals.iter_mut().zip(lines.iter().filter(|line| is_variable(line)))
    {
        let variable = line.rsplit_once("!dbg !").map(|(_, rest)| rest);
        let number = variable.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        global.padding = number.and_then(|number| declared.padding(number));
    }
    reader.module.aliases.find_padding(&declared);
    reader.module.whole_members = declared.whole_members();
    identify(&mut reader.module, text);
    Ok(reader.module)
}

fn is_variable(line: &str) -> bool {
    line.starts_with('@') && !line.starts_with("@llvm.")
}

#[derive(Default)]
struct Reader<'a> {
    source: &'a str,
    module: Module,
    /// What the lines of named types say.
    type_lines: HashMap<String, Vec<Token>>,
    named_types: HashMap<String, Type>,
    globals: HashMap<String, u32>,
    functions: HashMap<String, u32>,
    /// Places by number of metadata.
    places: HashMap<String, Place>,
    /// What other metadata says, by number.
    metadata: HashMap<String, String>,
    /// Groups of attributes that promise that a function has no effect.
    no_effect: HashSet<String>,
}

impl<'a> Reader<'a> {
    fn refuse(&self, place: Place, what: impl Into<String>) -> Refusal {
        Refusal { place: self.module.show(place), what: what.into() }
    }

    fn file_refusal(&self, what: impl Into<String>) -> Refusal {
        self.refuse(Place::default(), what)
    }

    fn words(&self, line: &str) -> Result<Vec<Token>, Refusal> {
        words(line).ok_or_else(|| {
            self.file_refusal(format!("the IR has a line that cannot be read: {line}"))
        })
    }
}

/// The lowest bits.
pub(crate) fn mask(value: u128, bits: u32) -> u128 {
    match bits {
        128.. => value,
        bits => value & ((1 << bits) - 1),
    }
}

/// The bits as a signed number.
pub(crate) fn signed(value: u128, bits: u32) -> i128 {
    let unused = 128 - bits.min(128);
    ((value << unused) as i128) >> unused
}

/// The text behind a key, up to a comma or parenthesis.
pub(super) fn field<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let from = text.find(key)? + key.len();
    let rest = &text[from..];
    Some(&rest[..rest.find([',', ')']).unwrap_or(rest.len())])
}
