//! Frame rates of video.

use std::fmt;

use super::{Quantity, quantity_serde, scaled};

/// Video frames per second, in millionths: `"25 fps"`, `"29.97 fps"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameRate(pub u64);

impl FrameRate {
    /// Number of parts of one frame per second.
    pub const ONE: u64 = 1_000_000;
}

impl Quantity for FrameRate {
    const WHAT: &'static str = "a frame rate";
    const UNITS: &'static [&'static str] = &["fps"];
    const EXAMPLE: &'static str = "25 fps";

    fn parse(text: &str) -> Result<Self, String> {
        scaled::<Self>(text, "fps").map(Self)
    }
}

quantity_serde!(FrameRate);

impl fmt::Display for FrameRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:06}", self.0 % Self::ONE);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{} fps", self.0 / Self::ONE),
            fraction => write!(f, "{}.{fraction} fps", self.0 / Self::ONE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_rate_is_parsed_to_a_millionth() {
        assert_eq!(FrameRate::parse("25 fps"), Ok(FrameRate(25_000_000)));
        assert_eq!(FrameRate::parse("29.97 fps"), Ok(FrameRate(29_970_000)));
        assert_eq!(FrameRate(29_970_000).to_string(), "29.97 fps");
        assert_eq!(FrameRate(25_000_000).to_string(), "25 fps");
        assert!(FrameRate::parse("25 Hz").unwrap_err().contains("`fps`"));
    }
}
