// SPDX-License-Identifier: BSD-3-Clause
// In place of libpcap, of which weir-sim uses only the filters: each is refused.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

#define DLT_EN10MB 1
#define PCAP_NETMASK_UNKNOWN UINT32_MAX
#define PCAP_ERROR (-1)

typedef struct pcap pcap_t;
struct bpf_program {
	unsigned int bf_len;
};
struct pcap_pkthdr {
	struct timeval ts;
	uint32_t caplen, len;
};

static inline pcap_t *pcap_open_dead(int link_type, int captured_max) {
	static char one;

	return (pcap_t *)(void *)&one;
}

static inline int pcap_compile(
	pcap_t *p, struct bpf_program *program, const char *text, int optimise, uint32_t netmask) {
	return PCAP_ERROR;
}

static inline const char *pcap_geterr(pcap_t *p) {
	return "this build has no filters of captures";
}

static inline int pcap_offline_filter(
	const struct bpf_program *program, const struct pcap_pkthdr *header, const uint8_t *data) {
	return 0;
}

static inline void pcap_close(pcap_t *p) {
}

static inline void pcap_freecode(struct bpf_program *program) {
}
