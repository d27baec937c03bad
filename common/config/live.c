// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/live.h"

#include "common/net/address.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

const char *const live_hugepage_names[] = {"auto", "yes", "no", NULL};
const char *const live_offloads_names[] = {"off", "on", NULL};
const char *const live_role_names[] = {"sender", "receiver", NULL};

#define MTU_PARAM                                                                                  \
	{                                                                                          \
		"mtu", "1500B", "largest IP packet of a port; buffers follow from it", UNIT_BYTES, \
			PARAM_U64(struct live_process, mtu), .min = 1280, .max = 9000              \
	}

const struct param live_root_params[] = {
	{"allow_nic", "no", "ports that lead out of this machine are refused without it", UNIT_NONE,
		PARAM_BOOL(struct live_process, allow_nic)},
	{"allow_destinations", "no", "sending anywhere but 198.18.0.0/15 is refused without it",
		UNIT_NONE, PARAM_BOOL(struct live_process, allow_destinations)},
	MTU_PARAM,
	{"epoch", "0",
		"UTC in nanoseconds, of the last two days, that is 0 ns in telemetry; "
		"0: each start",
		UNIT_NONE, PARAM_U64(struct live_process, epoch_utc_ns), .min = 0, .max = 9e18},
	{"test_clock_offset", "0s", "for tests: the program's clock is ahead of the host's by this",
		UNIT_TIME_NS, PARAM_U64(struct live_process, test_offset_ns), .min = 0,
		.max = 60e9},
	{"test_clock_drift", "0", "for tests: and fast by so many parts per million", UNIT_NONE,
		PARAM_F64(struct live_process, test_drift_ppm), .min = -400, .max = 400},
	{"test_any_tsc", "no",
		"for tests in virtual machines: a TSC that is not invariant will do, and times are "
		"not judged",
		UNIT_NONE, PARAM_BOOL(struct live_process, test_any_tsc)},
	PARAM_END,
};
const struct param live_also[] = {
	{"switch", "", "only read by weir-switch", UNIT_NONE, PARAM_MAP("live.switch")},
	{"sender", "", "only read by weir-sender", UNIT_NONE, PARAM_MAP("live.sender")},
	{"receiver", "", "the other side, for weir run --live to start as a weir-sender", UNIT_NONE,
		PARAM_MAP("live.sender")},
	PARAM_END,
};
const struct param live_port_also[] = {
	{"dev", NULL, "a virtual device, net_af_packet0,iface=veth0, or a PCI address", UNIT_NONE,
		PARAM_SCALAR},
	PARAM_END,
};

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

int live_section_read(const struct live_section *s, struct config *c, void *config,
	struct live_process *lp, struct config_node **node, struct err *err) {
	struct config_node *root = config_root(c), *live = config_get(root, "live");
	int rc;

	if (live == NULL || config_kind(live) != CONFIG_MAP)
		return config_err(
			root, -EINVAL, err, "live: this section is required for a live run");
	if ((rc = config_params(live, "live", live_root_params, live_also, lp, err)) < 0)
		return rc;
	for (size_t i = 0; live_also[i].name != NULL; i++) {
		if (strcmp(live_also[i].name, s->name) != 0)
			config_skip(config_get(live, live_also[i].name)); // the other program's
	}
	*node = config_get(live, s->name);
	if (*node == NULL || config_kind(*node) != CONFIG_MAP)
		return config_err(live, -EINVAL, err, "live.%s: this section is required", s->name);
	if ((rc = config_params(*node, s->name, s->params, s->also, config, err)) < 0)
		return rc;
	if (lp->prefix[0] == '\0')
		snprintf(lp->prefix, sizeof(lp->prefix), "weir-%s", s->name);
	if (strspn(lp->prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
			!= strlen(lp->prefix)
		|| lp->prefix[0] == '.')
		return config_err(
			*node, -EINVAL, err, "prefix: letters, digits, '_', '-' and '.' only");
	if ((lp->ring_size & (lp->ring_size - 1)) != 0)
		return config_err(*node, -EINVAL, err, "ring_size: %llu is not a power of two",
			(unsigned long long)lp->ring_size);
	return lcores(lp, *node, s->name, err);
}

static int port_read(const struct live_section *s, const struct live_process *lp,
	struct config_node *n, struct live_port_common *port, struct err *err) {
	int rc;

	if (config_kind(n) != CONFIG_MAP)
		return config_err(n, -EINVAL, err, "ports: a port is a map");
	rc = config_params(n, "port", s->port_params, live_port_also, port, err);
	rc = rc < 0 ? rc : live_dev_init(&port->dev, lp, n, err);
	if (rc == 0 && port->offloads && !port->dev.kernel)
		return config_err(config_get(n, "offloads"), -EINVAL, err,
			"offloads: only ports at a kernel's interface have them: dev: "
			"\"kernel0,iface=veth0\"");
	return rc;
}

int live_ports_read(const struct live_section *s, const struct live_process *lp,
	struct config_node *node, void *port, uint32_t *ports, struct err *err) {
	struct config_node *list = config_get(node, "ports");
	int rc;

	if (list == NULL || config_kind(list) != CONFIG_LIST || config_count(list) < s->ports_min
		|| config_count(list) > s->ports_max)
		return config_err(list != NULL ? list : node, -EINVAL, err,
			"live.%s.ports: a list of %u to %u ports is required", s->name,
			s->ports_min, s->ports_max);
	for (uint32_t i = 0; i < config_count(list); i++) {
		struct config_node *n = config_at(list, i);
		struct live_port_common *p = (void *)((char *)port + i * s->port_size);

		if ((rc = port_read(s, lp, n, p, err)) < 0)
			return rc;
		for (uint32_t k = 0; k < i; k++) {
			const struct live_port_common *o =
				(const void *)((const char *)port + k * s->port_size);

			if (strcmp(o->name, p->name) == 0)
				return config_err(
					n, -EINVAL, err, "name: '%s' is used twice", p->name);
			if (strcmp(o->dev.name, p->dev.name) == 0)
				return config_err(
					n, -EINVAL, err, "dev: '%s' is used twice", p->dev.name);
		}
	}
	*ports = (uint32_t)config_count(list);
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
	dev->mtu = lp->mtu;
	dev->text = config_text(n);
	len = strcspn(dev->text, ",");
	if (len >= sizeof(dev->name))
		return config_err(n, -EINVAL, err, "dev: the device's name is too long");
	memcpy(dev->name, dev->text, len);
	dev->pci = is_pci(dev->text, dev->name, sizeof(dev->name));
	dev->kernel = live_dev_is(dev, "kernel");
	if (!dev->pci && !dev->kernel && strncmp(dev->text, "net_", 4) != 0
		&& strncmp(dev->text, "eth_", 4) != 0)
		return config_err(n, -EINVAL, err,
			"dev: '%s' is neither a virtual device (net_af_packet0,iface=veth0; "
			"kernel0,iface=veth0; net_memif0,...) nor a PCI address (0000:03:00.0)",
			dev->name);
	if ((iface = strstr(dev->text, ",iface=")) != NULL) {
		iface += strlen(",iface=");
		len = strcspn(iface, ",");
		if (len >= sizeof(dev->iface))
			return config_err(n, -EINVAL, err, "dev: iface: the name is too long");
		memcpy(dev->iface, iface, len);
	}
	if (dev->kernel && dev->iface[0] == '\0')
		return config_err(n, -EINVAL, err,
			"dev: '%s' needs an interface: kernel0,iface=veth0", dev->name);
	dev->zero_copy =
		live_dev_is(dev, "net_memif") && strstr(dev->text, "zero-copy=yes") != NULL;
	if (dev->zero_copy && lp->hugepages == LIVE_HUGEPAGES_NO)
		return config_err(
			n, -EINVAL, err, "dev: zero-copy=yes of a memif needs hugepages: yes");
	if (lp->mtu > LIVE_MTU && live_dev_is(dev, "net_af_xdp"))
		return config_err(n, -EINVAL, err,
			"dev: '%s' carries packets of at most %d bytes, and live.mtu is %llu: take "
			"net_af_packet",
			dev->name, LIVE_MTU, (unsigned long long)lp->mtu);
	if (dev->pci && !lp->allow_nic)
		return config_err(n, -EINVAL, err,
			"dev: %s is a physical port; set live.allow_nic: "
			"yes if its network is yours",
			dev->text);
	if (has_others(dev->text) && !lp->allow_nic)
		return config_err(n, -EINVAL, err,
			"dev: '%s' stands on other ports, which may be physical; "
			"set live.allow_nic: yes if their network is yours",
			dev->name);
	return 0;
}

int live_address(struct config_node *n, const char *key, const char *text, uint32_t def,
	uint32_t *ip, struct err *err) {
	*ip = def;
	if (text[0] != '\0' && !address_ip(text, ip))
		return config_err(n, -EINVAL, err,
			"%s: '%s' is not an IPv4 address such as 198.18.0.1", key, text);
	return 0;
}

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
	return rc;
}

int live_mtu(struct config_node *live, struct live_process *lp, struct err *err) {
	static const struct param mtu = MTU_PARAM;
	bool map = live != NULL && config_kind(live) == CONFIG_MAP;

	return config_param(map ? live : NULL, "live", &mtu, lp, err);
}
