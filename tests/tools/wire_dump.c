// SPDX-License-Identifier: BSD-3-Clause
// The wire codecs behind a pipe, for tests/tools/analysis/test_wire.py: a command per line on
// standard input, a line of JSON for each on standard output. Frames are in hexadecimal, numbers in
// decimal.
//
//	parse FRAME         {"status", ...} of wire_parse and wire_parse_tcp
//	arp FRAME           {"status", ...} of wire_parse_arp
//	walk FRAME          what wire_walk finds in it
//	corrupt FRAME DRAW  {"bit": its number in the frame}
//	clear FRAME         {"frame": FRAME} without options of SACK and AccECN
//	echo FRAME          {"reply": FRAME or null}
//	ecn FRAME ECN       {"frame": FRAME}
//	write NUMBER...     {"frame": FRAME}; the numbers are in the order of read_segment
//	write_udp NUMBER... likewise
//	write_arp REQUEST SENDER_IP TARGET_IP
//	neighbour FRAME     {"status", ...} of wire_parse_neighbour
//	solicit SENDER_IP TARGET_IP, advertise FRAME
#include "common/net/clear.h"
#include "common/net/corrupt.h"
#include "common/net/wire_ip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[1 << 18];
static uint8_t frame[1 << 16];
static const struct wire_mac mac_a = {{2, 0, 0, 0, 0, 1}};
static const struct wire_mac mac_b = {{2, 0, 0, 0, 0, 2}};

static size_t read_hex(char **text) {
	const char *hex = strtok_r(NULL, " \n", text);
	size_t len = 0;
	unsigned byte;

	for (; hex != NULL && sscanf(hex, "%2x", &byte) == 1; hex += 2)
		frame[len++] = (uint8_t)byte;
	return len;
}

static uint32_t read_number(char **text) {
	const char *number = strtok_r(NULL, " \n", text);

	return number == NULL ? 0 : (uint32_t)strtoul(number, NULL, 10);
}

static void print_hex(const char *key, size_t len) {
	printf("{\"%s\": \"", key);
	for (size_t i = 0; i < len; i++)
		printf("%02x", frame[i]);
	printf("\"}\n");
}

static void parse(char **text) {
	struct wire_info i = {0};
	struct seg s;
	size_t len = read_hex(text);
	enum wire_status status = wire_parse(frame, len, &i);

	printf("{\"status\": %d, \"ethertype\": %u, \"proto\": %u, \"ecn\": %u, \"ip_len\": %u, "
	       "\"fragment\": %u, \"src_ip\": %u, \"dst_ip\": %u, \"src_port\": %u, "
	       "\"dst_port\": %u, \"ipv6\": %d, \"dscp\": %u",
		(int)status, i.ethertype, i.proto, i.ecn, i.ip_len, i.fragment, i.addr.src_ip,
		i.addr.dst_ip, i.addr.src_port, i.addr.dst_port, i.addr.ipv6, i.dscp);
	if (status == WIRE_OK && (status = wire_parse_tcp(frame, &i, true, &s)) == WIRE_OK) {
		printf(", \"seq\": %u, \"ack\": %u, \"tsval\": %u, \"tsecr\": %u, \"len\": %u, "
		       "\"window\": %u, \"flags\": %u, \"options\": %u, \"wscale\": %u, "
		       "\"mss\": %u, \"sack\": [",
			s.seq, s.ack, s.tsval, s.tsecr, s.len, s.window, s.flags, s.options,
			s.wscale, s.mss);
		for (uint32_t k = 0; k < s.sack_count; k++)
			printf("%s%u, %u", k > 0 ? ", " : "", s.sack[k].start, s.sack[k].end);
		printf("]");
	}
	printf(", \"tcp\": %d}\n", (int)status);
}

static void print_arp(int status, const struct wire_arp *a) {
	const uint8_t *m = a->sender_mac.b;

	printf("{\"status\": %d, \"request\": %d, \"sender_ip\": %u, \"target_ip\": %u, "
	       "\"sender_mac\": \"%02x:%02x:%02x:%02x:%02x:%02x\"}\n",
		status, a->request, a->sender_ip, a->target_ip, m[0], m[1], m[2], m[3], m[4], m[5]);
}

static void parse_arp(char **text) {
	struct wire_arp a;
	size_t len = read_hex(text);

	print_arp((int)wire_parse_arp(frame, len, &a), &a);
}

static void parse_neighbour(char **text) {
	struct wire_arp a = {0};
	struct wire_info info;
	size_t len = read_hex(text);
	bool good = wire_parse(frame, len, &info) == WIRE_OK
		&& wire_parse_neighbour(frame, len, &info, &a);

	print_arp(good ? WIRE_OK : WIRE_BAD_HEADER, &a);
}

static void echo(char **text) {
	struct wire_info info;
	size_t len = read_hex(text);

	if (wire_parse(frame, len, &info) == WIRE_OK && wire_echo_reply(frame, len, &info))
		print_hex("reply", len);
	else
		printf("{\"reply\": null}\n");
}

static void set_ecn(char **text) {
	size_t len = read_hex(text);

	wire_set_ecn(frame, len, (uint8_t)read_number(text));
	print_hex("frame", len);
}

static void walk(char **text) {
	struct wire_walk w = wire_walk(frame, read_hex(text));

	printf("{\"ip\": %zu, \"l4\": %zu, \"end\": %zu, \"proto\": %u, \"fragment_proto\": %u, "
	       "\"ipv6\": %d, \"fragment\": %d, \"later\": %d}\n",
		w.ip, w.l4, w.end, w.proto, w.fragment_proto, w.ipv6, w.fragment, w.later);
}

static void corrupt(char **text) {
	size_t len = read_hex(text);

	printf("{\"bit\": %zu}\n", corrupt_bit(frame, len, read_number(text)));
}

static void clear(char **text) {
	size_t len = read_hex(text);

	clear_frame(frame, len, PKT_CLEARED);
	print_hex("frame", len);
}

static void read_segment(char **text, struct wire_addr *addr, struct seg *seg) {
	addr->ipv6 = read_number(text) != 0;
	addr->src_ip = read_number(text);
	addr->dst_ip = read_number(text);
	addr->src_port = (uint16_t)read_number(text);
	addr->dst_port = (uint16_t)read_number(text);
	seg->seq = read_number(text);
	seg->ack = read_number(text);
	seg->tsval = read_number(text);
	seg->tsecr = read_number(text);
	seg->len = (uint16_t)read_number(text);
	seg->window = (uint16_t)read_number(text);
	seg->flags = (uint8_t)read_number(text);
	seg->options = (uint8_t)read_number(text);
	seg->wscale = (uint8_t)read_number(text);
	seg->mss = (uint16_t)read_number(text);
	seg->sack_count = (uint8_t)read_number(text);
	for (uint32_t i = 0; i < SEG_SACK_MAX && i < seg->sack_count; i++) {
		seg->sack[i].start = read_number(text);
		seg->sack[i].end = read_number(text);
	}
}

static void write_frame(char **text, bool udp) {
	uint8_t tos = (uint8_t)read_number(text);
	uint16_t ip_id = (uint16_t)read_number(text);
	struct wire_addr addr = {.src_mac = mac_a, .dst_mac = mac_b};
	struct seg seg = {0};

	read_segment(text, &addr, &seg);
	memset(frame, 0, sizeof(frame));
	seg.options |= udp ? SEG_OPT_UDP : 0;
	if (udp)
		wire_write_udp(frame, &addr, tos, ip_id, &seg);
	else
		wire_write_tcp(frame, &addr, tos, ip_id, &seg);
	print_hex("frame", wire_tcp_frame(&seg, wire_ip_header(addr.ipv6)));
}

static void write_tcp(char **text) {
	write_frame(text, false);
}

static void write_udp(char **text) {
	write_frame(text, true);
}

static void solicit(char **text) {
	struct wire_arp arp = {.request = true, .sender_mac = mac_a};

	arp.sender_ip = read_number(text);
	arp.target_ip = read_number(text);
	wire_write_solicitation(frame, &arp);
	print_hex("frame", WIRE_NEIGHBOUR);
}

static void advertise(char **text) {
	read_hex(text);
	wire_advertise(frame, &mac_b);
	print_hex("frame", WIRE_NEIGHBOUR);
}

static void write_arp(char **text) {
	struct wire_arp arp = {.sender_mac = mac_a};

	arp.request = read_number(text) != 0;
	arp.sender_ip = read_number(text);
	arp.target_ip = read_number(text);
	print_hex("frame", wire_write_arp(frame, &arp, &mac_b));
}

int main(void) {
	static const struct {
		const char *name;
		void (*run)(char **text);
	} commands[] = {{"parse", parse}, {"arp", parse_arp}, {"echo", echo}, {"ecn", set_ecn},
		{"write", write_tcp}, {"write_udp", write_udp}, {"write_arp", write_arp},
		{"neighbour", parse_neighbour}, {"solicit", solicit}, {"advertise", advertise},
		{"walk", walk}, {"corrupt", corrupt}, {"clear", clear}};

	while (fgets(line, sizeof(line), stdin) != NULL) {
		char *text;
		const char *name = strtok_r(line, " \n", &text);
		size_t i = 0;
		while (i < sizeof(commands) / sizeof(commands[0])
			&& (name == NULL || strcmp(name, commands[i].name) != 0))
			i++;
		if (i == sizeof(commands) / sizeof(commands[0]))
			return EXIT_FAILURE;
		commands[i].run(&text);
		fflush(stdout);
	}
	return EXIT_SUCCESS;
}
