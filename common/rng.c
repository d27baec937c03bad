// SPDX-License-Identifier: BSD-3-Clause
// Seeding: xxh64 of the user's name under the run's seed, spread over the state by splitmix64
// (Steele, Lea and Flood 2014), as xoshiro's authors advise. Four outputs in a row of splitmix64
// differ, so the state is never all zero.
#include "rng.h"

#include <string.h>
#include <xxhash.h>

static uint64_t splitmix64(uint64_t *x) {
	uint64_t z = *x += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void rng_init(struct rng *r, uint64_t run_seed, const char *name) {
	uint64_t x = XXH64(name, strlen(name), run_seed);

	for (int i = 0; i < 4; i++)
		r->s[i] = splitmix64(&x);
}
