// SPDX-License-Identifier: BSD-3-Clause
// Stations live in one table with open addressing: an address is in one of the FABRIC_PROBE slots
// after its hash, so a lookup is bounded, and a full neighbourhood gives up its oldest entry.
// Nothing is ever removed; an entry that is too old is skipped by lookups and reused first.
#include "fabric.h"

#include <errno.h>
#include <stdlib.h>

#define FABRIC_PROBE 16u
#define ADDRESSES_MAX (1u << 20)

static uint64_t mac_key(const uint8_t mac[6]) {
	uint64_t key = 0;

	for (int i = 0; i < 6; i++)
		key = key << 8 | mac[i];
	return key;
}

static bool key_is_group(uint64_t key) {
	return (key >> 40) & 1;
}

static bool key_is_reserved(uint64_t key) {
	return (key & ~UINT64_C(0xf)) == UINT64_C(0x0180c2000000);
}

// Multiplicative hash; the upper bits are the mixed ones.
static uint32_t key_hash(uint64_t key) {
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

int fabric_init(
	struct fabric *f, uint32_t ports, uint32_t addresses, uint64_t age_ns, struct err *err) {
	uint32_t size = 2 * FABRIC_PROBE;

	*f = (struct fabric){.ports = ports, .age_ns = age_ns};
	if (ports == 0 || ports > FABRIC_PORTS_MAX)
		return err_set(
			err, -EINVAL, "ports: %u is not in [1, %d]", ports, FABRIC_PORTS_MAX);
	if (addresses > ADDRESSES_MAX)
		return err_set(
			err, -EINVAL, "addresses: %u is more than %u", addresses, ADDRESSES_MAX);
	while (size < 2 * addresses)
		size *= 2;
	f->table = calloc(size, sizeof(*f->table));
	if (f->table == NULL)
		return err_set(err, -ENOMEM, "no memory for %u stations", size);
	f->mask = size - 1;
	f->up = ports == 64 ? UINT64_MAX : (UINT64_C(1) << ports) - 1;
	for (uint32_t i = 0; i < FABRIC_PORTS_MAX; i++)
		f->path[i] = FABRIC_NO_PATH;
	return 0;
}

void fabric_fini(struct fabric *f) {
	free(f->table);
	f->table = NULL;
}

static bool entry_valid(const struct fabric *f, const struct fabric_entry *e, uint64_t now_ns) {
	if (e->key == 0)
		return false;
	return e->seen_ns == NEVER_NS || time_since(now_ns, e->seen_ns) <= f->age_ns;
}

static struct fabric_entry *fabric_find(const struct fabric *f, uint64_t key) {
	uint32_t h = key_hash(key);

	for (uint32_t i = 0; i < FABRIC_PROBE; i++) {
		struct fabric_entry *e = &f->table[(h + i) & f->mask];

		if (e->key == key)
			return e;
		if (e->key == 0)
			return NULL;
	}
	return NULL;
}

// The slot for a new address: a free one, else the one seen longest ago; NULL: all are static.
static struct fabric_entry *fabric_slot(struct fabric *f, uint64_t key) {
	struct fabric_entry *oldest = NULL;
	uint32_t h = key_hash(key);

	for (uint32_t i = 0; i < FABRIC_PROBE; i++) {
		struct fabric_entry *e = &f->table[(h + i) & f->mask];

		if (e->key == 0)
			return e;
		if (e->seen_ns != NEVER_NS && (oldest == NULL || e->seen_ns < oldest->seen_ns))
			oldest = e;
	}
	return oldest;
}

int fabric_add_static(struct fabric *f, const uint8_t mac[6], uint32_t port, struct err *err) {
	uint64_t key = mac_key(mac);

	if (key == 0 || key_is_group(key))
		return err_set(err, -EINVAL, "not the address of one station");
	if (port >= f->ports)
		return err_set(err, -EINVAL, "there is no port %u", port);

	struct fabric_entry *e = fabric_find(f, key);

	if (e == NULL)
		e = fabric_slot(f, key);
	if (e == NULL)
		return err_set(err, -ENOSPC, "no room for another station");
	*e = (struct fabric_entry){.key = key, .seen_ns = NEVER_NS, .port = port};
	return 0;
}

void fabric_set_up(struct fabric *f, uint32_t port, bool up) {
	uint64_t bit = UINT64_C(1) << port;

	if (up) {
		f->up |= bit;
		return;
	}
	f->up &= ~bit;
	// Forgotten means older than any age; the slot stays in its probe sequence.
	for (uint32_t i = 0; i <= f->mask; i++) {
		struct fabric_entry *e = &f->table[i];

		if (e->key != 0 && e->port == port && e->seen_ns != NEVER_NS)
			e->port = FABRIC_PORTS_MAX;
	}
}

static void fabric_learn(struct fabric *f, uint64_t key, uint32_t port, uint64_t now_ns) {
	if (key == 0 || key_is_group(key))
		return;

	struct fabric_entry *e = fabric_find(f, key);

	if (e != NULL) {
		if (e->seen_ns == NEVER_NS)
			return;
		f->moved += e->port != port;
		e->port = port;
		e->seen_ns = now_ns;
		return;
	}
	e = fabric_slot(f, key);
	if (e == NULL)
		return;
	f->evicted += entry_valid(f, e, now_ns);
	f->learned++;
	*e = (struct fabric_entry){.key = key, .seen_ns = now_ns, .port = port};
}

struct fabric_decision fabric_relay(struct fabric *f, const uint8_t dst[6], const uint8_t src[6],
	uint32_t in_port, uint64_t now_ns) {
	struct fabric_decision d = {.action = FABRIC_DROP};
	uint64_t key = mac_key(dst);
	const struct fabric_entry *e = NULL;

	fabric_learn(f, mac_key(src), in_port, now_ns);
	if (key_is_reserved(key))
		return d;
	if (!key_is_group(key))
		e = fabric_find(f, key);
	if (e != NULL && entry_valid(f, e, now_ns) && e->port < f->ports) {
		if (e->port == in_port || !((f->up >> e->port) & 1))
			return d;
		d.action = FABRIC_FORWARD;
		d.port = e->port;
		d.ports = UINT64_C(1) << e->port;
		return d;
	}
	d.ports = f->up & ~(UINT64_C(1) << in_port);
	if (d.ports != 0)
		d.action = FABRIC_FLOOD;
	return d;
}
