//! Explanations of whole traces: the paper's examples, traces on which TARA errs, TARA's own
//! benchmarks, and random traces against brute force.

mod brute;
mod corner;
mod expected;
mod finding;
mod ordered;
mod paper;
mod random;
mod regions;

use foretell_neighbourhood::{Explanation, Options, Primitive, explain};
use foretell_trace::{EventId, Trace};

/// Reads CTRC text.
fn ctrc(text: &str) -> Trace {
    foretell_trace::format::ctrc::read(text).expect("valid CTRC")
}

/// A trace of ours.
fn data(name: &str) -> Trace {
    let path = format!("{}/tests/data/{name}.ctrc", env!("CARGO_MANIFEST_DIR"));
    ctrc(&std::fs::read_to_string(&path).expect("a file of this crate"))
}

fn explained(trace: &Trace) -> Explanation {
    explain(trace, &Options::default()).expect("a trace with a model")
}

fn names(trace: &Trace, events: &[EventId]) -> Vec<String> {
    events.iter().map(|&event| trace.event_name(event)).collect()
}

/// Primitives as the paper writes them.
fn primitives(trace: &Trace, explanation: &Explanation) -> Vec<String> {
    let name = |event| trace.event_name(event);
    let synthesis = explanation.synthesis.as_ref().expect("a fix");
    synthesis
        .primitives
        .iter()
        .map(|primitive| match primitive {
            Primitive::Lock { regions } => {
                let regions: Vec<String> = regions
                    .iter()
                    .map(|region| format!("{}:{}", name(region.first), name(region.last)))
                    .collect();
                format!("Lk({})", regions.join(", "))
            }
            Primitive::WaitNotify { waiter, notifier } => {
                format!("WaitNotify({}, {})", name(*waiter), name(*notifier))
            }
            Primitive::Barrier { events } => {
                format!("Barrier({})", names(trace, events).join(", "))
            }
            Primitive::SharedExclusiveLock { shared, exclusive } => {
                format!("ShExLock({} {})", shared.len(), exclusive.len())
            }
        })
        .collect()
}
