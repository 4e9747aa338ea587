//! The ledger against closed forms: every account of a line where paper and pencil give it.

use engpass_network::simulate::{Accounts, LinkUse, SimOutcome, simulate};
use engpass_testbed::{Source, load};

const KYOTO: &str = include_str!("../../../../gallery/kyoto-1997/testbed.toml");

/// Parts of a cell on an OC-3c: 13 for a bit, 424 * 27 / 26 bits.
const CELL: u128 = 5724;

fn run(text: &str, variant: &str, overrides: &[(&str, &str)]) -> SimOutcome {
    let source = Source { name: "ledger.toml".into(), text: text.into() };
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let campaign = load(&source, &overrides, None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    let point = campaign.point(variant, &[]).unwrap_or_else(|found| panic!("{}", found.render(false)));
    simulate(&point.testbed, &point.topology, 7, &|| false).expect("it is carried and its books balance")
}

fn link<'a>(outcome: &'a SimOutcome, name: &str) -> &'a LinkUse {
    &outcome.links.iter().find(|(link, _)| link == name).expect("the link is there").1
}

fn part(accounts: &Accounts, account: &str) -> u128 {
    accounts.get(account).copied().unwrap_or(0)
}

/// The accounts that have at least `least` parts, but for overheads.
fn idle_names(accounts: &Accounts, least: u128) -> Vec<&str> {
    let idle = accounts.iter().filter(|(name, parts)| name.starts_with("idle: ") && **parts >= least);
    idle.map(|(name, _)| name.as_str()).collect()
}

#[test]
fn look() {
    for variant in ["free", "congested", "shaped-16", "shaped-18"] {
        let outcome = run(KYOTO, variant, &[("traffic.stream.message", "9 kB")]);
        for (name, link) in &outcome.links {
            println!("{variant} {name} {} {}", link.capacity, link.unit);
            for direction in &link.directions {
                println!("   {} -> {}", direction.from, direction.to);
                for (account, parts) in &direction.ledger {
                    println!(
                        "      {account:28} {parts:14} {:.4} %",
                        *parts as f64 / direction.capacity as f64 * 100.0
                    );
                }
            }
        }
    }
}
