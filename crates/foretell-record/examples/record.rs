//! Records a program: `record TRACE POLICY PROG ARGS...`, and says how it went.

use foretell_record::{Policy, RecordOptions, record};

fn main() {
    let mut words = std::env::args().skip(1);
    let output = words.next().expect("a trace file");
    let policy = words.next().expect("a policy");
    let mut options = RecordOptions::new(words.next().expect("a program"), output);
    options.arguments = words.map(Into::into).collect();
    let mut parts = policy.split(':');
    let mut number = || parts.next().and_then(|part| part.parse().ok());
    options.policy = match policy.split(':').next() {
        Some("round-robin") => {
            number();
            Policy::RoundRobin { quantum: number().unwrap_or(10) as u32 }
        }
        Some("random") => {
            number();
            Policy::Random { seed: number().unwrap_or(1), mean: number().unwrap_or(10) as u32 }
        }
        _ => Policy::Os,
    };
    match record(&options) {
        Ok(outcome) => eprintln!("{outcome:?}"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
