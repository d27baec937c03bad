// SPDX-License-Identifier: BSD-3-Clause
// The list of sources.
#include "common/base/draw.h"
#include "sender/source/source.h"

extern const struct source_ops source_bulk, source_size, source_poisson, source_closed,
	source_request, source_on_off, source_udp, source_probe, source_video, source_media;

const struct source_ops *const source_all[] = {
	&source_bulk,
	&source_size,
	&source_poisson,
	&source_closed,
	&source_request,
	&source_on_off,
	&source_udp,
	&source_probe,
	&source_video,
	&source_media,
	NULL,
};

uint64_t source_exponential_ns(struct rng *rng, double mean_ns) {
	return (uint64_t)(mean_ns * quantile_exponential(rng_unit(rng)) + 0.5);
}
