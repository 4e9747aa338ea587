//! Allocates shared resources: one class after the other, max-min fair within a class.
//!
//! Progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2): the rates of all flows of a class rise together until a resource is used up. The
//! flows that need this resource stop, and the others go on. The rates that are kept equal are those of the bits of cells or frames. Therefore flows on one
//! link get equal parts of the line.
//!
//! Rates are floats, because they only go into reports. Sums, products and quotients of them are equal on every machine.

use std::collections::{BTreeMap, BTreeSet};

use super::need::Demand;

/// Relative differences smaller than this come from rounding.
const ROUNDING: f64 = 1e-12;

/// Use of a resource by one unit (message, segment, cell) of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ResourceUse {
    /// Index of the resource.
    pub(super) resource: usize,
    /// Amount in the resource's unit; positive.
    pub(super) amount: f64,
    /// For a receiver of a multicast group: number of the copy. Receivers behind the same copy share its need.
    pub(super) copy: usize,
}

/// Rates of all lanes, and their use of resources.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Allocation {
    /// Units per second of each lane.
    pub(super) rates: Vec<f64>,
    /// Use of each resource by each lane, in the resource's unit per second.
    pub(super) taken: Vec<Vec<ResourceUse>>,
}

impl Allocation {
    /// Returns the amount of `resource` that `lane` uses per second.
    pub(super) fn of(&self, lane: usize, resource: usize) -> f64 {
        self.taken[lane].iter().filter(|taken| taken.resource == resource).map(|taken| taken.amount).sum()
    }
}

/// Allocates the resources to `demands`. A lane in `only` needs only the resources listed for it.
pub(super) fn allocate(
    capacities: &[f64],
    demands: &[Demand<'_>],
    only: &BTreeMap<usize, Vec<usize>>,
) -> Allocation {
    let few = |(lane, resources): (&usize, &Vec<usize>)| {
        let uses = demands[*lane].uses.iter().copied();
        (*lane, uses.filter(|need| resources.contains(&need.resource)).collect::<Vec<ResourceUse>>())
    };
    let few: BTreeMap<usize, Vec<ResourceUse>> = only.iter().map(few).collect();
    let of = |lane: usize| few.get(&lane).map_or(&demands[lane].uses[..], |uses| &uses[..]);
    let needs: Vec<&[ResourceUse]> = (0..demands.len()).map(of).collect();
    let mut classes: Vec<u8> = demands.iter().map(|demand| demand.class).collect();
    classes.sort_unstable();
    classes.dedup();

    let mut left = capacities.to_vec();
    let mut rates = vec![0.0; demands.len()];
    let mut taken = vec![Vec::new(); demands.len()];
    for class in classes {
        let members: Vec<usize> = (0..demands.len()).filter(|lane| demands[*lane].class == class).collect();
        let competitors: Vec<Competitor<'_>> = members
            .iter()
            .map(|lane| Competitor {
                weight: demands[*lane].weight,
                group: demands[*lane].group,
                needs: needs[*lane],
            })
            .collect();
        let shared = Shared::of(&competitors);
        let filled = fill(&left, &competitors, &shared);
        let met = shared.met_by_others(|one| Some(filled[one]));
        for (place, lane) in members.iter().enumerate() {
            rates[*lane] = filled[place];
            let take = |(number, need): (usize, &ResourceUse)| {
                let takes = !met.contains(&(place, number));
                ResourceUse { amount: if takes { need.amount * filled[place] } else { 0.0 }, ..*need }
            };
            taken[*lane] = needs[*lane].iter().enumerate().map(take).collect();
        }
        // A class has either only generators or only streams, see `class`.
        if members.first().is_some_and(|lane| demands[*lane].generator) {
            for resource in 0..capacities.len() {
                let reaching = up_to(resource, &competitors);
                if reaching.iter().zip(&competitors).all(|(one, all)| one.needs.len() == all.needs.len()) {
                    continue;
                }
                // Generators do not send to groups.
                let reached = fill(&left, &reaching, &Shared(Vec::new()));
                for (place, lane) in members.iter().enumerate() {
                    for (take, need) in taken[*lane].iter_mut().zip(needs[*lane]) {
                        if need.resource == resource {
                            take.amount = need.amount * reached[place];
                        }
                    }
                }
            }
        }
        for lane in members {
            for taken in &taken[lane] {
                let rest = left[taken.resource] - taken.amount;
                // A remainder within rounding counts as no capacity.
                left[taken.resource] = if rest > ROUNDING * capacities[taken.resource] { rest } else { 0.0 };
            }
        }
    }
    Allocation { rates, taken }
}

/// Returns the competitors with their needs up to `resource`, in the order in which they meet resources. A generator does not slow down for losses behind a
/// resource; therefore later needs do not count.
fn up_to<'a>(resource: usize, competitors: &[Competitor<'a>]) -> Vec<Competitor<'a>> {
    competitors
        .iter()
        .map(|one| {
            let end = one.needs.iter().position(|need| need.resource == resource);
            Competitor { needs: end.map_or(one.needs, |end| &one.needs[..=end]), ..*one }
        })
        .collect()
}

#[derive(Clone, Copy)]
struct Competitor<'a> {
    /// Bits of cells or frames in a unit; rates are kept equal in these bits.
    weight: f64,
    /// Index of the multicast group, if the competitor is a receiver of one.
    group: Option<usize>,
    needs: &'a [ResourceUse],
}

/// Needs of several receivers of a group for the same copy. Each list has pairs of a competitor and the index of the need.
struct Shared(Vec<Vec<(usize, usize)>>);

impl Shared {
    fn of(competitors: &[Competitor<'_>]) -> Self {
        let mut lists: BTreeMap<(usize, usize, usize), Vec<(usize, usize)>> = BTreeMap::new();
        for (one, competitor) in competitors.iter().enumerate() {
            let Some(group) = competitor.group else { continue };
            for (place, need) in competitor.needs.iter().enumerate() {
                lists.entry((group, need.resource, need.copy)).or_default().push((one, place));
            }
        }
        Self(lists.into_values().filter(|list| list.len() > 1).collect())
    }

    /// Returns the needs that another receiver covers. A copy carries as much as the fastest receiver behind it needs; this receiver, the first of equals,
    /// accounts for the need of all. `rate` is `None` for receivers that do not count.
    fn met_by_others(&self, rate: impl Fn(usize) -> Option<f64>) -> BTreeSet<(usize, usize)> {
        let mut met = BTreeSet::new();
        for list in &self.0 {
            let counted = list.iter().filter_map(|(one, _)| Some((*one, rate(*one)?)));
            let Some((most, _)) = counted.reduce(|one, other| if other.1 > one.1 { other } else { one })
            else {
                continue;
            };
            met.extend(list.iter().filter(|(one, _)| *one != most));
        }
        met
    }
}

/// Returns the rate of each competitor, in units per second.
fn fill(capacities: &[f64], competitors: &[Competitor<'_>], shared: &Shared) -> Vec<f64> {
    let mut rates = vec![0.0; competitors.len()];
    let mut left = capacities.to_vec();
    let mut active: Vec<usize> =
        (0..competitors.len()).filter(|one| !competitors[*one].needs.is_empty()).collect();
    let mut is_active = vec![true; competitors.len()];
    let mut level = 0.0_f64;
    while !active.is_empty() {
        let mut load = vec![0.0; capacities.len()];
        // All active competitors are at the same level, which is their rate times their weight.
        let met = shared.met_by_others(|one| is_active[one].then_some(level));
        for one in &active {
            for (place, need) in competitors[*one].needs.iter().enumerate() {
                if !met.contains(&(*one, place)) {
                    load[need.resource] += need.amount / competitors[*one].weight;
                }
            }
        }
        // The level at which a resource is used up; infinite if no active competitor needs it.
        let full_at = |resource: usize| left[resource] / load[resource];
        let needed = (0..capacities.len()).filter(|resource| load[*resource] > 0.0);
        level = needed.map(full_at).fold(f64::INFINITY, f64::min).max(level);
        // Resources that are full at the same level, within rounding, stop their flows together.
        let (stopped, going): (Vec<usize>, Vec<usize>) = active.into_iter().partition(|one| {
            competitors[*one].needs.iter().any(|need| full_at(need.resource) <= level * (1.0 + ROUNDING))
        });
        let was_active = is_active.clone();
        stopped.iter().for_each(|one| is_active[*one] = false);
        // Competitors that are still active will get more, so they cover the needs that they share with stopped ones.
        let rate = |one: usize| was_active[one].then_some(if is_active[one] { f64::INFINITY } else { level });
        let met = shared.met_by_others(rate);
        for one in stopped {
            rates[one] = level / competitors[one].weight;
            for (place, need) in competitors[one].needs.iter().enumerate() {
                if !met.contains(&(one, place)) {
                    left[need.resource] = (left[need.resource] - need.amount * rates[one]).max(0.0);
                }
            }
        }
        active = going;
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(resource: usize, amount: f64) -> ResourceUse {
        ResourceUse { resource, amount, copy: 0 }
    }

    fn rates(capacities: &[f64], needs: &[&[(usize, f64)]]) -> Vec<f64> {
        let needs: Vec<Vec<ResourceUse>> = needs
            .iter()
            .map(|uses| {
                let need = |(resource, amount): &(usize, f64)| need(*resource, *amount);
                uses.iter().map(need).collect()
            })
            .collect();
        let competitors: Vec<_> =
            needs.iter().map(|needs| Competitor { weight: 1.0, group: None, needs }).collect();
        fill(capacities, &competitors, &Shared::of(&competitors))
    }

    #[test]
    fn max_min_rates_of_two_links_match_hand_calculation() {
        // One flow over both links, and one on each. The narrow link leaves capacity on the wide one.
        let both = [(0, 1.0), (1, 1.0)];
        assert_eq!(rates(&[10.0, 100.0], &[&both, &[(0, 1.0)], &[(1, 1.0)]]), [5.0, 5.0, 95.0]);
    }

    #[test]
    fn multicast_receivers_use_a_shared_line_once() {
        // A line for all, a line for each of two receivers, and another flow on the first line.
        let needs = |own: usize| [need(0, 1.0), need(own, 1.0)];
        let (slow, fast, other) = (needs(1), needs(2), [need(0, 1.0)]);
        let one = |group, needs| Competitor { weight: 1.0, group, needs };
        let all = [one(Some(0), &slow[..]), one(Some(0), &fast[..]), one(None, &other[..])];
        assert_eq!(fill(&[10.0, 2.0, 4.0], &all, &Shared::of(&all)), [2.0, 4.0, 6.0]);
        // If its own line is wide enough, each receiver gets half of the shared line.
        assert_eq!(fill(&[10.0, 8.0, 9.0], &all, &Shared::of(&all)), [5.0, 5.0, 5.0]);
    }

    #[test]
    fn multicast_copies_on_one_line_each_take_a_share() {
        // A multicast to two receivers, each with its own copy on the line, and another flow on that line.
        let copy = |copy| [ResourceUse { copy, ..need(0, 1.0) }];
        let (first, second, other) = (copy(1), copy(2), [need(0, 1.0)]);
        let one = |group, needs| Competitor { weight: 1.0, group, needs };
        let all = [one(Some(0), &first[..]), one(Some(0), &second[..]), one(None, &other[..])];
        assert_eq!(fill(&[9.0], &all, &Shared::of(&all)), [3.0, 3.0, 3.0]);
    }

    #[test]
    fn flow_over_an_exhausted_resource_gets_no_rate() {
        assert_eq!(rates(&[0.0, 8.0], &[&[(0, 1.0), (1, 1.0)], &[(1, 2.0)]]), [0.0, 4.0]);
    }
}
