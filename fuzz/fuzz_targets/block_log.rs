//! See [`trace::fuzz::block_log`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trace::fuzz::block_log(bytes));
