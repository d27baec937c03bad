// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into a guest's kernel process, which is an ordinary program that is linked with the
// host's libc.
//
//	getrandom   returns bytes of a generator seeded by WEIR_GUEST_SEED: what the guest's kernel
//	            draws (initial sequence numbers, ports, timestamps' offsets) is the same in
//	            every run with the same seed
//	ptrace      writes the whole extended state where the kernel's buffer holds less of it: with
//	            AMX the host's is larger than what User Mode Linux expects, and PTRACE_SETREGSET
//	            would fail. What a stopped child has already is not written: each system call of
//	            a guest's program would do it, at a quarter of its cost
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
#define KNOWN_BYTES 4096 // more than User Mode Linux reads
#define CHILDREN 16

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

// The extended state of a child that has not run since it was read; pid 0: unknown.
static struct known {
	pid_t pid;
	size_t size;
	char state[KNOWN_BYTES];
} known[CHILDREN];

static int is_known(const struct known *k, pid_t pid, const struct iovec *asked) {
	return k->pid == pid && k->size <= asked->iov_len
		&& memcmp(k->state, asked->iov_base, k->size) == 0;
}

static void learn(struct known *k, pid_t pid, const struct iovec *read) {
	k->pid = read->iov_len <= sizeof(k->state) ? pid : 0;
	k->size = read->iov_len;
	if (k->pid != 0)
		memcpy(k->state, read->iov_base, k->size);
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
	struct known *k = &known[(unsigned int)pid % CHILDREN];
	int of_xstate = (uintptr_t)address == NT_X86_XSTATE;

	if (request == PTRACE_SETREGSET && of_xstate && is_known(k, pid, data))
		return 0;
	if (request != PTRACE_GETREGS && request != PTRACE_SETREGS)
		k->pid = 0; // it may change it, or let the child run
	if (request == PTRACE_SETREGSET && of_xstate)
		return set_xstate(host, pid, address, data);
	long rc = host((int)request, pid, address, data);
	if (request == PTRACE_GETREGSET && of_xstate && rc == 0)
		learn(k, pid, data);
	return rc;
}

static void end_with_parent(void) {
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

__attribute__((constructor)) static void begin(void) {
	pthread_atfork(NULL, NULL, end_with_parent);
}
