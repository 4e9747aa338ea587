//! What of a testbed only real hosts can do: refused where an answer would be wrong without it, and named where it is
//! merely left out.

use engpass_testbed::Testbed;

/// Why the engines of this crate have no answer for a testbed, in a sentence; `None` where they have.
pub fn unmodelled(testbed: &Testbed) -> Option<String> {
    let (name, traffic, cause) =
        testbed.traffic.iter().find_map(|(name, traffic)| Some((name, traffic, traffic.unmodelled()?)))?;
    Some(format!(
        "traffic `{name}` is `{}`, which only real hosts make: {cause}\n\
         help: run it with `--engine measure`, or take it out in a variant of its own",
        traffic.kind()
    ))
}

/// Keys that these engines leave out, each with its path and why.
pub fn left_out(testbed: &Testbed) -> Vec<String> {
    let live =
        testbed.traffic.iter().filter(|(_, traffic)| traffic.live().is_some_and(|live| !live.is_default()));
    live.map(|(name, _)| {
        format!("`traffic.{name}.live` is left out: it says how real hosts make the traffic")
    })
    .collect()
}
