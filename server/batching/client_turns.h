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

// Whose image a device runs next: between clients turns, within a client the
// earliest deadline first. Priority classes share the device's time as
// server::kPriorityShares says, and within a class the rule is:
//
// - A client's tag is the device time that it was charged. A batch is charged
//   when it starts, as predicted. The difference to what it took is added to
//   the client's next charge.
// - A client that begins to wait is moved up to the class's virtual time. A
//   client that waits is not moved. The virtual time advances by the cost of
//   each batch, divided by the number of clients that wait.
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
// It has no clock and no thread. SetFirst(), Remove() and taking an image are
// O(log clients). Thread-compatible.
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
  struct Line {
    Tree tree;
    absl::Duration batch;
  };
  using Lines = std::map<LineId, Line>;
  struct Waiting {
    Lines::iterator line;
    Urgency first;
    absl::Duration tag;  // Where it stands in the line's tree.
  };

 public:
  // What the clients of a batch's images were charged for it.
  class Charge {
   private:
    friend class ClientTurns;
    struct Part {
      int images = 0;
      absl::Duration cost;
    };
    struct ClassPart : Part {
      int active = 0;  // Clients that waited before.
    };
    int model_ = 0;
    std::vector<std::pair<Client*, Part>> clients_;
    std::array<ClassPart, server::kPriorityCount> classes_;  // By Priority.
  };

  // Takes images for a batch that starts, and charges them to their clients.
  class Filling {
   public:
    // The images are of the queue and have the key.
    Filling(ClientTurns* turns, const QueueId& queue, const BatchKey& key);
    Filling(const Filling&) = delete;
    Filling& operator=(const Filling&) = delete;

    // The client whose first image of the class is next; null if none waits.
    const std::string* Next(server::Priority priority);
    // Takes the first image of the client that Next() returned. `cost` is
    // predicted, zero if the image will not run. `first` is the client's next
    // one in the line, if any.
    void Take(std::optional<Urgency> first, absl::Duration cost);
    // The batch has all its images. Correct() must follow if there are some.
    Charge Start();

   private:
    ClientTurns& turns_;
    LineId id_;
    Charge charge_;
    Lines::iterator line_;  // What Next() found,
    Place next_;            // and where in its tree.
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

  // The batch took `took`. The difference is added to the next charge of each
  // client.
  void Correct(const Charge& charge, absl::Duration took);

  // How many clients wait, each once in every class.
  int active() const;

 private:
  struct Client {
    const std::string* name = nullptr;
    server::Priority priority = server::Priority::kNormal;  // Of its class.
    absl::Duration tag;
    // What the next charge adds, because batches took longer than predicted.
    // May be negative. Zero unless the client waits.
    absl::Duration owed;
    server::FairShares<int> models;  // Equal shares of its time.
    std::vector<Waiting> waiting;    // By line.
    int part = -1;    // Its part of the charge of the batch that is filled.
    int running = 0;  // Charges that were not corrected.
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
  static std::vector<Waiting>::iterator WaitingIn(Client* client,
                                                  Lines::iterator line);
  // The client, whose place in the line's tree is free, waits there no more.
  void Leave(Lines::iterator line, Client* client);
  // Adds what the client owes to its tag, and to its class's virtual time. The
  // client has no place in a tree, or gets a new one.
  void PayOwed(Client* client);
  // Forgets clients that do not wait and whose tags are not above now.
  static void Sweep(Class* of);

  std::array<Class, server::kPriorityCount> classes_;
  server::FairShares<server::Priority> shares_;  // Shares of the device's time.
  Lines lines_;                                  // None is empty.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_CLIENT_TURNS_H_
