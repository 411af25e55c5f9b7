# Two runs on the disk of the machine, with marks behind the filesystem: how many trials are stored.
mkdir -p /data
mount -t ext4 /dev/vda /data

mark() { # place, number: a block of 4 KiB, written past the cache
    printf 'fslab-mark %s' "$2" |
        dd of=/dev/vda bs=4096 seek=$((MARKS + $1)) conv=sync,notrunc oflag=direct 2>/dev/null
}
events() { # place: marks each trial that is reported as stored
    n=0
    while read -r line; do
        case $line in
        *'"trial_ended"'*)
            n=$((n + 1))
            mark "$1" $n
            ;;
        *'"event"'*) ;;
        *) echo "| $line" ;;
        esac
    done
}
export FSLAB_STATE=/data/state
mkdir /data/images /data/work
mark 0 0
mark 1 0
# A run on an image file: each trial counts when it is reported.
fslab run /tmp/image.toml -o /data/image.fslab --json 2>&1 >/dev/null | events 0
# A run on a directory, whose run file is on the same filesystem: its trials count when a command
# has ended. The first is interrupted after a trial.
fslab run /tmp/directory.toml -o /data/directory.fslab --json 2>/tmp/events >/dev/null &
until grep -q trial_ended /tmp/events || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -TERM $!
wait $!
grep -v '"event"' /tmp/events
[ ! -e /data/directory.fslab ] || mark 1 1
fslab run --resume /data/directory.fslab --json >/dev/null 2>/tmp/events &&
    mark 1 $TRIALS
grep -v '"event"' /tmp/events
sync
umount /data
echo @end
poweroff -f
