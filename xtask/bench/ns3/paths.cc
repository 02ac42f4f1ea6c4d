// Paths whose packet times our simulator must reproduce. README.md beside this file says how to run it.
//
//   paths draw CASE   a path and a list of packets, as crates/sim/tests/fixtures/ns3/CASE.txt has them, without times
//   paths play        reads such a file (times in it are ignored) and writes it again with the times that ns-3 finds
//
// Bare point-to-point devices, forwarded by hand: no IP stack. Time counts femtoseconds, so that what ns-3 cuts off of each
// packet's time does not add up over a busy period.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

const uint16_t PROTOCOL = 0x0800;
const uint32_t PPP_OCTETS = 2;
const int64_t FS_PER_NS = 1000000;

struct Bucket {
  uint64_t bps = 0;
  uint32_t depth = 0;
  std::string queue;
};

struct Link {
  uint64_t bps;
  int64_t delay_ns;
  std::string queue;
  Bucket bucket;
  Ptr<PointToPointNetDevice> device;
  Ptr<QueueDisc> shaper;
};

struct Sent {
  int64_t at_ns;
  uint32_t octets;
  size_t first;
  size_t last;
  // Per link: when its last bit left, or when it was dropped; femtoseconds.
  std::vector<int64_t> left;
  // By what it was dropped: "x" the queue of a link, "s" that of a shaper.
  std::string dropped;
  Ptr<Packet> packet;
};

// What a queue discipline holds. Its size is that of the packet on the wire, PPP header included.
class Item : public QueueDiscItem {
 public:
  Item(Ptr<Packet> packet, const Address& address) : QueueDiscItem(packet, address, PROTOCOL) {}
  uint32_t GetSize() const override { return GetPacket()->GetSize() + PPP_OCTETS; }
  void AddHeader() override {}
  bool Mark() override { return false; }
};

std::vector<Link> path;
std::vector<Sent> sent;
std::map<uint64_t, size_t> by_uid;
bool ethernet = false;

Sent& Of(Ptr<const Packet> packet) { return sent.at(by_uid.at(packet->GetUid())); }

void Note(Ptr<const Packet> packet, const std::string& dropped) {
  Sent& one = Of(packet);
  one.left.push_back(Simulator::Now().GetFemtoSeconds());
  one.dropped = dropped;
}

void Dropped(Ptr<const Packet> packet) { Note(packet, "x"); }
void DroppedByShaper(Ptr<const QueueDiscItem> item) { Note(item->GetPacket(), "s"); }

// ns-3 holds the packet being sent outside its queue; a queue of ours has it inside. So the queue is smaller by that packet
// while the device sends. What is dropped remains ns-3's decision.
void Begins(Link* link, Ptr<const Packet> packet) {
  QueueSize whole(link->queue);
  uint32_t taken = whole.GetUnit() == QueueSizeUnit::PACKETS ? 1 : packet->GetSize();
  link->device->GetQueue()->SetMaxSize(QueueSize(whole.GetUnit(), whole.GetValue() - taken));
}

void Ends(Link* link, Ptr<const Packet> packet) {
  Note(packet, "");
  link->device->GetQueue()->SetMaxSize(QueueSize(link->queue));
}

void IntoQueue(Link* link, Ptr<Packet> packet) {
  link->device->Send(packet, link->device->GetBroadcast(), PROTOCOL);
}

void Enter(size_t index, Ptr<Packet> packet) {
  Link& link = path.at(index);
  if (link.shaper) {
    link.shaper->Enqueue(Create<Item>(packet, link.device->GetBroadcast()));
    link.shaper->Run();
  } else {
    IntoQueue(&link, packet);
  }
}

bool Arrives(size_t index, Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&) {
  if (index + 1 <= Of(packet).last) {
    Enter(index + 1, packet->Copy());
  }
  return true;
}

Ptr<QueueDisc> Shaper(Link* link) {
  Ptr<QueueDisc> shaper = CreateObjectWithAttributes<TbfQueueDisc>(
      "Rate", DataRateValue(DataRate(link->bucket.bps)), "Burst", UintegerValue(link->bucket.depth), "MaxSize",
      QueueSizeValue(QueueSize(link->bucket.queue)));
  // The device never stops the shaper: its queue drops instead.
  shaper->SetNetDeviceQueueInterface(CreateObject<NetDeviceQueueInterface>());
  shaper->SetSendCallback([link](Ptr<QueueDiscItem> item) { IntoQueue(link, item->GetPacket()); });
  shaper->TraceConnectWithoutContext("Drop", MakeCallback(&DroppedByShaper));
  shaper->Initialize();
  return shaper;
}

void Build() {
  NodeContainer nodes;
  nodes.Create(path.size() + 1);
  for (size_t index = 0; index < path.size(); ++index) {
    Link& link = path[index];
    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(link.bps)));
    helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds(link.delay_ns)));
    helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(link.queue)));
    helper.DisableFlowControl();
    NetDeviceContainer ends = helper.Install(nodes.Get(index), nodes.Get(index + 1));
    link.device = DynamicCast<PointToPointNetDevice>(ends.Get(0));
    link.device->TraceConnectWithoutContext("PhyTxBegin", MakeBoundCallback(&Begins, &link));
    link.device->TraceConnectWithoutContext("PhyTxEnd", MakeBoundCallback(&Ends, &link));
    link.device->TraceConnectWithoutContext("MacTxDrop", MakeCallback(&Dropped));
    ends.Get(1)->SetReceiveCallback(
        [index](Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t protocol, const Address& from) {
          return Arrives(index, device, packet, protocol, from);
        });
    if (link.bucket.bps > 0) {
      link.shaper = Shaper(&link);
    }
  }
}

// Octets that a packet occupies on the wire: IEEE 802.3 has preamble, header, check sum and gap, and no shorter payload than 46.
uint32_t WireOctets(uint32_t ip_octets) { return ethernet ? std::max(ip_octets, 46u) + 38 : ip_octets; }

void Read(std::istream& in) {
  std::string line;
  int64_t at = 0;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "framing") {
      words >> kind;
      ethernet = kind == "ethernet";
    } else if (kind == "link") {
      Link link;
      words >> link.bps >> link.delay_ns >> link.queue;
      path.push_back(link);
    } else if (kind == "bucket") {
      Bucket& bucket = path.back().bucket;
      words >> bucket.bps >> bucket.depth >> bucket.queue;
    } else if (!kind.empty() && kind[0] != '#') {
      Sent one;
      at += std::stoll(kind);
      one.at_ns = at;
      words >> one.octets >> one.first >> one.last;
      sent.push_back(one);
    }
  }
}

void WritePath(std::ostream& out) {
  out << "framing " << (ethernet ? "ethernet" : "bare") << '\n';
  for (const Link& link : path) {
    out << "link " << link.bps << ' ' << link.delay_ns << ' ' << link.queue << '\n';
    if (link.bucket.bps > 0) {
      out << "bucket " << link.bucket.bps << ' ' << link.bucket.depth << ' ' << link.bucket.queue << '\n';
    }
  }
}

// The list, with the times where there are any: per link the nanoseconds from the queue to the end of the last bit.
void WritePackets(std::ostream& out) {
  int64_t before = 0;
  for (const Sent& one : sent) {
    out << one.at_ns - before << ' ' << one.octets << ' ' << one.first << ' ' << one.last;
    before = one.at_ns;
    int64_t reached = one.at_ns;
    for (size_t k = 0; k < one.left.size(); ++k) {
      int64_t left = (one.left[k] + FS_PER_NS - 1) / FS_PER_NS;
      out << ' ' << (k + 1 == one.left.size() ? one.dropped : "") << left - reached;
      reached = left + path.at(one.first + k).delay_ns;
    }
    out << '\n';
  }
}

int Play() {
  Read(std::cin);
  Build();
  for (size_t k = 0; k < sent.size(); ++k) {
    Sent& one = sent[k];
    one.packet = Create<Packet>(WireOctets(one.octets) - PPP_OCTETS);
    by_uid[one.packet->GetUid()] = k;
    Simulator::Schedule(NanoSeconds(one.at_ns), &Enter, one.first, one.packet);
  }
  Simulator::Run();
  std::cout << "# Made by xtask/bench/ns3/paths.cc; README.md beside it says what the columns are.\n";
  WritePath(std::cout);
  WritePackets(std::cout);
  Simulator::Destroy();
  return 0;
}

// Packets of one kind: how many, over which links, and how far apart.
struct Flow {
  size_t first;
  size_t last;
  int packets;
  double mean_gap_ns;
  std::vector<uint32_t> octets;
  // Packets of a burst, and their distance; bursts begin at exponential gaps.
  int burst = 1;
  int64_t inside_ns = 0;
};

struct Case {
  std::string name;
  bool ethernet;
  std::vector<Link> path;
  std::vector<Flow> flows;
  // Times of sending are this many nanoseconds apart at least, and odd multiples of half of that.
  int64_t grain_ns = 1;
};

Link Plain(uint64_t bps, int64_t delay_ns, const std::string& queue) { return Link{bps, delay_ns, queue, {}, nullptr, nullptr}; }

Link Shaped(uint64_t bps, int64_t delay_ns, const std::string& queue, Bucket bucket) {
  return Link{bps, delay_ns, queue, bucket, nullptr, nullptr};
}

const std::vector<uint32_t> MIX = {40, 40, 576, 1500};
const std::vector<uint32_t> ANY = {40, 64, 111, 333, 577, 576, 901, 1203, 1499, 1500};
const std::vector<uint32_t> EVEN = {40, 128, 576, 1024, 1500};
const std::string ENDLESS = "1000000p";

const std::vector<Case> CASES = {
    {"two-links-packets", false,
     {Plain(97000000, 1300000, "30p"), Plain(31000000, 4700000, "12p")},
     {{0, 1, 250, 400000, MIX}, {1, 1, 200, 550000, {1500}}}},
    {"three-links-packets", false,
     {Plain(1000000000, 250000, "100p"), Plain(155520000, 2100000, "20p"), Plain(100000000, 7000001, "15p")},
     {{0, 2, 250, 120000, ANY}, {1, 2, 100, 250000, {1500}}, {2, 2, 100, 250000, MIX}, {0, 0, 50, 250000, MIX}}},
    {"two-links-octets", false,
     {Plain(45000000, 800000, "20000B"), Plain(34368000, 3300000, "9000B")},
     {{0, 1, 300, 180000, ANY}, {1, 1, 150, 500000, ANY}}},
    {"three-links-octets", false,
     {Plain(622080000, 90000, "60000B"), Plain(51840000, 12345678, "17000B"), Plain(44736000, 1, "7000B")},
     {{0, 2, 250, 190000, ANY}, {0, 1, 80, 400000, {1500}, 8, 19291}, {2, 2, 120, 300000, ANY}}},
    {"ethernet", true,
     {Plain(10000000000, 50000, "200p"), Plain(2500000000, 1000003, "25p"), Plain(2400000001, 500, "30p")},
     {{0, 2, 250, 200000, {9000}, 25, 7231}, {1, 1, 200, 20000, ANY}, {2, 2, 150, 25000, {40, 46, 47, 1500, 9000}}}},
    {"trains", false,
     {Plain(1000000000, 100000, ENDLESS), Plain(103000000, 900000, ENDLESS), Plain(211000000, 400000, ENDLESS)},
     {{0, 2, 300, 6000000, {1500}, 50, 12000}, {1, 1, 150, 250000, MIX}, {2, 2, 150, 250000, {1000}, 10, 40009}}},
    {"shaper-packets", false,
     {Shaped(20000000, 2000000, "20p", {8000000, 15001, "12p"}), Plain(9000000, 500000, "6p")},
     {{0, 1, 350, 550000, EVEN}, {1, 1, 60, 2900000, {1500}}},
     2000},
    {"shaper-octets", false,
     {Shaped(100000000, 1000000, "40p", {40000000, 8001, "9000B"}), Plain(45000000, 3000000, "12000B")},
     {{0, 1, 350, 105000, EVEN, 10, 2000}, {1, 1, 60, 700000, {1500}}},
     2000},
};

// Times are drawn by ns-3's own generator, whose streams are the same in every version.
void Draw(const Case& drawn) {
  RngSeedManager::SetSeed(1);
  int64_t stream = 1;
  for (const Flow& flow : drawn.flows) {
    Ptr<ExponentialRandomVariable> gaps = CreateObject<ExponentialRandomVariable>();
    gaps->SetAttribute("Mean", DoubleValue(flow.mean_gap_ns * flow.burst));
    gaps->SetStream(stream++);
    Ptr<UniformRandomVariable> places = CreateObject<UniformRandomVariable>();
    places->SetStream(stream++);
    int64_t begin = 0;
    for (int k = 0; k < flow.packets; ++k) {
      if (k % flow.burst == 0) {
        begin += static_cast<int64_t>(gaps->GetValue());
      }
      Sent one;
      int64_t at = begin + (k % flow.burst) * flow.inside_ns;
      one.at_ns = drawn.grain_ns > 1 ? at / drawn.grain_ns * drawn.grain_ns + drawn.grain_ns / 2 : at;
      one.octets = flow.octets.at(places->GetInteger(0, flow.octets.size() - 1));
      one.first = flow.first;
      one.last = flow.last;
      sent.push_back(one);
    }
  }
  std::stable_sort(sent.begin(), sent.end(), [](const Sent& a, const Sent& b) { return a.at_ns < b.at_ns; });
  ethernet = drawn.ethernet;
  path = drawn.path;
  WritePath(std::cout);
  WritePackets(std::cout);
}

}  // namespace

int main(int argc, char** argv) {
  Time::SetResolution(Time::FS);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "play") {
    return Play();
  }
  for (const Case& drawn : CASES) {
    if (what == "draw" && argc > 2 && drawn.name == argv[2]) {
      Draw(drawn);
      return 0;
    }
  }
  std::cerr << "paths draw CASE | paths play < FILE; cases:";
  for (const Case& drawn : CASES) {
    std::cerr << ' ' << drawn.name;
  }
  std::cerr << '\n';
  return 2;
}
