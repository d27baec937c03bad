// SPDX-License-Identifier: BSD-3-Clause
// A guest's network card as its kernel sees it: a virtio-net device over vhost-user (virtio 1.1,
// sections 2.6 and 5.1;
// QEMU: docs/interop/vhost-user.rst), one receive and one transmit queue, no offloads.
// Notifications are messages.
#pragma once
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define VHOST_QUEUES 2
enum vhost_queue { VHOST_RX, VHOST_TX };
#define VHOST_RING_MAX 256
#define VHOST_FRAME_MAX 1514 // without FCS

struct vhost_ring {
	uint32_t size;
	bool enabled;
	void *desc, *used;
	const void *avail; // mapped; NULL: not set up
	uint16_t taken; // of the available ring
	uint16_t given; // of the used ring
};

#define VHOST_REGIONS 2
struct vhost {
	int listener, fd, call_fd; // -1: closed
	uint8_t mac[6];
	uint64_t protocol; // features the guest has accepted
	struct vhost_ring ring[VHOST_QUEUES];
	struct {
		uint64_t guest, size, skip; // skip: from the mapping's start
		char *at; // NULL: none
	} region[VHOST_REGIONS];
	bool kicked; // the guest waits for vhost_kicked
	uint32_t kick_queue;
	bool bad; // a ring that no driver would make
};

int vhost_open(struct vhost *v, const char *path, const uint8_t mac[6], struct err *err);
bool vhost_accept(struct vhost *v);
// Reads one message and answers it; a kick sets `kicked` and is answered by vhost_kicked. 0 or a
// negative errno.
int vhost_serve(struct vhost *v);
int vhost_kicked(struct vhost *v);
// Does what a message of the driver sets: vhost_serve calls it, and page.c, which sees the same.
struct header;
union payload;
int vhost_set(struct vhost *v, const struct header *h, const union payload *p, int *fds);
void vhost_unmap(struct vhost *v);
// Takes the next frame that the guest transmits, without the virtio header, as much as there is
// room for. Its length, and its descriptor for vhost_done; 0: there is none.
uint32_t vhost_transmitted(struct vhost *v, uint8_t *frame, uint32_t room, uint16_t *head);
// Gives a transmitted frame's descriptor back.
void vhost_done(struct vhost *v, uint16_t head);
// Puts a frame into the receive ring. False: the guest has offered no buffer.
bool vhost_receive(struct vhost *v, const uint8_t *frame, uint32_t size);
// Whether the guest wants an interrupt for what was given back.
bool vhost_wants_call(const struct vhost *v, enum vhost_queue queue);
// Interrupts the guest; it answers on call_fd, which vhost_called reads.
int vhost_call(struct vhost *v, enum vhost_queue queue);
int vhost_called(struct vhost *v);
void vhost_close(struct vhost *v);
