// SPDX-License-Identifier: BSD-3-Clause
// The memory of packets.
#include "common/live/port/frame.h"
#include "common/live/port/port.h"

#include <errno.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <string.h>

static uint16_t data_bytes(uint64_t mtu) {
	return (uint16_t)(RTE_PKTMBUF_HEADROOM + frame_room(mtu));
}

static uint32_t element_bytes(uint64_t mtu) {
	return (uint32_t)(sizeof(struct rte_mbuf) + sizeof(struct pkt)) + data_bytes(mtu);
}

uint64_t pool_bytes(uint64_t buffers, uint64_t mtu) {
	uint64_t object = rte_mempool_calc_obj_size(element_bytes(mtu), 0, NULL);

	// Plus one pointer per buffer in the ring of free ones, whose size is a power of two.
	return buffers * object + 2 * 8 * buffers;
}

// Zeroes the data, which also touches every page, so that the data path never takes a page fault.
static void pool_touch(struct rte_mempool *mp, void *arg, void *obj, unsigned int index) {
	struct rte_mbuf *m = obj;

	memset(m->buf_addr, 0, m->buf_len);
}

// As rte_pktmbuf_pool_create, except that without hugepages an object may cross a page boundary:
// otherwise there would be one object per page of 4 KiB, and no device reads them by physical
// address then.
static struct rte_mempool *pool_make(
	const char *name, unsigned int buffers, uint64_t mtu, bool shared) {
	struct rte_pktmbuf_pool_private private = {
		.mbuf_data_room_size = data_bytes(mtu), .mbuf_priv_size = sizeof(struct pkt)};
	unsigned int flags = rte_eal_has_hugepages() ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	struct rte_mempool *mp = rte_mempool_create_empty(name, buffers, element_bytes(mtu),
		PORT_POOL_CACHE, sizeof(private), (int)rte_socket_id(), flags);

	if (mp == NULL)
		return NULL;
	// A stack reuses the buffer that was freed last, which is still in the CPU's cache. The
	// default, a ring, would cycle through all of the pool's memory whenever a burst overflows
	// the lcore's mempool cache. With several threads the stack is lock-free.
	if (rte_mempool_set_ops_byname(
		    mp, shared || rte_lcore_count() > 1 ? "lf_stack" : "stack", NULL)
			< 0
		&& rte_mempool_set_ops_byname(mp, rte_mbuf_best_mempool_ops(), NULL) < 0) {
		rte_mempool_free(mp);
		return NULL;
	}
	rte_pktmbuf_pool_init(mp, &private);
	if (rte_mempool_populate_default(mp) < 0) {
		rte_mempool_free(mp);
		return NULL;
	}
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	rte_mempool_obj_iter(mp, pool_touch, NULL);
	return mp;
}

struct rte_mempool *pool_create(
	const char *name, uint64_t buffers, uint64_t mtu, bool shared, struct err *err) {
	struct rte_mempool *pool = NULL;

	if (buffers <= UINT32_MAX / 2)
		pool = pool_make(name, (unsigned int)buffers, mtu, shared);
	if (pool == NULL)
		err_set(err, -ENOMEM, "a pool of %llu packets (%.0f MB): %s",
			(unsigned long long)buffers, (double)pool_bytes(buffers, mtu) / 1e6,
			rte_strerror(rte_errno));
	return pool;
}
