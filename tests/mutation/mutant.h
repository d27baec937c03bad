// SPDX-License-Identifier: BSD-3-Clause
// Which mistake a program makes: included first in each file that tests/mutate puts mistakes into.
//
// MUTANT is the number of the mistake that is made; without it none is. MUTANTS_REACHED is a file
// of one byte per number, which becomes 1 where the program comes past. No header of the system is
// included but this: files may have functions of such names as read and dup.
#pragma once
#include <stdbool.h>

static long mutant_chosen;
static unsigned char *mutant_reached;

__attribute__((constructor)) static void mutant_start(void) {
	extern char *getenv(const char *name);
	extern long atol(const char *text);
	extern int open(const char *path, int flags, ...);
	extern long lseek(int fd, long offset, int whence);
	extern void *mmap(void *at, unsigned long size, int protection, int flags, int fd, long);
	const char *chosen = getenv("MUTANT"), *reached = getenv("MUTANTS_REACHED");
	enum { READ_WRITE = 2, END = 2, PROTECTION = 3, SHARED = 1 };

	if (chosen)
		mutant_chosen = atol(chosen);
	if (!reached)
		return;
	int fd = open(reached, READ_WRITE);
	// Shared, since a test's parts are processes.
	mutant_reached = mmap(0, (unsigned long)lseek(fd, 0, END), PROTECTION, SHARED, fd, 0);
}

static inline bool mutant(long number) {
	if (mutant_reached)
		mutant_reached[number] = 1;
	return number == mutant_chosen;
}
