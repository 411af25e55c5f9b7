//! See [`engine::fuzz::load_file_on_disk`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| engine::fuzz::load_file_on_disk(bytes));
