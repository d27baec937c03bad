// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/arrivals.h"

#include "common/base/u64.h"
#include "common/net/flow_addr.h"
#include "common/net/wire.h"
#include "common/net/wire_ip.h"
#include "common/run/list.h"

#include <errno.h>
#include <string.h>

#define FRAME_USUAL 1518u // with FCS
#define HEADERS 128u // Ethernet, the longest IPv4 header, ports: less than that
#define LINK_ETHERNET DLT_EN10MB

static const struct param params[] = {
	{"scale", "1", "what the times between frames are multiplied by", UNIT_NONE,
		PARAM_F64(struct arrivals, scale), 1e-6, 1e6},
	PARAM_END,
};
static const struct param also[] = {
	{"pcap", NULL, "the capture: pcap or pcapng of Ethernet frames", UNIT_NONE, PARAM_SCALAR},
	{"filter", "", "a capture filter as tcpdump has it: only these frames", UNIT_NONE,
		PARAM_SCALAR},
	PARAM_END,
};

void arrivals_list(struct run_list *l) {
	run_list_entry(l,
		&(struct run_listed){.kind = "path",
			.name = "source",
			.summary =
				"a capture as the traffic of a path, in virtual time, in place of flows",
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
	if (a->filter_text == NULL)
		return 0;
	if (pcap_compile(a->pcap, &a->filter, a->filter_text, 1, PCAP_NETMASK_UNKNOWN) < 0)
		return config_err(a->node, -EINVAL, err, "source: filter: '%s': %s", a->filter_text,
			pcap_geterr(a->pcap));
	a->has_filter = true;
	return 0;
}

int arrivals_open(struct arrivals *a, struct path *path, struct err *err) {
	char why[PCAP_ERRBUF_SIZE];
	int rc;

	*a = (struct arrivals){.path = path, .node = path->source};
	if ((rc = config_params(path->source, "source", params, also, a, err)) < 0
		|| (rc = text_of(path->source, "pcap", &a->file, err)) < 0
		|| (rc = text_of(path->source, "filter", &a->filter_text, err)) < 0)
		return rc;
	if (a->file == NULL)
		return config_err(a->node, -EINVAL, err, "source: pcap is required: a capture");
	a->pcap = pcap_open_offline_with_tstamp_precision(a->file, PCAP_TSTAMP_PRECISION_NANO, why);
	if (a->pcap == NULL)
		return config_err(a->node, -EINVAL, err, "source: pcap: %s", why);
	if (pcap_datalink(a->pcap) != LINK_ETHERNET)
		return config_err(a->node, -EINVAL, err,
			"source: pcap: %s: its link type is %s, and only Ethernet is read", a->file,
			pcap_datalink_val_to_description_or_dlt(pcap_datalink(a->pcap)));
	rc = set_filter(a, err);
	return rc < 0 ? rc : arrivals_next(a, err);
}

int arrivals_next(struct arrivals *a, struct err *err) {
	struct pcap_pkthdr *h;
	const u_char *data;
	int rc;

	while ((rc = pcap_next_ex(a->pcap, &h, &data)) == 1) {
		if (a->has_filter && pcap_offline_filter(&a->filter, h, data) == 0) {
			a->count.filtered++;
			continue;
		}
		uint64_t stamp_ns = (uint64_t)h->ts.tv_sec * NS_PER_S + (uint64_t)h->ts.tv_usec;

		a->count.reordered += stamp_ns < a->stamp_ns;
		a->stamp_ns = max_u64(stamp_ns, a->stamp_ns);
		a->data = data;
		a->captured = h->caplen;
		a->length = (uint32_t)max_u64(h->len, h->caplen);
		return 0;
	}
	a->ended = true;
	if (rc == PCAP_ERROR_BREAK)
		return 0;
	return err_set(err, -EIO, "%s: after %llu packets: %s", a->file,
		(unsigned long long)a->count.packets, pcap_geterr(a->pcap));
}

uint64_t arrivals_ns(const struct arrivals *a, uint64_t base_ns) {
	uint64_t ns = time_since(a->stamp_ns, base_ns);

	return a->scale == 1 ? ns : (uint64_t)((double)ns * a->scale);
}

// As weir-switch does it: the flow's index if it is one of weir-sender's, else a hash of its addresses. What was
// not captured of the headers is zero.
static uint32_t flow_of(const struct arrivals *a) {
	uint8_t headers[HEADERS] = {0};
	struct wire_info w;
	const struct wire_addr *at = &w.addr;
	uint32_t id = FLOW_ADDR_NONE, any = FLOW_ADDR_HASHED - 1;

	memcpy(headers, a->data, a->captured < HEADERS ? a->captured : HEADERS);
	wire_read(headers, &w);
	if (w.proto == WIRE_PROTO_TCP && at->dst_ip == FLOW_ADDR_RECEIVER
		&& at->dst_port == FLOW_ADDR_DST_PORT)
		id = flow_addr_index(FLOW_ADDR_SENDER, any, at->src_ip, at->src_port);
	else if (w.proto == WIRE_PROTO_TCP && at->src_ip == FLOW_ADDR_RECEIVER
		&& at->src_port == FLOW_ADDR_DST_PORT)
		id = flow_addr_index(FLOW_ADDR_SENDER, any, at->dst_ip, at->dst_port);
	return id != FLOW_ADDR_NONE
		? id
		: flow_addr_hash(at->src_ip, at->dst_ip, at->src_port, at->dst_port, w.proto);
}

bool arrivals_packet(struct arrivals *a, uint64_t base_ns, struct pkt *p) {
	uint32_t length = (uint32_t)max_u64(a->length, WIRE_MIN_FRAME);

	if (length > ARRIVALS_FRAME_MAX) {
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
	a->count.oversize += p->size_bytes > FRAME_USUAL;
	return true;
}

const struct config_node *arrivals_unread(const struct arrivals *a) {
	return a->path != NULL && !a->ended ? a->node : NULL;
}

void arrivals_summary(const struct arrivals *a, struct json *j) {
	json_object(j, a->path->name);
	json_text(j, "pcap", a->file);
	json_u64(j, "packets", a->count.packets);
	json_u64(j, "bytes", a->count.bytes);
	json_u64(j, "filtered", a->count.filtered);
	json_u64(j, "reordered", a->count.reordered);
	json_u64(j, "oversize", a->count.oversize);
	json_u64(j, "too_long", a->count.too_long);
	json_bool(j, "ended", a->ended);
	json_close(j, '}');
}

void arrivals_close(struct arrivals *a) {
	if (a->has_filter)
		pcap_freecode(&a->filter);
	if (a->pcap != NULL)
		pcap_close(a->pcap);
	a->pcap = NULL;
	a->has_filter = false;
}
