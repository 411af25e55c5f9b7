//! See [`store::fuzz::run_file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| store::fuzz::run_file(bytes, report::fuzz::shown));
