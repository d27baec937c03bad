// SPDX-License-Identifier: BSD-3-Clause
// Local stream sockets with a process that may hang or die: every wait ends.
//
// Errors: -EPIPE: the peer has closed its end; -ETIMEDOUT: it has said nothing for SOCKET_WAIT_S of
// wall-clock time;
// -EINTR: run_stop.
#pragma once
#include "common/base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Far more than a guest ever needs between two messages, on a busy machine too.
#define SOCKET_WAIT_S 60

// The process at the other end, for the waits of this thread: its end is -EPIPE, even if a child of
// it still has the sockets. 0: none.
void socket_watch(pid_t pid);
// Seconds to wait, from WEIR_GUEST_WATCHDOG_S, or SOCKET_WAIT_S.
int socket_wait_s(void);
// Listens at a path of 107 characters at most. The descriptor, or a negative errno and a sentence.
int socket_listen(const char *path, struct err *err);
// The next connection, which is there; -1: none.
int socket_accept(int listener);
// Sends all, with descriptors beside it. 0 or a negative errno.
int socket_send(int fd, const void *bytes, size_t size, const int *fds, int nb_fds);
// Receives exactly that much. Descriptors that come with it are put into fds, the others' places
// are -1.
int socket_receive(int fd, void *bytes, size_t size, int *fds, int nb_fds);
// The same without taking it.
int socket_peek(int fd, void *bytes, size_t size);
// Waits until one of them can be read: its bit is set in the result. Those below 0 are passed over.
int socket_wait(const int *fds, int nb_fds);
// Waits until a word that the other process shares is no longer `value`, as long as for a socket.
// 0, or as above.
int socket_wait_word(const uint32_t *word, uint32_t value);
// The other process looks at it again.
void socket_wake_word(uint32_t *word);
