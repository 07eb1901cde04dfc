//! What the source declares of variables and the IR does not say: qualifiers, by the debug information.

use std::collections::{HashMap, HashSet};

use super::read::field;

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
