// SPDX-License-Identifier: BSD-3-Clause
// --pcap: what the sender's port carries, nanosecond stamps, headers only (the payload is zeros).
#include "common/net/flow_addr.h"
#include "common/net/wire.h"
#include "tools/sim/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sim_pcap {
	pcap_t *pcap;
	pcap_dumper_t *dump;
	const char *path;
	uint16_t ip_id;
};

int sim_pcap_check(const char *path, bool force, struct err *err) {
	struct stat st;
	bool there = stat(path, &st) == 0;

	if (there && S_ISREG(st.st_mode) && !force)
		return err_set(err, -EINVAL,
			"--pcap %s: the file is there already: --force overwrites it", path);
	if (there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0; // a pipe: opening it may wait for its reader
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_set(
			err, -EINVAL, "--pcap %s: cannot be written: %s", path, strerror(errno));
	close(fd);
	if (!there)
		unlink(path);
	return 0;
}

struct sim_pcap *sim_pcap_open(const char *path, struct err *err) {
	struct sim_pcap *p = calloc(1, sizeof(*p));

	if (p != NULL)
		p->pcap = pcap_open_dead_with_tstamp_precision(
			DLT_EN10MB, WIRE_HEADER_MAX, PCAP_TSTAMP_PRECISION_NANO);
	if (p == NULL || p->pcap == NULL) {
		free(p);
		err_set(err, -ENOMEM, "--pcap: no memory");
		return NULL;
	}
	p->path = path;
	p->dump = pcap_dump_open(p->pcap, path);
	if (p->dump == NULL) {
		err_set(err, -EIO, "--pcap %s", pcap_geterr(p->pcap));
		pcap_close(p->pcap);
		free(p);
		return NULL;
	}
	return p;
}

void sim_pcap_write(struct sim_pcap *p, const struct pkt *pkt, const struct seg *seg, uint8_t ecn,
	uint64_t t_ns, bool to_receiver) {
	struct wire_addr a = {
		.src_mac = {{2, 0, 0, 0, 0, 1}},
		.dst_mac = {{2, 0, 0, 0, 0, 2}},
		.src_ip = flow_addr_ip(FLOW_ADDR_SENDER, pkt->flow_id),
		.dst_ip = FLOW_ADDR_RECEIVER,
		.src_port = flow_addr_port(pkt->flow_id),
		.dst_port = FLOW_ADDR_DST_PORT,
	};
	uint8_t buf[WIRE_HEADER_MAX] = {0};
	struct pcap_pkthdr h;

	if (!to_receiver)
		a = (struct wire_addr){
			a.dst_mac, a.src_mac, a.dst_ip, a.src_ip, a.dst_port, a.src_port};
	memset(&h, 0, sizeof(h));
	h.ts.tv_sec = (time_t)(t_ns / NS_PER_S);
	h.ts.tv_usec = (suseconds_t)(t_ns % NS_PER_S); // nanoseconds: the file says so
	h.caplen = (bpf_u_int32)wire_write_tcp(buf, &a, ecn, p->ip_id++, seg);
	h.len = (bpf_u_int32)wire_tcp_frame(seg);
	if (h.caplen + seg->len < h.len) // padded to the shortest frame
		h.caplen = h.len;
	pcap_dump((u_char *)p->dump, &h, buf);
}

int sim_pcap_close(struct sim_pcap *p, struct err *err) {
	int rc = 0;

	if (p == NULL)
		return 0;
	if (pcap_dump_flush(p->dump) != 0 || ferror(pcap_dump_file(p->dump)))
		rc = err_set(err, -EIO, "--pcap %s: %s", p->path, strerror(errno));
	pcap_dump_close(p->dump);
	pcap_close(p->pcap);
	free(p);
	return rc;
}
