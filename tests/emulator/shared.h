#ifndef SFMAMBA_TESTS_EMULATOR_SHARED_H_
#define SFMAMBA_TESTS_EMULATOR_SHARED_H_

#include "absl/strings/str_cat.h"
#include "tests/emulator/grid.h"
#include "tests/emulator/shared_shadow.h"

namespace sfmamba::simt {

// The emulator's versions of the types in kernels/cuda/nvcc/simt/simt.h.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
  T values[N];

  T& operator[](int i) { return values[i]; }
  const T& operator[](int i) const { return values[i]; }
};

// The type of &tile[i], for atomic operations.
template <typename T>
struct SharedPointer {
  T* value;
  SharedShadow* shadow;
  int i;
};

// The type of tile[i]. Converting it to T reads the element, and assigning to
// it writes the element.
template <typename T>
class SharedElement {
 public:
  SharedElement(T* value, SharedShadow* shadow, int i)
      : value_(value), shadow_(shadow), i_(i) {}

  operator T() const {
    shadow_->Read(i_);
    return *value_;
  }
  SharedElement& operator=(T value) {
    shadow_->Write(i_);
    *value_ = value;
    return *this;
  }
  SharedElement& operator=(const SharedElement& other) {
    return *this = static_cast<T>(other);
  }
  SharedElement& operator+=(T value) { return *this = T(*this) + value; }
  SharedElement& operator-=(T value) { return *this = T(*this) - value; }
  SharedElement& operator*=(T value) { return *this = T(*this) * value; }
  SharedElement& operator|=(T value) { return *this = T(*this) | value; }
  SharedElement& operator&=(T value) { return *this = T(*this) & value; }
  SharedElement& operator++() { return *this += T(1); }
  SharedElement& operator--() { return *this -= T(1); }
  SharedPointer<T> operator&() const { return {value_, shadow_, i_}; }

 private:
  T* const value_;
  SharedShadow* const shadow_;
  const int i_;
};

template <typename T, int N>
struct Shared {
  SharedElement<T> operator[](int i) { return {values_ + i, &shadow_, i}; }

  template <int M>
  Vector<T, M> Load(int i) {
    CheckAligned(i, M);
    Vector<T, M> vector;
    for (int j = 0; j < M; ++j) vector[j] = (*this)[i + j];
    return vector;
  }
  template <int M>
  void Store(int i, const Vector<T, M>& vector) {
    CheckAligned(i, M);
    for (int j = 0; j < M; ++j) (*this)[i + j] = vector[j];
  }

 private:
  static void CheckAligned(int i, int m) {
    if (i % m == 0) return;
    Fail(absl::StrCat("moves ", m, " elements of a shared array at once from ",
                      "element ", i, ", which is not a multiple of ", m));
  }

  T values_[N];
  SharedShadow shadow_{N};
};

}  // namespace sfmamba::simt

#endif  // SFMAMBA_TESTS_EMULATOR_SHARED_H_
