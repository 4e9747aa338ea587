//! A campaign: one file with its variants and its sweep, and all the points to run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engpass_model::unit::Duration;

use crate::check;
use crate::diagnostic::{Diagnostic, Diagnostics, DuplicateKey, Severity};
use crate::findings::{Counts, Findings, MOST};
use crate::overrides::{self, Override};
use crate::path;
use crate::provenance::{Origin, ValueSource};
use crate::read::{self, Draft, bad_name, locate, wrong_type};
use crate::reported::ReportedValues;
use crate::settings::{self, Setting};
use crate::source::{Source, too_large, too_many_values};
use crate::sweep::{self, Axis, Sweep, Swept};
use crate::testbed::{Run, Testbed};
use crate::topology::Topology;
use crate::tree::{self, Node, Value};

/// One checked testbed: the file with one variant and one value of every sweep axis applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The components.
    pub testbed: Testbed,
    /// The resolved graph of the components.
    pub topology: Topology,
}

/// A checked file: its variants, the axes of its sweep, and through them all its points.
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
    /// Warnings about traffic that agents on real hosts cannot produce, if the file does not mention such hosts. Otherwise `warnings` has them.
    unmade: Diagnostics,
}

/// Reads and checks a file with the `--set` values of a command line.
///
/// Checks every point, up to a few thousand. `max_points` limits variants × values × repeats; `None` sets no limit.
///
/// # Errors
/// All errors and warnings found, with their positions in the file.
pub fn load(
    source: &Source,
    overrides: &[(String, String)],
    max_points: Option<u64>,
) -> Result<Campaign, Diagnostics> {
    let mut found = Findings::default();
    let campaign = Campaign::read(source, overrides, max_points, &mut found);
    let found = Diagnostics::new(source, found);
    match campaign {
        Some(campaign) if !found.has_errors() => Ok(Campaign { warnings: found, ..campaign }),
        _ => Err(found),
    }
}

/// The variants that reject a `--set` value. If at least one variant accepts it, the error becomes a warning, because the other variants can still run; points
/// of the rejecting variants report the error.
#[derive(Default)]
struct Refusals {
    variants: BTreeSet<usize>,
    refused: BTreeMap<DuplicateKey, BTreeSet<usize>>,
}

impl Refusals {
    fn note(&mut self, variant: usize, found: &[Diagnostic]) {
        self.variants.insert(variant);
        for problem in found.iter().filter(|problem| problem.set.is_some()) {
            self.refused.entry(problem.sameness()).or_default().insert(variant);
        }
    }

    fn downgrade_to_warnings(&self, names: &[String], found: &mut [Diagnostic]) {
        for problem in found.iter_mut().filter(|problem| problem.severity == Severity::Error) {
            let Some(refusing) = self.refused.get(&problem.sameness()) else { continue };
            if refusing.len() < self.variants.len() {
                problem.severity = Severity::Warning;
                let names: Vec<_> = refusing.iter().map(|variant| format!("`{}`", names[*variant])).collect();
                let those = names.join(", ");
                problem.message =
                    format!("{} (in variant {those}, which cannot run with this value)", problem.message);
            }
        }
    }
}

/// Findings that are reported only if every point has them, by path and subject.
#[derive(Default)]
struct AtEveryPoint {
    points: usize,
    found: BTreeMap<(Option<String>, Option<String>), (usize, Diagnostic)>,
}

impl AtEveryPoint {
    /// Takes such findings out of the findings of one point and counts them.
    fn note(&mut self, here: &mut Findings) {
        self.points += 1;
        for problem in here.extract(|problem| problem.everywhere.is_some()) {
            let key = (problem.path.clone(), problem.everywhere.clone());
            self.found.entry(key).or_insert((0, problem)).0 += 1;
        }
    }

    fn found(self) -> impl Iterator<Item = Diagnostic> {
        self.found.into_values().filter(move |(points, _)| *points == self.points).map(|(_, problem)| problem)
    }
}

/// Traffic that agents on real hosts cannot produce, and whether the file mentions such hosts.
#[derive(Default)]
struct Agents {
    meant: bool,
    found: Findings,
}

impl Agents {
    fn note(&mut self, testbed: &Testbed, tree: &Node) {
        self.meant |= check::agents::are_meant(testbed);
        // There may be many points, mostly with the same findings.
        if self.found.len() < MOST {
            check::agents::check(testbed, tree, &mut self.found);
        }
    }
}

impl Campaign {
    fn read(
        source: &Source,
        pairs: &[(String, String)],
        max_points: Option<u64>,
        found: &mut Findings,
    ) -> Option<Self> {
        if let Some(problem) = too_large(source.text.len()).or_else(|| too_many_values(&source.text)) {
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
        let Sweep { axes: mut swept, mut impossible } = sweep::axes(&tree, found);
        // If `--set` gives a swept path, its axis is replaced by that one value.
        swept.retain(|axis| !overrides.iter().any(|change| change.path == axis.path));
        impossible.retain(|path| !overrides.iter().any(|change| change.path == *path));
        let unsound = found.errors() > 0;
        // Every value in the file must be valid, even if a variant or the sweep replaces it. But a required key may be missing: these may supply it.
        let mut own = Findings::ignoring("missing-key");
        let draft = read::read(&tree, &mut own);
        found.append(own);
        if found.is_full() {
            // Every point would only repeat the errors of the file.
            return None;
        }
        // Points are built from the tree without `[sweep]` and `[variant]`.
        let mut sweep_place = None;
        if let Value::Table(top) = &mut tree.value {
            let top = Arc::make_mut(top);
            sweep_place = top.shift_remove("sweep").map(|entry| entry.key);
            top.shift_remove("variant");
        }
        let mut campaign = Self {
            name: draft.name.unwrap_or_else(|| source.stem().to_string()),
            description: draft.description,
            run: Run::default(),
            axes: swept.iter().map(|axis| axis.axis.clone()).collect(),
            source: source.clone(),
            warnings: Diagnostics::new(source, Findings::default()),
            unmade: Diagnostics::new(source, Findings::default()),
            tree,
            overrides,
            variants,
            changes,
            swept,
        };
        for (variant, changes) in campaign.variants.iter().zip(&campaign.changes) {
            found.extend(sweep::overruled(&campaign.swept, variant, changes));
        }
        let mut unmade = Findings::default();
        let run = campaign.every_point(found, &mut unmade);
        campaign.unmade = Diagnostics::new(source, unmade);
        // A key that an invalid axis sweeps is not reported as missing.
        let given: Vec<String> = impossible.iter().map(|path| path::join(path)).collect();
        found.retain(|problem| {
            problem.code != "missing-key" || problem.path.as_ref().is_none_or(|path| !given.contains(path))
        });
        campaign.run = run?;
        if let Some(allowed) = max_points.filter(|_| !unsound) {
            let (variants, repeats) = (campaign.variants.len(), campaign.run.repeats);
            found.extend(sweep::too_many(&campaign.swept, variants, repeats, allowed, sweep_place.as_ref()));
        }
        Some(campaign)
    }

    /// Checks the points, reports each problem once, and returns the `run` table of the first point.
    ///
    /// Checks all points if their number is small enough. Otherwise it checks every variant at the first values, and the first variant at every value
    /// of every axis.
    ///
    /// Traffic that agents cannot produce becomes a warning if the file mentions real hosts, else it goes to `unmade`.
    fn every_point(&self, found: &mut Findings, unmade: &mut Findings) -> Option<Run> {
        /// Limit of the number of values read over all points.
        const WORK: usize = 2_000_000;
        let most = (WORK / self.tree.size().max(1)).clamp(8, 4096);
        let lengths: Vec<usize> = self.swept.iter().map(|axis| axis.nodes.len()).collect();
        let points =
            lengths.iter().try_fold(self.variants.len(), |points, length| points.checked_mul(*length));
        let points: Box<dyn Iterator<Item = (usize, Vec<usize>)>> =
            if points.is_some_and(|points| points <= most) {
                Box::new(
                    (0..self.variants.len())
                        .flat_map(|variant| every_place(&lengths).map(move |at| (variant, at))),
                )
            } else {
                let first = vec![0; lengths.len()];
                let variants = (0..self.variants.len()).map({
                    let first = first.clone();
                    move |variant| (variant, first.clone())
                });
                // Check the last values first: ranges tend to fail at their far end.
                let ends = lengths.iter().map(|length| length - 1).enumerate();
                let rest = lengths
                    .iter()
                    .enumerate()
                    .flat_map(|(axis, length)| (1..length - 1).map(move |at| (axis, at)));
                let singles: Vec<(usize, usize)> = ends.chain(rest).take(most).collect();
                Box::new(variants.chain(singles.into_iter().map(move |(axis, at)| {
                    let mut places = first.clone();
                    places[axis] = at;
                    (0, places)
                })))
            };
        let mut run = None;
        // Errors of the file recur at every point.
        let mut seen: BTreeSet<DuplicateKey> = found.iter().map(Diagnostic::sameness).collect();
        let mut more = Counts::default();
        let mut set = Refusals::default();
        let mut everywhere = AtEveryPoint::default();
        let mut agents = Agents::default();
        for (variant, places) in points.take(most) {
            let values = self.swept.iter().zip(&places).map(|(axis, place)| axis.nth(*place)).collect();
            let mut here = Findings::default();
            let (draft, point) = self.build(variant, values, &mut here, &mut agents);
            set.note(variant, &here);
            everywhere.note(&mut here);
            more = more.max(here.counted());
            if here.has_stopped() {
                found.stop();
            }
            found.extend(here.into_iter().filter(|problem| seen.insert(problem.sameness())));
            run = run.or(draft.run);
            // The list has enough errors: checking more points adds nothing useful to it.
            if point.is_none() && (more.errors > 0 || seen.len() > MOST) {
                break;
            }
        }
        found.count(more);
        set.downgrade_to_warnings(&self.variants, found);
        found.extend(everywhere.found());
        let warn = |found: Diagnostic| Diagnostic { severity: Severity::Warning, ..found };
        let counted = agents.found.counted();
        let told = agents.found.into_iter().filter(|problem| seen.insert(problem.sameness())).map(warn);
        let all = if agents.meant { found } else { unmade };
        all.extend(told);
        all.count(Counts { errors: 0, warnings: counted.total() });
        run
    }

    fn build(
        &self,
        variant: usize,
        values: Vec<Override>,
        found: &mut Findings,
        agents: &mut Agents,
    ) -> (Draft, Option<Point>) {
        let before = found.errors();
        let Some(tree) = self.changed(&self.changes[variant], &values, found) else {
            return (Draft::default(), None);
        };
        let begin = found.len();
        let mut draft = read::read(&tree, found);
        check::check(&mut draft, &tree, found, begin);
        let faulty = ReportedValues::of(&found[begin..]);
        let topology = crate::resolve::resolve(&draft, &tree, found, &faulty);
        let after = found.errors();
        let point = topology
            .filter(|_| after == before)
            .and_then(|topology| Some(Point { testbed: whole(&draft, &self.name)?, topology }));
        if let Some(point) = &point {
            agents.note(&point.testbed, &tree);
        }
        (draft, point)
    }

    /// Returns the tree of a point: the file with the changes of a variant, swept values and `--set`, of which the last one wins. `None` if there are too many errors.
    fn changed(&self, variant: &[Override], values: &[Override], found: &mut Findings) -> Option<Node> {
        let mut tree = self.tree.clone();
        let set =
            self.overrides.iter().filter(|change| change.path[0] != "sweep" && change.path[0] != "variant");
        for change in variant.iter().chain(values).chain(set) {
            if found.is_full() {
                found.stop();
                return None;
            }
            if let Err(problem) = overrides::apply(&mut tree, change) {
                found.push(*problem);
            }
        }
        Some(tree)
    }

    /// Returns the testbed of a variant at a point of the sweep. `sweep` gives a path and a value for every axis, values as in
    /// [`AxisValue::text`](crate::AxisValue). An axis that is not named takes the value that the file or the variant gives its path outside the
    /// sweep, else its first value. A path that is not an axis is set as well.
    ///
    /// # Errors
    /// If there is no such variant, or if the testbed has errors at this point.
    pub fn point(&self, variant: &str, sweep: &[(String, String)]) -> Result<Point, Diagnostics> {
        self.point_and(variant, sweep, &mut Agents::default())
    }

    /// Checks that agents on real hosts can produce the traffic of a point of the sweep.
    ///
    /// # Errors
    /// Those of [`point`](Self::point), and traffic that agents cannot produce.
    pub fn check_agents(&self, variant: &str, sweep: &[(String, String)]) -> Result<(), Diagnostics> {
        let mut agents = Agents::default();
        self.point_and(variant, sweep, &mut agents)?;
        if agents.found.is_empty() { Ok(()) } else { Err(Diagnostics::new(&self.source, agents.found)) }
    }

    fn point_and(
        &self,
        variant: &str,
        sweep: &[(String, String)],
        agents: &mut Agents,
    ) -> Result<Point, Diagnostics> {
        let variant = self.variant_index(variant)?;
        let values = self.swept_values(&self.changes[variant], sweep)?;
        let mut found = Findings::default();
        match self.build(variant, values, &mut found, agents) {
            (_, Some(point)) => Ok(point),
            _ => Err(Diagnostics::new(&self.source, found)),
        }
    }

    /// Returns the settings of some families at a point: each value as written, after variant, swept values and `--set`, and the defaults of
    /// all other keys. `sweep` is that of [`point`](Self::point). Without `variant` they are those of the file itself and `--set`; then swept
    /// values count only if they are in `sweep`. `families` are names of tables such as `host` and `run`; an empty list asks for all.
    ///
    /// # Errors
    /// If there is no such variant, or if a path does not exist at this point.
    pub fn settings(
        &self,
        variant: Option<&str>,
        sweep: &[(String, String)],
        families: &[String],
    ) -> Result<Setting, Diagnostics> {
        let (changes, values) = match variant {
            Some(variant) => {
                let changes = &self.changes[self.variant_index(variant)?][..];
                (changes, self.swept_values(changes, sweep)?)
            }
            None => (&[][..], self.given_values(sweep)?),
        };
        let mut found = Findings::default();
        match self.changed(changes, &values, &mut found) {
            Some(tree) if found.errors() == 0 => Ok(settings::settings(&tree, families)),
            _ => Err(Diagnostics::new(&self.source, found)),
        }
    }

    fn variant_index(&self, variant: &str) -> Result<usize, Diagnostics> {
        self.variants.iter().position(|name| name == variant).ok_or_else(|| {
            let message = format!("there is no variant `{}`", tree::shortened(variant));
            let known: Vec<&str> = self.variants.iter().map(String::as_str).collect();
            let help = path::suggestion(variant, "variants of this file", &known);
            Diagnostics::new(&self.source, Diagnostic::error("unknown-variant", message).maybe_help(help))
        })
    }

    /// Returns the values at a point of the sweep, for a variant with these changes.
    fn swept_values(
        &self,
        changes: &[Override],
        sweep: &[(String, String)],
    ) -> Result<Vec<Override>, Diagnostics> {
        let mut values = self.first_values(changes, sweep);
        values.extend(self.given_values(sweep)?);
        Ok(values)
    }

    /// Returns the first value of each axis that `sweep` does not name, unless `--set` or these changes give the key a value.
    fn first_values(&self, changes: &[Override], sweep: &[(String, String)]) -> Vec<Override> {
        let named = |axis: &str| sweep.iter().any(|(path, _)| path == axis);
        let open =
            self.swept.iter().filter(|axis| !named(&axis.axis.path) && !self.has_own(changes, &axis.path));
        open.map(|axis| axis.nth(0)).collect()
    }

    /// Returns the values that `sweep` gives.
    fn given_values(&self, sweep: &[(String, String)]) -> Result<Vec<Override>, Diagnostics> {
        let mut values: Vec<Override> = Vec::new();
        for (path, text) in sweep {
            let axis = self.swept.iter().find(|axis| axis.axis.path == *path);
            match (axis.and_then(|axis| axis.value(text)), path::parse(path)) {
                (Some(value), _) => values.push(value),
                (None, Ok(parts)) => values.push(overrides::of_point(path, &parts, text)),
                (None, Err(cause)) => {
                    let problem = overrides::bad_path(path, &cause, &Origin::default());
                    return Err(Diagnostics::new(&self.source, problem));
                }
            }
        }
        Ok(values)
    }

    /// Returns true if the file or the variant has a value for a swept path.
    fn has_own(&self, changes: &[Override], path: &[String]) -> bool {
        locate(&self.tree, path).is_some() || changes.iter().any(|change| change.path == path)
    }

    /// Name of the testbed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Description of the testbed.
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

    /// The axes of the sweep, in the order of the file; the last one varies fastest.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Warnings about traffic that agents on real hosts cannot produce at some points. If the file mentions such hosts, they are among the
    /// [`warnings`](Self::warnings) instead.
    pub fn unmade(&self) -> &Diagnostics {
        &self.unmade
    }

    /// Warnings: settings that are valid but probably not intended.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Returns [`warnings`](Self::warnings) without those about values that only other variants than `variants` set.
    pub fn warnings_of(&self, variants: &[String]) -> Diagnostics {
        let others = self.variants().iter().filter(|name| !variants.contains(name));
        let sources = others.filter_map(|name| ValueSource::Variant(name.as_str().into()).name());
        self.warnings.without(&sources.collect::<Vec<_>>())
    }

    /// Estimates the memory of this campaign in bytes, within a factor of two.
    pub fn memory(&self) -> u64 {
        // Heap bytes, measured with files of thousands of equal tables: the schemas, a value with its origin, a value of an axis.
        const SCHEMAS: u64 = 750_000;
        const VALUE: u64 = 240;
        const SWEPT: u64 = 380;
        let changes = self.changes.iter().flatten().map(|change| change.node.size());
        let values = self.tree.size() + changes.sum::<usize>();
        let swept = self.axes.iter().map(|axis| axis.values.len() as u64).sum::<u64>();
        SCHEMAS + 3 * self.source.text.len() as u64 + VALUE * values as u64 + SWEPT * swept
    }
}

/// Every combination of indices below these lengths, the last one varying fastest.
fn every_place(lengths: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let lengths = lengths.to_vec();
    let count: usize = lengths.iter().product();
    (0..count).map(move |mut index| {
        let mut places = vec![0; lengths.len()];
        for (place, length) in places.iter_mut().zip(&lengths).rev() {
            (*place, index) = (index % length, index / length);
        }
        places
    })
}

/// Returns true for keys that are already needed before the points are built.
fn is_meta(path: &[String]) -> bool {
    ["name", "description", "sweep", "variant", "run"].contains(&path[0].as_str())
}

/// Returns the variants and their changes; a single one named `base` if the file has none.
fn variants(tree: &Node, found: &mut Findings) -> Vec<(String, Vec<Override>)> {
    let base = || vec![("base".to_string(), Vec::new())];
    let Some(entry) = tree.table().and_then(|top| top.get("variant")) else { return base() };
    let Some(table) = entry.node.table() else {
        found.push(wrong_type(&["variant"], &entry.node, "a table for each: `[variant.NAME]`"));
        return base();
    };
    let mut variants = Vec::new();
    for (name, entry) in table {
        let problem = bad_name("variant", name);
        found.extend(problem.map(|problem| problem.path(&["variant", name]).at(&entry.key)));
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

/// Returns the testbed of the draft; `None` if a part of it could not be read.
fn whole(draft: &Draft, name: &str) -> Option<Testbed> {
    fn all<T: Clone>(map: &indexmap::IndexMap<String, Option<T>>) -> Option<indexmap::IndexMap<String, T>> {
        map.iter().map(|(name, value)| Some((name.clone(), value.clone()?))).collect()
    }
    Some(Testbed {
        name: name.to_string(),
        description: draft.description.clone(),
        hosts: all(&draft.hosts)?,
        switches: all(&draft.switches)?,
        routers: all(&draft.routers)?,
        links: all(&draft.links)?,
        circuits: all(&draft.circuits)?,
        tunnels: all(&draft.tunnels)?,
        bonds: all(&draft.bonds)?,
        traffic: all(&draft.traffic)?,
        events: all(&draft.events)?,
        run: draft.run.clone()?,
    })
}
