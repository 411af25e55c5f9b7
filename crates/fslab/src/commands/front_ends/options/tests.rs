use super::{super::PROGRAMS, *};

#[rustfmt::skip]
const OPTIONS: &[ProgramOption] = &[
    done(&["-a"], Argument::None, "A."),
    done(&["-b"], Argument::None, "B."),
    done(&["-s", "--size"], Argument::Required("N"), "Size."),
    done(&["-f"], Argument::Attached("N"), "Optional."),
    done(&["-+n"], Argument::None, "Plus."),
    done(&["-+p"], Argument::Required("N"), "Percent."),
    done(&["-F"], Argument::List("PATH..."), "Paths."),
    unused(&["-c"], Argument::Required("N"), "it is ignored"),
    refused(&["-H"], "there is no H", "use -s"),
];

static PROGRAM: Program = Program {
    name: "test",
    title: "Test",
    usage: "[OPTIONS]",
    page: "test-options.md",
    manual: "fslab-test-options",
    introduction: "Options of test.",
    options: OPTIONS,
    own: &[],
};

fn given(words: &[&str]) -> Result<Given, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    match PROGRAM.parse(&words) {
        Ok(Parsed::Run(given)) => Ok(given),
        Ok(Parsed::Print(text)) => Err(text),
        Err(failure) => Err(failure.message()),
    }
}

#[test]
fn letters_share_a_word_and_arguments_follow_or_are_attached() {
    let own =
        given(&["-abs", "4", "-s8", "x", "--size=16", "--size", "32", "-f", "20", "-f7"]).unwrap();
    assert!(own.has("-a") && own.has("-b") && !own.has("-+n"));
    assert_eq!(own.all("-s").collect::<Vec<_>>(), ["4", "8", "16", "32"]);
    assert_eq!(own.all("-f").collect::<Vec<_>>(), ["", "7"], "an optional argument is attached");
    assert_eq!(own.operands, ["x", "20"]);
    let own = given(&["-+n", "-+p50", "-+p", "60", "-F", "a", "b", "-a", "c"]).unwrap();
    assert_eq!(own.all("-+p").collect::<Vec<_>>(), ["50", "60"]);
    assert_eq!(own.all("-F").collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(own.operands, ["c"]);
    assert_eq!(given(&["--", "-a"]).unwrap().operands, ["-a"]);
}

#[test]
fn options_of_fslab_are_read() {
    let own = given(&["--fslab-run=x.fslab", "--fslab-repetitions", "6", "-c", "2"]).unwrap();
    assert_eq!((own.run, own.repetitions), (Some("x.fslab".into()), 6));
    let own = given(&["-c", "2"]).unwrap();
    assert_eq!((own.run.clone(), own.repetitions), (None, 1));
    assert_eq!(own.without_effect(), [("-c", "it is ignored")]);
}

#[test]
fn wrong_options_have_a_reason_and_a_hint() {
    for (words, message) in [
        (&["-x"][..], "unknown option `-x`; `fslab test --help` lists the options"),
        (&["-ax"], "unknown option `-x`"),
        (&["--sise=4"], "did you mean `--size`?"),
        (&["--fslab-repeats=4"], "unknown option `--fslab-repeats`"),
        (&["-H"], "-H is not supported: there is no H; use -s"),
        (&["-aH"], "-H is not supported"),
        (&["-s"], "-s requires an argument, such as -s N"),
        (&["-F", "-a"], "-F requires arguments"),
        (&["-+nx"], "unknown option `-+nx`"),
        (&["-+z"], "unknown option `-+z`"),
        (&["--fslab-repetitions=0"], "use a number from 1 to 1000"),
        (&["-é"], "unknown option `-é`"),
    ] {
        let error = given(words).unwrap_err();
        assert!(error.contains(message), "{words:?}: {error}");
    }
}

#[test]
fn every_option_of_every_program_is_accepted_or_rejected_as_its_table_states() {
    for program in PROGRAMS {
        let mut names = std::collections::BTreeSet::new();
        for option in program.all() {
            for name in option.names {
                assert!(names.insert(name), "{}: {name} occurs twice", program.name);
                let words: Vec<String> = [*name, "1"].map(str::to_owned).into();
                let message = match program.parse(&words) {
                    Ok(Parsed::Run(given)) => {
                        assert!(given.has(option.names[0]), "{name}");
                        let unused = matches!(option.handling, Handling::NoEffect(_));
                        assert_eq!(given.without_effect().is_empty(), !unused, "{name}");
                        String::new()
                    }
                    Ok(Parsed::Print(text)) => text,
                    Err(failure) => failure.message(),
                };
                match option.handling {
                    Handling::Done(meaning) => assert!(meaning.ends_with('.'), "{name}"),
                    Handling::NoEffect(reason) => assert!(!reason.ends_with('.'), "{name}"),
                    Handling::Refused(reason, hint) => {
                        let expected = format!("{name} is not supported: {reason}; {hint}");
                        assert_eq!(message, expected);
                    }
                }
            }
        }
    }
}

#[test]
fn help_and_reference_page_have_every_option() {
    for program in PROGRAMS {
        let (help, page) = (program.help(), program.reference());
        assert!(help.lines().all(|line| line.chars().count() <= COLUMNS), "{help}");
        for option in program.all() {
            for name in option.names {
                assert!(page.contains(&format!("`{name}")), "{name}");
                let is_done = matches!(option.handling, Handling::Done(_));
                assert!(
                    !is_done || help.contains(&format!("  {name}")) || option.names[0] != *name
                );
            }
        }
    }
}
