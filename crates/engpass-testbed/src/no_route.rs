//! Error messages for missing paths.

use crate::diagnostic::Diagnostic;
use crate::resolve::Resolver;
use crate::topology::{Hop, NodeId, NodeKind};

impl Resolver<'_> {
    fn is_host(&self, node: NodeId) -> bool {
        matches!(self.kind(node), NodeKind::Host(_))
    }

    /// Reports that the traffic or tunnel at `path` has no path for its packets.
    pub(crate) fn report_no_route(&mut self, path: &[&str; 2], from: NodeId, to: NodeId) {
        let [family, name] = *path;
        let what = format!("{family} `{name}`");
        let Some(route) = self.graph.path(from, to, |_| true, |node| !self.is_host(node)) else {
            return self.no_path(path, &what, from, to);
        };
        // Links connect the nodes, so a circuit is missing on a part that consists of ATM links.
        let Some((a, b)) =
            self.stretches(&route).into_iter().find(|(a, b)| self.circuits_between(*a, *b).is_empty())
        else {
            return;
        };
        let (a, b) = (&self.nodes[a], &self.nodes[b]);
        let message = format!("no circuit joins `{a}` and `{b}`, and ATM carries datagrams only on circuits");
        let table = crate::path::join(&["circuit", name]);
        let help = format!("add a circuit:\n\n[{table}]\nfrom = \"{a}\"\nto = \"{b}\"");
        self.checker.report(path, Diagnostic::error("no-circuit", message).help(help));
    }

    /// Returns the ends of every part of a route that consists of ATM links.
    fn stretches(&self, route: &[Hop]) -> Vec<(NodeId, NodeId)> {
        let mut stretches: Vec<(NodeId, NodeId)> = Vec::new();
        for hop in route.iter().filter(|hop| self.links[hop.link].medium.is_atm()) {
            match stretches.last_mut() {
                Some((_, end)) if *end == hop.from && matches!(self.kind(*end), NodeKind::Switch(_)) => {
                    *end = hop.to
                }
                _ => stretches.push((hop.from, hop.to)),
            }
        }
        stretches
    }

    /// Reports that a circuit has no path.
    pub(crate) fn no_atm_path(&mut self, path: &[&str; 2], what: &str, from: NodeId, to: NodeId) {
        if !self.whole {
            return;
        }
        if [from, to].iter().any(|host| !self.links.iter().any(|link| link.ends.contains(host))) {
            return self.no_path(path, what, from, to);
        }
        for (key, host) in [("from", from), ("to", to)] {
            if !self.links.iter().any(|link| link.ends.contains(&host) && link.medium.is_atm()) {
                let host = &self.nodes[host];
                let message = format!("{what} needs an ATM link at `{host}`, but there is none");
                let help =
                    format!("give one of the links of `{host}` an ATM medium, such as `medium = \"oc-3c\"`");
                self.checker
                    .report(&[path[0], path[1], key], Diagnostic::error("not-atm", message).help(help));
                return;
            }
        }
        let Some(route) = self.graph.path(from, to, |_| true, |node| !self.is_host(node)) else {
            return self.no_path(path, what, from, to);
        };
        let others: Vec<String> = (route.iter())
            .map(|hop| &self.links[hop.link])
            .filter(|link| !link.medium.is_atm())
            .map(|link| format!("`{}`", link.name))
            .collect();
        let between = route[1..].iter().map(|hop| hop.from);
        if let Some(router) = between.into_iter().find(|node| matches!(self.kind(*node), NodeKind::Router(_)))
            && others.is_empty()
        {
            let router = &self.nodes[router];
            let message = format!("{what} cannot pass router `{router}`: cells end there");
            let help = format!("use one circuit that ends at `{router}` and another that begins there");
            return self.checker.report(path, Diagnostic::error("not-atm", message).help(help));
        }
        let message = format!("{what} cannot cross {}: a circuit needs ATM", counted_links(&others));
        let help = "give the links of a circuit an ATM medium, such as `medium = \"oc-3c\"`";
        self.checker.report(path, Diagnostic::error("not-atm", message).help(help));
    }

    fn no_path(&mut self, path: &[&str; 2], what: &str, from: NodeId, to: NodeId) {
        if !self.whole {
            return;
        }
        let (a, b) = (&self.nodes[from], &self.nodes[to]);
        let message = format!("{what} has no path: no links lead from `{a}` to `{b}`");
        let relay = self.graph.path(from, to, |_| true, |_| true).and_then(|route| {
            let relay = route[1..].iter().map(|hop| hop.from).find(|node| self.is_host(*node))?;
            Some(format!(
                "the path leads through host `{}`, but hosts do not forward packets: put a switch or a router there",
                self.nodes[relay]
            ))
        });
        let help = relay.unwrap_or_else(|| {
            let bare = [a, b].into_iter().find(|name| {
                !self.links.iter().any(|link| link.ends.iter().any(|end| self.nodes[*end] == **name))
            });
            match bare {
                Some(bare) => {
                    format!("`{bare}` has no link at all: add a `[link.NAME]` with `ends = [\"{bare}\", …]`")
                }
                None => "join the two parts of the network with a link".into(),
            }
        });
        self.checker.report(path, Diagnostic::error("no-path", message).help(help));
    }
}

fn counted_links(names: &[String]) -> String {
    match names {
        [one] => format!("link {one}"),
        _ => format!("links {}", names.join(", ")),
    }
}
