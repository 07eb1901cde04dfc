//! CPU time and peak memory of this process, from `/proc`.

use std::fs;

/// CPU time that the calling process has used so far, in seconds. (The first thread's, to the
/// nanosecond; the benchmarks have one thread.)
pub fn cpu_seconds() -> Result<f64, String> {
    let text = read("/proc/self/schedstat")?;
    let nanoseconds = text.split_whitespace().next().and_then(|field| field.parse::<f64>().ok());
    nanoseconds.map(|nanoseconds| nanoseconds / 1e9).ok_or("no time in /proc/self/schedstat".into())
}

/// CPU time of the child processes that ended and were waited for, in seconds (hundredths).
pub fn children_seconds() -> Result<f64, String> {
    let text = read("/proc/self/stat")?;
    // behind the program's name, which may contain anything: state is the third field
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let times: Vec<f64> = fields.skip(13).take(2).filter_map(|field| field.parse().ok()).collect();
    match times[..] {
        [user, system] => Ok((user + system) / 100.0),
        _ => Err("no times of children in /proc/self/stat".into()),
    }
}

/// The most memory that this process has had resident so far, in MiB.
pub fn peak_mebibytes() -> Result<f64, String> {
    let text = read("/proc/self/status")?;
    text.lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kibibytes| kibibytes.parse::<f64>().ok())
        .map(|kibibytes| kibibytes / 1024.0)
        .ok_or("no VmHWM in /proc/self/status".into())
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))
}
