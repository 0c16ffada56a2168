//! A graph as lists of what leads where, without an allocation a node.

/// For each node, a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Edges {
    /// Where each node's list begins in `items`, and where the last one ends.
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Edges {
    /// Of pairs of a node, lower than `nodes`, and an item of its list; lists are in the order of the pairs.
    pub(crate) fn new(nodes: usize, pairs: impl Iterator<Item = (usize, usize)> + Clone) -> Self {
        let mut starts = vec![0_u32; nodes + 1];
        pairs.clone().for_each(|(node, _)| starts[node + 1] += 1);
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts[nodes] as usize];
        for (node, item) in pairs {
            items[next[node] as usize] = item as u32;
            next[node] += 1;
        }
        Edges { starts, items }
    }

    /// The list of a node.
    pub(crate) fn of(&self, node: usize) -> &[u32] {
        &self.items[self.range(node)]
    }

    /// Where the list of a node is among all items.
    pub(crate) fn range(&self, node: usize) -> core::ops::Range<usize> {
        self.starts[node] as usize..self.starts[node + 1] as usize
    }

    /// The item at one place among all.
    pub(crate) fn item(&self, at: usize) -> usize {
        self.items[at] as usize
    }

    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> usize {
        self.starts.len() - 1
    }
}

/// The strongly connected component of each node: two nodes are in the same one if each can be reached from
/// the other. Tarjan's algorithm (1972), without recursion; linear. Components are numbered so that edges
/// between them lead to lower numbers.
pub(crate) fn components(graph: &Edges) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let nodes = graph.nodes();
    let (mut component, mut index, mut low) = (vec![NONE; nodes], vec![NONE; nodes], vec![0_u32; nodes]);
    let (mut stack, mut path) = (Vec::new(), Vec::<(usize, usize)>::new());
    let (mut found, mut visited) = (0, 0);
    for root in 0..nodes {
        if index[root] == NONE {
            path.push((root, graph.range(root).start));
        }
        while let Some((node, at)) = path.last_mut() {
            let node = *node;
            if index[node] == NONE {
                (index[node], low[node]) = (visited, visited);
                visited += 1;
                stack.push(node);
            }
            if *at < graph.range(node).end {
                let next = graph.item(*at);
                *at += 1;
                if index[next] == NONE {
                    path.push((next, graph.range(next).start));
                } else if component[next] == NONE {
                    low[node] = low[node].min(index[next]);
                }
                continue;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                low[*before] = low[*before].min(low[node]);
            }
            if low[node] == index[node] {
                while let Some(member) = stack.pop() {
                    component[member] = found;
                    if member == node {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_the_order_of_their_pairs() {
        let edges = Edges::new(3, [(2, 5), (0, 7), (2, 4)].into_iter());
        assert_eq!((edges.of(0), edges.of(1), edges.of(2)), (&[7][..], &[][..], &[5, 4][..]));
    }

    #[test]
    fn nodes_that_reach_each_other_are_one_component() {
        // 0 ⇄ 1 → 2 ⇄ 3, 4 alone, 5 to itself.
        let pairs = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 2), (5, 5)];
        let found = components(&Edges::new(6, pairs.into_iter()));
        assert_eq!(found[0], found[1]);
        assert_eq!(found[2], found[3]);
        assert!(found[0] > found[2], "edges lead to lower numbers");
        let mut all = found.clone();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4);
    }
}
