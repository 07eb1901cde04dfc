//! What only the syntax of a program says.
//!
//! IR is the work of one compiler: it has one order of evaluation where C leaves the order open, and no
//! lifetimes of compound literals. So clang's syntax tree is read as well (`-ast-dump`, as text, line by
//! line: the tree of a long expression is as deep as the expression is long). The file is preprocessed
//! before, so that every token has a place of its own, those of macros too, and what the tree says of a
//! range of tokens can be said of the instructions that have their places there.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

/// A token: line and column.
pub type Spot = (u32, u32);

/// From one token to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first token.
    pub begin: Spot,
    /// The last token.
    pub end: Spot,
}

impl Range {
    /// Is the token one of these?
    pub fn contains(&self, spot: Spot) -> bool {
        self.begin <= spot && spot <= self.end
    }
}

/// Expressions that C does not order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The expression that they are operands of.
    pub whole: Range,
    /// The operands.
    pub operands: Vec<Range>,
    /// The expression itself writes: after the values of its operands are computed, but not after
    /// their side effects.
    pub writes: bool,
    /// A call by a pointer, which is the first operand: its place is that of the call, too.
    pub calls: bool,
}

/// A compound literal that lives as long as a block inside a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal {
    /// The literal.
    pub whole: Range,
    /// The block; none for the body of the function.
    pub block: Option<Range>,
    /// It may share its memory with another one (C17 6.5.2.5, 7).
    pub constant: bool,
}

/// What the syntax of a function says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Operands without an order, inner ones first.
    pub groups: Vec<Group>,
    /// Compound literals.
    pub literals: Vec<Literal>,
    /// Blocks of variables, by the place of the name; none for the body of the function.
    pub variables: HashMap<Spot, (String, Option<Range>)>,
    /// The type of the function, as the source has it.
    pub kind: String,
    /// By which type functions are called through pointers, by the first token of the call.
    pub calls: HashMap<Spot, String>,
    /// Members of unions that initialisers set.
    pub members: Vec<Member>,
}

/// What the syntax of a program says.
#[derive(Clone, Debug, Default)]
pub struct Syntax {
    /// By the name of the function.
    pub functions: HashMap<String, Shape>,
    /// Where compilers differ: file, line and construct.
    pub refused: Option<(String, u32, String)>,
}

/// A member of a union that the initialiser of an automatic variable or literal sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where code for it may be: the initialiser, those around it, and the variable's name.
    pub spots: Vec<Spot>,
    /// The union's name, or the line of one without as `@12`.
    pub union: String,
    /// The member's name.
    pub name: String,
}

#[derive(Debug)]
struct Node {
    kind: String,
    /// Which node it is; a tree may show one node several times.
    address: String,
    range: Option<Range>,
    /// Where the name is that it declares.
    name: Option<Spot>,
    /// What stands behind the range.
    rest: String,
    parent: Option<usize>,
    children: Vec<usize>,
}

/// Reads the dump; `is_own` tells the program's own files from headers of the system.
pub fn read(dump: impl BufRead, is_own: &dyn Fn(&str) -> bool) -> Result<Syntax, String> {
    let mut reader = Reader::default();
    // nodes of the declaration that is read, and those that the next line may belong to
    let (mut nodes, mut open): (Vec<Node>, Vec<usize>) = (Vec::new(), Vec::new());
    for line in dump.lines() {
        let line = line.map_err(|error| error.to_string())?;
        let mut rest = line.as_str();
        let mut depth = 0;
        while let Some(pair) = rest.get(..2)
            && matches!(pair, "| " | "|-" | "`-" | "  ")
        {
            rest = &rest[2..];
            depth += 1;
        }
        if depth <= 1 {
            reader.declaration(&nodes);
            nodes.clear();
            open.clear();
            reader.is_own = false;
            reader.files.clear();
        }
        let node = reader.node(rest)?;
        if depth == 1 {
            reader.is_own = is_own(&reader.file);
            if let Some(name) = function_name(&node).filter(|_| !reader.is_own) {
                // of a header of the system
                reader.syntax.functions.entry(name).or_default();
            }
        }
        if depth == 0 || !reader.is_own {
            continue;
        }
        // attributes of an earlier declaration are no part of it
        if !node.kind.ends_with("Attr") && !reader.files.contains(&reader.file) {
            reader.files.insert(reader.file.clone());
        }
        open.truncate(depth - 1);
        let parent = open.last().copied();
        let id = nodes.len();
        if let Some(parent) = parent {
            nodes[parent].children.push(id);
        }
        nodes.push(Node { parent, ..node });
        open.push(id);
    }
    reader.declaration(&nodes);
    Ok(reader.syntax)
}

#[derive(Default)]
struct Reader {
    syntax: Syntax,
    /// The dump leaves out what is as before.
    file: String,
    line: u32,
    is_own: bool,
    /// Files of the declaration that is read.
    files: HashSet<String>,
}

impl Reader {
    /// `Kind 0x1234 <line:3:1, col:9> col:5 the rest`.
    fn node(&mut self, text: &str) -> Result<Node, String> {
        let mut text = text;
        // `array_filler: Kind 0x1234`
        if let Some((label, rest)) = text.split_once(": ")
            && label.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        {
            text = rest;
        }
        let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut node = Node {
            kind: kind.into(),
            address: String::new(),
            range: None,
            name: None,
            rest: String::new(),
            parent: None,
            children: Vec::new(),
        };
        let Some((address, rest)) = rest.split_once(" <").filter(|_| rest.starts_with("0x")) else {
            return Ok(node);
        };
        let address = address.split(' ').next().unwrap_or_default();
        node.address = address.into();
        let odd = || format!("a line of the syntax tree that cannot be read: {text}");
        let (begin, rest) = self.location(rest).ok_or_else(odd)?;
        let (end, rest) = match rest.strip_prefix(", ") {
            Some(rest) => self.location(rest).ok_or_else(odd)?,
            None => (begin, rest),
        };
        let mut rest = rest.strip_prefix('>').ok_or_else(odd)?;
        if let Some(name) = rest.strip_prefix(' ')
            && ["line:", "col:"].iter().any(|start| name.starts_with(start))
        {
            (node.name, rest) = self.location(name).ok_or_else(odd)?;
        }
        if let (Some(begin), Some(end)) = (begin, end) {
            node.range = Some(Range { begin, end });
        }
        node.rest = rest.trim_start().into();
        Ok(node)
    }

    /// A place in front of a text, and what stands behind it.
    fn location<'t>(&mut self, text: &'t str) -> Option<(Option<Spot>, &'t str)> {
        if let Some(rest) = text.strip_prefix("<invalid sloc>") {
            return Some((None, rest));
        }
        let number = |text: &'t str| {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            let value: u32 = text[..digits].parse().ok()?;
            Some((value, &text[digits..]))
        };
        if let Some(rest) = text.strip_prefix("col:") {
            let (column, rest) = number(rest)?;
            return Some((Some((self.line, column)), rest));
        }
        if let Some(rest) = text.strip_prefix("line:") {
            let (line, rest) = number(rest)?;
            let (column, rest) = number(rest.strip_prefix(':')?)?;
            self.line = line;
            return Some((Some((line, column)), rest));
        }
        // the name of a file may have anything in it
        for (at, _) in text.match_indices(':') {
            let Some((line, rest)) = number(&text[at + 1..]) else { continue };
            let Some((column, rest)) = rest.strip_prefix(':').and_then(number) else { continue };
            if !(rest.starts_with('>') || rest.starts_with(", ")) {
                continue;
            }
            self.file = text[..at].to_owned();
            self.line = line;
            return Some((Some((line, column)), rest));
        }
        None
    }

    fn refuse(&mut self, node: &Node, what: impl Into<String>) {
        let line = node.range.map_or(0, |range| range.begin.0);
        let file = self.files.iter().next().cloned().unwrap_or_default();
        self.syntax.refused.get_or_insert((file, line, what.into()));
    }

    /// Looks at a declaration of the program.
    fn declaration(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.compilers_differ(nodes, node);
        }
        let Some(function) = nodes.first() else { return };
        let is_body = |&id: &usize| nodes[id].kind == "CompoundStmt";
        if !function.children.iter().any(is_body) {
            return;
        }
        let Some(name) = function_name(function) else { return };
        if self.files.len() > 1 {
            self.refuse(function, format!("the function {name}, which lies in several files"));
            return;
        }
        let mut shape = Shape { kind: canonical(&function.rest), ..Shape::default() };
        // inner ones stand behind outer ones
        for id in (0..nodes.len()).rev() {
            shape.groups.extend(group(nodes, id));
            if let ("CallExpr", Some(range), [callee, ..]) =
                (nodes[id].kind.as_str(), nodes[id].range, &nodes[id].children[..])
                && !names_function(nodes, *callee)
            {
                shape.calls.insert(range.begin, canonical(&nodes[*callee].rest));
            }
            if let ("VarDecl", Some(name)) = (nodes[id].kind.as_str(), nodes[id].name) {
                let before = nodes[id].rest.split(" '").next().unwrap_or_default();
                let called = before.rsplit(' ').next().unwrap_or_default().to_owned();
                shape.variables.insert(name, (called, block(nodes, id)));
            }
            if let ("InitListExpr", Some((union, name))) =
                (nodes[id].kind.as_str(), union_member(&nodes[id].rest))
                && let Some(spots) = automatic(nodes, id)
            {
                shape.members.push(Member { spots, union, name });
            }
            if nodes[id].kind == "CompoundLiteralExpr"
                && let Some(whole) = nodes[id].range
            {
                let constant = nodes[id].rest.starts_with("'const ");
                shape.literals.push(Literal { whole, block: block(nodes, id), constant });
            }
        }
        self.syntax.functions.insert(name, shape);
    }

    /// What C leaves to the implementation, or does not know, and gcc and clang do differently.
    fn compilers_differ(&mut self, nodes: &[Node], node: &Node) {
        let kind = node.rest.rsplit('\'').nth(1).unwrap_or_default();
        match node.kind.as_str() {
            "EnumConstantDecl" if kind != "int" => {
                self.refuse(node, format!("an enumerator of type {kind}, not int"));
            }
            "DeclRefExpr" => {
                const OWN_WAYS: [&str; 4] = [
                    "__builtin_constant_p",
                    "__builtin_object_size",
                    "__builtin_dynamic_object_size",
                    "__builtin_classify_type",
                ];
                if let Some(name) = OWN_WAYS.iter().find(|n| node.rest.contains(&format!("'{n}'")))
                {
                    let what = "which depends on the compiler and its optimisation";
                    self.refuse(node, format!("{name}, {what}"));
                }
            }
            // `int a[f()][g()]`, `void h(int n, int a[f()])`: sizes are computed in any order
            "VarDecl" | "ParmVarDecl" | "TypedefDecl" => {
                let sizes: Vec<&str> = kind.split('[').skip(1).collect();
                let effect = sizes.iter().any(|size| {
                    let size = size.split(']').next().unwrap_or_default();
                    size.contains('(')
                        || size.contains("++")
                        || size.contains("--")
                        || size.contains('=')
                });
                if effect && (sizes.len() > 1 || node.kind == "ParmVarDecl") {
                    self.refuse(node, "sizes of an array that may have an effect, in any order");
                }
            }
            // `__builtin_FILE()` and the like
            "SourceLocExpr" => {
                self.refuse(node, "a place in the source, which depends on how it is compiled");
            }
            "CStyleCastExpr" if node.rest.ends_with("<ToUnion>") => {
                self.refuse(node, "a cast to a union, whose other bytes are unspecified");
            }
            // `[0 ... 3] = f()`: as often as there are elements, or once
            "InitListExpr" => {
                let mut seen = HashSet::new();
                let twice = node.children.iter().find(|&&child| {
                    let address = &nodes[child].address;
                    !address.is_empty() && !seen.insert(address) && has_effects(nodes, child)
                });
                if let Some(&child) = twice {
                    self.refuse(
                        &nodes[child],
                        "an initialiser with an effect, of several elements",
                    );
                }
            }
            _ => {}
        }
    }
}

/// Where code may be of an initialiser in a function; none if it is that of a static variable.
fn automatic(nodes: &[Node], id: usize) -> Option<Vec<Spot>> {
    let mut spots = Vec::new();
    let mut at = Some(id);
    while let Some(id) = at {
        let node = &nodes[id];
        spots.extend(node.range.map(|range| range.begin));
        if node.kind == "VarDecl" {
            spots.extend(node.name);
            return (!node.rest.contains("' static")).then_some(spots);
        }
        if node.kind.ends_with("Stmt") {
            break;
        }
        at = node.parent;
    }
    Some(spots)
}

/// Union and member of `'union u' field Field 0x12 'c' 'char'`.
fn union_member(rest: &str) -> Option<(String, String)> {
    let (kind, member) = rest.split_once(" field Field ")?;
    let kind = kind.rsplit('\'').nth(1).unwrap_or_default();
    // `union (unnamed at a.c:3:5)`
    let line = kind.split_once(" at ").and_then(|(_, place)| place.rsplit(':').nth(1));
    let union = match line {
        Some(line) => format!("@{line}"),
        None => kind.rsplit([' ', ':']).next().unwrap_or_default().to_owned(),
    };
    Some((union, member.split('\'').nth(1).unwrap_or_default().to_owned()))
}

/// The name of a function that is declared: `used f 'int (void)'`.
fn function_name(node: &Node) -> Option<String> {
    let before = node.rest.split(" '").next().filter(|_| node.kind == "FunctionDecl")?;
    before.rsplit(' ').next().map(str::to_owned)
}

/// May the expression do something?
fn has_effects(nodes: &[Node], id: usize) -> bool {
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        let node = &nodes[id];
        let writes = match node.kind.as_str() {
            "CallExpr" | "CompoundAssignOperator" | "AtomicExpr" | "StmtExpr" => true,
            "BinaryOperator" => node.rest.ends_with("'='"),
            "UnaryOperator" => node.rest.contains("'++'") || node.rest.contains("'--'"),
            _ => false,
        };
        if writes {
            return true;
        }
        open.extend(&node.children);
    }
    false
}

/// Is it in an operand that is not evaluated?
fn is_unevaluated(nodes: &[Node], id: usize) -> bool {
    let mut at = nodes[id].parent;
    while let Some(parent) = at {
        if nodes[parent].kind == "UnaryExprOrTypeTraitExpr" {
            return true;
        }
        if nodes[parent].kind.ends_with("Stmt") {
            break;
        }
        at = nodes[parent].parent;
    }
    false
}

/// Is it just the name of a function?
fn names_function(nodes: &[Node], id: usize) -> bool {
    let mut at = id;
    while let [only] = nodes[at].children[..]
        && matches!(nodes[at].kind.as_str(), "ImplicitCastExpr" | "ParenExpr")
        && !nodes[at].rest.contains("<BitCast>")
    {
        at = only;
    }
    nodes[at].kind == "DeclRefExpr" && nodes[at].rest.contains(" Function 0x")
}

/// The type in what stands behind a range, `'name'` or `'name':'what it stands for'`: a function, or a
/// pointer to one, both as `int (char *)`.
fn canonical(rest: &str) -> String {
    let mut quoted = rest.split('\'');
    quoted.next();
    let mut kind = quoted.next().unwrap_or_default();
    if quoted.next() == Some(":") {
        kind = quoted.next().unwrap_or(kind);
    }
    let kind = kind.split(" __attribute__((").next().unwrap_or(kind);
    kind.replacen("(*)", "", 1)
}

/// The operands of an expression, if C does not order them.
fn group(nodes: &[Node], id: usize) -> Option<Group> {
    let node = &nodes[id];
    let is = |operator: &str| node.rest.ends_with(&format!("'{operator}'"));
    let writes = match node.kind.as_str() {
        "CallExpr" | "ArraySubscriptExpr" | "InitListExpr" | "AtomicExpr" => false,
        "BinaryOperator" if is(",") || is("&&") || is("||") => return None,
        "BinaryOperator" => is("="),
        "CompoundAssignOperator" => true,
        "UnaryOperator" if node.rest.contains("'++'") || node.rest.contains("'--'") => true,
        _ => return None,
    };
    // the name of a function is no access; the place of the call is the same
    let is_evaluated = |&&child: &&usize| {
        let is_callee = node.kind == "CallExpr" && node.children.first() == Some(&child);
        !(is_callee && names_function(nodes, child))
    };
    let evaluates_callee = node.children.first().is_some_and(|first| is_evaluated(&first));
    let evaluated = node.children.iter().filter(is_evaluated);
    let operands: Vec<Range> = evaluated.filter_map(|&child| nodes[child].range).collect();
    let enough = if writes { 1 } else { 2 };
    if operands.len() < enough || is_unevaluated(nodes, id) {
        return None;
    }
    let calls = node.kind == "CallExpr" && evaluates_callee;
    Some(Group { whole: node.range?, operands, writes, calls })
}

/// The innermost block around a node; none if it is the body of the function.
fn block(nodes: &[Node], id: usize) -> Option<Range> {
    let mut at = id;
    while let Some(parent) = nodes[at].parent {
        let node = &nodes[parent];
        let children = &node.children;
        let is_body = match node.kind.as_str() {
            "IfStmt" => children.first() != Some(&at),
            "WhileStmt" | "ForStmt" | "SwitchStmt" => children.last() == Some(&at),
            "DoStmt" => children.first() == Some(&at),
            "FunctionDecl" => return None,
            _ => {
                if node.kind == "CompoundStmt" {
                    let outer = node.parent.map(|outer| nodes[outer].kind.as_str());
                    return node.range.filter(|_| outer != Some("FunctionDecl"));
                }
                at = parent;
                continue;
            }
        };
        return if is_body { nodes[at].range } else { node.range };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
TranslationUnitDecl 0x1 <<invalid sloc>> <invalid sloc>
|-TypedefDecl 0x2 <<invalid sloc>> <invalid sloc> implicit __int128_t '__int128'
|-VarDecl 0x3 </usr/include/x.h:9:1, col:12> col:12 extern stdin 'int'
`-FunctionDecl 0x4 <a b.c:2:1, line:6:1> line:2:5 used f 'int (void)'
  `-CompoundStmt 0x5 <col:13, line:6:1>
    |-BinaryOperator 0x6 <line:3:3, col:9> 'int' '='
    | |-DeclRefExpr 0x7 <col:3> 'int' lvalue Var 0x9 'x' 'int'
    | `-UnaryOperator 0x8 <col:7, col:9> 'int' postfix '++'
    |   `-DeclRefExpr 0xa <col:7> 'int' lvalue Var 0x9 'x' 'int'
    `-IfStmt 0xb <line:4:3, line:5:22>
      |-IntegerLiteral 0xc <line:4:7> 'int' 1
      `-BinaryOperator 0xd <line:5:5, col:22> 'int *' '='
        |-DeclRefExpr 0xe <col:5> 'int *' lvalue Var 0xf 'p' 'int *'
        `-CompoundLiteralExpr 0x10 <col:9, col:22> 'int[1]' lvalue
";

    fn read_dump(dump: &str) -> Result<Syntax, String> {
        read(dump.as_bytes(), &|file| file == "a b.c")
    }

    #[test]
    fn operands_and_blocks_are_read() {
        let syntax = read_dump(DUMP).unwrap();
        let shape = &syntax.functions["f"];
        let range = |begin, end| Range { begin, end };
        let assignment = Group {
            whole: range((3, 3), (3, 9)),
            operands: vec![range((3, 3), (3, 3)), range((3, 7), (3, 9))],
            writes: true,
            calls: false,
        };
        assert!(shape.groups.contains(&assignment), "{:?}", shape.groups);
        let literal = Literal {
            whole: range((5, 9), (5, 22)),
            block: Some(range((5, 5), (5, 22))),
            constant: false,
        };
        assert_eq!(shape.literals, [literal]);
        assert_eq!(syntax.refused, None);
    }

    #[test]
    fn an_enumerator_that_is_no_int_is_refused() {
        let dump = "\
TranslationUnitDecl 0x1 <<invalid sloc>> <invalid sloc>
`-EnumDecl 0x2 <a b.c:7:1, col:9> col:1
  `-EnumConstantDecl 0x3 <col:8> col:8 BIG 'unsigned int'
";
        let (file, line, what) = read_dump(dump).unwrap().refused.unwrap();
        assert_eq!((file.as_str(), line), ("a b.c", 7));
        assert!(what.contains("unsigned int"), "{what}");
    }

    #[test]
    fn a_tree_that_is_none_is_an_error() {
        let dump = "TranslationUnitDecl 0x1 <nowhere> ...";
        assert!(read_dump(dump).is_err());
    }
}
