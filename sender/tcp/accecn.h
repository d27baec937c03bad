// SPDX-License-Identifier: BSD-3-Clause
// More accurate ECN feedback (AccECN, RFC 9768): a receiver counts the packets that arrive with CE,
// and each ACK has the lowest three bits of that counter, ACE, where RFC 3168 has flags. So marks
// are counted although ACKs are lost or answer many packets.
//
//	            AE CWR ECE   (ACE, from the left)
//	SYN         1 1 1        asks for AccECN (section 3.1.1)
//	SYN/ACK     0 1 0        agrees, the SYN arrived Not-ECT; 0 1 1: ECT(1), 1 0 0: ECT(0),
//	                         1 1 0: CE
//	first ACK   the same code, of the SYN/ACK's codepoint (section 3.2.2.1)
//	later       r.cep mod 8, where r.cep is 5 at first
//
// The option (kinds 172 and 174, section 3.2.3) has the bytes of payload that arrived with ECT(0),
// CE and ECT(1), each modulo 2^24; they begin with 1, 0 and 1.
//
// Decoding (section 3.2.2.5.2, appendix A.2): the sender adds (ACE - s.cep) mod 8 to s.cep. An ACK
// of eight or more packets may hide that ACE has gone round. Without the option the most is assumed
// that is consistent: dSafer = acked - ((acked - d) mod 8). With it, the least that is consistent
// and has room for the bytes.
//
// Fall-backs, where the path does not let ECN through
//   - After two SYNs without an answer the next ones do not ask for ECN (section 3.1.4.1). A late
//     answer to the first two still counts, and ECT may be sent then.
//   - The SYN/ACK says that the SYN, which is Not-ECT, arrived with another codepoint: data is sent
//     Not-ECT, but marks are answered (section 3.2.2.3).
//   - ACE is 000 in the first feedback after the handshake, although the counter begins with 5:
//     data is sent Not-ECT, and marks are not answered (section 3.2.2.4).
// In all three cases a host goes on sending the feedback that was agreed.
//
// Where we differ from the RFC, and why
//   - The appendix chooses between d and dSafer by the bytes; here every count between them is
//     possible too, since all segments but the last of a flow have one size. By the RFC's rule an
//     ACK of 30 packets, as GRO makes them, counts 24 marks where 16 packets were marked.
//   - Every ACK has the option, with SACK blocks one block less to make room. Section 3.2.3.3
//     allows fewer.
//   - A data receiver's ACKs are Not-ECT, so its counter is the only one that moves: the sender of
//     data sends r.cep = 5.
//   - Without the option, on the SYN/ACK or on any later ACK, ACE is interpreted conservatively
//     until two ACKs in a row have it again (section 3.2.3.2.3). The other rules of section 3.2.3.2
//     are left out: a SYN/ACK is sent again with the option (3.2.3.2.2), its initial counters are
//     not tested for zero (3.2.3.2.4, a MAY), and bytes with CE that came without a packet in ACE
//     do not end ECN (3.2.3.2.5).
//   - There is no fall-back for paths that drop packets with the option, nor for marks on every
//     packet, which the RFC leaves to the implementation. A failed attempt is not remembered for
//     the next connection.
#pragma once
#include "common/base/pkt.h"
#include "common/net/seg.h"

#include <stdbool.h>
#include <stdint.h>

#define ACCECN_CEP_INIT 5
#define ACCECN_E0B_INIT 1
#define ACCECN_E1B_INIT 1
#define ACCECN_BYTES_MASK 0xffffffu
#define ACCECN_SYNS 2 // that ask for AccECN
#define ACCECN_CE_PER_ACK 2 // section 3.2.2.5.1: an ACK at the latest after so many marks

enum accecn_mode { ACCECN_NO_ECN, ACCECN_CLASSIC, ACCECN_ON };

// What a receiver has counted.
struct accecn_counters {
	uint32_t cep;
	uint32_t bytes[3]; // in the order of SEG_ECN_*
};

// What a sender knows of them.
struct accecn_sender {
	uint32_t cep;
	uint32_t ceb;
	bool ceb_known; // the last ACK had the option
	bool first; // no ACK has arrived after the handshake
};

static inline struct accecn_counters accecn_counters_init(void) {
	return (struct accecn_counters){ACCECN_CEP_INIT, {ACCECN_E0B_INIT, 0, ACCECN_E1B_INIT}};
}

// ACE of the SYN/ACK, or of the first ACK, for the codepoint of what it answers (tables 2 and 3).
static inline uint8_t accecn_handshake_ace(uint8_t ecn) {
	static const uint8_t ace[] = {
		[ECN_NOT_ECT] = 2, [ECN_ECT1] = 3, [ECN_ECT0] = 4, [ECN_CE] = 6};

	return ace[ecn & 3];
}

// A server's mode by the ACE of a SYN. Combinations that are not assigned count as 111 (section
// 3.1.3).
static inline enum accecn_mode accecn_of_syn(uint8_t ace) {
	return ace == 0 ? ACCECN_NO_ECN : ace == 3 ? ACCECN_CLASSIC : ACCECN_ON;
}

// A client's mode by the ACE of the answer to a SYN with 111 (table 2). 101 is reserved and counts
// as AccECN (section 3.1.3); 111 is a peer that reflects flags.
static inline enum accecn_mode accecn_of_syn_ack(uint8_t ace) {
	switch (ace) {
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
		return ACCECN_ON;
	case 1:
		return ACCECN_CLASSIC;
	default:
		return ACCECN_NO_ECN;
	}
}

// Whether the SYN/ACK says that our SYN arrived with a codepoint that it was not sent with. 101 is
// reserved: it says nothing.
static inline bool accecn_mangled(uint8_t ace) {
	return ace != accecn_handshake_ace(ECN_NOT_ECT) && ace != 5;
}

// A packet with `len` bytes of payload has arrived.
static inline void accecn_count(struct accecn_counters *c, uint8_t ecn, uint32_t len) {
	if (ecn == ECN_NOT_ECT)
		return;
	c->cep += ecn == ECN_CE;
	c->bytes[ecn == ECN_ECT0 ? SEG_ECN_E0B : ecn == ECN_CE ? SEG_ECN_CEB : SEG_ECN_E1B] += len;
}

// How many more packets arrived with CE than was known, by an ACK that acknowledges `acked` more
// packets of `payload` bytes. The ACK must be newer than those before it.
uint32_t accecn_marks(
	struct accecn_sender *s, const struct seg *ack, uint32_t acked, uint32_t payload);
