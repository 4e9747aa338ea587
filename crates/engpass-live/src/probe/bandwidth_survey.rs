//! Measures bandwidth at many array sizes, in turns, and repeats a point until its best rate is confirmed.
//!
//! If a processor shares its cores with other guests, a thread sometimes has a whole core and sometimes half of one, for milliseconds or for seconds.
//! Consecutive samples then agree with each other, but not with samples taken later. Therefore every point is visited many times over the whole probe, and a
//! best rate counts only if a visit at another time comes near it.

use std::io;

use super::memory::{self, Effort, Kernel, Point, Taken};
use super::sample_stats::spread;
use crate::time::MILLISECOND;

/// A visit confirms a best rate if its own best is at most this fraction below it.
pub(super) const NEAR: f64 = 0.03;

/// Least time in ns between two visits that confirm each other; longer than a scheduler lets one thread run at a stretch.
const LATER: u64 = 200 * MILLISECOND;

/// Samples of one kernel (memory operation) at one place of the survey, over all visits, in bytes per second.
struct Series {
    kernel: Kernel,
    undisturbed: Vec<f64>,
    /// Rates of disturbed samples, computed with CPU time in place of wall-clock time.
    stand_in: Vec<f64>,
    /// Time of each visit in ns, with the best rate of the visit.
    bests: Vec<(u64, f64)>,
    visits: usize,
}

impl Series {
    fn new(kernel: Kernel) -> Self {
        Self { kernel, undisturbed: Vec::new(), stand_in: Vec::new(), bests: Vec::new(), visits: 0 }
    }

    fn add(&mut self, at: u64, taken: &Taken) {
        self.visits += 1;
        self.undisturbed.extend(&taken.undisturbed);
        self.stand_in.extend(&taken.stand_in);
        self.bests.extend(taken.undisturbed.iter().copied().reduce(f64::max).map(|best| (at, best)));
    }

    fn best(&self) -> Option<(u64, f64)> {
        self.bests.iter().copied().reduce(|one, other| if other.1 > one.1 { other } else { one })
    }

    /// Returns whether a visit at another time came near the best rate of the series.
    fn confirmed(&self) -> bool {
        let Some((when, best)) = self.best() else { return false };
        self.bests.iter().any(|(at, rate)| at.abs_diff(when) >= LATER && *rate >= best * (1.0 - NEAR))
    }

    /// Returns whether the point needs no more visits. Agreement of the first visits is not enough, because all of them may have fallen into a slow period.
    fn settled(&self, enough: usize) -> bool {
        self.visits >= enough && self.confirmed()
    }

    /// Returns the rank in which the point is visited, smallest first. A confirmed point is visited half as often as an unconfirmed one, and a quarter as often
    /// as an unconfirmed one that the model needs.
    fn turn(&self, needed: bool) -> usize {
        match (self.confirmed(), needed) {
            (false, true) => self.visits,
            (false, false) => 2 * self.visits,
            (true, _) => 4 * self.visits,
        }
    }

    fn point(&self, bytes: usize, threads: usize) -> Option<Point> {
        let rate = match (self.undisturbed.is_empty(), self.stand_in.is_empty()) {
            (false, _) => spread(&self.undisturbed),
            // A hypervisor can make CPU times too short, so of these samples only the median is used.
            (true, false) => {
                let all = spread(&self.stand_in);
                super::Spread { best: all.median, ..all }
            }
            (true, true) => return None,
        };
        let (kernel, visits, confirmed) = (self.kernel, self.visits, self.confirmed());
        Some(Point { kernel, bytes: bytes as u64, threads, rate, visits, confirmed })
    }
}

/// A place of the survey: one array size with one number of threads.
struct Place {
    bytes: usize,
    threads: usize,
    /// Whether the model takes figures from this place.
    needed: bool,
    series: Vec<Series>,
    failed: Option<String>,
}

/// All places to measure.
pub(super) struct Survey {
    places: Vec<Place>,
    enough: usize,
}

impl Survey {
    /// Creates an empty survey. A point is settled once it is confirmed and has had `enough` visits.
    pub(super) fn new(enough: usize) -> Self {
        Self { places: Vec::new(), enough }
    }

    /// Adds a place, with whether the model needs it. Returns its index.
    pub(super) fn add(&mut self, bytes: usize, threads: usize, needed: bool, kernels: &[Kernel]) -> usize {
        let series = kernels.iter().copied().filter(|kernel| kernel.is_here()).map(Series::new).collect();
        self.places.push(Place { bytes, threads, needed, series, failed: None });
        self.places.len() - 1
    }

    /// Returns the number of places.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Returns array size in bytes and number of threads of a place.
    pub(super) fn place(&self, place: usize) -> (usize, usize) {
        (self.places[place].bytes, self.places[place].threads)
    }

    /// Visits a place: measures those of its unsettled kernels that come next. `take` measures kernels once, given the array size in bytes, the number of
    /// threads and the number of the visit.
    pub(super) fn visit(
        &mut self,
        place: usize,
        now: u64,
        mut take: impl FnMut(&[Kernel], usize, usize, usize) -> io::Result<Vec<Taken>>,
    ) {
        let enough = self.enough;
        let place = &mut self.places[place];
        let Some(turn) = place.turn(enough) else { return };
        let mut due: Vec<&mut Series> = place
            .series
            .iter_mut()
            .filter(|series| !series.settled(enough) && series.turn(place.needed) <= turn)
            .collect();
        let kernels: Vec<Kernel> = due.iter().map(|series| series.kernel).collect();
        let visit = due.iter().map(|series| series.visits).max().unwrap_or(0);
        match take(&kernels, place.bytes, place.threads, visit) {
            Ok(all) => due.iter_mut().zip(&all).for_each(|(series, taken)| series.add(now, taken)),
            Err(error) => place.failed = Some(error.to_string()),
        }
    }

    /// Returns the place to visit next, or `None` when all are settled or failed.
    pub(super) fn next(&self) -> Option<usize> {
        let turns = self.places.iter().enumerate();
        turns
            .filter_map(|(index, place)| Some((place.turn(self.enough)?, index)))
            .min()
            .map(|(_, index)| index)
    }

    pub(super) fn points(&self) -> Vec<Point> {
        let of = |place: &Place| {
            let points = place.series.iter().filter_map(|series| series.point(place.bytes, place.threads));
            points.collect::<Vec<_>>()
        };
        self.places.iter().flat_map(of).collect()
    }

    /// Returns the reason why a place could not be measured, if any failed.
    pub(super) fn failed(&self) -> Option<&str> {
        self.places.iter().find_map(|place| place.failed.as_deref())
    }
}

impl Place {
    fn turn(&self, enough: usize) -> Option<usize> {
        if self.failed.is_some() {
            return None;
        }
        let waiting = self.series.iter().filter(|series| !series.settled(enough));
        waiting.map(|series| series.turn(self.needed)).min()
    }
}

/// Measures kernels at one array size, in a single visit. The samples of the kernels alternate, so that a disturbance that lasts a while affects all of them.
///
/// # Errors
/// Fails when there is not enough memory or a thread cannot be started.
pub fn measure(kernels: &[Kernel], bytes: usize, cpus: &[usize], effort: Effort) -> io::Result<Vec<Point>> {
    let mut survey = Survey::new(1);
    let place = survey.add(bytes, cpus.len(), true, kernels);
    let mut failed = None;
    survey.visit(place, 0, |kernels, bytes, _, _| {
        memory::visit(kernels, bytes, cpus, effort).inspect_err(|error| failed = Some(error.kind()))
    });
    failed.map_or_else(|| Ok(survey.points()), |kind| Err(kind.into()))
}

#[cfg(test)]
mod tests {
    use super::super::sys;
    use super::*;
    use crate::time::SECOND;

    const ENOUGH: usize = 20;

    /// Runs a survey of two places with an artificial sampler. At most `visits` visits are `step` ns apart; the sampler gets the number of the visit.
    fn survey(visits: usize, step: u64, mut rate: impl FnMut(usize, Kernel) -> f64) -> (Survey, usize) {
        let mut survey = Survey::new(ENOUGH);
        for bytes in [1 << 13, 1 << 20] {
            survey.add(bytes, 1, false, &[Kernel::Read, Kernel::CopyLibrary]);
        }
        let mut done = 0;
        while let Some(place) = survey.next().filter(|_| done < visits) {
            survey.visit(place, done as u64 * step, |kernels, _, _, _| {
                Ok(kernels
                    .iter()
                    .map(|kernel| Taken { undisturbed: vec![rate(done, *kernel)], stand_in: Vec::new() })
                    .collect())
            });
            done += 1;
        }
        (survey, done)
    }

    #[test]
    fn every_available_kernel_is_measured() {
        let effort = Effort { repeats: 2, sample: 1 << 14 };
        let points = measure(&Kernel::ALL, 1 << 13, &sys::cpus()[..1], effort).unwrap();
        assert_eq!(points.len(), Kernel::ALL.into_iter().filter(|kernel| kernel.is_here()).count());
        for point in points {
            assert!(point.rate.least > 0.0 && point.rate.least <= point.rate.median, "{point:?}");
            assert!(point.rate.median <= point.rate.best, "{point:?}");
        }
    }

    #[test]
    fn repeatable_rates_are_confirmed_after_few_visits() {
        let (survey, done) = survey(1000, SECOND, |visit, _| 1e9 + visit as f64);
        assert_eq!(done, 2 * ENOUGH);
        assert!(survey.points().iter().all(|point| point.confirmed && point.visits == ENOUGH));
    }

    #[test]
    fn best_rate_of_one_visit_in_four_is_confirmed() {
        // Three visits of four run at half the rate, so the value on which the first visits agree is not the best.
        let (survey, done) = survey(1000, SECOND, |visit, _| if visit % 8 < 2 { 2e9 } else { 1e9 });
        assert!((2 * 20..1000).contains(&done), "{done}");
        for point in survey.points() {
            assert_eq!((point.rate.best, point.rate.least, point.confirmed), (2e9, 1e9, true));
            assert!(point.visits >= ENOUGH);
        }
    }

    #[test]
    fn best_rate_that_nothing_comes_near_is_not_confirmed() {
        let (survey, _) = survey(100, SECOND, |visit, _| if visit < 2 { 2e9 } else { 1.9e9 });
        let points = survey.points();
        assert!(points.iter().all(|point| !point.confirmed && point.rate.best == 2e9), "{points:?}");
        assert!(survey.next().is_some(), "unconfirmed points need further visits");
    }

    #[test]
    fn samples_close_in_time_do_not_confirm_each_other() {
        let (survey, _) = survey(100, SECOND / 1000, |_, _| 1e9);
        assert!(survey.points().iter().all(|point| !point.confirmed));
    }

    #[test]
    fn unconfirmed_points_are_visited_more_often() {
        let mut at = 0;
        let (survey, _) = survey(60, SECOND, |visit, kernel| {
            at += 1;
            match kernel {
                // The rate is different at every visit.
                Kernel::Read => 1e9 * 1.05_f64.powi(at),
                _ if visit % 4 < 2 => 1e9,
                _ => 2e9,
            }
        });
        for pair in survey.points().chunks(2) {
            let [read, copy] = pair else { panic!("each size has a read and a copy point") };
            assert!(!read.confirmed && copy.confirmed, "{pair:?}");
            assert!(read.visits > copy.visits, "{pair:?}");
        }
    }

    #[test]
    fn points_needed_by_the_model_are_visited_more_often() {
        let mut survey = Survey::new(ENOUGH);
        let (other, needed) =
            (survey.add(1 << 13, 1, false, &[Kernel::Read]), survey.add(1 << 20, 1, true, &[Kernel::Read]));
        let mut visits = [0, 0];
        for visit in 0..30_i32 {
            let place = survey.next().unwrap();
            visits[usize::from(place == needed)] += 1;
            survey.visit(place, SECOND * visit as u64, |_, _, _, _| {
                Ok(vec![Taken { undisturbed: vec![1.05_f64.powi(visit)], stand_in: Vec::new() }])
            });
        }
        assert_eq!((visits, other), ([10, 20], 0));
    }

    /// Simulates a survey of 15 sizes and four kernels on a processor shared with another guest: for two thirds of the time, up to some seconds at a stretch,
    /// it runs at half speed. A visit takes 130 ms, and the survey lasts 40 s. Returns the best rates, those after the first visits alone, and whether each
    /// point was confirmed.
    fn shared(seed: u64) -> (Vec<f64>, Vec<f64>, Vec<bool>) {
        let mut random = engpass_model::random::Stream::new(seed, "shared");
        // Whether the processor is fast, per tenth of a second.
        let mut states = Vec::new();
        while states.len() < 500 {
            let fast = random.below(3) == 0;
            states.extend(std::iter::repeat_n(fast, 5 + random.below(30) as usize));
        }
        let mut survey = Survey::new(ENOUGH);
        let kernels = [Kernel::Read, Kernel::Write, Kernel::CopyLibrary, Kernel::Checksum];
        for size in 0..15 {
            survey.add(1 << (13 + size), 1, false, &kernels);
        }
        let (mut now, mut first) = (0, Vec::new());
        while let Some(place) = survey.next().filter(|_| now < 40 * SECOND) {
            let fast = states[(now * 10 / SECOND) as usize];
            survey.visit(place, now, |kernels, _, _, _| {
                let mut rate = || if fast { 2e9 } else { 1e9 } * (1.0 - random.below(100) as f64 / 5e3);
                let taken =
                    kernels.iter().map(|_| Taken { undisturbed: vec![rate(), rate()], stand_in: Vec::new() });
                Ok(taken.collect())
            });
            now += SECOND * 13 / 100;
            if now == SECOND * 13 / 100 * 15 {
                first = survey.points().iter().map(|point| point.rate.best).collect();
            }
        }
        let points = survey.points();
        let bests = points.iter().map(|point| point.rate.best).collect();
        (bests, first, points.iter().map(|point| point.confirmed).collect())
    }

    #[test]
    fn two_probes_of_a_shared_cpu_agree() {
        let apart = |one: &[f64], other: &[f64]| {
            one.iter().zip(other).filter(|(one, other)| (*one / *other - 1.0).abs() > 0.05).count()
        };
        let (mut bests, mut firsts, mut confirmed, mut all) = (0, 0, 0, 0);
        for seed in 0..20 {
            let (one, other) = (shared(2 * seed), shared(2 * seed + 1));
            all += one.0.len();
            bests += apart(&one.0, &other.0);
            firsts += apart(&one.1, &other.1);
            confirmed += one.2.iter().filter(|sure| **sure).count();
        }
        assert!(firsts * 3 > all, "first visits differ in only {firsts} of {all}");
        assert!(bests * 50 < all, "best rates differ in {bests} of {all}");
        assert!(confirmed * 100 > all * 95, "only {confirmed} of {all} points were confirmed");
    }

    #[test]
    fn survey_skips_a_size_without_memory() {
        let mut survey = Survey::new(ENOUGH);
        let place = survey.add(1 << 13, 1, false, &[Kernel::Read]);
        survey.visit(place, 0, |_, _, _, _| Err(io::Error::from_raw_os_error(libc::ENOMEM)));
        assert_eq!((survey.next(), survey.points().len()), (None, 0));
        assert!(survey.failed().unwrap().contains("memory"));
    }

    #[test]
    fn median_stands_in_if_every_sample_is_disturbed() {
        let mut survey = Survey::new(ENOUGH);
        let place = survey.add(1 << 13, 1, false, &[Kernel::Read]);
        survey.visit(place, 0, |_, _, _, _| {
            Ok(vec![Taken { undisturbed: Vec::new(), stand_in: vec![5e8, 1e8, 1e8] }])
        });
        let point = &survey.points()[0];
        assert_eq!((point.rate.best, point.rate.median, point.confirmed), (1e8, 1e8, false));
    }
}
