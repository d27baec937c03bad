// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/port/port.h"
#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

// The port as its first lcore finds it when it looks, with its link up or down now.
static bool observe(struct port *p, bool up, uint64_t now_ns) {
	atomic_store(&p->up, up);
	return port_changed(p, now_ns);
}

// A memif client's port opens before its peer has answered. The link came up before an lcore looked
// for the first time, and the next time it went down was not counted.
TEST(link_that_came_up_before_the_first_look_counts_as_gone_down) {
	struct port p = {.name = "a", .was_up = true, .ever_up = false};
	struct fact fault;

	ck_assert(!observe(&p, true, 1000));
	ck_assert(observe(&p, false, 2000000000));
	ck_assert_uint_eq(p.downs, 1);
	ck_assert(observe(&p, true, 3500000000));
	ck_assert(port_fault(&p, 1000000000, 4000000000, &fault));
	ck_assert_str_eq(
		fault.sentence, "port a went down once, first at 1.000 s, for 1.500 s in all");
}

// A port that waits for its peer from the beginning has not gone down.
TEST(link_that_was_never_up_is_no_fault) {
	struct port p = {.name = "a", .was_up = true, .ever_up = false};
	struct fact fault;

	ck_assert(observe(&p, false, 1000));
	ck_assert(observe(&p, true, 2000));
	ck_assert_uint_eq(p.downs, 0);
	ck_assert(!port_fault(&p, 0, 3000, &fault));
}

// It went down twice and still is: the time counts up to the end.
TEST(link_that_is_down_at_the_end_says_so) {
	struct port p = {.name = "b", .was_up = true, .ever_up = true};
	struct fact fault;

	observe(&p, false, 1000000000);
	observe(&p, true, 1500000000);
	observe(&p, false, 3000000000);
	ck_assert(port_fault(&p, 0, 4000000000, &fault));
	ck_assert_str_eq(fault.sentence,
		"port b went down 2 times, first at 1.000 s, for 1.500 s in all, and still is");
}

// "DPDK has no port" was all that was said, and its log had the reason.
TEST(reason_of_a_device_is_the_one_that_dpdk_logged_of_it) {
	static const char log[] =
		"EAL: Selected IOVA mode 'VA'\n"
		"EAL: VFIO support could not be initialized\n"
		"EAL: 0000:00:04.0 VFIO group is not viable! Not all devices in IOMMU group bound\n"
		"EAL: Requested device 0000:00:04.0 cannot be used\n"
		"EAL: Probe PCI driver: net_virtio (1af4:1041) device: 0000:00:05.0 (socket -1)\n"
		"EAL: Probe PCI driver: net_virtio (1af4:1041) device: 0000:00:06.0 (socket -1)\n"
		"eth_virtio_pci_init(): Failed to init PCI device\n"
		"EAL: Requested device 0000:00:06.0 cannot be used\n";
	struct eal e = {.log_fd = memfd_create("log", MFD_CLOEXEC)};
	char text[256];

	ck_assert_int_eq(write(e.log_fd, log, sizeof(log) - 1), sizeof(log) - 1);
	ck_assert(eal_log_device(&e, "0000:00:04.0", text, sizeof(text)));
	ck_assert_str_eq(text,
		"0000:00:04.0 VFIO group is not viable! Not all devices in IOMMU group bound");
	ck_assert(eal_log_device(&e, "0000:00:06.0", text, sizeof(text)));
	ck_assert_str_eq(text, "Failed to init PCI device");
	ck_assert(!eal_log_device(&e, "0000:00:05.0", text, sizeof(text)));
	ck_assert(!eal_log_device(&e, "0000:00:07.0", text, sizeof(text)));
	close(e.log_fd);
}
