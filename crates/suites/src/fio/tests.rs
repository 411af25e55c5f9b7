use std::fmt::Write as _;

use expect_test::expect;
use model::{
    Nanos,
    phase::{
        AccessPattern, Aio, Bound, Direction, FileSharing, GroupEnd, IoEngineKind, Stream, Work,
    },
};

use super::*;
use crate::described;

mod calls;
mod ends;
mod flows;
mod orders;

fn parsed(text: &str, changes: &Changes) -> Result<Job, Mistakes> {
    let lines = expand("db.fio", text, &mut |_, _| Err("not available".into()))?;
    parse(&lines, changes)
}

fn mistakes(text: &str) -> String {
    parsed(text, &Changes::default()).unwrap_err().to_string()
}

fn canonical(text: &str) -> String {
    parsed(text, &Changes::default()).unwrap().text()
}

fn work(text: &str) -> Vec<Phase> {
    phases::phases(&parsed(text, &Changes::default()).unwrap(), 1)
}

/// Stream of the first measured phase.
fn stream(text: &str) -> Stream {
    let measured = work(text).into_iter().find(|phase| phase.role == model::phase::Role::Measure);
    let Work::Stream(stream) = measured.unwrap().work else { panic!("not a stream") };
    stream
}

#[test]
fn files_of_several_sections_are_removed_once() {
    let phases = work("[global]\nfilename=f\nrw=write\nsize=8k\nunlink=1\n[a]\n[b]\nstonewall\n");
    let removals = phases.iter().filter(|own| matches!(own.work, Work::Remove { .. }));
    assert_eq!(removals.count(), 1);
}

#[test]
fn names_of_options_are_unique() {
    let mut names: Vec<&str> =
        OPTIONS.iter().flat_map(|own| own.aliases.iter().copied().chain([own.name])).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn defaults_of_options_are_canonical() {
    for option in OPTIONS {
        if let Handling::Done { default, read } = option.handling
            && !default.is_empty()
        {
            assert_eq!(read(default, Base::Binary).as_deref(), Ok(default), "{}", option.name);
        }
    }
}

#[test]
fn sections_inherit_global_options_and_the_last_value_wins() {
    expect![[r#"
        [one]
        bs=8192
        rw=randread
        size=1048576
        [two]
        bs=65536
        rw=write
        size=1048576
        stonewall=1
    "#]]
    .assert_eq(&canonical(
        "[global]\nsize = 1m ; comment\nbs=4k\n[one]\nrw=randread\nbs=8k # last\n[global]\nbs=64k\n\
         [two]\nstonewall\nrw=write\nkb_base=1024\n",
    ));
}

#[test]
fn sizes_follow_kb_base_for_the_whole_section() {
    let sizes = |base: &str| {
        let mut text = String::new();
        for size in ["4k", "4kb", "4kib", "1m", "1mib", "0x1000", "4096b", "1g", "1gib"] {
            writeln!(text, "[s]\nsize={size}\nkb_base={base}\nbs=64").unwrap();
        }
        let job = parsed(&text, &Changes::default()).unwrap();
        let sizes = job.sections.iter().map(|own| own.text("size").to_owned());
        sizes.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(sizes("1024"), "4096 4096 4000 1048576 1000000 4096 4096 1073741824 1000000000");
    assert_eq!(sizes("1000"), "4000 4000 4096 1000000 1048576 4096 4096 1000000000 1073741824");
}

#[test]
fn times_have_units() {
    let time = |text: &str| {
        let section = format!("[t]\nsize=4k\nruntime={text}\nthinktime={text}");
        let job = parsed(&section, &Changes::default()).unwrap();
        let own = &job.sections[0];
        (own.time("runtime"), own.time("thinktime"))
    };
    assert_eq!(time("2"), (Nanos(2_000_000_000), Nanos(2000)));
    assert_eq!(time("3ms"), (Nanos(3_000_000), Nanos(3_000_000)));
    assert_eq!(time("1h").0, Nanos(3_600_000_000_000));
    assert!(mistakes("[t]\nsize=4k\nruntime=2 weeks").contains("is not a time"));
}

#[test]
fn all_mistakes_are_reported_with_their_lines() {
    expect![[r#"
        db.fio:1: the option is before the first section; add [global]
        db.fio:3: filename: /dev/nvme0n1 is a device
        db.fio:5: variable SIZE is not set; set it in the environment
        db.fio:7: zonemode is not supported: files have no zones; remove it, or leave it out with `drop`
        db.fio:9: unknown option `rwmixraed`; did you mean `rwmixread`?
        db.fio:10: bs: `4q` is not a size
        db.fio:11: the bracket `]` is missing
    "#]]
    .assert_eq(&{
        let text = "rw=read\n[a]\nfilename=/dev/nvme0n1\n\nsize=${SIZE}\n\nzonemode=zbd\n\n\
                    rwmixraed=70\nbs=4q\n[b\n";
        let all = mistakes(text);
        let mut lines: Vec<&str> = all.lines().filter(|line| line.starts_with("db.fio:")).collect();
        let line = |line: &&str| line.split(':').nth(1).and_then(|own| own.parse::<u32>().ok());
        lines.sort_by_key(line);
        let shorten = |line: &str| match line.split_once(" is a device") {
            Some((start, _)) => format!("{} is a device", start.replacen(": ", ": filename: ", 1)),
            None => line.to_owned(),
        };
        lines.into_iter().map(|line| shorten(line) + "\n").collect::<String>()
    });
}

#[test]
fn included_files_are_inserted_and_cycles_are_rejected() {
    let mut include = |above: &str, path: &str| match path {
        "common.inc" => Ok((path.to_owned(), "[global]\nbs=16k".to_owned())),
        "loop.inc" => Ok((path.to_owned(), format!("include {above}"))),
        "db.fio" => Ok((path.to_owned(), "include loop.inc".to_owned())),
        path => Err(format!("no {path}")),
    };
    let lines = expand("db.fio", "include common.inc\n[a]\nsize=1m", &mut include).unwrap();
    let job = parse(&lines, &Changes::default()).unwrap();
    assert_eq!(job.sections[0].text("bs"), "16384");
    let cycle = expand("db.fio", "\ninclude loop.inc", &mut include).unwrap_err().to_string();
    assert!(cycle.starts_with("loop.inc:1: files include each other: db.fio → loop.inc → db.fio"));
    let missing = expand("db.fio", "include x", &mut include).unwrap_err().to_string();
    assert!(missing.starts_with("db.fio:1: cannot include x: no x"), "{missing}");
    let mut deep = |above: &str, _: &str| Ok((format!("{above}x"), "include y".to_owned()));
    let deep = expand("a", "include y", &mut deep).unwrap_err().to_string();
    assert!(deep.contains("16 deep"), "{deep}");
}

#[test]
fn hostile_jobs_are_rejected_with_their_line() {
    let with = |line: &str| mistakes(&format!("[a]\nsize=1m\n{line}"));
    for (line, reason) in [
        ("size=99999999999999999999", "too large"),
        ("size=17179869184g", "too large"),
        ("filesize=2000p", "too large"),
        ("bs=2g", "larger than 1 GiB"),
        ("numjobs=1000000", "not a number from 1 to 1024"),
        ("iodepth=0", "not a number from 1"),
        ("runtime=99999999999d", "too long"),
        ("filename=../../etc/passwd", "`..`"),
        ("filename=/dev/sda", "is a device"),
        ("filename=/dev//mapper/x", "is a device"),
        ("filename=/./dev/sda", "is a device"),
        ("filename=a:b:a", "named twice"),
        ("filename=.", "not the name of a file"),
        ("filename=x{worker}", "not the name of a file"),
        ("filename_format=../$jobnum", "directories"),
        ("exec_prerun=rm -rf /", "starts no program"),
        ("ioengine=external:/tmp/x.so", "loads foreign code"),
        ("bs=0", "the block size is 0"),
        ("bssplit=4k/60:8k/60", "use 100"),
        ("loops=0", "not a number"),
    ] {
        let found = with(line);
        assert!(found.starts_with("db.fio:3: ") && found.contains(reason), "{line}: {found}");
    }
    let long = format!("[a]\ndescription={}", "x".repeat(70_000));
    assert!(mistakes(&long).starts_with("db.fio:2: the line is longer than 64 KiB"));
    assert!(mistakes(&"\n".repeat(5 << 20)).contains("larger than 4 MiB"));
    let many: String = (0..1001).map(|number| format!("[s{number}]\nsize=4k\n")).collect();
    assert!(mistakes(&many).contains("more than 1000 sections"));
}

#[test]
fn devices_can_be_mapped_to_files() {
    let changes = Changes { map: vec!["/dev/sdb=disk:1m".into()], ..Changes::default() };
    let job = parsed("[a]\nrw=write\nfilename=/dev/sdb", &changes).unwrap();
    assert_eq!(job.files()[0].path, "disk");
    assert_eq!(job.files()[0].size, Bytes::mib(1));
}

#[test]
fn names_stay_in_the_directory_of_the_trial_unless_it_is_given() {
    let text = "[a]\nsize=4k\nfilename=/srv/x/db.img\n[b]\nsize=4k\ndirectory=/mnt\nnumjobs=2";
    let paths = |directory: &str| {
        let changes = Changes { directory: directory.into(), ..Changes::default() };
        let job = parsed(text, &changes).unwrap();
        let again = parsed(&job.text(), &changes).unwrap();
        assert_eq!(again.text(), job.text());
        job.files().into_iter().map(|file| file.path).collect::<Vec<_>>()
    };
    assert_eq!(paths(""), ["db.img", "b.0.0", "b.1.0"]);
    assert_eq!(paths("/home"), ["/srv/x/db.img", "/mnt/b.0.0", "/mnt/b.1.0"]);
}

#[test]
fn options_can_be_replaced_left_out_and_sections_selected() {
    let changes = Changes {
        set: vec!["bs=64k".into()],
        drop: vec!["zonemode".into(), "typo".into()],
        section: vec!["b".into()],
        ..Changes::default()
    };
    let text = "[a]\nsize=1m\n[b]\nstonewall\nsize=1m\nbs=4k\nzonemode=zbd\ntypo=1";
    assert_eq!(parsed(text, &changes).unwrap().text(), "[b]\nbs=65536\nsize=1048576\n");
    let wrong =
        Changes { section: vec!["c".into()], set: vec!["bx=1".into()], ..Changes::default() };
    let found = parsed("[a]\nsize=1m", &wrong).unwrap_err().to_string();
    assert!(found.contains("section c: the job has no such section; did you mean `a`?"), "{found}");
    assert!(found.contains("set bx=1: unknown option `bx`"), "{found}");
}

#[test]
fn options_without_effect_are_listed_with_their_reason() {
    let job = parsed("[a]\nsize=1m\nrefill_buffers\ngroup_reporting", &Changes::default()).unwrap();
    let reason = "each block has its own content";
    assert_eq!(job.unused, [("refill_buffers".to_owned(), reason.to_owned())]);
}

#[test]
fn arguments_of_a_command_line_are_a_job() {
    let arguments = ["--bs=8k", "--name=r w", "--rw=randread", "--size", "1m", "--thread"];
    let arguments = arguments.map(str::to_owned);
    let lines = of_arguments(&arguments).unwrap();
    let job = parse(&lines, &Changes::default()).unwrap();
    expect![[r#"
        [r w]
        bs=8192
        rw=randread
        size=1048576
        thread=1
    "#]]
    .assert_eq(&job.text());
    let wrong = of_arguments(&["read".to_owned()]).unwrap_err().to_string();
    assert!(wrong.starts_with("argument 1: `read` is not an option"), "{wrong}");
    let wrong = of_arguments(&["--name=x".to_owned(), "--sise=4k".to_owned()]).unwrap();
    let wrong = parse(&wrong, &Changes::default()).unwrap_err().to_string();
    assert!(wrong.contains("argument 2: unknown option `sise`; did you mean `size`?"), "{wrong}");
}

#[test]
fn sections_are_phases_and_stonewalls_separate_groups() {
    let phases = work(
        "[global]\nsize=64k\nthread\n[a]\nrw=read\n[b]\nrw=write\nstartdelay=100ms\n[c]\nstonewall\n\
         rw=randrw\nunlink=1\n[mkfs]\nstonewall\nrw=randwrite\nnumjobs=2\nexitall\n[mkfs]\nrw=write\n",
    );
    let lines: Vec<String> = phases
        .iter()
        .map(|phase| {
            let group = phase.together.map(|own| (own.group, own.start_delay.0, own.end));
            format!("{} {:?} {group:?}", phase.name, phase.role)
        })
        .collect();
    expect![[r#"
        a.layout Prepare None
        c.layout Prepare None
        a Measure Some((0, 0, StopAll))
        b Measure Some((0, 100000000, StopAll))
        c Measure None
        mkfs-job Measure Some((2, 0, StopAll))
        mkfs-job-2 Measure Some((2, 0, StopAll))
        c.unlink Prepare None"#]]
    .assert_eq(&lines.join("\n"));
    let late = work("[global]\nsize=1m\n[a]\n[b]\nstonewall\nstartdelay=1");
    let start = late[3].together.unwrap();
    assert_eq!((start.group, start.start_delay, start.of_trial), (1, Nanos(1_000_000_000), true));
}

#[test]
fn the_amount_of_work_follows_size_io_size_loops_and_runtime() {
    let bound = |options: &str| {
        let bound = stream(&format!("[a]\nrw=write\nbs=4k\n{options}")).bound;
        let Bound::Amount(own) = bound else { return format!("{bound:?}") };
        format!(
            "{} {} {}",
            own.ops.min(99_999),
            own.bytes.0.min(99_999),
            own.time.map_or(0, |time| time.run.0 / 1_000_000)
        )
    };
    assert_eq!(bound("size=10k"), "Once");
    assert_eq!(bound("size=20k\nio_size=10k"), "3 99999 0");
    assert_eq!(bound("size=20k\nio_size=28k"), "7 99999 0");
    assert_eq!(bound("size=8k\nloops=3"), "6 99999 0");
    assert_eq!(bound("size=16k\nnumber_ios=2"), "2 99999 0");
    assert_eq!(bound("size=16k\nruntime=2"), "4 99999 2000");
    assert_eq!(bound("size=32k\nbssplit=4k/50:8k/50"), "99999 32768 0");
    assert_eq!(
        bound("size=16k\nruntime=2\ntime_based\nramp_time=1"),
        "Time { ramp: Nanos(1000000000), run: Nanos(2000000000) }"
    );
}

#[test]
fn regions_follow_offset_and_filesize() {
    let region = |options: &str| {
        let stream = stream(&format!("[a]\nrw=write\nbs=4k\n{options}"));
        let region = stream.region().map(|own| (own.offset.0, own.worker_step.0, own.size.0));
        (stream.size.0, region)
    };
    assert_eq!(region("size=16k"), (16_384, None));
    assert_eq!(region("size=8k\noffset=8k"), (16_384, Some((8192, 0, 8192))));
    assert_eq!(region("size=8k\nfilesize=32k"), (32_768, Some((0, 0, 8192))));
    assert_eq!(
        region("size=8k\noffset_increment=8k\nnumjobs=3\nfilename=x"),
        (24_576, Some((0, 8192, 8192)))
    );
    assert_eq!(region("size=40k\noffset=55%"), (40_960, Some((24_576, 0, 16_384))));
}

#[test]
fn engines_and_orders_are_those_of_the_job() {
    let own = stream("[a]\nrw=randread\nsize=1m\nioengine=linuxaio\niodepth=8\nnumjobs=2");
    assert_eq!(own.io_engine, IoEngineKind::Aio(Aio::of(8, 1)));
    assert_eq!(own.access_pattern, AccessPattern::Permutation);
    assert_eq!(own.files, FileSharing::Template("a.{worker}.0".into()));
    let own = stream("[a]\nrw=rw\nsize=1m\nrwmixwrite=30\nfilename=f\nnumjobs=2");
    assert_eq!(own.direction, Direction::Mixed(0.7));
    assert_eq!(own.access_pattern, AccessPattern::SequentialPerDirection);
    assert_eq!(own.files, FileSharing::Shared("f".into()));
    let zipf = stream("[a]\nrw=randread\nsize=1m\nrandom_distribution=zipf:1.2");
    assert_eq!(zipf.access_pattern, AccessPattern::Zipf { theta: 1.2 });
}

#[test]
fn contradictions_are_rejected() {
    for (options, reason) in [
        ("bs=8k\nsize=4k", "smaller than one block"),
        ("direct=1\nbs=1000", "multiples of 512"),
        ("direct=1\nioengine=mmap", "mmap"),
        ("hipri", "direct=1"),
        ("fixedbufs", "together"),
        ("uncached=1", "pvsync2"),
        ("time_based", "requires runtime"),
        ("ioengine=mmap\nloops=2", "opened again"),
        ("io_size=2m\nloops=2", "at most size"),
        ("rw=rw\nrate_iops=5,0", "two sections"),
        ("rate=1m\nthinktime=5", "exclude"),
        ("fsync=1\nfdatasync=1", "only one"),
    ] {
        let found = mistakes(&format!("[a]\nsize=1m\n{options}"));
        assert!(found.contains(reason), "{options}: {found}");
    }
    assert!(mistakes("[a]\nrw=read").contains("size is missing"));
    assert!(mistakes("").contains("the job has no section"));
}

#[test]
fn equal_jobs_have_equal_parameters() {
    let point = |text: &str| {
        let mut point = SPEC.defaults();
        point.parameters.insert(TEXT.into(), Value::Text(text.into()));
        refine(point).unwrap().remove(0)
    };
    let one = point("[a]\nbs=4k\nsize=1m\nrw=randwrite");
    assert_eq!(one, point("; x\n[global]\nrw=randwrite\n[a]\nsize=1024k\nioengine=psync"));
    assert_eq!(refine(one.clone()).unwrap(), std::slice::from_ref(&one), "idempotent");
    assert_eq!(footprint(&one), Bytes::mib(1));
    let lines: String =
        (crate::find(NAME).unwrap().phases)(&one, 1).iter().map(described).collect();
    expect![[r#"
        a Measure Unchanged Template("a.{worker}.0") 1MiB/4KiB access_pattern="permutation" direction="write" file_handling={"advice":"random","allocate":"native","invalidate":true,"pass_start":"continue"} open={creation:"any"} workers={kind:"process"}
    "#]]
    .assert_eq(&lines);
}

#[test]
fn fuzz_seeds_are_read_without_a_failure() {
    for seed in [
        &include_bytes!("../../../../fuzz/seeds/fio_job/database")[..],
        include_bytes!("../../../../fuzz/seeds/fio_job/units"),
        include_bytes!("../../../../fuzz/seeds/fio_job/arguments"),
        include_bytes!("../../../../fuzz/seeds/fio_job/mistakes"),
    ] {
        crate::fuzz::fio_job(seed);
    }
}

#[test]
fn several_files_have_parts_of_the_size() {
    let several = |text: &str| {
        let stream = stream(text);
        let FileSharing::Several(files) = stream.files else { panic!("{:?}", stream.files) };
        (files, stream.size, stream.bound)
    };
    let (files, size, bound) = several("[w]\nrw=write\nsize=64k\nnrfiles=4\nopenfiles=2\n");
    assert_eq!(files.names, ["w.{worker}.0", "w.{worker}.1", "w.{worker}.2", "w.{worker}.3"]);
    assert_eq!((files.open, files.turn, size, bound), (2, 1, Bytes::kib(16), Bound::Once));
    let (files, size, _) =
        several("[w]\nrw=write\nsize=64k\nfilename=/srv/a:b\\:c\nfile_service_type=random:8\n");
    assert_eq!(files.names, ["a", "b:c"]);
    assert_eq!((files.order, files.turn), (model::phase::FileOrder::Random, 8));
    assert_eq!(size, Bytes::kib(32));
    let (_, size, bound) = several("[w]\nrw=write\nsize=64k\nfilesize=48k\nnrfiles=2\n");
    assert_eq!(size, Bytes::kib(48));
    assert!(matches!(bound, Bound::Amount(amount) if amount.ops == 16), "{bound:?}");
}

#[test]
fn contradictions_of_several_files_are_rejected() {
    for (options, reason) in [
        ("size=64k\nfilename=a:x/a", "named twice"),
        ("size=64k\nnrfiles=2\nfilename_format=$jobname", "require $filenum"),
        ("size=64k\nnrfiles=2\nopenfiles=1\nend_fsync=1", "use fsync_on_close"),
        ("size=16k\nnrfiles=2\nfilesize=64k\nloops=2", "end before the end of the files"),
        ("size=16k\nnrfiles=2\nioengine=mmap\nloops=2", "cannot be opened again"),
        ("size=4k\nnrfiles=2", "smaller than one block"),
        ("size=64k\nnrfiles=2\nfile_service_type=zipf:1.2", "use random"),
        ("size=64k\nfilename=a:/dev/sdb", "/dev/sdb is a device"),
        ("size=1g\nnumjobs=64\nnrfiles=100000", "use fewer"),
    ] {
        let found = mistakes(&format!("[w]\nrw=write\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}

#[test]
fn devices_of_a_list_are_mapped_to_files_of_one_size() {
    let text = "[r]\nrw=randread\nfilename=/dev/sdb:/dev/sdc\n";
    let map = |map: &[&str]| Changes {
        map: map.iter().map(|own| (*own).to_owned()).collect(),
        ..Changes::default()
    };
    let both = map(&["/dev/sdb=b:64k", "/dev/sdc=c:64k"]);
    let canonical = parsed(text, &both).unwrap().text();
    assert_eq!(canonical, "[r]\nfilename=b:c\nfilesize=65536\nrw=randread\nsize=131072\n");
    let other = map(&["/dev/sdb=b:64k", "/dev/sdc=c:32k"]);
    assert!(parsed(text, &other).unwrap_err().to_string().contains("different sizes"));
}

#[test]
fn cpus_are_a_list_or_a_mask_that_workers_share_or_split() {
    use model::phase::{CpuList, Pin};
    let pins = |text: &str| -> Vec<Pin> {
        let measured = work(text).into_iter().filter(|phase| phase.role == Role::Measure);
        let pin = |phase: Phase| {
            let Work::Stream(stream) = phase.work else { panic!("{phase:?}") };
            stream.workers.pin
        };
        measured.map(pin).collect()
    };
    let list = CpuList::from(vec![0, 2, 3]);
    let text = "[global]\nsize=4k\n[a]\ncpus_allowed=3,2-3,0\nnumjobs=3\n[b]\ncpumask=0xd\n\
                cpus_allowed_policy=split\n[c]\ncpus_allowed_policy=split\n";
    assert_eq!(pins(text), [Pin::Shared(list), Pin::Split { cpus: list, first: 3 }, Pin::Free]);
    assert!(canonical(text).contains("cpus_allowed=0,2,3\n"));
    let nodes = "[global]\nsize=4k\n[a]\nnuma_cpu_nodes=1,0\n[b]\nnuma_cpu_nodes=all\n";
    assert_eq!(pins(nodes), [Pin::Nodes(CpuList::from(vec![0, 1])), Pin::Free]);
    for (option, reason) in [
        ("cpus_allowed=1-x", "`x` is not a number from 0 to 1023"),
        ("cpus_allowed=4096", "not a number"),
        ("numa_cpu_nodes=0\ncpus_allowed=1", "CPUs are given twice"),
        ("cpumask=0", "not a number from 1"),
        ("cpus_allowed=1\ncpumask=1", "exclude each other"),
    ] {
        assert!(mistakes(&format!("[a]\nsize=4k\n{option}\n")).contains(reason), "{option}");
    }
}

#[test]
fn a_section_waits_for_another_one_of_its_group() {
    let text = "[global]\nsize=4k\n[a]\n[b]\nstonewall\n[c]\n[d]\nwait_for=c\n[e]\nwait_for=a\n";
    let after: Vec<Option<u32>> = work(text)
        .iter()
        .filter(|phase| phase.role == Role::Measure)
        .map(|phase| phase.together.and_then(|own| own.after))
        .collect();
    assert_eq!(after, [None, None, None, Some(1), None], "earlier groups have ended");
    let later = mistakes("[a]\nsize=4k\nwait_for=b\n[b]\nsize=4k\n");
    assert!(later.contains("db.fio:3: no section above has the name `b`"), "{later}");
}

#[test]
fn logs_are_in_the_directory_of_the_user() {
    let text = "[a]\nsize=4k\nnumjobs=2\n[b c]\nsize=4k\nwrite_bw_log\nwrite_lat_log=/srv/x\n\
                log_avg_msec=500\nlog_offset=1\nwrite_hist_log\nlog_hist_msec=100\n";
    let changes = Changes { directory: "/data".into(), ..Changes::default() };
    let job = parsed(text, &changes).unwrap();
    let again = parsed(&job.text(), &changes).unwrap();
    assert_eq!(again.text(), job.text());
    let logs: Vec<_> = phases::phases(&job, 1)
        .into_iter()
        .filter_map(|phase| {
            let Work::Stream(stream) = phase.work else { return None };
            stream.operation_log
        })
        .collect();
    let [log] = &logs[..] else { panic!("{logs:?}") };
    assert_eq!(log.bandwidth.as_deref(), Some("/data/b c"));
    assert_eq!(log.latency.as_deref(), Some("/srv/x"));
    assert_eq!((log.operations.as_ref(), log.first, log.per_worker), (None, 3, true));
    assert_eq!((log.interval, log.offsets), (Nanos(500_000_000), true));
    let histograms = log.histograms.as_ref().unwrap();
    assert_eq!(histograms.path, "/data/b c");
    assert_eq!((histograms.interval, histograms.coarseness), (Nanos(100_000_000), 0));
    let plan = parsed(text, &Changes::default()).unwrap();
    let reason = "only `fslab fio` writes logs";
    assert!(plan.unused.contains(&("write_bw_log".to_owned(), reason.to_owned())));
    assert!(!plan.text().contains("_log"), "{}", plan.text());
    assert!(mistakes("[a]\nsize=4k\nwrite_lat_log=../x\n").contains("without `..`"));
}
