// SPDX-License-Identifier: BSD-3-Clause
// Which mistake a program makes: included first in each file that tests/mutate puts mistakes into.
//
// MUTANT is the number of the mistake that is made; without it none is. MUTANTS_REACHED is a file
// of one byte per number, which becomes 1 where the program comes past.
#pragma once
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static long mutant_chosen;
static unsigned char *mutant_reached;

__attribute__((constructor)) static void mutant_start(void) {
	const char *chosen = getenv("MUTANT"), *reached = getenv("MUTANTS_REACHED");

	if (chosen != NULL)
		mutant_chosen = atol(chosen);
	if (reached == NULL)
		return;
	int fd = open(reached, O_RDWR);
	// Shared: a test's parts are processes.
	mutant_reached = mmap(
		NULL, (size_t)lseek(fd, 0, SEEK_END), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

static inline bool mutant(long number) {
	if (mutant_reached != NULL)
		mutant_reached[number] = 1;
	return number == mutant_chosen;
}
