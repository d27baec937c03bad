// SPDX-License-Identifier: BSD-3-Clause
// Seeded generators: xoshiro256** (Blackman and Vigna), one per random stage.
//
// A generator's seed is hash(run seed, name of its user), so adding a user does not change the
// draws of others.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define RNG_GOLDEN                                                                                 \
	UINT64_C(0x9e3779b97f4a7c15) // splitmix64's step: 2^64 over the golden ratio, odd

struct rng {
	uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t run_seed, const char *name);

// The mixing function of splitmix64 (Steele, Lea and Flood 2014): inputs that differ in one bit
// give uncorrelated results.
static inline uint64_t rng_mix(uint64_t x) {
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static inline uint64_t rng_u64(struct rng *r) {
	uint64_t *s = r->s;
	uint64_t x = s[1] * 5;
	uint64_t result = ((x << 7) | (x >> 57)) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return result;
}

// Uniform in [0, 1), 53 bits.
static inline double rng_unit(struct rng *r) {
	return (double)(rng_u64(r) >> 11) * 0x1.0p-53;
}

// Threshold for rng_below(): true with probability p, exact at 0 and 1.
static inline uint64_t rng_threshold(double p) {
	return p >= 1.0 ? UINT64_MAX : (uint64_t)(p * 0x1.0p64);
}

static inline bool rng_below(struct rng *r, uint64_t threshold) {
	return threshold == UINT64_MAX || rng_u64(r) < threshold;
}

// The same for a number that was drawn before.
static inline bool rng_under(uint64_t draw, uint64_t threshold) {
	return draw < threshold || threshold == UINT64_MAX;
}
