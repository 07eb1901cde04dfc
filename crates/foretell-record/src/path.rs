//! Execution paths (002, "Execution Path Analysis"): did two runs of a program take the same
//! branches, and where did they first part?
//!
//! A path has the branches of each thread in order, as the mispredictions of the predictor in
//! `foretell_wire::predictor`, which has them all back. Two runs of the same build are compared
//! thread by thread, threads told by their creation path. What is not seen: branches of code that
//! was not compiled by `foretell cc`, and of libraries in a binary; two branches that debug information
//! puts at the same line and column count as one.

use std::collections::HashMap;
use std::fmt;

use foretell_trace::Site;
use foretell_trace::schedule::CreationPath;
use foretell_wire::predictor::{Branch, Predictor};

use crate::limits::MOST_MISPREDICTIONS;

/// The branches of a run.
#[derive(Clone, Debug, Default)]
pub struct ExecutionPath {
    threads: Vec<ThreadPath>,
    sites: HashMap<u64, Site>,
    kept: usize,
}

/// The branches of a thread.
#[derive(Clone, Debug, Default)]
struct ThreadPath {
    thread: CreationPath,
    /// How many branches were predicted before each that was not, and that one.
    missed: Vec<(u64, Branch)>,
    /// Predicted branches after the last of `missed`, once the end is known.
    rest: Option<u64>,
    /// Mispredictions were left out: all after `missed` is unknown.
    cut: bool,
}

/// A branch and how it came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchTaken {
    /// Where.
    pub site: Site,
    /// 0 and 1 for branches; for switches the number of the case, 0 for none.
    pub outcome: u16,
}

impl fmt::Display for BranchTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site { file, line, column, function } = &self.site;
        if *line > 0 {
            write!(f, "{file}:{line}:{column} in ")?;
        }
        write!(f, "{function} went {}", self.outcome)
    }
}

/// Where the paths of a thread part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathDifference {
    /// The thread.
    pub thread: CreationPath,
    /// How many branches the thread took alike before.
    pub alike: u64,
    /// What the first run did next; `None`: the thread ended, or there was none.
    pub first: Option<BranchTaken>,
    /// What the second run did next.
    pub second: Option<BranchTaken>,
}

impl fmt::Display for PathDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |branch: &Option<BranchTaken>| match branch {
            Some(branch) => branch.to_string(),
            None => "nothing more".into(),
        };
        let Self { thread, alike, first, second } = self;
        let (first, second) = (shown(first), shown(second));
        write!(f, "thread {thread} after {alike} branches: {first}; the other run: {second}")
    }
}

impl ExecutionPath {
    /// Branches that are known to have been taken.
    pub fn branches(&self) -> u64 {
        self.threads.iter().map(ThreadPath::branches).sum()
    }

    /// Mispredictions that were stored for them.
    pub fn mispredictions(&self) -> u64 {
        self.threads.iter().map(|thread| thread.missed.len() as u64).sum()
    }

    /// Whether every branch up to the end is known: not if the program was killed from outside or
    /// had more mispredictions than are kept.
    pub fn is_complete(&self) -> bool {
        self.threads.iter().all(|thread| thread.rest.is_some() && !thread.cut)
    }

    /// Where the threads of two runs part, by thread; empty when, as far as both are known, they
    /// took the same branches.
    pub fn differences(&self, other: &ExecutionPath) -> Vec<PathDifference> {
        let none = ThreadPath::default();
        let find = |path: &'_ ExecutionPath, thread: &CreationPath| {
            path.threads.iter().position(|candidate| candidate.thread == *thread)
        };
        let mut threads: Vec<&CreationPath> =
            self.threads.iter().chain(&other.threads).map(|thread| &thread.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
            .into_iter()
            .filter_map(|thread| {
                let mine = find(self, thread).map_or(&none, |at| &self.threads[at]);
                let theirs = find(other, thread).map_or(&none, |at| &other.threads[at]);
                let (alike, first, second) = self.part((mine, theirs), other)?;
                Some(PathDifference { thread: thread.clone(), alike, first, second })
            })
            .collect()
    }

    /// After how many branches two threads part, and what comes next in each.
    #[allow(clippy::type_complexity)] // only here
    fn part(
        &self,
        (mine, theirs): (&ThreadPath, &ThreadPath),
        other: &ExecutionPath,
    ) -> Option<(u64, Option<BranchTaken>, Option<BranchTaken>)> {
        let same_places = || mine.missed.iter().all(|(_, b)| self.taken(*b) == other.taken(*b));
        if mine.missed == theirs.missed && mine.rest == theirs.rest && same_places() {
            return None;
        }
        let (mut first, mut second) = (Branches::new(mine), Branches::new(theirs));
        let mut known: HashMap<(Branch, Branch), bool> = HashMap::new();
        for alike in 0.. {
            let (a, b) = (first.next(), second.next());
            match (a, b) {
                (Some(a), Some(b)) => {
                    let same =
                        *known.entry((a, b)).or_insert_with(|| self.taken(a) == other.taken(b));
                    if !same {
                        return Some((alike, self.taken(a), other.taken(b)));
                    }
                }
                // Only an end that is known tells that the other did more.
                (Some(a), None) if theirs.ends() => return Some((alike, self.taken(a), None)),
                (None, Some(b)) if mine.ends() => return Some((alike, None, other.taken(b))),
                _ => return None,
            }
        }
        None
    }

    fn taken(&self, branch: Branch) -> Option<BranchTaken> {
        let site = self.sites.get(&branch.place())?.clone();
        Some(BranchTaken { site, outcome: branch.outcome() })
    }

    /// The path as numbers, with the places that they name, for whoever keeps it;
    /// [`ExecutionPath::from_numbers`] has it back.
    pub fn to_numbers(&self) -> (Vec<u64>, Vec<(u64, &Site)>) {
        let mut numbers = Vec::new();
        for thread in &self.threads {
            let path = &thread.thread.0;
            numbers.push(path.len() as u64);
            numbers.extend(path.iter().map(|&child| u64::from(child)));
            numbers.push(thread.cut.into());
            numbers.extend([thread.rest.is_some().into(), thread.rest.unwrap_or(0)]);
            numbers.push(thread.missed.len() as u64);
            let missed = thread.missed.iter();
            numbers.extend(
                missed.flat_map(|(before, branch)| {
                    [*before, branch.place(), branch.outcome().into()]
                }),
            );
        }
        let mut sites: Vec<(u64, &Site)> =
            self.sites.iter().map(|(&place, site)| (place, site)).collect();
        sites.sort_unstable_by_key(|&(place, _)| place);
        (numbers, sites)
    }

    /// The inverse of [`ExecutionPath::to_numbers`]; `None` where the numbers are no path.
    pub fn from_numbers(numbers: &[u64], sites: Vec<(u64, Site)>) -> Option<Self> {
        let mut path = ExecutionPath { sites: sites.into_iter().collect(), ..Self::default() };
        let mut numbers = numbers.iter().copied();
        while let Some(length) = numbers.next() {
            let mut thread = ThreadPath::default();
            for _ in 0..length {
                thread.thread.0.push(numbers.next()?.try_into().ok()?);
            }
            thread.cut = numbers.next()? != 0;
            let (known, rest) = (numbers.next()?, numbers.next()?);
            thread.rest = (known != 0).then_some(rest);
            for _ in 0..numbers.next()? {
                let (before, place, outcome) = (numbers.next()?, numbers.next()?, numbers.next()?);
                thread.missed.push((before, Branch::new(place, outcome)));
            }
            path.kept += thread.missed.len();
            path.threads.push(thread);
        }
        Some(path)
    }

    // What the converter tells.

    pub(crate) fn add_thread(&mut self, path: &[u32]) {
        let thread = CreationPath(path.to_vec());
        self.threads.push(ThreadPath { thread, ..ThreadPath::default() });
    }

    pub(crate) fn add_site(&mut self, place: u64, site: &Site) {
        self.sites.insert(place, site.clone());
    }

    pub(crate) fn knows(&self, place: u64) -> bool {
        self.sites.contains_key(&place)
    }

    pub(crate) fn mispredicted(
        &mut self,
        thread: u32,
        predicted: u64,
        branch: Branch,
    ) -> Option<()> {
        let thread = self.threads.get_mut(thread as usize)?;
        if self.kept < MOST_MISPREDICTIONS && !thread.cut {
            self.kept += 1;
            thread.missed.push((predicted, branch));
        } else {
            thread.cut = true;
        }
        Some(())
    }

    pub(crate) fn end(&mut self, thread: u32, predicted: u64) -> Option<()> {
        self.threads.get_mut(thread as usize)?.rest = Some(predicted);
        Some(())
    }
}

impl ThreadPath {
    fn branches(&self) -> u64 {
        let rest = if self.cut { 0 } else { self.rest.unwrap_or(0) };
        self.missed.iter().map(|(predicted, _)| predicted + 1).sum::<u64>() + rest
    }

    /// Whether nothing can follow what is known. A thread that never was has ended, too.
    fn ends(&self) -> bool {
        !self.cut && (self.rest.is_some() || self.missed.is_empty())
    }
}

/// All branches of a thread, had back from its mispredictions.
struct Branches<'a> {
    predictor: Box<Predictor>,
    missed: std::slice::Iter<'a, (u64, Branch)>,
    /// Branches that were predicted, and what comes then.
    predicted: u64,
    then: Option<Branch>,
    rest: u64,
}

impl<'a> Branches<'a> {
    fn new(path: &'a ThreadPath) -> Self {
        let rest = if path.cut { 0 } else { path.rest.unwrap_or(0) };
        let mut branches = Self {
            predictor: Predictor::new(),
            missed: path.missed.iter(),
            predicted: 0,
            then: None,
            rest,
        };
        branches.advance();
        branches
    }

    fn advance(&mut self) {
        (self.predicted, self.then) = match self.missed.next() {
            Some(&(predicted, branch)) => (predicted, Some(branch)),
            None => (std::mem::take(&mut self.rest), None),
        };
    }
}

impl Iterator for Branches<'_> {
    type Item = Branch;

    fn next(&mut self) -> Option<Branch> {
        let branch = if self.predicted > 0 {
            self.predicted -= 1;
            self.predictor.predict()
        } else {
            let branch = self.then.take()?;
            self.advance();
            branch
        };
        self.predictor.learn(branch);
        Some(branch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path of a single thread that takes these branches, `place` and outcome; `shift`: where
    /// the program was loaded.
    fn path(branches: &[(u64, u64)], shift: u64, complete: bool) -> ExecutionPath {
        let mut path = ExecutionPath::default();
        path.add_thread(&[]);
        let mut predictor = Predictor::new();
        let mut predicted = 0;
        for &(line, outcome) in branches {
            let place = shift + 16 * line;
            let site =
                Site { file: "a.c".into(), line: line as u32, column: 1, function: "f".into() };
            path.add_site(place, &site);
            if predictor.observe(Branch::new(place, outcome)) {
                predicted += 1;
            } else {
                path.mispredicted(0, std::mem::take(&mut predicted), Branch::new(place, outcome));
            }
        }
        if complete {
            path.end(0, predicted);
        }
        path
    }

    /// A loop of twenty rounds, a hundred times; in round `odd` of all it leaves early.
    fn rounds(odd: Option<usize>) -> Vec<(u64, u64)> {
        let mut branches = Vec::new();
        for round in 0..100 {
            let length = if odd == Some(round) { 7 } else { 20 };
            branches.extend((0..length).map(|_| (10, 1)));
            branches.push((10, 0));
            branches.push((20, 1));
        }
        branches
    }

    #[test]
    fn equal_runs_are_equal_wherever_they_were_loaded() {
        let branches = rounds(None);
        let here = path(&branches, 0x5000, true);
        assert!(here.is_complete());
        assert_eq!(here.branches(), branches.len() as u64);
        assert!(here.branches() > 15 * here.mispredictions());
        assert_eq!(here.differences(&path(&branches, 0x5000, true)), []);
        assert_eq!(here.differences(&path(&branches, 0x7f00_0123_4000, true)), []);
    }

    #[test]
    fn a_path_survives_its_numbers() {
        let whole = path(&rounds(Some(60)), 0x7f00_0123_4000, true);
        for path in [whole, path(&rounds(None), 0x5000, false), ExecutionPath::default()] {
            let (numbers, sites) = path.to_numbers();
            let sites: Vec<_> =
                sites.into_iter().map(|(place, site)| (place, site.clone())).collect();
            let back = ExecutionPath::from_numbers(&numbers, sites.clone()).expect("a path");
            assert_eq!(format!("{:?}", back.threads), format!("{:?}", path.threads));
            assert_eq!((back.sites, back.kept), (path.sites, path.kept));
            for end in 1..numbers.len() {
                assert!(ExecutionPath::from_numbers(&numbers[..end], Vec::new()).is_none());
            }
        }
    }

    #[test]
    fn the_first_differing_branch_is_named() {
        let here = path(&rounds(None), 0x5000, true);
        for shift in [0x5000, 0x9000] {
            let there = path(&rounds(Some(60)), shift, true);
            let [difference] = &here.differences(&there)[..] else { panic!("one thread differs") };
            assert_eq!(difference.alike, 60 * 22 + 7);
            assert_eq!(
                difference.to_string(),
                "thread 0 after 1327 branches: a.c:10:1 in f went 1; the other run: a.c:10:1 in f \
                 went 0"
            );
        }
    }

    #[test]
    fn a_run_that_goes_on_differs_only_from_one_that_is_known_to_have_ended() {
        let whole = path(&rounds(None), 0x5000, true);
        let half = &rounds(None)[..500];
        let found = whole.differences(&path(half, 0x5000, true));
        assert_eq!((found.len(), found[0].alike, &found[0].second), (1, 500, &None));
        assert_eq!(whole.differences(&path(half, 0x5000, false)), [], "it was killed");
        let none = ExecutionPath::default();
        assert_eq!(whole.differences(&none)[0].alike, 0, "no such thread");
    }
}
