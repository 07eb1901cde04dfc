//! Synthesised synchronisation as a patch of C and C++ source.
//!
//! A region of a trace becomes the statements of one block of one function: from the statement with
//! the region's first event, or with the call that leads to it, to the one with its last. Where
//! control can leave in between (`return`, `goto`, `break` of a loop around), where a function is
//! called at several places, or where two regions would nest, nothing is patched and the reason is
//! said. A lock that the program already holds there is used rather than a new one.
//!
//! The patch is text: whether it is right is shown by building it, recording it and predicting
//! again. What is guaranteed here is only that each lock that is taken is given back at the end of
//! the same block.

pub mod diff;
pub mod source;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use foretell_neighbourhood::frames::{End, Frames};
use foretell_neighbourhood::{Primitive, Region};
use foretell_trace::{EventId, ObjectId, Op, SyncOp, Trace};

use diff::Edit;
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

/// Statements that a primitive is put around.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    file: PathBuf,
    first: (usize, usize),
    last: (usize, usize),
    /// Of a readers-writer lock: as a reader.
    shared: bool,
}

impl Spot {
    fn tokens(&self) -> Range<usize> {
        self.first.0..self.last.1
    }

    fn overlaps(&self, other: &Spot) -> bool {
        self.file == other.file
            && self.tokens().start < other.tokens().end
            && other.tokens().start < self.tokens().end
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
                    let reason = "a barrier is not written by itself: how many threads meet is \
                                  the program's to say";
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

    fn site(&self, event: EventId) -> Option<&foretell_trace::Site> {
        let site = self.trace.event(event).site?;
        Some(&self.trace.sites[site.index()]).filter(|site| site.line > 0)
    }

    fn open(&mut self, name: &str) -> Result<PathBuf, String> {
        let path = self
            .sources
            .find(name)
            .ok_or_else(|| format!("the source file `{name}` was not found; give its directory"))?;
        if !self.files.contains_key(&path) {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let source = Source::new(text)
                .ok_or_else(|| format!("{}: brackets do not match", path.display()))?;
            self.files.insert(path.clone(), source);
        }
        Ok(path)
    }

    /// The statements of a region.
    fn spot(&mut self, region: Region, shared: bool) -> Result<Spot, String> {
        let placement = self.frames.placement(region);
        let here = |end: &End| match end {
            End::Here(event) => Some(*event),
            End::CallOf { .. } => None,
        };
        // the function: of an event that lies in it, or of its call
        let known = here(&placement.begin).or(here(&placement.end)).or(placement.call);
        let site = known.and_then(|event| self.site(event)).cloned();
        let site = site.ok_or("the trace does not say where in the source it is")?;
        let function = match site.function.is_empty() {
            true => placement.function.clone().unwrap_or_default(),
            false => site.function.clone(),
        };
        let path = self.open(&site.file)?;
        let source = &self.files[&path];
        let body = source.body(&function, Some(site.line)).ok_or_else(|| {
            format!("the function `{function}` was not found once in {}", path.display())
        })?;
        let token = |end: &End, at_end: bool| -> Result<usize, String> {
            match end {
                End::Here(event) => {
                    let site = self
                        .site(*event)
                        .filter(|site| site.function.is_empty() || site.function == function);
                    let line = site
                        .map(|site| site.line)
                        .ok_or_else(|| format!("the region does not lie in `{function}` alone"))?;
                    let of_line = source.tokens_of_line(&body, line);
                    match (of_line.is_empty(), at_end) {
                        (true, _) => Err(format!("line {line} of {} is empty", path.display())),
                        (false, false) => Ok(of_line.start),
                        (false, true) => Ok(of_line.end - 1),
                    }
                }
                End::CallOf { function: called, .. } => {
                    match source.calls(&body, called).as_slice() {
                        [one] => Ok(*one),
                        [] => Err(format!("`{function}` does not call `{called}` by its name")),
                        _ => Err(format!("`{function}` calls `{called}` at several places")),
                    }
                }
            }
        };
        let (first, last) = (token(&placement.begin, false)?, token(&placement.end, true)?);
        let (first, last) = (first.min(last), first.max(last));
        let (first, last) = match self.frames.crosses_iterations(self.trace, region) {
            false => source
                .statements_around(&body, first, last)
                .ok_or_else(|| format!("the statements of `{function}` were not understood"))?,
            // What begins in one iteration and ends in another is the loop as a whole.
            true => {
                let whole = source.loop_around(&body, first, last).ok_or_else(|| {
                    format!("the region spans iterations of a loop that is not in `{function}`")
                })?;
                (whole.clone(), whole)
            }
        };
        if source.follows_pragma(first.start) {
            return Err(format!("a `#pragma` stands before the region in `{function}`"));
        }
        if let Some(word) = source.leaves(&(first.start..last.end)) {
            return Err(format!("`{word}` leaves the region in `{function}`"));
        }
        Ok(Spot {
            file: path,
            first: (first.start, first.end),
            last: (last.start, last.end),
            shared,
        })
    }

    /// Puts a lock around its spots: one of the program's, made longer, or a new one.
    fn place(&mut self, lock: &Lock) -> Result<(), String> {
        for (spot, regions) in &lock.spots {
            for other in lock.spots.iter().map(|(other, _)| other).filter(|&other| other != spot) {
                if let Some(function) = self.runs_inside(regions, other) {
                    return Err(format!("`{function}` has a region and is called inside another"));
                }
            }
        }
        if !lock.readers_writer && (self.widen_sections(lock) || self.use_held_lock(lock)) {
            return Ok(());
        }
        let files: Vec<PathBuf> = {
            let mut files: Vec<PathBuf> =
                lock.spots.iter().map(|(spot, _)| spot.file.clone()).collect();
            files.dedup();
            files
        };
        let name = self.new_name(LOCK);
        let (kind, value) = match lock.readers_writer {
            false => ("pthread_mutex_t", "PTHREAD_MUTEX_INITIALIZER"),
            true => ("pthread_rwlock_t", "PTHREAD_RWLOCK_INITIALIZER"),
        };
        for (number, file) in files.iter().enumerate() {
            let line = match (number, files.len()) {
                (0, 1) => format!("static {kind} {name} = {value};"),
                (0, _) => format!("{kind} {name} = {value};"),
                _ => format!("extern {kind} {name};"),
            };
            self.declared.entry(file.clone()).or_default().push(line);
        }
        for (spot, _) in &lock.spots {
            let (take, give) = match (lock.readers_writer, spot.shared) {
                (false, _) => ("pthread_mutex_lock", "pthread_mutex_unlock"),
                (true, true) => ("pthread_rwlock_rdlock", "pthread_rwlock_unlock"),
                (true, false) => ("pthread_rwlock_wrlock", "pthread_rwlock_unlock"),
            };
            self.surround(spot, &format!("{take}(&{name});"), &format!("{give}(&{name});"));
        }
        Ok(())
    }

    /// A function with a spot whose code runs inside one of the regions.
    fn runs_inside(&self, regions: &[Region], spot: &Spot) -> Option<String> {
        let source = &self.files[&spot.file];
        let bytes = source.bytes(&spot.tokens());
        let lines = source.line_of(bytes.start)..=source.line_of(bytes.end);
        for region in regions {
            let thread = self.trace.event(region.first).thread;
            let events = region.first.index()..=region.last.index();
            for event in events.map(EventId::from) {
                if self.trace.event(event).thread != thread {
                    continue;
                }
                if let Some(site) = self.site(event)
                    && lines.contains(&(site.line as usize))
                    && self.sources.find(&site.file).as_ref() == Some(&spot.file)
                {
                    return Some(site.function.to_string());
                }
            }
        }
        None
    }

    /// Where every spot goes from taking a lock to giving the same lock back, the steps in between
    /// that give it back and take it again go.
    fn widen_sections(&mut self, lock: &Lock) -> bool {
        let mut edits: Vec<(PathBuf, Edit)> = Vec::new();
        let mut wanted: Option<String> = None;
        for (spot, _) in &lock.spots {
            let source = &self.files[&spot.file];
            let first = source.squeezed(&(spot.first.0..spot.first.1));
            let last = source.squeezed(&(spot.last.0..spot.last.1));
            let argument = |text: &str, call: &str| {
                let inner = text.strip_prefix(call)?.strip_prefix('(')?;
                inner.strip_suffix(");").map(str::to_string)
            };
            let taken = argument(&first, "pthread_mutex_lock");
            if taken.is_none() || taken != argument(&last, "pthread_mutex_unlock") {
                return false;
            }
            if wanted.get_or_insert_with(|| taken.clone().unwrap_or_default())
                != taken.as_ref().unwrap_or(&first)
            {
                return false;
            }
            let mut at = spot.first.1;
            while at < spot.last.0 {
                let Some(end) = source.statement_end(at, spot.last.0) else { return false };
                let text = source.squeezed(&(at..end));
                if text == first || text == last {
                    let bytes = source.bytes(&(at..end));
                    edits.push((spot.file.clone(), whole_lines(source, bytes)));
                } else if text.contains(first.trim_end_matches(';'))
                    || text.contains(last.trim_end_matches(';'))
                {
                    return false; // taken or given back on some paths only
                }
                at = end;
            }
        }
        if edits.is_empty() {
            return false;
        }
        for (file, edit) in edits {
            self.edits.entry(file).or_default().push(edit);
        }
        true
    }

    /// Where some of the spots run under a lock of the program and the others have nothing to do with
    /// it, the others take it.
    fn use_held_lock(&mut self, lock: &Lock) -> bool {
        let all: Vec<&Region> = lock.spots.iter().flat_map(|(_, regions)| regions).collect();
        let mut candidates: Vec<ObjectId> =
            all.iter().flat_map(|region| self.held_over(**region)).collect();
        candidates.sort();
        candidates.dedup();
        for object in candidates {
            let name = self.trace.objects[object.index()].name.clone();
            let missing: Vec<&Spot> = lock
                .spots
                .iter()
                .filter(|(_, regions)| {
                    !regions.iter().all(|&region| self.held_over(region).contains(&object))
                })
                .map(|(spot, _)| spot)
                .collect();
            let untouched = lock.spots.iter().all(|(spot, regions)| {
                !missing.contains(&spot)
                    || regions.iter().all(|&region| !self.touches(region, object))
            });
            let declared = missing.iter().all(|spot| {
                let source = &self.files[&spot.file];
                (1..source.tokens.len()).any(|at| {
                    source.word(at) == name.as_ref()
                        && source.word(at - 1) == "pthread_mutex_t"
                        && source.word(at + 1) != "["
                })
            });
            if untouched && declared {
                let missing: Vec<Spot> = missing.into_iter().cloned().collect();
                for spot in &missing {
                    let (take, give) = (
                        format!("pthread_mutex_lock(&{name});"),
                        format!("pthread_mutex_unlock(&{name});"),
                    );
                    self.surround(spot, &take, &give);
                }
                return true;
            }
        }
        false
    }

    /// Mutexes that the thread holds from before the region to after it.
    fn held_over(&self, region: Region) -> Vec<ObjectId> {
        let thread = self.trace.event(region.first).thread;
        let mut held: Vec<ObjectId> = Vec::new();
        for (number, event) in self.trace.events[..=region.last.index()].iter().enumerate() {
            if event.thread != thread {
                continue;
            }
            match &event.op {
                Op::Sync(lock, SyncOp::Acquire(_)) if number < region.first.index() => {
                    held.push(*lock)
                }
                Op::Sync(released, SyncOp::Release(_)) => held.retain(|lock| lock != released),
                Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) if number < region.first.index() => {
                    held.push(*mutex)
                }
                Op::Sync(_, SyncOp::WaitBegin { mutex, .. }) => held.retain(|lock| lock != mutex),
                _ => {}
            }
        }
        held
    }

    /// Is the lock taken, given back or held anywhere in the region?
    fn touches(&self, region: Region, lock: ObjectId) -> bool {
        let thread = self.trace.event(region.first).thread;
        let mut held = 0;
        for (number, event) in self.trace.events[..=region.last.index()].iter().enumerate() {
            if event.thread != thread {
                continue;
            }
            let inside = number >= region.first.index();
            let change = match &event.op {
                Op::Sync(taken, SyncOp::Acquire(_)) if *taken == lock => 1,
                Op::Sync(released, SyncOp::Release(_)) if *released == lock => -1,
                Op::Sync(_, SyncOp::WaitEnd { mutex, .. }) if *mutex == lock => 1,
                Op::Sync(_, SyncOp::WaitBegin { mutex, .. }) if *mutex == lock => -1,
                _ => 0,
            };
            held += change;
            if inside && (held > 0 || change != 0) {
                return true;
            }
        }
        false
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

    /// Does the event's place run again, in this thread or another?
    fn runs_again(&self, event: EventId) -> bool {
        let this = self.trace.event(event);
        let same_op = |other: &foretell_trace::Event| {
            other.site == this.site
                && std::mem::discriminant(&other.op) == std::mem::discriminant(&this.op)
        };
        self.trace.events.iter().filter(|other| same_op(other)).count() > 1
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
