// SPDX-License-Identifier: BSD-3-Clause
// The config's `live` section, as far as weir-switch and weir-sender have the same keys.
//
//	live:
//	  allow_nic: no                 ports that lead out of this machine are refused without it
//	  allow_destinations: no        sending anywhere but 198.18.0.0/15 likewise
//	  mtu: 1500B                    the largest packets of all ports
//	  epoch: 0                      UTC in ns that both programs call 0 ns; 0: each its own
//	                                start
//	  switch:
//	    lcores: [1, 2]              the CPUs that do the work; a bottleneck is one CPU's
//	    handover: 1024              frames that may wait in the ring from one lcore to another
//	    ports: [{name: left, dev: "net_af_packet0,iface=veth0", ...}]
//	  sender: {lcores: [0], ports: [...]}
//	  receiver: {lcores: [3], ports: [...]}   of a second weir-sender (weir run --live)
//
// A program adds keys of its own: its table of parameters begins with LIVE_PROCESS_PARAMS, that of
// its ports with LIVE_PORT_PARAMS (switch/path/switch_config.c, sender/host/sender_config.c).
#pragma once
#include "common/config/config.h"
#include "common/net/flow_addr.h"
#include "common/net/wire.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LIVE_PORTS_MAX 16
#define LIVE_LCORES_MAX 16
#define LIVE_IFACE_SIZE 16
#define LIVE_MTU 1500 // the default

enum live_hugepages { LIVE_HUGEPAGES_AUTO, LIVE_HUGEPAGES_YES, LIVE_HUGEPAGES_NO };
extern const char *const live_hugepage_names[], *const live_offloads_names[];

// The program's process.
struct live_process {
	// Of live.switch or live.sender.
	char prefix[PARAM_TEXT_SIZE]; // EAL file prefix: one per running process
	int hugepages; // enum live_hugepages
	uint64_t burst; // packets per receive or transmit call, at most
	uint64_t ring_size; // records per telemetry ring
	uint64_t tx_timeout_ns; // how long a port may refuse packets before they are dropped
	uint64_t late_ns; // packets that leave later than this are late (common/watch/watch.h)
	uint64_t handover; // frames in a ring between two lcores
	bool force; // start although memory looks too small
	uint32_t lcore[LIVE_LCORES_MAX]; // CPUs, each once
	uint32_t lcores;
	struct config_node *lcores_node; // the list, for messages
	// Of `live` itself.
	bool allow_nic, allow_destinations;
	uint64_t mtu; // bytes of the largest IP packet that ports carry
	uint64_t epoch_utc_ns; // 0: the program's start
	uint64_t test_offset_ns; // of this program's clock, for tests
	double test_drift_ppm;
	bool test_any_tsc; // the TSC need not be invariant
};

// Rows for the struct live_process of a program's T. `rings`: the default of handover.
#define LIVE_PROCESS_PARAMS(T, process, rings)                                                     \
	{"prefix", "", "EAL file prefix, one per running process; default: the program's name",    \
		UNIT_NONE, PARAM_TEXT(T, process.prefix)},                                         \
		{"hugepages", "auto", "auto takes them if enough are free", UNIT_NONE,             \
			PARAM_ENUM(T, process.hugepages, live_hugepage_names)},                    \
		{"burst", "32", "packets per receive or transmit call, at most", UNIT_NONE,        \
			PARAM_U64(T, process.burst), .min = 1, .max = 256},                        \
		{"ring_size", "262144", "records per telemetry ring, a power of two", UNIT_NONE,   \
			PARAM_U64(T, process.ring_size), .min = 256, .max = 1 << 26},              \
		{"tx_timeout", "1s", "how long a port may refuse packets before they are dropped", \
			UNIT_TIME_NS, PARAM_U64(T, process.tx_timeout_ns), .min = 0, .max = 60e9}, \
		{"late", "10us",                                                                   \
			"packets that leave later than this are late, which the verdict counts",   \
			UNIT_TIME_NS, PARAM_U64(T, process.late_ns), .min = 100, .max = 1e9},      \
		{"handover", rings, "frames that may wait in the ring from one lcore to another",  \
			UNIT_NONE, PARAM_U64(T, process.handover), .min = 1, .max = 1 << 20},      \
	{                                                                                          \
		"force", "no", "start although memory looks too small", UNIT_NONE,                 \
			PARAM_BOOL(T, process.force)                                               \
	}

// A port's device as written: "net_af_packet0,iface=veth0" or "0000:03:00.0".
struct live_dev {
	const char *text; // valid as long as the config
	char name[64]; // up to the first comma: what DPDK calls the port
	char iface[LIVE_IFACE_SIZE]; // kernel interface behind it, or ""
	bool pci;
	bool kernel; // an interface without DPDK's drivers: kernel0,iface=veth0
	// A memif whose peer maps the memory of this program, which hugepages alone allow.
	bool zero_copy;
	bool allow_nic; // of live_process
	uint64_t mtu; // likewise
	const struct config_node *node; // for messages
};

// Whether the device is one of the driver's, such as "net_memif".
static inline bool live_dev_is(const struct live_dev *dev, const char *driver) {
	return strncmp(dev->text, driver, strlen(driver)) == 0;
}

// Of a port, in either section. A program's struct begins with it.
struct live_port_common {
	char name[PARAM_TEXT_SIZE]; // in messages and figures
	uint64_t lead_ns; // before its time, to a port that keeps it
	int offloads; // of a kernel's interface: packets leave joined; 0: each alone
	struct live_dev dev;
};

// Rows for the struct live_port_common of a program's T. The longest `lead` is more than an
// iteration takes, and less than what a card may be asked to hold a frame for.
#define LIVE_PORT_PARAMS(T, common)                                                                \
	{"name", NULL, "the port's name in messages and figures", UNIT_NONE,                       \
		PARAM_TEXT(T, common.name)},                                                       \
		{"offloads", "off",                                                                \
			"of a kernel's interface (kernel0,iface=X): packets leave joined, and "    \
			"are acknowledged together",                                               \
			UNIT_NONE, PARAM_ENUM(T, common.offloads, live_offloads_names)},           \
	{                                                                                          \
		"lead", "20us",                                                                    \
			"how long before its time a packet goes to a port that "                   \
			"sends at times; 0s: off",                                                 \
			UNIT_TIME_NS, PARAM_U64(T, common.lead_ns), .min = 0, .max = 1e6           \
	}

// A port of live.sender: which side of the connections is there, and its first address. The switch
// reads them too, to know flows by their addresses. The fields are an int and a text.
enum live_role { LIVE_SENDER, LIVE_RECEIVER, LIVE_ROLES };
extern const char *const live_role_names[];
#define LIVE_PORT_ROLE(T, field)                                                                   \
	{                                                                                          \
		"role", NULL, "which side of the connections is here", UNIT_NONE,                  \
			PARAM_ENUM(T, field, live_role_names)                                      \
	}
#define LIVE_PORT_IP(T, field)                                                                     \
	{                                                                                          \
		"ip", "", "first IPv4 address; default: 198.18.0.1 sender, 198.19.0.1 receiver",   \
			UNIT_NONE, PARAM_TEXT(T, field)                                            \
	}

// Rows of the keys that live_section_read and live_ports_read read themselves. `ports`: their
// table.
#define LIVE_PROCESS_ALSO(ports)                                                                   \
	{"lcores", NULL, "the CPUs that do the work", UNIT_NONE, PARAM_LIST(NULL), .min = 0,       \
		.max = CPU_SETSIZE - 1},                                                           \
	{                                                                                          \
		"ports", NULL, "its ports", UNIT_NONE, PARAM_LIST(ports), .min = 1,                \
									  .max = LIVE_PORTS_MAX    \
	}

// Of `live` itself, and of a port in either section.
extern const struct param live_root_params[], live_also[], live_port_also[];

// What a program has in its section.
struct live_section {
	const char *name; // "switch" or "sender"
	const struct param *params; // of the section, into its config
	const struct param *also; // keys that it reads itself: LIVE_PROCESS_ALSO, and its own
	const struct param *port_params; // of each port, into one of its structs
	size_t port_size; // of such a struct
	uint32_t ports_min, ports_max;
};

// Reads live.switch or live.sender into `config`, in which `lp` is. *node is the section.
int live_section_read(const struct live_section *s, struct config *c, void *config,
	struct live_process *lp, struct config_node **node, struct err *err);
// Reads its ports into `port`, an array of s->ports_max structs, and their number into *ports. A
// physical device needs live.allow_nic.
int live_ports_read(const struct live_section *s, const struct live_process *lp,
	struct config_node *node, void *port, uint32_t *ports, struct err *err);
// Reads a port's `dev`.
int live_dev_init(struct live_dev *dev, const struct live_process *lp, struct config_node *port,
	struct err *err);
// Reads the IPv4 address `text` of a port's entry `n`; "" is the default. The sentence names its
// key.
int live_address(struct config_node *n, const char *key, const char *text, uint32_t def,
	uint32_t *ip, struct err *err);
// The address of live.sender's port that sends, or the default if there is none. The section is
// another program's: the rest of it is left alone.
int live_sender_ip(struct config_node *live, uint32_t *ip, struct err *err);
// The `mtu` of `live`, for readers of nothing else there; NULL: the default.
int live_mtu(struct config_node *live, struct live_process *lp, struct err *err);

// The largest frame of a live port, with FCS.
static inline uint32_t live_frame_bytes(const struct live_process *lp) {
	return WIRE_ETH + (uint32_t)lp->mtu + WIRE_FCS;
}

// Whether packets may go to this address: one for tests, or live.allow_destinations.
static inline bool live_may_send(const struct live_process *lp, uint32_t ip) {
	return lp->allow_destinations || (ip & FLOW_ADDR_MASK) == (FLOW_ADDR_NET & FLOW_ADDR_MASK);
}
