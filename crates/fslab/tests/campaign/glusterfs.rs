//! Runs on hosts that share a GlusterFS volume: two servers, and a client on each of three hosts.

use std::{collections::BTreeMap, fs, path::Path};

use super::{Section, tries};
use crate::{
    cluster::{Hosts, has_hosts, rows},
    support::{Bench, finished, on_path, skipped},
};

const INTRO: &str = "\
Three hosts, which are namespaces of this machine, mount a GlusterFS volume that two of them serve.
The values are medians over the repetitions. They show that runs work, not the performance of a
cluster, because the hosts share the CPUs and the disk.";

/// Median of the values of a phase's primary metric, by number of hosts and shift.
fn medians(run: &Path) -> BTreeMap<(String, String), f64> {
    let metric = "CASE phase WHEN 'write' THEN 'durable_throughput' WHEN 'read' THEN 'throughput'
         WHEN 'create' THEN CASE suite WHEN 'coherence' THEN 'latency_p50' ELSE 'ops_rate' END
         WHEN 'overwrite' THEN 'latency_p50' ELSE 'ops_rate' END";
    let values = rows(
        run,
        &format!(
            "SELECT suite || ' ' || phase, label, value FROM sample
             JOIN trial ON trial.id = trial_id JOIN cell ON cell.idx = cell_idx
             WHERE outcome = 'measured' AND worker IS NULL AND metric = {metric}
             ORDER BY 1, 2, 3"
        ),
    );
    let mut all: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for row in values {
        let setting = row[1]
            .split(' ')
            .filter(|word| word.starts_with("hosts=") || word.starts_with("reader_shift="));
        let key = (row[0].clone(), setting.collect::<Vec<_>>().join(" "));
        all.entry(key).or_default().push(row[2].parse().unwrap());
    }
    all.into_iter().map(|(key, values)| (key, values[values.len() / 2])).collect()
}

struct Volume {
    bench: Bench,
    hosts: Hosts,
    mount: String,
}

impl Volume {
    fn new() -> Self {
        let bench = Bench::new();
        let hosts = Hosts::up(&bench, 3);
        let mount = bench.path("mount");
        fs::create_dir(&mount).unwrap();
        let mount = mount.display().to_string();
        let served = hosts.command(&["gluster", &mount]).output().unwrap();
        assert!(served.status.success(), "{}", String::from_utf8_lossy(&served.stderr));
        Self { bench, hosts, mount }
    }

    /// Runs a plan, and returns the path of its run file.
    fn run(
        &self,
        name: &str,
        launcher: &str,
        repetitions: usize,
        axes: &str,
    ) -> std::path::PathBuf {
        let plan = self.bench.plan(&format!(
            "title = \"GlusterFS\"\nprofile = \"quick\"\nrepetitions = {repetitions}\n[storage]\n\
             cluster = \"{}\"\n[axes]\n{axes}\n",
            self.mount
        ));
        let path = self.bench.path(name);
        let output = path.display().to_string();
        let words = ["run", &plan, "--hosts=node0,node1,node2", launcher, "-o", &output];
        let ran = finished(self.hosts.on_first(&self.bench, &words).output().unwrap());
        assert_eq!(ran.status, Some(0), "{ran:?}");
        path
    }
}

/// Effects of the caches of clients: reads of own and of other files, and coherence.
fn caches(volume: &Volume, section: &mut Section) {
    // The files are in the caches of the clients that wrote them.
    let axes = "hosts = [3]\nreader_shift = [0, 1]\nworkload = [{ suite = \"stream\", workers = \
                2, file_size = \"16MiB\", block_size = \"128KiB\", cache = \"unchanged\" }]";
    let run = volume.run("shift.fslab", &volume.hosts.launcher(), 6, axes);
    let medians = medians(&run);
    let rate = |shift: u32| {
        let of =
            |(key, _): &(&(String, String), &f64)| key.1.contains(&format!("reader_shift={shift}"));
        *medians.iter().find(of).unwrap().1
    };
    let own = rows(&run, "SELECT count(*) FROM warning WHERE code = 'own-data-read'");
    assert_eq!(own[0][0], "6", "one warning per trial that reads own data");
    section.note(format!(
        "Reads of own files are {:.2} times as fast as reads of the files of another host, and \
         have the warning `own-data-read`.",
        rate(0) / rate(1)
    ));
    let axes = "hosts = [3]\nworkload = [{ suite = \"coherence\", changes = [\"create\", \
                \"overwrite\"] }]";
    let run = volume.run("coherence.fslab", &volume.hosts.launcher(), 6, axes);
    let seen = |change: &str| {
        let (_, value) = self::medians(&run)
            .into_iter()
            .find(|((test, _), _)| test == &format!("coherence {change}"))
            .unwrap();
        value / 1e6
    };
    section.note(format!(
        "Another host sees a new file after {:.1} ms and new data after {:.1} ms (medians).",
        seen("create"),
        seen("overwrite")
    ));
}

#[test]
fn hosts_measure_a_glusterfs_volume() {
    let test = "campaign::glusterfs::hosts_measure_a_glusterfs_volume";
    if !has_hosts(test) {
        return;
    }
    if !on_path("glusterd") {
        skipped(test, "glusterd; scripts/prepare --gluster installs it");
        return;
    }
    let volume = Volume::new();
    let columns = ["library", "test", "1 host", "2 hosts", "3 hosts"];
    let mut section = Section::new(10, "glusterfs", "GlusterFS", INTRO, &columns);
    let (repetitions, counts) = (tries(1, 6), if tries(0, 1) == 1 { "[1, 2, 3]" } else { "[2]" });
    let suites = format!(
        "hosts = {counts}\nworkload = [\n{{ suite = \"stream\", direction = \"write\", workers = 2, \
         file_size = \"8MiB\", block_size = \"128KiB\" }},\n{{ suite = \"metadata\", operations = \
         [\"create\", \"stat\", \"unlink\"], files = 100, workers = 2 }}]"
    );
    let libraries =
        [("Open MPI", volume.hosts.launcher()), ("MPICH", volume.hosts.mpich_launcher())];
    for (library, launcher) in libraries.into_iter().take(tries(1, 2)) {
        let run = volume.run(&format!("{library}.fslab"), &launcher, repetitions, &suites);
        let medians = medians(&run);
        let tests: std::collections::BTreeSet<&String> =
            medians.keys().map(|(test, _)| test).collect();
        assert_eq!(tests.len(), 4, "{medians:?}");
        for test in tests {
            let value = |hosts: u32| {
                let key = (test.clone(), format!("hosts={hosts}"));
                medians.get(&key).map_or("–".to_owned(), |value| match test.as_str() {
                    "stream write" => format!("{:.0} MiB/s", value / f64::from(1 << 20)),
                    _ => format!("{value:.0} ops/s"),
                })
            };
            section.row([library.to_owned(), test.clone(), value(1), value(2), value(3)]);
        }
        assert_eq!(fs::read_dir(volume.bench.path("hosts/node0.d/brick")).unwrap().count(), 1);
    }
    if tries(0, 1) == 1 {
        caches(&volume, &mut section);
    }
    section.write();
}
