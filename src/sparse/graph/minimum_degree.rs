//! The order of least degree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Elimination by quotient graphs. An eliminated row becomes an element, which stands for the clique of the rows it was joined to. A row
/// keeps its remaining neighbours and its elements; its degree is bounded by the sizes of both, less what its elements share with the
/// newest one. Rows from `inner` on count as neighbours, but are not put in order.
pub(crate) fn minimum_degree(mut neighbours: Vec<Vec<u32>>, inner: usize) -> Vec<u32> {
    let n = neighbours.len();
    let mut elements: Vec<Vec<u32>> = vec![Vec::new(); n];
    // Rows of the clique of each element; empty once another has absorbed it.
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); n];
    let mut degree: Vec<usize> = neighbours.iter().map(Vec::len).collect();
    let mut done = vec![false; n];
    let mut queue: BinaryHeap<Reverse<(usize, u32)>> =
        (0..inner as u32).map(|i| Reverse((degree[i as usize], i))).collect();
    // Marks of the rows of the newest element, and members of an element outside of it, each valid for one pivot.
    let mut inside = vec![u32::MAX; n];
    let mut outside: Vec<(u32, usize)> = vec![(u32::MAX, 0); n];
    let mut order = Vec::with_capacity(n);
    while let Some(Reverse((found, pivot))) = queue.pop() {
        let p = pivot as usize;
        if done[p] || found != degree[p] {
            continue;
        }
        done[p] = true;
        order.push(pivot);
        let mut clique = Vec::new();
        inside[p] = pivot;
        let absorbed = std::mem::take(&mut elements[p]);
        let joined = std::mem::take(&mut neighbours[p]);
        for i in absorbed.iter().flat_map(|e| &members[*e as usize]).chain(&joined) {
            if !done[*i as usize] && inside[*i as usize] != pivot {
                inside[*i as usize] = pivot;
                clique.push(*i);
            }
        }
        absorbed.iter().for_each(|e| members[*e as usize] = Vec::new());
        for i in &clique {
            let i = *i as usize;
            elements[i].retain(|e| !members[*e as usize].is_empty());
            for e in &elements[i] {
                let e = *e as usize;
                if outside[e].0 != pivot {
                    members[e].retain(|j| !done[*j as usize]);
                    outside[e] = (pivot, members[e].len());
                }
                outside[e].1 -= 1;
            }
        }
        for i in &clique {
            let i = *i as usize;
            neighbours[i].retain(|j| inside[*j as usize] != pivot && !done[*j as usize]);
            // An element inside the clique says nothing more.
            elements[i].retain(|e| outside[*e as usize].1 > 0);
            let others: usize = elements[i].iter().map(|e| outside[*e as usize].1).sum();
            let bound = neighbours[i].len() + clique.len() - 1 + others;
            degree[i] = bound.min(degree[i] + clique.len() - 1).min(n - order.len());
            elements[i].push(pivot);
            if i < inner {
                queue.push(Reverse((degree[i], i as u32)));
            }
        }
        members[p] = clique;
    }
    order
}
