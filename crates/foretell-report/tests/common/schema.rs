//! A small validator for JSON Schema. It understands the keywords that our schema and SARIF's use
//! and refuses any other, so that none is silently skipped. (`scripts/report-check.sh` asks other
//! people's validators as well.)

use serde_json::Value;

/// What is wrong with a value by a schema, with where.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    check(schema, schema, value, "")
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    let names = |rule: &Value| -> Vec<String> {
        let names = rule.as_array().expect("a list of names");
        names.iter().map(|name| name.as_str().expect("a name").to_owned()).collect()
    };
    let fits_one = |rules: &Value| {
        let rules = rules.as_array().expect("a list of schemas");
        rules.iter().filter(|rule| check(root, rule, value, at).is_empty()).count()
    };
    let mut found = Vec::new();
    let rules = schema.as_object().expect("a schema is an object");
    for (keyword, rule) in rules {
        let fits = match keyword.as_str() {
            "$schema" | "$id" | "id" | "$defs" | "definitions" | "title" | "description"
            | "default" => true,
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "minItems" => {
                value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap())
            }
            "uniqueItems" => value.as_array().is_none_or(|items| {
                let again = |(at, item): (usize, &Value)| items[..at].contains(item);
                rule == &Value::Bool(false) || !items.iter().enumerate().any(again)
            }),
            "type" => match rule {
                Value::String(name) => is(name),
                types => names(types).iter().any(|name| is(name)),
            },
            "format" => match (rule.as_str().unwrap(), value.as_str()) {
                (_, None) => true,
                ("uri", Some(text)) => text.split_once(':').is_some_and(|(scheme, _)| {
                    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                }),
                ("uri-reference", Some(text)) => {
                    !text.contains(|c: char| c.is_whitespace() || "<>\"{}|\\^`".contains(c))
                }
                // Nothing of ours has a date yet.
                ("date-time", Some(_)) => false,
                (other, _) => panic!("the test does not know the format {other}"),
            },
            "pattern" => match (rule.as_str().unwrap(), value.as_str()) {
                (_, None) => true,
                // Names of languages and GUIDs, which we do not write.
                (pattern, Some(text)) => panic!("{at}: {text} should fit {pattern}"),
            },
            "required" => names(rule)
                .iter()
                .all(|name| value.as_object().is_none_or(|object| object.contains_key(name))),
            "dependencies" => rule.as_object().unwrap().iter().all(|(name, needed)| {
                value.get(name).is_none()
                    || names(needed).iter().all(|other| value.get(other).is_some())
            }),
            "$ref" => {
                let path = rule.as_str().unwrap().strip_prefix('#').unwrap();
                found.extend(check(root, root.pointer(path).unwrap(), value, at));
                true
            }
            "properties" => {
                for (name, inner) in rule.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        found.extend(check(root, inner, member, &format!("{at}/{name}")));
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = rules.get("properties").and_then(Value::as_object);
                let others = value.as_object().into_iter().flatten().filter(|(name, _)| {
                    known.is_none_or(|known| !known.contains_key(name.as_str()))
                });
                for (name, member) in others {
                    let place = format!("{at}/{name}");
                    match rule {
                        Value::Bool(true) => {}
                        Value::Bool(false) => found.push(format!("{place}: not known")),
                        rule => found.extend(check(root, rule, member, &place)),
                    }
                }
                true
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(check(root, rule, item, &format!("{at}/{number}")));
                }
                true
            }
            "anyOf" => fits_one(rule) > 0,
            "oneOf" => fits_one(rule) == 1,
            "allOf" => fits_one(rule) == rule.as_array().unwrap().len(),
            "not" => !check(root, rule, value, at).is_empty(),
            other => panic!("the test does not know the keyword {other}"),
        };
        if !fits {
            found.push(format!("{at}: {keyword} {rule} does not hold of {value}"));
        }
    }
    found
}
