#ifndef SFMAMBA_MODEL_ENGINE_UNKEPT_TENSORS_H_
#define SFMAMBA_MODEL_ENGINE_UNKEPT_TENSORS_H_

namespace sfmamba::engine {

// While an object exists, freed tensors of the calling thread are returned
// to malloc() and not cached (see model/tensor_memory.h). Use it for memory
// that is needed only once, for example while a model is loaded.
class UnkeptTensors {
 public:
  UnkeptTensors() { ++Count(); }
  ~UnkeptTensors() { --Count(); }

  UnkeptTensors(const UnkeptTensors&) = delete;
  UnkeptTensors& operator=(const UnkeptTensors&) = delete;

  // Returns true if an object of this class exists on the calling thread.
  static bool Any() { return Count() > 0; }

 private:
  static int& Count() {
    thread_local int count = 0;
    return count;
  }
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_UNKEPT_TENSORS_H_
