// SPDX-License-Identifier: BSD-3-Clause
// htsim's part of `weir bench corescale`: the same dumbbell, its processor time per data packet.
//
//	senders -- queue, N Gbit/s, 37.5 MB for each -- 10 ms -- receivers -- 10 ms -- senders
//
// Compiled against the library of csg-htsim (libhtsim.a), as the user has built it. Its TCP is
// NewReno without SACK; receivers acknowledge every packet; a packet is 1538 bytes, as on the wire.
//
// A slow start into such a buffer loses half of a window, of which NewReno repairs one packet per
// round trip: minutes. So every flow begins in congestion avoidance (ssthresh = window) with its
// share of 0.97 of buffer and bandwidth-delay product, as with ns-3, and then goes on by itself, in
// the warm-up and after it: it grows, loses and repairs. Above 2.4 MB a window does not grow (its
// increase is an integer division), so that 100 flows lose nothing. Timers are looked at every
// 100 ms, all flows' at once; the programs that come with htsim do so every 10 ms: that costs more.
//
// Prints one JSON object; bad arguments are one sentence and exit status 2.
#include "config.h"
#include "eventlist.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

namespace {

constexpr int FRAME = 1538;
constexpr double FILL = 0.97;
constexpr double RTT_S = 0.02;
constexpr double BUFFER_BYTES_PER_GBIT = 37.5e6;

// A flow's packets are sent and acknowledged in one row, so that its round-trip times within a row
// are equal and htsim's timeout, at least 250 ms, is shorter than the next round trip of a queue
// that grows. RFC 6298 has a minimum of 1 s: that much is added.
class Source : public TcpSrc {
      public:
	using TcpSrc::TcpSrc;
	void rtx_timer_hook(simtime_picosec now, simtime_picosec period) override {
		if (now > _RFC2988_RTO_timeout + timeFromSec(1))
			TcpSrc::rtx_timer_hook(now, period);
	}
};

struct Flow {
	Source source;
	TcpSink sink;
	route_t out, back;

	explicit Flow(EventList &events) : source(nullptr, nullptr, events) {
	}
};

struct Options {
	unsigned flows;
	double gbit, warmup_s, measured_s;
};

// Counts at one moment.
struct Mark {
	double wall_s, cpu_s, virtual_s;
	uint64_t bytes;
	int dropped;
};

double clock_s(clockid_t clock) {
	timespec t;

	clock_gettime(clock, &t);
	return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

class Bench {
      public:
	explicit Bench(const Options &options)
	    : opt(options), buffer_bytes(opt.gbit * BUFFER_BYTES_PER_GBIT),
	      queue(speedFromGbps(opt.gbit), static_cast<mem_b>(buffer_bytes), events, nullptr),
	      there(timeFromMs(RTT_S * 500), events), back(timeFromMs(RTT_S * 500), events),
	      timers(timeFromMs(100), events) {
		for (unsigned i = 0; i < opt.flows; i++)
			start(i);
	}
	void run() {
		until(opt.warmup_s);
		const Mark begin = mark();
		queue_sum = 0;
		queue_samples = 0;
		until(opt.warmup_s + opt.measured_s);
		print(begin, mark());
	}

      private:
	// The window of each flow, for all of them to fill the path and its buffer.
	uint32_t window_bytes() const {
		const double pipe = opt.gbit * 1e9 * RTT_S / 8 + buffer_bytes;
		const double packets = std::floor(FILL * pipe / FRAME / opt.flows);

		return FRAME * static_cast<uint32_t>(std::fmax(packets, 2));
	}
	void start(unsigned i) {
		flows.emplace_back(new Flow(events));
		Flow &f = *flows.back();
		const double start_s = RTT_S / 2 * i / opt.flows;

		f.out.push_back(&queue);
		f.out.push_back(&there);
		f.out.push_back(&f.sink);
		f.back.push_back(&back);
		f.back.push_back(&f.source);
		f.source.set_cwnd(window_bytes());
		f.source.set_ssthresh(window_bytes());
		f.source.connect(f.out, f.back, f.sink, timeFromSec(start_s));
		timers.registerTcp(f.source);
	}
	void until(double end_s) {
		const simtime_picosec end = timeFromSec(end_s);

		for (simtime_picosec next = events.now(); events.now() < end;) {
			events.doNextEvent();
			if (events.now() < next)
				continue;
			next += timeFromMs(1);
			queue_sum += static_cast<double>(queue.queuesize());
			queue_samples++;
		}
	}
	Mark mark() const {
		uint64_t bytes = 0;

		for (const auto &f : flows)
			bytes += f->sink._packets;
		return {clock_s(CLOCK_MONOTONIC), clock_s(CLOCK_PROCESS_CPUTIME_ID),
			timeAsSec(events.now()), bytes, queue.num_drops()};
	}
	void print(const Mark &begin, const Mark &end) const {
		std::printf("{\"program\": \"htsim\", \"flows\": %u, \"data_segs\": %.0f, "
			    "\"wall_s\": %.6f, \"cpu_s\": %.6f, \"virtual_s\": %.6f, "
			    "\"dropped\": %d, \"queue_fill\": %.4f}\n",
			opt.flows, static_cast<double>(end.bytes - begin.bytes) / FRAME,
			end.wall_s - begin.wall_s, end.cpu_s - begin.cpu_s,
			end.virtual_s - begin.virtual_s, end.dropped - begin.dropped,
			queue_sum / static_cast<double>(queue_samples) / buffer_bytes);
	}

	const Options opt;
	const double buffer_bytes;
	EventList &events = EventList::getTheEventList();
	Queue queue;
	Pipe there, back;
	TcpRtxTimerScanner timers;
	std::vector<std::unique_ptr<Flow>> flows;
	double queue_sum = 0;
	uint64_t queue_samples = 0;
};

} // namespace

int main(int argc, char **argv) {
	Options opt{};

	if (argc == 5)
		opt = {static_cast<unsigned>(std::atoi(argv[1])), std::atof(argv[2]),
			std::atof(argv[3]), std::atof(argv[4])};
	if (opt.flows < 1 || !(opt.gbit > 0) || !(opt.measured_s > 0)) {
		std::fprintf(stderr, "usage: htsim_dumbbell FLOWS GBIT WARMUP_S MEASURED_S\n");
		return 2;
	}
	std::cout.setstate(std::ios::failbit); // htsim prints a line for each timeout
	Packet::set_packet_size(FRAME);
	Bench(opt).run();
	return 0;
}
