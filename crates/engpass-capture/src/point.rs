//! The point at which a capture is made, its form, and its limits.

use engpass_model::unit::{BufferSize, Duration, Quantity};
use engpass_model::wire::Framing;
use engpass_testbed::topology::LinkEnds;
use engpass_testbed::{Topology, path};

/// A capture point: both directions of a link, or one, and the form in which it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Index of the link, in the order of the file.
    pub link: usize,
    /// The output ports (`2 * link + end`): both or one.
    pub ports: Vec<usize>,
    /// The form of packets in the capture.
    pub form: Form,
}

impl Point {
    /// Finds `link.NAME`, or `link.NAME.NODE` for the direction that the node sends. The form is `wanted`, or else the link's default. Names may be quoted,
    /// as in a dotted key of TOML.
    ///
    /// # Errors
    /// Cause and remedy, if the testbed has no such point, or the link no such form.
    pub fn find(text: &str, wanted: Option<Form>, topology: &Topology) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("link.") else {
            return Err(format!(
                "`{text}` is not a capture point\nhelp: write `link.NAME`, or `link.NAME.NODE` for what that node sends"
            ));
        };
        let Some((link, node)) = named(rest, topology) else {
            let known = topology.links.iter().map(|link| format!("`{}`", path::join(&["link", &link.name])));
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(format!("the testbed has no `{text}`\nhelp: it has {known}"));
        };
        let ends = &topology.links[link];
        let form = || Form::choose(wanted, ends.lines[0].framing, &ends.name);
        let Some(node) = node else {
            return Ok(Self { link, ports: vec![2 * link, 2 * link + 1], form: form()? });
        };
        let nodes = ends.ends.map(|end| topology.nodes[end].as_str());
        let Some(end) = nodes.iter().position(|known| *known == node) else {
            return Err(format!(
                "`{node}` is not an end of link `{}`\nhelp: it joins `{}` and `{}`",
                ends.name, nodes[0], nodes[1]
            ));
        };
        Ok(Self { link, ports: vec![2 * link + end], form: form()? })
    }
}

/// Returns the link and the node that a text names, without quotes or as a dotted key.
fn named(text: &str, topology: &Topology) -> Option<(usize, Option<String>)> {
    let bare = |(link, ends): (usize, &LinkEnds)| {
        // The name itself may contain dots.
        let node = text.strip_prefix(&ends.name)?;
        if node.is_empty() {
            Some((link, None))
        } else {
            Some((link, Some(node.strip_prefix('.')?.to_owned())))
        }
    };
    topology.links.iter().enumerate().find_map(bare).or_else(|| {
        let mut parts = path::parse(text).ok()?.into_iter();
        let (name, node) = (parts.next()?, parts.next());
        let link = topology.links.iter().position(|ends| ends.name == name)?;
        parts.next().is_none().then_some((link, node))
    })
}

/// The form of packets and cells in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Ethernet frames.
    Frames,
    /// IP packets only; on ATM those that are complete in good PDUs.
    Ip,
    /// Good AAL5 PDUs.
    Pdus,
    /// ATM cells as tshark reads them, without the header error control.
    Cells,
    /// ATM cells, all 53 bytes.
    RawCells,
}

impl Form {
    const NAMES: [(&'static str, Self); 5] = [
        ("frames", Self::Frames),
        ("ip", Self::Ip),
        ("pdus", Self::Pdus),
        ("cells", Self::Cells),
        ("raw-cells", Self::RawCells),
    ];

    /// Returns the form with this name.
    ///
    /// # Errors
    /// Cause and remedy, if no form has this name.
    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, form)| *form).ok_or_else(|| {
            let names = Self::NAMES.map(|(known, _)| format!("`{known}`")).join(", ");
            format!("unknown capture format `{name}`\nhelp: use one of {names}")
        })
    }

    /// Returns the form for a link: `wanted` if the link has it, else the link's default.
    fn choose(wanted: Option<Self>, framing: Framing, link: &str) -> Result<Self, String> {
        let (own, others): (Self, &[Self]) = match framing {
            Framing::Ethernet => (Self::Frames, &[Self::Ip]),
            Framing::Packets => (Self::Ip, &[]),
            Framing::Cells { .. } => (Self::Pdus, &[Self::Ip, Self::Cells, Self::RawCells]),
        };
        match wanted {
            None => Ok(own),
            Some(form) if form == own || others.contains(&form) => Ok(form),
            Some(form) => {
                let name = |form: &Self| {
                    Self::NAMES.iter().find(|(_, known)| known == form).map_or("", |(name, _)| name)
                };
                let known: Vec<String> =
                    [own].iter().chain(others).map(|form| format!("`{}`", name(form))).collect();
                Err(format!(
                    "link `{link}` cannot be captured as `{}`\nhelp: use {}",
                    name(&form),
                    known.join(" or ")
                ))
            }
        }
    }
}

/// Upper limit of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Packets, PDUs or cells.
    pub packets: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// Last instant to capture, in picoseconds.
    pub until: u64,
}

impl Limit {
    /// Default limit of a file: some hundred thousand packets.
    pub const DEFAULT_BYTES: u64 = 256 << 20;

    const NONE: Self = Self { packets: u64::MAX, bytes: u64::MAX, until: u64::MAX };

    /// Parses `1000 packets`, `20 MB` or `2 s`.
    ///
    /// # Errors
    /// Cause and remedy, if the text is no limit.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Ok(until) = Duration::parse(text) {
            return Ok(Self { until: until.0, ..Self::NONE });
        }
        match BufferSize::parse(text) {
            Ok(BufferSize::Packets(packets)) => Ok(Self { packets, ..Self::NONE }),
            Ok(BufferSize::Bytes(bytes)) => Ok(Self { bytes, ..Self::NONE }),
            Err(_) => Err(format!(
                "`{text}` is not a limit of a capture\nhelp: give a number of packets, a file size, or a time: `1000 packets`, `20 MB`, `2 s`"
            )),
        }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self { bytes: Self::DEFAULT_BYTES, ..Self::NONE }
    }
}
