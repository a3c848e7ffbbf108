#include "server/host/cpu_contexts.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace sfmamba::server {
namespace {

// The most threads of a context, where nothing is set. It was not measured on a
// machine that has more.
constexpr int kMostThreads = 16;

using Core = std::vector<int>;  // The numbers of its processors.

// The cores of each node, in the processors' order.
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

// Divides `seats` in proportion to `weights`, at least 1 for each: each further
// one goes to the largest weight per seat, the first of those that are equal
// (D'Hondt's method). Exact if there are as many seats as weight.
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

// Adds `groups` groups of neighbouring cores, whose numbers of cores differ by
// at most 1.
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

int AutomaticContexts(absl::Span<const Processor> processors, int threads) {
  if (threads <= kMostThreads || processors.empty()) return 1;
  const int nodes = static_cast<int>(CoresByNode(processors).size());
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
