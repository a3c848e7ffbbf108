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

// A slot that is made, run and destroyed by one thread, its own, whoever calls.
// For on a GPU the libraries have handles, workspaces and the algorithms that
// they chose for a size for each thread, and a recorded graph may need these as
// long as it lives.
class SlotThread : public BatchSlot {
 public:
  // Throws what `make` throws.
  explicit SlotThread(const std::function<std::unique_ptr<BatchSlot>()>& make);
  ~SlotThread() override;

  // Waits for the thread.
  absl::Status Run(absl::Span<const model::ModelInput> images,
                   absl::Span<model::Result> results,
                   model::RunInfo* info) override;
  absl::Status health() const override { return slot_->health(); }

 private:
  // Does `work` on the thread and waits for it; throws what it throws.
  void Do(const std::function<void()>& work) ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  void Loop() ABSL_LOCKS_EXCLUDED(mu_);  // The body of thread_.
  // What is to be done next, an invalid task at the end.
  std::packaged_task<void()> Take() ABSL_LOCKS_EXCLUDED(mu_);

  std::unique_ptr<BatchSlot> slot_;
  absl::Mutex mu_;
  std::packaged_task<void()> task_ ABSL_GUARDED_BY(mu_);  // Invalid: none.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // Last: starts once everything above exists.
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_SLOT_THREAD_H_
