// The path of crates/sim/examples/three_hop_trace.rs, and the load of crates/sim/examples/packet_hops.rs, in ns-3.
//
//   three_hop trace          one line per packet of the through flow: number, sent, arrived (- if dropped), nanoseconds
//   three_hop load SECONDS   packet-hops served and the seconds of real time that it took
//   three_hop ip SECONDS     the same load from UDP sockets over ns-3's IP stack, as its users have it
//
// But for the last, bare point-to-point devices, forwarded by hand: no IP stack, no traffic control, which is the least that ns-3
// can be asked to do. The device's PPP header has two octets, so that every packet is made two octets shorter than on the wire. The device holds
// the packet being sent outside its queue, so that 19 places and that one are 20.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

// Protocol numbers that the PPP header can carry; they tell the two kinds of packets apart.
const uint16_t THROUGH = 0x0800;
const uint16_t CROSS = 0x86DD;
const uint32_t PPP_OCTETS = 2;

struct Hop {
  const char* rate;
  int delay_ms;
};

NodeContainer nodes;
std::vector<Ptr<NetDevice>> out;  // the sending device of each hop
std::vector<int64_t> arrived;
uint64_t hops_served = 0;
bool counting = false;

Ptr<Packet> Numbered(uint64_t number, uint32_t wire_octets) {
  std::vector<uint8_t> content(wire_octets - PPP_OCTETS, 0);
  std::memcpy(content.data(), &number, sizeof number);
  return Create<Packet>(content.data(), content.size());
}

void Send(size_t hop, Ptr<Packet> packet, uint16_t protocol) {
  out[hop]->Send(packet, out[hop]->GetBroadcast(), protocol);
}

bool Receive(size_t hop, Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t protocol, const Address&) {
  ++hops_served;
  if (protocol == CROSS) {
    return true;
  }
  if (hop + 1 < out.size()) {
    Send(hop + 1, packet->Copy(), THROUGH);
  } else if (!counting) {
    uint64_t number = 0;
    packet->CopyData(reinterpret_cast<uint8_t*>(&number), sizeof number);
    arrived.at(number) = Simulator::Now().GetNanoSeconds();
  }
  return true;
}

template <size_t HOP>
bool ReceiveAt(Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t protocol, const Address& from) {
  return Receive(HOP, device, packet, protocol, from);
}

void Build(const std::vector<Hop>& hops, const std::string& queue) {
  nodes.Create(hops.size() + 1);
  for (size_t hop = 0; hop < hops.size(); ++hop) {
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(hops[hop].rate));
    link.SetChannelAttribute("Delay", TimeValue(MilliSeconds(hops[hop].delay_ms)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(queue));
    NetDeviceContainer ends = link.Install(nodes.Get(hop), nodes.Get(hop + 1));
    out.push_back(ends.Get(0));
  }
}

// Puts our forwarding in the place of the node's own.
void ForwardByHand() {
  nodes.Get(1)->GetDevice(0)->SetReceiveCallback(MakeCallback(&ReceiveAt<0>));
  nodes.Get(2)->GetDevice(0)->SetReceiveCallback(MakeCallback(&ReceiveAt<1>));
  nodes.Get(3)->GetDevice(0)->SetReceiveCallback(MakeCallback(&ReceiveAt<2>));
}

int Trace() {
  const uint64_t packets = 200;
  const uint64_t gap_ns = 617000;
  const uint64_t cross_gap_ns = 4000000;
  Build({{"100Mbps", 1}, {"10Mbps", 5}, {"50Mbps", 2}}, "19p");
  ForwardByHand();
  arrived.assign(packets, -1);
  for (uint64_t k = 0; k < packets; ++k) {
    Simulator::Schedule(NanoSeconds(k * gap_ns), &Send, 0, Numbered(k, 1500), THROUGH);
  }
  for (uint64_t at = 0; at < packets * gap_ns; at += cross_gap_ns) {
    Simulator::Schedule(NanoSeconds(at), &Send, 1, Numbered(0, 1000), CROSS);
  }
  Simulator::Run();
  for (uint64_t k = 0; k < packets; ++k) {
    std::cout << k << ' ' << k * gap_ns << ' ' << (arrived[k] < 0 ? "-" : std::to_string(arrived[k])) << '\n';
  }
  return 0;
}

Ptr<ExponentialRandomVariable> gaps;

void CrossSource(size_t hop) {
  Send(hop, Create<Packet>(1500 - PPP_OCTETS), CROSS);
  Simulator::Schedule(NanoSeconds(static_cast<uint64_t>(gaps->GetValue() + 0.5)), &CrossSource, hop);
}

void ProbeSource() {
  Send(0, Create<Packet>(1500 - PPP_OCTETS), THROUGH);
  Simulator::Schedule(MicroSeconds(100), &ProbeSource);
}

int Timed(double seconds) {
  Simulator::Stop(Seconds(seconds));
  const auto begin = std::chrono::steady_clock::now();
  Simulator::Run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << hops_served << ' ' << took.count() << '\n';
  return 0;
}

void BuildLoaded() {
  Build({{"10Gbps", 1}, {"10Gbps", 1}, {"10Gbps", 1}}, "1000000p");
  gaps = CreateObject<ExponentialRandomVariable>();
  // 1500 octets at 8 Gbit/s.
  gaps->SetAttribute("Mean", DoubleValue(1500.0));
}

int Load(double seconds) {
  counting = true;
  BuildLoaded();
  ForwardByHand();
  for (size_t hop = 0; hop < out.size(); ++hop) {
    Simulator::Schedule(NanoSeconds(0), &CrossSource, hop);
  }
  Simulator::Schedule(NanoSeconds(0), &ProbeSource);
  return Timed(seconds);
}

// A packet of 1500 octets on the wire, PPP, IP and UDP headers included.
const uint32_t UDP_PAYLOAD = 1500 - PPP_OCTETS - 28;
const uint16_t PORT = 9;

void Sink(uint64_t hops, Ptr<Socket> socket) {
  while (socket->Recv()) {
    hops_served += hops;
  }
}

void CrossSocket(Ptr<Socket> socket) {
  socket->Send(Create<Packet>(UDP_PAYLOAD));
  Simulator::Schedule(NanoSeconds(static_cast<uint64_t>(gaps->GetValue() + 0.5)), &CrossSocket, socket);
}

void ProbeSocket(Ptr<Socket> socket) {
  socket->Send(Create<Packet>(UDP_PAYLOAD));
  Simulator::Schedule(MicroSeconds(100), &ProbeSocket, socket);
}

// A socket in one node connected to a sink in another, whose packets each count as so many hops.
Ptr<Socket> Connected(size_t from, size_t to, Ipv4Address address, uint16_t port, uint64_t hops) {
  Ptr<Socket> sink = Socket::CreateSocket(nodes.Get(to), UdpSocketFactory::GetTypeId());
  sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
  sink->SetRecvCallback(MakeBoundCallback(&Sink, hops));
  Ptr<Socket> source = Socket::CreateSocket(nodes.Get(from), UdpSocketFactory::GetTypeId());
  source->Bind();
  source->Connect(InetSocketAddress(address, port));
  return source;
}

int LoadIp(double seconds) {
  BuildLoaded();
  InternetStackHelper().Install(nodes);
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  std::vector<Ipv4Address> far;
  for (const Ptr<NetDevice>& device : out) {
    Ptr<Channel> channel = device->GetChannel();
    Ptr<NetDevice> other = channel->GetDevice(channel->GetDevice(0) == device ? 1 : 0);
    NetDeviceContainer ends(device, other);
    far.push_back(addresses.Assign(ends).GetAddress(1));
    // Drop-tail in the device alone, as in the others.
    TrafficControlHelper().Uninstall(ends);
    addresses.NewNetwork();
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  for (size_t hop = 0; hop < out.size(); ++hop) {
    Simulator::Schedule(NanoSeconds(0), &CrossSocket, Connected(hop, hop + 1, far[hop], PORT, 1));
  }
  Simulator::Schedule(NanoSeconds(0), &ProbeSocket, Connected(0, out.size(), far.back(), PORT + 1, out.size()));
  return Timed(seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  int ended = 2;
  if (what == "trace") {
    ended = Trace();
  } else if (what == "load" && argc > 2) {
    ended = Load(std::atof(argv[2]));
  } else if (what == "ip" && argc > 2) {
    ended = LoadIp(std::atof(argv[2]));
  } else {
    std::cerr << "three_hop trace | three_hop load SECONDS | three_hop ip SECONDS\n";
    return ended;
  }
  Simulator::Destroy();
  return ended;
}
