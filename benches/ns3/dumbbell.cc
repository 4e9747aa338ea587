// The dumbbell of `benches/src/dumbbell.rs` in ns-3: N TCP bulk flows over one drop-tail bottleneck.
// Prints one JSON line. Works with ns-3.37 (Debian's package) and ns-3.44.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <sys/resource.h>

using namespace ns3;

static uint64_t g_bneck = 0, g_hops = 0, g_drops = 0;
static void Bneck(Ptr<const Packet>) { ++g_bneck; }
static void Hop(Ptr<const Packet>) { ++g_hops; }
static void Drop(Ptr<const Packet>) { ++g_drops; }

/** Time that the processor has worked for this process: what a busy machine does not change. */
static double Cpu()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char** argv)
{
    uint32_t n = 10;
    double simSec = 10.0;
    std::string rate = "155Mbps", access = "1Gbps", sched = "ns3::MapScheduler", cc = "ns3::TcpNewReno";
    uint32_t qpkts = 200;
    bool countHops = false;
    uint32_t run = 1;
    CommandLine cmd;
    cmd.AddValue("n", "flows", n);
    cmd.AddValue("sim", "simulated seconds", simSec);
    cmd.AddValue("rate", "bottleneck rate", rate);
    cmd.AddValue("access", "access rate", access);
    cmd.AddValue("queue", "bottleneck queue, packets", qpkts);
    cmd.AddValue("sched", "scheduler TypeId", sched);
    cmd.AddValue("cc", "congestion control TypeId", cc);
    cmd.AddValue("hops", "hook a counter on every device", countHops);
    cmd.AddValue("run", "RNG run", run);
    cmd.Parse(argc, argv);

    RngSeedManager::SetRun(run);
    GlobalValue::Bind("SchedulerType", TypeIdValue(TypeId::LookupByName(sched)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448)); // +12 ts +20 +20 = 1500
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(cc)));

    auto t0 = std::chrono::steady_clock::now();
    NodeContainer routers, snd, rcv;
    routers.Create(2);
    snd.Create(n);
    rcv.Create(n);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.InstallAll();

    PointToPointHelper bn, ac;
    bn.SetDeviceAttribute("DataRate", StringValue(rate));
    bn.SetDeviceAttribute("Mtu", UintegerValue(1500));
    bn.SetChannelAttribute("Delay", StringValue("3ms"));
    bn.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(std::to_string(qpkts) + "p"));
    ac.SetDeviceAttribute("DataRate", StringValue(access));
    ac.SetDeviceAttribute("Mtu", UintegerValue(1500));
    ac.SetChannelAttribute("Delay", StringValue("1ms"));
    ac.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("10000p"));

    TrafficControlHelper tch;
    NetDeviceContainer all;
    Ipv4AddressHelper addr;
    auto wire = [&](PointToPointHelper& h, Ptr<Node> a, Ptr<Node> b, const std::string& net) {
        NetDeviceContainer d = h.Install(a, b);
        addr.SetBase(net.c_str(), "255.255.255.0");
        Ipv4InterfaceContainer i = addr.Assign(d);
        tch.Uninstall(d); // plain drop-tail device queue, no fq_codel above it
        all.Add(d);
        return std::make_pair(d, i);
    };
    auto b = wire(bn, routers.Get(0), routers.Get(1), "10.255.0.0");
    std::vector<Ipv4Address> sinks;
    for (uint32_t k = 0; k < n; ++k)
    {
        std::string o = std::to_string(k / 250) + "." + std::to_string(k % 250) + ".0";
        wire(ac, snd.Get(k), routers.Get(0), "10." + o);
        auto r = wire(ac, routers.Get(1), rcv.Get(k), "11." + o);
        sinks.push_back(r.second.GetAddress(1));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Ptr<UniformRandomVariable> jit = CreateObject<UniformRandomVariable>();
    ApplicationContainer sinkApps;
    for (uint32_t k = 0; k < n; ++k)
    {
        PacketSinkHelper sh("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        sinkApps.Add(sh.Install(rcv.Get(k)));
        BulkSendHelper bh("ns3::TcpSocketFactory", InetSocketAddress(sinks[k], 5000));
        bh.SetAttribute("MaxBytes", UintegerValue(0));
        bh.SetAttribute("SendSize", UintegerValue(1448));
        ApplicationContainer a = bh.Install(snd.Get(k));
        a.Start(Seconds(jit->GetValue(0.0, 0.010)));
    }
    b.first.Get(1)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&Bneck));
    if (countHops)
    {
        // a full device queue is "stopped": the packet dies in the traffic control layer (TcDrop), not in the queue
        routers.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", MakeCallback(&Drop));
        DynamicCast<PointToPointNetDevice>(b.first.Get(0))->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&Drop));
        for (uint32_t k = 0; k < all.GetN(); ++k)
            all.Get(k)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&Hop));
    }
    Simulator::Stop(Seconds(simSec));
    auto t1 = std::chrono::steady_clock::now();
    double c1 = Cpu();
    Simulator::Run();
    double cpu = Cpu() - c1;
    auto t2 = std::chrono::steady_clock::now();
    uint64_t ev = Simulator::GetEventCount();
    uint64_t rx = 0;
    double s1 = 0, s2 = 0;
    for (uint32_t k = 0; k < n; ++k)
    {
        double r = DynamicCast<PacketSink>(sinkApps.Get(k))->GetTotalRx();
        rx += (uint64_t)r;
        s1 += r;
        s2 += r * r;
    }
    rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    double setup = std::chrono::duration<double>(t1 - t0).count();
    double wall = std::chrono::duration<double>(t2 - t1).count();
    std::printf("{\"n\":%u,\"sched\":\"%s\",\"setup_s\":%.4f,\"wall_s\":%.4f,\"cpu_s\":%.4f,\"events\":%llu,"
                "\"bneck_pkts\":%llu,\"hops\":%llu,\"drops\":%llu,\"goodput_bit_per_s\":%.0f,\"jain\":%.4f,\"peak_kib\":%ld}\n",
                n, sched.c_str(), setup, wall, cpu, (unsigned long long)ev, (unsigned long long)g_bneck,
                (unsigned long long)g_hops, (unsigned long long)g_drops, rx * 8 / simSec, s1 * s1 / (n * s2), ru.ru_maxrss);
    Simulator::Destroy();
    return 0;
}
