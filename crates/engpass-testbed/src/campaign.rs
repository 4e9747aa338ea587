//! A file with its variants and its sweep: everything that is to be run.

use engpass_model::unit::Duration;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::origin::Origin;
use crate::overrides::{self, Override};
use crate::path;
use crate::read::{self, Draft, wrong_type};
use crate::source::{Source, too_large};
use crate::sweep::{self, Axis, Swept};
use crate::testbed::{Run, Testbed};
use crate::topology::Topology;
use crate::tree::{self, Node, Value};

/// What one file, one variant and one point of its sweep describe.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The components.
    pub testbed: Testbed,
    /// How they hang together.
    pub topology: Topology,
}

/// A checked file: its variants, the axes of its sweep, and every point of them.
#[derive(Clone, Debug)]
pub struct Campaign {
    source: Source,
    name: String,
    description: Option<String>,
    run: Run,
    tree: Node,
    overrides: Vec<Override>,
    variants: Vec<String>,
    changes: Vec<Vec<Override>>,
    axes: Vec<Axis>,
    swept: Vec<Swept>,
    warnings: Diagnostics,
}

/// Read and check a file with the `--set` values of a command line.
///
/// Every point is checked, up to some thousands; `max_points` bounds variants × values × repeats, `None` does not.
///
/// # Errors
/// Everything that is wrong, with places in the file.
pub fn load(
    source: &Source,
    overrides: &[(String, String)],
    max_points: Option<u64>,
) -> Result<Campaign, Diagnostics> {
    let mut found = Vec::new();
    let campaign = Campaign::read(source, overrides, max_points, &mut found);
    let found = Diagnostics::new(source, found);
    match campaign {
        Some(campaign) if !found.has_errors() => Ok(Campaign { warnings: found, ..campaign }),
        _ => Err(found),
    }
}

impl Campaign {
    fn read(
        source: &Source,
        pairs: &[(String, String)],
        max_points: Option<u64>,
        found: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        if let Some(problem) = too_large(source.text.len()) {
            found.push(problem);
            return None;
        }
        let mut tree = tree::parse(&source.text, found)?;
        let overrides = overrides::from_command_line(pairs, found);
        for change in overrides.iter().filter(|change| is_meta(&change.path)) {
            if let Err(problem) = overrides::apply(&mut tree, change) {
                found.push(*problem);
            }
        }
        let (variants, changes): (Vec<_>, Vec<_>) = variants(&tree, found).into_iter().unzip();
        let mut swept = sweep::axes(&tree, found);
        // Someone who sets a swept path wants that value alone.
        swept.retain(|axis| !overrides.iter().any(|change| change.path == axis.path));
        let draft = read::read(&tree, found);
        let mut campaign = Self {
            name: draft.name.unwrap_or_else(|| source.stem().to_string()),
            description: draft.description,
            run: Run::default(),
            axes: swept.iter().map(|axis| axis.axis.clone()).collect(),
            source: source.clone(),
            warnings: Diagnostics::new(source, Vec::new()),
            tree,
            overrides,
            variants,
            changes,
            swept,
        };
        // Whatever a variant or the sweep puts in its place, what stands in the file must be readable; but what they
        // all bring may be missing there.
        found.retain(|problem| problem.code != "missing-key");
        for (variant, changes) in campaign.variants.iter().zip(&campaign.changes) {
            found.extend(sweep::overruled(&campaign.swept, variant, changes));
        }
        let run = campaign.every_point(found)?;
        campaign.run = run;
        if let Some(allowed) = max_points {
            let place = campaign.tree.table().and_then(|top| top.get("sweep")).map(|entry| &entry.key);
            let (variants, repeats) = (campaign.variants.len(), campaign.run.repeats);
            found.extend(sweep::too_many(&campaign.swept, variants, repeats, allowed, place));
        }
        Some(campaign)
    }

    /// Check the points, all of them where there are not too many: each problem counts once. The `run` table of the
    /// first.
    fn every_point(&self, found: &mut Vec<Diagnostic>) -> Option<Run> {
        /// Values that are read, all points together.
        const WORK: usize = 2_000_000;
        let most = (WORK / self.tree.size().max(1)).clamp(8, 4096);
        let combinations = self
            .swept
            .iter()
            .try_fold(self.variants.len(), |count, axis| count.checked_mul(axis.nodes.len()));
        let all = combinations.is_some_and(|count| count <= most);
        let mut run = None;
        let mut done = 0;
        for variant in 0..self.variants.len() {
            let mut places = vec![0; self.swept.len()];
            loop {
                let values = self.swept.iter().zip(&places).map(|(axis, place)| axis.nth(*place)).collect();
                let (draft, point) = self.build(variant, values, found);
                if run.is_none() {
                    run = draft.run.clone();
                }
                done += 1;
                // Nothing new is learnt from a testbed that is wrong at every point.
                let hopeless = point.is_none() && found.len() > 200;
                if done >= most
                    || hopeless
                    || !self.next_places(&mut places, all && variant < self.variants.len(), variant == 0)
                {
                    break;
                }
            }
        }
        run
    }

    /// Go on to the next point: through all, or (`each`) through each axis alone, or not at all.
    fn next_places(&self, places: &mut [usize], all: bool, each: bool) -> bool {
        if all {
            for (place, axis) in places.iter_mut().zip(&self.swept).rev() {
                *place += 1;
                if *place < axis.nodes.len() {
                    return true;
                }
                *place = 0;
            }
            return false;
        }
        if !each {
            return false;
        }
        // At most one place is not the first: move it on, then go to the next axis.
        let mut axis = places.iter().position(|place| *place > 0).unwrap_or(0);
        while axis < places.len() {
            if places[axis] + 1 < self.swept[axis].nodes.len() {
                places[axis] += 1;
                return true;
            }
            places[axis] = 0;
            axis += 1;
        }
        false
    }

    fn build(
        &self,
        variant: usize,
        values: Vec<Override>,
        found: &mut Vec<Diagnostic>,
    ) -> (Draft, Option<Point>) {
        let before = found.iter().filter(|problem| problem.severity == crate::Severity::Error).count();
        let mut tree = self.tree.clone();
        for change in self.changes[variant].iter().chain(&values).chain(&self.overrides) {
            if let Err(problem) = overrides::apply(&mut tree, change) {
                found.push(*problem);
            }
        }
        let mut draft = read::read(&tree, found);
        crate::check::check(&mut draft, &tree, found);
        let topology = crate::resolve::resolve(&draft, &tree, found);
        let after = found.iter().filter(|problem| problem.severity == crate::Severity::Error).count();
        let point = topology
            .filter(|_| after == before)
            .and_then(|topology| Some(Point { testbed: whole(&draft, &self.name)?, topology }));
        (draft, point)
    }

    /// The testbed of a variant at a point of the sweep: a path and a value for every axis, values as in
    /// [`AxisValue::text`](crate::AxisValue). An axis that is not named has its first value; a path that is no axis is
    /// set all the same.
    ///
    /// # Errors
    /// When there is no such variant, or the testbed is not in order at this point.
    pub fn point(&self, variant: &str, sweep: &[(String, String)]) -> Result<Point, Diagnostics> {
        let fail = |found| Err(Diagnostics::new(&self.source, found));
        let Some(variant_index) = self.variants.iter().position(|name| name == variant) else {
            let message = format!("there is no variant `{}`", tree::shortened(variant));
            let known: Vec<&str> = self.variants.iter().map(String::as_str).collect();
            let help = path::suggestion(variant, "variants of this file", &known);
            return fail(vec![Diagnostic::error("unknown-variant", message).maybe_help(help)]);
        };
        let mut values: Vec<Override> = Vec::new();
        for axis in &self.swept {
            if !sweep.iter().any(|(path, _)| *path == axis.axis.path) {
                values.push(axis.nth(0));
            }
        }
        for (path, text) in sweep {
            let axis = self.swept.iter().find(|axis| axis.axis.path == *path);
            match (axis.and_then(|axis| axis.value(text)), path::parse(path)) {
                (Some(value), _) => values.push(value),
                (None, Ok(parts)) => values.push(overrides::of_point(path, &parts, text)),
                (None, Err(cause)) => {
                    return fail(vec![overrides::bad_path(path, &cause, &Origin::default())]);
                }
            }
        }
        let mut found = Vec::new();
        match self.build(variant_index, values, &mut found) {
            (_, Some(point)) => Ok(point),
            _ => fail(found),
        }
    }

    /// What the testbed is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is about.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The text of the file.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// Repeats of every point, at least 1.
    pub fn repeats(&self) -> u32 {
        self.run.repeats
    }

    /// Seed of the first repeat.
    pub fn seed(&self) -> u64 {
        self.run.seed
    }

    /// Length of one run.
    pub fn duration(&self) -> Duration {
        self.run.duration
    }

    /// Names of the variants, at least one, in the order of the file.
    pub fn variants(&self) -> &[String] {
        &self.variants
    }

    /// The axes of the sweep, in the order of the file; the last turns fastest.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// What is in order but probably not meant.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }
}

/// Paths that are not about a point.
fn is_meta(path: &[String]) -> bool {
    ["name", "description", "sweep", "variant", "run"].contains(&path[0].as_str())
}

/// Names of the variants with what they change; one called `base` where the file has none.
fn variants(tree: &Node, found: &mut Vec<Diagnostic>) -> Vec<(String, Vec<Override>)> {
    let base = || vec![("base".to_string(), Vec::new())];
    let Some(entry) = tree.table().and_then(|top| top.get("variant")) else { return base() };
    let Some(table) = entry.node.table() else {
        found.push(wrong_type(&["variant"], &entry.node, "a table for each: `[variant.NAME]`"));
        return base();
    };
    let mut variants = Vec::new();
    for (name, entry) in table {
        let changes = match &entry.node.value {
            Value::Table(table) => overrides::of_variant(name, table, found),
            _ => {
                found.push(wrong_type(&["variant", name], &entry.node, "a table: `[variant.NAME]`"));
                Vec::new()
            }
        };
        variants.push((name.clone(), changes));
    }
    if variants.is_empty() { base() } else { variants }
}

/// The testbed, if nothing of it is missing.
fn whole(draft: &Draft, name: &str) -> Option<Testbed> {
    fn all<T: Clone>(map: &indexmap::IndexMap<String, Option<T>>) -> Option<indexmap::IndexMap<String, T>> {
        map.iter().map(|(name, value)| Some((name.clone(), value.clone()?))).collect()
    }
    Some(Testbed {
        name: name.to_string(),
        description: draft.description.clone(),
        hosts: all(&draft.hosts)?,
        switches: all(&draft.switches)?,
        links: all(&draft.links)?,
        circuits: all(&draft.circuits)?,
        traffic: all(&draft.traffic)?,
        run: draft.run.clone()?,
    })
}
