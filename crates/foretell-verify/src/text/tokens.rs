//! Text to tokens.

use super::InputError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Number(i128),
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 27] = [
    ":=", "==", "!=", "<=", ">=", "&&", "||", "<", ">", "=", "+", "-", "*", "(", ")", "{", "}",
    "[", "]", ",", ";", "!", "/", "%", "?", ":", ".",
];

pub(super) fn tokens(file: &str, text: &str) -> Result<Vec<(Token, u32)>, InputError> {
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let number = u32::try_from(number + 1).unwrap_or(u32::MAX);
        let mut rest = line.split('#').next().unwrap_or_default().trim_start();
        while let Some(first) = rest.chars().next() {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c: char| !word(c)).unwrap_or(rest.len());
            let error = |message: String| InputError { file: file.into(), line: number, message };
            let (token, length) = if first.is_ascii_digit() {
                let value = rest[..end].parse::<i64>();
                let value =
                    value.map_err(|_| error(format!("`{}` is not a number", &rest[..end])))?;
                (Token::Number(i128::from(value)), end)
            } else if end > 0 {
                (Token::Word(rest[..end].to_string()), end)
            } else {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| error(format!("`{first}` has no meaning here")))?;
                (Token::Sign(sign), sign.len())
            };
            tokens.push((token, number));
            rest = rest[length..].trim_start();
        }
    }
    let last = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    tokens.push((Token::End, last));
    Ok(tokens)
}
