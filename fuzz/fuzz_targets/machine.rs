//! See [`rig::fuzz::machine`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rig::fuzz::machine(bytes));
