//! Where in the source a region lies: the statements of one block of one function.

use std::ops::Range;
use std::path::PathBuf;

use foretell_neighbourhood::Region;
use foretell_neighbourhood::frames::End;
use foretell_trace::EventId;

use super::source::Source;
use super::{LOCK, Lock, Maker};

/// Statements that a primitive is put around.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) file: PathBuf,
    pub(super) first: (usize, usize),
    pub(super) last: (usize, usize),
    /// Of a readers-writer lock: as a reader.
    pub(super) shared: bool,
}

impl Spot {
    pub(super) fn tokens(&self) -> Range<usize> {
        self.first.0..self.last.1
    }

    pub(super) fn overlaps(&self, other: &Spot) -> bool {
        self.file == other.file
            && self.tokens().start < other.tokens().end
            && other.tokens().start < self.tokens().end
    }
}

impl Maker<'_> {
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
    pub(super) fn spot(&mut self, region: Region, shared: bool) -> Result<Spot, String> {
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
            format!("not exactly one definition of `{function}` was found in {}", path.display())
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
    pub(super) fn place(&mut self, lock: &Lock) -> Result<(), String> {
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

    /// Does the event's place run again, in this thread or another?
    pub(super) fn runs_again(&self, event: EventId) -> bool {
        let this = self.trace.event(event);
        let same_op = |other: &foretell_trace::Event| {
            other.site == this.site
                && std::mem::discriminant(&other.op) == std::mem::discriminant(&this.op)
        };
        self.trace.events.iter().filter(|other| same_op(other)).count() > 1
    }
}
