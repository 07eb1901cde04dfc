//! Synthesised synchronisation as a patch of C and C++ source.
//!
//! A region of a trace becomes the statements of one block of one function: from the statement with the
//! region's first event, or with the call that leads to it, to the one with its last. Where control can
//! leave in between (`return`, `goto`, `break` of a loop around), where a function is called at several
//! places, or where two regions would nest, nothing is patched and the reason is given. A lock that the
//! program already holds there is used instead of a new one.
//!
//! The patch is text: whether it is right is shown by building it, recording it and predicting again.
//! What is guaranteed here is only that each lock that is taken is released at the end of the same
//! block.

pub mod diff;
mod held;
mod place;
pub mod source;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use foretell_neighbourhood::frames::Frames;
use foretell_neighbourhood::{Primitive, Region};
use foretell_trace::{EventId, Op, Trace};

use diff::Edit;
use place::Spot;
use source::Source;

/// A patched file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it says.
    pub old: String,
    /// What it should say.
    pub new: String,
}

impl PatchedFile {
    /// The change as a unified diff.
    pub fn diff(&self) -> String {
        let path = self.path.display().to_string();
        diff::unified(path.trim_start_matches('/'), &self.old, &self.new)
    }
}

/// What came of the primitives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// The files that change.
    pub files: Vec<PatchedFile>,
    /// By primitive that is not in the patch: its number and why.
    pub refused: Vec<(usize, String)>,
}

/// Which files may be patched: those below one of the directories, and those named as recorded.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Where relative names are looked up besides the current directory.
    pub directories: Vec<PathBuf>,
}

impl Sources {
    fn find(&self, name: &str) -> Option<PathBuf> {
        let name = Path::new(name);
        let here = [name.to_path_buf()].into_iter();
        let below = self.directories.iter().flat_map(|directory| {
            [Some(directory.join(name)), name.file_name().map(|file| directory.join(file))]
                .into_iter()
                .flatten()
        });
        here.chain(below).find(|path| path.is_file()).map(|path| {
            // one file has one name, relative to here where it lies below
            let full = path.canonicalize().unwrap_or(path);
            match std::env::current_dir() {
                Ok(here) => full.strip_prefix(&here).map(Path::to_path_buf).unwrap_or(full),
                Err(_) => full,
            }
        })
    }
}

/// A lock to be put around spots.
#[derive(Clone, Debug)]
struct Lock {
    /// The primitives that ask for it.
    numbers: Vec<usize>,
    readers_writer: bool,
    spots: Vec<(Spot, Vec<Region>)>,
}

/// What the locks that a patch adds are called.
const LOCK: &str = "foretell_lock";

/// What the semaphores that a patch adds are called.
const ORDER: &str = "foretell_order";

/// The source files that have a patch of ours which the recorded program did not have: the trace's
/// lines mean nothing in them.
pub fn patched_since(trace: &Trace, sources: &Sources) -> Vec<PathBuf> {
    let recorded = |name: &str| {
        let objects = trace.objects.iter().map(|object| &object.name);
        let variables = trace.variables.iter().map(|variable| &variable.name);
        objects.chain(variables).any(|known| known.starts_with(name))
    };
    let wanted: Vec<&str> = [LOCK, ORDER].into_iter().filter(|name| !recorded(name)).collect();
    let mut files: Vec<&str> = trace.sites.iter().map(|site| &*site.file).collect();
    files.sort_unstable();
    files.dedup();
    let mut found: Vec<PathBuf> = files.into_iter().filter_map(|file| sources.find(file)).collect();
    found.dedup();
    found.retain(|path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        wanted.iter().any(|name| text.contains(name))
    });
    found
}

/// Patches the sources with the primitives, whose events are the trace's.
pub fn patch(trace: &Trace, primitives: &[Primitive], sources: &Sources) -> Patch {
    let mut maker = Maker {
        trace,
        frames: Frames::new(trace),
        sources,
        files: BTreeMap::new(),
        edits: BTreeMap::new(),
        declared: BTreeMap::new(),
    };
    let mut patch = Patch::default();
    let mut locks: Vec<Lock> = Vec::new();
    for (number, primitive) in primitives.iter().enumerate() {
        match maker.lock_of(number, primitive) {
            Ok(Some(lock)) => locks.push(lock),
            Ok(None) => {
                if let Primitive::WaitNotify { waiter, notifier } = primitive {
                    if let Err(reason) = maker.wait(*waiter, *notifier) {
                        patch.refused.push((number, reason));
                    }
                } else {
                    let reason = "a barrier is not added automatically: only the author knows \
                                  how many threads meet at it";
                    patch.refused.push((number, reason.into()));
                }
            }
            Err(reason) => patch.refused.push((number, reason)),
        }
    }
    merge(&mut locks);
    for lock in &locks {
        if let Err(reason) = maker.place(lock) {
            patch.refused.extend(lock.numbers.iter().map(|&number| (number, reason.clone())));
        }
    }
    patch.files = maker.finish();
    patch
}

/// Locks around overlapping statements are one, around all of them.
fn merge(locks: &mut Vec<Lock>) {
    loop {
        let overlap = |a: &Lock, b: &Lock| {
            a.spots.iter().any(|(one, _)| b.spots.iter().any(|(two, _)| one.overlaps(two)))
        };
        let pair = (0..locks.len())
            .flat_map(|i| (i + 1..locks.len()).map(move |j| (i, j)))
            .find(|&(i, j)| overlap(&locks[i], &locks[j]));
        let Some((i, j)) = pair else { break };
        let other = locks.remove(j);
        locks[i].numbers.extend(other.numbers);
        locks[i].readers_writer &= other.readers_writer;
        locks[i].spots.extend(other.spots);
    }
    for lock in locks {
        lock.spots.sort();
        let mut joined: Vec<(Spot, Vec<Region>)> = Vec::new();
        for (spot, regions) in lock.spots.drain(..) {
            match joined.last_mut().filter(|(last, _)| last.overlaps(&spot)) {
                Some((last, of_last)) => {
                    if spot.last.1 > last.last.1 {
                        last.last = spot.last;
                    }
                    last.shared &= spot.shared;
                    of_last.extend(regions);
                }
                None => joined.push((spot, regions)),
            }
        }
        lock.spots = joined;
    }
}

struct Maker<'a> {
    trace: &'a Trace,
    frames: Frames,
    sources: &'a Sources,
    files: BTreeMap<PathBuf, Source>,
    edits: BTreeMap<PathBuf, Vec<Edit>>,
    /// Lines to be put behind the includes of a file.
    declared: BTreeMap<PathBuf, Vec<String>>,
}

impl Maker<'_> {
    fn lock_of(&mut self, number: usize, primitive: &Primitive) -> Result<Option<Lock>, String> {
        let (regions, readers_writer): (Vec<(Region, bool)>, bool) = match primitive {
            Primitive::Lock { regions } => (regions.iter().map(|&r| (r, false)).collect(), false),
            Primitive::SharedExclusiveLock { shared, exclusive } => (
                shared
                    .iter()
                    .map(|&region| (region, true))
                    .chain(exclusive.iter().map(|&region| (region, false)))
                    .collect(),
                true,
            ),
            Primitive::WaitNotify { .. } | Primitive::Barrier { .. } => return Ok(None),
        };
        let mut spots: Vec<(Spot, Vec<Region>)> = Vec::new();
        for (region, shared) in regions {
            let spot = self.spot(region, shared)?;
            if let Some(word) = self.files[&spot.file].waits(&spot.tokens()) {
                return Err(format!("`{word}` inside the region would wait with the lock held"));
            }
            match spots.iter_mut().find(|(other, _)| *other == spot) {
                Some((_, regions)) => regions.push(region),
                None => spots.push((spot, vec![region])),
            }
        }
        Ok(Some(Lock { numbers: vec![number], readers_writer, spots }))
    }

    /// Makes one statement wait until another has run; each of them runs once.
    fn wait(&mut self, waiter: EventId, notifier: EventId) -> Result<(), String> {
        let mut spots = Vec::new();
        for event in [waiter, notifier] {
            let site = self.trace.event(event).site;
            let alike = self.trace.events.iter().filter(|other| other.site == site);
            if alike.filter(|other| !matches!(other.op, Op::Call(_) | Op::Return)).count() > 1
                && self.runs_again(event)
            {
                return Err("a statement that runs several times cannot simply wait once".into());
            }
            let thread = self.trace.event(event).thread.index();
            spots.push(self.spot(Region { thread, first: event, last: event }, false)?);
        }
        let name = self.new_name(ORDER);
        let mut files = vec![spots[0].file.clone(), spots[1].file.clone()];
        files.dedup();
        for (number, file) in files.iter().enumerate() {
            let (prefix, values) = match (number, files.len()) {
                (0, 1) => ("static ", true),
                (0, _) => ("", true),
                _ => ("extern ", false),
            };
            let value = |value: &str| if values { format!(" = {value}") } else { String::new() };
            self.declared.entry(file.clone()).or_default().extend([
                format!(
                    "{prefix}pthread_mutex_t {name}_lock{};",
                    value("PTHREAD_MUTEX_INITIALIZER")
                ),
                format!("{prefix}pthread_cond_t {name}_done{};", value("PTHREAD_COND_INITIALIZER")),
                format!("{prefix}int {name}_is_done{};", value("0")),
            ]);
        }
        let wait = format!(
            "pthread_mutex_lock(&{name}_lock);\nwhile (!{name}_is_done)\n  \
             pthread_cond_wait(&{name}_done, &{name}_lock);\npthread_mutex_unlock(&{name}_lock);"
        );
        let notify = format!(
            "pthread_mutex_lock(&{name}_lock);\n{name}_is_done = 1;\n\
             pthread_cond_broadcast(&{name}_done);\npthread_mutex_unlock(&{name}_lock);"
        );
        self.surround(&spots[0], &wait, "");
        self.surround(&spots[1], "", &notify);
        Ok(())
    }

    /// Puts text before and after the statements of a spot, on lines of its own where it can.
    fn surround(&mut self, spot: &Spot, before: &str, after: &str) {
        let source = &self.files[&spot.file];
        let bytes = source.bytes(&spot.tokens());
        let line_begin = source.line_begin(source.line_of(bytes.start));
        let indent: String =
            source.text[line_begin..].chars().take_while(|c| *c == ' ' || *c == '\t').collect();
        let own_lines = |text: &str| -> String {
            text.lines().map(|line| format!("{indent}{line}\n")).collect()
        };
        let edits = self.edits.entry(spot.file.clone()).or_default();
        if !before.is_empty() {
            let alone = source.text[line_begin..bytes.start].trim().is_empty();
            edits.push(match alone {
                true => Edit { range: line_begin..line_begin, text: own_lines(before) },
                false => Edit {
                    range: bytes.start..bytes.start,
                    text: format!("{} ", before.replace('\n', " ")),
                },
            });
        }
        if !after.is_empty() {
            let line_end =
                source.text[bytes.end..].find('\n').map_or(source.text.len(), |at| bytes.end + at);
            let rest = source.text[bytes.end..line_end].trim();
            let alone = rest.is_empty() || rest.starts_with("//");
            edits.push(match alone && line_end < source.text.len() {
                true => Edit { range: line_end + 1..line_end + 1, text: own_lines(after) },
                false => Edit {
                    range: bytes.end..bytes.end,
                    text: format!(" {}", after.replace('\n', " ")),
                },
            });
        }
    }

    /// A name that no file has.
    fn new_name(&self, stem: &str) -> String {
        let taken = |name: &str| {
            self.files.values().any(|source| source.text.contains(name))
                || self.declared.values().flatten().any(|line| line.contains(name))
        };
        (1..)
            .map(|number| match number {
                1 => stem.to_string(),
                _ => format!("{stem}_{number}"),
            })
            .find(|name| !taken(name))
            .unwrap_or_default()
    }

    fn finish(mut self) -> Vec<PatchedFile> {
        for (path, lines) in std::mem::take(&mut self.declared) {
            let source = &self.files[&path];
            let (at, has_pthread) = declarations_at(&source.text);
            let mut text = String::new();
            if !has_pthread {
                text.push_str("#include <pthread.h>\n");
            }
            text.push('\n');
            for line in lines {
                text.push_str(&line);
                text.push('\n');
            }
            self.edits.entry(path).or_default().push(Edit { range: at..at, text });
        }
        let files = self.files;
        self.edits
            .into_iter()
            .map(|(path, edits)| {
                let old = files[&path].text.clone();
                PatchedFile { new: diff::apply(&old, &edits), old, path }
            })
            .collect()
    }
}

/// Without the bytes, and without the line where nothing else stands on it.
fn whole_lines(source: &Source, bytes: Range<usize>) -> Edit {
    let begin = source.line_begin(source.line_of(bytes.start));
    let end = source.text[bytes.end..].find('\n').map_or(source.text.len(), |at| bytes.end + at);
    let alone = source.text[begin..bytes.start].trim().is_empty()
        && source.text[bytes.end..end].trim().is_empty();
    let range = if alone { begin..(end + 1).min(source.text.len()) } else { bytes };
    Edit { range, text: String::new() }
}

/// Where declarations go: behind the last `#include` that no `#if` decides about; and is
/// `pthread.h` among those before?
fn declarations_at(text: &str) -> (usize, bool) {
    let (mut depth, mut at, mut has_pthread, mut begin) = (0, 0, false, 0);
    for line in text.split_inclusive('\n') {
        let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
        match directive {
            Some(rest) if rest.starts_with("if") => depth += 1,
            Some(rest) if rest.starts_with("endif") => depth -= 1,
            Some(rest) if rest.starts_with("include") && depth == 0 => {
                at = begin + line.len();
                has_pthread |= rest.contains("<pthread.h>");
            }
            _ => {}
        }
        begin += line.len();
    }
    (at, has_pthread)
}
