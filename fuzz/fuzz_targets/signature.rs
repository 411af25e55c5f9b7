//! See [`rig::fuzz::signature`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rig::fuzz::signature(bytes));
