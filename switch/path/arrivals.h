// SPDX-License-Identifier: BSD-3-Clause
// A capture as the arrivals of a path:
//
//	paths:
//	  forward:
//	    - source: {pcap: traffic.pcapng, filter: "tcp dst port 443", scale: 1}
//	    - link: {rate: 100Mbit, queue: {codel: {}}}
//
// Frames keep their times, those since the first one multiplied by `scale`, and their bytes; one
// that is stamped earlier than a frame before arrives with it, and the run says so. What is read:
// pcap and pcapng of Ethernet frames without FCS, plain or compressed (common/pcap/reader.h). A
// file that is cut off is read up to there, and the run says so. A frame that was cut, and with it
// its length, has the length that its IP header says. Padding to the shortest frame, which a host's
// own captures lack, counts as if it were there.
#pragma once
#include "common/base/json.h"
#include "common/pcap/reader.h"
#include "switch/path/path.h"

#include <pcap/pcap.h>

#define ARRIVALS_FRAME_MAX (UINT16_MAX - 4u) // without FCS; what a packet's size can say

struct run_list;

struct arrivals_count {
	uint64_t packets, bytes; // that arrived; bytes with FCS
	uint64_t filtered; // that the filter left out
	uint64_t reordered; // that were stamped earlier than a frame before
	// Of frames that were cut and whose length in the file is that of what was captured: IP's
	// was taken.
	uint64_t lengths_from_ip;
	// Of the packets that arrived: longer than their hosts' MTU, as a host that offloads sees
	// them.
	uint64_t oversize;
	uint64_t too_long; // left out: longer than frame_max
	uint64_t not_ethernet; // left out: of an interface of another link type, not the first
};

// The keys of a path's `source`, for --list.
void arrivals_list(struct run_list *l);

struct arrivals {
	struct path *path;
	const char *file, *filter_text; // the config's; filter NULL: none
	double scale;
	struct config_node *node;
	uint32_t mtu; // of the hosts, by their SYNs; 0: none was there yet
	uint32_t frame_max; // bytes without FCS; arrivals_open: ARRIVALS_FRAME_MAX
	struct reader reader;
	struct frame batch[READER_BATCH];
	uint32_t at, batched;
	struct bpf_program filter;
	bool has_filter, begun, ended; // begun: there was a frame
	// The next frame, unless `ended`; its bytes are good until arrivals_next.
	const uint8_t *data;
	uint32_t captured, length;
	uint64_t stamp_ns; // in the file
	uint64_t step_back_ns; // the most that a frame was stamped earlier than one before
	size_t secrets_taken; // bytes, by arrivals_secrets
	struct arrivals_count count;
};

// Opens the path's source and reads the first frame. On error, too, arrivals_close.
int arrivals_open(struct arrivals *a, struct path *path, struct err *err);
// Reads the next frame, if there is one. 0 or -EIO with a sentence: it cannot be read on.
int arrivals_next(struct arrivals *a, struct err *err);
// Decryption secrets for the present frame and those behind it that were not there at the last call
// (common/pcap/secrets.h), until arrivals_next; the number of their bytes.
size_t arrivals_secrets(struct arrivals *a, const uint8_t **blocks);
// When the present frame arrives, if the run begins at base_ns of the capture's time.
uint64_t arrivals_ns(const struct arrivals *a, uint64_t base_ns);
// Numbers of the hosts of a frame, of which so many bytes are known, as weir-switch finds them
// (pkt_owner.hosts).
uint32_t arrivals_hosts(const uint8_t *data, uint32_t captured);
// Fills in a packet for it; what arrived is counted. False: it is left out.
bool arrivals_packet(struct arrivals *a, uint64_t base_ns, struct pkt *p);
// Where the config has it, if frames of it are left; else NULL.
const struct config_node *arrivals_unread(const struct arrivals *a);
// A capture that does not end with a whole record, or whose clock stepped back: a sentence. False:
// neither so far.
bool arrivals_fault(const struct arrivals *a, struct fact *fault);
// Into an open object.
void arrivals_summary(const struct arrivals *a, struct json *j);
void arrivals_close(struct arrivals *a);
