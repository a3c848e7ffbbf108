#include "server/host/topology.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace sfmamba::server {
namespace {

constexpr int kMostNumber = 65535;
// The kernel describes each cache of a CPU in a separate folder. At most this
// many folders are read for one CPU.
constexpr int kMostCaches = 16;

// Returns the file's first line, or "" if the file cannot be read.
std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool ParseNumber(absl::string_view text, int* number) {
  return absl::SimpleAtoi(text, number) && *number >= 0 &&
         *number <= kMostNumber;
}

// Returns the lowest CPU of the list in the file, or `otherwise` if the list is
// empty.
int FirstOfList(const std::string& path, int otherwise) {
  const std::vector<int> list = ParseProcessorList(FirstLine(path));
  return list.empty() ? otherwise : *std::min_element(list.begin(), list.end());
}

int CoreOf(const std::string& folder, int number) {
  // Older kernels have only thread_siblings_list.
  const int core = FirstOfList(folder + "/topology/core_cpus_list", -1);
  if (core >= 0) return core;
  return FirstOfList(folder + "/topology/thread_siblings_list", number);
}

int LastCacheOf(const std::string& folder) {
  int cache = 0, highest = 0;
  for (int i = 0; i < kMostCaches; ++i) {
    const std::string index = absl::StrCat(folder, "/cache/index", i);
    int level = 0;
    if (!ParseNumber(FirstLine(index + "/level"), &level)) break;
    if (level < highest) continue;
    highest = level;
    cache = FirstOfList(index + "/shared_cpu_list", 0);
  }
  return cache;
}

// Returns the index and the CPUs of each NUMA node.
std::vector<std::pair<int, std::vector<int>>> ReadNodes(
    const std::string& root) {
  std::vector<std::pair<int, std::vector<int>>> nodes;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(root + "/node", error)) {
    const std::string name = entry.path().filename().string();
    int number = 0;
    if (!absl::StartsWith(name, "node") ||
        !ParseNumber(name.substr(4), &number)) {
      continue;
    }
    nodes.push_back({number, ParseProcessorList(FirstLine(
                                 entry.path().string() + "/cpulist"))});
  }
  return nodes;
}

// By default, a context (which runs one batch at a time) has on average at most
// this many threads, if there are enough cores. Contexts with more threads were
// not measured.
constexpr int kMostThreads = 16;

using Core = std::vector<int>;  // The numbers of the core's CPUs.

// Returns the cores of each NUMA node. Nodes and cores are in the order of
// `processors`.
std::vector<std::vector<Core>> CoresByNode(
    absl::Span<const Processor> processors) {
  std::vector<std::vector<Core>> nodes;
  const Processor* last = nullptr;
  for (const Processor& processor : processors) {
    const bool same_node = last != nullptr && last->node == processor.node;
    if (!same_node) nodes.emplace_back();
    if (!same_node || last->core != processor.core) nodes.back().emplace_back();
    nodes.back().back().push_back(processor.number);
    last = &processor;
  }
  return nodes;
}

int CountCores(absl::Span<const Processor> processors) {
  int cores = 0;
  for (const auto& node : CoresByNode(processors)) {
    cores += static_cast<int>(node.size());
  }
  return cores;
}

// Divides `seats` seats in proportion to `weights`, by D'Hondt's method. Each
// weight gets at least 1 seat. Each further seat goes to the weight w with the
// largest quotient w / (n + 1), where n is the number of seats that w already
// has. If several quotients are equal, the first weight gets the seat. If
// `seats` equals the sum of the weights, each weight w gets exactly w seats.
std::vector<int> Apportion(const std::vector<int>& weights, int seats) {
  std::vector<int> shares(weights.size(), 1);
  for (int left = seats - static_cast<int>(shares.size()); left > 0; --left) {
    size_t next = 0;
    for (size_t i = 1; i < weights.size(); ++i) {
      if (int64_t{weights[i]} * (shares[next] + 1) >
          int64_t{weights[next]} * (shares[i] + 1)) {
        next = i;
      }
    }
    ++shares[next];
  }
  return shares;
}

// Appends `groups` groups of neighbouring cores to `result`. The sizes of the
// groups differ by at most 1 core.
void Divide(const std::vector<Core>& cores, int groups,
            std::vector<model::ProcessorGroup>* result) {
  const size_t count = cores.size();
  for (int i = 0; i < groups; ++i) {
    model::ProcessorGroup group;
    for (size_t core = count * i / groups; core < count * (i + 1) / groups;
         ++core) {
      group.processors.insert(group.processors.end(), cores[core].begin(),
                              cores[core].end());
    }
    result->push_back(group);
  }
}

}  // namespace

std::vector<int> ParseProcessorList(const std::string& list) {
  std::vector<int> numbers;
  const absl::string_view text = absl::StripAsciiWhitespace(list);
  for (const absl::string_view range : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    int first = 0, last = 0;
    if (!ParseNumber(ends.front(), &first) ||
        !ParseNumber(ends.back(), &last) || last < first) {
      return {};
    }
    for (int number = first; number <= last; ++number) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

std::vector<Processor> ReadTopology(const std::vector<int>& allowed,
                                    const std::string& root) {
  const auto nodes = ReadNodes(root);
  std::vector<Processor> processors;
  for (const int number : allowed) {
    Processor processor;
    processor.number = number;
    for (const auto& [node, members] : nodes) {
      const bool is_there =
          std::find(members.begin(), members.end(), number) != members.end();
      if (is_there) processor.node = node;
    }
    const std::string folder = absl::StrCat(root, "/cpu/cpu", number);
    processor.cache = LastCacheOf(folder);
    processor.core = CoreOf(folder, number);
    processors.push_back(processor);
  }
  std::sort(processors.begin(), processors.end(),
            [](const Processor& a, const Processor& b) {
              return std::tie(a.node, a.cache, a.core, a.number) <
                     std::tie(b.node, b.cache, b.core, b.number);
            });
  return processors;
}

std::vector<Processor> AllowedTopology() {
  std::vector<int> allowed;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {};
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) allowed.push_back(i);
  }
  return ReadTopology(allowed, "/sys/devices/system");
}

int AutomaticContexts(absl::Span<const Processor> processors, int threads) {
  if (threads <= kMostThreads || processors.empty()) return 1;
  const int nodes = static_cast<int>(CoresByNode(processors).size());
  // Rounds up, so that contexts have on average at most kMostThreads threads.
  const int for_each = (threads - 1) / (nodes * kMostThreads) + 1;
  return std::min({nodes * for_each, CountCores(processors), threads});
}

absl::Status CheckContexts(absl::Span<const Processor> processors, int contexts,
                           int threads) {
  const int cores = std::max(1, CountCores(processors));
  if (contexts >= 1 && contexts <= std::min(cores, threads)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "cpu_contexts: got ", contexts, ", expected 1 to ",
      std::min(cores, threads), ": there are ", cores,
      cores == 1 ? " core" : " cores", " for ", threads, " compute_threads"));
}

std::vector<model::ProcessorGroup> MakeGroups(
    absl::Span<const Processor> processors, int contexts, int threads) {
  const std::vector<std::vector<Core>> nodes = CoresByNode(processors);
  std::vector<model::ProcessorGroup> groups;
  if (contexts < static_cast<int>(nodes.size())) {
    std::vector<Core> all;
    for (const auto& node : nodes) {
      all.insert(all.end(), node.begin(), node.end());
    }
    Divide(all, contexts, &groups);
  } else {
    std::vector<int> cores;
    for (const auto& node : nodes) {
      cores.push_back(static_cast<int>(node.size()));
    }
    const std::vector<int> shares = Apportion(cores, contexts);
    for (size_t i = 0; i < nodes.size(); ++i) {
      Divide(nodes[i], shares[i], &groups);
    }
  }
  std::vector<int> sizes;
  for (const model::ProcessorGroup& group : groups) {
    sizes.push_back(static_cast<int>(group.processors.size()));
  }
  const std::vector<int> shares = Apportion(sizes, threads);
  for (size_t i = 0; i < groups.size(); ++i) groups[i].threads = shares[i];
  return groups;
}

}  // namespace sfmamba::server
