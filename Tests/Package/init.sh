#!/usr/bin/env bash
# Becomes the systemd of a machine whose disk is the folder $1: mounts what a kernel and an initrd would, and hands over.
# Started as the first process of namespaces of its own, see machine.sh.
set -euo pipefail
root=$1

mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root"/dev/{pts,shm}
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
for device in "null 3" "zero 5" "full 7" "random 8" "urandom 9"; do
    mknod -m 666 "$root/dev/${device% *}" c 1 "${device#* }"
done
mknod -m 666 "$root/dev/tty" c 5 0
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for stream in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${stream%:*}" "$root/dev/${stream#*:}"; done
hostname roost-test

# A process of outside in the machine's cgroup shows as 0. It is on its way out, and systemd would stumble over it.
while grep -qx 0 "$root/sys/fs/cgroup/cgroup.procs"; do sleep 0.05; done

cd "$root"
pivot_root . .
umount --lazy .
# systemd's container interface asks for this, and for the variable.
mount --make-rshared /
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 container=roost-test \
    /lib/systemd/systemd --unit=multi-user.target --show-status=no --log-target=journal
