//! A small and strict reader of pcapng files.

/// A block of a file.
#[derive(Debug)]
pub(crate) enum Block {
    Section {
        comment: String,
    },
    Interface {
        link_type: u16,
        name: String,
        resolution: u8,
    },
    /// Its instant `at` is in nanoseconds.
    Packet {
        interface: u32,
        at: u64,
        bytes: Vec<u8>,
    },
}

impl Block {
    /// Returns interface, instant and bytes, if it is a packet.
    pub(crate) fn packet(&self) -> Option<(u32, u64, &[u8])> {
        match self {
            Self::Packet { interface, at, bytes } => Some((*interface, *at, bytes)),
            _ => None,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

/// Returns all options, up to the mandatory end.
fn options(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    loop {
        let (code, length) = (half(bytes, 0), usize::from(half(bytes, 2)));
        if code == 0 {
            assert_eq!((length, bytes.len()), (0, 4), "no option follows the end of options");
            return found;
        }
        found.push((code, &bytes[4..4 + length]));
        bytes = &bytes[4 + length.next_multiple_of(4)..];
    }
}

/// Returns all blocks of a file.
pub(crate) fn read(mut file: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut interfaces = 0;
    while !file.is_empty() {
        let (kind, length) = (word(file, 0), word(file, 4) as usize);
        assert_eq!(length % 4, 0);
        assert_eq!(word(file, length - 4) as usize, length, "a block repeats its length at its end");
        let body = &file[8..length - 4];
        file = &file[length..];
        let text = |options: &[(u16, &[u8])], code: u16| {
            let found = options.iter().find(|(known, _)| *known == code);
            String::from_utf8(found.expect("the block has the option").1.to_vec())
                .expect("the option text is UTF-8")
        };
        blocks.push(match kind {
            0x0a0d_0d0a => {
                assert_eq!((word(body, 0), half(body, 4), half(body, 6)), (0x1a2b_3c4d, 1, 0));
                Block::Section { comment: text(&options(&body[16..]), 1) }
            }
            1 => {
                interfaces += 1;
                let options = options(&body[8..]);
                let resolution = options
                    .iter()
                    .find(|(code, _)| *code == 9)
                    .expect("the interface block has a time resolution")
                    .1[0];
                Block::Interface { link_type: half(body, 0), name: text(&options, 2), resolution }
            }
            6 => {
                let (interface, captured, length) = (word(body, 0), word(body, 12), word(body, 16));
                assert!(interface < interfaces, "an interface is described before it is used");
                assert_eq!(captured, length, "packets are captured in full");
                let bytes = body[20..20 + length as usize].to_vec();
                assert_eq!(body.len(), 20 + bytes.len().next_multiple_of(4));
                let at = u64::from(word(body, 4)) << 32 | u64::from(word(body, 8));
                Block::Packet { interface, at, bytes }
            }
            other => panic!("unexpected block type {other:#x}"),
        });
    }
    blocks
}
