//! Packet scripts for one TCP endpoint; the script plays the other end.
//!
//! A line is a time in milliseconds and an event. `>` is a segment that the endpoint must send at that time; `<` is one that it receives.
//! Both have the form `FLAGS SEQ:END [ack N] [win N] [sack A-B,…|nosack] [ts VALUE-ECHO] [ECE] [CWR] [CE]`, with flags as in tcpdump (`S`,
//! `F`, `P`, `R`, `.` for ACK). Fields that an expectation does not name are not compared. `write N`, `read N` and `close` are calls of the
//! application; `too-big SEQ MTU [ignored]` is a signal of a router. The script must contain every segment that the endpoint sends.

use std::collections::VecDeque;

use engpass_model::tcp::parameters::{Nagle, RecoveryKind, Role};
use engpass_model::tcp::{
    Connection, Effects, Flags, Profile, SackBlocks, Segment, TcpParameters, Timestamps,
};
use engpass_model::time::{SECOND, Time};

/// A simple endpoint with segments of 1000 bytes and no options, as a base for scripts.
pub(crate) fn plain() -> TcpParameters {
    TcpParameters {
        window_scaling: false,
        timestamps: false,
        nagle: Nagle::Off,
        ack_every: 1,
        quick_acks: 0,
        rto_floor: engpass_model::tcp::parameters::RtoFloor::Timeout,
        rto_minimum: Time::from_secs(1),
        initial_window: 10,
        byte_counting: 1,
        whole_segments: false,
        window_validation: false,
        recovery: RecoveryKind::NewReno,
        limited_transmit: false,
        undo: false,
        congestion: crate::delivery::congestion("reno"),
        receive_buffer: 65535,
        send_buffer: 1 << 20,
        persist_minimum: Time::from_secs(1),
        ..Profile::Linux6.parameters(1040)
    }
}

pub(crate) struct Script {
    pub(crate) end: Connection,
    pub(crate) out: Effects,
    now: Time,
    sent: VecDeque<(Time, Segment)>,
}

impl Script {
    pub(crate) fn new(p: &TcpParameters, role: Role) -> Self {
        Self {
            end: Connection::new(p, role),
            out: Effects::default(),
            now: Time::ZERO,
            sent: VecDeque::new(),
        }
    }

    /// An endpoint whose connection was opened at 0 with a round-trip time of 100 ms and a window of `window` bytes.
    pub(crate) fn established(p: &TcpParameters, window: u64) -> Self {
        let mut script = Self::new(p, Role::Active);
        let sack = if p.recovery == RecoveryKind::Sack || p.recovery == RecoveryKind::RackTlp {
            " sackok"
        } else {
            ""
        };
        let ecn = if p.ecn { " ECE" } else { "" };
        script.run(&format!(
            "0 > S 0:0\n100 < S. 0:0 ack 1 win {window} mss 1000{sack}{ecn}\n100 > . 1:1 ack 1"
        ));
        script
    }

    fn pull(&mut self) {
        while let Some(segment) = self.end.transmit(self.now) {
            self.sent.push_back((self.now, segment));
        }
    }

    fn advance(&mut self, to: Time) {
        self.pull();
        while let Some(at) = self.end.next_wake().filter(|at| *at <= to) {
            self.now = at;
            self.end.on_timer(at, &mut self.out);
            self.pull();
        }
        self.now = to;
        self.pull();
    }

    pub(crate) fn run(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (time, event) = line.split_once(' ').expect("a time and an event");
            let time: f64 = time.parse().expect("a time in milliseconds");
            let at = Time((time * (SECOND / 1000) as f64).round() as u64);
            self.advance(at);
            let words: Vec<&str> = event.split_whitespace().collect();
            let number = |index: usize| words[index].parse::<u64>().expect("a number");
            match words[0] {
                ">" => self.expect(line, at, &words[1..]),
                "<" => {
                    self.nothing_else(line);
                    let segment = parse(&words[1..]);
                    self.end.on_segment(at, &segment, &mut self.out);
                }
                "write" => assert_eq!(self.end.write(at, number(1)), number(1), "{line}"),
                "read" => assert_eq!(self.end.read(at, number(1)), number(1), "{line}"),
                "close" => self.end.close(at, &mut self.out),
                "too-big" => {
                    self.nothing_else(line);
                    let taken = self.end.on_too_big(at, number(1), number(2));
                    assert_eq!(taken, words.get(3) != Some(&"ignored"), "{line}");
                }
                "quiet" => self.nothing_else(line),
                other => panic!("unknown event `{other}`: {line}"),
            }
            self.pull();
        }
        self.nothing_else("the end of the script");
    }

    fn nothing_else(&self, line: &str) {
        assert!(
            self.sent.is_empty(),
            "before `{line}`: sent {:?}",
            self.sent.iter().map(show).collect::<Vec<_>>()
        );
    }

    fn expect(&mut self, line: &str, at: Time, words: &[&str]) {
        let Some((time, segment)) = self.sent.pop_front() else { panic!("no segment is sent: {line}") };
        let shown = show(&(time, segment));
        assert_eq!(time, at, "{line}: got {shown}");
        let wanted = parse(words);
        assert_eq!((segment.seq, segment.end()), (wanted.seq, wanted.end()), "{line}: got {shown}");
        let letters =
            |flags: Flags| [Flags::SYN, Flags::FIN, Flags::RST, Flags::ACK].map(|flag| flags.has(flag));
        assert_eq!(letters(segment.flags), letters(wanted.flags), "{line}: got {shown}");
        for (index, word) in words.iter().enumerate() {
            match *word {
                "ack" => assert_eq!(segment.ack, wanted.ack, "{line}: got {shown}"),
                "win" => assert_eq!(segment.window, wanted.window, "{line}: got {shown}"),
                "sack" => assert_eq!(segment.sack(), wanted.sack(), "{line}: got {shown}"),
                "nosack" => assert!(!segment.has_sack(), "{line}: got {shown}"),
                "ECE" => assert!(segment.flags.has(Flags::ECE), "{line}: got {shown}"),
                "noECE" => assert!(!segment.flags.has(Flags::ECE), "{line}: got {shown}"),
                "CWR" => assert!(segment.flags.has(Flags::CWR), "{line}: got {shown}"),
                "ECT" => assert!(segment.ect, "{line}: got {shown}"),
                "scale" => assert_eq!(segment.window_scale, wanted.window_scale, "{line}: got {shown}"),
                _ if index == 0 && word.contains('P') => {
                    assert!(segment.flags.has(Flags::PSH), "{line}: got {shown}")
                }
                _ => {}
            }
        }
    }
}

fn show((time, s): &(Time, Segment)) -> String {
    let ms = time.ps() as f64 / (SECOND / 1000) as f64;
    format!(
        "{ms} > {:?} {}:{} ack {} win {} {:?}",
        s.flags,
        s.seq,
        s.end(),
        s.ack,
        s.window,
        s.sack().iter(s.ack).collect::<Vec<_>>()
    )
}

fn parse(words: &[&str]) -> Segment {
    let flags = words[0];
    let (seq, end) = words[1].split_once(':').expect("SEQ:END");
    let (seq, end): (u64, u64) = (seq.parse().expect("a number"), end.parse().expect("a number"));
    let mut segment = Segment {
        seq,
        len: (end - seq) as u32,
        flags: Flags::default()
            .with_if(flags.contains('S'), Flags::SYN)
            .with_if(flags.contains('F'), Flags::FIN)
            .with_if(flags.contains('P'), Flags::PSH)
            .with_if(flags.contains('R'), Flags::RST)
            .with_if(flags.contains('.'), Flags::ACK),
        window: 65535,
        ..Segment::default()
    };
    let mut words = words[2..].iter();
    while let Some(word) = words.next() {
        let mut number = || words.next().expect("a value").parse::<u64>().expect("a number");
        match *word {
            "ack" => segment.ack = number(),
            "win" => segment.window = number() as u32,
            "mss" => segment.mss = number() as u16,
            "scale" => segment.window_scale = Some(number() as u8),
            "sackok" => segment.sack_permitted = true,
            "ECE" => segment.flags |= Flags::ECE,
            "CWR" => segment.flags |= Flags::CWR,
            "CE" => (segment.ce, segment.ect) = (true, true),
            "ECT" => segment.ect = true,
            "sack" => {
                let mut blocks = SackBlocks::default();
                for block in words.next().expect("SACK blocks").split(',') {
                    let (start, end) = block.split_once('-').expect("A-B");
                    blocks.push(start.parse().expect("a number"), end.parse().expect("a number"));
                }
                segment.report(blocks);
            }
            "ts" => {
                let ms = |text: &str| Time(text.parse::<u64>().expect("milliseconds") * (SECOND / 1000));
                let (value, echo) = words.next().expect("timestamps").split_once('-').expect("VALUE-ECHO");
                segment.timestamps = Some(Timestamps::new(ms(value), Some(ms(echo))));
            }
            "noECE" | "nosack" => {}
            other => panic!("unknown part of a segment `{other}`"),
        }
    }
    segment
}
