// SPDX-License-Identifier: BSD-3-Clause
// weir-sender: thousands of TCP connections from one lcore or several, each under its own
// congestion control, and the receiving side of them or of another host's.
#include "sender/live/app.h"

#include "common/net/address.h"
#include "common/run/run_list.h"
#include "sender/cc/outcome.h"

#include <errno.h>

#define PKT_NS 1000 // an iteration's part per packet is far below

// Reads every section of the config that concerns the sender.
static int configure(struct live_app *live, struct err *err) {
	struct sender_app *app = sender_app(live);
	struct config *c = live->run.config;
	struct config_node *flows = config_get(config_root(c), "flows");
	int rc;

	if (flows == NULL)
		return config_err(config_root(c), -EINVAL, err,
			"flows is required: a list of groups such as - {count: 10, cc: copa}");
	if ((rc = hosts_none(config_root(c), err)) < 0)
		return rc;
	if ((rc = groups_init(&app->groups, flows, err)) < 0)
		return rc;
	if (groups_guest(&app->groups, flows) != NULL)
		return config_err(groups_guest(&app->groups, flows), -EINVAL, err,
			"stack: linux needs virtual time: run it without --live");
	if ((rc = groups_draw(&app->groups, flows, live->run.seed, live->run.duration_ns, err)) < 0)
		return rc;
	if ((rc = sender_config_init(&app->config, c, &app->groups, err)) < 0)
		return rc;
	network_read_empty(app->empty, config_root(c));
	if ((rc = config_unused(c, err)) < 0)
		return rc;
	run_warn_unreached(&live->run, groups_unreached(&app->groups, flows, live->run.duration_ns),
		"flows: the start of this group");
	run_warn_unsampled(&live->run, app->groups.flows);
	if (!groups_scheduled(&app->groups))
		live->without = 1u << TEL_STREAM_TRANSFERS;
	live->process = &app->config.process;
	return 0;
}

static void finish(struct live_app *live) {
	sender_finish(sender_app(live)->lcore);
}

static void progress(struct live_app *live, FILE *out) {
	const struct sender_app *app = sender_app(live);

	fprintf(out, ", \"utilisation\": null, \"flows_open\": %llu, \"tx_bytes\": %llu",
		(unsigned long long)sender_shown(app, SENDER_SHOWN_OPEN),
		(unsigned long long)sender_shown(app, SENDER_SHOWN_TX_BYTES));
}

// Both hosts of an lcore.
static int had_memory(const struct sender_lcore *s, struct err *err) {
	struct err why;
	int rc = host_had_memory(&s->sender, &why);

	if (rc == 0)
		rc = host_had_memory(&s->receiver, &why);
	return rc == 0 ? 0
		       : err_set(err, rc,
			       "%s; live.sender.rate and live.sender.pipe say how much is needed",
			       why.msg);
}

// What went wrong with our memory or the peer is an error.
static int outcome(struct live_app *live, struct facts *verdict, struct err *err) {
	const struct sender_app *app = sender_app(live);
	const struct live_port *port = sender_config_port(&app->config, LIVE_SENDER);
	bool unanswered = false;
	char ip[ADDRESS_IP_SIZE];
	int rc = app->capture != NULL ? pcap_writer_close(app->capture, err) : 0;

	run_interrupted(verdict);
	if (rc == 0)
		rc = cc_outcome(err);
	for (uint32_t k = 0; k < live->lcores; k++) {
		unanswered |= app->lcore[k].unanswered;
		if (rc == 0)
			rc = had_memory(&app->lcore[k], err);
	}
	if (!sender_hopeless(app->lcore))
		return rc;
	address_ip_text(port->peer, ip);
	if (unanswered)
		return err_set(err, -ETIMEDOUT, "%s:%u answers ARP but no SYN (%.3g s)", ip,
			(unsigned)port->peer_port, (double)app->config.answer_ns / 1e9);
	return err_set(err, -ECONNREFUSED, "%s:%u refused or gave up every flow", ip,
		(unsigned)port->peer_port);
}

static const struct live_stream streams[] = {
	{TEL_STREAM_CC, 2, "", LIVE_RING_SIZE},
	{TEL_STREAM_FLOWS, 1, "", LIVE_FLOW_RECORDS},
	{TEL_STREAM_INTERVAL, 1, "", LIVE_FLOW_RECORDS},
	{TEL_STREAM_EVENTS, 1, "-sender", LIVE_RING_SIZE},
	{TEL_STREAM_TRANSFERS, 1, "", LIVE_RING_SIZE},
	{.level = 0},
};

static void list(struct run_list *l) {
	groups_list(l);
	run_list_live(l);
	sender_config_list(l);
}

static const struct live_program program = {
	.name = "weir-sender",
	.self = "sender",
	.packets = "paced packets",
	.pkt_ns = PKT_NS,
	.ready_when_open = true,
	.lcore = &sender_lcore_ops,
	.streams = streams,
	.commands = sender_commands,
	.list = list,
	.kinds = "cc, source, base_rtt, flows, live, run",
	.configure = configure,
	.size = sender_size,
	.open = sender_open,
	.connect = sender_connect,
	.begin = sender_begin,
	.drain = sender_capture_drain,
	.finish = finish,
	.progress = progress,
	.outcome = outcome,
	.summary = sender_summary,
	.close = sender_close,
};

int main(int argc, char **argv) {
	static struct sender_app app;

	return live_main(&app.live, &program, argc, argv);
}
