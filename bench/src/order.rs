//! The embedded solver against Z3 on the same formulas.

use foretell_solve::{Answer, Backend, Budget, solver};

use crate::measure::{children_seconds, cpu_seconds};
use crate::order_problems::{Questions, bank, counters, ordering};

/// Z3 gives up after this; its time is then a lower bound.
const PATIENCE: Budget = Budget { conflicts: 5_000 };

/// Prints CPU seconds of both, and the geometric mean of the ratios. `quick` leaves out Z3;
/// only problems whose name contains `name` are run.
pub fn run(quick: bool, name: &str) -> Result<(), String> {
    let mut families: Vec<Questions> = Vec::new();
    families.extend([50, 100, 250].map(|steps| ordering(steps, 20)));
    families.extend([4, 8, 16].map(|threads| bank(threads, true)));
    families.extend([3, 4, 5, 6].map(|threads| bank(threads, false)));
    for rounds in [4, 8, 16, 24, 32] {
        let [lost, harmless] = counters(rounds);
        families.push(lost);
        if rounds <= 24 {
            families.push(harmless);
        }
    }
    println!("{:24} {:>9} {:>9} {:>10} {:>9}  answers", "", "embedded", "z3", "ratio", "conflicts");
    let (mut logarithms, mut rows) = (0.0, 0);
    for questions in families.iter().filter(|questions| questions.name.contains(name)) {
        let (seconds, answers, conflicts) =
            measure(questions, &Backend::Embedded, Budget::default())?;
        if quick {
            println!(
                "{:24} {seconds:9.3} {:>9} {:>10} {conflicts:9}  {answers}",
                questions.name, "", ""
            );
            continue;
        }
        let (theirs, their_answers, _) = measure(questions, &Backend::Z3, PATIENCE)?;
        let agree = answers.chars().zip(their_answers.chars());
        for (ours, theirs) in agree {
            if ours != theirs && theirs != '?' && ours != '?' {
                return Err(format!("{}: {answers} and {their_answers}", questions.name));
            }
        }
        let at_least = if their_answers.contains('?') { ">" } else { "" };
        let ratio = theirs / seconds;
        logarithms += ratio.ln();
        rows += 1;
        println!(
            "{:24} {seconds:9.3} {at_least:>2}{theirs:7.2} {at_least:>2}{ratio:8.1} {conflicts:9}  {answers}",
            questions.name
        );
    }
    if rows > 0 {
        println!("geometric mean of the ratios: {:.1}", (logarithms / f64::from(rows)).exp());
    }
    Ok(())
}

/// CPU seconds for all questions, encoding included, and a letter for each answer.
fn measure(
    questions: &Questions,
    backend: &Backend,
    budget: Budget,
) -> Result<(f64, String, u64), String> {
    let start = cpu_seconds()? + children_seconds()?;
    let mut solver =
        solver(questions.problem.clone(), backend).map_err(|error| error.to_string())?;
    let mut answers = String::new();
    for assumptions in &questions.assumptions {
        answers.push(match solver.check(assumptions, budget) {
            Answer::Satisfiable(_) => 's',
            Answer::Unsatisfiable { .. } => 'u',
            Answer::Unknown(_) => '?',
        });
    }
    let conflicts = solver.statistics().conflicts;
    drop(solver);
    Ok((cpu_seconds()? + children_seconds()? - start, answers, conflicts))
}
