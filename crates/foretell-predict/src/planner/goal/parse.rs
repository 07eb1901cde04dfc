//! The text of a goal.

use super::{Formula, GoalError, Unary, sequence};
use crate::limits::DEEPEST_GOAL;

pub(super) fn tokens(text: &str) -> Result<Vec<(usize, String)>, GoalError> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let start = at;
        match characters[at] {
            white if white.is_whitespace() => {
                at += 1;
                continue;
            }
            '(' | ')' | '&' | '|' | '!' | ',' => at += 1,
            '-' if characters.get(at + 1) == Some(&'>') => at += 2,
            '\'' => {
                at += 1;
                while characters.get(at).is_some_and(|&character| character != '\'') {
                    at += 1;
                }
                if at == characters.len() {
                    let message = "the quoted name does not end; add a '".into();
                    return Err(GoalError { column: start + 1, message });
                }
                at += 1;
            }
            _ => {
                while characters.get(at).is_some_and(|character| {
                    !character.is_whitespace() && !"()&|!,'".contains(*character)
                }) {
                    at += 1;
                }
            }
        }
        tokens.push((start + 1, characters[start..at].iter().collect()));
    }
    Ok(tokens)
}

pub(super) struct Parser<'a> {
    pub(super) tokens: &'a [(usize, String)],
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) depth: usize,
}

impl Parser<'_> {
    fn error<T>(&self, message: impl Into<String>) -> Result<T, GoalError> {
        let column = self.tokens.get(self.at).map_or(self.end, |(column, _)| *column);
        Err(GoalError { column, message: message.into() })
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |(_, token)| token)
    }

    fn take(&mut self, token: &str) -> bool {
        let taken = self.peek() == token;
        self.at += usize::from(taken);
        taken
    }

    fn expect(&mut self, token: &str) -> Result<(), GoalError> {
        if self.take(token) { Ok(()) } else { self.error(format!("`{token}` is missing")) }
    }

    pub(super) fn formula(&mut self) -> Result<Formula, GoalError> {
        self.depth += 1;
        if self.depth > DEEPEST_GOAL {
            return self.error("the goal is nested too deeply");
        }
        let premise =
            self.list("|", Formula::Or, |parser| parser.list("&", Formula::And, Parser::binding))?;
        let formula = match self.take("->") {
            true => Formula::Or(vec![Formula::Not(Box::new(premise)), self.formula()?]),
            false => premise,
        };
        self.depth -= 1;
        Ok(formula)
    }

    fn list(
        &mut self,
        separator: &str,
        join: fn(Vec<Formula>) -> Formula,
        mut part: impl FnMut(&mut Self) -> Result<Formula, GoalError>,
    ) -> Result<Formula, GoalError> {
        let mut parts = vec![part(self)?];
        while self.take(separator) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
    }

    fn binding(&mut self) -> Result<Formula, GoalError> {
        let left = Box::new(self.unary()?);
        if self.take("U") {
            Ok(Formula::Until(left, Box::new(self.unary()?)))
        } else if self.take("S") {
            Ok(Formula::Since(left, Box::new(self.unary()?)))
        } else {
            Ok(*left)
        }
    }

    fn unary(&mut self) -> Result<Formula, GoalError> {
        let operator = match self.peek() {
            "X" => Unary::Next,
            "F" => Unary::Finally,
            "G" => Unary::Globally,
            "Y" => Unary::Yesterday,
            "O" => Unary::Once,
            "H" => Unary::Historically,
            "!" => {
                self.at += 1;
                return Ok(Formula::Not(Box::new(self.nested()?)));
            }
            _ => return self.primary(),
        };
        self.at += 1;
        Ok(Formula::Unary(operator, Box::new(self.nested()?)))
    }

    fn nested(&mut self) -> Result<Formula, GoalError> {
        self.depth += 1;
        if self.depth > DEEPEST_GOAL {
            return self.error("the goal is nested too deeply");
        }
        let formula = self.unary();
        self.depth -= 1;
        formula
    }

    fn primary(&mut self) -> Result<Formula, GoalError> {
        if self.take("(") {
            let formula = self.formula()?;
            self.expect(")")?;
            return Ok(formula);
        }
        let is_pattern = self.tokens.get(self.at + 1).is_some_and(|(_, token)| token == "(");
        match self.peek() {
            "" => self.error("the goal ends too early"),
            ")" | "&" | "|" | "," | "->" | "U" | "S" => {
                self.error(format!("an event or operator is missing before `{}`", self.peek()))
            }
            "true" | "false" => {
                let value = self.peek() == "true";
                self.at += 1;
                Ok(Formula::Constant(value))
            }
            _ if is_pattern => self.pattern(),
            _ => Ok(Formula::Event(self.name()?)),
        }
    }

    fn name(&mut self) -> Result<String, GoalError> {
        let token = self.peek();
        if token.is_empty() || "()&|!,".contains(token) {
            return self.error("the name of an event is missing");
        }
        let name = token.trim_matches('\'').to_owned();
        self.at += 1;
        Ok(name)
    }

    fn pattern(&mut self) -> Result<Formula, GoalError> {
        let start = self.at;
        let pattern = self.name()?;
        self.expect("(")?;
        let mut names = vec![self.name()?];
        while self.take(",") {
            names.push(self.name()?);
        }
        self.expect(")")?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let next = |name: &str| Formula::Next(name.into());
        Ok(match (pattern.as_str(), names.as_slice()) {
            ("next", [event]) => next(event),
            ("three", [first, remote, second]) => Formula::three_accesses(first, remote, second),
            ("twovars", [first, remote, other, second]) => {
                sequence(&[first, remote, other], &[second])
            }
            ("cross", [first, remote, second, other]) => {
                sequence(&[first, remote, second, other], &[])
            }
            ("order", [user, definition]) => sequence(&[user], &[definition]),
            ("deadlock", [one, other]) => {
                Formula::Unary(Unary::Finally, Box::new(Formula::And(vec![next(one), next(other)])))
            }
            (name, events) => {
                self.at = start;
                return self.error(format!(
                    "there is no pattern `{name}` of {} events; there are three(a, c, b), \
                     twovars(a, c, d, b), cross(a, c, b, d), order(use, define), deadlock(a, c) \
                     and next(a)",
                    events.len()
                ));
            }
        })
    }
}
