// SPDX-License-Identifier: BSD-3-Clause
// The messages of a guest's card, as weir-sim hears and sends them.
#include "tools/sim/guest/protocol.h"
#include "tools/sim/guest/socket.h"
#include "tools/sim/guest/vhost.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define BIT(n) (UINT64_C(1) << (n))
#define FEATURES (BIT(32) /* VERSION_1 */ | BIT(5) /* MAC */ | BIT(30) /* protocol features */)
#define PROTOCOL                                                                                   \
	(BIT(3) /* REPLY_ACK */ | BIT(5) /* BACKEND_REQ */ | BIT(9) /* CONFIG */                   \
		| BIT(14) /* INBAND_NOTIFICATIONS */)

int vhost_open(struct vhost *v, const char *path, const uint8_t mac[6], struct err *err) {
	*v = (struct vhost){.listener = -1, .fd = -1, .call_fd = -1};
	memcpy(v->mac, mac, sizeof(v->mac));
	v->listener = socket_listen(path, err);
	return v->listener < 0 ? v->listener : 0;
}

bool vhost_accept(struct vhost *v) {
	v->fd = socket_accept(v->listener);
	return v->fd >= 0;
}

static int reply(struct vhost *v, const struct header *h, const void *bytes, uint32_t size) {
	struct {
		struct header head;
		uint8_t bytes[sizeof(struct configuration)];
	} m = {.head = {h->request, FLAG_VERSION | FLAG_REPLY, size}};

	memcpy(m.bytes, bytes, size);
	return socket_send(v->fd, &m, sizeof(m.head) + size, NULL, 0);
}

static int reply_u64(struct vhost *v, const struct header *h, uint64_t value) {
	return reply(v, h, &value, sizeof(value));
}

// The device's configuration: its MAC address, the rest zeros.
static int reply_config(struct vhost *v, const struct header *h, struct configuration *c) {
	uint32_t size = c->size > sizeof(c->bytes) ? sizeof(c->bytes) : c->size;

	memset(c->bytes, 0, sizeof(c->bytes));
	memcpy(c->bytes, v->mac, sizeof(v->mac));
	return reply(v, h, c, 12 + size);
}

static int serve(struct vhost *v, const struct header *h, union payload *p, int *fds) {
	int rc;

	switch ((enum request)h->request) {
	case GET_FEATURES:
		return reply_u64(v, h, FEATURES);
	case GET_PROTOCOL_FEATURES:
		return reply_u64(v, h, PROTOCOL);
	case GET_CONFIG:
		return reply_config(v, h, &p->config);
	case VRING_KICK:
		v->kicked = true;
		v->kick_queue = p->state.index;
		return 0;
	default:
		rc = vhost_set(v, h, p, fds);
		return rc < 0 || (h->flags & FLAG_NEED_REPLY) == 0 ? rc : reply_u64(v, h, 0);
	}
}

int vhost_serve(struct vhost *v) {
	union payload p = {0};
	struct header h;
	int fds[4], rc = socket_receive(v->fd, &h, sizeof(h), fds, 4);

	if (rc == 0 && h.size > sizeof(p))
		rc = -EPROTO;
	if (rc == 0 && h.size > 0)
		rc = socket_receive(v->fd, &p, h.size, NULL, 0);
	if (rc == 0)
		rc = serve(v, &h, &p, fds);
	for (int i = 0; i < 4; i++) { // any message may have brought some
		if (fds[i] >= 0)
			close(fds[i]);
	}
	return rc;
}

int vhost_kicked(struct vhost *v) {
	struct header h = {.request = VRING_KICK};

	v->kicked = false;
	return reply_u64(v, &h, 0);
}

int vhost_call(struct vhost *v, enum vhost_queue queue) {
	struct ring_message m = {
		{BACKEND_VRING_CALL, FLAG_VERSION | FLAG_NEED_REPLY, sizeof(m.state)}, {queue, 0}};

	return socket_send(v->call_fd, &m, sizeof(m), NULL, 0);
}

int vhost_called(struct vhost *v) {
	struct __attribute__((packed)) {
		struct header head;
		uint64_t status;
	} m;
	int rc = socket_receive(v->call_fd, &m, sizeof(m), NULL, 0);

	return rc < 0 ? rc : m.head.request == BACKEND_VRING_CALL && m.status == 0 ? 0 : -EPROTO;
}

void vhost_close(struct vhost *v) {
	vhost_unmap(v);
	for (int *fd = (int[]){v->fd, v->call_fd, v->listener}, i = 0; i < 3; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
	v->fd = v->call_fd = v->listener = -1;
}
