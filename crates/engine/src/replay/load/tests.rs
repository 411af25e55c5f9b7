use std::fmt::Write as _;

use std::io::Write;

use expect_test::expect;
use model::phase::ReplayOp;
use tempfile::NamedTempFile;

use super::{
    super::program::{Expected, NO_NAME, NO_SLOT, NameLimits, Names, Op},
    *,
};

mod fuzz;

fn program(text: &str) -> Program {
    let (builder, lines) = read::read(text.as_bytes(), Limits::FULL)
        .unwrap_or_else(|refusal| panic!("{}", refused(Path::new("-"), refusal)));
    finish(builder, lines, Environment::default()).unwrap()
}

/// Operations, one per line: line of the text, type, expectation, slot, names, numbers, timestamp.
fn shown(text: &str) -> String {
    let program = program(text);
    let names = program.names();
    let name = |index: u32| names.get(index).path(9).into_string().unwrap();
    let mut shown = String::new();
    for (index, op) in program.ops().iter().enumerate() {
        let line = program.line(index);
        write!(shown, "{line} {:?} {:?}", op.kind(), op.expected()).unwrap();
        if op.slot != NO_SLOT {
            write!(shown, " slot {}", op.slot).unwrap();
        }
        if op.name != NO_NAME {
            write!(shown, " {}", name(op.name)).unwrap();
        }
        if matches!(op.kind(), ReplayOp::Rename | ReplayOp::Find) && op.second != NO_NAME {
            write!(shown, " and {}", name(op.second)).unwrap();
        } else if op.second != NO_NAME {
            write!(shown, " second {}", op.second).unwrap();
        }
        write!(shown, " size {} offset {}", op.size, op.offset).unwrap();
        if let Some(due) = op.due() {
            write!(shown, " due {due}").unwrap();
        }
        shown.push('\n');
    }
    shown
}

/// All operations of version 4, in all forms of names, numbers, and statuses.
const ALL: &str = r#"# comment
Deltree "\clients\client1" NT_STATUS_OK
Mkdir "\clients" 0x0

word
NTCreateX "\clients\client1" 0x1 0x2 16385 NT_STATUS_OK
0.5 Close 16385 NT_STATUS_OK
NTCreateX "/clients/client1/a b" 0x40 5 010 NT_STATUS_OK
NTCreateX \clients\client1\none 0 1 9 NT_STATUS_OBJECT_NAME_NOT_FOUND
12.3456789 WriteX 8 65534 1 1 NT_STATUS_OK
ReadX 0x8 0 4096 100 NT_STATUS_OK
LockX 8 2147483538 1 NT_STATUS_OK
UnlockX 8 2147483538 1 0xC0000054
Flush 8 NT_STATUS_OK
QUERY_FILE_INFORMATION 8 258 NT_STATUS_OK
SET_FILE_INFORMATION 8 1004 NT_STATUS_OK
Close 8 NT_STATUS_OK
Rename "\clients\client1\a b" "\clients\client1\c" NT_STATUS_OK
QUERY_PATH_INFORMATION "\clients\client1\c" 1004 SUCCESS
QUERY_FS_INFORMATION 1 *
FIND_FIRST "\clients\client1\<.tmp" 260 1366 0 NT_STATUS_NO_SUCH_FILE
FIND_FIRST "\clients\client1\c" 260 1 1 NT_STATUS_OK
Unlink "\clients\client1\c" 0x6 ERROR
Rmdir "\clients\client1" NT_STATUS_OK
Sleep 1500 NT_STATUS_OK
SLEEP 7
"#;

#[test]
fn every_operation_is_parsed() {
    expect![[r#"
        2 Deltree Success clients/client9 size 0 offset 0
        3 Mkdir Success clients size 0 offset 0
        6 NTCreateX Success slot 0 clients/client9 second 1 size 2 offset 0
        7 Close Success slot 0 clients/client9 size 0 offset 0 due 500000
        8 NTCreateX Success slot 0 clients/client9/a b second 64 size 5 offset 0
        9 NTCreateX Failure clients/client9/none second 0 size 1 offset 0
        10 WriteX Success slot 0 clients/client9/a b second 1 size 1 offset 65534 due 12345678
        11 ReadX Success slot 0 clients/client9/a b second 100 size 4096 offset 0
        12 LockX Success slot 0 clients/client9/a b size 1 offset 2147483538
        13 UnlockX Failure slot 0 clients/client9/a b size 1 offset 2147483538
        14 Flush Success slot 0 clients/client9/a b size 0 offset 0
        15 Qfileinfo Success slot 0 clients/client9/a b size 0 offset 0
        16 Sfileinfo Success slot 0 clients/client9/a b size 0 offset 0
        17 Close Success slot 0 clients/client9/a b size 0 offset 0
        18 Rename Success clients/client9/a b and clients/client9/c size 0 offset 0
        19 Qpathinfo Success clients/client9/c size 0 offset 0
        20 Qfsinfo Any size 0 offset 0
        21 Find Failure clients/client9/<.tmp and clients/client9 size 1366 offset 0
        22 Find Success clients/client9/c size 1 offset 0
        23 Unlink Failure clients/client9/c size 0 offset 0
        24 Rmdir Success clients/client9 size 0 offset 0
        25 Sleep Success size 0 offset 1500
        26 Sleep Success size 0 offset 7
    "#]]
    .assert_eq(&shown(ALL));
    let windows = ALL.replace('\n', "\r\n");
    assert_eq!(shown(&windows), shown(ALL));
    assert_eq!(shown(ALL.trim_end()), shown(ALL), "the last line needs no newline");
}

#[test]
fn control_lines_of_version_5_are_executed() {
    expect![[r#"
        3 NTCreateX Success slot 0 clients/client9/ax.doc second 64 size 2 offset 0
        4 WriteX Success slot 0 clients/client9/ax.doc second 4096 size 4096 offset 0
        7 WriteX Success slot 0 clients/client9/ax.doc second 4096 size 4096 offset 4096
        7 WriteX Success slot 0 clients/client9/ax.doc second 4096 size 4096 offset 8192
        9 ReadX Any slot 0 clients/client9/ax.doc second 0 size 9 offset 1
        9 ReadX Any slot 0 clients/client9/ax.doc second 0 size 6 offset 61441
        11 Close Success slot 0 clients/client9/ax.doc size 0 offset 0
        3 NTCreateX Success slot 0 clients/client9/bz.doc second 64 size 2 offset 0
        4 WriteX Success slot 0 clients/client9/bz.doc second 4096 size 4096 offset 0
        7 WriteX Success slot 0 clients/client9/bz.doc second 4096 size 4096 offset 4096
        7 WriteX Success slot 0 clients/client9/bz.doc second 4096 size 4096 offset 8192
        9 ReadX Any slot 0 clients/client9/bz.doc second 0 size 4 offset 53249
        9 ReadX Any slot 0 clients/client9/bz.doc second 0 size 0 offset 12289
        11 Close Success slot 0 clients/client9/bz.doc size 0 offset 0
        13 Mkdir Success C size 0 offset 0
    "#]]
    .assert_eq(&shown(
        r#"LOOP 2
RANDOMSTRING 1 "\clients\client1\[ab][xyz]"
NTCreateX "$1.doc" 0x40 2 5 SUCCESS
WriteX 5 0 4096 4096 SUCCESS
REPEAT 2

WriteX 5 +4096 4096 +0 SUCCESS
LOOP 2
ReadX 5 *%65536/4096+1 *%10 0 *
ENDLOOP
Close 5 SUCCESS
ENDLOOP
Mkdir "C" SUCCESS
"#,
    ));
    // Without random texts, a dollar sign is an ordinary character.
    assert!(shown("Mkdir \"C$1\" SUCCESS").contains(" C$1 "));
    let random = "REPEAT 100\nSleep *%1000 SUCCESS";
    assert_eq!(shown(random), shown(random), "a text always yields the same program");
    let different: std::collections::BTreeSet<_> =
        program(random).ops().iter().map(|op| op.offset).collect();
    assert!(different.len() > 50, "{different:?}");
}

#[test]
fn handles_are_mapped_to_small_reused_numbers() {
    let mut text = String::new();
    for handle in [70_000_u64, 3, 18_446_744_073_709_551_615] {
        writeln!(text, "NTCreateX \"\\f{handle}\" 0 2 {handle} NT_STATUS_OK").unwrap();
    }
    text += "Close 3 NT_STATUS_OK\nNTCreateX \"\\g\" 0 2 4 NT_STATUS_OK\n";
    text += "Flush 4 NT_STATUS_OK\nNTCreateX \"\\h\" 0 2 3 NT_STATUS_OK\n";
    let program = program(&text);
    let slots: Vec<_> = program.ops().iter().map(|op| op.slot).collect();
    assert_eq!(slots, [0, 1, 2, 1, 1, 1, 3]);
    assert_eq!(program.slots(), 4);
}

/// Checks that two programs have the same effect; their names may have other numbers.
fn assert_same(one: (&[Op], Names<'_>), other: (&[Op], Names<'_>)) {
    assert_eq!(one.0.len(), other.0.len());
    for (index, (left, right)) in one.0.iter().zip(other.0).enumerate() {
        let bare = |op: &Op| Op { name: 0, second: 0, ..*op };
        assert_eq!(bare(left), bare(right), "{index}");
        let path = |names: Names<'_>, name: u32| (name != NO_NAME).then(|| names.get(name).path(5));
        assert_eq!(path(one.1, left.name), path(other.1, right.name), "{index}");
        if matches!(left.kind(), ReplayOp::Rename | ReplayOp::Find) {
            assert_eq!(path(one.1, left.second), path(other.1, right.second), "{index}");
        } else {
            assert_eq!(left.second, right.second, "{index}");
        }
    }
}

fn message(text: &[u8]) -> String {
    check_load(text).expect_err("the text is refused").to_string()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of cases and their messages")]
fn invalid_lines_are_rejected_with_their_number_and_a_hint() {
    let open = "NTCreateX \"\\a\" 0 2 7 NT_STATUS_OK\n";
    let long = format!("Mkdir \"\\{}\" NT_STATUS_OK", "x".repeat(256));
    let path = format!("Mkdir \"{}\" NT_STATUS_OK", "\\abcdefg".repeat(520));
    let line = format!("Mkdir \"{}\" NT_STATUS_OK", "a".repeat(70_000));
    let words = "ReadX 7 ".repeat(10);
    let cases: [&str; 47] = [
        "",
        "# nothing\n\n",
        "Mkdir \"..\" NT_STATUS_OK",
        "Mkdir \"\\clients\\..\\..\\etc\" NT_STATUS_OK",
        "Rename \"\\a\" \"\\b\\..\" NT_STATUS_OK",
        "Mkdir \"\\\\server\\share\" NT_STATUS_OK",
        "Mkdir \"\\a\0b\" NT_STATUS_OK",
        &long,
        &path,
        &line,
        &words,
        "SMBopenX 1 2",
        "\u{7f}ELF\0\0\0 binary",
        "Frobnicate 1 NT_STATUS_OK",
        "Close",
        "Close NT_STATUS_OK",
        "Close 7 8 NT_STATUS_OK",
        "Close 7",
        "Close 7 NT_STATUS_OK",
        "Mkdir \"\\a\" NT_STATUS_",
        "Mkdir \"\\a\" FINE",
        "Mkdir \"\\a\" 0xZZ",
        "Mkdir \"\\a NT_STATUS_OK",
        "Mkdir \"\\a\"b NT_STATUS_OK",
        "Mkdir \\a\"b\" NT_STATUS_OK",
        "OPEN ReadX 7 0 1073741825 0 NT_STATUS_OK",
        "OPEN WriteX 7 0 4294967296 0 NT_STATUS_OK",
        "OPEN WriteX 7 1099511627777 1 1 NT_STATUS_OK",
        "OPEN WriteX 7 18446744073709551616 1 1 NT_STATUS_OK",
        "OPEN ReadX 7 -1 1 1 NT_STATUS_OK",
        "OPEN ReadX 8 0 1 1 NT_STATUS_OK",
        "OPEN ReadX 7 * 1 1 NT_STATUS_OK",
        "OPEN ReadX 7 *%0 1 1 NT_STATUS_OK",
        "OPEN NTCreateX \"\\b\" 0 2 7 NT_STATUS_OK",
        "Sleep 99999999999 NT_STATUS_OK",
        "1.2.3 Sleep 1 NT_STATUS_OK",
        "9999999999 Sleep 1 NT_STATUS_OK",
        "Sleep +1 NT_STATUS_OK",
        "Sleep +child SUCCESS",
        "SETSP 1",
        "WAITSP 0 1",
        "WRITEPATTERN abc",
        "LOOP 0",
        "LOOP 2\nSleep 1 SUCCESS",
        "Sleep 1 SUCCESS\nENDLOOP",
        "Sleep 1 SUCCESS\nREPEAT 3",
        "LOOP 99999999999\nENDLOOP\nSleep 1 SUCCESS",
    ];
    let mut messages = String::new();
    for case in cases {
        let text = case.replace("OPEN ", open);
        writeln!(messages, "{}", message(text.as_bytes())).unwrap();
    }
    for case in [
        "RANDOMSTRING 100 \"a\"",
        "RANDOMSTRING 1 \"a[\"",
        "RANDOMSTRING 1 \"a\"\nMkdir \"$2\" SUCCESS",
        "RANDOMSTRING 1 \"..\"\nMkdir \"$1\\x\" SUCCESS",
        "LOOP 200000\nSleep 1 SUCCESS\nENDLOOP",
        "REPEAT 2\nLOOP 2",
        "LOOP 2\nREPEAT 2\nENDLOOP",
    ] {
        writeln!(messages, "{}", message(case.as_bytes())).unwrap();
    }
    writeln!(messages, "{}", message("LOOP 2\n".repeat(17).as_bytes())).unwrap();
    expect![[r#"
        the loadfile -: no operation found; check that the file is a loadfile with one operation per line
        the loadfile -: no operation found; check that the file is a loadfile with one operation per line
        line 1 of the loadfile -: the name `..` contains the part ..; use names below the directory of a client, such as "\clients\client1\file"
        line 1 of the loadfile -: the name `/clients/../../etc` contains the part ..; use names below the directory of a client, such as "\clients\client1\file"
        line 1 of the loadfile -: the name `/b/..` contains the part ..; use names below the directory of a client, such as "\clients\client1\file"
        line 1 of the loadfile -: the name `//server/share` begins with two slashes; use names below the directory of a client, such as "\clients\client1\file"
        line 1 of the loadfile -: the name `/a\0b` contains a NUL byte; check that the file is a loadfile and not damaged
        line 1 of the loadfile -: the name `/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…` is longer than 4095 bytes, or a part of it longer than 255, with the longest client number; use a shorter name
        line 1 of the loadfile -: the name `/abcdefg/abcdefg/abcdefg/abcdefg/abcdefg/abcdefg…` is longer than 4095 bytes, or a part of it longer than 255, with the longest client number; use a shorter name
        line 1 of the loadfile -: the line is longer than 65536 bytes; check that the file is a loadfile and not damaged
        line 1 of the loadfile -: the line has more than 19 words; quote names with blanks
        line 1 of the loadfile -: loadfiles of version 1 are not supported; use version 3 or later, such as client.txt of the package dbench, or the built-in one (loadfile = "office")
        line 1 of the loadfile -: `\u{7f}ELF\0\0\0` is not an operation; a line is an operation such as NTCreateX, or a comment after #; quote names with blanks
        line 1 of the loadfile -: `Frobnicate` is not an operation; a line is an operation such as NTCreateX, or a comment after #; quote names with blanks
        the loadfile -: no operation found; check that the file is a loadfile with one operation per line
        line 1 of the loadfile -: Close takes 2 arguments (handle, status), found 1; check that the line is complete; quote names with blanks
        line 1 of the loadfile -: Close takes 2 arguments (handle, status), found 3; check that the line is complete; quote names with blanks
        line 1 of the loadfile -: Close takes 2 arguments (handle, status), found 1; check that the line is complete; quote names with blanks
        line 1 of the loadfile -: the handle 7 is not open; open it with NTCreateX and a status of success; a handle can be closed only once
        line 1 of the loadfile -: `NT_STATUS_` is not a status; end the line with NT_STATUS_OK, another NT_STATUS_ name, or its number (0x...); version 5 also has SUCCESS, ERROR, and * for either
        line 1 of the loadfile -: `FINE` is not a status; end the line with NT_STATUS_OK, another NT_STATUS_ name, or its number (0x...); version 5 also has SUCCESS, ERROR, and * for either
        line 1 of the loadfile -: `0xZZ` is not a status; end the line with NT_STATUS_OK, another NT_STATUS_ name, or its number (0x...); version 5 also has SUCCESS, ERROR, and * for either
        line 1 of the loadfile -: a quote is not closed; quote whole words, and close each quote
        line 1 of the loadfile -: a quote ends within a word; quote whole words, and close each quote
        line 1 of the loadfile -: a quote begins within a word; quote whole words, and close each quote
        line 2 of the loadfile -: the number of bytes is 1073741825, above the limit of 1GiB; check that the line is not damaged; limit a random number with %, as in *%4096
        line 2 of the loadfile -: the number of bytes is 4294967296, above the limit of 4294967295; check that the line is not damaged; limit a random number with %, as in *%4096
        line 2 of the loadfile -: the offset is 1099511627777, above the limit of 1TiB; check that the line is not damaged; limit a random number with %, as in *%4096
        line 2 of the loadfile -: `18446744073709551616` is not a number; use decimal or hexadecimal (0x) numbers; version 5 also has * with %n, /n, and +n for random numbers, and a leading + for increments
        line 2 of the loadfile -: `-1` is not a number; use decimal or hexadecimal (0x) numbers; version 5 also has * with %n, /n, and +n for random numbers, and a leading + for increments
        line 2 of the loadfile -: the handle 8 is not open; open it with NTCreateX and a status of success; a handle can be closed only once
        line 2 of the loadfile -: the offset is 3199580926914791666, above the limit of 1TiB; check that the line is not damaged; limit a random number with %, as in *%4096
        line 2 of the loadfile -: `*%0` is not a number; use decimal or hexadecimal (0x) numbers; version 5 also has * with %n, /n, and +n for random numbers, and a leading + for increments
        line 2 of the loadfile -: the handle 7 is already open; close it first, or use another handle
        line 1 of the loadfile -: the time to sleep in microseconds is 99999999999, above the limit of an hour; check that the line is not damaged; limit a random number with %, as in *%4096
        line 1 of the loadfile -: `1.2.3` is not a time; begin the line with seconds, such as 12.345
        line 1 of the loadfile -: `9999999999` is not a time; begin the line with seconds, such as 12.345
        line 1 of the loadfile -: `+n` has no number at this position of the previous operation; use decimal or hexadecimal (0x) numbers; version 5 also has * with %n, /n, and +n for random numbers, and a leading + for increments
        line 1 of the loadfile -: `+child` differs between clients; all clients share one sequence of operations; use client1 in names instead, which is replaced per client
        line 1 of the loadfile -: SETSP synchronizes clients, which is not supported; remove the line
        line 1 of the loadfile -: WAITSP synchronizes clients, which is not supported; remove the line
        line 1 of the loadfile -: WRITEPATTERN is not supported: replays write zeros; remove the line; compression or deduplication may change the results
        line 1 of the loadfile -: `0` is not a repeat count; use one number of at least 1
        line 1 of the loadfile -: the loop is not closed; add a line ENDLOOP
        line 2 of the loadfile -: ENDLOOP without a loop; add a line LOOP n
        line 2 of the loadfile -: REPEAT has no operation; put the operation on the next line
        line 2 of the loadfile -: the loops have too many lines; use fewer iterations
        line 1 of the loadfile -: `100` is not a text number; use RANDOMSTRING n "text" with a number below 100, and characters to choose from in brackets, as in "file[0123456789]"
        line 1 of the loadfile -: `a[` is not a text with brackets; use RANDOMSTRING n "text" with a number below 100, and characters to choose from in brackets, as in "file[0123456789]"
        line 2 of the loadfile -: `$2` is not a name in which every $n is a defined text; define it first with RANDOMSTRING n "text[characters]"
        line 2 of the loadfile -: the name `$1/x` contains the part ..; use names below the directory of a client, such as "\clients\client1\file"
        line 2 of the loadfile -: the loadfile has more than 100000 operations; use fewer iterations; a replay repeats a loadfile that ends
        line 2 of the loadfile -: LOOP cannot be repeated; put an operation right after REPEAT
        line 3 of the loadfile -: ENDLOOP cannot be repeated; put an operation right after REPEAT
        line 17 of the loadfile -: more than 16 nested loops; close loops with ENDLOOP
    "#]].assert_eq(&messages);
}

#[test]
fn too_many_open_handles_are_rejected() {
    let opens = |count: usize| -> String {
        (1..=count).map(|handle| format!("NTCreateX \"\\f\" 0 2 {handle} SUCCESS\n")).collect()
    };
    assert_eq!(program(&opens(10_000)).slots(), 10_000);
    let text = opens(10_001);
    expect!["line 10001 of the loadfile -: more than 10000 handles are open; close unused handles"]
        .assert_eq(&message(text.as_bytes()));
}

fn file(content: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new_in("/var/tmp").unwrap();
    file.write_all(content).unwrap();
    file
}

fn zipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn of(file: &NamedTempFile) -> Result<Program, EngineError> {
    load(&Load::File { path: Some(file.path().to_str().unwrap().to_owned()) })
}

fn refusal(file: &NamedTempFile) -> String {
    let error = of(file).unwrap_err();
    let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default()).replace(file.path().to_str().unwrap(), "FILE")
}

#[test]
fn a_compressed_loadfile_yields_the_same_operations() {
    let (plain, zip) = (file(ALL.as_bytes()), file(&zipped(ALL.as_bytes())));
    let (plain, zip) = (of(&plain).unwrap(), of(&zip).unwrap());
    assert_eq!(plain.ops(), zip.ops());
    let mut facts = [plain.facts().clone(), zip.facts().clone()];
    for facts in &mut facts {
        assert!(facts.0.remove("loadfile.path").unwrap().starts_with("/var/tmp/"));
    }
    assert_eq!(facts[0], facts[1]);
    let shown: String = facts[0].0.iter().map(|(name, fact)| format!("{name} {fact}\n")).collect();
    expect![[r#"
        loadfile.label dbench-compatible (user's loadfile, sha256 e6cfc6036d4f)
        loadfile.lines 26
        loadfile.mix NTCreateX 13.04 %, Close 8.70 %, Find 8.70 %, Sleep 8.70 %, Rename 4.35 %, Unlink 4.35 %, Deltree 4.35 %, Rmdir 4.35 %, Mkdir 4.35 %, Qpathinfo 4.35 %, Qfileinfo 4.35 %, Qfsinfo 4.35 %, Sfileinfo 4.35 %, WriteX 4.35 %, ReadX 4.35 %, LockX 4.35 %, UnlockX 4.35 %, Flush 4.35 %
        loadfile.operations 23
        loadfile.sha256 e6cfc6036d4f2a15273efea6b80d88108ddebc99e93ff027ceff710c5b90ff39
    "#]].assert_eq(&shown);
}

#[test]
fn files_that_are_not_loadfiles_are_rejected() {
    let whole = zipped(ALL.as_bytes());
    expect![
        "the loadfile FILE: cannot uncompress: incomplete deflate stream; check it with gzip -t"
    ]
    .assert_eq(&refusal(&file(&whole[..whole.len() / 2])));
    let mut damaged = whole;
    let last = damaged.len() - 1;
    damaged[last - 6] ^= 1;
    expect!["the loadfile FILE: cannot uncompress: corrupt gzip stream does not have a matching checksum; check it with gzip -t"].assert_eq(&refusal(&file(&damaged)));
    let path = |path: &str| {
        let error = load(&Load::File { path: Some(path.to_owned()) }).unwrap_err();
        format!("{error}: {}", std::error::Error::source(&error).unwrap())
    };
    expect!["cannot open the loadfile /dev/zero; check the path and its permissions: it is a device, not a regular file"].assert_eq(&path("/dev/zero"));
    expect!["cannot open the loadfile /nowhere/client.txt; check the path and its permissions: No such file or directory (os error 2)"].assert_eq(&path("/nowhere/client.txt"));
    expect!["line 1 of the loadfile FILE: the handle 1 is not open; open it with NTCreateX and a status of success; a handle can be closed only once"].assert_eq(&refusal(&file(b"Close 1 NT_STATUS_OK\n")));
}

#[test]
fn a_gzip_bomb_is_rejected() {
    // A gzip file may have many members: these contain slightly more than 96 MiB of newlines.
    let bomb = zipped(&vec![b'\n'; 1 << 20]).repeat(97);
    expect!["the loadfile FILE: the text is longer than 96MiB; split it"]
        .assert_eq(&refusal(&file(&bomb)));
}

#[test]
fn written_loadfiles_are_parsed_to_the_same_operations() {
    let office = Load::Office { iterations: 2, seed: 3 };
    let mut text = Vec::new();
    write_load(&office, &mut text, Path::new("-")).unwrap();
    let (made, read) = (load(&office).unwrap(), file(&text));
    let read = of(&read).unwrap();
    assert_same((made.ops(), made.names()), (read.ops(), read.names()));
    assert_eq!(made.slots(), read.slots());
    let facts = [&made, &read].map(|program| program.facts().clone());
    for name in ["loadfile.sha256", "loadfile.mix", "loadfile.lines", "loadfile.operations"] {
        assert_eq!(facts[0].get(name), facts[1].get(name), "{name}");
    }
    assert_eq!(facts[0].get("loadfile.label"), Some("fslab-office v1 seed 3, 2 iterations"));
    assert_eq!(inspect_load(&office).unwrap(), facts[0]);
    let head = String::from_utf8(text).unwrap();
    let head: String = head.lines().take(8).map(|line| format!("{line}\n")).collect();
    expect![[r#"
        Deltree "\clients\client1" NT_STATUS_OK
        Mkdir "\clients" NT_STATUS_OK
        NTCreateX "\clients\client1" 0x1 0x2 1000 NT_STATUS_OK
        Close 1000 NT_STATUS_OK
        NTCreateX "\clients\client1\office" 0x1 0x2 1000 NT_STATUS_OK
        Close 1000 NT_STATUS_OK
        NTCreateX "\clients\client1\office\letters" 0x1 0x2 1000 NT_STATUS_OK
        Close 1000 NT_STATUS_OK
    "#]]
    .assert_eq(&head);
}

#[test]
fn the_installed_loadfile_of_dbench_is_parsed() {
    let found = INSTALLED.iter().any(|path| Path::new(path).is_file());
    match load(&Load::File { path: None }) {
        Ok(program) => {
            assert!(found && !program.timestamped());
            assert!(program.ops().iter().all(|op| op.expected() != Expected::Any));
            assert_eq!(program.ops().last().map(Op::kind), Some(ReplayOp::Deltree));
        }
        Err(error) => {
            assert!(!found, "{error}");
            assert!(error.to_string().contains("install dbench"), "{error}");
        }
    }
}

#[test]
fn operations_that_dbench_would_not_replay_are_not_written() {
    let written = |text: &str| {
        let file = NamedTempFile::new().unwrap();
        file.as_file().write_all(text.as_bytes()).unwrap();
        let load = Load::File { path: Some(file.path().to_str().unwrap().into()) };
        let mut out = Vec::new();
        let result = write_load(&load, &mut out, Path::new("-"));
        assert_eq!(result.is_ok(), !out.is_empty());
        result.map_err(|error| {
            let EngineError::Load { path, line, problem, .. } = error else { panic!("{error}") };
            assert_eq!(path, file.path());
            (line, problem)
        })
    };
    let (line, problem) =
        written("# any\nMkdir \"\\d\" SUCCESS\nQUERY_FS_INFORMATION 1 *\n").unwrap_err();
    assert_eq!(line, Some(3));
    assert!(problem.contains("status is *"), "{problem}");
    let open = |count: usize| -> String {
        let line = |n| format!("NTCreateX \"\\f{n}\" 0 2 {n} NT_STATUS_OK\n");
        (1..=count).map(line).collect()
    };
    assert_eq!(written(&open(text::HANDLES)), Ok(()));
    let closed = format!("{}Close 7 NT_STATUS_OK\n", open(text::HANDLES));
    assert_eq!(written(&format!("{closed}NTCreateX \"\\g\" 0 2 7 NT_STATUS_OK\n")), Ok(()));
    let (line, problem) = written(&open(text::HANDLES + 1)).unwrap_err();
    assert_eq!(line, Some(201));
    assert!(problem.contains("more than 200 handles"), "{problem}");
}

#[test]
fn names_are_limited_in_number_and_length() {
    let refusal = |text: &str, count, bytes| {
        let names = NameLimits { count, bytes };
        let read = read::read(text.as_bytes(), Limits { names, ..Limits::FULL });
        read.map(|(builder, _)| builder.names().len())
            .map_err(|refusal| (refusal.line, refusal.problem.what))
    };
    let drawn = "LOOP 1000\nRANDOMSTRING 1 \"[0123456789][0123456789][0123456789][0123456789]\"\n\
                 Unlink \"$1\" 0 SUCCESS\nENDLOOP\n";
    let many = "the loadfile has more than 100 names".to_owned();
    assert_eq!(refusal(drawn, 100, 1 << 20), Err((Some(3), many)));
    let long = "the names of one client take more than 2KiB".to_owned();
    assert_eq!(refusal(drawn, 1 << 20, 2048), Err((Some(3), long.clone())));
    assert!(refusal(drawn, 1001, 5002).is_ok());
    // The expansion for a client is long.
    let short =
        "Mkdir \"client1\" SUCCESS\n".repeat(5) + "Mkdir \"client1client1client1\" SUCCESS\n";
    assert!(refusal(&short, 10, 2048).is_ok());
    assert!(matches!(refusal(&short, 10, 60), Err((Some(6), _))));
    // Only the parent directory of a path is needed.
    let deep = |leaf| format!("Mkdir \"{}{leaf}\" SUCCESS\n", "d/".repeat(2000));
    let text: String = (0..10).map(deep).collect();
    assert_eq!(refusal(&text, 100, 1 << 20), Ok(12));
}
