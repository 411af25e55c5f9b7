//! The installed fio as the load generator of a phase.

use model::{
    Metric, Phase, WorkloadParameters,
    phase::{
        Cache, Command, EndSync, Work,
        command::{FioOutput, Judge, SAME_USER},
    },
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::parameter;

/// Parameter that selects the load generator.
pub(crate) const GENERATOR: ParameterSpec = parameter(
    "load_generator",
    Kind::Word(&["fslab", "fio"]),
    "fslab",
    "Program that performs the measured operations: fslab, or the installed fio, on files that \
     fslab creates.",
);

/// Parameter with the program of fio.
pub(crate) const PROGRAM: ParameterSpec = parameter(
    "fio_program",
    Kind::Text { takes: "a name or an absolute path", read: read_program },
    "fio",
    "Name or absolute path of fio.",
);

/// Name or absolute path of a program. In arguments of programs, a brace begins a placeholder.
fn read_program(text: &str) -> Result<String, ValueError> {
    let is_name = !text.is_empty() && !text.contains(['/', '{']);
    match is_name || (text.starts_with('/') && !text.contains('{')) {
        true => Ok(text.to_owned()),
        false => Err(ValueError::new(format!("`{text}` is not a name or an absolute path"))),
    }
}

/// True if fio performs the measured operations.
pub(crate) fn is_fio(point: &WorkloadParameters) -> bool {
    point.word(GENERATOR.name) == "fio"
}

/// File of the results of fio, not on the filesystem under test.
const RESULTS: &str = "{scratch}/fio.json";

/// Makes glibc place allocations of 2 MiB and more in huge pages, as fslab does with its buffers
/// (glibc 2.35, manual, "Memory Allocation Tunables"). In scattered small pages, direct reads of
/// 1 MiB reached half of the throughput. The alignment of [`program`] adds its size to the
/// allocation of fio's buffers, so that a buffer of 1 MiB is in one as well.
const HUGE_PAGES: &str = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";

/// fio with these options as the work of a phase, instead of a stream.
pub(crate) fn program<'a>(
    point: &WorkloadParameters,
    phase: &Phase,
    options: impl Iterator<Item = (&'a str, String)>,
) -> Work {
    let Work::Stream(stream) = &phase.work else { return phase.work.clone() };
    let own = [
        ("name", phase.name.clone()),
        ("directory", "{target}".to_owned()),
        ("lat_percentiles", "1".into()),
        ("clat_percentiles", "0".into()),
        ("iomem_align", "16m".into()),
        ("output-format", "json+".into()),
        ("output", RESULTS.into()),
    ];
    let options = own.into_iter().chain(options);
    let options = options.map(|(option, value)| format!("--{option}={value}"));
    let end_sync = stream.end_sync != EndSync::None && stream.direction.writes(0);
    let program = point.text(PROGRAM.name).to_owned();
    // The dropped caches also contained the program of fio. It is loaded before the clock starts,
    // so that its reads of 60 MiB are not part of the job.
    let loaded = ["--name=load", "--ioengine=null", "--size=1m", "--output-format=json"];
    let ready = std::iter::once(program.clone()).chain(loaded.map(str::to_owned));
    Work::Command(Box::new(Command {
        ready: (phase.cache == Cache::Cold).then(|| ready.collect()),
        user: SAME_USER.into(),
        fio: Some(FioOutput { file: RESULTS.into(), end_sync }),
        judge: Judge::Fio(phase.primary()),
        seed: stream.seed,
        environment: vec![HUGE_PAGES.into()],
        ..Command::plain(vec![std::iter::once(program).chain(options).collect()])
    }))
}

/// Reason why the speed of fio would not be comparable with that of fslab.
pub fn incomparable(phase: &Phase) -> Option<&'static str> {
    let Work::Stream(stream) = &phase.work else { return None };
    let syncs = stream.end_sync != EndSync::None && stream.direction.writes(0);
    (syncs && phase.primary() == Metric::Throughput).then_some(
        "end_fsync with this access pattern or runtime: fio only measures the time that includes \
         the final sync",
    )
}
