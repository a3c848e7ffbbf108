#ifndef SFMAMBA_SERVER_OBSERVABILITY_BATCH_TRIGGER_H_
#define SFMAMBA_SERVER_OBSERVABILITY_BATCH_TRIGGER_H_

namespace sfmamba::observability {

// Why a batch left its queue: it was full, its oldest task had waited long
// enough, or the queue is being emptied.
enum class BatchTrigger { kFull, kDelay, kDrain };

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_BATCH_TRIGGER_H_
