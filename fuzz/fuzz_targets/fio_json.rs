//! See [`report::fuzz::fio_json`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| report::fuzz::fio_json(bytes));
