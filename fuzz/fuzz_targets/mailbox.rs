//! See [`guest::fuzz::mailbox`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| guest::fuzz::mailbox(bytes));
