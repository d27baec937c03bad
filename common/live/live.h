// SPDX-License-Identifier: BSD-3-Clause
// What weir-switch and weir-sender share of the config's `live` section. Pure: no DPDK.
//
//	live:
//	  allow_nic: no                 ports that lead out of this machine are refused without it
//	  allow_destinations: no        sending anywhere but 198.18.0.0/15 likewise
//	  epoch: 0                      UTC in ns that both programs call 0 ns; 0: each its own start
//	  switch:
//	    lcores: [1, 2]              the CPUs that do the work; a bottleneck is one CPU's
//	    handover: 1024              switch: frames on their way from one of them to another
//	    ports: [{name: left, dev: "net_af_packet0,iface=veth0", ...}]
//	            lcore: 2            switch: whose the port and its path are; default: each one in turn
//	            rx_queues: 2        switch: spread over lcores
//	  sender: {lcores: [0], ports: [...]}
#pragma once
#include "common/config/config.h"
#include "common/net/flow_addr.h"
#include "common/net/wire.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define LIVE_PORTS_MAX 16
#define LIVE_LCORES_MAX 16
#define LIVE_IFACE_SIZE 16

enum live_hugepages { LIVE_HUGEPAGES_AUTO, LIVE_HUGEPAGES_YES, LIVE_HUGEPAGES_NO };

// A port of live.sender: which side of the connections is there, and its first address. The switch reads them
// too, to know flows by their addresses. The fields are an int and a text.
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
// The address of live.sender's port that sends, or the default if there is none. The section is another
// program's: the rest of it is left alone.
int live_sender_ip(struct config_node *live, uint32_t *ip, struct err *err);

// The program's process: scalars of live.switch or live.sender.
struct live_process {
	char prefix[PARAM_TEXT_SIZE]; // EAL file prefix: one per running process
	int hugepages; // enum live_hugepages
	uint64_t burst; // packets per receive or transmit call, at most
	uint64_t ring_size; // records per telemetry ring
	uint64_t patience_ns; // how long a port may refuse packets before they are dropped
	uint64_t late_ns; // packets that leave later than this are late (watch.h)
	bool force; // start although memory looks too small
	bool allow_nic; // of `live` itself, like the next two
	bool allow_destinations;
	uint64_t epoch_utc_ns; // 0: the program's start
	uint32_t lcore[LIVE_LCORES_MAX]; // from `lcores`: CPUs, each once
	uint32_t lcores;
	struct config_node *lcores_node; // the list, for messages
};

// Every key of live.switch and live.sender that live_process_init and the programs' port lists read,
// for config_params on what else is in the section.
#define LIVE_PROCESS_KEYS                                                                          \
	"lcores", "ports", "prefix", "hugepages", "burst", "ring_size", "patience", "late", "force"

// A port's `lead`, of both programs: a loop's turn and then some, and never more than a card may be
// asked to hold a frame for.
#define LIVE_LEAD_NS_MAX 1e6
#define LIVE_LEAD_HELP                                                                             \
	"how long before its time a packet goes to a port that sends at times; 0s: off"

// A port's device as written: "net_af_packet0,iface=veth0" or "0000:03:00.0".
struct live_dev {
	const char *text; // valid as long as the config
	char name[64]; // up to the first comma: what DPDK calls the port
	char iface[LIVE_IFACE_SIZE]; // kernel interface behind it, or ""
	bool pci;
	bool zero_copy; // a memif whose peer maps the memory of this program, which hugepages alone allow
	bool allow_nic; // of live_process
	const struct config_node *node; // for messages
};

// Reads `section` ("switch" or "sender") of `live`: its scalars, and `lcores`. Its `ports` (and what
// `also` names besides, ended by NULL) are the caller's. *out is the section's node.
int live_process_init(struct live_process *lp, struct config *c, const char *section,
	const char *const *also, struct config_node **out, struct err *err);
// Reads a port's `dev`; a physical one needs live.allow_nic.
int live_dev_init(struct live_dev *dev, const struct live_process *lp, struct config_node *port,
	struct err *err);
// "02:00:00:00:00:01", or "" for none (false in *given).
int live_mac(const char *text, struct wire_mac *mac, bool *given);
// "198.18.0.1" in host byte order.
int live_ip(const char *text, uint32_t *ip);
// The same for a port's entry `n`; "" is the default. The sentence names its key.
int live_address(struct config_node *n, const char *key, const char *text, uint32_t def,
	uint32_t *ip, struct err *err);
void live_mac_text(const struct wire_mac *mac, char text[18]);
void live_ip_text(uint32_t ip, char text[16]);

// Refuses CPUs this process may not use.
int live_lcores_check(const struct live_process *lp, struct err *err);
// Where the process's other threads may run: not on the lcores' CPUs, if there are any others. Empty: not
// known.
void live_other_cpus(const struct live_process *lp, cpu_set_t *cpus);
// Refuses more memory than the machine has left. `what` says what it is for.
int live_memory_check(uint64_t bytes, const char *what, struct err *err);
// Refuses an interface that is not in this network namespace, raw sockets that are not allowed, and
// any argument of the device that names an interface through which packets leave this machine,
// unless live.allow_nic says so.
int live_iface_check(const struct live_dev *dev, struct err *err);
// Whether packets stay on this machine: its loopback, or a kind of interface (the kernel's name of
// its driver, as `ethtool -i` shows it) whose other end is here. Bridges, VLANs and the like stand
// on others and count as leaving.
bool live_driver_stays(const char *driver);
// Whether packets may go to this address: one for tests, or live.allow_destinations.
static inline bool live_may_send(const struct live_process *lp, uint32_t ip) {
	return lp->allow_destinations || (ip & FLOW_ADDR_MASK) == (FLOW_ADDR_NET & FLOW_ADDR_MASK);
}
// Whether the kernel says the interface is up and has a carrier; true if there is none.
bool live_iface_up(const struct live_dev *dev);
