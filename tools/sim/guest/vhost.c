// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/vhost.h"

#include "tools/sim/guest/protocol.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// A split virtqueue.
struct desc {
	uint64_t at;
	uint32_t len;
	uint16_t flags, next;
};
#define DESC_NEXT 1u
#define DESC_WRITE 2u
struct avail {
	uint16_t flags, index, ring[];
};
#define AVAIL_NO_INTERRUPT 1u
struct used {
	uint16_t flags, index;
	struct {
		uint32_t head, len;
	} ring[];
};

// Before each frame; ours has no flags, and holds one buffer.
struct net_header {
	uint8_t flags, gso;
	uint16_t header_len, gso_size, csum_start, csum_offset, buffers;
};
static_assert(sizeof(struct net_header) == 12, "as VERSION_1 has it");
static_assert(VHOST_REGIONS == REGIONS_MAX, "each has its place");

// Where guest-physical memory is mapped; NULL: nowhere.
static void *at_guest(struct vhost *v, uint64_t guest, uint64_t size) {
	for (uint32_t i = 0; i < VHOST_REGIONS; i++) {
		if (v->region[i].at != NULL && guest >= v->region[i].guest
			&& guest - v->region[i].guest <= v->region[i].size
			&& size <= v->region[i].size - (guest - v->region[i].guest))
			return v->region[i].at + v->region[i].skip + (guest - v->region[i].guest);
	}
	v->bad = true;
	return NULL;
}

// The driver sets the rings up anew then.
static void forget(struct vhost_ring *r) {
	r->desc = r->used = NULL;
	r->avail = NULL;
}

void vhost_unmap(struct vhost *v) {
	for (uint32_t i = 0; i < VHOST_QUEUES; i++)
		forget(&v->ring[i]);
	for (uint32_t i = 0; i < VHOST_REGIONS; i++) {
		if (v->region[i].at != NULL)
			munmap(v->region[i].at, v->region[i].size + v->region[i].skip);
		v->region[i].at = NULL;
	}
}

// Whether the file has all that is to be mapped: what lies beyond its end cannot be touched.
static bool file_has(int fd, uint64_t offset, uint64_t size) {
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && offset <= (uint64_t)st.st_size
		&& size <= (uint64_t)st.st_size - offset;
}

static int map(struct vhost *v, const struct regions *r, const int *fds) {
	vhost_unmap(v);
	for (uint32_t i = 0; i < VHOST_REGIONS && i < r->count; i++) {
		uint64_t page = r->region[i].offset & ~UINT64_C(4095);
		uint64_t skip = r->region[i].offset - page;
		void *at = MAP_FAILED;

		if (file_has(fds[i], r->region[i].offset, r->region[i].size))
			at = mmap(NULL, r->region[i].size + skip, PROT_READ | PROT_WRITE,
				MAP_SHARED, fds[i], (off_t)page);

		if (at == MAP_FAILED)
			return -EPROTO;
		v->region[i].at = at;
		v->region[i].guest = r->region[i].guest;
		v->region[i].size = r->region[i].size;
		v->region[i].skip = skip;
	}
	return 0;
}

static int set_addresses(struct vhost *v, const struct ring_address *a) {
	struct vhost_ring *r = &v->ring[a->index % VHOST_QUEUES];

	if (a->index >= VHOST_QUEUES || r->size == 0 || r->size > VHOST_RING_MAX
		|| (r->size & (r->size - 1)) != 0)
		return -EPROTO;
	r->desc = at_guest(v, a->desc, r->size * sizeof(struct desc));
	r->avail = at_guest(v, a->avail, sizeof(struct avail) + 2 * r->size);
	r->used = at_guest(v, a->used, sizeof(struct used) + 8 * (uint64_t)r->size);
	// Aligned as virtio 1.1, section 2.6, has it.
	v->bad |= (uintptr_t)r->desc % 16 != 0 || (uintptr_t)r->avail % 2 != 0
		|| (uintptr_t)r->used % 4 != 0;
	if (!v->bad)
		return 0;
	forget(r);
	return -EPROTO;
}

int vhost_set(struct vhost *v, const struct header *h, const union payload *p, int *fds) {
	struct vhost_ring *r = &v->ring[p->state.index % VHOST_QUEUES];

	switch ((enum request)h->request) {
	case SET_MEM_TABLE:
		return map(v, &p->regions, fds);
	case SET_VRING_NUM:
		r->size = p->state.num;
		forget(r);
		return 0;
	case SET_VRING_ADDR:
		return set_addresses(v, &p->address);
	case SET_VRING_BASE:
		r->taken = r->given = (uint16_t)p->state.num;
		return 0;
	case SET_VRING_ENABLE:
		r->enabled = p->state.num != 0;
		return 0;
	case SET_PROTOCOL_FEATURES:
		v->protocol = p->u64;
		return 0;
	case SET_BACKEND_REQ_FD:
		if (v->call_fd >= 0)
			close(v->call_fd);
		v->call_fd = fds[0];
		fds[0] = -1;
		return v->call_fd < 0 ? -EPROTO : 0;
	case SET_FEATURES:
	case SET_OWNER:
	case SET_VRING_KICK:
	case SET_VRING_CALL:
		return 0;
	case GET_FEATURES:
	case GET_PROTOCOL_FEATURES:
	case GET_CONFIG:
	case VRING_KICK:
		break;
	}
	return -EPROTO;
}

// The next chain of descriptors that the guest has made available; UINT32_MAX: none.
static uint32_t next_head(struct vhost *v, struct vhost_ring *r) {
	const struct avail *a = r->avail;

	if (a == NULL || __atomic_load_n(&a->index, __ATOMIC_ACQUIRE) == r->taken)
		return UINT32_MAX;
	uint32_t head = a->ring[r->taken % r->size];
	if (head >= r->size) {
		v->bad = true;
		return UINT32_MAX;
	}
	return head;
}

static void give(struct vhost_ring *r, uint16_t head, uint32_t len) {
	struct used *u = r->used;

	if (u == NULL) // the driver has taken the ring away since
		return;
	u->ring[r->given % r->size].head = head;
	u->ring[r->given % r->size].len = len;
	r->given++;
	__atomic_store_n(&u->index, r->given, __ATOMIC_RELEASE);
}

// Copies between a chain of buffers and `size` bytes, after `skip` bytes of it. Returns how many
// bytes it copied.
static uint32_t copy(struct vhost *v, const struct vhost_ring *r, uint32_t head, uint32_t skip,
	uint8_t *bytes, uint32_t size, bool to_guest) {
	const struct desc *table = r->desc;
	uint32_t done = 0;

	for (uint32_t i = head, n = 0; n < r->size && i < r->size; n++) {
		struct desc d = table[i];
		uint32_t over = skip < d.len ? skip : d.len;
		uint32_t part = d.len - over < size - done ? d.len - over : size - done;
		char *at = part == 0 ? NULL : at_guest(v, d.at + over, part);

		skip -= over;
		if (part > 0 && (at == NULL || to_guest != ((d.flags & DESC_WRITE) != 0)))
			return done;
		if (part > 0 && to_guest)
			memcpy(at, bytes + done, part);
		else if (part > 0)
			memcpy(bytes + done, at, part);
		done += part;
		if ((d.flags & DESC_NEXT) == 0)
			break;
		i = d.next;
	}
	return done;
}

uint32_t vhost_transmitted(struct vhost *v, uint8_t *frame, uint32_t room, uint16_t *head) {
	struct vhost_ring *r = &v->ring[VHOST_TX];
	uint32_t first = next_head(v, r);

	if (first == UINT32_MAX)
		return 0;
	r->taken++;
	*head = (uint16_t)first;
	return copy(v, r, first, sizeof(struct net_header), frame, room, false);
}

void vhost_done(struct vhost *v, uint16_t head) {
	give(&v->ring[VHOST_TX], head, 0);
}

bool vhost_receive(struct vhost *v, const uint8_t *frame, uint32_t size) {
	struct vhost_ring *r = &v->ring[VHOST_RX];
	uint8_t bytes[sizeof(struct net_header) + VHOST_FRAME_MAX];
	struct net_header h = {.buffers = 1};
	uint32_t head = next_head(v, r), whole = (uint32_t)sizeof(h) + size;

	if (head == UINT32_MAX || size > VHOST_FRAME_MAX)
		return false;
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), frame, size);
	r->taken++;
	if (copy(v, r, head, 0, bytes, whole, true) != whole)
		v->bad = true;
	give(r, (uint16_t)head, whole);
	return true;
}

bool vhost_wants_call(const struct vhost *v, enum vhost_queue queue) {
	const struct avail *a = v->ring[queue].avail;

	return a != NULL && (a->flags & AVAIL_NO_INTERRUPT) == 0;
}
