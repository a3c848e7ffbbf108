#ifndef SFMAMBA_MODEL_ENGINE_UNKEPT_TENSORS_H_
#define SFMAMBA_MODEL_ENGINE_UNKEPT_TENSORS_H_

namespace sfmamba::engine {

// While one exists, memory of tensors that the calling thread makes is given
// back as soon as they are freed (see model/tensor_memory.h): for what is made
// once, as when a model is loaded.
class UnkeptTensors {
 public:
  UnkeptTensors() { ++Count(); }
  ~UnkeptTensors() { --Count(); }

  UnkeptTensors(const UnkeptTensors&) = delete;
  UnkeptTensors& operator=(const UnkeptTensors&) = delete;

  // Whether the calling thread has one.
  static bool Any() { return Count() > 0; }

 private:
  static int& Count() {
    thread_local int count = 0;
    return count;
  }
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_UNKEPT_TENSORS_H_
