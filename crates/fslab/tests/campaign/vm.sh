# Begins the scripts of machines: mounts, modules, and what each test needs.
export PATH=/usr/sbin:/usr/bin:/applets HOME=/root LC_ALL=C.UTF-8 DM_DISABLE_UDEV=1
/bin/busybox mkdir -p /applets /mnt /etc/lvm /run /tmp
/bin/busybox --install -s /applets
# The root is a tmpfs that anyone may write to; root runs no program below such a directory.
chmod 755 /
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 none /dev/shm
mount -t tmpfs -o mode=1777 none /tmp
mount -t tmpfs none /run
options_scsi_debug=dev_size_mb=24
for module in $(cat /etc/fslab/order); do
    insmod "/lib/fslab/modules/$module.ko" $(eval echo "\${options_$module-}")
done 2>/dev/null
ln -sf /proc/self/fd /dev/fd
stty -echo 2>/dev/null
