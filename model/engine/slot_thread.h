#ifndef SFMAMBA_MODEL_ENGINE_SLOT_THREAD_H_
#define SFMAMBA_MODEL_ENGINE_SLOT_THREAD_H_

#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "model/engine/batch_slot.h"

namespace sfmamba::engine {

// A slot that is made, used and destroyed on its own thread, whichever thread
// calls. On a GPU, libraries keep handles, workspaces and chosen algorithms per
// thread, and a recorded graph may need them as long as it lives.
class SlotThread : public BatchSlot {
 public:
  // Calls `make` on the thread and throws what it throws.
  explicit SlotThread(const std::function<std::unique_ptr<BatchSlot>()>& make);
  ~SlotThread() override;

  // Runs the slot on the thread and waits for it.
  absl::Status Run(absl::Span<const model::ModelInput> images,
                   absl::Span<model::Result> results,
                   model::RunInfo* info) override;
  absl::Status health() const override { return slot_->health(); }

 private:
  // Calls `work` on the thread, waits for it and throws what it throws.
  void Do(const std::function<void()>& work) ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);  // The body of thread_.
  // Waits for the next task and returns it, or an invalid task to stop.
  std::packaged_task<void()> Take() ABSL_LOCKS_EXCLUDED(mu_);

  std::unique_ptr<BatchSlot> slot_;
  absl::Mutex mu_;
  // The next task; invalid if there is none.
  std::packaged_task<void()> task_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // Last: starts once everything above exists.
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_SLOT_THREAD_H_
