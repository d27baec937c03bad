// SPDX-License-Identifier: BSD-3-Clause
// What a device of a live test puts around its packets and takes off again, on its clsact qdisc:
// VLAN tags, GRE (RFC
// 2784) and IP in IP (RFC 2003). The kernels that the tests run on have neither 8021q nor ip_gre
// nor ipip; they do the same with skb_vlan_push and skb_adjust_room, whose packets of segmentation
// offload are those of such a device.
#include <linux/bpf.h>
// bpf.h has the types of these.
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <stddef.h>

#define VLAN_INNER 5
#define VLAN_OUTER 7

struct outer {
	struct iphdr ip;
	struct {
		__be16 flags, type;
	} gre; // not in IP in IP
};

static __always_inline __u32 outer_bytes(__u8 protocol) {
	return protocol == IPPROTO_GRE ? sizeof(struct outer) : sizeof(struct iphdr);
}

static __always_inline __u16 checksum(const struct iphdr *ip) {
	const __u16 *words = (const void *)ip;
	__u32 sum = 0;

#pragma unroll
	for (__u32 i = 0; i < sizeof(*ip) / sizeof(*words); i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16) ~((sum & 0xffff) + (sum >> 16));
}

// The outer header has the inner one's addresses: both ends of the link forward by them.
static __always_inline int encapsulate(struct __sk_buff *skb, __u8 protocol) {
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_ENCAP_L3_IPV4
		| (protocol == IPPROTO_GRE ? BPF_F_ADJ_ROOM_ENCAP_L4_GRE : 0);
	__u32 bytes = outer_bytes(protocol);
	struct outer outer = {.gre = {.type = bpf_htons(ETH_P_IP)}};

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, ETH_HLEN, &outer.ip, sizeof(outer.ip)) < 0)
		return TC_ACT_SHOT;
	outer.ip.ihl = sizeof(outer.ip) / 4;
	outer.ip.protocol = protocol;
	outer.ip.tot_len = bpf_htons((__u16)(bpf_ntohs(outer.ip.tot_len) + bytes));
	outer.ip.check = 0;
	outer.ip.check = checksum(&outer.ip);
	if (bpf_skb_adjust_room(skb, (__s32)bytes, BPF_ADJ_ROOM_MAC, flags) < 0)
		return TC_ACT_SHOT;
	return bpf_skb_store_bytes(skb, ETH_HLEN, &outer, bytes, BPF_F_INVALIDATE_HASH) < 0
		? TC_ACT_SHOT
		: TC_ACT_OK;
}

static __always_inline int decapsulate(struct __sk_buff *skb, __u8 protocol) {
	__u8 is = 0;

	if (skb->protocol != bpf_htons(ETH_P_IP)
		|| bpf_skb_load_bytes(
			   skb, ETH_HLEN + offsetof(struct iphdr, protocol), &is, sizeof(is))
			< 0
		|| is != protocol)
		return TC_ACT_OK;
	return bpf_skb_adjust_room(skb, -(__s32)outer_bytes(protocol), BPF_ADJ_ROOM_MAC,
		       BPF_F_ADJ_ROOM_FIXED_GSO)
			< 0
		? TC_ACT_SHOT
		: TC_ACT_OK;
}

SEC("gre/out")
int gre_out(struct __sk_buff *skb) {
	return encapsulate(skb, IPPROTO_GRE);
}

SEC("gre/in")
int gre_in(struct __sk_buff *skb) {
	return decapsulate(skb, IPPROTO_GRE);
}

SEC("ipip/out")
int ipip_out(struct __sk_buff *skb) {
	return encapsulate(skb, IPPROTO_IPIP);
}

SEC("ipip/in")
int ipip_in(struct __sk_buff *skb) {
	return decapsulate(skb, IPPROTO_IPIP);
}

SEC("vlan/out")
int vlan_out(struct __sk_buff *skb) {
	return bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), VLAN_INNER) < 0 ? TC_ACT_SHOT
									      : TC_ACT_OK;
}

SEC("vlan/in")
int vlan_in(struct __sk_buff *skb) {
	return bpf_skb_vlan_pop(skb) < 0 ? TC_ACT_SHOT : TC_ACT_OK;
}

SEC("qinq/out")
int qinq_out(struct __sk_buff *skb) {
	return vlan_out(skb) == TC_ACT_SHOT
			|| bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021AD), VLAN_OUTER) < 0
		? TC_ACT_SHOT
		: TC_ACT_OK;
}

SEC("qinq/in")
int qinq_in(struct __sk_buff *skb) {
	return vlan_in(skb) == TC_ACT_SHOT ? TC_ACT_SHOT : vlan_in(skb);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
