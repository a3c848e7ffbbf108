#include "server/rpc/grpc_threads.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "grpc/support/cpu.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace sfmamba::rpc {
namespace {

// What gRPC calls each of them.
constexpr char kName[] = "nexting_thread";
// Started threads have named themselves after this time, or there are fewer.
constexpr absl::Duration kNaming = absl::Seconds(1);

// How many of them gRPC 1.51 starts at once.
int ExpectedThreads() {
  return std::clamp<int>(gpr_cpu_num_cores() / 2, 2, 16);
}

int CountNamed() {
  int named = 0;
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    named += std::getline(file, name) && name == kName;
  }
  return named;
}

// How many threads gRPC has, once all have names.
int CountThreads() {
  const absl::Time end = base::SteadyNow() + kNaming;
  int threads = CountNamed();
  while (threads < ExpectedThreads() && base::SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(1));
    threads = CountNamed();
  }
  return threads;
}

// Has gRPC's threads run callbacks. The destructor waits for them, for the last
// who holds the channel ends gRPC's threads, which none of these can do itself.
class Callbacks {
 public:
  Callbacks() : stub_(grpc::CreateChannel("", nullptr)) {}
  ~Callbacks() {
    absl::MutexLock lock(&mu_);
    const auto none = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return calls_ == 0;
    };
    mu_.Await(absl::Condition(&none));
  }

  // A call is refused, and one of gRPC's threads tells us.
  void Run(std::function<void()> callback) {
    auto call = std::make_shared<Call>(this);
    stub_.UnaryCall(&call->context, "/none/None", grpc::StubOptions(),
                    &call->request, &call->response,
                    [call, callback = std::move(callback)](
                        const grpc::Status& /*status*/) { callback(); });
  }

 private:
  class Counted {
   public:
    explicit Counted(Callbacks* callbacks) : callbacks_(*callbacks) {
      absl::MutexLock lock(&callbacks_.mu_);
      ++callbacks_.calls_;
    }
    ~Counted() {
      absl::MutexLock lock(&callbacks_.mu_);
      --callbacks_.calls_;
    }

   private:
    Callbacks& callbacks_;
  };
  struct Call {
    explicit Call(Callbacks* callbacks) : counted(callbacks) {}

    const Counted counted;        // First: until nothing else is left.
    grpc::ClientContext context;  // Holds the channel.
    const grpc::Slice none;
    const grpc::ByteBuffer request{&none, 1};
    grpc::ByteBuffer response;
  };

  grpc::GenericStub stub_;  // Of a channel that refuses every call.
  absl::Mutex mu_;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

// Where threads wait that are kept out.
class GrpcThreads::Gate {
 public:
  explicit Gate(const Options& options) : options_(options) {}

  void Close() {
    absl::Notification started;  // gRPC's threads, with the first callback.
    callbacks_.Run([&started] { started.Notify(); });
    started.WaitForNotification();
    const int threads = CountThreads();
    absl::MutexLock lock(&mu_);
    most_ = std::max(0, threads - options_.used);
    KeepOut();
    const auto are_kept_out = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return kept_out_ == most_;
    };
    mu_.Await(absl::Condition(&are_kept_out));
  }

  void OpenForEver() {
    absl::MutexLock lock(&mu_);
    most_ = 0;
  }

  void Beat() {
    absl::MutexLock lock(&mu_);
    const absl::Time now = base::SteadyNow();
    if (beating_) {
      open_ = true;
      close_at_ = now + options_.let_in;
      return;
    }
    if (open_ && now >= close_at_) {
      open_ = false;
      KeepOut();
    }
    beating_ = true;
    callbacks_.Run([this] {
      absl::MutexLock lock(&mu_);
      beating_ = false;
    });
  }

  int kept_out() const {
    absl::MutexLock lock(&mu_);
    return kept_out_;
  }

 private:
  // Has threads come here until all are kept out that may be.
  void KeepOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (int i = kept_out_; i < most_; ++i) {
      callbacks_.Run([this] { Wait(); });
    }
  }

  // Of a thread that is to be kept out.
  void Wait() {
    absl::MutexLock lock(&mu_);
    if (kept_out_ >= most_) return;  // It was sent for by an earlier KeepOut().
    ++kept_out_;
    const auto may_go = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return open_ || kept_out_ > most_;
    };
    mu_.Await(absl::Condition(&may_go));
    --kept_out_;
  }

  const Options options_;
  mutable absl::Mutex mu_;
  int most_ ABSL_GUARDED_BY(mu_) = 0;
  int kept_out_ ABSL_GUARDED_BY(mu_) = 0;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time close_at_ ABSL_GUARDED_BY(mu_);
  bool beating_ ABSL_GUARDED_BY(mu_) = false;  // A beat was sent and not run.
  Callbacks callbacks_;  // Last: they use everything above.
};

GrpcThreads::GrpcThreads(const Options& options)
    : gate_(std::make_unique<Gate>(options)) {
  gate_->Close();
  beats_ = std::make_unique<server::Periodic>("grpc-beat", options.beat,
                                              [this] { gate_->Beat(); });
}

GrpcThreads::~GrpcThreads() {
  beats_ = nullptr;
  gate_->OpenForEver();
}

int GrpcThreads::kept_out() const { return gate_->kept_out(); }

}  // namespace sfmamba::rpc
