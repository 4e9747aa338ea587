//! The accounting of bits by layer.

use engpass_model::time::Time;
use engpass_model::unit::Share;
use engpass_model::wire::ip::Fragments;
use engpass_model::wire::layers::{Layer, Layers};
use engpass_model::wire::{Encapsulation, Medium};
use engpass_testbed::topology::{Line, LinkEnds};
use proptest::prelude::*;

pub(crate) const MEDIA: [(Medium, u64); 18] = [
    // Medium, and the factor that makes the line bits of a cell a whole number.
    (Medium::Oc3c, 13),
    (Medium::Oc12c, 13),
    (Medium::Oc48c, 13),
    (Medium::Sts1, 7),
    (Medium::Ds3Plcp, 1),
    (Medium::Ds3Direct, 21),
    (Medium::E3, 5),
    (Medium::E3G751, 3),
    (Medium::E1, 15),
    (Medium::Ds1, 24),
    (Medium::Taxi100, 1),
    (Medium::Utp25, 1),
    (Medium::Atm, 1),
    (Medium::Ethernet10, 1),
    (Medium::Ethernet100, 1),
    (Medium::Ethernet1g, 1),
    (Medium::Ethernet100g, 1),
    (Medium::PointToPoint, 1),
];

fn link(medium: Medium, rate: u64) -> LinkEnds {
    let line = Line::new(medium, medium.line_rate().unwrap_or(rate));
    LinkEnds {
        name: "line".to_owned(),
        ends: [0, 1],
        medium,
        lines: [line; 2],
        delay: Time(1),
        mtu: 1500,
        overhead: 7,
        vlan: false,
        jitter: Time(0),
        loss: Share(0),
        reorder: None,
        queues: [None, None],
    }
}

fn bytes(layers: &Layers, layer: Layer) -> u64 {
    assert_eq!(layers.parts(layer) % (8 * layers.parts_per_bit()), 0, "{layer:?}");
    layers.parts(layer) / (8 * layers.parts_per_bit())
}

#[test]
fn cell_is_a_whole_number_of_parts() {
    for (medium, parts) in MEDIA {
        let wire = link(medium, 2_000_000).wire(0, Encapsulation::LlcSnap);
        assert_eq!(wire.packet(8, 100).parts_per_bit(), parts, "{medium:?}");
    }
    // 424 * 27/26 bits of an OC-3c: 5724 thirteenths.
    let cell = link(Medium::Oc3c, 0).wire(0, Encapsulation::LlcSnap).cell().unwrap();
    assert_eq!((cell.line(), cell.cells()), (5724, 1));
    assert_eq!(cell.parts(Layer::Physical), 5724 - 424 * 13);
    assert_eq!(link(Medium::Ethernet10, 0).wire(0, Encapsulation::LlcSnap).cell(), None);
}

/// 9152 bytes in 192 cells: 9180 of IP, 8 of LLC/SNAP, 8 of trailer, 20 of padding.
#[test]
fn layers_of_a_9152_byte_datagram_match_hand_calculation() {
    let layers = link(Medium::Oc3c, 0).wire(0, Encapsulation::LlcSnap).datagram(9152, 9180);
    let expected = [
        (Layer::CellHeader, 960),
        (Layer::FrameHeader, 0),
        (Layer::Padding, 20),
        (Layer::Trailer, 8),
        (Layer::Encapsulation, 8),
        (Layer::IpHeader, 20),
        (Layer::TransportHeader, 8),
        (Layer::Payload, 9152),
    ];
    for (layer, length) in expected {
        assert_eq!(bytes(&layers, layer), length, "{layer:?}");
    }
    assert_eq!((layers.cells(), layers.line()), (192, 192 * 5724));
}

/// 802.3: 8 preamble, 14 header, 4 FCS, 12 gap; an acknowledgement of 40 bytes is padded to 46.
#[test]
fn ethernet_ack_layers_match_hand_calculation() {
    let layers = link(Medium::Ethernet100, 0).wire(0, Encapsulation::LlcSnap).packet(20, 0);
    let expected =
        [(Layer::Physical, 20), (Layer::FrameHeader, 18), (Layer::Padding, 6), (Layer::TransportHeader, 20)];
    for (layer, length) in expected {
        assert_eq!(bytes(&layers, layer), length, "{layer:?}");
    }
    assert_eq!(layers.line(), 84 * 8);
}

pub(crate) fn encapsulations() -> impl Strategy<Value = Encapsulation> {
    use Encapsulation::*;
    prop::sample::select(vec![
        LlcSnap,
        VcMux,
        BridgedLlc,
        BridgedVcMux,
        PppoaVcMux,
        PppoaLlc,
        PppoeLlc,
        PppoeVcMux,
        Lane,
    ])
}

proptest! {
    /// The layers of a datagram are the sum of those of its fragments, and add up to its time on the line.
    #[test]
    fn datagram_layers_sum_to_its_line_time(
        which in 0..MEDIA.len(), rate in 1_000u64..100_000_000_000, encapsulation in encapsulations(),
        message in 1u64..65_507, mtu in 68u64..9200,
    ) {
        let link = link(MEDIA[which].0, rate);
        let wire = link.wire(0, encapsulation);
        let layers = wire.datagram(message, mtu);
        prop_assert_eq!(layers.line(), Layer::ALL.iter().map(|layer| layers.parts(*layer)).sum::<u64>());
        let cut = Fragments::of(message + 8, mtu);
        prop_assert_eq!(bytes(&layers, Layer::Payload), message);
        prop_assert_eq!(bytes(&layers, Layer::TransportHeader), 8);
        prop_assert_eq!(bytes(&layers, Layer::IpHeader), 20 * cut.count);
        if let engpass_model::wire::Framing::Cells { slot } = link.lines[0].framing {
            // The line's clock: a number of slots corresponds to a number of parts.
            let (num, den) = slot.ratio();
            let time = u128::from(num) * u128::from(layers.cells()) * wire.capacity();
            prop_assert_eq!(time, u128::from(layers.line()) * u128::from(den) * 1_000_000_000_000);
            let inside: u64 = [Layer::Padding, Layer::Trailer, Layer::Encapsulation, Layer::IpHeader,
                Layer::TransportHeader, Layer::Payload].iter().map(|layer| bytes(&layers, *layer)).sum();
            prop_assert_eq!(inside, layers.cells() * 48);
            prop_assert_eq!(bytes(&layers, Layer::CellHeader), layers.cells() * 5);
            prop_assert_eq!(bytes(&layers, Layer::Trailer), cut.count * 8);
        }
    }
}
