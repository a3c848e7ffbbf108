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

// The urgency of an image, which is its deadline and its number in the queue.
// The lower value is more urgent. The number decides between equal deadlines.
using Urgency = std::pair<absl::Time, uint64_t>;

// Identifies a queue on a device. Each version of a model has its own queue.
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

// Identifies a line, which is a group of waiting images. All images of a line
// wait in the same queue, have the same priority class and need batches of the
// same key.
struct LineId {
  QueueId queue;
  server::Priority priority = server::Priority::kNormal;
  BatchKey key;

  friend bool operator<(const LineId& a, const LineId& b) {
    return std::tie(a.queue, a.priority, a.key) <
           std::tie(b.queue, b.priority, b.key);
  }
};

// The device time that a batch charges to the clients of its images.
struct BatchCharge {
  struct Part {
    server::Priority priority = server::Priority::kNormal;
    std::string client;
    int images = 0;
  };
  int model = 0;
  std::vector<Part> parts;
  absl::Duration cost;  // The predicted cost.
  // The number of waiting clients of each class at the time of the charge.
  std::array<int, server::kPriorityCount> active = {};
};

// Decides whose image a device runs next. Clients take turns, and the earliest
// deadline of each client goes first. Priority classes share the device's time
// in the ratio of server::kPriorityShares. These rules hold within a class:
//
// - A client's tag is the device time charged to the client. When a client
//   starts to wait, its tag is raised to at least the virtual time of the
//   class. Waiting alone does not change the tag. The virtual time advances by
//   the cost of each batch, divided by the number of waiting clients.
// - A client is overdue if its tag is lower than the virtual time by the
//   duration of a batch or more. Overdue clients go first, in ascending order
//   of their tags.
// - If no client is overdue, the earliest deadline goes first. Only clients
//   whose tag exceeds the smallest tag by less than the duration of a batch
//   take part.
// - The models that a client uses get equal shares of this client's time.
//
// A client gets its turns regardless of the deadlines that other clients claim
// and of how often they change their identity. While clients use similar
// amounts of time, deadlines decide the order, so that most deadlines are met.
// Source: virtual time and eligibility as in EEVDF (Stoica and Abdel-Wahab,
// 1995).
//
// The class has no clock and no thread. SetFirst(), Remove() and a pick are
// O(log clients). Thread-compatible.
class ClientTurns {
 private:
  struct Client;

  // The position of a client in a tree, which is the client's tag and the
  // number of its first image.
  using Place = std::pair<absl::Duration, uint64_t>;
  struct Entry {
    Client* client = nullptr;
    Urgency first;
  };
  // Stores in each node of a tree the most urgent image of the node's subtree.
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
  // Picks the images of a line for a batch. The destructor restores the turns,
  // so picking does not change them. The line must not change while this object
  // exists.
  class Filling {
   public:
    // `cost` is the device time of one image. It must be more than zero.
    Filling(ClientTurns* turns, const LineId& line, absl::Duration cost);
    ~Filling();
    Filling(const Filling&) = delete;
    Filling& operator=(const Filling&) = delete;

    // Returns the client whose first image is next, or null if no image is
    // left.
    const std::string* Next();
    // Picks the first image of the client that Next() returned. `first` is the
    // client's following image, or nullopt if the client has none.
    void Pick(std::optional<Urgency> first);

   private:
    ClientTurns& turns_;
    const LineId id_;
    const absl::Duration cost_;
    Tree* const tree_;  // Null if no image waits.
    const absl::Duration now_;
    const absl::Duration batch_;
    Place next_;
    // Contains each client with picked images. The value is the new position of
    // the client, or nullopt if the client has no further image.
    absl::flat_hash_map<Client*, std::optional<Place>> picked_;
  };

  // Sets the client's most urgent image in the line. `batch` is the duration of
  // a batch of the line's best size. It must be more than zero.
  void SetFirst(const LineId& line, const std::string& client,
                const Urgency& first, absl::Duration batch);
  // Removes the client from the line. The client must have no more images
  // there.
  void Remove(const LineId& line, const std::string& client);

  // Returns the index in `queues` of the queue that goes next. `queues` must
  // not be empty.
  int Next(absl::Span<const QueueId> queues) const;

  // Returns the priority classes in the order of their turns. The class that
  // has used the smallest part of its share comes first. Equal classes are
  // ordered by priority.
  std::array<server::Priority, server::kPriorityCount> ClassesInTurn() const;

  // A line of a queue. `is_overdue` is true if the line's first client is
  // overdue.
  struct Turn {
    BatchKey key;
    bool is_overdue = false;
  };
  // Returns the queue's lines of one priority class in the order of their
  // turns.
  std::vector<Turn> LinesInTurn(const QueueId& queue,
                                server::Priority priority) const;

  // Charges the predicted cost of a batch to its clients. Must be called when
  // the batch starts, before its images are removed. Sets `charge->active`.
  void Charge(BatchCharge* charge);
  // Corrects the charge of a batch whose real duration was `took`.
  void Correct(const BatchCharge& charge, absl::Duration took);

  // Returns the number of waiting clients. A client that waits in two priority
  // classes counts twice.
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
    server::FairShares<int> models;  // Divides the client's time equally.
    std::vector<Waiting> waiting;    // One element per line.
  };
  struct Class {
    absl::Duration now;  // The virtual time.
    int active = 0;      // The number of waiting clients.
    absl::node_hash_map<std::string, Client> clients;
    size_t sweep_at = 64;  // Sweep() runs at this number of clients.
  };
  // The first client of a line. This client decides when the line has its turn.
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
  // Returns the most urgent image of the clients whose tag is below `limit`, or
  // end() if there is no such client.
  static Tree::const_iterator Earliest(const Tree& tree, absl::Duration limit);
  // Returns the client that goes next in a tree. `now` is the virtual time, and
  // `batch` is the duration of a batch. `least` is the smallest tag of this
  // tree, or of all trees that are compared.
  static Head HeadOf(const Tree& tree, absl::Duration now, absl::Duration least,
                     absl::Duration batch);
  // Returns the first client of each line that belongs to one of `queues` and
  // to the class `priority`.
  std::vector<Head> Heads(absl::Span<const QueueId> queues,
                          server::Priority priority) const;
  // Adds `cost` to the client's tag.
  void Add(Client* client, absl::Duration cost);
  // Divides `cost` among the batch's clients and adds each part to the client's
  // tag. Advances the virtual time of the clients' classes.
  void Add(const BatchCharge& charge, absl::Duration cost);
  // Removes the clients that have no waiting image, if their tags are at most
  // the virtual time.
  static void Sweep(Class* of);

  std::array<Class, server::kPriorityCount> classes_;
  server::FairShares<server::Priority> shares_;  // Shares of the device's time.
  Lines lines_;  // Each line has at least one client.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_CLIENT_TURNS_H_
