#ifndef SFMAMBA_MODEL_TENSOR_MEMORY_H_
#define SFMAMBA_MODEL_TENSOR_MEMORY_H_

namespace sfmamba::model {

// From now on the memory of tensors of at least 1 MiB on the CPU is kept for
// ten seconds after they are freed, for the next batch: memory that is new to
// the process costs a segmenter a tenth of its time. Must be called once,
// before the process has other threads.
void KeepTensorMemory();

// Gives the system what no tensor has used for ten seconds. The next large
// tensor does so too; this is for a process that computes nothing more.
void ReleaseIdleTensorMemory();

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_TENSOR_MEMORY_H_
