// SPDX-License-Identifier: BSD-3-Clause
// Kernel interfaces behind ports: whether they exist, whether packets stay on this machine, link
// state. Without DPDK.
#pragma once
#include "common/config/live.h"

// Refuses an interface that is not in this network namespace, a device that needs raw sockets
// without the permission for them, and, unless live.allow_nic is set, any argument of the device
// that names an interface through which packets leave this machine.
int iface_check(const struct live_dev *dev, struct err *err);
// Whether packets stay on this machine, by the name of the kernel's driver (as in `ethtool -i`):
// those of the loopback and of interfaces with both ends here do. Bridges, VLANs and the like are
// built on other interfaces and count as leaving.
bool iface_driver_stays(const char *driver);
// The MTU of the device's kernel interface; 0: it has none.
uint32_t iface_mtu(const struct live_dev *dev);
// Frames that the device's kernel interface has received and dropped, for lack of room in the CPU's
// queue (net.core.netdev_max_backlog) or in the card, since it was made; 0: it has none.
uint64_t iface_dropped(const struct live_dev *dev);
// Whether the device's kernel interface is up and has a carrier; true for a device without one.
bool iface_is_up(const struct live_dev *dev);
// What the kernel knows of a PCI device that DPDK has no port of: whether it is there, and which
// driver holds it.
void iface_pci_state(const struct live_dev *dev, char *text, size_t size);
