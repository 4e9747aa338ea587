//! Networks with multicast traffic, in which nodes make copies.

use engpass_model::event::{Event, EventChange};
use engpass_model::igmp::Igmp;
use engpass_model::source::multicast::Group;
use engpass_model::source::{Frames, Live, Multicast, Traffic};
use engpass_model::time::SECOND;
use engpass_model::unit::{Duration, FrameRate, Rate, Share, Size};
use engpass_simulate::{Engine, modelled};
use engpass_testbed::{Source, Testbed, load};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

use super::{AFFORDABLE, Drawn, joined, mesh, narrow, plain, tunnelled};
use crate::networks::text::text;

/// Multicast traffic of a host.
#[derive(Clone, Debug)]
struct GroupDraw {
    /// The sender, the rotation of the receivers (both modulo the number of hosts), and their maximum number.
    from: usize,
    turned: usize,
    most: usize,
    message: u64,
    /// Number of messages in the run.
    times: u64,
    ttl: u8,
    priority: u8,
    /// Start and stop in parts per 1000 of the run.
    start: Option<u64>,
    stop: Option<u64>,
    /// Frames in a group of pictures of a video.
    video: Option<u32>,
    /// Its position in the traffic list.
    place: usize,
    /// Timers of IGMP: number and interval of the reports, number and interval of the queries, membership interval; intervals in parts per 1000 of the run.
    igmp: (u64, u64, u64, u64, u64),
    /// Receivers that join and leave.
    members: Vec<MemberDraw>,
}

/// A receiver that joins and leaves.
#[derive(Clone, Debug)]
struct MemberDraw {
    /// It leaves once, and never joins.
    only_leaves: bool,
    /// Times of the changes in parts per 1000 of the run, sorted; it joins first.
    at: Vec<u64>,
    /// Interval at which the first two changes repeat, in parts per 1000 of the run beyond their distance.
    every: Option<u64>,
}

fn member() -> impl Strategy<Value = MemberDraw> {
    (prop::bool::weighted(0.25), vec(0u64..=1050, 1..=5), weighted(0.3, 1u64..=400)).prop_map(
        |(only_leaves, mut at, every)| {
            at.sort_unstable();
            MemberDraw { only_leaves, at, every }
        },
    )
}

impl MemberDraw {
    /// Returns the events of the receiver.
    fn events(&self, host: &str, traffic: &str, run: u64) -> Vec<Event> {
        let part = |parts: u64| Duration((run / 1000 * parts).max(1));
        let event = |at: u64, change, every| Event {
            target: host.to_owned(),
            traffic: Some(traffic.to_owned()),
            at: Some(part(at)),
            change: Some(change),
            every,
            mean_time_between_failures: None,
            mean_time_to_repair: None,
        };
        if self.only_leaves {
            return vec![event(self.at[0], EventChange::Leave, None)];
        }
        let changes = [EventChange::Join, EventChange::Leave];
        if let (Some(every), [join, leave, ..]) = (self.every, &self.at[..]) {
            let every = Some(part(leave - join + every));
            return vec![event(*join, changes[0], every), event(*leave, changes[1], every)];
        }
        let each = self.at.iter().zip(changes.iter().cycle());
        each.map(|(at, change)| event(*at, *change, None)).collect()
    }
}

fn group() -> impl Strategy<Value = GroupDraw> {
    let message =
        prop_oneof![2 => 12u64..=100, 4 => 100u64..=1500, 3 => 1500u64..=6_000, 1 => 6_000u64..=30_000];
    let ttl = prop_oneof![9 => Just(64u8), 1 => 1u8..=4];
    let window = (weighted(0.3, 0u64..=500), weighted(0.2, 501u64..=1200), weighted(0.3, 1u32..=4));
    let igmp = (1u64..=3, 1u64..=300, 1u64..=3, 1u64..=60, 1u64..=500);
    let members = prop_oneof![1 => Just(Vec::new()), 2 => vec(member(), 1..=4)];
    let whole = ((0usize..5, 0usize..5, 1usize..=4), message, 1u64..=60, (ttl, 0u8..=7), window, 0usize..5);
    (whole, igmp, members).prop_map(
        |(
            ((from, turned, most), message, times, (ttl, priority), (start, stop, video), place),
            igmp,
            members,
        )| {
            GroupDraw {
                from,
                turned,
                most,
                message,
                times,
                ttl,
                priority,
                start,
                stop,
                video,
                place,
                igmp,
                members,
            }
        },
    )
}

impl GroupDraw {
    fn traffic(&self, testbed: &Testbed) -> Multicast {
        let mut hosts: Vec<String> = testbed.hosts.keys().cloned().collect();
        let from = hosts.remove(self.from % hosts.len());
        let turned = self.turned % hosts.len();
        hosts.rotate_left(turned);
        hosts.truncate(self.most);
        let run = testbed.run.duration.0;
        let bytes = (self.times * self.message).min(AFFORDABLE);
        let rate = u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(run);
        let part = |parts: u64| Duration(run / 1000 * parts);
        let some = |parts: u64| Duration((run / 1000 * parts).max(1));
        Multicast {
            from,
            to: hosts,
            group: Group::parse("239.255.0.1").expect("the address is a multicast group"),
            message: Size(self.message),
            rate: Rate(rate.max(1) as u64),
            // On average three datagrams in a frame.
            video: self.video.map(|group_of_pictures| Frames {
                frame_rate: FrameRate(
                    (rate as u64 / 24 * FrameRate::ONE / self.message).clamp(100_000, 1_000_000_000),
                ),
                group_of_pictures,
                intra_size: Share(Share::WHOLE * u64::from(group_of_pictures)),
            }),
            receive_buffer: None,
            igmp: Igmp {
                robustness: self.igmp.0,
                unsolicited_report_interval: some(self.igmp.1),
                last_member_query_count: self.igmp.2,
                last_member_query_interval: some(self.igmp.3),
                group_membership_interval: some(self.igmp.4),
            },
            live: Live::default(),
            priority: self.priority,
            ttl: self.ttl,
            start: self.start.map(part),
            stop: self.stop.map(part),
        }
    }
}

/// Returns true if the engine supports the testbed with its groups.
fn is_carried(testbed: &Testbed) -> bool {
    let source = Source { name: "random.toml".into(), text: text(testbed) };
    let Ok(campaign) = load(&source, &[], None) else { return false };
    let Ok(point) = campaign.point("base", &[]) else { return false };
    modelled(&point.testbed, &point.topology, Engine::Simulate).is_ok()
}

/// Adds those of these groups that the engine supports.
fn grouped(mut testbed: Testbed, draws: &[GroupDraw]) -> Testbed {
    for (number, draw) in draws.iter().enumerate() {
        let mut with = testbed.clone();
        let place = draw.place % (with.traffic.len() + 1);
        let (traffic, name) = (draw.traffic(&testbed), format!("m{number}"));
        for (place, member) in draw.members.iter().enumerate().filter(|(place, _)| *place < traffic.to.len())
        {
            // Each receiver has one draw.
            let host = &traffic.to[(place + draw.turned) % traffic.to.len()];
            for (index, event) in member.events(host, &name, testbed.run.duration.0).into_iter().enumerate() {
                with.events.insert(format!("{name}-{place}-{index}"), event);
            }
        }
        with.traffic.shift_insert(place, name, Traffic::Multicast(traffic));
        if is_carried(&with) {
            testbed = with;
        }
    }
    testbed
}

/// Returns a network that sometimes has multicast traffic.
pub(super) fn at_times(networks: impl Strategy<Value = Drawn>) -> impl Strategy<Value = Drawn> {
    (networks, weighted(0.2, vec(group(), 1..=2))).prop_map(|(Drawn(testbed), draws)| {
        Drawn(match draws {
            Some(draws) if testbed.hosts.len() > 2 => grouped(testbed, &draws),
            _ => testbed,
        })
    })
}

/// Returns a random network with multicast traffic to several receivers.
pub(crate) fn groups() -> impl Strategy<Value = Drawn> {
    let networks = prop_oneof![
        4 => plain().boxed(),
        3 => mesh::mesh().boxed(),
        2 => tunnelled::at_times(joined::joined()).boxed(),
        1 => tunnelled::at_times(narrow::narrow()).boxed(),
    ];
    let networks = networks.prop_filter("it has several receivers", |Drawn(testbed)| testbed.hosts.len() > 2);
    let copying = weighted(0.3, 1u64..=300_000_000);
    let grouped =
        (networks, vec(group(), 1..=3), copying).prop_map(|(Drawn(mut testbed), draws, per_copy)| {
            for router in testbed.routers.values_mut() {
                router.per_copy = Duration(per_copy.unwrap_or(0));
            }
            Drawn(self::grouped(testbed, &draws))
        });
    grouped.prop_filter("a group has several receivers", |Drawn(testbed)| {
        let several =
            |traffic: &Traffic| matches!(traffic, Traffic::Multicast(config) if config.to.len() > 1);
        testbed.traffic.values().any(several)
    })
}
