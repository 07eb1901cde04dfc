//! Dominators against their definition. (The pass itself links to nothing but the compiler.)

#[path = "../src/dominance.rs"]
mod dominance;

use dominance::Dominators;

/// Blocks that can be reached from the entry without passing `without`.
fn reached(successors: &[Vec<usize>], without: Option<usize>) -> Vec<bool> {
    let mut reached = vec![false; successors.len()];
    let mut stack = vec![0];
    while let Some(block) = stack.pop() {
        if Some(block) != without && !std::mem::replace(&mut reached[block], true) {
            stack.extend(&successors[block]);
        }
    }
    reached
}

/// The reachable part of a graph, numbered in reverse post-order.
fn ordered(successors: &[Vec<usize>]) -> Vec<Vec<usize>> {
    fn visit(block: usize, graph: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
        if !std::mem::replace(&mut seen[block], true) {
            graph[block].iter().for_each(|&next| visit(next, graph, seen, order));
            order.push(block);
        }
    }
    let mut order = Vec::new();
    visit(0, successors, &mut vec![false; successors.len()], &mut order);
    order.reverse();
    let number = |block: &usize| order.iter().position(|b| b == block).expect("reachable");
    order.iter().map(|&block| successors[block].iter().map(number).collect()).collect()
}

fn assert_as_defined(successors: &[Vec<usize>]) {
    let dominators = Dominators::new(successors);
    for other in 0..successors.len() {
        let around = reached(successors, Some(other));
        for (block, around) in around.into_iter().enumerate() {
            let dominates = dominators.dominates(other, block);
            assert_eq!(dominates, !around, "{other} over {block} in {successors:?}");
        }
    }
}

#[test]
fn both_sides_of_a_choice_and_a_loop() {
    // 0 -> 1 | 2; both -> 3; 3 -> 4; 4 -> 3 | 5
    let successors = [vec![1, 2], vec![3], vec![3], vec![4], vec![3, 5], vec![]];
    assert_as_defined(&successors);
    let dominators = Dominators::new(&successors);
    assert!(dominators.dominates(3, 5) && dominators.dominates(4, 5));
    assert!(!dominators.dominates(1, 3) && !dominators.dominates(5, 4));
}

#[test]
fn a_loop_with_two_entries_has_neither_as_its_dominator() {
    assert_as_defined(&ordered(&[vec![1, 2], vec![2], vec![1, 3], vec![]]));
}

#[test]
fn any_graph() {
    let mut seed = 1u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..2000 {
        let blocks = 1 + random(9);
        let graph: Vec<Vec<usize>> =
            (0..blocks).map(|_| (0..random(4)).map(|_| random(blocks)).collect()).collect();
        assert_as_defined(&ordered(&graph));
    }
}
