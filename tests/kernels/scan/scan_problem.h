#ifndef SFMAMBA_TESTS_KERNELS_SCAN_SCAN_PROBLEM_H_
#define SFMAMBA_TESTS_KERNELS_SCAN_SCAN_PROBLEM_H_

#include <cmath>
#include <random>
#include <vector>

#include "kernels/scan/selective_scan.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {

// Inputs of a selective scan, distributed as in a trained model.
template <typename T>
struct ScanProblem {
  ScanProblem(int64_t tokens, int channels, int states = 8, int seed = 1,
              int padding = 5)
      : u(tokens, channels, padding),
        dt(tokens, channels, padding),
        B(tokens, states, padding),
        C(tokens, states, padding),
        A(states * channels) {
    std::mt19937 random(seed);
    u.FillNormal(random, 0, 1);
    dt.FillNormal(random, 0, 0.5f);
    B.FillNormal(random, 0, 1);
    C.FillNormal(random, 0, 1);
    D = Normals(random, channels, 0, 1);
    bias = Normals(random, channels, -4.6f, 1);
    std::normal_distribution<float> normal(0, 0.3f);
    for (int n = 0; n < states; ++n) {
      for (int d = 0; d < channels; ++d) {
        A[n * channels + d] = -(n + 1) * std::exp(normal(random));
      }
    }
  }

  SelectiveScanArgs<T> Args(const PackedSequences& sequences,
                            Matrix<T>* y) const {
    SelectiveScanArgs<T> args{};
    args.channels = u.columns();
    args.states = B.columns();
    args.u = u.data();
    args.u_stride = u.stride();
    args.dt = dt.data();
    args.dt_stride = dt.stride();
    args.B = B.data();
    args.C = C.data();
    args.bc_stride = B.stride();
    args.y = y->data();
    args.y_stride = y->stride();
    args.A = A.data();
    args.a_stride = u.columns();
    args.D = D.data();
    args.bias = bias.data();
    args.sequences = sequences;
    return args;
  }

  Matrix<T> Run(const PackedSequences& sequences, CpuIsa isa) const {
    Matrix<T> y(u.rows(), u.columns());
    SelectiveScanCpu(Args(sequences, &y), isa);
    EXPECT_TRUE(y.GuardsIntact());
    return y;
  }

  // Returns the result for the same inputs, computed in fp64.
  Matrix<double> Reference(const PackedSequences& sequences) const {
    ScanProblem<double> exact = InDouble();
    Matrix<double> y(u.rows(), u.columns());
    SelectiveScanReference(exact.Args(sequences, &y));
    return y;
  }

  ScanProblem<double> InDouble() const {
    ScanProblem<double> exact(0, u.columns(), B.columns());
    exact.u = ToDouble(u);
    exact.dt = ToDouble(dt);
    exact.B = ToDouble(B);
    exact.C = ToDouble(C);
    exact.A = A;
    exact.D = D;
    exact.bias = bias;
    return exact;
  }

  Matrix<T> u, dt, B, C;
  std::vector<float> A, D, bias;
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_SCAN_SCAN_PROBLEM_H_
