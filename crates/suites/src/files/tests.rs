use expect_test::{Expect, expect};

use super::*;

fn refined(settings: &[(&str, &str)]) -> Result<WorkloadParameters, ValueError> {
    let mut point = SPEC.defaults();
    for (name, text) in settings {
        let kind = SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text).unwrap());
    }
    refine(point).map(|mut points| points.remove(0))
}

fn shown(settings: &[(&str, &str)], expected: Expect) {
    let phases = phases(&refined(settings).unwrap(), 7);
    expected.assert_eq(&phases.iter().map(crate::described).collect::<String>());
}

#[test]
fn required_files_are_created_first() {
    shown(
        &[],
        expect![[r#"
            create Measure Cold tree 10000/1000 4KiB/4KiB [Create, Write, Close]
        "#]],
    );
    shown(
        &[("steps", "stat"), ("order", "random"), ("workers", "4")],
        expect![[r#"
            layout Prepare Unchanged tree 10000/1000 4KiB/4KiB [Create, Write, Close] workers=4
            stat Measure Cold tree 10000/1000 4KiB/4KiB [Stat] Random workers=4
        "#]],
    );
    shown(
        &[("steps", "open,read,close"), ("file_size", "1MiB")],
        expect![[r#"
            layout Prepare Unchanged tree 10000/1000 1MiB/64KiB [Create, Write, Close]
            read Measure Cold tree 10000/1000 1MiB/64KiB [Open, Read, Close]
        "#]],
    );
    shown(
        &[("steps", "unlink"), ("file_size", "0"), ("files", "10")],
        expect![[r#"
            layout Prepare Unchanged tree 10/10 [Create, Close]
            unlink Measure Cold tree 10/10 [Unlink]
        "#]],
    );
}

#[test]
fn equal_workloads_have_equal_parameters() {
    let empty = refined(&[("steps", "create,close")]).unwrap();
    assert_eq!(refined(&[("steps", "create,close"), ("file_size", "1MiB")]).unwrap(), empty);
    assert_eq!(
        refined(&[("steps", "create,close"), ("incompressible_fraction", "0.5")]).unwrap(),
        empty
    );
    assert_eq!(refined(&[("block_size", "4KiB")]).unwrap(), refined(&[]).unwrap());
    assert_eq!(empty.size("file_size"), Bytes(0));
    let again = refine(empty.clone()).unwrap();
    assert_eq!(again, [empty], "refining is done once");
}

#[test]
fn invalid_steps_are_rejected_with_a_hint() {
    let refused = |steps: &str| {
        let error = refined(&[("steps", steps)]).unwrap_err();
        format!("{steps}: {error}; {}", error.hint.clone().unwrap_or_default())
    };
    let lines: Vec<_> = [
        "create",
        "stat,create,close",
        "create,create",
        "write",
        "open,open",
        "close",
        "rename,stat",
        "rename-back",
        "link,link",
        "unlink-link",
        "unlink,stat",
        "open,unlink,write",
        "create,write,read",
        "open,append,write",
        "open,write,append",
    ]
    .into_iter()
    .map(refused)
    .collect();
    expect![[r#"
        create: the last step leaves the file open; end with `close`
        stat,create,close: invalid step `create`: the file exists; start with `create`, or add `unlink` before it
        create,create: invalid step `create`: the file exists; start with `create`, or add `unlink` before it
        write: invalid step `write`: no file is open; add `create` or `open` before it
        open,open: invalid step `open`: a file is open; add `close` before it
        close: invalid step `close`: no file is open; add `create` or `open` before it
        rename,stat: invalid step `stat`: the file does not exist under this name; create it or rename it back first
        rename-back: invalid step `rename-back`: the file was not renamed; add `rename` before it
        link,link: invalid step `link`: the link exists; add `unlink-link` before it
        unlink-link: invalid step `unlink-link`: there is no link; add `link` before it
        unlink,stat: invalid step `stat`: the file does not exist under this name; create it or rename it back first
        open,unlink,write: the last step leaves the file open; end with `close`
        create,write,read: invalid step `read`: the file is open for writing only; add `close` and `open` before it
        open,append,write: invalid step `write`: the file is open for appending; add `close` and `open` before it
        open,write,append: invalid step `append`: the file is open for overwriting; add `close` and `open` before it"#]].assert_eq(&lines.join("\n"));
    let fine =
        "create,write,fsync,close,rename,rename-back,link,unlink-link,stat,unlink,create,close";
    assert!(refined(&[("steps", fine)]).is_ok());
}

#[test]
fn footprint_is_estimated() {
    let takes = |settings: &[(&str, &str)]| footprint(&refined(settings).unwrap());
    assert_eq!(takes(&[("files", "10"), ("file_size", "1B"), ("workers", "2")]), Bytes::kib(80));
    let appends = [
        ("files", "10"),
        ("file_size", "4KiB"),
        ("block_size", "8KiB"),
        ("steps", "open,append,close"),
    ];
    assert_eq!(takes(&appends), Bytes::kib(120));
}
