// SPDX-License-Identifier: BSD-3-Clause
// A pcap record: seconds, fraction, captured, length (4 bytes each), the packet. A pcapng block:
// type, total length, body, total length again; padded to 4 bytes. What is read here is in the byte
// order of the machine that wrote the file, which its magic number tells.
#include "common/pcap/reader.h"

#include "common/base/likely.h"
#include "common/base/ns.h"

#include <errno.h>
#include <string.h>

#define PCAP_MICROSECONDS 0xa1b2c3d4u
#define PCAP_NANOSECONDS 0xa1b23c4du
#define PCAP_MODIFIED 0xa1b2cd34u // Kuznetzov's, of 1999: eight more bytes in each record
#define PCAP_HEADER 24u
#define PCAP_RECORD 16u
#define PCAPNG_MAGIC 0x0a0d0d0au
#define PCAPNG_ORDER 0x1a2b3c4du
#define BLOCK_BYTES_MAX (16u << 20)
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET 2u // obsolete
#define BLOCK_SIMPLE 3u
#define BLOCK_ENHANCED 6u
#define OPTION_NAME 2u
#define FETCH_BYTES 1024u // how far ahead the file is brought into the first-level cache
#define OPTION_RESOLUTION 9u
#define OPTION_OFFSET 14u
#define OPTION_BYTES_MAX 4096u // of an interface's options, that are looked at
#define LINK_UNKNOWN UINT16_MAX

static inline uint32_t get32(const struct reader *r, const uint8_t *p) {
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return r->swapped ? __builtin_bswap32(v) : v;
}

static inline uint16_t get16(const struct reader *r, const uint8_t *p) {
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return r->swapped ? __builtin_bswap16(v) : v;
}

// The file ends here, and not well.
__attribute__((format(printf, 3, 4))) static void stop(
	struct reader *r, enum reader_end end, const char *format, ...) {
	va_list ap;
	int n = snprintf(r->said, sizeof(r->said), "%s: ", r->in.name);
	size_t used = n > 0 && n < (int)sizeof(r->said) ? (size_t)n : sizeof(r->said) - 1;

	va_start(ap, format);
	vsnprintf(r->said + used, sizeof(r->said) - used, format, ap);
	va_end(ap);
	r->end = end;
}

// n bytes at in->at, or the end: whole if nothing is left.
static bool need(struct reader *r, size_t n, int *rc, struct err *err) {
	uint64_t offset = input_offset(&r->in);

	if (likely((size_t)(r->in.end - r->in.at) >= n))
		return true;
	if (input_fill(&r->in, n, rc, err))
		return true;
	if (*rc < 0)
		return false;
	if (r->in.at == r->in.end && !input_cut(&r->in))
		r->end = READER_WHOLE;
	else
		stop(r, READER_CUT, "ends in the middle of a record, which begins at byte %llu",
			(unsigned long long)offset);
	return false;
}

__extension__ typedef unsigned __int128 uint128;

static uint64_t to_ns(const struct reader_interface *i, uint64_t units) {
	if (likely(i->unit_ns != 0 && units < UINT64_MAX / 1000))
		return units * i->unit_ns;
	int64_t s = (int64_t)(units / i->per_s) + i->offset_s;
	uint64_t part = (uint64_t)((uint128)(units % i->per_s) * NS_PER_S / i->per_s);

	if (s < 0)
		return 0;
	return (uint64_t)s > UINT64_MAX / NS_PER_S - 1 ? UINT64_MAX - NS_PER_S
						       : (uint64_t)s * NS_PER_S + part;
}

static inline void give(struct reader *r, struct frame *f, uint32_t interface, uint64_t ts_ns,
	uint32_t captured, uint32_t length) {
	f->ts_ns = r->last_ns = ts_ns;
	f->data = r->in.at;
	f->captured = captured;
	// A length below what was captured is a writer's mistake: the packet is there.
	f->length = likely(length >= captured) ? length : captured;
	f->link_type = interface < r->interfaces ? r->interface[interface].link_type : LINK_UNKNOWN;
	f->interface = (uint16_t)interface;
	r->count.packets++;
	r->count.bytes += f->length;
}

static bool sane(struct reader *r, uint32_t captured, uint64_t offset) {
	if (likely(captured <= READER_CAPTURED_MAX))
		return true;
	stop(r, READER_DAMAGED,
		"the packet at byte %llu is said to have %u bytes, more than the most of %u",
		(unsigned long long)offset, captured, READER_CAPTURED_MAX);
	return false;
}

// One pcap record. False: the end, an error, or (`more` set) the buffer must move and frames are
// given out.
static bool pcap_record(struct reader *r, struct frame *f, bool first, int *rc, struct err *err) {
	struct input *in = &r->in;
	uint32_t header = PCAP_RECORD + r->record_extra;

	if (unlikely((size_t)(in->end - in->at) < header) && (!first || !need(r, header, rc, err)))
		return false;
	uint32_t captured = get32(r, in->at + 8);
	if (!sane(r, captured, input_offset(in)))
		return false;
	if (unlikely((size_t)(in->end - in->at) < header + (size_t)captured)
		&& (!first || !need(r, header + (size_t)captured, rc, err)))
		return false;
	uint64_t fraction = get32(r, in->at + 4);
	uint64_t ts_ns =
		get32(r, in->at) * NS_PER_S + (r->nanoseconds ? fraction : fraction * 1000);
	uint32_t length = get32(r, in->at + 12);

	in->at += header;
	give(r, f, 0, ts_ns, captured, length);
	in->at += captured;
	return true;
}

static void read_option(const struct reader *r, struct reader_interface *i, const uint8_t *p,
	uint16_t size, uint16_t code) {
	if (code == OPTION_NAME) {
		snprintf(i->name, sizeof(i->name), "%.*s", (int)size, (const char *)p);
	} else if (code == OPTION_RESOLUTION && size == 1) {
		uint32_t exponent = p[0] & 0x7f;

		i->per_s = 1;
		if ((p[0] & 0x80) != 0) {
			i->per_s = exponent < 63 ? (uint64_t)1 << exponent : (uint64_t)1 << 63;
			return;
		}
		for (uint32_t k = 0; k < exponent && k < 19; k++)
			i->per_s *= 10;
	} else if (code == OPTION_OFFSET && size == 8) {
		uint64_t low = get32(r, p + (r->swapped ? 4 : 0)),
			 high = get32(r, p + (r->swapped ? 0 : 4));

		i->offset_s = (int64_t)(high << 32 | low);
	}
}

// The place of an interface of this section: that of one of an ended section which is the same, a
// new one, or that of one which has ended. READER_INTERFACES_MAX: the section has too many.
static uint32_t interface_place(struct reader *r, const struct reader_interface *i) {
	uint32_t ended = READER_INTERFACES_MAX;

	for (uint32_t k = 0; k < r->interfaces; k++) {
		if (r->used_in[k] == r->section)
			continue;
		if (memcmp(&r->interface[k], i, sizeof(*i)) == 0)
			return k;
		ended = k;
	}
	if (r->interfaces < READER_INTERFACES_MAX)
		return r->interfaces++;
	r->replaced += ended < READER_INTERFACES_MAX;
	return ended;
}

static bool read_interface(struct reader *r, const uint8_t *body, size_t size, uint64_t offset) {
	struct reader_interface i;

	memset(&i, 0, sizeof(i)); // the padding is compared, too
	i.link_type = get16(r, body);
	i.snap_length = get32(r, body + 4);
	i.per_s = 1000000;
	for (size_t at = 8; at + 4 <= size;) {
		uint16_t code = get16(r, body + at), length = get16(r, body + at + 2);

		if (code == 0 || at + 4 + length > size)
			break;
		read_option(r, &i, body + at + 4, length, code);
		at += 4 + (((size_t)length + 3) & ~(size_t)3);
	}
	if (i.offset_s == 0 && (i.per_s == 1000000 || i.per_s == NS_PER_S))
		i.unit_ns = (uint32_t)(NS_PER_S / i.per_s);
	uint32_t place = interface_place(r, &i);
	if (place == READER_INTERFACES_MAX) {
		stop(r, READER_DAMAGED, "more than %u interfaces in a section, at byte %llu",
			READER_INTERFACES_MAX, (unsigned long long)offset);
		return false;
	}
	r->interface[place] = i;
	r->used_in[place] = r->section;
	r->section_interface[r->section_interfaces++] = (uint16_t)place;
	return true;
}

// The head of a section: it has its own byte order and interfaces.
static bool read_section(struct reader *r, uint64_t offset) {
	r->swapped = false;
	uint32_t order = get32(r, r->in.at + 8);

	r->swapped = order != PCAPNG_ORDER;
	if (r->swapped && __builtin_bswap32(order) != PCAPNG_ORDER) {
		stop(r, READER_DAMAGED, "the section at byte %llu has no byte order mark",
			(unsigned long long)offset);
		return false;
	}
	r->section_interfaces = 0;
	r->section++;
	return true;
}

// The packet of a block whose first `size` bytes are in the buffer. False: a mistake.
static bool block_packet(
	struct reader *r, struct frame *f, uint32_t type, uint32_t total, uint64_t offset) {
	const uint8_t *p = r->in.at;
	uint32_t head = type == BLOCK_SIMPLE ? 12 : 28, captured, length;
	uint32_t number = type == BLOCK_SIMPLE ? 0
		: type == BLOCK_PACKET	       ? get16(r, p + 8)
					       : get32(r, p + 8);
	uint32_t interface =
		number < r->section_interfaces ? r->section_interface[number] : UINT16_MAX;
	uint64_t ts_ns = r->last_ns;

	if (type == BLOCK_SIMPLE) {
		uint32_t snap = interface < r->interfaces ? r->interface[interface].snap_length : 0;

		length = get32(r, p + 8);
		captured = length < total - 16 ? length : total - 16;
		if (snap != 0 && captured > snap)
			captured = snap;
		r->count.no_time++;
	} else {
		captured = get32(r, p + 20);
		length = get32(r, p + 24);
		if (interface < r->interfaces)
			ts_ns = to_ns(&r->interface[interface],
				(uint64_t)get32(r, p + 12) << 32 | get32(r, p + 16));
	}
	if (!sane(r, captured, offset))
		return false;
	if (captured > total - head - 4) {
		stop(r, READER_DAMAGED, "the packet at byte %llu does not fit into its block",
			(unsigned long long)offset);
		return false;
	}
	r->count.unknown_interface += interface == UINT16_MAX;
	r->in.at += head;
	give(r, f, interface, ts_ns, captured, length);
	r->in.at -= head;
	return true;
}

static bool block_sane(
	struct reader *r, uint32_t type, bool packet, uint32_t total, uint64_t offset) {
	uint32_t least = type == BLOCK_ENHANCED || type == BLOCK_PACKET ? 32
		: type == BLOCK_INTERFACE				? 20
		: type == BLOCK_SIMPLE					? 16
		: type == SECRETS_BLOCK					? 20
									: 12;

	if (total >= least && total % 4 == 0 && total <= (packet ? INPUT_BYTES : BLOCK_BYTES_MAX))
		return true;
	stop(r, READER_DAMAGED, "the block at byte %llu is said to have %u bytes",
		(unsigned long long)offset, total);
	return false;
}

// One block. 1: it had a packet; 0: none; -1: the end, an error, or the buffer must move and frames
// are given out.
static int pcapng_block(struct reader *r, struct frame *f, bool first, int *rc, struct err *err) {
	struct input *in = &r->in;
	uint64_t offset = input_offset(in);

	if (unlikely((size_t)(in->end - in->at) < 12) && (!first || !need(r, 12, rc, err)))
		return -1;
	uint32_t type = get32(r, in->at);
	// Interfaces of a section may take the places of others: after the frames of those.
	if (type == PCAPNG_MAGIC && (!first || !read_section(r, offset)))
		return -1;
	uint32_t total = get32(r, in->at + 4);
	bool packet = type == BLOCK_ENHANCED || type == BLOCK_PACKET || type == BLOCK_SIMPLE;
	if (!block_sane(r, type, packet, total, offset))
		return -1;
	// Of a block without a packet that may be larger than the buffer, what is looked at.
	size_t part = packet ? total : type == BLOCK_INTERFACE ? OPTION_BYTES_MAX : SECRETS_HEAD;
	part = part < total ? part : total;
	if (unlikely((size_t)(in->end - in->at) < total) && (!first || !need(r, part, rc, err)))
		return -1;
	if (packet && !block_packet(r, f, type, total, offset))
		return -1;
	if (type == BLOCK_INTERFACE && !read_interface(r, in->at + 8, part - 12, offset))
		return -1;
	if (type == SECRETS_BLOCK && !secrets_fit(in->at, total, r->swapped)) {
		stop(r, READER_DAMAGED,
			"the decryption secrets at byte %llu do not fit into their block",
			(unsigned long long)offset);
		return -1;
	}
	r->count.skipped_blocks += !packet;
	if (type == SECRETS_BLOCK && r->keep_secrets
			? !secrets_read(&r->secrets, in, total, r->swapped, rc, err)
			: !input_skip(in, total, rc, err)) {
		if (*rc == 0)
			stop(r, READER_CUT,
				"ends in the middle of a record, which begins at byte %llu",
				(unsigned long long)offset);
		return -1;
	}
	return packet;
}

// Nearly every block: a packet of a known interface, whole, in this machine's byte order. False:
// pcapng_block reads it.
static inline bool usual_block(struct reader *r, struct frame *f) {
	struct input *in = &r->in;
	const uint8_t *p = in->at;
	size_t left = (size_t)(in->end - p);
	struct {
		uint32_t type, total, interface, high, low, captured, length;
	} b;

	if (unlikely(left < sizeof(b)))
		return false;
	memcpy(&b, p, sizeof(b));
	prefetch(p + FETCH_BYTES);
	prefetch(p + FETCH_BYTES + 64);
	uint64_t units = (uint64_t)b.high << 32 | b.low;
	if (unlikely(b.type != BLOCK_ENHANCED || r->swapped || b.total > left || b.total % 4 != 0
		    || b.total < sizeof(b) + 4 || b.captured > b.total - sizeof(b) - 4
		    || b.captured > READER_CAPTURED_MAX || b.interface >= r->section_interfaces
		    || units >= UINT64_MAX / 1000))
		return false;
	uint32_t interface = r->section_interface[b.interface];
	if (unlikely(r->interface[interface].unit_ns == 0))
		return false;
	in->at = p + sizeof(b);
	give(r, f, interface, units * r->interface[interface].unit_ns, b.captured, b.length);
	in->at = p + b.total;
	return true;
}

int reader_batch(struct reader *r, struct frame *frames, uint32_t max, struct err *err) {
	uint32_t n = 0;
	int rc = 0;

	if (r->end != READER_MORE)
		return 0;
	if (!r->pcapng) {
		while (n < max && pcap_record(r, &frames[n], n == 0, &rc, err))
			n++;
	} else {
		int found = 0;

		// Blocks without packets may move the buffer only as long as no packet is given
		// out.
		for (; n < max && found >= 0; n += (uint32_t)(found > 0))
			found = usual_block(r, &frames[n])
				? 1
				: pcapng_block(r, &frames[n], n == 0, &rc, err);
	}
	return rc < 0 ? rc : (int)n;
}

static int not_a_capture(struct reader *r, struct err *err) {
	return err_set(err, -EINVAL, "%s: not a capture: it begins like neither pcap nor pcapng",
		r->in.name);
}

static int open_pcap(struct reader *r, uint32_t magic, struct err *err) {
	int rc = 0;

	r->nanoseconds = magic == PCAP_NANOSECONDS;
	r->record_extra = magic == PCAP_MODIFIED ? 8 : 0;
	if (!input_fill(&r->in, PCAP_HEADER, &rc, err))
		return rc < 0
			? rc
			: err_set(err, -EINVAL, "%s: ends in the header of the file", r->in.name);
	if (get16(r, r->in.at + 4) != 2)
		return err_set(err, -EINVAL, "%s: pcap of version %u.%u, not 2", r->in.name,
			get16(r, r->in.at + 4), get16(r, r->in.at + 6));
	r->interface[0] = (struct reader_interface){
		.link_type = get16(r, r->in.at + (r->swapped ? 22 : 20)),
		.snap_length = get32(r, r->in.at + 16),
	};
	r->interfaces = 1;
	r->in.at += PCAP_HEADER;
	return 0;
}

static int start(struct reader *r, struct err *err) {
	int rc = 0;

	if (!input_fill(&r->in, 4, &rc, err)) {
		if (rc < 0)
			return rc;
		if (input_cut(&r->in))
			return err_set(
				err, -EINVAL, "%s: ends before the first record", r->in.name);
		return r->in.at == r->in.end ? err_set(err, -EINVAL, "%s: empty", r->in.name)
					     : not_a_capture(r, err);
	}
	uint32_t magic = get32(r, r->in.at);
	if (magic == PCAPNG_MAGIC) {
		r->pcapng = true;
		return input_fill(&r->in, 12, &rc, err) ? 0 : rc < 0 ? rc : not_a_capture(r, err);
	}
	for (int order = 0; order < 2; order++) {
		if (magic == PCAP_MICROSECONDS || magic == PCAP_NANOSECONDS
			|| magic == PCAP_MODIFIED)
			return open_pcap(r, magic, err);
		magic = __builtin_bswap32(magic);
		r->swapped = true;
	}
	return not_a_capture(r, err);
}

static int opened(struct reader *r, int rc, struct err *err) {
	if (rc == 0)
		rc = start(r, err);
	if (rc < 0)
		input_close(&r->in);
	return rc;
}

int reader_open(struct reader *r, const char *path, struct err *err) {
	memset(r, 0, sizeof(*r));
	return opened(r, input_open(&r->in, path, err), err);
}

int reader_open_memory(
	struct reader *r, const char *name, const void *bytes, size_t size, struct err *err) {
	memset(r, 0, sizeof(*r));
	return opened(r, input_open_memory(&r->in, name, bytes, size, err), err);
}

void reader_close(struct reader *r) {
	secrets_free(&r->secrets);
	input_close(&r->in);
}
