// SPDX-License-Identifier: BSD-3-Clause
// Writes captures: pcapng (draft-ietf-opsawg-pcapng), Ethernet, nanoseconds.
//
//	section header, interface descriptions, enhanced packets ..., interface statistics
//
// Each observation point is an interface of its own, with a name that Wireshark shows. What is
// known of a packet besides its bytes stands in its comment; packets lost before it in
// epb_dropcount, all of an interface's in its statistics (isb_ifdrop). The bytes depend on nothing
// but the calls: no clock, no host name.
//
// With `rotate_bytes` a file that would grow beyond it is closed and renamed, "run.pcapng" to
// "run.1.pcapng" (the one that was there is replaced), and another begun: at most twice that many
// bytes are on the disk, the newest of them. Each has the decryption secrets, and one packet at
// least.
#pragma once
#include "common/pcap/secrets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_INTERFACES_MAX 64
#define PCAPNG_NAME_MAX 64 // with the closing zero; of an interface
#define PCAPNG_COMMENT_MAX 1024 // likewise; of a packet
#define PCAPNG_CAPTURED_MAX 262144u // bytes of a packet, as libpcap allows
#define PCAPNG_ROTATE_MIN 4096u

enum pcapng_direction { PCAPNG_ANY, PCAPNG_INBOUND, PCAPNG_OUTBOUND }; // as in epb_flags

struct pcapng_packet {
	uint64_t ts_ns; // since 1970
	const void *data;
	uint32_t captured, length; // bytes of `data`, and of the frame without FCS
	uint32_t interface; // what pcapng_interface returned
	enum pcapng_direction direction;
	bool has_id;
	uint64_t id; // the same wherever the same packet is seen (epb_packetid)
	uint64_t lost; // at this interface since the packet before
	const char *comment; // UTF-8; NULL: none
};

struct pcapng_interface {
	char name[PCAPNG_NAME_MAX];
	uint64_t first_ns, last_ns; // of its packets in this file
	uint64_t packets, lost; // in this file
};

struct pcapng_count {
	uint64_t packets,
		bytes; // in the file, those that were rotated away too; bytes of all files
	uint64_t lost; // that the caller had no room for, or that could not be written
	uint64_t removed; // packets in files that were rotated away
};

struct pcapng {
	struct pcapng_count count;
	// Private.
	int fd; // -1: none
	bool regular; // a file, and no pipe or device
	bool no_wait;
	uint8_t *buffer; // of whole blocks
	size_t used, room; // of it
	struct secrets secrets; // each file begins with them
	const char *path, *program; // the caller's
	char previous[1024]; // what a full file is renamed to
	uint64_t rotate_bytes, file_bytes; // 0: no bound
	uint64_t previous_packets, file_packets;
	struct pcapng_interface interface[PCAPNG_INTERFACES_MAX];
	uint32_t interfaces;
	bool begun; // the interfaces are in the file: no more can be added
	// Errno of the first write that failed: the file ends with the last whole block before it.
	int error;
};

// Opens a file for writing. `path` and `program` ("weir-sim 1.0.0", for shb_userappl) stay the
// caller's and outlive it. 0 or -errno with a sentence.
int pcapng_open(struct pcapng *w, const char *path, const char *program, uint64_t rotate_bytes,
	struct err *err);
// Adds an interface, before the first packet; at most PCAPNG_INTERFACES_MAX. Its number.
uint32_t pcapng_interface(struct pcapng *w, const char *name);
// Decryption secrets (common/pcap/secrets.h) of the packets that follow: whole blocks, copied.
void pcapng_secrets(struct pcapng *w, const uint8_t *blocks, size_t size);
void pcapng_write(struct pcapng *w, const struct pcapng_packet *p);
// Writes what is in memory: all of it, or what the reader takes at once.
void pcapng_flush(struct pcapng *w);
// What ended the file early ("No space left on device", "its reader has ended"); NULL: nothing.
const char *pcapng_error(const struct pcapng *w);
// A reader of a pipe that reads too little is not waited for: packets are lost and counted.
void pcapng_no_wait(struct pcapng *w);
// Packets lost at an interface after its last one.
void pcapng_lost(struct pcapng *w, uint32_t interface, uint64_t packets);
// Writes the statistics and closes. 0 or -errno of the first error, with its words: "No space left
// on device".
int pcapng_close(struct pcapng *w, struct err *err);
