//! Passes input from libFuzzer to the decoder that `ENCORE_DECODER` names.

#![no_main]

use std::sync::LazyLock;

use decoders::{ALL, Decoder};

static DECODER: LazyLock<Decoder> = LazyLock::new(|| {
    let name = std::env::var("ENCORE_DECODER").unwrap_or_default();
    let names = || ALL.map(|decoder| decoder.name).join(", ");
    let named = ALL.into_iter().find(|decoder| decoder.name == name);
    named.unwrap_or_else(|| panic!("ENCORE_DECODER={name:?} is none of {}", names()))
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (DECODER.decode)(input));
