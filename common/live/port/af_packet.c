// SPDX-License-Identifier: BSD-3-Clause
// Lets fragments of IPv4 datagrams pass net_af_packet ports.
//
// DPDK's driver joins a fanout group for each port, with one queue as well, and asks the kernel to
// reassemble datagrams for it (PACKET_FANOUT_FLAG_DEFRAG). No argument of the device turns that
// off. The kernel would then give the port whole datagrams, which are longer than a buffer or than
// the MTU of the port by which they leave. A socket cannot leave its group, and the flags of a
// group cannot change (packet(7)), so the flag has to be taken out of the driver's call: the
// program defines the function itself, and the dynamic linker prefers a program's function to the C
// library's.
//
// Without the flag, all fragments of a datagram still get to one queue: the kernel's hash of a
// fragment is that of its addresses.
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FANOUT_TYPE_SHIFT 16 // the value: the group's number, then its type and flags

__attribute__((visibility("default"))) int setsockopt(
	int fd, int level, int name, const void *value, socklen_t size) {
	unsigned int fanout;

	if (level == SOL_PACKET && name == PACKET_FANOUT && size == sizeof(fanout)) {
		memcpy(&fanout, value, sizeof(fanout));
		fanout &= ~((unsigned int)PACKET_FANOUT_FLAG_DEFRAG << FANOUT_TYPE_SHIFT);
		value = &fanout;
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}
