// SPDX-License-Identifier: BSD-3-Clause
// Capture files: pcap (draft-ietf-opsawg-pcap) with stamps in microseconds or nanoseconds and in
// either byte order, pcapng (draft-ietf-opsawg-pcapng) with several sections and interfaces.
//
// libpcap costs as much per packet as the whole analysis, copies nothing less, and refuses a pcapng
// file whose interfaces differ in link type: hence a reader of our own, which gives packets in
// batches.
#pragma once
#include "common/pcap/secrets.h"

#define READER_BATCH 64u
#define READER_CAPTURED_MAX 262144u // bytes of one packet, as libpcap allows
#define READER_INTERFACES_MAX 1024u

// Of enum link types (LINKTYPE_*, IANA "pcap link types") those that are decoded.
enum {
	LINK_NULL = 0,
	LINK_ETHERNET = 1,
	LINK_PPP = 9,
	LINK_RAW_BSD = 12,
	LINK_RAW_OPENBSD = 14,
	LINK_PPP_HDLC = 50,
	LINK_PPP_ETHER = 51,
	LINK_ATM_RFC1483 = 100,
	LINK_RAW = 101,
	LINK_C_HDLC = 104,
	LINK_IEEE802_11 = 105,
	LINK_FRELAY = 107,
	LINK_LOOP = 108,
	LINK_ENC = 109,
	LINK_SLL = 113,
	LINK_PFLOG = 117,
	LINK_IEEE802_11_PRISM = 119,
	LINK_IEEE802_11_RADIOTAP = 127,
	LINK_IEEE802_11_AVS = 163,
	LINK_PPP_PPPD = 166,
	LINK_PPI = 192,
	LINK_MPLS = 219,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_NFLOG = 239,
	LINK_IPOIB = 242,
	LINK_PKTAP = 258,
	LINK_SLL2 = 276
};

// A packet as it was captured. `data` lies in the reader's buffer until the next batch.
struct frame {
	uint64_t ts_ns; // since 1970
	const uint8_t *data;
	uint32_t captured, length; // bytes in the file, and on the wire
	uint16_t link_type;
	uint16_t interface; // of the reader's; UINT16_MAX: the file does not describe it
};

// How a file ended.
enum reader_end {
	READER_MORE, // it has not
	READER_WHOLE, // with its last record
	READER_CUT, // in the middle of a record
	READER_DAMAGED, // with a record that makes no sense
};

#define READER_NAME_MAX 64 // with the closing zero

struct reader_interface {
	char name[READER_NAME_MAX]; // "": none
	uint16_t link_type;
	uint32_t snap_length; // 0: no limit
	uint32_t unit_ns; // of a time stamp; 0: see offset_s and per_s
	int64_t offset_s;
	uint64_t per_s; // units of a time stamp in a second
};

struct reader_count {
	uint64_t packets, bytes; // bytes on the wire
	// Packets without a time stamp (simple packet blocks): the last packet's was taken.
	uint64_t no_time;
	uint64_t skipped_blocks; // pcapng blocks that hold no packets
	// Packets of an interface that the file does not describe: link type unknown.
	uint64_t unknown_interface;
};

struct reader {
	struct input in;
	struct reader_count count;
	enum reader_end end;
	// How it ended, if not whole: "x.pcap: ends in the middle of a packet at byte 4711".
	char said[256];
	uint64_t last_ns;
	// Set by the caller: decryption secrets are kept. Those that lie before a packet are there
	// with the batch that has the packet.
	bool keep_secrets;
	struct secrets secrets;
	// Private.
	bool pcapng, swapped, nanoseconds;
	uint32_t record_extra; // bytes between a record's header and its packet
	// Those of all sections: of one that is described as before the number is the same. Where
	// there are too many, those of ended sections make room: then `replaced` counts up, before
	// the batch with the first packet of the new one.
	uint32_t interfaces, replaced;
	struct reader_interface interface[READER_INTERFACES_MAX];
	// Of the present section, by their number there.
	uint32_t section_interfaces, section;
	uint16_t section_interface[READER_INTERFACES_MAX];
	uint32_t used_in[READER_INTERFACES_MAX]; // the last section that has it
};

// Opens a capture, "-" for standard input. 0 or -errno and a sentence: no such file, or not a
// capture.
int reader_open(struct reader *r, const char *path, struct err *err);
int reader_open_memory(
	struct reader *r, const char *name, const void *bytes, size_t size, struct err *err);
// Up to `max` packets. 0: the end, and r->end says which. -errno with a sentence: it cannot be read
// on.
int reader_batch(struct reader *r, struct frame *frames, uint32_t max, struct err *err);
void reader_close(struct reader *r);
