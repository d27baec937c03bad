// SPDX-License-Identifier: BSD-3-Clause
// Seeding: xxh64 of the user's name under the run's seed, spread over the state by splitmix64, as
// xoshiro's authors advise. Four outputs in a row of splitmix64 differ, so the state is never all
// zero.
#include "common/base/rng.h"

#include <string.h>
#include <xxhash.h>

void rng_init(struct rng *r, uint64_t run_seed, const char *name) {
	uint64_t x = XXH64(name, strlen(name), run_seed);

	for (int i = 0; i < 4; i++)
		r->s[i] = rng_mix(x += RNG_GOLDEN);
}
