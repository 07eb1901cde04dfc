//! Names of Rust's functions, as text.

/// Whether the symbol is one of Rust's.
pub fn is_mangled(symbol: &str) -> bool {
    symbol.starts_with("_R")
        || (symbol.starts_with("_ZN") && has_hash(symbol.trim_end_matches('E')))
}

/// Ends in `17h` and sixteen digits, as names of Rust's older mangling do.
fn has_hash(text: &str) -> bool {
    text.len() > 19
        && text.is_char_boundary(text.len() - 19)
        && text[text.len() - 19..].starts_with("17h")
        && text[text.len() - 16..].bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The path of a function of Rust: without the traits, types and hashes that belong to an instance.
/// `<std::sync::Mutex<i32> as core::Clone>::clone::<u8>` is `std::sync::Mutex::clone`.
pub fn plain_path(demangled: &str) -> String {
    let mut path = String::new();
    let mut rest = demangled;
    // `<Type as Trait>::method` and `<Type>::method`: the type's own path, then the method.
    if let Some(inner) = rest.strip_prefix('<') {
        let (of, after) = inner.split_at(closing(inner));
        path.push_str(&plain_path(of.split(" as ").next().unwrap_or(of)));
        rest = after.strip_prefix('>').unwrap_or(after);
    }
    let (mut depth, mut before) = (0usize, ' ');
    for character in rest.chars() {
        match character {
            '<' => depth += 1,
            '>' if before == '-' => {}
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => path.push(character),
            _ => {}
        }
        before = character;
    }
    while let Some(shorter) = path.strip_suffix("::") {
        path.truncate(shorter.len());
    }
    match path.rfind("::h") {
        Some(at) if path.len() == at + 19 && is_hash(&path[at + 3..]) => path.truncate(at),
        _ => {}
    }
    path.replace("::::", "::")
}

fn is_hash(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Where the bracket closes that was opened before the text; `->` closes nothing.
fn closing(text: &str) -> usize {
    let (mut depth, mut before) = (0usize, ' ');
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            '>' if before == '-' => {}
            '>' if depth == 0 => return at,
            '>' => depth -= 1,
            _ => {}
        }
        before = character;
    }
    text.len()
}

/// Functions of the library between a thread's begin and what it was spawned with; that is their first
/// type argument.
const PLUMBING: &[&str] = &["::spawn_unchecked", "::__rust_begin_short_backtrace"];

/// How an engineer calls a function of this demangled name, where that is much shorter: what a thread was
/// spawned with, and closures by the function they are in.
pub fn shortened(demangled: &str) -> Option<String> {
    let spawned = PLUMBING.iter().find_map(|function| {
        let rest = &demangled[demangled.find(function)? + function.len()..];
        let inner = rest.strip_prefix("::").unwrap_or(rest).strip_prefix('<')?;
        first_argument(&inner[..closing(inner)])
    });
    let name = spawned.unwrap_or(demangled);
    let mut depth = 0usize;
    for (at, character) in name.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && name[at..].starts_with("::{closure#") => {
                return Some(format!("closure in {}", &name[..at]));
            }
            _ => {}
        }
    }
    spawned.map(str::to_owned)
}

/// The text up to the first comma that is in no brackets.
fn first_argument(arguments: &str) -> Option<&str> {
    let mut depth = 0usize;
    for (at, character) in arguments.char_indices() {
        match character {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return Some(&arguments[..at]),
            _ => {}
        }
    }
    (!arguments.is_empty()).then_some(arguments)
}
