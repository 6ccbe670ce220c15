//! Changes good input at random, and passes it to every decoder:
//!
//!     ENCORE_MUTATIONS=1000000 cargo test --release -p decoders -- --nocapture
//!
//! tries this many inputs for each decoder, and prints how many were tried. An input that breaks a
//! decoder is written to its folder in `corpus/`. The inputs in `corpus/` are tried first.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use decoders::{ALL, Decoder};

fn mutations() -> u64 {
    std::env::var("ENCORE_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_500)
}

/// Random numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Makes changes that a library may fail to check: bits, lengths, whole parts.
fn mutate(bytes: &mut Vec<u8>, others: &[Vec<u8>], dice: &mut Dice) {
    for _ in 0..1 + dice.below(4) {
        let at = dice.below(bytes.len());
        match dice.below(8) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << dice.below(8),
            1 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'"', b'-', b'9'][dice.below(8)],
            2 | 3 => {
                let extremes = [0u64, 1, 1 << 31, u32::MAX as u64, i64::MAX as u64, 1 << 63, u64::MAX, dice.next()];
                let number = extremes[dice.below(8)].to_le_bytes();
                let width = [1, 2, 4, 8][dice.below(4)].min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            4 => {
                let end = (at + 1 + dice.below(32)).min(bytes.len());
                bytes.drain(at.min(end)..end);
            }
            5 => {
                let end = (at + 1 + dice.below(32)).min(bytes.len());
                let part = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, part);
            }
            6 => {
                let other = &others[dice.below(others.len())];
                let from = dice.below(other.len());
                let part = other[from..(from + 1 + dice.below(64)).min(other.len())].to_vec();
                bytes.splice(at..at, part);
            }
            _ => bytes.truncate(at),
        }
    }
}

fn corpus(decoder: &Decoder) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(decoder.name)
}

fn try_one(decoder: &Decoder, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (decoder.decode)(input))).is_err() {
        let folder = corpus(decoder);
        let path = folder.join(format!("{:016x}", input.iter().fold(7u64, |sum, b| sum.wrapping_mul(31) + *b as u64)));
        let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input));
        panic!("{} broke by the input in {} ({kept:?})", decoder.name, path.display());
    }
}

#[test]
fn whatever_once_broke_a_decoder_breaks_it_no_more() {
    for decoder in ALL {
        for entry in std::fs::read_dir(corpus(&decoder)).into_iter().flatten() {
            let path = entry.expect("a readable folder").path();
            try_one(&decoder, &std::fs::read(&path).expect("a readable file"));
        }
    }
}

#[test]
fn no_change_of_good_input_breaks_a_decoder() {
    for (number, decoder) in ALL.iter().enumerate() {
        let seeds = (decoder.seeds)();
        seeds.iter().for_each(|seed| try_one(decoder, seed));
        let mut dice = Dice(number as u64 + 1);
        for _ in 0..mutations() {
            let mut input = seeds[dice.below(seeds.len())].clone();
            mutate(&mut input, &seeds, &mut dice);
            try_one(decoder, &input);
        }
        println!("{}: {} changed inputs, no panic", decoder.name, mutations());
    }
}
