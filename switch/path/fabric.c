// SPDX-License-Identifier: BSD-3-Clause
// Stations live in one table with open addressing: an address is in one of the FABRIC_PROBE slots
// after its hash, so a lookup is bounded, and a full neighbourhood gives up its oldest entry.
// Nothing is ever removed; an entry that is too old is skipped by lookups and reused first.
#include "switch/path/fabric.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FABRIC_PROBE 16u
#define ADDRESSES_MAX (1u << 20)
#define SEEN_NS NS_PER_MS // seen again so soon is not written down: other lcores read that line

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

static uint64_t load(const _Atomic uint64_t *word) {
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic uint64_t *word, uint64_t value) {
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t station_of(uint64_t key, uint32_t port) {
	return (uint64_t)port << 48 | key;
}

static uint64_t station_key(uint64_t station) {
	return station & ((UINT64_C(1) << 48) - 1);
}

static uint32_t station_port(uint64_t station) {
	return (uint32_t)(station >> 48);
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
	return 0;
}

void fabric_fini(struct fabric *f) {
	free(f->table);
	f->table = NULL;
}

void fabric_join(struct fabric *f, const struct fabric *other) {
	assert(f->peers < FABRIC_PEERS_MAX && other->mask == f->mask);
	f->peer[f->peers++] = other;
}

static bool seen_lately(const struct fabric *f, uint64_t seen_ns, uint64_t now_ns) {
	return seen_ns == NEVER_NS || time_since(now_ns, seen_ns) <= f->age_ns;
}

static struct fabric_entry *fabric_find(const struct fabric *f, uint64_t key) {
	uint32_t h = key_hash(key);

	for (uint32_t i = 0; i < FABRIC_PROBE; i++) {
		struct fabric_entry *e = &f->table[(h + i) & f->mask];
		uint64_t station = load(&e->station);

		if (station_key(station) == key)
			return e;
		if (station == 0)
			return NULL;
	}
	return NULL;
}

// The slot for a new address: a free one, else the one seen longest ago; NULL: all are static.
static struct fabric_entry *fabric_slot(struct fabric *f, uint64_t key) {
	struct fabric_entry *oldest = NULL;
	uint64_t oldest_ns = NEVER_NS;
	uint32_t h = key_hash(key);

	for (uint32_t i = 0; i < FABRIC_PROBE; i++) {
		struct fabric_entry *e = &f->table[(h + i) & f->mask];

		if (load(&e->station) == 0)
			return e;
		if (load(&e->seen_ns) < oldest_ns) {
			oldest = e;
			oldest_ns = load(&e->seen_ns);
		}
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
	store(&e->station, station_of(key, port));
	store(&e->seen_ns, NEVER_NS);
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

		uint64_t station = load(&e->station);

		if (station != 0 && station_port(station) == port && load(&e->seen_ns) != NEVER_NS)
			store(&e->station, station_of(station_key(station), FABRIC_PORTS_MAX));
	}
}

static void fabric_learn(struct fabric *f, uint64_t key, uint32_t port, uint64_t now_ns) {
	if (key == 0 || key_is_group(key))
		return;

	struct fabric_entry *e = fabric_find(f, key);
	uint64_t station = station_of(key, port);

	if (e != NULL) {
		uint64_t seen_ns = load(&e->seen_ns);

		if (seen_ns == NEVER_NS
			|| (load(&e->station) == station && time_since(now_ns, seen_ns) < SEEN_NS))
			return;
		f->moved += load(&e->station) != station;
	} else {
		e = fabric_slot(f, key);
		if (e == NULL)
			return;
		f->evicted += load(&e->station) != 0 && seen_lately(f, load(&e->seen_ns), now_ns);
		f->learned++;
	}
	store(&e->station, station);
	store(&e->seen_ns, now_ns);
}

// The port at which any of the lcores saw a station last; FABRIC_PORTS_MAX: it is not known. An
// entry that is being written may give the port of a moment before, never that of another station.
static uint32_t fabric_where(const struct fabric *f, uint64_t key, uint64_t now_ns) {
	const struct fabric *table = f;
	uint32_t port = FABRIC_PORTS_MAX;
	uint64_t last_ns = 0;

	for (uint32_t i = 0;; i++) {
		const struct fabric_entry *e = fabric_find(table, key);
		uint64_t seen_ns = e != NULL ? load(&e->seen_ns) : 0;
		uint64_t station = e != NULL ? load(&e->station) : 0;

		if (station != 0 && station_key(station) == key && seen_ns >= last_ns
			&& seen_lately(f, seen_ns, now_ns)) {
			port = station_port(station);
			last_ns = seen_ns;
		}
		if (i == f->peers)
			return port;
		table = f->peer[i];
	}
}

struct fabric_decision fabric_relay(struct fabric *f, const uint8_t dst[6], const uint8_t src[6],
	uint32_t in_port, uint64_t now_ns) {
	struct fabric_decision d = {.action = FABRIC_DROP};
	uint64_t key = mac_key(dst);
	uint32_t port = FABRIC_PORTS_MAX;

	fabric_learn(f, mac_key(src), in_port, now_ns);
	if (key_is_reserved(key))
		return d;
	if (!key_is_group(key))
		port = fabric_where(f, key, now_ns);
	if (port < f->ports) {
		if (port == in_port || !((f->up >> port) & 1))
			return d;
		d.action = FABRIC_FORWARD;
		d.port = port;
		d.ports = UINT64_C(1) << port;
		return d;
	}
	d.ports = f->up & ~(UINT64_C(1) << in_port);
	if (d.ports != 0)
		d.action = FABRIC_FLOOD;
	return d;
}
