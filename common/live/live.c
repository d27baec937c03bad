// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/live.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const hugepage_names[] = {"auto", "yes", "no", NULL};

static const struct param process_params[] = {
	{"prefix", "", "EAL file prefix, one per running process; default: the program's name",
		UNIT_NONE, PARAM_TEXT(struct live_process, prefix)},
	{"hugepages", "auto", "auto takes them if enough are free", UNIT_NONE,
		PARAM_ENUM(struct live_process, hugepages, hugepage_names)},
	{"burst", "32", "packets per receive or transmit call, at most", UNIT_NONE,
		PARAM_U64(struct live_process, burst), .min = 1, .max = 256},
	{"ring_size", "262144", "records per telemetry ring, a power of two", UNIT_NONE,
		PARAM_U64(struct live_process, ring_size), .min = 256, .max = 1 << 26},
	{"patience", "1s", "how long a port may refuse packets before they are dropped",
		UNIT_TIME_NS, PARAM_U64(struct live_process, patience_ns), .min = 0, .max = 60e9},
	{"late", "10us", "packets that leave later than this are late, which the verdict counts",
		UNIT_TIME_NS, PARAM_U64(struct live_process, late_ns), .min = 100, .max = 1e9},
	{"force", "no", "start although memory looks too small", UNIT_NONE,
		PARAM_BOOL(struct live_process, force)},
	PARAM_END,
};

static const struct param live_params[] = {
	{"allow_nic", "no", "ports that lead out of this machine are refused without it", UNIT_NONE,
		PARAM_BOOL(struct live_process, allow_nic)},
	{"allow_destinations", "no", "sending anywhere but 198.18.0.0/15 is refused without it",
		UNIT_NONE, PARAM_BOOL(struct live_process, allow_destinations)},
	{"epoch", "0",
		"UTC in nanoseconds, of the last two days, that is 0 ns in telemetry; 0: each start",
		UNIT_NONE, PARAM_U64(struct live_process, epoch_utc_ns), .min = 0, .max = 9e18},
	PARAM_END,
};
static const char *const live_also[] = {"switch", "sender", NULL};

static int lcore(struct live_process *lp, struct config_node *item, struct err *err) {
	double cpu;

	if (config_text(item) == NULL || unit_parse(config_text(item), UNIT_NONE, &cpu) < 0
		|| cpu < 0 || cpu >= CPU_SETSIZE || cpu != (double)(uint32_t)cpu)
		return config_err(item, -EINVAL, err, "lcores: not the number of a CPU");
	for (uint32_t i = 0; i < lp->lcores; i++) {
		if (lp->lcore[i] == (uint32_t)cpu)
			return config_err(
				item, -EINVAL, err, "lcores: CPU %u is named twice", lp->lcore[i]);
	}
	lp->lcore[lp->lcores++] = (uint32_t)cpu;
	return 0;
}

static int lcores(
	struct live_process *lp, struct config_node *section, const char *name, struct err *err) {
	struct config_node *list = config_get(section, "lcores");
	int rc;

	if (list == NULL)
		return config_err(
			section, -EINVAL, err, "live.%s: lcores is required, e.g. [1]", name);
	if (config_kind(list) != CONFIG_LIST || config_count(list) == 0
		|| config_count(list) > LIVE_LCORES_MAX)
		return config_err(list, -EINVAL, err, "lcores: a list of 1 to %d CPUs, e.g. [1]",
			LIVE_LCORES_MAX);
	lp->lcores = 0;
	lp->lcores_node = list;
	for (size_t i = 0; i < config_count(list); i++) {
		if ((rc = lcore(lp, config_at(list, i), err)) < 0)
			return rc;
	}
	return 0;
}

int live_process_init(struct live_process *lp, struct config *c, const char *section,
	const char *const *also, struct config_node **out, struct err *err) {
	struct config_node *root = config_root(c), *live = config_get(root, "live"), *node;
	int rc;

	if (live == NULL || config_kind(live) != CONFIG_MAP)
		return config_err(
			root, -EINVAL, err, "live: this section is required for a live run");
	if ((rc = config_params(live, "live", live_params, live_also, lp, err)) < 0)
		return rc;
	node = config_get(live, section);
	if (node == NULL || config_kind(node) != CONFIG_MAP)
		return config_err(live, -EINVAL, err, "live.%s: this section is required", section);
	if ((rc = config_params(node, section, process_params, also, lp, err)) < 0)
		return rc;
	if (lp->prefix[0] == '\0')
		snprintf(lp->prefix, sizeof(lp->prefix), "weir-%s", section);
	if (strspn(lp->prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
			!= strlen(lp->prefix)
		|| lp->prefix[0] == '.')
		return config_err(
			node, -EINVAL, err, "prefix: letters, digits, '_', '-' and '.' only");
	if ((lp->ring_size & (lp->ring_size - 1)) != 0)
		return config_err(node, -EINVAL, err, "ring_size: %llu is not a power of two",
			(unsigned long long)lp->ring_size);
	if ((rc = lcores(lp, node, section, err)) < 0)
		return rc;
	*out = node;
	return 0;
}

// "0000:03:00.0" or, as lspci writes it, "03:00.0": its name becomes the former, as DPDK calls it.
static bool is_pci(const char *text, char *name, size_t size) {
	unsigned domain, bus, slot, function;
	int end = 0;

	if (sscanf(text, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &end) != 4) {
		domain = 0;
		if (sscanf(text, "%x:%x.%x%n", &bus, &slot, &function, &end) != 3)
			return false;
	}
	if (text[end] != '\0' && text[end] != ',')
		return false;
	snprintf(name, size, "%04x:%02x:%02x.%x", domain, bus, slot, function);
	return true;
}

// Drivers that bring up other devices, by their arguments or by themselves.
static bool has_others(const char *text) {
	static const char *const compound[] = {
		"net_failsafe", "net_vdev_netvsc", "net_bonding", NULL};

	for (size_t i = 0; compound[i] != NULL; i++) {
		if (strncmp(text, compound[i], strlen(compound[i])) == 0)
			return true;
	}
	return false;
}

int live_dev_init(struct live_dev *dev, const struct live_process *lp, struct config_node *port,
	struct err *err) {
	struct config_node *n = config_get(port, "dev");
	const char *iface;
	size_t len;

	memset(dev, 0, sizeof(*dev));
	if (n == NULL || config_text(n) == NULL || config_text(n)[0] == '\0')
		return config_err(n != NULL ? n : port, -EINVAL, err,
			"dev is required, e.g. \"net_af_packet0,iface=veth0\" or \"0000:03:00.0\"");
	dev->node = n;
	dev->allow_nic = lp->allow_nic;
	dev->text = config_text(n);
	len = strcspn(dev->text, ",");
	if (len >= sizeof(dev->name))
		return config_err(n, -EINVAL, err, "dev: the device's name is too long");
	memcpy(dev->name, dev->text, len);
	dev->pci = is_pci(dev->text, dev->name, sizeof(dev->name));
	if (!dev->pci && strncmp(dev->text, "net_", 4) != 0 && strncmp(dev->text, "eth_", 4) != 0)
		return config_err(n, -EINVAL, err,
			"dev: '%s' is neither a virtual device (net_af_packet0,iface=veth0; net_memif0,...) "
			"nor a PCI address (0000:03:00.0)",
			dev->name);
	if ((iface = strstr(dev->text, ",iface=")) != NULL) {
		iface += strlen(",iface=");
		len = strcspn(iface, ",");
		if (len >= sizeof(dev->iface))
			return config_err(n, -EINVAL, err, "dev: iface: the name is too long");
		memcpy(dev->iface, iface, len);
	}
	dev->zero_copy = strncmp(dev->text, "net_memif", strlen("net_memif")) == 0
		&& strstr(dev->text, "zero-copy=yes") != NULL;
	if (dev->zero_copy && lp->hugepages == LIVE_HUGEPAGES_NO)
		return config_err(
			n, -EINVAL, err, "dev: zero-copy=yes of a memif needs hugepages: yes");
	if (dev->pci && !lp->allow_nic)
		return config_err(n, -EINVAL, err,
			"dev: %s is a physical port; set live.allow_nic: yes if its network is yours",
			dev->text);
	if (has_others(dev->text) && !lp->allow_nic)
		return config_err(n, -EINVAL, err,
			"dev: '%s' stands on other ports, which may be physical; "
			"set live.allow_nic: yes if their network is yours",
			dev->name);
	return 0;
}

int live_mac(const char *text, struct wire_mac *mac, bool *given) {
	unsigned b[6];
	int end = 0;

	*given = false;
	if (text[0] == '\0')
		return 0;
	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		    &end)
			!= 6
		|| text[end] != '\0')
		return -EINVAL;
	for (int i = 0; i < 6; i++)
		mac->b[i] = (uint8_t)b[i];
	*given = true;
	return 0;
}

int live_ip(const char *text, uint32_t *ip) {
	struct in_addr a;

	if (inet_pton(AF_INET, text, &a) != 1)
		return -EINVAL;
	*ip = ntohl(a.s_addr);
	return 0;
}

int live_address(struct config_node *n, const char *key, const char *text, uint32_t def,
	uint32_t *ip, struct err *err) {
	*ip = def;
	if (text[0] != '\0' && live_ip(text, ip) < 0)
		return config_err(n, -EINVAL, err,
			"%s: '%s' is not an IPv4 address such as 198.18.0.1", key, text);
	return 0;
}

const char *const live_role_names[] = {"sender", "receiver", NULL};

int live_sender_ip(struct config_node *live, uint32_t *ip, struct err *err) {
	struct end {
		int role;
		char ip[PARAM_TEXT_SIZE];
	} e;
	static const struct param role = LIVE_PORT_ROLE(struct end, role);
	static const struct param address = LIVE_PORT_IP(struct end, ip);
	struct config_node *sender = NULL, *ports = NULL;
	int rc = 0;

	*ip = FLOW_ADDR_SENDER;
	if (live != NULL && config_kind(live) == CONFIG_MAP)
		sender = config_get(live, "sender");
	if (sender != NULL && config_kind(sender) == CONFIG_MAP)
		ports = config_get(sender, "ports");
	for (size_t i = 0; rc == 0 && ports != NULL && i < config_count(ports); i++) {
		struct config_node *port = config_at(ports, i);

		if (config_kind(port) != CONFIG_MAP)
			continue;
		rc = config_param(port, "port", &role, &e, err);
		if (rc < 0 || e.role != LIVE_SENDER)
			continue;
		rc = config_param(port, "port", &address, &e, err);
		if (rc == 0)
			rc = live_address(port, "ip", e.ip, FLOW_ADDR_SENDER, ip, err);
		break;
	}
	config_skip(sender);
	return rc;
}

void live_mac_text(const struct wire_mac *mac, char text[18]) {
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac->b[0], mac->b[1], mac->b[2],
		mac->b[3], mac->b[4], mac->b[5]);
}

void live_ip_text(uint32_t ip, char text[16]) {
	snprintf(text, 16, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 0xff, ip >> 8 & 0xff, ip & 0xff);
}

int live_lcores_check(const struct live_process *lp, struct err *err) {
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return 0;
	for (uint32_t i = 0; i < lp->lcores; i++) {
		if (!CPU_ISSET(lp->lcore[i], &allowed))
			return config_err(config_at(lp->lcores_node, i), -EINVAL, err,
				"lcores: CPU %u is not among the %d this process may use",
				lp->lcore[i], CPU_COUNT(&allowed));
	}
	return 0;
}

void live_other_cpus(const struct live_process *lp, cpu_set_t *cpus) {
	cpu_set_t all;

	CPU_ZERO(cpus);
	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	*cpus = all;
	for (uint32_t i = 0; i < lp->lcores; i++)
		CPU_CLR(lp->lcore[i], cpus);
	if (CPU_COUNT(cpus) == 0)
		*cpus = all;
}

static uint64_t memory_available(void) {
	unsigned long long kb = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	if (f == NULL)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
			break;
	}
	fclose(f);
	return kb == 0 ? UINT64_MAX : (uint64_t)kb * 1024;
}

int live_memory_check(uint64_t bytes, const char *what, struct err *err) {
	uint64_t available = memory_available();

	if (bytes <= available / 10 * 9)
		return 0;
	return err_set(err, -ENOMEM, "%s need %.0f MB, and %.0f MB are available", what,
		(double)bytes / 1e6, (double)available / 1e6);
}

bool live_driver_stays(const char *driver) {
	static const char *const here[] = {"veth", "dummy", "tun", "ifb", "netkit", NULL};

	for (size_t i = 0; here[i] != NULL; i++) {
		if (strcmp(driver, here[i]) == 0)
			return true;
	}
	return false;
}

// The driver of an interface through which packets may leave this machine; "" if `name` is none.
static void leaves_through(const char *name, char driver[32]) {
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq req;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	driver[0] = '\0';
	memset(&req, 0, sizeof(req));
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (fd < 0)
		return;
	if (ioctl(fd, SIOCGIFFLAGS, &req) == 0 && (req.ifr_flags & IFF_LOOPBACK) == 0) {
		req.ifr_data = (char *)&info;
		if (ioctl(fd, SIOCETHTOOL, &req) < 0)
			snprintf(driver, 32, "unknown");
		else if (!live_driver_stays(info.driver))
			snprintf(driver, 32, "%.31s", info.driver);
	}
	close(fd);
}

// Looks at each value of "net_tap0,iface=tap0,remote=eth0", whatever the key.
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

int live_iface_check(const struct live_dev *dev, struct err *err) {
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
			"dev: no permission for raw packets on '%s': run as root or with CAP_NET_RAW",
			dev->iface);
	close(fd);
	return 0;
}

bool live_iface_up(const struct live_dev *dev) {
	struct ifreq req;
	int fd, rc;

	if (dev->iface[0] == '\0')
		return true;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	memset(&req, 0, sizeof(req));
	memcpy(req.ifr_name, dev->iface, sizeof(req.ifr_name) - 1);
	rc = ioctl(fd, SIOCGIFFLAGS, &req);
	close(fd);
	return rc == 0 && (req.ifr_flags & IFF_UP) != 0 && (req.ifr_flags & IFF_RUNNING) != 0;
}
