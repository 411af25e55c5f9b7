//! See [`suites::fuzz::fio_job`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| suites::fuzz::fio_job(bytes));
