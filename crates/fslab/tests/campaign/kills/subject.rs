//! Commands that are killed: their arguments, and the files that they may leave.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    blow::{Blow, Part},
    ground::Range,
};
use crate::{
    guest::{package, runs_here},
    support::{BOOT, Bench, Disk},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Image,
    Device,
    Directory,
    Settings,
    Layers,
    Uml,
    Tcg,
    Icount,
    Resume,
    Reboot,
    Replay,
    Program,
    Server,
    Freeze,
    Threads,
    Processes,
    CrashState,
    Demo,
    Clean,
    Html,
    Xlsx,
    Charts,
    Import,
    Loadfile,
    Record,
}

/// Kind of a command, which determines its checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The run file is resumed, and contains each trial once.
    Run,
    /// Like a run, but never completed, because that takes too long.
    LongRun,
    /// The command stores no run file.
    Bench,
    /// The trials of the run that was killed before are kept.
    Clean,
    /// The output is complete or missing.
    Writer,
}

impl Subject {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Image => "run, image",
            Self::Device => "run, device",
            Self::Directory => "run, directory",
            Self::Settings => "run, settings",
            Self::Layers => "run, layers",
            Self::Uml => "run, uml guest",
            Self::Tcg => "run, tcg guest",
            Self::Icount => "run, icount guest",
            Self::Resume => "run --resume after a kill",
            Self::Reboot => "run --resume after a reboot",
            Self::Replay => "run, replay",
            Self::Program => "run, program with a daemon",
            Self::Server => "run, server",
            Self::Freeze => "run, freeze",
            Self::Threads => "bench, threads",
            Self::Processes => "bench, processes",
            Self::CrashState => "bench --crash-state",
            Self::Demo => "demo",
            Self::Clean => "clean",
            Self::Html => "report --html",
            Self::Xlsx => "report -o run.xlsx",
            Self::Charts => "report --charts",
            Self::Import => "import",
            Self::Loadfile => "loadfile -o",
            Self::Record => "record",
        }
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Image
            | Self::Device
            | Self::Directory
            | Self::Settings
            | Self::Layers
            | Self::Uml
            | Self::Tcg
            | Self::Icount
            | Self::Resume
            | Self::Reboot
            | Self::Replay
            | Self::Program
            | Self::Server
            | Self::Freeze => Kind::Run,
            Self::Demo => Kind::LongRun,
            Self::Threads | Self::Processes | Self::CrashState => Kind::Bench,
            Self::Clean => Kind::Clean,
            Self::Html
            | Self::Xlsx
            | Self::Charts
            | Self::Import
            | Self::Loadfile
            | Self::Record => Kind::Writer,
        }
    }

    pub(super) fn in_guest(self) -> bool {
        matches!(self, Self::Uml | Self::Tcg | Self::Icount)
    }

    /// Number of the group of rows that run sequentially. Different groups run concurrently.
    pub(super) fn lane(self) -> usize {
        let apart =
            [Self::Device, Self::Settings, Self::Threads, Self::Processes, Self::CrashState];
        let first = matches!(self.kind(), Kind::Run | Kind::LongRun) && !apart.contains(&self);
        if self.in_guest() { 2 } else { usize::from(!first) }
    }

    /// Requirement that this machine does not meet.
    pub(super) fn missing(self) -> Option<&'static str> {
        let here = |path: &str| Path::new(path).exists();
        let qemu = || here("/usr/bin/qemu-system-x86_64") && package().is_some();
        let drivers = fs::read_to_string("/proc/misc").unwrap_or_default();
        if self == Self::Layers && !drivers.contains("device-mapper") {
            return Some("a kernel with device mapper");
        }
        if self == Self::Uml && !runs_here("uml") {
            return Some("user-mode Linux, and a CPU that it supports");
        }
        let emulated = matches!(self, Self::Tcg | Self::Icount);
        (emulated && !qemu()).then_some("QEMU and a kernel package")
    }

    /// Exit status of the command if it is not killed. A run that requires a reboot ends with 5.
    pub(super) fn status(self) -> i32 {
        if self == Self::Reboot { 5 } else { 0 }
    }

    fn filesystems(self) -> &'static str {
        if matches!(self, Self::Image | Self::Resume | Self::Clean) {
            return IMAGE_FILESYSTEMS;
        }
        if matches!(self, Self::Device | Self::Settings) {
            return r#"["ext2"]"#;
        }
        let layers = r#"[{ name = "ext4", layers = [{ delay = "1ms" }] }]"#;
        if self == Self::Layers { layers } else { r#"["ext4"]"# }
    }
}

const IMAGE_FILESYSTEMS: &str = r#"["ext2", { name = "ext4", setup = [
    { populate = "linux", populate_files = 60 },
    { run_unmounted = ["tune2fs", "-o", "journal_data_writeback", "{device}"] },
    { remove = "linux" },
] }]"#;

/// Program that leaves a daemon in another session. A parameter of the daemon is the state
/// directory, by which the test finds it.
const DAEMON: &str = "setsid sh -c 'while :; do sleep 1; done' {state} & \
    dd if=/dev/zero of={target}/file bs=64k count=100 conv=fsync";

/// Server, whose parameter is the state directory.
const SERVER: &str = "touch {scratch}/ready; while :; do sleep 1; done";

/// Writes to a filesystem that is frozen most of the time.
const FROZEN: &str = "{ together = [\n\
    { name = \"log\", suite = \"stream\", direction = \"write\", file_size = \"1MiB\", \
      fsync_every = 1 },\n\
    { name = \"freeze\", action = \"freeze\", hold = \"200ms\", every = \"250ms\" }],\n\
    runtime = \"1s\", ramp_time = \"0s\", alone = \"none\" }";

/// Program that is recorded: two processes that change many files.
const RECORDED: &str = "i=0; while [ $i -lt 150 ]; do echo $i >a; mv a b; cat b >>c; i=$((i + 1)); \
    done & mkdir -p d; i=0; while [ $i -lt 150 ]; do echo $i >d/$i; i=$((i + 1)); done; wait";

/// bonnie++ records for `fslab import`.
const RECORD: &str = "1.96,1.96,ext4,1,1337657098,8G,,582,98,59268,6,30754,3,3515,99,104817,4,\
    306.1,1,512,,,,,35092,55,520637,91,1054,1,35182,54,791080,100,1664,2,15867us,1456ms,340ms,\
    8997us,50112us,323ms,1232ms,541us,14112ms,1189ms,41us,11701ms\n";

/// Environment of one try.
pub(super) struct Ground<'a> {
    pub(super) subject: Subject,
    pub(super) blow: Blow,
    pub(super) range: &'a Range,
    pub(super) bench: Bench,
    /// Prefix of the names of the output files.
    pub(super) stem: String,
    pub(super) disk: Option<Disk>,
    /// True if settings of the machine are varied, too.
    pub(super) whole: bool,
}

impl<'a> Ground<'a> {
    pub(super) fn new(range: &'a Range, subject: Subject, blow: Blow, whole: bool) -> Self {
        let bench = Bench::new_in(&range.path("scratch"));
        range.clear("target");
        range.clear("small");
        fs::create_dir(bench.path("images")).unwrap();
        fs::create_dir(range.path("target/data")).unwrap();
        let stem = format!("kill-{:08x}", fastrand::u32(..));
        let on_disk = matches!(subject, Subject::Device | Subject::Settings);
        let disk = on_disk.then(|| bench.disk("disk.img", 48 << 20));
        let ground = Self { subject, blow, range, bench, stem, disk, whole };
        if subject == Subject::Record {
            fs::create_dir(ground.path("data")).unwrap();
        } else if subject == Subject::Import {
            fs::write(ground.path("old.csv"), RECORD.repeat(120)).unwrap();
        } else if matches!(subject, Subject::Html | Subject::Xlsx | Subject::Charts) {
            fs::copy(range.path("sample.fslab"), ground.path("sample.fslab")).unwrap();
        } else {
            ground.bench.plan(&ground.plan());
        }
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        self.bench.path(name)
    }

    /// Path of the run file.
    pub(super) fn run_file(&self) -> PathBuf {
        let name = format!("{}.fslab", self.stem);
        if self.on_target() {
            self.range.path("target").join(name)
        } else if self.blow == Blow::Full {
            self.range.path("small").join(name)
        } else {
            self.path(&name)
        }
    }

    /// True if the run file is on the filesystem under test.
    fn on_target(&self) -> bool {
        matches!(self.subject, Subject::Directory | Subject::Reboot)
    }

    /// Name of the filesystem that becomes full.
    pub(super) fn full(&self) -> &'static str {
        if self.on_target() { "target" } else { "small" }
    }

    /// Path of the output of a writer.
    pub(super) fn output(&self) -> PathBuf {
        let endings = [
            (Subject::Html, "html"),
            (Subject::Xlsx, "xlsx"),
            (Subject::Import, "fslab"),
            (Subject::Loadfile, "load"),
            (Subject::Record, "fstrace"),
        ];
        let ending = endings.iter().find(|(subject, _)| *subject == self.subject);
        let ending = ending.map_or("charts", |(_, ending)| ending);
        let name = format!("{}.{ending}", self.stem);
        if self.blow == Blow::Full { self.range.path("small").join(name) } else { self.path(&name) }
    }

    fn plan(&self) -> String {
        let images = self.path("images").display().to_string();
        let data = self.range.path("target/data").display().to_string();
        let (mut top, mut axes) = (String::new(), String::new());
        let kinds = [(Subject::Uml, "uml"), (Subject::Tcg, "tcg"), (Subject::Icount, "icount")];
        let kind = kinds.iter().find(|(subject, _)| *subject == self.subject);
        if let Some((_, kind)) = kind {
            top.push_str(&format!("guest = \"{kind}\"\nfsck = false\n"));
        }
        if self.subject == Subject::Reboot {
            top.push_str("isolation = \"reboot\"\n");
        }
        if self.subject == Subject::Settings {
            axes.push_str("write_cache = [\"write through\"]\n");
            let of_machine = self.whole.then_some("dirty_background_threshold = [\"7%\"]\n");
            axes.push_str(of_machine.unwrap_or_default());
        }
        let storage = if self.on_target() {
            format!("directory = \"{data}\"")
        } else if let Some(disk) = &self.disk {
            format!("device = \"{}\"", disk.path())
        } else if self.subject.in_guest() {
            format!("image_size = \"64MiB\"\nimage_directory = \"{images}\"")
        } else {
            format!(
                "image_size = \"32MiB\"\nmemory_limit = \"256MiB\"\nimage_directory = \"{images}\""
            )
        };
        if !self.on_target() {
            axes.push_str(&format!("filesystem = {}\n", self.subject.filesystems()));
        }
        // An icount guest takes a minute on a loaded machine.
        let repetitions = match self.subject == Subject::Icount {
            true => 1,
            // One trial before the command that is killed, and one after it.
            false if self.subject == Subject::Reboot => 3,
            false => 2,
        };
        let workload = self.workload();
        format!(
            "repetitions = {repetitions}\naa_control = \"none\"\ninvalid_trials = \"keep\"\nseed = 11\n{top}[storage]\n\
             {storage}\n[axes]\n{axes}workload = [{workload}]\n"
        )
    }

    fn workload(&self) -> String {
        let state = self.bench.state().display().to_string();
        if self.subject == Subject::Replay {
            let trace = self.range.path("sample.fstrace").display().to_string();
            return format!("{{ suite = \"replay\", trace = \"{trace}\" }}");
        }
        if self.subject == Subject::Program {
            let run = DAEMON.replace("{state}", &state);
            return format!("{{ suite = \"command\", run = [\"sh\", \"-c\", \"{run}\"] }}");
        }
        if self.subject == Subject::Server {
            return format!(
                "{{ suite = \"command\", serve = [\"sh\", \"-c\", \"{SERVER}\", \"{state}\"], \
                 ready = [\"test\", \"-e\", \"{{scratch}}/ready\"], \
                 run = [\"dd\", \"if=/dev/zero\", \"of={{target}}/file\", \"bs=64k\", \
                 \"count=100\", \"conv=fsync\"] }}"
            );
        }
        if self.subject == Subject::Freeze {
            return FROZEN.to_owned();
        }
        "{ suite = \"iozone\", file_size = \"512KiB\", block_size = \"64KiB\", \
         tests = [\"write\", \"read\"] }"
            .to_owned()
    }

    /// Arguments that start the run.
    pub(super) fn begin(&self) -> Vec<String> {
        let mut words = vec!["run".to_owned(), self.path("plan.toml").display().to_string()];
        words.extend(["-o".into(), self.run_file().display().to_string()]);
        if matches!(self.subject, Subject::Tcg | Subject::Icount) {
            let kernel = package().map(|kernel| kernel.display().to_string());
            words.extend(kernel.into_iter().flat_map(|kernel| ["--kernel".to_owned(), kernel]));
        }
        words
    }

    /// Arguments that resume the run, or start it if there is no run file.
    pub(super) fn resume(&self) -> Vec<String> {
        if self.working().exists() {
            return vec!["run".into(), "--resume".into(), self.run_file().display().to_string()];
        }
        self.begin()
    }

    /// Path of the run file, or of its newer copy in memory.
    pub(super) fn working(&self) -> PathBuf {
        let user = rustix::process::geteuid().as_raw();
        let memory = fs::read_dir(format!("/dev/shm/fslab-{user}")).into_iter().flatten().flatten();
        let mut copies = memory.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&self.stem) && name.ends_with(".fslab")
        });
        copies.next().unwrap_or_else(|| self.run_file())
    }

    /// Arguments of the command that is killed.
    pub(super) fn arguments(&self) -> Vec<String> {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let data = self.range.path("target/data").display().to_string();
        let out = self.output().display().to_string();
        let run = self.run_file().display().to_string();
        let mut arguments = match self.subject {
            Subject::Resume | Subject::Reboot => self.resume(),
            Subject::Clean => words("clean"),
            Subject::Threads => words("bench stream DATA --set worker_type=thread"),
            Subject::Processes => words("bench stream DATA --set worker_type=process"),
            Subject::CrashState => {
                words("bench fsync-4k DATA --file-size 1MiB --runtime 1s --crash-state")
            }
            Subject::Demo => words("demo -o RUN"),
            Subject::Html => words("report sample.fslab --html OUT"),
            Subject::Xlsx => words("report sample.fslab -o OUT"),
            Subject::Charts => words("report sample.fslab --charts OUT"),
            Subject::Import => words("import old.csv -o OUT"),
            Subject::Loadfile => words("loadfile --iterations 60 -o OUT"),
            Subject::Record => self.record(&out),
            Subject::Image
            | Subject::Device
            | Subject::Directory
            | Subject::Settings
            | Subject::Layers
            | Subject::Uml
            | Subject::Tcg
            | Subject::Icount
            | Subject::Replay
            | Subject::Program
            | Subject::Server
            | Subject::Freeze => self.begin(),
        };
        if matches!(self.subject, Subject::Threads | Subject::Processes) {
            let more = "--set direction=write --set workers=2 --file-size 256KiB --runtime 1s";
            arguments.extend(words(more));
            arguments.extend(if self.blow == Blow::Full { words("-o RUN") } else { Vec::new() });
        }
        if self.subject == Subject::CrashState {
            arguments.push(self.crash_state().display().to_string());
        }
        arguments.iter_mut().for_each(|word| match word.as_str() {
            "DATA" => word.clone_from(&data),
            "OUT" => word.clone_from(&out),
            "RUN" => word.clone_from(&run),
            _ => {}
        });
        arguments
    }

    /// Arguments that record a program.
    pub(super) fn record(&self, output: &str) -> Vec<String> {
        let data = self.path("data").display().to_string();
        let program = format!("cd {data} && {RECORDED}");
        let state = self.bench.state().display().to_string();
        let words = ["record", "-o", output, "--root", &data, "--", "sh", "-c", &program, &state];
        words.map(str::to_owned).to_vec()
    }

    pub(super) fn crash_state(&self) -> PathBuf {
        self.path("crash.state")
    }

    /// Command in a separate session, which its processes share. With `boot`, it runs in a mount
    /// namespace in which another file replaces the boot ID of the kernel.
    pub(super) fn command(&self, arguments: &[String], boot: Option<&str>) -> Command {
        let plain: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let own = self.bench.command(&plain);
        let mut command = Command::new("setsid");
        if let Some(boot) = boot {
            let id = self.range.path("boot-id");
            fs::write(&id, format!("{boot}\n")).unwrap();
            command.args(["unshare", "--mount", "--propagation", "private", "sh", "-c", BOOT]);
            command.arg("sh").args([self.range.path("."), id]);
        }
        command.arg(own.get_program()).args(arguments).current_dir(self.path("."));
        for (name, value) in own.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.stdin(std::process::Stdio::null());
        command
    }

    /// Empties the disk of a run, which contains a filesystem after the run.
    pub(super) fn wipe(&self) {
        if self.disk.is_some() {
            let image = fs::File::options().write(true).open(self.path("disk.img")).unwrap();
            let flags =
                rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(&image, flags, 0, 48 << 20).unwrap();
        }
    }

    /// True for files that the command may leave: files of the user, and files needed to resume a
    /// run.
    pub(super) fn may_stay(&self, name: &str, ended: bool, killed: bool) -> bool {
        let stem = &self.stem;
        let fixed =
            ["plan.toml", "state", "state/journal", "images", "disk.img", "data", "lost+found"];
        let files = ["filler", "old.csv", "sample.fslab", "crash.state"];
        let recorded = self.subject == Subject::Record && name.starts_with("data/");
        let rest = name.strip_prefix(stem.as_str());
        let own = |rest: &str| match rest {
            ".fslab" | ".html" => true,
            ".fslab-wal" | ".fslab-shm" => !ended,
            // The next run with this name replaces these files.
            ".fslab.partial" | ".fslab.partial-journal" => !ended,
            _ => false,
        };
        let output = self.output();
        let output = output.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A killed command leaves its temporary file, as documented.
        let part = killed && name.starts_with('.') && name.contains(stem) && name.contains(".part");
        let written = part
            || self.subject.kind() == Kind::Writer
                && (name == output || name.starts_with(&format!("{output}/")));
        fixed.contains(&name)
            || files.contains(&name)
            || rest.is_some_and(own)
            || written
            || recorded
    }
}

/// Maximum time until a killed command has ended.
pub(super) fn patience(subject: Subject, blow: Blow) -> std::time::Duration {
    let part = matches!(blow, Blow::Part(Part::Supervisor | Part::First | Part::Machine));
    std::time::Duration::from_secs(if subject.in_guest() || part { 120 } else { 60 })
}
