use expect_test::expect;
use proptest::prelude::*;

use super::{super::devices::Device, *};

fn stack() -> Stack {
    let device = |name: &str, number: &str| Device {
        name: name.into(),
        depth: 0,
        number: Some(number.into()),
        partition: false,
    };
    let devices = ["loop1 7:1", "sda1 8:1", "dm-0 254:0", "nvme0n1p2 259:2"];
    let devices = devices.into_iter().filter_map(|text| text.split_once(' '));
    let devices = devices.map(|(name, number)| device(name, number)).collect();
    Stack { devices, unavailable: Vec::new() }
}

/// Origins of thread names, one per line.
fn origins(names: &str) -> String {
    let stack = stack();
    let line = |name: &str| {
        let (origin, shown) = of(name, &stack);
        format!("{name:33} {:11} {shown}", origin.name()).trim_end().to_owned() + "\n"
    };
    names.split('\n').map(line).collect()
}

#[test]
fn threads_of_filesystems() {
    let names = "\
jbd2/sda1-8
jbd2/dm-0-8
jbd2/dm-0
jbd2/sdb1-8
jbd2/nvme0n1p2-
xfsaild/loop1
xfsaild/loop10
xfsaild/dm-0
kworker/u8:2-xfs-cil/loop1
kworker/0:1H-xfs-log/loop1
kworker/1:2-xfs-conv/loop10
kworker/R-xfs-buf/loop1
kworker/1:3+xfs-inodegc/loop1
kworker/R-xfsalloc
btrfs-cleaner
btrfs-transaction
btrfs-transacti
kworker/u8:5-btrfs-endio-write
kworker/u8:2+flush-7:1
kworker/u8:2+flush-7:0
kworker/u8:2-flush-btrfs-1
kworker/u8:27-writeback
ext4lazyinit
kworker/u8:3-ext4-rsv-conversion
jfsCommit
f2fs_ckpt-7:1
f2fs_flush-7:1
f2fs_gc-7:1
f2fs_discard-7:3";
    expect![[r#"
        jbd2/sda1-8                       journal     jbd2/sda1
        jbd2/dm-0-8                       journal     jbd2/dm-0
        jbd2/dm-0                         journal     jbd2/dm-0
        jbd2/sdb1-8                       other       jbd2/sdb1
        jbd2/nvme0n1p2-                   journal     jbd2/nvme0n1p2
        xfsaild/loop1                     journal     xfsaild/loop1
        xfsaild/loop10                    other       xfsaild/loop10
        xfsaild/dm-0                      journal     xfsaild/dm-0
        kworker/u8:2-xfs-cil/loop1        journal     kworker xfs-cil/loop1
        kworker/0:1H-xfs-log/loop1        journal     kworker xfs-log/loop1
        kworker/1:2-xfs-conv/loop10       other       kworker xfs-conv/loop10
        kworker/R-xfs-buf/loop1           filesystem  kworker xfs-buf/loop1
        kworker/1:3+xfs-inodegc/loop1     deferred    kworker xfs-inodegc/loop1
        kworker/R-xfsalloc                filesystem  kworker xfsalloc
        btrfs-cleaner                     deferred    btrfs-cleaner
        btrfs-transaction                 journal     btrfs-transaction
        btrfs-transacti                   journal     btrfs-transacti
        kworker/u8:5-btrfs-endio-write    filesystem  kworker btrfs-endio-write
        kworker/u8:2+flush-7:1            writeback   kworker flush-7:1
        kworker/u8:2+flush-7:0            other       kworker flush-7:0
        kworker/u8:2-flush-btrfs-1        writeback   kworker flush-btrfs
        kworker/u8:27-writeback           writeback   kworker writeback
        ext4lazyinit                      deferred    ext4lazyinit
        kworker/u8:3-ext4-rsv-conversion  filesystem  kworker ext4-rsv-conversion
        jfsCommit                         journal     jfsCommit
        f2fs_ckpt-7:1                     journal     f2fs_ckpt-7:1
        f2fs_flush-7:1                    journal     f2fs_flush-7:1
        f2fs_gc-7:1                       deferred    f2fs_gc-7:1
        f2fs_discard-7:3                  other       f2fs_discard-7:3
    "#]]
    .assert_eq(&origins(names));
}

#[test]
fn threads_below_filesystems_and_of_other_subsystems() {
    let names = "\
loop1
loop2
kworker/u8:9+loop1
kworker/u8:9-loopback
dio/loop1
kworker/R-dio/vda
kworker/0:0H-kblockd
ksoftirqd/1
nvme-wq
scsi_eh_3
kcryptd_io-254:0-1
dmcrypt_write/254:0
dmcrypt_write/254:9
md0_raid6
md127_resync
md_misc
mdlint
raid5wq
kswapd0
kcompactd0
khugepaged
oom_reaper
txg_sync
kworker/u8:0-events_unbound
kworker/u9:0
migration/0
kthreadd
rcu_preempt
irq/24-ACPI:Ged
kworker/
";
    expect![[r#"
        loop1                             loop        loop1
        loop2                             other       loop2
        kworker/u8:9+loop1                loop        kworker loop1
        kworker/u8:9-loopback             other       kworker loopback
        dio/loop1                         block       dio/loop1
        kworker/R-dio/vda                 other       kworker dio/vda
        kworker/0:0H-kblockd              block       kworker kblockd
        ksoftirqd/1                       block       ksoftirqd
        nvme-wq                           block       nvme-wq
        scsi_eh_3                         block       scsi_eh
        kcryptd_io-254:0-1                stack       kcryptd_io-254:0-1
        dmcrypt_write/254:0               stack       dmcrypt_write/254:0
        dmcrypt_write/254:9               other       dmcrypt_write/254:9
        md0_raid6                         stack       md0_raid6
        md127_resync                      stack       md127_resync
        md_misc                           stack       md_misc
        mdlint                            other       mdlint
        raid5wq                           stack       raid5wq
        kswapd0                           reclaim     kswapd
        kcompactd0                        reclaim     kcompactd
        khugepaged                        reclaim     khugepaged
        oom_reaper                        reclaim     oom_reaper
        txg_sync                          filesystem  txg_sync
        kworker/u8:0-events_unbound       shared      kworker events_unbound
        kworker/u9:0                      other       kworker
        migration/0                       other       migration
        kthreadd                          other       kthreadd
        rcu_preempt                       other       rcu_preempt
        irq/24-ACPI:Ged                   other       irq/24-ACPI:Ged
        kworker/                          other       kworker
                                          other
    "#]]
    .assert_eq(&origins(names));
}

proptest! {
    #[test]
    fn every_name_has_an_origin(name in "\\PC{0,40}") {
        let (_, shown) = of(&name, &stack());
        prop_assert!(shown.len() <= name.len() + 8, "{shown}");
    }

    #[test]
    fn worker_numbers_do_not_matter(
        pool in "[0-9u:HR]{1,6}",
        sign in "[-+]",
        work in "[a-z]{2,8}",
    ) {
        let stack = stack();
        let (origin, shown) = of(&format!("kworker/{pool}{sign}{work}"), &stack);
        prop_assert_eq!(shown, format!("kworker {work}"));
        prop_assert_eq!(origin, of(&work, &stack).0);
    }
}
