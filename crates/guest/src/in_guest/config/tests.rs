use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn devices() -> impl Strategy<Value = Device> {
    let null_blk = any::<[u64; 4]>().prop_map(|[size, latency, cache, sector]| Device::NullBlk {
        size: Bytes(size),
        latency: Nanos(latency),
        cache: Bytes(cache),
        sector: Bytes(sector),
    });
    let ram = any::<u64>().prop_map(|size| Device::RamDisk { size: Bytes(size) });
    prop_oneof![Just(Device::None), ram, null_blk]
}

/// Everything except a carriage return at the end of a line, which `str::lines` removes.
const TEXT: &str = "[^\r]{0,20}";

proptest! {
    #[test]
    fn a_configuration_round_trips(
        seed in proptest::array::uniform32(any::<[u8; 2]>()),
        unix_time_ns: Option<u64>,
        hostname in TEXT,
        worker in proptest::collection::vec(TEXT, 0..4),
        parameters in proptest::collection::vec(TEXT, 0..4),
        device in devices(),
    ) {
        let seed = seed.concat().try_into().unwrap();
        let config = GuestConfig { seed, unix_time_ns, hostname, worker, parameters, device };
        prop_assert_eq!(GuestConfig::of_text(&config.to_text()).unwrap(), config);
    }

    #[test]
    fn any_text_is_a_configuration_or_an_error(text: String, line in "[a-z-]{1,12}=.{0,40}") {
        let _ = GuestConfig::of_text(&text);
        let _ = GuestConfig::of_text(&line);
    }
}

#[test]
fn a_truncated_file_is_rejected() {
    for text in ["", "seed=00\n", "hostname=x", "seed", "null-blk=1 2 3", "worker=\\"] {
        assert!(matches!(GuestConfig::of_text(text), Err(GuestError::Malformed { .. })), "{text}");
    }
}

#[test]
fn the_file_format_is_stable() {
    let config = GuestConfig {
        seed: [0xab; 64],
        unix_time_ns: Some(1_000_000_000),
        hostname: "fslab".to_owned(),
        worker: vec!["guest-worker".to_owned(), "two\nlines".to_owned()],
        parameters: vec!["btrfs.read_policy=latency".to_owned()],
        device: Device::NullBlk {
            size: Bytes::mib(512),
            latency: Nanos(100_000),
            cache: Bytes(0),
            sector: Bytes(4096),
        },
    };
    expect![[r"
        seed=abababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababababab
        unix-time-ns=1000000000
        hostname=fslab
        worker=guest-worker
        worker=two\nlines
        parameter=btrfs.read_policy=latency
        null-blk=536870912 100000 0 4096
    "]]
    .assert_eq(&config.to_text());
}
