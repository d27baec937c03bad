// SPDX-License-Identifier: BSD-3-Clause
// What a frame is carried in:
//
//	framing   bytes on the link                                overhead
//	ethernet  frame without FCS + overhead                     24: FCS 4, preamble 8, gap 12
//	none      frame without FCS + overhead                     0
//	ip        IP packet + overhead                             0
//	docsis    max(frame without FCS + overhead, 64)            4: FCS
//	atm       53 * ceil((frame without FCS + overhead) / 48)   18: LLC and SNAP 10, AAL5 8
//
// ethernet: IEEE 802.3, 3.1.1 and 4.4.2. docsis: a cable modem's rate counts frames from the
// destination address to the FCS (DOCSIS MULPIv3.1, C.2.2.7.2). atm: bridged Ethernet over AAL5,
// LLC encapsulation, without FCS (RFC 2684, 5.2); AAL5 fills the last cell up to 48 bytes of
// payload (ITU-T I.363.5), and a cell has 53 bytes. Other encapsulations of ADSL are other
// overheads, still on top of the frame without FCS: bridged with virtual channel multiplexing 10,
// with FCS 4 more; PPPoE adds 8. Linux's tc counts them from the IP packet on, 14 more.
#include "switch/serialiser/framing.h"

#include "switch/serialiser/serial.h"

#define ETHER_HEADER_BYTES 14u
#define DOCSIS_FRAME_MIN_BYTES 64u
#define CELL_PAYLOAD_BYTES 48u
#define CELL_BYTES 53u

const char *const framing_names[] = {"ethernet", "none", "ip", "docsis", "atm", NULL};

static const char *const overhead_defaults[] = {"24B", "0B", "0B", "4B", "18B"};

int framing_configure(struct framing *f, struct config_node *node, struct err *err) {
	struct param overhead = FRAMING_OVERHEAD_PARAM;
	int rc;

	overhead.def = overhead_defaults[f->kind];
	if ((rc = config_param(node, "", &overhead, f, err)) < 0)
		return rc;
	if (config_get(node, overhead.name) == NULL)
		config_add(node, overhead.name, overhead.def);
	f->extra_bytes = f->overhead_bytes - SERIAL_FCS_BYTES
		- (f->kind == FRAMING_IP ? ETHER_HEADER_BYTES : 0);
	f->padded = f->kind == FRAMING_DOCSIS || f->kind == FRAMING_ATM;
	return 0;
}

uint64_t framing_padded(const struct framing *f, uint64_t bytes) {
	if (f->kind == FRAMING_ATM)
		return (bytes + CELL_PAYLOAD_BYTES - 1) / CELL_PAYLOAD_BYTES * CELL_BYTES;
	return bytes < DOCSIS_FRAME_MIN_BYTES ? DOCSIS_FRAME_MIN_BYTES : bytes;
}
