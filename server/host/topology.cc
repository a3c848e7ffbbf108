#include "server/host/topology.h"

#include <sched.h>

#include <algorithm>
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
constexpr int kMostCaches = 16;  // That a processor is described with.

// The first line of the file; empty if it cannot be read.
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

// The lowest processor of the list in the file; `otherwise` if it has none.
int FirstOfList(const std::string& path, int otherwise) {
  const std::vector<int> list = ParseProcessorList(FirstLine(path));
  return list.empty() ? otherwise : *std::min_element(list.begin(), list.end());
}

int CoreOf(const std::string& folder, int number) {
  // Older kernels have the second name only.
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

// The processors of each node, by the node's number.
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

}  // namespace sfmamba::server
