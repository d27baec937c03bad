// SPDX-License-Identifier: BSD-3-Clause
// The facts of a run: their order, their JSON, and what does not fit.
#include "test.h"

#include "common/base/fact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct facts all;

static char *written(void) {
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json j;

	json_begin(&j, out);
	facts_json(&all, &j);
	json_end(&j);
	fclose(out);
	return text;
}

TEST(a_run_that_went_well_has_none) {
	all = (struct facts){0};
	char *text = written();

	ck_assert_str_eq(facts_verdict(&all), "ok");
	ck_assert_str_eq(text, "{\n  \"verdict\": \"ok\",\n  \"verdicts\": []\n}\n");
	free(text);
}

// What is not known is null.
TEST(a_fact_has_its_cause_its_members_and_its_sentence) {
	struct fact f;

	all = (struct facts){0};
	fact_set(&f, "cut", "%d of", 3);
	fact_more(&f, " %d frames", 10);
	fact_text(&f, "port", "left");
	fact_number(&f, "count", 3);
	fact_number(&f, "of", (double)NAN);
	facts_add(&all, &f);
	char *text = written();

	ck_assert_str_eq(text,
		"{\n  \"verdict\": \"3 of 10 frames\",\n  \"verdicts\": [\n    {\n"
		"      \"cause\": \"cut\",\n      \"port\": \"left\",\n      \"count\": 3,\n"
		"      \"of\": null,\n      \"sentence\": \"3 of 10 frames\"\n    }\n  ]\n}\n");
	free(text);
}

// An error comes before what was found until then, also where no room is left.
TEST(those_without_room_are_counted) {
	all = (struct facts){0};
	for (int i = 0; i < FACTS_MAX + 5; i++)
		facts_say(&all, "port", "number %d", i);
	ck_assert_uint_eq(all.count, FACTS_MAX);
	ck_assert_uint_eq(all.more, 5);
	facts_lead(&all, "error", "the disk is gone: 100 % full");
	ck_assert_str_eq(facts_verdict(&all), "the disk is gone: 100 % full");
	ck_assert_str_eq(all.fact[FACTS_MAX - 1].sentence, "number 62");
	char *text = written();

	ck_assert_ptr_nonnull(strstr(text, "\"and 6 more, which weigh less\""));
	free(text);
}
