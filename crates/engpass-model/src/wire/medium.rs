//! Media: line rate and physical framing.
//!
//! Cell rates follow ITU-T I.432 and the framing standards named at each medium. Cells are slots at the payload rate. The 125 us row
//! structure of SDH, a jitter of about 0.6 us, is not modelled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::aal5::CELL_BITS;
use crate::time::Pace;

/// A medium, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum Medium {
    /// SONET STS-3c / SDH STM-1: 155.52 Mbit/s, 260 of 270 columns carry cells (ITU-T I.432.2).
    #[serde(rename = "oc-3c")]
    Oc3c,
    /// SONET STS-12c / SDH STM-4c: 622.08 Mbit/s, 1040 of 1080 columns carry cells (ITU-T I.432.2).
    #[serde(rename = "oc-12c")]
    Oc12c,
    /// SONET STS-48c / SDH STM-16c: 2488.32 Mbit/s, 4160 of 4320 columns carry cells.
    #[serde(rename = "oc-48c")]
    Oc48c,
    /// SONET STS-1: 51.84 Mbit/s, 48.384 Mbit/s of cells (ATM Forum af-phy-0054).
    #[serde(rename = "sts-1")]
    Sts1,
    /// DS3 with PLCP framing: 44.736 Mbit/s, 12 cells every 125 us (af-phy-0054).
    #[serde(rename = "ds3")]
    Ds3Plcp,
    /// DS3 with direct (HEC) mapping: 84 of 85 bits carry cells (ITU-T G.804).
    #[serde(rename = "ds3-direct")]
    Ds3Direct,
    /// E3 with G.832 framing: 34.368 Mbit/s, 530 of 537 bytes carry cells (ITU-T G.832, G.804).
    #[serde(rename = "e3")]
    E3,
    /// E3 with G.751 PLCP framing: 34.368 Mbit/s, 9 cells every 125 us.
    #[serde(rename = "e3-g751")]
    E3G751,
    /// E1: 2.048 Mbit/s, 30 of 32 time slots carry cells (ITU-T G.804).
    #[serde(rename = "e1")]
    E1,
    /// DS1: 1.544 Mbit/s, 192 of 193 bits carry cells (ITU-T G.804).
    #[serde(rename = "ds1")]
    Ds1,
    /// TAXI 100 Mbit/s, 4B/5B; one start symbol per cell, 54 bytes for 53 (estimate after the ATM Forum UNI 3.1).
    #[serde(rename = "taxi-100")]
    Taxi100,
    /// 25.6 Mbit/s over twisted pair, 4B/5B; one command byte per cell, 54 bytes for 53 (af-phy-0040).
    #[serde(rename = "25.6")]
    Utp25,
    /// A bare cell stream at the link's `rate`, as on an ADSL line: the rate counts bits of whole cells.
    #[serde(rename = "atm")]
    Atm,
    /// Ethernet at 10 Mbit/s (IEEE 802.3).
    #[serde(rename = "ethernet-10")]
    Ethernet10,
    /// Ethernet at 100 Mbit/s.
    #[serde(rename = "ethernet-100")]
    Ethernet100,
    /// Ethernet at 1 Gbit/s.
    #[serde(rename = "ethernet-1g")]
    Ethernet1g,
    /// Ethernet at 2.5 Gbit/s.
    #[serde(rename = "ethernet-2.5g")]
    Ethernet2500,
    /// Ethernet at 5 Gbit/s.
    #[serde(rename = "ethernet-5g")]
    Ethernet5g,
    /// Ethernet at 10 Gbit/s.
    #[serde(rename = "ethernet-10g")]
    Ethernet10g,
    /// Ethernet at 25 Gbit/s.
    #[serde(rename = "ethernet-25g")]
    Ethernet25g,
    /// Ethernet at 40 Gbit/s.
    #[serde(rename = "ethernet-40g")]
    Ethernet40g,
    /// Ethernet at 50 Gbit/s.
    #[serde(rename = "ethernet-50g")]
    Ethernet50g,
    /// Ethernet at 100 Gbit/s.
    #[serde(rename = "ethernet-100g")]
    Ethernet100g,
    /// A point-to-point link at the link's `rate`, with the link's `overhead` around every packet.
    #[serde(rename = "point-to-point")]
    PointToPoint,
}

/// Physical framing of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Cells, each of which takes one `slot` of the line.
    Cells {
        /// Time from the begin of one cell to the next, framing included.
        slot: Pace,
    },
    /// Ethernet frames: 8 bytes of preamble, 14 of header, 4 of FCS and 12 of gap, and at least 46 bytes of payload.
    Ethernet,
    /// Packets with a fixed overhead each.
    Packets,
}

impl Medium {
    /// Line rate in bit/s. `None` if the link's own `rate` defines it.
    pub const fn line_rate(self) -> Option<u64> {
        Some(match self {
            Self::Oc3c => 155_520_000,
            Self::Oc12c => 622_080_000,
            Self::Oc48c => 2_488_320_000,
            Self::Sts1 => 51_840_000,
            Self::Ds3Plcp | Self::Ds3Direct => 44_736_000,
            Self::E3 | Self::E3G751 => 34_368_000,
            Self::E1 => 2_048_000,
            Self::Ds1 => 1_544_000,
            Self::Taxi100 => 100_000_000,
            Self::Utp25 => 25_600_000,
            Self::Ethernet10 => 10_000_000,
            Self::Ethernet100 => 100_000_000,
            Self::Ethernet1g => 1_000_000_000,
            Self::Ethernet2500 => 2_500_000_000,
            Self::Ethernet5g => 5_000_000_000,
            Self::Ethernet10g => 10_000_000_000,
            Self::Ethernet25g => 25_000_000_000,
            Self::Ethernet40g => 40_000_000_000,
            Self::Ethernet50g => 50_000_000_000,
            Self::Ethernet100g => 100_000_000_000,
            Self::Atm | Self::PointToPoint => return None,
        })
    }

    /// Framing of the medium at `line_rate` bit/s.
    pub fn framing(self, line_rate: u64) -> Framing {
        // (bits of cells, bits of line): the fraction of the line that carries cells.
        let (cells, line) = match self {
            Self::Oc3c | Self::Oc12c | Self::Oc48c => (26, 27),
            Self::Sts1 => (14, 15),
            Self::Ds3Plcp => (40_704, 44_736),
            Self::Ds3Direct => (84, 85),
            Self::E3 => (530, 537),
            Self::E3G751 => (30_528, 34_368),
            Self::E1 => (30, 32),
            Self::Ds1 => (192, 193),
            Self::Taxi100 | Self::Utp25 => (53, 54),
            Self::Atm => (1, 1),
            Self::PointToPoint => return Framing::Packets,
            _ => return Framing::Ethernet,
        };
        Framing::Cells { slot: Pace::of_bits(CELL_BITS, line_rate).stretched(line, cells) }
    }

    /// Whether the medium sends its framing all the time, as a synchronous line does; then idle time contains framing, too. Otherwise each
    /// cell or packet brings its own framing, and idle time contains none.
    pub const fn frames_idle_time(self) -> bool {
        matches!(
            self,
            Self::Oc3c
                | Self::Oc12c
                | Self::Oc48c
                | Self::Sts1
                | Self::Ds3Plcp
                | Self::Ds3Direct
                | Self::E3
                | Self::E3G751
                | Self::E1
                | Self::Ds1
        )
    }

    /// Whether the medium carries cells.
    pub fn is_atm(self) -> bool {
        matches!(self.framing(1_000_000), Framing::Cells { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells_per_second(medium: Medium) -> u64 {
        match medium.framing(medium.line_rate().unwrap()) {
            Framing::Cells { slot } => slot.per_second() as u64,
            _ => panic!("the medium is not ATM"),
        }
    }

    #[test]
    fn cell_rates_of_media_match_published_values() {
        for (medium, rate) in [
            (Medium::Oc3c, 353_207),
            (Medium::Oc12c, 1_412_830),
            (Medium::Sts1, 114_113),
            (Medium::Ds3Plcp, 96_000),
            (Medium::Ds3Direct, 104_268),
            (Medium::E3, 80_000),
            (Medium::E3G751, 72_000),
            (Medium::E1, 4528),
            (Medium::Ds1, 3622),
            (Medium::Taxi100, 231_481),
            (Medium::Utp25, 59_259),
        ] {
            assert_eq!(cells_per_second(medium), rate, "{medium:?}");
        }
    }

    #[test]
    fn ethernet_and_point_to_point_are_not_atm() {
        assert!(!Medium::Ethernet10g.is_atm() && !Medium::PointToPoint.is_atm() && Medium::Atm.is_atm());
    }
}
