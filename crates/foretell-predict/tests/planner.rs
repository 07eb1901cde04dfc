//! The planning engine against the paper's example, brute force, and other planners.

use std::path::PathBuf;

use foretell_model::brute::Interleavings;
use foretell_model::ctp::{ConcurrentTraceProgram, Role};
use foretell_model::validate::Configuration;
use foretell_predict::planner::goal::Formula;
use foretell_predict::planner::{
    CompiledGoal, Engine, Outcome, PlanOptions, Planner, PlannerOptions, predict,
};
use foretell_predict::{AccessPattern, FindingKind, Model, Options, PatternKind, Status};
use foretell_testing::machine::random_trace;
use foretell_trace::format::text;
use foretell_trace::{EventId, Op, Trace, Value};

/// Fig. 1(a) of 003, whose plan stands in section 4.4.
const FIGURE_1: &str = "\
foretell-trace 1
observed
thread T1, T2
var x = 7, flag = 0
e1: T1 read x = 7
T1 write flag = 1
e2: T1 read x = 7
T2 read flag = 1
f: T2 write x = 8
";

fn trace(text: &str) -> Trace {
    text::read(text).expect("a well-formed trace")
}

fn goal(trace: &Trace, text: &str) -> CompiledGoal {
    CompiledGoal::new(trace, &Formula::parse(text).unwrap()).unwrap()
}

fn plan_names(text: &str, wanted: &str) -> Option<String> {
    let trace = trace(text);
    let planner = Planner::new(&trace).unwrap();
    match planner.plan(&goal(&trace, wanted), &PlanOptions::default()) {
        Outcome::Plan(plan) => Some(planner.names(&plan.actions).join(" ")),
        Outcome::NoPlan => None,
        Outcome::Unknown => panic!("a small problem is decided"),
    }
}

#[test]
fn figure_1_has_the_plan_of_section_4_4() {
    let plan = plan_names(FIGURE_1, "F(e1 & X F(f & !O e2))");
    assert_eq!(plan.as_deref(), Some("Ac1,1 Ac1,2 Ac2,1 Ac2,2"));
}

#[test]
fn without_looking_at_data_the_plan_is_the_infeasible_one_of_figure_1b() {
    let trace = trace(FIGURE_1);
    let planner = Planner::new(&trace).unwrap();
    let options = PlanOptions { with_data: false, ..PlanOptions::default() };
    let Outcome::Plan(plan) = planner.plan(&goal(&trace, "three(e1, f, e2)"), &options) else {
        panic!("a lock-valid run exists")
    };
    assert_eq!(planner.names(&plan.actions).join(" "), "Ac1,1 Ac2,1 Ac2,2");
}

#[test]
fn a_lock_over_the_block_leaves_no_plan() {
    let locked = "\
foretell-trace 1
observed
thread T1, T2
var x = 0
mutex m
T1 acquire m
e1: T1 read x = 0
e2: T1 write x = 1
T1 release m
T2 acquire m
f: T2 write x = 5
T2 release m
";
    assert_eq!(plan_names(locked, "three(e1, f, e2)"), None);
    let unlocked = locked.replace("T2 acquire m\n", "").replace("T2 release m\n", "");
    assert_eq!(plan_names(&unlocked, "three(e1, f, e2)").as_deref(), Some("Ac1,2 Ac2,1"));
}

#[test]
fn the_last_read_may_see_another_value() {
    let text = "\
foretell-trace 1
observed
thread T1, T2
var x = 0
e1: T1 write x = 1
e2: T1 write x = 2
f: T2 read x = 2
";
    assert_eq!(plan_names(text, "three(e1, f, e2)").as_deref(), Some("Ac1,1 Ac2,1"));
}

/// Mozilla's `cache->table` and `cache->empty`: each variable alone is fine, together they are torn
/// (the limit of three-access patterns that 002 names).
#[test]
fn two_variables_can_be_torn_where_each_alone_is_not() {
    let text = "\
foretell-trace 1
observed
thread flusher, reader
var table = 1, empty = 0
mutex t, e
flusher acquire t
a: flusher write table = 0
flusher release t
flusher acquire e
b: flusher write empty = 1
flusher release e
reader acquire t
c: reader read table = 0
reader release t
reader acquire e
d: reader read empty = 1
reader release e
";
    assert!(plan_names(text, "twovars(a, c, d, b)").is_some());
    assert!(plan_names(text, "cross(a, c, b, d)").is_some());
    let one_lock =
        text.replace("release t\nflusher acquire e", "fence seq_cst\nflusher fence seq_cst");
    let one_lock =
        one_lock.replace("release t\nreader acquire e", "fence seq_cst\nreader fence seq_cst");
    let one_lock = one_lock.replace("release e", "release t");
    assert_eq!(plan_names(&one_lock, "twovars(a, c, d, b)"), None);
}

#[test]
fn use_before_definition_and_lock_order_deadlock_are_goals_too() {
    let order = "\
foretell-trace 1
observed
thread init, user
var pointer = 0
define: init write pointer = 1
use: user read pointer = 1
";
    assert_eq!(plan_names(order, "order(use, define)").as_deref(), Some("Ac2,1"));
    let deadlock = "\
foretell-trace 1
observed
thread A, B
mutex l, m
A acquire l
a: A acquire m
A release m
A release l
B acquire m
b: B acquire l
B release l
B release m
";
    assert_eq!(plan_names(deadlock, "deadlock(a, b)").as_deref(), Some("Ac1,1 Ac2,1"));
    let gate = deadlock
        .replace("mutex l, m", "mutex l, m, gate")
        .replace("A acquire l\n", "A acquire gate\nA acquire l\n")
        .replace("B acquire m\n", "B acquire gate\nB acquire m\n")
        .replace("A release l\n", "A release l\nA release gate\n")
        .replace("B release m\n", "B release m\nB release gate\n");
    assert_eq!(plan_names(&gate, "deadlock(a, b)"), None);
}

/// What an engine says about a goal: the paper's names of the events of its run.
fn answer(trace: &Trace, engine: Engine, goal: &str) -> Result<Option<String>, String> {
    let options = PlannerOptions {
        engine,
        common: Options { model: Model::Causal, ..Options::default() },
        goals: vec![goal.into()],
        ..PlannerOptions::default()
    };
    let prediction = predict(trace, &options).map_err(|error| error.to_string())?;
    assert_eq!(prediction.internal_errors, Vec::<String>::new());
    let Some(finding) = prediction.findings.first() else { return Ok(None) };
    match &finding.status {
        Status::Predicted => {
            let schedule = finding.schedule.as_ref().expect("a prediction has a schedule");
            let order: Vec<EventId> = schedule.events().collect();
            Ok(Some(Planner::new(trace).unwrap().names(&order).join(" ")))
        }
        Status::Unknown(why) => Err(why.to_string()),
    }
}

#[test]
fn the_solver_engine_finds_the_plan_of_section_4_4_too() {
    let trace = trace(FIGURE_1);
    for engine in [Engine::Solver, Engine::Planner, Engine::Combined] {
        let run = answer(&trace, engine, "F(e1 & X F(f & !O e2))");
        assert_eq!(run, Ok(Some("Ac1,1 Ac1,2 Ac2,1 Ac2,2".into())), "{engine}");
    }
}

#[test]
fn a_lock_valid_run_is_shown_as_to_be_tried() {
    let trace = trace(FIGURE_1);
    let run = answer(&trace, Engine::Lockset, "three(e1, f, e2)");
    assert_eq!(run, Err("lock-valid only: to be tried by execution".into()));
}

#[test]
fn goals_outside_of_the_fragment_are_left_to_the_planner() {
    let trace = trace(FIGURE_1);
    for goal in ["e1 U f", "F(e1 & X f)", "G(e1 | f)", "e1"] {
        let refused = answer(&trace, Engine::Solver, goal).unwrap_err();
        assert!(refused.contains("use --engine planner"), "{goal}: {refused}");
    }
    let unknown = answer(&trace, Engine::Solver, "order(f, nobody)").unwrap_err();
    assert!(unknown.contains("there is no event `nobody`"), "{unknown}");
}

#[test]
fn the_engines_find_the_candidates_of_a_trace_by_themselves() {
    let trace = trace(
        "\
foretell-trace 1
observed
thread T1, T2
var x = 0
T1 region block
T1 read x = 0
T1 write x = 1
T1 region-end
T2 write x = 5
",
    );
    for engine in [Engine::Planner, Engine::Combined, Engine::Lockset] {
        let options = PlannerOptions {
            engine,
            common: Options { properties: vec![FindingKind::Atomicity], ..Options::default() },
            ..PlannerOptions::default()
        };
        let prediction = predict(&trace, &options).unwrap();
        assert_eq!(prediction.internal_errors, Vec::<String>::new());
        let [finding] = &prediction.findings[..] else { panic!("{engine}: one finding") };
        assert_eq!(finding.pattern, Some(PatternKind::Rww));
        assert_eq!(finding.status == Status::Predicted, engine != Engine::Lockset);
        assert_eq!(finding.schedule.as_ref().map(|schedule| schedule.order.len()), Some(3));
    }
}

/// Planner and solver with the causal model agree, also on goals with other shapes.
#[test]
fn planner_and_solver_agree_on_random_traces() {
    let (mut feasible, mut infeasible) = (0, 0);
    for seed in 0..cases() / 6 {
        let mut trace = random_trace(seed);
        trace.metadata.symbolic = false;
        if Planner::new(&trace).is_err() {
            continue;
        }
        for (number, pattern) in patterns(&trace).iter().take(4).enumerate() {
            let name = |event: EventId| {
                let event = trace.event(event);
                format!("{}#{}", trace.threads[event.thread.index()].name, event.index)
            };
            let [a, c, b] = [pattern.first, pattern.remote, pattern.second].map(name);
            let goal = match number {
                0 | 1 => format!("three({a}, {c}, {b})"),
                2 => format!("order({c}, {a})"),
                _ => format!("cross({a}, {c}, {b}, {c})"),
            };
            let planner = answer(&trace, Engine::Planner, &goal);
            let solver = answer(&trace, Engine::Solver, &goal);
            let (Ok(planner), Ok(solver)) = (planner, solver) else { continue };
            if planner.is_some() != solver.is_some() {
                let mut shown = Vec::new();
                text::write(&trace, &mut shown).unwrap();
                panic!(
                    "seed {seed}, {goal}: planner {planner:?}, solver {solver:?}\n{}",
                    String::from_utf8_lossy(&shown)
                );
            }
            *(if planner.is_some() { &mut feasible } else { &mut infeasible }) += 1;
        }
    }
    assert!(feasible > 20 && infeasible > 20, "{feasible} feasible, {infeasible} not");
}

/// Every triple of accesses that could be a pattern: two of one thread, one of another.
fn patterns(trace: &Trace) -> Vec<AccessPattern> {
    let accesses: Vec<EventId> = (0..trace.events.len())
        .map(EventId::from)
        .filter(|&event| {
            matches!(trace.event(event).op, Op::Read(_) | Op::Write(_) | Op::ReadModifyWrite(_))
        })
        .collect();
    let thread = |event: EventId| trace.event(event).thread;
    let mut patterns = Vec::new();
    for &first in &accesses {
        for &second in accesses.iter().filter(|&&e| e > first && thread(e) == thread(first)) {
            for &remote in accesses.iter().filter(|&&e| thread(e) != thread(first)) {
                // The kind does not matter to the planner.
                patterns.push(AccessPattern { first, remote, second, kind: PatternKind::Rwr });
            }
        }
    }
    patterns
}

/// Is there a precisely predictable run? By trying them all.
fn brute_force(ctp: &ConcurrentTraceProgram, pattern: &AccessPattern) -> Option<bool> {
    let event = |origin: EventId| {
        let found = ctp.events.iter().position(|event| event.origin == origin);
        EventId::from(found.expect("every event is modelled"))
    };
    let (first, remote, second) =
        (event(pattern.first), event(pattern.remote), event(pattern.second));
    let interleavings = Interleavings::new(ctp);
    let interpreter = interleavings.interpreter().clone();
    let thread = ctp.events[remote.index()].thread;
    let state = ctp.variables.iter().position(|v| v.role == Role::ThreadState(thread));
    let started = |at: &Configuration| {
        state.is_none_or(|state| !matches!(at.values[state], Value::BitVec { bits: 0, .. }))
    };
    // The remote access is next; whatever value it meets, it can take place.
    let reached = interleavings.reach(|at| {
        interpreter.is_executed(at, first)
            && !interpreter.is_executed(at, second)
            && interpreter.next_event(at, thread) == Some(remote)
            && started(at)
    });
    Some(reached.ok()?.is_some())
}

fn cases() -> u64 {
    std::env::var("FORETELL_PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(6_000)
}

#[test]
fn plans_exist_just_where_brute_force_finds_a_run() {
    let (mut feasible, mut infeasible) = (0, 0);
    for seed in 0..cases() {
        let mut trace = random_trace(seed);
        trace.metadata.symbolic = false;
        let Ok(planner) = Planner::new(&trace) else { continue };
        let ctp = ConcurrentTraceProgram::build(&trace).expect("the trace ran");
        for pattern in patterns(&trace).iter().take(12) {
            let Some(expected) = brute_force(&ctp, pattern) else { continue };
            let outcome = planner.plan(&CompiledGoal::of_pattern(pattern), &PlanOptions::default());
            let found = matches!(outcome, Outcome::Plan(_));
            if found != expected || outcome == Outcome::Unknown {
                let mut shown = Vec::new();
                text::write(&trace, &mut shown).unwrap();
                panic!(
                    "seed {seed}, {pattern:?}: planner says {outcome:?}, brute force {expected}\n{}",
                    String::from_utf8_lossy(&shown)
                );
            }
            *(if expected { &mut feasible } else { &mut infeasible }) += 1;
        }
    }
    assert!(feasible > 100 && infeasible > 100, "{feasible} feasible, {infeasible} not");
}

/// The Python environment that `scripts/planners.sh` makes, with planners from PyPI.
fn planners() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bin = root.join("target/planners/bin");
    if bin.join("python").exists() {
        return Some(bin);
    }
    eprintln!("SKIPPED: no other planners here; `scripts/planners.sh` installs them from PyPI");
    None
}

fn fast_downward(bin: &std::path::Path) -> String {
    let find = "import importlib.util as u; \
                print(u.find_spec(\"up_fast_downward\").submodule_search_locations[0])";
    let script = format!("$(python -c '{find}')/downward/fast-downward.py");
    format!(
        "PATH={}:$PATH; python {script} --plan-file {{plan}} {{domain}} {{problem}} \
         --search 'lazy_greedy([ff()], preferred=[ff()])'",
        bin.display()
    )
}

#[test]
fn fast_downward_reads_the_pddl_and_finds_the_same_plan() {
    let Some(bin) = planners() else { return };
    let trace = trace(FIGURE_1);
    let planner = Planner::new(&trace).unwrap();
    let goal = goal(&trace, "three(e1, f, e2)");
    let options = PlanOptions::default();
    let problem = planner.pddl(&goal, &options).unwrap();
    let directory = std::env::temp_dir().join(format!("foretell-fd-{}", std::process::id()));
    let answer = planner.ask(&problem, &goal, &options, &fast_downward(&bin), &directory).unwrap();
    assert_eq!(
        answer.map(|plan| planner.names(&plan.actions).join(" ")),
        Ok("Ac1,1 Ac1,2 Ac2,1 Ac2,2".into())
    );
    let _ = std::fs::remove_dir_all(&directory);
}

/// The export says the same as the embedded planner: on random traces, Fast Downward finds a plan
/// just where we do, and our check accepts it.
#[test]
fn fast_downward_agrees_on_random_traces() {
    let Some(bin) = planners() else { return };
    let command = fast_downward(&bin);
    let directory = std::env::temp_dir().join(format!("foretell-fdr-{}", std::process::id()));
    let (mut plans, mut none) = (0, 0);
    for seed in 0.. {
        let mut trace = random_trace(seed);
        trace.metadata.symbolic = false;
        let Ok(planner) = Planner::new(&trace) else { continue };
        let options = PlanOptions::default();
        let has_plan = |pattern: &AccessPattern| {
            matches!(planner.plan(&CompiledGoal::of_pattern(pattern), &options), Outcome::Plan(_))
        };
        let wanted = plans < none;
        let Some(pattern) = patterns(&trace).into_iter().find(|p| has_plan(p) == wanted) else {
            continue;
        };
        let goal = CompiledGoal::of_pattern(&pattern);
        let Ok(problem) = planner.pddl(&goal, &options) else { continue };
        let ours = wanted;
        let theirs = planner.ask(&problem, &goal, &options, &command, &directory).unwrap();
        assert_eq!(theirs.is_ok(), ours, "seed {seed}, {pattern:?}: {theirs:?}");
        *(if ours { &mut plans } else { &mut none }) += 1;
        if plans >= 6 && none >= 6 {
            break;
        }
        assert!(seed < 400, "{plans} plans, {none} without");
    }
    let _ = std::fs::remove_dir_all(&directory);
}
