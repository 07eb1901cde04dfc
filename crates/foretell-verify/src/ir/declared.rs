//! What the source declares about variables and the IR does not say: qualifiers, padding and the widths
//! of bit-fields, taken from the debug information.

use std::collections::{BTreeSet, HashMap, HashSet};

use std::sync::Arc;

use super::read::field;
use super::types::Padding;

/// Bits of a type, by bytes.
struct Bits {
    /// They have a value.
    valued: Vec<u8>,
    /// They are stored with a bit-field.
    stored: Vec<u8>,
}

/// Debug information by number.
pub(super) struct Declared<'t> {
    entries: HashMap<&'t str, &'t str>,
}

/// What a variable is declared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Constness {
    /// Neither it nor a part of it is `const`.
    No,
    /// One `const` value.
    Scalar,
    /// It has parts, of which some or all are `const`.
    Parts,
}

impl<'t> Declared<'t> {
    pub(super) fn of(lines: &'t [String]) -> Self {
        let entries = lines.iter().filter_map(|line| {
            let (number, content) = line.strip_prefix('!')?.split_once(" = ")?;
            Some((number, content.strip_prefix("distinct ").unwrap_or(content)))
        });
        Self { entries: entries.collect() }
    }

    /// Name and line of a variable with a `restrict` pointer that is no parameter.
    pub(super) fn restricted(&self) -> Option<(&'t str, u32)> {
        self.entries.values().find_map(|content| {
            let local = content.starts_with("!DILocalVariable(");
            if !local && !content.starts_with("!DIGlobalVariable(") {
                return None;
            }
            let mut kind = field(content, "type: !")?;
            if local && field(content, " arg: ").is_some() {
                // that of a parameter itself is known as `noalias`
                while let Some(entry) = self.entries.get(kind)
                    && tagged(entry, &["restrict", "const", "volatile"])
                {
                    kind = field(entry, "baseType: !")?;
                }
            }
            let found = self.has_restrict(kind, &mut HashSet::new());
            let line = field(content, "line: ").and_then(|line| line.parse().ok()).unwrap_or(0);
            found.then(|| (field(content, "name: ").unwrap_or("?").trim_matches('"'), line))
        })
    }

    fn has_restrict(&self, kind: &'t str, seen: &mut HashSet<&'t str>) -> bool {
        let Some(entry) = self.entries.get(kind).filter(|_| seen.insert(kind)) else {
            return false;
        };
        if entry.starts_with("!DISubroutineType(") {
            return false;
        }
        tagged(entry, &["restrict"])
            || field(entry, "baseType: !").is_some_and(|base| self.has_restrict(base, seen))
            || self.members(entry).into_iter().any(|member| self.has_restrict(member, seen))
    }

    /// The members of a structure or union.
    fn members(&self, entry: &'t str) -> Vec<&'t str> {
        let list = field(entry, "elements: !").and_then(|list| self.entries.get(list));
        let list = list.map(|list| super::alias::parts(list)).unwrap_or_default();
        list.into_iter().filter_map(|member| member.strip_prefix('!')).collect()
    }

    /// Is the variable of that number `const`?
    pub(super) fn constness(&self, variable: &str) -> Constness {
        let kind = self.entries.get(variable).and_then(|entry| field(entry, "type: !"));
        kind.map_or(Constness::No, |kind| self.constness_of(kind, false))
    }

    /// What has no value in the variable of that number; none if all has.
    pub(super) fn padding(&self, variable: &str) -> Option<Arc<Padding>> {
        let mut entry = *self.entries.get(variable)?;
        if entry.starts_with("!DIGlobalVariableExpression(") {
            entry = self.entries.get(field(entry, "var: !")?)?;
        }
        self.padding_of(field(entry, "type: !")?)
    }

    fn padding_of(&self, kind: &'t str) -> Option<Arc<Padding>> {
        let mut inner = kind;
        while let Some(entry) = self.entries.get(inner)
            && number_of(entry, " size: ").is_none()
        {
            // of an array whose length only a run says, nothing is known
            inner = field(entry, "baseType: !").filter(|_| !tagged(entry, &["array"]))?;
        }
        let size = self.bits(kind)?.div_ceil(8);
        // a larger variable is refused for its size
        let size = usize::try_from(size).ok().filter(|size| *size <= 1 << 20)?;
        let mut bits = Bits { valued: vec![0; size], stored: vec![0; size] };
        self.cover(kind, 0, &mut bits, 0)?;
        let mut padding = Padding::default();
        for (at, (&valued, &stored)) in bits.valued.iter().zip(&bits.stored).enumerate() {
            match (valued, stored) {
                (255, _) => {}
                (0, 0) => padding.whole.push(at as u32),
                _ => padding.partial.push(at as u32),
            }
        }
        (!padding.whole.is_empty() || !padding.partial.is_empty()).then(|| Arc::new(padding))
    }

    /// What has no value in a structure of that name, whose members lie at these offsets.
    pub(super) fn padding_of_structure(&self, name: &str, offsets: &[u64]) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for (number, entry) in &self.entries {
            let own = field(entry, " name: ").map_or("", |name| name.trim_matches('"'));
            if !tagged(entry, &["structure"]) || own != name {
                continue;
            }
            let starts: Vec<u64> = self
                .members(entry)
                .into_iter()
                .filter_map(|member| self.entries.get(member))
                .filter(|member| !member.contains("DIFlagBitField"))
                .map(|member| number_of(member, " offset: ").unwrap_or(0) / 8)
                .collect();
            if starts.iter().all(|start| offsets.contains(start)) {
                let padding = self.padding_of(number);
                found.extend(padding.iter().flat_map(|padding| &padding.whole));
            }
        }
        found
    }

    /// A bit-field that is wider than `int`: its name and line. gcc computes with as many bits as it
    /// has, clang with those of its type.
    pub(super) fn wide_bit_field(&self) -> Option<(&'t str, u32)> {
        let wide = self.entries.values().find(|entry| {
            entry.contains("DIFlagBitField") && number_of(entry, " size: ").is_some_and(|n| n > 32)
        })?;
        let line = number_of(wide, " line: ").unwrap_or(0) as u32;
        Some((field(wide, " name: ").unwrap_or("?").trim_matches('"'), line))
    }

    /// Members of unions that are as large as their union, in every union of that name, line or typedef.
    pub(super) fn whole_members(&self) -> HashSet<(String, String)> {
        let (mut whole, mut narrow) = (HashSet::new(), HashSet::new());
        let called = |entry: &str| Some(field(entry, " name: ")?.trim_matches('"').to_owned());
        for entry in self.entries.values() {
            // `typedef union { ... } name`
            let is_typedef = entry.contains("DW_TAG_typedef");
            let base = field(entry, "baseType: !").filter(|_| is_typedef);
            let whole_type = base.and_then(|base| self.entries.get(base)).unwrap_or(entry);
            let (name, entry) = (called(entry), whole_type);
            if !tagged(entry, &["union"]) {
                continue;
            }
            let line = || format!("@{}", number_of(entry, " line: ").unwrap_or(0));
            let name = name.unwrap_or_else(line);
            for member in self.members(entry) {
                let Some(member) = self.entries.get(member) else { continue };
                let own = field(member, " name: ").map_or("", |name| name.trim_matches('"'));
                let is_whole = number_of(member, " size: ") == number_of(entry, " size: ")
                    && !member.contains("DIFlagBitField");
                let set = if is_whole { &mut whole } else { &mut narrow };
                set.insert((name.clone(), own.to_owned()));
            }
        }
        whole.retain(|member| !narrow.contains(member));
        whole
    }

    fn bits(&self, kind: &str) -> Option<u64> {
        let entry = self.entries.get(kind)?;
        number_of(entry, " size: ").or_else(|| self.bits(field(entry, "baseType: !")?))
    }

    /// Marks the bits that have a value; none if the type is not understood.
    fn cover(&self, kind: &'t str, start: u64, bits: &mut Bits, depth: usize) -> Option<()> {
        let entry = self.entries.get(kind).filter(|_| depth < 64)?;
        if tagged(entry, &["structure", "union"]) {
            for member in self.members(entry) {
                let entry = self.entries.get(member)?;
                let kind = field(entry, "baseType: !")?;
                let member = start + number_of(entry, " offset: ").unwrap_or(0);
                if entry.contains("DIFlagBitField") {
                    set(&mut bits.valued, member, number_of(entry, " size: ")?);
                    // it is read and written with all bits of where it is stored
                    let storage = field(entry, "extraData: i64 ")?.parse::<u64>().ok()?;
                    set(&mut bits.stored, start + storage, self.bits(kind)?);
                } else {
                    self.cover(kind, member, bits, depth + 1)?;
                }
            }
            return Some(());
        }
        if tagged(entry, &["array"]) {
            let element = field(entry, "baseType: !")?;
            let (all, one) = (number_of(entry, " size: ").unwrap_or(0), self.bits(element)?);
            for index in 0..all.checked_div(one)? {
                self.cover(element, start + index * one, bits, depth + 1)?;
            }
            return Some(());
        }
        match number_of(entry, " size: ") {
            Some(size) => set(&mut bits.valued, start, size),
            None => self.cover(field(entry, "baseType: !")?, start, bits, depth + 1)?,
        }
        Some(())
    }

    fn constness_of(&self, kind: &'t str, mut constant: bool) -> Constness {
        let mut kind = Some(kind);
        while let Some(entry) = kind.and_then(|kind| self.entries.get(kind)) {
            let whole = |constant| if constant { Constness::Parts } else { Constness::No };
            if tagged(entry, &["array"]) {
                let element = field(entry, "baseType: !");
                let element = element.map_or(Constness::No, |kind| self.constness_of(kind, false));
                return whole(constant || element != Constness::No);
            }
            if tagged(entry, &["structure", "union"]) {
                let is_constant = |member: &'t str| {
                    let kind = self.entries.get(member).and_then(|m| field(m, "baseType: !"));
                    kind.is_some_and(|kind| self.constness_of(kind, false) != Constness::No)
                };
                return whole(constant || self.members(entry).into_iter().any(is_constant));
            }
            if !tagged(entry, &["const", "volatile", "atomic", "restrict"])
                && !entry.contains("DW_TAG_typedef")
            {
                break;
            }
            constant |= tagged(entry, &["const"]);
            kind = field(entry, "baseType: !");
        }
        if constant { Constness::Scalar } else { Constness::No }
    }
}

/// Has the entry one of the tags `DW_TAG_NAME_type`?
fn tagged(entry: &str, names: &[&str]) -> bool {
    let tag = field(entry, "tag: DW_TAG_").and_then(|tag| tag.strip_suffix("_type"));
    tag.is_some_and(|tag| names.contains(&tag))
}

fn number_of(entry: &str, key: &str) -> Option<u64> {
    field(entry, key)?.parse().ok()
}

fn set(bytes: &mut [u8], start: u64, length: u64) {
    for bit in start..start + length {
        if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
            *byte |= 1 << (bit % 8);
        }
    }
}
