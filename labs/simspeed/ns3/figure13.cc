// SPDX-License-Identifier: Apache-2.0
//
// The workload of the ABD paper's Figure 13 on ns-3: Video connections, and half as many Data connections,
// through one node's output of 20 Mbit/s with a drop-tail queue of 1.5 kB a connection. Prints one line of
// JSON: what was offered, sent and dropped, the events that ns-3 executed, and how long that took.
//
// ns-3 is under the GPL. This file is Outflow's own; those that run the lab link it with the ns-3 of their
// distribution, on their machine. Nothing of that is shipped.
//
// It is made so that ns-3 does as little as it can. Nothing is traced, logged or written, sources draw from
// the C++ library's generator, and there is an event a packet and no other at a source. What is below them:
//
//   --stack=none    ns-3's scheduler, packets and drop-tail queue, and one event for the end of a packet on
//                   the link. No node, device, channel or protocol: nothing can be simulated with less of ns-3.
//   --stack=device  a point-to-point device and its channel, without IP.
//   --stack=ip      a UDP socket a connection and IPv4 through that device, without queue discipline.
//
// Sizes are those of IP packets. A point-to-point device adds two bytes of PPP to each.

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t PACKET_BYTES = 576;
constexpr uint32_t IP_UDP_BYTES = 28;
constexpr uint32_t BUFFER_BYTES_PER_CONNECTION = 1500;
constexpr double FRAMES_PER_SECOND = 30;
constexpr double STAGGER_SECONDS = 1.0 / 3;
// What the paper gives as the mean of Video.
constexpr double DATA_BPS = 605e3;
constexpr uint16_t PORT = 5004;
const std::string GOP = "IBBPBBPBB";

using Random = std::mt19937_64;
using Send = std::function<void(uint32_t bytes)>;

double
Uniform(Random& random)
{
    return std::generate_canonical<double, 53>(random);
}

// An exponential distribution cut off at both ends, with the mean that it has after that.
class Truncated
{
  public:
    Truncated(double min, double max, double mean)
        : m_min(min), m_span(max - min)
    {
        double low = 1, high = m_span;
        for (int step = 0; step < 100; step++)
        {
            m_scale = (low + high) / 2;
            (m_scale - m_span / std::expm1(m_span / m_scale) < mean - min ? low : high) = m_scale;
        }
    }

    double Draw(Random& random) const
    {
        return m_min - m_scale * std::log1p(Uniform(random) * std::expm1(-m_span / m_scale));
    }

  private:
    double m_min, m_span, m_scale;
};

// What all sources share.
struct World
{
    Random random;
    uint64_t offered = 0;
    const Truncated predicted{512, 17000, 1900};
    const Truncated bidirectional{128, 17000, 500};
};

class Source
{
  public:
    Source(World& world, Send send)
        : m_world(world), m_send(std::move(send))
    {
    }

    virtual ~Source() = default;
    virtual void Start() = 0;

  protected:
    void Emit(uint32_t bytes)
    {
        m_world.offered++;
        m_send(bytes);
    }

    World& m_world;

  private:
    Send m_send;
};

// Each frame's packets are spread evenly over the time of a frame.
class Video : public Source
{
  public:
    using Source::Source;

    void Start() override
    {
        m_origin = Uniform(m_world.random) * STAGGER_SECONDS;
        Simulator::Schedule(Seconds(m_origin), &Video::Next, this);
    }

  private:
    void Next()
    {
        if (m_sent == m_packets)
        {
            BeginFrame();
        }
        uint32_t bytes = std::min(PACKET_BYTES, m_left);
        m_left -= bytes;
        m_sent++;
        double at = m_origin + (m_frame - 1 + double(m_sent) / m_packets) / FRAMES_PER_SECOND;
        Simulator::Schedule(Seconds(at) - Simulator::Now(), &Video::Next, this);
        Emit(bytes);
    }

    void BeginFrame()
    {
        Random& random = m_world.random;
        switch (GOP[m_frame++ % GOP.size()])
        {
        case 'I':
            m_left = std::lround(15000 + 2000 * Uniform(random));
            break;
        case 'P':
            m_left = std::lround(m_world.predicted.Draw(random));
            break;
        default:
            m_left = std::lround(m_world.bidirectional.Draw(random));
        }
        m_packets = (m_left + PACKET_BYTES - 1) / PACKET_BYTES;
        m_sent = 0;
    }

    double m_origin = 0;
    uint64_t m_frame = 0;
    uint32_t m_left = 0;
    uint32_t m_packets = 0;
    uint32_t m_sent = 0;
};

// Packets of one size at random intervals.
class Data : public Source
{
  public:
    using Source::Source;

    void Start() override
    {
        Simulator::Schedule(Interval(), &Data::Next, this);
    }

  private:
    Time Interval()
    {
        return Seconds(-std::log1p(-Uniform(m_world.random)) * PACKET_BYTES * 8 / DATA_BPS);
    }

    void Next()
    {
        Simulator::Schedule(Interval(), &Data::Next, this);
        Emit(PACKET_BYTES);
    }
};

// A queue and a rate: --stack=none.
class Link
{
  public:
    Link(Ptr<Queue<Packet>> queue, DataRate rate)
        : m_queue(queue), m_rate(rate)
    {
    }

    void Offer(Ptr<Packet> packet)
    {
        if (m_queue->Enqueue(packet) && !m_busy)
        {
            Transmit();
        }
    }

  private:
    void Transmit()
    {
        Ptr<Packet> packet = m_queue->Dequeue();
        m_busy = packet != nullptr;
        if (m_busy)
        {
            Simulator::Schedule(m_rate.CalculateBytesTxTime(packet->GetSize()), &Link::Transmit, this);
        }
    }

    Ptr<Queue<Packet>> m_queue;
    DataRate m_rate;
    bool m_busy = false;
};

// The node whose output everybody shares, and, but for --stack=none, the one behind it.
struct Topology
{
    std::string stack;
    Ptr<Queue<Packet>> queue;
    std::unique_ptr<Link> link;
    NodeContainer nodes;
    NetDeviceContainer devices;
    Ptr<Socket> sink;

    Topology(std::string name, DataRate rate, uint32_t bytes)
        : stack(std::move(name))
    {
        QueueSize size(QueueSizeUnit::BYTES, bytes);
        if (stack == "none")
        {
            queue = CreateObjectWithAttributes<DropTailQueue<Packet>>("MaxSize", QueueSizeValue(size));
            link = std::make_unique<Link>(queue, rate);
            return;
        }
        nodes.Create(2);
        PointToPointHelper helper;
        helper.SetDeviceAttribute("DataRate", DataRateValue(rate));
        helper.SetChannelAttribute("Delay", TimeValue(Seconds(0)));
        helper.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(size));
        // Then no queue discipline stands before the device.
        helper.DisableFlowControl();
        devices = helper.Install(nodes);
        queue = DynamicCast<PointToPointNetDevice>(devices.Get(0))->GetQueue();
        if (stack == "ip")
        {
            InstallIp();
        }
        else
        {
            devices.Get(1)->SetReceiveCallback(MakeCallback(&Topology::Drain));
        }
    }

    // How one more connection sends.
    Send Connect()
    {
        if (stack == "none")
        {
            return [link = link.get()](uint32_t bytes) { link->Offer(Create<Packet>(bytes)); };
        }
        if (stack == "device")
        {
            Ptr<NetDevice> device = devices.Get(0);
            Address to = devices.Get(1)->GetAddress();
            return [device, to](uint32_t bytes) { device->Send(Create<Packet>(bytes), to, 0x0800); };
        }
        Ptr<Socket> socket = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
        socket->Bind();
        socket->Connect(InetSocketAddress(Ipv4Address("10.0.0.2"), PORT));
        socket->ShutdownRecv();
        return [socket](uint32_t bytes) {
            socket->Send(Create<Packet>(std::max(bytes, IP_UDP_BYTES) - IP_UDP_BYTES));
        };
    }

  private:
    void InstallIp()
    {
        InternetStackHelper internet;
        internet.SetIpv6StackInstall(false);
        internet.SetRoutingHelper(Ipv4StaticRoutingHelper());
        internet.Install(nodes);
        Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
        sink = Socket::CreateSocket(nodes.Get(1), UdpSocketFactory::GetTypeId());
        sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        sink->SetRecvCallback(MakeCallback(&Topology::DrainSocket));
    }

    static bool Drain(Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&)
    {
        return true;
    }

    static void DrainSocket(Ptr<Socket> socket)
    {
        while (socket->Recv())
        {
        }
    }
};

double
UserSeconds()
{
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6;
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t video = 20;
    uint64_t rate = 20000000;
    double seconds = 35;
    uint64_t seed = 1;
    std::string stack = "none";
    // The fastest of ns-3's for this, at any number of connections.
    std::string scheduler = "ns3::PriorityQueueScheduler";
    CommandLine arguments;
    arguments.AddValue("video", "Video connections; half as many Data connections come along", video);
    arguments.AddValue("rate", "of the output, in bits a second", rate);
    arguments.AddValue("seconds", "of virtual time", seconds);
    arguments.AddValue("seed", "of sizes and times", seed);
    arguments.AddValue("stack", "none, device or ip", stack);
    arguments.AddValue("scheduler", "the type of ns-3's event queue", scheduler);
    arguments.Parse(argc, argv);
    if (stack != "none" && stack != "device" && stack != "ip")
    {
        std::fprintf(stderr, "--stack is none, device or ip, not %s\n", stack.c_str());
        return 2;
    }
    ObjectFactory factory(scheduler);
    Simulator::SetScheduler(factory);

    World world;
    world.random.seed(seed);
    uint32_t data = video / 2;
    Topology topology(stack, DataRate(rate), (video + data) * BUFFER_BYTES_PER_CONNECTION);
    std::vector<std::unique_ptr<Source>> sources;
    for (uint32_t i = 0; i < video; i++)
    {
        sources.push_back(std::make_unique<Video>(world, topology.Connect()));
    }
    for (uint32_t i = 0; i < data; i++)
    {
        sources.push_back(std::make_unique<Data>(world, topology.Connect()));
    }
    for (auto& source : sources)
    {
        source->Start();
    }

    Simulator::Stop(Seconds(seconds));
    auto begun = std::chrono::steady_clock::now();
    double userBegun = UserSeconds();
    Simulator::Run();
    double user = UserSeconds() - userBegun;
    std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;
    auto& queue = topology.queue;
    std::printf("{\"stack\":\"%s\",\"video\":%u,\"data\":%u,\"rate_bps\":%llu,\"seconds\":%g,\"seed\":%llu,"
                "\"offered\":%llu,\"sent\":%u,\"dropped\":%u,\"events\":%llu,\"wall_s\":%.6f,\"user_s\":%.6f}\n",
                stack.c_str(), video, data, (unsigned long long)rate, seconds, (unsigned long long)seed,
                (unsigned long long)world.offered, queue->GetTotalReceivedPackets() - queue->GetNPackets(),
                queue->GetTotalDroppedPackets(), (unsigned long long)Simulator::GetEventCount(), wall.count(),
                user);
    Simulator::Destroy();
    return 0;
}
