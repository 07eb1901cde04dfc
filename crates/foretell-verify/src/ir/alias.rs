//! Which accesses may be of the same memory, by C's rule of effective types (C17 6.5, 6 and 7).
//!
//! clang records at each access the type through which it is made (`!tbaa`), for a member also the
//! structure that it is part of. Two accesses of the same bytes, one of them a write, are defined only
//! if these types may name the same object: otherwise an optimiser takes the accesses for independent.
//! Types that may name anything (characters, members of unions) have no tag here.

use std::collections::{BTreeSet, HashMap};

use super::declared::Declared;

/// The number of a tag.
pub type TagId = u32;

/// By which type an access is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tag {
    /// The structure, or the type itself.
    base: u32,
    /// The type of the value.
    access: u32,
    /// Where in the structure.
    offset: u64,
}

/// All tags of a module.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    /// For each type: its members by offset; a type without members has the more general one.
    members: Vec<Vec<(u64, u32)>>,
    /// The type of characters, which may name anything.
    anything: Option<u32>,
    types: HashMap<String, u32>,
    /// The name of each type.
    names: Vec<String>,
    /// Bytes of each type that have no value.
    padding: Vec<BTreeSet<u32>>,
    tags: Vec<Tag>,
    numbers: HashMap<String, Option<TagId>>,
}

/// The parts of `!{!"int", !4, i64 0}`.
pub(super) fn parts(content: &str) -> Vec<&str> {
    let inner = content.strip_prefix("!{").and_then(|rest| rest.strip_suffix('}'));
    inner.map(|inner| inner.split(", ").collect()).unwrap_or_default()
}

pub(super) fn number(part: &str) -> Option<u64> {
    part.strip_prefix("i64 ")?.parse().ok()
}

impl Aliases {
    /// The tag of that number of metadata; none if it may name anything. What is not understood is an
    /// error.
    pub(super) fn tag(
        &mut self,
        metadata: &HashMap<String, String>,
        name: &str,
    ) -> Result<Option<TagId>, String> {
        if let Some(&known) = self.numbers.get(name) {
            return Ok(known);
        }
        let odd = || format!("the type of an access, !{name}");
        let content = metadata.get(name).ok_or_else(odd)?.clone();
        let [base, access, offset, ..] = parts(&content)[..] else { return Err(odd()) };
        let tag = Tag {
            base: self.node(metadata, base).ok_or_else(odd)?,
            access: self.node(metadata, access).ok_or_else(odd)?,
            offset: number(offset).ok_or_else(odd)?,
        };
        let id = (Some(tag.access) != self.anything).then(|| {
            let known = self.tags.iter().position(|other| *other == tag);
            known.unwrap_or_else(|| {
                self.tags.push(tag);
                self.tags.len() - 1
            }) as TagId
        });
        self.numbers.insert(name.to_owned(), id);
        Ok(id)
    }

    fn node(&mut self, metadata: &HashMap<String, String>, part: &str) -> Option<u32> {
        let name = part.strip_prefix('!')?;
        if let Some(&known) = self.types.get(name) {
            return Some(known);
        }
        let content = metadata.get(name)?.clone();
        let parts = parts(&content);
        let mut members = Vec::new();
        for pair in parts.get(1..)?.chunks(2) {
            let [member, offset] = pair else { return None };
            members.push((number(offset)?, self.node(metadata, member)?));
        }
        let id = self.members.len() as u32;
        if parts.first() == Some(&"!\"omnipotent char\"") {
            self.anything = Some(id);
        }
        self.members.push(members);
        let called = parts.first().and_then(|name| name.strip_prefix("!\"")?.strip_suffix('"'));
        self.names.push(called.unwrap_or_default().to_owned());
        self.types.insert(name.to_owned(), id);
        Some(id)
    }

    /// Finds what has no value in structures.
    pub(super) fn find_padding(&mut self, declared: &Declared<'_>) {
        let types = self.names.iter().zip(&self.members);
        let padding = types.map(|(name, members)| {
            let offsets: Vec<u64> = members.iter().map(|(offset, _)| *offset).collect();
            match members.len() {
                0 => BTreeSet::new(),
                _ => declared.padding_of_structure(name, &offsets),
            }
        });
        self.padding = padding.collect();
    }

    /// The bytes without a value of the structure that a member is accessed in, from the member on.
    pub fn padding(&self, tag: TagId) -> impl Iterator<Item = i64> + '_ {
        let tag = self.tags[tag as usize];
        let padding = self.padding.get(tag.base as usize).into_iter().flatten();
        padding.map(move |at| i64::from(*at) - tag.offset as i64)
    }

    /// May accesses by these types be of the same memory?
    pub fn may_alias(&self, a: TagId, b: TagId) -> bool {
        let (a, b) = (self.tags[a as usize], self.tags[b as usize]);
        self.contains(a, b).or_else(|| self.contains(b, a)).unwrap_or(false)
    }

    /// Does the structure of the first have that of the second in it, and at the same place? None if it
    /// does not have it there at all.
    fn contains(&self, outer: Tag, inner: Tag) -> Option<bool> {
        let (mut at, mut offset) = (outer.base, outer.offset);
        loop {
            if at == inner.base {
                return Some(offset == inner.offset);
            }
            let members = &self.members[at as usize];
            let &(start, member) = members.iter().rev().find(|(start, _)| *start <= offset)?;
            (at, offset) = (member, offset - start);
        }
    }
}
