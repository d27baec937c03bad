// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/live.h"

#include "common/base/mem.h"
#include "common/live/port/iface.h"
#include "common/net/address.h"
#include "test.h"

#include <errno.h>
#include <string.h>

struct live_config {
	struct live_process process;
};
static const struct param params[] = {
	LIVE_PROCESS_PARAMS(struct live_config, process, "1024"), PARAM_END};
static const struct param also[] = {LIVE_PROCESS_ALSO("ports"), PARAM_END};
static const struct live_section section = {.name = "switch", .params = params, .also = also};

// Reads `text` as a config's live.switch section; the error's sentence goes to `err`.
static int read_process(const char *text, struct live_process *lp, struct err *err) {
	struct config *c = config_parse("t", text, strlen(text), err);
	struct config_node *node;
	struct live_config config = {0};
	int rc;

	ck_assert_ptr_nonnull(c);
	rc = live_section_read(&section, c, &config, &config.process, &node, err);
	*lp = config.process;
	config_free(c);
	return rc;
}

TEST(process_has_defaults) {
	struct live_process lp;
	struct err err;

	ck_assert_int_eq(read_process("live: {switch: {lcores: [3]}}", &lp, &err), 0);
	ck_assert_str_eq(lp.prefix, "weir-switch");
	ck_assert_uint_eq(lp.lcores, 1);
	ck_assert_uint_eq(lp.lcore[0], 3);
	ck_assert_uint_eq(lp.burst, 32);
	ck_assert_uint_eq(lp.mtu, LIVE_MTU);
	ck_assert_uint_eq(live_frame_bytes(&lp), 1518);
	ck_assert_uint_eq(lp.tx_timeout_ns, 1000000000);
	ck_assert_int_eq(lp.hugepages, LIVE_HUGEPAGES_AUTO);
	ck_assert(!lp.allow_nic && !lp.allow_destinations && !lp.force);
}

TEST(bad_process_is_one_sentence) {
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{"seed: 1", "live: this section is required"},
		{"live: {sender: {}}", "live.switch: this section is required"},
		{"live: {switch: {ports: []}}", "lcores is required"},
		{"live: {switch: {lcores: []}}", "a list of 1 to 16 CPUs"},
		{"live: {switch: {lcores: 1}}", "a list of 1 to 16 CPUs"},
		{"live: {switch: {lcores: [1, 0, 1]}}", "CPU 1 is named twice"},
		{"live: {switch: {lcores: [one]}}", "not the number of a CPU"},
		{"live: {switch: {lcores: [-1]}}", "not the number of a CPU"},
		{"live: {switch: {lcores: [1.5]}}", "not the number of a CPU"},
		{"live: {switch: {lcores: [1], prefix: a/b}}", "prefix: letters, digits"},
		{"live: {switch: {lcores: [1], ring_size: 1000}}", "1000 is not a power of two"},
		{"live: {switch: {lcores: [1], burst: 0}}", "burst: 0 is not in"},
		{"live: {switch: {lcores: [1], brust: 8}}", "brust"},
		{"live: {mtu: 1279B, switch: {lcores: [1]}}", "mtu: 1279B is not in"},
		{"live: {mtu: 9001B, switch: {lcores: [1]}}", "mtu: 9001B is not in"},
	};
	struct live_process lp;
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_lt(read_process(cases[i].text, &lp, &err), 0);
		ck_assert_msg(strstr(err.msg, cases[i].sentence) != NULL, "%s", err.msg);
	}
}

static int read_dev(const char *dev, bool allow_nic, struct live_dev *out, struct err *err) {
	struct live_process lp = {.allow_nic = allow_nic};
	char text[256];

	snprintf(text, sizeof(text), "dev: \"%s\"", dev);
	struct config *c = config_parse("t", text, strlen(text), err);
	ck_assert_ptr_nonnull(c);
	int rc = live_dev_init(out, &lp, config_root(c), err);
	config_free(c);
	return rc;
}

TEST(devices_are_virtual_or_pci) {
	struct live_dev d;
	struct err err;

	ck_assert_int_eq(read_dev("net_af_packet0,iface=veth0,blocksz=4096", false, &d, &err), 0);
	ck_assert_str_eq(d.name, "net_af_packet0");
	ck_assert_str_eq(d.iface, "veth0");
	ck_assert(!d.pci);
	ck_assert_int_eq(read_dev("net_memif1,id=1", false, &d, &err), 0);
	ck_assert_str_eq(d.iface, "");
	ck_assert_int_eq(read_dev("0000:03:00.0", true, &d, &err), 0);
	ck_assert(d.pci);
	ck_assert_str_eq(d.name, "0000:03:00.0");
	ck_assert_int_eq(read_dev("03:00.1,tx_pp=500", true, &d, &err), 0);
	ck_assert(d.pci);
	ck_assert_str_eq(d.name, "0000:03:00.1");
	ck_assert_int_eq(read_dev("0000:03:00.0", false, &d, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "physical port"));
	ck_assert_int_eq(read_dev("kernel0,iface=veth0", false, &d, &err), 0);
	ck_assert(d.kernel);
	ck_assert_str_eq(d.iface, "veth0");
	ck_assert_int_eq(read_dev("kernel0", false, &d, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "t:1:6: dev: 'kernel0' needs an interface: kernel0,iface=veth0");
	ck_assert_int_eq(read_dev("eth0", false, &d, &err), -EINVAL);
	ck_assert_int_eq(read_dev("", false, &d, &err), -EINVAL);
	ck_assert_int_eq(
		read_dev("net_af_packet0,iface=a-name-that-is-too-long", false, &d, &err), -EINVAL);
}

TEST(shared_memory_needs_hugepages) {
	static const char text[] = "dev: \"net_memif0,role=client,zero-copy=yes\"";
	struct live_process lp = {0};
	struct live_dev d;
	struct err err;

	for (lp.hugepages = LIVE_HUGEPAGES_AUTO; lp.hugepages <= LIVE_HUGEPAGES_NO;
		lp.hugepages++) {
		struct config *c = config_parse("t", text, strlen(text), &err);
		int rc = live_dev_init(&d, &lp, config_root(c), &err);

		config_free(c);
		ck_assert_int_eq(rc, lp.hugepages == LIVE_HUGEPAGES_NO ? -EINVAL : 0);
		ck_assert(d.zero_copy);
	}
	ck_assert_str_eq(err.msg, "t:1:6: dev: zero-copy=yes of a memif needs hugepages: yes");
	ck_assert_int_eq(read_dev("net_memif0,zero-copy=no", false, &d, &err), 0);
	ck_assert(!d.zero_copy);
	ck_assert_int_eq(read_dev("net_null0,zero-copy=yes", false, &d, &err), 0);
	ck_assert(!d.zero_copy);
}

TEST(addresses_read_back) {
	struct wire_mac mac;
	char text[ADDRESS_MAC_SIZE];
	uint32_t ip;

	ck_assert(address_mac("02:0a:ff:00:00:01", &mac));
	address_mac_text(&mac, text);
	ck_assert_str_eq(text, "02:0a:ff:00:00:01");
	ck_assert(!address_mac("", &mac) && !address_mac("02:0a:ff:00:00", &mac));
	ck_assert(!address_mac("02:0a:ff:00:00:01:", &mac));
	ck_assert(address_ip("198.18.0.1", &ip));
	ck_assert_uint_eq(ip, 0xc6120001);
	address_ip_text(ip, text);
	ck_assert_str_eq(text, "198.18.0.1");
	ck_assert(!address_ip("198.18.0", &ip) && !address_ip("198.18.0.1 ", &ip));
}

TEST(more_memory_than_there_is) {
	struct err err;

	ck_assert_int_eq(mem_check(1, "things", &err), 0);
	ck_assert_int_eq(mem_check(UINT64_C(1) << 60, "things", &err), -ENOMEM);
	ck_assert_ptr_nonnull(strstr(err.msg, "things need 1152921504607 MB"));
}

TEST(only_known_kinds_of_interface_stay_here) {
	ck_assert(iface_driver_stays("veth") && iface_driver_stays("tun"));
	ck_assert(!iface_driver_stays("virtio_net") && !iface_driver_stays("ixgbe"));
	// These stand on others, which may be cards.
	ck_assert(!iface_driver_stays("bridge") && !iface_driver_stays("macvlan"));
	ck_assert(!iface_driver_stays("") && !iface_driver_stays("vet"));
}

TEST(destinations_are_for_tests) {
	struct live_process lp = {0};

	ck_assert(live_may_send(&lp, 0xc6120000) && live_may_send(&lp, 0xc613ffff));
	ck_assert(!live_may_send(&lp, 0xc611ffff) && !live_may_send(&lp, 0xc6140000));
	lp.allow_destinations = true;
	ck_assert(live_may_send(&lp, 0x08080808));
}
