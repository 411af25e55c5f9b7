use expect_test::expect;

use super::*;

#[test]
fn the_verdict_here_is_one_that_can_be_told() {
    let verdict = probe(None);
    if let Err(error) = verdict.usable() {
        let text = error.to_string();
        assert!(text.starts_with("kvm cannot run here: ") && text.contains("; "), "{text}");
    }
}

#[test]
fn each_verdict_has_its_cure() {
    let broken = Verdict::Broken("makes no machine: no such device".to_owned());
    let verdicts = [Verdict::Missing, Verdict::Forbidden, Verdict::Interprets, broken];
    let texts = verdicts.map(|v| v.usable().unwrap_err().to_string()).join("\n");
    expect![[r#"
        kvm cannot run here: there is no /dev/kvm; load the module kvm_intel or kvm_amd, switch virtualization on in the firmware (or nested virtualization in the host of this machine), or take another kind of guest
        kvm cannot run here: /dev/kvm is not open to this user; have the user added to the group that owns it (usually kvm), or take another kind of guest
        kvm cannot run here: /dev/kvm is there, but a loop of a million turns was not done after 100 ms, 3 times: instructions are interpreted; take another kind of guest
        kvm cannot run here: /dev/kvm is there, but makes no machine: no such device; take another kind of guest"#]]
    .assert_eq(&texts);
    assert!(Verdict::Runs.usable().is_ok());
}

#[test]
fn a_node_that_is_not_there_is_missing_and_a_file_is_broken() {
    let directory = tempfile::tempdir().unwrap();
    let node = directory.path().join("kvm");
    assert_eq!(probe_node(&node, "boot", None), Verdict::Missing);
    fs::write(&node, "").unwrap();
    let cache = Some(directory.path());
    assert!(matches!(probe_node(&node, "boot", cache), Verdict::Broken(_)));
    // What is broken is tried again the next time.
    assert!(!directory.path().join(REMEMBERED).exists());
}

#[test]
fn what_ran_is_remembered_until_the_next_boot() {
    let directory = tempfile::tempdir().unwrap();
    let node = directory.path().join("kvm");
    fs::write(&node, "").unwrap();
    let remember = |text: &str| fs::write(directory.path().join(REMEMBERED), text).unwrap();
    let seen = |boot: &str| probe_node(&node, boot, Some(directory.path()));
    remember("one interprets\n");
    assert_eq!(seen("one"), Verdict::Interprets);
    assert!(matches!(seen("two"), Verdict::Broken(_)));
    remember("one runs\n");
    assert_eq!(seen("one"), Verdict::Runs);
    for damaged in ["", "one", "one ru", "one \0", " "] {
        remember(damaged);
        assert!(matches!(seen("one"), Verdict::Broken(_)), "{damaged:?}");
    }
}
