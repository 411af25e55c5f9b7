a=/dev/vda b=/dev/vdb lio=/sys/kernel/config/target/core/fileio_0/disk
mkdir -p /mnt/1 /mnt/2
echo 'activation { udev_sync = 0 udev_rules = 0 }
devices { use_devicesfile = 0 obtain_device_list_from_udev = 0 scan = ["/dev"] }
global { use_lvmpolld = 0 event_activation = 0 thin_check_executable = "" }' >/etc/lvm/lvm.conf
dd if=/dev/urandom of=/tmp/key bs=32 count=1 2>/dev/null

ext2() { mkfs.ext2 -q -F "$1"; }
parts() { printf 'label: gpt\n,8M\n,8M\n' | sfdisk -q $a; }
md() {
    mdadm -q --create /dev/md9 --run --assume-clean -e "$1" -l1 -n2 $a $b
    until [ "$(cat /sys/block/md9/md/array_state)" != active ]; do sleep 0.1; done
}
luks() { # type device ...
    type=$1
    shift
    cryptsetup -q luksFormat --type "$type" --pbkdf pbkdf2 --pbkdf-force-iterations 1000 \
        -d /tmp/key "$@"
}
node() { mknod /tmp/node b $(tr : ' ' <"/sys/block/${1#/dev/}/dev"); }
btrfs_scan() { for device; do btrfs device scan "$device"; done; }
reset() {
    killall sleep && wait
    for at in /mnt/1 /mnt/1 /mnt/2; do umount $at; done
    swapoff -a
    for device in /sys/block/bcache*/bcache/stop /sys/fs/bcache/*-*/stop; do echo 1 >"$device"; done
    lvm vgchange -q -an
    dmsetup remove_all -f
    mdadm -q --stop /dev/md9
    losetup -D
    rmdir $lio
    blockdev --setrw $a
    for disk in $a $b; do
        dd if=/dev/zero of=$disk bs=1M conv=notrunc
        blockdev --rereadpt $disk
    done
    rm -f /tmp/up /tmp/node /tmp/header
    sync
} >/dev/null 2>&1

try() { # number, target and the option -o if it is another, identity for --overwrite-device; see prepare
    # Not as the condition of an if, within which errors end nothing.
    (
        set -e
        prepare
    ) >/tmp/prepared 2>&1
    if [ $? != 0 ]; then
        echo "@unprepared $1 $(tail -n 3 /tmp/prepared | tr '\r\n' '  ')"
        reset
        return
    fi
    number=$1 destroy=$3
    set -- $(eval "echo $2")
    device=$1
    shift
    [ $# -gt 0 ] || set -- -o /tmp/run.fslab
    sync
    echo "@before $number"
    read -r _
    fslab run /tmp/plan.toml --set "device=$device" "$@" ${destroy:+--overwrite-device "$destroy"} \
        >/tmp/output 2>&1
    status=$?
    sync
    sed 's/^/| /' /tmp/output
    echo "@after $number $status"
    read -r _
    rm -f /tmp/run.*
    reset
}
export FSLAB_STATE=/tmp/state
cat >/tmp/plan.toml <<END
profile = "quick"
repetitions = 1
seed = 1
fsck = false
[storage]
device = "/dev/vda"
[axes]
filesystem = ["ext2"]
workload = [{ suite = "stream", file_size = "1MiB", block_size = "64KiB" }]
END
