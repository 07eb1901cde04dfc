//! Schedules as the runtime gets them: turns of threads, and what their events are to be.

/// One turn of a schedule: the thread runs all its events with an index below `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Creation path.
    pub path: Vec<u32>,
    /// One past the index of its last event in this turn.
    pub until: u32,
    /// What events of the turn are to be, where that is known; by index.
    pub expected: Vec<Expected>,
}

impl Turn {
    /// A turn of which nothing more is known.
    pub fn new(path: Vec<u32>, until: u32) -> Self {
        Self { path, until, expected: Vec::new() }
    }
}

/// What an event of a schedule is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its index in its thread.
    pub index: u32,
    /// As [`crate::Kind::keyword`]; [`ANY`] stands for every one.
    pub keyword: String,
    /// Line and column in the source; 0 where unknown.
    pub line: u32,
    /// As `line`.
    pub column: u32,
}

/// The word for any event.
pub const ANY: &str = "any";

/// Writes turns, one a line: `0.1 42` (the creation path, `-` for the main thread, and `until`),
/// each followed by a line ` 17 read 12 5` (index, word, line, column) for what is expected in it.
pub fn format_turns(turns: &[Turn]) -> String {
    let mut text = String::new();
    for turn in turns {
        text.push_str(&format!("{} {}\n", format_path(&turn.path), turn.until));
        for Expected { index, keyword, line, column } in &turn.expected {
            text.push_str(&format!(" {index} {keyword} {line} {column}\n"));
        }
    }
    text
}

/// A creation path for people and files: `-` for the main thread, else `0.1`.
pub fn format_path(path: &[u32]) -> String {
    if path.is_empty() {
        return "-".into();
    }
    path.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

/// Whether other threads cannot tell when a step with this word happens: a turn need not end after
/// it, and a thread may take it after the end of its turn.
pub fn is_local(keyword: &str) -> bool {
    matches!(
        keyword,
        "branch"
            | "assert"
            | "region"
            | "region-end"
            | "call"
            | "return"
            | "alloc"
            | "begin"
            | "fence"
            | "input"
            | "await"
            | "await-test"
            | "await-failed"
            | "await-again"
    )
}

/// Reads what [`format_turns`] wrote. The error is the number of the offending line, from 1.
pub fn parse_turns(text: &str) -> Result<Vec<Turn>, usize> {
    let mut turns: Vec<Turn> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let understood = match line.strip_prefix(' ') {
            Some(words) => parse_expected(words)
                .zip(turns.last_mut())
                .map(|(expected, turn)| turn.expected.push(expected)),
            None => parse_turn(line).map(|turn| turns.push(turn)),
        };
        understood.ok_or(number + 1)?;
    }
    Ok(turns)
}

fn parse_turn(line: &str) -> Option<Turn> {
    let (path, until) = line.split_once(' ')?;
    let path = match path {
        "-" => Vec::new(),
        path => path.split('.').map(str::parse).collect::<Result<_, _>>().ok()?,
    };
    Some(Turn::new(path, until.parse().ok()?))
}

fn parse_expected(words: &str) -> Option<Expected> {
    let mut words = words.split(' ');
    let expected = Expected {
        index: words.next()?.parse().ok()?,
        keyword: words.next()?.to_owned(),
        line: words.next()?.parse().ok()?,
        column: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_survive_their_text() {
        let expected = Expected { index: 5, keyword: "rmw".into(), line: 12, column: 0 };
        let turns = vec![
            Turn { expected: vec![expected], ..Turn::new(vec![], 7) },
            Turn::new(vec![0, 12], u32::MAX),
        ];
        assert_eq!(parse_turns(&format_turns(&turns)), Ok(turns));
        assert_eq!(parse_turns("- 1\n0.x 2\n"), Err(2));
        assert_eq!(parse_turns("-\n"), Err(1));
        assert_eq!(parse_turns(" 1 read 0 0\n- 2\n"), Err(1), "of no turn");
        assert_eq!(parse_turns("- 2\n 1 read 0\n"), Err(2));
    }
}
