//! `foretell ctest` and `foretell cmake-toolchain`: projects that CMake builds.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foretell_guard::process;
use serde_json::Value;

use crate::cli::CtestArguments;
use crate::commands::cases::{self, Case};
use crate::commands::frameworks::{self, LISTING};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Prints a toolchain file.
pub fn toolchain(output: &mut Output) -> Result<Exit, Failure> {
    let own = std::env::current_exe()?;
    let own = own.display();
    output.raw(
        format!(
            "# Builds with foretell: cmake -DCMAKE_TOOLCHAIN_FILE=THIS_FILE ...\n\
             set(CMAKE_C_COMPILER \"{own}\" cc --as-written)\n\
             set(CMAKE_CXX_COMPILER \"{own}\" c++ --as-written)\n\
             set(CMAKE_C_FLAGS_INIT \"-g\")\n\
             set(CMAKE_CXX_FLAGS_INIT \"-g\")\n"
        )
        .as_bytes(),
    );
    Ok(Exit::NothingFound)
}

/// Tests each of CTest's tests as a program of its own.
pub fn test(arguments: &CtestArguments, output: &mut Output) -> Result<Exit, Failure> {
    let folder = &arguments.test_dir;
    let mut command = Command::new("ctest");
    command.arg("--show-only=json-v1").args(&arguments.arguments).current_dir(folder);
    command.stderr(Stdio::inherit()).stdin(Stdio::null());
    let (time, most) = LISTING;
    let listed = process::run(&mut command, Some(time), most).map_err(|error| {
        let folder = folder.display();
        Failure::Input(format!(
            "cannot run ctest in {folder}: {error}; install Debian's package cmake"
        ))
    })?;
    let list: Value = serde_json::from_slice(&listed.output).unwrap_or_default();
    let Some(tests) = list["tests"].as_array().filter(|_| listed.status.success()) else {
        let folder = folder.display();
        return Err(Failure::Input(format!("ctest does not list the tests of {folder}")));
    };
    let mut all = Vec::new();
    for test in tests {
        all.extend(cases_of(test)?);
    }
    if all.is_empty() {
        let folder = folder.display();
        return Err(Failure::Input(format!(
            "ctest has no tests in {folder}; --test-dir says where"
        )));
    }
    let results = folder.join("foretell");
    let plan = arguments.cases.plan(results.clone(), results.join("schedules"));
    cases::run(all, &plan, output)
}

/// Properties that make something else of an exit status than success and failure.
const OTHER_VERDICTS: [&str; 4] =
    ["WILL_FAIL", "PASS_REGULAR_EXPRESSION", "FAIL_REGULAR_EXPRESSION", "SKIP_RETURN_CODE"];

/// What is run for one test of CTest's: nothing if it is disabled.
fn cases_of(test: &Value) -> Result<Vec<Case>, Failure> {
    let name = test["name"].as_str().unwrap_or_default();
    let property = |wanted: &str| {
        let mut all = test["properties"].as_array().into_iter().flatten();
        all.find(|property| property["name"] == wanted).map(|property| &property["value"])
    };
    if property("DISABLED").is_some_and(|value| *value == true) {
        return Ok(Vec::new());
    }
    let words = test["command"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<&str> = words.collect();
    let Some((program, rest)) = words.split_first() else {
        return Err(Failure::Input(format!("the test {name} has no program; build it first")));
    };
    let variables = property("ENVIRONMENT").and_then(Value::as_array).into_iter().flatten();
    let variables = variables.filter_map(|value| value.as_str()?.split_once('='));
    let is_plain = !OTHER_VERDICTS.iter().any(|other| property(other).is_some());
    let whole = Case {
        target: name.to_owned(),
        program: PathBuf::from(program),
        arguments: rest.iter().map(Into::into).collect(),
        folder: property("WORKING_DIRECTORY").and_then(Value::as_str).map(PathBuf::from),
        environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        options: is_plain.then(|| "--is-test".into()).into_iter().collect(),
        ..Case::default()
    };
    let divided = match frameworks::of(Path::new(program)).filter(|_| rest.is_empty()) {
        Some(framework) => frameworks::cases(framework, Path::new(program))?,
        None => None,
    };
    let Some(divided) = divided else { return Ok(vec![whole]) };
    let one = |case: Case| Case { name: case.name, arguments: case.arguments, ..whole.clone() };
    Ok(divided.into_iter().map(one).collect())
}
