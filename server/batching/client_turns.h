#ifndef SFMAMBA_SERVER_BATCHING_CLIENT_TURNS_H_
#define SFMAMBA_SERVER_BATCHING_CLIENT_TURNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_key.h"
#include "server/shares/fair_shares.h"
#include "server/shares/priority.h"

namespace sfmamba::batching {

// An image's deadline and its number in the queue, which decides between equal
// deadlines. The lower is more urgent.
using Urgency = std::pair<absl::Time, uint64_t>;

// A queue on a device. Versions of a model have queues of their own.
struct QueueId {
  int model = 0;
  int number = 0;

  friend bool operator<(const QueueId& a, const QueueId& b) {
    return std::tie(a.model, a.number) < std::tie(b.model, b.number);
  }
  friend bool operator==(const QueueId& a, const QueueId& b) {
    return a.model == b.model && a.number == b.number;
  }
};

// The images of one class that wait in a queue for batches of one key.
struct LineId {
  QueueId queue;
  server::Priority priority = server::Priority::kNormal;
  BatchKey key;

  friend bool operator<(const LineId& a, const LineId& b) {
    return std::tie(a.queue, a.priority, a.key) <
           std::tie(b.queue, b.priority, b.key);
  }
};

// A batch that was charged to the clients of its images.
struct BatchCharge {
  struct Part {
    server::Priority priority = server::Priority::kNormal;
    std::string client;
    int images = 0;
  };
  int model = 0;
  std::vector<Part> parts;
  absl::Duration cost;  // Predicted.
  // Clients of each class that waited when the batch was charged.
  std::array<int, server::kPriorityCount> active = {};
};

// Whose image a device runs next: between clients turns, within a client the
// earliest deadline first. Priority classes share the device's time as
// server::kPriorityShares says, and within a class the rule is:
//
// - A client's tag is the device time that it was charged. A client that begins
//   to wait is moved up to the class's virtual time. A client that waits is not
//   moved. The virtual time advances by the cost of each batch, divided by the
//   number of clients that wait.
// - A client whose tag is behind the virtual time by a batch or more is overdue
//   and goes first, the smallest tag before others.
// - If no client is overdue, the earliest deadline goes first, among the
//   clients whose tags are less than a batch above the smallest.
// - Models of the client that goes first get equal shares of what it gets.
//
// So a client gets its turn whatever deadlines others claim, and however often
// they change their identity. While clients take about as much as each other
// the order is that of deadlines, which keeps the most of them.
// Source: virtual time and eligibility as in EEVDF (Stoica and Abdel-Wahab,
// 1995).
//
// It has no clock and no thread. SetFirst(), Remove() and a pick are O(log
// clients). Thread-compatible.
class ClientTurns {
 private:
  struct Client;

  // The tag, and the number of the first image.
  using Place = std::pair<absl::Duration, uint64_t>;
  struct Entry {
    Client* client = nullptr;
    Urgency first;
  };
  // Keeps the most urgent image of each subtree.
  template <typename NodeCIt, typename NodeIt, typename Less, typename Alloc>
  struct MostUrgent {
    using metadata_type = Urgency;
    void operator()(NodeIt node, NodeCIt end) const {
      Urgency first = (*node)->second.first;
      for (const auto child : {node.get_l_child(), node.get_r_child()}) {
        if (child != end) first = std::min(first, child.get_metadata());
      }
      const_cast<Urgency&>(node.get_metadata()) = first;
    }
    virtual ~MostUrgent() = default;
  };
  using Tree = __gnu_pbds::tree<Place, Entry, std::less<Place>,
                                __gnu_pbds::rb_tree_tag, MostUrgent>;

 public:
  // Picks the images of a line for a batch, without effect on the turns. The
  // line does not change meanwhile.
  class Filling {
   public:
    // An image costs `cost`, more than zero.
    Filling(ClientTurns* turns, const LineId& line, absl::Duration cost);
    ~Filling();
    Filling(const Filling&) = delete;
    Filling& operator=(const Filling&) = delete;

    // The client whose first image is next; null if none is left.
    const std::string* Next();
    // Picks the first image of the client that Next() returned. `first` is the
    // client's next one, if any.
    void Pick(std::optional<Urgency> first);

   private:
    ClientTurns& turns_;
    const LineId id_;
    const absl::Duration cost_;
    Tree* const tree_;  // Null if nothing waits.
    const absl::Duration now_;
    const absl::Duration batch_;
    Place next_;
    // Where the clients of picked images stand; none if they have no others.
    absl::flat_hash_map<Client*, std::optional<Place>> picked_;
  };

  // The client's most urgent image in the line is `first`. `batch` is how long
  // a batch of the line's best size takes, more than zero.
  void SetFirst(const LineId& line, const std::string& client,
                const Urgency& first, absl::Duration batch);
  // No image of the client waits in the line.
  void Remove(const LineId& line, const std::string& client);

  // Returns the index of the queue that goes next. `queues` is not empty.
  int Next(absl::Span<const QueueId> queues) const;

  // The classes, the one that is furthest behind its share first; of equal ones
  // the higher first.
  std::array<server::Priority, server::kPriorityCount> ClassesInTurn() const;

  // A queue's line, and whether its first client is overdue.
  struct Turn {
    BatchKey key;
    bool is_overdue = false;
  };
  // The queue's lines of the class in the order in which they would go.
  std::vector<Turn> LinesInTurn(const QueueId& queue,
                                server::Priority priority) const;

  // A batch starts, whose images still wait. Fills in `charge->active`.
  void Charge(BatchCharge* charge);
  // It took `took`.
  void Correct(const BatchCharge& charge, absl::Duration took);

  // How many clients wait, each once in every class.
  int active() const;

 private:
  struct Line {
    Tree tree;
    absl::Duration batch;
  };
  using Lines = std::map<LineId, Line>;
  struct Waiting {
    Lines::iterator line;
    Urgency first;
  };
  struct Client {
    const std::string* name = nullptr;
    absl::Duration tag;
    server::FairShares<int> models;  // Equal shares of its time.
    std::vector<Waiting> waiting;    // By line.
  };
  struct Class {
    absl::Duration now;  // The virtual time.
    int active = 0;      // Clients that wait.
    absl::node_hash_map<std::string, Client> clients;
    size_t sweep_at = 64;  // Number of clients at which to forget some.
  };
  // The place of a line among others: its first client.
  struct Head {
    enum Group { kOverdue, kInWindow, kAhead };
    Lines::const_iterator line;
    Group group = kAhead;
    Place place;
    Entry entry;
  };

  const Class& ClassOf(server::Priority priority) const {
    return classes_[static_cast<int>(priority)];
  }
  Class& ClassOf(server::Priority priority) {
    return classes_[static_cast<int>(priority)];
  }
  static bool GoesBefore(const Head& a, const Head& b);
  // The entry of the most urgent image among tags below `limit`; end() if none.
  static Tree::const_iterator Earliest(const Tree& tree, absl::Duration limit);
  // Where the client goes next in a tree whose smallest tag, or that of others
  // beside it, is `least`.
  static Head HeadOf(const Tree& tree, absl::Duration now, absl::Duration least,
                     absl::Duration batch);
  // The heads of the queues' lines of the class.
  std::vector<Head> Heads(absl::Span<const QueueId> queues,
                          server::Priority priority) const;
  // Adds `cost` to the client's tag.
  void Add(Client* client, absl::Duration cost);
  // Adds `cost` to what the batch is charged.
  void Add(const BatchCharge& charge, absl::Duration cost);
  // Forgets clients that do not wait and whose tags are not above now.
  static void Sweep(Class* of);

  std::array<Class, server::kPriorityCount> classes_;
  server::FairShares<server::Priority> shares_;  // Shares of the device's time.
  Lines lines_;                                  // None is empty.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_CLIENT_TURNS_H_
