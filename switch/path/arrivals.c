// SPDX-License-Identifier: BSD-3-Clause
#include "switch/path/arrivals.h"

#include "common/base/u64.h"
#include "common/net/flow_addr.h"
#include "common/net/wire.h"
#include "common/net/wire_ip.h"
#include "common/run/run_list.h"
#include "switch/path/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MTU 1500u
#define MTU_JUMBO 9000u
#define HEADERS 128u // Ethernet, VLAN tags, the longest IPv4 header, ports: less than that

static const struct param params[] = {
	{"scale", "1", "what the times between frames are multiplied by", UNIT_NONE,
		PARAM_F64(struct arrivals, scale), 1e-6, 1e6},
	PARAM_END,
};
static const struct param also[] = {
	{"pcap", NULL, "the capture: pcap or pcapng of Ethernet frames", UNIT_NONE, PARAM_FILE},
	{"filter", "", "a capture filter as tcpdump has it: only these frames", UNIT_NONE,
		PARAM_SCALAR},
	PARAM_END,
};

void arrivals_list(struct run_list *l) {
	run_list_entry(l,
		&(struct run_listed){.kind = "path",
			.name = "source",
			.summary = "a capture as the traffic of a path, in place of flows",
			.params = params,
			.also = {also}});
}

static int text_of(
	struct config_node *source, const char *key, const char **text, struct err *err) {
	struct config_node *node = config_get(source, key);

	if (node == NULL)
		return 0;
	*text = config_text(node);
	if (*text == NULL || (*text)[0] == '\0')
		return config_err(node, -EINVAL, err, "source: %s: a text is wanted", key);
	return 0;
}

static int set_filter(struct arrivals *a, struct err *err) {
	int rc = 0;

	if (a->filter_text == NULL)
		return 0;
	pcap_t *ethernet = pcap_open_dead(DLT_EN10MB, READER_CAPTURED_MAX);
	if (ethernet == NULL)
		return config_err(a->node, -ENOMEM, err, "source: filter: no memory");
	if (pcap_compile(ethernet, &a->filter, a->filter_text, 1, PCAP_NETMASK_UNKNOWN) < 0)
		rc = config_err(a->node, -EINVAL, err, "source: filter: '%s': %s", a->filter_text,
			pcap_geterr(ethernet));
	else
		a->has_filter = true;
	pcap_close(ethernet);
	return rc;
}

int arrivals_open(struct arrivals *a, struct path *path, struct err *err) {
	struct err why;
	int rc;

	memset(a, 0, sizeof(*a));
	a->path = path;
	a->node = path->source;
	a->frame_max = ARRIVALS_FRAME_MAX;
	if ((rc = config_params(path->source, "source", params, also, a, err)) < 0
		|| (rc = text_of(path->source, "pcap", &a->file, err)) < 0
		|| (rc = text_of(path->source, "filter", &a->filter_text, err)) < 0)
		return rc;
	if (a->file == NULL)
		return config_err(a->node, -EINVAL, err, "source: pcap is required: a capture");
	if ((rc = set_filter(a, err)) < 0)
		return rc;
	if (reader_open(&a->reader, a->file, &why) < 0)
		return config_err(a->node, -EINVAL, err, "source: pcap: %s%s", why.msg,
			a->file[0] != '/' && access(a->file, F_OK) < 0
				? "; its name is relative to the working directory"
				: "");
	a->reader.keep_secrets = true;
	config_absolute(config_get(path->source, "pcap"));
	return arrivals_next(a, err);
}

// 1: the next frame of the file, whatever it is; 0: the end.
static int read_frame(struct arrivals *a, const struct frame **frame, struct err *err) {
	if (a->at == a->batched) {
		int n = reader_batch(&a->reader, a->batch, READER_BATCH, err);

		a->at = a->batched = 0;
		if (n <= 0)
			return n < 0 ? -EIO : 0;
		a->batched = (uint32_t)n;
	}
	*frame = &a->batch[a->at++];
	return 1;
}

static bool passes(const struct arrivals *a, const struct frame *f) {
	struct pcap_pkthdr h = {.caplen = f->captured, .len = f->length};

	return !a->has_filter || pcap_offline_filter(&a->filter, &h, f->data) != 0;
}

static void set_time(struct arrivals *a, uint64_t ts_ns) {
	if (ts_ns < a->stamp_ns) {
		a->count.reordered++;
		a->step_back_ns = max_u64(a->step_back_ns, a->stamp_ns - ts_ns);
	}
	a->stamp_ns = max_u64(ts_ns, a->stamp_ns);
}

static void set_cut_length(struct arrivals *a) {
	size_t length = wire_length(a->data, a->captured);

	if (length <= a->length)
		return;
	a->length = (uint32_t)length;
	a->count.lengths_from_ip++;
}

int arrivals_next(struct arrivals *a, struct err *err) {
	const struct frame *f = NULL;
	int rc;

	while ((rc = read_frame(a, &f, err)) == 1) {
		if (f->link_type != LINK_ETHERNET && !a->begun)
			return config_err(a->node, -EINVAL, err,
				"source: pcap: %s: its link type is %u, and only Ethernet, 1, "
				"is read",
				a->file, f->link_type);
		a->begun = true;
		a->count.not_ethernet += f->link_type != LINK_ETHERNET;
		if (f->link_type != LINK_ETHERNET)
			continue;
		if (!passes(a, f)) {
			a->count.filtered++;
			continue;
		}
		set_time(a, f->ts_ns);
		a->data = f->data;
		a->captured = f->captured;
		a->length = f->length;
		if (f->length == f->captured) // or what was cut off is not in the file's length
			set_cut_length(a);
		return 0;
	}
	a->ended = true;
	return rc;
}

size_t arrivals_secrets(struct arrivals *a, const uint8_t **blocks) {
	const struct secrets *s = &a->reader.secrets;
	size_t taken = a->secrets_taken;

	*blocks = s->bytes + taken;
	a->secrets_taken = s->size;
	return s->size - taken;
}

uint64_t arrivals_ns(const struct arrivals *a, uint64_t base_ns) {
	uint64_t ns = time_since(a->stamp_ns, base_ns);

	return a->scale == 1 ? ns : (uint64_t)((double)ns * a->scale);
}

static struct wire_flow read_flow(const uint8_t *data, uint32_t captured) {
	uint8_t headers[HEADERS] = {0};
	struct wire_flow flow;

	memcpy(headers, data, captured < HEADERS ? captured : HEADERS);
	wire_read_flow(headers, sizeof(headers), &flow);
	return flow;
}

uint32_t arrivals_hosts(const uint8_t *data, uint32_t captured) {
	struct wire_flow f = read_flow(data, captured);

	return flow_addr_hosts(f.src, f.dst);
}

// As weir-switch does it: the flow's index if it is one of weir-sender's, else a hash of its
// addresses. What was not captured of the headers is zero.
static uint32_t flow_of(const struct arrivals *a) {
	struct wire_flow f = read_flow(a->data, a->captured);
	uint32_t id = FLOW_ADDR_NONE, any = FLOW_ADDR_HASHED - 1;
	bool tcp = f.proto == WIRE_PROTO_TCP;

	if (tcp && f.dst == FLOW_ADDR_RECEIVER && f.dst_port == FLOW_ADDR_DST_PORT)
		id = flow_addr_index(FLOW_ADDR_SENDER, any, f.src, f.src_port);
	else if (tcp && f.src == FLOW_ADDR_RECEIVER && f.src_port == FLOW_ADDR_DST_PORT)
		id = flow_addr_index(FLOW_ADDR_SENDER, any, f.dst, f.dst_port);
	return id != FLOW_ADDR_NONE ? id
				    : flow_addr_hash(f.src, f.dst, f.src_port, f.dst_port, f.proto);
}

// The MTU of the capture's hosts, by what the SYNs say that they receive. Until one is there,
// frames of any usual MTU are taken to be on the wire as they are.
static void learn_mtu(struct arrivals *a) {
	uint32_t mtu = wire_syn_mtu(a->data, a->captured);

	if (mtu > 0)
		a->mtu = (uint32_t)max_u64(a->mtu, max_u64(MTU, mtu));
}

// Longer than the hosts' MTU allows, which a host that offloads captures: 802.1Q, 802.1ad and jumbo
// frames are not.
static bool is_oversize(const struct arrivals *a) {
	uint32_t tags = wire_tags(a->data, a->captured);

	return a->length > WIRE_ETH + tags * WIRE_TAG + (a->mtu > 0 ? a->mtu : MTU_JUMBO);
}

bool arrivals_packet(struct arrivals *a, uint64_t base_ns, struct pkt *p) {
	uint32_t length = (uint32_t)max_u64(a->length, WIRE_MIN_FRAME);

	if (length > a->frame_max) {
		a->count.too_long++;
		return false;
	}
	*p = (struct pkt){
		.arrival_ns = arrivals_ns(a, base_ns),
		.flow_id = flow_of(a),
		.size_bytes = (uint16_t)(length + WIRE_FCS),
		.ecn = wire_ecn_any(a->data, a->captured),
	};
	a->count.packets++;
	a->count.bytes += p->size_bytes;
	learn_mtu(a);
	a->count.oversize += is_oversize(a);
	return true;
}

const struct config_node *arrivals_unread(const struct arrivals *a) {
	return a->path != NULL && !a->ended ? a->node : NULL;
}

bool arrivals_fault(const struct arrivals *a, struct fact *fault) {
	bool cut = a->path != NULL && a->ended && a->reader.end > READER_WHOLE;

	if (cut)
		fact_set(fault, "capture_cut", "%s", a->reader.said);
	else if (a->path != NULL && a->step_back_ns > 0)
		fact_set(fault, "capture_reordered",
			"%s: %llu frames are stamped earlier than one before them, by up to %.6g "
			"s, and arrived with it: sort the capture by time (reordercap), or cut it "
			"where its clock was set back",
			a->file, (unsigned long long)a->count.reordered,
			(double)a->step_back_ns / 1e9);
	else
		return false;
	return true;
}

void arrivals_summary(const struct arrivals *a, struct json *j) {
	SOURCE_FIELDS(FIELD_JSON)
}

void arrivals_close(struct arrivals *a) {
	if (a->has_filter)
		pcap_freecode(&a->filter);
	a->has_filter = false;
	if (a->path != NULL)
		reader_close(&a->reader);
	a->path = NULL;
}
