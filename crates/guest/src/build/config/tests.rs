use expect_test::expect;

use super::*;

fn known(names: &[&str]) -> Defined {
    names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect()
}

fn values(rejected: &[(String, String)]) -> Vec<&str> {
    rejected.iter().map(|(_, values)| values.as_str()).collect()
}

#[test]
fn the_fragment_sets_each_option_once_in_valid_lines() {
    let wanted = RequiredOptions::new("-fslab", &[]);
    let lines: Vec<&str> = wanted.text().lines().filter(|line| line.contains("CONFIG_")).collect();
    let is_option = |line: &&&str| {
        line.starts_with("CONFIG_") || (line.starts_with("# CONFIG_") && line.ends_with(" not set"))
    };
    let valid: Vec<_> = lines.iter().filter(is_option).collect();
    assert_eq!(valid.len(), options(wanted.text()).len(), "an option is set twice");
    let options = options(wanted.text());
    assert_eq!(options["EXT4_FS"].as_deref(), Some("y"));
    assert_eq!(options["MODULES"], None);
    assert_eq!(options["LOCALVERSION"].as_deref(), Some("\"-fslab\""));
    // All options are built in: the guest has no modules for them.
    assert!(options.values().all(|value| value.as_deref() != Some("m")));
}

#[test]
fn options_with_other_values_are_reported() {
    let wanted = RequiredOptions {
        text: "CONFIG_A=y\nCONFIG_B=y\nCONFIG_N=3\n# CONFIG_M is not set\n".into(),
        requested: &[],
    };
    let compare = |config: &str, names: &[&str]| wanted.compare(config, &known(names));
    let all = &["A", "B", "N", "M"];
    let config = "# a comment\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_N=3\nCONFIG_OTHER=\"x=y\"\n";
    assert_eq!(compare(config, all), ConfigCheck::default());
    let outcome = compare("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_N=2\nCONFIG_M=y\n", all);
    expect![[r#"
        ConfigCheck {
            unknown: [],
            rejected: [
                (
                    "B",
                    "B=y (it is n",
                ),
                (
                    "M",
                    "M=n (it is y",
                ),
                (
                    "N",
                    "N=3 (it is 2",
                ),
            ],
        }
    "#]]
    .assert_debug_eq(&outcome);
    // An option that the source does not have is unknown.
    let outcome = compare("CONFIG_A=y\nCONFIG_N=3\n", &["A", "N"]);
    assert_eq!(outcome, ConfigCheck { unknown: vec!["B".to_owned()], rejected: vec![] });
    // A module is not built in.
    let outcome = compare("CONFIG_A=y\nCONFIG_B=m\nCONFIG_N=3\n", all);
    assert_eq!(values(&outcome.rejected), ["B=y (it is m"]);
}

#[test]
fn requested_options_replace_those_of_fslab_and_must_exist() {
    let requested = ["XFS_FS=n", "REISER4_FS=y"].map(|text| KernelOption::parse(text).unwrap());
    let wanted = RequiredOptions::new("", &requested);
    let met = wanted.text().replace("CONFIG_XFS_FS=y", "");
    assert_eq!(wanted.compare(&met, &known(&[])), ConfigCheck::default());
    let outcome = wanted.compare(RequiredOptions::new("", &[]).text(), &known(&["XFS_FS"]));
    assert_eq!(values(&outcome.rejected), ["REISER4_FS=y (it is n", "XFS_FS=n (it is y"]);
    assert_eq!(outcome.unknown, Vec::<String>::new());
}

#[test]
fn options_are_read_from_all_kconfig_files() {
    let tree = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = tree.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("Kconfig", "config A\n\tbool\nmenuconfig B\n\thelp\n\t  To config this, say Y.\n");
    write("fs/x/Kconfig.y", "# config C\nconfig D # no\n  config E\n");
    write("fs/x/Makefile", "config F\n");
    let dependencies = "config G\n\ttristate \"G\"\n\tdepends on A && \\\n\t\tB\n\thelp\n\t  This depends\n\t  depends on E.\n";
    write("fs/Kconfig", dependencies);
    let mut expected = known(&["A", "B", "E"]);
    expected.insert("G".to_owned(), vec!["A && B".to_owned()]);
    assert_eq!(super::known(tree.path()).unwrap(), expected);
    assert!(super::known(&tree.path().join("nowhere")).is_err());
}
