#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# The first process of the virtual machine: mounts this machine's files, and a layer of memory over
# them; then runs the command that follows `--` on the kernel's command line, and ends the machine.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in virtio_pci 9pnet_virtio 9p overlay; do modprobe $module; done
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose host /host
mount -t tmpfs memory /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work overlay /new
rm -rf /new/lib/modules
mkdir -p /new/lib/modules /new/out
cp -a /lib/modules/* /new/lib/modules
# kmod's, if the machine has it, wants indexes that busybox does not write.
rm -f /new/sbin/modprobe
cp /bin/busybox /new/sbin/modprobe
for place in proc sys dev; do mount --move /$place /new/$place; done
for place in run dev/shm; do
	mkdir -p /new/$place
	mount -t tmpfs tmpfs /new/$place
done
mkdir -p /new/dev/pts /new/dev/hugepages
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 out /new/out
chroot /new "$@"
echo "guest: status $?"
poweroff -f
