use expect_test::{Expect, expect};

use super::*;

fn refined(settings: &[(&str, &str)]) -> Result<Point, ValueError> {
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
fn files_that_the_steps_need_are_made_first() {
    shown(
        &[],
        expect![[r#"
            create Measure Cold tree 10000/1000 4KiB/4KiB [Create, Write, Close]
        "#]],
    );
    shown(
        &[("steps", "stat"), ("order", "shuffled"), ("workers", "4")],
        expect![[r#"
            layout Prepare AsLeft tree 10000/1000 4KiB/4KiB [Create, Write, Close] workers=4
            stat Measure Cold tree 10000/1000 4KiB/4KiB [Stat] Shuffled workers=4
        "#]],
    );
    shown(
        &[("steps", "open,read,close"), ("size", "1MiB")],
        expect![[r#"
            layout Prepare AsLeft tree 10000/1000 1MiB/64KiB [Create, Write, Close]
            read Measure Cold tree 10000/1000 1MiB/64KiB [Open, Read, Close]
        "#]],
    );
    shown(
        &[("steps", "unlink"), ("size", "0"), ("files", "10")],
        expect![[r#"
            layout Prepare AsLeft tree 10/10 [Create, Close]
            unlink Measure Cold tree 10/10 [Unlink]
        "#]],
    );
}

#[test]
fn equal_work_has_equal_parameters() {
    let empty = refined(&[("steps", "create,close")]).unwrap();
    assert_eq!(refined(&[("steps", "create,close"), ("size", "1MiB")]).unwrap(), empty);
    assert_eq!(refined(&[("steps", "create,close"), ("entropy", "0.5")]).unwrap(), empty);
    assert_eq!(refined(&[("record", "4KiB")]).unwrap(), refined(&[]).unwrap());
    assert_eq!(empty.size("size"), Bytes(0));
    let again = refine(empty.clone()).unwrap();
    assert_eq!(again, [empty], "refining is done once");
}

#[test]
fn steps_that_make_no_sense_are_refused_with_a_cure() {
    let refused = |steps: &str| {
        let error = refined(&[("steps", steps)]).unwrap_err();
        format!("{steps}: {error}; {}", error.cure.clone().unwrap_or_default())
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
        create: the steps leave the file open; end with `close`
        stat,create,close: `create` comes where the file is there; begin with `create`, or `unlink` before
        create,create: `create` comes where the file is there; begin with `create`, or `unlink` before
        write: `write` comes where no file is open; `create` or `open` before
        open,open: `open` comes where a file is open; `close` before
        close: `close` comes where no file is open; `create` or `open` before
        rename,stat: `stat` comes where no file has the name; create it, or rename it back, before
        rename-back: `rename-back` comes where the file was not renamed; `rename` before
        link,link: `link` comes where the link is there; `unlink-link` before
        unlink-link: `unlink-link` comes where there is no link; `link` before
        unlink,stat: `stat` comes where no file has the name; create it, or rename it back, before
        open,unlink,write: the steps leave the file open; end with `close`
        create,write,read: `read` comes where the file is open for writing only; `close` and `open` it before
        open,append,write: `write` comes where the file is open for appending; `close` and `open` it before
        open,write,append: `append` comes where the file is open for overwriting; `close` and `open` it before"#]].assert_eq(&lines.join("\n"));
    let fine =
        "create,write,fsync,close,rename,rename-back,link,unlink-link,stat,unlink,create,close";
    assert!(refined(&[("steps", fine)]).is_ok());
}

#[test]
fn the_space_it_takes_is_known() {
    let takes = |settings: &[(&str, &str)]| footprint(&refined(settings).unwrap());
    assert_eq!(takes(&[("files", "10"), ("size", "1B"), ("workers", "2")]), Bytes::kib(80));
    let appends =
        [("files", "10"), ("size", "4KiB"), ("record", "8KiB"), ("steps", "open,append,close")];
    assert_eq!(takes(&appends), Bytes::kib(120));
}
