//! Shortest paths.

use crate::topology::{Hop, LinkEnds, NodeId};

/// The graph of nodes and links.
pub(crate) struct Graph<'a> {
    links: &'a [LinkEnds],
    /// Links at each node, in the order of the file.
    at: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    pub(crate) fn new(nodes: usize, links: &'a [LinkEnds]) -> Self {
        let mut at = vec![Vec::new(); nodes];
        for (index, link) in links.iter().enumerate() {
            for end in link.ends {
                at[end].push(index);
            }
        }
        Self { links, at }
    }

    /// Returns the path with the fewest links over the allowed links and through the allowed nodes. Of several, the one whose links come earliest in the file,
    /// compared from the first link on.
    pub(crate) fn path(
        &self,
        from: NodeId,
        to: NodeId,
        link: impl Fn(&LinkEnds) -> bool,
        through: impl Fn(NodeId) -> bool,
    ) -> Option<Vec<Hop>> {
        // Breadth-first search, links in the order of the file. The first path found to a node is therefore the wanted one.
        let mut came: Vec<Option<Hop>> = vec![None; self.at.len()];
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            if node == to {
                break;
            }
            if node != from && !through(node) {
                continue;
            }
            for &index in &self.at[node] {
                let [a, b] = self.links[index].ends;
                let next = if a == node { b } else { a };
                if next != from && came[next].is_none() && link(&self.links[index]) {
                    came[next] = Some(Hop { link: index, from: node, to: next });
                    queue.push_back(next);
                }
            }
        }
        let mut hops = Vec::new();
        let mut node = to;
        while node != from {
            let hop = came[node]?;
            hops.push(hop);
            node = hop.from;
        }
        hops.reverse();
        Some(hops)
    }
}
