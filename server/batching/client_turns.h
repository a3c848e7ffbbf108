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
// have the same queue, priority class and batch key.
struct LineId {
  QueueId queue;
  server::Priority priority = server::Priority::kNormal;
  BatchKey key;

  friend bool operator<(const LineId& a, const LineId& b) {
    return std::tie(a.queue, a.priority, a.key) <
           std::tie(b.queue, b.priority, b.key);
  }
};

// The device time of a batch, which is charged to the clients whose images are
// in the batch.
struct BatchCharge {
  struct Part {
    server::Priority priority = server::Priority::kNormal;
    std::string client;
    int images = 0;
  };
  int model = 0;
  std::vector<Part> parts;
  absl::Duration cost;  // The predicted device time of the batch.
  // The number of waiting clients of each class at the time of the charge.
  std::array<int, server::kPriorityCount> active = {};
};

// Decides whose image a device runs next. Clients take turns, and the most
// urgent image of each client goes first. Priority classes share the device's
// time in the ratio of server::kPriorityShares. These rules hold within a
// priority class:
//
// - Each client has a tag, which is the device time charged to the client. The
//   priority class has a virtual time, which is the device time that each
//   waiting client should have received so far. Each batch increases the
//   virtual time by the cost of the batch divided by the number of waiting
//   clients. When a client starts to wait, its tag is raised to the virtual
//   time if the tag is lower. While the client waits, only charges of device
//   time change the tag.
// - A client is overdue if its tag is below the virtual time by at least the
//   duration of a batch. Overdue clients go first, in ascending order of their
//   tags.
// - If no client is overdue, the client with the earliest deadline goes first.
//   This rule skips clients that are far ahead. A client is far ahead if its
//   tag is above the smallest tag by at least the duration of a batch.
// - If a client uses several models, the models get equal shares of the
//   client's time.
//
// A client gets its turns even if other clients claim early deadlines or often
// change their identity. While clients use similar amounts of time, deadlines
// decide the order, so that most deadlines are met. Source: virtual time and
// eligibility as in EEVDF (Stoica and Abdel-Wahab, 1995).
//
// The class has no clock and no thread. SetFirst(), Remove() and a pick are
// O(log clients). Thread-compatible.
class ClientTurns {
 private:
  struct Client;

  // The position of a client in a tree. It consists of the client's tag (the
  // device time charged to the client) and the number of the client's most
  // urgent image.
  using Place = std::pair<absl::Duration, uint64_t>;
  struct Entry {
    Client* client = nullptr;
    Urgency first;
  };
  // Computes for each node of a tree the most urgent image of the node's
  // subtree.
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
  // Picks the images of a line (see LineId) for a batch, one after another.
  // Picking moves clients in the tree of the line. The destructor moves these
  // clients back. The line must not change while this object exists.
  class Filling {
   public:
    // `cost` is the device time of one image. This time must be more than zero.
    Filling(ClientTurns* turns, const LineId& line, absl::Duration cost);
    ~Filling();
    Filling(const Filling&) = delete;
    Filling& operator=(const Filling&) = delete;

    // Returns the client whose most urgent image is next, or null if no image
    // is left.
    const std::string* Next();
    // Picks the most urgent image of the client that Next() returned. `first`
    // is the most urgent of the client's remaining images in the line. If no
    // image of the client remains, `first` is nullopt.
    void Pick(std::optional<Urgency> first);

   private:
    ClientTurns& turns_;
    const LineId id_;
    const absl::Duration cost_;
    Tree* const tree_;  // Null if no image of the line waits.
    const absl::Duration now_;
    const absl::Duration batch_;
    Place next_;
    // Contains each client with picked images. The value is the new position of
    // the client, or nullopt if the client has no further image.
    absl::flat_hash_map<Client*, std::optional<Place>> picked_;
  };

  // Sets the client's most urgent image in the line. `batch` is the predicted
  // duration of a batch with the most efficient number of images from this line
  // (see BatchCurve::best_size()). The duration must be more than zero.
  void SetFirst(const LineId& line, const std::string& client,
                const Urgency& first, absl::Duration batch);
  // Removes the client from the line. The client must have no more images in
  // the line.
  void Remove(const LineId& line, const std::string& client);

  // Returns the index of the queue in `queues` that has the next turn. `queues`
  // must not be empty.
  int Next(absl::Span<const QueueId> queues) const;

  // Returns the priority classes in the order of their turns. The class that
  // has used the smallest part of its share comes first. If classes have used
  // equal parts, the higher priority comes first.
  std::array<server::Priority, server::kPriorityCount> ClassesInTurn() const;

  // A line in the result of LinesInTurn(). `is_overdue` is true if the first
  // client of the line has received too little device time, see ClientTurns.
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
    absl::Duration batch;  // The parameter `batch` of SetFirst().
  };
  using Lines = std::map<LineId, Line>;
  struct Waiting {
    Lines::iterator line;
    Urgency first;
  };
  struct Client {
    const std::string* name = nullptr;
    absl::Duration tag;
    // Divides the client's time equally among models.
    server::FairShares<int> models;
    // Contains one element for each line in which the client waits.
    std::vector<Waiting> waiting;
  };
  struct Class {
    absl::Duration now;  // The virtual time of the class.
    int active = 0;      // The number of waiting clients.
    absl::node_hash_map<std::string, Client> clients;
    size_t sweep_at = 64;  // Sweep() runs when there are this many clients.
  };
  // The first client of a line. This client decides when the line has its turn.
  struct Head {
    // The groups go in this order. The clients in kInWindow are neither overdue
    // nor far ahead.
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
  // Returns the most urgent image of the clients whose tag (charged device
  // time) is below `limit`. Returns end() if there is no such client.
  static Tree::const_iterator Earliest(const Tree& tree, absl::Duration limit);
  // Returns which client of the tree has the next turn. `now` is the virtual
  // time, and `batch` is the duration of a batch. `least` is the smallest tag
  // in the tree. If several trees are compared, `least` is the smallest tag in
  // all of them.
  static Head HeadOf(const Tree& tree, absl::Duration now, absl::Duration least,
                     absl::Duration batch);
  // Returns the first client of each line that belongs to one of `queues` and
  // to the class `priority`.
  std::vector<Head> Heads(absl::Span<const QueueId> queues,
                          server::Priority priority) const;
  // Adds `cost` to the client's tag (the device time charged to the client).
  void Add(Client* client, absl::Duration cost);
  // Divides `cost` among the clients of the batch and increases the tag of each
  // client by its part. Also advances the virtual time of the clients' classes.
  void Add(const BatchCharge& charge, absl::Duration cost);
  // Forgets the clients of the class that have no waiting image and whose tag
  // is at most the virtual time of the class (see ClientTurns). If such a
  // client returns, its tag starts at the virtual time, as it would without
  // this call.
  static void Sweep(Class* of);

  std::array<Class, server::kPriorityCount> classes_;
  // Divides the device's time among the priority classes.
  server::FairShares<server::Priority> shares_;
  Lines lines_;  // Each line has at least one client.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_CLIENT_TURNS_H_
