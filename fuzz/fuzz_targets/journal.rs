//! See [`rig::fuzz::journal`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rig::fuzz::journal(bytes));
