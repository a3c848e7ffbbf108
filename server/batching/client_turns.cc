#include "server/batching/client_turns.h"

#include <algorithm>
#include <iterator>

namespace sfmamba::batching {

ClientTurns::Filling::Filling(ClientTurns* turns, const LineId& line,
                              absl::Duration cost)
    : turns_(*turns),
      id_(line),
      cost_(cost),
      tree_(turns->lines_.count(line) == 0 ? nullptr
                                           : &turns->lines_.at(line).tree),
      now_(turns->ClassOf(line.priority).now),
      batch_(tree_ == nullptr ? absl::ZeroDuration()
                              : turns->lines_.at(line).batch) {}

ClientTurns::Filling::~Filling() {
  for (const auto& [client, place] : picked_) {
    if (place.has_value()) tree_->erase(*place);
    for (const Waiting& waiting : client->waiting) {
      if (&waiting.line->second.tree != tree_) continue;
      tree_->insert(
          {{client->tag, waiting.first.second}, {client, waiting.first}});
    }
  }
}

const std::string* ClientTurns::Filling::Next() {
  if (tree_ == nullptr || tree_->empty()) return nullptr;
  const Head head = HeadOf(*tree_, now_, tree_->begin()->first.first, batch_);
  next_ = head.place;
  return head.entry.client->name;
}

void ClientTurns::Filling::Pick(std::optional<Urgency> first) {
  Client* const client = tree_->find(next_)->second.client;
  tree_->erase(next_);
  std::optional<Place>& place = picked_[client];
  place.reset();
  if (!first.has_value()) return;
  place = {next_.first + cost_, first->second};
  tree_->insert({*place, {client, *first}});
}

ClientTurns::Tree::const_iterator ClientTurns::Earliest(const Tree& tree,
                                                        absl::Duration limit) {
  // Searches the tree from the root towards the tag `limit`. If the tag of a
  // node is below `limit`, all tags in the node's left subtree are below
  // `limit`, too. The node's image and the most urgent image of this subtree
  // are then compared with the best image so far.
  const auto end = tree.node_end();
  auto best = end;
  bool is_subtree = false;
  Urgency first = {absl::InfiniteFuture(), UINT64_MAX};
  const auto consider = [&](auto node, const Urgency& urgency, bool whole) {
    if (best != end && first <= urgency) return;
    best = node;
    first = urgency;
    is_subtree = whole;
  };
  for (auto node = tree.node_begin(); node != end;) {
    if ((*node)->first.first >= limit) {
      node = node.get_l_child();
      continue;
    }
    consider(node, (*node)->second.first, false);
    const auto left = node.get_l_child();
    if (left != end) consider(left, left.get_metadata(), true);
    node = node.get_r_child();
  }
  if (best == end) return tree.end();
  while (is_subtree && (*best)->second.first != first) {
    const auto left = best.get_l_child();
    best =
        left != end && left.get_metadata() == first ? left : best.get_r_child();
  }
  return *best;
}

ClientTurns::Head ClientTurns::HeadOf(const Tree& tree, absl::Duration now,
                                      absl::Duration least,
                                      absl::Duration batch) {
  auto it = tree.begin();
  Head head;
  if (now - it->first.first >= batch) {
    head.group = Head::kOverdue;
  } else if (it->first.first < least + batch) {
    head.group = Head::kInWindow;
    it = Earliest(tree, least + batch);
  }
  head.place = it->first;
  head.entry = it->second;
  return head;
}

bool ClientTurns::GoesBefore(const Head& a, const Head& b) {
  if (a.group != b.group) return a.group < b.group;
  if (a.group == Head::kInWindow) return a.entry.first < b.entry.first;
  return a.place < b.place;
}

std::vector<ClientTurns::Head> ClientTurns::Heads(
    absl::Span<const QueueId> queues, server::Priority priority) const {
  std::vector<Lines::const_iterator> lines;
  absl::Duration least = absl::InfiniteDuration(), batch;
  for (const QueueId& queue : queues) {
    for (auto line = lines_.lower_bound({queue, priority, BatchKey()});
         line != lines_.end() && line->first.queue == queue &&
         line->first.priority == priority;
         ++line) {
      lines.push_back(line);
      least = std::min(least, line->second.tree.begin()->first.first);
      batch = std::max(batch, line->second.batch);
    }
  }
  std::vector<Head> heads;
  for (const auto& line : lines) {
    heads.push_back(
        HeadOf(line->second.tree, ClassOf(priority).now, least, batch));
    heads.back().line = line;
  }
  return heads;
}

void ClientTurns::SetFirst(const LineId& id, const std::string& name,
                           const Urgency& first, absl::Duration batch) {
  const Lines::iterator line = lines_.try_emplace(id).first;
  line->second.batch = batch;
  Class& of = ClassOf(id.priority);
  const auto [it, is_new] = of.clients.try_emplace(name);
  Client& client = it->second;
  if (is_new) client.name = &it->first;
  if (client.waiting.empty()) {
    client.tag = is_new ? of.now : std::max(client.tag, of.now);
    ++of.active;
  }
  Tree& tree = line->second.tree;
  const auto waiting =
      std::find_if(client.waiting.begin(), client.waiting.end(),
                   [&](const Waiting& w) { return w.line == line; });
  if (waiting == client.waiting.end()) {
    client.waiting.push_back({line, first});
  } else {
    tree.erase({client.tag, waiting->first.second});
    waiting->first = first;
  }
  tree.insert({{client.tag, first.second}, {&client, first}});
}

void ClientTurns::Remove(const LineId& id, const std::string& name) {
  const Lines::iterator line = lines_.find(id);
  if (line == lines_.end()) return;
  Class& of = ClassOf(id.priority);
  Client& client = of.clients.at(name);
  const auto waiting =
      std::find_if(client.waiting.begin(), client.waiting.end(),
                   [&](const Waiting& w) { return w.line == line; });
  if (waiting == client.waiting.end()) return;
  line->second.tree.erase({client.tag, waiting->first.second});
  client.waiting.erase(waiting);
  if (line->second.tree.empty()) lines_.erase(line);
  if (!client.waiting.empty()) return;
  --of.active;
  if (of.clients.size() >= of.sweep_at) Sweep(&of);
}

void ClientTurns::Sweep(Class* of) {
  for (auto it = of->clients.begin(); it != of->clients.end();) {
    const auto client = it++;
    if (client->second.waiting.empty() && client->second.tag <= of->now) {
      of->clients.erase(client);
    }
  }
  of->sweep_at = 2 * of->clients.size() + 64;
}

std::array<server::Priority, server::kPriorityCount>
ClientTurns::ClassesInTurn() const {
  std::array<server::Priority, server::kPriorityCount> classes =
      server::kPrioritiesInOrder;
  std::stable_sort(classes.begin(), classes.end(),
                   [this](server::Priority a, server::Priority b) {
                     return shares_.StartOf(a) < shares_.StartOf(b);
                   });
  return classes;
}

int ClientTurns::Next(absl::Span<const QueueId> queues) const {
  for (const server::Priority priority : ClassesInTurn()) {
    const std::vector<Head> heads = Heads(queues, priority);
    if (heads.empty()) continue;
    const Client& client =
        *std::min_element(heads.begin(), heads.end(), GoesBefore)->entry.client;
    const auto rank = [&client](const Waiting& waiting) {
      const QueueId& queue = waiting.line->first.queue;
      return std::make_pair(client.models.StartOf(queue.model), waiting.first);
    };
    const Waiting* next = nullptr;
    auto queue = queues.end();
    for (const Waiting& waiting : client.waiting) {
      const auto found =
          std::find(queues.begin(), queues.end(), waiting.line->first.queue);
      if (found == queues.end()) continue;
      if (next != nullptr && rank(*next) < rank(waiting)) continue;
      next = &waiting;
      queue = found;
    }
    return static_cast<int>(queue - queues.begin());
  }
  return 0;
}

std::vector<ClientTurns::Turn> ClientTurns::LinesInTurn(
    const QueueId& queue, server::Priority priority) const {
  std::vector<Head> heads = Heads({&queue, 1}, priority);
  std::sort(heads.begin(), heads.end(), GoesBefore);
  std::vector<Turn> turns;
  for (const Head& head : heads) {
    turns.push_back({head.line->first.key, head.group == Head::kOverdue});
  }
  return turns;
}

void ClientTurns::Add(Client* client, absl::Duration cost) {
  for (const Waiting& waiting : client->waiting) {
    Tree& tree = waiting.line->second.tree;
    tree.erase({client->tag, waiting.first.second});
    tree.insert(
        {{client->tag + cost, waiting.first.second}, {client, waiting.first}});
  }
  client->tag += cost;
}

void ClientTurns::Add(const BatchCharge& charge, absl::Duration cost) {
  int images = 0;
  for (const BatchCharge::Part& part : charge.parts) images += part.images;
  for (const BatchCharge::Part& part : charge.parts) {
    const absl::Duration own = cost * part.images / images;
    Class& of = ClassOf(part.priority);
    of.now += own / std::max(1, charge.active[static_cast<int>(part.priority)]);
    const auto client = of.clients.find(part.client);
    if (client != of.clients.end()) Add(&client->second, own);
  }
}

void ClientTurns::Charge(BatchCharge* charge) {
  // The loop stores the number of waiting clients of each priority class in
  // `charge`. It also computes `least`. Each class with waiting images has a
  // start, which is the virtual time at which its next batch starts (see
  // FairShares::StartOf()). `least` is the earliest of these starts, and the
  // virtual time of `shares_` advances to it. `charge` may be for a batch of
  // another class.
  absl::Duration least = absl::InfiniteDuration();
  for (const server::Priority priority : server::kPrioritiesInOrder) {
    charge->active[static_cast<int>(priority)] = ClassOf(priority).active;
    if (ClassOf(priority).active == 0) continue;
    least = std::min(least, shares_.StartOf(priority));
  }
  if (least < absl::InfiniteDuration()) shares_.AdvanceTo(least);
  int images = 0;
  for (const BatchCharge::Part& part : charge->parts) images += part.images;
  for (const BatchCharge::Part& part : charge->parts) {
    const absl::Duration own = charge->cost * part.images / images;
    shares_.Charge(part.priority, own, part.priority);
    const auto client = ClassOf(part.priority).clients.find(part.client);
    if (client == ClassOf(part.priority).clients.end()) continue;
    server::FairShares<int>& models = client->second.models;
    models.AdvanceTo(models.StartOf(charge->model));
    models.Charge(charge->model, own, server::Priority::kLow);
  }
  Add(*charge, charge->cost);
}

void ClientTurns::Correct(const BatchCharge& charge, absl::Duration took) {
  const absl::Duration more = took - charge.cost;
  int images = 0;
  for (const BatchCharge::Part& part : charge.parts) images += part.images;
  for (const BatchCharge::Part& part : charge.parts) {
    const absl::Duration own = more * part.images / images;
    shares_.Correct(part.priority, own, part.priority);
    const auto client = ClassOf(part.priority).clients.find(part.client);
    if (client == ClassOf(part.priority).clients.end()) continue;
    client->second.models.Correct(charge.model, own, server::Priority::kLow);
  }
  Add(charge, more);
}

int ClientTurns::active() const {
  int active = 0;
  for (const Class& of : classes_) active += of.active;
  return active;
}

}  // namespace sfmamba::batching
