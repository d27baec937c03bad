// SPDX-License-Identifier: BSD-3-Clause
// ns-3's part of `weir bench corescale`: the same dumbbell, its wall-clock time per data packet.
//
//	senders -- 25 Gbit/s -- left == 10 Gbit/s, 10 ms, 375 MB == right -- 25 Gbit/s -- receivers
//
// N BulkSend flows, spread over the pairs; NewReno, SACK, timestamps, delayed ACKs of 2,
// segments of 1448 bytes; no traffic control layer, no traces, no pcap.
//
// Filling 375 MB from ten segments a flow would take ns-3 minutes and lose half of them. So every
// flow begins in congestion avoidance (initial ssthresh = initial window) with its share of `fill`
// times buffer plus bandwidth-delay product as initial window; 0.97 of it is what the buffer takes
// without a loss while the bottleneck has sent next to nothing. The measurement begins after the
// handshakes and that burst, with the queue full and nothing lost: the state in which ns-3 is
// cheapest. A packet is 1502 bytes of the bottleneck's traffic.
//
// ns-3 searches a node's sockets and a router's interfaces one by one; --pairs balances the two.
//
// Prints one JSON object; a bad option is one sentence and exit status 2.
#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

using namespace ns3;

namespace {

constexpr uint32_t MSS = 1448; // payload
constexpr uint32_t FRAME = MSS + 32 + 20 + 2; // TCP with timestamps, IP, PPP
constexpr uint64_t BUFFER_BYTES = 375000000;
constexpr double RATE_BPS = 10e9;
constexpr double RTT_S = 0.02;

struct Options {
	uint32_t flows = 1000;
	uint32_t pairs = 10;
	uint32_t packets = 300000; // measured
	double warmup_s = 0.1;
	double fill = 0.97;
	double wall_s_max = 30; // ends the measurement early
};

double wall_s() {
	using namespace std::chrono;
	return duration<double>(steady_clock::now().time_since_epoch()).count();
}

double cpu_s() {
	timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

// Counts at one moment.
struct Mark {
	double wall_s, cpu_s, virtual_s;
	uint32_t out_bytes; // modulo 2^32, as ns-3 counts
	uint64_t dropped;
};

struct Bench {
	Options opt;
	Ptr<Queue<Packet>> queue;
	Mark begin, end;
	double queue_sum = 0;
	uint64_t queue_samples = 0;

	Mark mark() const {
		// A queue's "received" are those it took.
		const uint32_t out_bytes = queue->GetTotalReceivedBytes() - queue->GetNBytes();
		return {wall_s(), cpu_s(), Simulator::Now().GetSeconds(), out_bytes,
			queue->GetTotalDroppedPackets()};
	}
	void start() {
		begin = mark();
		look();
	}
	void look() {
		queue_sum += queue->GetNBytes();
		queue_samples++;
		end = mark();
		if (end.out_bytes - begin.out_bytes >= opt.packets * FRAME
			|| end.wall_s - begin.wall_s > opt.wall_s_max)
			Simulator::Stop();
		else
			Simulator::Schedule(MilliSeconds(1), &Bench::look, this);
	}
};

// The window each flow needs for all of them to fill the path and `fill` of its buffer.
uint32_t initial_window(const Options &opt) {
	const double pipe = RATE_BPS * RTT_S / 8 + BUFFER_BYTES;
	return std::max(2u, static_cast<uint32_t>(std::lround(opt.fill * pipe / FRAME / opt.flows)));
}

void set_defaults(const Options &opt) {
	const uint32_t window = initial_window(opt), buffer = 2 * window * MSS + (1 << 17);

	Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS));
	Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
	Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
	Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
	Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(window));
	Config::SetDefault(
		"ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(window * MSS));
}

NetDeviceContainer link(const Ptr<Node> &a, const Ptr<Node> &b, const char *rate,
	const char *delay, const std::string &limit) {
	PointToPointHelper p2p;
	p2p.SetDeviceAttribute("DataRate", StringValue(rate));
	p2p.SetChannelAttribute("Delay", StringValue(delay));
	p2p.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(limit));
	return p2p.Install(a, b);
}

// Addresses without the queue discipline that comes with them: the device's queue is the only one.
Ipv4InterfaceContainer assign(Ipv4AddressHelper &addresses, const NetDeviceContainer &devices) {
	Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
	TrafficControlHelper().Uninstall(devices);
	addresses.NewNetwork();
	return interfaces;
}

void build(Bench &bench) {
	const Options &opt = bench.opt;
	NodeContainer left, right, routers;
	Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
	Ptr<UniformRandomVariable> jitter = CreateObject<UniformRandomVariable>();
	ApplicationContainer sources;

	left.Create(opt.pairs);
	right.Create(opt.pairs);
	routers.Create(2);
	InternetStackHelper stack;
	stack.InstallAll();
	NetDeviceContainer bottleneck = link(routers.Get(0), routers.Get(1), "10Gbps", "10ms",
		std::to_string(BUFFER_BYTES) + "B");
	bench.queue = bottleneck.Get(0)->GetObject<PointToPointNetDevice>()->GetQueue();
	assign(addresses, bottleneck);
	for (uint32_t i = 0; i < opt.pairs; i++) {
		assign(addresses, link(left.Get(i), routers.Get(0), "25Gbps", "0ms", "1000000p"));
		Ipv4InterfaceContainer to = assign(addresses,
			link(right.Get(i), routers.Get(1), "25Gbps", "0ms", "1000000p"));

		PacketSinkHelper sink(
			"ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5001));
		sink.Install(right.Get(i));
		BulkSendHelper source(
			"ns3::TcpSocketFactory", InetSocketAddress(to.GetAddress(0), 5001));
		source.SetAttribute("SendSize", UintegerValue(MSS));
		for (uint32_t flow = i; flow < opt.flows; flow += opt.pairs)
			sources.Add(source.Install(left.Get(i)));
	}
	for (uint32_t i = 0; i < sources.GetN(); i++)
		sources.Get(i)->SetStartTime(Seconds(jitter->GetValue(0, RTT_S / 2)));
	Ipv4GlobalRoutingHelper::PopulateRoutingTables();
}

void print(const Bench &bench, double setup_s) {
	const double bytes = bench.end.out_bytes - bench.begin.out_bytes;
	const double bytes_queued = bench.queue_sum / static_cast<double>(bench.queue_samples);

	std::printf("{\"program\": \"ns-3\", \"flows\": %u, \"initial_window\": %u, "
		    "\"data_segs\": %.0f, \"wall_s\": %.6f, \"cpu_s\": %.6f, \"virtual_s\": %.6f, "
		    "\"dropped\": %llu, \"queue_fill\": %.4f, \"setup_wall_s\": %.3f}\n",
		bench.opt.flows, initial_window(bench.opt), bytes / FRAME,
		bench.end.wall_s - bench.begin.wall_s, bench.end.cpu_s - bench.begin.cpu_s,
		bench.end.virtual_s - bench.begin.virtual_s,
		static_cast<unsigned long long>(bench.end.dropped),
		bytes_queued / BUFFER_BYTES, setup_s);
}

void check(const char *name, uint32_t value, uint32_t max) {
	if (value >= 1 && value <= max)
		return;
	std::fprintf(stderr, "ns3_dumbbell: --%s=%u is not in [1, %u]\n", name, value, max);
	std::exit(2);
}

} // namespace

int main(int argc, char **argv) {
	Bench bench;
	CommandLine cmd(__FILE__);
	const double start_s = wall_s();

	cmd.AddValue("flows", "number of flows", bench.opt.flows);
	cmd.AddValue("pairs", "number of senders, and of receivers", bench.opt.pairs);
	cmd.AddValue("packets", "data packets to measure", bench.opt.packets);
	cmd.AddValue("warmup", "virtual seconds before the measurement", bench.opt.warmup_s);
	cmd.AddValue("fill", "share of the buffer the initial windows fill", bench.opt.fill);
	cmd.AddValue("wall-max", "wall-clock seconds to measure at most", bench.opt.wall_s_max);
	cmd.Parse(argc, argv);
	check("flows", bench.opt.flows, 100000);
	check("pairs", bench.opt.pairs, 1000);
	check("packets", bench.opt.packets, 2500000); // less than 2^32 bytes
	set_defaults(bench.opt);
	build(bench);
	Simulator::Schedule(Seconds(bench.opt.warmup_s), &Bench::start, &bench);
	Simulator::Run();
	print(bench, bench.begin.wall_s - start_s);
	Simulator::Destroy();
	return 0;
}
