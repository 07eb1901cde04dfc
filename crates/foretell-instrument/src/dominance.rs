//! Dominators of a flow graph, after Cooper, Harvey and Kennedy ("A simple, fast dominance
//! algorithm", 2001). Knows nothing of LLVM, so that it can be tested by itself.

/// Which blocks lie on every way to a block. Blocks are numbers in reverse post-order.
pub struct Dominators {
    /// Numbers along the tree of nearest dominators: a block and all that it dominates have those
    /// from its own on, as many as there are.
    ranges: Vec<std::ops::Range<usize>>,
}

impl Dominators {
    /// Of a graph whose blocks are all reachable from block 0 and numbered in reverse post-order;
    /// each is given with its successors.
    pub fn new(successors: &[Vec<usize>]) -> Dominators {
        let mut predecessors = vec![Vec::new(); successors.len()];
        for (block, next) in successors.iter().enumerate() {
            next.iter().for_each(|&next| predecessors[next].push(block));
        }
        let mut nearest: Vec<Option<usize>> = vec![None; successors.len()];
        if let Some(entry) = nearest.first_mut() {
            *entry = Some(0);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for block in 1..successors.len() {
                let known = predecessors[block].iter().copied().filter(|&p| nearest[p].is_some());
                let common = known.reduce(|a, b| meet(&nearest, a, b));
                changed |= nearest[block] != common;
                nearest[block] = common;
            }
        }
        Dominators { ranges: ranges(&nearest) }
    }

    /// Whether every way to `block` goes through `other` (as it does through `block` itself).
    pub fn dominates(&self, other: usize, block: usize) -> bool {
        self.ranges[other].contains(&self.ranges[block].start)
    }
}

/// See [`Dominators`]; the nearest strict dominator of a block has a smaller number than the block.
fn ranges(nearest: &[Option<usize>]) -> Vec<std::ops::Range<usize>> {
    let above = |block: usize| nearest[block].unwrap_or(0);
    let mut dominated = vec![1; nearest.len()];
    for block in (1..nearest.len()).rev() {
        dominated[above(block)] += dominated[block];
    }
    let mut ranges: Vec<std::ops::Range<usize>> = dominated.iter().map(|&count| 0..count).collect();
    let mut free = vec![1; nearest.len()];
    for block in 1..nearest.len() {
        let start = free[above(block)];
        free[above(block)] += dominated[block];
        free[block] = start + 1;
        ranges[block] = start..start + dominated[block];
    }
    ranges
}

/// The nearest block that dominates both, by what is known so far.
fn meet(nearest: &[Option<usize>], a: usize, b: usize) -> usize {
    let (mut a, mut b) = (a, b);
    while a != b {
        let later = if a > b { &mut a } else { &mut b };
        *later = nearest[*later].unwrap_or(0);
    }
    a
}
