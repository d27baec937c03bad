// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into a guest's kernel process, which is an ordinary program that is linked with the
// host's libc.
//
//	getrandom   returns bytes of a generator seeded by WEIR_GUEST_SEED: what the guest's kernel
//	            draws (initial sequence numbers, ports, timestamps' offsets) is the same in
//	            every run with the same seed
//	ptrace      writes the whole extended state where the kernel's buffer holds less of it: with
//	            AMX the host's is larger than what User Mode Linux expects, and PTRACE_SETREGSET
//	            would fail
//	fork        children end with their parent: those that it traces while it starts would else
//	            stand still for ever
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define XSTATE_BYTES_MAX (64 * 1024)

// splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
static uint64_t draw(void) {
	static uint64_t state;
	static int seeded;
	const char *seed = getenv("WEIR_GUEST_SEED");
	uint64_t z;

	if (!seeded)
		state = seed == NULL ? 0 : strtoull(seed, NULL, 0);
	seeded = 1;
	z = state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

ssize_t getrandom(void *buffer, size_t size, unsigned int flags);
ssize_t getrandom(void *buffer, size_t size, unsigned int flags) {
	for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = draw();
		size_t left = size - at;

		memcpy((char *)buffer + at, &word, left < sizeof(word) ? left : sizeof(word));
	}
	return (ssize_t)size;
}

typedef long ptrace_fn(int request, pid_t pid, void *address, void *data);

// Puts what the caller has over what the host has.
static long set_xstate(ptrace_fn *host, pid_t pid, void *address, const struct iovec *asked) {
	static _Thread_local char state[XSTATE_BYTES_MAX];
	struct iovec whole = {.iov_base = state, .iov_len = sizeof(state)};

	if (host(PTRACE_GETREGSET, pid, address, &whole) < 0)
		return -1;
	if (asked->iov_len < whole.iov_len)
		memcpy(state, asked->iov_base, asked->iov_len);
	else
		whole = *asked;
	return host(PTRACE_SETREGSET, pid, address, &whole);
}

long ptrace(enum __ptrace_request request, ...) {
	static ptrace_fn *host;
	va_list ap;

	va_start(ap, request);
	pid_t pid = va_arg(ap, pid_t);
	void *address = va_arg(ap, void *), *data = va_arg(ap, void *);
	va_end(ap);
	if (host == NULL)
		*(void **)&host = dlsym(RTLD_NEXT, "ptrace");
	if (host == NULL) {
		errno = ENOSYS;
		return -1;
	}
	if (request == PTRACE_SETREGSET && (uintptr_t)address == NT_X86_XSTATE)
		return set_xstate(host, pid, address, data);
	return host((int)request, pid, address, data);
}

static void end_with_parent(void) {
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

__attribute__((constructor)) static void begin(void) {
	pthread_atfork(NULL, NULL, end_with_parent);
}
