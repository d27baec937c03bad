// SPDX-License-Identifier: BSD-3-Clause
// Messages between a guest's kernel and weir-sim that more than one file knows.
//
//	calendar   Linux: include/uapi/linux/um_timetravel.h
//	card       QEMU: docs/interop/vhost-user.rst
#pragma once
#include <assert.h>
#include <stdint.h>

enum op { ACK, START, REQUEST, WAIT, GET, UPDATE, RUN, FREE_UNTIL, GET_TOD, BROADCAST };

struct calendar_message {
	uint32_t op, seq;
	uint64_t time_ns;
};
static_assert(sizeof(struct calendar_message) == 16, "as on the wire");

// Requests of the guest, by their numbers in the protocol.
enum request {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	SET_VRING_ENABLE = 18,
	SET_BACKEND_REQ_FD = 21,
	GET_CONFIG = 24,
	VRING_KICK = 35,
};
#define BACKEND_VRING_CALL 4 // our only request

#define FLAG_VERSION 1u
#define FLAG_REPLY 4u
#define FLAG_NEED_REPLY 8u

struct header {
	uint32_t request, flags, size;
};
struct ring_state {
	uint32_t index, num;
};
struct ring_message {
	struct header head;
	struct ring_state state;
};
static_assert(sizeof(struct ring_message) == 20, "as on the wire");
struct ring_address {
	uint32_t index, flags;
	uint64_t desc, used, avail, log;
};
#define REGIONS_MAX 2
struct regions {
	uint32_t count, pad;
	struct {
		uint64_t guest, size, user, offset;
	} region[REGIONS_MAX];
};
struct configuration {
	uint32_t offset, size, flags;
	uint8_t bytes[256];
};

union payload {
	uint64_t u64;
	struct ring_state state;
	struct ring_address address;
	struct regions regions;
	struct configuration config;
};
