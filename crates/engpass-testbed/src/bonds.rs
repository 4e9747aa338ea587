//! Resolves bonds: finds the two nodes that a bond joins and checks what its links must have in common.

use engpass_model::bond::Bond;
use engpass_model::switch::Switch;
use engpass_model::wire::Framing;

use crate::diagnostic::Diagnostic;
use crate::links;
use crate::resolve::Resolver;
use crate::topology::{BondPath, LinkEnds, NodeKind};

/// Returns the index of the link that is the active member at the start.
fn first_active(path: &BondPath) -> usize {
    path.links[path.config.mode.config().preference(&path.config.links).first_active()]
}

impl Resolver<'_> {
    /// Resolves the bonds that are up. A bond with an error stays in the list as `None`.
    pub(crate) fn resolve_bonds(&mut self) {
        let draft = self.draft;
        let bond = |(name, bond): (&String, &Option<Bond>)| {
            let is_good = !draft.has_invalid_reference("bond", name) && !self.faulty.within(&["bond", name]);
            let bond = bond.as_ref().filter(|_| is_good)?;
            self.bond(name, bond)
        };
        // A bond with `up = false` is checked, then dropped.
        let bonds: Vec<Option<BondPath>> = draft.bonds.iter().map(bond).collect();
        let is_up = |path: &Option<BondPath>| path.as_ref().is_none_or(|path| path.config.up);
        let bonds: Vec<Option<BondPath>> = bonds.into_iter().filter(is_up).collect();
        let mut suits = |path: &BondPath| self.suits_other_end(path, &bonds);
        let suit: Vec<bool> = bonds.iter().map(|path| path.as_ref().is_some_and(&mut suits)).collect();
        let kept = bonds.into_iter().zip(suit).map(|(path, suits)| path.filter(|_| suits));
        self.bonds = kept.collect();
    }

    /// Resolves a bond whose references are valid. Returns `None` after it has reported an error, or if an error of one of its links was reported before.
    fn bond(&mut self, name: &str, config: &Bond) -> Option<BondPath> {
        let node = self.node(&config.node);
        let index = |name: &String| self.links.iter().position(|link| link.name == *name);
        let members: Vec<usize> = config.links.iter().map(index).collect::<Option<_>>()?;
        let first = *members.first()?;
        let peer = |link: usize| self.links[link].ends[1 - self.links[link].end_of(node)];
        for (place, &member) in members.iter().enumerate() {
            let (one, this) = (&self.links[first], &self.links[member]);
            let (a, b) = (&one.name, &this.name);
            let (message, help) = if !matches!(this.lines[0].framing, Framing::Ethernet) {
                (
                    format!("link `{b}` carries no Ethernet frames"),
                    "a bond joins only Ethernet links: give this link a medium such as `ethernet-1g`"
                        .to_owned(),
                )
            } else if peer(member) != peer(first) {
                let [one, other] = [first, member].map(|link| &self.nodes[peer(link)]);
                (
                    format!("links `{a}` and `{b}` lead to `{one}` and `{other}`"),
                    format!("all links of a bond must connect `{}` to the same node", config.node),
                )
            } else if (one.mtu, one.vlan) != (this.mtu, this.vlan) {
                let said = if one.mtu == this.mtu { "`vlan`" } else { "`mtu`" };
                (
                    format!("links `{a}` and `{b}` differ in {said}"),
                    "a bond is one interface: give its links the same `mtu` and `vlan`".to_owned(),
                )
            } else {
                continue;
            };
            let message = format!("bond `{name}` cannot be one interface: {message}");
            let found = Diagnostic::error("wrong-bond", message).help(help);
            self.checker.report(&["bond", name, "links", &place.to_string()], found);
            return None;
        }
        let peer = peer(first);
        if config.mode.config().is_single() && !matches!(self.kind(node), NodeKind::Host(_)) {
            let kind = config.mode.kind();
            let message = format!("`{}` is a switch, and mode `{kind}` is for hosts", config.node);
            let help = format!(
                "give this bond to host `{}`: the switch sends on the member that the host uses",
                self.nodes[peer]
            );
            self.checker.report(&["bond", name, "mode"], Diagnostic::error("wrong-bond", message).help(help));
            return None;
        }
        Some(BondPath { name: name.into(), node, peer, links: members, config: config.clone() })
    }

    /// Checks that the node at the other end of a bond can work with it, and reports an error if not. If a bond failed to resolve (`None`), checks that need
    /// all bonds are skipped.
    fn suits_other_end(&mut self, path: &BondPath, bonds: &[Option<BondPath>]) -> bool {
        let shares = |other: &&BondPath| {
            other.node == path.peer && other.links.iter().any(|link| path.links.contains(link))
        };
        let (name, peer) = (path.name.clone(), self.nodes[path.peer].clone());
        let is_single = path.config.mode.config().is_single();
        let Some(other) = bonds.iter().flatten().find(shares) else {
            let follows = matches!(links::switch(self.draft, path.peer), Some(Switch::Ethernet(_)));
            let known = bonds.iter().all(Option::is_some);
            if is_single && !follows && known {
                let kind = path.config.mode.kind();
                let message = format!("`{peer}` does not know which member of bond `{name}` is active");
                let help = match self.kind(path.peer) {
                    NodeKind::Router(_) => {
                        format!("put an Ethernet switch between them, or use a `mode` other than `{kind}`")
                    }
                    _ => format!("give `{peer}` a bond of the same links with mode `{kind}`"),
                };
                self.checker.report(&["bond", &name], Diagnostic::error("wrong-bond", message).help(help));
                return false;
            }
            if !is_single && known {
                self.is_one_sided(path);
            }
            return true;
        };
        let sorted = |path: &BondPath| {
            let mut links = path.links.clone();
            links.sort_unstable();
            links
        };
        let is_differing = is_single && first_active(path) != first_active(other);
        let theirs = &other.name;
        let (message, is_mutual) = if sorted(path) != sorted(other) {
            (format!("bonds `{name}` and `{theirs}` have some links in common, but not all"), true)
        } else if is_single && !other.config.mode.config().is_single() {
            (
                format!(
                    "bond `{theirs}` sends on all members, but bond `{name}` receives on only one of them"
                ),
                false,
            )
        } else if is_differing {
            let [one, two] = [path, other].map(|path| &self.links[first_active(path)].name);
            (
                format!(
                    "the first active member of bond `{name}` is link `{one}`, but that of bond `{theirs}` is link `{two}`"
                ),
                true,
            )
        } else {
            return true;
        };
        let index = |path: &BondPath| self.draft.bonds.get_index_of(&path.name);
        if is_mutual && index(other) < index(path) {
            // The error was already reported for the other bond.
            return false;
        }
        let help = "give the bonds at both ends the same links and matching `mode` and `primary`, or disable one of them with `up = false`";
        self.checker.report(&["bond", &name], Diagnostic::error("wrong-bond", message).help(help));
        false
    }

    /// Warns if all packets towards the node of a bond take its first link, because the node at the other end never chooses another one.
    fn is_one_sided(&mut self, path: &BondPath) {
        let BondPath { name, node, peer, .. } = path;
        if matches!(self.kind(*peer), NodeKind::Router(_)) {
            // The router's `ecmp` policy chooses. Links that it leaves unused are reported as spare elsewhere.
            return;
        }
        let joins = |link: &LinkEnds| link.ends.contains(node) && link.ends.contains(peer);
        if self.links.iter().position(joins).is_some_and(|first| !path.links.contains(&first)) {
            // No packet takes the bond in either direction.
            return;
        }
        let (node, peer) = (&self.nodes[*node], &self.nodes[*peer]);
        let message = format!(
            "all packets from `{peer}` to `{node}` use only one link of bond `{name}`: the first one in the file"
        );
        let help = format!("give `{peer}` a bond of the same links as well");
        let found = Diagnostic::warning("one-sided-bond", message).help(help);
        self.checker.report_key(&["bond", name], found);
    }
}
