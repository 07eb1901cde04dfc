//! Names of functions as people know them.

use foretell_trace::Site;

/// Makes the name of a site's function one that people know.
pub fn shorten(site: &mut Site) {
    // Those of Rust are short already.
    if !site.file.ends_with(".rs") {
        site.function = function(&site.function).into();
    }
}

/// The demangled name of a C++ function without its parameters, template arguments and result:
/// `std::vector<int>::push_back(int const&)` is `std::vector::push_back`. A lambda is one of the function
/// that it is written in: `lambda in main`, `lambda 2 in main`. Names of C are left as they are.
pub fn function(demangled: &str) -> String {
    if let Some(function) = outlined(demangled) {
        return function;
    }
    if !demangled.contains(['(', '<', ' ', '\'', '{']) {
        return demangled.to_owned();
    }
    let parts = parts(demangled);
    // What is called is the innermost: a lambda's `operator()` is the lambda.
    let lambda = parts.iter().rposition(|part| part.lambda.is_some());
    let join = |parts: &[Part]| {
        let names: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
        names.join("::")
    };
    match lambda {
        Some(at) if parts[at + 1..].iter().all(|part| part.name.starts_with("operator")) => {
            let outer = join(&parts[..at]);
            let number = parts[at].lambda.unwrap_or(1);
            let lambda = if number > 1 { format!("lambda {number}") } else { "lambda".to_owned() };
            if outer.is_empty() { lambda } else { format!("{lambda} in {outer}") }
        }
        _ => join(&parts),
    }
}

/// What clang made a function of for OpenMP: `main.omp_outlined_debug__`, `sum(int) (.omp_outlined)`,
/// `.omp_task_entry.`.
fn outlined(demangled: &str) -> Option<String> {
    let at =
        [".omp_outlined", ".omp_task_"].iter().filter_map(|word| demangled.find(word)).min()?;
    let outer = demangled[..at].trim_end_matches([' ', '(']);
    match outer.is_empty() {
        true => Some("task".to_owned()),
        false => Some(format!("parallel region in {}", function(outer))),
    }
}

/// What a program calls a thread, in letters that every format of traces has.
pub fn thread(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_./: ".contains(c) { c } else { '_' };
    name.trim().chars().map(plain).collect()
}

/// A part of a qualified name.
struct Part {
    name: String,
    /// It is the lambda of this number, from 1 on.
    lambda: Option<u32>,
}

/// The parts of a name between `::`, outside of brackets.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut name = String::new();
    let mut depth = 0usize;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        // These are no brackets.
        let operator =
            ["operator()", "operator<=>", "operator<<", "operator<", "operator->", "operator>>"];
        let whole = operator.iter().find(|word| depth == 0 && rest.starts_with(**word));
        if let Some(word) = whole {
            name += word;
            rest = &rest[word.len()..];
            continue;
        }
        if depth == 0 && rest.starts_with("(anonymous namespace)") {
            name += "(anonymous namespace)";
            rest = &rest["(anonymous namespace)".len()..];
            continue;
        }
        match letter {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            '{' | '}' => name.push(letter),
            ':' if depth == 0 && rest.starts_with("::") => {
                parts.push(part(&name));
                name.clear();
                rest = &rest[1..];
            }
            // What follows says how it is called.
            ' ' if depth == 0 && (rest.starts_with(" const") || rest.starts_with(" &")) => {}
            // What stands before is the result.
            ' ' if depth == 0 && !name.ends_with("operator") && !name.contains('{') => {
                name.clear();
                parts.clear();
            }
            ' ' if depth == 0 && name.contains('{') => {}
            _ if depth == 0 => name.push(letter),
            _ => {}
        }
        rest = &rest[letter.len_utf8()..];
    }
    parts.push(part(name.trim_end_matches("const").trim_end_matches('&')));
    parts.retain(|part| !part.name.is_empty() || part.lambda.is_some());
    parts
}

fn part(name: &str) -> Part {
    // LLVM writes 'lambda', 'lambda0', 'lambda1'; others {lambda()#1}, {lambda()#2}. Where nobody else can
    // call the function, its lambdas are $_0, $_1.
    let private = name.strip_prefix("$_").and_then(|number| number.parse::<u32>().ok());
    if let Some(number) = private {
        return Part { name: name.to_owned(), lambda: Some(number + 1) };
    }
    let by_llvm = name.strip_prefix("'lambda").and_then(|rest| rest.strip_suffix('\''));
    let by_others = name.strip_prefix("{lambda").and_then(|rest| rest.strip_suffix('}'));
    let lambda = match (by_llvm, by_others) {
        (Some(number), _) => Some(number.parse().map_or(1, |number: u32| number + 2)),
        (_, Some(number)) => Some(number.trim_start_matches('#').parse().unwrap_or(1)),
        _ => None,
    };
    Part { name: name.to_owned(), lambda }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_template_arguments_and_results_are_left_out() {
        for (demangled, plain) in [
            ("main", "main"),
            ("main.omp_outlined_debug__", "parallel region in main"),
            ("sum(int) (.omp_outlined)", "parallel region in sum"),
            (".omp_task_entry..12", "task"),
            ("Pool::run(std::function<void ()>)", "Pool::run"),
            ("void work<int>(int, std::map<int, int>&)", "work"),
            (
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
                "std::vector::push_back",
            ),
            ("Cache::find(std::string const&) const", "Cache::find"),
            ("(anonymous namespace)::helper(int)", "(anonymous namespace)::helper"),
            ("Name::operator<(Name const&) const", "Name::operator<"),
            ("Name::operator()(int)", "Name::operator()"),
            ("Pool::~Pool()", "Pool::~Pool"),
            ("std::pair<int, int> make<int>(int)", "make"),
        ] {
            assert_eq!(function(demangled), plain);
        }
    }

    #[test]
    fn lambdas_are_of_the_function_they_are_written_in() {
        for (demangled, plain) in [
            ("Pool::Pool(int)::'lambda'()::operator()() const", "lambda in Pool::Pool"),
            ("main::'lambda0'()::operator()() const", "lambda 2 in main"),
            ("main::{lambda()#1}::operator()() const", "lambda in main"),
            ("main::$_0::operator()() const", "lambda in main"),
            ("main::$_1::operator()(int) const", "lambda 2 in main"),
            (
                "Pool::Pool(int)::{lambda(int, int)#2}::operator()(int, int) const",
                "lambda 2 in Pool::Pool",
            ),
            ("auto main::'lambda'(auto)::operator()<int>(auto) const", "lambda in main"),
        ] {
            assert_eq!(function(demangled), plain);
        }
    }
}
