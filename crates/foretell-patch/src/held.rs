//! Locks that the program already holds, used instead of new ones.

use std::path::PathBuf;

use foretell_neighbourhood::Region;
use foretell_trace::{ObjectId, Op, SyncOp};

use super::diff::Edit;
use super::place::Spot;
use super::{Lock, Maker, whole_lines};

impl Maker<'_> {
    /// Where every spot goes from taking a lock to giving the same lock back, the steps in between
    /// that give it back and take it again go.
    pub(super) fn widen_sections(&mut self, lock: &Lock) -> bool {
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
    pub(super) fn use_held_lock(&mut self, lock: &Lock) -> bool {
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
}
