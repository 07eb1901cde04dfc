//! What a piece of memory consists of, as the compiler pass describes it, and how people call its parts.
//!
//! ```text
//! layout  :=                          one piece
//!          |  ( NAME )                a type of the standard library, shown as a whole
//!          |  { MEMBER* }             a structure or union
//!          |  [ STRIDE : layout ]     an array
//! MEMBER  :=  OFFSET : NAME = layout ;         without a name: a base class, an anonymous member
//! ```

use std::iter::Peekable;
use std::str::Chars;

/// A variable, or what `new` makes.
pub struct Description {
    /// The variable's name, or that of the type.
    pub name: Box<str>,
    /// The function that declares it; empty where there is none.
    pub function: Box<str>,
    /// Bytes; 0 for all of the block.
    pub size: u64,
    layout: Layout,
}

#[derive(Debug, PartialEq, Eq)]
enum Layout {
    Piece,
    Library(String),
    Structure(Vec<(u64, String, Layout)>),
    Array(u64, Box<Layout>),
}

impl Description {
    /// From the texts of a record. A layout that makes no sense is that of one piece.
    pub fn new(name: &str, function: &str, size: u64, layout: &str) -> Self {
        let layout = parse(&mut layout.chars().peekable()).unwrap_or(Layout::Piece);
        Self { name: name.into(), function: function.into(), size, layout }
    }

    /// What lies so many bytes after the begin, as it is written in the source.
    pub fn part(&self, offset: u64) -> String {
        self.part_of(&self.name, offset)
    }

    /// The same of the thing with this number that `new` has made, or of the next ones after it.
    pub fn numbered(&self, number: u32, offset: u64) -> String {
        let name = format!("{} #{number}", self.name);
        match self.layout {
            Layout::Piece if offset > 0 => format!("{name}+{offset}"),
            _ => self.part_of(&name, offset),
        }
    }

    fn part_of(&self, name: &str, offset: u64) -> String {
        let mut path = name.to_owned();
        let library = self.layout.append(offset, &mut path);
        if let Some(library) = library {
            path += &format!(" ({library})");
        }
        path
    }
}

impl Layout {
    /// Appends how to get to the offset; gives the type of the library where that is the end.
    fn append(&self, offset: u64, path: &mut String) -> Option<&str> {
        match self {
            Layout::Piece => None,
            Layout::Library(name) => Some(name),
            Layout::Array(stride, element) => {
                let index = offset.checked_div(*stride)?;
                *path += &format!("[{index}]");
                element.append(offset % stride, path)
            }
            Layout::Structure(members) => {
                let before = members.iter().filter(|(at, _, inner)| {
                    *at <= offset && *inner != Layout::Structure(Vec::new())
                });
                // Of the members of a union, the first.
                let (at, name, inner) = before.rev().max_by_key(|(at, ..)| *at)?;
                if !name.is_empty() {
                    path.push('.');
                    *path += name;
                }
                inner.append(offset - at, path)
            }
        }
    }
}

fn parse(text: &mut Peekable<Chars>) -> Option<Layout> {
    match text.peek() {
        Some('(') => {
            text.next();
            Some(Layout::Library(until(text, ')')?))
        }
        Some('[') => {
            text.next();
            let stride = until(text, ':')?.parse().ok()?;
            let element = parse(text)?;
            (text.next()? == ']').then(|| Layout::Array(stride, Box::new(element)))
        }
        Some('{') => {
            text.next();
            let mut members = Vec::new();
            while text.next_if_eq(&'}').is_none() {
                let offset = until(text, ':')?.parse().ok()?;
                let name = until(text, '=')?;
                let inner = parse(text)?;
                (text.next()? == ';').then(|| members.push((offset, name, inner)))?;
            }
            Some(Layout::Structure(members))
        }
        _ => Some(Layout::Piece),
    }
}

/// What comes before the letter, which is taken, too.
fn until(text: &mut Peekable<Chars>, end: char) -> Option<String> {
    let mut before = String::new();
    loop {
        match text.next()? {
            letter if letter == end => return Some(before),
            letter => before.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_called_as_in_the_source() {
        let pool =
            "{0:={0:vtable=;};8:stop=;16:jobs=(std::queue);96:sums=[16:[4:]];128:at={0:x=;8:y=;};}";
        let described = Description::new("pool", "main", 144, pool);
        for (offset, part) in [
            (0, "pool.vtable"),
            (8, "pool.stop"),
            (24, "pool.jobs (std::queue)"),
            (96, "pool.sums[0][0]"),
            (96 + 16 + 8, "pool.sums[1][2]"),
            (136, "pool.at.y"),
        ] {
            assert_eq!(described.part(offset), part);
        }
        assert_eq!(Description::new("x", "", 4, "").part(0), "x");
    }

    #[test]
    fn of_a_union_the_first_member_counts_and_empty_bases_do_not() {
        let described = Description::new("u", "", 8, "{0:={};0:whole=;0:half={0:low=;};}");
        assert_eq!(described.part(0), "u.whole");
    }

    #[test]
    fn a_layout_that_makes_no_sense_is_one_piece() {
        for text in ["{0:a=", "[x:]", "(std::map", "{0:a=;", "[0:]"] {
            assert!(Description::new("x", "", 8, text).part(3).starts_with('x'), "{text}");
        }
    }
}
