// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/port/iface.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

bool iface_driver_stays(const char *driver) {
	static const char *const here[] = {"veth", "dummy", "tun", "ifb", "netkit", NULL};

	for (size_t i = 0; here[i] != NULL; i++) {
		if (strcmp(driver, here[i]) == 0)
			return true;
	}
	return false;
}

// Sends one ioctl about an interface to the kernel. False: it failed.
static bool ask(const char *name, unsigned long request, struct ifreq *req) {
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool answered;

	snprintf(req->ifr_name, sizeof(req->ifr_name), "%s", name);
	answered = fd >= 0 && ioctl(fd, request, req) == 0;
	if (fd >= 0)
		close(fd);
	return answered;
}

// Sets `driver` to the driver of the interface `name` if packets may leave this machine through it,
// else to "".
static void leaves_through(const char *name, char driver[32]) {
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq req = {0};

	driver[0] = '\0';
	if (!ask(name, SIOCGIFFLAGS, &req) || (req.ifr_flags & IFF_LOOPBACK) != 0)
		return;
	req.ifr_data = (char *)&info;
	if (!ask(name, SIOCETHTOOL, &req))
		snprintf(driver, 32, "unknown");
	else if (!iface_driver_stays(info.driver))
		snprintf(driver, 32, "%.31s", info.driver);
}

// Checks each value of "net_tap0,iface=tap0,remote=eth0", whatever its key.
static int stays_here(const struct live_dev *dev, struct err *err) {
	const char *at = dev->text;

	while (!dev->allow_nic && (at = strchr(at, '=')) != NULL) {
		size_t len = strcspn(++at, ",=()[]");
		char name[LIVE_IFACE_SIZE], driver[32];

		if (len == 0 || len >= sizeof(name))
			continue;
		memcpy(name, at, len);
		name[len] = '\0';
		leaves_through(name, driver);
		if (driver[0] != '\0')
			return config_err(dev->node, -EINVAL, err,
				"dev: packets leave this machine through '%s' (driver %s); set "
				"live.allow_nic: yes if its network is yours",
				name, driver);
	}
	return 0;
}

int iface_check(const struct live_dev *dev, struct err *err) {
	int fd, rc;

	if ((rc = stays_here(dev, err)) < 0)
		return rc;
	if (dev->iface[0] == '\0')
		return 0;
	if (if_nametoindex(dev->iface) == 0)
		return config_err(dev->node, -ENODEV, err,
			"dev: there is no interface '%s' in this network namespace", dev->iface);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return config_err(dev->node, -errno, err,
			"dev: no permission for raw packets on '%s': "
			"run as root or with CAP_NET_RAW",
			dev->iface);
	close(fd);
	return 0;
}

bool iface_is_up(const struct live_dev *dev) {
	const short up = IFF_UP | IFF_RUNNING;
	struct ifreq req = {0};

	if (dev->iface[0] == '\0')
		return true;
	return ask(dev->iface, SIOCGIFFLAGS, &req) && (req.ifr_flags & up) == up;
}

uint64_t iface_dropped(const struct live_dev *dev) {
	FILE *in = dev->iface[0] == '\0' ? NULL : fopen("/proc/thread-self/net/dev", "re");
	unsigned long long dropped, found = 0;
	char line[512], name[32];

	while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
		// A name, then bytes, packets, errors and drops of reception.
		if (sscanf(line, " %31[^:]: %*u %*u %*u %llu", name, &dropped) == 2
			&& strcmp(name, dev->iface) == 0)
			found = dropped;
	}
	if (in != NULL)
		fclose(in);
	return found;
}

uint32_t iface_mtu(const struct live_dev *dev) {
	struct ifreq req = {0};

	if (dev->iface[0] == '\0' || !ask(dev->iface, SIOCGIFMTU, &req) || req.ifr_mtu < 0)
		return 0;
	return (uint32_t)req.ifr_mtu;
}

void iface_pci_state(const struct live_dev *dev, char *text, size_t size) {
	char path[128], driver[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", dev->name);
	if (access(path, F_OK) < 0) {
		snprintf(text, size, "there is no such PCI device (lspci -D lists them)");
		return;
	}
	strcat(path, "/driver");
	n = readlink(path, driver, sizeof(driver) - 1);
	driver[n > 0 ? n : 0] = '\0';
	if (n <= 0)
		snprintf(text, size, "no driver holds it: weir setup cards %s", dev->name);
	else
		snprintf(text, size,
			"driver %s holds it, and DPDK's log has no reason; most cards need "
			"vfio-pci: weir setup cards %s",
			strrchr(driver, '/') != NULL ? strrchr(driver, '/') + 1 : driver,
			dev->name);
}
