//! The reader of load files, fed with anything: it refuses or accepts, and never panics.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let _ = engine::check_load(text);
});
