//! See [`rig::fuzz::catalog`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rig::fuzz::catalog(bytes));
