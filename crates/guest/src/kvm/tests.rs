use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect;

use super::*;

#[test]
fn the_verdict_of_this_host_has_a_message() {
    let verdict = probe(None);
    if let Err(error) = verdict.usable() {
        let text = error.to_string();
        assert!(text.starts_with("kvm cannot run here: ") && text.contains("; "), "{text}");
    }
}

#[test]
fn each_verdict_has_its_hint() {
    let broken = Verdict::Broken("it cannot create a machine: no such device".to_owned());
    let verdicts = [Verdict::Missing, Verdict::Forbidden, Verdict::Interprets, broken];
    let texts = verdicts.map(|v| v.usable().unwrap_err().to_string()).join("\n");
    expect![[r#"
        kvm cannot run here: /dev/kvm does not exist; load the module kvm_intel or kvm_amd, enable virtualization in the firmware (or nested virtualization on the host of this machine), or use another kind of guest
        kvm cannot run here: this user cannot open /dev/kvm; add the user to the group that owns it (usually kvm), or use another kind of guest
        kvm cannot run here: /dev/kvm exists, but a loop of a million iterations took more than 100 ms in 3 attempts: instructions are interpreted; use another kind of guest
        kvm cannot run here: /dev/kvm exists, but it cannot create a machine: no such device; use another kind of guest"#]]
    .assert_eq(&texts);
    assert!(Verdict::Runs.usable().is_ok());
}

#[test]
fn an_absent_node_is_missing_and_a_file_is_broken() {
    let directory = tempfile::tempdir().unwrap();
    let node = directory.path().join("kvm");
    assert_eq!(probe_node(&node, "boot", None), Verdict::Missing);
    fs::write(&node, "").unwrap();
    let cache = Some(directory.path());
    assert!(matches!(probe_node(&node, "boot", cache), Verdict::Broken(_)));
    // A broken node is tried again the next time.
    assert!(!directory.path().join(CACHED_VERDICT).exists());
}

/// A guest of root runs as `nobody`.
#[test]
fn the_group_of_the_node_is_the_only_one_of_a_guest() {
    let directory = tempfile::tempdir().unwrap();
    let node = directory.path().join("kvm");
    fs::write(&node, "").unwrap();
    let group = |mode| {
        fs::set_permissions(&node, fs::Permissions::from_mode(mode)).unwrap();
        group_of(&fs::metadata(&node).unwrap()).map_err(|error| error.to_string())
    };
    assert_eq!(group(0o666), Ok(None), "every user can open it");
    assert!(group(0o600).unwrap_err().contains("only root can open /dev/kvm"));
    if !rustix::process::geteuid().is_root() {
        return;
    }
    assert!(group(0o660).unwrap_err().contains("chgrp kvm /dev/kvm"), "the group of root");
    std::os::unix::fs::chown(&node, None, Some(4242)).unwrap();
    assert_eq!(group(0o660), Ok(Some(4242)));
}

#[test]
fn a_verdict_is_cached_until_the_next_boot() {
    let directory = tempfile::tempdir().unwrap();
    let node = directory.path().join("kvm");
    fs::write(&node, "").unwrap();
    let cache = |text: &str| fs::write(directory.path().join(CACHED_VERDICT), text).unwrap();
    let probed = |boot: &str| probe_node(&node, boot, Some(directory.path()));
    cache("one interprets\n");
    assert_eq!(probed("one"), Verdict::Interprets);
    assert!(matches!(probed("two"), Verdict::Broken(_)));
    cache("one runs\n");
    assert_eq!(probed("one"), Verdict::Runs);
    for damaged in ["", "one", "one ru", "one \0", " "] {
        cache(damaged);
        assert!(matches!(probed("one"), Verdict::Broken(_)), "{damaged:?}");
    }
}
