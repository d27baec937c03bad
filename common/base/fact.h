// SPDX-License-Identifier: BSD-3-Clause
// What a reader of a run's figures must know beside them: how the run ended unless well, what fell
// behind in it, what was lost. A program compares the cause and the figures; the sentence is for
// people and is made here, once: nothing takes it apart again.
#pragma once
#include "common/base/json.h"

#define FACT_SENTENCE 512
#define FACT_MEMBERS 13
#define FACTS_MAX 64

struct fact_member {
	const char *name, *text; // text NULL: a number, unknown if it is not finite
	double number;
};

struct fact {
	const char *cause; // a name such as "interrupted"
	char sentence[FACT_SENTENCE];
	uint32_t members;
	struct fact_member member[FACT_MEMBERS];
};

// Those of a run, the most important one first.
struct facts {
	struct fact fact[FACTS_MAX];
	uint32_t count;
	uint64_t more; // that had no room
};

__attribute__((format(printf, 3, 4))) void fact_set(
	struct fact *f, const char *cause, const char *fmt, ...);
// Adds to the sentence.
__attribute__((format(printf, 2, 3))) void fact_more(struct fact *f, const char *fmt, ...);
// The text is not copied.
void fact_text(struct fact *f, const char *name, const char *text);
void fact_number(struct fact *f, const char *name, double number);
// Writes it as an object; `name` NULL: of an array.
void fact_json(const struct fact *f, struct json *j, const char *name);
// Writes a fact that is a number of frames or packets; `port` NULL: of none in particular. Nothing
// if there are none.
__attribute__((format(printf, 5, 6))) void fact_count(
	struct json *j, const char *cause, const char *port, uint64_t count, const char *fmt, ...);

// Adds one, or counts it if there is no room.
void facts_add(struct facts *all, const struct fact *f);
__attribute__((format(printf, 3, 4))) void facts_say(
	struct facts *all, const char *cause, const char *fmt, ...);
// Puts one before all others.
void facts_lead(struct facts *all, const char *cause, const char *sentence);
// The sentence of the first; "ok" if there is none.
const char *facts_verdict(const struct facts *all);
// Writes that as `verdict`, and all as `verdicts`.
void facts_json(const struct facts *all, struct json *j);
