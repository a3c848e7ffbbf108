#include "server/batching/client_turns.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sfmamba::batching {

ClientTurns::Filling::Filling(ClientTurns* turns, const QueueId& queue,
                              const BatchKey& key)
    : turns_(*turns), line_(turns->lines_.end()) {
  id_.queue = queue;
  id_.key = key;
  charge_.model_ = queue.model;
  // The shares' time passes no class that waits, though another had to leave.
  absl::Duration least = absl::InfiniteDuration();
  for (const server::Priority priority : server::kPrioritiesInOrder) {
    const int active = turns_.ClassOf(priority).active;
    charge_.classes_[static_cast<int>(priority)].active = active;
    if (active > 0) least = std::min(least, turns_.shares_.StartOf(priority));
  }
  if (least < absl::InfiniteDuration()) turns_.shares_.AdvanceTo(least);
}

const std::string* ClientTurns::Filling::Next(server::Priority priority) {
  if (line_ == turns_.lines_.end() || id_.priority != priority) {
    id_.priority = priority;
    line_ = turns_.lines_.find(id_);
    if (line_ == turns_.lines_.end()) return nullptr;
  }
  const Line& line = line_->second;
  const Head head = HeadOf(line.tree, turns_.ClassOf(priority).now,
                           line.tree.begin()->first.first, line.batch);
  next_ = head.place;
  return head.entry.client->name;
}

void ClientTurns::Filling::Take(std::optional<Urgency> first,
                                absl::Duration cost) {
  Tree& tree = line_->second.tree;
  const auto found = tree.find(next_);
  Client& client = *found->second.client;
  tree.erase(found);
  if (cost > absl::ZeroDuration()) {
    if (client.part < 0) {
      client.part = static_cast<int>(charge_.clients_.size());
      charge_.clients_.push_back({&client, {}});
      ++client.running;
    }
    Charge::Part& of_class = charge_.classes_[static_cast<int>(id_.priority)];
    for (Charge::Part* part :
         {&charge_.clients_[client.part].second, &of_class}) {
      ++part->images;
      part->cost += cost;
    }
    client.tag += cost;
    turns_.PayOwed(&client);
  }
  if (first.has_value()) {
    Waiting& waiting = *WaitingIn(&client, line_);
    waiting.first = *first;
    waiting.tag = client.tag;
    tree.insert({{client.tag, first->second}, {&client, *first}});
    return;
  }
  const bool is_last = tree.empty();
  turns_.Leave(line_, &client);
  if (is_last) line_ = turns_.lines_.end();
}

ClientTurns::Charge ClientTurns::Filling::Start() {
  for (const auto& [client, part] : charge_.clients_) {
    client->part = -1;
    client->models.AdvanceTo(client->models.StartOf(charge_.model_));
    client->models.Charge(charge_.model_, part.cost, server::Priority::kLow);
    for (Waiting& waiting : client->waiting) {
      if (waiting.tag == client->tag) continue;
      Tree& tree = waiting.line->second.tree;
      tree.erase({waiting.tag, waiting.first.second});
      waiting.tag = client->tag;
      tree.insert(
          {{waiting.tag, waiting.first.second}, {client, waiting.first}});
    }
  }
  for (const server::Priority priority : server::kPrioritiesInOrder) {
    const auto& part = charge_.classes_[static_cast<int>(priority)];
    if (part.images == 0) continue;
    turns_.shares_.Charge(priority, part.cost, priority);
    turns_.ClassOf(priority).now += part.cost / std::max(1, part.active);
  }
  return std::move(charge_);
}

ClientTurns::Tree::const_iterator ClientTurns::Earliest(const Tree& tree,
                                                        absl::Duration limit) {
  // Nodes of the path to `limit` are looked at one by one, and of what is left
  // of the path whole subtrees.
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

std::vector<ClientTurns::Waiting>::iterator ClientTurns::WaitingIn(
    Client* client, Lines::iterator line) {
  return std::find_if(client->waiting.begin(), client->waiting.end(),
                      [line](const Waiting& w) { return w.line == line; });
}

void ClientTurns::SetFirst(const LineId& id, const std::string& name,
                           const Urgency& first, absl::Duration batch) {
  const Lines::iterator line = lines_.try_emplace(id).first;
  line->second.batch = batch;
  Class& of = ClassOf(id.priority);
  const auto [it, is_new] = of.clients.try_emplace(name);
  Client& client = it->second;
  if (is_new) {
    client.name = &it->first;
    client.priority = id.priority;
  }
  if (client.waiting.empty()) {
    client.tag = is_new ? of.now : std::max(client.tag, of.now);
    ++of.active;
  }
  Tree& tree = line->second.tree;
  const auto waiting = WaitingIn(&client, line);
  if (waiting == client.waiting.end()) {
    client.waiting.push_back({line, first, client.tag});
  } else {
    tree.erase({waiting->tag, waiting->first.second});
    waiting->first = first;
    waiting->tag = client.tag;
  }
  tree.insert({{client.tag, first.second}, {&client, first}});
}

void ClientTurns::Remove(const LineId& id, const std::string& name) {
  const Lines::iterator line = lines_.find(id);
  if (line == lines_.end()) return;
  Client& client = ClassOf(id.priority).clients.at(name);
  const auto waiting = WaitingIn(&client, line);
  if (waiting == client.waiting.end()) return;
  line->second.tree.erase({waiting->tag, waiting->first.second});
  Leave(line, &client);
}

void ClientTurns::Leave(Lines::iterator line, Client* client) {
  Class& of = ClassOf(line->first.priority);
  client->waiting.erase(WaitingIn(client, line));
  if (line->second.tree.empty()) lines_.erase(line);
  if (!client->waiting.empty()) return;
  PayOwed(client);
  --of.active;
  if (of.clients.size() >= of.sweep_at) Sweep(&of);
}

void ClientTurns::PayOwed(Client* client) {
  const absl::Duration owed = std::exchange(client->owed, absl::ZeroDuration());
  Class& of = ClassOf(client->priority);
  client->tag += owed;
  of.now += owed / std::max(1, of.active);
}

void ClientTurns::Sweep(Class* of) {
  for (auto it = of->clients.begin(); it != of->clients.end();) {
    const auto found = it++;
    const Client& client = found->second;
    const bool is_behind = client.tag <= of->now;
    if (client.waiting.empty() && client.running == 0 && is_behind) {
      of->clients.erase(found);
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

void ClientTurns::Correct(const Charge& charge, absl::Duration took) {
  int images = 0;
  for (const Charge::Part& part : charge.classes_) images += part.images;
  if (images == 0) return;
  const absl::Duration each = took / images;
  for (const auto& [client, part] : charge.clients_) {
    const absl::Duration more = each * part.images - part.cost;
    client->models.Correct(charge.model_, more, server::Priority::kLow);
    client->owed += more;
    if (client->waiting.empty()) PayOwed(client);
    --client->running;
  }
  for (const server::Priority priority : server::kPrioritiesInOrder) {
    const auto& part = charge.classes_[static_cast<int>(priority)];
    if (part.images == 0) continue;
    shares_.Correct(priority, each * part.images - part.cost, priority);
  }
}

int ClientTurns::active() const {
  int active = 0;
  for (const Class& of : classes_) active += of.active;
  return active;
}

}  // namespace sfmamba::batching
