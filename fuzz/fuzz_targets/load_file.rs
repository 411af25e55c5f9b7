//! See [`engine::fuzz::load_file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| engine::fuzz::load_file(bytes));
